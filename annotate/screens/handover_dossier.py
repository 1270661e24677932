"""A reporting guideline filled in from the study: its items, the answers of people, and its files."""

import html
from collections.abc import Mapping
from concurrent.futures import Future

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.screens import frame
from annotate.screens.frame import good, heading, paragraph
from calibration.dossier import (
    Dossier,
    DossierFiles,
    DossierItem,
    DossierQuestion,
    Evidence,
    ItemStatus,
)
from calibration.messages.dossier import STATUS, answered_words, counts_words, statuses_words
from calibration.messages.form import counted
from calibration.writers.dossier import item_lines, note_lines, sections_of
from data.guidelines import (
    GUIDELINES,
    LONGEST_ANSWER,
    Answer,
    AnswerKind,
    Guideline,
    guideline,
    questions,
)
from data.person import Person
from data.queries import names_of_actors
from data.queries.dossiers import KeptAnswer, dossier_answers
from data.store.dossiers import keep_answers

ABOUT = (
    "Each item of a reporting guideline, in our own words, with what of this study answers it: a "
    "figure, a hash or a file. What the study lacks is not done; what only people know is asked below."
)
ABOUT_GUIDELINE = "Where these items are from"
ANSWERED, FILES = "dossier-answered", "dossier-files"
FILL, MAKE = "medjury.services.dossier:dossier", "medjury.services.dossier_files:dossier_files"
ABOUT_ANSWERS = (
    "An answer is kept for every guideline that asks the same. Earlier answers stay in the record, "
    "with who gave them and when. A locked study takes answers too: they change no figure."
)
ABOUT_FILES = "The same as a page that prints, as Markdown, and for a word processor (DOCX)."
MIME = {
    "html": "text/html",
    "md": "text/markdown",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "csv": "text/csv",
}
NAMES = {"html": "HTML", "md": "Markdown", "docx": "DOCX", "csv": "Agreement table (CSV)"}


def show(engine: Engine, person: Person) -> None:
    """Show a guideline's items, ask people what only they know, and offer the files."""
    st.html(heading("Dossier") + paragraph(ABOUT))
    narrow, _ = st.columns((2, 3))
    chosen = narrow.selectbox(
        "Reporting guideline",
        GUIDELINES,
        key="guideline",
        bind="query-params",
        format_func=lambda name: guideline(name).title,
    )
    name = chosen if chosen in GUIDELINES else GUIDELINES[0]
    question = DossierQuestion(name, names=tuple(names_of_actors(person, engine).items()))
    coming: Future[Dossier] = worker.ask(person, engine, FILL, question)
    dossier = frame.computed(
        coming, "The items are filled in: each benchmark is resampled for its figures"
    )
    if dossier is None:
        return
    st.html(tables.of_decision(dossier.decision))
    st.html(
        paragraph(f"Of {len(dossier.items)} items: {counts_words(dossier)}.")
        + tables.folded(ABOUT_GUIDELINE, "".join(map(paragraph, note_lines(dossier))))
    )
    _answer(engine, person, dossier)
    _offer(engine, person, question)
    st.html(heading("Items") + "".join(_section(*group) for group in sections_of(dossier)))


def _section(section: str, items: list[DossierItem]) -> str:
    """Return a section, folded, with how many of its items are done."""
    rows = "".join(map(_row, items))
    return tables.folded(f"{section}: {statuses_words(items)}", f'<dl class="mj-items">{rows}</dl>')


def _row(item: DossierItem) -> str:
    lines = "".join(_line(*line) for line in item_lines(item))
    number, about = html.escape(item.item.number), html.escape(item.item.about)
    return (
        f'<div><dt><span class="mj-item">{number}</span> {about}</dt>'
        f'<dd><span class="mj-status mj-{item.status.value}">{STATUS[item.status]}</span>'
        f"{f'<ul>{lines}</ul>' if lines else ''}</dd></div>"
    )


def _line(text: str, one: Evidence | None) -> str:
    by = answered_words(one) if one else ""
    more = f"<br><small>{html.escape(by)}</small>" if by else ""
    return f'<li><span class="mj-answer">{html.escape(text)}</span>{more}</li>'


def _label(asked: Guideline, kept: Mapping[str, KeptAnswer], alone: int) -> str:
    """Return how many questions are open, and how many items rest on people alone."""
    still_open = sum(name not in kept for name in asked.asks)
    label = f"Questions to people: {still_open} of {len(asked.asks)} open"
    if not alone:
        return label
    return f"{label}, for {counted(alone, 'item')} that only people answer and for parts of others"


def _answer(engine: Engine, person: Person, dossier: Dossier) -> None:
    """Ask one of the guideline's questions, and keep what is answered."""
    kept, asked = dossier_answers(engine), dossier.guideline
    label = _label(asked, kept, dossier.count(ItemStatus.PEOPLE))
    with st.expander(label, expanded=False, key=f"questions-{asked.name}"):
        st.html(paragraph(ABOUT_ANSWERS))
        if message := st.session_state.pop(ANSWERED, None):
            st.html(good(message))
        name = st.selectbox(
            "Question",
            asked.asks,
            key=f"question-{asked.name}",
            format_func=lambda one: f"{questions()[one]}{' (answered)' if one in kept else ''}",
        )
        st.html(paragraph(questions()[name]))
        _form(engine, person, name, kept)


def _form(engine: Engine, person: Person, name: str, kept: Mapping[str, KeptAnswer]) -> None:
    """Ask for an answer where the present one stands, and keep it."""
    present = kept.get(name)
    if present is not None:
        by = names_of_actors(person, engine).get(present.author, present.author)
        st.html(paragraph(f"Answered by {by}, {present.at:%Y-%m-%d %H:%M} UTC."))
    with st.form(f"answer-{name}", border=False):
        text = st.text_area(
            "Answer, or why it does not apply",
            present.answer.text if present else "",
            max_chars=LONGEST_ANSWER,
            key=f"text-{name}",
        )
        apart = st.checkbox(
            "Does not apply to this study",
            present is not None and present.answer.kind is AnswerKind.NOT_APPLICABLE,
            key=f"apart-{name}",
        )
        pressed = st.form_submit_button("Keep this answer", type="primary")
    if pressed:
        with frame.refusals():
            changed = keep_answers(person, engine, {name: _given(text, apart)})
            st.session_state[ANSWERED] = (
                "Kept, and in the record." if changed else "Nothing changed."
            )
            st.session_state.pop(FILES, None)
            st.rerun()


def _given(text: str, apart: bool) -> Answer:
    """Return what was entered; nothing withdraws the answer there was."""
    if apart:
        return Answer(text.strip(), AnswerKind.NOT_APPLICABLE)
    return Answer(text.strip(), AnswerKind.ANSWER if text.strip() else AnswerKind.WITHDRAWN)


def _offer(engine: Engine, person: Person, question: DossierQuestion) -> None:
    """Make the files when asked, then offer each."""
    st.html(heading("Files") + paragraph(ABOUT_FILES))
    if st.button("Make the files", key="dossier-make"):
        coming: Future[DossierFiles] = worker.ask(person, engine, MAKE, question)
        if (
            made := frame.computed(
                coming, "The figures are computed anew, then the files are written"
            )
        ) is not None:
            st.session_state[FILES] = made
    made = st.session_state.get(FILES)
    if made is None or made.guideline != question.guideline:
        return
    for line in made.told:
        st.html(paragraph(line))
    with st.container(horizontal=True, gap="small"):
        for name, body in made.files.items():
            kind = name.rpartition(".")[2]
            st.download_button(
                NAMES[kind], body, name, MIME[kind], key=f"save-{name}", on_click="ignore"
            )
