"""Single responses: what the jury said, and what clinicians would probably have said."""

import numpy as np
import pandas as pd

from calibration.codes import PlanningCode
from calibration.predicting.conformal import Conformal, Rated, within_scale
from calibration.predicting.isotonic import DIGITS
from calibration.predicting.prediction_powered import Sample
from calibration.scope import Scope
from calibration.scores import Array, RubricShape, Scores
from calibration.values import Note, note, noted

COLUMNS = (
    *("response_id", "benchmark", "instance_id", "jury", "clinician_scale", "low", "high"),
    *("rated_by_clinicians", "notes"),
)


def composites_of_both(scores: Scores, scope: Scope) -> pd.DataFrame:
    """Return the composites of jury and clinicians on every response of a benchmark.

    Returns
    -------
    DataFrame
        response_id, instance_id, benchmark, jury and clinicians: raw composites in points,
        the mean over jurors and over clinicians, NaN where there is none; by response_id,
        so that no seed depends on the order in which a study was imported.
    """
    own = scores.responses[scores.responses["benchmark"] == scope.name]
    table = own.sort_values("response_id", ignore_index=True)
    members, needed = (scope.jury.members, scope.jury.needed) if scope.jury else ((), 1)
    of_jurors = scope.given["rater"].isin(members)
    of_clinicians = scope.given["kind"] == "clinician"
    jury, clinicians = _means(scope.given[of_jurors], needed), _means(scope.given[of_clinicians], 1)
    ids = table["response_id"]
    return table.assign(jury=ids.map(jury), clinicians=ids.map(clinicians))


def _means(given: pd.DataFrame, needed: int) -> "pd.Series[float]":
    found = given.groupby("response_id")["composite"].agg(["mean", "count"])
    return found["mean"].where(found["count"] >= needed).astype(float)


def sample_of(heard: pd.DataFrame) -> Sample:
    """Return the responses that the jury rated as a sample that clinicians rated, and the rest."""
    instances = np.unique(heard["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
    jury, clinicians = _array(heard["jury"]), _array(heard["clinicians"])
    rated = ~np.isnan(clinicians)
    of_rated = (clinicians[rated], jury[rated], instances[rated])
    return Sample(*of_rated, jury[~rated], instances[~rated])


def rated_of(sample: Sample) -> Rated:
    """Return the responses that both rated."""
    return Rated(sample.jury, sample.clinicians, sample.instances)


def predicted_responses(
    scope: Scope, heard: pd.DataFrame, fitted: Conformal, shape: RubricShape, reason: Note | None
) -> pd.DataFrame:
    """Return a row of `COLUMNS` for each response that the jury rated, in `heard`.

    clinician_scale is the map's value, low and high the ends of the conformal interval within
    the scale, all in points and NaN where undefined. `notes` say why, and what is outside what
    the map was fitted on, cut at the ends of the scale, or of simulated raters. `reason` is
    why the whole benchmark is undefined, or None.
    """
    jury = _array(heard["jury"])
    value = fitted.map(jury) if fitted.map else np.full(len(jury), np.nan)
    ends = fitted.interval(jury)
    low, high = within_scale(ends, (shape.low, shape.high))
    outside = fitted.map.outside(jury) if fitted.map else np.zeros(len(jury), dtype=np.bool_)
    cut = (ends[0] < shape.low - 10**-DIGITS) | (ends[1] > shape.high + 10**-DIGITS)
    every = _every_note(reason or fitted.reason, _is_simulated(scope))
    notes = [every[pair] for pair in zip(outside.tolist(), cut.tolist(), strict=True)]
    found = heard.assign(
        clinician_scale=value,
        low=low,
        high=high,
        rated_by_clinicians=heard["clinicians"].notna(),
        notes=pd.Series(notes, heard.index, dtype=object),
    )
    return found[list(COLUMNS)]


def _every_note(
    reason: Note | None, is_simulated: bool
) -> dict[tuple[bool, bool], tuple[Note, ...]]:
    """Return the notes of a response by whether it is outside the map and cut at the scale."""
    always = reason, note(PlanningCode.RATERS_SIMULATED) if is_simulated else None
    return {
        (outside, cut): noted(
            note(PlanningCode.OUTSIDE_MAP) if outside else None,
            note(PlanningCode.CUT_AT_SCALE) if cut else None,
            *always,
        )
        for outside in (False, True)
        for cut in (False, True)
    }


def _is_simulated(scope: Scope) -> bool:
    return bool(scope.simulated & {*scope.jurors, *scope.clinicians})


def _array(column: "pd.Series[float]") -> Array:
    return np.asarray(column, dtype=np.float64)
