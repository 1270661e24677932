"""What clinicians are told of the study: its versions, who gave consent, and writing it anew."""

from collections.abc import Sequence

import streamlit as st
from sqlalchemy import Engine
from streamlit.runtime.uploaded_file_manager import UploadedFile

from annotate.description import HEADINGS, as_page
from annotate.screens import frame
from annotate.screens.markup import Cell, good, heading, notice, said, table
from data import queries
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
from data.queries import Consent, Described
from data.schema import Role
from data.store.steering import describe_study

ABOUT = (
    "What clinicians read before they rate, and have at hand while they do. Each submission keeps "
    "the version it was made under; a changed consent text asks everybody for consent again."
)
NONE_YET = (
    "Nothing is described yet: clinicians are told neither what the study is for nor whom to ask."
)
HOW = (
    "Texts are Markdown, without HTML and pictures. Each .md file is a page of the guideline; one of "
    "the same title replaces that page."
)
LOCKED = "A locked study keeps its description."
HEADS = (
    *("Version", "Since (UTC)", "By", "Title", "SHA-256", "Consent text"),
    *("Ratings before", "Submissions under it"),
)
SHORT = 12
HEIGHTS = {"purpose": 110, "responsible": 90, "contact": 90, "instructions": 140, "consent": 160}
SAVED, ROUND, PREVIEW, OPENED = (
    *("description-saved", "description-round"),
    *("description-preview", "description-opened"),
)


def show(engine: Engine, person: Person) -> None:
    """Show the versions, what clinicians see, and who gave consent; let a coordinator write it."""
    versions = queries.study_descriptions(person, engine)
    given = queries.study_consents(person, engine)
    st.html(heading("Description") + said(ABOUT))
    if told := st.session_state.pop(SAVED, None):
        st.html(good(told))
    if versions:
        st.html(_consents(given))
    else:
        st.html(said(NONE_YET))
    present = versions[-1] if versions else None
    if person.role == Role.COORDINATOR:
        if queries.standing(person, engine).locked:
            st.html(said(LOCKED))
        else:
            _write(engine, person, present, given)
    if versions:
        _versions(versions, queries.names_of_actors(person, engine))


def _consents(given: Sequence[Consent]) -> str:
    """Say how many gave consent, and who did not yet."""
    asked = [one for one in given if not one.is_out]
    if not asked:
        return said("Nobody is asked for consent.")
    missing = [one.handle for one in asked if not one.holds]
    waiting = f" Not yet: {', '.join(missing)}." if missing else ""
    done = len(asked) - len(missing)
    return said(f"Consent to the present text: {done:,} of {len(asked):,} clinicians.{waiting}")


def _versions(versions: Sequence[Described], names: dict[str, str]) -> None:
    """Show every version as a line, and the chosen one as clinicians see it."""
    st.html(heading("Versions"))
    rows = [_row(number, versions, names) for number in range(len(versions), 0, -1)]
    st.html(table("Versions of the description", HEADS, rows, words=6))
    numbers = list(range(len(versions), 0, -1))
    number = numbers[0]
    if len(versions) > 1:
        narrow, _ = st.columns((1, 4))
        chosen = narrow.selectbox("Version to read", numbers, key=f"version-{len(versions)}")
        number = chosen or number
    what = (
        "What clinicians see" if number == numbers[0] else f"What clinicians saw, version {number}"
    )
    st.html(heading(what) + as_page(versions[number - 1].description))


def _row(number: int, versions: Sequence[Described], names: dict[str, str]) -> list[Cell]:
    one = versions[number - 1]
    before = versions[number - 2].consent_sha256 if number > 1 else ""
    consent = "none"
    if one.consent_sha256:
        consent = "as before" if one.consent_sha256 == before else "new"
    return [
        *(str(number), f"{one.at:%Y-%m-%d %H:%M}", names.get(one.actor, one.actor)),
        *(one.description.title, one.sha256[:SHORT], consent, one.ratings, one.submissions),
    ]


def _write(
    engine: Engine, person: Person, present: Described | None, given: Sequence[Consent]
) -> None:
    """Ask for the texts, show what clinicians will see, and store exactly that."""
    turn = st.session_state.setdefault(ROUND, 0)
    opened = st.session_state.setdefault(OPENED, present.sha256 if present else "")
    label = "Write the description" if present is None else "Change the description"
    with st.expander(label, expanded=present is None):
        if present is not None and present.sha256 != opened:
            st.html(
                notice(
                    "It was changed by somebody else meanwhile. Saving replaces that; reload the page to begin from it."
                )
            )
        texts = _texts(present.description if present else None, turn)
        with frame.refusals():
            guideline = _guideline(present.description.guideline if present else (), turn)
            pressed = st.button("Show what clinicians will see", key=f"describe-show-{turn}")
            if pressed:
                st.session_state[PREVIEW] = Description(**texts, guideline=guideline)
            _preview(engine, person, {**texts, "guideline": guideline}, given)


def _texts(present: Description | None, turn: int) -> dict[str, str]:
    """Ask for the title and the texts."""
    st.html(said(HOW))
    title = st.text_input(
        "Title",
        present.title if present else "",
        max_chars=LONGEST_TITLE,
        key=f"describe-title-{turn}",
    )
    told = {"purpose": _text("purpose", present, turn)}
    left, right = st.columns(2)
    with left:
        told["responsible"] = _text("responsible", present, turn)
    with right:
        told["contact"] = _text("contact", present, turn)
    told |= {name: _text(name, present, turn) for name in TEXTS if name not in told}
    return {"title": " ".join(title.split())} | told


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
    added = [guideline_page(one.name, one.getvalue()) for one in files]
    pages = {one.title: one for one in (*present, *added)}
    if not pages:
        return ()
    key, known = f"describe-pages-{turn}", f"describe-known-{turn}"
    fresh = [one for one in pages if one not in st.session_state.get(known, ())]
    kept = [one for one in st.session_state.get(key, ()) if one in pages]
    st.session_state[known], st.session_state[key] = [*pages], [*kept, *fresh]
    chosen = st.multiselect("Pages of the guideline, in this order", [*pages], key=key)
    return tuple(pages[one] for one in chosen)


def _preview(
    engine: Engine, person: Person, fields: dict[str, object], given: Sequence[Consent]
) -> None:
    """Show the description that would be stored, what that means, and store it."""
    wanted: Description | None = st.session_state.get(PREVIEW)
    if wanted is None:
        return
    if any(getattr(wanted, name) != value for name, value in fields.items()):
        st.html(notice("The fields were changed since: show it again before you save."))
        return
    st.html(heading("Exactly what clinicians will see") + as_page(wanted))
    st.html(_meaning(wanted, given))
    if st.button("Save this description", type="primary", key="describe-save"):
        changed = describe_study(person, engine, wanted)
        st.session_state[SAVED] = (
            "Saved, and in the record." if changed else "Nothing changed: it is what they are told."
        )
        st.session_state[ROUND] += 1
        for key in (PREVIEW, OPENED):
            st.session_state.pop(key, None)
        st.rerun()


def _meaning(wanted: Description, given: Sequence[Consent]) -> str:
    """Say who will be asked for consent, and what clinicians are not told."""
    asked = wanted.consent_sha256
    holding = sum(one.sha256 == asked for one in given)
    told = [f"Nothing is said of: {', '.join(wanted.untold)}."] if wanted.untold else []
    if not asked:
        told.append("Nobody is asked for consent.")
    elif holding:
        told.append(f"{holding:,} gave consent to this very text, and are not asked again.")
    else:
        told.append("Nobody has given consent to this text yet: everybody is asked before rating.")
    return "".join(said(one) for one in told)
