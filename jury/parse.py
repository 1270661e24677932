"""Reading a juror's answer: one verdict, or the reason why there is none.

Reasoning at the beginning of the answer is set aside. Then exactly one verdict may be there: a JSON
object with every criterion of the rubric, alone or in a longer text, fenced or not. Two equal ones
count as one. There is no verdict, and none is chosen, where two differ, where another one breaks
off, and where words or keys beside it give other scores, name another scale or call the object a
quotation (`jury/contradiction.py`). Every criterion has an object with a `score`, a whole number on
the scale: 4, 4.0 and the string "4" are that number; true, 4.5, "4/5" and 7 on a scale of 1-5 are
not, and are never rounded, clamped or guessed at. Other keys are named and otherwise ignored. A key
that stands twice with different values has no value.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from data.calls import Status
from data.card import Reply
from data.question import RubricLike as Rubric
from jury.answer_text import Conflicting, FoundObject, TextSpan, after_reasoning, find_objects
from jury.call import Answer
from jury.contradiction import objection_in_object, objection_in_text

LONGEST = 200_000
MOST = 1_000_000
QUOTED = 40
INTEGER = re.compile(r"[+-]?[0-9]{1,6}")
BREAKS_OFF = "the last verdict breaks off"
TOO_LONG = f"the answer is longer than {LONGEST:,} characters"
NO_OBJECT = "the answer holds no JSON object"
TWO = "the answer holds two verdicts that differ"


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """How an answer could be read: `reason` says why not, unless the status is OK."""

    status: Status
    reason: str = ""

    @property
    def remark(self) -> str:
        """The reason as a study stores it."""
        return storable(self.reason)


@dataclass(frozen=True, slots=True)
class ParsedAnswer(AnswerReading):
    """The reading of an answer on a rubric.

    Attributes
    ----------
    reply
        Scores and explanations; None where the answer is no usable verdict.
    extra
        Keys of the verdict that are not in the requested form.
    distribution
        The distributions of expected scores as they are stored (`jury/expected_score.py`).
    """

    reply: Reply | None = None
    extra: tuple[str, ...] = ()
    distribution: dict[str, Any] | None = None

    @property
    def remark(self) -> str:
        """Why there is no reply, or what was ignored."""
        ignored = f"ignored: {', '.join(self.extra)}" if self.extra else ""
        return storable(self.reason or ignored)


class _Unreadable(ValueError):
    """A part of the answer that gives no score, with the status that says why."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def read_answer(answer: Answer, rubric: Rubric) -> ParsedAnswer:
    """Return the verdict in an answer on a rubric, or why there is none."""
    if answer.status != Status.OK:
        return ParsedAnswer(answer.status, answer.reason)
    return parse(answer.text, rubric)


def parse(text: str, rubric: Rubric) -> ParsedAnswer:
    """Return the verdict in an answer's text, or why there is none; never raises, never guesses a score."""
    if len(text) > LONGEST:
        return ParsedAnswer(Status.INVALID_JSON, TOO_LONG)
    try:
        verdict, scores = _verdict(after_reasoning(text), rubric)
    except _Unreadable as error:
        return ParsedAnswer(error.status, str(error))
    explanations = {name: storable(_said(verdict[name], rubric.word)) for name in rubric.criteria}
    extra = tuple(storable(key)[:QUOTED] for key in verdict if key not in rubric.criteria)
    return ParsedAnswer(Status.OK, "", Reply(scores, explanations), extra)


def verdict_spans(text: str, rubric: Rubric) -> list[TextSpan]:
    """Return the spans of the objects in an answer that hold its verdict, one each where it is repeated."""
    head = text[:LONGEST]
    answer = after_reasoning(head)
    first = len(head) - len(answer)
    verdicts = [
        located for located in find_objects(answer) if _whole_verdict(located.value, rubric)
    ]
    return [TextSpan(first + located.start, first + located.end) for located in verdicts]


def storable(text: str) -> str:
    """Return the text without what a database cannot hold: NUL and lone surrogates."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _verdict(text: str, rubric: Rubric) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the object that holds the one verdict of an answer, and its scores."""
    objects = list(find_objects(text))
    readings = [(located, _whole_verdict(located.value, rubric)) for located in objects]
    verdicts = [(located, scores) for located, scores in readings if scores]
    if not verdicts:
        raise _no_verdict(objects, rubric)
    complete = [located.value for located in objects if isinstance(located.value, dict)]
    if len(complete) < len(objects):
        raise _Unreadable(Status.INVALID_JSON, BREAKS_OFF)
    last, scores = verdicts[-1]
    if any(others != scores for _, others in verdicts):
        raise _Unreadable(Status.TWO_VERDICTS, TWO)
    objections = (objection_in_object(members, scores, rubric) for members in complete)
    objection = next(filter(None, objections), None)
    places = [(located.start, located.end) for located, _ in verdicts]
    if objection is None and places != [(0, len(text))]:
        objection = objection_in_text(_blanked(text, objects), places, scores, rubric)
    if objection is not None:
        raise _Unreadable(*objection)
    return complete[objects.index(last)], scores


def _blanked(text: str, objects: Sequence[FoundObject]) -> str:
    """Return the text with its objects overwritten by blanks, so that positions stay the same."""
    for located in objects:
        text = text[: located.start] + " " * (located.end - located.start) + text[located.end :]
    return text


def _whole_verdict(value: dict[str, Any] | str, rubric: Rubric) -> dict[str, float]:
    """Return the scores of an object that has every one, else an empty dict."""
    if isinstance(value, str):
        return {}
    try:
        return {name: _score(value, name, rubric) for name in rubric.criteria}
    except _Unreadable:
        return {}


def _no_verdict(objects: Sequence[FoundObject], rubric: Rubric) -> _Unreadable:
    """Return why no object of an answer is a verdict: what its last attempt at one lacks."""
    naming = [located.value for located in objects if _names(located.value, rubric)]
    complete = [located.value for located in objects if isinstance(located.value, dict)]
    last = (naming or complete or [""])[-1]
    if isinstance(last, str):
        return _Unreadable(Status.INVALID_JSON, BREAKS_OFF if naming else NO_OBJECT)
    try:
        for name in rubric.criteria:
            _score(last, name, rubric)
    except _Unreadable as error:
        return error
    return _Unreadable(Status.INVALID_JSON, NO_OBJECT)


def _names(value: dict[str, Any] | str, rubric: Rubric) -> bool:
    """Return whether an object, or the first key of one that breaks off, names a criterion."""
    return any(
        value == name if isinstance(value, str) else name in value for name in rubric.criteria
    )


def _score(verdict: dict[str, Any], name: str, rubric: Rubric) -> float:
    """Return the score of one criterion, or raise with the reason there is none."""
    entry = verdict.get(name)
    value = entry.get("score") if isinstance(entry, dict) else None
    if isinstance(entry, Conflicting) or isinstance(value, Conflicting):
        raise _Unreadable(Status.INVALID_JSON, f"{name}: given twice, and differs")
    if value is None:
        raise _Unreadable(Status.MISSING_CRITERION, f"{name}: no score is given")
    number = _whole(value)
    if number is None or number not in rubric.scale.points:
        allowed = f"is not a whole number on the scale {rubric.scale}"
        raise _Unreadable(Status.OUT_OF_RANGE, f"{name}: score {_quote(value)} {allowed}")
    return float(number)


def _whole(value: object) -> int | None:
    """Return the whole number a JSON value is, or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, Decimal):
        small = value.is_finite() and value.copy_abs() < MOST  # abs() overflows
        return int(value) if small and value == value.to_integral_value() else None
    if isinstance(value, str):
        digits = value.strip()  # strips more kinds of white space than int() does
        return int(digits) if INTEGER.fullmatch(digits) else None
    return value if isinstance(value, int) else None


def _said(entry: dict[str, Any], word: str) -> str:
    """Return what the juror wrote beside a score, empty where it gave nothing as text."""
    said = entry.get(word)
    return said if isinstance(said, str) else ""


def _quote(value: object) -> str:
    """Return a value as the answer gives it, cut to 40 characters."""
    try:
        shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        shown = type(value).__name__
    return shown if len(shown) <= QUOTED else shown[:QUOTED] + "..."
