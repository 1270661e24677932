"""One response of the agreement screen: its texts with what is marked, its scores, reviews and calls."""

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from operator import itemgetter
from typing import Any

import streamlit as st
from sqlalchemy import Engine

from annotate import draw
from annotate.rating import text_html
from annotate.rating.text_html import PICTURES
from calibration.notes import counted
from calibration.tables.numbers import MINUS
from data.card import ERRORS, Card
from data.card import Reading as OfReading
from data.errors import MedjuryError
from data.person import Person
from data.points import CANNOT_TELL, MET, NOT_MET
from data.question import Explanation, every_score
from data.rubric import Criterion
from data.rubrics.injection import holds_verdict
from data.safe_text import on_page
from data.schema import Kind, Span
from data.study.compare import CallView, Compared, Opened
from data.study.readings import Reading
from data.study.reviews import (
    LONGEST_NOTE,
    ReviewOf,
    change_tags,
    keep_note,
    review_of,
    tag_counts,
)
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
IN_TEXT = {"source": "in the source", "second": "in the second response"}
PARTS = {"context": "source", "prompt": "task"}  # others are called what they are
SOURCE = "context"  # the name of the pane that can be marked beside the response
MAX_TOKENS = 1500
REBUILT = (
    "Rebuilt from the rubric and the response as they are now. The hash stored with the call differs, so "
    "what was sent was not word for word this."
)
EXACT = "Word for word what was sent: its SHA-256 is the one stored with the call."
NO_CALLS = "No juror was run here; imported scores come without calls."
WORDS = {
    "flag": "flagged",
    "not_enough_context": "not enough context",
    "names_author": "names its author",
    "both_unsafe": "both unsafe",
}
WHOLE = "on the whole"
READINGS: dict[OfReading, str] = {"third": "third reading", "consensus": "consensus reading"}
SIGNS: Mapping[float | None, str] = {MET: "yes", NOT_MET: "no", CANNOT_TELL: "cannot tell"}
ABOUT_SCORES = {
    "Mean": "Over the criteria, where all are answered; a scale of its own counts from 0 to 1",
    "Said": "What the rater said of the response besides scores",
}
REFUSED = "review-refused"  # in the session
TAG_HELP = "Short words of your own, or ones in use. Every reviewer sees them, and no rater does."


@dataclass(frozen=True, slots=True)
class Mark:
    """A marked stretch under its number, who marked it, and the number of what it goes with."""

    number: int
    who: str
    stretch: Span
    linked: int | None


def show_texts(opened: Opened, at: int, of: int) -> None:
    """Show the response with all that clinicians marked, and below it what raters were given."""
    where = f"{opened.benchmark} \N{MIDDLE DOT} {at + 1:,} of {of:,}"
    st.markdown(f"**{on_page(opened.response_id)}** {on_page(where)}")
    card, marks = opened.card, numbered(opened.opinions)
    for warning in planted(opened):
        st.warning(warning)
    panes = {"response": "Response"}
    if card.second is not None:
        panes = {"response": "First response", "second": "Second response"}
    boxes = [
        text_html.heading(label) + marked_pane(text, marks, side, label)
        for (side, label), text in zip(panes.items(), card.rated, strict=True)
    ]
    st.html("".join([*boxes, marks_legend(marks)]))
    for label, name, text in source_panes(card):
        st.html(text_html.heading(label) + _given(text, label, name, marks))
    if card.reference:
        st.html(
            text_html.heading("Reference")
            + text_html.pane(card.reference, "Reference", "reference")
        )


def planted(opened: Opened) -> list[str]:
    """Return warnings of a response that holds a verdict or tags of the prompt."""
    rubric, forged = opened.rubric, opened.rubric.forged(opened.card)
    verdict = any(holds_verdict(text, rubric.criteria) for text in opened.card.rated)
    return [PLANTED] * verdict + [TAGS.format(parts=_parts(forged))] * bool(forged)


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
    folded = st.expander("Calls to jurors", key="response-calls", on_change="rerun")
    if not folded.open:
        return
    with folded:
        jurors = sorted({call.juror for call in opened.calls})
        if not jurors:
            st.info(NO_CALLS)
            return
        juror = st.selectbox("Juror", jurors, key="calls")
        own = [call for call in opened.calls if call.juror == juror]
        for index, call in enumerate(own):
            verdict = call.attempt.replicate
            _call(call, [one for one in own[:index] if one.attempt.replicate == verdict])


def _call(call: CallView, before: Sequence[CallView]) -> None:
    """Show one call."""
    (st.success if call.attempt.status == "ok" else st.error)(on_page(call_line(call)))
    for line in distribution_lines(call.attempt.answer or {}):
        st.caption(on_page(line))
    if not call.attempt.number:
        st.caption(SAME_PROMPT if "same_prompt_as" in call.attempt.sent else NOTHING_SENT)
        return
    prompt = prompt_of(call, before)
    sent, came = st.columns(2)
    label = f"{call.juror}, call {call.attempt.number}"
    turns = "\n\n".join(
        turn.text if len(prompt.turns) == 1 else f"[{turn.role}]\n{turn.text}"
        for turn in prompt.turns
    )
    for place, head, text, name in (
        (sent, "Prompt sent", turns, "sent"),
        (came, "Raw answer", call.attempt.raw, "raw"),
    ):
        shown = html.escape(text.translate(PICTURES))
        place.html(text_html.heading(head) + _pane(shown, name, f"{head}: {label}"))
    sent.caption(EXACT if prompt.exact else REBUILT)


def call_line(call: CallView) -> str:
    """Return a call's figures in a line."""
    attempt = call.attempt
    usd = "price unknown" if attempt.usd is None else f"${attempt.usd:.5f}"
    tokens = [
        f"{count:,}" if count is not None else "?"
        for count in (attempt.tokens_in, attempt.tokens_out)
    ]
    broken = attempt.sent.get("tags_broken_in")
    cached = f" ({attempt.tokens_cached:,} from a cache)" if attempt.tokens_cached else ""
    parts = [
        attempt.status,
        f"call {attempt.number}" + (f", verdict {attempt.replicate + 1}" * bool(attempt.replicate)),
        attempt.reason,
        f"{attempt.at:%d %b %Y %H:%M} UTC",
        f"answered as {attempt.returned_model}" if attempt.returned_model else "",
        f"{tokens[0]} tokens in{cached}, {tokens[1]} out",
        usd,
        f"{attempt.latency_seconds:.1f} s",
        f"tags broken in: {_parts(broken)}" if broken else "",
    ]
    return " \N{MIDDLE DOT} ".join(part for part in parts if part)


def distribution_lines(distribution: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the tokens of a call said of each score: the point stated, and how likely each was."""
    for criterion, scores in distribution.items():
        shares = ", ".join(
            f"{point}: {share:.3f}" for point, share in scores["probabilities"].items()
        )
        yield (
            f"{criterion}: stated {scores['stated']}; probabilities {shares}; {scores['mass']:.3f} of the "
            "probability is on the scale"
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


def marked_pane(text: str, marks: Sequence[Mark], side: str, label: str) -> str:
    """Return a text's box; a stretch is underlined by its kind and carries its numbers."""
    own = [mark for mark in marks if mark.stretch.side == side]
    edges = {0, len(text)}
    for mark in own:
        edges |= {min(max(0, edge), len(text)) for edge in (mark.stretch.start, mark.stretch.end)}
    parts = [_part(text, start, end, own) for start, end in pairwise(sorted(edges))]
    name = SOURCE if side == "source" else "answer"
    return _pane("".join(parts), name, label)


def _pane(shown: str, name: str, label: str) -> str:
    """Return the box of a text as it was typed, which is HTML already."""
    return (
        f'<div class="mj-pane mj-{name}" tabindex="0" role="region" aria-label="{html.escape(label)}">'
        f'<div class="mj-text">{shown}</div></div>'
    )


def marks_legend(marks: Sequence[Mark]) -> str:
    """Return who marked what, by number: the kind, where it is, who made it and why."""
    if not marks:
        return ""
    items = []
    for mark in marks:
        stretch = mark.stretch
        parts = [stretch.severity, stretch.criterion]
        parts += [IN_TEXT[stretch.side]] if stretch.side in IN_TEXT else []
        parts += [f"goes with {mark.linked}"] if mark.linked else []
        words = html.escape(", ".join(filter(None, parts)))
        note = f": {html.escape(stretch.note)}" if stretch.note else ""
        items.append(
            f"<li><b>{html.escape(stretch.error)}</b>, {words} <small>{html.escape(mark.who)}</small>"
            f"{note}</li>"
        )
    return f'<ol class="mj-marks" aria-label="Marked passages">{"".join(items)}</ol>'


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
        again = AGAIN.format(reason=earlier.attempt.reason, scores=every_score(call.rubric))
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


def show_scores(row: Compared, opened: Opened) -> None:
    """Show both sides' means, and every reading and verdict as a row, criteria as columns."""
    st.markdown(f"**{on_page(both_sides(row))}**")
    draw.rows(
        "Scores of this response: clinicians', then jurors'", score_rows(opened), ABOUT_SCORES
    )
    if opened.case is not None:
        draw.rows(
            "Points of the case: does the response do it?",
            point_rows(opened, opened.case.criterion),
        )


def both_sides(row: Compared) -> str:
    """Return both sides' means and how far the jury is from the clinicians, in a sentence."""
    if row.difference is None:
        return "The clinicians or the jury have no mean here, so they cannot be compared."
    if not row.difference:
        return f"Clinicians and jury agree on {row.first.mean:.2f}."
    return (
        f"The jury is {abs(row.difference):.2f} {'higher' if row.difference > 0 else 'lower'}: clinicians "
        f"{row.first.mean:.2f} ({row.first.scored}), jury {row.second.mean:.2f} "
        f"({row.second.scored} of {row.second.of} jurors)."
    )


def score_rows(opened: Opened) -> list[dict[str, Any]]:
    """Return a row for each reading and each juror; a mean stands where all criteria are answered."""
    criteria = opened.rubric.criteria
    rows: list[dict[str, Any]] = []
    for kind in (Kind.CLINICIAN, Kind.JUROR):
        for opinion in (one for one in opened.opinions if one.kind == kind):
            mean = opened.rubric.composite(opinion.said)
            said = [WORDS.get(kind, kind) for kind, _ in opinion.flags]
            said += [f"{name} {one.replace('_', ' ')}" for name, one in opinion.instead.items()]
            rows.append(
                {"Rater": _name(opinion)}
                | {"Mean": None if mean is None else round(mean, 2)}
                | {name: opinion.scores.get(name) for name in criteria}
                | {"Said": ", ".join(said)}
            )
    scored = {one.handle for one in opened.opinions if one.said or one.answers}
    ends = {call.juror: call.attempt.status for call in opened.calls if call.juror not in scored}
    rows += [
        {"Rater": juror, "Said": str(status)}
        for juror, status in sorted(ends.items(), key=itemgetter(0))
    ]
    is_said = any(row["Said"] for row in rows)
    return [row if is_said else {name: row[name] for name in row if name != "Said"} for row in rows]


def point_rows(opened: Opened, criteria: Sequence[Criterion]) -> list[dict[str, Any]]:
    """Return the points of the case with each rater's answer, and where the majorities differ."""
    first = [one for one in opened.opinions if one.answers and not one.pass_ + one.replicate]
    rows = []
    for point in criteria:
        worth = point.worth
        sign = MINUS if worth and worth.kind == "must_not" else "+"
        counts = (
            f"{sign}{worth.weight:g}" + (", critical" if worth.critical else "") if worth else ""
        )
        differs = "jury and clinicians differ" if _differs(point.name, first) else ""
        answers: dict[str, Any] = {
            rater_name(one): SIGNS.get(one.answers.get(point.name)) for one in first
        }
        rows.append({"Point": point.question, "Counts": counts, "Sides": differs} | answers)
    return rows


def _differs(name: str, opinions: Sequence[Reading]) -> bool:
    """Tell whether clinicians and jurors each have a majority on a point, and not the same one."""
    sides = []
    for kind in (Kind.CLINICIAN, Kind.JUROR):
        given = [one.answers[name] for one in opinions if one.kind == kind and name in one.answers]
        sides.append([answer for answer in (MET, NOT_MET) if 2 * given.count(answer) > len(given)])
    return all(sides) and sides[0] != sides[1]


def rater_name(opinion: Reading) -> str:
    """Return a rater with what kind of reading it was, and whether it is simulated."""
    return _name(opinion) + (", simulated" if opinion.simulated else "")


def _name(opinion: Reading) -> str:
    parts = [opinion.handle]
    parts += [READINGS[opinion.reading]] if opinion.reading in READINGS else []
    parts += ["hidden repeat"] if opinion.pass_ and opinion.reading == "independent" else []
    parts += [f"verdict {opinion.replicate + 1}"] if opinion.replicate else []
    return ", ".join(parts)


def comments(opinions: Sequence[Reading]) -> str:
    """Return what raters wrote, word for word; a comment on the whole stands once."""
    blocks = []
    for opinion in opinions:
        items = "".join(
            f"<dt>{html.escape(name)}</dt><dd>{html.escape(words)}</dd>"
            for name, words in _lines(opinion)
        )
        if items:
            kind = "juror's explanations" if opinion.kind == Kind.JUROR else "clinician's comments"
            blocks.append(
                f'<div class="mj-words"><h3>{html.escape(rater_name(opinion))} <small>{kind}</small></h3>'
                f"<dl>{items}</dl></div>"
            )
    return text_html.heading("Comments and explanations") + "".join(blocks) if blocks else ""


def _lines(opinion: Reading) -> Iterator[tuple[str, str]]:
    """Yield what a rater wrote, each text once, with what it is about.

    A text that stands at every criterion is one on the whole: imports copy it.
    A flag carries the comment that was submitted with it.
    """
    by_words: dict[str, list[str]] = {}
    for name, words in opinion.comments.items():
        by_words.setdefault(words, []).append(name)
    copied = [words for words, names in by_words.items() if names == [*opinion.scores] and words]
    is_copied = len(opinion.scores) > 1 and opinion.kind == Kind.CLINICIAN and not opinion.comment
    comment = opinion.comment or (copied[0] if copied and is_copied else "")
    if comment:
        yield WHOLE, comment
    for words, names in by_words.items():
        if words and not (is_copied and words == comment):
            yield ", ".join(names), words
    for kind, words in opinion.flags:
        if words and words != comment and words not in by_words:
            yield WORDS.get(kind, kind), words


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


def show_review(engine: Engine, person: Person, response: int) -> None:
    """Show the tags and the note of a response, to be changed."""
    review = review_of(person, engine, response)
    _tags(engine, person, response, review)
    if message := st.session_state.pop(REFUSED, None):
        st.error(on_page(message))
    _notes(review)
    # Another note, whoever wrote it, is another field: what is stored stands in it.
    number = f"{response}-{len(review.notes)}"
    label = "Change the note" if review.note else "Write a note"
    with (
        st.expander(label, key=f"noting-{number}"),
        st.form(f"note-form-{number}", border=False),
    ):
        st.text_area("Note", review.note, max_chars=LONGEST_NOTE, key=f"note-{number}")
        # A callback: a click that follows at once may stop a run before it reads this button.
        st.form_submit_button(
            "Keep the note", on_click=_store_note, args=(engine, person, response, number)
        )


def _notes(review: ReviewOf) -> None:
    """Show the note that counts, and folded below it the earlier ones."""
    lines = [
        f"<p>{html.escape(line.text)}</p><small>"
        f"{html.escape(f'{line.reviewer}, {line.at:%d %b %Y %H:%M} UTC')}</small>"
        if line.text
        else "<p>The note was taken away.</p>"
        for line in review.notes
    ]
    if lines:
        st.html(f'<div class="mj-note-line">{lines[0]}</div>')
    if lines[1:]:
        with st.expander(counted(len(lines) - 1, "earlier note")):
            st.html(f'<div class="mj-note-line">{"".join(lines[1:])}</div>')


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
        help=TAG_HELP,
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
