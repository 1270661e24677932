"""Errors on the agreement screen: what clinicians marked, and the worst and most disputed responses."""

import html
from concurrent.futures import Future
from urllib.parse import quote

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.results import AgreementQuestion, ErrorsAnswer, ErrorsAsked
from annotate.screens import frame
from annotate.screens.frame import caption, heading, lead, notice
from calibration.notes import counted
from calibration.tables.errors import errors_table, examples_html, left_out_lines
from data.person import Person

FOUND = "annotate.forecasts:errors_found"
ABOUT = (
    "Which errors clinicians marked and how often, with the worst and most disputed responses. A response "
    "leads to the workbench."
)
EXAMPLES, REPEATED = "{} of {} to read", ", some responses more than once"
MOST, USUAL = 50, 3
COUNTED = "How these were counted"
LEFT_OUT = "What is left out of the table"


def show(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Show each benchmark's errors and examples, the first open, and offer the examples as a file."""
    st.html(heading("Errors") + lead(ABOUT))
    place, *_ = st.columns(4)
    number = place.number_input("Examples for each reason", 1, MOST, USUAL, 1, key="per-group")
    options = question.options
    asked = ErrorsAsked(options.benchmark, options.jurors, options.criterion, int(number))
    coming: Future[ErrorsAnswer] = compute.ask(person, engine, FOUND, asked, "long")
    answer = frame.computed(coming, "Marks are being counted, and examples chosen")
    if answer is None:
        return
    if answer.simulated:
        st.html(notice(f"Simulated, no evidence: {', '.join(answer.simulated)}."))
    for index, found in enumerate(answer.benchmarks):
        examples = found.picked
        lines = "".join(map(caption, left_out_lines(found)))
        shown = f'<div class="mj-errors">{examples_html(examples, _link)}</div>'
        label = EXAMPLES.format(counted(len(examples), "example"), found.benchmark)
        if len({one.response_id for one in examples}) < len(examples):
            label += REPEATED
        left_out = tables.folded(LEFT_OUT, lines)
        part = (
            tables.with_notes_folded(errors_table(found)) + left_out + tables.folded(label, shown)
        )
        st.html(tables.folded(found.benchmark, part) if index else part)
    if told := "".join(map(caption, answer.told)):
        st.html(tables.folded(COUNTED, told))
    file = ("Examples as CSV", answer.csv, "errors.csv", "text/csv")
    st.download_button(*file, key="save-errors", on_click="ignore")


def _link(response_id: str) -> str:
    place = html.escape(f"/workbench?response={quote(response_id, safe='')}")
    return f'<a href="{place}" target="_self">{html.escape(response_id)}</a>'
