"""A computation that says how far it is."""

import time
from collections.abc import Callable

from sqlalchemy import Engine


def half_done(engine: Engine, seconds: float, tick: Callable[[float], None]) -> str:
    """Return "done" after so many seconds at one half."""
    tick(0.5)
    time.sleep(seconds)
    return "done"
