"""Tags and a note that reviewers put on a response of the workbench. Raters are shown neither."""

import html
from collections.abc import Sequence

import streamlit as st
from sqlalchemy import Engine

from annotate.rating import text_html
from annotate.screens import frame
from annotate.screens.frame import paragraph
from calibration.notes import counted
from data.errors import MedjuryError
from data.person import Person
from data.study.reviews import (
    LONGEST_NOTE,
    Note,
    ReviewOf,
    change_tags,
    keep_note,
    review_of,
    tag_counts,
)

REFUSED = "review-refused"
HELP = "Short words of your own, or ones in use. Every reviewer sees them, and no rater does."


def ask_tags(engine: Engine, person: Person) -> tuple[tuple[str, ...], bool]:
    """Ask for the tags, any of which is wanted, and whether a note is."""
    in_use = tag_counts(person, engine)
    tags = st.multiselect(
        "Tag",
        [*in_use],
        key="tag",
        bind="query-params",
        placeholder="any of these" if in_use else "no response has a tag",
    )
    noted = st.checkbox("With a note", key="noted", bind="query-params")
    return tuple(sorted(tag for tag in tags if tag in in_use)), noted


def show(engine: Engine, person: Person, response: int) -> None:
    """Show the tags and the note of a response, to be changed."""
    review = review_of(person, engine, response)
    st.html(text_html.heading("Review"))
    _tags(engine, person, response, review)
    if message := st.session_state.pop(REFUSED, None):
        st.html(frame.refused(message))
    if review.notes:
        st.html(notes(review))
    label = "Change the note" if review.note else "Write a note"
    # Another note, whoever wrote it, is another field: what is stored stands in it.
    number = f"{response}-{len(review.notes)}"
    with (
        st.expander(label, key=f"noting-{number}"),
        st.form(f"note-form-{number}", border=False),
    ):
        st.text_area("Note", review.note, max_chars=LONGEST_NOTE, key=f"note-{number}")
        # A callback: a click that follows at once may stop a run before it reads this button.
        st.form_submit_button(
            "Keep the note", on_click=_store_note, args=(engine, person, response, number)
        )


def _store_note(engine: Engine, person: Person, response: int, number: str) -> None:
    """Store the note as it stands in its field."""
    try:
        keep_note(person, engine, response, st.session_state[f"note-{number}"])
    except MedjuryError as error:
        st.session_state[REFUSED] = str(error)


def _tags(engine: Engine, person: Person, response: int, review: ReviewOf) -> None:
    """Ask for the tags of a response; each change is stored at once."""
    key, present = f"tags-{response}", [*review.tags]
    if st.session_state.get(key) != present:
        st.session_state[key] = present
    st.multiselect(
        "Tags",
        list(dict.fromkeys([*present, *tag_counts(person, engine)])),
        key=key,
        accept_new_options=True,
        placeholder="none yet",
        help=HELP,
        on_change=_store_tags,
        args=(engine, person, response, present),
    )


def _store_tags(engine: Engine, person: Person, response: int, shown: Sequence[str]) -> None:
    """Store what was put on and taken off of the tags that were shown."""
    wanted = st.session_state[f"tags-{response}"]
    put_on = [tag for tag in wanted if tag not in shown]
    taken_off = [tag for tag in shown if tag not in wanted]
    try:
        change_tags(person, engine, response, put_on=put_on, taken_off=taken_off)
    except MedjuryError as error:
        st.session_state[REFUSED] = str(error)


def notes(review: ReviewOf) -> str:
    """Return the note that counts, and folded below it the earlier ones; there is at least one."""
    newest, *earlier = review.notes
    shown = _note(newest) if newest.text else paragraph("The note was taken away.")
    if not earlier:
        return shown
    told = "".join(f"<li>{_note(line)}</li>" for line in earlier if line.text)
    label = counted(len(earlier), "earlier note")
    return f'{shown}<details class="mj-earlier"><summary>{label}</summary><ul>{told}</ul></details>'


def _note(line: Note) -> str:
    who = html.escape(f"{line.reviewer}, {line.at:%d %b %Y %H:%M} UTC")
    return f'<div class="mj-note-line"><p>{html.escape(line.text)}</p><small>{who}</small></div>'
