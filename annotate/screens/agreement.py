"""The agreement screen: how well the jury agrees with the clinicians, and what that hangs on."""

import html
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import charts, tables, worker
from annotate.figures.shown import AgreementQuestion, Answer, Behind, Chart, Section
from annotate.screens import (
    agreement_controls,
    agreement_report,
    agreement_responses,
    frame,
    tabs,
)
from calibration.messages.form import listed
from data.person import Person

STYLE = (files("annotate") / "screens" / "agreement.css").read_text("utf-8")
ABOUT = "How well jury, jurors and metrics agree with the clinicians, and what the figures hang on."
CONSISTENCY = (
    "ICC(C,2) is consistency: a rater who is always a point stricter still agrees. Only like for "
    "like bears on whether the jury may stand in a clinician's place."
)
LUCK = "Juries tried on this study so far: {}; who tries many and shows the best shows luck too."
NO_GROUP = (
    "No response is in a group. Columns group:NAME of a file of responses, such as group:language, make "
    "groups; importing the same file again with such columns adds them."
)
APART = "Responses on which jury and clinicians are farthest apart"
FIRST, THEN = "annotate.figures.agreement:answer", "annotate.figures.agreement:behind"


def show(engine: Engine, person: Person) -> None:
    """Show the agreement that is asked for: the answer first, then a view at a time."""
    frame.begin(person, "Agreement", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    worker.wake()
    question = agreement_controls.asked(engine, person)
    coming: Future[Answer] = worker.ask(person, engine, FIRST, question)
    found = frame.computed(coming, "Agreement is being computed")
    if found is None:
        return
    st.html(tables.of_decision(found.decision))
    later = Later(engine, person, question)
    views: dict[str, Callable[[], None]] = {
        "Overview": partial(_overview, found, later),
        "Criteria": partial(_criteria, later),
        "Responses": partial(_responses, later),
        "Unsafe responses": partial(_unsafe, later),
        "Subgroups": partial(_subgroups, later),
        "Comparisons": partial(_sections, later, "3", "4"),
        "What it hangs on": partial(_hanging, later),
        "Jurors": partial(_sections, later, "6"),
        "Origin": partial(_origin, found, later),
        "Report": partial(agreement_report.show, engine, person, question),
    }
    tabs.show(views)


class Later:
    """What stands behind the answer: asked for when a view needs it, waited for there."""

    def __init__(self, engine: Engine, person: Person, question: AgreementQuestion) -> None:
        self.coming: Future[Behind] = worker.ask(person, engine, THEN, question, "details")

    def found(self) -> Behind | None:
        """Return it, waiting for it; None where it was refused, and why."""
        return frame.computed(self.coming, "More is being computed")


def _overview(found: Answer, later: Later) -> None:
    """Show chart and table at once, and under them what takes longer."""
    _charts(found.charts, "intervals")
    st.html(tables.of_table(found.table))
    st.html(f'<p class="mj-caption">{html.escape(CONSISTENCY)}</p>')
    if found.simulated:
        made_up = html.escape(f"Simulated raters: {listed(found.simulated)}.")
        st.html(f'<p class="mj-caption">{made_up}</p>')
    behind = later.found()
    if behind is None:
        return
    luck = LUCK.format(behind.tried) if behind.tried > 1 else ""
    for line in filter(None, (behind.points, behind.hangs.replace("`", ""), luck)):
        st.html(f'<p class="mj-lead">{html.escape(line)}</p>')


def _criteria(later: Later) -> None:
    if behind := later.found():
        _section(behind.sections["2"])
        _charts(behind.charts, "criteria")


def _responses(later: Later) -> None:
    if behind := later.found():
        drawn = [one for one in behind.charts if one.name in ("scatter", "difference")]
        agreement_responses.show(drawn, behind.pairs)


def _unsafe(later: Later) -> None:
    """Show what is found of unsafe responses, threshold by threshold, and how many to read."""
    if behind := later.found():
        part = behind.sections["11"]
        st.html(_lead(part))
        _charts(
            behind.charts, *{one.name for one in behind.charts if one.name.startswith("unsafe-")}
        )
        _tables(part)


def _subgroups(later: Later) -> None:
    if behind := later.found():
        if part := behind.sections.get("12"):
            _section(part)
        else:
            st.html(f'<p class="mj-lead">{html.escape(NO_GROUP)}</p>')


def _hanging(later: Later) -> None:
    if behind := later.found():
        part = behind.sections["5"]
        st.html(_lead(part))
        _charts(behind.charts, "influence")
        _tables(part, leave_out=APART)
        _charts(behind.charts, "scale")


def _origin(found: Answer, later: Later) -> None:
    for line in found.told:
        st.html(f'<p class="mj-lead">{html.escape(line)}</p>')
    _sections(later, "7", "8", "9")


def _sections(later: Later, *numbers: str) -> None:
    """Show sections of the report, one after another."""
    if behind := later.found():
        for number in numbers:
            _section(behind.sections[number])


def _section(part: Section) -> None:
    """Show a section of the report: how to read it, its tables, its facts."""
    st.html(_lead(part))
    _tables(part)
    if part.facts:
        facts = "".join(
            f"<dt>{html.escape(term)}</dt><dd>{html.escape(meaning)}</dd>"
            for term, meaning in part.facts
        )
        st.html(f'<dl class="mj-facts">{facts}</dl>')


def _tables(part: Section, leave_out: str = "no such caption") -> None:
    for one in part.tables:
        if not one.caption.removeprefix("Simulated. ").startswith(leave_out):
            st.html(tables.of_table(one))


def _charts(drawn: Sequence[Chart], *names: str) -> None:
    for one in drawn:
        if one.name in names:
            name = f"{one.name}-{one.benchmark}" if one.benchmark else one.name
            charts.show(one.spec, name, one.caption, one.alt, one.rows or None)


def _lead(part: Section) -> str:
    return (
        f'<h2 class="mj-part">{html.escape(part.title)}</h2>'
        f'<p class="mj-lead">{html.escape(part.lead)}</p>'
    )
