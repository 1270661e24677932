"""A prompt that is the same to the byte is asked once, and its verdict counts wherever it stands."""

import signal
from pathlib import Path
from threading import Event

import pytest
from kit.batches import BatchStub
from kit.batches import run as run_batch
from kit.behind import behind_the_record
from kit.jurors import Do, Seen, Stub, verdict
from kit.jury_runs import attempts, fill, panel_at, ratings, run, started, written
from kit.studies import Write
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
    engine: Engine, write: Write, stub: Stub, concurrency: int
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


def test_a_verdict_of_an_earlier_run_is_shared_with_a_response_that_came_later(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write, ("i", "Same."))
    assert run(engine, panel_at(stub, "a")).calls == 1
    fill(engine, write, ("i", "Same."), ("i", "Same."))
    for name, calls, shared in (("a", 0, 1), ("a", 0, 0), ("b", 1, 1)):
        result = run(engine, panel_at(stub, name))
        assert (result.rated, result.calls, result.shared_prompts) == (2, calls, shared)
    assert missing_verdicts(engine) == []


def test_a_verdict_on_a_text_that_has_been_masked_since_is_not_shared(
    engine: Engine, write: Write, stub: Stub
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
    engine: Engine, write: Write
) -> None:
    fill(engine, write, ("i", "Same."), ("i", "Same."), ("i", "Bad."), ("i", "Bad."))
    with BatchStub() as stub:
        stub.script = lambda seen: Do(text="no") if "Bad." in seen.prompt else Do()
        result = run_batch(engine, panel_at(stub))
        sizes = [len(one.requests) for one in stub.batches.values()]
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == (2, 2, 3, 1)
    assert sizes == [2, 1]  # one of each pair, then the other of the pair that failed
    assert result.by_status == {"ok": 2, "invalid_json": 2}


def test_a_killed_run_and_the_next_one_ask_a_prompt_once_unless_it_was_in_flight(
    engine: Engine, write: Write, stub: Stub
) -> None:
    fill(engine, write, *[(f"i{n}", "Same.") for n in range(6) for _ in range(5)])
    stub.script = lambda seen: Do(seconds=0.0 if seen.number < 3 else 30.0)
    panel = panel_at(stub)
    child = started(str(engine.url), Path(written(write, panel)))
    while len(stub.seen) < 6 and child.poll() is None:
        Event().wait(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate()
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


SAME, ELSEWHERE, NO = ("i", "Same."), ("j", "Same."), Do(text="no")


@pytest.mark.parametrize(
    ("given", "script", "jurors", "replicates", "counts"),
    [
        ([SAME, SAME], [], "ab", 3, (12, 0, 6, 6)),
        ([SAME, ELSEWHERE], [], "a", 1, (2, 0, 2, 0)),
        ([SAME] * 3, [NO, NO], "a", 1, (2, 1, 3, 1)),
        ([SAME, SAME], [NO], "a", 1, (2, 0, 2, 1)),
    ],
    ids=["juror and replicate", "another instance", "a failure", "asked once more"],
)
def test_a_verdict_is_shared_by_prompt_juror_and_replicate_and_a_failure_is_not(
    engine: Engine,
    write: Write,
    stub: Stub,
    given: list[tuple[str, str]],
    script: list[Do],
    jurors: str,
    replicates: int,
    counts: tuple[int, ...],
) -> None:
    stub.script = lambda seen: script[seen.number] if seen.number < len(script) else Do()
    fill(engine, write, *given)
    result = run(engine, panel_at(stub, *jurors), replicates=replicates)
    assert (result.rated, result.missing, result.calls, result.shared_prompts) == counts
    assert run(engine, panel_at(stub, *jurors), replicates=replicates).missing == 0
