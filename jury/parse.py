"""How an answer could be read, for a rubric and for the places of its values."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from data.calls import Status
from data.card import Reply
from data.rubric import Rubric
from jury.call import Answer
from jury.reading import Unreadable, decimal, objects, read_verdict, skip

STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """How an answer could be read.

    Attributes
    ----------
    reason
        Why it could not be used, empty if the status is OK.
    reply
        Scores and explanations of a usable verdict; None for all else.
    answer
        What else was read, as it is stored (`data.schema.Attempt`); None where there is nothing.
    rubric
        The rubric that an answer proposes; None for all else.
    """

    status: Status
    reason: str = ""
    reply: Reply | None = None
    answer: Mapping[str, Any] | None = None
    rubric: Any = None


class TextSpan(NamedTuple):
    """A stretch of a text, in characters."""

    start: int
    end: int


def form_of(rubric: Rubric) -> dict[str, Any]:
    """Return the form of a verdict on a rubric, as `read_verdict` takes it."""
    scales = {name: rubric.scale_of(name) for name in rubric.criteria}
    return {
        "criteria": {
            name: {"min": scale.min, "max": scale.max, "answers": list(rubric.answers_of(name))}
            for name, scale in scales.items()
        },
        "word": rubric.word,
    }


def read_answer(answer: Answer, rubric: Rubric) -> ParsedAnswer:
    """Return the verdict in an answer on a rubric, or why there is none."""
    if answer.status != Status.OK:
        return ParsedAnswer(answer.status, answer.reason)
    return parse(answer.text, rubric)


def parse(text: str, rubric: Rubric) -> ParsedAnswer:
    """Return the verdict in an answer's text, or why there is none; never raises, never guesses."""
    try:
        return ParsedAnswer(Status.OK, "", Reply(*read_verdict(text, form_of(rubric))))
    except Unreadable as error:
        return ParsedAnswer(Status(error.status), str(error))


def object_start(text: str) -> int | None:
    """Return where the object of an answer begins; None if it is repeated."""
    found = objects(text)
    return found[0][0] if len(found) == 1 else None


def member_spans(text: str, at: int) -> list[tuple[str, TextSpan]]:
    """Return the keys of the object that begins at `at` and can be read, and where their values stand."""
    decoder = json.JSONDecoder(strict=False, parse_float=decimal)
    spans, at = [], skip(text, at + 1)
    while key := STRING.match(text, at):
        start = skip(text, skip(text, key.end()) + 1)
        end = decoder.raw_decode(text, start)[1]
        spans.append((json.loads(key[0], strict=False), TextSpan(start, end)))
        at = skip(text, skip(text, end) + 1)
    return spans
