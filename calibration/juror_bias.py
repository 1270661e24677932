"""Biases of jurors: points for responses by their own model family, and points for length."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import remarks
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Figures, Note, Noted, filled, note, noted, undefined
from calibration.rating_matrix import FLAT, mean_of_given
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.severity import distances
from calibration.values import NAN

AFTER_UNBLINDING = ("after_unblinding", "known after unblinding")
NO_FAMILY = ("no_family", "imported, no family is stored: --panel names families")

LEAST_INSTANCES = 5  # of either authorship, or of a slope: the SE from fewer is a guess
ESTIMABLE = 1e-8  # the share of a coefficient that may lie in what the data do not determine
FLAT_RESIDUAL = 1e-12  # an SE below this share of the spread is a fit without a residual


@dataclass(frozen=True)
class SelfPreferenceRow(Noted):
    """A juror's preference for its own model family on one benchmark.

    Attributes
    ----------
    family : str
        The juror's; "" when it is not given.
    n_own, n_other, n_unknown : int
        Responses by its family, by another, and by an unknown one (left out), of those
        that the juror, another juror and a clinician rated; None while the study is blind.
    preference, low, high : float
        Points added to own-family responses, and the 95 % interval.
    p : float
        Two-sided, of this juror alone.
    """

    benchmark: str
    juror: str
    family: str
    n_own: int | None
    n_other: int | None
    n_unknown: int | None
    preference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class BiasEstimate:
    """A bias in points with its 95 % interval and p value; `reason`: why it is undefined."""

    points: float = NAN
    ends: Interval = UNDEFINED
    p: float = NAN
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class AuthorshipScores:
    """What a preference is estimated from: n responses, k jurors.

    Attributes
    ----------
    jurors : shape (n, k), raw composites, NaN where missing
    clinicians : shape (n,), their mean
    own : shape (n, k), whether the author is of the juror's family
    known : shape (n,), whether the author's family is known
    clusters : shape (n,), the instance
    """

    jurors: Array
    clinicians: Array
    own: Flags
    known: Flags
    clusters: Integers

    @property
    def compared(self) -> Flags:
        """Return where a juror, another juror and a clinician gave a composite, (n, k)."""
        is_scored: Flags = ~np.isnan(self.jurors)
        rated = (is_scored.sum(axis=1) > 1) & ~np.isnan(self.clinicians)
        both: Flags = is_scored & rated[:, None]
        return both

    @property
    def used(self) -> Flags:
        """Return where the response's author is known as well, shape (n, k)."""
        return self.compared & self.known[:, None]


def self_preference_rows(
    scope: Scope, families: Mapping[str, str], authors: Mapping[str, str] | None
) -> list[SelfPreferenceRow]:
    """Return how many points each juror adds to responses by its own model family.

    Of raw composites under both methods; see `preferences`.

    Parameters
    ----------
    scope : one benchmark, or all combined
    families : juror to model family; a juror that is absent has no preference
    authors : response_id to model family; absent where unknown; None while the study is blind
    """
    if authors is None:
        return [_blind(scope, juror, families.get(juror, "")) for juror in scope.jurors]
    grid = scope.grid
    family = np.array([families.get(name, "") for name in scope.jurors], dtype=object)
    author = np.array([authors.get(name, "") for name in grid.responses], dtype=object)
    data = AuthorshipScores(
        jurors=grid.composites[:, grid.columns(scope.jurors)],
        clinicians=mean_of_given(grid.composites[:, grid.of_kind("clinician")]),
        own=(author[:, None] == family) & (family != ""),
        known=author != "",
        clusters=grid.clusters,
    )
    of_jurors = zip(preferences(data), map(str, family), strict=True)
    return [_row(scope, data, juror, *own) for juror, own in enumerate(of_jurors)]


def _blind(scope: Scope, juror: str, family: str) -> SelfPreferenceRow:
    """Return a row without a figure: nothing of authors is known yet."""
    counts, figures = (None, None, None), (NAN, NAN, NAN, NAN)
    why = noted(undefined(*(AFTER_UNBLINDING if family else NO_FAMILY)))
    return SelfPreferenceRow(scope.name, juror, family, *counts, *figures, notes=why)


def preferences(data: AuthorshipScores) -> list[BiasEstimate]:
    """Estimate the self-preference of all jurors together, in points.

    y = juror minus the mean of the response's other jurors, stacked over jurors, is
    regressed on a constant and the clinicians' mean for each juror, and, for each juror,
    on own-family minus the mean of own-family over the others. Where one juror alone has
    responses by its family, that regresses its residual on "own family". Where several have,
    one juror's preference, beside which others seem strict, is not taken for theirs.

    Returns
    -------
    list of BiasEstimate
        One a juror: least squares, SE robust to clusters (instances), t with instances - 1
        degrees of freedom. NaN with a reason if fewer than 5 instances have own-family
        responses, or other ones, or if the data cannot tell the preferences apart: two
        jurors, say, and every response by one of their two families.

    References
    ----------
    Cameron & Miller (2015), Journal of Human Resources 50, 317 (cluster-robust SE).
    """
    from statsmodels.regression.linear_model import OLS

    k = data.jurors.shape[1]
    reasons = [_too_few(data, juror) for juror in range(k)]
    if all(reasons):
        return [BiasEstimate(reason=reason) for reason in reasons]
    rows, jurors = np.nonzero(data.used)
    design = np.hstack([_own_columns(data, rows, jurors), _juror_columns(data, rows, jurors)])
    y, groups = distances(data.jurors)[rows, jurors], {"groups": data.clusters[rows]}
    clear = _estimable(design)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of coefficients that are not clear
        fitted = OLS(y, design, hasconst=True).fit("pinv", "cluster", groups, use_t=True)
        return [
            _preference(fitted, juror, reasons[juror], bool(clear[juror])) for juror in range(k)
        ]


def _too_few(data: AuthorshipScores, juror: int) -> Note | None:
    used, own = data.used[:, juror], data.own[:, juror]
    if not used.any():
        return undefined(
            "no_known_family",
            "no response by a known family that another juror and a clinician rated",
        )
    if not (used & own).any():
        return undefined("no_own_response", "no response by its family")
    for is_own, rows in ((True, used & own), (False, used & ~own)):
        if (instances := len(np.unique(data.clusters[rows]))) < LEAST_INSTANCES:
            figures = {"own": is_own, "instances": instances, "least": LEAST_INSTANCES}
            return undefined("few_family_instances", _few_family_instances, **figures)
    return None


def _own_columns(data: AuthorshipScores, rows: Integers, jurors: Integers) -> Array:
    """Return, for each juror's preference, what it adds to juror minus mean of the others."""
    is_scored = ~np.isnan(data.jurors)
    others = is_scored.sum(axis=1) - 1
    columns: Array = -(data.own & is_scored)[rows].astype(np.float64) / others[rows, None]
    columns[np.arange(len(rows)), jurors] = data.own[rows, jurors]
    return columns


def _juror_columns(data: AuthorshipScores, rows: Integers, jurors: Integers) -> Array:
    """Return each juror's constant and its clinicians' mean, taken about the grand mean."""
    member: Array = np.equal.outer(jurors, np.arange(data.jurors.shape[1])).astype(np.float64)
    middle = data.clinicians[rows] - data.clinicians[rows].mean()
    return np.hstack([member, member * middle[:, None]])


def _estimable(design: Array) -> Flags:
    """Return which coefficients the design determines."""
    length = np.linalg.norm(design, axis=0)
    unit = design / np.where(length > 0, length, 1.0)
    sizes, vectors = np.linalg.eigh(unit.T @ unit)
    lost = vectors[:, sizes < ESTIMABLE]
    clear: Flags = (lost**2).sum(axis=1) < ESTIMABLE
    return clear


def _preference(fitted: Any, juror: int, reason: Note | None, clear: bool) -> BiasEstimate:
    if reason:
        return BiasEstimate(reason=reason)
    if not clear:
        return BiasEstimate(
            reason=undefined("not_estimable", "the data cannot tell the jurors' preferences apart")
        )
    error = float(fitted.bse[juror])
    if not error > FLAT:
        return BiasEstimate(
            reason=undefined("no_residual", "the scores vary only by juror and family")
        )
    low, high = fitted.conf_int()[juror]
    ends = Interval(float(low), float(high))
    return BiasEstimate(float(fitted.params[juror]), ends, float(fitted.pvalues[juror]))


def _row(
    scope: Scope,
    data: AuthorshipScores,
    juror: int,
    preference: BiasEstimate,
    family: str,
) -> SelfPreferenceRow:
    rated, used, own = data.compared[:, juror], data.used[:, juror], data.own[:, juror]
    return SelfPreferenceRow(
        benchmark=scope.name,
        juror=scope.jurors[juror],
        family=family,
        n_own=int((used & own).sum()),
        n_other=int((used & ~own).sum()),
        n_unknown=int((rated & ~used).sum()),
        preference=preference.points,
        low=preference.ends.low,
        high=preference.ends.high,
        p=preference.p,
        notes=noted(*_notes(scope, data, juror, preference, family)),
    )


def _notes(
    scope: Scope, data: AuthorshipScores, juror: int, preference: BiasEstimate, family: str
) -> Iterator[Note | None]:
    yield preference.reason if family else undefined(*NO_FAMILY)
    if unknown := int((data.compared & ~data.used)[:, juror].sum()):
        yield note(
            "unknown_family",
            "{responses:response} by an unknown family left out",
            responses=unknown,
        )
    if not preference.reason:
        yield remarks.few_instances(len(np.unique(data.clusters[data.used[:, juror]])))
    yield remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})


@dataclass(frozen=True)
class LengthRow(Noted):
    """What a rater adds for length on one benchmark.

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
    return [_length_row(scope, rater, away, lengths) for rater, away in _distances(scope)]


def slope_of(away: Array, lengths: Array, clusters: Integers) -> BiasEstimate:
    """Regress distances (points) on log2 of words by ordinary least squares.

    Parameters
    ----------
    away, lengths : shape (n,), no NaN
    clusters : shape (n,)
        The instances. Standard errors are robust to them, as t with instances - 1 degrees of freedom.

    Returns
    -------
    BiasEstimate
        NaN with a reason: fewer than 5 instances, all of one length, or no residual.

    References
    ----------
    Cameron & Miller (2015), Journal of Human Resources 50, 317 (cluster-robust SE).
    """
    from statsmodels.regression.linear_model import OLS

    if reason := _why_not(lengths, clusters):
        return BiasEstimate(reason=reason)
    design = np.column_stack([np.ones_like(lengths), lengths - lengths.mean()])
    fitted = OLS(away, design, hasconst=True).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True
    )
    points = float(fitted.params[1])
    if not float(fitted.bse[1]) > FLAT_RESIDUAL * max(np.abs(away).max(), 1.0):
        return BiasEstimate(
            points, reason=note("on_a_line", "no interval: the distances lie on a line")
        )
    low, high = map(float, fitted.conf_int()[1])
    return BiasEstimate(points, Interval(low, high), float(fitted.pvalues[1]))


def _why_not(lengths: Array, clusters: Integers) -> Note | None:
    instances = len(np.unique(clusters))
    if not instances:
        return undefined(
            "no_words", "no response has both the scores and the number of words needed"
        )
    if instances < LEAST_INSTANCES:
        return undefined(
            "few_responded",
            "responses to {instances:instance}, and {least} are needed",
            instances=instances,
            least=LEAST_INSTANCES,
        )
    if np.ptp(lengths) <= FLAT * max(np.abs(lengths).max(), 1.0):
        return undefined("one_length", "all responses have the same number of words")
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


def _length_row(scope: Scope, rater: tuple[str, str], away: Array, lengths: Array) -> LengthRow:
    rows = ~np.isnan(away) & ~np.isnan(lengths)
    slope = slope_of(away[rows], lengths[rows], scope.grid.clusters[rows])
    return LengthRow(
        benchmark=scope.name,
        rater=rater[0],
        kind=rater[1],
        slope_per_doubling=slope.points,
        low=slope.ends.low,
        high=slope.ends.high,
        p=slope.p,
        n=int(rows.sum()),
        notes=noted(*_length_notes(scope, rater, (~np.isnan(away), rows), slope)),
    )


def _length_notes(
    scope: Scope, rater: tuple[str, str], found: tuple[Flags, Flags], slope: BiasEstimate
) -> Iterator[Note | None]:
    compared, rows = found
    if rater[1] == "clinician" and len(scope.clinicians) == 1:
        yield remarks.only_clinician(rater[0])
        return
    yield slope.reason
    if wordless := int((compared & ~rows).sum()):
        yield note(
            "wordless",
            "{responses:response} without a number of words left out",
            responses=wordless,
        )
    yield remarks.few_instances(scope.grid.instances(rows))
    members = scope.jury.members if scope.jury and rater[1] == "jury" else (rater[0],)
    yield remarks.simulated(scope.simulated & {*members, *scope.clinicians})


def _few_family_instances(figures: Figures) -> str:
    name = "its family" if figures["own"] else "other families"
    return filled(
        f"responses by {name} to {{instances:instance}}, and {{least}} are needed", figures
    )
