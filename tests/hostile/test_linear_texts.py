"""Hostile texts: what a text costs to mask and an answer to read grows with its length, no faster.

No time is asserted: work is counted, or the former way would have run into the tests' time limit.
"""

import random
import re
import sys
from types import FrameType

import pytest

from data.rubric import read_rubric
from jury.parse import parse
from jury.reading import LONGEST
from medjury.services.blinding.names import SAME_LETTER
from medjury.services.blinding.search import find_self_naming, mask

STUDY = ("nova", "house-mistral-x", "gpt-4o", "MyHospital-LM v2")
NAMES = ["GPT-4 ", "he used GPT-4 ", "GPT-4 the liver ", "as nova ", "I am nova\n", "Sonnet 4.5 "]
RUBRIC = read_rubric("generic")
VERDICT = "{" + ", ".join(f'"{one}": {{"score": 4}}' for one in RUBRIC.criteria) + "}"


def counted(call, text, name=""):
    """Return how many calls a text costs, of one C function or of all functions."""
    calls = 0

    def note(_: FrameType, event: str, called: object) -> None:
        nonlocal calls
        one = getattr(called, "__name__", "") if event == "c_call" else ""
        calls += event in ("call", "c_call") if not name else one == name

    sys.setprofile(note)
    try:
        call(text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("unit", NAMES)
@pytest.mark.parametrize(
    "call", [lambda text: mask(text, STUDY), lambda text: find_self_naming(text, STUDY)]
)
def test_a_name_costs_at_most_four_searches(unit, call):
    few, more = (counted(call, unit * repeats, "search") for repeats in (200, 400))
    assert (more - few) / 200 <= 4


@pytest.mark.parametrize("seed", range(12))
def test_twice_the_text_costs_twice_the_calls(seed):
    drawn = random.Random(seed)  # noqa: S311
    units = [*NAMES, "<think>", "</think> ", "### assistant:", "as an AI ", "my ", "\u200b"]
    unit = "".join(drawn.choice(units) for _ in range(drawn.choice((1, 2, 3, 5))))
    once, twice, four = (counted(lambda text: mask(text, STUDY), unit * n) for n in (100, 200, 400))
    assert four - twice <= 3 * (twice - once)  # 4, where each place costs the whole text


def test_letters_that_ignore_case_are_those_that_patterns_know():
    everything = "".join(map(chr, range(0x110000)))
    for letter in "abcdefghijklmnopqrstuvwxyz":
        alike = set(re.findall(letter, everything, re.IGNORECASE))
        assert alike == {letter, letter.upper(), *SAME_LETTER.get(letter, "")}


ROWS = ["1-5 ", "<think></think>", "<think>", "</think>\n", "```\n", "{", '{"a": ', "[", "\n\n"]
ROWS += ["<|im_end|>"]


def test_answers_at_the_limit_of_length_are_read_within_the_time_of_a_test():
    """Each of these took one to three minutes before, and together more than a test may take."""
    for unit in ROWS:
        hostile = (unit * LONGEST)[: LONGEST - len(VERDICT)]
        for text in (hostile + VERDICT, VERDICT + hostile):
            assert parse(text, RUBRIC).status is not None
