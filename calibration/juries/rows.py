"""Ranked juries: what a row holds, and the notes on it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

import numpy as np

from calibration import remarks
from calibration.agreement import why_undefined
from calibration.codes import NoteCode as Code
from calibration.juries.pareto import on_front
from calibration.juries.resampled import Found
from calibration.juries.sets import Pool, Sizes
from calibration.juries.weighted import WeightedPool
from calibration.messages.form import listed
from calibration.scope import Scope
from calibration.scores import Array
from calibration.values import NAN, Note, Noted, note, noted

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
        interval, which holds for the best of many too (`shrinkage.expected`).
    rank : int or None
        1 is the highest ICC; None without one.
    usd_per_response : float or None
        What its members' verdicts on a response cost together.
    on_front : bool
        No cheaper jury agrees as well, see `pareto.on_front`.
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
