"""The models screen: whether one of them leads, by whose scores, and how sure that is."""

import html
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures.shown import ModelsFigures
from annotate.screens import frame, models_blind, models_controls, models_costs
from annotate.screens.markup import heading, said
from calibration.decision import Kind
from calibration.models.rows import CategoryRow, DetectableRow, ModelRow
from calibration.tables.models import MEANING, NO_CATEGORY, rests_on
from calibration.tables.numbers import fixed, known, whole
from data import queries
from data.person import Person

STYLE = (files("annotate") / "screens" / "monitoring.css").read_text("utf-8")
ABOUT = "The models compared by clinicians' ratings, by the jury's, and by the jury's corrected."
WAYS = {"clinicians": "clinicians", "jury": "jury", "corrected": "jury corrected"}
KINDS = ("win rate", "macro-average")
TITLES = {"win rate": "Win rate, 95 %", "macro-average": "Macro-average on 0 to 1, 95 %"}
SIMULATED = "Some raters of this study are simulated: nothing that rests on them is evidence."
OF_RANKING = (
    "{} of each model by each way of scoring. A line is the 95 % interval over instances; a point "
    "without a line has none, or one without width."
)
CORRECTED = (
    "Corrected: the jury's means moved by what clinicians and jury differ by on responses that both "
    "scored. It is right where those are a random sample."
)


def show(engine: Engine, person: Person) -> None:
    """Show the comparison where the blind is lifted; else what it takes to lift it."""
    standing = queries.standing(person, engine)
    frame.begin(person, "Models", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    if not models_blind.is_lifted(engine, person, standing):
        return
    worker.wake()
    jury, request = models_controls.asked(engine, person)
    coming: Future[ModelsFigures] = worker.ask(
        person, engine, "annotate.figures.models:compare", request
    )
    found = frame.computed(coming, "Comparing the models")
    if found is None:
        return
    st.html(tables.of_decision(found.decision))
    if standing.simulated and found.decision.kind is not Kind.SIMULATED:
        st.html(said(SIMULATED))
    first, *others = found.models
    meaning = f"{MEANING} {CORRECTED}" if "corrected" in _ways(found.rows) else MEANING
    st.html(f'{tables.of_table(first)}<p class="mj-caption">{html.escape(meaning)}</p>')
    _ranking(found.rows)
    if others:
        st.html(heading("By other scores") + "".join(map(tables.of_table, others)))
    _by_category(found.categories)
    models_costs.show(engine, person, found, jury.panel)
    _detectable(found)


def _ways(rows: Sequence[ModelRow | CategoryRow]) -> list[str]:
    """Return the ways of scoring of some rows, in the order in which they are named."""
    return [way for way in WAYS if any(row.by == way for row in rows)]


def _ranking(rows: Sequence[ModelRow]) -> None:
    """Show win rates or macro-averages with their intervals; which ones stands in the URL."""
    kind = st.radio("Drawn", KINDS, key="drawn", horizontal=True, bind="query-params")
    kind = kind if kind in KINDS else KINDS[0]
    drawn = [_drawn(row, kind) for row in rows]
    chart = charts.drawn("chart_models:chart_ranking", drawn, TITLES[kind])
    told = ", ".join(f"{one['model']} {fixed(one['value'], 2)} by {one['by']}" for one in drawn)
    words = OF_RANKING.format(kind.capitalize())
    charts.show(chart, "models-ranked", words, f"{kind.capitalize()}: {told}")


def _drawn(row: ModelRow, kind: str) -> dict[str, str | float | None]:
    """Return what is drawn of a model."""
    figures = (row.win_rate, row.win_rate_low, row.win_rate_high)
    if kind == "macro-average":
        figures = (row.macro_average, row.low, row.high)
    value, low, high = map(_or_none, figures)
    return {"model": row.model, "by": row.by, "value": value, "low": low, "high": high}


def _by_category(rows: Sequence[CategoryRow]) -> None:
    """Show each model's mean in each category, by one way of scoring."""
    ways = _ways(rows)
    if not ways:
        return
    by = st.radio(
        "Categories, as scored by",
        ways,
        key="by",
        horizontal=True,
        bind="query-params",
        format_func=lambda way: WAYS[way],
    )
    by = by if by in ways else ways[0]
    own = [row for row in rows if row.by == by]
    cells = [
        {"model": row.model, "place": row.category or NO_CATEGORY, "value": _or_none(row.mean)}
        | {"rests": rests_on(row)}
        for row in own
    ]
    chart = charts.drawn("chart_models:chart_heatmap", cells, "Mean on 0 to 1")
    told = ", ".join(f"{one['model']} in {one['place']} {fixed(one['value'], 2)}" for one in cells)
    words = f"Mean score of each model in each category, by {WAYS[by]}; the darker, the higher."
    listed = [_listed(row) for row in own]
    charts.show(chart, "models-by-category", words, f"Means on 0 to 1: {told}", listed)


def _listed(row: CategoryRow) -> dict[str, str | float | None]:
    """Return what the table under the chart says of a mean."""
    ends = {"mean": _or_none(row.mean), "low": _or_none(row.low), "high": _or_none(row.high)}
    named = {"model": row.model, "category": row.category or NO_CATEGORY, **ends}
    return named | {"responses": row.n, "rests": rests_on(row)}


def _detectable(found: ModelsFigures) -> None:
    """Show what difference this study could tell at all, in words and as tables."""
    st.html(heading("What difference could be detected"))
    by_clinicians = (row for row in found.detectable_rows if row.by == "clinicians")
    st.html("".join(said(_least(row)) for row in by_clinicians if known(row.mde_exact)))
    for table in found.detectable:
        st.html(tables.of_table(table))


def _least(row: DetectableRow) -> str:
    return (
        f"On {row.benchmark}, as scored by {WAYS[row.by]}, a difference between two models "
        f"is likely to be found (80 % power at 5 %) only if it is {row.mde_exact:.2f} or more "
        f"on 0 to 1, with the {whole(row.n_instances)} instances there are."
    )


def _or_none(value: float) -> float | None:
    return value if known(value) else None
