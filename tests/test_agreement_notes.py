"""What the agreement tables say beside their figures: cells without a number, and notes."""

import pytest
from kit.scores import study
from kit.studies import content_of

from calibration.codes import NoteCode
from calibration.data_quality import DistributionRow, MissingRow
from calibration.messages import words
from calibration.tables.agreement import AGREEMENT, MISSING, NEARNESS
from calibration.tables.jurors import DISTRIBUTIONS
from calibration.tables.numbers import TERMINAL, chance
from calibration.tables.spec import laid_out
from calibration.values import NAN, note

FEW = note(NoteCode.FEW_INSTANCES, least=20)
OWN = note(NoteCode.ONE_INSTANCE)
ALIKE = note(NoteCode.ALPHA_UNDEFINED)
HERE = note(NoteCode.NOTHING_SCORED)


def test_a_p_is_never_shown_as_0() -> None:
    shown = [chance(p, TERMINAL) for p in (None, NAN, 0.00049, 0.0009, 0.001, 0.25)]
    assert shown == ["-", "-", "<0.001", "<0.001", "0.001", "0.250"]


def test_a_lower_bound_that_does_not_exist_is_told_in_its_cell() -> None:
    rows = [
        MissingRow("b", "jury", 9, 8, 1, 1, 0, 0.5, low, high)
        for low, high in ((None, None), (NAN, NAN), (None, 0.9), (-1.0, 0.9))
    ]
    [group] = laid_out(MISSING, rows, TERMINAL).groups
    assert [cells[-1] for cells in group.rows] == [*("-", "-", "no bound to 0.90", "-1.00 to 0.90")]


def of(rater: str, criterion: str, *notes: object) -> DistributionRow:
    """Return a row on one criterion."""
    return DistributionRow("b", rater, criterion, 9, 3.0, 1.0, {"3": 9}, 0.0, notes=notes)  # type: ignore[arg-type] # they are notes


def test_a_note_on_one_criterion_says_which() -> None:
    rows = [
        of("juror:j1", "accuracy", FEW, OWN),
        of("juror:j2", "accuracy", FEW),
        of("juror:j1", "clarity", ALIKE),
        of("juror:j2", "clarity", ALIKE, HERE),
    ]
    told = [one.text for one in laid_out(DISTRIBUTIONS, rows).notes]
    assert told == [
        f"accuracy: {words(FEW)}",
        f"accuracy, j1: {words(OWN)}",
        f"clarity: {words(ALIKE)}",
        f"clarity, j2: {words(HERE)}",
    ]
    every = [of(rater, criterion, FEW) for criterion in "ab" for rater in ("juror:j1", "juror:j2")]
    assert [one.text for one in laid_out(DISTRIBUTIONS, every).notes] == [words(FEW)]


def test_what_holds_for_a_whole_table_stands_under_no_name_and_the_simulated_are_marked() -> None:
    analysed = note(NoteCode.ANALYSED, analysed=8, in_study=9)
    made_up = note(NoteCode.SIMULATED, raters=("j1",))
    rows = [of("dr-a", "accuracy", FEW, analysed, made_up), of("dr-b", "accuracy", OWN, analysed)]
    table = laid_out(DISTRIBUTIONS, rows)
    assert [one.text for one in table.notes] == [
        f"accuracy, dr-a (simulated): {words(FEW)}",
        words(analysed),
        f"accuracy, dr-b: {words(OWN)}",
    ]
    assert [cells[0] for cells in table.groups[0].rows] == ["dr-a (simulated)", "dr-b"]


@pytest.mark.not_quick
def test_the_test_of_nearness_gives_its_margin_and_no_leave_to_replace_anybody() -> None:
    rows = content_of(study(n=120)).of("alt_test")
    table = laid_out(NEARNESS, rows)
    reading = "epsilon 0.2; a winning rate of 0.5 is the pass mark; a tie counts as nearer for both"
    assert table.notes[0].text == reading
    assert "which does not justify replacing one" in table.caption
    few = laid_out(NEARNESS, content_of(study(n=24)).of("alt_test"))
    assert reading not in [one.text for one in few.notes]  # of no figure


@pytest.mark.parametrize("name", ["Smith, John", "dr_c; simulated raters: nobody"])
def test_a_name_that_parts_a_list_stands_in_quotation_marks_in_a_note(name: str) -> None:
    rows = [of(name, "accuracy", FEW), of("dr-b", "accuracy")]
    table = laid_out(DISTRIBUTIONS, rows)
    assert table.groups[0].rows[0][0] == name
    assert [one.text for one in table.notes] == [f'accuracy, "{name}": {words(FEW)}']
    left_out = note(NoteCode.NO_VARIANCE, raters=(name, "dr-b"))
    assert words(left_out) == f'left out, no variance: "{name}", dr-b'
    assert laid_out(AGREEMENT, []).notes == ()
