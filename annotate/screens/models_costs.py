"""What models and jury cost: the first from a file of the reader's, the second from its calls."""

import hashlib
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables
from annotate.worker import Figures
from data import queries
from data.person import Person

Row = Mapping[str, Any]
KINDS = ("csv", "toml")
MOST_BYTES = 100_000
ASKED = "What each model cost to run: a CSV file with the columns model, usd (optional)"
NONE_GIVEN = (
    "What the models cost, the study cannot know: give a file above to see it beside the win rates."
)
OF_SIMULATED = " Some raters are simulated."
OF_COSTS = "Each point is a model: further up it wins more often, further left it costs less."


def given() -> tuple[str, ...]:
    """Ask for a file of costs; return the arguments that hand it to the command, which checks it."""
    with st.expander("Costs of the models"):
        found = st.file_uploader(ASKED, type=list(KINDS), max_upload_size=1, key="costs")
    if found is None:
        return ()
    text = found.getvalue()[:MOST_BYTES]
    kind = "toml" if found.name.lower().endswith(".toml") else "csv"
    return ("--costs", str(_kept(text, kind)))


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
    notes = [jury["note"]] if jury["note"] else []
    if not jury["jurors"]:
        st.html(f'<p class="mj-said">The jury: {tables.escaped("; ".join(notes))}.</p>')
        return
    st.html(tables.table(jury["jurors"], columns, "What the jury's recorded calls cost", notes))


def _kept(text: bytes, kind: str) -> Path:
    """Keep a file as long as this process runs, under a name that its content gives it."""
    path = _folder() / f"{hashlib.sha256(text).hexdigest()[:32]}.{kind}"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_bytes(text)
        part.replace(path)
    return path


@cache
def _folder() -> Path:
    """Return a folder that only this user can read."""
    return Path(tempfile.mkdtemp(prefix="medjury-costs-"))
