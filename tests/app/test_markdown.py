"""Markdown of a study is shown so that nothing in it runs, and nothing loads from anywhere."""

import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotate.description import as_html, as_page, pages, sections
from data.description import LONGEST_TEXT, Description, GuidelinePage

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
