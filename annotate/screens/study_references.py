"""References checked by jurors, under Study > Material: counts, and each with its source and the answers."""

import html

import streamlit as st
from sqlalchemy import Engine

from annotate.screens import frame
from annotate.screens.frame import Cell, caption, heading, notice, paragraph, table
from data.person import Person
from data.study.references import (
    CheckedReference,
    ReferenceAnswer,
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
COUNTS = ("References", "Number")
ANSWERS = ("Juror", "Facts its source lacks", "Which")
TO_READ = "Read a reference and what jurors said of it"


def show(engine: Engine, person: Person) -> None:
    """Show how many references are marked, sound and not known, and one of them to read."""
    checked = checked_references(person, engine)
    st.html(heading("References checked by jurors"))
    if not checked.jurors:
        st.html(paragraph(NOT_ASKED))
        return
    made_up = notice(SIMULATED) if checked.simulated else ""
    st.html(paragraph(ABOUT) + made_up + _counts(checked) + caption(RULE))
    with st.expander(TO_READ, key="references-to-read"):
        _read(engine, person, checked)


def _counts(checked: References) -> str:
    """Return the number of references of each verdict, and whose answers count."""
    rows: list[list[Cell]] = [
        ["Marked: facts its source lacks", len(checked.marked)],
        ["Sound", len(checked.sound)],
        ["Not known", len(checked.not_known)],
        ["Without a reference or a source: not asked about", len(checked.unchecked)],
    ]
    return table("References by verdict", COUNTS, rows) + paragraph(
        f"Jurors whose answers count: {', '.join(checked.jurors)}."
    )


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
    st.html(_answers(reference))
    source, text = st.columns(2)
    source.html(_text("Source", reference.context) + _text("Prompt", reference.prompt))
    text.html(_text("Reference", reference.reference))


def _answers(reference: CheckedReference) -> str:
    """Return each juror's newest answer; facts are the juror's own words."""
    if not reference.answers:
        return paragraph("No juror answered about it.")
    rows = [_row(answer) for answer in reference.answers]
    return table(f"Answers about {reference.name}", ANSWERS, rows, words=3)


def _row(answer: ReferenceAnswer) -> list[Cell]:
    who = f"{answer.juror} (simulated)" if answer.simulated else answer.juror
    return [who, "yes" if answer.absent else "no", "; ".join(answer.facts) or None]


def _text(name: str, text: str) -> str:
    """Return a text word for word under its name; nothing for none."""
    if not text:
        return ""
    return (
        f'{frame.heading(name)}<div class="mj-verbatim" tabindex="0" role="region" '
        f'aria-label="{name}">{html.escape(text)}</div>'
    )
