"""Length bias: points that a rater, unlike the clinicians, adds for twice the words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted
from calibration.zscore import FLAT, mean_of_given

LEAST_INSTANCES = 5  # the SE of a slope over fewer is a guess
FLAT_RESIDUAL = 1e-12  # an SE below this share of the spread is a fit without a residual


@dataclass(frozen=True)
class LengthRow(Noted):
    """One rater on one benchmark.

    Attributes
    ----------
    rater, kind : str
        The handle and "clinician" or "juror"; "jury" and "jury" for the jury's mean.
    slope_per_doubling, low, high, p : float
        Points added for twice the words, 95 % interval, two-sided p value.
    n : int
        Responses with a composite of the rater, one of a (another) clinician, and words.
    """

    benchmark: str
    rater: str
    kind: str
    slope_per_doubling: float
    low: float
    high: float
    p: float
    n: int


@dataclass(frozen=True)
class Slope:
    """A slope with its 95 % interval and p value; `reason`: why it is undefined."""

    points: float = NAN
    ends: Interval = UNDEFINED
    p: float = NAN
    reason: Note | None = None


def length_rows(scope: Scope, words: Mapping[str, int]) -> list[LengthRow]:
    """Return how many points the jury, each juror and each clinician add for twice the words.

    Raw composites under both methods. The jury's and a juror's distance is to the mean of
    the response's clinicians, a clinician's to the mean of its other clinicians: the slope
    is 0 for a rater who likes length as much as the clinicians do, who may like it too.

    Parameters
    ----------
    scope : Scope
    words : response_id to its number of words
        Responses that are absent, or have no words, are left out and counted.
    """
    counts = np.array([words.get(name, 0) for name in scope.grid.responses], dtype=np.float64)
    lengths = np.full(len(counts), np.nan)
    lengths[counts > 0] = np.log2(counts[counts > 0])
    return [_row(scope, rater, away, lengths) for rater, away in _distances(scope)]


def slope_of(away: Array, lengths: Array, clusters: Integers) -> Slope:
    """Regress distances (points) on log2 of words by ordinary least squares.

    Parameters
    ----------
    away, lengths : shape (n,), no NaN
    clusters : shape (n,)
        The instances. Standard errors are robust to them, as t with instances - 1 degrees of freedom.

    Returns
    -------
    Slope
        NaN with a reason: fewer than 5 instances, all of one length, or no residual.

    References
    ----------
    Cameron & Miller (2015), Journal of Human Resources 50, 317 (cluster-robust SE).
    """
    from statsmodels.regression.linear_model import OLS

    if reason := _why_not(lengths, clusters):
        return Slope(reason=reason)
    design = np.column_stack([np.ones_like(lengths), lengths - lengths.mean()])
    fitted = OLS(away, design, hasconst=True).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    points = float(fitted.params[1])
    if not float(fitted.bse[1]) > FLAT_RESIDUAL * max(np.abs(away).max(), 1.0):
        return Slope(points, reason=note(Code.ON_A_LINE))
    low, high = map(float, fitted.conf_int()[1])
    return Slope(points, Interval(low, high), float(fitted.pvalues[1]))


def _why_not(lengths: Array, clusters: Integers) -> Note | None:
    instances = len(np.unique(clusters))
    if not instances:
        return note(Code.NO_WORDS)
    if instances < LEAST_INSTANCES:
        return note(Code.FEW_RESPONDED, instances=instances, least=LEAST_INSTANCES)
    if np.ptp(lengths) <= FLAT * max(np.abs(lengths).max(), 1.0):
        return note(Code.ONE_LENGTH)
    return None


def _distances(scope: Scope) -> Iterator[tuple[tuple[str, str], Array]]:
    """Yield (handle, kind) of each rater and its distance to the clinicians, shape (n,)."""
    grid = scope.grid
    clinical = grid.composites[:, grid.of_kind("clinician")]
    middle = mean_of_given(clinical)
    jurors = grid.composites[:, grid.columns(scope.jurors)]
    if scope.jury:
        together = mean_of_given(grid.composites[:, grid.columns(scope.jury.members)])
        yield ("jury", "jury"), np.where(scope.jury.present(grid), together, np.nan) - middle
    for place, name in enumerate(scope.jurors):
        yield (name, "juror"), jurors[:, place] - middle
    for place, name in enumerate(scope.clinicians):
        others = np.delete(clinical, place, axis=1)
        yield (name, "clinician"), clinical[:, place] - mean_of_given(others)


def _row(scope: Scope, rater: tuple[str, str], away: Array, lengths: Array) -> LengthRow:
    rows = ~np.isnan(away) & ~np.isnan(lengths)
    found = slope_of(away[rows], lengths[rows], scope.grid.clusters[rows])
    return LengthRow(
        benchmark=scope.name,
        rater=rater[0],
        kind=rater[1],
        slope_per_doubling=found.points,
        low=found.ends.low,
        high=found.ends.high,
        p=found.p,
        n=int(rows.sum()),
        notes=noted(*_notes(scope, rater, (~np.isnan(away), rows), found)),
    )


def _notes(
    scope: Scope, rater: tuple[str, str], found: tuple[Flags, Flags], slope: Slope
) -> Iterator[Note | None]:
    compared, rows = found
    if rater[1] == "clinician" and len(scope.clinicians) == 1:
        yield remarks.only_clinician(rater[0])
        return
    yield slope.reason
    if wordless := int((compared & ~rows).sum()):
        yield note(Code.WORDLESS, responses=wordless)
    yield remarks.few_instances(scope.grid.instances(rows))
    members = scope.jury.members if scope.jury and rater[1] == "jury" else (rater[0],)
    yield remarks.simulated(scope.simulated & {*members, *scope.clinicians})
