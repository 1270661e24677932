"""What a juror's verdict costs: all money spent on the juror by the verdicts it yielded."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Engine, case, func, select
from sqlmodel import col

from data.database import reading
from data.schema import Attempt, Instance, Kind, Rater, Response, Status


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


def juror_costs(engine: Engine, benchmark: str | None = None) -> Mapping[str, JurorCost]:
    """Return what each juror that was called has cost, by name; of one benchmark, or of all.

    Jurors whose ratings were made elsewhere have no entry: what they cost is not known.
    """
    sent, ok = col(Attempt.number) > 0, col(Attempt.status) == Status.OK
    query = (
        select(
            col(Rater.handle),
            func.sum(col(Attempt.usd)),
            func.count(),
            func.count(col(Attempt.usd)),
            func.sum(case((ok, 1), else_=0)),
            col(Rater.simulated),
            func.coalesce(func.sum(col(Attempt.tokens_in)), 0),
            func.coalesce(func.sum(col(Attempt.tokens_out)), 0),
        )
        .join(Attempt, col(Attempt.rater) == col(Rater.id))
        .where(sent, col(Rater.kind) == Kind.JUROR)
        .group_by(col(Rater.handle), col(Rater.simulated))
        .order_by(col(Rater.handle))
    )
    if benchmark is not None:
        query = (
            query.join(Response, col(Response.id) == col(Attempt.response))
            .join(Instance, col(Instance.id) == col(Response.instance))
            .where(col(Instance.benchmark) == benchmark)
        )
    with reading(engine) as session:
        return {
            name: JurorCost(
                float(usd or 0.0),
                calls,
                calls - known,
                int(verdicts),
                simulated,
                int(read),
                int(said),
            )
            for name, usd, calls, known, verdicts, simulated, read, said in session.execute(query)
        }
