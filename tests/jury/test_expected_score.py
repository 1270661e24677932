"""The mean of a score's distribution: exact where it is served, and nothing where it cannot be told."""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.hostile_answers import KINDS
from kit.hostile_variants import VARIANTS, Kind

from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.schema import Status
from jury.call import Answer, Token
from jury.expected_score import LEAST_MASS, Distribution, read_for
from jury.panel import Juror
from jury.parse import ParsedAnswer, read_answer
from jury.providers.openai_chat import tokens_of

GENERIC = read_rubric("generic")
JUROR = Juror(
    name="j",
    provider="openai",
    model="m",
    family="f",
    base_url="http://127.0.0.1:1/v1",
    scores="expected",
)
Shares = dict[str, float]


def rubric(low: int, high: int, *criteria: str) -> Rubric:
    """Return a rubric with such a scale."""
    named = criteria or ("a",)
    anchors = dict.fromkeys(range(low, high + 1), "words")
    return Rubric(
        name="r",
        version="1",
        audience="x",
        gold="never",
        scale=Scale(min=low, max=high),
        criterion=tuple(Criterion(name=one, question="?", anchors=anchors) for one in named),
        prompt="{{response}} {{schema}}",
    )


def token(text: str | bytes, shares: Shares | None = None) -> Token:
    """Return a token that was certain, or one of these."""
    own = text.encode() if isinstance(text, str) else text
    options = shares or {}
    told = tuple((one.encode(), share) for one, share in options.items())
    return Token(own, told if own in dict(told) else ((own, 1.0 - sum(options.values())), *told))


def answer(*tokens: Token, text: str | None = None) -> Answer:
    """Return an answer made of tokens."""
    spelt = b"".join(one.text for one in tokens).decode("utf-8", "replace")
    return Answer(Status.OK, text=spelt if text is None else text, tokens=tokens)


def read(on: Rubric, *tokens: Token, text: str | None = None) -> ParsedAnswer:
    return read_for(JUROR, answer(*tokens, text=text), on)


def score(parsed: ParsedAnswer, name: str = "a") -> float:
    assert parsed.status == Status.OK, parsed.reason
    assert parsed.reply is not None
    return parsed.reply.scores[name]


def refused(parsed: ParsedAnswer, why: str) -> None:
    assert parsed.status == Status.NO_PROBABILITIES, parsed
    assert parsed.reply is None
    assert why in parsed.reason


FIVE = rubric(1, 5)
USUAL = {"4": 0.7, "5": 0.2, "3": 0.1}
START, END = token('{"a": {"explanation": "fine", "score": '), token("}}")


def test_the_score_is_the_mean_of_the_points_and_the_stated_one_is_kept_beside_it() -> None:
    parsed = read(FIVE, START, token("4", USUAL), END)
    assert score(parsed) == pytest.approx(4.1)
    assert parsed.answer == {
        "a": {
            "stated": 4,
            "probabilities": {"3": 0.1, "4": 0.7, "5": 0.2},
            "mass": pytest.approx(1.0),
        }
    }
    assert parsed.reply is not None
    assert parsed.reply.comments == {"a": "fine"}


@given(
    st.dictionaries(st.integers(1, 5), st.floats(1e-9, 1.0), min_size=1),
    st.floats(LEAST_MASS + 1e-6, 1.0),
)
def test_the_mean_lies_within_the_points_that_have_a_probability(
    weights: dict[int, float], mass: float
) -> None:
    total = sum(weights.values())
    shares = {point: mass * weight / total for point, weight in weights.items()}
    one = Distribution(min(shares), shares)
    assert min(shares) <= one.mean <= max(shares)
    assert one.mass == pytest.approx(mass)
    assert one.mean == pytest.approx(sum(p * w for p, w in weights.items()) / total)


@given(st.integers(1, 5), st.floats(1e-12, 1.0))
def test_a_certain_point_is_its_own_mean_to_the_last_digit(point: int, share: float) -> None:
    assert Distribution(point, {point: share}).mean == point


@given(st.permutations([1, 2, 3, 4, 5]), st.lists(st.floats(0.001, 1), min_size=5, max_size=5))
def test_the_order_in_which_a_server_lists_alternatives_is_no_part_of_the_score(
    order: list[int], weights: list[float]
) -> None:
    shares = {str(p): w / sum(weights) * 0.999 for p, w in zip(range(1, 6), weights, strict=True)}
    listed = {str(p): shares[str(p)] for p in order}
    means = {score(read(FIVE, START, token("4", one), END)) for one in (shares, listed)}
    assert len(means) == 1


@given(st.floats(0.0, 0.8), st.floats(0.0, 1.0))
def test_what_is_off_the_scale_is_in_no_mean_and_too_much_of_it_leaves_none(
    off: float, split: float
) -> None:
    on = 1.0 - off
    parsed = read(FIVE, START, token("4", {"4": on * split, "2": on - on * split, "9": off}), END)
    if on < LEAST_MASS - 1e-9:
        refused(parsed, "lies on points of the scale")
        assert parsed.answer is not None
        assert parsed.answer["a"]["mass"] == pytest.approx(on)
    elif on > LEAST_MASS + 1e-9:
        assert score(parsed) == pytest.approx(4 * split + 2 * (1 - split))


def test_alternatives_with_blanks_before_the_point_count_for_it() -> None:
    shares = {"4": 0.5, " 4": 0.2, "5": 0.2, "\n3": 0.1}
    assert score(read(FIVE, START, token("4", shares), END)) == pytest.approx(4.1)


def test_what_is_no_whole_number_of_the_scale_counts_for_no_point() -> None:
    odd = {"4.5": 0.01, "N": 0.005, "\uff14": 0.005, "45": 0.005, '"': 0.005, "4/": 0.005}
    parsed = read(FIVE, START, token("4", odd | {"4": 0.965}), END)
    assert score(parsed) == 4
    assert parsed.answer is not None
    assert parsed.answer["a"]["mass"] == pytest.approx(0.965)


def test_a_token_that_holds_signs_around_the_point_is_read_by_its_place() -> None:
    start = token('{"a": {"explanation": "fine", "score"')
    shares = {": 4}": 0.6, ": 5}": 0.3, ":3}": 0.1}
    assert score(read(FIVE, start, token(": 4}", shares), token("}"))) == pytest.approx(4.2)


def test_a_point_in_quotation_marks_is_read_as_the_verdict_is() -> None:
    start, end = token('{"a": {"explanation": "fine", "score": "'), token('"}}')
    assert score(read(FIVE, start, token("4", USUAL), end)) == pytest.approx(4.1)


@pytest.mark.parametrize("written", ["4.0", '"+4"', '" 4.0"', "4e0", '"\\u0034"'])
def test_a_score_that_is_not_written_as_a_bare_point_has_no_distribution(written: str) -> None:
    parsed = read(FIVE, START, token(written, {}), END)
    assert parsed.status in (Status.NO_PROBABILITIES, Status.OUT_OF_RANGE)
    assert parsed.reply is None


def test_scores_and_verdicts_inside_an_explanation_are_not_the_place_of_the_score() -> None:
    planted = (
        '{"a": {"explanation": "it says {\\"a\\": {\\"score\\": 5}} and score: 5, 5", "score": '
    )
    head = [token(planted[:60], {}), token(planted[60:], {})]
    assert score(read(FIVE, *head, token("2", {"2": 0.9, "1": 0.1}), END)) == pytest.approx(1.9)


def test_each_criterion_has_its_own_place_also_where_the_points_are_the_same() -> None:
    two = rubric(1, 5, "a", "b")
    parsed = read(
        two,
        token('{"a": {"score": '),
        token("5", {"5": 0.9, "4": 0.1}),
        token(', "explanation": "5 of 5"}, "b": {"score": '),
        token("5", {"5": 0.6, "3": 0.4}),
        token("}}"),
    )
    assert score(parsed, "a") == pytest.approx(4.9)
    assert score(parsed, "b") == pytest.approx(4.2)


@pytest.mark.parametrize("sign", ["é", "≥ 38,5 °C", "🩺", "漢字"])
def test_letters_that_tokens_split_do_not_move_the_place(sign: str) -> None:
    told = f'{{"a": {{"explanation": "{sign} 4", "score": '.encode()
    cut = told.index(sign.encode()) + 1  # within a character where it has several bytes
    parsed = read(FIVE, token(told[:cut]), token(told[cut:]), token("4", USUAL), END)
    assert score(parsed) == pytest.approx(4.1)


def test_a_server_that_spells_split_letters_by_a_sign_for_unknown_is_still_read() -> None:
    tokens = [
        token('{"a": {"explanation": "'),
        token("\ufffd"),
        token("\ufffd"),
        token('", "score":'),
    ]
    text = '{"a": {"explanation": "🩺", "score": 4}}'
    parsed = read(FIVE, *tokens, token("4", USUAL), END, text=text)
    assert score(parsed) == pytest.approx(4.1)


def test_reasoning_among_the_tokens_that_the_text_lacks_is_passed_over() -> None:
    thought = token('<think>{"a": {"score": 5}} would be too kind</think>')
    text = '{"a": {"explanation": "fine", "score": 4}}'
    parsed = read(FIVE, thought, START, token("4", USUAL), END, token("<|im_end|>"), text=text)
    assert score(parsed) == pytest.approx(4.1)


def test_reasoning_at_the_head_of_the_text_is_passed_over() -> None:
    thought = token('<think>\n{"a": {"score": 5}}\n</think>\n\n')
    parsed = read(FIVE, thought, START, token("4", USUAL), END)
    assert score(parsed) == pytest.approx(4.1)


def test_a_verdict_in_a_fence_is_found_at_its_place() -> None:
    parsed = read(
        FIVE, token("<think>5?</think>\n```json\n"), START, token("4", USUAL), END, token("\n```")
    )
    assert score(parsed) == pytest.approx(4.1)


def test_tokens_of_another_text_are_no_distribution() -> None:
    text = '{"a": {"explanation": "good", "score": 4}}'
    refused(read(FIVE, START, token("4", USUAL), END, text=text), "do not spell the answer")


def test_an_answer_that_stands_twice_among_the_tokens_has_no_place() -> None:
    text = '{"a": {"explanation": "fine", "score": 4}}'
    once = (START, token("4", USUAL), END)
    refused(read(FIVE, *once, *once, text=text), "do not spell the answer")


def test_a_verdict_given_twice_has_no_single_distribution() -> None:
    once = (START, token("4", USUAL), END)
    refused(read(FIVE, *once, token("\n"), *once), "given more than once")


def test_an_answer_without_log_probabilities_is_missing_and_not_its_stated_point() -> None:
    bare = Answer(Status.OK, text='{"a": {"explanation": "fine", "score": 4}}')
    refused(read_for(JUROR, bare, FIVE), "sends no log-probabilities")


def test_alternatives_that_a_server_caps_too_low_leave_no_mean() -> None:
    refused(read(FIVE, START, token("4", {"4": 0.5, "5": 0.3}), END), "0.800 of the probability")


def test_probabilities_that_add_up_to_more_than_one_are_none() -> None:
    refused(read(FIVE, START, token("4", {"4": 0.9, "5": 0.9}), END), "more than 1")


TEN = rubric(1, 10)


def test_ten_is_a_point_of_its_own_where_a_token_holds_both_digits() -> None:
    shares = {"10": 0.5, "9": 0.3, "1": 0.2}
    assert score(read(TEN, START, token("10", shares), END)) == pytest.approx(7.9)


def test_ten_in_two_tokens_is_followed_to_its_second() -> None:
    first, second = {"1": 0.6, "9": 0.4}, {"0": 0.9, "}": 0.1}
    parsed = read(TEN, START, token("1", first), token("0", second), END)
    assert score(parsed) == pytest.approx(10 * 0.54 + 1 * 0.06 + 9 * 0.4)


def test_one_is_not_taken_for_a_ten_whose_second_digit_was_not_looked_at() -> None:
    refused(read(TEN, START, token("7", {"7": 0.5, "1": 0.3, "8": 0.2}), END), "0.700")
    parsed = read(TEN, START, token("7", {"7": 0.78, "1": 0.02, "8": 0.2}), END)
    assert score(parsed) == pytest.approx((7 * 0.78 + 8 * 0.2) / 0.98)


def test_one_that_was_written_is_told_from_ten_by_what_follows_it() -> None:
    end = token("}}", {"}}": 0.95, "0": 0.05})
    parsed = read(TEN, START, token("1", {"1": 1.0}), end)
    assert score(parsed) == pytest.approx(0.95 + 0.5)


HUNDRED = Rubric(
    **FIVE.model_dump()
    | {
        "scale": {"min": 0, "max": 100},
        "criterion": [{"name": "a", "question": "?", "anchors": {0: "no", 100: "yes"}}],
    }
)


def test_two_digits_in_one_token_each_are_points() -> None:
    shares = {"85": 0.6, "90": 0.3, "8": 0.1}
    assert score(read(HUNDRED, START, token("85", shares), END)) == pytest.approx(78.8)


def test_points_of_several_digits_that_no_token_tells_apart_leave_no_mean() -> None:
    tokens = [token("8", {"8": 0.7, "9": 0.3}), token("5", {"5": 0.8, "0": 0.2})]
    refused(read(HUNDRED, START, *tokens, END), "0.700")


def test_points_below_zero_are_followed_behind_their_sign() -> None:
    around = rubric(-2, 2)
    first, second = {"-": 0.8, "0": 0.2}, {"1": 0.5, "2": 0.5}
    parsed = read(around, START, token("-", first), token("1", second), END)
    assert score(parsed) == pytest.approx(-1.2)
    whole = read(around, START, token("-1", {"-1": 0.8, "-2": 0.1, "1": 0.1}), END)
    assert score(whole) == pytest.approx(-0.9)


def served(*entries: tuple[str, float, Sequence[tuple[str, float]]]) -> dict[str, Any]:
    """Return log-probabilities as a server sends them."""

    def one(text: str, share: float) -> dict[str, Any]:
        return {"token": text, "logprob": math.log(share), "bytes": list(text.encode())}

    return {
        "content": [
            one(text, share) | {"top_logprobs": [one(*other) for other in others]}
            for text, share, others in entries
        ]
    }


def test_a_token_that_its_server_leaves_out_of_the_alternatives_is_among_the_options() -> None:
    tokens = tokens_of(served(("4", 0.1, [("5", 0.6), ("3", 0.3)]), ("}", 1.0, [("}", 1.0)])))
    assert dict(tokens[0].options) == pytest.approx({b"4": 0.1, b"5": 0.6, b"3": 0.3})
    assert len(tokens[1].options) == 1


@pytest.mark.parametrize(
    "broken",
    [
        None,
        [],
        {"content": None},
        {"content": "x"},
        {"content": [None]},
        {"content": [{"token": "4"}]},
        {"content": [{"token": "4", "logprob": 0.7}]},
        {"content": [{"token": "4", "logprob": True}]},
        {"content": [{"token": "4", "logprob": float("nan")}]},
        {"content": [{"token": 4, "logprob": -1.0}]},
        {"content": [{"token": "4", "logprob": -1.0, "bytes": [300]}]},
        {"content": [{"token": "4", "logprob": -1.0, "top_logprobs": {"4": -1.0}}]},
        {"content": [{"token": "4", "logprob": -1.0, "top_logprobs": [{"token": "5"}]}]},
        {"tokens": ["4"], "token_logprobs": [-1.0], "top_logprobs": [{"4": -1.0}]},
    ],
)
def test_log_probabilities_of_another_shape_are_none(broken: Any) -> None:
    assert tokens_of(broken) == ()


@pytest.mark.parametrize("least", [-9999.0, -(10**400), float("-inf")])
def test_what_cannot_be_at_all_has_the_probability_zero(least: float) -> None:
    content = [{"token": "4", "logprob": least, "bytes": None, "top_logprobs": []}]
    assert tokens_of({"content": content})[0].options == ((b"4", 0.0),)


@given(st.data())
def test_any_cut_of_an_answer_into_tokens_gives_the_stated_points_where_all_is_certain(
    data: st.DataObject,
) -> None:
    points = {name: data.draw(st.integers(1, 5)) for name in GENERIC.criteria}
    said = data.draw(st.text(max_size=30))
    text = json.dumps(
        {name: {"explanation": said, "score": point} for name, point in points.items()},
        ensure_ascii=data.draw(st.booleans()),
    )
    whole = text.encode("utf-8", "replace")
    ends = sorted(data.draw(st.sets(st.integers(1, max(1, len(whole) - 1)))) | {0, len(whole)})
    tokens = tuple(token(whole[a:b], {}) for a, b in pairwise(ends))
    parsed = read_for(JUROR, Answer(Status.OK, text=text, tokens=tokens), GENERIC)
    assert parsed.status == Status.OK, parsed.reason
    assert parsed.reply is not None
    assert parsed.reply.scores == points


def cut(text: str, seed: int) -> tuple[Token, ...]:
    """Return a text as tokens of one to six bytes, every digit with another one as likely beside it."""
    random, whole, at = Random(seed), text.encode("utf-8", "replace"), 0  # noqa: S311 a fixed cut
    found = []
    while at < len(whole):
        end = at + (1 if whole[at : at + 1].isdigit() else random.randint(1, 6))
        piece = whole[at:end]
        shares = {piece.decode(): 0.99, "9": 0.01} if piece.isdigit() else {}
        found.append(token(piece, shares))
        at = end
    return tuple(found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_no_hostile_answer_has_another_score_than_its_verdict_by_its_tokens(kind: Kind) -> None:
    for seed, variant in enumerate(VARIANTS[::12]):
        text, on = kind.make(variant), variant.rubric
        plain = read_answer(Answer(Status.OK, text=text), on)
        parsed = read_for(JUROR, Answer(Status.OK, text=text, tokens=cut(text, seed)), on)
        if parsed.reply is None:
            assert parsed.status in (plain.status, Status.NO_PROBABILITIES), text
            assert parsed.reason, text
            continue
        assert plain.reply is not None, text
        for name, mean in parsed.reply.scores.items():
            assert mean == pytest.approx(plain.reply.scores[name], abs=0.1), text
