"""A table as HTML that a screen reader can walk through, its notes below it as a list."""

import base64
import hashlib
import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from calibration.tables.spec import Group, Table, TableNote, parted

FOLDED = "{} more notes: further intervals, and what they rest on"


class Markup(str):
    """Finished HTML, in which all text from elsewhere is escaped."""


@dataclass(frozen=True, slots=True)
class Classes:
    """The classes of a style sheet: of the box, the table, words, groups, notes, folded notes.

    `term` is the class of a heading that tells its meaning; "" where headings are plain text.
    """

    box: str
    table: str
    words: str
    group: str
    notes: str
    folded: str = ""
    term: str = ""


REPORT = Classes("scroll", "", "words", "group", "notes")


def html_page(title: str, body: str) -> str:
    """Return a page of its own in the style of the report, which asks no other place for anything."""
    style = files("calibration.report").joinpath("style.css").read_text("utf-8")
    sha256 = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    csp = f"default-src 'none'; style-src 'sha256-{sha256}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{csp}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="referrer" content="no-referrer"><meta name="robots" content="noindex">'
        f"<title>{escaped(title)}</title><style>{style}</style></head><body><main>{body}</main>"
        "</body></html>\n"
    )


def html_table(table: Table, classes: Classes) -> str:
    """Return a table and its notes; everything is escaped but what is `Markup`.

    Of many notes those that warn come first, the others are folded where `classes.folded` names
    a class for them.
    """
    heads = "".join(
        f'<th scope="col"{_words(name, table, classes, first=place == 0)}>{_heading(name, table, classes)}</th>'
        for place, name in enumerate(table.columns)
    )
    body = "".join(_group(one, table, classes) for one in table.groups)
    caption, own = escaped(table.caption), _class(classes.table)
    return (
        f'<div class="{classes.box}" role="region" tabindex="0" aria-label="{caption}"><table{own}>'
        f"<caption>{caption}</caption><thead><tr>{heads}</tr></thead>{body}</table></div>"
        f"{html_notes(table.notes, classes)}"
    )


def html_notes(notes: Sequence[TableNote], classes: Classes) -> str:
    """Return notes as a list; of many notes those that only add figures are folded."""
    loud, quiet = parted(notes) if classes.folded else ([*notes], [])
    shown = html_list([note.text for note in loud], classes)
    if not quiet:
        return shown
    more = FOLDED.format(len(quiet))
    rest = html_list([one.text for one in quiet], classes)
    return f'{shown}<details class="{classes.folded}"><summary>{more}</summary>{rest}</details>'


def html_list(lines: Sequence[str], classes: Classes) -> str:
    """Return lines as a list; nothing for none."""
    items = "".join(f"<li>{escaped(one)}</li>" for one in lines)
    return f'<ul class="{classes.notes}">{items}</ul>' if items else ""


def escaped(text: object) -> str:
    """Return a text as HTML shows it word for word; what is HTML already, as it is."""
    return text if isinstance(text, Markup) else html.escape(str(text))


def _group(group: Group, table: Table, classes: Classes) -> str:
    """Return rows under their heading, which is none where there is one group only."""
    head = (
        f'<tr><th scope="rowgroup" colspan="{len(table.columns)}" class="{classes.group}">'
        f"{escaped(group.heading)}</th></tr>"
        if group.heading
        else ""
    )
    return f"<tbody>{head}{''.join(_row(cells, table, classes) for cells in group.rows)}</tbody>"


def _row(cells: Sequence[str], table: Table, classes: Classes) -> str:
    rest = "".join(
        f"<td{_words(name, table, classes)}>{escaped(cell)}</td>"
        for name, cell in zip(table.columns[1:], cells[1:], strict=True)
    )
    return f'<tr><th scope="row">{escaped(cells[0])}</th>{rest}</tr>'


def _words(name: str, table: Table, classes: Classes, *, first: bool = False) -> str:
    return _class(classes.words) if first or name in table.words else ""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def _heading(name: str, table: Table, classes: Classes) -> str:
    """Return a heading whose "95 %" is not broken; one with a help says it on hover and focus."""
    shown = escaped(name.replace("95 %", "95\N{NO-BREAK SPACE}%"))
    told = table.help.get(name) if classes.term else None
    if not told:
        return shown
    return f'<span{_class(classes.term)} tabindex="0" aria-description="{escaped(told)}">{shown}</span>'
