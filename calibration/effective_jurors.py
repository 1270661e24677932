"""How many independent jurors a jury is worth, and what each juror adds to its ICC."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.agreement import LEAST_RESPONSES, PanelColumns, column_icc, columns, single_rater
from calibration.bootstrap import Counts, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.differences import DifferenceRow, paired_rows
from calibration.rating_matrix import without_variance
from calibration.resampled_moments import ROUNDING, Prepared, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted


@dataclass(frozen=True)
class EffectiveRow(Noted):
    """How many independent jurors the jury is worth on one benchmark.

    Attributes
    ----------
    k : int
        Jurors whose errors enter: those with variance.
    effective, low, high : float
        Effective number of jurors and its 95 % bootstrap interval.
    mean_error_correlation : float
        Mean over pairs of jurors, -1 / (k - 1) to 1.
    n : int
        Responses that all of them and a clinician rated.
    """

    benchmark: str
    k: int
    effective: float
    mean_error_correlation: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, eq=False)
class JointSums:
    """Weighted sums of k jurors' values v and the clinicians' column c over some responses.

    Attributes
    ----------
    n, c, cc : shape (B,), number, sum and sum of squares
    v, vc : shape (B, k), sums of values and of their products with c
    vv : shape (B, k, k), sums of products of two jurors' values
    """

    n: Array
    c: Array
    cc: Array
    v: Array
    vc: Array
    vv: Array


@dataclass(frozen=True, eq=False)
class ErrorReplicates:
    """Effective number and mean error correlation: counts (B, clusters) to (B, 2).

    `jurors` and `clinicians` are columns of the grid, `rows` the responses that all have.
    """

    prepared: Prepared
    clinicians: Integers
    jurors: Integers
    rows: Flags

    def __call__(self, counts: Counts) -> Array:
        """Return both numbers of every resample; NaN where an error does not vary."""
        data = self.prepared
        by = scale(data, counts)
        column = panel_column(data, by, self.clinicians)
        weights = counts[:, data.clusters] * (column.count > 0)
        sums = joint_sums(weights[:, self.rows], column.mean[:, self.rows], self._values)
        defined = by.defined[:, self.jurors] > 0
        factor = np.where(defined, by.factor[:, self.jurors], np.nan)
        standardised = data.method == "published"
        correlation = error_correlation(sums, factor, standardised=standardised)
        return np.column_stack([effective_number(correlation, len(self.jurors)), correlation])

    @property
    def _values(self) -> Array:
        values: Array = self.prepared.values[self.rows][:, self.jurors]
        return values


def effective_rows(scope: Scope) -> list[EffectiveRow]:
    """Return how many independent jurors the jury is worth; no row without a jury.

    The error of juror j on a response is e_j = z_j - z of the clinicians' mean, over the
    responses that all jurors rated. Method "paper": z within each rater, and the mean of
    the clinicians' z; "published": z of each juror and of the clinicians' raw mean over
    these responses. A clinician's slip is in every juror's error, so the clinicians' own
    noise counts as shared: the effective number is the less, the fewer clinicians rate.
    """
    if not scope.jury:
        return []
    grid = scope.grid
    own = grid.columns(scope.jury.members)
    own = own[~without_variance(grid.composites[:, own])]
    together = PanelColumns(tuple(grid.raters[column] for column in own), len(own))
    rows = columns(grid, together, scope.options.method).both
    prepared = prepare(grid, scope.options.method)
    statistic = ErrorReplicates(prepared, grid.of_kind("clinician"), own, rows)
    whole = statistic(np.ones((1, grid.n_clusters)))[0]
    reason = _why_not(len(own), int(rows.sum()), whole)
    drawn = np.empty(0) if reason else scope.resample(statistic)[:, 0]
    ends = percentile_interval(drawn)
    row = EffectiveRow(
        benchmark=scope.name,
        k=len(own),
        effective=NAN if reason else float(whole[0]),
        mean_error_correlation=NAN if reason else float(whole[1]),
        low=ends.low,
        high=ends.high,
        n=int(rows.sum()),
        notes=noted(reason, *_notes(scope, together, rows, whole[0], drawn)),
    )
    return [replace(row, effective=1.0) if len(own) == 1 else row]


def joint_sums(weights: Array, column: Array, values: Array) -> JointSums:
    """Return the sums for weights (B, n), the clinicians' column (B, n) and values (n, k)."""
    k = values.shape[1]
    products = (values[:, :, None] * values[:, None, :]).reshape(len(values), k * k)
    weighted = weights * column
    return JointSums(
        n=weights.sum(axis=1),
        c=weighted.sum(axis=1),
        cc=np.einsum("bn,bn->b", weighted, column),
        v=weights @ values,
        vc=weighted @ values,
        vv=(weights @ products).reshape(len(weights), k, k),
    )


def error_correlation(sums: JointSums, factor: Array, *, standardised: bool) -> Array:
    """Return the mean correlation between the errors factor * v - c of two jurors.

    Parameters
    ----------
    sums : Joint
    factor : shape (B, k), what turns v into z, NaN where a juror has no z
    standardised : z-score v and c over these responses first, whatever the factor

    Returns
    -------
    shape (B,)
        NaN where there are fewer than two jurors or an error without variance.
    """
    k = factor.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        n = sums.n[:, None]
        vv = sums.vv - sums.v[:, :, None] * sums.v[:, None, :] / n[:, :, None]
        vc, cc = sums.vc - sums.v * sums.c[:, None] / n, sums.cc - sums.c**2 / sums.n
        if standardised:
            own, raw = (np.diagonal(products, axis1=1, axis2=2) for products in (vv, sums.vv))
            varied = np.where(own > ROUNDING * raw, own, np.nan)
            factor = factor * np.sqrt(cc[:, None] / varied)
        vv, vc = vv * factor[:, :, None] * factor[:, None, :], vc * factor
        errors = vv - vc[:, :, None] - vc[:, None, :] + cc[:, None, None]
        size, of_z = (np.diagonal(products, axis1=1, axis2=2) for products in (errors, vv))
        sd = np.sqrt(np.where(size > ROUNDING * (of_z + cc[:, None]), size, np.nan))
        total = (errors / sd[:, :, None] / sd[:, None, :]).sum(axis=(1, 2)) - k
        mean: Array = total / (k * (k - 1)) if k > 1 else np.full(len(factor), np.nan)
    return mean


def effective_number(mean_correlation: Array, k: int) -> Array:
    """Return k / (1 + (k - 1) r), the number of independent jurors with the variance of k of correlation r.

    Parameters
    ----------
    mean_correlation : shape (...), r between the errors of two jurors
    k : int

    Returns
    -------
    shape (...)
        k for r = 0, 1 for r = 1, above k for r < 0; NaN where the errors of all jurors
        cancel exactly, r = -1 / (k - 1), and where r is NaN.

    References
    ----------
    The design effect of Kish (1965), Survey Sampling, section 5.4, for one cluster of k.
    """
    below = 1 + (k - 1) * mean_correlation
    return np.where(below > ROUNDING, k / np.where(below > ROUNDING, below, np.nan), np.nan)


def _why_not(k: int, responses: int, whole: Array) -> Note | None:
    if k < 2:
        return note(Code.JURY_OF_ONE if k else Code.NO_JUROR_VARIES)
    if responses < LEAST_RESPONSES:
        return note(Code.FEW_RATED_BY_ALL, responses=responses, least=LEAST_RESPONSES)
    if not np.isfinite(whole[1]):
        return note(Code.CONSTANT_ERROR)
    if not np.isfinite(whole[0]):
        return note(Code.ERRORS_CANCEL)
    return None


def _notes(
    scope: Scope, jury: PanelColumns, rows: Flags, effective: float, drawn: Array
) -> Iterator[Note | None]:
    if effective > len(jury.members) and len(drawn):
        yield note(Code.MORE_THAN_THERE_ARE)
    if incomplete := int(len(rows) - rows.sum()):
        yield note(Code.NOT_RATED_BY_ALL, responses=incomplete)
    yield scope.analysed
    yield remarks.no_variance([name for name in scope.jurors if name not in jury.members])
    yield remarks.few_instances(scope.grid.instances(rows))
    yield remarks.undefined_resamples(drawn)
    yield remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians})


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
    grid = scope.grid
    own = grid.columns(scope.jurors)
    players = [grid.raters[at] for at in own[~without_variance(grid.composites[:, own])]]
    jury = PanelColumns(tuple(players), len(players))
    rest = [_without(players, name) for name in players] if len(players) > 1 else []
    others = [(f"jury:{', '.join(panel.members)}", panel) for panel in rest]
    pairs = paired_rows(replace(scope, jury=jury), others) if others else [None] * len(players)
    rows = {
        name: _value_row(scope, players, name, pair)
        for name, pair in zip(players, pairs, strict=True)
    }
    why = (note(Code.UNVARIED_OR_NONE),)
    return [rows.get(name) or ValueRow(scope.name, name, notes=why) for name in scope.jurors]


def _without(players: Sequence[str], name: str) -> PanelColumns:
    others = tuple(other for other in players if other != name)
    return PanelColumns(others, len(others))


def _value_row(
    scope: Scope, players: Sequence[str], name: str, pair: DifferenceRow | None
) -> ValueRow:
    jury, without = PanelColumns(tuple(players), len(players)), _without(players, name)
    return ValueRow(
        benchmark=scope.name,
        juror=name,
        icc_alone=_icc(scope, single_rater(name)),
        icc_without=_icc(scope, without) if without.members else NAN,
        icc_jury=_icc(scope, jury),
        adds=pair.difference if pair else NAN,
        low=pair.low if pair else NAN,
        high=pair.high if pair else NAN,
        notes=noted(*_value_notes(scope, players, pair)),
    )


def _icc(scope: Scope, panel: PanelColumns) -> float:
    pair = columns(scope.grid, panel, scope.options.method)
    return column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], scope.options.method)


def _value_notes(
    scope: Scope, players: Sequence[str], pair: DifferenceRow | None
) -> Iterator[Note | None]:
    if pair is None:
        yield note(Code.JURY_OF_ONE)
    else:
        if not np.isfinite(pair.difference):
            yield from pair.notes[:1]
        yield pair.told(Code.ONLY_BOTH)
        yield pair.told(Code.NO_TEST)
    yield remarks.no_variance([name for name in scope.jurors if name not in players])
    yield scope.analysed
    yield remarks.few_instances(scope.grid.n_clusters)
    yield remarks.simulated(scope.simulated & {*players, *scope.clinicians})
