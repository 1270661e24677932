"""Retry-After holds for a whole host, at the moment of sending."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.jurors import Do, Seen, Stub
from kit.jury_runs import many, panel_at, run
from sqlalchemy import Engine

from jury.session import Patience

WAIT = 1.0
PATIENT = Patience(first_wait=0.01, longest_wait=0.02, bound=5.0)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("names", [("a",), ("a", "b", "c")])
def test_nothing_goes_to_a_host_in_the_second_that_it_asked_to_wait(
    engine: Engine, write: Callable[[str, str], Path], names: tuple[str, ...], status: int
) -> None:
    many(engine, write, 100)
    at: list[float] = []

    def script(seen: Seen) -> Do:
        at.append(time.monotonic())
        if seen.number == 20:
            return Do(status=status, headers={"retry-after": str(WAIT)})
        return Do(seconds=0.02)

    with Stub(script) as stub:
        result = run(engine, panel_at(stub, *names), concurrency=16, patience=PATIENT)
    assert result.missing == 0
    told = at[20]
    # What had left before the answer was there may arrive a moment after it.
    assert [one - told for one in at if 0.05 < one - told < WAIT] == []
    assert len([one for one in at if one > told + WAIT]) > 20
