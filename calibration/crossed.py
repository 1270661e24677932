"""The crossed random-effects model: variances of responses, raters and error from all ratings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibration.icc import mean_squares, spearman_brown
from calibration.notes import Note, note
from calibration.rating_matrix import FLAT, RatingMatrix
from calibration.scores import Array, Integers
from calibration.shared_notes import MIXED_FLAT
from calibration.values import NAN

START = 1.0, 0.25  # variance of responses and of all others, as multiples of the residual's
LARGEST = 1e6  # such a multiple: hardly any residual
NO_RESIDUAL = 1e4  # the search ends beyond it when nothing is left over
STEEP = 1e-4  # slope of the log likelihood, in each multiple, of a search that did not end

GroupEffect = Literal["fixed", "random"]


@dataclass(frozen=True)
class MixedModel:
    """Variances of score = mean + response + rater + residual, and the ICCs they make.

    Attributes
    ----------
    response, rater, residual : float
        Variance components, by restricted maximum likelihood. `rater` is of the first kind of
        rater where there are several.
    raters : tuple of float
        The variance of raters of each kind, in the order in which the kinds first come.
    group : float
        The variance of groups of responses where they are random, else NaN.
    reason : Note, optional
        Why the model is undefined, when it is; all numbers are NaN then.
    """

    response: float = NAN
    rater: float = NAN
    residual: float = NAN
    raters: tuple[float, ...] = ()
    group: float = NAN
    reason: Note | None = None

    def consistency(self, k: float = 1) -> float:
        """Return ICC(C,1), or ICC(C,k) for the mean of k raters: v_i / (v_i + v_e / k)."""
        return spearman_brown(_share(self.response, self.residual), k)

    def agreement(self, k: float = 1) -> float:
        """Return ICC(A,1), or ICC(A,k): v_i / (v_i + (v_r + v_e) / k)."""
        return spearman_brown(_share(self.response, self.rater + self.residual), k)


def clinicians_mixed_model(grid: RatingMatrix) -> MixedModel:
    """Fit raw composites of all clinicians: crossed random responses and raters.

    Every reading counts, also of clinicians who share no response with each other.
    """
    return crossed_model(grid.composites[:, grid.of_kind("clinician")])


def crossed_model(
    scores: Array,
    *,
    kinds: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    group_effect: GroupEffect = "fixed",
) -> MixedModel:
    """Fit score = mean + response + rater + residual by restricted maximum likelihood (REML).

    The response effects, of which there are many, are integrated out in closed form: with k_m =
    t / (1 + m t) for a response of m ratings, t the variance of responses over the residual's,
    the cross products of all other columns lose k_m times those of the responses' sums (the
    Woodbury identity). These are added up once for every m, so that a step of the search takes
    time by the number of raters and none by that of responses. Slopes are exact, and a
    variance of 0 is an answer like any other. A complete table whose mean squares of responses and
    raters exceed that of the error has the same answer in closed form.

    Parameters
    ----------
    scores : shape (n, raters)
        NaN where a rater has not scored a response. Not standardised.
    kinds : shape (raters,), optional
        What each rater is, such as clinician or juror: each kind has a mean and a variance of its
        own, and all have one residual.
    groups : shape (n,), optional
        What each response belongs to, such as its benchmark.
    group_effect : "fixed" or "random"
        Each group has a mean of its own, or groups are drawn like responses.

    Returns
    -------
    MixedModel
        Undefined with fewer than 2 raters, with fewer than 3 responses that two of them scored,
        where all scores are the same, and where no residual is left.

    References
    ----------
    Patterson & Thompson (1971), Biometrika 58, 545. Harville (1977), Journal of the American
    Statistical Association 72, 320.
    """
    is_rated = ~np.isnan(scores)
    if reason := _why_not(scores, is_rated):
        return MixedModel(reason=reason)
    if kinds is None and groups is None and (closed_form := _in_closed_form(scores)):
        return closed_form
    return _fitted(_products(scores, kinds, groups, group_effect))


def _why_not(scores: Array, is_rated: Array) -> Note | None:
    if is_rated.any(axis=0).sum() < 2:
        return note("mixed_one", "the mixed model needs two clinicians")
    if (is_rated.sum(axis=1) > 1).sum() < 3:
        return note("mixed_few", "the mixed model needs 3 responses that two clinicians rated")
    values = scores[is_rated]
    if np.ptp(values) <= FLAT * np.abs(values).max():
        return note(*MIXED_FLAT)
    return None


def _in_closed_form(scores: Array) -> MixedModel | None:
    """Return the components of a complete table from its mean squares; None of any other."""
    scores = scores[:, ~np.isnan(scores).all(axis=0)]
    if np.isnan(scores).any():
        return None
    ms, (n, k) = mean_squares(scores), scores.shape
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    if not (rows > error > 0 and columns > error):
        return None
    rater = (columns - error) / n
    return MixedModel((rows - error) / k, rater, error, (rater,))


@dataclass(frozen=True, eq=False)
class _Products:
    """All that the likelihood needs of the ratings, whatever the variances.

    Attributes
    ----------
    every : shape (c, c)
        Cross products over all ratings of the columns: fixed, random, scores.
    sums : shape (sizes, c, c)
        Cross products over the responses of one size of their sums.
    sizes, number : shape (sizes,)
        Ratings of a response, and how many responses have so many.
    fixed : how many columns are fixed
    block : shape (random columns,), which component each belongs to; response is 0
    n : how many ratings
    scale : standard deviation of the scores, of which all are multiples here
    """

    every: Array
    sums: Array
    sizes: Array
    number: Array
    fixed: int
    block: Integers
    n: int
    scale: float
    n_kinds: int


def _products(
    scores: Array,
    kinds: Sequence[str] | None,
    groups: Sequence[str] | None,
    group_effect: GroupEffect,
) -> _Products:
    response, rater = np.nonzero(~np.isnan(scores))
    score = scores[response, rater]
    scale = float(score.std())
    of_kind = _levels(np.zeros(scores.shape[1]) if kinds is None else np.array(kinds))
    fixed, random = [_indicators(of_kind[rater])], [_indicators(rater)]
    seen = np.unique(rater)
    block = [1 + of_kind[seen]]
    if groups is not None:
        of_group = _indicators(_levels(np.array(groups))[response])
        (random if group_effect == "random" else fixed).append(of_group)
        if group_effect == "random":
            block.append(np.full(of_group.shape[1], 2 + of_kind.max()))
    fixed_columns = _independent(np.hstack(fixed))
    design = np.column_stack([fixed_columns, *random, (score - score.mean()) / scale])
    starts = np.flatnonzero(np.diff(response, prepend=-1))
    total = np.add.reduceat(design, starts, axis=0)
    size = np.diff(np.append(starts, len(response)))
    sizes, number = np.unique(size, return_counts=True)
    sums = np.array([total[size == m].T @ total[size == m] for m in sizes])
    return _Products(
        every=design.T @ design,
        sums=sums,
        sizes=sizes.astype(np.float64),
        number=number.astype(np.float64),
        fixed=fixed_columns.shape[1],
        block=np.concatenate(block),
        n=len(score),
        scale=scale,
        n_kinds=int(of_kind.max()) + 1,
    )


def _levels(labels: Array) -> Integers:
    """Return labels as numbers from 0, in the order in which they first come."""
    names, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(names), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(names))
    return rank[inverse]


def _indicators(levels: Integers) -> Array:
    """Return a column of 0 and 1 for each level that there is."""
    indicators: Array = (levels[:, None] == np.unique(levels)).astype(np.float64)
    return indicators


def _independent(columns: Array) -> Array:
    """Return as many of the columns as do not follow from those before them."""
    independent: list[int] = []
    for place in range(columns.shape[1]):
        if np.linalg.matrix_rank(columns[:, [*independent, place]]) > len(independent):
            independent.append(place)
    return columns[:, independent]


def _fitted(data: _Products) -> MixedModel:
    from scipy.optimize import minimize

    parts = int(data.block.max()) + 1
    start = np.array([START[0], *[START[1]] * (parts - 1)])

    def criterion(ratios: Array) -> tuple[float, Array]:
        value, slopes, _ = _criterion(data, ratios)
        return value, slopes

    optimum = minimize(
        criterion,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, LARGEST)] * parts,
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 1000, "maxfun": 5000},
    )
    slope = np.where((optimum.x <= 0) & (optimum.jac > 0), 0.0, optimum.jac)
    if optimum.x.max() >= NO_RESIDUAL or not np.abs(slope * (1 + optimum.x)).max() < STEEP * data.n:
        return MixedModel(reason=note("mixed_unconverged", "the mixed model did not converge"))
    residual = _criterion(data, optimum.x)[2] * data.scale**2
    variances = (residual * optimum.x).tolist()
    raters = tuple(variances[1 : 1 + data.n_kinds])
    group = variances[-1] if parts > 1 + data.n_kinds else NAN
    return MixedModel(variances[0], raters[0], residual, raters, group)


def _criterion(data: _Products, ratios: Array) -> tuple[float, Array, float]:
    """Return -2 log restricted likelihood but for a constant, its slopes, and the residual variance.

    With C the cross products after the responses are integrated out, S what is left of C when the
    fixed columns are, and T the ratios of the random columns: the log determinant is that of
    I + S T, and the weighted residual sum of squares s_yy - s_y' T (I + S T)^-1 s_y.
    """
    weight = ratios[0] / (1 + data.sizes * ratios[0])
    cross = data.every - np.tensordot(weight, data.sums, 1)
    change = -np.tensordot(1 / (1 + data.sizes * ratios[0]) ** 2, data.sums, 1)
    p, of = data.fixed, ratios[data.block]
    inner = cross[:p, :p]
    taken = np.linalg.solve(inner, cross[:p, p:])
    reduced = cross[p:, p:] - cross[p:, :p] @ taken
    both, with_y = reduced[:-1, :-1], reduced[:-1, -1]
    system = np.eye(len(of)) + both * of
    solved = np.linalg.solve(system, np.column_stack([with_y, both]))
    pull, shrunk = solved[:, 0], solved[:, 1:]
    squares = reduced[-1, -1] - with_y @ (of * pull)
    freedom = data.n - p
    residual = np.concatenate([-(taken[:, -1] - taken[:, :-1] @ (of * pull)), -of * pull, [1.0]])
    through = np.vstack([-taken[:, :-1], np.eye(len(of)), np.zeros((1, len(of)))])
    moved = through.T @ change @ through
    logs = (
        data.number @ np.log1p(data.sizes * ratios[0])
        + np.linalg.slogdet(inner)[1]
        + np.linalg.slogdet(system)[1]
    )
    own = (
        data.number @ (data.sizes / (1 + data.sizes * ratios[0]))
        + np.trace(np.linalg.solve(inner, change[:p, :p]))
        + np.trace(np.linalg.solve(system, moved * of))
        + freedom * (residual @ change @ residual) / squares
    )
    blocks = [data.block == place for place in range(1, len(ratios))]
    rest = [
        np.diag(shrunk)[in_block].sum() - freedom * (pull[in_block] @ pull[in_block]) / squares
        for in_block in blocks
    ]
    return freedom * np.log(squares) + logs, np.array([own, *rest]), float(squares / freedom)


def _share(signal: float, noise: float) -> float:
    return signal / (signal + noise) if signal + noise else NAN
