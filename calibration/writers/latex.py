"""A table for LaTeX, its text made harmless."""

from collections.abc import Iterator, Sequence

from calibration.tables.numbers import DASH, MINUS, THIN
from calibration.tables.spec import Group, Table
from data.safe_text import visible

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
        *(line for group in table.groups for line in _group(group, width)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join([*lines, *(f"% {visible(note.text)}" for note in table.notes)]) + "\n"


def latex_text(text: str) -> str:
    """Return text that LaTeX shows as it is."""
    return "".join(LATEX.get(one, one) for one in visible(text))


def _group(group: Group, width: int) -> Iterator[str]:
    yield r"\midrule"
    if group.heading:
        yield rf"\multicolumn{{{width}}}{{l}}{{\textit{{{latex_text(group.heading)}}}}} \\"
    yield from map(_line, group.rows)


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(latex_text, cells)) + r" \\"
