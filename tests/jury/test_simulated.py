"""Simulated jurors: like the plan, like each other, and never taken for real ones."""

import asyncio
import csv
import json
from itertools import combinations

import numpy as np
import pytest
from kit.scores import study

from calibration.details import StudyContext, details
from calibration.reliability import clinician_reliability
from calibration.values import AnalysisOptions
from data.card import Card
from data.errors import BadPanel
from data.rubric import Rubric, read_rubric
from jury.call import Answer, Call, Turn
from jury.panel import Juror, read_panel
from jury.parse import parse
from jury.providers.simulated import SAMPLES, Simulated

GENERIC = read_rubric("generic")
JURORS = read_panel("simulated").juror


def answer(juror: Juror, response: str, rubric: Rubric = GENERIC, replicate: int = 0) -> Answer:
    prompt = rubric.render(Card("c", "context", "task", response))
    call = Call((Turn("user", prompt),), rubric.json_schema(), replicate=replicate)
    return asyncio.run(Simulated(juror).complete(call))


def composite(juror: Juror, response: str, rubric: Rubric = GENERIC, replicate: int = 0) -> float:
    reply = parse(answer(juror, response, rubric, replicate).text, rubric).reply
    assert reply is not None
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


def test_tokens_are_estimated_from_the_length_of_what_was_read_and_said() -> None:
    call = Call((Turn("user", "x" * 350), Turn("assistant", "y" * 70)), GENERIC.json_schema())
    told = asyncio.run(Simulated(JURORS[0]).complete(call))
    assert (told.usage.tokens_in, told.usage.tokens_out) == (120, round(len(told.text) / 3.5))


def test_every_explanation_says_that_it_is_simulated() -> None:
    verdict = json.loads(answer(JURORS[2], "x").text)
    assert all("simulated" in one["explanation"] for one in verdict.values())


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
