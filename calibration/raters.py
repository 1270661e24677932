"""Raters one by one: leniency, points for the juror's own model family, and points for length."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.clustered_intervals import clustered_mean
from calibration.icc import UNDEFINED, Interval
from calibration.notes import Figures, Note, Noted, filled, note, noted, undefined
from calibration.other_measures import juror_names
from calibration.rating_matrix import FLAT, mean_of_given
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN

LEAST_INSTANCES = 5  # of either authorship, or of a slope: the SE from fewer is a guess
ESTIMABLE = 1e-8  # the share of a coefficient that may lie in what the data do not determine
FLAT_RESIDUAL = 1e-12  # an SE below this share of the spread is a fit without a residual


@dataclass(frozen=True)
class SeverityRow(Noted):
    """How lenient one rater is on one benchmark.

    `severity` is in points above the mean of the other raters, below 0 where the rater is stricter,
    with its 95 % bootstrap interval; `n` responses that the rater and another one rated.
    """

    benchmark: str
    rater: str
    kind: str
    severity: float
    low: float
    high: float
    n: int


def severity_rows(scope: Scope) -> list[SeverityRow]:
    """Return how lenient every clinician and juror of a scope is, in points.

    Raw composites under both methods: z would remove what is asked for. `severity` is the
    mean over responses of the rater's composite minus the mean of all other clinicians and
    jurors on the same response, so that a rater who was given poor responses does not seem
    strict.
    """
    grid = scope.grid
    grid = grid.of_columns(np.flatnonzero(np.array(grid.kinds, dtype=object) != "metric"))
    away = distances(grid.composites)
    rows = []
    for place, rater in enumerate(grid.raters):
        rated = ~np.isnan(away[:, place])
        mean = clustered_mean(away[:, place], grid.clusters, grid.n_clusters)
        ends = mean.interval()
        notes = noted(
            remarks.few_instances(grid.instances(rated)),
            remarks.simulated(scope.simulated & {rater}),
        )
        if not rated.any():
            notes = (undefined("none_shared", "no response that this rater and another one rated"),)
        about = scope.name, rater, grid.kinds[place]
        rows.append(
            SeverityRow(*about, mean.value, ends.low, ends.high, int(rated.sum()), notes=notes)
        )
    return rows


def distances(composites: Array) -> Array:
    """Return each composite minus the mean of the other raters of its response.

    Parameters
    ----------
    composites : shape (n, raters), NaN where missing

    Returns
    -------
    shape (n, raters)
        NaN where the rater, or every other rater, has none.
    """
    number = (~np.isnan(composites)).sum(axis=1, keepdims=True)
    total = np.nansum(composites, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        away: Array = composites - (total - composites) / (number - 1)
    return np.where(number > 1, away, np.nan)


@dataclass(frozen=True)
class SelfPreferenceRow(Noted):
    """A juror's preference for its own model family on one benchmark.

    Attributes
    ----------
    family : the juror's; "" when it is not given
    n_own, n_other, n_unknown : responses by its family, by another, and by an unknown one (left
        out), of those that the juror, another juror and a clinician rated; None while the study
        is blind
    preference, low, high : points added to own-family responses, and the 95 % interval
    p : two-sided, of this juror alone
    """

    benchmark: str
    juror: str
    family: str
    n_own: int | None = None
    n_other: int | None = None
    n_unknown: int | None = None
    preference: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN


@dataclass(frozen=True)
class BiasEstimate:
    """A bias in points with its 95 % interval and p value; `reason`: why it is undefined."""

    points: float = NAN
    ends: Interval = UNDEFINED
    p: float = NAN
    reason: Note | None = None


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
    no_family = undefined("no_family", "imported, no family is stored: --panel names families")
    if authors is None:
        blind = undefined("after_unblinding", "known after unblinding")
        return [
            SelfPreferenceRow(scope.name, juror, family, notes=(blind if family else no_family,))
            for juror in scope.jurors
            for family in [families.get(juror, "")]
        ]
    grid = scope.grid
    family = np.array([families.get(name, "") for name in scope.jurors], dtype=object)
    author = np.array([authors.get(name, "") for name in grid.responses], dtype=object)
    jurors = grid.composites[:, grid.columns(scope.jurors)]
    clinicians = mean_of_given(grid.composites[:, grid.of_kind("clinician")])
    is_own = (author[:, None] == family) & (family != "")
    is_scored = ~np.isnan(jurors)
    compared = is_scored & ((is_scored.sum(axis=1) > 1) & ~np.isnan(clinicians))[:, None]
    used = compared & (author != "")[:, None]
    estimates = preferences(jurors, clinicians, is_own, used, grid.clusters)
    rows = []
    for place, estimate in enumerate(estimates):
        own, unknown = is_own[:, place], int((compared & ~used)[:, place].sum())
        notes = noted(
            estimate.reason if family[place] else no_family,
            note(
                "unknown_family",
                "{responses:response} by an unknown family left out",
                responses=unknown,
            )
            if unknown
            else None,
            None if estimate.reason else remarks.few_instances(grid.instances(used[:, place])),
            remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians}),
        )
        counts = int((used[:, place] & own).sum()), int((used[:, place] & ~own).sum()), unknown
        about = scope.name, scope.jurors[place], str(family[place])
        ends = estimate.ends.low, estimate.ends.high
        rows.append(
            SelfPreferenceRow(*about, *counts, estimate.points, *ends, estimate.p, notes=notes)
        )
    return rows


def preferences(
    scores: Array, clinicians: Array, own: Flags, used: Flags, clusters: Integers
) -> list[BiasEstimate]:
    """Estimate the self-preference of all jurors together, in points.

    y = juror minus the mean of the response's other jurors, stacked over jurors, is
    regressed on a constant and the clinicians' mean for each juror, and, for each juror,
    on own-family minus the mean of own-family over the others. Where one juror alone has
    responses by its family, that regresses its residual on "own family". Where several have,
    one juror's preference, beside which others seem strict, is not taken for theirs.

    Parameters
    ----------
    scores : shape (n, jurors), raw composites, NaN where missing
    clinicians : shape (n,), their mean
    own, used : shape (n, jurors), whether the author is of the juror's family, and whether the
        juror, another one and a clinician rated a response whose author is known
    clusters : shape (n,), the instance

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

    is_scored, k = ~np.isnan(scores), scores.shape[1]
    reasons = [_too_few(used[:, juror], own[:, juror], clusters) for juror in range(k)]
    if all(reasons):
        return [BiasEstimate(reason=reason) for reason in reasons]
    rows, jurors = np.nonzero(used)
    others = is_scored.sum(axis=1) - 1
    own_family = -(own & is_scored)[rows].astype(np.float64) / others[rows, None]
    own_family[np.arange(len(rows)), jurors] = own[rows, jurors]
    member = np.equal.outer(jurors, np.arange(k)).astype(np.float64)
    middle = clinicians[rows] - clinicians[rows].mean()
    design = np.hstack([own_family, member, member * middle[:, None]])
    y, is_clear = distances(scores)[rows, jurors], _estimable(design)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of coefficients that are not clear
        fitted = OLS(y, design, hasconst=True).fit(
            "pinv", "cluster", {"groups": clusters[rows]}, use_t=True
        )
        errors, ends = fitted.bse, fitted.conf_int()
    estimates = []
    for juror, reason in enumerate(reasons):
        if not reason and not is_clear[juror]:
            reason = undefined(
                "not_estimable", "the data cannot tell the jurors' preferences apart"
            )
        elif not reason and not errors[juror] > FLAT:
            reason = undefined("no_residual", "the scores vary only by juror and family")
        estimates.append(
            BiasEstimate(reason=reason)
            if reason
            else BiasEstimate(
                float(fitted.params[juror]),
                Interval(*map(float, ends[juror])),
                float(fitted.pvalues[juror]),
            )
        )
    return estimates


def _too_few(used: Flags, own: Flags, clusters: Integers) -> Note | None:
    if not used.any():
        return undefined(
            "no_known_family",
            "no response by a known family that another juror and a clinician rated",
        )
    if not (used & own).any():
        return undefined("no_own_response", "no response by its family")
    for is_own, rows in ((True, used & own), (False, used & ~own)):
        if (instances := len(np.unique(clusters[rows]))) < LEAST_INSTANCES:
            figures = {"own": is_own, "instances": instances, "least": LEAST_INSTANCES}
            return undefined("few_family_instances", _few_family_instances, **figures)
    return None


def _few_family_instances(figures: Figures) -> str:
    name = "its family" if figures["own"] else "other families"
    return filled(
        f"responses by {name} to {{instances:instance}}, and {{least}} are needed", figures
    )


def _estimable(design: Array) -> Flags:
    """Return which coefficients the design determines."""
    length = np.linalg.norm(design, axis=0)
    unit = design / np.where(length > 0, length, 1.0)
    sizes, vectors = np.linalg.eigh(unit.T @ unit)
    lost = vectors[:, sizes < ESTIMABLE]
    is_clear: Flags = (lost**2).sum(axis=1) < ESTIMABLE
    return is_clear


@dataclass(frozen=True)
class LengthRow(Noted):
    """What a rater adds for length on one benchmark.

    Attributes
    ----------
    rater, kind : the handle and "clinician" or "juror"; "jury" and "jury" for the jury's mean
    slope_per_doubling, low, high, p : points added for twice the words, 95 % interval, two-sided p
    n : responses with a composite of the rater, one of a (another) clinician, and words
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
    return [_length_row(scope, *rater, lengths) for rater in _from_clinicians(scope)]


def _from_clinicians(scope: Scope) -> Iterator[tuple[str, str, Array]]:
    """Yield handle and kind of each rater, and its distance to the clinicians, shape (n,)."""
    grid = scope.grid
    clinical = grid.composites[:, grid.of_kind("clinician")]
    middle = mean_of_given(clinical)
    if scope.jury:
        together = mean_of_given(grid.composites[:, grid.columns(scope.jury.members)])
        yield "jury", "jury", np.where(scope.jury.present(grid), together, np.nan) - middle
    for name in juror_names(scope):
        yield name, "juror", grid.composites[:, grid.columns([name])[0]] - middle
    for place, name in enumerate(scope.clinicians):
        others = np.delete(clinical, place, axis=1)
        yield name, "clinician", clinical[:, place] - mean_of_given(others)


def _length_row(scope: Scope, rater: str, kind: str, away: Array, lengths: Array) -> LengthRow:
    rows = ~np.isnan(away) & ~np.isnan(lengths)
    slope = slope_of(away[rows], lengths[rows], scope.grid.clusters[rows])
    wordless = int((~np.isnan(away) & ~rows).sum())
    members = scope.jury.members if scope.jury and kind == "jury" else (rater,)
    notes = noted(
        slope.reason,
        note(
            "wordless",
            "{responses:response} without a number of words left out",
            responses=wordless,
        )
        if wordless
        else None,
        remarks.few_instances(scope.grid.instances(rows)),
        remarks.simulated(scope.simulated & {*members, *scope.clinicians}),
    )
    if kind == "clinician" and len(scope.clinicians) == 1:
        notes = (remarks.only_clinician(rater),)
    figures = slope.points, slope.ends.low, slope.ends.high, slope.p, int(rows.sum())
    return LengthRow(scope.name, rater, kind, *figures, notes=notes)


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

    if reason := _no_slope(lengths, clusters):
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


def _no_slope(lengths: Array, clusters: Integers) -> Note | None:
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
