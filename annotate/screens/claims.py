"""Claims of a response: with each juror's verdict on the workbench, to be corrected there and by clinicians.

Clinicians reach them once they have rated a response, and are shown no juror's answers.
"""

import html
from collections.abc import Mapping
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate.rating import text_html
from annotate.screens import frame
from annotate.screens.frame import NONE, good, notice, paragraph
from annotate.screens.stored_table import is_to_be_stored
from calibration.messages.form import counted
from data.claims import ABSENT, CONTRADICTED, SUPPORTED, Claim
from data.person import Person
from data.queries import standing
from data.queries.claims import ClaimVerdict, JudgedClaims, claims_on, claims_to_check
from data.schema import ClaimOrigin, Role
from data.store.claims import correct_claims

ABOUT = (
    "A model split the responses that you have rated into single claims. Correct what it left out, made up or "
    "put wrongly. Each claim quotes the words of the response that make it. Your ratings stay as they are."
)
NONE_YET = "There are no claims to check. They come with responses that you have rated."
ABOUT_CORRECTING = (
    "Every claim needs words of the response, letter by letter. The list that counts is the newest; earlier "
    "ones stay in the record. Jurors judge a corrected list at the next run."
)
SIGNS: Mapping[float, str] = {
    SUPPORTED: "supported",
    CONTRADICTED: "contradicted",
    ABSENT: "not in the source",
}
STORED = "claims-stored"
KEPT, AS_BEFORE = (
    "The corrected claims are stored.",
    "The claims are as they were: nothing was stored.",
)


def show(engine: Engine, person: Person) -> None:
    """Show a clinician the claims of responses that they have rated, one at a time."""
    frame.begin(person, "Claims", ABOUT, "workbench.css")
    _told()
    codes = {code: key for key, code in claims_to_check(person, engine).items()}
    if not codes:
        st.html(paragraph(NONE_YET))
        return
    numbers = {code: f"Response {number}" for number, code in enumerate(codes, 1)}
    code = st.selectbox("Response", [*codes], format_func=numbers.__getitem__, key="claims-of")
    for number, judged in enumerate(claims_on(person, engine, codes[code])):
        st.html(
            text_html.heading("Response")
            + text_html.pane(judged.card.response, "Response", "response")
        )
        st.html(table(judged, name=numbers[code]))
        _correct(engine, person, judged, f"{code}-{number}")


def on_response(engine: Engine, person: Person, response: int) -> None:
    """Show on the workbench the claims of a response, with what each juror said of them."""
    lists = claims_on(person, engine, response)
    _told()
    for judged in lists:
        st.html(text_html.heading("Claims") + paragraph(about(judged)) + table(judged))
        if judged.outdated:
            names = ", ".join(judged.outdated)
            st.html(notice(f"Scores derived before the correction: {names}. Run the panel again."))
        if person.role == Role.COORDINATOR and not standing(person, engine).locked:
            with st.expander("Correct these claims", key=f"claims-correct-{response}"):
                _correct(engine, person, judged, f"{response}-{judged.splitter}")


def about(judged: JudgedClaims) -> str:
    """Return who made a list, how much of the response it covers, and the scores derived from it."""
    by_people = judged.origin == ClaimOrigin.PEOPLE
    made = f"corrected by {judged.author}" if by_people else f"split by {judged.splitter}"
    text = (
        f"{counted(len(judged.claims), 'claim')}, {made}, version {judged.versions}; they quote "
        f"{judged.coverage:.0%} of the response's words."
    )
    scores = ", ".join(f"{name} {score:.2f}" for name, score in judged.derived.items())
    return f"{text} Derived: {scores}." if scores else text


def table(judged: JudgedClaims, name: str = "this response") -> str:
    """Return the claims with each juror's verdict, and the words that decide."""
    jurors = [*judged.verdicts]
    heads = "".join(
        f'<th scope="col">{html.escape(one)}</th>' for one in ("Words of the response", *jurors)
    )
    body = "".join(
        f'<tr><th scope="row">{html.escape(claim.claim)}</th><td>{html.escape(claim.quote)}</td>'
        + "".join(f"<td>{_verdict(judged.verdicts[one].get(number))}</td>" for one in jurors)
        + "</tr>"
        for number, claim in enumerate(judged.claims)
    )
    if not body:
        return paragraph("It states nothing that can be checked.")
    return (
        f'<div class="mj-scrolls" tabindex="0" role="region" aria-label="Claims of {html.escape(name)}">'
        '<table class="mj-scores mj-claims"><caption class="mj-unseen">Claims, and whether the material supports '
        f'them</caption><thead><tr><th scope="col">Claim</th>{heads}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _verdict(verdict: ClaimVerdict | None) -> str:
    if verdict is None:
        return NONE
    words = f"<br><small>{html.escape(verdict.evidence)}</small>" if verdict.evidence else ""
    sign = SIGNS.get(verdict.answer, NONE)
    return f"{sign if verdict.answer == SUPPORTED else f'<b>{sign}</b>'}{words}"


def _correct(engine: Engine, person: Person, judged: JudgedClaims, of: str) -> None:
    """Offer the list as a table to write in.

    `of` names it in the page: to clinicians by their own code alone, never by response or model.
    """
    st.html(paragraph(ABOUT_CORRECTING))
    key = f"claims-{of}-{judged.versions}"
    shown: list[dict[str, Any]] = [
        one.model_dump() for one in judged.claims or [Claim(claim="-", quote="-")]
    ]
    edited = st.data_editor(
        shown,
        key=key,
        num_rows="dynamic",
        hide_index=True,
        column_config={
            "claim": st.column_config.TextColumn("Claim", width="large", required=True),
            "quote": st.column_config.TextColumn(
                "Words of the response", width="large", required=True
            ),
        },
    )
    if is_to_be_stored("Store these claims", f"{key}-store", changed=edited != shown):
        with frame.refusals():
            stored = correct_claims(person, engine, judged.response, judged.splitter, edited)
            st.session_state[STORED] = KEPT if stored else AS_BEFORE
            st.rerun()


def _told() -> None:
    if message := st.session_state.pop(STORED, None):
        st.html(good(message))
