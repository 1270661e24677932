"""A command's money: whatever phases it has and however its calls end, no cap is passed or spent twice."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY
from kit.learning_study import fill as fill_learning
from kit.learning_study import juror as learning_juror
from kit.money import Vendor, bill, most, panel, panel_file
from kit.reference_study import fill
from kit.studies import Run
from sqlalchemy import Engine

from data.study.costs import study_spending
from data.study.settings import set_setting
from jury.budget import Budget
from jury.references import check_references
from jury.run import run_panel


@pytest.mark.parametrize("seed", range(6))
def test_no_phase_of_a_command_spends_again_what_an_earlier_one_may_have_spent(
    engine: Engine, write: Callable[[str, str], Path], seed: int
) -> None:
    fill(engine, write, 12)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    set_setting(engine, "budget", "1.5")
    vendor = Vendor(seed)
    with Stub(vendor) as stub:
        for command in range(4):
            name, cap = f"m{command}", draw.uniform(0.05, 0.6)
            budget = Budget(cap)
            for phase in range(draw.randrange(2, 5)):
                at_once = draw.choice([1, 4, 16])
                jurors = panel(stub, name)
                if draw.random() < 0.3:
                    check_references(
                        engine, jurors, budget=budget, concurrency=at_once, patience=HASTY
                    )
                else:
                    run_panel(
                        *(engine, jurors),
                        replicates=phase + 1,
                        budget=budget,
                        concurrency=at_once,
                        patience=HASTY,
                    )
                assert vendor.bills.get(name, 0.0) <= cap
                spent = study_spending(engine)
                assert sum(vendor.bills.values()) <= spent.usd <= 1.5
    assert stub.seen


def test_what_timed_out_in_one_phase_leaves_the_next_what_it_did_not_hold(
    engine: Engine, write: Callable[[str, str], Path]
) -> None:
    fill(engine, write, 12)
    cap = 0.4
    with Stub(lambda _: Do(drop=True)) as stub:
        budget = Budget(cap)
        for replicates in (1, 2, 3):
            run_panel(
                *(engine, panel(stub, "a")), replicates=replicates, budget=budget, patience=HASTY
            )
        check_references(engine, panel(stub, "b"), budget=budget, patience=HASTY)
        held = study_spending(engine)
    assert held.known == 0.0
    assert 0.3 < held.usd <= cap
    assert sum(map(most, stub.seen)) <= held.usd


def started(url: str, panel: str, cap: float) -> subprocess.Popen[str]:
    words = ["jury", "run", panel, "--max-usd", f"{cap}", "--replicates", "3"]
    return subprocess.Popen(
        [sys.executable, "-m", "medjury", *words],
        env=os.environ | {"MEDJURY_DB": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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
    ("seed", "commands"), [(1, 4), *(pytest.param(n, 30, marks=pytest.mark.slow) for n in (2, 3))]
)
def test_no_kill_and_no_other_command_at_once_makes_a_cap_passed(
    url: str, engine: Engine, write: Callable[[str, str], Path], seed: int, commands: int
) -> None:
    fill(engine, write, 30)
    draw = random.Random(seed)  # noqa: S311 seeded on purpose
    allowed, caps, vendor = 0.4 * commands, dict[str, float](), Vendor(seed)
    set_setting(engine, "budget", f"{allowed}")
    with Stub(vendor) as stub:
        while len(caps) < commands:
            at_once = {f"m{len(caps) + n}": draw.uniform(0.1, 0.9) for n in range(2)}
            caps |= at_once
            with ExitStack() as stack:
                files = {panel_file(write, stub, name): cap for name, cap in at_once.items()}
                running = [started(url, file, cap) for file, cap in files.items()]
                for process in running:
                    stack.callback(process.kill)
                for process in running:
                    how = draw.choice([0, signal.SIGINT, signal.SIGKILL, signal.SIGKILL])
                    ended(process, how, vendor, draw.uniform(0, 0.3))
            spent = study_spending(engine)
            assert sum(vendor.bills.values()) <= spent.usd <= allowed
    assert all(usd <= caps[name] for name, usd in vendor.bills.items())
    assert len(vendor.bills) > commands / 2


def test_jury_improve_keeps_its_cap_over_all_its_phases_though_calls_time_out(
    engine: Engine, tmp_path: Path, run: Run, write: Callable[[str, str], Path]
) -> None:
    fill_learning(engine, tmp_path, seed=1)
    bills = {"known": 0.0, "unknown": 0.0}

    def script(seen: Seen) -> Do:
        if seen.number % 2:
            bills["known"] += bill(300, 30)
            return Do(**{**vars(learning_juror(seen)), "tokens": (300, 30)})
        bills["unknown"] += most(seen)
        return Do(drop=True)

    with Stub(script) as stub:
        words = [panel_file(write, stub, "a", "b"), "--rounds", "2", "--examples", "0"]
        code, out, said = run("jury", "improve", *words, "--max-usd", "6")
        assert code in (0, 1), said
        assert "Traceback" not in out + said
    assert sum(bills.values()) <= 6
    assert bills["unknown"] > 3 * bills["known"] > 0
    assert study_spending(engine).usd <= 6
