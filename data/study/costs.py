"""What calls to jurors have cost, by juror and over the study, and what may still be billed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

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
    Purpose,
    Rater,
    Response,
    Status,
)
from data.study.base import columns_of
from data.study.standing import settings

TOKENS = (
    *(Attempt.tokens_in, Attempt.tokens_cached, Attempt.tokens_cache_write),
    *(Attempt.tokens_out, Attempt.tokens_reasoning),
)
AMOUNTS = (Attempt.usd, Attempt.usd_cached, Attempt.usd_cache_write, Attempt.usd_out)


@dataclass(frozen=True, slots=True)
class StudySpending:
    """What all runs of a study have cost; probes are not stored.

    Attributes
    ----------
    known
        US dollars of all stored calls of known cost.
    calls, unknown
        Stored calls that were sent, and those of them that have no known cost.
    in_flight
        Calls of which nobody knows what they cost: sent, or about to be, and never settled by an answer;
        requests in batches whose end is not known yet, or whose answers are gone.
    usd_in_flight
        What these can cost at most, as far as a price is known.
    budget
        What the study may spend, None where it sets no bound.
    """

    known: float
    calls: int
    unknown: int
    in_flight: int
    usd_in_flight: float
    budget: float | None

    @property
    def usd(self) -> float:
        """Return what may have been spent: a vendor's bill for the study is not higher."""
        return self.known + self.usd_in_flight

    @property
    def left(self) -> float | None:
        """Return what the budget leaves, 0 or less where it is used up; None without one."""
        return None if self.budget is None else self.budget - self.usd


def study_spending(engine: Engine) -> StudySpending:
    """Return what a study has spent over all runs, whatever was asked.

    A call that ends meanwhile is in flight or of known cost, never neither.
    """
    cost = func.sum(case((col(Attempt.usd) > 0, Attempt.usd), else_=0.0))  # no call has earned any
    stored = columns_of(func.count(), func.count(col(Attempt.usd)), cost)
    live, batched = (
        columns_of(func.count(), func.sum(table.usd_most)) for table in (Intent, JuryRequest)
    )
    open_requests = batched.where(col(JuryRequest.outcome).in_(("", UNANSWERED)))
    with one_moment(engine), reading(engine) as session:
        calls, priced, usd = session.exec(stored.where(Attempt.number > 0)).one()
        numbers, most = zip(
            *(session.exec(query).one() for query in (live, open_requests)), strict=True
        )
        highest = sum(float(amount or 0.0) for amount in most)
        budget = settings(engine).budget
    return StudySpending(usd or 0.0, calls, calls - priced, sum(numbers), highest, budget)


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
    tokens
        Of all calls that say how many, by kind, with their cost; a simulated juror's are estimated from
        the texts.
    """

    usd: float = 0.0
    calls: int = 0
    unknown: int = 0
    verdicts: int = 0
    simulated: bool = False
    tokens: TokenCosts = field(default_factory=TokenCosts)

    @property
    def usd_per_verdict(self) -> float | None:
        """Return US dollars a verdict; None where a price is unknown or no verdict came."""
        return None if self.unknown or not self.verdicts else self.usd / self.verdicts


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
    ok = func.sum(case((col(Attempt.status) == Status.OK, 1), else_=0))
    totals = (func.sum(column) for column in (*TOKENS, *AMOUNTS))
    query = (
        columns_of(Rater.handle, Rater.simulated, func.count(), func.count(col(Attempt.usd)), ok)
        .add_columns(*totals)
        .select_from(Attempt)
        .join(Rater)
        .where(col(Attempt.number) > 0, col(Attempt.purpose) == Purpose.VERDICT)
        .where(col(Attempt.id) > since)
        .group_by(col(Rater.handle), col(Rater.simulated))
        .order_by(col(Rater.handle))
    )
    if benchmark is not None:
        query = query.join(Response).join(Instance).where(col(Instance.benchmark) == benchmark)
    costs = {}
    with reading(engine) as session:
        for name, simulated, calls, priced, verdicts, *sums in session.execute(query):
            tokens, amounts = sums[: len(TOKENS)], sums[len(TOKENS) :]
            usd = float(amounts[0] or 0.0)
            costs[name] = JurorCost(
                *(usd, calls, calls - priced, verdicts, simulated, token_costs(tokens, amounts))
            )
    return costs
