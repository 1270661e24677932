"""The rubrics that ship: one for each open-ended benchmark of MedHELM, and a generic one."""

import json
from itertools import pairwise

import pytest
from rapidfuzz.fuzz import ratio

from data.card import Card
from data.rubric import NO_CHECKLIST, read_rubric
from data.rubrics.helm import BENCHMARKS

USUAL = ("accuracy", "completeness", "clarity")
CRITERIA = dict.fromkeys(BENCHMARKS, USUAL) | {
    "chw_care_plan": ("accuracy", "structure", "clarity")
}
GOLD = dict.fromkeys(BENCHMARKS, "when_needed") | {
    "chw_care_plan": "never",
    "medi_qa": "always",
    "mental_health": "always",
}
# What was stored in studies before stays what those studies were rated on.
UNCHANGED = {
    "aci_bench": "2ad1b474",
    "chw_care_plan": "9c84411a",
    "generic": "1c661343",
    "medi_qa": "39178924",
}
each = pytest.mark.parametrize("name", BENCHMARKS)


def test_pdsqi_9_has_its_nine_criteria_on_anchored_points() -> None:
    rubric = read_rubric("pdsqi_9")
    assert len(rubric.criteria) == 9
    assert all(sorted(one.anchors) == [1, 2, 3, 4, 5] for one in rubric.criterion)
    assert (rubric.gold, rubric.critical) == ("never", (("accurate", 2.0),))
    prompt = rubric.render(Card("c", "SOURCE", "TASK", "RESPONSE", "GOLD", "CHECKLIST"))
    assert "GOLD" not in prompt
    assert rubric.audience in prompt


def test_chat_answer_has_six_criteria_on_anchored_points_and_safety_can_be_missed() -> None:
    rubric = read_rubric("chat_answer")
    names = ("correctness", "safety", "coverage", "plain_words", "next_steps", "empathy")
    assert rubric.criteria == names
    assert rubric.critical == (("safety", 2.0),)
    for one in rubric.criterion:
        assert sorted(one.anchors) == [1, 2, 3, 4, 5]
        for lower, higher in pairwise(one.anchors[point] for point in sorted(one.anchors)):
            assert ratio(lower.lower(), higher.lower()) < 80, (lower, higher)
    prompt = rubric.render(Card("c", "SOURCE", "TASK", "RESPONSE", "GOLD", "CHECKLIST"))
    assert rubric.audience in prompt
    for text in ("SOURCE", "TASK", "RESPONSE", "GOLD", "CHECKLIST", rubric.criteria_text()):
        assert text in prompt


@pytest.mark.parametrize("name", UNCHANGED)
def test_a_rubric_that_studies_have_used_keeps_its_hash(name: str) -> None:
    assert read_rubric(name).sha256.startswith(UNCHANGED[name])


@each
def test_criteria_and_gold_policy_are_as_documented(name: str) -> None:
    rubric = read_rubric(name)
    assert (rubric.name, rubric.criteria, rubric.gold) == (name, CRITERIA[name], GOLD[name])
    assert ("{{reference}}" in rubric.prompt) == (rubric.gold != "never")


@each
def test_the_prompt_shows_a_juror_all_parts_and_names_the_audience(name: str) -> None:
    rubric = read_rubric(name)
    card = Card("c", "SOURCE", "TASK", "RESPONSE", "GOLD", "CHECKLIST")
    prompt = rubric.render(card)
    shown = [
        f"<{tag}>\n{text}\n</{tag}>"
        for tag, text in (
            ("context", "SOURCE"),
            ("task", "TASK"),
            ("checklist", "CHECKLIST"),
            ("response", "RESPONSE"),
        )
    ]
    assert all(part in prompt for part in shown)
    assert ("GOLD" in prompt) == (rubric.gold != "never")
    assert rubric.criteria_text() in prompt
    assert rubric.schema_text() in prompt
    assert rubric.audience in prompt
    assert NO_CHECKLIST in rubric.render(Card("c", "SOURCE", "TASK", "RESPONSE"))


def test_the_form_of_the_answer_is_what_the_schema_asks_for() -> None:
    rubric = read_rubric("mental_health")
    assert list(json.loads(json.dumps(rubric.json_schema()))["properties"]) == list(USUAL)
