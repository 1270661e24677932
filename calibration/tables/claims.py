"""The tables of claims: what both juries cost, and the claims that one of them has judged."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from calibration.messages.form import counted
from calibration.tables.numbers import Typeface, fixed, known
from calibration.tables.spec import Column, TableSpec, count, number
from calibration.values import Noted


@dataclass(frozen=True)
class ClaimCounts(Noted):
    """The claims of the responses that a panel's splitter has split.

    Attributes
    ----------
    splitter
        Its name in the study.
    n_responses
        With a list; `n_empty` of them state nothing that can be checked.
    n_corrected
        Whose list people have corrected.
    n_claims, fewest, mean, most
        In all, and of one response, those without any left out; NaN where there are none.
    coverage
        Mean share of a response's words, 0 to 1, that its claims quote; NaN where there are none.
    supported, contradicted, absent
        Answers of all jurors on the lists that count.
    n_outdated
        Responses whose list was corrected since a score was derived, which counts no longer: run the panel again.
    failed
        Status -> responses whose splitting ended so.
    """

    splitter: str
    n_responses: int
    n_empty: int
    n_corrected: int
    n_claims: int
    fewest: float
    mean: float
    most: float
    coverage: float
    supported: int
    contradicted: int
    absent: int
    n_outdated: int
    failed: Mapping[str, int]


@dataclass(frozen=True)
class PriceRow(Noted):
    """What a step of both juries cost, in US dollars: `unknown` of the `calls` have no known price."""

    step: str
    calls: int
    usd: float
    unknown: int


PRICES = TableSpec(
    "What both juries cost",
    "step",
    "Step",
    (
        count("Calls", "calls"),
        number("USD", "usd", 4),
        count("Calls of unknown price", "unknown"),
    ),
    named=str,
)


def _range(row: Any, face: Typeface) -> str:
    if not known(row.fewest):
        return face.none
    return f"{fixed(row.fewest, 0, face)} to {fixed(row.most, 0, face)}"


def _quoted(row: Any, face: Typeface) -> str:
    return f"{row.coverage:.0%}" if known(row.coverage) else face.none


CLAIMS = TableSpec(
    "Claims, and what the jurors answered to them",
    "splitter",
    "Split by",
    (
        count("Responses", "n_responses"),
        count("Claims", "n_claims"),
        number("A response", "mean", 1),
        Column("Range", _range, ("fewest", "most")),
        Column("Quoted", _quoted, ("coverage",)),
        count("Supported", "supported"),
        count("Contradicted", "contradicted"),
        count("Not in source", "absent"),
    ),
    named=str,
)


def price_line(usd_ratio: float) -> str:
    """Return how the prices compare, "" where that is not known."""
    if not known(usd_ratio):
        return ""
    return f"the jury of claims costs {usd_ratio:.2f} times what the plain jury costs"


def claims_lines(counts: ClaimCounts) -> Iterator[str]:
    """Yield what of the claims does not count, or was changed by people."""
    if counts.n_empty:
        yield f"{counted(counts.n_empty, 'response')} with nothing to check: no score is derived"
    if counts.n_corrected:
        yield f"{counted(counts.n_corrected, 'list')} corrected by people"
    if counts.n_outdated:
        yield (
            f"{counted(counts.n_outdated, 'response')} without a score: their claims were corrected since, "
            "run the panel again"
        )
    for status, n_failed in counts.failed.items():
        yield f"not split: {counted(n_failed, 'response')}, {status}"
