"""What `medjury assign` says of a design, in words."""

import pytest
from sqlalchemy import Engine

from annotate.assign import design
from annotate.plan import Item, Plan, plan_of
from data.pace import said
from data.queries import check_code
from data.schema import Role
from medjury.cli.reading import first_coordinator, told


def plan(responses: int, raters: int, per_response: int) -> Plan:
    """Return the plan of a small design: three models answer each instance."""
    items = [Item(n + 1, n // 3, f"model {n % 3}") for n in range(responses)]
    names = [f"dr_{chr(97 + n)}" for n in range(raters)]
    return plan_of(design(items, names, per_response), said(2))


def test_a_plan_is_told_in_sentences_with_its_assumptions() -> None:
    assert told(plan(60, 5, 2)) == [
        "60 responses to 20 instances.",
        "Minutes: 260 in all, 2.0 a showing as you say.",
        "Any two clinicians share 6 responses; all are linked by what they share.",
        "Clinicians' counts of one model's responses differ by 0 at most.",
        "Expected 95 % interval of the agreement: 0.08 to 0.67, width 0.59 "
        "(1.17 if the instances alone counted).",
        "Some pairs share fewer than 10 responses: their ICC is fragile.",
        "The interval assumes an ICC(C,2) of 0.45.",
    ]


def test_one_clinician_is_told_nothing_of_sharing_but_that_there_is_none() -> None:
    said = told(plan(30, 1, 1))
    assert not any(line.startswith("Any two") for line in said)
    assert any(line.startswith("One reading a response: no two clinicians") for line in said)


def test_a_single_response_has_no_expected_interval() -> None:
    assert "Too few responses for an interval." in told(plan(1, 2, 2))


@pytest.mark.parametrize("shape", [(60, 5, 2), (30, 1, 1), (12, 4, 1), (1, 2, 2)])
def test_nothing_of_python_is_shown(shape: tuple[int, int, int]) -> None:
    said = " ".join(told(plan(*shape)))
    assert not any(mark in said for mark in ("{", "[", "True", "False", "None", "_"))


def test_a_new_study_gets_one_coordinator_who_can_sign_in(engine: Engine) -> None:
    [invitation] = first_coordinator(engine)

    assert first_coordinator(engine) == []
    person = check_code(engine, invitation.code).person
    assert person is not None
    assert person.role == Role.COORDINATOR
