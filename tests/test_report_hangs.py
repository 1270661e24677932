"""How much a verdict depends on a single response, and which juror lowers the ICC."""

from dataclasses import replace

from kit.scores import study
from kit.studies import content_of

from calibration.effective_jurors import ValueRow
from calibration.influence import InfluenceRow
from calibration.report.page import page, sensitivity
from calibration.values import NAN


def told(influence=(), value=()):
    """Return the line of a report with these rows of the details."""
    own = {"influence": [*influence], "juror_value": [*value]}
    return sensitivity(replace(content_of(study(n=24), reps=5), details=own), "b")


def left(what, with_it, without, scorer="jury"):
    return InfluenceRow("b", scorer, what, with_it, without, without - with_it)


def worth(juror, jury, without):
    return ValueRow("b", juror, icc_without=without, icc_jury=jury)


def test_the_largest_change_of_the_jury_is_named_with_from_and_to():
    rows = [left("response:r1", 0.474, 0.4), left("instance:i2", 0.474, 0.6)]
    rows += [left("response:r3", 0.474, 0.0, "juror:gpt"), left("response:r4", 0.474, NAN)]
    assert (
        told(rows)
        == "The jury's ICC depends most on the instance i2: 0.474 with it, 0.600 without it."
    )
    assert told([left(None, 0.4, 0.4)]) == ""


def test_a_juror_is_named_only_where_the_jury_is_clearly_better_without_it():
    def line(without):
        return told(value=[worth("a", 0.5, 0.4), worth("b", 0.5, without)])

    assert line(0.519) == ""
    assert line(NAN) == ""
    assert line(0.53).startswith(
        "Without the juror b the jury would agree better: ICC 0.530 instead of 0.500."
    )
    assert "`medjury juries`" in line(0.53)


def test_the_line_stands_in_the_verdict_before_section_2():
    content = content_of(study(n=24), reps=20)
    head = page(content).split('id="s2"')[0]
    assert "depends most on the response aci-r" in head
