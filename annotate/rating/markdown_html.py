"""Markdown and aligned tables as HTML that holds every character of the text, in its order.

What only lays out (`**`, `#`, `|`, an address) stands in elements of class `mj-syntax`, which are not
shown: so offsets into the text are offsets into the page, and a style sheet alone shows the text as it
was typed. Laid out are headings, lists, tables (of GitHub's kind, and lines with as many tabs or pipes
each), rules, fenced blocks, bold and italics, code, links and images (their words, inert). A `-` or
`+` before a finding and a `>` before a number mean something in a clinical note, and a `*` between
two numbers is a product: they stay as they are.
"""

import html
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

NOT_READ = ("code", "reference", "lheading", "blockquote", "html_block", "entity", "fragments_join")
PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(NOT_READ))
TAGS = {
    "em_open": "<em>",
    "em_close": "</em>",
    "strong_open": "<strong>",
    "strong_close": "</strong>",
    "link_open": '<span class="mj-link">',
    "link_close": "</span>",
}
MARKER = re.compile(r"([ \t]*)(?:([-+]|\d{1,9}[.)])|([*]))([ \t]*)")
HEADING = re.compile(r"(\s*#+\s*)(.*?)((?:\s+#+)?\s*)", re.DOTALL)
CELL = re.compile(r"([\s|]*)(.*?)((?:\s|(?<!\\)\|)*)", re.DOTALL)
PIPE = re.compile(r"(?<!\\)\|")
SINGLE = {"heading_open": "heading", "hr": "rule"}  # a line each
FEWEST_ROWS, DEEPEST = 2, 4


class Line(NamedTuple):
    """What a line is, and the block it belongs to by the number of its first line.

    `level` is that of a heading, or how deep a list is nested.
    """

    kind: str
    block: int = 0
    level: int = 0


def rendered(text: str) -> str:
    """Return a text laid out: without its tags, and unescaped, it is the text again."""
    lines = text.split("\n")
    lines = [line + "\n" for line in lines[:-1]] + lines[-1:]
    kinds = _kinds(text, lines)
    blocks = []
    for (kind, _), members in groupby(zip(lines, kinds, strict=True), lambda one: _block(one[1])):
        own = list(members)
        these = [line for line, _ in own]
        if kind == "table":
            blocks.append(_table(own))
        elif kind == "list":
            blocks.append(_list(own))
        elif kind == "heading":
            blocks += [
                f'<h3 dir="auto" class="mj-level-{of.level}">{heading_line(line)}</h3>'
                for line, of in own
            ]
        elif kind == "fence":
            shown = (_syntax(line) if of.kind == "fence" else html.escape(line) for line, of in own)
            blocks.append(f'<pre dir="auto">{"".join(shown)}</pre>')
        elif kind == "text":
            blocks.append(f'<p dir="auto">{"".join(map(_line, these))}</p>')
        else:
            rule = "<hr>" if kind == "rule" else ""
            blocks.append(rule + _syntax("".join(these)))
    return f'<div class="mj-text mj-laid">{"".join(blocks)}</div>'


def _block(line: Line) -> tuple[str, int]:
    """Return what consecutive lines share that stand in one element."""
    if line.kind in ("head", "delimiter", "row", "tabs", "pipes"):
        return "table", line.block
    if line.kind in ("item", "more"):
        return "list", 0
    return "fence" if line.kind == "code" else line.kind, line.block


def _kinds(text: str, lines: Sequence[str]) -> list[Line]:
    """Return what each line is, by the parser's map of its blocks."""
    kinds = [Line("text" if line.strip() else "blank") for line in lines]
    depth = head = 0
    for token in PARSER.parse(text, {}):
        depth += token.nesting if token.type.split("_")[-2:-1] == ["list"] else 0
        if token.map is None or token.nesting < 0:
            continue
        first, end = token.map[0], min(token.map[1], len(lines))
        if token.type == "list_item_open":
            for n in range(first, end):
                if kinds[n].kind != "blank":
                    kinds[n] = Line("item" if n == first else "more", first, min(depth, DEEPEST))
        elif token.type == "table_open":
            head = first
            kinds[first + 1] = Line("delimiter", head)
        elif token.type == "tr_open":
            kinds[first] = Line("head" if first == head else "row", head)
        elif token.type == "fence":
            kinds[first:end] = _fence(lines[first:end], first, token.markup)
        elif token.type in SINGLE and not depth:
            level = int(token.tag[1:]) if token.type == "heading_open" else 0
            kinds[first] = Line(SINGLE[token.type], first, level)
    for n, line in enumerate(kinds):
        if line.kind == "more" and (n == 0 or kinds[n - 1].kind not in ("item", "more")):
            kinds[n] = Line("text")  # after a blank line or a table within an item
    return _aligned(lines, kinds)


def _fence(lines: Sequence[str], first: int, markup: str) -> list[Line]:
    """Return the kinds of a block of code; a text may end without closing it."""
    kinds = [Line("fence", first), *(Line("code", first) for _ in lines[1:])]
    if len(lines) > 1 and lines[-1].strip().startswith(markup):
        kinds[-1] = Line("fence", first)
    return kinds


def _aligned(lines: Sequence[str], kinds: list[Line]) -> list[Line]:
    """Return the kinds with lines marked that are rows of a table by their tabs or pipes alone."""
    for kind in ("tabs", "pipes"):
        counts = [
            len(_cells(line, kind)) if of.kind == "text" else 1
            for line, of in zip(lines, kinds, strict=True)
        ]
        for cells, members in groupby(range(len(lines)), counts.__getitem__):
            rows = list(members)
            if cells > 1 and len(rows) >= FEWEST_ROWS:
                kinds[rows[0] : rows[-1] + 1] = [Line(kind, rows[0])] * len(rows)
    return kinds


def _cells(line: str, kind: str) -> list[str]:
    """Return the cells of a row with their separators: joined they are the row."""
    pieces = line.split("\t") if kind == "tabs" else PIPE.split(line)
    separator = "\t" if kind == "tabs" else "|"
    cells = [piece + separator for piece in pieces[:-1]] + pieces[-1:]
    if kind != "tabs" and len(cells) > 1 and not pieces[0].strip():
        cells[:2] = [cells[0] + cells[1]]
    if len(cells) > 1 and not pieces[-1].strip():
        cells[-2:] = [cells[-2] + cells[-1]]
    return cells


def _table(rows: Sequence[tuple[str, Line]]) -> str:
    """Return rows as a table; the line under the head stands, unseen, in the head's last cell."""
    out: list[str] = []
    for line, of in rows:
        tag = "th" if of.kind == "head" else "td"
        if of.kind == "delimiter":
            out[-1] = f"{out[-1].removesuffix('</th></tr>')}{_syntax(line)}</th></tr>"
        else:
            cells = "".join(
                f'<{tag} dir="auto">{_around(CELL, cell)}</{tag}>' for cell in _cells(line, of.kind)
            )
            out.append(f"<tr>{cells}</tr>")
    return f'<table dir="auto">{"".join(out)}</table>'


def _list(lines: Sequence[tuple[str, Line]]) -> str:
    """Return items, each with its marker as it was typed, but a dot for an asterisk."""
    items: list[str] = []
    for line, of in lines:
        marked = MARKER.match(line)
        if of.kind == "more" or marked is None:
            items[-1] += _line(line)
            continue
        indent, typed, star, blank = marked.groups()
        marker = (
            f'<span class="mj-marker">{typed}{blank}</span>' if typed else _syntax(star + blank)
        )
        dot = "" if typed else " mj-dot"
        items.append(
            f'<li dir="auto" class="mj-depth-{of.level}{dot}">'
            f"{_syntax(indent)}{marker}{_line(line[marked.end() :])}"
        )
    return f"<ul>{''.join(f'{item}</li>' for item in items)}</ul>"


def heading_line(line: str) -> str:
    """Return the words of a heading, those before and after them unseen; of another line, the line."""
    return _around(HEADING, line) if line.lstrip().startswith("#") else _line(line)


def _around(pattern: re.Pattern[str], text: str) -> str:
    """Return a text of which the pattern says what is left out before it and after."""
    found = pattern.fullmatch(text)
    if found is None:
        return html.escape(text)
    before, content, after = found.groups()
    return _syntax(before) + inline(content) + _syntax(after)


def _line(line: str) -> str:
    content = line.removesuffix("\n")
    return inline(content) + line[len(content) :]


def inline(text: str) -> str:
    """Return a line with bold, italics, code, links and images laid out."""
    state = _State(text, PARSER, {}, [])
    PARSER.inline.tokenize(state)
    for rule in PARSER.inline.ruler2.getRules(""):
        rule(state)
    out, at = [], 0
    for token in state.tokens:
        if tag := TAGS.get(token.type):
            out.append(tag)
        elif token.content:
            start = _place(text, token, at)
            if start < 0:
                return html.escape(text)
            out += [_syntax(text[at:start]), _shown(token)]
            at = start + len(token.content)
    return "".join(out) + _syntax(text[at:])


def _place(text: str, token: Token, at: int) -> int:
    """Return where in a line a token's content stands, -1 if it is not in it as such."""
    if "end" in token.meta:
        return text.rfind(token.content, at, token.meta["end"])
    if token.type == "image":
        at = text.find("![", at) + 2
    elif token.type != "text":
        at = max(at, token.meta["at"] + len(token.markup[:1]))
    return text.find(token.content, max(at, token.meta["at"] if token.type == "text" else at))


def _shown(token: Token) -> str:
    content = html.escape(token.content)
    if token.type == "code_inline":
        return f"<code>{content}</code>"
    return f'<span class="mj-image">{content}</span>' if token.type == "image" else content


def _syntax(text: str) -> str:
    return f'<span class="mj-syntax">{html.escape(text)}</span>' if text else ""


class _State(StateInline):
    """Notes of each token where in the line it was pushed (`at`), of a text where it ended (`end`)."""

    def push(self, ttype: str, tag: str, nesting: Any) -> Token:
        token = super().push(ttype, tag, nesting)
        token.meta["at"] = self.pos
        return token

    def pushPending(self) -> Token:  # noqa: N802 its parent's name
        token = super().pushPending()
        token.meta["end"] = self.pos
        return token

    def scanDelims(self, start: int, canSplitWord: bool) -> Any:  # noqa: N802, N803 its parent's
        return super().scanDelims(start, False)
