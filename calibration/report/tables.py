"""The tables of a report: captions, headings and cells as text, ready for any format."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from calibration.report.numbers import (
    SIMULATED,
    chance,
    fixed,
    interval,
    is_simulated,
    known,
    scorer,
    whole,
)
from calibration.scores import COMBINED

Row = Mapping[str, Any]
Cell = Callable[[Row], str]
SCORED = "scored "
EMPTY = "\N{EN DASH}"


@dataclass(frozen=True)
class Group:
    """Rows of a table under one heading; no heading where there is one group only."""

    heading: str
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Table:
    """A table as text. The first column names its row; all others are figures or `words`."""

    caption: str
    columns: tuple[str, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Shape:
    """How rows become a table: whom a row is about, and a cell for each heading."""

    about: str
    first: str
    columns: Mapping[str, Cell]
    words: tuple[str, ...] = ()

    def table(self, caption: str, rows: Sequence[Row], grouped: bool = False) -> Table:
        """Return the rows as a table, in groups by benchmark where they are of several."""
        apart = groupby(rows, key=lambda row: str(row["benchmark"])) if grouped else [("", rows)]
        groups = tuple(Group(place(name), self._cells(list(own))) for name, own in apart)
        headings = (self.first, *self.columns)
        named = [(self.named(row), row) for row in rows]
        return Table(caption, headings, groups, tuple(told(named)), frozenset(self.words))

    def named(self, row: Row) -> str:
        """Return whom a row is about; that it is simulated is part of the name."""
        name = scorer(f"{row[self.about]}")
        return f"{name} (simulated)" if is_simulated(row) else name

    def _cells(self, rows: Sequence[Row]) -> tuple[tuple[str, ...], ...]:
        return tuple(
            (self.named(row), *(cell(row) or EMPTY for cell in self.columns.values()))
            for row in rows
        )


def place(benchmark: str) -> str:
    """Return a benchmark as a heading."""
    return "All benchmarks combined" if benchmark == COMBINED else benchmark


def told(named: Sequence[tuple[str, Row]]) -> Iterator[str]:
    """Yield each note once, with whom it holds for; that raters are simulated their names say."""
    holds: dict[str, dict[str, None]] = {}
    for name, row in named:
        for note in filter(None, row["note"].split("; ")):
            if not note.startswith((SIMULATED, SCORED)):
                holds.setdefault(note, {})[name] = None
    everybody = {name for name, _ in named}
    for note, who in holds.items():
        all_of_them = who.keys() == everybody and len(everybody) > 1
        yield note if all_of_them else f"{', '.join(who)}: {note}"


def number(name: str, digits: int = 2) -> Cell:
    """Return what shows a number with so many decimals."""
    return lambda row: fixed(row[name], digits)


def count(name: str) -> Cell:
    """Return what shows a count."""
    return lambda row: whole(row[name])


def probability(name: str) -> Cell:
    """Return what shows a p value."""
    return lambda row: chance(row[name])


def between(low: str, high: str) -> Cell:
    """Return what shows an interval."""
    return lambda row: interval(row[low], row[high])


def text(name: str) -> Cell:
    """Return what shows a value as it is."""
    return lambda row: EMPTY if row[name] is None else scorer(f"{row[name]}")


def scored(row: Row) -> str:
    """Return how many responses a figure rests on, and of how many."""
    if row["scorer"] == "clinicians":
        return f"{whole(row['n_responses'])} shared"
    total = row["n_responses"] + (row["n_missing"] if known(row["n_missing"]) else 0)
    return f"{whole(row['n_responses'])} of {whole(total)}"


AGREEMENT = Shape(
    "scorer",
    "Scorer",
    {
        "ICC(C,2)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Spearman": number("spearman"),
        "Scored": scored,
        "Instances": count("n_instances"),
    },
)
CRITERIA = Shape(
    "criterion",
    "Jury on",
    {
        "ICC(C,2)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Spearman": number("spearman"),
        "Bias, points": number("bias"),
        "Bias 95 %": between("bias_low", "bias_high"),
        "Limits of agreement": between("limits_low", "limits_high"),
        "Scored": scored,
    },
)
HELD = Shape(
    "benchmark",
    "Benchmark",
    {
        "Jury": number("jury", 3),
        "A clinician": number("clinician", 3),
        "Difference": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "Responses": scored,
        "Instances": count("n_instances"),
        "Clinicians": count("n_clinicians"),
    },
)
AGAIN = Shape(
    "benchmark",
    "Benchmark",
    {
        "ICC(A,1)": number("icc", 3),
        "Bootstrap 95 %": between("boot_low", "boot_high"),
        "F 95 %": between("f_low", "f_high"),
        "Repeats": count("n_responses"),
        "Clinicians": count("n_clinicians"),
    },
)
ALT_TEST = Shape(
    "scorer",
    "Scorer",
    {
        "Winning rate": number("winning_rate"),
        "Advantage probability": number("advantage_probability"),
        "Clinicians": count("n_clinicians"),
        "Responses": count("n_responses"),
    },
)
DIFFERENCES = Shape(
    "b",
    "Jury minus",
    {
        "Difference of ICC": number("difference", 3),
        "Bootstrap 95 %": between("low", "high"),
        "p": probability("p"),
        "p, Holm": probability("p_holm"),
        "Responses": count("n_responses"),
    },
)
INFLUENCE = Shape(
    "left_out",
    "Left out",
    {
        "ICC with it": number("icc_all", 3),
        "ICC without": number("icc_without", 3),
        "Change": number("change", 3),
    },
)
OUTLIERS = Shape(
    "response",
    "Response",
    {
        "Clinicians, points": number("clinicians"),
        "Jury, points": number("jury"),
        "Jury minus clinicians": number("gap"),
    },
)
MISSING = Shape(
    "scorer",
    "Scorer",
    {
        "Scored": lambda row: f"{whole(row['n_scored'])} of {whole(row['n_responses'])}",
        "No rating": count("n_no_rating"),
        "Incomplete": count("n_incomplete"),
        "ICC(C,2)": number("icc", 3),
        "ICC if the missing were anything": between("icc_lowest", "icc_highest"),
    },
)
