"""The tables of juries: the ranking, two juries beside each other, and the ledger of juries tried."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from calibration.codes import NoteCode as Code
from calibration.tables.numbers import Typeface, fixed
from calibration.tables.spec import (
    Column,
    TableSpec,
    count,
    icc_between,
    number,
    probability,
    text,
)
from calibration.values import Noted

LEGEND = (
    "Expected: ICC on new responses, corrected for choosing the best; quote its interval.",
    "Observed: bootstrap interval of the ICC on these responses, not corrected for choosing.",
    "US dollars: cost of a response by all its jurors.",
    "Best value: no cheaper jury agrees as well.",
)


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
    in_columns=frozenset([Code.UNDEFINED_RESAMPLES]),
    named=str,
)
COMPARISON = TableSpec(
    "ICC(C,2) with the clinicians on the same responses, and its difference",
    "jury",
    "Jury",
    (
        number("ICC(C,2)", "icc", 3),
        icc_between("95 %", "low", "high", 3),
        probability("p", "p"),
        probability("p, Holm", "p_holm"),
        count("Comparisons", "n_tried"),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset([Code.BOTH_ICCS, Code.ONLY_BOTH, Code.NOT_DETECTABLE]),
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
