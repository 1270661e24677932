"""Two juries side by side: the paired difference of their agreement with the clinicians."""

import html
from collections.abc import Sequence

import streamlit as st
from calibration.report.numbers import chance, fixed, interval
from sqlalchemy import Engine

from annotate import tables
from annotate.commands import Figures
from annotate.screens import frame
from data.person import Person

ABOUT = (
    "Two intervals that overlap say nothing about a difference; the paired one does. Both juries "
    "are judged on the responses that both have, and looking counts in p by Holm."
)
ASK = ("Choose two juries to compare.", "Looking counts in p by Holm, and stays in the ledger.")


def show(engine: Engine, person: Person, scope: tuple[str, ...], heard: Sequence[str]) -> None:
    """Ask for two juries, and show their difference once both are chosen and differ."""
    st.html(f'<h2 class="mj-part">Two juries</h2><p class="mj-lead">{ABOUT}</p>')
    if len(heard) < 2:
        frame.empty("Only one juror was heard.", "Run another in the lab to compare two juries.")
        return
    with st.form("two-juries", border=False):  # else each juror added would be a comparison
        first, second = st.columns(2)
        with first:
            one = _jury("One jury", heard, "first")
        with second:
            other = _jury("Minus the other", heard, "second")
        st.form_submit_button("Compare", type="primary")
    if not one or not other:
        frame.empty(*ASK)
        return
    if {*one} == {*other}:
        frame.empty("Choose two juries that differ in a juror.")
        return
    given = [f"--compare={','.join(jury)}" for jury in (one, other)]
    found = frame.figures(person, engine, "juries", *given, *scope)
    if found is not None:
        st.html(_said(found) + _as_table(found))


def _jury(label: str, heard: Sequence[str], key: str) -> list[str]:
    return st.multiselect(label, [*heard], key=key, bind="query-params")


def _said(found: Figures) -> str:
    """Return in a sentence what the difference shows, and what not."""
    low, high = found["low"], found["high"]
    if found["difference"] is None:
        words = "The difference is not defined; the note says why."
    elif low is None:
        words = "There is no interval, so nothing is shown."
    elif low > 0:
        words = "The first jury agrees better."
    elif high < 0:
        words = "The second jury agrees better."
    else:
        words = "No difference is shown, and none is excluded."
    return f'<p class="mj-lead" role="status"><b>{html.escape(words)}</b></p>'


def _as_table(found: Figures) -> str:
    rows = [
        {"what": ", ".join(found["first"]), "icc": found["icc_first"]},
        {"what": ", ".join(found["second"]), "icc": found["icc_second"]},
        {"what": "Difference", "icc": found["difference"]}
        | {"ends": interval(found["low"], found["high"], 3), "p": chance(found["p"])}
        | {"holm": chance(found["p_holm"]), "tried": f"{found['n_tried']:,}"}
        | {"n": f"{found['n_responses']:,}"},
    ]
    named = {"Bootstrap 95 %": "ends", "p": "p", "p, Holm": "holm", "Of tried": "tried"}
    columns = [
        tables.words("Jury", "what"),
        tables.Column("ICC(C,2)", lambda row: fixed(row["icc"], 3)),
        *(
            tables.Column(head, lambda row, key=key: row.get(key, ""))  # type: ignore[misc] # bound now
            for head, key in (named | {"Responses": "n"}).items()
        ),
    ]
    notes = [one for one in found["note"].split("; ") if one and not one.startswith("jury ")]
    return tables.table(rows, columns, "ICC(C,2) with the clinicians, and its difference", notes)
