"""One response on the workbench: its texts with what is marked in them, and the calls to jurors."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import streamlit as st

from annotate.rating import text_html
from annotate.rating.text_html import PICTURES
from annotate.screens.frame import notice, paragraph
from annotate.screens.workbench_scores import rater_name
from data.card import ERRORS, Card, Side
from data.question import Explanation
from data.rubrics.injection import holds_verdict
from data.schema import Span
from data.study.compare import CallView, Opened
from data.study.readings import Reading
from jury.call import Call, Turn
from jury.conversation import request_sha256
from jury.panel import Juror
from jury.providers.registry import FORMS
from jury.task import AGAIN, with_retry

SAME_PROMPT = (
    "no request was sent: this juror had already rated the same prompt, of another response "
    "with the same text, and that verdict counts here too"
)
NOTHING_SENT = "not asked: no request was sent"
PLANTED = (
    "This response contains a ready-made verdict on itself. Compare the scores of the jury with "
    "those of clinicians before you rely on them."
)
TAGS = (
    "These texts contain tags that the prompt itself uses, in: {parts}. Jurors are sent "
    "them broken, so that no text can end its part of the prompt or pass for another. Such "
    "a text may be harmless, or may be meant to instruct the juror: compare the "
    "scores of the jury with those of clinicians."
)
PARTS = {"context": "source", "prompt": "task"}  # others are called what they are
SOURCE = "context"  # the name of the pane that can be marked beside the response
MAX_TOKENS = 1500


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked stretch under its number, who marked it, and the number of what it goes with."""

    number: int
    who: str
    stretch: Span
    linked: int | None


def show_texts(opened: Opened, at: int, of: int) -> None:
    """Show which response is open, what is marked in it, and what raters were given with it."""
    st.html(
        f'<p class="mj-at" role="status"><b>{html.escape(opened.response_id)}</b> '
        f"{html.escape(opened.benchmark)} \N{MIDDLE DOT} {at + 1:,} of {of:,}</p>"
    )
    _texts(opened)


def _texts(opened: Opened) -> None:
    """Show the response with all that clinicians marked, and below it what raters were given."""
    card, marks = opened.card, numbered(opened.opinions)
    st.html(
        text_html.heading("Response, as raters see it")
        + planted(opened)
        + marked_pane(card.response, marks, "response", "Response")
        + marks_legend(marks)
    )
    for label, name, text in source_panes(card):
        st.html(text_html.heading(label) + _given(text, label, name, marks))
    if card.reference:
        st.html(
            text_html.heading("Reference")
            + text_html.pane(card.reference, "Reference", "reference")
        )


def planted(opened: Opened) -> str:
    """Return notices on a response that holds a verdict or tags of the prompt, else nothing."""
    rubric, forged = opened.rubric, opened.rubric.forged(opened.card)
    verdict = holds_verdict(opened.card.response, rubric.criteria)
    notices = [PLANTED] * verdict + [TAGS.format(parts=_parts(forged))] * bool(forged)
    return "".join(map(notice, notices))


def _parts(names: Sequence[str]) -> str:
    """Return parts of a prompt as the page calls them."""
    return ", ".join(PARTS.get(name, name) for name in names)


def source_panes(card: Card) -> list[tuple[str, str, str]]:
    """Return task and source with their labels and names; a bare task is its own source."""
    panes = [
        ("Task", "task" if card.context else SOURCE, card.prompt),
        ("Source", SOURCE, card.context),
    ]
    return [pane for pane in panes if pane[2]]


def _given(text: str, label: str, name: str, marks: Sequence[Mark]) -> str:
    """Return the task or the source, laid out; just its characters where something is marked."""
    if name == SOURCE and any(mark.stretch.side == "source" for mark in marks):
        return marked_pane(text, marks, "source", label)
    return text_html.pane(text, label, name, folds=label == "Source")


def show_calls(opened: Opened) -> None:
    """Offer each call to a juror: what was sent, what came back, word for word."""
    folded = st.expander("Calls to jurors", key="workbench-calls", on_change="rerun")
    if folded.open:
        with folded:
            _calls(opened)


def _calls(opened: Opened) -> None:
    """Show the calls to one juror."""
    jurors = sorted({call.juror for call in opened.calls})
    if not jurors:
        st.html(paragraph("No juror was run here; imported scores come without calls."))
        return
    juror = st.segmented_control(
        "Juror", jurors, default=jurors[0], required=True, key="calls", label_visibility="collapsed"
    )
    own = [call for call in opened.calls if call.juror == juror]
    for index, call in enumerate(own):
        before = [
            earlier
            for earlier in own[:index]
            if earlier.attempt.replicate == call.attempt.replicate
        ]
        _call(call, before)


def _call(call: CallView, before: Sequence[CallView]) -> None:
    """Show one call."""
    st.html(_call_line(call))
    for line in distribution_lines(call.attempt.answer or {}):
        st.html(paragraph(line))
    if not call.attempt.number:
        st.html(paragraph(SAME_PROMPT if "same_prompt_as" in call.attempt.sent else NOTHING_SENT))
        return
    prompt = prompt_of(call, before)
    sent, came = st.columns(2)
    label = f"{call.juror}, call {call.attempt.number}"
    turns = "\n\n".join(
        turn.text if len(prompt.turns) == 1 else f"[{turn.role}]\n{turn.text}"
        for turn in prompt.turns
    )
    sent.html(
        text_html.heading("Prompt sent") + text_html.pane(turns, f"Prompt of {label}", "sent")
    )
    came.html(
        text_html.heading("Raw answer")
        + text_html.pane(call.attempt.raw, f"Answer of {label}", "raw")
    )
    if not prompt.exact:
        sent.html(
            notice(
                "Rebuilt from the rubric and the response as they are now. The hash stored "
                "with the call differs, so what was sent was not word for word this."
            )
        )
    else:
        sent.html(
            paragraph("Word for word what was sent: its SHA-256 is the one stored with the call.")
        )


def _call_line(call: CallView) -> str:
    """Return a call's figures in a line."""
    usd = "price unknown" if call.attempt.usd is None else f"${call.attempt.usd:.5f}"
    tokens = [
        f"{count:,}" if count is not None else "?"
        for count in (call.attempt.tokens_in, call.attempt.tokens_out)
    ]
    parts = [
        f"call {call.attempt.number}"
        + (f", verdict {call.attempt.replicate + 1}" if call.attempt.replicate else ""),
        call.attempt.reason,
        f"{call.attempt.at:%d %b %Y %H:%M} UTC",
        f"answered as {call.attempt.returned_model}" if call.attempt.returned_model else "",
        f"{tokens[0]} tokens in{_from_cache(call)}, {tokens[1]} out",
        usd,
        f"{call.attempt.latency_seconds:.1f} s",
        f"tags broken in: {_parts(broken)}"
        if (broken := call.attempt.sent.get("tags_broken_in"))
        else "",
    ]
    details = html.escape(" \N{MIDDLE DOT} ".join(part for part in parts if part))
    kind = "mj-done" if call.attempt.status == "ok" else "mj-bad"
    return f'<p class="mj-call"><span class="mj-state {kind}">{html.escape(call.attempt.status)}</span> {details}</p>'


def _from_cache(call: CallView) -> str:
    """Return how many of a call's tokens a vendor's cache served, if any."""
    return f" ({call.attempt.tokens_cached:,} from a cache)" if call.attempt.tokens_cached else ""


def distribution_lines(distribution: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the tokens of a call said of each score: the point stated, and how likely each was."""
    for criterion, scores in distribution.items():
        shares = ", ".join(
            f"{point}: {share:.3f}" for point, share in scores["probabilities"].items()
        )
        yield (
            f"{html.escape(criterion)}: stated {scores['stated']}; probabilities "
            f"{html.escape(shares)}; {scores['mass']:.3f} of the probability is on the scale"
        )


def numbered(opinions: Sequence[Reading]) -> list[Mark]:
    """Return all that was marked, numbered through, with the number of what each goes with."""
    marks: list[Mark] = []
    for opinion in opinions:
        first = len(marks) + 1
        for index, stretch in enumerate(opinion.spans):
            linked = stretch.linked
            is_there = linked is not None and 0 <= linked < len(opinion.spans)
            to = first + (linked or 0) if is_there else None
            marks.append(Mark(first + index, rater_name(opinion), stretch, to))
    return marks


def marked_pane(text: str, marks: Sequence[Mark], side: Side, label: str) -> str:
    """Return a text's box; a stretch is underlined by its kind and carries its numbers."""
    own = [mark for mark in marks if mark.stretch.side == side]
    edges = {0, len(text)}
    for mark in own:
        edges |= {min(max(0, edge), len(text)) for edge in (mark.stretch.start, mark.stretch.end)}
    parts = [_part(text, start, end, own) for start, end in pairwise(sorted(edges))]
    name = "answer" if side == "response" else SOURCE
    return (
        f'<div class="mj-pane mj-{name}" tabindex="0" role="region" aria-label="{label}">'
        f'<div class="mj-text">{"".join(parts)}</div></div>'
    )


def marks_legend(marks: Sequence[Mark]) -> str:
    """Return who marked what, by number."""
    if not marks:
        return ""
    items = "".join(f"<li>{_told(mark)}</li>" for mark in marks)
    return f'<ol class="mj-marks" aria-label="Marked stretches">{items}</ol>'


def _told(mark: Mark) -> str:
    """Return one mark in words: its kind, where it is, who made it and why."""
    stretch = mark.stretch
    parts = [
        f"<b>{html.escape(stretch.error)}</b>",
        html.escape(stretch.severity),
        html.escape(stretch.criterion),
    ]
    parts += ["in the source"] if stretch.side == "source" else []
    parts += [f"goes with {mark.linked}"] if mark.linked else []
    description = ", ".join(filter(None, parts))
    return f"{description} <small>{html.escape(mark.who)}</small>{_note(stretch.note)}"


def _part(text: str, start: int, end: int, marks: Sequence[Mark]) -> str:
    """Return a piece of the text that the same stretches cover."""
    words = text[start:end].replace("\r\n", "\n").replace("\r", "\n").translate(PICTURES)
    shown = html.escape(words)
    over = [mark for mark in marks if mark.stretch.start <= start and mark.stretch.end >= end]
    if not over:
        return shown
    ending = [str(mark.number) for mark in over if mark.stretch.end == end]
    numbers = f"<sup>{','.join(ending)}</sup>" if ending else ""
    kinds = {f"mj-{mark.stretch.severity}" for mark in over if mark.stretch.severity == "critical"}
    if over[0].stretch.error in ERRORS:
        kinds.add(f"mj-{over[0].stretch.error}")
    return f'<mark class="{" ".join(["mj-marked", *sorted(kinds)])}">{shown}{numbers}</mark>'


def _note(note: str) -> str:
    return f": {html.escape(note)}" if note else ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The conversation of one call; `exact` where its hash is the one stored with the call."""

    turns: tuple[Turn, ...]
    exact: bool


def prompt_of(call: CallView, before: Sequence[CallView]) -> Prompt:
    """Return what a juror was sent in a call; `before` are the earlier calls of this verdict.

    A study stores of each request its settings and the SHA-256 of all that makes it, not its text a
    second time. The text follows from the rubric and the response, and the hash tells whether it does.
    """
    juror = _juror(call)
    schema = call.rubric.json_schema(juror.explanation)
    candidates = list(_conversations(call, before, juror.explanation))
    for turns, form in product(candidates, FORMS):
        if (
            request_sha256(juror, Call(turns, schema, form, call.attempt.replicate))
            == call.attempt.request_sha256
        ):
            return Prompt(turns, exact=True)
    return Prompt(candidates[0], exact=False)


def _conversations(
    call: CallView, before: Sequence[CallView], explanation: Explanation | None
) -> Iterator[tuple[Turn, ...]]:
    """Yield what may have been said: the question, or it again after an unusable answer."""
    question = (Turn("user", call.rubric.render(call.card, explanation)),)
    if call.attempt.sent.get("turns", 1) == 1:
        yield question
        return
    for earlier in reversed(before):
        again = AGAIN.format(reason=earlier.attempt.reason, scale=call.rubric.scale)
        yield with_retry(question, earlier.attempt.raw, again)
    yield question


def _juror(call: CallView) -> Juror:
    """Return the juror as it was when it was asked."""
    sent = call.attempt.sent
    names = ("temperature", "effort", "schema", "explanation", "scores")
    settings = {name: call.profile.get(name) for name in names}
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
