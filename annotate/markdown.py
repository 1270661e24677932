"""Markdown as HTML that is safe to show: nothing in it runs, and nothing loads from anywhere.

HTML in a text is shown as it is written; pictures and links are the words and the address, as
text. So a page of it asks no server for anything, whoever wrote it.
"""

import html
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token

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
    made = _Parser("commonmark", {"html": False, "linkify": False}, renderer_cls=_Renderer)
    return made.enable("table")


class _Parser(MarkdownIt):
    """A parser rule that accepts only links with an address that a person can use."""

    def validateLink(self, url: str) -> bool:  # noqa: N802 its parent's name
        return REACHABLE.match(url) is not None


class _Renderer(RendererHTML):
    """Writes no attribute that the text could choose, but how a table's cells are aligned."""

    def link_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return '<span class="mj-link">'

    def link_close(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        opened = next(n for n in range(place, -1, -1) if tokens[n].type == "link_open")
        words = "".join(token.content for token in tokens[opened:place])
        return f"</span>{_address(tokens[opened].attrGet('href'), words)}"

    def image(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        words = tokens[place].content
        shown = f'<span class="mj-link">{html.escape(words)}</span>'
        return shown + _address(tokens[place].attrGet("src"), words)

    def heading_open(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return f"<{_heading(tokens[place])}>"

    def heading_close(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return f"</{_heading(tokens[place])}>\n"

    def fence(self, tokens: Sequence[Token], place: int, *_: Any) -> str:
        return f"<pre><code>{html.escape(tokens[place].content)}</code></pre>\n"


def _address(href: object, words: str) -> str:
    """Return the address that words lead to, unless they are that address."""
    address = PLAIN.sub("", str(href), count=1)
    shown_address = f' <span class="mj-address">({html.escape(address)})</span>'
    return "" if words == address else shown_address


def _heading(token: Token) -> str:
    """Return the element of a heading, below those of the page it stands in."""
    return f"h{min(LOWEST_HEADING, int(token.tag[1:]) + TOP_HEADING - 1)}"
