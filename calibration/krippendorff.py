"""Krippendorff's alpha: disagreement seen against disagreement expected, for any raters."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.scores import Array, Integers, Scores
from data.errors import BadInput


@dataclass(frozen=True, eq=False)
class FirstScores:
    """Single scores on one criterion, of the responses that a clinician scored on it.

    Attributes
    ----------
    ratings : shape (n, raters)
        The first score that a rater gave a response; NaN where there is none.
    instances : shape (n,), numbered from 0
    benchmarks : those of the n responses
    clinicians, jurors : the columns, clinicians first
    again : how many later scores each column's rater gave (repeats, replicates), left out
    """

    ratings: Array
    instances: Integers
    benchmarks: tuple[str, ...]
    clinicians: tuple[str, ...]
    jurors: tuple[str, ...]
    again: tuple[int, ...]

    @property
    def raters(self) -> tuple[str, ...]:
        """Return the rater of every column."""
        return (*self.clinicians, *self.jurors)

    def columns(self, group: str) -> list[int]:
        """Return the columns of "clinicians", or of these and of "juror:NAME" as the last."""
        own = list(range(len(self.clinicians)))
        if group == "clinicians":
            return own
        return [*own, len(own) + self.jurors.index(group.removeprefix("juror:"))]


def first_scores(
    scores: Scores, benchmarks: Sequence[str], criterion: str, jurors: Sequence[str]
) -> FirstScores:
    """Return the first score of clinicians and jurors on one criterion of some benchmarks.

    First is the lowest pass, then the lowest replicate, that has a score: a mean of two
    readings is no point of the scale, so coefficients of single scores take one of them.
    """
    read = _scored(scores, benchmarks, criterion, jurors)
    response, responses = pd.factorize(read["response_id"])
    rater, raters = pd.factorize(read["rater"])
    clinical = (read["kind"] == "clinician").to_numpy()
    clinicians = tuple(sorted(raters[np.unique(rater[clinical])]))
    place = {name: column for column, name in enumerate((*clinicians, *jurors))}
    rated = np.zeros(len(responses), dtype=np.bool_)
    rated[response[clinical]] = True
    in_rated = rated[response]
    rows = (np.cumsum(rated) - 1)[response[in_rated]]
    columns = np.array([place[name] for name in raters], dtype=np.int64)[rater[in_rated]]
    ratings = np.full((int(rated.sum()), len(place)), np.nan)
    first = ~pd.Series(rows * len(place) + columns).duplicated().to_numpy()
    values = read["score"].to_numpy(dtype=np.float64)[in_rated]
    ratings[rows[first], columns[first]] = values[first]
    instances = np.zeros(len(ratings), dtype=np.int64)
    instances[rows] = pd.factorize(read["instance_id"])[0][in_rated]
    later = np.bincount(columns[~first], minlength=len(place))
    return FirstScores(
        ratings=ratings,
        instances=instances,
        benchmarks=tuple(sorted(read.loc[clinical, "benchmark"].unique())),
        clinicians=clinicians,
        jurors=tuple(jurors),
        again=tuple(later.tolist()),
    )


def _scored(
    scores: Scores, benchmarks: Sequence[str], criterion: str, jurors: Sequence[str]
) -> pd.DataFrame:
    """Return the single scores of clinicians and jurors, an earlier reading before a later."""
    read = scores.ratings[scores.ratings["criterion"] == criterion]
    of_raters = (read["kind"] == "clinician") | read["rater"].isin(list(jurors))
    read = read[of_raters & read["benchmark"].isin(list(benchmarks)) & read["score"].notna()]
    if read[["pass_", "replicate"]].any(axis=None):
        read = read.sort_values(["pass_", "replicate"], kind="stable")
    return read


def count_ratings(ratings: Array, values: Array) -> Array:
    """Count how many raters gave each response each value.

    Parameters
    ----------
    ratings : shape (n, raters), NaN where missing
    values : shape (q,), ascending
        Every value that may occur; those that do not occur change no alpha.

    Returns
    -------
    shape (n, q)

    Raises
    ------
    BadInput
        If a rating is none of the values.

    Notes
    -----
    Counts of several groups of raters may be added.
    """
    rows, columns = np.nonzero(~np.isnan(ratings))
    scores = ratings[rows, columns]
    place = np.minimum(np.searchsorted(values, scores), len(values) - 1)
    if (odd := scores[values[place] != scores]).size:
        raise BadInput(f"the score {odd[0]:g} is none of the values {values[0]:g}..{values[-1]:g}")
    shape = (len(ratings), len(values))
    cells = np.bincount(rows * shape[1] + place, minlength=shape[0] * shape[1])
    return cells.reshape(shape).astype(np.float64)


def alpha_interval(counts: Array, values: Array) -> float:
    """Return Krippendorff's alpha with distances of an interval scale, (c - k)^2.

    Parameters
    ----------
    counts : shape (n, q)
        As `count_ratings` returns them. Any number of raters; a missing rating is just
        not counted, and a response with a single rating takes no part.
    values : shape (q,), what the columns stand for

    Returns
    -------
    float
        1 - D_observed / D_expected, at most 1: 0 is what scores handed out at random give,
        below 0 raters disagree by system. NaN where no response has two ratings, or where
        all ratings are the same: nothing varies that could be agreed on.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability, part D;
    Hayes & Krippendorff (2007), Communication Methods and Measures 1, 77.
    """
    return _alpha(_pairable(counts), values)


def alpha_ordinal(counts: Array) -> float:
    """Return Krippendorff's alpha with distances of an ordinal scale.

    The distance of two values is how many ratings lie between them: the square of the sum of
    the frequencies from one to the other, the two ends counted by half. Parameters, returns
    and source as `alpha_interval`; columns in ascending order of what they stand for.
    """
    pairable = _pairable(counts)
    totals = pairable.sum(axis=0)
    return _alpha(pairable, np.cumsum(totals) - totals / 2)


def _pairable(counts: Array) -> Array:
    pairable: Array = counts[counts.sum(axis=1) >= 2]
    return pairable


def _alpha(pairable: Array, position: Array) -> float:
    """Return alpha with the squared differences of the values' positions as distances."""
    distance = np.square(position[:, None] - position)
    totals = pairable.sum(axis=0)
    expected = float(totals @ distance @ totals)
    if not expected > 0:
        return float("nan")
    weighted = pairable / (pairable.sum(axis=1, keepdims=True) - 1)
    # A rating paired with itself lies on the diagonal, where the distance is 0.
    observed = float((weighted.T @ pairable * distance).sum())
    return 1 - (float(totals.sum()) - 1) * observed / expected
