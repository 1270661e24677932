"""What a pilot study tells a plan: the reliabilities in its ratings."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from calibration import remarks
from calibration.agreement import (
    LEAST_RESPONSES,
    column_icc,
    columns,
    why_undefined,
)
from calibration.bootstrap import LEAST_CLUSTERS, Counts, percentile_interval
from calibration.icc import UNDEFINED, Interval
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import note, noted, undefined
from calibration.planning.rows import Reliability
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags
from calibration.values import NAN
from calibration.weighted import ROUNDING, scorer_iccs, weighted

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
    grid, clinicians = scope.grid, scope.grid.of_kind("clinician")
    composites = grid.composites[:, clinicians]
    usable = ~without_variance(composites)
    rows: Flags = (~np.isnan(composites) * usable).sum(axis=1) >= 2
    icc, reason = NAN, None
    if rows.sum() < LEAST_RESPONSES:
        have = "response has" if rows.sum() == 1 else "responses have"
        words = f"{{responses}} {have} two clinicians with a z, and {{least}} are needed"
        reason = undefined("few_paired", words, responses=int(rows.sum()), least=LEAST_RESPONSES)
    elif not math.isfinite(
        icc := float(paired_correlation(grid, np.ones((1, grid.n_clusters)))[0])
    ):
        reason = undefined("readings_alike", "the readings of two clinicians do not vary")
    few = int(((~np.isnan(composites)).sum(axis=0) < FEW_COMPOSITES).sum())
    few_composites = note(
        "few_composites",
        "{clinicians:clinician} with fewer than {least} composites: their z says little",
        clinicians=few,
        least=FEW_COMPOSITES,
    )
    drawn = np.empty(0) if reason else scope.resample(partial(paired_correlation, grid))
    lost = remarks.undefined_resamples(drawn)
    notes = noted(reason, few_composites if few else None, lost)
    enough = grid.instances(rows) >= LEAST_CLUSTERS
    interval = percentile_interval(drawn) if enough else UNDEFINED
    return _reliability(scope, Reliability("clinicians", icc, notes=notes), rows, interval)


def paired_correlation(grid: RatingMatrix, counts: Counts) -> Array:
    """Return the pooled correlation of clinicians in resamples: from counts (B, clusters) to (B,).

    NaN where no response has two clinicians, or none varies.
    """
    clinicians = grid.of_kind("clinician")
    drawn = weighted(grid, counts, "paper")
    z_sum, number = drawn.panel(clinicians)
    values, known = drawn.values[:, clinicians].T, drawn.known[:, clinicians].T
    factor, mean = drawn.factor[:, clinicians], drawn.mean[:, clinicians]
    squares = factor**2 @ values**2 - 2 * (factor**2 * mean) @ values
    squares += (factor * mean) ** 2 @ known
    weights = drawn.weights * (number >= 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (weights * z_sum).sum(axis=1) / (weights * number).sum(axis=1)
        centre = centre[:, None]
        total = z_sum - number * centre
        squares_about_centre = squares - 2 * centre * z_sum + number * centre**2
        denominator = (weights * (number - 1) * squares_about_centre).sum(axis=1)
        numerator = (weights * (total**2 - squares_about_centre)).sum(axis=1)
        least = ROUNDING * weights.sum(axis=1)
        return np.where(denominator > least, numerator / denominator, np.nan)


def jury_reliability(scope: Scope) -> Reliability:
    """Return the jury's ICC(C,2) with the clinicians' mean and its interval, as in the table."""
    grid, jury, method = scope.grid, scope.jury, scope.options.method
    if jury is None:
        return Reliability(
            "jury", notes=(undefined("nobody_on_jury", "no juror has rated in this study"),)
        )
    pair = columns(grid, jury, method)
    both = pair.both
    clinicians, scorer = pair.clinicians[both], pair.scorer[both]
    reason, interval = why_undefined(clinicians, scorer), UNDEFINED
    if not reason:
        weights = left_out(grid.n_clusters)
        interval = jackknife_interval(scorer_iccs(grid, [jury], method, weights)[:, 0])
    coverage = remarks.coverage(int(jury.present(grid).sum()), len(both), len(scorer), len(both))
    row = Reliability("jury", column_icc(clinicians, scorer, method), notes=noted(reason, coverage))
    return _reliability(scope, row, both, interval, jury.members)


def _reliability(
    scope: Scope, row: Reliability, rows: Flags, interval: Interval, jurors: Sequence[str] = ()
) -> Reliability:
    """Return a reliability with its interval and the counts of its rows."""
    instances = scope.grid.instances(rows)
    return replace(
        row,
        low=interval.low,
        high=interval.high,
        n_responses=int(rows.sum()),
        n_instances=instances,
        notes=noted(
            *row.notes,
            scope.analysed,
            remarks.few_instances(instances),
            remarks.simulated(scope.simulated & {*jurors, *scope.clinicians}),
        ),
    )
