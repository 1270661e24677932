"""Reading answers: only a verdict that was given makes a score, and the mean only of a distribution that was served."""

import asyncio
import csv
import json
import math
from collections.abc import Iterator
from itertools import combinations, pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.batches import BatchStub
from kit.batches import run as run_in_batches
from kit.hostile_answers import KINDS, VARIANTS
from kit.jurors import Do, Seen, Stub, entry, juror, served, verdict_of
from kit.jury_runs import attempts, panel_at, ratings
from kit.jury_runs import run as run_panel
from kit.rating_study import rubric
from kit.scores import study

from calibration.details import StudyContext, details
from calibration.reliability import clinician_reliability
from calibration.values import AnalysisOptions
from data.card import Card
from data.errors import BadPanel
from data.question import ORDER_SENTENCES
from data.rubric import Rubric, read_rubric
from data.schema import Status
from jury.call import Answer, Call, Token, Turn
from jury.expected_score import LEAST_MASS, Distribution, read_for
from jury.panel import Juror, read_panel, refuse_form
from jury.parse import ParsedAnswer, parse, read_answer
from jury.probe import probe
from jury.providers.openai_chat import tokens_of
from jury.providers.simulated import SAMPLES, Simulated

RUBRIC = read_rubric("generic")
GOOD = {name: {"explanation": "why", "score": 4} for name in RUBRIC.criteria}


def with_score(value: object) -> str:
    return json.dumps(GOOD | {"clarity": {"explanation": "why", "score": value}})


@pytest.mark.parametrize(
    "value",
    [
        *(0, 6, 7, -1, 4.5, 4.999, 1e400, 10**400, True, False),
        *("4.0", "4/5", "four", "٤", "", [4], {"a": 4}),
    ],
)
def test_anything_else_is_out_of_range_and_never_bent(value):
    parsed = parse(with_score(value), RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.OUT_OF_RANGE, None)
    assert "clarity" in parsed.reason
    assert "1-5" in parsed.reason


@pytest.mark.parametrize(
    "gap", [{}, {"clarity": None}, {"clarity": 4}, {"clarity": {"score": None}}]
)
def test_a_criterion_without_a_score_is_missing(gap):
    body = {name: form for name, form in GOOD.items() if name != "clarity"} | gap
    parsed = parse(json.dumps(body), RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.MISSING_CRITERION, None)
    assert parsed.reason == "clarity: no score is given"


TWICE = json.dumps(GOOD)[:-1] + ', "clarity": {"explanation": "", "score": 1}}'
INSIDE = json.dumps(GOOD).replace('"score": 4', '"score": 4, "score": 2')
LONG = with_score("LONG").replace('"LONG"', "9" * 5000)


@pytest.mark.parametrize(
    "text",
    [
        *("", "I cannot judge this.", "{", "4", "[1, 2]", "null", '{"accuracy": '),
        *('{"a":' * 100_000, "[" * 100_000, TWICE, INSIDE, LONG),
    ],
    ids=lambda text: text[:30],
)
def test_a_text_without_one_object_or_with_two_scores_of_a_criterion_is_no_verdict(text):
    parsed = parse(text, RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.INVALID_JSON, None)


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
def test_anything_beside_the_one_object_is_named_and_gives_no_verdict(text, why):
    parsed = parse(text, RUBRIC)
    assert parsed.reply is None
    assert why in parsed.reason


def test_explanations_become_comments_a_database_can_hold():
    body = json.dumps(GOOD | {"clarity": {"explanation": "a\ud800b\x00c", "score": 4}})
    parsed = parse(body, RUBRIC)
    assert parsed.reply.comments["clarity"].encode() == "a?b\ufffdc".encode()


def test_a_scale_from_zero_to_ten_has_its_own_points():
    ten = rubric("risk", low=0, high=10)
    found = [parse(f'{{"risk": {{"score": {point}}}}}', ten).status for point in (0, 11)]
    assert found == [Status.OK, Status.OUT_OF_RANGE]


JURORS = read_panel("simulated").juror


def composite(juror: Juror, response: str, replicate: int = 0) -> float:
    prompt = RUBRIC.render(Card("c", "context", "task", response))
    call = Call((Turn("user", prompt),), RUBRIC.json_schema(), replicate=replicate)
    answer = asyncio.run(Simulated(juror).complete(call))
    usage = (round(len(prompt) / 3.5), round(len(answer.text) / 3.5))
    assert (answer.usage.tokens_in, answer.usage.tokens_out) == usage
    reply = parse(answer.text, RUBRIC).reply
    assert all("simulated" in comment for comment in reply.comments.values())
    return float(np.mean(list(reply.scores.values())))


def test_simulated_jurors_agree_with_the_plan_and_each_other_as_a_real_panel_might():
    with (SAMPLES / "planned.csv").open(encoding="utf-8", newline="") as file:
        planned: dict[str, list[float]] = {}
        for row in csv.DictReader(file):
            planned.setdefault(row["response_id"], []).append(float(row["quality"]))
    lines = (SAMPLES / "responses.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["response_id"] in planned]
    wanted = [np.mean(planned[row["response_id"]]) for row in rows]
    given = [[composite(juror, row["response"]) for row in rows] for juror in JURORS]
    assert 0.6 < np.corrcoef(np.mean(given, axis=0), wanted)[0, 1] < 0.85
    between = [np.corrcoef(given[a], given[b])[0, 1] for a, b in combinations(range(3), 2)]
    assert 0.45 < np.mean(between) < 0.7
    lenient, steady, strict = np.mean(given, axis=1)
    assert lenient > steady > strict


def test_a_juror_says_the_same_of_a_text_wherever_it_stands_and_nearly_when_repeated():
    texts = [f"response {n}" for n in range(40)]
    first = [composite(JURORS[0], text) for text in texts]
    assert first == [composite(JURORS[0], text) for text in texts]
    again = [composite(JURORS[0], text, replicate=1) for text in texts]
    assert first != again
    assert np.corrcoef(first, again)[0, 1] > 0.8
    text = "a line\n</reference>\nanother <response> line"
    assert composite(JURORS[1], text) == composite(JURORS[1], f"\n{text}  ")


def test_an_unknown_simulated_model_is_refused_with_those_there_are():
    with pytest.raises(BadPanel, match="simulated-lenient, simulated-steady, simulated-strict"):
        Simulated(JURORS[0].model_copy(update={"model": "nonsense"}))


def test_every_row_behind_the_table_says_that_a_juror_it_is_about_is_simulated():
    scores = study(n=24, simulated=["claude"])
    options = AnalysisOptions(reps=20, jurors=scores.raters("juror"))
    known = StudyContext(reference=clinician_reliability(scores, options))
    silent = []
    for section, rows in details(scores, options, known).items():
        for row in rows:
            texts = [value for value in vars(row).values() if isinstance(value, str)]
            of_jury = "jury" in texts
            if (of_jury or any("claude" in text for text in texts)) and not row.simulated:
                silent.append((section, texts))
    assert silent == []


EXPECTING = juror("openai", "http://127.0.0.1:1/v1", scores="expected")


def token(text: str | bytes, shares: dict[str, float] | None = None) -> Token:
    """Return a token that was certain, or one of these."""
    own = text.encode() if isinstance(text, str) else text
    options = shares or {}
    told = tuple((one.encode(), share) for one, share in options.items())
    return Token(own, told if own in dict(told) else ((own, 1.0 - sum(options.values())), *told))


FIVE = rubric("a")
USUAL = {"4": 0.7, "5": 0.2, "3": 0.1}
HEAD = '{"a": {"explanation": "fine", "score": '
Piece = str | tuple[str, dict[str, float]]


def scored(*pieces: Piece, text: str | None = None, on: Rubric = FIVE) -> ParsedAnswer:
    """Return the reading of an answer of tokens, each certain or with its alternatives."""
    tokens = tuple(token(one) if isinstance(one, str) else token(*one) for one in pieces)
    spelt = b"".join(one.text for one in tokens).decode("utf-8", "replace")
    told = Answer(Status.OK, text=spelt if text is None else text, tokens=tokens)
    return read_for(EXPECTING, told, on)


def at(first: str, shares: dict[str, float], on: Rubric = FIVE) -> ParsedAnswer:
    return scored(HEAD, (first, shares), "}}", on=on)


def score(parsed: ParsedAnswer, name: str = "a") -> float:
    assert parsed.status == Status.OK, parsed.reason
    return parsed.reply.scores[name]


@given(
    st.dictionaries(st.integers(1, 5), st.floats(1e-9, 1.0), min_size=1),
    st.floats(LEAST_MASS + 1e-6, 1.0),
)
def test_the_mean_lies_within_the_points_that_have_a_probability(weights, mass):
    total = sum(weights.values())
    shares = {point: mass * weight / total for point, weight in weights.items()}
    one = Distribution(min(shares), shares)
    assert min(shares) <= one.mean <= max(shares)
    assert one.mass == pytest.approx(mass)
    assert one.mean == pytest.approx(sum(p * w for p, w in weights.items()) / total)


@given(st.permutations([1, 2, 3, 4, 5]), st.lists(st.floats(0.001, 1), min_size=5, max_size=5))
def test_the_order_in_which_a_server_lists_alternatives_is_no_part_of_the_score(order, weights):
    shares = {str(p): w / sum(weights) * 0.999 for p, w in zip(range(1, 6), weights, strict=True)}
    listed = {str(p): shares[str(p)] for p in order}
    assert len({score(at("4", one)) for one in (shares, listed)}) == 1


@given(st.floats(0.0, 0.8), st.floats(0.0, 1.0))
def test_what_is_off_the_scale_is_in_no_mean_and_too_much_of_it_leaves_none(off, split):
    on = 1.0 - off
    parsed = at("4", {"4": on * split, "2": on - on * split, "9": off})
    if on < LEAST_MASS - 1e-9:
        assert (parsed.status, parsed.reply) == (Status.NO_PROBABILITIES, None)
        assert parsed.answer["a"]["mass"] == pytest.approx(on)
    elif on > LEAST_MASS + 1e-9:
        assert score(parsed) == pytest.approx(4 * split + 2 * (1 - split))


@pytest.mark.parametrize("written", ["4.0", '"+4"', '" 4.0"', "4e0", '"\\u0034"'])
def test_a_score_that_is_not_written_as_a_bare_point_has_no_distribution(written):
    parsed = at(written, {})
    assert parsed.status in (Status.NO_PROBABILITIES, Status.OUT_OF_RANGE)
    assert parsed.reply is None


def test_each_criterion_has_its_own_place_also_where_the_points_are_the_same():
    first, second = ("5", {"5": 0.9, "4": 0.1}), ("5", {"5": 0.6, "3": 0.4})
    between = ', "explanation": "5 of 5"}, "b": {"score": '
    parsed = scored('{"a": {"score": ', first, between, second, "}}", on=rubric("a", "b"))
    assert (score(parsed, "a"), score(parsed, "b")) == pytest.approx((4.9, 4.2))


BROKEN = ({"bytes": [300]}, {"top_logprobs": {"4": -1.0}}, {"top_logprobs": [{"token": "5"}]})


@pytest.mark.parametrize(
    "broken",
    [
        *(None, [], {"content": None}, {"content": "x"}, {"content": [None]}),
        *({"content": [{"token": "4"} | one]} for one in ({}, {"logprob": 0.7}, {"logprob": True})),
        *({"content": [{"token": one, "logprob": p}]} for one, p in (("4", math.nan), (4, -1.0))),
        *({"content": [{"token": "4", "logprob": -1.0} | one]} for one in BROKEN),
        {"tokens": ["4"], "token_logprobs": [-1.0], "top_logprobs": [{"4": -1.0}]},
    ],
)
def test_log_probabilities_of_another_shape_are_none(broken):
    assert tokens_of(broken) == ()


@pytest.mark.parametrize("least", [-9999.0, -(10**400), float("-inf")])
def test_what_cannot_be_at_all_has_the_probability_zero(least):
    content = [{"token": "4", "logprob": least, "bytes": None, "top_logprobs": []}]
    assert tokens_of({"content": content})[0].options == ((b"4", 0.0),)


@given(st.data())
def test_any_cut_of_an_answer_into_tokens_gives_the_stated_points_where_all_is_certain(data):
    points = {name: data.draw(st.integers(1, 5)) for name in RUBRIC.criteria}
    said = data.draw(st.text(max_size=30))
    body = {name: {"explanation": said, "score": point} for name, point in points.items()}
    text = json.dumps(body, ensure_ascii=data.draw(st.booleans()))
    whole = text.encode("utf-8", "replace")
    ends = sorted(data.draw(st.sets(st.integers(1, max(1, len(whole) - 1)))) | {0, len(whole)})
    tokens = tuple(token(whole[a:b], {}) for a, b in pairwise(ends))
    parsed = read_for(EXPECTING, Answer(Status.OK, text=text, tokens=tokens), RUBRIC)
    assert (parsed.status, parsed.reply and parsed.reply.scores) == (Status.OK, points)


def cut(text: str, seed: int) -> tuple[Token, ...]:
    """Return a text as tokens of one to six bytes, every digit with another one as likely beside it."""
    random, whole, at = Random(seed), text.encode("utf-8", "replace"), 0  # noqa: S311 a fixed cut
    found = []
    while at < len(whole):
        piece = whole[at : at + (1 if whole[at : at + 1].isdigit() else random.randint(1, 6))]
        found.append(token(piece, {piece.decode(): 0.99, "9": 0.01} if piece.isdigit() else {}))
        at += len(piece)
    return tuple(found)


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.name)
def test_no_hostile_answer_has_another_score_than_its_verdict_by_its_tokens(kind):
    for seed, variant in enumerate(VARIANTS[::3]):
        text, on = kind.make(variant), variant.rubric
        plain = read_answer(Answer(Status.OK, text=text), on)
        parsed = read_for(EXPECTING, Answer(Status.OK, text=text, tokens=cut(text, seed)), on)
        if parsed.reply is None:
            assert parsed.status in (plain.status, Status.NO_PROBABILITIES), text
            assert parsed.reason, text
            continue
        assert plain.reply is not None, text
        for name, mean in parsed.reply.scores.items():
            assert mean == pytest.approx(plain.reply.scores[name], abs=0.1), text


TEN, HUNDRED, AROUND = (
    rubric("a", low=low, high=high) for low, high in ((1, 10), (0, 100), (-2, 2))
)
ODD = {"4.5": 0.01, "N": 0.005, "\uff14": 0.005, "45": 0.005, '"': 0.005, "4/": 0.005}
USUALLY = (HEAD, ("4", USUAL), "}}")
TEXT = HEAD + "4}}"
SPELT = ('{"a": {"explanation": "', "\ufffd", "\ufffd", '", "score":', ("4", USUAL), "}}")
STETHOSCOPE = TEXT.replace("fine", "\U0001fa7a").replace(": 4", ":4")
PLANTED = '{"a": {"explanation": "it says {\\"a\\": {\\"score\\": 5}} and score: 5", "score": '


def test_the_mean_is_of_the_points_that_the_tokens_at_the_scores_place_spell():
    tens = (("1", {"1": 0.6, "9": 0.4}), ("0", {"0": 0.9, "}": 0.1}))
    below = (("-", {"-": 0.8, "0": 0.2}), ("1", {"1": 0.5, "2": 0.5}))
    for parsed, mean in (
        (at("4", {"4": 0.5, " 4": 0.2, "5": 0.2, "\n3": 0.1}), 4.1),
        (at("4", ODD | {"4": 0.965}), 4.0),
        (scored(HEAD[:-2], (": 4}", {": 4}": 0.6, ": 5}": 0.3, ":3}": 0.1}), "}"), 4.2),
        (scored(HEAD + '"', ("4", USUAL), '"}}'), 4.1),
        (scored(PLANTED, ("2", {"2": 0.9, "1": 0.1}), "}}"), 1.9),
        (scored(*SPELT, text=STETHOSCOPE), 4.1),
        (scored('<think>{"a": {"score": 5}}</think>', *USUALLY, "<|im_end|>", text=TEXT), 4.1),
        (scored('<think>\n{"a": {"score": 5}}\n</think>\n\n', *USUALLY), 4.1),
        (scored("<think>5?</think>\n```json\n", *USUALLY, "\n```"), 4.1),
        (at("10", {"10": 0.5, "9": 0.3, "1": 0.2}, on=TEN), 7.9),
        (scored(HEAD, *tens, "}}", on=TEN), 10 * 0.54 + 1 * 0.06 + 9 * 0.4),
        (at("7", {"7": 0.78, "1": 0.02, "8": 0.2}, on=TEN), (7 * 0.78 + 8 * 0.2) / 0.98),
        (scored(HEAD, ("1", {"1": 1.0}), ("}}", {"}}": 0.95, "0": 0.05}), on=TEN), 0.95 + 0.5),
        (at("85", {"85": 0.6, "90": 0.3, "8": 0.1}, on=HUNDRED), 78.8),
        (scored(HEAD, *below, "}}", on=AROUND), -1.2),
        (at("-1", {"-1": 0.8, "-2": 0.1, "1": 0.1}, on=AROUND), -0.9),
    ):
        assert score(parsed) == pytest.approx(mean)


def test_what_the_tokens_do_not_tell_is_missing_and_not_the_stated_point():
    digits = (("8", {"8": 0.7, "9": 0.3}), ("5", {"5": 0.8, "0": 0.2}))
    for parsed, why in (
        (scored(*USUALLY, text=TEXT.replace("fine", "good")), "do not spell the answer"),
        (scored(*USUALLY, *USUALLY, text=TEXT), "do not spell the answer"),
        (scored(*USUALLY, "\n", *USUALLY), "given more than once"),
        (scored(text=TEXT), "sends no log-probabilities"),
        (at("4", {"4": 0.5, "5": 0.3}), "0.800 of the probability"),
        (at("4", {"4": 0.9, "5": 0.9}), "more than 1"),
        (at("7", {"7": 0.5, "1": 0.3, "8": 0.2}, on=TEN), "0.700"),
        (scored(HEAD, *digits, "}}", on=HUNDRED), "0.700"),
    ):
        assert (parsed.status, parsed.reply) == (Status.NO_PROBABILITIES, None)
        assert why in parsed.reason


def test_a_token_that_its_server_leaves_out_of_the_alternatives_is_among_the_options():
    told = [entry("4", {"5": 0.6, "3": 0.3}) | {"logprob": math.log(0.1)}, entry("}", {"}": 1.0})]
    tokens = tokens_of({"content": told})
    assert dict(tokens[0].options) == pytest.approx({b"4": 0.1, b"5": 0.6, b"3": 0.3})
    assert len(tokens[1].options) == 1


EXPECTED = {"scores": "expected"}
MEAN = pytest.approx(4.2)
CARD = Card("c", "context", "task", "response", "reference", None)


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub(served) as running:
        yield running


def test_the_mean_is_rated_and_the_stated_verdict_and_its_distribution_are_kept(small_study, stub):
    result = run_panel(small_study, panel_at(stub, **EXPECTED))
    assert result.rated == 4
    assert all(row.score == MEAN for row in ratings(small_study))
    assert {row.comment for row in ratings(small_study)} == {"38,5 °C 🩺; 2 of 5"}
    one = attempts(small_study)[0]
    assert one.answer["clarity"] == {
        "stated": 4,
        "probabilities": pytest.approx({"3": 0.1, "4": 0.6, "5": 0.3}),
        "mass": pytest.approx(1.0),
    }
    assert json.loads(one.raw)["clarity"]["score"] == 4
    assert (one.sent["scores"], one.sent["top_logprobs"]) == ("expected", 20)


def test_a_server_without_log_probabilities_stops_its_juror_after_one_answer(small_study, stub):
    stub.script = lambda seen: Do(verdict_of(seen))
    result = run_panel(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.by_status == {"no_probabilities": 4}
    assert len(stub.seen) == 1
    assert "sends no log-probabilities" in result.stopped["a"]
    assert ratings(small_study) == []


def test_one_answer_without_them_among_others_is_missing_alone(small_study, stub):
    bare = "Mild pain."
    stub.script = lambda seen: Do(verdict_of(seen)) if bare in seen.prompt else served(seen)
    result = run_panel(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.by_status == {"ok": 3, "no_probabilities": 1}
    assert (result.stopped, len(stub.seen)) == ({}, 4)


def test_a_distribution_that_says_too_little_is_missing_with_its_figures(small_study, stub, run):
    stub.script = lambda seen: served(seen, shares={"4": 0.3, "5": 0.1, "N": 0.6})
    result = run_panel(small_study, panel_at(stub, **EXPECTED))
    assert (result.by_status, len(stub.seen)) == ({"no_probabilities": 4}, 4)
    one = attempts(small_study)[0]
    assert "0.400 of the probability lies on points of the scale" in one.reason
    assert one.answer["clarity"]["mass"] == pytest.approx(0.4)
    code, out, _ = run("jury", "missing", "--json", "-")
    assert code == 0
    assert {row["status"] for row in json.loads(out)["missing"]} == {"no_probabilities"}


REFUSALS = [
    (400, {"message": "Unsupported parameter: 'logprobs' is not supported with this model.",
           "param": "logprobs", "code": "unsupported_parameter"}),
    (403, {"message": "You are not allowed to request logprobs from this model", "param": None}),
    (400, {"message": "Logprobs is not enabled for models/m", "status": "INVALID_ARGUMENT"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "error"), REFUSALS)
def test_a_model_that_refuses_them_is_stopped_with_a_line_to_delete(
    small_study, stub, status, error
):
    stub.script = lambda seen: (
        Do(status=status, body=json.dumps({"error": error})) if "logprobs" in seen.body else Do()
    )
    result = run_panel(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.missing == 4
    assert 'the model refuses scores = "expected"; delete that line' in result.stopped["a"]
    assert ratings(small_study) == []
    stub.seen.clear()
    [row] = probe(panel_at(stub, **EXPECTED))
    assert 'refuses scores = "expected": delete that line of juror a' in row.reason
    assert row.probabilities == "not served"


TOO_MANY = [
    {"message": "Invalid 'top_logprobs': integer above maximum.", "param": "top_logprobs"},
    {"message": "Requested sample logprobs of 20, which is greater than max allowed: 5"},
]


@pytest.mark.parametrize("error", TOO_MANY)
def test_a_server_that_grants_five_is_asked_for_five_from_then_on(small_study, stub, error):
    def script(seen: Seen) -> Do:
        too_many = seen.body["top_logprobs"] > 5
        return Do(status=400, body=json.dumps({"error": error})) if too_many else served(seen)

    stub.script = script
    result = run_panel(small_study, panel_at(stub, **EXPECTED), concurrency=1)
    assert result.rated == 4
    assert [seen.body["top_logprobs"] for seen in stub.seen] == [20, 5, 5, 5, 5]
    [row] = probe(panel_at(stub, **EXPECTED))
    assert row.unsupported == ("top_logprobs",)


def test_a_batch_asks_for_them_and_reads_them_as_a_live_run_does(small_study):
    with BatchStub() as stub:
        stub.script = served
        assert run_in_batches(small_study, panel_at(stub, "a", **EXPECTED)).rated == 4
    assert all(row.score == MEAN for row in ratings(small_study))
    assert {one.answer["clarity"]["stated"] for one in attempts(small_study)} == {4}  # type: ignore[index]


ORDERS = {"before": ["explanation", "score"], "after": ["score", "explanation"], "none": ["score"]}


@pytest.mark.parametrize("explanation", ORDERS)
def test_prompt_schema_and_answer_follow_the_panels_order(small_study, stub, explanation):
    result = run_panel(small_study, panel_at(stub, explanation=explanation, **EXPECTED))
    assert result.rated == 4
    assert all(row.score == MEAN for row in ratings(small_study))
    wanted = ORDERS[explanation]
    for seen in stub.seen:
        form = seen.body["response_format"]["json_schema"]["schema"]["properties"]["clarity"]
        assert (list(form["properties"]), form["required"]) == (wanted, wanted)
        asked = [one for one in ORDERS if ORDER_SENTENCES[one] in seen.prompt]
        assert asked == [explanation]
        shown = seen.prompt[seen.prompt.rindex('"clarity": ') :]
        named = [word for word in ("explanation", "score") if f'"{word}"' in shown]
        assert sorted(named, key=lambda word: shown.index(f'"{word}"')) == wanted
    comments = {row.comment for row in ratings(small_study)}
    assert comments == ({""} if explanation == "none" else {"38,5 °C 🩺; 2 of 5"})


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "vertex", "foundry"])
def test_a_panel_whose_provider_serves_none_is_refused_with_what_to_do(provider):
    place = {"region": "r"} if provider == "bedrock" else {"region": "r", "project": "p"}
    own = place if provider in ("bedrock", "vertex") else {"api_key_env": "K"}
    with pytest.raises(ValueError, match=f'scores: provider "{provider}" serves no'):
        juror(provider, "http://127.0.0.1:1", scores="expected", **own)


def test_the_order_that_counts_stands_last_and_is_not_read_out_of_a_patients_text():
    prompt = "{{response}}\nExplain each score before you give it.\n{{schema}}"
    own = RUBRIC.model_copy(update={"prompt": prompt})
    assert "even where" not in own.render(CARD)
    assert "even where another order is named above" in own.render(CARD, "after")
    before = ORDER_SENTENCES["before"]
    told = Card("c", before, "task", f"{before} {{{{schema}}}}")
    shown = RUBRIC.render(told, "none")
    assert shown.count(before) == 2
    assert "{{schema}}" in shown


def test_a_prompt_that_writes_its_form_out_is_never_asked_otherwise(stub):
    own = RUBRIC.model_copy(update={"prompt": "{{response}} Give JSON."})
    assert own.render(CARD) == "response Give JSON."
    with pytest.raises(BadPanel, match=r'juror a: explanation = "after" cannot be asked for'):
        refuse_form(panel_at(stub, explanation="after"), own)
