"""Self-preference: points that a juror adds to responses written by its own model family."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import remarks
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.holm import holm
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.severity import distances
from calibration.values import NAN, Note, Noted, note, noted
from calibration.zscore import FLAT, mean_of_given

LEAST_INSTANCES = 5  # on either side: the SE of a mean of fewer is a guess
ESTIMABLE = 1e-8  # the share of a coefficient that may lie in what the data do not determine


@dataclass(frozen=True)
class SelfPreferenceRow(Noted):
    """One juror on one benchmark.

    Attributes
    ----------
    family : str
        The juror's; "" when it is not given.
    n_own, n_other, n_unknown : int
        Responses by its family, by another, and by an unknown one (left out), of those
        that the juror, another juror and a clinician rated; None while the study is blind.
    preference, low, high : float
        Points added to own-family responses, and the 95 % interval.
    p, p_holm : float
        Two-sided, and after Holm over the jurors of the scope.
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
    p_holm: float


@dataclass(frozen=True)
class Preference:
    """A preference with its 95 % interval and p value; `reason`: why it is undefined."""

    points: float = NAN
    ends: Interval = UNDEFINED
    p: float = NAN
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class Judged:
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
        given: Flags = ~np.isnan(self.jurors)
        rated = (given.sum(axis=1) > 1) & ~np.isnan(self.clinicians)
        both: Flags = given & rated[:, None]
        return both

    @property
    def used(self) -> Flags:
        """Return where the response's author is known as well, shape (n, k)."""
        return self.compared & self.known[:, None]


def self_preference_rows(
    scope: Scope, families: Mapping[str, str], authors: Mapping[str, str] | None
) -> list[SelfPreferenceRow]:
    """Return how many points each juror adds to responses by its own family.

    Parameters
    ----------
    scope : Scope
    families : juror to model family; a juror that is absent has no preference
    authors : response_id to model family; absent where unknown; None while the study is blind
        Raw composites under both methods; see `preferences`.
    """
    if authors is None:
        return [_blind(scope, juror, families.get(juror, "")) for juror in scope.jurors]
    grid = scope.grid
    family = np.array([families.get(name, "") for name in scope.jurors], dtype=object)
    author = np.array([authors.get(name, "") for name in grid.responses], dtype=object)
    data = Judged(
        jurors=grid.composites[:, grid.columns(scope.jurors)],
        clinicians=mean_of_given(grid.composites[:, grid.of_kind("clinician")]),
        own=(author[:, None] == family) & (family != ""),
        known=author != "",
        clusters=grid.clusters,
    )
    found = preferences(data)
    adjusted = holm(np.array([one.p for one in found]))
    said = zip(found, map(str, family), adjusted.tolist(), strict=True)
    return [_row(scope, data, juror, *one) for juror, one in enumerate(said)]


def _blind(scope: Scope, juror: str, family: str) -> SelfPreferenceRow:
    """Return a row without a figure: nothing of authors is known yet."""
    counts, figures = (None, None, None), (NAN, NAN, NAN, NAN, NAN)
    why = noted(note(Code.AFTER_UNBLINDING if family else Code.NO_FAMILY))
    return SelfPreferenceRow(scope.name, juror, family, *counts, *figures, notes=why)


def preferences(data: Judged) -> list[Preference]:
    """Estimate the self-preference of all jurors together, in points.

    y = juror minus the mean of the response's other jurors, stacked over jurors, is
    regressed on a constant and the clinicians' mean for each juror, and, for each juror,
    on own-family minus the mean of own-family over the others. Where one juror alone has
    responses by its family, that regresses its residual on "own family". Where several have,
    one juror's preference, beside which others seem strict, is not taken for theirs.

    Returns
    -------
    list of Preference
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
        return [Preference(reason=reason) for reason in reasons]
    rows, jurors = np.nonzero(data.used)
    design = np.hstack([_own_columns(data, rows, jurors), _juror_columns(data, rows, jurors)])
    y, groups = distances(data.jurors)[rows, jurors], {"groups": data.clusters[rows]}
    clear = _estimable(design)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of coefficients that are not clear
        fitted = OLS(y, design, hasconst=True).fit("pinv", "cluster", groups, use_t=True)
        return [_preference(fitted, one, reasons[one], bool(clear[one])) for one in range(k)]


def _too_few(data: Judged, juror: int) -> Note | None:
    used, own = data.used[:, juror], data.own[:, juror]
    if not used.any():
        return note(Code.NO_KNOWN_FAMILY)
    if not (used & own).any():
        return note(Code.NO_OWN_RESPONSE)
    for is_own, rows in ((True, used & own), (False, used & ~own)):
        if (instances := len(np.unique(data.clusters[rows]))) < LEAST_INSTANCES:
            figures = {"own": is_own, "instances": instances, "least": LEAST_INSTANCES}
            return note(Code.FEW_FAMILY_INSTANCES, **figures)
    return None


def _own_columns(data: Judged, rows: Integers, jurors: Integers) -> Array:
    """Return, for each juror's preference, what it adds to juror minus mean of the others."""
    given = ~np.isnan(data.jurors)
    others = given.sum(axis=1) - 1
    columns: Array = -(data.own & given)[rows].astype(np.float64) / others[rows, None]
    columns[np.arange(len(rows)), jurors] = data.own[rows, jurors]
    return columns


def _juror_columns(data: Judged, rows: Integers, jurors: Integers) -> Array:
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


def _preference(fitted: Any, juror: int, reason: Note | None, clear: bool) -> Preference:
    if reason:
        return Preference(reason=reason)
    if not clear:
        return Preference(reason=note(Code.NOT_ESTIMABLE))
    error = float(fitted.bse[juror])
    if not error > FLAT:
        return Preference(reason=note(Code.NO_RESIDUAL))
    low, high = fitted.conf_int()[juror]
    ends = Interval(float(low), float(high))
    return Preference(float(fitted.params[juror]), ends, float(fitted.pvalues[juror]))


def _row(
    scope: Scope, data: Judged, juror: int, found: Preference, family: str, p_holm: float
) -> SelfPreferenceRow:
    rated, used, own = data.compared[:, juror], data.used[:, juror], data.own[:, juror]
    return SelfPreferenceRow(
        benchmark=scope.name,
        juror=scope.jurors[juror],
        family=family,
        n_own=int((used & own).sum()),
        n_other=int((used & ~own).sum()),
        n_unknown=int((rated & ~used).sum()),
        preference=found.points,
        low=found.ends.low,
        high=found.ends.high,
        p=found.p,
        p_holm=p_holm,
        notes=noted(*_notes(scope, data, juror, found, family)),
    )


def _notes(
    scope: Scope, data: Judged, juror: int, found: Preference, family: str
) -> Iterator[Note | None]:
    yield found.reason if family else note(Code.NO_FAMILY)
    if unknown := int((data.compared & ~data.used)[:, juror].sum()):
        yield note(Code.UNKNOWN_FAMILY, responses=unknown)
    if not found.reason:
        yield remarks.few_instances(len(np.unique(data.clusters[data.used[:, juror]])))
    yield remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})
