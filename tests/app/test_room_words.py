"""The words of the rating room: every language has them all, and every word shown is one of them."""

import re
from importlib.resources import files
from typing import get_args

import pytest

from annotate.rating.words import say, words
from data.settings import Language

HERE = files("annotate.rating")
SAID = re.compile(r"""\bsay\((?:language, )?\s*"((?:[^"\\]|\\.)*)\"""")
PLACE = re.compile(r"\{\w+\}")


def test_every_sentence_of_the_page_is_in_the_file_of_words() -> None:
    scripts = [
        one.read_text("utf-8") for one in HERE.iterdir() if one.name.endswith((".js", "html.py"))
    ]
    said = {text for script in scripts for text in SAID.findall(script)}
    assert len(said) > 100
    assert said - words("en").keys() == set()


@pytest.mark.parametrize("language", get_args(Language))
def test_a_language_has_all_sentences_with_their_values(language: str) -> None:
    assert words(language).keys() == words("en").keys()
    for english, text in words(language).items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(english)), english
        assert text.strip()


def test_what_is_in_no_file_stays_as_it_is() -> None:
    assert say("de", "Studieneigenes {count}", count=2) == "Studieneigenes 2"
    assert say("de", "Thank you") == "Vielen Dank"
