"""What jurors' calls took and cost, by kind of token."""

from sqlalchemy import Engine, case, func
from sqlmodel import col

from data.calls import TokenCosts, token_costs
from data.database import reading
from data.queries.base import columns_of
from data.schema import Attempt, Rater

TOKENS = (
    *(Attempt.tokens_in, Attempt.tokens_cached, Attempt.tokens_cache_write),
    *(Attempt.tokens_out, Attempt.tokens_reasoning),
)
# A cost of which no part is known, as of calls that older versions stored, stays one figure.
WHOLE = case((col(Attempt.usd_out).is_(None), Attempt.usd), else_=0.0)
PARTED = case((col(Attempt.usd_out).is_not(None), Attempt.usd), else_=0.0)
AMOUNTS = (PARTED, Attempt.usd_cached, Attempt.usd_cache_write, Attempt.usd_out)


def token_costs_by_juror(engine: Engine, since: int = 0) -> dict[str, TokenCosts]:
    """Return what each juror's calls took and cost, by its name.

    Parameters
    ----------
    since
        Only calls after this one, a primary key.
    """
    sums = (func.sum(one) for one in (*TOKENS, *AMOUNTS, WHOLE))
    query = (
        columns_of(Rater.handle, *sums)
        .select_from(Attempt)
        .join(Rater)
        .where(Attempt.number > 0, col(Attempt.id) > since)
        .group_by(col(Rater.handle))
        .order_by(col(Rater.handle))
    )
    with reading(engine) as session:
        return {
            name: token_costs(figures[: len(TOKENS)], figures[len(TOKENS) :])
            for name, *figures in session.exec(query)
        }
