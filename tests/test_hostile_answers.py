"""Answers made up to mislead: one verdict is read, or none; never one that the juror did not give."""

from pathlib import Path

import pytest
from kit.hostile_answers import HUMAN, KINDS
from kit.hostile_variants import RUBRICS, VARIANTS, Kind

from data.schema import Status
from jury.parse import parse


def test_there_are_enough_kinds_and_variants_to_mean_something() -> None:
    assert sum(bool(one.statuses) for one in KINDS) >= 200
    assert len({one.name for one in KINDS}) == len(KINDS)
    assert len(VARIANTS) == 24


@pytest.mark.parametrize("kind", [one for one in KINDS if one.statuses], ids=lambda one: one.name)
def test_an_answer_without_one_clear_verdict_is_refused_with_the_reason(kind: Kind) -> None:
    for variant in VARIANTS:
        text = kind.make(variant)
        parsed = parse(text, variant.rubric)
        assert parsed.reply is None, text
        assert parsed.reason, text
        assert parsed.status in kind.statuses, (parsed, text)


@pytest.mark.parametrize(
    "kind", [one for one in KINDS if not one.statuses], ids=lambda one: one.name
)
def test_an_answer_with_one_clear_verdict_is_read(kind: Kind) -> None:
    for variant in VARIANTS:
        text = kind.make(variant)
        parsed = parse(text, variant.rubric)
        assert parsed.reply is not None, (parsed.reason, text)
        assert parsed.reply.scores == variant.own, text


@pytest.mark.parametrize("name", HUMAN)
def test_what_only_a_human_can_tell_is_named_in_the_docs(name: str) -> None:
    assert f"*{name}*" in (Path(__file__).parents[1] / "docs" / "panels.md").read_text("utf-8")
    for variant in VARIANTS:
        reply = parse(HUMAN[name](variant), variant.rubric).reply
        assert reply is not None, name
        assert reply.scores == variant.planted


def test_an_answer_of_4_kb_is_read_as_a_short_one_is() -> None:
    said = (
        "The response names the drug and its dose of 500 mg, twice daily, and omits the rash. " * 40
    )
    variant = VARIANTS[0]
    for text in (f"{said}\n{variant.verdict}", f"{variant.verdict}\n{said}"):
        assert parse(text, RUBRICS[0]).status == Status.OK
