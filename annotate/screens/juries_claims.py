"""Claims on the juries screen: the jury that judges claims beside the plain one, in gain and price."""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.results import ShownClaims
from annotate.screens import frame
from annotate.screens.frame import heading, lead
from calibration.tables.meanings import TRIED_SHORT
from calibration.values import AnalysisOptions
from data.person import Person
from medjury.services.claims import ClaimsJury, ClaimsQuestion

COMPARED = "annotate.analyses:claims_compared"
ASKED = "claims-asked"  # in the session: the question that was asked last
ABOUT = (
    "A jury that judges claims gives its plain verdict first. Then each response is split into claims, each "
    "juror looks each claim up in the source, and one criterion is derived from the answers. Both juries are "
    "compared with the clinicians on the same responses, with what each has cost."
)
ASK = (
    "Choose what to compare.",
    f"Each comparison is kept in the ledger. {TRIED_SHORT}",
)
NOBODY = "Choose at least one juror."
COMPARING = "Both juries are compared with the clinicians, resample by resample"
MEAN = "mean of all criteria"


def show(
    engine: Engine, person: Person, options: AnalysisOptions, juries: Sequence[ClaimsJury]
) -> None:
    """Ask which jury and on what, and show gain and price once that was asked.

    `options` are the screen's: its criterion is not used, as the jury derives its own.
    """
    st.html(heading("Claims") + lead(ABOUT))
    jury = _chosen(juries)
    with st.form("claims", border=False):  # else each juror taken out would be a comparison
        who, what = st.columns(2)
        seated = who.multiselect(
            "Jurors of this jury", [*jury.judges], default=[*jury.judges], key=f"of-{jury.judges}"
        )
        on = what.selectbox("On", [jury.criterion, MEAN], key=f"on-{jury.criterion}")
        begun = st.form_submit_button("Compare with the plain jury", type="primary")
    seats = tuple(seat for seat in jury.seats if seat[0] in seated)
    asked = ClaimsQuestion(
        replace(jury, seats=seats), replace(options, criterion=None), composite=on == MEAN
    )
    if begun:
        st.session_state[ASKED] = asked
    if not seats:
        frame.empty(NOBODY)
    elif st.session_state.get(ASKED) == asked:
        _compared(engine, person, asked)
    else:
        frame.empty(*ASK)


def _chosen(juries: Sequence[ClaimsJury]) -> ClaimsJury:
    """Ask which jury of claims, where there are several."""
    if len(juries) == 1:
        return juries[0]
    names = {", ".join(jury.judges): jury for jury in juries}
    return names[st.selectbox("Jury of claims", [*names], key="claims-jury")]


def _compared(engine: Engine, person: Person, asked: ClaimsQuestion) -> None:
    """Show both juries side by side, what they cost, and the claims."""
    coming: Future[ShownClaims] = worker.ask(person, engine, COMPARED, asked)
    found = frame.computed(coming, COMPARING)
    if found is not None:
        shown = tables.of_decision(found.decision), *map(tables.of_table, found.tables)
        st.html("".join((*shown, tables.noted(found.told))))
