"""What a juror scored again at least a week later: an anchor, and no part of what it said then."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pandas as pd

from calibration.composite import required_criteria
from calibration.scores import RubricShape, Scores

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
