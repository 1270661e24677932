"""Anchor responses: scored by the same juror again a week later or more, to see if it changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
from scipy import special

from calibration import remarks
from calibration.agreement import LEAST_RESPONSES, columns
from calibration.bootstrap import BootstrapPlan, percentile_interval, replicates
from calibration.differences import holm
from calibration.icc import UNDEFINED, Interval
from calibration.monitoring.drift import z_icc
from calibration.monitoring.rows import AnchorRow
from calibration.notes import Note, note, noted
from calibration.rating_matrix import required_criteria
from calibration.scope import Scope
from calibration.scores import Array, Integers, RubricShape, Scores
from calibration.test_retest import icc_one
from calibration.values import NAN

LEAST_INSTANCES = 2
CONFIDENCE = 0.95
MIN_GAP = timedelta(days=7)  # replicates made within a week show a juror's noise, not its drift
READING_KEYS = ["response_id", "instance_id", "benchmark", "rater", "pass_", "replicate"]
SCORE_KEYS = ["response_id", "rater", "pass_", "replicate"]


def anchor_rows(scope: Scope, jurors: Sequence[str], readings: pd.DataFrame) -> list[AnchorRow]:
    """Return how the scores of each juror, and then of the jury, have changed on its anchor.

    Parameters
    ----------
    scope : Scope
        The ICCs are with its clinicians; responses they did not rate count only for the shift.
    jurors : the jury
    readings : DataFrame
        As `anchors` returns it; only the scope's benchmarks are taken.

    Returns
    -------
    list of AnchorRow
        Empty where no juror has an anchor. A juror without one has n_responses 0 and a note.
        NaN where undefined. p by t with instances - 1 degrees of freedom; p_holm is Holm's.
    """
    analysed = readings[readings["benchmark"].isin(scored_benchmarks(scope))]
    if not analysed["rater"].isin(list(jurors)).any():
        return []
    rows = [
        _row(scope, f"juror:{name}", (name,), analysed[analysed["rater"] == name])
        for name in jurors
    ]
    adjusted = holm(np.array([row.p for row in rows]))
    rows = [replace(row, p_holm=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    if len(jurors) == 1:
        return rows
    return [*rows, _row(scope, "jury", tuple(jurors), _jury_readings(analysed, jurors))]


def scored_benchmarks(scope: Scope) -> set[str]:
    """Return the benchmarks with composites, those of responses that are but counted among them."""
    counted = (benchmark for benchmark, raters, _ in scope.elsewhere if raters)
    return {*scope.composites["benchmark"].unique(), *counted}


def mean_shift(differences: Array, clusters: Integers) -> tuple[float, Interval, float]:
    """Return the mean of differences, its 95 % interval over clusters, and the p of a mean of 0.

    SE = sqrt(m / (m - 1) * sum over clusters of (sum of residuals)^2) / n, t with m - 1
    degrees of freedom: with one difference a cluster this is the paired t test. Interval and p
    are NaN with fewer than 2 clusters; p is 1 where all differences are 0, and NaN where they
    are all equal and not 0, since they have no variance.
    (Cameron & Miller 2015, Journal of Human Resources 50, 317.)
    """
    if not len(differences):
        return NAN, UNDEFINED, NAN
    mean, m = float(differences.mean()), len(np.unique(clusters))
    if m < LEAST_INSTANCES:
        return mean, UNDEFINED, NAN
    _, cluster = np.unique(clusters, return_inverse=True)
    sums = np.bincount(cluster, weights=differences - mean)
    error = float(np.sqrt(m / (m - 1) * np.square(sums).sum()) / len(differences))
    if error <= 1e-12:
        return mean, Interval(mean, mean), 1.0 if abs(mean) <= 1e-12 else NAN
    reach = float(special.stdtrit(m - 1, (1 + CONFIDENCE) / 2)) * error
    p = 2 * float(special.stdtr(m - 1, -abs(mean) / error))
    return mean, Interval(mean - reach, mean + reach), p


def _jury_readings(readings: pd.DataFrame, jurors: Sequence[str]) -> pd.DataFrame:
    """Return the jury's first and latest mean on responses that all its jurors scored again."""
    of_jurors = readings[readings["rater"].isin(list(jurors))]
    grouped = of_jurors.groupby(["response_id", "instance_id", "benchmark"])
    means = grouped.agg(
        first=("first", "mean"),
        latest=("latest", "mean"),
        first_at=("first_at", "min"),
        latest_at=("latest_at", "max"),
        jurors=("rater", "nunique"),
    ).reset_index()
    return means[means["jurors"] == len(jurors)]


def _row(scope: Scope, scorer: str, members: Sequence[str], readings: pd.DataFrame) -> AnchorRow:
    pair = readings[["first", "latest"]].to_numpy(dtype=np.float64)
    _, clusters = np.unique(readings["instance_id"].to_numpy(dtype=str), return_inverse=True)
    shift, ends, p = mean_shift(pair[:, 1] - pair[:, 0], clusters)
    clinical, iccs, change = _with_clinicians(scope, readings)
    return AnchorRow(
        benchmark=scope.name,
        scorer=scorer,
        n_responses=len(pair),
        n_instances=len(np.unique(clusters)),
        first_day=readings["first_at"].min().date() if len(readings) else None,
        latest_day=readings["latest_at"].max().date() if len(readings) else None,
        mean_first=float(pair[:, 0].mean()) if len(pair) else NAN,
        mean_latest=float(pair[:, 1].mean()) if len(pair) else NAN,
        shift=shift,
        low=ends.low,
        high=ends.high,
        p=p,
        p_holm=p,
        icc_one=icc_one(pair),
        n_clinical=clinical,
        icc_first=float(iccs[0]),
        icc_latest=float(iccs[1]),
        change=float(iccs[1] - iccs[0]),
        change_low=change.low,
        change_high=change.high,
        notes=noted(*_notes(scope, members, pair, clinical)),
    )


def _with_clinicians(scope: Scope, readings: pd.DataFrame) -> tuple[int, Array, Interval]:
    """Return how many anchor responses clinicians rated, both ICCs, and the change's interval."""
    if scope.jury is None:
        return 0, np.full(2, np.nan), UNDEFINED
    place = {name: row for row, name in enumerate(scope.grid.responses)}
    rated = readings[readings["response_id"].isin(place)]
    rows = rated["response_id"].map(place).to_numpy(dtype=np.int64)
    x = columns(scope.grid, scope.jury, scope.options.method).clinicians[rows]
    is_rated = ~np.isnan(x)
    if is_rated.sum() < LEAST_RESPONSES:
        return int(is_rated.sum()), np.full(2, np.nan), UNDEFINED
    _, clusters = np.unique(scope.grid.clusters[rows][is_rated], return_inverse=True)
    y = rated[["first", "latest"]].to_numpy(dtype=np.float64)[is_rated].T

    def iccs_of_both(counts: Array) -> Array:
        weights = counts[:, clusters]
        return np.column_stack([z_icc(weights, x[is_rated], scores) for scores in y])

    m = int(clusters.max()) + 1
    drawn = replicates(
        iccs_of_both, BootstrapPlan(m, len(clusters), scope.options.reps, scope.options.seed)
    )
    return (
        len(clusters),
        iccs_of_both(np.ones((1, m)))[0],
        percentile_interval(drawn[:, 1] - drawn[:, 0]),
    )


def _notes(
    scope: Scope, members: Sequence[str], pair: Array, clinical: int
) -> Iterator[Note | None]:
    if not len(pair):
        yield note(
            "no_anchor",
            "no anchor: no response scored again at least {days} days later",
            days=MIN_GAP.days,
        )
        return
    if np.ptp(pair[:, 1] - pair[:, 0]) == 0 and pair[0, 0] != pair[0, 1]:
        yield note(
            "same_move", "every score moved by the same amount: there is no spread for a test"
        )
    if clinical < LEAST_RESPONSES:
        yield note(
            "few_anchors_rated",
            "{responses} of these responses rated by clinicians: no ICC",
            responses=clinical,
        )
    yield remarks.simulated(scope.simulated & set(members))


def anchors(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the first and the latest composite of every response a juror scored again later.

    Parameters
    ----------
    readings : DataFrame
        response_id, instance_id, benchmark, rater, criterion, pass_, replicate, score and at,
        a row for each score. A score that replaced another of the same replicate is not a
        second reading: an equal one would not have been stored.
    rubrics : benchmark -> shape

    Returns
    -------
    DataFrame
        response_id, instance_id, benchmark, rater, first, latest, first_at, latest_at, with the
        two readings at least 7 days apart. A reading without all criteria has no composite.
    """
    ordered = _complete(readings, rubrics)
    pairs = ordered.groupby(["response_id", "instance_id", "benchmark", "rater"])
    first_and_latest = pairs.agg(
        first=("composite", "first"),
        latest=("composite", "last"),
        first_at=("at", "first"),
        latest_at=("at", "last"),
    ).reset_index()
    return first_and_latest[
        first_and_latest["latest_at"] - first_and_latest["first_at"] >= MIN_GAP
    ].reset_index(drop=True)


def without_later(scores: Scores, readings: pd.DataFrame) -> Scores:
    """Return the scores without those by a juror a week or more after its first of the response.

    Such readings show how a juror has changed; averaged with the first they would hide that.
    `readings` are as in `anchors`.
    """
    complete = _complete(readings, scores.rubrics)
    first = complete.groupby(["response_id", "rater"])["at"].transform("min")
    later = pd.MultiIndex.from_frame(complete.loc[complete["at"] - first >= MIN_GAP, SCORE_KEYS])
    is_later = pd.MultiIndex.from_frame(scores.ratings[SCORE_KEYS]).isin(later)
    return replace(scores, ratings=scores.ratings[~is_later].reset_index(drop=True))


def _complete(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the readings with all criteria, each with its composite and time, in order."""
    required = required_criteria(rubrics, None)
    needed_criteria = pd.MultiIndex.from_tuples(
        [(name, criterion) for name, criteria in required.items() for criterion in criteria]
    )
    is_required = pd.MultiIndex.from_frame(readings[["benchmark", "criterion"]]).isin(
        needed_criteria
    )
    grouped = readings[is_required].dropna(subset=["score"]).groupby(READING_KEYS, sort=False)
    composites = grouped.agg(
        composite=("score", "mean"), given=("score", "size"), at=("at", "max")
    ).reset_index()
    n_required = composites["benchmark"].map(
        {name: len(criteria) for name, criteria in required.items()}
    )
    complete = composites[composites["given"] == n_required]
    return complete.sort_values(["at", "replicate"], kind="stable")
