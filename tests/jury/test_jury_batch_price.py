"""Batches: their limits, their price, the cap on them, and the texts they leave."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kit.batches import BatchStub, batches, requests, run
from kit.batches import stub as stub
from kit.jurors import Do
from kit.jury_runs import many, panel_at, ratings
from sqlalchemy import Engine

from data.errors import BadPanel
from data.study.settings import set_setting
from data.study.verify import verify
from jury.batch.client import AnthropicBatches, BatchClient, BatchLimits, OpenAIBatches
from jury.call import Usage
from jury.cost import batch_price, price
from jury.panel import Juror

VENDORS = ("openai", "anthropic")
LOOK = ("GET", "/v1/batches/")
DAY = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("vendor", "client"), [("openai", OpenAIBatches), ("anthropic", AnthropicBatches)]
)
def test_batches_stay_within_the_limits_of_the_provider(
    engine: Engine,
    write: Callable[[str, str], Path],
    stub: BatchStub,
    monkeypatch: pytest.MonkeyPatch,
    vendor: str,
    client: type[BatchClient],
) -> None:
    many(engine, write, 10)
    monkeypatch.setattr(client, "limits", BatchLimits(requests=4, bytes=10**6))
    assert run(engine, panel_at(stub, "a", vendor=vendor)).rated == 10
    assert [one.requests for one in batches(engine)] == [4, 4, 2]
    monkeypatch.setattr(client, "limits", BatchLimits(requests=100, bytes=8_000))
    assert run(engine, panel_at(stub, "b", vendor=vendor)).rated == 10
    assert len(batches(engine)) > 5


def test_the_cap_holds_over_the_worst_case_of_all_that_is_handed_in(
    engine: Engine, write: Callable[[str, str], Path], stub: BatchStub
) -> None:
    many(engine, write, 20)
    panel = panel_at(stub, usd_per_million_in=1.0, usd_per_million_out=10.0)
    result = run(engine, panel, max_usd=0.1)
    handed = [one.usd_most or 0.0 for one in requests(engine)]
    assert 0.1 - max(handed) < sum(handed) <= 0.1
    assert result.by_status == {"ok": len(handed), "budget_stopped": 20 - len(handed)}
    assert result.usd == pytest.approx(0.002 * len(handed))


def test_a_cap_without_a_price_is_refused_before_anything(
    small_study: Engine, stub: BatchStub
) -> None:
    with pytest.raises(BadPanel, match="juror a: no price is known"):
        run(small_study, panel_at(stub), max_usd=1.0)
    assert stub.log == []


@pytest.mark.parametrize(
    ("provider", "model", "url", "words"),
    [
        ("openai", "gpt-6.1-sol", "https://api.openai.com/v1", "batch"),
        ("anthropic", "claude-sonnet-5-5", "https://api.anthropic.com", "batch"),
    ],
)
def test_a_listed_price_is_half_in_a_batch(provider: str, model: str, url: str, words: str) -> None:
    fields = {"name": "a", "family": "f", "provider": provider, "model": model, "base_url": url}
    juror = Juror.model_validate(fields)
    usage = Usage(1000, 100)
    full, half = price(juror, usage, DAY), batch_price(juror, usage, DAY)
    assert full.usd is not None
    assert half.usd == pytest.approx(full.usd / 2)
    assert half.source == f"{full.source}, {words}"


def test_a_model_with_no_batch_rate_on_the_list_counts_in_full_and_says_so() -> None:
    fields = {"provider": "anthropic", "model": "claude-3-haiku-20240307"}
    address = {"base_url": "https://api.anthropic.com", "name": "a", "family": "f"}
    juror = Juror.model_validate(fields | address)
    full, same = (ask(juror, Usage(1000, 100), DAY) for ask in (price, batch_price))
    assert same.usd == full.usd
    assert same.source.endswith("no batch rate listed")


def test_what_is_in_flight_counts_against_the_cap(small_study: Engine, stub: BatchStub) -> None:
    panel = panel_at(stub, usd_per_million_in=1.0, usd_per_million_out=10.0)
    stub.fails = {LOOK: [404]}
    run(small_study, panel)
    worst = sum(one.usd_most or 0.0 for one in requests(small_study))
    stub.hold = True
    stub.fails = {LOOK: [200, 404]}
    result = run(small_study, panel, replicates=2, max_usd=worst)
    assert result.by_status == {"in_flight": 4, "budget_stopped": 4}


def test_the_studys_budget_holds_over_batches_and_what_is_in_flight(
    engine: Engine, write: Callable[[str, str], Path], stub: BatchStub
) -> None:
    many(engine, write, 20)
    panel = panel_at(stub, usd_per_million_in=1.0, usd_per_million_out=10.0)
    set_setting(engine, "budget", "0.1")
    first = run(engine, panel)
    assert (first.budget, first.usd_in_flight) == (0.1, 0.0)
    assert 0 < first.rated < 20
    before = len(requests(engine))
    stub.fails, stub.hold = {LOOK: [200, 404]}, True
    second = run(engine, panel)
    worst = sum(one.usd_most or 0.0 for one in requests(engine)[before:])
    assert second.usd_in_flight == pytest.approx(worst)
    assert second.usd_study == pytest.approx(first.usd + worst)
    assert second.usd_study <= 0.1


def test_a_batch_that_bills_above_the_worst_case_rates_nothing_and_no_other_is_handed_in(
    small_study: Engine, stub: BatchStub
) -> None:
    stub.script = lambda _: Do(tokens=(1000, 50_000))
    panel = panel_at(stub, usd_per_million_in=1.0, usd_per_million_out=10.0)
    result = run(small_study, panel, max_usd=5.0)
    assert result.by_status == {"off_contract": 4}
    assert "50000 tokens of output" in result.stopped["a"]
    assert (ratings(small_study), stub.creations()) == ([], 1)
    assert result.usd == pytest.approx(4 * (1000 + 500_000) / 1e6)


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("lie", [Do(usage=False), Do(tokens=(1000, -(10**6))), "lost"])
def test_answers_that_do_not_say_what_they_cost_count_in_full_in_this_run_and_for_the_study(
    small_study: Engine, stub: BatchStub, vendor: str, lie: Do | str
) -> None:
    stub.script = lambda _: Do() if lie == "lost" else lie
    stub.cut_results = 4 if lie == "lost" else 0
    panel = panel_at(stub, vendor=vendor, usd_per_million_in=1.0, usd_per_million_out=10.0)
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


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_providers_keep_no_text_once_it_is_collected(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.script = lambda seen: Do(status=500) if "No pain." in seen.prompt else Do()
    run(small_study, panel_at(stub, vendor=vendor))
    assert stub.files == {}
    assert len(stub.deleted) == (3 if vendor == "openai" else 1)
    assert [one.state for one in batches(small_study)] == ["closed"]


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_deletion_that_failed_is_told_and_tried_again(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {("DELETE", "/v1/"): [500]}
    said: list[str] = []
    panel = panel_at(stub, vendor=vendor)
    assert run(small_study, panel, tell=said.append).rated == 4
    assert "could not be deleted (HTTP 500" in said[-1]
    run(small_study, panel)
    assert [one.state for one in batches(small_study)] == ["closed"]
    assert stub.files == {}
    assert stub.creations() == 1


def test_uploads_expire_by_themselves(small_study: Engine, stub: BatchStub) -> None:
    stub.fails = {("DELETE", "/v1/"): [500]}
    run(small_study, panel_at(stub))
    fields = stub.files["file_1"][2]
    assert fields["expires_after[seconds]"] == "259200"
    assert fields["purpose"] == "batch"
