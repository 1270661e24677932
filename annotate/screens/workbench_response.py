"""One response on the workbench: its texts, all scores side by side, comments, and calls."""

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from operator import itemgetter

import streamlit as st
from sqlalchemy import Engine

from annotate.rating import text_html
from annotate.rating.text_html import PICTURES
from annotate.screens.markup import Cell, heading, notice, said, table
from data import queries
from data.card import Marked as Stretch
from data.person import Person
from data.queries.lab import CallView, Opened, Opinion
from data.queries.lab_workbench import Compared
from data.schema import Kind
from jury.ask import AGAIN, request_sha256
from jury.call import Call, Message
from jury.panel import Juror
from jury.parse import storable
from jury.providers import FORMS

NOTHING_SENT = "not asked: no request was sent"
WORDS = {
    "flag": "flagged",
    "not_enough_context": "not enough context",
    "names_author": "names its author",
}
Marked = tuple[str, Stretch]  # who, what
MAX_TOKENS = 1500


def show(engine: Engine, person: Person, rows: Sequence[Compared], at: int) -> None:
    """Show the response at a place of the list, and the way to its neighbours."""
    _ways(rows, at)
    opened = queries.opened_response(person, engine, rows[at].response)
    if opened is None:
        return
    _texts(opened)
    st.html(heading("Scores") + _scores(opened) + _apart(rows[at]))
    if comments := _comments(opened):
        st.html(comments)
    _calls(opened)


def _ways(rows: Sequence[Compared], at: int) -> None:
    """Offer the list, the one before and the next, by mouse and by key."""
    with st.container(key="workbench-ways", horizontal=True, vertical_alignment="center"):
        if st.button("Back to the list", key="back", shortcut="B"):
            del st.query_params["response"]
            st.rerun()
        for name, key, to in (("Previous", "P", at - 1), ("Next", "N", at + 1)):
            there = 0 <= to < len(rows)
            if st.button(name, key=f"to-{key}", shortcut=key, disabled=not there) and there:
                st.query_params["response"] = rows[to].response_id
                st.rerun()
        one = rows[at]
        st.html(
            f'<p class="mj-at" role="status"><b>{html.escape(one.response_id)}</b> '
            f"{html.escape(one.benchmark)} \N{MIDDLE DOT} {at + 1} of {len(rows)}</p>"
        )


def _texts(opened: Opened) -> None:
    """Show what raters were given, and the response with all that clinicians marked in it."""
    card = opened.card
    source, response = st.columns(2)
    with source:
        if card.prompt:
            st.html(text_html.heading("Task") + text_html.pane(card.prompt, "Task", "task"))
        if card.context:
            st.html(
                text_html.heading("Source")
                + text_html.pane(card.context, "Source", "context", folds=True)
            )
        if card.reference:
            st.html(
                text_html.heading("Reference")
                + text_html.pane(card.reference, "Reference", "reference")
            )
    stretches = [(one.who, mark) for one in opened.opinions for mark in one.stretches]
    response.html(
        text_html.heading("Response, as raters see it")
        + marked_pane(card.response, stretches)
        + marks_legend(stretches)
    )


def _scores(opened: Opened) -> str:
    """Return every reading and every verdict as a row, criteria as columns."""
    criteria = opened.rubric.criteria
    rows: list[list[Cell]] = []
    for one in opened.opinions:
        points = [one.scores.get(name) for name in criteria]
        given = [point for point in points if point is not None]
        mean = f"{sum(given) / len(given):.2f}" if given and len(given) == len(criteria) else None
        flags = ", ".join(WORDS.get(kind, kind) for kind, _ in one.flags)
        cells = [None if point is None else f"{point:g}" for point in points]
        rows.append([_name(one), str(one.kind), flags or None, *cells, mean])
    failed = {one.juror: one for one in opened.calls}
    scored = {one.who for one in opened.opinions if one.scores}
    for juror, call in sorted(failed.items(), key=itemgetter(0)):
        if juror not in scored:
            rows.append([juror, "juror", call.status, *[None for _ in criteria], None])
    heads = ("Rater", "Kind", "Said besides", *criteria, "Mean")
    return table("Scores of this response", heads, rows, words=3)


READINGS = {"third": "third reading", "consensus": "consensus reading"}


def _name(one: Opinion) -> str:
    """Return a rater with what kind of reading it was."""
    parts = [one.who]
    parts += [READINGS[one.reading]] if one.reading in READINGS else []
    parts += ["hidden repeat"] if one.repeat and one.reading == "independent" else []
    parts += [f"verdict {one.replicate + 1}"] if one.replicate else []
    return ", ".join(parts + (["simulated"] if one.simulated else []))


def _apart(one: Compared) -> str:
    """Return both sides' means in a sentence."""
    if one.difference is None:
        return said("One of the sides has no mean here, so they cannot be compared.")
    people, jury = one.clinicians, one.jury
    return said(
        f"Clinicians {people.mean:.2f} ({people.scored}), jury {jury.mean:.2f} ({jury.scored} of "
        f"{jury.of} jurors): the jury is {abs(one.difference):.2f} "
        f"{'higher' if one.difference > 0 else 'lower'}."
        if one.difference
        else f"Clinicians and jury agree on {people.mean:.2f}."
    )


def _comments(opened: Opened) -> str:
    """Return what raters wrote, word for word; a comment on the whole stands once."""
    found = []
    for one in opened.opinions:
        lines = [
            (names, words)
            for words in dict.fromkeys(words for words in one.comments.values() if words)
            for names in [", ".join(name for name, own in one.comments.items() if own == words)]
        ]
        told = {words for _, words in lines}
        lines += [(WORDS.get(kind, kind), words) for kind, words in one.flags if words not in told]
        items = "".join(
            f"<dt>{html.escape(name)}</dt><dd>{html.escape(words)}</dd>"
            for name, words in lines
            if words
        )
        if items:
            kind = "juror's explanations" if one.kind == Kind.JUROR else "clinician's comments"
            found.append(
                f'<div class="mj-words"><h3>{html.escape(_name(one))} <small>{kind}</small></h3>'
                f"<dl>{items}</dl></div>"
            )
    if not found:
        return ""
    return heading("Comments and explanations") + f'<div class="mj-all">{"".join(found)}</div>'


def _calls(opened: Opened) -> None:
    """Show each call to a juror: what was sent, what came back, word for word."""
    st.html(heading("Calls to jurors"))
    jurors = sorted({one.juror for one in opened.calls})
    if not jurors:
        st.html(said("No juror was asked from here; imported scores come without calls."))
        return
    juror = st.segmented_control(
        "Juror", jurors, default=jurors[0], required=True, key="calls", label_visibility="collapsed"
    )
    own = [one for one in opened.calls if one.juror == juror]
    for place, call in enumerate(own):
        before = [one for one in own[:place] if one.replicate == call.replicate]
        _call(call, before)


def _call(call: CallView, before: Sequence[CallView]) -> None:
    """Show one call."""
    st.html(_call_line(call))
    if not call.number:
        st.html(said(NOTHING_SENT))
        return
    prompt = prompt_of(call, before)
    sent, came = st.columns(2)
    label = f"{call.juror}, call {call.number}"
    turns = "\n\n".join(
        one.text if len(prompt.turns) == 1 else f"[{one.role}]\n{one.text}" for one in prompt.turns
    )
    sent.html(
        text_html.heading("Prompt sent") + text_html.pane(turns, f"Prompt of {label}", "sent")
    )
    came.html(
        text_html.heading("Raw answer") + text_html.pane(call.raw, f"Answer of {label}", "raw")
    )
    if not prompt.exact:
        sent.html(
            notice(
                "Made again from the rubric and the response as they are now; the hash "
                "stored with the call says that it was not word for word this."
            )
        )
    else:
        sent.html(said("Word for word what was sent: its SHA-256 is the one stored with the call."))


def _call_line(call: CallView) -> str:
    """Return a call's figures in a line."""
    usd = "price unknown" if call.usd is None else f"${call.usd:.5f}"
    tokens = [f"{one:,}" if one is not None else "?" for one in (call.tokens_in, call.tokens_out)]
    parts = [
        f"call {call.number}" + (f", verdict {call.replicate + 1}" if call.replicate else ""),
        call.reason,
        f"{call.at:%d %b %Y %H:%M} UTC",
        f"answered as {call.returned_model}" if call.returned_model else "",
        f"{tokens[0]} tokens in, {tokens[1]} out",
        usd,
        f"{call.latency_seconds:.1f} s",
    ]
    told = html.escape(" \N{MIDDLE DOT} ".join(part for part in parts if part))
    kind = "mj-done" if call.status == "ok" else "mj-bad"
    return f'<p class="mj-call"><span class="mj-state {kind}">{html.escape(call.status)}</span> {told}</p>'


def marked_pane(text: str, stretches: Sequence[Marked]) -> str:
    """Return the response's box; a stretch is underlined by its kind and carries its numbers."""
    edges = {0, len(text)}
    for _, one in stretches:
        edges |= {max(0, min(one.start, len(text))), max(0, min(one.end, len(text)))}
    places = sorted(edges)
    parts = [_part(text, a, b, stretches) for a, b in pairwise(places)]
    return (
        '<div class="mj-pane mj-answer" tabindex="0" role="region" aria-label="Response">'
        f'<div class="mj-text">{"".join(parts)}</div></div>'
    )


def marks_legend(stretches: Sequence[Marked]) -> str:
    """Return who marked what, by number."""
    if not stretches:
        return ""
    items = "".join(
        f"<li><b>{html.escape(one.error)}</b>, {html.escape(one.criterion)} "
        f"<small>{html.escape(who)}</small>{_note(one.note)}</li>"
        for who, one in stretches
    )
    return f'<ol class="mj-marks" aria-label="Marked stretches">{items}</ol>'


def _part(text: str, start: int, end: int, stretches: Sequence[Marked]) -> str:
    """Return a piece of the text that the same stretches cover."""
    words = text[start:end].replace("\r\n", "\n").replace("\r", "\n").translate(PICTURES)
    shown = html.escape(words)
    over = [
        (number, one)
        for number, (_, one) in enumerate(stretches, 1)
        if one.start <= start and one.end >= end
    ]
    if not over:
        return shown
    ending = [str(number) for number, one in over if one.end == end]
    numbers = f"<sup>{','.join(ending)}</sup>" if ending else ""
    kind = html.escape(over[0][1].error)
    return f'<mark class="mj-marked mj-{kind}">{shown}{numbers}</mark>'


def _note(note: str) -> str:
    return f": {html.escape(note)}" if note else ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The conversation of one call; `exact` where its hash is the one stored with the call."""

    turns: tuple[Message, ...]
    exact: bool


def prompt_of(call: CallView, before: Sequence[CallView]) -> Prompt:
    """Return what a juror was sent in a call; `before` are the earlier calls of this verdict.

    A study stores of each request its settings and the SHA-256 of all that makes it, not its text a
    second time. The text follows from the rubric and the response, and the hash tells whether it does.
    """
    juror, schema = _juror(call), call.rubric.json_schema()
    candidates = list(_conversations(call, before))
    for turns, form in product(candidates, FORMS):
        if request_sha256(juror, Call(turns, schema, form, call.replicate)) == call.request_sha256:
            return Prompt(turns, exact=True)
    return Prompt(candidates[0], exact=False)


def _conversations(call: CallView, before: Sequence[CallView]) -> Iterator[tuple[Message, ...]]:
    """Yield what may have been said: the question, or it again after an unusable answer."""
    question = Message("user", call.rubric.render(call.card))
    if call.sent.get("turns", 1) == 1:
        yield (question,)
        return
    for one in reversed(before):
        said = Message("assistant", storable(one.raw).strip() or "(no answer)")
        again = AGAIN.format(reason=one.reason, scale=call.rubric.scale)
        yield (question, said, Message("user", again))
    yield (question,)


def _juror(call: CallView) -> Juror:
    """Return the juror as it was when it was asked."""
    sent = call.sent
    settings = {name: call.profile.get(name) for name in ("temperature", "effort", "schema")}
    return Juror.model_validate(
        {
            "name": call.juror,
            "provider": call.profile["provider"],
            "model": call.profile["model"],
            "family": "any",
            "base_url": sent.get("base_url", ""),
            "max_tokens": sent.get("max_tokens") or sent.get("max_completion_tokens") or MAX_TOKENS,
        }
        | {name: value for name, value in settings.items() if value is not None}
    )
