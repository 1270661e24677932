"""How reliable the clinicians' own ratings are, with intervals for incomplete tables."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration import remarks
from calibration.crossed import MixedModel, crossed_model
from calibration.icc import (
    UNDEFINED,
    Interval,
    absolute_interval,
    f_interval,
    mean_squares,
    spearman_brown,
)
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.planning.rows import PanelSizeRow
from calibration.rating_matrix import FLAT
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.shared_notes import MIXED_FLAT
from calibration.values import COMBINED, NAN, NORMAL_95, AnalysisOptions

FORMS = ("ICC(C,k)", "ICC(A,k)", "ICC(C,1)", "ICC(A,1)")  # the one to quote first
SIZES = range(1, 7)  # raters whose mean is planned for
CHANGE = NORMAL_95 * math.sqrt(2)  # standard errors that two scores must differ by
HARDLY_ANY = 1e7  # times the error's variance: more is all


@dataclass(frozen=True)
class ReliabilityRow(Noted):
    """One reliability of the clinicians of one benchmark.

    Attributes
    ----------
    form : of `FORMS`: consistency (C) or agreement (A), of the panel as it rated (k) or of one
    icc, low, high : with the 95 % interval; raters are random where the form is agreement
    n_raters : the panel's k: clinicians a response, their harmonic mean where that varies
    n_responses, n_instances, n_clinicians : what it rests on
    sem : standard error of measurement, in points of the scale; None where the form is consistency
    smallest_change : points by which two scores must differ to differ by more than that error
    """

    benchmark: str
    criterion: str
    form: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    n_raters: float = NAN
    n_responses: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    sem: float | None = NAN
    smallest_change: float | None = NAN


@dataclass(frozen=True)
class Reliabilities:
    """Single-rater reliability of a table, and the variance of one score about the truth."""

    consistency: float = NAN
    consistency_ends: Interval = UNDEFINED
    agreement: float = NAN
    agreement_ends: Interval = UNDEFINED
    error: float = NAN
    reason: Note | None = None


def clinician_reliability(scores: Scores, options: AnalysisOptions) -> list[ReliabilityRow]:
    """Return how reliable the clinicians are as a reference, on each benchmark and combined."""
    return [
        row
        for scope in scopes(scores, options)
        for row in reliability_rows(scope, why_undefined_scope(scores, scope))
    ]


def reliability_rows(scope: Scope, reason: Note | None = None) -> list[ReliabilityRow]:
    """Return the reliability of a scope's clinicians in its four forms.

    Raw composites whatever the method. A complete table has McGraw & Wong's forms from its mean
    squares with their F intervals, and may be below 0; one with missing cells has them from the
    variances of `crossed.crossed_model`, with Wald's exact interval of consistency and that of
    `agreement_interval`.

    Parameters
    ----------
    scope : Scope
    reason : why the scope has no agreement, if it has none

    Returns
    -------
    list of ReliabilityRow
        One a form of `FORMS`; undefined with the reason as `crossed_model` has it.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30. SEM and smallest detectable change: de Vet,
    Terwee, Knol & Bouter (2006), Journal of Clinical Epidemiology 59, 1033.
    """
    table = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    figures = Reliabilities(reason=reason) if reason else reliabilities(table)
    k = _raters(table)
    return [_row(scope, form, figures, k) for form in FORMS]


def _raters(table: Array) -> float:
    """Return the clinicians of a response, the harmonic mean of their number where it varies."""
    number = (~np.isnan(table)).sum(axis=1)
    if not len(number):
        return NAN
    even = number.min() == number.max()
    return float(number[0] if even else len(number) / (1 / number).sum())


def reliabilities(table: Array) -> Reliabilities:
    """Return the single-rater reliability of scores (n, raters), NaN where missing."""
    if np.isnan(table).any() or min(table.shape) < 2:
        return _of_model(table)
    if np.ptp(table) <= FLAT * np.abs(table).max():
        return Reliabilities(reason=note(*MIXED_FLAT))
    return _of_squares(table)


def _of_squares(table: Array) -> Reliabilities:
    """Return the forms of a complete table from its mean squares."""
    (n, k), ms = table.shape, mean_squares(table)
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    if not rows or not error:
        return Reliabilities(
            reason=undefined(
                "reliability_extreme",
                "there is no residual variance, or responses do not differ at all",
            )
        )
    ends = f_interval(1 - error / rows, n, k)
    of_one = Interval(*(spearman_brown(end, 1 / k) for end in (ends.low, ends.high)))
    below = rows + (k - 1) * error + k * (columns - error) / n
    absolute = (rows - error) / below
    among = absolute_interval((rows, columns, error), n, k)
    ends = Interval(*(spearman_brown(end, 1 / k) for end in (among.low, among.high)))
    return Reliabilities(
        (rows - error) / (rows + (k - 1) * error),
        of_one,
        absolute,
        ends if ends.low <= absolute <= ends.high else UNDEFINED,
        error + (columns - error) / n,
    )


def _of_model(table: Array) -> Reliabilities:
    model = crossed_model(table)
    if model.reason:
        return Reliabilities(reason=model.reason)
    return Reliabilities(
        model.consistency(),
        consistency_interval(table),
        model.agreement(),
        agreement_interval(model, design_of(table)),
        model.rater + model.residual,
    )


def _row(scope: Scope, form: str, figures: Reliabilities, k: float) -> ReliabilityRow:
    grid, agreement, times = scope.grid, "A" in form, k if form.endswith("k)") else 1.0
    single = figures.agreement if agreement else figures.consistency
    ends = figures.agreement_ends if agreement else figures.consistency_ends
    sem = math.sqrt(figures.error / times) if figures.error >= 0 else NAN
    known = math.isfinite(single)
    return ReliabilityRow(
        benchmark=scope.name,
        criterion=scope.options.criterion or "composite",
        form=form,
        icc=spearman_brown(single, times),
        low=spearman_brown(ends.low, times),
        high=spearman_brown(ends.high, times),
        n_raters=k,
        n_responses=len(grid.responses),
        n_instances=grid.n_clusters,
        n_clinicians=len(scope.clinicians),
        sem=(sem if known else NAN) if agreement else None,
        smallest_change=(CHANGE * sem if known else NAN) if agreement else None,
        notes=noted(*_notes(scope, figures, k)),
    )


def _notes(scope: Scope, figures: Reliabilities, k: float) -> Iterator[Note | None]:
    yield figures.reason
    if not figures.reason:
        if k != round(k):
            yield note(
                "reliability_uneven",
                "k is {raters:z.2f}, the harmonic mean of the clinicians of a response",
                raters=k,
            )
        responses, instances = len(scope.grid.responses), scope.grid.n_clusters
        if responses > instances:
            yield note(
                "reliability_shared",
                (
                    "{responses} responses from {instances:instance}: the intervals take them as "
                    "independent"
                ),
                responses=responses,
                instances=instances,
            )
        yield _within(scope)
    yield scope.analysed
    yield remarks.simulated(scope.simulated & set(scope.clinicians))


def _within(scope: Scope) -> Note | None:
    """Note ICC(C,1) without differences between benchmarks, where several are combined."""
    if scope.name != COMBINED:
        return None
    of = dict(zip(scope.composites["response_id"], scope.composites["benchmark"], strict=True))
    groups = [str(of[response]) for response in scope.grid.responses]
    table = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    model = crossed_model(table, groups=groups, group_effect="fixed")
    return (
        None
        if model.reason
        else note(
            "reliability_within",
            "with each benchmark's own mean taken out, ICC(C,1) {icc:z.3f}",
            icc=model.consistency(),
        )
    )


def panel_sizes(raters: str, model: MixedModel) -> list[PanelSizeRow]:
    """Return ICC(C,m) and ICC(A,m) of the mean of 1 to 6 raters, from the variances of single ones.

    References
    ----------
    Brennan (2001), Generalizability Theory: decision studies. Spearman-Brown where consistency
    alone counts.
    """
    return [
        PanelSizeRow(raters, m, model.consistency(m), model.agreement(m), notes=noted(model.reason))
        for m in SIZES
    ]


def assumed_panel_sizes(single: float) -> list[PanelSizeRow]:
    """Return ICC(C,m) of the mean of 1 to 6 clinicians, from an assumed ICC of single ones."""
    return [PanelSizeRow("clinicians", m, spearman_brown(single, m), None) for m in SIZES]


@dataclass(frozen=True)
class RatingDesign:
    """How many ratings, responses and raters there are, none of them empty."""

    ratings: int
    responses: int
    raters: int

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of the error."""
        return self.ratings - self.responses - self.raters + 1

    @property
    def a_response(self) -> float:
        """Return the ratings of a response that tell responses apart: all raters, if complete."""
        return (self.ratings - self.raters) / (self.responses - 1)

    @property
    def a_rater(self) -> float:
        """Return the ratings of a rater that tell raters apart: all responses, if complete."""
        return (self.ratings - self.responses) / (self.raters - 1)


def design_of(scores: Array) -> RatingDesign:
    """Return the design of a table (n, raters), NaN where missing."""
    is_rated = ~np.isnan(scores)
    rows, columns = is_rated.any(axis=1).sum(), is_rated.any(axis=0).sum()
    return RatingDesign(int(is_rated.sum()), int(rows), int(columns))


def consistency_interval(scores: Array, confidence: float = 0.95) -> Interval:
    """Return Wald's exact interval of ICC(C,1) of a table with missing cells.

    With t the variance of responses over that of the error, and raters fixed, the weighted
    residual sum of squares Q(t) less that of the error, over its degrees of freedom and the error's
    mean square, has an F distribution at the true t, and falls with t. The ends are the t at which
    it is the upper and the lower quantile, as t / (1 + t).

    Parameters
    ----------
    scores : shape (n, raters), NaN where missing
    confidence : of the interval

    Returns
    -------
    Interval
        Exact for independent normal responses, whatever is missing; the F interval of a complete
        table. Not cut at 0. NaN without degrees of freedom for the error, or without error.

    References
    ----------
    Wald (1940), Annals of Mathematical Statistics 11, 96. Seely & El-Bassiouni (1983), Annals of
    Statistics 11, 197.
    """
    from scipy.optimize import brentq

    every, sums, sizes, ratings = _products(scores)
    at_end, rank = _residual(every, sums, 1 / sizes)
    responses, raters = len(scores), len(every) - 1
    freedom, between = ratings - responses - rank, responses + rank - raters
    if freedom < 1 or between < 1 or not at_end > HARDLY_ANY**-2 * every[-1, -1]:
        return UNDEFINED

    def ratio(t: float) -> float:
        squares, _ = _residual(every, sums, t / (1 + sizes * t))
        return (squares - at_end) / between / (at_end / freedom)

    least, ends = -(1 - 1e-9) / float(sizes.max()), []
    for share in ((1 + confidence) / 2, (1 - confidence) / 2):
        quantile = float(special.fdtri(between, freedom, share))
        if ratio(least) <= quantile:
            ends.append(least)
        elif ratio(HARDLY_ANY) >= quantile:
            ends.append(HARDLY_ANY)
        else:
            ends.append(brentq(lambda t, at=quantile: ratio(t) - at, least, HARDLY_ANY, xtol=1e-9))
    return Interval(*(t / (1 + t) for t in ends))


def _products(scores: Array) -> tuple[Array, Array, Array, int]:
    """Return the cross products of raters and scores, of their sums by size, and the sizes."""
    is_rated = ~np.isnan(scores)
    response, rater = np.nonzero(is_rated)
    score = scores[is_rated] - scores[is_rated].mean()
    seen = np.unique(rater)
    design = np.column_stack([rater[:, None] == seen, score])
    total = np.add.reduceat(design, np.flatnonzero(np.diff(response, prepend=-1)), axis=0)
    size = is_rated.sum(axis=1)
    sizes = np.unique(size)
    sums = np.array([total[size == m].T @ total[size == m] for m in sizes])
    return design.T @ design, sums, sizes.astype(np.float64), len(score)


def _residual(every: Array, sums: Array, weight: Array) -> tuple[float, int]:
    """Return the residual sum of squares with raters fixed, and how many of them are free."""
    cross = every - np.tensordot(weight, sums, 1)
    inner = cross[:-1, :-1]
    inverse = np.linalg.pinv(inner, rcond=1e-10, hermitian=True)
    squares = cross[-1, -1] - cross[-1, :-1] @ inverse @ cross[:-1, -1]
    return float(squares), int(
        np.linalg.matrix_rank(inner, tol=1e-10 * every.max(), hermitian=True)
    )


def agreement_interval(
    model: MixedModel, design: RatingDesign, confidence: float = 0.95
) -> Interval:
    """Return an approximate interval of ICC(A,1) over random raters, from variance components.

    The interval of McGraw & Wong at the mean squares that the components make with as many ratings a
    response, and a rater, as tell them apart. It is theirs where the table is complete.

    Parameters
    ----------
    model : MixedModel, of the ratings
    design : RatingDesign, of the same
    confidence : of the interval

    Returns
    -------
    Interval
        In simulated studies of 60 to 300 responses, 3 to 12 raters and 2 or 3 of them a response, it
        holds the truth in 92 to 97 %. NaN without degrees of freedom or without error.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30, table 7.
    """
    single = model.agreement()
    if design.freedom < 1 or not math.isfinite(single) or single >= 1:
        return UNDEFINED
    per_response, per_rater, error = design.a_response, design.a_rater, model.residual
    rows, columns = per_response * model.response + error, per_rater * model.rater + error
    a = per_response * single / (per_rater * (1 - single))
    b = 1 + a * (per_rater - 1)
    parts = (a * columns) ** 2 / (design.raters - 1) + (b * error) ** 2 / design.freedom
    freedom = (a * columns + b * error) ** 2 / parts
    rest = columns / per_rater + (1 - 1 / per_response - 1 / per_rater) * error
    upper = (1 + confidence) / 2
    low = rows / float(special.fdtri(design.responses - 1, freedom, upper))
    high = rows * float(special.fdtri(freedom, design.responses - 1, upper))
    return Interval(
        *((end - error) / per_response / (end / per_response + rest) for end in (low, high))
    )
