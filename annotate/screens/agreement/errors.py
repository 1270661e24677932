"""Errors on the agreement screen: what clinicians marked, and the worst and most disputed responses."""

import html
from concurrent.futures import Future
from urllib.parse import quote

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.figures import AgreementQuestion
from annotate.screens import frame
from calibration.notes import counted
from calibration.tables.errors import ABOUT as ABOUT_FIGURES
from calibration.tables.errors import (
    RULE,
    BenchmarkErrors,
    errors_table,
    examples_html,
    left_out_lines,
)
from data.person import Person
from data.safe_text import on_page
from medjury.services.errors import ErrorsQuestion, StudyErrors

FOUND = "medjury.services.errors:study_errors"
ABOUT = (
    "Which errors did clinicians mark, how often, and on which responses do the sides differ most?"
)
EXAMPLES, REPEATED = "{} of {} to read", ", some responses more than once"
MOST, USUAL = 50, 3
COUNTED = "How these were counted"


def show(engine: Engine, person: Person, question: AgreementQuestion) -> None:
    """Show each benchmark's errors, and its examples to read, each a link to the response."""
    st.markdown(ABOUT)
    place, which, _ = st.columns((1, 1, 2))
    number = place.number_input(
        *("Examples for each reason", 1, MOST, USUAL, 1),
        key="per-group",
        help="Reasons are: lowest scores, jury far from clinicians, clinicians far from each other",
    )
    options = question.options
    asked = ErrorsQuestion(options.benchmark, options.jurors, None, int(number), options.criterion)
    coming: Future[StudyErrors] = compute.ask(person, engine, FOUND, asked, "long")
    answer = frame.computed(coming, "Marks are being counted, and examples chosen")
    if answer is None:
        return
    if answer.simulated:
        st.warning(on_page(f"Simulated, no evidence: {', '.join(answer.simulated)}."))
    by_name = {one.benchmark: one for one in answer.benchmarks}
    chosen = which.selectbox("Benchmark to read", [*by_name], key="errors-of")
    if chosen in by_name:
        _benchmark(by_name[chosen])
    with st.expander(COUNTED):
        draw.notes([f"Jury: {', '.join(answer.jury) or 'none has rated'}."])
        if answer.silent:
            draw.notes([f"Asked, and gave no rating: {', '.join(answer.silent)}."])
        draw.notes((ABOUT_FIGURES, RULE.format(answer.per_group), *answer.told))


def _benchmark(found: BenchmarkErrors) -> None:
    """Show a benchmark's errors, and folded its examples to read."""
    examples = found.picked
    draw.table(errors_table(found))
    label = EXAMPLES.format(counted(len(examples), "example"), found.benchmark)
    if len({one.response_id for one in examples}) < len(examples):
        label += REPEATED
    with st.expander(on_page(label)):
        st.html(f'<div class="mj-errors">{examples_html(examples, _link)}</div>')
        draw.notes(left_out_lines(found))


def _link(response_id: str) -> str:
    place = html.escape(f"/agreement?view=Responses&response={quote(response_id, safe='')}")
    return f'<a href="{place}" target="_self">{html.escape(response_id)}</a>'
