"""Tables that are laid out as HTML, Markdown and LaTeX, and the agreement table as CSV.

HTML can be walked through by a screen reader; no spreadsheet runs a cell of the CSV.
"""

import base64
import csv
import hashlib
import html
import io
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from calibration.notes import Noted, listed, simulated_in, told
from calibration.tables.agreement import AGREEMENT
from calibration.tables.numbers import DASH, MINUS, THIN, all_simulated, known
from calibration.tables.spec import Table, TableNote, laid_out, parted
from data.safe_text import guarded_name, visible

CAPTION = (
    "Agreement with the clinicians: ICC(C,2), consistency. Like for like is a difference of two "
    "ICCs, same clinician again is ICC(A,1)"
)
COLUMNS = (
    *("benchmark", "scorer", "simulated", "icc", "low", "high"),
    *("f_low", "f_high", "spearman", "n_responses", "n_missing", "n_instances", "n_clinicians"),
    *("n_pairs", "method", "reps", "seed", "note"),
)
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$^-])")
NUMBERED = re.compile(r"^(\d+)(?=\.)")  # begins a list, where a line does
LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "[": "{[}",  # after a row's end it would begin a length, and a * a command of its own
    "*": "{*}",
    MINUS: r"$-$",
    DASH: "--",
    THIN: r"\,",
}


def agreement_table(rows: Sequence[Noted], how: str) -> Table:
    """Return the agreement table by benchmark; its caption says `how`, and who is simulated."""
    names, caption = simulated_in(rows), f"{CAPTION}. {how}"
    if names:
        what = "nothing here" if all_simulated(rows) else "no row marked simulated"
        caption += f". Simulated raters: {listed(names)}; {what} is evidence"
    return laid_out(AGREEMENT, rows, caption=caption, grouped=True, mark_each=True)


def table_csv(rows: Sequence[Noted], how: Mapping[str, Any]) -> str:
    """Return the agreement table as CSV in full precision.

    An undefined number is an empty cell; its reason is in `note`. `how` has method, reps, seed.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        added = {**how, "simulated": int(bool(row.simulated)), "note": told(row.notes)}
        cells = [added[name] if name in added else getattr(row, name) for name in COLUMNS]
        writer.writerow(
            guarded_name(one) if isinstance(one, str) else one if known(one) else ""
            for one in cells
        )
    return out.getvalue()


def markdown(table: Table) -> str:
    """Return a table in Markdown, its caption above it and its notes below."""

    def plain(text: str) -> str:
        return NUMBERED.sub(r"\1\\", MARKDOWN.sub(r"\\\1", visible(text)))

    parts = [f"{plain(table.caption)}."]
    rule = "| " + " | ".join([":--", *["--:"] * (len(table.columns) - 1)]) + " |"
    for group in table.groups:
        head, *body = (
            f"| {' | '.join(map(plain, cells))} |" for cells in (table.columns, *group.rows)
        )
        parts += [f"**{plain(group.heading)}**", "\n".join([head, rule, *body])]
    notes = "\n".join(f"- {plain(note.text)}" for note in table.notes)
    return "\n\n".join([*parts, *([notes] if notes else [])]) + "\n"


def latex(table: Table) -> str:
    r"""Return a table for LaTeX; it takes `\usepackage{booktabs}`. Its notes are comments below it."""

    def plain(text: str) -> str:
        return "".join(LATEX.get(one, one) for one in visible(text))

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(plain, cells)) + r" \\"

    width = len(table.columns)
    body = []
    for group in table.groups:
        body.append(r"\midrule")
        if group.heading:
            words = rf"\textit{{{plain(group.heading)}}}"
            body.append(rf"\multicolumn{{{width}}}{{l}}{{{words}}} \\")
        body += map(line, group.rows)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{plain(table.caption)}.}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        line(table.columns),
        *body,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, *(f"% {visible(note.text)}" for note in table.notes)]) + "\n"


class Markup(str):
    """Finished HTML, in which all text from elsewhere is escaped."""


def escaped(text: object) -> str:
    """Return a text as HTML shows it word for word; what is HTML already, as it is."""
    return text if isinstance(text, Markup) else html.escape(str(text))


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


def html_table(table: Table, *, on_screen: bool = False) -> str:
    """Return a table and its notes; everything is escaped but what is `Markup`.

    On a screen a heading tells its meaning on hover and focus, and of many notes those that only
    add figures are folded.
    """

    def cell(place: int, text: str, *, head: bool = False) -> str:
        name = table.columns[place]
        words = ' class="mj-word"' if name in table.words or (head and not place) else ""
        if not head:
            return f"<td{words}>{escaped(text)}</td>"
        shown = escaped(text.replace("95 %", "95\N{NO-BREAK SPACE}%"))
        if on_screen and (meaning := table.help.get(name)):
            described = f'class="mj-term" tabindex="0" aria-description="{escaped(meaning)}"'
            shown = f"<span {described}>{shown}</span>"
        return f'<th scope="col"{words}>{shown}</th>'

    body = ""
    for group in table.groups:
        body += "<tbody>"
        if group.heading:
            span = f'scope="rowgroup" colspan="{len(table.columns)}" class="mj-group"'
            body += f"<tr><th {span}>{escaped(group.heading)}</th></tr>"
        for name, *cells in group.rows:
            rest = "".join(cell(place, text) for place, text in enumerate(cells, 1))
            body += f'<tr><th scope="row">{escaped(name)}</th>{rest}</tr>'
        body += "</tbody>"
    heads = "".join(cell(place, name, head=True) for place, name in enumerate(table.columns))
    caption = escaped(table.caption)
    return (
        f'<div class="mj-scroll" role="region" tabindex="0" aria-label="{caption}">'
        f'<table class="mj-figures"><caption>{caption}</caption><thead><tr>{heads}</tr></thead>'
        f"{body}</table></div>{html_notes(table.notes, on_screen=on_screen)}"
    )


def html_notes(notes: Sequence[TableNote], *, on_screen: bool = False) -> str:
    """Return notes as a list; on a screen, of many notes those that only add figures are folded."""
    loud, quiet = parted(notes) if on_screen else ([*notes], [])
    shown, more = (
        f'<ul class="mj-notes">{"".join(f"<li>{escaped(one.text)}</li>" for one in own)}</ul>'
        if own
        else ""
        for own in (loud, quiet)
    )
    if not quiet:
        return shown
    summary = f"{len(quiet)} more notes: further intervals, and what they rest on"
    return f'{shown}<details class="mj-folded"><summary>{summary}</summary>{more}</details>'
