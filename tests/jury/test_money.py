"""Money over phases, kills and lies: no cap is passed or spent twice, and no study says less than the bill."""

import asyncio
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.commands import json_of
from kit.jurors import Do, Script, Seen, Stub, openai_body, verdict
from kit.jury_runs import HASTY, attempts, many, panel_at, ratings, written
from kit.jury_runs import run as rated
from kit.learning_study import fill as fill_learning
from kit.learning_study import juror as learning_juror
from kit.reference_study import NO, fill
from kit.studies import Write
from sqlalchemy import Engine, text

from data.database import open_study
from data.schema import Intent, Purpose, Status
from data.study.calls import Step, carry_over, record_steps
from data.study.costs import study_spending
from data.study.settings import set_setting
from jury.api_protocols import http_failure
from jury.budget import Budget
from jury.call import Answer, Call, Turn, Usage
from jury.conversation import Conversation, Unstored, Writer, worst_case_usd
from jury.estimate import estimate
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer
from jury.references import check_references
from jury.run import RunResult, known_sessions, run_panel
from jury.run_result import RunTally
from jury.session import JurorSession, RunContext
from jury.task import Patience, Task

USD_IN, USD_OUT = 10.0, 100.0  # US dollars a million tokens
MOST_OUT = 200
PRICES = {"usd_per_million_in": USD_IN, "usd_per_million_out": USD_OUT, "max_tokens": MOST_OUT}
NEVER = [-1_000_000, 10**30, math.nan, math.inf, True, 12.5, "12", [7], {}]


def bill(tokens_in: int, tokens_out: int) -> float:
    return (tokens_in * USD_IN + tokens_out * USD_OUT) / 1e6


def most(seen: Seen) -> float:
    """Return what a vendor bills at most who never says: a token a byte of the texts, and all it may write."""
    texts = "".join(f"{turn['content']}" for turn in seen.body["messages"])
    return bill(len(texts.encode()), MOST_OUT)


@dataclass
class Vendor:
    """Ends calls in every way there is, and keeps what it may bill for each of them, by model."""

    seed: int
    bills: dict[str, float] = field(default_factory=dict)

    def __call__(self, seen: Seen) -> Do:
        """Answer a call, in one of nine ways."""
        draw = random.Random(f"{self.seed} {seen.number}")  # noqa: S311 seeded on purpose
        tokens = (draw.randrange(200, 900), draw.randrange(20, MOST_OUT))
        words = NO if '"absent"' in seen.prompt else None
        paid, silent = Do(words, tokens=tokens), Do(words, usage=False)
        ways: list[tuple[Do, float]] = [
            (paid, bill(*tokens)),
            (paid, bill(*tokens)),
            (silent, most(seen)),
            (lying(seen, draw.choice(NEVER), words), most(seen)),
            (Do(drop=True), most(seen)),
            (Do(status=504), most(seen)),
            (Do("no JSON", tokens=tokens), bill(*tokens)),
            (Do(status=500), 0.0),
            (Do(status=429), 0.0),
        ]
        do, usd = draw.choice(ways)
        self.bills[seen.model] = self.bills.get(seen.model, 0.0) + usd
        return Do(**{**vars(do), "seconds": draw.uniform(0, 0.01)})


def lying(seen: Seen, count: object, words: str | None = None, **more: object) -> Do:
    """Return a good answer whose tokens are reported as some value."""
    whole = openai_body(seen, Do(), verdict(seen) if words is None else words)
    usage = {"prompt_tokens": 500, "completion_tokens": count} | more
    return Do(body=json.dumps(whole | {"usage": usage}))


def panel(stub: Any, *names: str) -> Panel:
    return panel_at(stub, *names, **PRICES)


def started(url: str, panel: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "medjury", "jury", "run", panel, *words],
        env=os.environ | {"MEDJURY_DB": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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
def test_over_kills_nothing_is_lost_and_the_study_says_all_of_the_bill(url, engine, write, kills):
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


def test_an_undisturbed_run_has_spent_to_the_cent_what_the_server_bills(engine, write):
    many(engine, write, 40)
    with Stub(lambda seen: replace(metered(seen), seconds=0.0)) as stub:
        panel = panel_at(stub, "a", "b", **LOW)
        most = sum(one.usd_most or 0.0 for one in estimate(engine, panel))
        result = rated(engine, panel, concurrency=AT_ONCE, max_usd=2 * most)
    assert result.missing == 0
    assert result.usd == pytest.approx(billed(stub), abs=1e-8)
    assert result.usd_study == result.usd < most


def test_what_a_run_stored_before_it_sent_is_gone_with_the_answers(small_study):
    open_then: list[int] = []

    def script(_: Seen) -> Do:
        open_then.append(study_spending(small_study).in_flight)
        return Do()

    with Stub(script) as stub:
        result = rated(small_study, panel_at(stub, "a", "b", **LOW), concurrency=2)
    assert min(open_then) >= 1
    assert (result.usd_in_flight, study_spending(small_study).in_flight) == (0.0, 0)
    assert result.usd_study == pytest.approx(result.usd)


def test_a_call_cut_off_without_an_answer_may_have_cost_its_worst(small_study):
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


def test_calls_of_a_killed_run_count_once_against_the_cap_of_the_next(small_study):
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


def test_an_endpoint_that_bills_above_the_worst_case_is_stopped_at_once(engine, write):
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


def test_a_liar_leaves_the_other_jurors_what_is_left(engine, write):
    many(engine, write, 20)
    lies = Do(tokens=(1000, 300))
    with Stub(lambda seen: lies if seen.model == "a" else Do()) as stub:
        result = rated(engine, panel_at(stub, "a", "b", **LOW), concurrency=4, max_usd=1.0)
    assert result.by_juror["b"] == {"ok": 20}
    assert result.by_juror["a"] == {"off_contract": 20}
    assert list(result.stopped) == ["a"]


def test_an_endpoint_that_costs_nothing_may_write_as_much_as_it_likes(small_study):
    free = {"usd_per_million_in": 0.0, "usd_per_million_out": 0.0, "max_tokens": 50}
    with Stub() as stub:
        assert rated(small_study, panel_at(stub, **free)).rated == 4


def test_estimate_and_run_refuse_what_the_budget_does_not_bear(small_study, run, write):
    with Stub() as stub:
        panel = written(write, panel_at(stub, **LOW))
        assert run("study", "settings", "budget", "0.01")[0] == 0
        for words in (["--estimate"], [], ["--max-usd", "0.5"]):
            code, out, said = run("jury", "run", panel, *words)
            assert (code, out) == (2, "")
            assert "budget is $0.01: $0.0000 is spent" in " ".join(said.split())
        assert stub.seen == []
        assert run("study", "settings", "budget", "1")[0] == 0
        told = json_of(run, "jury", "run", panel)
    assert told["usd_study"] == pytest.approx(told["usd"]) == 4 * cost(1000, 100)


def test_jury_missing_says_what_killed_calls_can_have_cost(small_study, run):
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
    engine, write, run, tmp_path, count
):
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
def test_counts_that_contradict_one_another_are_not_believed(engine, write, parts):
    result, stub = asked(engine, write, lambda seen: lying(seen, 50, **parts))
    assert (result.missing, result.usd, result.usd_unknown) == (0, 0.0, 4)
    assert result.usd_study == result.usd_in_flight >= sum(map(most, stub.seen))


def test_tokens_that_stand_in_the_total_alone_were_written_too(engine, write):
    result, _ = asked(engine, write, lambda seen: lying(seen, 50, total_tokens=500 + 50 + 70))
    assert result.usd == pytest.approx(4 * bill(500, 120))
    assert result.tokens.output == 4 * 120


def test_a_whole_number_of_thousands_of_digits_costs_no_answer(engine, write):
    def script(seen: Seen) -> Do:
        return Do(body=(lying(seen, 12345).body or "").replace("12345", "9" * 5000))

    result, stub = asked(engine, write, script)
    assert (result.missing, len(stub.seen), result.usd_unknown) == (0, 4, 4)


def test_the_name_and_id_of_an_answer_may_hold_what_no_database_holds(engine, write):
    def script(seen: Seen) -> Do:
        whole = openai_body(seen, Do(), verdict(seen)) | {"model": "m\x00\ud800", "id": "\udfff"}
        return Do(body=json.dumps(whole), headers={"x-request-id": ""})

    result, stub = asked(engine, write, script)
    assert (result.missing, len(stub.seen)) == (0, 4)
    assert attempts(engine)[0].returned_model == "m\ufffd?"


def test_a_cost_below_nothing_opens_no_budget(engine, write, run):
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


def test_a_gateway_that_timed_out_may_have_had_the_call_billed(engine, write):
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
def test_a_time_to_wait_is_one_that_somebody_could_wait(headers, seconds):
    assert http_failure(429, headers, "").retry_after == seconds


@pytest.mark.parametrize(
    "seed", [0, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4, 5))]
)
def test_no_phase_of_a_command_spends_again_what_an_earlier_one_may_have_spent(engine, write, seed):
    fill(engine, write, 12)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    set_setting(engine, "budget", "1.5")
    vendor = Vendor(seed)
    with Stub(vendor) as stub:
        for command in range(4):
            name, cap = f"m{command}", draw.uniform(0.05, 0.6)
            options: dict[str, Any] = {"budget": Budget(cap), "patience": HASTY}
            for phase in range(draw.randrange(2, 5)):
                options["concurrency"] = draw.choice([1, 4, 16])
                if draw.random() < 0.3:
                    check_references(engine, panel(stub, name), **options)
                else:
                    run_panel(engine, panel(stub, name), replicates=phase + 1, **options)
                assert vendor.bills.get(name, 0.0) <= cap
                spent = study_spending(engine)
                assert sum(vendor.bills.values()) <= spent.usd <= 1.5
    assert stub.seen


def test_what_timed_out_in_one_phase_leaves_the_next_what_it_did_not_hold(engine, write):
    fill(engine, write, 12)
    budget = Budget(0.4)
    options: dict[str, Any] = {"budget": budget, "patience": HASTY}
    with Stub(lambda _: Do(drop=True)) as stub:
        for replicates in (1, 2, 3):
            run_panel(engine, panel(stub, "a"), replicates=replicates, **options)
        check_references(engine, panel(stub, "b"), **options)
        held = study_spending(engine)
    assert held.known == 0.0
    assert 0.3 < held.usd <= 0.4
    assert sum(map(most, stub.seen)) <= held.usd


def ended(process: subprocess.Popen[str], how: int, vendor: Vendor, seconds: float) -> None:
    """Let a command end, or stop it by a signal some time after any call came in."""
    before = sum(vendor.bills.values())
    while how and sum(vendor.bills.values()) == before and process.poll() is None:
        threading.Event().wait(0.005)
    if how and process.poll() is None:
        threading.Event().wait(seconds)
        process.send_signal(how)
    out, said = process.communicate()
    assert process.returncode in (0, 1, 2, 130, -how), out + said  # 130: stopped while it waited
    assert "Traceback" not in out + said


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("seed", "commands"), [(1, 2), *(pytest.param(n, 30, marks=pytest.mark.slow) for n in (2, 3))]
)
def test_no_kill_and_no_command_at_once_makes_a_cap_passed(url, engine, write, seed, commands):
    fill(engine, write, 30)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    allowed, caps, vendor = 0.4 * commands, dict[str, float](), Vendor(seed)
    set_setting(engine, "budget", f"{allowed}")
    with Stub(vendor) as stub:
        while len(caps) < commands:
            at_once = {f"m{len(caps) + n}": draw.uniform(0.1, 0.9) for n in range(2)}
            caps |= at_once
            with ExitStack() as stack:
                running = []
                for name, cap in at_once.items():
                    file = written(write, panel(stub, name), name)
                    words = ("--max-usd", f"{cap}", "--replicates", "3")
                    running.append(started(url, file, *words))
                    stack.callback(running[-1].kill)
                for process in running:
                    how = draw.choice([0, signal.SIGINT, signal.SIGKILL, signal.SIGKILL])
                    ended(process, how, vendor, draw.uniform(0, 0.3))
            spent = study_spending(engine)
            assert sum(vendor.bills.values()) <= spent.usd <= allowed
    assert all(usd <= caps[name] for name, usd in vendor.bills.items())
    assert len(vendor.bills) >= commands / 2


def test_improving_keeps_its_cap_in_all_phases_though_calls_time_out(engine, tmp_path, run, write):
    fill_learning(engine, tmp_path, seed=1)
    bills = {"known": 0.0, "unknown": 0.0}

    def script(seen: Seen) -> Do:
        if seen.number % 2:
            bills["known"] += bill(300, 30)
            return Do(**{**vars(learning_juror(seen)), "tokens": (300, 30)})
        bills["unknown"] += most(seen)
        return Do(status=504, headers={"retry-after-ms": "1"})

    with Stub(script) as stub:
        words = [written(write, panel(stub, "a", "b")), "--rounds", "2", "--examples", "0"]
        code, out, said = run("jury", "improve", *words, "--max-usd", "6")
        assert code in (0, 1), said
        assert "Traceback" not in out + said
    assert sum(bills.values()) <= 6
    assert bills["unknown"] > 3 * bills["known"] > 0
    assert study_spending(engine).usd <= 6


End = Literal["paid", "unusable", "unreported", "timeout", "refused", "killed"]
ENDS: tuple[End, ...] = ("paid", "paid", "unusable", "unreported", "timeout", "refused", "killed")
PHASES = {
    "run": (Purpose.VERDICT, {"response": 1}),
    "references": (Purpose.REFERENCE, {"instance": 1}),
    "improve": (Purpose.VERDICT, {"response": 2}),
    "probe": (Purpose.VERDICT, {"response": 1}),
}
QUICK = Patience(tries=2, first_wait=0.0, longest_wait=0.0)


class _Nowhere:
    openai_url = anthropic_url = "http://127.0.0.1:9/v1"


class _Killed(BaseException):
    """The process has ended."""


@dataclass(frozen=True)
class Phase:
    """The calls of one phase: each with the length of its prompt, and how its requests end."""

    kind: str
    calls: list[tuple[int, list[End]]]
    places: int


@dataclass
class ToldVendor:
    """Answers as it is told, and keeps the most that it may bill for all that it was sent."""

    juror: Juror
    ends: dict[str, Iterator[End]]
    billed: float = 0.0

    async def complete(self, call: Call) -> Answer:
        """Return how a call ends; raise where the process is to."""
        text, end = call.messages[0].text, next(self.ends[call.messages[0].text], "paid")
        most = worst_case_usd(self.juror, call) or 0.0
        self.billed += most
        await asyncio.sleep(0.001)
        if end == "killed":
            raise _Killed
        if end == "timeout":
            return Answer(Status.TIMEOUT, "timed out", transient=True)
        if end == "refused":
            self.billed -= most
            return Answer(Status.REQUEST_FAILED, "HTTP 500", http=500, transient=True)
        if end == "unreported":
            return Answer(Status.OK, text="x", http=200)
        tokens = len(text) // 2, MOST_OUT // 2
        self.billed += bill(*tokens) - most
        return Answer(
            Status.OK, text="" if end == "unusable" else "x", http=200, usage=Usage(*tokens)
        )

    async def close(self) -> None:
        """Close nothing."""


def read(answer: Answer) -> ParsedAnswer:
    if answer.status != Status.OK or answer.text:
        return ParsedAnswer(answer.status, answer.reason)
    return ParsedAnswer(Status.INVALID_JSON, "no JSON")


def worked_off(engine: Engine, budget: Budget, panel: Panel, phase: Phase) -> tuple[float, bool]:
    """Return the most that a phase may be billed, and whether it was killed."""
    purpose, subject = PHASES[phase.kind]
    prompts = [f"{number}" + "a" * length for number, (length, _) in enumerate(phase.calls)]
    ends = {text: iter(ends) for text, (_, ends) in zip(prompts, phase.calls, strict=True)}
    vendor = ToldVendor(panel.juror[0], ends)

    async def ask_all(session: JurorSession) -> None:
        places = asyncio.Semaphore(phase.places)
        stopping, ready = asyncio.Event(), asyncio.Semaphore(phase.places + 1)
        context = RunContext(budget, ready, places, stopping, QUICK, RunTally(0, None))
        writer = Unstored() if phase.kind == "probe" else Writer(engine)
        async with asyncio.TaskGroup() as group:
            for text in prompts:
                task = Task(purpose, subject, Turn("user", text), {}, read, "again: {reason}")
                group.create_task(Conversation(writer, session, task).run(context))

    (session,) = known_sessions(engine, panel, {"a": vendor})
    budget.begin(engine, panel)
    is_killed = False
    try:
        asyncio.run(ask_all(session))
    except* _Killed:
        is_killed = True
    return vendor.billed, is_killed


CALLS = st.tuples(st.integers(0, 2000), st.lists(st.sampled_from(ENDS), min_size=1, max_size=4))
PHASE = st.builds(
    Phase, st.sampled_from([*PHASES]), st.lists(CALLS, min_size=1, max_size=8), st.integers(1, 4)
)
COMMANDS = st.lists(
    st.tuples(st.floats(0.02, 0.3), st.lists(PHASE, min_size=1, max_size=4)), min_size=1, max_size=4
)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("budget")

    def write(name: str, text: str) -> Path:
        (folder / name).write_text(text, "utf-8")
        return folder / name

    engine = open_study(f"sqlite:///{folder / 'study.db'}", create=True)
    fill(engine, write, 2)
    engine.dispose()
    return folder / "study.db"


@pytest.mark.parametrize("examples", [30, pytest.param(300, marks=pytest.mark.slow)])
def test_neither_cap_is_passed_whatever_the_phases_and_however_their_calls_end(empty, examples):
    @settings(max_examples=examples)
    @given(commands=COMMANDS, allowed=st.floats(0.05, 0.8))
    def kept(commands: list[tuple[float, list[Phase]]], allowed: float) -> None:
        caps_are_kept(empty, commands, allowed)

    kept()


def caps_are_kept(empty: Path, commands: list[tuple[float, list[Phase]]], allowed: float) -> None:
    jurors = panel(_Nowhere(), "a")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(empty, folder)
        engine = open_study(f"sqlite:///{folder}/study.db")
        set_setting(engine, "budget", f"{allowed}")
        billed_to_study = 0.0
        for cap, phases in commands:
            budget, billed = Budget(cap), 0.0
            for phase in phases:
                usd, killed = worked_off(engine, budget, jurors, phase)
                billed += usd
                billed_to_study += 0.0 if phase.kind == "probe" else usd
                spent = study_spending(engine)
                assert billed <= cap + 1e-9
                assert billed_to_study <= spent.usd + 1e-9
                assert spent.usd <= allowed + 1e-9
                if killed:
                    break
        engine.dispose()
