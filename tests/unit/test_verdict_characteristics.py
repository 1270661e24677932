"""How often the verdict is right and wrong, by simulation: docs/evidence.md has the table."""

import numpy as np
import pytest
from kit.composites import JURY, scope_of
from kit.verdict_studies import MARGIN, Design, dice, drawn, loading, may_pass, verdicts

from calibration.protocol import Protocol
from calibration.table import scope_rows
from calibration.verdict import JuryClaim, decide

ALL_READ = [
    Design(clinicians, 0.4, responses, ceiling)
    for responses in (100, 1000)
    for ceiling in (False, True)
    for clinicians in (2, 3, 4, 6)
]
DESIGNS = [*ALL_READ, *(Design(6, 0.4, n, top, 2) for n in (100, 1000) for top in (False, True))]


def named(design: Design) -> str:
    readers = f"{design.readers or design.clinicians} of {design.clinicians}"
    return (
        f"{readers} clinicians, {design.responses} {'at the ceiling' * design.ceiling or 'normal'}"
    )


@pytest.mark.parametrize("single", [0.0, 0.1])
@pytest.mark.parametrize("design", DESIGNS, ids=named)
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_dice_are_never_no_worse_than_clinicians_who_agree_on_nothing_and_next_to_never_else(
    design: Design, single: float
) -> None:
    weak = Design(design.clinicians, single, design.responses, design.ceiling, design.readers)
    random = np.random.default_rng(design.responses + design.clinicians)
    found = verdicts(dice(weak, random) for _ in range(1000))
    assert found["non_inferior"] <= (0 if single == 0 else 10)


@pytest.mark.parametrize("design", DESIGNS, ids=named)
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_jury_worse_by_exactly_the_margin_is_no_worse_in_at_most_35_of_1000_studies(
    design: Design,
) -> None:
    jury, random = loading(design, -MARGIN), np.random.default_rng(design.clinicians)
    found = verdicts(drawn(design, jury, random) for _ in range(1000))
    assert found["non_inferior"] <= 46  # 3.5 %, and two standard errors of 1,000 studies


@pytest.mark.parametrize("design", [one for one in DESIGNS if one.responses == 1000], ids=named)
@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_jury_as_good_as_a_clinician_is_no_worse_in_three_of_four_studies_of_1000(
    design: Design,
) -> None:
    jury, random = loading(design, 0.0), np.random.default_rng(design.clinicians)
    found = verdicts(drawn(design, jury, random) for _ in range(200))
    assert found["non_inferior"] >= 138  # 75 %, less two standard errors of 200 studies


def test_what_is_counted_as_far_by_its_estimates_is_never_no_worse() -> None:
    design, random = Design(3, 0.4, 60), np.random.default_rng(0)
    tables = [drawn(design, jury, random) for jury in (0.4, 0.6, 0.8, 0.95) for _ in range(8)]
    claim = JuryClaim(Protocol(MARGIN, jurors=JURY.members))
    kinds = [decide([*scope_rows(scope_of(table, reps=20))], claim).kind.value for table in tables]
    passing = [may_pass(table) for table in tables]
    assert "non_inferior" in kinds
    assert not all(passing)
    assert all(may for kind, may in zip(kinds, passing, strict=True) if kind == "non_inferior")
