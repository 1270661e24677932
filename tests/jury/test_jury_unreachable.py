"""Jurors that nobody can reach: they cost nothing, starve nobody, and are named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.jurors import Do, Stub
from kit.jury_runs import HASTY, attempts, many, panel_at, run
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Status
from jury.panel import Panel
from jury.probe import probe
from jury.references import check_references
from jury.task import Patience

Write = Callable[[str, str], Path]
PRICED = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}


@pytest.fixture
def gone() -> Stub:
    with Stub() as running:
        pass
    return running


def both(gone: Stub, stub: Stub, provider: str = "openai") -> Panel:
    url = gone.openai_url if provider == "openai" else gone.anthropic_url
    (away,) = panel_at(gone, "away", provider=provider, base_url=url, **PRICED).juror
    (there,) = panel_at(stub, "there", **PRICED).juror
    return Panel(name="p", juror=(away, there))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_refused_connection_costs_nothing_and_leaves_the_cap_to_the_others(
    engine: Engine, write: Write, stub: Stub, gone: Stub, provider: str
) -> None:
    many(engine, write, 20)
    result = run(engine, both(gone, stub, provider), max_usd=0.2)
    assert result.by_juror == {"away": {"request_failed": 20}, "there": {"ok": 20}}
    assert result.usd_unknown == 0
    assert "no connection: ConnectionRefusedError" in result.stopped["away"]
    tried = [one for one in attempts(engine) if one.status != Status.OK and one.number]
    assert {(one.usd, one.price_source) for one in tried} == {(0.0, "no connection: not sent")}


def test_an_unreachable_juror_is_left_after_few_requests_at_any_concurrency(
    engine: Engine, write: Write, stub: Stub, gone: Stub
) -> None:
    many(engine, write, 40)
    patience = Patience(first_wait=0.01, longest_wait=600.0, bound=1000.0)
    result = run(engine, both(gone, stub), concurrency=8, patience=patience)
    tried = [one for one in attempts(engine) if one.status != Status.OK and one.number]
    assert result.by_juror["away"] == {"request_failed": 40}
    assert len(tried) <= HASTY.in_a_row + 7


def test_an_unreachable_juror_without_a_known_price_costs_nothing_either(
    engine: Engine, write: Write, gone: Stub
) -> None:
    many(engine, write, 3)
    result = run(engine, panel_at(gone))
    assert (result.usd, result.usd_unknown) == (0.0, 0)


def test_a_line_that_breaks_after_sending_stays_of_unknown_cost(
    small_study: Engine, stub: Stub
) -> None:
    stub.script = lambda _: Do(drop=True)
    result = run(small_study, panel_at(stub, **PRICED))
    assert result.usd_unknown == result.calls == len(stub.seen) > 0


def test_a_failure_before_the_cap_was_reached_stays_the_reason(
    small_study: Engine, stub: Stub
) -> None:
    stub.script = lambda seen: Do(drop=seen.number > 0)
    result = run(small_study, panel_at(stub, **PRICED), concurrency=1, max_usd=0.05)
    assert result.by_status == {"budget_stopped": 2, "ok": 1, "request_failed": 1}
    newest = {one.response: one.status for one in attempts(small_study)}
    assert sorted(newest.values()) == sorted(["ok", "request_failed", *["budget_stopped"] * 2])


def test_an_endpoint_that_answers_with_errors_is_given_all_its_patience(
    engine: Engine, write: Write, stub: Stub
) -> None:
    many(engine, write, 8)
    stub.script = lambda seen: Do(status=503) if seen.number < 24 else Do()
    assert run(engine, panel_at(stub), concurrency=8).rated == 8


def test_a_check_of_references_pays_nothing_for_a_refused_connection(
    small_study: Engine, gone: Stub
) -> None:
    result = check_references(small_study, panel_at(gone), patience=HASTY)
    assert (result.usd_unknown, result.by_status) == (0, {"request_failed": 1})
    with reading(small_study) as session:
        assert {one.usd for one in session.exec(select(Attempt))} == {0.0}


def test_a_probe_of_nobody_costs_nothing(gone: Stub) -> None:
    (row,) = probe(panel_at(gone, **PRICED))
    assert (row.status, row.usd) == (Status.REQUEST_FAILED, 0.0)
