"""A response is shown as its author laid it out; only a source is laid out by its turns."""

import html
import re

from annotate.rating import text_html

NOTE = "Limits: few events.\nPlan: stop.\nToday: no.\n\nThe rest stands."


def test_a_response_with_colons_keeps_its_own_form() -> None:
    assert "mj-turn" not in text_html.pane(NOTE, "Response to rate", "response")
    assert "Plan: stop.\nToday: no." in text_html.pane(NOTE, "Response to rate", "response")


def test_a_dialogue_as_source_is_laid_out_by_its_turns() -> None:
    said = "[doctor] Any fever?\n[patient] No.\n[doctor] Good."
    assert text_html.pane(said, "Source", "source", folds=True).count("mj-turn") == 3


def test_sections_fold_without_losing_a_character_and_values_are_no_headings() -> None:
    text = (
        "Seen today.\r\nHISTORY OF PRESENT ILLNESS\nPain: mild\nBP 120/80\n\n**Plan:**\n- Rest:\n"
    )
    drawn = text_html.pane(text, "Source", "source", folds=True)
    heads = re.findall("<summary[^>]*>(.*?)</summary>", drawn, re.DOTALL)
    assert [re.sub("<[^>]+>", "", one) for one in heads] == [
        "HISTORY OF PRESENT ILLNESS\n",
        "**Plan:**\n",
    ]
    assert html.unescape(re.sub("<[^>]+>", "", drawn)) == text.replace("\r", "")
    assert text_html.unseen(text) == [11]


def test_a_dialogue_is_laid_out_without_losing_a_character() -> None:
    text = "[doctor] hi , andrew .\n[patient]  hey\n\nDr. Smith: any <pain>?\n[patient] $5"
    drawn = text_html.pane(text, "Source", "source", folds=True)
    assert "mj-turn" in drawn
    assert "any &lt;pain&gt;?" in drawn
    assert "mj-turn" not in text_html.pane("Note: stable.\nPlan follows\nhere and\nthere", "", "x")
