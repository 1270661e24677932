"""Rank every jury that the study's jurors can form by its ICC with the clinicians."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Literal

import numpy as np

from calibration import remarks
from calibration.agreement import why_undefined
from calibration.codes import NoteCode as Code
from calibration.juries.pools import (
    Pool,
    Sizes,
    common_grid,
    compositions,
    mean_pool,
    median_pool,
    number_of_juries,
)
from calibration.juries.resampled import Found, resampled
from calibration.juries.weighted import WeightedPool, weighted_pool
from calibration.messages.form import counted, listed
from calibration.rating_matrix import without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted
from data.errors import BadInput, TooFew

PoolName = Literal["mean", "median", "weighted"]


@dataclass(frozen=True)
class Wanted:
    """What is asked of the juries.

    Attributes
    ----------
    sizes : of the juries, as a range; None takes 1 to 5, or to as many as there are jurors
    pool : how members' scores become one
    common : only responses that all jurors of the pool rated, as if no others were there
    usd : juror -> US dollars a verdict; None, or no entry, where that is not known
    """

    sizes: Sizes | None = None
    pool: PoolName = "mean"
    common: bool = False
    usd: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class JuryRow(Noted):
    """One jury. NaN or None: undefined, not known, or not computed.

    Attributes
    ----------
    icc, low, high : float
        ICC(C,2) with the clinicians, and the percentile 95 % interval of this jury as if no
        other had been tried.
    icc_honest, honest_low, honest_high : float
        Expected ICC on new responses, without the luck of having been chosen, and its 95 %
        interval, which holds for the best of many too (`resampled.expected`).
    rank : int or None
        1 is the highest ICC; None without one.
    usd_per_response : float or None
        What its members' verdicts on a response cost together.
    on_front : bool
        No cheaper jury agrees as well, see `on_front`.
    weights : tuple or None
        Of its members, summing to 1; of weighted juries only.
    """

    jurors: tuple[str, ...]
    size: int
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    icc_honest: float = NAN
    honest_low: float = NAN
    honest_high: float = NAN
    rank: int | None = None
    usd_per_response: float | None = None
    on_front: bool = False
    n_responses: int = 0
    weights: tuple[float, ...] | None = None

    @property
    def name(self) -> str:
        """Return its jurors as a reader sees them."""
        return listed(self.jurors)


@dataclass(frozen=True)
class Winner:
    """The best of `n_compared` juries."""

    row: JuryRow
    n_compared: int

    @property
    def optimism(self) -> float:
        """Return by how much it looks better than it is; NaN where that is not known."""
        return self.row.icc - self.row.icc_honest


@dataclass(frozen=True, eq=False)
class Judged:
    """Juries (M,) with their jurors' names, and all that was computed of them."""

    names: tuple[str, ...]
    pool: Pool
    asked: Sequence[int]
    found: Found

    def members(self, jury: int) -> list[int]:
        """Return the numbers of a jury's jurors."""
        members: list[int] = np.flatnonzero(self.pool.subsets[self.asked[jury]]).tolist()
        return members

    def jurors(self, jury: int) -> tuple[str, ...]:
        """Return the names of a jury's jurors."""
        return tuple(self.names[one] for one in self.members(jury))


def ranked(scope: Scope, judged: Judged, usd: Mapping[str, float | None]) -> list[JuryRow]:
    """Return the rows, the highest ICC first and of equal ones the smaller; undefined ones last."""
    found = judged.found
    order = np.argsort(-np.nan_to_num(found.icc, nan=-np.inf), kind="stable").tolist()
    costs = [cost(judged.jurors(jury), usd) for jury in range(len(order))]
    front = on_front(found.icc, np.array([NAN if one is None else one for one in costs]))
    weights = _weights(judged)
    rows = []
    for place, jury in enumerate(order):
        known, jurors = bool(np.isfinite(found.icc[jury])), judged.jurors(jury)
        row = JuryRow(
            jurors=jurors,
            size=len(jurors),
            icc=float(found.icc[jury]),
            low=found.ends[jury].low,
            high=found.ends[jury].high,
            icc_honest=float(found.expected.icc[jury]),
            honest_low=float(found.expected.low[jury]),
            honest_high=float(found.expected.high[jury]),
            rank=place + 1 if known else None,
            usd_per_response=costs[jury],
            on_front=bool(front[jury]),
            n_responses=int(found.n[jury]),
            weights=None if weights is None or not known else weights[jury],
            notes=noted(*_row_notes(scope, judged, jury)),
        )
        rows.append(row)
    return rows


def winners(rows: Sequence[JuryRow], sizes: Sizes) -> Iterator[Winner]:
    """Yield the best jury of each size that has one with an ICC."""
    for size in sizes:
        own = [row for row in rows if row.size == size]
        if own and own[0].rank is not None:
            yield Winner(own[0], len(own))


def cost(jurors: Sequence[str], usd: Mapping[str, float | None]) -> float | None:
    """Return what a verdict of each of some jurors costs together; None if one is not known."""
    each = [usd.get(name) for name in jurors]
    known = [one for one in each if one is not None]
    return fsum(known) if len(known) == len(each) else None


def ranking_notes(
    whole: Scope, kept: Scope, judged: Judged, rows: Sequence[JuryRow], *, common: bool
) -> Iterator[Note | None]:
    """Yield what must be known beside the ranking of the responses kept of a whole scope."""
    n = [row.n_responses for row in rows]
    if common:
        left = len(whole.grid.responses) - len(kept.grid.responses)
        yield note(Code.COMMON_RESPONSES, responses=n[0])
        yield note(Code.NOT_RATED_BY_ALL, responses=left) if left else None
    elif min(n) < max(n):
        yield note(Code.OWN_RESPONSES, least=min(n), most=max(n))
    yield whole.analysed
    yield remarks.incomplete(sum(whole.incomplete.get(name, 0) for name in judged.names))
    absent = [name for name in whole.jurors if name not in judged.names]
    yield note(Code.SIT_NOWHERE, jurors=absent) if absent else None
    yield remarks.few_instances(kept.grid.n_clusters)
    yield remarks.simulated(whole.simulated & {*judged.names, *whole.clinicians})


def _weights(judged: Judged) -> list[tuple[float, ...]] | None:
    if not isinstance(judged.pool, WeightedPool):
        return None
    found: Array = judged.pool.weights()[list(judged.asked)]
    juries = range(len(judged.asked))
    return [tuple(found[jury][judged.members(jury)].tolist()) for jury in juries]


def _row_notes(scope: Scope, judged: Judged, jury: int) -> Iterator[Note | None]:
    found = judged.found
    if np.isnan(found.icc[jury]):
        yield _why_undefined(judged, jury)
    elif lost := int(found.undefined[jury]):
        yield note(Code.UNDEFINED_RESAMPLES, lost=lost, resamples=scope.asked.reps)
    yield remarks.simulated(scope.simulated & set(judged.jurors(jury)))


def _why_undefined(judged: Judged, jury: int) -> Note:
    bench, own = judged.pool.bench, judged.members(jury)
    rows = bench.heard & bench.given[:, own].all(axis=1)
    column = bench.jurors[rows][:, own].mean(axis=1)
    reason = why_undefined(bench.clinicians[rows], column, names=("the clinicians", "the jury"))
    return reason or note(Code.NOBODY_AGREES)


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
    too (`resampled.expected`): juries of one size are drawn together as far as they differ by chance.

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


def on_front(icc: Array, usd: Array) -> Flags:
    """Return which juries are on the front of agreement against money.

    Parameters
    ----------
    icc, usd : shape (M,)
        NaN where there is no ICC or a cost is not known: such a jury is not on the front,
        and keeps no other off it.

    Returns
    -------
    shape (M,)
        True where no other jury has at least this ICC at no higher cost, one of the two
        being better. Juries equal in both stand or fall together.
    """
    known = np.flatnonzero(~np.isnan(icc) & ~np.isnan(usd))
    front = np.zeros(len(icc), dtype=np.bool_)
    order = known[np.lexsort((-icc[known], usd[known]))]
    best, price = -np.inf, np.nan
    for one in order:
        front[one] = icc[one] > best or (icc[one] == best and usd[one] == price)
        if icc[one] > best:
            best, price = icc[one], usd[one]
    return front
