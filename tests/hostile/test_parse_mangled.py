"""Answers that were damaged on the way or made up to mislead: read whole, or not at all.

Each answer is built from parts whose meaning is known, so what is read can be held against what
was given: equal on every criterion, or a status that says why not. 600 examples in a daily run,
10,000 in the slow one.
"""

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kit.hostile_answers import KINDS, VARIANTS
from kit.rating_study import rubric

from data.rubric import read_rubric
from data.schema import Status
from jury.parse import parse
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


def score_of(token):
    return GIVEN.get(token)


@st.composite
def answers(draw):
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


def _one(draw, token):
    """Draw one criterion's object around a score."""
    pairs = [f'"explanation": {draw(SAID)}', f'"score": {token}']
    return "{" + ", ".join(draw(st.permutations(pairs))) + "}"


def read(text):
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


def hold_whole(answer):
    text, given_scores = answer
    parsed = read(text)
    if given_scores is None:
        assert parsed.reply is None
    else:
        assert parsed.reply is not None, parsed.reason
        assert parsed.reply.scores == given_scores


def hold_cut(answer, at):
    text, given_scores = answer
    parsed = read(text[: at % (len(text) + 1)])
    if parsed.reply is not None:
        assert parsed.reply.scores == given_scores


def hold_mangled(answer, cuts):
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


def each(examples, hold, *drawn):
    """Hold what must hold for as many answers as are asked for."""
    many = settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
    many(given(*drawn)(hold))()


@EXAMPLES
def test_what_is_read_is_what_was_given_or_nothing(examples):
    each(examples, hold_whole, answers())


@EXAMPLES
def test_a_cut_answer_gives_all_that_was_given_or_nothing(examples):
    each(examples, hold_cut, answers(), st.integers(0, 5000))


@EXAMPLES
def test_a_mangled_answer_gives_whole_points_on_every_criterion_or_nothing(examples):
    each(examples, hold_mangled, answers(), CUTS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_an_answer_is_read_as_the_one_verdict_that_it_is_or_not_at_all(kind):
    for variant in VARIANTS:
        text = kind.make(variant)
        parsed = parse(text, variant.rubric)
        if kind.is_read:
            assert parsed.reply is not None, (parsed.reason, text)
            assert parsed.reply.scores == variant.own, text
        else:
            assert parsed.reply is None, text
            assert parsed.reason, text


LITERAL = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
OTHERS = ("harm", "empathy")
# With zero, below it, and of two digits and three.
SCALES = [rubric(*OTHERS, low=low, high=high) for low, high in ((-2, 2), (0, 10), (0, 1), (1, 100))]
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
SCRAPS = st.one_of(
    st.sampled_from(["{", "}", '"', ",", ":", "-", "1", "0", ".", "e", "E9", "e99999999", "\\u0031"]),
    st.sampled_from(["\u0661", "\uff11", "\x00", "\ud800", "```", "\\", "\n", "null", "score", "harm"]),
)  # fmt: skip


@st.composite
def judgements(draw):
    """Draw an answer as models write it, then damage it."""
    number = st.sampled_from(NUMBERS)
    said = {name: f'{{"explanation": "because 5", "score": {draw(number)}}}' for name in OTHERS}
    body = "{" + ", ".join(f'"{name}": {one}' for name, one in said.items()) + "}"
    text = f"{draw(PROSE)}\n{body}\n{draw(PROSE)}"
    for at, junk in draw(st.lists(st.tuples(st.integers(0, 500), SCRAPS), max_size=5)):
        at %= len(text) + 1
        text = text[:at] + junk + text[at + draw(st.integers(0, 2)) :]
    return text


def literals(text):
    """Return every number that stands in a text in plain digits, with what JSON escapes read."""
    found = set()
    for one in LITERAL.findall(text.replace("\\u0031", "1")):
        try:
            found.add(Decimal(one))
        except InvalidOperation:
            continue
    return found


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(judgements(), st.sampled_from(SCALES))
@example('{"harm": {"score": 1e1000000}, "empathy": {"score": 1}}', SCALES[0])
@example('{"harm": {"score": -1e1000000}, "empathy": {"score": 1}}', SCALES[0])
def test_a_score_stands_in_the_answer_to_the_letter_and_on_the_scale(text, asked):
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
                    | st.dictionaries(st.sampled_from([*OTHERS, "score", "x"]), inner, max_size=4),
                    max_leaves=20))  # fmt: skip
def test_any_json_gives_whole_points_on_every_criterion_or_nothing(value):
    parsed = parse(json.dumps(value), SCALES[1])
    if parsed.reply is not None:
        assert set(parsed.reply.scores) == set(OTHERS)
        for name, score in parsed.reply.scores.items():
            assert any(_score(one, name) == score for one in _objects(value)), value


def _objects(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [value] if isinstance(value, dict) else []
    return own + [one for each in inner for one in _objects(each)]


def _score(found, name):
    one = found.get(name)
    said = one.get("score") if isinstance(one, dict) else None
    return float(said) if isinstance(said, str) and said.strip() else said
