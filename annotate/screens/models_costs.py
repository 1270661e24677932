"""What models and jury cost: the first from a file of the reader's, the second from its calls."""

from collections.abc import Sequence
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures.shown import CostFigures, CostsRequest, ModelsFigures
from annotate.screens import frame
from annotate.screens.markup import heading, said
from calibration.tables.numbers import known
from calibration.tables.spec import Table
from data import queries
from data.person import Person
from medjury.services.model_costs import ModelCost, model_costs

KINDS = ("csv", "toml")
MOST_BYTES = 100_000
ASKED = "What each model cost to run: a CSV file with the columns model, usd (optional)"
NONE_GIVEN = (
    "What the models cost, the study cannot know: give a file above to see it beside the win rates."
)
TOO_LONG = "A file of costs has a line a model; nothing of this one was read."
OF_SIMULATED = " Some raters are simulated."
OF_COSTS = "Each point is a model: further up it wins more often, further left it costs less."


def show(engine: Engine, person: Person, figures: ModelsFigures, panel: str | None) -> None:
    """Ask for a file of costs; show cost against win rate, and what the jury's calls cost."""
    st.html(heading("Cost"))
    text, kind = _given()
    request = CostsRequest(text, kind, figures.jury, panel)
    coming: Future[CostFigures] = worker.ask(
        person, engine, "annotate.figures.models:costs", request
    )
    found = frame.computed(coming, "Reading what was spent")
    if found is None:
        return
    made_up = queries.standing(person, engine).simulated
    priced = [row for row in model_costs(found.prices, figures.rows) if row.usd is not None]
    if priced:
        _against_wins(priced, OF_SIMULATED if made_up else "")
    else:
        st.html(said(NONE_GIVEN))
    if found.jury is not None:
        st.html(_of_jury(found.jury))


def _given() -> tuple[bytes, str]:
    """Ask for a file of costs; return what is in it, unread, and which kind it is."""
    with st.expander("Costs of the models"):
        found = st.file_uploader(ASKED, type=list(KINDS), max_upload_size=1, key="costs")
    if found is None:
        return b"", ""
    if found.size > MOST_BYTES:
        frame.empty(f"{found.name} has more than {MOST_BYTES:,} bytes.", TOO_LONG)
        return b"", ""
    return found.getvalue(), "toml" if found.name.lower().endswith(".toml") else "csv"


def _against_wins(rows: Sequence[ModelCost], more: str) -> None:
    """Show cost against the win rate by the first way of scoring that there is."""
    by = next(iter(rows[0].win_rate))
    drawn = [
        {"model": row.model, "usd": row.usd, "win_rate": row.win_rate[by]}
        for row in rows
        if known(row.win_rate[by])
    ]
    chart = charts.drawn("chart_models:chart_cost", drawn)
    told = ", ".join(f"{one['model']} {one['usd']:g} USD, {one['win_rate']:.2f}" for one in drawn)
    charts.show(
        chart, "models-cost", f"{OF_COSTS} Win rates by {by}.{more}", f"Cost and win rate: {told}"
    )


def _of_jury(table: Table) -> str:
    """Return the jury's calls as a table; without any, why there are none."""
    return tables.of_table(table) if table.groups else tables.noted(table.notes)
