"""Reading answers: only a verdict that was given makes a score; and what simulated jurors answer."""

import asyncio
import csv
import json
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.scores import study

from calibration.details import StudyContext, details
from calibration.reliability import clinician_reliability
from calibration.values import AnalysisOptions
from data.card import Card
from data.errors import BadPanel
from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.schema import Status
from jury.call import Call, Turn
from jury.panel import Juror, read_panel
from jury.parse import parse
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
def test_anything_else_is_out_of_range_and_never_bent(value: object) -> None:
    parsed = parse(with_score(value), RUBRIC)
    assert (parsed.status, parsed.reply) == (Status.OUT_OF_RANGE, None)
    assert "clarity" in parsed.reason
    assert "1-5" in parsed.reason


@pytest.mark.parametrize(
    "gap", [{}, {"clarity": None}, {"clarity": 4}, {"clarity": {"score": None}}]
)
def test_a_criterion_without_a_score_is_missing(gap: dict[str, object]) -> None:
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
def test_a_text_without_one_object_or_with_two_scores_of_a_criterion_is_no_verdict(
    text: str,
) -> None:
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
def test_anything_beside_the_one_object_is_named_and_gives_no_verdict(text: str, why: str) -> None:
    parsed = parse(text, RUBRIC)
    assert parsed.reply is None
    assert why in parsed.reason


def test_explanations_become_comments_a_database_can_hold() -> None:
    body = json.dumps(GOOD | {"clarity": {"explanation": "a\ud800b\x00c", "score": 4}})
    parsed = parse(body, RUBRIC)
    assert parsed.reply is not None
    assert parsed.reply.comments["clarity"].encode() == "a?b\ufffdc".encode()


def test_a_scale_from_zero_to_ten_has_its_own_points() -> None:
    one = Criterion(name="risk", question="?", anchors={0: "none", 10: "all"})
    ten = {"scale": Scale(min=0, max=10), "criterion": (one,)}
    rubric = Rubric(**RUBRIC.model_dump() | ten)
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


JURORS = read_panel("simulated").juror


def composite(juror: Juror, response: str, replicate: int = 0) -> float:
    prompt = RUBRIC.render(Card("c", "context", "task", response))
    call = Call((Turn("user", prompt),), RUBRIC.json_schema(), replicate=replicate)
    answer = asyncio.run(Simulated(juror).complete(call))
    usage = (round(len(prompt) / 3.5), round(len(answer.text) / 3.5))
    assert (answer.usage.tokens_in, answer.usage.tokens_out) == usage
    reply = parse(answer.text, RUBRIC).reply
    assert reply is not None
    assert all("simulated" in comment for comment in reply.comments.values())
    return float(np.mean(list(reply.scores.values())))


def test_simulated_jurors_agree_with_the_plan_and_each_other_as_a_real_panel_might() -> None:
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


def test_the_same_juror_says_the_same_of_the_same_text_and_differs_a_little_when_repeated() -> None:
    texts = [f"response {n}" for n in range(40)]
    first = [composite(JURORS[0], text) for text in texts]
    assert first == [composite(JURORS[0], text) for text in texts]
    again = [composite(JURORS[0], text, replicate=1) for text in texts]
    assert first != again
    assert np.corrcoef(first, again)[0, 1] > 0.8


def test_a_response_is_found_in_a_prompt_whatever_stands_in_it() -> None:
    text = "a line\n</reference>\nanother <response> line"
    assert composite(JURORS[1], text) == composite(JURORS[1], f"\n{text}  ")


def test_an_unknown_simulated_model_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadPanel, match="simulated-lenient, simulated-steady, simulated-strict"):
        Simulated(JURORS[0].model_copy(update={"model": "nonsense"}))


def test_every_row_behind_the_table_says_that_a_juror_it_is_about_is_simulated() -> None:
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
