"""A study's own model is masked however its name is broken, spaced or spelt in look-alikes."""

import pytest

from annotate.blind import MARK, find_self_naming, mask, unmask
from annotate.searched_text import folded

STUDY = [
    "house-mistral-KKAUTHOR",
    "Claude-opus-4",
    "MedPaLM X",
    "note",
    "a",
    "base",
    "care plan",
    "the daily note",
]
VARIANTS = [
    "house-mistral-KKAUTHOR",
    "house-\nmistral-KKAUTHOR",
    "house mistral KKAUTHOR",
    "HOUSE_mistral.kkauthor",
    "house\u200b-mistral-KK\u200bAUTHOR",
    "houseMistralKKauthor",
    "\u0421laude-opus-4",
    "Cl\u0430ude-\u043epus-4",
    "\uff23laude-opus-4",
    "C l a u d e opus-4",
    "C-l-a-u-d-e o.p.u.s 4",
    "MedPaLM X",
    "MedPaLM-X",
    "Med-PaLM X",
]


@pytest.mark.parametrize("written", VARIANTS)
def test_a_variant_of_the_studys_own_name_is_masked_whole_and_comes_back(written: str) -> None:
    text = f"Caf\u00e9 \u00b5g. Written by {written}, checked."
    masked = mask(text, STUDY)
    assert masked.text == f"Caf\u00e9 \u00b5g. Written by {MARK}, checked."
    assert [text[one.start : one.end] for one in masked.changes] == [written]
    assert unmask(masked) == text


def test_ordinary_words_that_are_a_studys_names_are_listed_and_never_masked() -> None:
    text = "A note on base excess; the care plan stands, see the daily note. N o t e."
    assert mask(text, STUDY).text == text
    found = find_self_naming(text, STUDY)
    assert {one.text for one in found} == {"note", "base", "care plan", "the daily note", "N o t e"}
    assert {one.kind for one in found} == {"possible"}


def test_folding_keeps_every_place() -> None:
    text = "\u0421\u0430f\u00e9 \ufb01ne \u2126 \uff21 \u00bd"
    assert len(folded(text)) == len(text)
    assert folded("plain") == "plain"
