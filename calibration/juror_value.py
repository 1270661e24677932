"""What each juror is worth to the jury: leave-one-out ICC and Shapley value."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np

from calibration import remarks
from calibration.agreement import LEAST_RESPONSES
from calibration.bootstrap import percentile_interval
from calibration.codes import NoteCode as Code
from calibration.juries.mean import mean_pool
from calibration.scope import Scope
from calibration.scores import Array, Flags
from calibration.values import NAN, Note, Noted, note, noted
from calibration.zscore import without_variance

MOST_EXACT = 10  # jurors: their 1,023 subsets take as long as the bootstrap's draw
ORDERS = 500  # in which larger juries are put together
MOST_WORK = 20_000  # sets of jurors x sets that rated a response together; more take minutes


@dataclass(frozen=True)
class ValueRow(Noted):
    """One juror on one benchmark.

    Attributes
    ----------
    icc_alone, icc_without : float
        ICC(3,2) with the clinicians of this juror, and of the jury without it.
    shapley, low, high : float
        What the juror adds to the ICC, averaged over the orders in which a jury can be put
        together, and its 95 % bootstrap interval. They sum to the ICC of the whole jury.
    """

    benchmark: str
    juror: str
    icc_alone: float
    icc_without: float
    shapley: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Game:
    """Subsets of k jurors, and how their values make Shapley values.

    Attributes
    ----------
    subsets : shape (M, k), True for members; the empty one is not listed, its value is 0
    weights : shape (k, M), Shapley value = weights @ values
    """

    subsets: Flags
    weights: Array

    def shapley(self, values: Array) -> Array:
        """Return Shapley values (..., k) of subsets' values (..., M); NaN needs no other NaN."""
        lost = np.isnan(values)
        total = np.where(lost, 0.0, values) @ self.weights.T
        needed = lost.astype(np.float64) @ (self.weights != 0).T
        return np.where(needed > 0, np.nan, total)

    def value(self, values: Array, members: Flags) -> float:
        """Return a subset's value; NaN if it is empty, whose ICC is not defined."""
        return float(values[(self.subsets == members).all(axis=1)].sum()) if members.any() else NAN


def value_rows(scope: Scope) -> list[ValueRow]:
    """Return what each juror is worth to the jury's ICC with the clinicians.

    The value of a set of jurors is the ICC(3,2) that `agreement.column_icc` gives their
    mean, over the responses that all of them and a clinician rated; that of the empty set
    is 0 by definition. Up to 10 jurors the Shapley value is exact, over all subsets; of
    larger juries it is the mean over 500 orders drawn with the scope's seed. A juror
    without variance takes no part.

    References
    ----------
    Shapley (1953), in Contributions to the Theory of Games II, 307. Sampled orders: Castro,
    Gomez & Tejada (2009), Computers & Operations Research 36, 1726.
    """
    grid = scope.grid
    own = grid.columns(scope.jurors)
    own = own[~without_variance(grid.composites[:, own])]
    if not len(own):
        return [_absent(scope, name) for name in scope.jurors]
    players = [grid.raters[column] for column in own]
    game = shapley_game(len(own), scope.asked.seed)
    pool = mean_pool(scope, own, game.subsets)
    n, whole = pool.responses, pool.icc(np.ones((1, grid.n_clusters)))[0]
    values = np.where(n >= LEAST_RESPONSES, whole, np.nan)
    light = len(game.subsets) * pool.inside.shape[1] <= MOST_WORK
    drawn = game.shapley(scope.resample(pool.icc)) if light else np.empty((0, len(own)))
    heavy = None if light else note(Code.TOO_MANY_SETS)
    said = noted(*_notes(scope, players, values, n), heavy)
    return [
        _row(scope, game, (name, players.index(name)), values, drawn, said)
        if name in players
        else _absent(scope, name)
        for name in scope.jurors
    ]


def shapley_game(k: int, seed: int = 0) -> Game:
    """Return the subsets of k jurors whose values are needed, and their weights.

    All of them up to 10 jurors; otherwise those met in 500 orders drawn with the seed, the
    single jurors and the juries without one.
    """
    weights = _exact(k) if k <= MOST_EXACT else _sampled(k, seed)
    members = sorted(weights, key=lambda one: (len(one), sorted(one)))
    subsets = np.array([[juror in one for juror in range(k)] for one in members], dtype=np.bool_)
    columns = np.array([weights[one] for one in members], dtype=np.float64)
    return Game(subsets, columns.T)


Weights = dict[frozenset[int], Array]
"""What a subset's value adds to each juror's Shapley value, shape (k,)."""


def _exact(k: int) -> Weights:
    sets = (frozenset(one) for size in range(1, k + 1) for one in combinations(range(k), size))
    return {one: _weight(one, k) for one in sets}


def _weight(members: frozenset[int], k: int) -> Array:
    size = len(members)
    joined = factorial(size - 1) * factorial(k - size) / factorial(k)
    left = factorial(size) * factorial(k - size - 1) / factorial(k) if size < k else 0.0
    return np.array([joined if juror in members else -left for juror in range(k)])


def _sampled(k: int, seed: int) -> Weights:
    random = np.random.default_rng(seed)
    everyone = frozenset(range(k))
    asked = [frozenset([juror]) for juror in range(k)]
    weights = {one: np.zeros(k) for one in [*asked, *(everyone - one for one in asked)]}
    for _ in range(ORDERS):
        before: frozenset[int] = frozenset()
        for juror in random.permutation(k).tolist():
            after = before | {juror}
            weights.setdefault(after, np.zeros(k))[juror] += 1 / ORDERS
            if before:
                weights[before][juror] -= 1 / ORDERS
            before = after
    return weights


def _row(
    scope: Scope,
    game: Game,
    player: tuple[str, int],
    values: Array,
    drawn: Array,
    notes: tuple[Note, ...],
) -> ValueRow:
    name, number = player
    alone = np.arange(game.subsets.shape[1]) == number
    shapley = float(game.shapley(values)[number])
    drawn = drawn[:, number] if np.isfinite(shapley) else np.empty(0)
    ends = percentile_interval(drawn)
    return ValueRow(
        benchmark=scope.name,
        juror=name,
        icc_alone=game.value(values, alone),
        icc_without=game.value(values, ~alone),
        shapley=shapley,
        low=ends.low,
        high=ends.high,
        notes=noted(*notes, remarks.undefined_resamples(drawn)),
    )


def _absent(scope: Scope, juror: str) -> ValueRow:
    why = (note(Code.UNVARIED_OR_NONE),)
    return ValueRow(scope.name, juror, NAN, NAN, NAN, NAN, NAN, notes=why)


def _notes(scope: Scope, players: list[str], values: Array, n: Array) -> Iterator[Note | None]:
    k = len(players)
    if k > MOST_EXACT:
        yield note(Code.SAMPLED_ORDERS, orders=ORDERS, jurors=k)
    if lost := int(np.isnan(values).sum()):
        yield note(Code.SETS_WITHOUT_ICC, lost=lost, sets=len(values))
    if n.min() < n.max():
        yield note(Code.SETS_RATED, least=n.min(), most=n.max())
    yield note(Code.JURY_OF_ONE) if k == 1 else None
    yield remarks.no_variance([name for name in scope.jurors if name not in players])
    yield scope.analysed
    yield remarks.few_instances(scope.grid.n_clusters)
    yield remarks.simulated(scope.simulated & {*players, *scope.clinicians})
