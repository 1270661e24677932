"""Batches against a server on the loopback, with the vendors' own SDKs: nothing twice, nothing lost, no cap passed."""

import json
import logging
from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest
from kit.batches import batches, requests, run
from kit.batches import stub as stub
from kit.jurors import Do, Stub, juror, verdict
from kit.jury_runs import attempts, fill, many, panel_at, ratings, stored
from sqlmodel import select

from data.errors import BadPanel, NotAllowed
from data.schema import Rater, Response, Status
from data.study.settings import lock, reopen, set_setting
from data.study.verify import verify
from jury.batch import run as collect
from jury.batch.client import AnthropicBatches, BatchLimits, OpenAIBatches
from jury.batch.run import BatchProgress
from jury.call import Usage
from jury.cost import batch_price, price
from jury.panel import Panel
from jury.run import run_panel

PATHS = {"openai": "/v1/batches", "anthropic": "/v1/messages/batches"}
CREATE = {vendor: ("POST", path) for vendor, path in PATHS.items()}
LOOK = {vendor: ("GET", f"{path}/") for vendor, path in PATHS.items()}
PRICED = {"usd_per_million_in": 2.0, "usd_per_million_out": 10.0}


@pytest.fixture(params=PATHS)
def vendor(request) -> str:
    return request.param


@pytest.fixture
def panel(stub, vendor) -> Panel:
    return panel_at(stub, vendor=vendor, **PRICED)


def sorted_body(body: dict[str, Any]) -> str:
    return json.dumps(body, sort_keys=True)


def test_a_panel_is_rated_in_one_batch_a_juror_in_whatever_order(small_study, stub, vendor):
    stub.script = lambda seen: Do(verdict(seen, 5 if "Mild pain." in seen.prompt else 2))
    result = run(small_study, panel_at(stub, "a", "b", vendor=vendor, **PRICED))
    body = result.to_json()
    assert (body["rated"], body["calls"], body["cached_tokens"]) == (8, 8, 80)
    assert body["usd"] == body["usd_study"] == pytest.approx(8 * 0.003)
    assert (body["usd_unknown"], body["usd_in_flight"]) == (0, 0.0)
    assert body["other_models"] == {"a": ["a-returned"], "b": ["b-returned"]}
    assert stub.creations() == 2
    texts = {row.id: row.text for row in stored(small_study, select(Response))}
    for row in ratings(small_study):
        assert row.score == (5 if "Mild pain." in texts[row.response] else 2)
    one = attempts(small_study)[0]
    assert (one.status, one.number, one.tokens_in, one.tokens_out) == (Status.OK, 1, 1000, 100)
    told = (one.price_source, one.returned_model, bool(one.request_id))
    assert told == ("panel: 2 in, 10 out per million", "a-returned", True)
    assert one.sent["batch"].startswith("batch_")
    assert json.loads(one.raw)["clarity"]["explanation"] == "because"


def test_an_answer_to_a_part_of_the_text_is_no_verdict_as_live(engine, write, stub, panel):
    fill(engine, write, ("i", "word " * 3000))
    stub.script = lambda seen: Do(verdict(seen, 5), tokens=(2048, 100))
    result = run(engine, panel)
    assert (result.by_status, ratings(engine)) == ({"cut": 1}, [])
    (attempt,) = attempts(engine)
    assert attempt.reason.startswith("the host reports 2048 tokens of input where the prompt has ")
    stub.script = lambda seen: Do(verdict(seen, 5), tokens=(4096, 100))
    assert run(engine, panel).by_status == {"ok": 1}


def test_a_batch_that_another_juror_read_more_of_was_cut(engine, write, stub, vendor):
    fill(engine, write, ("i", "(1.5) " * 3000))  # numbers and signs: words alone do not tell
    read = {"a": 18_000, "b": 6_000}
    stub.script = lambda seen: Do(verdict(seen), tokens=(read[seen.model], 100))
    result = run(engine, panel_at(stub, "a", "b", vendor=vendor))
    assert result.by_juror == {"a": {"ok": 1}, "b": {"cut": 1}}


def test_a_request_in_a_batch_is_the_one_made_live_and_has_its_hash(small_study, stub, vendor):
    settings = {"temperature": 0.0, "effort": "low", "vendor": vendor}
    with Stub(lambda _: Do(refusal="No.")) as live:
        run_panel(small_study, panel_at(live, **settings))
        # live, what an instance's requests share is marked for a cache
        turns = [[{"role": "user", "content": seen.prompt}] for seen in live.seen]
        sent = [seen.body | {"messages": one} for seen, one in zip(live.seen, turns, strict=True)]
    stub.hold, stub.fails = True, {LOOK[vendor]: [401]}
    run(small_study, panel_at(stub, **settings))
    (held,) = stub.batches.values()
    inside = [one["body" if vendor == "openai" else "params"] for one in held.requests]
    assert sorted(map(sorted_body, inside)) == sorted(map(sorted_body, sent))
    hashes = {one.request_sha256 for one in attempts(small_study)}
    assert {one.request_sha256 for one in requests(small_study)} == hashes
    ids = {one.custom_id for one in requests(small_study)}  # short, and without any text
    assert len(ids) == 4
    assert all(len(one) <= 64 and one.replace("-", "").isalnum() for one in ids)


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
def test_what_gave_no_verdict_has_its_reason_and_is_not_asked_again(
    small_study, stub, vendor, do, status, usd
):
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


@pytest.mark.parametrize("outcome", ["expired", "canceled"])
def test_only_what_expired_is_handed_in_again_by_the_next_run(small_study, stub, panel, outcome):
    stub.script = lambda seen: outcome if "No pain." in seen.prompt else Do()
    first = run(small_study, panel)
    assert first.by_status == {outcome: 1, "ok": 3}
    assert len(attempts(small_study)) == 3
    stub.script = lambda _: Do()
    second = run(small_study, panel)
    assert (second.rated, second.calls) == (4, 1)
    assert Counter(one.outcome for one in requests(small_study)) == {"ok": 4, outcome: 1}


def test_a_batch_refused_as_a_whole_is_told_with_the_providers_code(small_study, stub):
    stub.invalid = "token_limit_exceeded"
    result = run(small_study, panel_at(stub))
    assert result.by_status == {"request_failed": 4}
    why = "refused as a whole: token_limit_exceeded (line 1 of its file)"
    assert result.stopped["a"].endswith(why)
    assert (attempts(small_study), stub.files) == ([], {})
    stub.invalid = ""
    assert run(small_study, panel_at(stub)).rated == 4


@pytest.mark.parametrize("status", [404, 405, 203])
def test_an_endpoint_without_batches_is_told_before_all_else(small_study, stub, panel, status):
    stub.fails = {("GET", "/v1/"): [status]}
    with pytest.raises(BadPanel, match=r"this endpoint .* has no batches; run without --batch"):
        run(small_study, panel)
    assert batches(small_study) == stored(small_study, select(Rater)) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"provider": "simulated", "base_url": ""}, "a simulated juror has no batches"),
        ({"provider": "foundry", "api_key_env": "K"}, 'provider "foundry" has no batches here'),
    ],
)
def test_a_juror_whose_provider_has_no_batches_is_refused(small_study, stub, settings, said):
    with pytest.raises(BadPanel, match=said):
        run(small_study, panel_at(stub, model="simulated-steady", **settings))


def test_progress_tells_what_is_rated_in_flight_and_failed(small_study, stub):
    stub.script = lambda seen: Do("?") if "No pain." in seen.prompt else Do()
    told: list[BatchProgress] = []
    run(small_study, panel_at(stub), progress=told.append)
    assert (told[0].rated, told[0].in_flight, told[0].total) == (0, 4, 4)
    assert (told[-1].rated, told[-1].in_flight, told[-1].failed) == (3, 0, 1)


def test_nothing_of_a_text_is_logged(small_study, stub, caplog, capsys):
    stub.script = lambda seen: Do(status=400) if "No pain." in seen.prompt else Do("nonsense")
    said: list[str] = []
    with caplog.at_level(logging.DEBUG):
        for vendor in PATHS:
            run(small_study, panel_at(stub, vendor, vendor=vendor), tell=said.append)
    out = capsys.readouterr()
    for text in ("Any fever?", "Mild pain"):
        assert text not in caplog.text + out.out + out.err + " ".join(said)


@pytest.mark.parametrize("status", [-1, 0, 500])
def test_a_submission_without_an_answer_is_looked_for_first(
    small_study, stub, panel, vendor, status
):
    stub.fails = {CREATE[vendor]: [status]}
    first = run(small_study, panel)
    taken = status == -1
    assert first.rated == (4 if taken else 0)
    assert run(small_study, panel).rated == len(attempts(small_study)) == 4
    assert (stub.creations(), stub.files) == (1 if taken else 2, {})


def test_another_batch_of_the_same_size_leaves_a_doubt_until_it_ends(small_study, stub):
    other = stub.take("anthropic", [{"custom_id": "x"}] * 4, state="canceling")
    stub.fails = {CREATE["anthropic"]: [0]}
    said: list[str] = []

    def tell(line: str) -> None:
        said.append(line)
        if "may be it" in line:
            other.state = "ended"

    panel = panel_at(stub, vendor="anthropic")
    assert run(small_study, panel, tell=tell).rated == 0
    assert any("batch_1 may be it and has not ended" in line for line in said)
    assert run(small_study, panel).rated == 4


def test_a_clear_no_to_a_batch_frees_its_requests_and_is_told(small_study, stub, panel, vendor):
    stub.fails = {CREATE[vendor]: [400]}
    result = run(small_study, panel)
    assert result.by_status == {"request_failed": 4}
    assert "the batch was not taken: HTTP 400 planned" in result.stopped["a"]
    assert stub.files == {}
    assert run(small_study, panel).rated == 4


def test_a_run_that_dies_while_it_collects_stores_every_answer_once(small_study, stub, monkeypatch):
    monkeypatch.setattr(collect, "CHUNK", 1)
    whole = collect.collect
    done: list[str] = []

    def dying(*given: object) -> list[str]:
        if len(done) == 2:
            raise RuntimeError("killed")
        done.extend(whole(*given))
        return done[-1:]

    monkeypatch.setattr(collect, "collect", dying)
    with pytest.raises(RuntimeError, match="killed"):
        run(small_study, panel_at(stub))
    assert len(attempts(small_study)) == 2
    monkeypatch.setattr(collect, "collect", whole)
    assert (run(small_study, panel_at(stub)).rated, stub.creations()) == (4, 1)
    assert (len(attempts(small_study)), len(ratings(small_study))) == (4, 4 * 3)


def test_a_batch_unknown_to_this_key_stops_its_juror_and_is_sent_once(
    small_study, stub, panel, vendor
):
    stub.fails = {LOOK[vendor]: [404]}
    result = run(small_study, panel)
    assert result.by_status == {"in_flight": 4}
    assert "is not known at 127.0.0.1 with this key" in result.stopped["a"]
    assert run(small_study, panel).rated == 4
    assert stub.creations() == 1


def test_a_key_that_is_refused_stops_its_juror(small_study, stub, panel):
    stub.fails = {("GET", "/v1/"): [401]}
    assert (run(small_study, panel).by_status, stub.creations()) == ({"auth": 4}, 0)


def test_requests_that_the_results_do_not_name_are_asked_for_again(small_study, stub, panel):
    stub.cut_results = 1
    said: list[str] = []
    result = run(small_study, panel, tell=said.append)
    assert result.by_status == {"ok": 3, "unanswered": 1}
    assert "1 lost: its results do not name all of its requests" in said[-1]
    assert stub.deleted == []
    stub.cut_results = 0
    again = run(small_study, panel)
    assert (again.rated, again.calls) == (4, 1)


def test_a_locked_study_is_handed_nothing_in_for_and_collects_once_it_is_open(small_study, stub):
    panel = panel_at(stub)
    stub.fails = {LOOK["openai"]: [404]}
    run(small_study, panel)
    lock(small_study, "c")
    with pytest.raises(NotAllowed):
        run(small_study, panel)
    reopen(small_study, "c", "collect")
    assert run(small_study, panel).rated == 4
    assert stub.creations() == 1


def test_failures_are_borne_until_they_are_many_and_the_batch_stays(small_study, stub, vendor):
    stub.fails = {LOOK[vendor]: [500, 0, 429]}
    assert run(small_study, panel_at(stub, "a", vendor=vendor)).rated == 4
    stub.fails = {LOOK[vendor]: [500] * 10}
    result = run(small_study, panel_at(stub, "b", vendor=vendor))
    assert result.by_status == {"in_flight": 4}
    assert result.stopped["b"].startswith("HTTP 500")
    assert run(small_study, panel_at(stub, "b", vendor=vendor)).rated == 4


LOW = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0}
DAY = datetime(2026, 11, 21, tzinfo=UTC)


def test_batches_stay_within_a_providers_limits(engine, write, stub, monkeypatch, vendor):
    many(engine, write, 10)
    client = {"openai": OpenAIBatches, "anthropic": AnthropicBatches}[vendor]
    monkeypatch.setattr(client, "limits", BatchLimits(requests=4, bytes=10**6))
    assert run(engine, panel_at(stub, "a", vendor=vendor)).rated == 10
    assert [one.requests for one in batches(engine)] == [4, 4, 2]
    monkeypatch.setattr(client, "limits", BatchLimits(requests=100, bytes=8_000))
    assert run(engine, panel_at(stub, "b", vendor=vendor)).rated == 10
    assert len(batches(engine)) > 5


def test_the_cap_holds_over_the_worst_case_of_all_that_is_handed_in(engine, write, stub):
    many(engine, write, 20)
    panel = panel_at(stub, **LOW)
    result = run(engine, panel, max_usd=0.1)
    handed = [one.usd_most or 0.0 for one in requests(engine)]
    assert 0.1 - max(handed) < sum(handed) <= 0.1
    assert result.by_status == {"ok": len(handed), "budget_stopped": 20 - len(handed)}
    assert result.usd == pytest.approx(0.002 * len(handed))


@pytest.mark.parametrize(
    ("provider", "model", "share", "source"),
    [
        ("openai", "gpt-6.1-sol", 0.5, ", batch"),
        ("anthropic", "claude-sonnet-5-5", 0.5, ", batch"),
        ("anthropic", "claude-3-haiku-20240307", 1.0, "no batch rate listed"),
    ],
)
def test_a_listed_price_is_half_in_a_batch_and_full_where_none_is(provider, model, share, source):
    url = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}
    one = juror(provider, url[provider], model=model)
    full, batch = (ask(one, Usage(1000, 100), DAY) for ask in (price, batch_price))
    assert batch.usd == pytest.approx(share * (full.usd or 0.0)) != 0.0
    assert batch.source.startswith(full.source)
    assert batch.source.endswith(source)


def test_the_studys_budget_holds_over_batches_and_what_is_in_flight(engine, write, stub):
    many(engine, write, 20)
    panel = panel_at(stub, **LOW)
    set_setting(engine, "budget", "0.1")
    first = run(engine, panel)
    assert (first.budget, first.usd_in_flight) == (0.1, 0.0)
    assert 0 < first.rated < 20
    before = len(requests(engine))
    stub.fails, stub.hold = {LOOK["openai"]: [200, 404]}, True
    second = run(engine, panel)
    worst = sum(one.usd_most or 0.0 for one in requests(engine)[before:])
    assert second.usd_in_flight == pytest.approx(worst)
    assert second.usd_study == pytest.approx(first.usd + worst)
    assert second.usd_study <= 0.1


def test_a_batch_that_bills_above_the_worst_case_rates_nothing_and_is_the_last(small_study, stub):
    stub.script = lambda _: Do(tokens=(1000, 50_000))
    panel = panel_at(stub, **LOW)
    result = run(small_study, panel, max_usd=5.0)
    assert result.by_status == {"off_contract": 4}
    assert "50000 tokens of output" in result.stopped["a"]
    assert (ratings(small_study), stub.creations()) == ([], 1)
    assert result.usd == pytest.approx(4 * (1000 + 500_000) / 1e6)


@pytest.mark.parametrize("lie", [Do(usage=False), Do(tokens=(1000, -(10**6))), "lost"])
def test_answers_that_do_not_say_what_they_cost_count_in_full(small_study, stub, vendor, lie):
    stub.script = lambda _: Do() if lie == "lost" else lie
    stub.cut_results = 4 if lie == "lost" else 0
    panel = panel_at(stub, vendor=vendor, **LOW)
    result = run(small_study, panel, max_usd=5.0)
    worst = sum(one.usd_most or 0.0 for one in requests(small_study))
    assert result.rated == (0 if lie == "lost" else 4)
    assert (result.usd, result.usd_unknown, result.calls_in_flight) == (0.0, 4, 4)
    assert result.usd_study == result.usd_in_flight == pytest.approx(worst)
    set_setting(small_study, "budget", f"{worst}")
    stub.script, stub.cut_results = lambda _: Do(), 0
    again = run(small_study, panel, replicates=2)
    assert again.by_status["budget_stopped"] == again.missing > 0
    assert stub.creations() == 1
    assert verify(small_study).findings == ()


def test_the_providers_keep_no_text_once_it_is_collected(small_study, stub, panel, vendor):
    stub.script = lambda seen: Do(status=500) if "No pain." in seen.prompt else Do()
    run(small_study, panel)
    assert stub.files == {}
    assert len(stub.deleted) == (3 if vendor == "openai" else 1)
    assert [one.state for one in batches(small_study)] == ["closed"]


def test_a_deletion_that_failed_is_told_and_tried_again_and_uploads_expire(
    small_study, stub, panel
):
    stub.fails = {("DELETE", "/v1/"): [500]}
    said: list[str] = []
    assert run(small_study, panel, tell=said.append).rated == 4
    assert "could not be deleted (HTTP 500" in said[-1]
    for *_, fields in stub.files.values():
        assert not fields or fields["expires_after[seconds]"] == "259200"
    run(small_study, panel)
    assert [one.state for one in batches(small_study)] == ["closed"]
    assert (stub.files, stub.creations()) == ({}, 1)


def test_what_is_in_flight_counts_against_the_cap(small_study, stub):
    panel = panel_at(stub, **LOW)
    stub.fails = {LOOK["openai"]: [404]}
    run(small_study, panel)
    worst = sum(one.usd_most or 0.0 for one in requests(small_study))
    stub.hold = True
    stub.fails = {LOOK["openai"]: [200, 404]}
    result = run(small_study, panel, replicates=2, max_usd=worst)
    assert result.by_status == {"in_flight": 4, "budget_stopped": 4}


def test_a_cap_without_a_price_is_refused_before_anything(small_study, stub):
    with pytest.raises(BadPanel, match="juror a: no price is known"):
        run(small_study, panel_at(stub), max_usd=1.0)
    assert stub.log == []
