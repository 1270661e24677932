"""Notes have words with their figures in; those that warn are seen first, and none is lost."""

import numpy as np
import pytest
from kit.odd_studies import all_notes, odd_studies

from calibration import remarks
from calibration.data_quality import DistributionRow
from calibration.icc import Interval
from calibration.notes import Words, counted, filled, listed, note, noted, quoted
from calibration.tables.agreement import AGREEMENT
from calibration.tables.jurors import DISTRIBUTIONS
from calibration.tables.numbers import TERMINAL, chance
from calibration.tables.spec import ICC_WORDS, laid_out, parted, table_notes
from calibration.values import NAN
from calibration.writers import html_table

# Without these, half the time shows 120 of the 140 kinds of notes.
LONG = (
    *("a criterion that nobody rated", "a jury that guesses", "scales that differ"),
    *("a criterion that one lacks", "resamples without a difference", "few instances"),
)


@pytest.mark.parametrize(
    "left_out",
    [LONG, pytest.param((), marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
    ids=["some", "all"],
)
def test_every_note_on_a_figure_of_the_odd_studies_has_words_with_all_its_figures_in(left_out):
    studies = odd_studies()
    for name in studies.keys() - left_out:
        for one in set(all_notes(studies[name])):
            for said in (str(one), one.text, one.general or one.text):
                assert said.strip(), (name, one)
                assert not {"{", "}"} & {*said}, (name, said)
                assert not any(odd in said for odd in ("None", "nan", "NoteCode", "  ")), said


def test_a_message_that_lacks_a_figure_is_an_error_and_never_half_a_sentence():
    with pytest.raises(KeyError, match="least"):
        note("few_instances", "fewer than {least} instances")


def test_counts_have_their_nouns_and_names_that_part_a_list_their_quotation_marks():
    assert [counted(n, "pair") for n in (0, 1, 2)] == ["0 pairs", "1 pair", "2 pairs"]
    assert filled("{n:missing score} of {who}", {"n": 1, "who": ("a", "b, c")}) == (
        '1 missing score of a, "b, c"'
    )
    assert filled("{who:scorer}", {"who": "metric:rouge-l"}) == "rouge-l"
    assert filled("{why}; {who}", {"why": Words("a, b"), "who": "a;b"}) == 'a, b; "a;b"'
    assert [quoted(one) for one in ("a", "a b", "a, b", 'a", "b', "a\nb")] == [
        *("a", "a b", '"a, b"', r'"a\", \"b"', "a b")
    ]
    assert listed(["Smith, John", "gpt"]) == '"Smith, John", gpt'


ENDS = Interval(0.1, 0.6)
LOUD = noted(
    remarks.few_instances(5),
    remarks.negative(-0.2, 0.1, 0.0),
    remarks.negative(-0.2, -0.1, -0.3),
    remarks.no_variance(["dr_a"]),
    remarks.undefined_resamples(np.array([np.nan] * 10 + [0.5] * 90)),
    note("fragile_pairs", "fragile_pairs", fragile=5, pairs=5, least=10),
    note("no_variance", "no_variance", raters=("compared, each on 7 responses or more",)),
)
QUIET = noted(
    remarks.corrected(5, 0.99, ENDS),
    remarks.undefined_resamples(np.array([np.nan] + [0.5] * 99)),
    note("held_on", "held_on", clinicians=4, least=7),
    note("held_iccs", "held_iccs", jury=0.495, clinician=0.394),
    note("own_means", "own_means", icc=0.7),
)


@pytest.mark.parametrize("groups", [[""], ["aci", "mts"]])
def test_what_only_adds_figures_is_folded_and_what_warns_is_not(groups: list[str]) -> None:
    every = table_notes([(one, "Jury", (*QUIET, *LOUD)) for one in groups])
    loud, quiet = parted(every)
    assert [one.code for one in loud] == [one.code for one in LOUD]
    assert [one.code for one in quiet] == [one.code for one in QUIET]


def test_a_warning_is_not_folded_for_the_figures_in_it() -> None:
    named = "with the other clinicians: jury 0.4, BCa bootstrap 0.1 to 0.6; read no more into it"
    warning = remarks.no_variance([named])
    assert warning is not None
    every = table_notes([(f"b{n}", "Jury", (*QUIET, warning)) for n in range(2)])
    loud, quiet = parted([*every, *table_notes([("aci", "Jury", (warning,))])])
    assert len(loud) == 2
    assert all(named in one.text for one in loud)
    assert len(quiet) == len(QUIET)


def test_a_heading_in_the_app_tells_its_meaning() -> None:
    page = html_table(laid_out(AGREEMENT, []), on_screen=True)
    assert f'tabindex="0" aria-description="{ICC_WORDS}">ICC(C,2)</span>' in page
    assert ">Scorer</th>" in page


def test_a_report_that_is_handed_on_has_plain_headings() -> None:
    assert "mj-term" not in html_table(laid_out(AGREEMENT, []))


FEW = note("few_instances", "few_instances", least=20)


def test_a_p_is_never_shown_as_0() -> None:
    shown = [chance(p, TERMINAL) for p in (None, NAN, 0.00049, 0.0009, 0.001, 0.25)]
    assert shown == ["-", "-", "<0.001", "<0.001", "0.001", "0.250"]


def of(rater: str, criterion: str, *notes: object) -> DistributionRow:
    """Return a row on one criterion."""
    return DistributionRow("b", rater, criterion, 9, 3.0, 1.0, {"3": 9}, 0.0, notes=notes)  # type: ignore[arg-type] # they are notes


@pytest.mark.parametrize("name", ["Smith, John", "dr_c; simulated raters: nobody"])
def test_a_name_that_parts_a_list_stands_in_quotation_marks_in_a_note(name: str) -> None:
    rows = [of(name, "accuracy", FEW), of("dr-b", "accuracy")]
    table = laid_out(DISTRIBUTIONS, rows)
    assert table.groups[0].rows[0][0] == name
    assert [one.text for one in table.notes] == [f'accuracy, "{name}": {FEW!s}']
    left_out = note("no_variance", "left out, no variance: {raters}", raters=(name, "dr-b"))
    assert str(left_out) == f'left out, no variance: "{name}", dr-b'
    assert laid_out(AGREEMENT, []).notes == ()
