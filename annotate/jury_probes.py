"""Probing a panel for whoever looks: by the worker process, and told to all."""

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from sqlalchemy import Engine

from annotate import jury_panels, worker
from data.person import Person, only
from data.schema import Role, now
from jury.probe import ProbeRow
from medjury.services.jury_lab import panel_probe

KEPT = 32
Key = tuple[str, str]

_probes: "OrderedDict[Key, Probe]" = OrderedDict()
_lock = Lock()
_pool = ThreadPoolExecutor(1, "probes")


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe that is on or was the last of this panel: who asked, when, and what came of it.

    `rows`, one a juror, raises BadPanel where a juror cannot be asked.
    """

    by: str
    at: datetime
    rows: "Future[tuple[ProbeRow, ...]]"


@only(Role.RESEARCHER, Role.COORDINATOR)
def probe(person: Person, engine: Engine, text: str) -> Probe:
    """Probe a panel that was checked, unless somebody is just doing so."""
    with _lock:
        known = _probes.get(_key(engine, text))
        if known is None or known.rows.done():
            coming = _pool.submit(_rows, text)
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


def _rows(text: str) -> tuple[ProbeRow, ...]:
    """Return what came of a probe; nothing of the study is sent by it."""
    return worker.call("probes", panel_probe, jury_panels.usable(text))
