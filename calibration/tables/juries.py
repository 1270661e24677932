"""The tables of juries: the ranking, two beside each other, those tried, and the evidence for a rubric."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from calibration.notes import Noted
from calibration.tables.numbers import Typeface, fixed, icc_interval
from calibration.tables.spec import (
    Column,
    Table,
    TableNote,
    TableSpec,
    count,
    icc_between,
    laid_out,
    number,
    probability,
    text,
)

LEGEND = (
    "Expected: ICC on new responses, corrected for choosing the best; quote its interval.",
    "Observed: bootstrap interval of the ICC on these responses, not corrected for choosing.",
    "US dollars: cost of a response by all its jurors.",
    "Best value: no cheaper jury agrees as well.",
)
COMPARISON = TableSpec(
    "ICC(C,2) with the clinicians on the same responses, and its difference",
    "jury",
    "Jury",
    (
        number("ICC(C,2)", "icc", 3),
        icc_between("95 %", "low", "high", 3),
        probability("p", "p"),
        count("Comparisons", "n_tried"),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["both_iccs", "only_both", "not_detectable"]),
    named=str,
)
LEDGER = TableSpec(
    "The ledger of juries tried",
    "jury",
    "Jury",
    (
        text("Benchmark", "benchmark"),
        text("Criterion", "criterion"),
        text("Method", "method"),
        number("ICC(C,2)", "icc", 3),
        count("Responses", "responses"),
        count("Times", "times"),
        text("Last, UTC", "last"),
    ),
    named=str,
)
FROM = (
    "Frozen reports name the rubric by its hash. The ledger counts every analysis of a jury; it keeps "
    "no intervals."
)
Ends = tuple[float | None, float | None, float | None]


def legend(front: Sequence[object]) -> tuple[str, ...]:
    """Return how to read a ranking; best value is explained only where some jury has one."""
    return LEGEND if front else LEGEND[:-1]


def _usd(row: Any, face: Typeface) -> str:
    return "unknown" if row.usd_per_response is None else fixed(row.usd_per_response, 4, face)


def _best_value(row: Any, face: Typeface) -> str:
    if row.usd_per_response is None:
        return face.none
    return "yes" if row.on_front else "no"


RANKING = TableSpec(
    "Juries, the best first",
    "name",
    "Jury",
    (
        count("Rank", "rank", wide=True),
        count("Jurors", "size", wide=True),
        number("ICC(C,2)", "icc", 3),
        number("Expected", "icc_honest", 3),
        icc_between("95 % of expected", "honest_low", "honest_high"),
        icc_between("95 % observed", "low", "high", wide=True),
        Column("US dollars", _usd, ("usd_per_response",)),
        Column("Best value", _best_value, ("on_front",), is_words=True, wide=True),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["undefined_resamples"]),
    named=str,
)


@dataclass(frozen=True)
class TriedRow(Noted):
    """An entry of the ledger of juries tried, as a reader sees it."""

    jury: str
    benchmark: str
    criterion: str
    method: str
    icc: float | None
    responses: int
    times: int
    last: str


@dataclass(frozen=True)
class EvidenceRow(Noted):
    """A jury that was compared with clinicians on exactly the words of a rubric.

    Attributes
    ----------
    report, name : of a frozen report; None and "" of the ledger, which counts `times`
    at : when last
    jurors, benchmark, criterion, method : who, and on what; an empty criterion is the composite
    icc, like_for_like : each with its 95 % interval, None where it is not known
    n_responses : that the ICC rests on
    is_simulated : whether any rater behind it is
    """

    report: int | None
    name: str
    times: int
    at: datetime
    jurors: tuple[str, ...]
    benchmark: str
    criterion: str
    method: str
    icc: Ends
    like_for_like: Ends
    n_responses: int
    is_simulated: bool

    @property
    def source(self) -> str:
        """Return where the comparison is recorded."""
        if self.report is None:
            return "ledger, once" if self.times == 1 else f"ledger, {self.times} times"
        return f"report {self.report}" + (f" {self.name}" if self.name else "")

    @property
    def scope(self) -> str:
        """Return the benchmark, criterion and method of the comparison."""
        return f"{self.benchmark}, {self.criterion or 'composite'}, method {self.method}"


def evidence_table(rows: Sequence[EvidenceRow]) -> Table:
    """Return the evidence as a table."""
    return replace(laid_out(EVIDENCE, rows), notes=(TableNote(FROM),))


def _with_ends(heading: str, name: str) -> Column:
    """Return a column of figures with their intervals."""

    def cell(row: EvidenceRow, face: Typeface) -> str:
        value, low, high = getattr(row, name)
        ends = icc_interval(low, high, 2, face)
        return fixed(value, 2, face) + (f" ({ends})" if ends else "")

    return Column(heading, cell, (name,))


EVIDENCE = TableSpec(
    "Juries compared with clinicians on exactly this rubric",
    "source",
    "Source",
    (
        Column("Last (UTC)", lambda row, _: f"{row.at:%Y-%m-%d %H:%M}", ("at",), is_words=True),
        Column("Jury", lambda row, _: ", ".join(row.jurors), ("jurors",), is_words=True),
        text("On", "scope"),
        _with_ends("ICC(C,2), 95 %", "icc"),
        _with_ends("Like for like, 95 %", "like_for_like"),
        count("Responses", "n_responses"),
        Column(
            "Raters",
            lambda row, _: "simulated" if row.is_simulated else "real",
            ("is_simulated",),
            is_words=True,
        ),
    ),
    named=str,
)
