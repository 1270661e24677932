"""How the room lays texts out, losing no character, and says its words in each language."""

import html
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.rating import text_html
from annotate.rating.markdown_html import rendered
from annotate.rating.words import say, words
from data.settings import Language

PIECES = (
    *(
        "a",
        "b ",
        "é",
        "\N{MATHEMATICAL SCRIPT CAPITAL X}",
        "سم ",
        "7",
        "\n",
        "\n\n",
        "\t",
        "  ",
        "    ",
    ),
    *("*", "**", "_", "`", "|", "- ", "+ ", "# ", "1. ", "---", "|---|---|", "```\n"),
    *("[", "](", "x)", "!", "\\", "<b>", "&amp;"),
)


def without_tags(page):
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def seen(page):
    """Return what is shown: nothing of class mj-syntax."""
    return without_tags(re.sub(r'<span class="mj-syntax">[^<]*</span>', "", page))


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_no_character_is_lost_added_or_moved(text):
    assert without_tags(rendered(text)) == text
    assert without_tags(text_html.body(text, folds=True)) == text


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_no_letter_or_number_is_left_out_but_of_a_link(text):
    if "](" in text or "```" in text:
        return
    signs = re.compile(r"[^\W_]")
    assert signs.findall(seen(rendered(text))) == signs.findall(text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("## Day 0 ##", 'class="mj-level-2">'),
        ("**Allergies**: none", "<strong>"),
        ("| Test | Result |\n|---|---:|\n| Creatinine | 1.1 |", "<th"),
        ("Drug\tDose\nMetoprolol\t47.5 mg", "<td"),
        ("Name | Dose\nAspirin | 100 mg", "<td"),
        ("- one\n- two", "<li"),
        ("1. one\n2. two", "<li"),
        ("```\nx = 1\n```", "<pre"),
        ("Read [the chart](https://a.example).", 'class="mj-link"'),
        ("![ECG of 3 May](https://a.example/e.png)", 'class="mj-image">ECG of 3 May'),
    ],
)
def test_what_is_laid_out(text, part):
    page = rendered(text)
    assert part in page
    assert without_tags(page) == text
    assert "href" not in page
    assert "src" not in page


@pytest.mark.parametrize(
    "text",
    [
        "2*5 mg and 3*10 mg",
        "> 90 % stenosis",
        "- fever\n+ cough",
        "SpO2 <92 % &amp; falling",
        "BP 120/80\n===",
        "[1]: https://a.example",
        "    HR 70\n    BP 120/80",
        "snake_case_name",
        "<script>alert(1)</script>",
        "the value 1.1 | one row alone",
    ],
)
def test_what_means_something_in_a_note_is_shown_as_it_is(text):
    assert seen(rendered(text)) == text


def test_a_row_keeps_its_cells_however_many_the_head_has():
    table = "|a|b|\n|-|-|\n|1|2|3 \\| 4|\n|5|\n"
    assert [cell.strip() for cell in re.findall(r"<td[^>]*>(.*?)</td>", rendered(table))]
    assert re.findall(r"\d", seen(rendered(table))) == ["1", "2", "3", "4", "5"]


def test_each_block_has_the_direction_of_its_own_text():
    page = rendered("ضغط الدم 120/80\n\nAspirin 100 mg\n\n- دواء\n")
    assert page.count('dir="auto"') == 3


NOTE = "Limits: few events.\nPlan: stop.\nToday: no.\n\nThe rest stands."


def test_a_response_with_colons_keeps_its_own_form():
    assert "mj-turn" not in text_html.pane(NOTE, "Response to rate", "response")
    assert "Plan: stop.\nToday: no." in text_html.pane(NOTE, "Response to rate", "response")


def test_a_dialogue_as_source_is_laid_out_by_its_turns():
    said = "[doctor] Any fever?\n[patient] No.\n[doctor] Good."
    assert text_html.pane(said, "Source", "source", folds=True).count("mj-turn") == 3


def test_sections_fold_without_losing_a_character_and_values_are_no_headings():
    text = (
        "Seen today.\r\nHISTORY OF PRESENT ILLNESS\nPain: mild\nBP 120/80\n\n**Plan:**\n- Rest:\n"
    )
    drawn = text_html.pane(text, "Source", "source", folds=True)
    heads = re.findall("<summary[^>]*>(.*?)</summary>", drawn, re.DOTALL)
    heads = [without_tags(one) for one in heads]
    assert heads == ["HISTORY OF PRESENT ILLNESS\n", "**Plan:**\n"]
    assert without_tags(drawn) == text.replace("\r", "")
    assert text_html.unseen(text) == [11]


def test_a_dialogue_is_laid_out_without_losing_a_character():
    text = "[doctor] hi , andrew .\n[patient]  hey\n\nDr. Smith: any <pain>?\n[patient] $5"
    drawn = text_html.pane(text, "Source", "source", folds=True)
    assert "mj-turn" in drawn
    assert "any &lt;pain&gt;?" in drawn
    assert "mj-turn" not in text_html.pane("Note: stable.\nPlan follows\nhere and\nthere", "", "x")


PLACE = re.compile(r"\{\w+\}")


@pytest.mark.parametrize("language", get_args(Language))
def test_a_language_has_all_sentences_with_their_values(language):
    assert words(language).keys() == words("en").keys()
    for english, text in words(language).items():
        assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(english)), english
        assert text.strip()


def test_what_is_in_no_file_stays_as_it_is():
    assert say("de", "Studieneigenes {count}", count=2) == "Studieneigenes 2"
    assert say("de", "Thank you") == "Vielen Dank"
