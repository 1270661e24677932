"""The description of a study: its Markdown as HTML, the same for clinicians and for its author."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

from data.description import TEXTS, Description

HEADINGS = {
    "purpose": "Purpose",
    "responsible": "Who is responsible",
    "contact": "Contact",
    "instructions": "Instructions",
    "consent": "Consent",
}


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the description: the name of its field, its heading, and its text as HTML."""

    name: str
    heading: str
    html: str


def sections(description: Description, say: Callable[[str], str] = str) -> tuple[Section, ...]:
    """Return the texts of a description in the order they are read, those that say nothing left out."""
    texts = {name: getattr(description, name) for name in TEXTS}
    return tuple(
        Section(name, say(HEADINGS[name]), as_html(text))
        for name, text in texts.items()
        if text.strip()
    )


def pages(description: Description) -> tuple[Section, ...]:
    """Return the pages of its guideline, in their order."""
    return tuple(
        Section("guideline", page.title, as_html(page.text)) for page in description.guideline
    )


def as_page(description: Description, say: Callable[[str], str] = str) -> str:
    """Return all of it as one page, the guideline's pages to be opened one by one."""
    body = "".join(
        f"<section><h2>{section.heading}</h2>{section.html}</section>"
        for section in sections(description, say)
    )
    guideline = "".join(
        f"<details><summary>{html.escape(page.heading)}</summary>{page.html}</details>"
        for page in pages(description)
    )
    if guideline:
        body += f"<section><h2>{say('Guideline')}</h2>{guideline}</section>"
    title = html.escape(description.title)
    return f'<article class="mj-described"><h2 class="mj-of-study">{title}</h2>{body}</article>'


REACHABLE = re.compile(r"(?:https?://|mailto:|tel:)\S", re.IGNORECASE)
PLAIN = re.compile(r"(?:mailto|tel):", re.IGNORECASE)
TOP_HEADING, LOWEST_HEADING = 3, 6  # a page of the app has its own h1, and h2 for its parts


@lru_cache(maxsize=64)
def as_html(text: str) -> str:
    """Return a text in Markdown (CommonMark, and tables) as HTML; its headings begin at h3.

    Links are shown as their words and their address, which is http, https, mailto or tel; those
    of any other kind stay as they are written.
    """
    return str(_markdown().render(text))


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
    return parser.enable("table")


class _Parser(MarkdownIt):
    """A parser rule that accepts only links with an address that a person can use."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 its parent's name
        return REACHABLE.match(url) is not None


class _Renderer(RendererHTML):
    """Writes no attribute that the text could choose, but how a table's cells are aligned."""

    def link_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return '<span class="mj-link">'

    def link_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        opened = next(n for n in range(index, -1, -1) if tokens[n].type == "link_open")
        words = "".join(token.content for token in tokens[opened:index])
        return f"</span>{_address(tokens[opened].attrGet('href'), words)}"

    def image(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        words = tokens[index].content
        shown = f'<span class="mj-link">{html.escape(words)}</span>'
        return shown + _address(tokens[index].attrGet("src"), words)

    def heading_open(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f"<{_heading(tokens[index])}>"

    def heading_close(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f"</{_heading(tokens[index])}>\n"

    def fence(self, tokens: Sequence[Token], index: int, *_: Any) -> str:
        return f"<pre><code>{html.escape(tokens[index].content)}</code></pre>\n"


def _address(href: object, words: str) -> str:
    """Return the address that words lead to, unless they are that address."""
    address = PLAIN.sub("", str(href), count=1)
    shown_address = f' <span class="mj-address">({html.escape(address)})</span>'
    return "" if words == address else shown_address


def _heading(token: Token) -> str:
    """Return the element of a heading, below those of the page it stands in."""
    return f"h{min(LOWEST_HEADING, int(token.tag[1:]) + TOP_HEADING - 1)}"
