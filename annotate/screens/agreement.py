"""The agreement screen: how well the jury agrees with the clinicians, and what that hangs on."""

import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.commands import Figures
from annotate.screens import (
    agreement_controls,
    agreement_report,
    agreement_responses,
    frame,
    tabs,
)
from data import queries
from data.person import Person

STYLE = (files("annotate") / "screens" / "agreement.css").read_text("utf-8")
ABOUT = "How well jury, jurors and metrics agree with the clinicians, and what the figures hang on."
NOBODY = "No juror has rated a response of this study yet."
FIRST = "Run a jury in the lab, or import scores made elsewhere; then this page compares them."
CONSISTENCY = (
    "ICC(C,2) is consistency: a rater who is always a point stricter still agrees. Only like for "
    "like bears on whether the jury may stand in a clinician's place."
)
APART = "Responses on which jury and clinicians are farthest apart"
Parts = Mapping[str, Any]


def show(engine: Engine, person: Person) -> None:
    """Show the agreement that is asked for, a view at a time."""
    frame.begin(person, "Agreement", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    if not queries.jurors_heard(person, engine):
        frame.empty(NOBODY, FIRST)
        return
    worker.wake()
    asked = agreement_controls.asked(engine, person)
    found = frame.figures(person, engine, "calibrate", "--details", "--pairs", *asked)
    if found is None:
        return
    parts: Parts = charts.drawn("parts:parts", found)
    st.html(_verdict(parts))
    views: dict[str, Callable[[], None]] = {
        "Overview": partial(_overview, parts),
        "Criteria": partial(_criteria, parts),
        "Responses": partial(_responses, parts, found),
        "Comparisons": partial(_comparisons, parts),
        "What it hangs on": partial(_hanging, parts),
        "Jurors": partial(_section, parts, "6"),
        "Origin": partial(_origin, parts),
        "Report": partial(agreement_report.show, engine, person, asked),
    }
    tabs.show(views)


def _verdict(parts: Parts) -> str:
    """Return what may be said of the jury, in words, and who is no real rater."""
    last = parts["verdicts"][-1]
    luck = (
        f"Juries tried on this study so far: {parts['tried']}; who tries many and shows the best "
        "shows luck too."
        if parts["tried"] > 1
        else ""
    )
    named = ", ".join(parts["simulated"])
    made_up = f"Simulated raters: {named}." if named else ""
    said = [
        last["because"],
        parts["points"],
        last["basis"] and f"On {last['basis']}.",
        made_up,
        luck,
    ]
    lines = "".join(f"<p>{html.escape(one)}</p>" for one in said if one)
    return (
        f'<div class="mj-judged mj-{html.escape(last["kind"])}" role="status">'
        f"<h2>{html.escape(last['headline'])}</h2>{lines}</div>"
    )


def _overview(parts: Parts) -> None:
    _charts(parts, "intervals")
    _tables(parts, "A")
    st.html(f'<p class="mj-caption">{html.escape(CONSISTENCY)}</p>')


def _criteria(parts: Parts) -> None:
    _section(parts, "2")
    _charts(parts, "criteria")


def _responses(parts: Parts, found: Figures) -> None:
    agreement_responses.show(_named(parts, "scatter", "difference"), found["pairs"])


def _comparisons(parts: Parts) -> None:
    _section(parts, "3")
    _section(parts, "4")


def _hanging(parts: Parts) -> None:
    st.html(_lead(_part(parts, "5")))
    _charts(parts, "influence")
    _tables(parts, "5", leave_out=APART)
    _charts(parts, "scale")


def _origin(parts: Parts) -> None:
    for line in parts["told"]:
        st.html(f'<p class="mj-lead">{html.escape(line)}</p>')
    for number in ("7", "8", "9"):
        _section(parts, number)


def _section(parts: Parts, number: str) -> None:
    """Show a section of the report: how to read it, its tables, its facts."""
    part = _part(parts, number)
    st.html(_lead(part))
    _tables(parts, number)
    if part["facts"]:
        facts = "".join(
            f"<dt>{html.escape(term)}</dt><dd>{html.escape(said)}</dd>"
            for term, said in part["facts"]
        )
        st.html(f'<dl class="mj-facts">{facts}</dl>')


def _tables(parts: Parts, number: str, leave_out: str = "no such caption") -> None:
    for one in _part(parts, number)["tables"]:
        if not one["caption"].startswith(leave_out):
            st.html(tables.of_report(one))


def _charts(parts: Parts, *names: str) -> None:
    for one in _named(parts, *names):
        name = f"{one['name']}-{one['benchmark']}" if one["benchmark"] else one["name"]
        charts.show(one["chart"], name, one["caption"], one["alt"], one["rows"] or None)


def _named(parts: Parts, *names: str) -> Sequence[Mapping[str, Any]]:
    return [one for one in parts["charts"] if one["name"] in names]


def _part(parts: Parts, number: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in parts["sections"] if one["number"] == number)
    return found


def _lead(part: Mapping[str, Any]) -> str:
    return (
        f'<h2 class="mj-part">{html.escape(part["title"])}</h2>'
        f'<p class="mj-lead">{html.escape(part["lead"])}</p>'
    )
