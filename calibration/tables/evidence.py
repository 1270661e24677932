"""The table of a rubric's evidence: each comparison of a jury with clinicians on its exact wording."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from calibration.tables.notes import TableNote
from calibration.tables.numbers import Typeface, fixed, icc_interval
from calibration.tables.spec import Column, Table, TableSpec, count, laid_out, text
from calibration.values import Noted

FROM = (
    "Frozen reports name the rubric by its hash. The ledger counts every analysis of a jury; it keeps "
    "no intervals."
)
Ends = tuple[float | None, float | None, float | None]


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
