"""Composites: one number for one rater on one response."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from calibration.scores import RubricShape, Scores

RESPONSE = ["response_id", "instance_id", "benchmark", "rater", "kind"]
RATING = [*RESPONSE, "pass_", "replicate"]


@dataclass(frozen=True, eq=False)
class Composites:
    """Composites, and how many readings were too incomplete to have one.

    Attributes
    ----------
    values : DataFrame
        response_id, instance_id, benchmark, rater, kind, composite: at most one row a
        rater and response.
    incomplete : DataFrame
        benchmark, rater, readings: how many lack a criterion of the rubric.
    """

    values: pd.DataFrame
    incomplete: pd.DataFrame


def composites(scores: Scores, criterion: str | None = None) -> Composites:
    """Average each reading over the rubric's criteria, then a rater's repeats of a response.

    c[r, i] is the mean over the criteria of the benchmark's rubric. A reading that lacks
    one of them has no composite and is counted instead. Hidden repeats and replicates are
    then averaged, so that a rater has one composite a response. A metric is not on the
    rubric: its composite is the mean of its own criteria, usually one.

    Parameters
    ----------
    scores : Scores
    criterion : str, optional
        Take this criterion alone instead of the mean; benchmarks whose rubric lacks it
        then have no composites. Metrics are unchanged.
    """
    judged = scores.ratings[scores.ratings["kind"] != "metric"]
    readings = _readings(judged, required_criteria(scores.rubrics, criterion))
    complete = readings[readings["complete"]]
    metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    measured = metrics.dropna(subset=["score"]).groupby(RATING, sort=False)["score"].mean()
    measured_table = measured.rename("composite").reset_index()
    columns = [*RATING, "composite"]
    parts = [part[columns] for part in (complete, measured_table) if len(part)]
    every = pd.concat(parts) if parts else complete[columns]
    composite = every.groupby(RESPONSE)["composite"].mean()
    return Composites(composite.reset_index(), _incomplete(readings))


def required_criteria(
    rubrics: Mapping[str, RubricShape], criterion: str | None
) -> dict[str, tuple[str, ...]]:
    """Return the criteria a composite needs on each benchmark that can have one."""
    if criterion is None:
        return {name: shape.criteria for name, shape in rubrics.items()}
    return {name: (criterion,) for name, shape in rubrics.items() if criterion in shape.criteria}


def _readings(judged: pd.DataFrame, required: Mapping[str, tuple[str, ...]]) -> pd.DataFrame:
    judged = judged[judged["benchmark"].isin(list(required))]
    wanted = pd.MultiIndex.from_tuples(
        [(name, criterion) for name, criteria in required.items() for criterion in criteria],
        names=["benchmark", "criterion"],
    )
    asked = pd.MultiIndex.from_frame(judged[["benchmark", "criterion"]]).isin(wanted)
    # A score off the rubric becomes missing, so that its reading is still seen and counted.
    read = judged.assign(composite=judged["score"].astype(float).where(asked))
    grouped = read.groupby(RATING, sort=False)["composite"]
    readings = grouped.agg(["mean", "count"]).reset_index().rename(columns={"mean": "composite"})
    needed = readings["benchmark"].map({name: len(own) for name, own in required.items()})
    return readings.assign(complete=readings["count"] == needed)


def _incomplete(readings: pd.DataFrame) -> pd.DataFrame:
    short = readings[~readings["complete"]]
    return short.groupby(["benchmark", "rater"]).size().reset_index(name="readings")
