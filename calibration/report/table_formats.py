"""The agreement table as Markdown, CSV and LaTeX: every scorer on every benchmark."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

from calibration.report.agreement_tables import AGREEMENT
from calibration.report.tables import EMPTY, Table
from calibration.tables.numbers import MINUS, is_simulated, known, simulated_raters
from data.formula import guarded_name

Row = Mapping[str, Any]
MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")
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
    MINUS: r"$-$",
    EMPTY: "--",
    "\N{NARROW NO-BREAK SPACE}": r"\,",
}
CSV_COLUMNS = (
    *("benchmark", "scorer", "simulated", "icc", "boot_low", "boot_high", "f_low", "f_high"),
    *("spearman", "n_responses", "n_missing", "n_instances", "n_clinicians", "n_pairs"),
    *("method", "reps", "seed", "note"),
)
CAPTION = (
    "Agreement with the clinicians: ICC(C,2), consistency. Like for like is a difference of two "
    "ICCs, same clinician again is ICC(A,1)"
)


def markdown(rows: Sequence[Row], how: str) -> str:
    """Return the agreement table in Markdown, a table a benchmark; `how` is said above it."""
    table = _table(rows)
    parts = [f"{_plain(table.caption)}. {_plain(how)}."]
    if said := simulated_words(rows):
        parts.append(f"**{_plain(said)}**")
    for group in table.groups:
        parts.append(f"**{_plain(group.heading)}**")
        lines = [table.columns, *group.rows]
        cells = [" | ".join(_plain(cell) for cell in line) for line in lines]
        rule = " | ".join([":--", *["--:"] * (len(table.columns) - 1)])
        body = "\n".join(f"| {line} |" for line in [cells[0], rule, *cells[1:]])
        parts.append(body)
    if table.notes:
        parts.append("\n".join(f"- {_plain(note)}" for note in table.notes))
    return "\n\n".join(parts) + "\n"


def table_csv(rows: Sequence[Row], how: Mapping[str, Any]) -> str:
    """Return the agreement table as CSV in full precision; no cell is a formula to a spreadsheet.

    An undefined number is an empty cell; its reason is in `note`. `how` has method, reps, seed.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        every = {**row, **how, "simulated": int(is_simulated(row))}
        writer.writerow([_safe(every[name]) for name in CSV_COLUMNS])
    return out.getvalue()


def latex(rows: Sequence[Row], how: str) -> str:
    r"""Return the agreement table for LaTeX; it takes `\usepackage{booktabs}`."""
    table, words = _table(rows), f"{CAPTION}. {how}."
    width = len(table.columns)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_tex(' '.join(filter(None, (words, simulated_words(rows)))))}}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        _line(table.columns),
    ]
    for group in table.groups:
        heading = rf"\multicolumn{{{width}}}{{l}}{{\textit{{{_tex(group.heading)}}}}} \\"
        lines += [r"\midrule", heading, *map(_line, group.rows)]
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join([*lines, *(f"% {_comment(note)}" for note in table.notes)]) + "\n"


def _table(rows: Sequence[Row]) -> Table:
    return AGREEMENT.marked(CAPTION, rows)


def simulated_words(rows: Sequence[Row]) -> str:
    """Return who is simulated and what that means for the table; "" where nobody is."""
    names = simulated_raters(rows)
    if not names:
        return ""
    what = "nothing here" if all(map(is_simulated, rows)) else "no row marked simulated"
    return f"Simulated raters: {', '.join(names)}; {what} is evidence."


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def _tex(text: str) -> str:
    return "".join(LATEX.get(one, one) for one in " ".join(text.split()))


def _comment(text: str) -> str:
    return " ".join(text.split())


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(_tex, cells)) + r" \\"


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return guarded_name(value)
    return value if known(value) else ""
