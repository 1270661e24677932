"""References checked by jurors, under Set up, Notes: counts, and each with its source and the answers."""

import html

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import show_text
from data.person import Person
from data.safe_text import on_page
from data.study.references import (
    CheckedReference,
    References,
    checked_references,
    opened_reference,
)

ABOUT = (
    "A reference can state facts that its source does not hold; a response that keeps to the source then "
    "looks incomplete. Jurors who were asked said of each reference whether it does."
)
NOT_ASKED = (
    "No juror has been asked yet whether references state facts that their sources lack. Whoever runs the "
    "server can have a panel asked; it costs a call for each reference and juror."
)
RULE = (
    "Marked: more than half of the jurors who answered, and at least two, say that it states facts its "
    "source lacks. Sound: more than half, and at least two, say that it does not. A tie, or fewer than two "
    "answers, is not known. Agreement can leave marked references out: References, sound."
)
SIMULATED = "These answers are simulated: they say nothing of the references."
MARKED, NOT_KNOWN, SOUND = "marked", "not known", "sound"
TO_READ = "Read a reference and what jurors said of it"


def show(engine: Engine, person: Person) -> None:
    """Show how many references are marked, sound and not known, and one of them to read."""
    checked = checked_references(person, engine)
    if not checked.jurors:
        show_text(NOT_ASKED)
        return
    show_text(ABOUT)
    if checked.simulated:
        st.warning(on_page(SIMULATED))
    frame.show_rows("References by verdict", _counts(checked))
    show_text(f"Jurors whose answers count: {', '.join(checked.jurors)}.")
    st.caption(on_page(RULE))
    with st.expander(TO_READ, key="references-to-read"):
        _read(engine, person, checked)


def _counts(checked: References) -> list[dict[str, object]]:
    """Return the number of references of each verdict."""
    numbers = {
        "Marked: facts its source lacks": checked.marked,
        "Sound": checked.sound,
        "Not known": checked.not_known,
        "Without a reference or a source: not asked about": checked.unchecked,
    }
    return [{"References": name, "Number": len(those)} for name, those in numbers.items()]


def _read(engine: Engine, person: Person, checked: References) -> None:
    """Let one reference be chosen, the marked first, and show it beside its source."""
    verdicts = dict.fromkeys(sorted(checked.marked), MARKED)
    verdicts |= dict.fromkeys(sorted(checked.not_known), NOT_KNOWN)
    verdicts |= dict.fromkeys(sorted(checked.sound), SOUND)
    name = st.selectbox(
        "Reference",
        [*verdicts],
        key="reference-to-read",
        format_func=lambda one: f"{one} ({verdicts[one]})",
    )
    reference = opened_reference(person, engine, name) if name else None
    if reference is None:
        return
    _show_answers(reference)
    source, text = st.columns(2)
    source.html(_text("Source", reference.context) + _text("Prompt", reference.prompt))
    text.html(_text("Reference", reference.reference))


def _show_answers(reference: CheckedReference) -> None:
    """Show each juror's newest answer; facts are the juror's own words."""
    if not reference.answers:
        show_text("No juror answered about it.")
        return
    rows = [
        {
            "Juror": f"{one.juror} (simulated)" if one.simulated else one.juror,
            "Facts its source lacks": "yes" if one.absent else "no",
            "Which": "; ".join(one.facts) or None,
        }
        for one in reference.answers
    ]
    frame.show_rows(f"Answers about {reference.name}", rows)


def _text(name: str, text: str) -> str:
    """Return a text word for word under its name; nothing for none."""
    if not text:
        return ""
    return (
        f'<p class="mj-label">{name}</p><div class="mj-verbatim" tabindex="0" role="region" '
        f'aria-label="{name}">{html.escape(text)}</div>'
    )
