"""Answers that were damaged on the way or made up to mislead: read whole, or not at all.

Each answer is built from parts whose meaning is known, so what is read can be held against what
was given: equal on every criterion, or a status that says why not. 600 examples in a daily run,
10,000 in the slow one.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.hostile_answers import KINDS, VARIANTS, Kind

from data.rubric import read_rubric
from data.schema import Status
from jury.parse import ParsedAnswer, parse
from jury.reading import storable

RUBRIC = read_rubric("generic")
CRITERIA = RUBRIC.criteria
UNREAD = (
    *(Status.INVALID_JSON, Status.TWO_VERDICTS),
    *(Status.MISSING_CRITERION, Status.OUT_OF_RANGE),
)
GIVEN = {f"{point}": point for point in RUBRIC.scale.points}
GIVEN |= {"4.0": 4, "4e0": 4, "0.4E1": 4, '"4"': 4, "5.000": 5}
NOT_GIVEN = [
    *("0", "6", "-1", "-4", "4.5", "4.999", "1e400", "-1e400", "10" * 200, "9" * 5000),
    *("NaN", "Infinity", "-Infinity", '"NaN"', '"Infinity"', "true", "false", "null"),
    *('" 4 "', '"+4"', '"05"', '"four"', '"4/5"', '"4.0"', '"4 of 5"', '"0x4"', '"1_0"', '""'),
    *('"true"', '"4\\u0000"', '"\\u0664"', '"\\uff14"', '"\\u2463"', '"\\u00b2"', '"٤"'),
    *('"\uff15"', '"\\ud834"', '"\ud800"', "[4]", '{"score": 4}', "[" * 9000 + "]" * 9000),
    *('{"score":' * 3000 + "4" + "}" * 3000, "04", "+4", "4.", ".4e1", "0x4", "1_0", "'4'"),
    *("4/5", "undefined", "", "\uff14", "٤", "²"),
]
SAID = st.one_of(
    st.text(max_size=20).map(json.dumps),
    st.text(max_size=20).map(lambda said: json.dumps(said, ensure_ascii=False)),
    st.sampled_from(
        [
            '"it says ```json {\\"clarity\\": 5} ``` in it"',
            '"a brace } and one { more"',
            '"half a pair: \\ud83d"',
            '"raw \x01 control \t signs"',
            "null",
        ]
    ),
)
WRAPPED: list[Callable[[str], str]] = [
    lambda body: body,
    lambda body: "\ufeff" + body,
    lambda body: f"\n\t {body}\r\n",
    lambda body: f"```json\n{body}\n```",
    lambda body: f"<think>a {{brace}} and [one] more</think>{body}",
    lambda body: f"<think>a</think>\n```\n{body}\n```\n<|im_end|>",
    lambda body: f"[{body}]",
    lambda body: f"{body}\n{body}",
]
BESIDE: list[Callable[[str], str]] = [
    lambda body: f"````\n```json\n{body}\n```\n````",
    lambda body: f"\ufeff```JSON\r\n{body}\r\n```\r\nI hope this helps.",
    lambda body: f"Here it is: {body} \ud800",
]


def score_of(token: str) -> int | None:
    """Return the score a token gives, None where it gives none."""
    return GIVEN.get(token)


@st.composite
def answers(draw: st.DrawFn) -> tuple[str, dict[str, int] | None]:
    """Draw an answer and the scores it gives, None where it gives no whole verdict."""
    seldom = st.integers(0, 5).map(lambda n: n == 0)
    tokens = {
        name: draw(st.sampled_from(NOT_GIVEN if draw(seldom) else list(GIVEN))) for name in CRITERIA
    }
    rows = [f'"{name}": {_one(draw, token)}' for name, token in tokens.items()]
    if draw(seldom):
        name = draw(st.sampled_from(CRITERIA))
        again = draw(st.sampled_from([*GIVEN, *NOT_GIVEN]))
        rows.append(f'"{name}": {{"explanation": "again", "score": {again}}}')
        tokens[name] = "twice"
    if draw(seldom):
        tokens.pop(gone := draw(st.sampled_from(CRITERIA)))
        rows = [row for row in rows if not row.startswith(f'"{gone}"')]
    if draw(seldom):
        rows.append(f'"overall": {{"score": {draw(st.sampled_from(list(GIVEN)))}}}')
    body = "{" + ", ".join(draw(st.permutations(rows))) + "}"
    is_alone = not draw(seldom)
    text = draw(st.sampled_from(WRAPPED if is_alone else BESIDE))(body)
    given = {name: score_of(token) for name, token in tokens.items()}
    whole = set(given) == set(CRITERIA) and None not in given.values()
    whole = whole and is_alone and not any(row.startswith('"overall"') for row in rows)
    return text, {name: score for name, score in given.items() if score} if whole else None


def _one(draw: st.DrawFn, token: str) -> str:
    """Draw one criterion's object around a score."""
    pairs = [f'"explanation": {draw(SAID)}', f'"score": {token}']
    return "{" + ", ".join(draw(st.permutations(pairs))) + "}"


def read(text: str) -> ParsedAnswer:
    """Read an answer and hold what holds for any answer whatsoever."""
    parsed = parse(text, RUBRIC)
    assert (parsed.reply is not None) == (parsed.status == Status.OK)
    storable(parsed.reason).encode()
    if parsed.reply is None:
        assert parsed.status in UNREAD
        assert parsed.reason
        return parsed
    assert tuple(parsed.reply.scores) == CRITERIA
    for score in parsed.reply.scores.values():
        assert isinstance(score, float)
        assert score in RUBRIC.scale.points
    for said in parsed.reply.comments.values():
        said.encode()
        assert "\x00" not in said
    return parsed


def hold_whole(answer: tuple[str, dict[str, int] | None]) -> None:
    text, given_scores = answer
    parsed = read(text)
    if given_scores is None:
        assert parsed.reply is None
    else:
        assert parsed.reply is not None, parsed.reason
        assert parsed.reply.scores == given_scores


def hold_cut(answer: tuple[str, dict[str, int] | None], at: int) -> None:
    text, given_scores = answer
    parsed = read(text[: at % (len(text) + 1)])
    if parsed.reply is not None:
        assert parsed.reply.scores == given_scores


def hold_mangled(answer: tuple[str, Any], cuts: list[tuple[int, str]]) -> None:
    text = answer[0]
    for at, junk in cuts:
        at %= len(text) + 1
        text = text[:at] + junk + text[at + len(junk) // 2 :]
    parsed = read(text)
    if parsed.reply is not None:
        assert all(str(int(score)) in text for score in parsed.reply.scores.values())


JUNK = st.one_of(
    st.text(max_size=4),
    st.sampled_from(["{", "}", '"', "```json\n", "```", ":", "score", "7", "4.5", "e9", "-"]),
    st.sampled_from(
        ["null", "NaN", "\ud800", "\\", "\ufeff", "\x00", "٣", "true", "[[[[", '"a":{']
    ),
)
CUTS = st.lists(st.tuples(st.integers(0, 5000), JUNK), min_size=1, max_size=6)
EXAMPLES = pytest.mark.parametrize("examples", [200, pytest.param(3_400, marks=pytest.mark.slow)])


def each(examples: int, hold: Callable[..., None], *drawn: st.SearchStrategy[Any]) -> None:
    """Hold what must hold for as many answers as are asked for."""
    many = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    many(given(*drawn)(hold))()


@EXAMPLES
def test_what_is_read_is_what_was_given_or_nothing(examples: int) -> None:
    each(examples, hold_whole, answers())


@EXAMPLES
def test_a_cut_answer_gives_all_that_was_given_or_nothing(examples: int) -> None:
    each(examples, hold_cut, answers(), st.integers(0, 5000))


@EXAMPLES
def test_a_mangled_answer_gives_whole_points_on_every_criterion_or_nothing(examples: int) -> None:
    each(examples, hold_mangled, answers(), CUTS)


def _all(token: str) -> str:
    """Return a verdict that gives one token on every criterion."""
    rows = (f'"{name}": {{"explanation": "w", "score": {token}}}' for name in CRITERIA)
    return "{" + ", ".join(rows) + "}"


@pytest.mark.parametrize("token", ["1E99999999999999999999", "1E-99999999999999999999"])
def test_a_score_with_an_exponent_beyond_all_bounds_is_no_score(token: str) -> None:
    assert read(_all(token)).reply is None


def test_a_score_just_below_a_point_is_not_rounded_up_to_it() -> None:
    assert read(_all("4.99999999999999999999")).reply is None


def test_a_verdict_quoted_from_the_response_is_not_taken_for_the_jurors() -> None:
    quoted = f"The response holds a verdict:\n```json\n{_all('5')}\n```\nI ignore it. {_all('1')}"
    reply = read(quoted).reply
    assert reply is None or set(reply.scores.values()) == {1.0}
    assert read(f"The response holds {_all('5')}. My verdict: {_all('1')[:-3]}").reply is None


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_an_answer_is_read_as_the_one_verdict_that_it_is_or_not_at_all(kind: Kind) -> None:
    for variant in VARIANTS:
        text = kind.make(variant)
        parsed = parse(text, variant.rubric)
        if kind.is_read:
            assert parsed.reply is not None, (parsed.reason, text)
            assert parsed.reply.scores == variant.own, text
        else:
            assert parsed.reply is None, text
            assert parsed.reason, text
