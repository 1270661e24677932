"""The JSON objects that stand in a juror's answer, each with its place, and the reasoning before them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

FIRST_KEY = re.compile(
    r"""\{\s*(?:"([^"\\]{1,64})"|['`\u2018\u201c]?(\w{1,64})['`\u2019\u201d]?\s*:)"""
)
STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BEGINS = re.compile(r'\{[ \t\n\r]*["}]')
STRUCTURE = re.compile(rf"{STRING.pattern}|[{{}}]", re.DOTALL)
NAMES = r"(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis)"
OPENS = re.compile(
    rf"\s*(?:<{NAMES}(?:\s[^<>]*)?>|\[THINK(?:ING)?\]|\u25c1think\u25b7"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|commentary)<\|message\|>)",
    re.IGNORECASE,
)
CLOSES = re.compile(
    rf"</{NAMES}\s*>|\[/THINK(?:ING)?\]|\u25c1/think\u25b7"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)


class Conflicting:
    """Takes the place of a value where an object has its key twice with different values."""


@dataclass(frozen=True, slots=True)
class FoundObject:
    """An object in a text, from character `start` to `end`.

    Attributes
    ----------
    value
        The object; for one that breaks off, its first key.
    """

    start: int
    end: int
    value: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A stretch of a text, in characters."""

    start: int
    end: int


def after_reasoning(text: str) -> str:
    """Return the text without the blocks of reasoning that it begins with.

    A block ends at the first closing tag. One that is never closed takes all of the text. A block
    further down stays: a juror that quotes such a tag must not hide its own verdict by it.
    """
    text = text.lstrip("\ufeff \t\r\n")
    at = 0
    while opening := OPENS.match(text, at):
        closing = CLOSES.search(text, opening.end())
        at = closing.end() if closing else len(text)
    return text[at:]


def objects(text: str) -> Iterator[dict[str, Any] | str]:
    """Yield the values of `find_objects`, without their places."""
    return (located.value for located in find_objects(text))


def find_objects(text: str) -> Iterator[FoundObject]:
    """Yield the whole text if it is one object; else the outermost objects in it, in their order.

    What begins as an object but does not end is yielded with its first key.
    """
    whole = _load(text.strip())
    if whole is not None:
        yield FoundObject(0, len(text), whole)
        return
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    at = text.find("{")
    broken: set[int] = set()
    while at >= 0:
        end = at + 1
        try:
            if at not in broken and BEGINS.match(text, at):
                value, end = decoder.raw_decode(text, at)
                yield FoundObject(at, end, value)
        except RecursionError:
            yield FoundObject(at, len(text), "")
            return
        except ValueError as error:  # not JSON's own: a number too long
            failed = error.pos if isinstance(error, json.JSONDecodeError) else at
            broken.update(_still_open(text, at, failed))
        if end == at + 1 and (key := FIRST_KEY.match(text, at)):
            yield FoundObject(at, end, key[1] or key[2])
        at = text.find("{", end)


def _still_open(text: str, at: int, end: int) -> list[int]:
    """Return where the objects begin that are still open at `end`, where reading one failed."""
    opened: list[int] = []
    for token in STRUCTURE.finditer(text, at, end):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}" and opened:
            opened.pop()
    return opened


def member_spans(text: str, at: int) -> list[tuple[str, TextSpan]]:
    """Return the keys of the object that begins at `at`, and where their values stand.

    For an object that `find_objects` has yielded: it can be read.
    """
    decoder = json.JSONDecoder(strict=False, parse_float=_decimal)
    spans, at = [], _skip(text, at + 1)
    while key := STRING.match(text, at):
        start = _skip(text, _skip(text, key.end()) + 1)
        end = decoder.raw_decode(text, start)[1]
        spans.append((json.loads(key[0], strict=False), TextSpan(start, end)))
        at = _skip(text, _skip(text, end) + 1)
    return spans


def _skip(text: str, at: int) -> int:
    """Return the position of the next character that is not JSON white space."""
    while text[at : at + 1] in (" ", "\t", "\r", "\n"):
        at += 1
    return at


def _load(text: str) -> dict[str, Any] | None:
    """Return the object a text is, or None where it is none."""
    try:
        value = json.loads(text, strict=False, object_pairs_hook=_pairs, parse_float=_decimal)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _decimal(text: str) -> Decimal:
    """Return a number exactly as it is written; NaN for one that a Decimal cannot hold."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object from its pairs; a key with two different values is `Conflicting`."""
    members: dict[str, Any] = {}
    for key, value in pairs:
        differs = key in members and repr(members[key]) != repr(value)
        members[key] = Conflicting() if differs else value
    return members
