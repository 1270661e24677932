"""Rank every jury that the study's jurors can form by its ICC with the clinicians.

A jury's score is the mean of all its members, on the responses that a clinician and all jurors of
the ranking rated. The mean of some columns is linear in them, so that one covariance matrix of the
jurors' columns gives the variance of every jury, in the sample and in each resample.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from math import comb, fsum

import numpy as np

from calibration import remarks
from calibration.bootstrap import (
    CELLS,
    LEAST_CLUSTERS,
    BootstrapPlan,
    Counts,
    by_lots,
)
from calibration.columns import LEAST_RESPONSES, PanelColumns, columns, why_undefined
from calibration.icc import UNDEFINED
from calibration.intervals import fisher_z, jackknife_interval, left_out
from calibration.notes import Note, Noted, counted, listed, note, noted
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import UNDEFINED_RESAMPLES
from calibration.values import NAN, Method
from calibration.weighted import icc_of_sums, weighted
from data.errors import BadInput, TooFew

# Juror -> US dollars a response, None where not known; or what it takes -> that, by the parts' names.
Prices = Mapping[str, float | Mapping[str, float | None] | None]
Sizes = range
Tick = Callable[[float], None]
LARGEST = 5  # jurors of a jury, where no sizes are asked for
MOST_CELLS = 2**26  # juries x resamples: half a gigabyte of replicates
AT_ONCE = 4096  # juries; with more, resamples are not taken fewer at a time
DRAWN = 0.632  # share of the instances that a resample holds
LEAST_DRAWN = 2  # resamples with an ICC: what a variance takes


@dataclass(frozen=True)
class JuryRow(Noted):
    """One jury: a row of `analyse juries --json`. NaN or None where undefined, not known or not computed.

    Attributes
    ----------
    icc, low, high : float
        ICC(C,2) with the clinicians, and the jackknife's 95 % interval of this jury as if no
        other had been tried.
    icc_honest, honest_low, honest_high : float
        Expected ICC on new responses, corrected for choosing the best of many, and its 95 %
        interval, which holds for the best of many too (`expected_iccs`).
    rank : int or None
        1 is the highest ICC; None without one.
    usd_per_response : float or None
        Cost of the verdicts of all its members on one response.
    on_front : bool
        True where no cheaper jury agrees as well, see `on_front`.
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
    n_instances: int = 0

    @property
    def name(self) -> str:
        """Return the names of its jurors in one text, for a reader."""
        return listed(self.jurors)

    @property
    def optimism(self) -> float:
        """Return its ICC minus the one to expect on new responses; NaN where that is not known."""
        return self.icc - self.icc_honest


@dataclass(frozen=True)
class Ranking(Noted):
    """All juries by ICC, the highest first and those without one last, with notes on the whole.

    Attributes
    ----------
    pool : names of the jurors that the juries are made of
    sizes : numbers of jurors of the juries
    rows : one a jury
    n_responses : responses that a clinician scored, whether jurors scored them or not
    """

    pool: tuple[str, ...]
    sizes: Sizes
    rows: tuple[JuryRow, ...]
    n_responses: int

    @property
    def winner(self) -> JuryRow | None:
        """Return the jury with the highest ICC; None if none has one."""
        return self.rows[0] if self.rows[0].rank else None

    @property
    def by_size(self) -> list[JuryRow]:
        """Return the jury with the highest ICC of each size that has one."""
        best = {row.size: row for row in reversed(self.rows) if row.rank}
        return [best[size] for size in self.sizes if size in best]

    @property
    def front(self) -> list[JuryRow]:
        """Return the juries on the Pareto front of ICC and cost, the cheapest first."""
        rows = [row for row in self.rows if row.on_front]
        return sorted(rows, key=lambda row: row.usd_per_response or 0.0)

    @property
    def n_unknown_cost(self) -> int:
        """Return how many juries have a juror whose cost is not known."""
        return sum(row.usd_per_response is None for row in self.rows)

    def of_size(self, size: int) -> int:
        """Return how many juries have so many jurors."""
        return comb(len(self.pool), size)


def jury_ranking(
    scope: Scope,
    sizes: Sizes | None = None,
    usd: Prices | None = None,
    tick: Tick | None = None,
) -> Ranking:
    """Rank every jury that the scope's jurors can form by its ICC(C,2) with the clinicians.

    The ICC of a jury is that of `columns.column_icc`: z of every rater is over all of its own
    responses, the columns are over those that a clinician and all jurors of the ranking scored.
    The highest of many ICCs is too high by chance. So each jury also has the ICC to expect on new
    responses (`expected_iccs`): what chance adds is found by choosing anew in each resample and
    judging by the instances that it left out.

    Parameters
    ----------
    scope : Scope
        Its options have method, resamples, seed and executor.
    sizes : range or None
        Numbers of jurors of the juries; None takes 1 to 5, or to as many as there are jurors.
    usd : juror -> US dollars a verdict, or those of its parts
        None, or no entry, where the cost is not known. A part that several members of a jury
        take is paid once.
    tick : told the share of the resamples that is done

    Returns
    -------
    Ranking
        A juror without scores, or whose z is undefined, is left out and named in a note.
        Intervals and expected ICCs are NaN where there is a single instance, expected ICCs where
        there is no resample.

    Raises
    ------
    BadInput
        If sizes do not fit the jurors, or juries x resamples are more than can be computed.
    TooFew
        If no juror has scores that vary, or no response was rated by all of them.
    """
    names = _with_scores(scope)
    sizes = _sizes(len(names), sizes)
    juries = sum(comb(len(names), size) for size in sizes)
    if juries * scope.options.reps > MOST_CELLS:
        raise BadInput(
            f"{juries:,} juries in {scope.options.reps:,} resamples are too many: "
            "take smaller sizes, fewer jurors, or fewer resamples"
        )
    pair = columns(scope.grid, PanelColumns(names, len(names)), scope.options.method)
    if not pair.both.any() and not np.isnan(pair.clinicians).all():
        raise TooFew(
            f"{scope.name}: no response was rated by all of {', '.join(names)}; name fewer jurors"
        )
    rows = _rows(scope, names, jury_pool(scope, names, sizes, pair.both), usd or {}, tick)
    n_responses = int((~np.isnan(pair.clinicians)).sum())
    notes = noted(*_notes(scope, names, rows[0], n_responses))
    return Ranking(names, sizes, tuple(rows), n_responses, notes=notes)


@dataclass(frozen=True, eq=False)
class JuryPool:
    """Juries whose score is the mean of all members, on some responses that all jurors rated.

    Attributes
    ----------
    juries : shape (M, k), which of the k jurors sit in each: by size, then by juror
    grid, method : that the raters are of
    jurors : columns of the grid
    rows : shape (n,), which responses of the grid these are
    """

    juries: Flags
    grid: RatingMatrix
    method: Method
    jurors: Integers
    rows: Flags

    def icc(self, counts: Counts) -> Array:
        """Return the ICC of every jury in every resample, (B, M); NaN where undefined.

        Each rater's z is computed anew in a resample, over all that the rater scored.
        """
        drawn = weighted(self.grid, counts, self.method)
        clinical, rated = (
            one[:, self.rows] for one in drawn.mean_of(self.grid.of_kind("clinician"))
        )
        values, factor = drawn.values[self.rows][:, self.jurors], drawn.factor[:, self.jurors]
        weights = drawn.weights[:, self.rows] * rated
        of_clinical = weights * clinical
        share = self.juries / self.juries.sum(axis=1, keepdims=True)
        first, second = np.triu_indices(len(self.jurors))
        products = (weights @ (values[:, first] * values[:, second])) * (
            factor[:, first] * factor[:, second]
        )
        pair_share = share[:, first] * share[:, second] * np.where(first == second, 1.0, 2.0)
        icc = icc_of_sums(
            n=weights.sum(axis=1)[:, None],
            x=((weights @ values) * factor) @ share.T,
            y=of_clinical.sum(axis=1)[:, None],
            xx=products @ pair_share.T,
            yy=np.einsum("bn,bn->b", of_clinical, clinical)[:, None],
            xy=((of_clinical @ values) * factor) @ share.T,
            restandardise=self.method == "published",
        )
        lost = (drawn.counted[:, self.jurors] == 0).astype(np.float64) @ self.juries.T
        return np.where(lost > 0, np.nan, icc)


def jury_pool(scope: Scope, names: Sequence[str], sizes: Sizes, rows: Flags) -> JuryPool:
    """Return every jury of these sizes of some jurors, on `rows` (n,), which all of them rated."""
    members = [members for size in sizes for members in combinations(range(len(names)), size)]
    juries = np.zeros((len(members), len(names)), dtype=np.bool_)
    for jury, seated in zip(juries, members, strict=True):
        jury[list(seated)] = True
    return JuryPool(
        juries=juries,
        grid=scope.grid,
        method=scope.options.method,
        jurors=scope.grid.columns(names),
        rows=rows,
    )


def _rows(
    scope: Scope, names: Sequence[str], pool: JuryPool, usd: Prices, tick: Tick | None
) -> list[JuryRow]:
    """Return the rows by ICC, the highest first, of equal ones the smaller; undefined ones last."""
    grid, n = scope.grid, int(pool.rows.sum())
    instances = grid.instances(pool.rows)
    weights = left_out(grid.n_clusters)
    held = len(weights) * max(len(grid.responses), len(pool.juries))  # cells, all at once
    lots = np.array_split(weights, min(len(weights), 1 + held // CELLS))
    without = np.concatenate([pool.icc(lot) for lot in lots])
    icc = np.where(n >= LEAST_RESPONSES, without[0], np.nan)
    order = np.argsort(-np.nan_to_num(icc, nan=-np.inf), kind="stable")
    drawn, luck = _resampled(scope, pool, order, tick)
    if instances < LEAST_CLUSTERS:
        drawn = drawn[:, :0]
    expected = expected_iccs(icc, drawn, luck, instances)
    jurors = [
        tuple(name for name, sits in zip(names, jury, strict=True) if sits) for jury in pool.juries
    ]
    costs = [cost(members, usd) for members in jurors]
    front = on_front(icc, np.array([NAN if usd is None else usd for usd in costs]))
    rows = []
    for place, jury in enumerate(order.tolist()):
        is_known = bool(np.isfinite(icc[jury]))
        ends = jackknife_interval(without[:, jury]) if is_known else UNDEFINED
        lost = int(np.isnan(drawn[jury]).sum())
        row = JuryRow(
            jurors=jurors[jury],
            size=len(jurors[jury]),
            icc=float(icc[jury]),
            low=ends.low,
            high=ends.high,
            icc_honest=float(expected[0, jury]),
            honest_low=float(expected[1, jury]),
            honest_high=float(expected[2, jury]),
            rank=place + 1 if is_known else None,
            usd_per_response=costs[jury],
            on_front=bool(front[jury]),
            n_responses=n,
            n_instances=instances,
            notes=noted(
                None if is_known else _why_undefined(scope, pool, jurors[jury]),
                note(*UNDEFINED_RESAMPLES, lost=lost, resamples=scope.options.reps)
                if is_known and lost
                else None,
                remarks.simulated(scope.simulated & set(jurors[jury])),
            ),
        )
        rows.append(row)
    return rows


def _resampled(
    scope: Scope, pool: JuryPool, order: Integers, tick: Tick | None
) -> tuple[Array, Array]:
    """Return the ICCs of all juries in all resamples, (M, B), and the luck of each, (M,)."""
    options, many, instances = scope.options, len(pool.juries), scope.grid.n_clusters
    drawn = np.full((many, options.reps if instances >= LEAST_CLUSTERS else 0), np.nan)
    rows = max(len(scope.grid.responses), min(many, AT_ONCE))
    plan = BootstrapPlan(instances, rows, drawn.shape[1], options.seed, options.executor)
    sums, start = np.zeros((2, many + 1)), 0
    for lot, gained in by_lots(partial(_of_lot, pool, order), plan):
        drawn[:, start : start + len(lot)] = lot.T
        sums += gained
        start += len(lot)
        if tick:
            tick(start / options.reps)
    with np.errstate(invalid="ignore"):
        luck = sums[0] / sums[1]
    luck[order[0]] = luck[-1]
    return drawn, luck[:-1]


def _of_lot(pool: JuryPool, order: Integers, counts: Counts) -> tuple[Array, Array]:
    inside, outside = pool.icc(counts), pool.icc((counts == 0).astype(np.float64))
    return inside, gained_by_luck(order, pool.juries.sum(axis=1), inside, outside)


def gained_by_luck(order: Integers, sizes: Integers, inside: Array, outside: Array) -> Array:
    """Return what chance adds to the Fisher's z of the jury at each rank, summed over resamples.

    A rank, first of 35 say, is given to another jury in another sample. In each resample of
    instances the juries of a size are ranked anew; the jury that comes to a rank there is
    compared, on the instances that were not drawn, with the one that has the rank in the sample.
    What the latter is better by, averaged over the resamples, is what chance has added to it:
    nothing where the same jury always has the rank, the whole distance from the others where all
    are alike. The best of all juries is ranked among all.

    Parameters
    ----------
    order : shape (M,), the juries from the highest ICC in the sample down
    sizes : shape (M,), how many jurors each has
    inside, outside : shape (B, M)
        ICCs in each resample, and over the instances that it did not draw.

    Returns
    -------
    shape (2, M + 1)
        Sums over the resamples, and of how many they are, where both ICCs are known: of each
        jury among those of its size, and last of the best among all.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = fisher_z(outside)
    z[~np.isfinite(z)] = np.nan
    lowest_last = -np.nan_to_num(inside, nan=-np.inf)
    gained = np.full((len(z), len(order) + 1), np.nan)
    for size in np.unique(sizes):
        group = order[sizes[order] == size]
        chosen = np.argsort(lowest_last[:, group], axis=1, kind="stable")
        gained[:, group] = z[:, group] - np.take_along_axis(z[:, group], chosen, axis=1)
    best = order[np.argmin(lowest_last[:, order], axis=1)]
    gained[:, -1] = z[:, order[0]] - z[np.arange(len(z)), best]
    return np.stack([np.nansum(gained, axis=0), np.isfinite(gained).sum(axis=0)])


def expected_iccs(icc: Array, drawn: Array, luck: Array, instances: int) -> Array:
    """Return the ICC of each jury to expect on new responses, whichever of them is chosen.

    Parameters
    ----------
    icc : shape (M,), NaN where a jury has none
    drawn : shape (M, B), the ICCs in resamples of instances
    luck : shape (M,)
        By how much Fisher's z of each jury's ICC is too high because it is at its rank, see
        `gained_by_luck`; NaN where no resample tells.
    instances : how many there are, at least 2

    Returns
    -------
    shape (3, M)
        z less 0.632 of the luck, taken back to an ICC; its ends -+ t times the standard deviation of
        z over the resamples, enlarged by m / (m - 1), with m - 1 degrees of freedom, the lower one
        from z less all of the luck. NaN for a jury without an ICC or with one of 1, without luck, or
        with an ICC in fewer than 2 resamples.

    Notes
    -----
    A choice by a resample rests on 63 % of the instances and is worse than one by all, so that all
    of the luck is too much; hence 0.632 of what is judged by the others and 0.368 of the apparent.

    References
    ----------
    Efron & Tibshirani (1997), JASA 92, 548: the .632 estimator.
    """
    from scipy import stats  # as slow to load as all else that a table takes

    freedom = max(instances - 1, 1)
    reach = float(stats.t.ppf(0.975, freedom)) * math.sqrt((freedom + 1) / freedom)
    with np.errstate(divide="ignore", invalid="ignore"):
        z, resampled = fisher_z(icc) - DRAWN * luck, fisher_z(drawn)
    finite = np.isfinite(resampled)
    z = np.where(np.isfinite(z) & (finite.sum(axis=1) >= LEAST_DRAWN), z, np.nan)
    error = np.zeros(len(z))
    for jury in np.flatnonzero(np.isfinite(z)):
        error[jury] = reach * resampled[jury, finite[jury]].std()
    low = z - (1 - DRAWN) * np.maximum(luck, 0.0) - error
    expected: Array = 1 - np.exp(-2 * np.stack([z, low, z + error]))
    return expected


def cost(jurors: Sequence[str], usd: Prices) -> float | None:
    """Return the US dollars of one verdict of each juror together; None if any is not known.

    Of jurors that take several parts, each part counts once: see `Prices`.
    """
    parts: dict[str, float | None] = {}
    for name in jurors:
        price = usd.get(name)
        parts |= price if isinstance(price, Mapping) else {name: price}
    known = [price for price in parts.values() if price is not None]
    return fsum(known) if len(known) == len(parts) else None


def on_front(icc: Array, usd: Array) -> Flags:
    """Return which juries are on the Pareto front of agreement and cost.

    Parameters
    ----------
    icc, usd : shape (M,)
        ICC and cost of each jury. NaN where there is no ICC or the cost is not known: such a
        jury is not on the front, and does not count against the others.

    Returns
    -------
    shape (M,)
        True where no other jury has at least this ICC at no higher cost, one of the two
        being better. Juries equal in both are on the front together, or not at all.
    """
    known = np.flatnonzero(~np.isnan(icc) & ~np.isnan(usd))
    front = np.zeros(len(icc), dtype=np.bool_)
    best, price = -np.inf, np.nan
    for jury in known[np.lexsort((-icc[known], usd[known]))]:
        front[jury] = icc[jury] > best or (icc[jury] == best and usd[jury] == price)
        if icc[jury] > best:
            best, price = icc[jury], usd[jury]
    return front


def _with_scores(scope: Scope) -> tuple[str, ...]:
    """Return the jurors who have a z, or for raw composites any score."""
    composites = scope.grid.composites[:, scope.grid.columns(scope.jurors)]
    takes_part: Flags = ~without_variance(composites)
    if scope.options.method == "published":
        takes_part = np.any(~np.isnan(composites), axis=0)
    names = tuple(name for name, one in zip(scope.jurors, takes_part, strict=True) if one)
    if not names:
        raise TooFew(f"{scope.name}: no juror has scores that vary, so there is no jury to rank")
    return names


def _sizes(k: int, sizes: Sizes | None) -> Sizes:
    if sizes is None:
        return range(1, min(LARGEST, k) + 1)
    if not len(sizes) or sizes[0] < 1 or sizes[-1] > k:
        requested = f"{sizes[0]}-{sizes[-1]}" if len(sizes) else "none"
        raise BadInput(
            f"sizes {requested}: there are {counted(k, 'juror')} to choose from; "
            f"give sizes within 1-{k}"
        )
    return sizes


def _why_undefined(scope: Scope, pool: JuryPool, jurors: tuple[str, ...]) -> Note | None:
    pair = columns(scope.grid, PanelColumns(jurors, len(jurors)), scope.options.method)
    two = pair.clinicians[pool.rows], pair.scorer[pool.rows]
    return why_undefined(*two, names=("the clinicians", "the jury"))


def _notes(
    scope: Scope, names: Sequence[str], row: JuryRow, n_responses: int
) -> Iterator[Note | None]:
    """Yield which responses and jurors of the study a ranking leaves out, by any of its rows."""
    if row.n_responses < n_responses:
        yield note(
            "not_rated_by_all",
            "all juries on the same {kept:response}; {responses:response} that not all jurors rated "
            "left out: rank fewer jurors to keep more",
            kept=row.n_responses,
            responses=n_responses - row.n_responses,
        )
    yield scope.analysed
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in names))
    absent = [name for name in scope.jurors if name not in names]
    if absent:
        yield note(
            "sit_nowhere", "left out, with no scores or all scores equal: {jurors}", jurors=absent
        )
    yield remarks.few_instances(row.n_instances)
    yield remarks.simulated(scope.simulated & {*names, *scope.clinicians})
