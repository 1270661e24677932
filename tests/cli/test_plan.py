"""The plan of a design: its figures before anyone is invited, and the sentences that tell them."""

import json

import pytest
from kit.rating_study import items, names
from sqlalchemy import Engine

from calibration.icc import f_interval
from data.pace import stated
from data.schema import Role
from data.study.people import check_code
from medjury.cli.people import first_coordinator
from medjury.services.design.assign import design
from medjury.services.design.plan import Plan, plan_of


def test_the_plan_is_json_and_shows_what_must_be_known_before_anyone_is_invited() -> None:
    written = design(items(60), names(5), 2, seed=3).to_json(stated(3))
    plan = json.loads(json.dumps(written))["plan"]
    assert (written["seed"], written["per_response"], written["repeats"]) == (3, 2, 10)
    assert written["load"] == dict.fromkeys(names(5), 24)
    assert len(written["overlap"]) == 10
    assert written["overlap"]["dr_a|dr_b"] == 6
    assert plan["minutes"]["dr_a"] == (24 + 2) * 3
    assert (plan["overlap_min"], plan["overlap_max"], plan["adjacent"]) == (6, 6, 0)
    ends = f_interval(plan["icc_assumed"], 60)
    assert plan["icc_width"] == pytest.approx(ends.high - ends.low, abs=1e-4)
    assert plan["icc_width_by_instances"] > plan["icc_width"]


def test_the_width_of_an_interval_that_does_not_exist_is_null() -> None:
    plan = design(items(1), names(2), 2).to_json()["plan"]
    assert plan["icc_width"] is None


def test_a_list_too_short_for_repeats_gets_none_and_the_plan_says_so() -> None:
    plan = design(items(9), names(1), 1, repeats=0.5)
    written = plan.to_json()
    assert plan.repeats == 0
    assert written["plan"]["repeats_missing"] == 4
    assert any("too short" in note for note in written["plan"]["notes"])


def plan(responses: int, raters: int, per_response: int) -> Plan:
    """Return the plan of a small design: three models answer each instance."""
    return plan_of(design(items(responses), names(raters), per_response), stated(2))


def test_a_new_study_gets_one_coordinator_who_can_sign_in(engine: Engine) -> None:
    [invitation] = first_coordinator(engine)

    assert first_coordinator(engine) == []
    person = check_code(engine, invitation.code).person
    assert person is not None
    assert person.role == Role.COORDINATOR
