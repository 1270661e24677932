"""Predict the clinicians' mean over all responses and their likely score on each, from a jury."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.codes import PlanningCode
from calibration.predicting.conformal import (
    DIGITS,
    Conformal,
    Rated,
    cross_conformal,
    held_out_coverage,
    within_scale,
)
from calibration.predicting.prediction_powered import (
    Mean,
    PredictionPowered,
    Sample,
    prediction_powered_mean,
    standardised_difference,
    stratified,
)
from calibration.predicting.rows import PredictedRow, row_notes, simulated, unscored, warning
from calibration.scope import Asked, Scope, Sitting, scopes, why_undefined_scope
from calibration.scores import Array, RubricShape, Scores
from calibration.values import COMBINED, NAN, Note, note, noted
from calibration.verdict import Verdicts
from data.errors import BadInput, TooFew


@dataclass(frozen=True, eq=False)
class Predicted:
    """A row a benchmark, and a table with a row a response: `COLUMNS`."""

    rows: list[PredictedRow]
    responses: pd.DataFrame


@dataclass(frozen=True, eq=False)
class _Part:
    """What was found of one benchmark."""

    row: PredictedRow
    means: PredictionPowered
    responses: pd.DataFrame


def predictions(
    scores: Scores,
    sitting: Sitting,
    asked: Asked,
    verdicts: Verdicts,
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> Predicted:
    """Return the clinicians' mean over all responses, and their likely composite on each.

    Parameters
    ----------
    scores : Scores
    sitting : Sitting
        The jury. Its composite on a response is the mean of its jurors', in points.
    asked : Asked
        Criterion and seed, as for the verdicts.
    verdicts : of the study on this jury, with their table
    level : in (0, 1), of the intervals of single responses and of means; the ICC's is 95 %
    tick : called with the share of the work done

    Returns
    -------
    Predicted
        A row for each benchmark, then "combined" if there are several: its means are the
        benchmarks' weighted by their responses, whatever share of each was rated. A response
        is predicted from its own benchmark's ratings alone.

    Raises
    ------
    BadInput
        If `level` or the seed is out of range; what `table.agreement_table` raises.
    TooFew
        If there are no jurors.
    """
    if not 0 < level < 1:
        raise BadInput(f"level {level:g}: it is a share between 0 and 1, such as 0.9")
    if asked.seed < 0:
        raise BadInput(f"seed {asked.seed}: it is 0 or more")
    parts: list[_Part] = []
    rows: list[PredictedRow] = []
    for scope in scopes(scores, sitting, asked, tick):
        if scope.jury is None:
            raise TooFew("no juror has rated anything: there is no jury to predict with")
        if scope.name == COMBINED:
            rows.append(_combined(scores, scope, parts, level, verdicts))
        else:
            parts.append(_part(scores, scope, level, verdicts))
            rows.append(parts[-1].row)
    return Predicted(rows, pd.concat([part.responses for part in parts], ignore_index=True))


def _part(scores: Scores, scope: Scope, level: float, verdicts: Verdicts) -> _Part:
    every = composites_of_both(scores, scope)
    heard = every[every["jury"].notna()].reset_index(drop=True)
    sample, reason = sample_of(heard), why_undefined_scope(scores, scope)
    fitted = cross_conformal(rated_of(sample), level, scope.asked.seed)
    checked = held_out_coverage(rated_of(sample), level, scope.asked.seed)
    means = prediction_powered_mean(sample)
    row = replace(
        _row(scope, means, level, verdicts),
        n_both=len(sample.clinicians),
        n_fit=fitted.n_fit,
        n_calibration=fitted.n_calibration,
        q=fitted.radius,
        n_predicted=len(heard) if fitted.map else 0,
        n_rated=len(sample.clinicians),
        n_unrated=len(sample.unrated_jury),
        rated_unrated_difference=standardised_difference(sample.jury, sample.unrated_jury),
        coverage=checked.share,
        n_checked=checked.checked,
    )
    told = [reason] if reason else [*row_notes(scope, sample, row, fitted), unscored(every)]
    row = replace(row, notes=noted(*told, simulated(scope)))
    shape = scores.rubrics[scope.name]
    return _Part(row, means, predicted_responses(scope, heard, fitted, shape, reason))


def _row(scope: Scope, means: PredictionPowered, level: float, verdicts: Verdicts) -> PredictedRow:
    alone, corrected = (one.interval(level) for one in (means.clinicians, means.corrected))
    return PredictedRow(
        benchmark=scope.name,
        mean_clinicians=means.clinicians.mean,
        clinicians_low=alone[0],
        clinicians_high=alone[1],
        mean_jury=means.jury,
        mean_corrected=means.corrected.mean,
        low=corrected[0],
        high=corrected[1],
        weight=means.weight,
        gain=means.gain,
        agreement=verdicts.jury_on(scope.name),
        verdict=verdicts.decisions[scope.name].kind.value,
    )


def _combined(
    scores: Scores, scope: Scope, parts: Sequence[_Part], level: float, verdicts: Verdicts
) -> PredictedRow:
    reason, rows = why_undefined_scope(scores, scope), [part.row for part in parts]
    known = [part for part in parts if part.row.n_rated and not reason]
    checked = sum(row.n_checked for row in rows)
    covered = sum(row.coverage * row.n_checked for row in rows if row.n_checked)
    left = [row.benchmark for row in rows if not row.n_rated]
    row = _row(scope, _stratified(known), level, verdicts)
    told = [reason] if reason else [warning(scope, row.verdict), *_combined_notes(known, left)]
    return replace(
        row,
        n_both=sum(row.n_both for row in rows),
        n_fit=sum(row.n_fit for row in rows),
        n_calibration=sum(row.n_calibration for row in rows),
        n_predicted=sum(row.n_predicted for row in rows),
        n_rated=sum(part.row.n_rated for part in known),
        n_unrated=sum(part.row.n_unrated for part in known),
        coverage=covered / checked if checked else NAN,
        n_checked=checked,
        notes=noted(*told, simulated(scope)),
    )


def _stratified(parts: Sequence[_Part]) -> PredictionPowered:
    """Return the means of benchmarks together, each weighted by its responses."""
    if not parts:
        return PredictionPowered(Mean(), Mean(), NAN, NAN)
    sizes = [part.row.n_rated + part.row.n_unrated for part in parts]
    return PredictionPowered(
        clinicians=stratified([part.means.clinicians for part in parts], sizes),
        corrected=stratified([part.means.corrected for part in parts], sizes),
        jury=float(np.average([part.means.jury for part in parts], weights=sizes)),
        weight=NAN,
    )


def _combined_notes(known: Sequence[_Part], left: Sequence[str]) -> Iterator[Note | None]:
    yield note(PlanningCode.WEIGHED_BY_RESPONSES)
    yield note(PlanningCode.IN_NO_MEAN, benchmarks=left) if left else None
    alone = [part.row.benchmark for part in known if np.isnan(part.means.clinicians.error)]
    yield note(PlanningCode.NO_MEAN_INTERVAL, benchmarks=alone) if alone else None


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
