"""Money over kills, lies and runs: what a study says it may have spent is never below the bill."""

import json
import random
import signal
import subprocess
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kit.jurors import Do, Script, Seen, Stub, openai_body, verdict
from kit.jury_runs import HASTY, attempts, many, panel_at, ratings, written
from kit.jury_runs import run as rated
from kit.money import MOST_OUT, NEVER, bill, lying, most, panel, started
from kit.reference_study import fill
from kit.studies import Run, Write
from sqlalchemy import Engine, text

from data.schema import Intent, Status
from data.study.calls import Step, carry_over, record_steps
from data.study.costs import study_spending
from data.study.settings import set_setting
from jury.api_protocols import http_failure
from jury.estimate import estimate
from jury.run import RunResult, run_panel

AT_ONCE = 16
LOW = {"usd_per_million_in": 1.0, "usd_per_million_out": 10.0, "max_tokens": 200}


def cost(tokens_in: int, tokens_out: int) -> float:
    return bill(tokens_in, tokens_out) / 10


def metered(seen: Seen) -> Do:
    """Answer after 0.1 s, with as many tokens as the number of the request says."""
    return Do(seconds=0.1, tokens=(500 + seen.number % 300, 20 + seen.number % 150))


def billed(stub: Stub) -> float:
    """Return what a vendor bills that bills all that has reached it."""
    return sum(cost(*metered(one).tokens) for one in stub.seen)


def killed(process: subprocess.Popen[str], stub: Stub, seconds: float) -> None:
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
    url: str, engine: Engine, write: Write, kills: int
) -> None:
    responses = 60 + 30 * kills
    many(engine, write, responses)
    draw = random.Random(7)  # noqa: S311 seeded on purpose
    with Stub(metered) as stub:
        file = written(write, panel_at(stub, "a", "b", **LOW))
        words = (url, file, "--concurrency", f"{AT_ONCE}", "--json", "-")
        for number in range(1, kills + 1):
            killed(started(*words), stub, draw.uniform(0.05, 0.4))
            stored = len(attempts(engine))
            assert len(stub.seen) - stored <= AT_ONCE * number, "more is lost than was in flight"
            spent = study_spending(engine)
            assert spent.known <= billed(stub) <= spent.usd
            assert spent.in_flight <= (AT_ONCE + AT_ONCE // 8) * number
        out, errors = started(*words).communicate()
        assert out, errors
        all_billed = billed(stub)
    body: dict[str, Any] = json.loads(out)
    assert (body["rated"], body["missing"]) == (2 * responses, 0)
    once = Counter((one.rater, one.response) for one in attempts(engine))
    assert set(once.values()) == {1}
    assert len(stub.seen) - 2 * responses <= AT_ONCE * kills
    known = sum(cost(one.tokens_in or 0, one.tokens_out or 0) for one in attempts(engine))
    assert body["usd_study"] - body["usd_in_flight"] == pytest.approx(known, abs=1e-6)
    assert known < all_billed <= body["usd_study"]
    assert body["usd_in_flight"] > 0


def test_an_undisturbed_run_has_spent_to_the_cent_what_the_server_bills(
    engine: Engine, write: Write
) -> None:
    many(engine, write, 40)
    with Stub(lambda seen: replace(metered(seen), seconds=0.0)) as stub:
        panel = panel_at(stub, "a", "b", **LOW)
        most = sum(one.usd_most or 0.0 for one in estimate(engine, panel))
        result = rated(engine, panel, concurrency=AT_ONCE, max_usd=2 * most)
    assert result.missing == 0
    assert result.usd == pytest.approx(billed(stub), abs=1e-8)
    assert result.usd_study == result.usd < most


def test_what_a_run_stored_before_it_sent_is_gone_with_the_answers(small_study: Engine) -> None:
    open_then: list[int] = []

    def script(_: Seen) -> Do:
        open_then.append(study_spending(small_study).in_flight)
        return Do()

    with Stub(script) as stub:
        result = rated(small_study, panel_at(stub, "a", "b", **LOW), concurrency=2)
    assert min(open_then) >= 1
    assert (result.usd_in_flight, study_spending(small_study).in_flight) == (0.0, 0)
    assert result.usd_study == pytest.approx(result.usd)


def test_a_call_cut_off_without_an_answer_may_have_cost_its_worst(small_study: Engine) -> None:
    with Stub(lambda seen: Do(drop=seen.number == 0)) as stub:
        result = rated(small_study, panel_at(stub, **LOW), concurrency=1)
    assert (result.rated, result.calls, result.usd_unknown) == (4, 5, 1)
    assert result.calls_in_flight == 1
    assert 0 < result.usd_in_flight == pytest.approx(result.usd_study - result.usd)
    assert carry_over(small_study) == (0, 0.0)  # its own run has counted it


def intents(engine: Engine, *amounts: float) -> None:
    """Leave calls as a killed run leaves them."""
    rater = attempts(engine)[0].rater
    for n, usd in enumerate(amounts):
        step = Step(intent=Intent(key=f"killed-{n}", rater=rater, usd_most=usd))
        record_steps(engine, [step])


def test_calls_of_a_killed_run_count_once_against_the_cap_of_the_next(small_study: Engine) -> None:
    with Stub() as stub:
        panel = panel_at(stub, **LOW)
        rated(small_study, panel)
        intents(small_study, 0.06, 0.03)
        held = rated(small_study, panel, replicates=2, max_usd=0.091)
        assert (held.calls, held.by_status) == (0, {"budget_stopped": 4, "ok": 4})
        assert (held.calls_carried, held.usd_carried) == (2, pytest.approx(0.09))
        after = rated(small_study, panel, replicates=2, max_usd=0.091)
    assert (after.calls, after.rated, after.calls_carried) == (4, 8, 0)
    assert after.usd_in_flight == pytest.approx(0.09)
    assert after.usd_study == pytest.approx(0.09 + 8 * 0.002)


def test_an_endpoint_that_bills_above_the_worst_case_is_stopped_at_once(
    engine: Engine, write: Write
) -> None:
    many(engine, write, 60)
    with Stub(lambda _: Do(seconds=0.02, tokens=(1000, 50_000))) as stub:
        result = rated(engine, panel_at(stub, **LOW), concurrency=4, max_usd=0.1)
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


def test_a_liar_leaves_the_other_jurors_what_is_left(engine: Engine, write: Write) -> None:
    many(engine, write, 20)
    lies = Do(tokens=(1000, 300))
    with Stub(lambda seen: lies if seen.model == "a" else Do()) as stub:
        result = rated(engine, panel_at(stub, "a", "b", **LOW), concurrency=4, max_usd=1.0)
    assert result.by_juror["b"] == {"ok": 20}
    assert result.by_juror["a"] == {"off_contract": 20}
    assert list(result.stopped) == ["a"]


def test_an_endpoint_that_costs_nothing_may_write_as_much_as_it_likes(small_study: Engine) -> None:
    free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0, "max_tokens": 50}
    with Stub() as stub:
        assert rated(small_study, panel_at(stub, **free)).rated == 4


def test_estimate_and_run_refuse_what_the_budget_does_not_bear_in_one_message(
    small_study: Engine, run: Run, write: Write
) -> None:
    with Stub() as stub:
        panel = written(write, panel_at(stub, **LOW))
        assert run("study", "settings", "budget", "0.01")[0] == 0
        for words in (["--estimate"], [], ["--max-usd", "0.5"]):
            code, out, said = run("jury", "run", panel, *words)
            assert (code, out) == (2, "")
            assert "budget is $0.01: $0.0000 is spent" in " ".join(said.split())
        assert stub.seen == []
        assert run("study", "settings", "budget", "1")[0] == 0
        told = json.loads(run("jury", "run", panel, "--json", "-")[1])
    assert told["usd_study"] == pytest.approx(told["usd"]) == 4 * cost(1000, 100)


def test_jury_missing_says_what_killed_calls_can_have_cost(small_study: Engine, run: Run) -> None:
    with Stub() as stub:
        rated(small_study, panel_at(stub, **LOW))
    intents(small_study, 0.06, 0.03)
    code, out, said = run("jury", "missing", "--json", "-")
    assert (code, "2 calls in flight when a run was killed" in " ".join(said.split())) == (0, True)
    body = json.loads(out)
    assert (body["calls_in_flight"], body["usd_in_flight"]) == (2, pytest.approx(0.09))
    assert body["usd_study"] == pytest.approx(body["usd"] + 0.09)


@pytest.mark.parametrize("count", [*NEVER, 0, MOST_OUT * 10**6], ids=str)
def test_a_host_that_lies_of_its_tokens_frees_nobody_from_the_cap_and_loses_no_answer(
    engine: Engine, write: Write, run: Run, tmp_path: Path, count: object
) -> None:
    fill(engine, write, 4)
    told = tmp_path / "told.json"

    def script(seen: Seen) -> Do:
        return lying(seen, count) if seen.model == "liar" else Do(tokens=(1000, 150))

    with Stub(script) as stub:
        file = written(write, panel(stub, "liar", "honest"))
        code, out, said = run("jury", "run", file, "--max-usd", "0.4", "--json", str(told))
        body = json.loads(told.read_text("utf-8"))
        assert (code, "Traceback" in out + said) == (1, False)
        assert 0 <= body["usd"] <= body["usd_study"] <= 0.4
        by_model = [seen.model for seen in stub.seen]
        assert len(by_model) == body["rated"] == len(ratings(engine)) / 3
        honest = by_model.count("honest") * bill(1000, 150)
        assert honest + sum(most(seen) for seen in stub.seen if seen.model == "liar") <= 0.4
        assert run("jury", "run", file, "--json", str(told))[0] == 0
        assert len(stub.seen) == 2 * 10, "what was answered is not asked again"
    calls = [one for one in attempts(engine) if one.number]
    assert {one.status for one in calls} == {Status.OK}
    lied = [one for one in calls if one.usd is None]
    assert len(lied) == 10
    assert {(one.tokens_in, one.tokens_out) for one in lied} == {(None, None)}
    assert "believed" in lied[0].price_source
    body = json.loads(told.read_text("utf-8"))
    assert body["usd_in_flight"] >= sum(most(seen) for seen in stub.seen if seen.model == "liar")


def asked(engine: Engine, write: Write, script: Script) -> tuple[RunResult, Stub]:
    """Let a juror at prices rate four responses."""
    fill(engine, write, 1)
    with Stub(script) as stub:
        return run_panel(engine, panel(stub, "a"), patience=HASTY), stub


@pytest.mark.parametrize(
    "parts",
    [
        {"prompt_tokens_details": {"cached_tokens": 10**6}},
        {"prompt_tokens_details": {"cached_tokens": -(10**6)}},
        {"prompt_tokens_details": {"cache_write_tokens": "none"}},
        {"completion_tokens_details": {"reasoning_tokens": 10**30}},
        {"completion_tokens_details": {"reasoning_tokens": 100}},
        {"prompt_tokens": 0},
        {"prompt_tokens": -1},
        {"total_tokens": -1},
    ],
    ids=str,
)
def test_counts_that_contradict_one_another_are_not_believed(
    engine: Engine, write: Write, parts: dict[str, Any]
) -> None:
    result, stub = asked(engine, write, lambda seen: lying(seen, 50, **parts))
    assert (result.missing, result.usd, result.usd_unknown) == (0, 0.0, 4)
    assert result.usd_study == result.usd_in_flight >= sum(map(most, stub.seen))


def test_tokens_that_stand_in_the_total_alone_were_written_too(
    engine: Engine, write: Write
) -> None:
    result, _ = asked(engine, write, lambda seen: lying(seen, 50, total_tokens=500 + 50 + 70))
    assert result.usd == pytest.approx(4 * bill(500, 120))
    assert result.tokens.output == 4 * 120


def test_a_whole_number_of_thousands_of_digits_costs_no_answer(
    engine: Engine, write: Write
) -> None:
    def script(seen: Seen) -> Do:
        return Do(body=(lying(seen, 12345).body or "").replace("12345", "9" * 5000))

    result, stub = asked(engine, write, script)
    assert (result.missing, len(stub.seen), result.usd_unknown) == (0, 4, 4)


def test_the_name_and_id_of_an_answer_may_hold_what_no_database_holds(
    engine: Engine, write: Write
) -> None:
    def script(seen: Seen) -> Do:
        whole = openai_body(seen, Do(), verdict(seen)) | {"model": "m\x00\ud800", "id": "\udfff"}
        return Do(body=json.dumps(whole), headers={"x-request-id": ""})

    result, stub = asked(engine, write, script)
    assert (result.missing, len(stub.seen)) == (0, 4)
    assert attempts(engine)[0].returned_model == "m\ufffd?"


def test_a_cost_below_nothing_opens_no_budget(engine: Engine, write: Write, run: Run) -> None:
    fill(engine, write, 12)
    with Stub(lambda _: Do(tokens=(1000, 150))) as stub:
        file = written(write, panel(stub, "a"))
        assert run("jury", "run", file, "--max-usd", "0.2")[0] == 1
        paid = study_spending(engine).known
        with engine.begin() as connection:  # as an attack had it stored
            first = "(SELECT MIN(id) FROM attempt WHERE number > 0)"
            lie = "UPDATE attempt SET usd = -95, tokens_out = -1000000 WHERE id = "
            connection.execute(text(lie + first))
        assert study_spending(engine).known == pytest.approx(paid - bill(1000, 150))
        set_setting(engine, "budget", f"{paid}")
        before = len(stub.seen)
        code, _, said = run("jury", "run", file, "--max-usd", "1")
        assert (code, "the study's budget is" in " ".join(said.split())) == (2, True)
        assert run("jury", "run", file, "--max-usd", "0.001")[0] == 1
        assert len(stub.seen) == before
        for command in (["jury", "missing"], ["status"]):
            assert run(*command)[0] == 0


def test_a_gateway_that_timed_out_may_have_had_the_call_billed(
    engine: Engine, write: Write
) -> None:
    fill(engine, write, 1)
    for code, usd_unknown in ((504, 1), (408, 1), (524, 1), (500, 0), (429, 0)):
        with Stub(lambda seen, code=code: Do(status=200 if seen.number else code)) as stub:
            jurors = panel(stub, f"a{code}")
            result = run_panel(engine, jurors, concurrency=1, patience=HASTY)
        assert (result.missing, result.usd_unknown) == (0, usd_unknown), code


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "12"}, 12.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "86400"}, 86_400.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        *(
            ({"retry-after": value}, None)
            for value in ("", "-1", "nan", "inf", "1e400", f"{10**30}", "soon", "[]")
        ),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, None),
        ({"retry-after": "Fri, 31 Dec 99999999999 23:59:59 GMT"}, None),
        ({"retry-after-ms": "-1"}, None),
        ({"retry-after-ms": "nan"}, None),
    ],
)
def test_a_time_to_wait_is_one_that_somebody_could_wait(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert http_failure(429, headers, "").retry_after == seconds
