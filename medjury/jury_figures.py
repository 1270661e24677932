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
from medjury.output import counted


@dataclass(frozen=True, slots=True)
class Beside:
    """Figures of one run that no juror is told: they come from authors' names and from prices."""

    families: Mapping[str, str]
    own: OwnFamily
    bound: PaperBound

    def before(self) -> Iterator[str]:
        """Yield a warning for every juror that will meet its own family."""
        for juror, number in self._met():
            yield f"{juror} will rate {number} responses written by its own family"
        if self.own.unknown:
            of = f"{self.own.unknown} of {counted(self.own.responses, 'response')}"
            yield f"{of} have authors whose family is unknown"

    def after(self) -> Iterator[str]:
        """Yield what is told below a result: the paper's bound, and own families once more."""
        if self.bound.tokens_out:
            yield f"the paper's upper bound for the same: {_usd(self.bound.usd)}"
        for juror, number in self._met():
            yield f"{juror} has {number} responses of its own family in this; they count as all do"

    def to_json(self) -> dict[str, Any]:
        """Return the keys that `jury run --json` has beside the contract's."""
        return {
            "own_family": dict(self.own.own),
            "author_family_unknown": self.own.unknown,
            "paper_tokens_in": self.bound.tokens_in,
            "paper_tokens_out": self.bound.tokens_out,
            "paper_usd": self.bound.usd,
        }

    def _met(self) -> Iterator[tuple[str, str]]:
        """Yield the jurors that meet their own family, and how often of how many."""
        for juror, number in self.own.own.items():
            if number:
                of = f"{number} of {self.own.responses}"
                yield f"juror {juror} (family {self.families[juror]})", of


def beside(
    engine: Engine, panel: Panel, rows: Sequence[JurorEstimate], benchmarks: Sequence[str] | None
) -> Beside:
    """Return what stands beside a run whose calls were estimated, a row a juror."""
    families = {one.name: one.family for one in panel.juror}
    own = own_family(engine, families, benchmarks)
    return Beside(families, own, bound_of(panel, rows, now()))


def _usd(amount: float | None) -> str:
    return "unknown, as the price of a juror is" if amount is None else f"${amount:.4f}"
