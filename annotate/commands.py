"""The bridge for screens whose figures a command still computes, in a process of its own.

A screen asks `annotate.worker` as soon as what it shows is a function of `medjury.services`; when
all do, this module goes.
"""

import json
import subprocess
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from sqlalchemy import Engine

from annotate.jury_runs import SPOKEN, environment
from annotate.worker import remembered
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.schema import Role

USER_ERROR = 2
AT_ONCE = 1  # the other processors are the raters'

Figures = dict[str, Any]

_pool = ThreadPoolExecutor(AT_ONCE, "commands")


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
    return remembered(engine, arguments, lambda: _pool.submit(_figures, engine, arguments))


def run(engine: Engine, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a command on a study to its end, whatever that is."""
    return subprocess.run(  # noqa: S603 our own command; its arguments are no shell words
        [sys.executable, "-m", "medjury", *arguments],
        env=environment(engine),
        capture_output=True,
        text=True,
        check=False,
    )


def refusal(ran: "subprocess.CompletedProcess[str]") -> str:
    """Return what a command told its user that it refuses, or ""."""
    lines = [line for line in ran.stderr.splitlines() if line.startswith(SPOKEN)]
    return "; ".join(line.removeprefix(SPOKEN) for line in lines)


def _figures(engine: Engine, arguments: tuple[str, ...]) -> Figures:
    """Return what a command says in figures."""
    ran = run(engine, *arguments, "--json", "-")
    if ran.returncode == USER_ERROR:
        raise BadInput(refusal(ran))
    if not ran.stdout:
        raise MedjuryError(
            f"medjury {arguments[0]} ended without figures; the server's log says why"
        )
    figures: Figures = json.loads(ran.stdout)
    return figures
