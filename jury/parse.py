"""Reading a juror's answer: one verdict, or the reason why there is none.

The rules, in one place. Reasoning that the answer begins with is set aside. Then exactly one verdict
may be there: a JSON object that has every criterion of the rubric, alone or in a longer text, fenced
or not. Two that are equal are one; two that differ, another one that breaks off, and words or keys
that give other scores, another scale or call the object a quotation leave none, and nothing is
chosen among them. Every criterion has an object with a `score`, which is a whole number on the
scale: 4, 4.0 and the string "4" are that number; true, 4.5, "4/5" and 7 on a scale of 1-5 are not,
and are never rounded, clamped or guessed at. Keys that nobody asked for are named and otherwise
ignored, unless they speak against the verdict. The same key twice with two values says nothing.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from data.card import Reply
from data.question import RubricLike as Rubric
from data.status import Status
from jury.call import Answer
from jury.contradiction import objection
from jury.other_keys import beside
from jury.pieces import Piece, Place, Twice, after_reasoning, pieces

LONGEST = 200_000
MOST = 1_000_000
QUOTED = 40
INTEGER = re.compile(r"[+-]?[0-9]{1,6}")
BREAKS_OFF = "the last verdict breaks off"
TOO_LONG = f"the answer is longer than {LONGEST:,} characters"
NO_OBJECT = "the answer holds no JSON object"
TWO = "the answer holds two verdicts that differ"


@dataclass(frozen=True, slots=True)
class Reading:
    """What an answer was read as: something if the status is OK, else the reason it is nothing."""

    status: Status
    reason: str = ""

    @property
    def remark(self) -> str:
        """What a study keeps of it in words."""
        return storable(self.reason)


@dataclass(frozen=True, slots=True)
class Parsed(Reading):
    """What an answer said on a rubric; `extra` names the keys that nobody asked for.

    `distribution` is what is kept of expected scores (`jury/expected_score.py`).
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


def read_answer(answer: Answer, rubric: Rubric) -> Parsed:
    """Return what an answer says on a rubric, or why it says nothing."""
    if answer.status != Status.OK:
        return Parsed(answer.status, answer.reason)
    return parse(answer.text, rubric)


def parse(text: str, rubric: Rubric) -> Parsed:
    """Return what a juror's answer says on a rubric; never raises, never makes up a score."""
    if len(text) > LONGEST:
        return Parsed(Status.INVALID_JSON, TOO_LONG)
    try:
        found, scores = _verdict(after_reasoning(text), rubric)
    except _Unreadable as error:
        return Parsed(error.status, str(error))
    said = {name: storable(_explanation(found[name])) for name in rubric.criteria}
    extra = tuple(storable(key)[:QUOTED] for key in found if key not in rubric.criteria)
    return Parsed(Status.OK, "", Reply(scores, said), extra)


def standing(text: str, rubric: Rubric) -> list[Place]:
    """Return where in an answer the objects stand that hold its verdict; equal ones are several."""
    read = text[:LONGEST]
    rest = after_reasoning(read)
    first = len(read) - len(rest)
    whole = [one for one in pieces(rest) if _whole_verdict(one.found, rubric)]
    return [Place(first + one.start, first + one.end) for one in whole]


def storable(text: str) -> str:
    """Return the text without what a database cannot hold: NUL and halves of surrogate pairs."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _verdict(text: str, rubric: Rubric) -> tuple[dict[str, Any], dict[str, float]]:
    """Return the object that holds the one verdict of an answer, and its scores."""
    known = list(pieces(text))
    verdicts = [(one, given) for one in known if (given := _whole_verdict(one.found, rubric))]
    if not verdicts:
        raise _none_of(known, rubric)
    whole = [one.found for one in known if isinstance(one.found, dict)]
    if len(whole) < len(known):
        raise _Unreadable(Status.INVALID_JSON, BREAKS_OFF)
    scores = verdicts[-1][1]
    if any(given != scores for _, given in verdicts):
        raise _Unreadable(Status.TWO_VERDICTS, TWO)
    places = [(one.start, one.end) for one, _ in verdicts]
    against = next(filter(None, (beside(one, scores, rubric) for one in whole)), None)
    if against is None and places != [(0, len(text))]:
        against = objection(_without(text, known), places, scores, rubric)
    if against is not None:
        raise _Unreadable(*against)
    return next(one for one in reversed(whole) if _whole_verdict(one, rubric)), scores


def _without(text: str, known: Sequence[Piece]) -> str:
    """Return the text with blanks where objects stand, as long as it was."""
    for one in known:
        text = text[: one.start] + " " * (one.end - one.start) + text[one.end :]
    return text


def _whole_verdict(found: dict[str, Any] | str, rubric: Rubric) -> dict[str, float]:
    """Return the scores of an object that has all of them, empty where it is no whole verdict."""
    if isinstance(found, str):
        return {}
    try:
        return {name: _score(found, name, rubric) for name in rubric.criteria}
    except _Unreadable:
        return {}


def _none_of(known: Sequence[Piece], rubric: Rubric) -> _Unreadable:
    """Return why none of the objects of an answer is a verdict: by the last that was to be one."""
    named = [one.found for one in known if _names(one.found, rubric)]
    whole = [one.found for one in known if isinstance(one.found, dict)]
    last = (named or whole or [""])[-1]
    if isinstance(last, str):
        return _Unreadable(Status.INVALID_JSON, BREAKS_OFF if named else NO_OBJECT)
    try:
        for name in rubric.criteria:
            _score(last, name, rubric)
    except _Unreadable as error:
        return error
    return _Unreadable(Status.INVALID_JSON, NO_OBJECT)


def _names(found: dict[str, Any] | str, rubric: Rubric) -> bool:
    """Return whether an object, or the first key of one that breaks off, names a criterion."""
    return any(
        found == name if isinstance(found, str) else name in found for name in rubric.criteria
    )


def _score(found: dict[str, Any], name: str, rubric: Rubric) -> float:
    """Return the score of one criterion, or raise with the reason there is none."""
    one = found.get(name)
    value = one.get("score") if isinstance(one, dict) else None
    if isinstance(one, Twice) or isinstance(value, Twice):
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
        bare = value.strip()  # of more signs than int() takes for blanks
        return int(bare) if INTEGER.fullmatch(bare) else None
    return value if isinstance(value, int) else None


def _explanation(one: dict[str, Any]) -> str:
    """Return the juror's justification, empty where it gave none in words."""
    said = one.get("explanation")
    return said if isinstance(said, str) else ""


def _quote(value: object) -> str:
    """Return a value as it was given, cut short."""
    try:
        shown = str(value) if isinstance(value, Decimal) else json.dumps(value, default=str)
    except (ValueError, RecursionError):
        shown = type(value).__name__
    return shown if len(shown) <= QUOTED else shown[:QUOTED] + "..."
