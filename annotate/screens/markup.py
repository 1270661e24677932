"""What screens are written in: tables, headings and messages as HTML; every text is escaped."""

import html
from collections.abc import Sequence

Cell = str | int | None


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], words: int = 1) -> str:
    """Return a table; the first cell heads its row.

    Parameters
    ----------
    title
        What the table is, for those who do not see the page.
    rows
        Text is escaped, None an em dash that reads "none".
    words
        How many columns from the left hold words; the others are numbers, set to the right.
    """
    head_cells = "".join(
        f'<th scope="col"{_side(place, words)}>{html.escape(head)}</th>'
        for place, head in enumerate(heads)
    )
    body = "".join(_row(row, words) for row in rows)
    return (
        '<div class="mj-scrolls" tabindex="0" role="region" '
        f'aria-label="{html.escape(title)}"><table class="mj-figures">'
        f'<caption class="mj-unseen">{html.escape(title)}</caption>'
        f"<thead><tr>{head_cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def heading(text: str) -> str:
    """Return the heading of a part of a screen."""
    return f'<h2 class="mj-part">{html.escape(text)}</h2>'


def paragraph(text: str) -> str:
    """Return a paragraph."""
    return f'<p class="mj-said">{html.escape(text)}</p>'


def lead(text: str) -> str:
    """Return what a part of a screen is about."""
    return f'<p class="mj-lead">{html.escape(text)}</p>'


def caption(text: str) -> str:
    """Return what a chart or table needs to be read, in small print below it."""
    return f'<p class="mj-caption">{html.escape(text)}</p>'


def good(text: str) -> str:
    """Return a message that something is done or whole."""
    return f'<p class="mj-good" role="status">{html.escape(text)}</p>'


def notice(text: str) -> str:
    """Return what is to be known before going on."""
    return f'<p class="mj-notice">{html.escape(text)}</p>'


def refused(text: str) -> str:
    """Return why something was not done, word for word."""
    return f'<p class="mj-refused" role="alert">{html.escape(text)}</p>'


def _row(row: Sequence[Cell], words: int) -> str:
    first, *rest = (_cell(cell) for cell in row)
    cells = "".join(f"<td{_side(place, words)}>{cell}</td>" for place, cell in enumerate(rest, 1))
    return f'<tr><th scope="row">{first}</th>{cells}</tr>'


def _cell(value: Cell) -> str:
    if value is None:
        return '<span aria-label="none">\N{EM DASH}</span>'
    return html.escape(f"{value:,}" if isinstance(value, int) else value)


def _side(place: int, words: int) -> str:
    return f' class="{"mj-word" if place < words else "mj-number"}"'
