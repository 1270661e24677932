"""What models and jury cost: the first from a file of the reader's, the second from its calls."""

import atexit
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables
from annotate.commands import Figures, ask
from annotate.screens import frame
from data import queries
from data.person import Person

Row = Mapping[str, Any]
KINDS = ("csv", "toml")
MOST_BYTES = 100_000
ASKED = "What each model cost to run: a CSV file with the columns model, usd (optional)"
NONE_GIVEN = (
    "What the models cost, the study cannot know: give a file above to see it beside the win rates."
)
TOO_LONG = "A file of costs has a line a model; nothing of this one was read."
UNCOUNTED = "Tokens read are unknown where a call's answer did not say how many it read"
OF_SIMULATED = " Some raters are simulated."
OF_COSTS = "Each point is a model: further up it wins more often, further left it costs less."
_holders: Counter[Path] = Counter()
_lock = Lock()


@dataclass(frozen=True, slots=True)
class Given:
    """A file of costs as it was given, unread."""

    text: bytes
    kind: str


def given() -> Given | None:
    """Ask for a file of costs; the command checks what is in it."""
    with st.expander("Costs of the models"):
        found = st.file_uploader(ASKED, type=list(KINDS), max_upload_size=1, key="costs")
    if found is None:
        return None
    if found.size > MOST_BYTES:
        frame.empty(f"{found.name} has more than {MOST_BYTES:,} bytes.", TOO_LONG)
        return None
    return Given(found.getvalue(), "toml" if found.name.lower().endswith(".toml") else "csv")


@contextmanager
def on_disk(
    person: Person, engine: Engine, arguments: Sequence[str], costs: Given | None
) -> Iterator[tuple[str, ...]]:
    """Ask a command that reads the costs from a file; yield its arguments.

    The file is gone once the command has ended and nobody is here any more, whichever is later.
    """
    if costs is None:
        yield (*arguments,)
        return
    path = _kept(costs)
    try:
        named = (*arguments, "--costs", str(path))
        coming = ask(person, engine, *named)
        _hold(path)
        coming.add_done_callback(lambda _: _let_go(path))
        yield named
    finally:
        _let_go(path)


def show(engine: Engine, person: Person, found: Figures) -> None:
    """Show cost against win rate, and what the jury's calls cost."""
    made_up = queries.standing(person, engine).simulated
    st.html('<h2 class="mj-part">Cost</h2>')
    priced = [row for row in found["costs"]["models"] if row["usd"] is not None]
    if not priced:
        st.html(f'<p class="mj-said">{tables.escaped(NONE_GIVEN)}</p>')
    else:
        _against_wins(priced, OF_SIMULATED if made_up else "")
    if jury := found["costs"]["jury"]:
        _of_jury(jury)


def _against_wins(rows: Sequence[Row], more: str) -> None:
    """Show cost against the win rate by the first way of scoring that there is."""
    by = next(iter(rows[0]["win_rate"]))
    drawn = [
        {"model": row["model"], "usd": row["usd"], "win_rate": row["win_rate"][by]}
        for row in rows
        if row["win_rate"].get(by) is not None
    ]
    chart = charts.drawn("chart_models:chart_cost", drawn)
    told = ", ".join(f"{one['model']} {one['usd']:g} USD, {one['win_rate']:.2f}" for one in drawn)
    charts.show(
        chart, "models-cost", f"{OF_COSTS} Win rates by {by}.{more}", f"Cost and win rate: {told}"
    )


def _of_jury(jury: Row) -> None:
    columns = [
        tables.words("Juror", "juror"),
        tables.count("Calls", "calls"),
        tables.count("Tokens read", "tokens_in"),
        tables.number("USD", "usd"),
        tables.count("Calls of unknown price", "unknown"),
    ]
    notes = notes_of(jury)
    if not jury["jurors"]:
        st.html(f'<p class="mj-said">The jury: {tables.escaped("; ".join(notes))}.</p>')
        return
    st.html(tables.table(jury["jurors"], columns, "What the jury's recorded calls cost", notes))


def notes_of(jury: Row) -> list[str]:
    """Return the command's note, and why some tokens are not known."""
    silent = [one["juror"] for one in jury["jurors"] if one["tokens_in"] is None]
    unknown = f"{UNCOUNTED}: {', '.join(silent)}" if silent else ""
    return [*filter(None, (jury["note"], unknown))]


def _kept(costs: Given) -> Path:
    """Put a file down under a name that its content gives it; the same costs are the same file."""
    name = hashlib.sha256(costs.text).hexdigest()[:32]
    path = _folder() / f"{name}.{costs.kind}"
    _hold(path, costs.text)
    return path


def _hold(path: Path, text: bytes = b"") -> None:
    """Count one more who needs a file; the first one writes it."""
    with _lock:
        _holders[path] += 1
        if _holders[path] == 1:
            path.write_bytes(text)


def _let_go(path: Path) -> None:
    """Count one fewer who needs a file; the last one removes it."""
    with _lock:
        _holders[path] -= 1
        if not _holders[path]:
            del _holders[path]
            path.unlink()


@cache
def _folder() -> Path:
    """Return a folder that only this user can read, gone when this process ends."""
    made = tempfile.mkdtemp(prefix="medjury-costs-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return Path(made)
