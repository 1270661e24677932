"""What calls to jurors have cost, by juror and over the study, and what may still be billed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, case, func
from sqlmodel import col, select

from data.calls import TokenCosts, token_costs
from data.database import one_moment, reading
from data.schema import (
    UNANSWERED,
    Attempt,
    Instance,
    Intent,
    JuryRequest,
    Kind,
    Purpose,
    Rater,
    Response,
    Status,
)
from data.study.base import Columns, columns_of
from data.study.standing import settings

TOKENS = (
    *(Attempt.tokens_in, Attempt.tokens_cached, Attempt.tokens_cache_write),
    *(Attempt.tokens_out, Attempt.tokens_reasoning),
)
AMOUNTS = (Attempt.usd, Attempt.usd_cached, Attempt.usd_cache_write, Attempt.usd_out)


@dataclass(frozen=True, slots=True)
class InFlight:
    """Calls of which nobody knows what they cost.

    Attributes
    ----------
    calls
        Sent, or about to be, and never settled by an answer: in flight now or when a run was
        killed, broken off without an answer, or answered without a count of tokens.
    batched
        Requests in batches whose end is not known yet, or whose answers are gone.
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
    """Return what a study has spent over all runs; probes are not stored.

    A call that ends meanwhile is in flight or of known cost, never neither.
    """
    with one_moment(engine):
        return StudySpending(spending(engine).usd, calls_in_flight(engine), settings(engine).budget)


def calls_in_flight(engine: Engine) -> InFlight:
    """Return the calls that a vendor may have billed and the study does not know the cost of."""
    calls, batched = (
        columns_of(func.count(), func.count(col(table.usd_most)), func.sum(table.usd_most))
        for table in (Intent, JuryRequest)
    )
    with reading(engine) as session:
        live, priced, usd = session.exec(calls).one()
        open_requests = batched.where(col(JuryRequest.outcome).in_(("", UNANSWERED)))
        waiting, known, most = session.exec(open_requests).one()
    unknown = live - priced + waiting - known
    return InFlight(live, waiting, float(usd or 0.0) + float(most or 0.0), unknown)


def token_costs_by_juror(engine: Engine, since: int = 0) -> dict[str, TokenCosts]:
    """Return what each juror's calls took and cost, by its name.

    Parameters
    ----------
    since
        Only calls after this one, a primary key.
    """
    totals = (func.sum(column) for column in (*TOKENS, *AMOUNTS))
    query = _calls_by_juror(*totals).where(col(Attempt.id) > since)
    with reading(engine) as session:
        return {
            name: token_costs(figures[: len(TOKENS)], figures[len(TOKENS) :])
            for name, *figures in session.exec(query)
        }


@dataclass(frozen=True, slots=True)
class Spending:
    """What all stored calls cost: `unknown` of the `calls` have no known cost."""

    usd: float
    unknown: int
    calls: int


@dataclass(frozen=True, slots=True)
class JurorCost:
    """What asking one juror has cost.

    Attributes
    ----------
    usd
        Of all calls of known price, failed ones and those in batches included, each at the
        price stored with it.
    calls
        Requests that were sent.
    unknown
        How many of the calls have no known price.
    verdicts
        Calls that gave a whole valid answer.
    simulated
        Whether no model was asked, so that nothing was spent.
    tokens_in, tokens_out
        Of all calls that say how many; a simulated juror's are estimated from the texts.
    """

    usd: float
    calls: int
    unknown: int
    verdicts: int
    simulated: bool = False
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def usd_per_verdict(self) -> float | None:
        """Return US dollars a verdict; None where a price is unknown or no verdict came."""
        return None if self.unknown or not self.verdicts else self.usd / self.verdicts


def spending(engine: Engine) -> Spending:
    """Return what all calls have cost, whatever was asked; probes store none."""
    spent = func.sum(case((col(Attempt.usd) > 0, Attempt.usd), else_=0.0))  # no call has earned any
    query = columns_of(func.count(), func.count(col(Attempt.usd)), spent)
    with reading(engine) as session:
        calls, priced, usd = session.exec(query.where(Attempt.number > 0)).one()
    return Spending(usd or 0.0, calls - priced, calls)


def call_dates(engine: Engine) -> tuple[datetime, datetime] | None:
    """Return when the first and the last juror's answer came, None where none was asked here."""
    query = select(func.min(Attempt.at), func.max(Attempt.at)).where(
        Attempt.status == Status.OK, Attempt.purpose == Purpose.VERDICT
    )
    with reading(engine) as session:
        first, last = session.exec(query).one()
    return (first, last) if first and last else None


def juror_costs(
    engine: Engine, benchmark: str | None = None, since: int = 0
) -> Mapping[str, JurorCost]:
    """Return what each juror that was called has cost, by name; of one benchmark, or of all.

    Of calls after `since`, a primary key. Jurors whose ratings were made elsewhere have no entry: what they cost is not known.
    """
    tokens = (
        func.coalesce(func.sum(column), 0) for column in (Attempt.tokens_in, Attempt.tokens_out)
    )
    ok = func.sum(case((col(Attempt.status) == Status.OK, 1), else_=0))
    counted = (func.count(), func.sum(Attempt.usd), func.count(col(Attempt.usd)), ok, *tokens)
    query = _calls_by_juror(Rater.simulated, *counted).group_by(col(Rater.simulated))
    query = query.where(Rater.kind == Kind.JUROR, col(Attempt.id) > since)
    if benchmark is not None:
        query = query.join(Response).join(Instance).where(Instance.benchmark == benchmark)
    with reading(engine) as session:
        return {
            name: JurorCost(float(usd or 0), calls, calls - priced, ok, is_simulated, read, written)
            for name, is_simulated, calls, usd, priced, ok, read, written in session.exec(query)
        }


def _calls_by_juror(*totals: Any) -> Columns:
    """Select totals of the calls for verdicts that were sent to each juror, by its name."""
    query = columns_of(Rater.handle, *totals).select_from(Attempt).join(Rater)
    sent = Attempt.number > 0, Attempt.purpose == Purpose.VERDICT
    return query.where(*sent).group_by(col(Rater.handle)).order_by(col(Rater.handle))
