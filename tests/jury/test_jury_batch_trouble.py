"""Batches in trouble: dropped, refused, doubted, cut short; nothing twice and nothing lost."""

import pytest
from kit.batches import HASTY, BatchStub, run
from kit.batches import stub as stub
from kit.jury_runs import attempts, panel_at, ratings
from sqlalchemy import Engine

from data.errors import NotAllowed
from data.study.settings import lock, reopen
from jury.batch import run as collect
from jury.batch.run import Polling

VENDORS = ("openai", "anthropic")
CREATE = {"openai": ("POST", "/v1/batches"), "anthropic": ("POST", "/v1/messages/batches")}
LOOK = {"openai": ("GET", "/v1/batches/"), "anthropic": ("GET", "/v1/messages/batches/")}


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("status", [-1, 0, 500])
def test_without_an_answer_to_a_submission_it_is_looked_for_before_it_is_made_again(
    small_study: Engine, stub: BatchStub, vendor: str, status: int
) -> None:
    stub.fails = {CREATE[vendor]: [status]}
    panel = panel_at(stub, vendor=vendor)
    first = run(small_study, panel)
    taken = status == -1
    assert first.rated == (4 if taken else 0)
    assert run(small_study, panel).rated == 4
    assert stub.creations() == (1 if taken else 2)
    assert len(attempts(small_study)) == 4
    assert stub.files == {}


def test_another_batch_of_the_same_size_leaves_a_doubt_until_it_ends(
    small_study: Engine, stub: BatchStub
) -> None:
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


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_clear_no_to_a_submission_frees_its_requests_and_is_told(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {CREATE[vendor]: [400]}
    panel = panel_at(stub, vendor=vendor)
    result = run(small_study, panel)
    assert result.by_status == {"request_failed": 4}
    assert "the batch was not taken: HTTP 400 planned" in result.stopped["a"]
    assert stub.files == {}
    assert run(small_study, panel).rated == 4


def test_a_run_that_dies_while_it_collects_stores_every_answer_once(
    small_study: Engine, stub: BatchStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collect, "CHUNK", 1)
    stored = collect.collect
    done: list[str] = []

    def dying(*given: object) -> list[str]:
        if len(done) == 2:
            raise RuntimeError("killed")
        done.extend(stored(*given))
        return done[-1:]

    monkeypatch.setattr(collect, "collect", dying)
    with pytest.raises(RuntimeError, match="killed"):
        run(small_study, panel_at(stub))
    assert len(attempts(small_study)) == 2
    monkeypatch.setattr(collect, "collect", stored)
    result = run(small_study, panel_at(stub))
    assert (result.rated, stub.creations()) == (4, 1)
    assert len(attempts(small_study)) == 4
    assert len(ratings(small_study)) == 4 * 3


@pytest.mark.parametrize("vendor", VENDORS)
def test_failures_in_passing_while_waiting_are_borne(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {LOOK[vendor]: [500, 0, 429]}
    assert run(small_study, panel_at(stub, vendor=vendor)).rated == 4


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_batch_unknown_to_this_key_stops_its_juror_and_nothing_is_sent_twice(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {LOOK[vendor]: [404]}
    panel = panel_at(stub, vendor=vendor)
    result = run(small_study, panel)
    assert result.by_status == {"in_flight": 4}
    assert "is not known at 127.0.0.1 with this key" in result.stopped["a"]
    assert run(small_study, panel).rated == 4
    assert stub.creations() == 1


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_key_that_is_refused_stops_its_juror(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.fails = {("GET", "/v1/"): [401]}
    result = run(small_study, panel_at(stub, vendor=vendor))
    assert result.by_status == {"auth": 4}
    assert stub.creations() == 0


@pytest.mark.parametrize("vendor", VENDORS)
def test_requests_that_the_results_do_not_name_are_told_and_asked_for_by_the_next_run(
    small_study: Engine, stub: BatchStub, vendor: str
) -> None:
    stub.cut_results = 1
    said: list[str] = []
    panel = panel_at(stub, vendor=vendor)
    result = run(small_study, panel, tell=said.append)
    assert result.by_status == {"ok": 3, "unanswered": 1}
    assert "1 lost: its results do not name all of its requests" in said[-1]
    assert stub.deleted == []
    stub.cut_results = 0
    again = run(small_study, panel)
    assert (again.rated, again.calls) == (4, 1)


def test_a_locked_study_is_handed_nothing_in_for_and_collects_once_it_is_open(
    small_study: Engine, stub: BatchStub
) -> None:
    panel = panel_at(stub)
    stub.fails = {LOOK["openai"]: [404]}
    run(small_study, panel)
    lock(small_study, "c")
    with pytest.raises(NotAllowed):
        run(small_study, panel)
    reopen(small_study, "c", "collect")
    assert run(small_study, panel).rated == 4
    assert stub.creations() == 1


def test_waits_grow_to_their_bound() -> None:
    pace = Polling(first=1.0, longest=3.0)
    waits = [pace.after(0.0)]
    for _ in range(4):
        waits.append(pace.after(waits[-1]))
    assert waits == [1.0, 1.5, 2.25, 3.0, 3.0]
    assert HASTY.after(1.0) == 0.02


def test_a_juror_with_a_long_run_of_failures_is_stopped_and_its_batch_stays(
    small_study: Engine, stub: BatchStub
) -> None:
    stub.fails = {LOOK["openai"]: [500] * 10}
    result = run(small_study, panel_at(stub))
    assert result.by_status == {"in_flight": 4}
    assert result.stopped["a"].startswith("HTTP 500")
    assert run(small_study, panel_at(stub)).rated == 4
