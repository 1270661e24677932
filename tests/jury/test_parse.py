"""Reading answers: only a verdict that was given makes a score."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.schema import Status
from jury.parse import parse

RUBRIC = read_rubric("generic")
GOOD = {name: {"explanation": "why", "score": 4} for name in RUBRIC.criteria}


def with_score(value: object) -> str:
    return json.dumps(GOOD | {"clarity": {"explanation": "why", "score": value}})


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"\n {json.dumps(GOOD, indent=2)}\n",
        f"```\n{json.dumps(GOOD)}\n```",
        f"<think>is {{this}} fine?</think> {json.dumps(GOOD)}",
        f"[{json.dumps(GOOD)}]",
        json.dumps(GOOD).replace("why", "tab\there and\nnewline \x01"),
        f"<think>draft {with_score(1)}</think>{json.dumps(GOOD)}",
        f"It lacks the rash.\n</think>\n\n{json.dumps(GOOD)}",
        f"[THINK]draft {with_score(1)}[/THINK]{json.dumps(GOOD)}",
        f"<|START_THINKING|>{with_score(1)}<|END_THINKING|>"
        f"<|START_RESPONSE|>{json.dumps(GOOD)}<|END_RESPONSE|>",
        f"<|channel>thought\n{with_score(1)}<channel|>{json.dumps(GOOD)}",
        f"Here is my thought process:\nIt is fine.\n\nHere is my response:\n{json.dumps(GOOD)}",
        f"thought\n{json.dumps(GOOD)}",
        f"<think>a</think><answer>\n{json.dumps(GOOD)}\n</answer>",
    ],
)
def test_a_whole_verdict_is_read_alone_fenced_or_balanced(text: str) -> None:
    parsed = parse(text, RUBRIC)
    assert parsed.status == Status.OK
    assert parsed.reply is not None
    assert parsed.reply.scores == dict.fromkeys(RUBRIC.criteria, 4.0)


@pytest.mark.parametrize("value", [4, 4.0, "4"])
def test_a_whole_number_on_the_scale_is_a_score(value: object) -> None:
    parsed = parse(with_score(value), RUBRIC)
    assert parsed.reply is not None
    assert parsed.reply.scores["clarity"] == 4.0


@pytest.mark.parametrize(
    "value",
    [
        0,
        6,
        7,
        -1,
        4.5,
        4.999,
        True,
        False,
        "4.0",
        "4/5",
        "four",
        "٤",
        "",
        [4],
        {"a": 4},
        1e400,
        10**400,
    ],
)
def test_anything_else_is_out_of_range_and_never_bent(value: object) -> None:
    parsed = parse(with_score(value), RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.OUT_OF_RANGE, None)
    assert "clarity" in parsed.reason
    assert "1-5" in parsed.reason


def test_a_number_too_long_to_read_is_no_verdict() -> None:
    text = with_score("LONG").replace('"LONG"', "9" * 5000)
    assert parse(text, RUBRIC).reply is None


@pytest.mark.parametrize(
    "gap", [{}, {"clarity": None}, {"clarity": 4}, {"clarity": {"score": None}}]
)
def test_a_criterion_without_a_score_is_missing(gap: dict[str, object]) -> None:
    body = {name: form for name, form in GOOD.items() if name != "clarity"} | gap
    parsed = parse(json.dumps(body), RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.MISSING_CRITERION, None)
    assert parsed.reason == "clarity: no score is given"


@pytest.mark.parametrize(
    "text", ["", "I cannot judge this.", "{", "4", "[1, 2]", "null", '{"accuracy": ']
)
def test_a_text_without_an_object_is_invalid_json(text: str) -> None:
    assert parse(text, RUBRIC).status == Status.INVALID_JSON


def test_a_criterion_given_twice_with_two_scores_says_nothing() -> None:
    twice = json.dumps(GOOD)[:-1] + ', "clarity": {"explanation": "", "score": 1}}'
    assert parse(twice, RUBRIC).status == Status.INVALID_JSON
    inside = json.dumps(GOOD).replace('"score": 4', '"score": 4, "score": 2')
    assert parse(inside, RUBRIC).status == Status.INVALID_JSON


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"Here it is:\n{json.dumps(GOOD)}", "something else stands beside the JSON object"),
        (f"{json.dumps(GOOD)}\nI hope this helps.", "something else stands beside"),
        (json.dumps(GOOD | {"overall": {"score": 1}}), '"overall" is not asked for'),
        (json.dumps(GOOD | {"": "x"}), '"" is not asked for'),
        (with_score(4).replace('"score": 4', '"score": 4, "of": 5', 1), '"of" is not asked for'),
        (with_score(4).replace('"score": 4', '"score": 4, "": 5', 1), '"" is not asked for'),
        (f"{json.dumps(GOOD)}\n{with_score(1)}", "two verdicts that differ"),
        (f"<think>{json.dumps(GOOD)}", "reasoning that never ends"),
        (f"{json.dumps(GOOD)}\n</think>\n{with_score(1)}", "something else stands beside"),
    ],
)
def test_anything_beside_the_one_object_is_named_and_gives_no_verdict(text: str, why: str) -> None:
    parsed = parse(text, RUBRIC)
    assert parsed.reply is None
    assert why in parsed.reason


def test_explanations_become_comments_a_database_can_hold() -> None:
    body = json.dumps(GOOD | {"clarity": {"explanation": "a\ud800b\x00c", "score": 4}})
    parsed = parse(body, RUBRIC)
    assert parsed.reply is not None
    assert parsed.reply.comments["clarity"].encode() == "a?b\ufffdc".encode()


def test_deep_nesting_is_read_as_no_verdict_and_crashes_nothing() -> None:
    assert parse('{"a":' * 100_000, RUBRIC).status == Status.INVALID_JSON
    assert parse("[" * 100_000, RUBRIC).status == Status.INVALID_JSON


def test_a_scale_from_zero_to_ten_has_its_own_points() -> None:
    one = Criterion(name="risk", question="?", anchors={0: "none", 10: "all"})
    rubric = Rubric(
        name="r",
        version="1",
        audience="a",
        gold="never",
        scale=Scale(min=0, max=10),
        criterion=(one,),
        prompt="{{response}}",
    )
    assert parse('{"risk": {"score": 0}}', rubric).status == Status.OK
    assert parse('{"risk": {"score": 11}}', rubric).status == Status.OUT_OF_RANGE


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda c: st.lists(c) | st.dictionaries(st.sampled_from([*RUBRIC.criteria, "score"]), c),
    )
)
def test_any_json_at_all_is_read_without_a_crash(value: object) -> None:
    parse(json.dumps(value), RUBRIC)
