"""The agreement table as Markdown and LaTeX, and as CSV in full precision that no spreadsheet runs."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibration.notes import listed, simulated_in, told
from calibration.scope import AgreementRow
from calibration.tables.agreement import AGREEMENT
from calibration.tables.numbers import DASH, MINUS, THIN, all_simulated, known
from calibration.tables.spec import Group, Table, laid_out
from data.safe_text import guarded_name, visible

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#+!|~&$^-])")
NUMBERED = re.compile(r"^(\d+)(?=\.)")  # begins a list, where a line does
CAPTION = (
    "Agreement with the clinicians: ICC(C,2), consistency. Like for like is a difference of two "
    "ICCs, same clinician again is ICC(A,1)"
)
COLUMNS = (
    *("benchmark", "scorer", "simulated", "icc", "low", "high"),
    *("f_low", "f_high", "spearman", "n_responses", "n_missing", "n_instances", "n_clinicians"),
    *("n_pairs", "method", "reps", "seed", "note"),
)


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


def markdown(rows: Sequence[AgreementRow], how: str) -> str:
    """Return the agreement table in Markdown, a table a benchmark; `how` is said above it."""
    return table_markdown(agreement_table(rows, how), simulated_words(rows))


def table_markdown(table: Table, simulated: str = "") -> str:
    """Return a table in Markdown, its caption and what is simulated above it."""
    parts = [f"{_plain(table.caption)}."]
    if simulated:
        parts.append(f"**{_plain(simulated)}**")
    for group in table.groups:
        parts.append(f"**{_plain(group.heading)}**")
        lines = [table.columns, *group.rows]
        cells = [" | ".join(_plain(cell) for cell in line) for line in lines]
        rule = " | ".join([":--", *["--:"] * (len(table.columns) - 1)])
        body = "\n".join(f"| {line} |" for line in [cells[0], rule, *cells[1:]])
        parts.append(body)
    if table.notes:
        parts.append("\n".join(f"- {_plain(note.text)}" for note in table.notes))
    return "\n\n".join(parts) + "\n"


def latex(rows: Sequence[AgreementRow], how: str) -> str:
    r"""Return the agreement table for LaTeX; it takes `\usepackage{booktabs}`."""
    table = agreement_table(rows, how)
    caption = " ".join(filter(None, (f"{table.caption}.", simulated_words(rows))))
    return latex_table(table, caption)


def agreement_table(rows: Sequence[AgreementRow], how: str) -> Table:
    """Return the agreement table, whose caption ends with `how` it was computed."""
    return laid_out(AGREEMENT, rows, caption=f"{CAPTION}. {how}", grouped=True, mark_each=True)


def simulated_words(rows: Sequence[AgreementRow]) -> str:
    """Return who is simulated and what that means for the table; "" where nobody is."""
    names = simulated_in(rows)
    if not names:
        return ""
    what = "nothing here" if all_simulated(rows) else "no row marked simulated"
    return f"Simulated raters: {listed(names)}; {what} is evidence."


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return NUMBERED.sub(r"\1\\", MARKDOWN.sub(r"\\\1", visible(text)))


def table_csv(rows: Sequence[AgreementRow], how: Mapping[str, Any]) -> str:
    """Return the agreement table as CSV.

    An undefined number is an empty cell; its reason is in `note`. `how` has method, reps, seed.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for row in rows:
        added = {**how, "simulated": int(bool(row.simulated)), "note": told(row.notes)}
        cells = [added[name] if name in added else getattr(row, name) for name in COLUMNS]
        writer.writerow([_safe(value) for value in cells])
    return out.getvalue()


def _safe(value: Any) -> Any:
    if isinstance(value, str):
        return guarded_name(value)
    return value if known(value) else ""


def latex_table(table: Table, caption: str) -> str:
    r"""Return a table for LaTeX; it takes `\usepackage{booktabs}`. Its notes are comments below it."""
    width = len(table.columns)
    lines = [
        r"% needs \usepackage{booktabs} and \usepackage[T1]{fontenc}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (width - 1)}}}",
        r"\toprule",
        _line(table.columns),
        *(line for group in table.groups for line in _latex_group(group, width)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, *(f"% {visible(note.text)}" for note in table.notes)]) + "\n"


def latex_text(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    return "".join(LATEX.get(one, one) for one in visible(text))


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"


def _latex_group(group: Group, width: int) -> Iterator[str]:
    yield r"\midrule"
    if group.heading:
        yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_text(group.heading)}}}}} \\"
    yield from map(_line, group.rows)
