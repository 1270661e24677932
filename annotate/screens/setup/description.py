"""What clinicians are told of the study: its versions, who gave consent, and writing it anew."""

from collections.abc import Sequence

import streamlit as st
from sqlalchemy import Engine
from streamlit.runtime.uploaded_file_manager import UploadedFile

from annotate.description import HEADINGS, as_page
from annotate.screens import frame
from annotate.screens.frame import show_heading, show_text
from data.description import (
    LONGEST_TEXT,
    LONGEST_TITLE,
    TEXTS,
    Description,
    GuidelinePage,
    clean,
    guideline_page,
)
from data.person import Person
from data.safe_text import on_page
from data.schema import Role
from data.study import people, steering
from data.study.settings import Consent, DescriptionVersion
from data.study.steering import describe_study

ABOUT = (
    "What clinicians read before they rate, and have at hand while they do. Each submission keeps "
    "the version it was made under; a changed consent text asks everybody for consent again."
)
NONE_YET = "There is no description yet: clinicians are told neither the purpose of the study nor whom to ask."
HOW = (
    "Texts are Markdown, without HTML and pictures. Each .md file is a page of the guideline; one of "
    "the same title replaces that page."
)
LOCKED = "A locked study keeps its description."
ABOUT_COLUMNS = {
    "SHA-256": "Of all its texts, as the record has it",
    "Consent text": "Whether clinicians were asked for consent again",
    "Ratings before": "Clinicians' ratings that were in when it was set",
    "Submissions under it": "Submissions made while it was shown",
}
SHORT = 12
HEIGHTS = {"purpose": 110, "responsible": 90, "contact": 90, "instructions": 140, "consent": 160}
SAVED, ROUND, PREVIEW, OPENED = (
    *("description-saved", "description-round"),
    *("description-preview", "description-opened"),
)


def show(engine: Engine, person: Person) -> None:
    """Show the versions, what clinicians see, and who gave consent; let a coordinator write it."""
    versions = steering.study_descriptions(person, engine)
    consents = steering.study_consents(person, engine)
    show_heading("Description", ABOUT)
    frame.show_message(SAVED)
    if versions:
        show_text(_consents(consents))
    else:
        show_text(NONE_YET)
    present = versions[-1] if versions else None
    if person.role == Role.COORDINATOR:
        if steering.standing(person, engine).locked:
            show_text(LOCKED)
        else:
            _write(engine, person, present, consents)
    if versions:
        _versions(versions, people.names_of_actors(person, engine))


def _consents(consents: Sequence[Consent]) -> str:
    """Say how many gave consent, and who did not yet."""
    asked_of = [consent for consent in consents if not consent.is_out]
    if not asked_of:
        return "Nobody is asked for consent."
    missing = [consent.handle for consent in asked_of if not consent.holds]
    waiting = f" Not yet: {', '.join(missing)}." if missing else ""
    done = len(asked_of) - len(missing)
    return f"Consent to the present text: {done:,} of {len(asked_of):,} clinicians.{waiting}"


def _versions(versions: Sequence[DescriptionVersion], names: dict[str, str]) -> None:
    """Show every version as a line, and the chosen one as clinicians see it."""
    show_heading("Versions")
    rows = [_row(number, versions, names) for number in range(len(versions), 0, -1)]
    frame.show_rows("Versions of the description", rows, ABOUT_COLUMNS)
    numbers = list(range(len(versions), 0, -1))
    number = numbers[0]
    if len(versions) > 1:
        narrow, _ = st.columns((1, 4))
        chosen = narrow.selectbox("Version to read", numbers, key=f"version-{len(versions)}")
        number = chosen or number
    title = (
        "What clinicians see" if number == numbers[0] else f"What clinicians saw, version {number}"
    )
    show_heading(title)
    st.html(as_page(versions[number - 1].description))


def _row(
    number: int, versions: Sequence[DescriptionVersion], names: dict[str, str]
) -> dict[str, object]:
    version = versions[number - 1]
    before = versions[number - 2].consent_sha256 if number > 1 else ""
    consent = "none"
    if version.consent_sha256:
        consent = "as before" if version.consent_sha256 == before else "new"
    return {
        "Version": number,
        "Since (UTC)": version.at,
        "By": names.get(version.actor, version.actor),
        "Title": version.description.title,
        "SHA-256": version.sha256[:SHORT],
        "Consent text": consent,
        "Ratings before": version.ratings,
        "Submissions under it": version.submissions,
    }


def _write(
    engine: Engine, person: Person, present: DescriptionVersion | None, consents: Sequence[Consent]
) -> None:
    """Ask for the texts, show what clinicians will see, and store exactly that."""
    turn = st.session_state.setdefault(ROUND, 0)
    opened = st.session_state.setdefault(OPENED, present.sha256 if present else "")
    label = "Write the description" if present is None else "Change the description"
    with st.expander(label, expanded=present is None):
        if present is not None and present.sha256 != opened:
            st.warning(
                "Somebody else has changed the description meanwhile. Saving replaces their "
                "text; reload the page to start from it."
            )
        texts = _texts(present.description if present else None, turn)
        with frame.refusals():
            guideline = _guideline(present.description.guideline if present else (), turn)
            pressed = st.button("Show what clinicians will see", key=f"describe-show-{turn}")
            if pressed:
                st.session_state[PREVIEW] = Description(**texts, guideline=guideline)
            _preview(engine, person, {**texts, "guideline": guideline}, consents)


def _texts(present: Description | None, turn: int) -> dict[str, str]:
    """Ask for the title and the texts."""
    show_text(HOW)
    title = st.text_input(
        "Title",
        present.title if present else "",
        max_chars=LONGEST_TITLE,
        key=f"describe-title-{turn}",
    )
    texts = {"purpose": _text("purpose", present, turn)}
    left_column, right = st.columns(2)
    with left_column:
        texts["responsible"] = _text("responsible", present, turn)
    with right:
        texts["contact"] = _text("contact", present, turn)
    texts |= {name: _text(name, present, turn) for name in TEXTS if name not in texts}
    return {"title": " ".join(title.split())} | texts


def _text(name: str, present: Description | None, turn: int) -> str:
    """Ask for one of the texts, where the page is."""
    optional = " (optional)" if name in ("instructions", "consent") else ""
    text = st.text_area(
        HEADINGS[name] + optional,
        getattr(present, name) if present else "",
        height=HEIGHTS[name],
        max_chars=LONGEST_TEXT,
        key=f"describe-{name}-{turn}",
    )
    return clean(text)


def _guideline(present: Sequence[GuidelinePage], turn: int) -> tuple[GuidelinePage, ...]:
    """Ask for the pages of the guideline: those there are, and files; which stay, in which order."""
    files: list[UploadedFile] = st.file_uploader(
        "Guideline pages to add (.md)", accept_multiple_files=True, key=f"describe-files-{turn}"
    )
    added = [guideline_page(file.name, file.getvalue()) for file in files]
    pages = {page.title: page for page in (*present, *added)}
    if not pages:
        return ()
    key, known = f"describe-pages-{turn}", f"describe-known-{turn}"
    fresh = [title for title in pages if title not in st.session_state.get(known, ())]
    still_chosen = [title for title in st.session_state.get(key, ()) if title in pages]
    st.session_state[known], st.session_state[key] = [*pages], [*still_chosen, *fresh]
    chosen = st.multiselect("Pages of the guideline, in this order", [*pages], key=key)
    return tuple(pages[title] for title in chosen)


def _preview(
    engine: Engine, person: Person, fields: dict[str, object], consents: Sequence[Consent]
) -> None:
    """Show the description that would be stored, what that means, and store it."""
    description: Description | None = st.session_state.get(PREVIEW)
    if description is None:
        return
    if any(getattr(description, name) != value for name, value in fields.items()):
        st.warning(on_page("The fields were changed since: show it again before you save."))
        return
    show_heading("Exactly what clinicians will see")
    st.html(as_page(description))
    for sentence in _meaning(description, consents):
        show_text(sentence)
    if st.button("Save this description", type="primary", key="describe-save"):
        changed = describe_study(person, engine, description, person.actor)
        st.session_state[SAVED] = (
            "Saved, and in the record."
            if changed
            else "Nothing changed: clinicians already see this text."
        )
        st.session_state[ROUND] += 1
        for key in (PREVIEW, OPENED):
            st.session_state.pop(key, None)
        st.rerun()


def _meaning(description: Description, consents: Sequence[Consent]) -> list[str]:
    """Say who will be asked for consent, and what clinicians are not told."""
    consent_sha256 = description.consent_sha256
    holding = sum(consent.sha256 == consent_sha256 for consent in consents)
    sentences = (
        [f"The description does not state: {', '.join(description.untold)}."]
        if description.untold
        else []
    )
    if not consent_sha256:
        sentences.append("Nobody is asked for consent.")
    elif holding:
        sentences.append(f"{holding:,} gave consent to this very text, and are not asked again.")
    else:
        sentences.append(
            "Nobody has given consent to this text yet: everybody is asked before rating."
        )
    return sentences
