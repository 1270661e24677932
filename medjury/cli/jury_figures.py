"""What stands beside a jury run: own families, and the cost by the MedHELM paper's formula."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine

from data.queries.families import OwnFamily, own_family
from data.schema import now
from jury.cost import JurorEstimate
from jury.panel import Panel
from jury.paper_cost import PaperBound, bound_of
from medjury.cli.output import counted


@dataclass(frozen=True, slots=True)
class Beside:
    """Figures of one run that no juror is told: they come from authors' names and from prices.

    `families` are those of real jurors: a simulated one is of no family.
    """

    jurors: tuple[str, ...]
    families: Mapping[str, str]
    own: OwnFamily
    bound: PaperBound

    def before(self) -> Iterator[str]:
        """Yield a warning for every juror that will meet its own family."""
        for juror, number in self._met():
            yield f"{juror} will rate {number} written by its own family"
        if self.own.unknown and self.families:
            of = f"{self.own.unknown} of {counted(self.own.responses, 'response')}"
            has = "has an author" if self.own.unknown == 1 else "have authors"
            yield f"{of} {has} whose family is unknown"

    def after(self, *, whole: bool) -> Iterator[str]:
        """Yield what is told below a result that took calls: the bound, and own families again.

        Under a cap nobody knows how many of those were rated, and they are not told twice.
        """
        yield from self.priced()
        for juror, number in self._met() if whole else ():
            yield f"{juror} has {number} of its own family in this; they count as all do"

    def priced(self) -> Iterator[str]:
        """Yield the paper's bound, if the run has anything to ask."""
        if self.bound.tokens_out:
            yield f"the paper's upper bound for the same: {_usd(self.bound.usd)}"

    def to_json(self) -> dict[str, Any]:
        """Return the keys that `jury run --json` has beside the contract's."""
        return {
            "own_family": {name: self.own.own.get(name, 0) for name in self.jurors},
            "author_family_unknown": self.own.unknown,
            "paper_tokens_in": self.bound.tokens_in,
            "paper_tokens_out": self.bound.tokens_out,
            "paper_usd": self.bound.usd,
        }

    def _met(self) -> Iterator[tuple[str, str]]:
        """Yield the jurors that meet their own family, and how often of how many."""
        for juror, number in self.own.own.items():
            if number:
                of = f"{number} of {counted(self.own.responses, 'response')}"
                yield f"juror {juror} (family {self.families[juror]})", of


def beside(
    engine: Engine, panel: Panel, rows: Sequence[JurorEstimate], benchmarks: Sequence[str] | None
) -> Beside:
    """Return what stands beside a run whose calls were estimated, a row a juror."""
    jurors = tuple(one.name for one in panel.juror)
    families = {one.name: one.family for one in panel.juror if not one.simulated}
    own = own_family(engine, families, benchmarks)
    return Beside(jurors, families, own, bound_of(panel, rows, now()))


def _usd(amount: float | None) -> str:
    return "unknown, as the price of a juror is" if amount is None else f"${amount:.4f}"
