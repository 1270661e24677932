"""The models screen: who wrote the best responses, by whose scores, and how sure that is."""

import html
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import streamlit as st
from calibration.report.numbers import DASH, fixed, interval, whole
from sqlalchemy import Engine

from annotate import charts, tables
from annotate.commands import Figures
from annotate.screens import frame, models_blind, models_costs, models_partial, monitoring_controls
from data import queries
from data.person import Person

Row = Mapping[str, Any]
STYLE = (files("annotate") / "screens" / "monitoring.css").read_text("utf-8")
ABOUT = "The models compared by clinicians' ratings, by the jury's, and by the jury's corrected."
WAYS = {"clinicians": "clinicians", "jury": "jury", "corrected": "jury corrected"}
KINDS = {
    "win rate": ("win_rate", "win_rate_low", "win_rate_high"),
    "macro-average": ("macro_average", "low", "high"),
}
TITLES = {"win rate": "Win rate, 95 %", "macro-average": "Macro-average on 0 to 1, 95 %"}
OF_RANKING = (
    "Win rate: share of the other models beaten, mean over benchmarks, a tie half a win. "
    "Macro-average: mean over benchmarks, every scale on 0 to 1. Intervals are over instances."
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
    asked = monitoring_controls.scope(engine, person, whole=True)
    costs = models_costs.given()
    with models_costs.on_disk(person, engine, ("models", *asked), costs) as arguments:
        found = frame.figures(person, engine, *arguments)
    if found is None:
        return
    if standing.simulated:
        st.html(
            _said(
                "Some raters of this study are simulated: nothing that rests on them is evidence."
            )
        )
    st.html(_leaders(found["rows"], len(found["benchmarks"])))
    _ranking(found)
    _by_category(found)
    models_costs.show(engine, person, found)
    st.html(_detectable(found["detectable"]))


def _leaders(rows: Sequence[Row], every: int) -> str:
    """Return the models with what each way of scoring says of them, side by side."""
    ways = [way for way in WAYS if any(row["by"] == way for row in rows)]
    told = {(row["model"], row["by"]): row for row in rows}
    models = dict.fromkeys(row["model"] for row in rows)
    columns = [tables.words("Model", "model")]
    for way in ways:
        columns += _columns(way, every)
    lines = [
        {"model": name, "told": {way: told[name, way] for way in ways if (name, way) in told}}
        for name in models
    ]
    notes = list(
        dict.fromkeys(
            f"{row['model']}, by {WAYS[row['by']]}: {row['note']}" for row in rows if row["note"]
        )
    )
    title = f"{len(models)} models, the best by {WAYS[ways[0]]} first" if ways else "Models"
    told_of = [CORRECTED] if "corrected" in ways else []
    told_of += models_partial.notes(rows, every, WAYS)
    return tables.table(lines, columns, title, told_of) + _folded(notes)


def _folded(notes: Sequence[str]) -> str:
    """Return notes that are read when wanted."""
    if not notes:
        return ""
    return f'<details class="mj-folded"><summary>Notes on the figures ({len(notes)})</summary>{tables.listed(notes)}</details>'


def _columns(way: str, every: int) -> list[tables.Column]:
    """Return the columns of one way of scoring; figures on fewer benchmarks say on how many."""

    def cell(kind: str) -> tables.Cell:
        return lambda row: models_partial.marked(
            _with_ends(row["told"].get(way), kind), row["told"].get(way), every
        )

    return [
        tables.Column(f"Rank by {WAYS[way]}", lambda row: _rank(row["told"].get(way))),
        tables.Column("Win rate, 95 %", cell("win rate")),
        tables.Column("Macro-average, 95 %", cell("macro-average")),
    ]


def _ranking(found: Figures) -> None:
    """Show win rates or macro-averages with their intervals; which ones stands in the URL."""
    rows = found["rows"]
    kind = st.radio("Drawn", [*KINDS], key="drawn", horizontal=True, bind="query-params")
    kind = kind if kind in KINDS else "win rate"
    value, low, high = KINDS[kind]
    drawn = [
        {
            "model": row["model"],
            "by": row["by"],
            "value": row[value],
            "low": row[low],
            "high": row[high],
        }
        for row in rows
    ]
    chart = charts.drawn("chart_models:chart_ranking", drawn, TITLES[kind])
    told = ", ".join(f"{one['model']} {fixed(one['value'], 2)} by {one['by']}" for one in drawn)
    charts.show(chart, "models-ranked", OF_RANKING, f"{kind.capitalize()}: {told}")


def _by_category(found: Figures) -> None:
    """Show each model's mean in each category, by one way of scoring."""
    ways = [way for way in WAYS if any(row["by"] == way for row in found["categories"])]
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
    rows = [row for row in found["categories"] if row["by"] == by]
    cells = [
        {"model": row["model"], "place": row["category"] or "no category", "value": row["mean"]}
        | {"rests": models_partial.without(row)}
        for row in rows
    ]
    chart = charts.drawn("chart_models:chart_heatmap", cells, "Mean on 0 to 1")
    listed = [
        {"model": row["model"], "category": row["category"] or "no category", "mean": row["mean"]}
        | {"low": row["low"], "high": row["high"], "responses": row["n"]}
        | {"rests": models_partial.without(row)}
        for row in rows
    ]
    told = ", ".join(f"{one['model']} in {one['place']} {fixed(one['value'], 2)}" for one in cells)
    words = f"Mean score of each model in each category, by {WAYS[by]}; the darker, the higher."
    charts.show(chart, "models-by-category", words, f"Means on 0 to 1: {told}", listed)


def _detectable(rows: Sequence[Row]) -> str:
    """Return what difference this study could tell at all, in words and as a table."""
    lines = [
        _said(
            f"On {row['benchmark']}, as scored by {WAYS[row['by']]}, a difference between two models "
            f"is likely to be found (80 % power at 5 %) only if it is {row['mde_exact']:.2f} or more "
            f"on 0 to 1, with the {whole(row['n_instances'])} instances there are."
        )
        for row in rows
        if row["by"] == "clinicians" and row["mde_exact"] is not None
    ]
    columns = [
        tables.words("Benchmark", "benchmark"),
        tables.Column("By", lambda row: WAYS[row["by"]], is_words=True),
        tables.number("Smallest difference, 0 to 1", "mde_exact", 3),
        tables.number("As the paper computes it", "mde", 3),
        tables.count("Instances", "n_instances"),
        tables.count("Pairs of models", "n_pairs"),
    ]
    notes = [
        f"{row['benchmark']}, by {WAYS[row['by']]}: {row['note']}" for row in rows if row["note"]
    ]
    head = '<h2 class="mj-part">What difference could be detected</h2>'
    table = tables.table(rows, columns, "Smallest detectable differences")
    return head + "".join(lines) + table + _folded(notes)


def _rank(row: Row | None) -> str:
    if row is None or row["rank"] is None:
        return DASH
    low, high = row["rank_low"], row["rank_high"]
    if low is None or high is None:
        return f"{row['rank']}"
    return f"{row['rank']}" if low == high else f"{row['rank']} ({low} to {high})"


def _with_ends(row: Row | None, kind: str) -> str:
    if row is None:
        return DASH
    value, low, high = (row[name] for name in KINDS[kind])
    ends = interval(low, high, 2)
    return f"{fixed(value, 2)}{f' ({ends})' if ends else ''}"


def _said(text: str) -> str:
    return f'<p class="mj-said">{html.escape(text)}</p>'
