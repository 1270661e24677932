"""The line on what a verdict hangs on: which response decides, and which juror costs."""

from dataclasses import replace

from little_study import study
from report_study import content_of

from calibration.report.hangs import hangs_on
from calibration.report.page import page


def told(influence=(), value=()):
    """Return the line of a report with these rows of the details."""
    rows = {"influence": influence, "juror_value": value}
    own = {
        name: [{"benchmark": "b", "note": "", **one} for one in found]
        for name, found in rows.items()
    }
    return hangs_on(replace(content_of(study(n=24), reps=5), details=own), "b")


def left(what, with_it, without, scorer="jury"):
    change = None if without is None else without - with_it
    figures = {"icc_all": with_it, "icc_without": without, "change": change}
    return {"scorer": scorer, "left_out": what, **figures}


def test_the_largest_change_of_the_jury_is_named_with_from_and_to():
    rows = [left("response:r1", 0.474, 0.4), left("instance:i2", 0.474, 0.6)]
    rows += [left("response:r3", 0.474, 0.0, "juror:gpt"), left("response:r4", 0.474, None)]
    assert (
        told(rows) == "The jury's ICC hangs most on the instance i2: 0.474 with it, 0.600 without."
    )
    assert told([left(None, 0.4, 0.4)]) == ""


def test_a_juror_is_named_only_where_the_jury_is_clearly_better_without_it():
    def line(without):
        rows = zip(("a", "b"), (0.3, 0.2), (0.4, without), strict=True)
        names = ("juror", "shapley", "icc_without")
        return told(value=[dict(zip(names, row, strict=True)) for row in rows])

    assert line(0.519) == ""
    assert line(None) == ""
    assert line(0.53).startswith(
        "Without the juror b the jury would agree better: ICC 0.530 instead of 0.500."
    )
    assert "`medjury juries`" in line(0.53)


def test_the_line_stands_in_the_verdict_before_section_2():
    content = content_of(study(n=24), reps=20)
    head = page(content).split('id="s2"')[0]
    assert "hangs most on the response aci-r" in head
