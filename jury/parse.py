"""Reading a juror's answer: a verdict that was given, or the reason why there is none.

The rules, in one place. The answer is a JSON object, alone or as the last balanced object that
names a criterion in a longer text, fenced or not; where another such object breaks off after it,
there is no verdict. Every criterion of the rubric has an object with a `score`, which is a
whole number on the scale: 4, 4.0 and the string "4" are that number; true, 4.5, "4/5" and 7 on a
scale of 1-5 are not, and are never rounded, clamped or guessed at. Keys that nobody asked for are
named and otherwise ignored. The same key twice with two values says nothing.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from data.card import Reply
from data.rubric import Rubric
from data.schema import Status
from jury.call import Answer

LONGEST = 200_000
MOST = 1_000_000
QUOTED = 40
INTEGER = re.compile(r"[+-]?[0-9]{1,6}")
FIRST_KEY = re.compile(r'\{\s*"([^"\\]{1,64})"')


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
    """What an answer said on a rubric; `extra` names the keys that nobody asked for."""

    reply: Reply | None = None
    extra: tuple[str, ...] = ()

    @property
    def remark(self) -> str:
        """Why there is no reply, or what was ignored."""
        ignored = f"ignored: {', '.join(self.extra)}" if self.extra else ""
        return storable(self.reason or ignored)


class _Twice:
    """Stands in for a value that an object gives twice, differently."""


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
    try:
        found = _verdict(text[:LONGEST], rubric)
        scores = {name: _score(found, name, rubric) for name in rubric.criteria}
    except _Unreadable as error:
        return Parsed(error.status, str(error))
    said = {name: storable(_explanation(found[name])) for name in rubric.criteria}
    extra = tuple(storable(key)[:QUOTED] for key in found if key not in rubric.criteria)
    return Parsed(Status.OK, "", Reply(scores, said), extra)


def storable(text: str) -> str:
    """Return the text without what a database cannot hold: NUL and halves of surrogate pairs."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _verdict(text: str, rubric: Rubric) -> dict[str, Any]:
    """Return the object that holds the verdict: the last one that names a criterion."""
    last: dict[str, Any] | None = None
    breaks_off = False
    for found in objects(text):
        if isinstance(found, str):
            breaks_off = breaks_off or found in rubric.criteria
        elif any(name in found for name in rubric.criteria):
            last, breaks_off = found, False
        else:
            last = found if last is None else last
    if breaks_off:
        raise _Unreadable(Status.INVALID_JSON, "the last verdict breaks off")
    if last is None:
        raise _Unreadable(Status.INVALID_JSON, "the answer holds no JSON object")
    return last


def objects(text: str) -> Iterator[dict[str, Any] | str]:
    """Yield the whole text if it is an object; else the outermost objects in it, in their order.

    For what begins as an object but does not end, its first key.
    """
    whole = _load(text.strip())
    if whole is not None:
        yield whole
        return
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    at = text.find("{")
    while at >= 0:
        end = at + 1
        try:
            found, end = decoder.raw_decode(text, at)
            yield found
        except RecursionError:
            return
        except ValueError:
            if key := FIRST_KEY.match(text, at):
                yield key[1]
        at = text.find("{", end)


def _load(text: str) -> dict[str, Any] | None:
    """Return the object a text is, or None where it is none."""
    try:
        found = json.loads(text, strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _decimal(text: str) -> Decimal:
    """Return a number exactly as it is written; one beyond all bounds is no number."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its pairs; a key with two values has neither."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        differs = key in found and repr(found[key]) != repr(value)
        found[key] = _Twice() if differs else value
    return found


def _score(found: dict[str, Any], name: str, rubric: Rubric) -> float:
    """Return the score of one criterion, or raise with the reason there is none."""
    one = found.get(name)
    value = one.get("score") if isinstance(one, dict) else None
    if isinstance(one, _Twice) or isinstance(value, _Twice):
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
