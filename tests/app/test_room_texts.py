"""Texts as they are laid out: no character of a note is lost, nothing of a description's Markdown runs or loads, and words in each language."""

import html
import re
import time
from html.parser import HTMLParser
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.description import as_html, as_page, pages, sections
from annotate.rating import text_html
from annotate.rating.markdown_html import rendered
from annotate.rating.words import say, words
from data.description import LONGEST_TEXT, Description, GuidelinePage
from data.settings import Language

PIECES = (
    *("a", "b ", "é", "\N{MATHEMATICAL SCRIPT CAPITAL X}", "سم ", "7"),
    *("\n", "\n\n", "\t", "  ", "    "),
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
    pane = text_html.pane(NOTE, "Response to rate", "response")
    assert ("mj-turn" in pane, "Plan: stop.\nToday: no." in pane) == (False, True)


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
    assert ("mj-turn" in drawn, "any &lt;pain&gt;?" in drawn) == (True, True)
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


TAGS = {
    *("p", "h3", "h4", "h5", "h6", "em", "strong", "code", "pre", "blockquote", "hr", "br"),
    *("ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "span"),
}
ATTRIBUTES = {
    "span": {"class": {"mj-link", "mj-address"}},
    "th": {"style": {f"text-align:{side}" for side in ("left", "right", "center")}},
}
ATTRIBUTES["td"] = ATTRIBUTES["th"]
HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "a <b onclick='x'>b</b> <!-- c --> <?php ?> <![CDATA[x]]>",
    "<div style='background:url(https://e.example)'>\n\n*x*\n\n</div>",
    "<style>@import 'https://e.example'</style>",
    "![x](https://e.example/x.png)",
    '![x](https://e.example/x.png "t") ![y][y]\n\n[y]: https://e.example/y.png',
    "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](  javascript:alert(1))",
    "[x](&#106;avascript:alert(1)) [x](java&#10;script:alert(1)) <javascript:alert(1)>",
    "[x](data:text/html;base64,PHNjcmlwdD4=) [x](vbscript:x) [x](file:///etc/passwd)",
    "[x](//e.example) [x](/logout) [x](?part=Record) [x](#y) [x](x.html)",
    '[x](https://e.example/"onmouseover="alert(1)) [x](https://e.example "onload=alert(1)")',
    "[x][y]\n\n[y]: javascript:alert(1)",
    '```js" onload="alert(1)\n<script>\n```',
    "~~~ </code><script>\nx\n~~~",
    "`</code><script>alert(1)</script>`",
    "| a |\n|:-:|\n| <script>alert(1)</script> |",
    "# <iframe src=https://e.example>",
    "https://e.example/x www.e.example",
    "\x00\u202e&lt;script&gt; &#60;script&#62;",
]

SCAN = "scan (https://h.example/s.png) (https://h.example)"


class Seen(HTMLParser):
    """Elements and attributes of a page, as a browser would take them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element with its attributes."""
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep the words."""
        self.words += data

    def handle_comment(self, data: str) -> None:
        """Refuse a comment, and all that is no element."""
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def harmless(page):
    seen = Seen(page)
    for tag, attributes in seen.found:
        assert tag in TAGS, tag
        for name, value in attributes.items():
            if (tag, name) == ("ol", "start"):
                assert str(value).isdigit()
            else:
                assert value in ATTRIBUTES[tag][name]
    return seen


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_text_says_becomes_more_than_words(text):
    harmless(as_html(text))


@given(st.lists(st.sampled_from([*HOSTILE, *"[]()<>!`*_#|\\\"'&;:\n -+1.", "](", "](<", "x"])))
def test_no_mixture_of_hostile_pieces_becomes_more_than_words(parts):
    harmless(as_html("".join(parts)))


@given(st.text())
def test_no_text_at_all_becomes_more_than_words(text):
    harmless(as_html(text))


def test_html_is_read_as_it_is_written():
    assert "<script>alert(1)</script>" in harmless(as_html(HOSTILE[0])).words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[the form](https://h.example/f?a=1)", "the form (https://h.example/f?a=1)"),
        ("[*the* form](HTTP://h.example)", "the form (HTTP://h.example)"),
        ("[write](mailto:a@h.example)", "write (a@h.example)"),
        ("[call](tel:+46123)", "call (+46123)"),
        ("<https://h.example>", "https://h.example"),
        ("<a@h.example>", "a@h.example"),
        ("https://h.example", "https://h.example"),
        ("[x](javascript:y)", "[x](javascript:y)"),
        ("![a *scan*](https://h.example/s.png)", "a *scan* (https://h.example/s.png)"),
        ("![x](data:image/png;base64,AA==)", "![x](data:image/png;base64,AA==)"),
        ("[![scan](https://h.example/s.png)](https://h.example)", SCAN),
        ("[bank](https://b\u0430nk.example)", "bank (https://xn--bnk-6cd.example)"),
    ],
)
def test_a_link_or_a_picture_is_its_words_and_its_true_address(text, words):
    assert harmless(as_html(text)).words.strip() == words


def test_headings_lists_tables_and_code_are_shown_as_such():
    page = as_html("# A\n\n#### B\n\n3. x\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n    code <b>\n")
    for part in ("<h3>A</h3>", "<h6>B</h6>", '<ol start="3">', "<td>1</td>", "code &lt;b&gt;"):
        assert part in page
    assert '<td style="text-align:right">2</td>' in page


@pytest.mark.parametrize(
    "piece",
    ["[", "![", "*", "_a", "> ", "- ", "<", "&", "|a", "`a", "[](<", "[a](<b>", "a|b\n-|-\n"],
)
def test_the_longest_text_made_to_be_slow_takes_less_than_five_seconds_of_a_processor(piece):
    text = (piece * LONGEST_TEXT)[:LONGEST_TEXT]
    begun = time.process_time()
    as_html(text)
    assert time.process_time() - begun < 5


def test_a_page_of_a_description_leaves_out_what_says_nothing_and_escapes_titles():
    told = Description("<b>T", "Why", "", " ", "I agree", guideline=(GuidelinePage("<i>G", "*g*"),))
    assert [one.heading for one in sections(told)] == ["Purpose", "Consent"]
    assert [(one.heading, one.html) for one in pages(told)] == [("<i>G", "<p><em>g</em></p>\n")]
    page = as_page(told)
    assert "&lt;b&gt;T" in page
    assert "<summary>&lt;i&gt;G</summary>" in page
    assert {tag for tag, _ in Seen(page).found} == {
        *("article", "section", "details", "summary", "h2", "p", "em")
    }
