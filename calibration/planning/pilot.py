"""What a pilot study tells a plan: reliabilities, and how much differences vary."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.agreement import (
    LEAST_RESPONSES,
    PanelColumns,
    column_icc,
    columns,
    scorer_replicates,
    why_undefined,
)
from calibration.bootstrap import LEAST_CLUSTERS, Counts, percentile_interval
from calibration.differences import compared
from calibration.icc import UNDEFINED
from calibration.like_for_like import held_replicates, like_for_like
from calibration.notes import Figures, Note, filled, note, noted, undefined
from calibration.planning.rows import Reliability, Variation
from calibration.rating_matrix import RatingMatrix
from calibration.resampled_moments import ROUNDING, Prepared, panel_column, prepare, scale
from calibration.scope import Scope
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import NONE_HELD
from calibration.values import NAN, NORMAL_95

HEAVY = 1.25  # a standard deviation that exceeds its interval's by this factor has rare extremes
FEW_COMPOSITES = 5  # a z over fewer composites says little


def share_at_top(scope: Scope) -> float:
    """Return the share of the clinicians' composites that are the highest of all; 0 without any."""
    composites = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    given = composites[~np.isnan(composites)]
    return float((given == given.max()).mean()) if len(given) else 0.0


def clinicians_reliability(scope: Scope) -> Reliability:
    """Return the ICC(C,1) of single clinicians, from all responses that two or more rated.

    It is the pooled correlation, over all ordered pairs of clinicians of a response, of their z
    (within clinician, over the analysed set): sum z_a z_b over sum z_a^2, about the mean of the
    z used. Unlike a mean over pairs of clinicians it uses every response once, and few shared
    responses do not take it below -1. Where a clinician has few composites, z removes some of
    the differences between responses: the ICC is then too low, and the plan asks for more
    responses than it needs.

    Parameters
    ----------
    scope : Scope

    Returns
    -------
    Reliability
        NaN where fewer than three responses have two clinicians with a z, or their z do not vary.
    """
    grid = scope.grid
    clinicians = grid.of_kind("clinician")
    statistic = PairedReadings(prepare(grid, "paper"), clinicians)
    rows = statistic.rows()
    instances = grid.instances(rows)
    icc = (
        float(statistic(np.ones((1, grid.n_clusters)))[0]) if rows.sum() >= LEAST_RESPONSES else NAN
    )
    reason = _why_undefined_reliability(int(rows.sum()), icc)
    drawn = np.empty(0) if reason else scope.resample(statistic)
    interval = percentile_interval(drawn) if instances >= LEAST_CLUSTERS else UNDEFINED
    return Reliability(
        "clinicians",
        icc,
        interval.low,
        interval.high,
        int(rows.sum()),
        instances,
        notes=noted(reason, *_clinicians_notes(scope, instances, drawn)),
    )


@dataclass(frozen=True, eq=False)
class PairedReadings:
    """The pooled correlation of clinicians in resamples: from counts (B, clusters) to (B,)."""

    prepared: Prepared
    clinicians: Integers

    def rows(self) -> Flags:
        """Return which responses have two clinicians with a z."""
        usable = self.prepared.usable[self.clinicians]
        paired: Flags = (self.prepared.has_value[:, self.clinicians] * usable).sum(axis=1) >= 2
        return paired

    def __call__(self, counts: Counts) -> Array:
        """Return the correlation; NaN where no response has two clinicians, or none varies."""
        data, clinicians = self.prepared, self.clinicians
        scales = scale(data, counts)
        column = panel_column(data, scales, clinicians)
        values, has_composite = data.values[:, clinicians].T, data.has_value[:, clinicians].T
        factor, mean = scales.factor[:, clinicians], scales.mean[:, clinicians]
        squares = factor**2 @ values**2 - 2 * (factor**2 * mean) @ values
        squares += (factor * mean) ** 2 @ has_composite
        weights = counts[:, data.clusters] * (column.count >= 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            centre = (weights * column.total).sum(axis=1) / (weights * column.count).sum(axis=1)
            centre = centre[:, None]
            total = column.total - column.count * centre
            squares_about_centre = squares - 2 * centre * column.total + column.count * centre**2
            denominator = (weights * (column.count - 1) * squares_about_centre).sum(axis=1)
            numerator = (weights * (total**2 - squares_about_centre)).sum(axis=1)
            return np.where(
                denominator > ROUNDING * weights.sum(axis=1), numerator / denominator, np.nan
            )


def jury_reliability(scope: Scope) -> Reliability:
    """Return the jury's ICC(C,2) with the clinicians' mean and its interval, as in the table."""
    grid, jury = scope.grid, scope.jury
    if jury is None:
        return Reliability(
            "jury", notes=(undefined("nobody_on_jury", "no juror has rated in this study"),)
        )
    pair = columns(grid, jury, scope.options.method)
    both = pair.both
    reason = why_undefined(pair.clinicians[both], pair.scorer[both])
    instances = grid.instances(both)
    drawn = np.empty(0)
    if not reason:
        drawn = scope.resample(scorer_replicates(grid, jury, (), scope.options.method))[:, 0]
    interval = percentile_interval(drawn) if instances >= LEAST_CLUSTERS else UNDEFINED
    notes = noted(
        reason,
        remarks.coverage(int(jury.present(grid).sum()), len(both), int(both.sum()), len(both)),
        *_common_notes(scope, instances, drawn, {*jury.members, *scope.clinicians}),
    )
    return Reliability(
        "jury",
        column_icc(pair.clinicians[both], pair.scorer[both], scope.options.method),
        interval.low,
        interval.high,
        int(both.sum()),
        instances,
        notes=notes,
    )


def variations(scope: Scope) -> list[Variation]:
    """Return how much the jury's ICC minus each metric's, juror's and left-out clinician's varies.

    These are paired differences on the responses that both have, computed anew in each resample
    of instances, as in `differences` and `like_for_like`. Empty without a jury. The differences
    themselves are not reported: a plan needs only their spread.
    """
    if scope.jury is None:
        return []
    jury = scope.jury
    compared_variations = [_variation(scope, jury, name, panel) for name, panel in compared(scope)]
    return [*compared_variations, _clinician_variation(scope, jury)]


def _variation(scope: Scope, jury: PanelColumns, name: str, other: PanelColumns) -> Variation:
    rows = jury.present(scope.grid) & other.present(scope.grid)
    grid = _grid_of_rows(scope.grid, rows)
    pairs = [columns(grid, panel, scope.options.method) for panel in (jury, other)]
    both = pairs[0].both & pairs[1].both
    reasons = [why_undefined(pair.clinicians[both], pair.scorer[both]) for pair in pairs]
    raters = {*jury.members, *other.members, *scope.clinicians}
    if undefined := noted(*reasons):
        notes = noted(undefined[0], remarks.simulated(scope.simulated & raters))
        return Variation(name, notes=notes)
    statistics = [
        scorer_replicates(grid, panel, (), scope.options.method) for panel in (jury, other)
    ]
    drawn = scope.resample(
        lambda counts: np.hstack([statistic(counts) for statistic in statistics])
    )
    return _variation_of_resamples(scope, name, drawn[:, 0] - drawn[:, 1], both, raters)


def _clinician_variation(scope: Scope, jury: PanelColumns) -> Variation:
    held_out = like_for_like(scope.grid, jury, scope.options.method)
    name, raters = "like_for_like", {*jury.members, *scope.clinicians}
    if not held_out.defined:
        notes = noted(undefined(*NONE_HELD), remarks.simulated(scope.simulated & raters))
        return Variation(name, notes=notes)
    drawn = scope.resample(held_replicates(scope.grid, jury, held_out, scope.options.method))
    rows = np.isin(np.arange(len(scope.grid.responses)), held_out.rows)
    return _variation_of_resamples(scope, name, drawn, rows, raters)


def _variation_of_resamples(
    scope: Scope, name: str, drawn: Array, rows: Flags, raters: set[str]
) -> Variation:
    """Return the standard deviation of resampled differences that rest on some rows of the grid."""
    finite, counts = drawn[np.isfinite(drawn)], (int(rows.sum()), scope.grid.instances(rows))
    if counts[1] < LEAST_CLUSTERS or len(finite) < 2:
        notes_undefined = noted(
            undefined("instance_alone", "a single instance does not vary"),
            remarks.simulated(scope.simulated & raters),
        )
        return Variation(name, NAN, *counts, notes=notes_undefined)
    ends = percentile_interval(finite)
    robust_sd, sd = (ends.high - ends.low) / (2 * NORMAL_95), float(np.std(finite, ddof=1))
    notes = _common_notes(scope, counts[1], drawn, raters)
    if sd > HEAVY * robust_sd:
        return Variation(
            name,
            robust_sd,
            *counts,
            notes=noted(
                note(
                    "rare_extremes",
                    "rare extremes, sd {sd:.3g}: the sd of a normal distribution is used instead",
                    sd=sd,
                ),
                *notes,
            ),
        )
    return Variation(name, sd, *counts, notes=noted(*notes))


def _grid_of_rows(grid: RatingMatrix, rows: Flags) -> RatingMatrix:
    return replace(grid, composites=np.where(rows[:, None], grid.composites, np.nan))


def _why_undefined_reliability(responses: int, icc: float) -> Note | None:
    if responses < LEAST_RESPONSES:
        return undefined("few_paired", _few_paired, responses=responses, least=LEAST_RESPONSES)
    return (
        None
        if np.isfinite(icc)
        else undefined("readings_alike", "the readings of two clinicians do not vary")
    )


def _clinicians_notes(scope: Scope, instances: int, drawn: Array) -> Iterator[Note | None]:
    n_composites = (~np.isnan(scope.grid.composites[:, scope.grid.of_kind("clinician")])).sum(
        axis=0
    )
    if few := int((n_composites < FEW_COMPOSITES).sum()):
        yield note(
            "few_composites",
            "{clinicians:clinician} with fewer than {least} composites: their z says little",
            clinicians=few,
            least=FEW_COMPOSITES,
        )
    yield from _common_notes(scope, instances, drawn, set(scope.clinicians))


def _common_notes(
    scope: Scope, instances: int, drawn: Array, raters: set[str]
) -> Iterator[Note | None]:
    yield scope.analysed
    yield remarks.few_instances(instances)
    yield remarks.undefined_resamples(drawn)
    yield remarks.simulated(scope.simulated & raters)


def _few_paired(figures: Figures) -> str:
    have = "response has" if figures["responses"] == 1 else "responses have"
    return filled(
        f"{{responses}} {have} two clinicians with a z, and {{least}} are needed", figures
    )
