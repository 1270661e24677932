"""The correlation of the jury with the clinicians, corrected for the clinicians' own error."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.agreement import LEAST_RESPONSES, PanelColumns
from calibration.bootstrap import LEAST_CLUSTERS, Counts, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.icc import UNDEFINED
from calibration.resampled_moments import ROUNDING, Prepared, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.values import NAN, Note, Noted, note, noted


@dataclass(frozen=True)
class TrueAgreementRow(Noted):
    """The jury's correlation with single clinicians, and with the clinicians' common (true) score.

    `observed` is with single clinicians, `single` that of two clinicians, and `disattenuated` the
    first over the root of the second: what it would be if clinicians made no error. The jury's own
    error stays in it.
    """

    benchmark: str
    criterion: str
    observed: float = NAN
    single: float = NAN
    disattenuated: float = NAN
    low: float = NAN
    high: float = NAN
    n_responses: int = 0
    n_instances: int = 0


@dataclass(frozen=True, eq=False)
class TrueAgreement:
    """Correlations resample by resample: counts (B, clusters) to (B, 3).

    Observed, single and disattenuated as in the row, of z within rater; NaN where the jury or the
    clinicians do not vary, and the last where single is not above 0.
    """

    prepared: Prepared
    clinicians: Integers
    jury: Integers
    present: Flags

    def __call__(self, counts: Counts) -> Array:
        """Return the three correlations of every resample."""
        data, own = self.prepared, self.clinicians
        by = scale(data, counts)
        column, jury = panel_column(data, by, own), panel_column(data, by, self.jury)
        weights = counts[:, data.clusters] * self.present * (jury.count > 0)
        number, total, judged = weights * column.count, column.total, jury.mean
        factor, mean = by.factor[:, own], by.mean[:, own]
        squares = factor**2 @ data.values[:, own].T ** 2
        squares -= 2 * (factor**2 * mean) @ data.values[:, own].T
        squares += (factor * mean) ** 2 @ data.has_value[:, own].T
        with np.errstate(divide="ignore", invalid="ignore"):
            readings = number.sum(axis=1)
            centre = ((weights * total).sum(axis=1) / readings)[:, None]
            middle = ((number * judged).sum(axis=1) / readings)[:, None]
            apart, away = total - column.count * centre, judged - middle
            spread = squares - 2 * centre * total + column.count * centre**2
            varied = [(number * away**2).sum(axis=1), (weights * spread).sum(axis=1)]
            together = (weights * apart * away).sum(axis=1)
            observed = together / np.sqrt(varied[0] * varied[1])
            pairs = weights * column.count * (column.count - 1)
            shared = (weights * (apart**2 - spread)).sum(axis=1) / pairs.sum(axis=1)
            single = shared / (varied[1] / readings)
            some = (varied[0] > ROUNDING * readings) & (varied[1] > ROUNDING * readings)
            single = np.where(some, single, np.nan)
            true = np.where(single > 0, observed / np.sqrt(single), np.nan)
        return np.column_stack([np.where(some, observed, np.nan), single, true])


def true_agreement_row(
    scope: Scope, jury: PanelColumns, reason: Note | None = None
) -> TrueAgreementRow:
    """Return the correlation of a jury with the clinicians' true score, with its interval.

    Spearman's correction for attenuation by the clinicians' error alone: the pooled correlation of
    the jury with single clinicians over the root of that of clinicians with one another, both of z
    within rater on the responses that the jury scored. Not cut at 1.

    Parameters
    ----------
    scope, jury : Scope and PanelColumns
    reason : why the scope has no agreement, if it has none

    Returns
    -------
    TrueAgreementRow
        With a percentile interval over instances; undefined, with the reason, where the
        clinicians' own correlation is not above 0 or fewer than 3 responses have two of them.

    References
    ----------
    Spearman (1904), American Journal of Psychology 15, 72.
    """
    grid = scope.grid
    criterion = scope.options.criterion or "composite"
    if reason:
        return TrueAgreementRow(scope.name, criterion, notes=(reason,))
    prepared, own = prepare(grid, "paper"), grid.of_kind("clinician")
    statistic = TrueAgreement(prepared, own, grid.columns(jury.members), jury.present(grid))
    usable = prepared.has_value[:, own] * prepared.usable[own]
    twice = (usable.sum(axis=1) >= 2) & statistic.present
    if twice.sum() < LEAST_RESPONSES:
        few = note(Code.TRUE_FEW, least=LEAST_RESPONSES)
        return TrueAgreementRow(scope.name, criterion, notes=(few,))
    observed, single, true = statistic(np.ones((1, grid.n_clusters)))[0].tolist()
    rows = (usable.sum(axis=1) > 0) & statistic.present
    instances = grid.instances(rows)
    drawn = scope.resample(statistic)[:, 2] if np.isfinite(true) else np.empty(0)
    ends = percentile_interval(drawn) if instances >= LEAST_CLUSTERS else UNDEFINED
    return TrueAgreementRow(
        scope.name,
        criterion,
        observed,
        single,
        true,
        ends.low,
        ends.high,
        int(rows.sum()),
        instances,
        notes=noted(*_notes(scope, jury, true, instances, drawn)),
    )


def _notes(
    scope: Scope, jury: PanelColumns, true: float, instances: int, drawn: Array
) -> Iterator[Note | None]:
    if not np.isfinite(true):
        yield note(Code.NO_TRUE_AGREEMENT)
    elif true > 1:
        yield note(Code.TRUE_ABOVE_ONE)
    yield scope.analysed
    yield remarks.few_instances(instances)
    yield remarks.undefined_resamples(drawn)
    yield remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians})
