"""The tables of juries: the ranking, and two beside each other."""

from collections.abc import Sequence
from typing import Any

from calibration.tables.agreement import DIFFERENCE
from calibration.tables.numbers import Typeface, fixed
from calibration.tables.spec import Column, TableSpec, count, icc, icc_between, number, probability

LEGEND = (
    "Expected: ICC on new responses, corrected for choosing the best; quote its interval.",
    "Observed: interval of the ICC on these responses, not corrected for choosing.",
    "US dollars: cost of a response by all its jurors.",
    "Best value: no cheaper jury agrees as well.",
)
COMPARISON = TableSpec(
    "ICC(C,2) of two juries with the clinicians on the same responses",
    "b",
    "First jury minus",
    (
        number("First", "icc_a", 3),
        number("Second", "icc_b", 3),
        number("Difference", "difference", 3, help=DIFFERENCE),
        icc_between("95 %", "low", "high", 3),
        probability("p", "p"),
        count("Comparisons", "n_tried"),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["only_both"]),
    named=lambda name: name.removeprefix("jury:"),
)


def legend(front: Sequence[object]) -> tuple[str, ...]:
    """Return how to read a ranking; best value is explained only where some jury has one."""
    return LEGEND if front else LEGEND[:-1]


def _usd(row: Any, face: Typeface) -> str:
    return "unknown" if row.usd_per_response is None else fixed(row.usd_per_response, 4, face)


def _best_value(row: Any, face: Typeface) -> str:
    is_known = row.usd_per_response is not None
    return ("yes" if row.on_front else "no") if is_known else face.none


RANKING = TableSpec(
    "Juries, the best first",
    "name",
    "Jury",
    (
        count("Rank", "rank", wide=True),
        count("Jurors", "size", wide=True),
        icc(),
        number("Expected", "icc_honest", 3, help=LEGEND[0]),
        icc_between("95 % of expected", "honest_low", "honest_high"),
        icc_between("95 % observed", "low", "high", wide=True, help=LEGEND[1]),
        Column("US dollars", _usd, help=LEGEND[2]),
        Column("Best value", _best_value, is_words=True, wide=True, help=LEGEND[3]),
        count("Responses", "n_responses"),
    ),
    in_columns=frozenset(["undefined_resamples"]),
    named=str,
)
