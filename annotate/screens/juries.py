"""The juries screen: every jury that the jurors heard can make up, by agreement and by money."""

import html
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st
from calibration.report.numbers import DASH, SIMULATED, fixed, interval
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.commands import Figures
from annotate.screens import agreement_controls, frame, juries_compare, juries_ledger, tabs
from calibration.report.ways import tried
from data import queries
from data.person import Person

STYLE = (files("annotate") / "screens" / "agreement.css").read_text("utf-8")
ABOUT = "Every jury that the jurors already heard can make up: what it is worth and what it costs."
NOBODY = "No juror has rated a response of this study yet."
FIRST = "Run a jury in the lab, or import scores made elsewhere; no call is made on this page."
UNKNOWN = "Of no jury both cost and agreement are known, so there is nothing to weigh."
BROUGHT = "Scores that came from a file have no price; jurors run here have one where their host's is known."
HONEST = (
    "Honest is what the jury chosen for this place is worth on responses it was not chosen on; it "
    "belongs to the place. 95 % is of this jury as if no other had been tried."
)
MOST = 100
SHOWN_FIRST = 10
MADE_UP = "Prices of simulated jurors are made up; nothing was spent on them."
Row = Mapping[str, Any]


def show(engine: Engine, person: Person) -> None:
    """Show the ranking that is asked for, two juries side by side, and what was ever tried."""
    frame.begin(person, "Juries", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    heard = queries.jurors_heard(person, engine)
    if not heard:
        frame.empty(NOBODY, FIRST)
        return
    worker.wake()
    asked = agreement_controls.of_juries(engine, person)
    found = frame.figures(person, engine, "juries", f"--top={MOST}", *asked.ranking)
    if found is None:
        return
    st.html(_said(found))
    views = {
        "Ranking": partial(_ranking, found),
        "Agreement for money": partial(_money, found),
        "Two juries": partial(juries_compare.show, engine, person, asked.scope, heard),
        "Ledger": partial(juries_ledger.show, engine, person),
    }
    tabs.show(views)


def named(row: Row) -> str:
    """Return a jury as its jurors."""
    return ", ".join(row["jurors"])


def _said(found: Figures) -> str:
    """Return what to make of the best of many."""
    best = found["winner"]
    headline, lines = "No jury has an ICC; the notes say why.", []
    if best is not None:
        of = (
            f"The best of {found['n_juries']:,} juries"
            if found["n_juries"] > 1
            else "The only jury"
        )
        headline = f"{of} is worth {fixed(best['icc_honest'], 3)}"
        headline += f", not {fixed(best['icc'], 3)}." if best["optimism"] else "."
        lines.append(
            f"{named(best)}: ICC {fixed(best['icc'], 3)}, honest {fixed(best['icc_honest'], 3)}."
        )
    lines.append(
        f"On up to {found['n_responses']:,} responses with a clinician's score. "
        f"Tried on this study before, besides these: "
        f"{tried(found['n_juries_before'], found['n_tried_before'])}. These are in the ledger now "
        "and count in later p values."
    )
    lines += filter(None, found["note"].split("; "))
    kind = "simulated" if SIMULATED in found["note"] else "not_shown"
    told = "".join(f"<p>{html.escape(one)}</p>" for one in lines)
    return f'<div class="mj-judged mj-{kind}" role="status"><h2>{html.escape(headline)}</h2>{told}</div>'


def _ranking(found: Figures) -> None:
    rows = found["rows"]
    first = [
        {"jury": named(row), "icc": row["icc"], "low": row["low"], "high": row["high"]}
        | {"honest": row["icc_honest"]}
        for row in rows[:SHOWN_FIRST]
        if row["icc"] is not None
    ]
    if first:
        chart = charts.drawn("chart_juries:chart_first", first)
        alt = "; ".join(f"{one['jury']} {fixed(one['icc'], 3)}" for one in first)
        caption = f"The first {len(first)}: ICC with its interval (diamond), honest ICC (ring)."
        charts.show(chart, "first-juries", caption, alt, first)
    tables.sortable("ranking", rows[:MOST], _columns(), "Juries, the best first")
    more = len(rows) - MOST
    st.html(
        tables.noted(
            [*_notes(found), *([f"{more:,} more juries stand in the CSV."] if more > 0 else [])]
        )
    )
    every = [{**row, "jurors": named(row)} for row in rows]
    st.download_button(
        "All juries as CSV",
        partial(tables.csv_of, every),
        "juries.csv",
        "text/csv",
        key="every",
        on_click="ignore",
    )


def _columns() -> Sequence[tables.Column]:
    return [
        tables.Column("Jury", named),
        tables.count("Jurors", "size"),
        tables.number("ICC(C,2)", "icc", 3),
        tables.number("Honest", "icc_honest", 3),
        tables.Column("95 %", lambda row: interval(row["low"], row["high"]) or DASH),
        tables.number("US dollars", "usd_per_response", 4),
        tables.Column("On the front", lambda row: "yes" if row["on_front"] else ""),
        tables.count("Responses", "n_responses"),
    ]


def _money(found: Figures) -> None:
    """Show agreement against cost, and the juries that no other beats in both."""
    every = [
        {"jury": named(row), "usd": row["usd_per_response"], "icc": row["icc"]}
        | {"low": row["low"], "high": row["high"], "on_front": row["on_front"]}
        | {"made_up": not set(row["jurors"]).isdisjoint(found["usd_made_up"])}
        for row in found["rows"]
        if row["usd_per_response"] is not None and row["icc"] is not None
    ]
    if not every:
        frame.empty(UNKNOWN, BROUGHT)
        return
    chart = charts.drawn("chart_juries:chart_cost", every)
    without = found["n_unknown_cost"]
    left = f" {without:,} juries of unknown cost are left out." if without else ""
    caption = (
        "Every jury by cost and ICC; on the front (diamonds, with intervals) no other has at "
        f"least its ICC for at most its money.{left}{f' {MADE_UP}' if found['usd_made_up'] else ''}"
    )
    front = sorted((row for row in found["rows"] if row["on_front"]), key=_price)
    alt = "; ".join(f"{named(row)} {fixed(row['icc'], 3)} for ${_price(row):.4f}" for row in front)
    charts.show(chart, "cost", caption, alt, every)
    st.html(tables.table(front, _columns()[:6], "The front, the cheapest first", _notes(found)))


def _notes(found: Figures) -> list[str]:
    """Return what a table of juries says below: what honest means, and what its prices are."""
    return [HONEST, *([MADE_UP] if found["usd_made_up"] else [])]


def _price(row: Row) -> float:
    return float(row["usd_per_response"])
