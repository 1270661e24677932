"""A worker is killed in mid-run: no figure changes, no verdict is lost, none is there twice."""

import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.dask_kills import killed, slow_work, undisturbed
from kit.dask_place import Place, dask_place
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import HASTY, attempts, many, panel_at, ratings
from kit.studies import Run
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.agreement import PanelColumns, scorer_replicates
from calibration.bootstrap import BootstrapPlan, Statistic, replicates
from calibration.rating_matrix import RatingMatrix
from data.errors import BadInput
from data.schema import Status
from jury.budget import Budget
from jury.panel import read_panel
from jury.providers.executor import LOST, NO_WORKER, ExecutorProvider, NoWorker, with_lost_jurors
from jury.run import run_panel
from medjury.cli.dask_connect import checked, connected
from medjury.cli.dask_executor import Calls
from medjury.cli.dask_worker import Tasks
from medjury.cli.jury_words import AGAIN, WORKERS, advice

WITHIN_SECONDS = 60.0
HOW = BootstrapPlan(clusters=3000, rows=4096, reps=1500, seed=1)
RESPONSES = 60
JURORS = tuple(f"j{n}" for n in range(6))
CRITERIA = 3
AT_ONCE = 6
KEY = "MEDJURY_TEST_KEY"
WORD = "sk-of-the-worker"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """Run a scheduler and two workers, one of which the test kills."""
    with dask_place(tmp_path) as place:
        for _ in range(2):
            place.worker({KEY: WORD})
        place.ready(2)
        yield place


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(lambda _: Do(seconds=0.05)) as running:
        yield running


def statistic() -> Statistic:
    """Return the ICCs of six jurors with two clinicians over 3,000 responses."""
    values = np.random.default_rng(0).normal(size=(HOW.clusters, 8))
    raters = ("dr_a", "dr_b", *JURORS)
    kinds = ("clinician",) * 2 + ("juror",) * 6
    ids = tuple(f"r{n}" for n in range(HOW.clusters))
    grid = RatingMatrix(values, ids, np.arange(HOW.clusters), raters, kinds)
    return scorer_replicates(grid, PanelColumns(JURORS, 6), JURORS, "paper")


def computed_here() -> np.ndarray:
    """Return its replicates as a command computes them: on one thread, for the last digits."""
    with threadpool_limits(1):
        return replicates(statistic(), HOW)


def test_a_worker_killed_in_mid_resampling_changes_no_figure(place: Place) -> None:
    here = computed_here()
    victim, told = place.processes[1], []

    def tick(done: int) -> None:
        if not told:
            victim.send_signal(signal.SIGKILL)
        told.append(done)

    with connected(place.address) as client:
        checked(client, place.address)
        there = Tasks(client, place.address)
        found = replicates(statistic(), BootstrapPlan(3000, 4096, 1500, 1, there), tick)
    place.ready(1)  # where the worker had computed its part, its end may be seen after the figures
    assert victim.wait() == -signal.SIGKILL
    assert (sum(told), len(told)) == (1500, 24)
    assert found.tobytes() == here.tobytes()


@pytest.mark.parametrize("moments", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_worker_killed_while_sending_computing_or_gathering_changes_nothing(
    place: Place, moments: int
) -> None:
    phases = undisturbed(place)
    ends = [killed(place, *one) for one in phases.moments(moments)]
    assert {one.phase for one in ends} == {"sending", "computing", "gathering"}
    assert [one for one in ends if one.said or one.seconds > WITHIN_SECONDS] == []


def test_a_loss_of_the_last_worker_while_sending_is_told_as_that(place: Place) -> None:
    place.processes[1].kill()
    with connected(place.address) as client:
        place.ready(1)
        pieces = Tasks(client, place.address, patience=3.0).map(slow_work(), range(100))
        threading.Timer(0.05, place.processes[2].kill).start()
        with pytest.raises(BadInput, match="no worker is left since 3 s; start one with"):
            list(pieces)


@pytest.mark.slow
def test_what_all_workers_held_is_sent_again_to_those_that_come(place: Place) -> None:
    here = computed_here()
    first = []

    def tick(_: int) -> None:
        if not first:
            first.append(place.worker())
            place.ready(3)
            for one in place.processes[1:3]:
                one.send_signal(signal.SIGKILL)

    with connected(place.address) as client:
        there = BootstrapPlan(3000, 4096, 1500, 1, Tasks(client, place.address))
        assert replicates(statistic(), there, tick).tobytes() == here.tobytes()


@pytest.mark.slow
def test_without_any_worker_or_scheduler_left_it_ends_with_one_message(place: Place) -> None:
    with connected(place.address) as client:
        pieces = Tasks(client, place.address, patience=3.0).map(np.sqrt, range(10_000))
        next(pieces)
        for one in place.processes[1:]:
            one.send_signal(signal.SIGKILL)
        with pytest.raises(BadInput, match="no worker is left since 3 s; start one with"):
            list(pieces)
        pieces = Tasks(client, place.address).map(np.sqrt, range(10_000))
        place.scheduler.send_signal(signal.SIGKILL)
        with pytest.raises(BadInput, match="the connection to the scheduler was lost"):
            list(pieces)


def panel_file(folder: Path, stub: Stub, key: str = "") -> Path:
    """Write a panel of two jurors at the stub."""
    one = (
        f'provider = "openai"\nfamily = "x"\nbase_url = "{stub.openai_url}"\napi_key_env = "{key}"'
    )
    price = "usd_per_million_in = 1.0\nusd_per_million_out = 1.0"
    jurors = [f'[[juror]]\nname = "{n}"\nmodel = "{n}"\n{one}\n{price}' for n in ("a", "b")]
    path = folder / "panel.toml"
    path.write_text('name = "two"\n' + "\n".join(jurors))
    return path


def test_a_worker_killed_in_mid_call_loses_no_verdict_and_repeats_none(
    place: Place, run: Run, engine: Engine, write: Callable[[str, str], Path], tmp_path: Path
) -> None:
    many(engine, write, RESPONSES)
    victim = place.processes[1]

    def script(seen: Seen) -> Do:
        if seen.number == 40:
            victim.send_signal(signal.SIGKILL)
        return Do(seconds=0.05)

    with Stub(script) as stub:
        panel = panel_file(tmp_path, stub, KEY)
        command = ("jury", "run", str(panel), "--concurrency", str(AT_ONCE))
        code, out, err = run(*command, "--on", place.address)
    assert (code, f"scored {2 * RESPONSES} of {2 * RESPONSES}" in out) == (0, True), out + err
    assert victim.wait() == -signal.SIGKILL
    found = attempts(engine)
    paid = Counter((one.rater, one.response) for one in found if one.status == Status.OK)
    assert (len(paid), set(paid.values())) == (2 * RESPONSES, {1})
    assert len(ratings(engine)) == 2 * RESPONSES * CRITERIA
    lost = [one for one in found if one.status != Status.OK]
    assert 1 <= len(lost) <= AT_ONCE
    assert {(one.usd, "was lost in mid-call" in one.reason) for one in lost} == {(None, True)}
    assert len(stub.seen) - 2 * RESPONSES <= len(lost)
    assert {one.headers["authorization"] for one in stub.seen} == {f"Bearer {WORD}"}
    assert not [one for one in (place.logs, out, err) if WORD in one or "Response 7" in one]


def test_a_worker_that_joins_frozen_holds_up_no_other_call(
    place: Place, stub: Stub, tmp_path: Path
) -> None:
    panel = read_panel(panel_file(tmp_path, stub))
    with connected(place.address) as client, Calls(client, place.address, panel, 2) as calls:
        calls.admit(checked(client, place.address))
        frozen = place.worker()
        place.ready(3)
        frozen.send_signal(signal.SIGSTOP)
        calls._looked = 0.0  # a look around is due
        made = [calls.submit(len, "two") for _ in range(2)]
        try:
            done, _ = wait(made, timeout=20, return_when=FIRST_COMPLETED)
            assert [one.result() for one in done] == [3]
        finally:
            frozen.send_signal(signal.SIGCONT)
        assert [one.result() for one in made] == [3, 3]


def test_a_key_that_a_worker_lacks_is_named_before_anything_is_spent(
    place: Place, run: Run, small_study: Engine, stub: Stub, tmp_path: Path
) -> None:
    place.worker()
    place.ready(3)
    panel = panel_file(tmp_path, stub, KEY)
    code, _, err = run("jury", "run", str(panel), "--on", place.address)
    assert (code, err.count("\n"), stub.seen, attempts(small_study)) == (2, 1, [], [])
    assert f"juror a: the environment variable {KEY} is not set at worker tcp://127.0.0.1" in err


def test_a_worker_with_another_version_is_refused(
    place: Place, run: Run, small_study: Engine, stub: Stub, tmp_path: Path
) -> None:
    other = tmp_path / "other" / "numpy-0.1.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 0.1\n")
    place.worker({"PYTHONPATH": str(other.parent)})
    place.ready(3)
    code, _, err = run("jury", "run", str(panel_file(tmp_path, stub)), "--on", place.address)
    assert (code, err.count("\n"), stub.seen) == (2, 1, [])
    assert f"has numpy 0.1, here {np.__version__}; install the same versions there" in err
    with connected(place.address) as client, pytest.raises(BadInput, match=r"it has numpy 0\.1"):
        list(Tasks(client, place.address).map(len, ["x"] * 200))


class Breaking(Executor):
    """Makes calls here, and breaks those of its first ones that are told to."""

    def __init__(self, *breaks: BrokenExecutor | None) -> None:
        self.breaks, self.pool = list(breaks), ThreadPoolExecutor(8)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Return a call's future, or a broken one."""
        broken: Future[Any] = Future()
        if not (error := self.breaks.pop(0) if self.breaks else None):
            return self.pool.submit(fn, *args, **kwargs)
        broken.set_exception(error)
        return broken


def test_a_juror_that_nobody_was_left_to_ask_is_named_with_what_to_do(
    small_study: Engine, stub: Stub
) -> None:
    panel, absent = panel_at(stub), NoWorker(f"{NO_WORKER} at tcp://far:8786")
    alone = ([None, *6 * [absent]], 1, [AGAIN]), (6 * [absent], 1, [WORKERS]), ([absent], 0, [])
    for breaks, missing, told in alone:  # of six tries for the last verdict, and of the one before
        lines = {"a": ExecutorProvider(panel.juror[0], Breaking(*breaks))}
        result = run_panel(
            small_study, panel, providers=lines, concurrency=1, replicates=1, patience=HASTY
        )
        assert (result.missing, result.stopped) == (missing, {})
        assert advice(with_lost_jurors(result, lines)) == told


def test_a_lost_call_counts_in_full_against_the_cap(small_study: Engine, stub: Stub) -> None:
    panel = panel_at(stub, usd_per_million_in=0.0, usd_per_million_out=1000.0, max_tokens=1000)
    lost, absent = BrokenExecutor(f"worker w {LOST}"), NoWorker(NO_WORKER)
    for broken, calls, rated, unknown in ((lost, 10, 9, 1), (absent, 20, 9 + 19, 0)):
        result = run_panel(
            small_study,
            panel,
            providers={"a": ExecutorProvider(panel.juror[0], Breaking(broken))},
            concurrency=1,
            budget=Budget(2.85),  # a call costs 0.1, and 1.0 at worst
            replicates=10,
            patience=HASTY,
        )
        assert (result.calls, result.rated, result.usd_unknown) == (calls, rated, unknown)
