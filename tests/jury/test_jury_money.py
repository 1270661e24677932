"""Money over kills, lies and runs: what a study says it may have spent is never below the bill."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, attempts, many, panel_at, ratings, run
from kit.studies import Run
from sqlalchemy import Engine
from sqlmodel import select

from data.database import reading
from data.schema import Attempt, Status
from data.study.calls import CarriedOver, Intended, Step, carry_over, record_steps
from data.study.costs import calls_in_flight, study_spending
from data.study.settings import set_setting
from jury.estimate import estimate
from jury.references import check_references

AT_ONCE = 16
CENT_IN, CENT_OUT = 1.0, 10.0  # US dollars a million tokens
PRICES = {"usd_per_million_in": CENT_IN, "usd_per_million_out": CENT_OUT, "max_tokens": 200}
PROGRAM = """
import json, sys
from data.database import open_study
from jury.panel import Panel
from jury.run import run_panel
panel = Panel.model_validate(json.loads(sys.argv[2]))
result = run_panel(open_study(sys.argv[1]), panel, concurrency=int(sys.argv[3]))
print(json.dumps(result.to_json()))
"""


def cost(tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * CENT_IN + tokens_out * CENT_OUT) / 1e6


def metered(seen: Seen) -> Do:
    """Answer after 0.1 s, with as many tokens as the number of the request says."""
    return Do(seconds=0.1, tokens=(500 + seen.number % 300, 20 + seen.number % 150))


def billed(stub: Stub) -> float:
    """Return what a vendor bills that bills all that has reached it."""
    return sum(cost(*metered(one).tokens) for one in stub.seen)


def started(url: str, stub: Stub) -> subprocess.Popen[str]:
    one = {"provider": "openai", "family": "x", "base_url": stub.openai_url, **PRICES}
    body = {"name": "p", "juror": [one | {"name": name, "model": name} for name in "ab"]}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, json.dumps(body), str(AT_ONCE)],
        env=os.environ.copy(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def kill(process: subprocess.Popen[str], stub: Stub, seconds: float) -> None:
    """Kill a run some time after its first call; fail if it had come to its end."""
    before = len(stub.seen)
    while len(stub.seen) == before and process.poll() is None:
        threading.Event().wait(0.005)
    threading.Event().wait(seconds)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [3, pytest.param(100, marks=pytest.mark.slow)])
def test_over_kills_nothing_is_lost_and_the_bill_is_within_what_the_study_says(
    url: str, engine: Engine, write: Callable[[str, str], Path], kills: int
) -> None:
    responses = 60 + 30 * kills
    many(engine, write, responses)
    draw = random.Random(7)  # noqa: S311 seeded on purpose
    with Stub(metered) as stub:
        for number in range(1, kills + 1):
            kill(started(url, stub), stub, draw.uniform(0.05, 0.4))
            stored = len(attempts(engine))
            assert len(stub.seen) - stored <= AT_ONCE * number, "more is lost than was in flight"
            spent = study_spending(engine)
            assert spent.known <= billed(stub) <= spent.usd
            assert spent.in_flight.calls <= (AT_ONCE + AT_ONCE // 8) * number
        out, errors = started(url, stub).communicate()
        assert out, errors
        bill = billed(stub)
    body: dict[str, Any] = json.loads(out)
    assert (body["rated"], body["missing"]) == (2 * responses, 0)
    once = Counter((one.rater, one.response) for one in attempts(engine))
    assert set(once.values()) == {1}
    assert len(stub.seen) - 2 * responses <= AT_ONCE * kills
    known = sum(cost(one.tokens_in or 0, one.tokens_out or 0) for one in attempts(engine))
    assert body["usd_study"] - body["usd_in_flight"] == pytest.approx(known, abs=1e-6)
    assert known < bill <= body["usd_study"]
    assert body["usd_in_flight"] > 0


def test_an_undisturbed_run_has_spent_to_the_cent_what_the_server_bills(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    many(engine, write, 40)
    with Stub(lambda seen: replace(metered(seen), seconds=0.0)) as stub:
        panel = panel_at(stub, "a", "b", **PRICES)
        most = sum(one.usd_most or 0.0 for one in estimate(engine, panel))
        result = run(engine, panel, concurrency=AT_ONCE, max_usd=2 * most)
    assert result.missing == 0
    assert result.usd == pytest.approx(billed(stub), abs=1e-8)
    assert result.usd_study == result.usd < most


def test_what_a_run_stored_before_it_sent_is_gone_with_the_answers(
    small_study: Engine,
) -> None:
    open_then: list[int] = []

    def script(_: Seen) -> Do:
        open_then.append(calls_in_flight(small_study).calls)
        return Do()

    with Stub(script) as stub:
        result = run(small_study, panel_at(stub, "a", "b", **PRICES), concurrency=2)
    assert min(open_then) >= 1
    assert (result.usd_in_flight, calls_in_flight(small_study).calls) == (0.0, 0)
    assert result.usd_study == pytest.approx(result.usd)


def test_a_call_cut_off_without_an_answer_may_have_cost_its_worst(small_study: Engine) -> None:
    with Stub(lambda seen: Do(drop=seen.number == 0)) as stub:
        result = run(small_study, panel_at(stub, **PRICES), concurrency=1)
    assert (result.rated, result.calls, result.usd_unknown) == (4, 5, 1)
    assert result.calls_in_flight == 1
    assert 0 < result.usd_in_flight == pytest.approx(result.usd_study - result.usd)
    assert carry_over(small_study) == CarriedOver()  # its own run has counted it


def panel_file(write: Callable[[str, str], Path], stub: Stub) -> str:
    keys = "\n".join(f"{name} = {value}" for name, value in PRICES.items())
    head = f'name = "p"\n[[juror]]\nname = "a"\nmodel = "a"\nfamily = "x"\n{keys}\n'
    body = f'provider = "openai"\nbase_url = "{stub.openai_url}"\n'
    return str(write("panel.toml", head + body))


def intents(engine: Engine, *amounts: float) -> None:
    """Leave calls as a killed run leaves them."""
    rater = attempts(engine)[0].rater
    steps = [
        Step(intent=Intended(key=f"killed-{n}", rater=rater, usd_most=usd))
        for n, usd in enumerate(amounts)
    ]
    record_steps(engine, steps)


def test_calls_of_a_killed_run_count_once_against_the_cap_of_the_next(
    small_study: Engine,
) -> None:
    with Stub() as stub:
        panel = panel_at(stub, **PRICES)
        run(small_study, panel)
        intents(small_study, 0.06, 0.03)
        held = run(small_study, panel, replicates=2, max_usd=0.091)
        assert (held.calls, held.by_status) == (0, {"budget_stopped": 4, "ok": 4})
        assert (held.calls_carried, held.usd_carried) == (2, pytest.approx(0.09))
        after = run(small_study, panel, replicates=2, max_usd=0.091)
    assert (after.calls, after.rated, after.calls_carried) == (4, 8, 0)
    assert after.usd_in_flight == pytest.approx(0.09)
    assert after.usd_study == pytest.approx(0.09 + 8 * 0.002)


def test_an_endpoint_that_bills_above_the_worst_case_is_stopped_at_once(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    many(engine, write, 60)
    with Stub(lambda _: Do(seconds=0.02, tokens=(1000, 50_000))) as stub:
        result = run(engine, panel_at(stub, **PRICES), concurrency=4, max_usd=0.1)
    lie = cost(1000, 50_000)
    assert result.by_status == {"off_contract": 60}
    assert "50000 tokens of output where max_tokens = 200" in result.stopped["a"]
    assert result.calls == len(stub.seen) <= 4
    assert result.usd == pytest.approx(result.calls * lie)
    assert result.usd <= 0.1 + 4 * lie
    called = [one for one in attempts(engine) if one.number]
    assert [one.usd for one in called] == pytest.approx([lie] * result.calls)
    assert {one.status for one in called} == {Status.OFF_CONTRACT}
    assert ratings(engine) == []


def test_a_liar_leaves_the_other_jurors_what_is_left(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    many(engine, write, 20)
    lies = Do(tokens=(1000, 300))
    with Stub(lambda seen: lies if seen.model == "a" else Do()) as stub:
        result = run(engine, panel_at(stub, "a", "b", **PRICES), concurrency=4, max_usd=1.0)
    assert result.by_juror["b"] == {"ok": 20}
    assert result.by_juror["a"] == {"off_contract": 20}
    assert list(result.stopped) == ["a"]


def test_an_endpoint_that_costs_nothing_may_write_as_much_as_it_likes(
    small_study: Engine,
) -> None:
    free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0, "max_tokens": 50}
    with Stub() as stub:
        assert run(small_study, panel_at(stub, **free)).rated == 4


def test_the_studys_budget_holds_over_all_runs(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    many(engine, write, 60)
    set_setting(engine, "budget", "0.1")
    with Stub() as stub:
        panel = panel_at(stub, **PRICES)
        results = [run(engine, panel, max_usd=0.05) for _ in range(4)]
        assert len(stub.seen) * cost(1000, 100) <= 0.1
    assert results[-1].budget == 0.1
    assert 0.09 < results[-1].usd_study <= 0.1
    assert results[-1].by_status["budget_stopped"] == results[-1].missing > 0


def test_checks_of_references_are_accounted_for_as_ratings_are(small_study: Engine) -> None:
    open_then: list[int] = []

    def script(_: Seen) -> Do:
        open_then.append(calls_in_flight(small_study).calls)
        return Do(text='{"absent": false, "facts": []}')

    with Stub(script) as stub:
        result = check_references(small_study, panel_at(stub, **PRICES), patience=HASTY)
    assert (result.rated, result.usd_in_flight) == (1, 0.0)
    assert open_then == [1]
    assert result.usd_study == pytest.approx(result.usd) == cost(1000, 100)
    with reading(small_study) as session:
        assert len(session.exec(select(Attempt)).all()) == 1


def test_estimate_and_run_refuse_what_the_budget_does_not_bear_in_one_message(
    small_study: Engine, run: Run, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    with Stub() as stub:
        panel = panel_file(write, stub)
        assert run("study", "settings", "budget", "0.01")[0] == 0
        for words in (["--estimate"], [], ["--max-usd", "0.5"]):
            code, out, said = run("jury", "run", panel, *words)
            assert (code, out) == (2, "")
            assert "budget is $0.01: $0.0000 is spent" in " ".join(said.split())
        assert stub.seen == []
        assert run("study", "settings", "budget", "1")[0] == 0
        told = str(tmp_path / "told.json")
        assert run("jury", "run", panel, "--json", told)[0] == 0
    body_told = json.loads(Path(told).read_text("utf-8"))
    assert body_told["usd_study"] == pytest.approx(body_told["usd"]) == 4 * cost(1000, 100)


def test_the_run_after_a_kill_says_what_counts_against_its_cap(
    small_study: Engine, run: Run, write: Callable[[str, str], Path]
) -> None:
    with Stub() as stub:
        panel = panel_file(write, stub)
        assert run("jury", "run", panel)[0] == 0
        intents(small_study, 0.06, 0.03)
        code, out, _ = run("jury", "run", panel, "--replicates", "2", "--max-usd", "1")
    said = " ".join(out.split())
    assert code == 0
    assert "2 calls in flight when a run before was killed: at most $0.0900, counted" in said
    assert "spent on the study over all runs, at most: $0.1060" in said


def test_jury_missing_says_what_killed_calls_can_have_cost(
    small_study: Engine, run: Run, tmp_path: Path
) -> None:
    from kit.jury_runs import run as rated

    with Stub() as stub:
        rated(small_study, panel_at(stub, **PRICES))
    intents(small_study, 0.06, 0.03)
    told = tmp_path / "told.json"
    code, out, _ = run("jury", "missing", "--json", str(told))
    assert code == 0
    assert "2 calls in flight when a run was killed" in " ".join(out.split())
    body = json.loads(told.read_text("utf-8"))
    assert (body["calls_in_flight"], body["usd_in_flight"]) == (2, pytest.approx(0.09))
    assert body["usd_study"] == pytest.approx(body["usd"] + 0.09)
