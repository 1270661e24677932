"""Figures for the screens: the command line makes them, in a process of its own.

No rater waits for them and the server loads nothing that they need. What a command answered is
kept as long as the study has not changed: a page opened again, by whomever, is there at once.
Once it has, nobody can ask for them again, and they are let go: a day of rating leaves no heap.
"""

import json
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any

from sqlalchemy import Engine

from annotate import commands
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.queries.version import version
from data.schema import Role

KEPT = 64
AT_ONCE = 1  # the other processors are the raters'

Figures = dict[str, Any]

_answers: OrderedDict[tuple[object, ...], "Future[Figures]"] = OrderedDict()
_lock = Lock()
_pool = ThreadPoolExecutor(AT_ONCE, "figures")


@only(Role.RESEARCHER, Role.COORDINATOR)
def ask(person: Person, engine: Engine, *arguments: str) -> "Future[Figures]":
    """Return the figures to come of a command on a study: what its `--json` says.

    Parameters
    ----------
    person
        Who asks.
    engine
        Of the study.
    arguments
        As typed: `"calibrate", "--details"`.

    The same command on an unchanged study runs once, however many ask; one that failed is
    forgotten. The future raises BadInput with the command's message where the command refuses.
    """
    key = (engine.url, version(engine), arguments)
    with _lock:
        known = _answers.get(key)
        if known is None or (known.done() and known.exception() is not None):
            known = _answers[key] = _pool.submit(_figures, engine, arguments)
        _answers.move_to_end(key)
        for one in [one for one in _answers if one[0] == key[0] and one[1] != key[1]]:
            del _answers[one]
        while len(_answers) > KEPT:
            _answers.popitem(last=False)
    return known


def _figures(engine: Engine, arguments: tuple[str, ...]) -> Figures:
    """Return what a command says in figures."""
    ran = commands.run(engine, *arguments, "--json", "-")
    if ran.returncode == commands.USER_ERROR:
        raise BadInput(commands.refusal(ran))
    if not ran.stdout:
        raise MedjuryError(
            f"medjury {arguments[0]} ended without figures; the server's log says why"
        )
    figures: Figures = json.loads(ran.stdout)
    return figures
