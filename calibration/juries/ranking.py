"""Every jury that the jurors heard can make up, ranked, with the luck of choosing taken out."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calibration.juries.mean import mean_pool
from calibration.juries.median import median_pool
from calibration.juries.resampled import resampled
from calibration.juries.rows import (
    Judged,
    JuryRow,
    PoolName,
    Wanted,
    Winner,
    ranked,
    ranking_notes,
    winners,
)
from calibration.juries.sets import Pool, Sizes, common_grid, compositions, number_of_juries
from calibration.juries.weighted import weighted_pool
from calibration.messages.form import counted
from calibration.scope import Scope
from calibration.scores import Flags, Integers
from calibration.values import Noted, noted
from calibration.zscore import without_variance
from data.errors import BadInput, TooFew

LARGEST = 5  # jurors of a jury, where no sizes are asked for
MOST_CELLS = 2**26  # juries x resamples: half a gigabyte of replicates
MOST_WEIGHTED = 10_000_000  # juries x resamples: half a minute
MOST_MEDIANS = 2**32  # juries x resamples x responses: a minute or two

POOLS: dict[PoolName, Callable[[Scope, Integers, Flags], Pool]] = {
    "mean": mean_pool,
    "median": median_pool,
    "weighted": weighted_pool,
}


@dataclass(frozen=True)
class Ranking(Noted):
    """All juries, the best first and those without an ICC last; its notes are on the whole.

    Attributes
    ----------
    pool : the jurors they are made of
    sizes : of the juries
    rows : one a jury
    winner : the best of all; None if no jury has an ICC
    by_size : the best of each size that has one with an ICC
    n_responses, n_instances : responses that a clinician scored and that may count; instances
    common : whether only responses that all jurors of the pool rated were kept
    """

    pool: tuple[str, ...]
    sizes: Sizes
    rows: tuple[JuryRow, ...]
    winner: Winner | None
    by_size: tuple[Winner, ...]
    n_responses: int
    n_instances: int
    common: bool

    @property
    def n_unknown_cost(self) -> int:
        """Return how many juries have a juror whose cost is not known."""
        return sum(row.usd_per_response is None for row in self.rows)

    @property
    def front(self) -> list[JuryRow]:
        """Return the juries than which no cheaper one agrees as well, the cheapest first."""
        found = [row for row in self.rows if row.on_front]
        return sorted(found, key=lambda row: row.usd_per_response or 0.0)


def jury_ranking(scope: Scope, wanted: Wanted) -> Ranking:
    """Return every jury of the scope's jurors, ranked by its ICC(C,2) with the clinicians.

    The ICC of a jury is that of `agreement.column_icc`, over the responses that all its
    members and a clinician scored. The best of many looks better than it is, so beside each ICC
    stands what to expect of the jury on new responses, with an interval that holds for the best
    too (`shrinkage.expected`): juries of one size are drawn together as far as they differ by chance.

    Parameters
    ----------
    scope : Scope
        Its jurors are the pool; its `asked` has method, replicates and seed.
    wanted : Wanted

    Returns
    -------
    Ranking
        A juror without scores, or whose z is undefined, is left out and named.

    Raises
    ------
    BadInput
        If sizes do not fit the jurors, or juries x replicates are more than can be done.
    TooFew
        If no juror can be judged, or no response was rated by all (`common`, "weighted").
    """
    common = wanted.common or wanted.pool == "weighted"
    whole = scope
    scope, own = _kept(whole, common=common)
    sizes = _sizes(len(own), wanted.sizes)
    every = range(1, sizes[-1] + 1) if wanted.pool == "weighted" else sizes
    _check_work(scope, number_of_juries(len(own), every), wanted.pool)
    pool = POOLS[wanted.pool](scope, own, compositions(len(own), every))
    asked = np.flatnonzero(np.isin(pool.subsets.sum(axis=1), list(sizes)))
    found = resampled(scope, pool, asked)
    names = tuple(scope.grid.raters[column] for column in own)
    judged = Judged(names, pool, asked.tolist(), found)
    rows = ranked(scope, judged, wanted.usd)
    known = rows[0].rank is not None
    return Ranking(
        pool=names,
        sizes=sizes,
        rows=tuple(rows),
        winner=Winner(rows[0], len(rows)) if known else None,
        by_size=tuple(winners(rows, sizes)),
        n_responses=int(pool.bench.heard.sum()),
        n_instances=scope.grid.n_clusters,
        common=common,
        notes=noted(*ranking_notes(whole, scope, judged, rows, common=common)),
    )


def _kept(scope: Scope, *, common: bool) -> tuple[Scope, Integers]:
    """Return the scope of the responses that count, and the columns of jurors who can sit."""
    own = _judgeable(scope, scope.grid.columns(scope.jurors))
    if common and len(own):
        scope = replace(scope, grid=common_grid(scope.grid, own))
        if not scope.grid.responses:
            who = ", ".join(scope.grid.raters[column] for column in own)
            raise TooFew(f"{scope.name}: no response was rated by all of {who}; name fewer jurors")
        own = _judgeable(scope, own)
    if not len(own):
        raise TooFew(f"{scope.name}: no juror has scores that vary, so there is no jury to rank")
    return scope, own


def _judgeable(scope: Scope, own: Integers) -> Integers:
    """Return the columns of jurors who have a z, or for raw composites any score."""
    table = scope.grid.composites[:, own]
    if scope.asked.method == "published":
        return own[(~np.isnan(table)).any(axis=0)]
    return own[~without_variance(table)]


def _sizes(k: int, sizes: Sizes | None) -> Sizes:
    if sizes is None:
        return range(1, min(LARGEST, k) + 1)
    if not len(sizes) or sizes[0] < 1 or sizes[-1] > k:
        given = f"{sizes[0]}-{sizes[-1]}" if len(sizes) else "none"
        raise BadInput(
            f"sizes {given}: there are {counted(k, 'juror')} to choose from; "
            f"give sizes within 1-{k}"
        )
    return sizes


def _check_work(scope: Scope, juries: int, pool: PoolName) -> None:
    """Refuse what would take many minutes, or more memory than a laptop has to spare."""
    work = juries * scope.asked.reps
    medians = work * len(scope.grid.responses) if pool == "median" else 0
    weights = work if pool == "weighted" else 0
    if work > MOST_CELLS or medians > MOST_MEDIANS or weights > MOST_WEIGHTED:
        raise BadInput(
            f"{juries:,} juries in {scope.asked.reps:,} resamples are too many for the {pool}: "
            "take smaller sizes, fewer jurors, or fewer resamples"
        )
