"""What is known of a panel before it rates: what a run would take, and how its jurors answer."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine

from data.errors import BadInput
from data.queries.costs import study_spending
from data.queries.families import OwnFamily, own_family
from data.schema import now
from jury.admission import with_counted_prices
from jury.cost import JurorEstimate, PaperBound, bound_of
from jury.fitness import INJECTIONS, pairs_for
from jury.panel import Panel
from jury.probe import ProbeRow, probe
from jury.run import estimate


@dataclass(frozen=True, slots=True)
class RunScope:
    """Who is to rate, how often, and the responses of which benchmarks; of all where none is named."""

    panel: Panel
    replicates: int = 1
    benchmarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What a run would take, and whom it would meet.

    Attributes
    ----------
    panel
        Its name.
    jurors
        A row a juror, in the panel's order.
    families
        Juror -> family, of real jurors: a simulated one is of none.
    own
        How many responses were written by a juror's own family; no juror is told, and nobody
        while the study is blind.
    bound
        What the MedHELM paper's formula says that it costs at most.
    """

    panel: str
    jurors: tuple[JurorEstimate, ...]
    families: Mapping[str, str]
    own: OwnFamily
    bound: PaperBound


def run_estimate(engine: Engine, scope: RunScope) -> RunEstimate:
    """Return what a run of a panel would take; nothing is sent or stored."""
    panel, benchmarks = with_counted_prices(scope.panel), scope.benchmarks or None
    rows = estimate(engine, panel, replicates=scope.replicates, benchmarks=benchmarks)
    families = {one.name: one.family for one in panel.juror if not one.simulated}
    own = own_family(engine, families, benchmarks)
    return RunEstimate(panel.name, tuple(rows), families, own, bound_of(panel, rows, now()))


def refuse_beyond_budget(engine: Engine, expected: RunEstimate, max_usd: float | None) -> None:
    """Raise BadInput if a run is likely to cost more than the study's budget leaves.

    A run with a cap of its own within what is left may go: it asks as far as that goes.
    """
    spent = study_spending(engine)
    if spent.left is None or spent.budget is None:
        return
    likely = sum(one.usd_likely or 0.0 for one in expected.jurors)
    bounded = max_usd is not None and 0 < max_usd <= spent.left
    if likely <= max(0.0, spent.left) or bounded:
        return
    left = max(0.0, spent.left)
    raise BadInput(
        f"the study's budget is ${spent.budget:.2f}: ${spent.usd:.4f} is spent over all runs, "
        f"${left:.4f} is left, and this run is likely to cost ${likely:.4f}; raise it with "
        "`medjury settings budget USD`"
        + (f", or give --max-usd {left:.4f} or less to go as far as it goes" if left else "")
    )


def panel_probe(panel: Panel) -> tuple[ProbeRow, ...]:
    """Return how each juror answers, bears hidden instructions, and tells good from dangerous.

    Nothing of any study is sent.
    """
    return tuple(probe(panel, injections=INJECTIONS, pairs=pairs_for(panel)))
