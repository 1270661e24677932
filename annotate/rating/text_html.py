"""Texts and the training round as HTML: escaped, laid out by turns, sections and Markdown."""

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any

from annotate.rating.markdown_html import heading_line, rendered
from annotate.rating.words import Say
from data.rubric import Rubric
from data.study.room import Exercise, Feedback, Miss, RoundResult, ScoredCriterion

STYLE = (files("annotate.rating") / "page.css").read_text("utf-8")
TURN = re.compile(r"^(\[[^\W\d_][\w .-]{0,30}\]|[A-Z][a-zA-Z .-]{0,30}:)(\s*)(.*)$")
# What has no glyph, and what HTML cannot carry, is shown by its picture in Unicode.
PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"} | {
    0x7F: 0x2421
}
FEWEST_TURNS = 3
FEWEST_SECTIONS = 2
# A line of its own: in capitals, or ending with a colon, or marked as a heading or in bold.
HEADING = re.compile(
    r"(?:[A-Z][A-Z &/,()'-]{3,58}:?|[A-Z]{2,}:"
    r"|[A-Z][A-Za-z&/()'-]*(?: [A-Za-z&/()'-]+){0,5}:|#{1,4} \S.{0,58}|\*\*[^*]{2,58}\*\*:?)[ \t]*"
)
LETTERS = re.compile(r"[A-Za-z]{2}")


def style() -> str:
    """Return the style sheet of the panes and of the page around them."""
    return f"<style>{STYLE}</style>"


def pane(text: str, label: str, name: str, *, folds: bool = False) -> str:
    """Return a text in a box of its own that scrolls.

    Parameters
    ----------
    folds
        Whether it is a source: turns of a dialogue are laid out, sections can be folded.
    """
    return (
        f'<div class="mj-pane mj-{name}" tabindex="0" role="region" '
        f'aria-label="{html.escape(label)}">{body(text, folds)}</div>'
    )


def unseen(text: str) -> list[int]:
    """Return where a text holds characters that its pane leaves out: returns before newlines."""
    return [match.start() for match in re.finditer("\r(?=\n)", text)]


def heading(text: str) -> str:
    """Return the heading above a pane."""
    return f'<h2 class="mj-heading">{html.escape(text)}</h2>'


def note(title: str, text: str) -> str:
    """Return a page that is only a message."""
    return f'<div class="mj-note"><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p></div>'


@lru_cache(maxsize=64)
def body(text: str, folds: bool) -> str:
    """Return a text laid out; a source as turns if it is a dialogue, in sections if it has headings.

    Without its tags, and unescaped, it is the text; a style sheet shows it as it was typed.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if folds and _is_dialogue(text):
        return "".join(_line(line) for line in text.translate(PICTURES).splitlines())
    lines = text.translate(PICTURES).split("\n")
    starts = [n for n, line in enumerate(lines) if _is_heading(line)] if folds else []
    if len(starts) < FEWEST_SECTIONS:
        return rendered("\n".join(lines))
    before = [rendered("\n".join([*lines[: starts[0]], ""]))] if starts[0] else []
    ends = [*starts[1:], None]
    return "".join(before + [_section(lines[a:b], b) for a, b in zip(starts, ends, strict=True)])


def _section(lines: list[str], goes_on: int | None) -> str:
    """Return a heading and what is under it, which folds away; no character is changed."""
    body_lines = [*lines[1:], ""] if goes_on else lines[1:]
    newline = "\n" if body_lines else ""
    return (
        f'<details class="mj-section" open><summary dir="auto">{heading_line(lines[0] + newline)}'
        f"</summary>{rendered(chr(10).join(body_lines))}</details>"
    )


def _is_heading(line: str) -> bool:
    """Return whether a line is surely a heading; a line of values or of a list is none."""
    return HEADING.fullmatch(line) is not None and LETTERS.search(line) is not None


def _is_dialogue(text: str) -> bool:
    """Return whether nearly every line that is not empty begins with who speaks."""
    lines = [line for line in text.split("\n") if line.strip()]
    turns = sum(TURN.match(line) is not None for line in lines)
    return turns >= FEWEST_TURNS and turns >= 0.6 * len(lines)


def _line(line: str) -> str:
    """Return one line of a dialogue, every character of it in place."""
    match = TURN.match(line)
    if match is None:
        return (
            f'<div class="mj-turn"><span></span><span dir="auto">{html.escape(line)}\n</span></div>'
        )
    speaker, space, speech = (html.escape(group) for group in match.groups())
    first = "mj-turn mj-first" if _asks(match[1]) else "mj-turn"
    return f'<div class="{first}"><span class="mj-who">{speaker}{space}</span><span dir="auto">{speech}\n</span></div>'


def _asks(speaker: str) -> bool:
    """Return whether the speaker is on the clinic's side, to tell the voices apart by eye."""
    return bool(re.search(r"doctor|physician|clinician|nurse|^\[?dr\b", speaker, re.IGNORECASE))


MOST_MISSES = 3


def training_progress(stage: Exercise | Feedback | RoundResult) -> dict[str, Any]:
    """Return how far the round is, as the page's top line says it."""
    number = stage.total if isinstance(stage, RoundResult) else stage.number
    done = number - isinstance(stage, Exercise)
    counted = {"done": done, "total": stage.total, "number": number, "round": stage.round_}
    return {"progress": counted, "training": True}


def training_way_on(stage: RoundResult) -> str:
    """Return what the button says that leaves the outcome of a round."""
    if stage.halted:
        return "Check again"
    return "Begin rating" if stage.outcome.passed else "Start again"


def training_feedback(stage: Feedback, say: Say) -> str:
    """Return, criterion by criterion, the clinician's score beside the expert's and the reason."""
    reasons = {mark.why for mark in stage.marks}
    shared = reasons.pop() if len(reasons) == 1 else ""
    why = _why(shared, say) if shared else ""
    blocks = "".join(_mark(mark, stage.rubric, not shared, say) for mark in stage.marks)
    title = html.escape(say("Your scores beside the expert's"))
    return (
        f'<section class="mj-lesson" aria-label="{title}">'
        f'<h2 class="mj-heading">{title}</h2>{why}{blocks}</section>'
    )


def training_result(stage: RoundResult, say: Say) -> str:
    """Return how a round went: the distance, what is allowed, and where it was largest."""
    outcome = stage.outcome
    distance = "Your mean distance from the experts was {distance}; up to {gap} is fine."
    message = say(distance, distance=in_points(outcome.distance, say), gap=decimals(outcome.gap))
    if outcome.misordered:
        message += " " + say(
            "The response that the experts rated lowest was not clearly your lowest."
        )
    if stage.halted:
        title = say("Please speak to the coordinator")
        message += " " + say("They can let you begin. All that you entered is kept.")
    elif not outcome.passed:
        title = say("Once more, please")
        message += " " + say(
            "The training responses come again in another order; your answers so far are kept."
        )
    else:
        title = say("Training passed")
        message += " " + say("The responses of the study come next.")
    listed = "" if outcome.passed else _misses(stage.misses, say)
    return f"<h1>{html.escape(title)}</h1><p>{html.escape(message)}</p>{listed}"


def in_points(distance: float, say: Say) -> str:
    """Return a distance with its unit."""
    unit = "{count} point" if distance == 1 else "{count} points"
    return say(unit, count=decimals(distance))


def decimals(value: float) -> str:
    """Return a number with one decimal, or two where there are two."""
    text = f"{value:.2f}"
    return text[:-1] if text.endswith("0") else text


def _mark(mark: ScoredCriterion, rubric: Rubric, with_why: bool, say: Say) -> str:
    """Return one criterion: both scores, their difference in words, their anchors, the reason."""
    label = html.escape(mark.criterion.replace("_", " ").capitalize())
    near = "mj-same" if mark.own == mark.expert else "mj-apart"
    rows = "".join(
        f"<dt>{html.escape(say(scorer))}</dt><dd>{score_text}</dd>"
        for scorer, score_text in _score_rows(mark, rubric)
    )
    why = _why(mark.why, say) if with_why and mark.why else ""
    return (
        f'<article class="mj-mark {near}"><h3>{label}</h3>'
        f'<p class="mj-gap">{html.escape(_difference(mark, say))}</p><dl>{rows}</dl>{why}</article>'
    )


def _score_rows(mark: ScoredCriterion, rubric: Rubric) -> Iterator[tuple[str, str]]:
    """Yield who gave what, with the anchor of the point, or of both points around a fraction."""
    anchors = next(
        criterion.anchors for criterion in rubric.criterion if criterion.name == mark.criterion
    )
    if mark.own == mark.expert:
        yield "You and the expert", _said(mark.own, anchors)
        return
    yield "You", _said(mark.own, anchors)
    yield "Expert", _said(mark.expert, anchors)


def _said(score: float, anchors: dict[int, str]) -> str:
    """Return a score and what it means on the scale."""
    if score == int(score):
        meaning = html.escape(anchors.get(int(score), ""))
        return f"<b>{int(score)}</b> <span>{meaning}</span>"
    low = int(score // 1)
    ends = [
        f"{point}: {html.escape(anchors[point])}" for point in (low, low + 1) if point in anchors
    ]
    return f"<b>{decimals(score)}</b> <span>{'<br>'.join(ends)}</span>"


def _difference(mark: ScoredCriterion, say: Say) -> str:
    """Return how far the clinician is from the expert, in words."""
    gap = mark.own - mark.expert
    if gap == 0:
        return say("the same score")
    if abs(gap) == 1:
        return say("you scored 1 point higher" if gap > 0 else "you scored 1 point lower")
    side = "you scored {count} points higher" if gap > 0 else "you scored {count} points lower"
    return say(side, count=f"{abs(gap):g}")


def _why(text: str, say: Say) -> str:
    return f'<p class="mj-why"><b>{say("Why")}</b> {html.escape(text)}</p>'


def _misses(misses: tuple[Miss, ...], say: Say) -> str:
    """Return the criteria on which the clinician was furthest from the experts."""
    lines = "".join(
        f"<li><b>{html.escape(miss.criterion.replace('_', ' ').capitalize())}</b>: "
        f"{html.escape(_miss(miss, say))}</li>"
        for miss in misses[:MOST_MISSES]
        if miss.distance > 0
    )
    return f"<h2>{say('Where you differed most')}</h2><ul>{lines}</ul>"


def _miss(miss: Miss, say: Say) -> str:
    lean = "{distance} on average, above and below alike"
    if miss.lean:
        lean = "{distance} on average, you scored "
        lean += "higher" if miss.lean > 0 else "lower"
    return say(lean, distance=in_points(miss.distance, say))
