"""Charts and tables of figures are made in a process of its own, which ends when it is idle.

What makes them loads pandas and Altair: 150 MB and a second and a half that raters would feel.
The process is asked line by line, in JSON, and what it made is kept for whoever asks again.
"""

import atexit
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import IO, Any

from data.errors import MedjuryError

IDLE_SECONDS = 900
KEPT = 256
MOST_KEPT = 4_000_000  # characters of all answers: while people rate, few are asked for again
NICE = 5  # the raters come first

_made: OrderedDict[bytes, str] = OrderedDict()  # digest asked -> answer: as objects, thrice as big
_lock = Lock()
_running: list[subprocess.Popen[str]] = []


def make(function: str, *given: object) -> Any:
    """Return what a function makes of plain values, as plain values.

    Parameters
    ----------
    function
        Ours, as "package.module:function"; never a name that came from a browser.
    given
        Its arguments: what JSON can carry.

    Raises
    ------
    MedjuryError
        If nothing could be made of them; the server's log says why.
    """
    asked = json.dumps([function, given])
    key = hashlib.sha256(asked.encode()).digest()
    with _lock:
        made = _made.pop(key, None) or _answer(asked)
        _made[key] = made
        while len(_made) > KEPT or sum(map(len, _made.values())) > MOST_KEPT:
            _made.popitem(last=False)
    return json.loads(made)


def wake() -> None:
    """Start the process, which takes a second or two, without waiting for it."""
    with _lock:
        _process()


def end() -> None:
    """End the process, if it is there, and let go of its pipes."""
    for child in _running:
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(OSError):  # what was not sent any more
                if pipe is not None:
                    pipe.close()
        child.wait()
    _running.clear()


atexit.register(end)


def plain(chart: Any) -> dict[str, Any]:
    """Return an Altair chart as a Vega-Lite specification that holds its rows where they are drawn.

    Rows that are named at the top would be turned into data frames by Streamlit.
    """
    spec: dict[str, Any] = chart.to_dict()
    named = spec.pop("datasets", {})
    found: dict[str, Any] = _inlined(spec, named)
    return found


def _inlined(part: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_inlined(one, named) for one in part]
    if not isinstance(part, dict):
        return part
    found = {key: _inlined(value, named) for key, value in part.items()}
    data = found.get("data")
    if isinstance(data, dict) and data.get("name") in named:
        found["data"] = {"values": named[data["name"]]}
    return found


def _answer(asked: str) -> str:
    """Ask the process, once more if it had ended while nobody asked."""
    for _ in range(2):
        child = _process()
        try:
            told, heard = _pipes(child)
            told.write(asked + "\n")
            told.flush()
            if (answer := heard.readline()).endswith("\n"):  # or it ended within its answer
                return answer
        except OSError:
            pass  # it ended before it was asked
        end()
    raise MedjuryError("this could not be drawn; the server's log says why")


def _process() -> subprocess.Popen[str]:
    """Return the process, started if it is not there."""
    if not _running or _running[0].poll() is not None:
        end()
        call = [sys.executable, "-m", "annotate.drawing"]
        env = os.environ | {"OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        _running[:] = [subprocess.Popen(call, stdin=pipe, stdout=pipe, text=True, env=env)]  # noqa: S603 our own module
    return _running[0]


def _pipes(child: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    if child.stdin is None or child.stdout is None:
        raise OSError("the drawing process has no pipes")
    return child.stdin, child.stdout


def _serve() -> None:
    """Answer until nobody asks any more; what libraries print goes to the log."""
    os.nice(NICE)
    with os.fdopen(os.dup(1), "w") as told:
        os.dup2(2, 1)
        for module in ("calibration.report.charts", "vl_convert"):
            importlib.import_module(module)
        signal.alarm(IDLE_SECONDS)
        for line in sys.stdin:
            signal.alarm(0)
            told.write(json.dumps(_called(*json.loads(line)), default=_plain) + "\n")
            told.flush()
            signal.alarm(IDLE_SECONDS)


def _called(function: str, given: list[Any]) -> Any:
    module, _, name = function.partition(":")
    return getattr(importlib.import_module(module), name)(*given)


def _plain(value: Any) -> Any:
    """Return as JSON takes it what JSON does not know: charts, dataclasses, sets, numpy's numbers."""
    if isinstance(value, set | frozenset):
        return sorted(value)
    if is_dataclass(value):
        return {one.name: getattr(value, one.name) for one in fields(value)}
    return value.item() if hasattr(value, "item") else plain(value)


if __name__ == "__main__":
    _serve()
