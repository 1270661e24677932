"""How each way of scoring gives a model its mean on a benchmark: clinicians, jury, or both."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.bootstrap import Counts
from calibration.codes import NoteCode as Code
from calibration.models.cells import Cells, cells
from calibration.models.rows import CORRECTED
from calibration.models.scores import Table
from calibration.predicting.prediction_powered import (
    Sample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.scores import Array, Integers
from calibration.values import Note, note

UNLIKE = 0.25  # standard deviations; below it samples are commonly taken as alike (Rubin 2001)
LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess


@dataclass(frozen=True, eq=False)
class Estimate:
    """Means of models on benchmarks by one way of scoring; each is the sum of its terms.

    Attributes
    ----------
    by : "clinicians", "jury" or "corrected"
    terms : Cells
    counted : shape (responses,), True where a response's score enters
    instances : shape (models, benchmarks), instances with a score; of "corrected" those
        that clinicians rated, on which its certainty rests
    warning : of "corrected", where rated responses may be no random sample, or None
    """

    by: str
    terms: tuple[Cells, ...]
    counted: pd.Series
    instances: Integers
    warning: Note | None = None

    def means(self) -> Array:
        """Return shape (models, benchmarks); NaN where there is none."""
        means: Array = self.drawn([np.ones((1, len(one))) for one in self.terms[0].sums])[0]
        return means

    def drawn(self, counts: Sequence[Counts]) -> Array:
        """Return the means of resamples, shape (B, models, benchmarks)."""
        total: Array = np.sum([term.drawn(counts) for term in self.terms], axis=0)
        return total


def estimate(table: Table, by: str) -> Estimate:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians" and "jury" are the means over the responses that have such a score.
    "corrected" is the prediction-powered mean of the model's own responses to the
    benchmark (`prediction_powered.prediction_powered_mean`): the jury on the responses
    nobody rated, moved by what clinicians and jury differ by on those that both rated. A
    jury that favours one model is so corrected for that model. Where clinicians rated all of
    them there is nothing to predict, and it is the clinicians' mean; else NaN with fewer than
    5 rated instances. In resamples its weight stays as it is: how the weight varies changes the
    mean's variance in the second order only (Angelopoulos et al. 2023, section 6).
    """
    if by == CORRECTED:
        return _corrected(table)
    values = table.frame[by]
    own = cells(table, values)
    return Estimate(by, (own,), values.notna(), _instances(own))


def _corrected(table: Table) -> Estimate:
    frame = table.frame
    rated = frame["clinicians"].notna() & frame["jury"].notna()
    far = frame["clinicians"].isna() & frame["jury"].notna()
    near, beyond = pd.Series(np.nan, frame.index), pd.Series(np.nan, frame.index)
    plain: list[tuple[int, int]] = []
    for _, own in frame.groupby(["benchmark", "model"]):
        here, there = own[rated[own.index]], own[far[own.index]]
        place = table.layout.benchmarks.index(own["benchmark"].iloc[0])
        model = int(own["model"].iloc[0])
        if own["clinicians"].notna().all():
            near[own.index] = own["clinicians"]
            plain.append((place, model))
            continue
        if here["instance"].nunique() < LEAST_RATED:
            continue
        weight = prediction_powered_mean(_sample(here, there)).weight
        near[here.index] = here["clinicians"] - weight * here["jury"]
        beyond[there.index] = weight * there["jury"]
        if not weight:
            plain.append((place, model))
    first, second = cells(table, near), cells(table, beyond)
    for place, model in plain:  # nothing to add, whatever is drawn: 0 / 1, never 0 / 0
        second.sums[place][:, model], second.numbers[place][:, model] = 0.0, 1.0
    counted = near.notna() | beyond.notna()
    return Estimate(CORRECTED, (first, second), counted, _instances(first), _unlike(frame))


def _unlike(frame: pd.DataFrame) -> Note | None:
    """Name the benchmarks whose rated responses the jury scores otherwise than the unrated.

    By over a quarter of a standard deviation (`standardised_difference`) and two standard
    errors; each model's own mean taken out, and the responses to one instance averaged.
    """
    unlike = []
    for name, own in frame.dropna(subset=["jury"]).groupby("benchmark"):
        apart = own["jury"] - own.groupby("model")["jury"].transform("mean")
        means = apart.groupby([own["clinicians"].notna(), own["instance"]]).mean()
        rated = means.index.get_level_values(0).to_numpy(dtype=np.bool_)
        near, far = means.to_numpy()[rated], means.to_numpy()[~rated]
        size = float(standardised_difference(near, far))
        if abs(size) > UNLIKE and abs(size) > 2 * np.sqrt(1 / len(near) + 1 / len(far)):
            unlike.append((str(name), size))
    return note(Code.NOT_RANDOM, benchmarks=unlike) if unlike else None


def _sample(rated: pd.DataFrame, unrated: pd.DataFrame) -> Sample:
    return Sample(
        clinicians=rated["clinicians"].to_numpy(),
        jury=rated["jury"].to_numpy(),
        instances=rated["instance"].to_numpy(),
        unrated_jury=unrated["jury"].to_numpy(),
        unrated_instances=unrated["instance"].to_numpy(),
    )


def _instances(own: Cells) -> Integers:
    return np.stack([(one > 0).sum(axis=0) for one in own.numbers], axis=-1).astype(np.int64)
