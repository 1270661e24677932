"""A jury run is killed a hundred times: no verdict is lost, none is paid for twice but in flight."""

import random
import signal
import threading
from collections import Counter

import pytest
from kit.jurors import Do, Stub
from kit.jury_runs import attempts, many, panel_at, ratings, started, written

from data.schema import Status

KILLS = 100
RESPONSES = 900
AT_ONCE = 4
CRITERIA = 3


@pytest.fixture
def stub():
    with Stub(lambda _: Do(seconds=0.05)) as running:
        yield running


def killed(process, stub, seconds):
    """Kill a run some time after its first call; False if it had come to its end."""
    before = len(stub.seen)
    while len(stub.seen) == before and process.poll() is None:
        threading.Event().wait(0.005)
    threading.Event().wait(seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_kills_lose_no_verdict_and_repeat_none_but_those_in_flight(
    url, engine, write, stub
):
    many(engine, write, RESPONSES)
    panel = written(write, panel_at(stub, "a", "b"))
    draw = random.Random(0)  # noqa: S311 seeded on purpose
    kept = 0
    for number in range(KILLS):
        assert killed(started(url, panel), stub, draw.uniform(0, 0.3)), f"over before kill {number}"
        stored = len(attempts(engine))
        assert stored >= kept, "a stored call is gone"
        kept = stored
        assert len(stub.seen) - stored <= AT_ONCE * (number + 1), "more is lost than was in flight"
    out, errors = started(url, panel).communicate()
    assert out.split()[:2] == ["False", str(2 * RESPONSES)], errors
    paid = Counter((one.rater, one.response) for one in attempts(engine))
    assert set(paid.values()) == {1}
    assert {one.status for one in attempts(engine)} == {Status.OK}
    assert len(ratings(engine)) == 2 * RESPONSES * CRITERIA
    assert len(stub.seen) - 2 * RESPONSES <= AT_ONCE * KILLS
