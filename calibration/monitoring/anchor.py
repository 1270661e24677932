"""Anchor responses: scored again by the same juror at least a week later, to see whether it has changed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
from scipy import special

from calibration import remarks
from calibration.agreement import LEAST_RESPONSES, columns
from calibration.bootstrap import Resampling, percentile_interval, replicates
from calibration.codes import MonitoringCode
from calibration.composite import required_criteria
from calibration.holm import holm
from calibration.icc import UNDEFINED, Interval
from calibration.monitoring.drift import z_icc
from calibration.monitoring.rows import AnchorRow
from calibration.scope import Scope
from calibration.scores import Array, Integers, RubricShape, Scores
from calibration.test_retest import icc_one
from calibration.values import NAN, Note, note, noted

LEAST_INSTANCES = 2
CONFIDENCE = 0.95


def anchor_rows(scope: Scope, jurors: Sequence[str], found: pd.DataFrame) -> list[AnchorRow]:
    """Return how each juror, and then the jury, has changed on its anchor.

    Parameters
    ----------
    scope : Scope
        Its clinicians are whom the ICCs are with; responses they did not rate count for the
        shift alone.
    jurors : the jury
    found : DataFrame
        As `anchors` returns it; only the scope's benchmarks are taken.

    Returns
    -------
    list of AnchorRow
        None where no juror has an anchor. A juror without one has n_responses 0 and says so.
        NaN where undefined. p by t with instances - 1 degrees of freedom; p_holm is Holm's.
    """
    here = found[found["benchmark"].isin(scope.given["benchmark"].unique())]
    if not here["rater"].isin(list(jurors)).any():
        return []
    rows = [_row(scope, f"juror:{name}", (name,), here[here["rater"] == name]) for name in jurors]
    adjusted = holm(np.array([row.p for row in rows]))
    rows = [replace(row, p_holm=float(p)) for row, p in zip(rows, adjusted, strict=True)]
    if len(jurors) == 1:
        return rows
    return [*rows, _row(scope, "jury", tuple(jurors), _together(here, jurors))]


def mean_shift(differences: Array, clusters: Integers) -> tuple[float, Interval, float]:
    """Return the mean of differences, its 95 % interval over clusters, and the p of 0.

    SE = sqrt(m / (m - 1) * sum over clusters of (sum of residuals)^2) / n, t with m - 1
    degrees of freedom: with one difference a cluster that is the paired t test. NaN interval
    and p with fewer than 2 clusters; p is 1 where all differences are 0, and NaN where they
    are all the same and not 0: they have no spread to judge by.
    (Cameron & Miller 2015, Journal of Human Resources 50, 317.)
    """
    if not len(differences):
        return NAN, UNDEFINED, NAN
    mean, m = float(differences.mean()), len(np.unique(clusters))
    if m < LEAST_INSTANCES:
        return mean, UNDEFINED, NAN
    _, place = np.unique(clusters, return_inverse=True)
    sums = np.bincount(place, weights=differences - mean)
    error = float(np.sqrt(m / (m - 1) * np.square(sums).sum()) / len(differences))
    if error <= 1e-12:
        return mean, Interval(mean, mean), 1.0 if abs(mean) <= 1e-12 else NAN
    reach = float(special.stdtrit(m - 1, (1 + CONFIDENCE) / 2)) * error
    p = 2 * float(special.stdtr(m - 1, -abs(mean) / error))
    return mean, Interval(mean - reach, mean + reach), p


def _together(found: pd.DataFrame, jurors: Sequence[str]) -> pd.DataFrame:
    """Return the jury's means on the responses that are anchors of all its jurors."""
    own = found[found["rater"].isin(list(jurors))]
    grouped = own.groupby(["response_id", "instance_id", "benchmark"])
    means = grouped.agg(
        first=("first", "mean"),
        latest=("latest", "mean"),
        first_at=("first_at", "min"),
        latest_at=("latest_at", "max"),
        jurors=("rater", "nunique"),
    ).reset_index()
    return means[means["jurors"] == len(jurors)]


def _row(scope: Scope, scorer: str, members: Sequence[str], own: pd.DataFrame) -> AnchorRow:
    pair = own[["first", "latest"]].to_numpy(dtype=np.float64)
    _, clusters = np.unique(own["instance_id"].to_numpy(dtype=str), return_inverse=True)
    shift, ends, p = mean_shift(pair[:, 1] - pair[:, 0], clusters)
    clinical, iccs, change = _with_clinicians(scope, own)
    return AnchorRow(
        benchmark=scope.name,
        scorer=scorer,
        n_responses=len(pair),
        n_instances=len(np.unique(clusters)),
        first_day=own["first_at"].min().date() if len(own) else None,
        latest_day=own["latest_at"].max().date() if len(own) else None,
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


def _with_clinicians(scope: Scope, own: pd.DataFrame) -> tuple[int, Array, Interval]:
    """Return how many anchors clinicians rated, the ICCs first and latest, and their change."""
    if scope.jury is None:
        return 0, np.full(2, np.nan), UNDEFINED
    place = {name: row for row, name in enumerate(scope.grid.responses)}
    rated = own[own["response_id"].isin(place)]
    rows = rated["response_id"].map(place).to_numpy(dtype=np.int64)
    x = columns(scope.grid, scope.jury, scope.asked.method).clinicians[rows]
    kept = ~np.isnan(x)
    if kept.sum() < LEAST_RESPONSES:
        return int(kept.sum()), np.full(2, np.nan), UNDEFINED
    _, clusters = np.unique(scope.grid.clusters[rows][kept], return_inverse=True)
    y = rated[["first", "latest"]].to_numpy(dtype=np.float64)[kept].T

    def both(counts: Array) -> Array:
        weights = counts[:, clusters]
        return np.column_stack([z_icc(weights, x[kept], one) for one in y])

    m = int(clusters.max()) + 1
    drawn = replicates(both, Resampling(m, len(clusters), scope.asked.reps, scope.asked.seed))
    return len(clusters), both(np.ones((1, m)))[0], percentile_interval(drawn[:, 1] - drawn[:, 0])


def _notes(
    scope: Scope, members: Sequence[str], pair: Array, clinical: int
) -> Iterator[Note | None]:
    if not len(pair):
        yield note(MonitoringCode.NO_ANCHOR, days=APART.days)
        return
    if np.ptp(pair[:, 1] - pair[:, 0]) == 0 and pair[0, 0] != pair[0, 1]:
        yield note(MonitoringCode.SAME_MOVE)
    if clinical < LEAST_RESPONSES:
        yield note(MonitoringCode.FEW_ANCHORS_RATED, responses=clinical)
    yield remarks.simulated(scope.simulated & set(members))


APART = timedelta(days=7)  # replicates made within a week show a juror's noise, not its drift
READING = ["response_id", "instance_id", "benchmark", "rater", "pass_", "replicate"]
LATER = ["response_id", "rater", "pass_", "replicate"]


def anchors(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the first and the latest composite of every response a juror scored again later.

    Parameters
    ----------
    readings : DataFrame
        response_id, instance_id, benchmark, rater, criterion, pass_, replicate, score and at,
        a row a score. A score that replaced another of the same replicate is no second
        reading: had it been the same, nothing would have been stored.
    rubrics : benchmark -> shape

    Returns
    -------
    DataFrame
        response_id, instance_id, benchmark, rater, first, latest, first_at, latest_at; the
        two at least 7 days apart. A reading without all criteria has no composite.
    """
    ordered = _complete(readings, rubrics)
    pairs = ordered.groupby(["response_id", "instance_id", "benchmark", "rater"])
    both = pairs.agg(
        first=("composite", "first"),
        latest=("composite", "last"),
        first_at=("at", "first"),
        latest_at=("at", "last"),
    ).reset_index()
    return both[both["latest_at"] - both["first_at"] >= APART].reset_index(drop=True)


def without_later(scores: Scores, readings: pd.DataFrame) -> Scores:
    """Return the scores without what jurors said of a response a week or more after the first.

    Such readings show how a juror has changed; averaged with the first they would make what it
    said then look like what it says now. `readings` as in `anchors`.
    """
    found = _complete(readings, scores.rubrics)
    first = found.groupby(["response_id", "rater"])["at"].transform("min")
    late = pd.MultiIndex.from_frame(found.loc[found["at"] - first >= APART, LATER])
    dropped = pd.MultiIndex.from_frame(scores.ratings[LATER]).isin(late)
    return replace(scores, ratings=scores.ratings[~dropped].reset_index(drop=True))


def _complete(readings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> pd.DataFrame:
    """Return the readings with all criteria, each with its composite and time, in order."""
    required = required_criteria(rubrics, None)
    wanted = pd.MultiIndex.from_tuples(
        [(name, one) for name, criteria in required.items() for one in criteria]
    )
    asked = pd.MultiIndex.from_frame(readings[["benchmark", "criterion"]]).isin(wanted)
    grouped = readings[asked].dropna(subset=["score"]).groupby(READING, sort=False)
    found = grouped.agg(
        composite=("score", "mean"), given=("score", "size"), at=("at", "max")
    ).reset_index()
    needed = found["benchmark"].map({name: len(own) for name, own in required.items()})
    whole = found[found["given"] == needed]
    return whole.sort_values(["at", "replicate"], kind="stable")
