"""Messages of the training round: its progress and, as HTML, feedback and the round's result."""

import html
from collections.abc import Iterator
from typing import Any

from data.queries.rating_room import Exercise, Feedback, Miss, RoundResult, ScoredCriterion
from data.rubric import Rubric

MOST_MISSES = 3


def progress(stage: Exercise | Feedback | RoundResult) -> dict[str, Any]:
    """Return how far the round is, as the page's top line says it."""
    number = stage.total if isinstance(stage, RoundResult) else stage.number
    done = number - isinstance(stage, Exercise)
    counted = {"done": done, "total": stage.total, "number": number, "round": stage.round_}
    return {"progress": counted, "training": True}


def way_on(stage: RoundResult) -> str:
    """Return what the button says that leaves the outcome of a round."""
    if stage.halted:
        return "Check again"
    return "Begin rating" if stage.outcome.passed else "Start again"


def feedback(stage: Feedback) -> str:
    """Return, criterion by criterion, the clinician's score beside the expert's and the reason."""
    reasons = {mark.why for mark in stage.marks}
    shared = reasons.pop() if len(reasons) == 1 else ""
    why = _why(shared) if shared else ""
    blocks = "".join(_mark(mark, stage.rubric, not shared) for mark in stage.marks)
    return (
        '<section class="mj-lesson" aria-label="Your scores beside the expert\'s">'
        f'<h2 class="mj-heading">Your scores beside the expert\'s</h2>{why}{blocks}</section>'
    )


def result(stage: RoundResult) -> str:
    """Return how a round went: the distance, what is allowed, and where it was largest."""
    outcome = stage.outcome
    title = "Training passed" if outcome.passed else "Once more, please"
    message = (
        f"Your mean distance from the experts was {points(outcome.distance)}; "
        f"up to {number(outcome.gap)} is fine."
    )
    if stage.halted:
        title = "Please speak to the coordinator"
        message += " They can let you begin. All that you entered is kept."
    elif not outcome.passed:
        message += (
            " The training responses come again in another order; your answers so far are kept."
        )
    else:
        message += " The responses of the study come next."
    listed = "" if outcome.passed else _misses(stage.misses)
    return f"<h1>{title}</h1><p>{message}</p>{listed}"


def points(distance: float) -> str:
    """Return a distance with its unit."""
    return f"{number(distance)} point{'' if distance == 1 else 's'}"


def number(value: float) -> str:
    """Return a number with one decimal, or two where there are two."""
    text = f"{value:.2f}"
    return text[:-1] if text.endswith("0") else text


def _mark(mark: ScoredCriterion, rubric: Rubric, with_why: bool) -> str:
    """Return one criterion: both scores, their difference in words, their anchors, the reason."""
    label = html.escape(mark.criterion.replace("_", " ").capitalize())
    near = "mj-same" if mark.own == mark.expert else "mj-apart"
    rows = "".join(
        f"<dt>{scorer}</dt><dd>{score_text}</dd>" for scorer, score_text in _rows(mark, rubric)
    )
    why = _why(mark.why) if with_why and mark.why else ""
    return (
        f'<article class="mj-mark {near}"><h3>{label}</h3>'
        f'<p class="mj-gap">{_difference(mark)}</p><dl>{rows}</dl>{why}</article>'
    )


def _rows(mark: ScoredCriterion, rubric: Rubric) -> Iterator[tuple[str, str]]:
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
    return f"<b>{number(score)}</b> <span>{'<br>'.join(ends)}</span>"


def _difference(mark: ScoredCriterion) -> str:
    """Return how far the clinician is from the expert, in words."""
    if mark.own == mark.expert:
        return "the same score"
    side = "higher" if mark.own > mark.expert else "lower"
    gap = abs(mark.own - mark.expert)
    size = "1 point" if gap == 1 else f"{gap:g} points"
    return f"you scored {size} {side}"


def _why(text: str) -> str:
    return f'<p class="mj-why"><b>Why</b> {html.escape(text)}</p>'


def _misses(misses: tuple[Miss, ...]) -> str:
    """Return the criteria on which the clinician was furthest from the experts."""
    lines = "".join(
        f"<li><b>{html.escape(miss.criterion.replace('_', ' ').capitalize())}</b>: "
        f"{points(miss.distance)} on average, {_lean(miss)}</li>"
        for miss in misses[:MOST_MISSES]
        if miss.distance > 0
    )
    return f"<h2>Where you differed most</h2><ul>{lines}</ul>"


def _lean(miss: Miss) -> str:
    if miss.lean == 0:
        return "above and below alike"
    return "you scored higher" if miss.lean > 0 else "you scored lower"
