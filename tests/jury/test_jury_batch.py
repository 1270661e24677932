"""Batches against a server on the loopback, with the vendors' own SDKs."""

import json
import logging
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.batches import BatchStub, batches, requests, run
from kit.batches import stub as stub
from kit.behind import behind_the_record
from kit.jurors import Do, Stub, verdict
from kit.jury_runs import attempts, many, panel_at, ratings
from kit.studies import HEAD, import_file
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.errors import BadPanel
from data.schema import Rater, Response, Status
from jury.batch.run import BatchProgress
from jury.panel import Panel
from jury.run import run_panel

Write = Callable[[str, str], Path]
VENDORS = ("openai", "anthropic")
PRICED = {"usd_per_million_in": 2.0, "usd_per_million_out": 10.0}


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_panel_is_rated_in_one_batch_a_juror_whatever_the_order_of_the_results(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.script = lambda seen: Do(verdict(seen, 5 if "Mild pain." in seen.prompt else 2))
    result = run(small_study, panel_at(stub, "a", "b", vendor=vendor, **PRICED))
    assert result.to_json() == {
        "panel": "p",
        "responses": 4,
        "jurors": 2,
        "rated": 8,
        "missing": 0,
        "by_status": {"ok": 8},
        "calls": 8,
        "usd": pytest.approx(8 * 0.003),
        "usd_unknown": 0,
        "usd_in_flight": 0.0,
        "usd_study": pytest.approx(8 * 0.003),
        "cached_tokens": 80,
        "tokens": result.tokens.to_json(),
        "shared_prompts": 0,
        "placeholders": {},
        "other_models": {"a": ["a-returned"], "b": ["b-returned"]},
    }
    assert stub.creations() == 2
    with reading(small_study) as session:
        texts = {row.id: row.text for row in session.exec(select(Response))}
    for row in ratings(small_study):
        assert row.score == (5 if "Mild pain." in texts[row.response] else 2)
    one = attempts(small_study)[0]
    assert (one.status, one.number, one.tokens_in, one.tokens_out) == (Status.OK, 1, 1000, 100)
    assert one.price_source == "panel: 2 in, 10 out per million"
    assert one.returned_model == "a-returned"
    assert one.request_id
    assert one.sent["batch"].startswith("batch_")
    assert json.loads(one.raw)["clarity"]["explanation"] == "because"


@pytest.mark.parametrize("vendor", VENDORS)
def test_an_answer_to_a_part_of_the_text_is_no_verdict_as_live(
    engine: Engine, write: Write, stub: BatchStub, vendor: str
) -> None:
    long = "word " * 3000
    import_file(engine, write("long.csv", f"{HEAD}\ni,visits,{long},Write.,,r,x,Mild pain."))
    stub.script = lambda seen: Do(verdict(seen, 5), tokens=(2048, 100))
    result = run(engine, panel_at(stub, vendor=vendor))
    assert (result.by_status, ratings(engine)) == ({"cut": 1}, [])
    (attempt,) = attempts(engine)
    assert attempt.reason.startswith("the host reports 2048 tokens of input where the prompt has ")
    stub.script = lambda seen: Do(verdict(seen, 5), tokens=(4096, 100))
    assert run(engine, panel_at(stub, vendor=vendor)).by_status == {"ok": 1}


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_that_another_juror_read_more_of_was_cut(
    engine: Engine, write: Write, stub: BatchStub, vendor: str
) -> None:
    long = "(1.5) " * 3000  # numbers and signs: the words alone do not tell
    import_file(engine, write("long.csv", f"{HEAD}\ni,visits,{long},Write.,,r,x,Mild pain."))
    read = {"a": 18_000, "b": 6_000}
    stub.script = lambda seen: Do(verdict(seen), tokens=(read[seen.model], 100))
    result = run(engine, panel_at(stub, "a", "b", vendor=vendor))
    assert result.by_juror == {"a": {"ok": 1}, "b": {"cut": 1}}
    assert result.by_status == {"cut": 1, "ok": 1}


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_second_run_hands_nothing_in(small_study: Engine, stub: BatchStub, vendor: str) -> None:
    panel = panel_at(stub, vendor=vendor)
    run(small_study, panel)
    again = run(small_study, panel)
    assert (again.rated, again.calls, again.usd) == (4, 0, 0.0)
    assert stub.creations() == 1


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_request_in_a_batch_is_the_one_made_live_and_has_its_hash(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    settings = {"temperature": 0.0, "effort": "low", "provider": vendor}
    with Stub(lambda _: Do(refusal="No.")) as live:
        url = live.openai_url if vendor == "openai" else live.anthropic_url
        run_panel(small_study, panel_at(live, base_url=url, **settings))
        bodies = sorted(
            json.dumps(
                seen.body | {"messages": [{"role": "user", "content": seen.prompt}]}, sort_keys=True
            )
            for seen in live.seen  # live, what an instance's requests share is marked for a cache
        )
    stub.hold = True
    stub.fails = {("GET", "/v1/messages/batches/"): [401], ("GET", "/v1/batches/"): [401]}
    run(small_study, panel_at(stub, vendor=vendor, temperature=0.0, effort="low"))
    (held,) = stub.batches.values()
    inside = [one["body" if vendor == "openai" else "params"] for one in held.requests]
    assert sorted(json.dumps(one, sort_keys=True) for one in inside) == bodies
    hashes = {one.request_sha256 for one in attempts(small_study)}
    assert {one.request_sha256 for one in requests(small_study)} == hashes


def test_ids_at_the_provider_are_short_and_hold_no_text(
    small_study: Engine, stub: BatchStub
) -> None:
    run(small_study, panel_at(stub))
    assert len({one.custom_id for one in requests(small_study)}) == 4
    for one in requests(small_study):
        assert len(one.custom_id) <= 64
        assert all(part.isalnum() for part in one.custom_id.split("-"))


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize(
    ("do", "status", "usd"),
    [
        (Do(text="rather good"), Status.INVALID_JSON, 0.003),
        (Do(finish="truncated", text='{"acc'), Status.TRUNCATED, 0.003),
        (Do(refusal="No."), Status.REFUSED, 0.003),
        (Do(status=429, code="rate_limit_error"), Status.RATE_LIMITED, 0.0),
        (Do(status=500), Status.REQUEST_FAILED, 0.0),
        (Do(status=402, code="billing_error"), Status.QUOTA, 0.0),
    ],
)
def test_what_gave_no_verdict_is_stored_by_its_reason_and_not_asked_again_in_the_run(
    small_study: Engine, stub: BatchStub, vendor: str, do: Do, status: Status, usd: float
) -> None:
    stub.script = lambda seen: do if "No pain." in seen.prompt else Do()
    panel = panel_at(stub, vendor=vendor, **PRICED)
    result = run(small_study, panel)
    assert result.by_status == {"ok": 3, status: 1}
    (bad,) = [one for one in attempts(small_study) if one.status != Status.OK]
    assert (bad.status, bad.usd) == (status, pytest.approx(usd))
    assert bad.reason
    assert "echo" not in bad.reason
    stub.script = lambda _: Do()
    again = run(small_study, panel)
    assert (again.rated, again.calls) == (4, 1)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("outcome", ["expired", "canceled"])
def test_only_what_expired_is_handed_in_again_by_the_next_run(
    small_study: Engine, stub: BatchStub, vendor: str, outcome: str
) -> None:
    stub.script = lambda seen: outcome if "No pain." in seen.prompt else Do()
    panel = panel_at(stub, vendor=vendor)
    first = run(small_study, panel)
    assert first.by_status == {outcome: 1, "ok": 3}
    assert len(attempts(small_study)) == 3
    stub.script = lambda _: Do()
    second = run(small_study, panel)
    assert (second.rated, second.calls) == (4, 1)
    assert Counter(one.outcome for one in requests(small_study)) == {"ok": 4, outcome: 1}


def test_a_batch_refused_as_a_whole_is_told_with_the_providers_code(
    small_study: Engine, stub: BatchStub
) -> None:
    stub.invalid = "token_limit_exceeded"
    result = run(small_study, panel_at(stub))
    assert result.by_status == {"request_failed": 4}
    assert result.stopped["a"].endswith(
        "refused as a whole: token_limit_exceeded (line 1 of its file)"
    )
    assert attempts(small_study) == []
    assert stub.files == {}
    stub.invalid = ""
    assert run(small_study, panel_at(stub)).rated == 4


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("status", [404, 405])
def test_an_endpoint_without_batches_is_told_before_anything_is_stored(
    small_study: Engine, stub: BatchStub, vendor: str, status: int
) -> None:
    stub.fails = {("GET", "/v1/"): [status]}
    with pytest.raises(BadPanel, match=r"this endpoint .* has no batches; run without --batch"):
        run(small_study, panel_at(stub, vendor=vendor))
    assert batches(small_study) == []
    with reading(small_study) as session:
        assert session.exec(select(Rater)).first() is None


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_server_that_answers_every_address_with_something_has_no_batches(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {("GET", "/v1/"): [203]}
    with pytest.raises(BadPanel, match="no batches"):
        run(small_study, panel_at(stub, vendor=vendor))


def test_a_simulated_juror_is_refused(small_study: Engine) -> None:
    one = {"name": "s", "provider": "simulated", "model": "simulated-steady", "family": "x"}
    panel = Panel.model_validate({"name": "p", "juror": [one]})
    with pytest.raises(BadPanel, match="juror s: a simulated juror has no batches"):
        run(small_study, panel)


def test_an_empty_response_is_not_sent_and_is_missing(
    engine: Engine, write: Callable[[str, str], Path], stub: BatchStub
) -> None:
    many(engine, write, 2)
    with behind_the_record(engine) as session:
        session.exec(select(Response)).all()[0].text = " \n"
    result = run(engine, panel_at(stub))
    assert result.by_status == {"empty_response": 1, "ok": 1}
    assert len(stub.asked()) == 1


def test_progress_tells_what_is_rated_in_flight_and_failed(
    small_study: Engine, stub: BatchStub
) -> None:
    stub.script = lambda seen: Do("?") if "No pain." in seen.prompt else Do()
    told: list[BatchProgress] = []
    run(small_study, panel_at(stub), progress=told.append)
    assert (told[0].rated, told[0].in_flight, told[0].total) == (0, 4, 4)
    assert (told[-1].rated, told[-1].in_flight, told[-1].failed) == (3, 0, 1)


def test_nothing_of_a_text_is_logged(
    small_study: Engine,
    stub: BatchStub,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stub.script = lambda seen: Do(status=400) if "No pain." in seen.prompt else Do("nonsense")
    said: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for vendor in VENDORS:
            run(small_study, panel_at(stub, vendor, vendor=vendor), tell=said.append)
    out = capsys.readouterr()
    for text in ("Any fever?", "Mild pain"):
        assert text not in caplog.text + out.out + out.err + " ".join(said)
