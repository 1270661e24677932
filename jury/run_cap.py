"""What a run may spend: its own cap and what the study's budget leaves, whichever is less."""

from dataclasses import dataclass, field, replace

from sqlalchemy import Engine

from data.queries.spending import StudySpending, study_spending
from data.schema import now
from data.store.intents import CarriedOver, carry_over
from jury.cost import refuse_unpriced
from jury.loop import RunResult
from jury.panel import Panel


@dataclass(frozen=True, slots=True)
class RunCap:
    """What a run may spend.

    Attributes
    ----------
    usd
        None where nothing bounds it; 0 or less where nothing is left.
    carried
        Calls that were in flight when runs before it were killed: their worst case is taken off
        the run's own cap. The study's budget counts them always.
    """

    usd: float | None
    carried: CarriedOver = field(default_factory=CarriedOver)


def run_cap(engine: Engine, panel: Panel, max_usd: float | None) -> RunCap:
    """Return what a run may spend; call it while the study's run lock is held.

    Raises
    ------
    BadPanel
        If something bounds it while a juror's price is not known.
    """
    carried = CarriedOver() if max_usd is None else carry_over(engine)
    left = study_spending(engine).left
    own = None if max_usd is None else max_usd - carried.usd
    bounds = [one for one in (own, left) if one is not None]
    if bounds:
        refuse_unpriced(panel, now())
    return RunCap(min(bounds, default=None), carried)


def accounted(result: RunResult, engine: Engine, cap: RunCap) -> RunResult:
    """Return a result with what the study has spent over all runs, and what it cannot know."""
    spent: StudySpending = study_spending(engine)
    return replace(
        result,
        usd_in_flight=round(spent.in_flight.usd, 9),
        calls_in_flight=spent.in_flight.calls + spent.in_flight.batched,
        usd_study=round(spent.usd, 9),
        budget=spent.budget,
        calls_carried=cap.carried.calls,
        usd_carried=cap.carried.usd,
    )
