"""Raters one by one: leniency, points for the own model family and for length, and what a juror adds."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.clustered_intervals import clustered_mean
from calibration.columns import PanelColumns, column_icc, columns, single_rater
from calibration.differences import DifferenceRow, paired_rows
from calibration.intervals import Difference
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.other_measures import juror_names
from calibration.rating_matrix import FLAT, mean_of_given, without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN

LEAST_INSTANCES = 5  # of either authorship, or of a slope: the SE from fewer is a guess
ESTIMABLE = 1e-8  # the share of a coefficient that may lie in what the data do not determine


def least_squares(y: Array, design: Array, clusters: Integers) -> list[Difference]:
    """Regress y (n,) on a design (n, c) with a constant, errors robust to clusters (instances).

    Returns
    -------
    list of Difference
        Each coefficient with its 95 % interval and two-sided p, by t with instances - 1 degrees of
        freedom. Neither where nothing is left over.

    References
    ----------
    Cameron & Miller (2015), Journal of Human Resources 50, 317 (cluster-robust SE).
    """
    from statsmodels.regression.linear_model import OLS

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of coefficients that are not clear
        fitted = OLS(y, design, hasconst=True).fit(
            "pinv", "cluster", {"groups": clusters}, use_t=True
        )
        figures = np.column_stack([fitted.params, fitted.conf_int(), fitted.pvalues])
        is_flat = ~(fitted.bse > FLAT * max(np.abs(y).max(), 1.0))
    figures[is_flat, 1:] = NAN
    return [Difference(*row) for row in figures.tolist()]


@dataclass(frozen=True)
class SeverityRow(Noted):
    """How lenient one rater is on one benchmark.

    `severity` is in points above the mean of the other raters, below 0 where the rater is stricter,
    with its 95 % interval over instances; `n` responses that the rater and another one rated.
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
    """Return each composite (n, raters) minus the mean of the other raters of its response.

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


def self_preference_rows(
    scope: Scope, families: Mapping[str, str], authors: Mapping[str, str] | None
) -> list[SelfPreferenceRow]:
    """Return how many points each juror adds to responses by its own model family.

    Of raw composites under both methods; see `preferences`. NaN with a reason if fewer than 5
    instances have own-family responses, or other ones, or if the data cannot tell the preferences
    apart: two jurors, say, and every response by one of their two families.

    Parameters
    ----------
    scope : one benchmark, or all combined
    families : juror to model family; a juror that is absent has no preference
    authors : response_id to model family; absent where unknown; None while the study is blind
    """
    no_family = undefined("no_family", "imported, no family is stored: --panel names families")
    named = [(name, families.get(name, "")) for name in scope.jurors]
    if authors is None:
        blind = undefined("after_unblinding", "known after unblinding")
        return [
            SelfPreferenceRow(scope.name, juror, family, notes=(blind if family else no_family,))
            for juror, family in named
        ]
    grid = scope.grid
    family = np.array([one for _, one in named], dtype=object)
    author = np.array([authors.get(name, "") for name in grid.responses], dtype=object)
    jurors = grid.composites[:, grid.columns(scope.jurors)]
    clinicians = mean_of_given(grid.composites[:, grid.of_kind("clinician")])
    is_own = (author[:, None] == family) & (family != "")
    is_scored = ~np.isnan(jurors)
    compared = is_scored & ((is_scored.sum(axis=1) > 1) & ~np.isnan(clinicians))[:, None]
    used = compared & (author != "")[:, None]
    reasons = [
        _too_few(used[:, place], is_own[:, place], grid.clusters) if one else no_family
        for place, one in enumerate(family)
    ]
    found = [Difference()] * len(family)
    if not all(reasons):
        found, clear = preferences(jurors, clinicians, is_own, used, grid.clusters)
        apart = undefined("not_estimable", "the data cannot tell the jurors' preferences apart")
        reasons = [why or (None if one else apart) for why, one in zip(reasons, clear, strict=True)]
    rows = []
    for place, ((juror, own_family), reason) in enumerate(zip(named, reasons, strict=True)):
        rated, own = used[:, place], is_own[:, place]
        unknown, one = int((compared[:, place] & ~rated).sum()), found[place]
        notes = noted(
            reason,
            _left_out("unknown_family", "by an unknown family", unknown),
            None if reason else remarks.few_instances(grid.instances(rated)),
            remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians}),
        )
        counts = int((rated & own).sum()), int((rated & ~own).sum()), unknown
        figures = (NAN,) * 4 if reason else (one.value, one.low, one.high, one.p)
        rows.append(
            SelfPreferenceRow(scope.name, juror, own_family, *counts, *figures, notes=notes)
        )
    return rows


def _left_out(code: str, which: str, responses: int) -> Note | None:
    words = f"{{responses:response}} {which} left out"
    return note(code, words, responses=responses) if responses else None


def preferences(
    scores: Array, clinicians: Array, own: Flags, used: Flags, clusters: Integers
) -> tuple[list[Difference], Flags]:
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
    list of Difference, shape (jurors,)
        Each juror's by `least_squares`, and whether the data determine it.
    """
    is_scored, k = ~np.isnan(scores), scores.shape[1]
    rows, jurors = np.nonzero(used)
    others = is_scored.sum(axis=1) - 1
    own_family = -(own & is_scored)[rows].astype(np.float64) / others[rows, None]
    own_family[np.arange(len(rows)), jurors] = own[rows, jurors]
    member = np.equal.outer(jurors, np.arange(k)).astype(np.float64)
    middle = clinicians[rows] - clinicians[rows].mean()
    design = np.hstack([own_family, member, member * middle[:, None]])
    length = np.linalg.norm(design, axis=0)
    unit = design / np.where(length > 0, length, 1.0)
    determined = np.diag(np.linalg.pinv(unit, rcond=np.sqrt(ESTIMABLE)) @ unit)
    found = least_squares(distances(scores)[rows, jurors], design, clusters[rows])
    return found[:k], determined[:k] > 1 - ESTIMABLE


def _too_few(used: Flags, own: Flags, clusters: Integers) -> Note | None:
    for is_own, name in ((True, "its family"), (False, "other families")):
        if (instances := len(np.unique(clusters[used & (own == is_own)]))) < LEAST_INSTANCES:
            return undefined(
                "few_family_instances",
                f"responses by {name} to {{instances:instance}}, and {{least}} are needed",
                own=is_own,
                instances=instances,
                least=LEAST_INSTANCES,
            )
    return None


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
    rows = []
    for rater, kind, away in _from_clinicians(scope):
        given, clusters = ~np.isnan(away) & ~np.isnan(lengths), scope.grid.clusters
        reason, slope = _no_slope(lengths[given], clusters[given]), Difference()
        if not reason:
            own = lengths[given]
            design = np.column_stack([np.ones_like(own), own - own.mean()])
            slope = least_squares(away[given], design, clusters[given])[1]
            if np.isnan(slope.low):
                reason = note("on_a_line", "no interval: the distances lie on a line")
        wordless = int((~np.isnan(away) & ~given).sum())
        members = scope.jury.members if scope.jury and kind == "jury" else (rater,)
        notes = noted(
            reason,
            _left_out("wordless", "without a number of words", wordless),
            remarks.few_instances(scope.grid.instances(given)),
            remarks.simulated(scope.simulated & {*members, *scope.clinicians}),
        )
        if kind == "clinician" and len(scope.clinicians) == 1:
            notes = (remarks.only_clinician(rater),)
        figures = slope.value, slope.low, slope.high, slope.p, int(given.sum())
        rows.append(LengthRow(scope.name, rater, kind, *figures, notes=notes))
    return rows


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


@dataclass(frozen=True)
class ValueRow(Noted):
    """What one juror adds to the jury on one benchmark.

    Attributes
    ----------
    icc_alone, icc_without, icc_jury : float
        ICC(3,2) with the clinicians of this juror, of the jury without it, and of the whole jury;
        NaN where undefined.
    adds, low, high : float
        ICC of the jury minus that without this juror, on the responses of both, and its 95 %
        interval (`jackknife.icc_difference`).
    """

    benchmark: str
    juror: str
    icc_alone: float = NAN
    icc_without: float = NAN
    icc_jury: float = NAN
    adds: float = NAN
    low: float = NAN
    high: float = NAN


def value_rows(scope: Scope) -> list[ValueRow]:
    """Return what each juror adds to the jury's ICC with the clinicians.

    A jury has a score where all its jurors gave one. A juror without variance takes no part. What a
    juror adds is a difference of two juries that share all others, paired over instances.
    """
    flat = without_variance(scope.grid.composites[:, scope.grid.columns(scope.jurors)])
    players = [name for name, is_flat in zip(scope.jurors, flat, strict=True) if not is_flat]
    jury = PanelColumns(tuple(players), len(players))
    without = {name: tuple(other for other in players if other != name) for name in players}
    rest = {name: PanelColumns(names, len(names)) for name, names in without.items() if names}
    others = [(f"jury:{', '.join(panel.members)}", panel) for panel in rest.values()]
    pairs = dict(zip(rest, paired_rows(replace(scope, jury=jury), others), strict=True))
    rows = {
        name: ValueRow(
            benchmark=scope.name,
            juror=name,
            icc_alone=_icc(scope, single_rater(name)),
            icc_without=_icc(scope, rest[name]) if name in rest else NAN,
            icc_jury=_icc(scope, jury),
            adds=pairs[name].difference if name in pairs else NAN,
            low=pairs[name].low if name in pairs else NAN,
            high=pairs[name].high if name in pairs else NAN,
            notes=noted(*_notes(scope, players, pairs.get(name))),
        )
        for name in players
    }
    why = (undefined("unvaried_or_none", "its scores do not vary, or there are none"),)
    return [rows.get(name) or ValueRow(scope.name, name, notes=why) for name in scope.jurors]


def _icc(scope: Scope, panel: PanelColumns) -> float:
    pair = columns(scope.grid, panel, scope.options.method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], scope.options.method)


def _notes(
    scope: Scope, players: Sequence[str], pair: DifferenceRow | None
) -> Iterator[Note | None]:
    if pair is None:
        yield note("jury_of_one", "a jury of one")
    else:
        if not np.isfinite(pair.difference):
            yield from pair.notes[:1]
        yield pair.told("only_both")
        yield pair.told("no_test")
    yield remarks.no_variance([name for name in scope.jurors if name not in players])
    yield scope.analysed
    yield remarks.few_instances(scope.grid.n_clusters)
    yield remarks.simulated(scope.simulated & {*players, *scope.clinicians})
