"""Two juries side by side: which of them agrees better with the clinicians, if that is shown."""

from collections.abc import Sequence

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.figures import juries
from annotate.screens import frame
from calibration.values import AnalysisOptions
from data.person import Person
from medjury.services.juries import ComparisonQuestion

ABOUT = (
    "Both juries are judged on the responses that both have, on the same resamples. A difference is "
    "shown where the interval excludes 0 and p, corrected for every comparison tried on this study, "
    "is at most 0.05."
)
ASK = (
    "Choose two juries to compare.",
    "Each comparison is kept in the ledger, and p is corrected for all of them (Holm).",
)


def show(engine: Engine, person: Person, options: AnalysisOptions, heard: Sequence[str]) -> None:
    """Ask for two juries, and compare them once both are chosen and differ."""
    st.html(f'<h2 class="mj-part">Two juries</h2><p class="mj-lead">{ABOUT}</p>')
    if len(heard) < 2:
        frame.empty("Only one juror was heard.", "Run another in the lab to compare two juries.")
        return
    with st.form("two-juries", border=False):  # else each juror added would be a comparison
        first, second = st.columns(2)
        with first:
            one = _jury("First jury", heard, "first")
        with second:
            other = _jury("Second jury", heard, "second")
        st.form_submit_button("Compare", type="primary")
    if not one or not other:
        frame.empty(*ASK)
        return
    if {*one} == {*other}:
        frame.empty("Choose two juries that differ in a juror.")
        return
    question = ComparisonQuestion(options, tuple(one), tuple(other))
    coming = worker.ask(person, engine, juries.comparison, question)
    found = frame.computed(coming, "The two juries are being compared")
    if found is not None:
        shown = tables.of_decision(found.decision), tables.of_table(found.table)
        st.html("".join((*shown, tables.noted(found.told))))


def _jury(label: str, heard: Sequence[str], key: str) -> list[str]:
    return st.multiselect(label, [*heard], key=key, bind="query-params")
