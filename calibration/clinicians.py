"""The clinicians: in pairs, each held out beside the jury, and without each of them.

A jury can be no worse than a clinician only where clinicians agree: an active control has to work
(ICH E10; Piaggio et al. 2012). "Like for like" compares the jury and each clinician with the same
reference, the mean of the other clinicians.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy import special

from calibration.columns import LEAST_RESPONSES, PanelColumns, column_icc
from calibration.icc import Interval
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import Figures, Note, Noted, note, noted, quoted, undefined
from calibration.rating_matrix import (
    RatingMatrix,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import SAME_SCORE, TOO_FEW_RESPONSES
from calibration.values import NAN, Method
from calibration.weighted import held_iccs, pair_icc

FRAGILE = 10  # pairs sharing fewer responses have an ICC that may be anything below 1
LEAST_CLINICIANS = 3  # of two, leaving one out leaves nobody to compare with


@dataclass(frozen=True)
class ClinicianPair:
    """Two clinicians, the responses they share, and their ICC; NaN with a reason why."""

    first: str
    second: str
    shared: Integers
    icc: float
    reason: Note | None = None

    @property
    def fragile(self) -> bool:
        """Return whether the pair shares fewer than 10 responses."""
        return len(self.shared) < FRAGILE


@dataclass(frozen=True, eq=False)
class ClinicianPairs:
    """Every pair of clinicians that shares enough responses.

    Attributes
    ----------
    defined, undefined : tuples of ClinicianPair
        Undefined are those with a rater without variance; they count nowhere.
    too_few : int
        Pairs that share something, but fewer responses than asked for.
    """

    defined: tuple[ClinicianPair, ...]
    undefined: tuple[ClinicianPair, ...]
    too_few: int

    @property
    def icc(self) -> float:
        """Return the mean ICC of the defined pairs, NaN if there is none."""
        iccs = [pair.icc for pair in self.defined]
        return float(np.mean(iccs)) if iccs else float("nan")

    @property
    def shared(self) -> Integers:
        """Return the rows of the grid that some defined pair shares."""
        rows = [pair.shared for pair in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)

    def icc_under(self, grid: RatingMatrix, weights: Array) -> Array:
        """Return the mean ICC of the defined pairs under weights (B, m), see `weighted.pair_icc`."""
        pairs = [(pair.first, pair.second, pair.shared) for pair in self.defined]
        return pair_icc(grid, pairs, weights)

    @property
    def clinicians(self) -> tuple[str, ...]:
        """Return the clinicians in the defined pairs."""
        return tuple(sorted({name for pair in self.defined for name in (pair.first, pair.second)}))


def clinician_pairs(grid: RatingMatrix, min_shared: int = 2) -> ClinicianPairs:
    """Return the ICC(3,2) of every pair of clinicians.

    Each clinician is z-scored over all of his or her composites in the grid, not only the
    shared ones; the ICC is of the shared responses. This holds for both methods, "paper"
    and "published": they differ in how a jury or metric is compared, not here.

    Parameters
    ----------
    grid : RatingMatrix
    min_shared : int
        Responses a pair must share, at least 2. At 2 an ICC says next to nothing, and
        has no lower bound: look at the number of fragile pairs.
    """
    own = grid.of_kind("clinician")
    z = z_within_raters(grid.composites)
    has_composite = ~np.isnan(grid.composites)
    flat = without_variance(grid.composites)
    pairs, too_few = [], 0
    for a, b in combinations(own, 2):
        shared = np.flatnonzero(has_composite[:, a] & has_composite[:, b])
        if len(shared) >= max(min_shared, 2):
            pairs.append(_pair(grid, z, flat, (a, b), shared))
        else:
            too_few += len(shared) > 0
    return ClinicianPairs(
        defined=tuple(pair for pair in pairs if not pair.reason),
        undefined=tuple(pair for pair in pairs if pair.reason),
        too_few=too_few,
    )


def _pair(
    grid: RatingMatrix, z: Array, flat: Flags, columns: tuple[int, int], shared: Integers
) -> ClinicianPair:
    first, second = (grid.raters[column] for column in columns)
    constant = [grid.raters[column] for column in columns if flat[column]]
    if constant:
        return ClinicianPair(
            first, second, shared, NAN, undefined("flat_raters", _flat_raters, raters=constant)
        )
    x, y = (z[shared, column] for column in columns)
    icc = column_icc(x, y, "paper", least=2)
    reason = (
        None
        if np.isfinite(icc)
        else undefined("flat_shared", "no variance on the shared responses")
    )
    return ClinicianPair(first, second, shared, icc, reason)


def _flat_raters(figures: Figures) -> str:
    return f"{' and '.join(map(quoted, figures['raters']))} without variance"


@dataclass(frozen=True, eq=False)
class HeldOutClinician:
    """One clinician left out, and the rows that jury, clinician and others all scored."""

    clinician: str
    rows: Integers
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class LikeForLike:
    """Every clinician left out in turn; `undefined` those without a comparison.

    `iccs` are the pooled ICC of the jury, and that of a clinician, with the others; else NaN.
    """

    defined: tuple[HeldOutClinician, ...]
    undefined: tuple[HeldOutClinician, ...]
    iccs: tuple[float, float] = (NAN, NAN)

    @property
    def difference(self) -> float:
        """Return the jury's ICC minus a clinician's, NaN if no clinician could be compared."""
        jury, clinician = self.iccs
        return jury - clinician

    @property
    def rows(self) -> Integers:
        """Return the rows of the grid that some comparison uses."""
        rows = [held.rows for held in self.defined]
        return np.unique(np.concatenate(rows)) if rows else np.array([], dtype=np.int64)


def like_for_like(grid: RatingMatrix, jury: PanelColumns, method: Method) -> LikeForLike:
    """Leave each clinician out in turn: ICC(jury, others) minus ICC(clinician, others).

    "Others" is the mean of the remaining clinicians of a response. Both are over the same
    responses: those that the clinician, another clinician and the jury all scored. Sums of
    squares about each comparison's own means are pooled over the clinicians left out, so that one
    with few responses counts for little instead of deciding the mean, see `weighted.pooled_icc`. The
    difference is above 0 when the jury agrees with clinicians more than a clinician does; it is
    at least -2 and at most 2.
    """
    values = z_within_raters(grid.composites) if method == "paper" else grid.composites
    panel = mean_of_given(values[:, grid.columns(jury.members)])
    scored = np.where(jury.present(grid), panel, np.nan)
    clinicians, flat = grid.of_kind("clinician"), without_variance(grid.composites)
    others = mean_of_others(values[:, clinicians])
    held = [
        HeldOutClinician(grid.raters[own], np.empty(0, np.int64), undefined("flat", "no variance"))
        if flat[own] and (~np.isnan(grid.composites[:, own])).sum() > 1
        else _hold_out(grid.raters[own], values[:, own], scored, others[:, place])
        for place, own in enumerate(clinicians)
    ]
    compared = LikeForLike(
        defined=tuple(one for one in held if not one.reason),
        undefined=tuple(one for one in held if one.reason),
    )
    if not compared.defined:
        return compared
    reason, responses = None, len(compared.rows)
    of_each = [(one.clinician, one.rows) for one in compared.defined]
    figures = held_iccs(grid, jury, method, of_each, np.ones((1, grid.n_clusters)))[0]
    if responses < LEAST_RESPONSES:
        reason = undefined(*TOO_FEW_RESPONSES, responses=responses, least=LEAST_RESPONSES)
    elif not np.isfinite(figures[:2]).all():
        alike = all(without_variance(scored[one.rows, None])[0] for one in compared.defined)
        reason = undefined(*SAME_SCORE, who="the jury" if alike else "the clinicians")
    if reason:
        lost = (replace(one, reason=reason) for one in compared.defined)
        return LikeForLike((), (*compared.undefined, *lost))
    return replace(compared, iccs=(float(figures[0]), float(figures[1])))


def mean_of_others(values: Array) -> Array:
    """Return the mean of the others of a response beside each; NaN where there is no other.

    `values` is of shape (n, raters), NaN where missing, and so is what is returned.
    """
    is_known = ~np.isnan(values)
    some = np.where(is_known, values, 0.0)
    number = is_known.sum(axis=1, keepdims=True) - is_known
    total = some.sum(axis=1, keepdims=True) - some
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def _hold_out(name: str, own: Array, jury: Array, others: Array) -> HeldOutClinician:
    rows = np.flatnonzero(~(np.isnan(own) | np.isnan(jury) | np.isnan(others)))
    if len(rows) < 2:
        few = undefined(*TOO_FEW_RESPONSES, responses=len(rows), least=2)
        return HeldOutClinician(name, rows, few)
    return HeldOutClinician(name, rows)


def population_interval(
    held: LikeForLike, without: Sequence[float], error: float, confidence: float = 0.95
) -> Interval | Note:
    """Return the interval of like for like over random clinicians and random instances.

    The clinicians' part is the delete-one-clinician jackknife with t quantiles of one degree of
    freedom fewer than there are clinicians; the instances' part is the standard error of the
    jackknife over instances with normal quantiles. The half width is the root of the sum of both
    squares. The jackknife over clinicians holds some of the instances' variance too, so that the
    interval is too wide where all clinicians are alike: about twice that over these clinicians.

    Parameters
    ----------
    held : the answer of `like_for_like`
    without : its difference as if each clinician that is compared had not been in the study
    error : its standard error over instances
    confidence : of the interval

    Returns
    -------
    Interval, or a Note why there is none
        With fewer than 3 clinicians that can be held out, where leaving one out leaves nothing to
        compare, or where `error` is NaN.

    References
    ----------
    Arvesen (1969), Annals of Mathematical Statistics 40, 2076: the jackknife of U-statistics.
    Zou & Donner (2008), Statistics in Medicine 27, 1693: adding squared half widths.
    """
    clinicians, left = len(held.defined), np.array(without)
    none = "no interval over clinicians like these: "
    if clinicians < LEAST_CLINICIANS:
        few = none + "{clinicians:clinician} can be held out, and {least} are needed"
        return note("population_few", few, clinicians=clinicians, least=LEAST_CLINICIANS)
    if not (np.isfinite(left).all() and math.isfinite(error)):
        lost = none + "without one of them there is nothing to compare"
        return note("population_undefined", lost)
    spread = (clinicians - 1) / clinicians * ((left - left.mean()) ** 2).sum()
    upper = (1 + confidence) / 2
    of_clinicians = special.stdtrit(clinicians - 1, upper) ** 2 * spread
    half = math.sqrt(of_clinicians + (special.ndtri(upper) * error) ** 2)
    return Interval(held.difference - half, held.difference + half)


@dataclass(frozen=True)
class ClinicianRow(Noted):
    """One clinician against the mean of the others, on the responses that both scored.

    Attributes
    ----------
    benchmark, rater : the clinician's handle
    icc, low, high : the ICC of like for like, from -1 to 1, with its 95 % interval; NaN: undefined
    n_responses : that it rests on
    against_others : whether the whole interval lies below 0
    constant : whether all composites of the clinician are equal
    fast : whether they came faster than responses can be read; None: not known
    """

    benchmark: str
    rater: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    n_responses: int = 0
    against_others: bool = False
    constant: bool = False
    fast: bool | None = None


@dataclass(frozen=True, slots=True)
class Without:
    """Like for like as if one clinician had not been in the study; NaN: undefined.

    Attributes
    ----------
    clinician : who is left out
    difference : the jury's ICC minus a clinician's
    clinician_low : lower 95 % end of a clinician's ICC with the others
    """

    clinician: str
    difference: float
    clinician_low: float


def without_each(
    grid: RatingMatrix, jury: PanelColumns, compared: LikeForLike, method: Method
) -> tuple[Without, ...]:
    """Return like for like without each clinician that is compared; () with fewer than three."""
    if len(compared.defined) < LEAST_CLINICIANS:
        return ()
    return tuple(_without(grid, jury, held.clinician, method) for held in compared.defined)


def _without(grid: RatingMatrix, jury: PanelColumns, clinician: str, method: Method) -> Without:
    others = np.flatnonzero(np.array(grid.raters, dtype=object) != clinician)
    rest = grid.of_columns(others)
    held = like_for_like(rest, jury, method)
    if not held.defined:
        return Without(clinician, NAN, NAN)
    of_clinician = left_out_iccs(rest, jury, held, method)[:, 1]
    return Without(clinician, held.difference, jackknife_interval(of_clinician, mirrored=True).low)


def left_out_iccs(
    grid: RatingMatrix, jury: PanelColumns, compared: LikeForLike, method: Method
) -> Array:
    """Return the ICCs of the jury, of a clinician and of each, (1 + m, 2 + clinicians).

    The first row is of all instances, the others without each (or each group) in turn.
    """
    held = [(one.clinician, one.rows) for one in compared.defined]
    return held_iccs(grid, jury, method, held, left_out(grid.n_clusters))


AGAINST = "{clinician} ranks responses against the other clinicians (ICC {icc:z.2f}, {low:z.2f} to {high:z.2f})"
UNCLEAR = "agreement of {clinician} with the other clinicians is not shown (ICC {icc:z.2f})"


def clinician_rows(benchmark: str, grid: RatingMatrix, method: Method) -> Iterator[ClinicianRow]:
    """Yield a row for each clinician of an analysed set, whatever jurors scored.

    Parameters
    ----------
    benchmark : what the rows are of
    grid : of the analysed set
    method : "paper" or "published"
    """
    own = grid.of_columns(grid.of_kind("clinician"))
    everyone = PanelColumns(own.raters, 1)
    held = like_for_like(own, everyone, method)
    iccs = left_out_iccs(own, everyone, held, method)[:, 2:].T if held.defined else np.empty((0, 1))
    for compared, values in zip(held.defined, iccs, strict=True):
        icc, interval = float(values[0]), jackknife_interval(values, mirrored=True)
        name, against = compared.clinician, interval.high < 0
        unclear = not against and not interval.low > 0
        about = {"clinician": name, "icc": icc, "low": interval.low, "high": interval.high}
        yield ClinicianRow(
            benchmark,
            name,
            icc,
            interval.low,
            interval.high,
            len(compared.rows),
            against,
            notes=noted(
                note("clinician_against", AGAINST, **about) if against else None,
                note("clinician_unclear", UNCLEAR, **about) if unclear else None,
            ),
        )
    flat = dict(zip(own.raters, without_variance(own.composites).tolist(), strict=True))
    for compared in held.undefined:
        name, scored = compared.clinician, len(compared.rows)
        constant = flat[name] and int((~np.isnan(own.composites[:, own.columns([name])])).sum()) > 1
        yield ClinicianRow(
            benchmark, name, n_responses=scored, constant=constant, notes=noted(compared.reason)
        )
