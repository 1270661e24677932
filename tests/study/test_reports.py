"""Frozen reports: kept as they were, under the audit chain."""

import pytest
from sqlalchemy import Engine, text

from data.errors import MedjuryError, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.schema import Role
from data.study.ledger import (
    FROZEN,
    freeze,
    report,
    report_sha256,
    reports,
    withdraw_report,
    withdrawn_reports,
)
from data.study.settings import lock
from data.study.verify import acts, verify

MARK = "f" * 64
BODY = {"name": "first", "rows": [{"scorer": "jury", "icc": 1 / 3, "f_low": None}], "n": 5}


def behind(engine: Engine, change: str) -> None:
    with engine.execution_options(writes=True).begin() as connection:
        connection.execute(text(change))


def test_a_report_is_kept_to_the_last_digit_with_its_time_and_number(engine: Engine) -> None:
    assert [freeze(engine, MARK, BODY), freeze(engine, "e" * 64, {})] == [1, 2]
    first, second = reports(engine)
    assert (first.id, first.fingerprint, first.body) == (1, MARK, BODY)
    assert first.at < second.at
    assert first.at.utcoffset() is not None
    assert report(engine, 2) == second


def test_a_report_that_is_not_there_is_named_with_those_that_are(engine: Engine) -> None:
    with pytest.raises(Unknown, match=r"no report 3 in this study: it has none; `medjury"):
        report(engine, 3)
    freeze(engine, MARK, BODY)
    with pytest.raises(Unknown, match="it has 1;"):
        report(engine, 3)


def test_each_report_leaves_an_event_with_its_digest(engine: Engine) -> None:
    freeze(engine, MARK, BODY)
    (told,) = acts(engine, FROZEN)
    one = report(engine, 1)
    digest = report_sha256(one.at, MARK, BODY)
    assert (told.detail["report"], told.detail["sha256"]) == (1, digest)
    assert verify(engine).findings == ()


def test_what_is_not_json_is_refused_and_nothing_is_kept(engine: Engine) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        freeze(engine, MARK, {"icc": float("nan")})
    assert reports(engine) == []


def test_a_locked_study_takes_reports(engine: Engine) -> None:
    head = lock(engine, "coordinator")
    freeze(engine, MARK, BODY)
    assert verify(engine, head).findings == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("DELETE FROM report WHERE id = 1", "report 1: gone since event"),
        ("DELETE FROM report WHERE id = 2", "report 2: gone since event"),
        ("UPDATE report SET body = '{}' WHERE id = 1", "report 1: changed since event"),
        ("UPDATE report SET fingerprint = 'x' WHERE id = 2", "report 2: changed since event"),
        (
            "UPDATE report SET at = '2020-01-01 00:00:00' WHERE id = 1",
            "report 1: changed since event",
        ),
        ("UPDATE report SET id = 9 WHERE id = 2", "report 9: no event vouches for it"),
        (
            "INSERT INTO report (at, fingerprint, body) VALUES ('2020-01-01', 'x', '{}')",
            "report 3: no event vouches for it",
        ),
    ],
)
def test_a_report_changed_behind_the_records_back_is_found(
    engine: Engine, change: str, said: str
) -> None:
    freeze(engine, MARK, BODY)
    freeze(engine, MARK, BODY)
    assert verify(engine).findings == ()
    behind(engine, change)
    assert said in " ".join(verify(engine).findings)


def test_a_withdrawn_report_is_in_no_list_and_stays_in_the_record_with_the_reason(
    engine: Engine,
) -> None:
    freeze(engine, MARK, BODY)
    freeze(engine, MARK, BODY | {"name": "second"})
    withdraw_report(OPERATOR, engine, 2, "  made for the\nwrong jury ")
    assert [one.id for one in reports(engine)] == [1]
    with pytest.raises(Unknown, match="it has 1;"):
        report(engine, 2)
    [gone] = withdrawn_reports(OPERATOR, engine)
    assert (gone.number, gone.name, gone.reason) == (2, "second", "made for the wrong jury")
    assert gone.by == OPERATOR.actor
    assert freeze(engine, MARK, BODY) == 3
    assert verify(engine).findings == ()


def test_a_withdrawn_report_that_is_taken_away_behind_our_back_is_found(engine: Engine) -> None:
    freeze(engine, MARK, BODY)
    withdraw_report(OPERATOR, engine, 1, "wrong jury")
    behind(engine, "DELETE FROM report")
    assert "report 1: gone since event" in " ".join(verify(engine).findings)


@pytest.mark.parametrize(
    ("number", "reason", "why"),
    [(1, " ", "say why"), (2, "so", "there is none"), (0, "so", "there is none")],
)
def test_no_report_is_withdrawn_without_a_reason_or_twice(
    engine: Engine, number: int, reason: str, why: str
) -> None:
    freeze(engine, MARK, BODY)
    with pytest.raises(MedjuryError, match=why):
        withdraw_report(OPERATOR, engine, number, reason)
    assert len(reports(engine)) == 1
    withdraw_report(OPERATOR, engine, 1, "wrong jury")
    with pytest.raises(Unknown, match="withdrawn before"):
        withdraw_report(OPERATOR, engine, 1, "again")


def test_only_coordinators_withdraw_and_clinicians_see_nothing_of_it(engine: Engine) -> None:
    freeze(engine, MARK, BODY)
    for role in (Role.RESEARCHER, Role.CLINICIAN):
        with pytest.raises(NotAllowed):
            withdraw_report(Person(7, "Rita", role), engine, 1, "so")
    with pytest.raises(NotAllowed):
        withdrawn_reports(Person(8, "dr_a", Role.CLINICIAN), engine)
