"""What the agreement tables say beside their figures: cells without a number, and notes."""

import pytest

from calibration.data_quality import DistributionRow
from calibration.notes import note
from calibration.tables.agreement import AGREEMENT
from calibration.tables.jurors import DISTRIBUTIONS
from calibration.tables.numbers import TERMINAL, chance
from calibration.tables.spec import laid_out
from calibration.values import NAN

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
