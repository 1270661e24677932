"""Predict the clinicians' mean over all responses and their likely score on each, from a jury."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.notes import Note, note, noted
from calibration.predicting.conformal import (
    DIGITS,
    ConformalMap,
    RatedResponses,
    cross_conformal,
    held_out_coverage,
    within_scale,
)
from calibration.predicting.prediction_powered import (
    MeanEstimate,
    PredictionPowered,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
    stratified,
)
from calibration.predicting.rows import PredictedRow, row_notes, simulated, unscored, warning
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Array, RubricShape, Scores
from calibration.values import COMBINED, NAN, AnalysisOptions
from calibration.verdict import Verdicts
from data.errors import BadInput, TooFew

COLUMNS = (
    *("response_id", "benchmark", "instance_id", "jury", "clinician_scale", "low", "high"),
    *("rated_by_clinicians", "notes"),
)


@dataclass(frozen=True, eq=False)
class PredictionTables:
    """A row for each benchmark, and a table of `COLUMNS` with a row for each response."""

    rows: list[PredictedRow]
    responses: pd.DataFrame


@dataclass(frozen=True, eq=False)
class _BenchmarkPrediction:
    """The predictions for one benchmark."""

    row: PredictedRow
    means: PredictionPowered
    responses: pd.DataFrame


def predictions(
    scores: Scores,
    options: AnalysisOptions,
    verdicts: Verdicts,
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> PredictionTables:
    """Return the clinicians' mean over all responses, and their likely composite on each.

    Parameters
    ----------
    scores : Scores
    options : AnalysisOptions
        As for the verdicts. The jury's composite on a response is the mean of its jurors'
        composites, in points.
    verdicts : Verdicts
        The study's decisions on this jury, with the agreement table they rest on.
    level : float, in (0, 1)
        Of the intervals of single responses and of means; that of the ICC is 95 %.
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
        If `level` or the seed is out of range, or as `table.agreement_table`.
    TooFew
        If there are no jurors.
    """
    if not 0 < level < 1:
        raise BadInput(f"level {level:g}: it is a share between 0 and 1, such as 0.9")
    if options.seed < 0:
        raise BadInput(f"seed {options.seed}: it is 0 or more")
    parts: list[_BenchmarkPrediction] = []
    rows: list[PredictedRow] = []
    for scope in scopes(scores, options, tick):
        if scope.jury is None:
            raise TooFew("no juror has rated anything: there is no jury to predict with")
        if scope.name == COMBINED:
            rows.append(_combined(scores, scope, parts, level, verdicts))
        else:
            parts.append(_benchmark_prediction(scores, scope, level, verdicts))
            rows.append(parts[-1].row)
    return PredictionTables(rows, pd.concat([part.responses for part in parts], ignore_index=True))


def _benchmark_prediction(
    scores: Scores, scope: Scope, level: float, verdicts: Verdicts
) -> _BenchmarkPrediction:
    composites = composites_of_both(scores, scope)
    scored = composites[composites["jury"].notna()].reset_index(drop=True)
    sample, reason = rated_sample(scored), why_undefined_scope(scores, scope)
    fitted = cross_conformal(rated_responses(sample), level, scope.options.seed)
    coverage = held_out_coverage(rated_responses(sample), level, scope.options.seed)
    means = prediction_powered_mean(sample)
    row = replace(
        _row(scope, means, level, verdicts),
        n_both=len(sample.clinicians),
        n_fit=fitted.n_fit,
        n_calibration=fitted.n_calibration,
        q=fitted.radius,
        n_predicted=len(scored) if fitted.map else 0,
        n_rated=len(sample.clinicians),
        n_unrated=len(sample.unrated_jury),
        rated_unrated_difference=standardised_difference(sample.jury, sample.unrated_jury),
        coverage=coverage.share,
        n_checked=coverage.checked,
    )
    notes = [reason] if reason else [*row_notes(scope, sample, row, fitted), unscored(composites)]
    row = replace(row, notes=noted(*notes, simulated(scope)))
    rubric = scores.rubrics[scope.name]
    return _BenchmarkPrediction(
        row, means, predicted_responses(scope, scored, fitted, rubric, reason)
    )


def _row(scope: Scope, means: PredictionPowered, level: float, verdicts: Verdicts) -> PredictedRow:
    clinicians_interval, corrected_interval = (
        estimate.interval(level) for estimate in (means.clinicians, means.corrected)
    )
    return PredictedRow(
        benchmark=scope.name,
        mean_clinicians=means.clinicians.mean,
        clinicians_low=clinicians_interval[0],
        clinicians_high=clinicians_interval[1],
        mean_jury=means.jury,
        mean_corrected=means.corrected.mean,
        low=corrected_interval[0],
        high=corrected_interval[1],
        weight=means.weight,
        gain=means.gain,
        agreement=verdicts.jury_on(scope.name),
        verdict=verdicts.decisions[scope.name].kind.value,
    )


def _combined(
    scores: Scores,
    scope: Scope,
    parts: Sequence[_BenchmarkPrediction],
    level: float,
    verdicts: Verdicts,
) -> PredictedRow:
    reason, rows = why_undefined_scope(scores, scope), [part.row for part in parts]
    defined = [part for part in parts if part.row.n_rated and not reason]
    checked = sum(row.n_checked for row in rows)
    covered = sum(row.coverage * row.n_checked for row in rows if row.n_checked)
    undefined_benchmarks = [row.benchmark for row in rows if not row.n_rated]
    row = _row(scope, _stratified(defined), level, verdicts)
    notes = (
        [reason]
        if reason
        else [warning(scope, row.verdict), *_combined_notes(defined, undefined_benchmarks)]
    )
    return replace(
        row,
        n_both=sum(row.n_both for row in rows),
        n_fit=sum(row.n_fit for row in rows),
        n_calibration=sum(row.n_calibration for row in rows),
        n_predicted=sum(row.n_predicted for row in rows),
        n_rated=sum(part.row.n_rated for part in defined),
        n_unrated=sum(part.row.n_unrated for part in defined),
        coverage=covered / checked if checked else NAN,
        n_checked=checked,
        notes=noted(*notes, simulated(scope)),
    )


def _stratified(parts: Sequence[_BenchmarkPrediction]) -> PredictionPowered:
    """Return the means of benchmarks together, each weighted by its responses."""
    if not parts:
        return PredictionPowered(MeanEstimate(), MeanEstimate(), NAN, NAN)
    sizes = [part.row.n_rated + part.row.n_unrated for part in parts]
    return PredictionPowered(
        clinicians=stratified([part.means.clinicians for part in parts], sizes),
        corrected=stratified([part.means.corrected for part in parts], sizes),
        jury=float(np.average([part.means.jury for part in parts], weights=sizes)),
        weight=NAN,
    )


def _combined_notes(
    parts: Sequence[_BenchmarkPrediction], undefined_benchmarks: Sequence[str]
) -> Iterator[Note | None]:
    yield note(
        "weighed_by_responses",
        "each benchmark weighs by its responses; q and lambda are each benchmark's own",
    )
    yield (
        note(
            "in_no_mean",
            "left out of all means, without a response that both rated: {benchmarks}",
            benchmarks=undefined_benchmarks,
        )
        if undefined_benchmarks
        else None
    )
    without_interval = [
        part.row.benchmark for part in parts if np.isnan(part.means.clinicians.error)
    ]
    yield (
        note(
            "no_mean_interval",
            "no interval: too few rated instances of {benchmarks}",
            benchmarks=without_interval,
        )
        if without_interval
        else None
    )


def composites_of_both(scores: Scores, scope: Scope) -> pd.DataFrame:
    """Return the composites of the jury and of the clinicians on every response of a benchmark.

    Returns
    -------
    DataFrame
        response_id, instance_id, benchmark, jury and clinicians: raw composites in points,
        the mean over jurors and over clinicians, NaN where there is none. Sorted by response_id,
        so that a seed gives the same figures in whatever order a study was imported.
    """
    responses = scores.responses[scores.responses["benchmark"] == scope.name]
    table = responses.sort_values("response_id", ignore_index=True)
    members, needed = (scope.jury.members, scope.jury.needed) if scope.jury else ((), 1)
    of_jurors = scope.composites["rater"].isin(members)
    of_clinicians = scope.composites["kind"] == "clinician"
    jury, clinicians = (
        _mean_composites(scope.composites[of_jurors], needed),
        _mean_composites(scope.composites[of_clinicians], 1),
    )
    ids = table["response_id"]
    return table.assign(jury=ids.map(jury), clinicians=ids.map(clinicians))


def _mean_composites(composites: pd.DataFrame, needed: int) -> "pd.Series[float]":
    means = composites.groupby("response_id")["composite"].agg(["mean", "count"])
    return means["mean"].where(means["count"] >= needed).astype(float)


def rated_sample(scored: pd.DataFrame) -> RatedSample:
    """Return the responses that the jury scored: those that clinicians rated, and the others."""
    instances = np.unique(scored["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
    jury, clinicians = _array(scored["jury"]), _array(scored["clinicians"])
    rated = ~np.isnan(clinicians)
    of_rated = (clinicians[rated], jury[rated], instances[rated])
    return RatedSample(*of_rated, jury[~rated], instances[~rated])


def rated_responses(sample: RatedSample) -> RatedResponses:
    """Return the responses that both rated."""
    return RatedResponses(sample.jury, sample.clinicians, sample.instances)


def predicted_responses(
    scope: Scope,
    scored: pd.DataFrame,
    fitted: ConformalMap,
    rubric: RubricShape,
    reason: Note | None,
) -> pd.DataFrame:
    """Return a row of `COLUMNS` for each response that the jury rated, in `scored`.

    clinician_scale is the map's value, low and high the ends of the conformal interval within
    the scale, all in points and NaN where undefined. `notes` give the reason, and say whether
    the response is outside the range that the map was fitted on, its interval was cut at the
    ends of the scale, or raters are simulated. `reason` is why the whole benchmark is
    undefined, or None.
    """
    jury = _array(scored["jury"])
    value = fitted.map(jury) if fitted.map else np.full(len(jury), np.nan)
    ends = fitted.interval(jury)
    low, high = within_scale(ends, (rubric.low, rubric.high))
    outside = fitted.map.outside(jury) if fitted.map else np.zeros(len(jury), dtype=np.bool_)
    cut = (ends[0] < rubric.low - 10**-DIGITS) | (ends[1] > rubric.high + 10**-DIGITS)
    notes_by_case = _notes_by_case(reason or fitted.reason, _is_simulated(scope))
    notes = [notes_by_case[pair] for pair in zip(outside.tolist(), cut.tolist(), strict=True)]
    responses = scored.assign(
        clinician_scale=value,
        low=low,
        high=high,
        rated_by_clinicians=scored["clinicians"].notna(),
        notes=pd.Series(notes, scored.index, dtype=object),
    )
    return responses[list(COLUMNS)]


def _notes_by_case(
    reason: Note | None, is_simulated: bool
) -> dict[tuple[bool, bool], tuple[Note, ...]]:
    """Return the notes of a response by whether it is outside the map and cut at the scale."""
    always = reason, note("raters_simulated", "simulated raters") if is_simulated else None
    return {
        (outside, cut): noted(
            note("outside_map", "outside what the map was fitted on") if outside else None,
            note("cut_at_scale", "cut at the scale") if cut else None,
            *always,
        )
        for outside in (False, True)
        for cut in (False, True)
    }


def _is_simulated(scope: Scope) -> bool:
    return bool(scope.simulated & {*scope.jurors, *scope.clinicians})


def _array(column: "pd.Series[float]") -> Array:
    return np.asarray(column, dtype=np.float64)
