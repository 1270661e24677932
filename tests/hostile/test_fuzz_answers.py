"""Jurors' answers, damaged: no score that is not in the answer to the letter, on any scale.

`test_parse_mangled.py` holds the generic scale 1-5; here are scales with zero, below it, and of two digits.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from data.rubric import Criterion, Rubric, Scale
from data.schema import Status
from jury.parse import parse

LITERAL = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
CRITERIA = ("harm", "empathy")


def rubric(low: int, high: int) -> Rubric:
    anchors = dict.fromkeys(range(low, high + 1), "so")
    asked = [Criterion(name=one, question="?", anchors=anchors) for one in CRITERIA]
    told = {"name": "odd", "version": "1", "audience": "nurses", "gold": "never"}
    prompt = "{{criteria}} {{response}} {{schema}}"
    scale = Scale(min=low, max=high)
    return Rubric(**told, scale=scale, criterion=tuple(asked), prompt=prompt)


SCALES = [rubric(-2, 2), rubric(0, 10), rubric(0, 1), rubric(1, 100)]
NUMBERS = ["0", "-0", "-0.0", "-1", "-2", "1", "10", "100", "1e1", "1e2", "100e-1", "0.1e1", "1.0"]
NUMBERS += [
    "1e1000000",
    "-1e1000000",
    "1e-1000000",
    "1e999999999999999999",
    "0e1000000",
    "11",
    "-3",
]
NUMBERS += ['"1\\u001e"', "true", "null", "NaN", '"1"', '"-1"', '"1e0"', '"0.5"', '"one"', "[1]"]
NUMBERS += ['{"score": 1}']
PROSE = st.sampled_from(
    [
        "Let me think. On a scale of 0-10 the harm is 3/10.",
        "I rate harm: 7, empathy: 2.",
        '{"plan": "first read, then rate"}',
        "| harm | empathy |\n|---|---|\n| 4 | 5 |",
        "<think>harm 1? no, 2</think>",
        "```json\n{}\n```",
        'As JSON: {"harm": 3, "empathy": 4}',
        "\u2212" + "1 would be too low",
        "",
    ]
)
JUNK = st.one_of(
    st.sampled_from(["{", "}", '"', ",", ":", "-", "1", "0", ".", "e", "E9", "e99999999", "\\u0031"]),
    st.sampled_from(["\u0661", "\uff11", "\x00", "\ud800", "```", "\\", "\n", "null", "score", "harm"]),
)  # fmt: skip


@st.composite
def answers(draw: st.DrawFn) -> str:
    """Draw an answer as models write it, then damage it."""
    number = st.sampled_from(NUMBERS)
    said = {name: f'{{"explanation": "because 5", "score": {draw(number)}}}' for name in CRITERIA}
    body = "{" + ", ".join(f'"{name}": {one}' for name, one in said.items()) + "}"
    text = f"{draw(PROSE)}\n{body}\n{draw(PROSE)}"
    for at, junk in draw(st.lists(st.tuples(st.integers(0, 500), JUNK), max_size=5)):
        at %= len(text) + 1
        text = text[:at] + junk + text[at + draw(st.integers(0, 2)) :]
    return text


def literals(text: str) -> set[Decimal]:
    """Return every number that stands in a text in plain digits, with what JSON escapes read."""
    found = set()
    for one in LITERAL.findall(text.replace("\\u0031", "1")):
        try:
            found.add(Decimal(one))
        except InvalidOperation:
            continue
    return found


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(answers(), st.sampled_from(SCALES))
@example('{"harm": {"score": 1e1000000}, "empathy": {"score": 1}}', SCALES[0])
@example('{"harm": {"score": -1e1000000}, "empathy": {"score": 1}}', SCALES[0])
def test_a_score_stands_in_the_answer_to_the_letter_and_on_the_scale(
    text: str, asked: Rubric
) -> None:
    parsed = parse(text, asked)
    assert (parsed.reply is None) == (parsed.status != Status.OK)
    if parsed.reply is None:
        assert parsed.reason
        return
    known = literals(text)
    for score in parsed.reply.scores.values():
        assert score in asked.scale.points
        assert Decimal(score) in known, text


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=4)
                    | st.dictionaries(st.sampled_from([*CRITERIA, "score", "x"]), inner, max_size=4),
                    max_leaves=20))  # fmt: skip
def test_any_json_gives_whole_points_on_every_criterion_or_nothing(value: Any) -> None:
    parsed = parse(json.dumps(value), SCALES[1])
    if parsed.reply is not None:
        assert set(parsed.reply.scores) == set(CRITERIA)
        for name, score in parsed.reply.scores.items():
            assert any(_score(one, name) == score for one in _objects(value)), value


def _objects(value: Any) -> list[dict[str, Any]]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [one for each in inner for one in _objects(each)]


def _score(found: dict[str, Any], name: str) -> object:
    one = found.get(name)
    said = one.get("score") if isinstance(one, dict) else None
    return float(said) if isinstance(said, str) and said.strip() else said
