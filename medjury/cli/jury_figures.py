"""What is said of a jury run: own families, and the cost by the MedHELM paper's formula."""

from collections.abc import Iterator
from typing import Any

from medjury.cli.output import counted
from medjury.services.jury_lab import RunEstimate


def told_before(estimate: RunEstimate) -> Iterator[str]:
    """Yield a warning for every juror that will meet its own family."""
    own = estimate.own
    for juror, number in _met(estimate):
        yield f"{juror} will rate {number} written by its own family"
    if own.unknown and estimate.families:
        of = f"{own.unknown} of {counted(own.responses, 'response')}"
        has = "has an author" if own.unknown == 1 else "have authors"
        yield f"{of} {has} whose family is unknown"


def told_after(estimate: RunEstimate, *, whole: bool) -> Iterator[str]:
    """Yield what is told below a result that took calls: the bound, and own families again.

    Under a cap nobody knows how many of those were rated, and they are not told twice.
    """
    yield from told_bound(estimate)
    for juror, number in _met(estimate) if whole else ():
        yield f"{juror} has {number} of its own family in this; they count as all do"


def told_bound(estimate: RunEstimate) -> Iterator[str]:
    """Yield the paper's bound, if the run has anything to ask."""
    if estimate.bound.tokens_out:
        yield f"the paper's upper bound for the same: {_usd(estimate.bound.usd)}"


def to_json(estimate: RunEstimate) -> dict[str, Any]:
    """Return the keys that `jury run --json` has beside the contract's."""
    own, bound = estimate.own, estimate.bound
    return {
        "own_family": {one.juror: own.own.get(one.juror, 0) for one in estimate.jurors},
        "author_family_unknown": own.unknown,
        "paper_tokens_in": bound.tokens_in,
        "paper_tokens_out": bound.tokens_out,
        "paper_usd": bound.usd,
    }


def _met(estimate: RunEstimate) -> Iterator[tuple[str, str]]:
    """Yield the jurors that meet their own family, and how often of how many."""
    for juror, number in estimate.own.own.items():
        if number:
            of = f"{number} of {counted(estimate.own.responses, 'response')}"
            yield f"juror {juror} (family {estimate.families[juror]})", of


def _usd(amount: float | None) -> str:
    return "unknown, as the price of a juror is" if amount is None else f"${amount:.4f}"
