"""What a study has spent on jurors over all runs, may have spent besides, and may spend at most."""

from dataclasses import dataclass

from sqlalchemy import Engine, func
from sqlmodel import col

from data.database import reading
from data.queries.base import columns_of
from data.queries.jury import spending
from data.queries.study import settings
from data.schema import Intent
from data.schema.jury import JuryRequest


@dataclass(frozen=True, slots=True)
class InFlight:
    """Calls of which nobody knows what they cost.

    Attributes
    ----------
    calls
        Sent, or about to be, and never settled by an answer: in flight now or when a run was
        killed, broken off without an answer, or answered without a count of tokens.
    batched
        Requests in batches whose end is not known yet.
    usd
        What both can cost at most, as far as a price is known.
    unknown
        How many of both have no known price.
    """

    calls: int = 0
    batched: int = 0
    usd: float = 0.0
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class StudySpending:
    """What all runs of a study have cost.

    Attributes
    ----------
    known
        US dollars of all stored calls of known cost.
    in_flight
        Calls of unknown cost, at their worst case.
    budget
        What the study may spend, None where it sets no bound.
    """

    known: float
    in_flight: InFlight
    budget: float | None = None

    @property
    def usd(self) -> float:
        """Return what may have been spent: a vendor's bill for the study is not higher."""
        return self.known + self.in_flight.usd

    @property
    def left(self) -> float | None:
        """Return what the budget leaves, 0 or less where it is used up; None without one."""
        return None if self.budget is None else self.budget - self.usd


def study_spending(engine: Engine) -> StudySpending:
    """Return what a study has spent over all runs; probes are not stored."""
    return StudySpending(spending(engine).usd, in_flight(engine), settings(engine).budget)


def in_flight(engine: Engine) -> InFlight:
    """Return the calls that a vendor may have billed and the study does not know the cost of."""
    calls, batched = (
        columns_of(func.count(), func.count(col(table.usd_most)), func.sum(table.usd_most))
        for table in (Intent, JuryRequest)
    )
    with reading(engine) as session:
        live, priced, usd = session.exec(calls).one()
        waiting, known, most = session.exec(batched.where(JuryRequest.outcome == "")).one()
    unknown = live - priced + waiting - known
    return InFlight(live, waiting, float(usd or 0.0) + float(most or 0.0), unknown)
