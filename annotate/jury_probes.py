"""Probing a panel for whoever looks: `medjury jury probe` in a process of its own, told to all."""

import json
import sys
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any

from sqlalchemy import Engine

from annotate import commands, jury_panels
from annotate.jury_runs import CRASH
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.schema import Role, now

KEPT = 32
AT_ONCE = 2
SILENT = "the probe ended without figures; the server's log says why"
Key = tuple[str, str]

_probes: "OrderedDict[Key, Probe]" = OrderedDict()
_lock = Lock()
_pool = ThreadPoolExecutor(AT_ONCE, "probes")


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that is on or was the last of this panel: who asked, when, and what came of it.

    `figures` raises BadInput with the command's message where the command refuses.
    """

    by: str
    at: datetime
    figures: "Future[dict[str, Any]]"


@only(Role.RESEARCHER, Role.COORDINATOR)
def probe(person: Person, engine: Engine, name: str, text: str) -> Probe:
    """Probe a panel that was checked, unless somebody is just doing so."""
    with _lock:
        known = _probes.get(_key(engine, text))
        if known is None or known.figures.done():
            path = jury_panels.on_disk(name, text)
            coming = _pool.submit(_figures, engine, str(path))
            known = _probes[_key(engine, text)] = Probe(person.name, now(), coming)
        while len(_probes) > KEPT:
            _probes.popitem(last=False)
    return known


@only(Role.RESEARCHER, Role.COORDINATOR)
def last_probe(person: Person, engine: Engine, text: str) -> Probe | None:
    """Return the last probe of a panel since this server was started."""
    return _probes.get(_key(engine, text))


def _key(engine: Engine, text: str) -> Key:
    return engine.url.render_as_string(), text


def _figures(engine: Engine, path: str) -> dict[str, Any]:
    """Return what the command says; nothing of the study is sent by it."""
    ran = commands.run(engine, "jury", "probe", path, "--json", "-")
    if ran.stdout:
        figures: dict[str, Any] = json.loads(ran.stdout)
        return figures
    told = commands.refusal(ran)
    if told and CRASH not in ran.stderr:
        raise BadInput(told)
    sys.stderr.write(ran.stderr)
    raise MedjuryError(SILENT)
