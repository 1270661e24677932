"""Errors on the agreement screen: what clinicians marked, and the worst and most disputed responses."""

import html
from collections.abc import Iterator
from concurrent.futures import Future
from urllib.parse import quote

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.results import AgreementQuestion
from annotate.screens import frame
from annotate.screens.frame import caption, heading, lead, notice
from calibration.notes import counted
from calibration.tables.errors import ABOUT as ABOUT_ERRORS
from calibration.tables.errors import RULE, errors_table, examples_html, left_out_lines
from data.csv_files import csv_bytes
from data.person import Person
from medjury.services.errors import ErrorsQuestion, StudyErrors, csv_of

FOUND = "medjury.services.errors:study_errors"
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
    asked = ErrorsQuestion(options.benchmark, options.jurors, None, int(number), options.criterion)
    coming: Future[StudyErrors] = compute.ask(person, engine, FOUND, asked, "long")
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
    st.html(tables.folded(COUNTED, "".join(map(caption, _counted(answer)))))
    file = ("Examples as CSV", lambda: csv_bytes(*csv_of(answer)))
    st.download_button(*file, "errors.csv", "text/csv", key="save-errors", on_click="ignore")


def _counted(found: StudyErrors) -> Iterator[str]:
    yield f"Jury: {', '.join(found.jury) or 'none has rated'}."
    if found.silent:
        yield f"Asked, and gave no rating: {', '.join(found.silent)}."
    yield from (ABOUT_ERRORS, RULE.format(found.per_group), *found.told)


def _link(response_id: str) -> str:
    place = html.escape(f"/workbench?response={quote(response_id, safe='')}")
    return f'<a href="{place}" target="_self">{html.escape(response_id)}</a>'
