"""A prompt that is the same to the byte is asked once, and its verdict counts wherever it stands."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.batches import BatchStub
from kit.batches import run as run_batch
from kit.behind import behind_the_record
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import attempts, fill, panel_at, ratings, run
from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import reading
from data.schema import Response, Status
from data.study.calls import missing_verdicts
from data.study.costs import juror_costs


def keys(engine: Engine) -> dict[str, int]:
    with reading(engine) as session:
        rows = session.exec(select(Response).order_by(col(Response.id)))
        return {one.response_id: one.id or 0 for one in rows}


def scores(engine: Engine) -> dict[int, list[tuple[str, float, str]]]:
    """Return the ratings of each response: criterion, score and comment."""
    found: dict[int, list[tuple[str, float, str]]] = {}
    for one in ratings(engine):
        found.setdefault(one.response, []).append((one.criterion, one.score, one.comment))
    return {response: sorted(rows) for response, rows in found.items()}


def numbered(seen: Seen) -> Do:
    """Answer with another score each time, so that it shows whose verdict it is."""
    return Do(text=verdict(seen, score=1 + seen.number % 5), seconds=0.02)


@pytest.mark.parametrize("concurrency", [1, 8])
def test_two_responses_with_one_text_are_asked_about_once_and_rated_alike(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub, concurrency: int
) -> None:
    stub.script = numbered
    fill(engine, write, ("i", "Same."), ("i", "Other."), ("i", "Same."))
    panel = panel_at(stub, usd_per_million_in=2.0, usd_per_million_out=10.0)
    result = run(engine, panel, concurrency=concurrency)
    assert (result.rated, result.calls, result.shared_prompts) == (3, 2, 1)
    assert (len(stub.seen), result.to_json()["shared_prompts"]) == (2, 1)
    own = keys(engine)
    assert scores(engine)[own["r0"]] == scores(engine)[own["r2"]] != scores(engine)[own["r1"]]
    rows = {(one.response, one.number): one for one in attempts(engine)}
    given, shared = rows[own["r0"], 1], rows[own["r2"], 0]
    assert shared.sent == {"same_prompt_as": given.id}
    assert (shared.status, shared.raw, shared.usd) == (Status.OK, given.raw, 0.0)
    assert (shared.tokens_in, shared.tokens_out) == (None, None)
    assert shared.price_source == "same prompt as another response: asked once"
    assert shared.request_sha256 == given.request_sha256
    assert result.usd == pytest.approx(2 * 0.003)
    cost = juror_costs(engine)["a"]
    assert (cost.calls, cost.verdicts, cost.unknown) == (2, 2, 0)


def test_each_juror_and_each_replicate_is_asked_for_itself(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    result = run(engine, panel_at(stub, "a", "b"), replicates=3)
    assert (result.rated, result.calls, result.shared_prompts) == (12, 6, 6)


def test_the_same_text_on_another_instance_is_another_prompt(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "Same."), ("j", "Same."))
    result = run(engine, panel_at(stub))
    assert (result.rated, result.calls, result.shared_prompts) == (2, 2, 0)


def test_a_verdict_of_an_earlier_run_is_shared_with_a_response_that_came_later(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "Same."))
    assert run(engine, panel_at(stub)).calls == 1
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    later = run(engine, panel_at(stub))
    assert (later.rated, later.calls, later.shared_prompts) == (2, 0, 1)
    again = run(engine, panel_at(stub))
    assert (again.rated, again.calls, again.shared_prompts) == (2, 0, 0)
    assert missing_verdicts(engine) == []


def test_a_verdict_on_another_rubric_or_of_another_juror_is_not_shared(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "Same."))
    run(engine, panel_at(stub, "a"))
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    result = run(engine, panel_at(stub, "b"))
    assert (result.calls, result.shared_prompts) == (1, 1)


def test_a_failure_is_not_shared(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    stub.script = [Do(text="no"), Do(text="no"), Do(), Do()]
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Same."))
    result = run(engine, panel_at(stub))
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == (2, 1, 3, 1)
    again = run(engine, panel_at(stub))
    assert (again.rated, again.calls, again.shared_prompts) == (3, 0, 1)


def test_a_verdict_that_came_when_asked_once_more_is_shared(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    stub.script = [Do(text="no"), Do()]
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    result = run(engine, panel_at(stub))
    assert (result.rated, result.calls, result.shared_prompts) == (2, 2, 1)


def test_a_verdict_on_a_text_that_has_been_masked_since_is_not_shared(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, ("i", "I am A."))
    run(engine, panel_at(stub))
    fill(engine, write, ("i", "I am A."), ("i", "I am X."))
    with behind_the_record(engine) as session:
        first = session.get_one(Response, keys(engine)["r0"])
        first.shown = "I am X."
        session.add(first)
    result = run(engine, panel_at(stub))
    assert (result.rated, result.calls, result.shared_prompts) == (2, 1, 0)


def test_a_prompt_goes_into_a_batch_once_and_into_the_next_where_its_call_failed(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Bad."), ("i", "Bad."))
    with BatchStub() as stub:
        stub.script = lambda seen: Do(text="no") if "Bad." in seen.prompt else Do()
        result = run_batch(engine, panel_at(stub))
        sizes = [len(one.requests) for one in stub.batches.values()]
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == (2, 2, 3, 1)
    assert sizes == [2, 1]  # one of each pair, then the other of the pair that failed
    assert result.by_status == {"ok": 2, "invalid_json": 2}


KILLED = """
import sys
from kit.jury_runs import panel_at
from data.database import open_study
from jury.panel import Panel
from jury.run import run_panel
run_panel(open_study(sys.argv[1]), Panel.model_validate_json(sys.argv[2]), concurrency=4)
"""


def test_a_killed_run_and_the_next_one_ask_a_prompt_once_unless_it_was_in_flight(
    engine: Engine, write: Callable[[str, str], Path], stub: Stub
) -> None:
    fill(engine, write, *[(f"i{n}", "Same.") for n in range(6) for _ in range(5)])
    stub.script = lambda seen: Do(seconds=0.0 if seen.number < 3 else 30.0)
    panel = panel_at(stub)
    command = [sys.executable, "-c", KILLED, str(engine.url), panel.model_dump_json(by_alias=True)]
    place = {"PYTHONPATH": os.pathsep.join(["tests", "."])}
    child = subprocess.Popen(command, env=os.environ | place)
    wait_for(lambda: len(stub.seen) >= 6)
    child.send_signal(signal.SIGKILL)
    child.wait()
    in_flight = len(stub.seen) - 3
    stub.script = lambda _: Do()
    result = run(engine, panel)
    assert (result.rated, result.missing) == (30, 0)
    assert len(stub.seen) == 6 + in_flight
    given = {one.id for one in attempts(engine) if one.number > 0}
    shared = [one for one in attempts(engine) if one.number == 0]
    assert len(shared) == 24
    assert {one.sent["same_prompt_as"] for one in shared} <= given
    assert len(ratings(engine)) == 30 * 3


def wait_for(done: Callable[[], Any]) -> None:
    import time

    ends = time.monotonic() + 60
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.02)
