"""The juries screen: which jury to take, and every one that the jurors heard can make up."""

from functools import partial
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures import juries
from annotate.figures.juries import ShownRanking
from annotate.screens import frame, juries_compare, juries_controls, juries_ledger, tabs
from calibration.tables.numbers import fixed
from data import queries
from data.person import Person

STYLE = (files("annotate") / "screens" / "agreement.css").read_text("utf-8")
ABOUT = "Every jury that the jurors already heard can make up: which to take, and what it costs."
NOBODY = "No juror has rated a response of this study yet."
FIRST = "Run a jury in the lab, or import scores made elsewhere; no call is made on this page."
UNKNOWN = "No jury has both a known cost and an ICC."
BROUGHT = (
    "Scores that came from a file have no price; jurors run here have one where their host's is "
    "known."
)
FIRST_CAPTION = (
    "The first {}: ICC with its interval (diamond), and the ICC expected on new responses (ring)."
)
COST_CAPTION = "Every jury by cost and ICC; no cheaper jury agrees as well as the diamonds.{}"


def show(engine: Engine, person: Person) -> None:
    """Show which jury to take, then the ranking, costs, two juries compared, and the ledger."""
    frame.begin(person, "Juries", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    heard = queries.jurors_heard(person, engine)
    if not heard:
        frame.empty(NOBODY, FIRST)
        return
    worker.wake()
    question = juries_controls.asked(engine, person)
    coming = worker.ask(person, engine, juries.ranking, question)
    found = frame.computed(coming, "Juries are being ranked")
    if found is None:
        return
    st.html(tables.of_decision(found.decision))
    views = {
        "Ranking": partial(_ranking, found),
        "Agreement and cost": partial(_costs, found),
        "Two juries": partial(juries_compare.show, engine, person, question.options, heard),
        "Ledger": partial(juries_ledger.show, engine, person),
    }
    tabs.show(views)


def _ranking(found: ShownRanking) -> None:
    """Show the best of each size and all of them, then the first as a chart, and all as a file."""
    st.html(tables.of_table(found.by_size))
    tables.sortable("ranking", found.ranking)
    st.html(tables.noted(found.notes))
    if found.first:
        chart = charts.drawn("chart_juries:chart_first", found.first)
        alt = "; ".join(f"{one['jury']} {fixed(one['icc'], 3)}" for one in found.first)
        caption = FIRST_CAPTION.format(len(found.first))
        charts.show(chart, "first-juries", caption, alt, found.first)
    st.download_button(
        *("All juries as CSV", found.csv, "juries.csv", "text/csv"),
        key="every",
        on_click="ignore",
    )


def _costs(found: ShownRanking) -> None:
    """Show agreement against cost, and the juries that agree best for their cost."""
    if not found.costs:
        frame.empty(UNKNOWN, BROUGHT)
        return
    chart = charts.drawn("chart_juries:chart_cost", found.costs)
    left = found.without_cost
    front = sorted((one for one in found.costs if one["on_front"]), key=lambda one: one["usd"])
    alt = "; ".join(f"{one['jury']} {fixed(one['icc'], 3)} for ${one['usd']:.4f}" for one in front)
    caption = COST_CAPTION.format(f" {left:,} juries of unknown cost are left out." if left else "")
    charts.show(chart, "cost", caption, alt, found.costs)
    st.html(tables.of_table(found.front) + tables.noted(found.notes))
