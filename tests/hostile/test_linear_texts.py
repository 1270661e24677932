"""Hostile texts: what a text costs to mask and an answer to read grows with its length, no faster.

No time is asserted: work is counted, or the former way would have run into the tests' time limit.
"""

import random
import re
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from data.rubric import read_rubric
from jury.parse import parse
from jury.reading import LONGEST
from medjury.services.blinding.names import SAME_LETTER
from medjury.services.blinding.search import find_self_naming, mask
from medjury.services.blinding.surroundings import (
    HUMAN,
    LIVER,
    MACHINE,
    PEOPLE,
    USED,
    Places,
    Surroundings,
)

STUDY = ("nova", "house-mistral-x", "gpt-4o", "MyHospital-LM v2")
NAMES = ["GPT-4 ", "he used GPT-4 ", "GPT-4 the liver ", "as nova ", "I am nova\n", "Sonnet 4.5 "]
RUBRIC = read_rubric("generic")
VERDICT = "{" + ", ".join(f'"{one}": {{"score": 4}}' for one in RUBRIC.criteria) + "}"


def counted(call: Callable[[str], object], text: str, name: str = "") -> int:
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
def test_a_name_costs_at_most_four_searches(unit: str, call: Callable[[str], object]) -> None:
    few, more = (counted(call, unit * repeats, "search") for repeats in (200, 400))
    assert (more - few) / 200 <= 4


@pytest.mark.parametrize("seed", range(12))
def test_twice_the_text_costs_twice_the_calls(seed: int) -> None:
    drawn = random.Random(seed)  # noqa: S311
    units = [*NAMES, "<think>", "</think> ", "### assistant:", "as an AI ", "my ", "\u200b"]
    unit = "".join(drawn.choice(units) for _ in range(drawn.choice((1, 2, 3, 5))))
    once, twice, four = (counted(lambda text: mask(text, STUDY), unit * n) for n in (100, 200, 400))
    assert four - twice <= 3 * (twice - once)  # 4, where each place costs the whole text


WORDS = [
    "the",
    "they",
    "he",
    "patient",
    "used",
    "use",
    "told",
    "asked",
    "AI",
    "OpenAI",
    "LLMs",
    "AIM",
    "salt",
    "alt",
    "y-ggt",
    "-ggt",
    "u/l",
    "iu",
]
WORDS += ["hepatitis", "transaminases", "alpha", "enzymes", "year-old", "hereafter", "here for"]
WORDS += ["artificial intelligence", "language model", "my sign"]
WORDS += [".", ". ", "!", "?\n", "\n", " ", "  ", "-", "/", "_", ",", "x" * 40, "\u3042", "4"]
FORMER = re.compile(rf"{PEOPLE.pattern}[^.!?\n]*{USED.pattern}(?:\W+\w+){{0,4}}\W*$", re.IGNORECASE)


def made_up(drawn: random.Random) -> str:
    return "".join(drawn.choice(WORDS) + drawn.choice(["", " ", " "]) for _ in range(60))


@pytest.mark.parametrize("pattern", [PEOPLE, USED, LIVER, HUMAN])
def test_a_stretch_holds_what_a_search_of_it_finds_wherever_it_cuts(
    pattern: re.Pattern[str],
) -> None:
    drawn = random.Random(7)  # noqa: S311
    for _ in range(60):
        text = made_up(drawn)
        places = Places(text, pattern)
        for _ in range(60):
            start, end = sorted(drawn.choices(range(len(text) + 1), k=2))
            assert places.within(start, end) == bool(pattern.search(text[start:end]))


def test_somebodys_use_is_found_where_a_search_of_the_sentence_finds_it() -> None:
    drawn = random.Random(8)  # noqa: S311
    found = 0
    for _ in range(400):
        around = Surroundings(text := made_up(drawn))
        for place in [match.start() for match in re.finditer(r"(?<![^\W_])[^\W_]", text)]:
            before = re.split(r"[.!?]\s|\n", text[max(0, place - 200) : place])[-1]
            assert around.before(place) == before
            assert around.someone_used(place) == bool(FORMER.search(before))
            found += around.someone_used(place)
    assert found > 100


def test_a_machine_is_found_in_a_sentence_whatever_stands_beside_it() -> None:
    around = Surroundings("A medical assistant. I am Nova, an AI. OpenAIM")
    assert around.of_machines(26, 30)
    assert not Places(around.text, MACHINE).within(0, 20)


def test_letters_that_ignore_case_are_those_that_patterns_know() -> None:
    everything = "".join(map(chr, range(0x110000)))
    for letter in "abcdefghijklmnopqrstuvwxyz":
        alike = set(re.findall(letter, everything, re.IGNORECASE))
        assert alike == {letter, letter.upper(), *SAME_LETTER.get(letter, "")}


ROWS = ["1-5 ", "<think></think>", "<think>", "</think>\n", "```\n", "{", '{"a": ', "[", "\n\n"]
ROWS += ["<|im_end|>"]


def test_answers_at_the_limit_of_length_are_read_within_the_time_of_a_test() -> None:
    """Each of these took one to three minutes before, and together more than a test may take."""
    for unit in ROWS:
        hostile = (unit * LONGEST)[: LONGEST - len(VERDICT)]
        for text in (hostile + VERDICT, VERDICT + hostile):
            assert parse(text, RUBRIC).status is not None
