"""Predict the clinicians' mean over all responses and their likely score on each, from a jury."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.decision import Decision, DecisionKind
from calibration.headlines import VERDICTS
from calibration.json_values import json_value
from calibration.notes import Note, Noted, note, noted, simulated_in, undefined
from calibration.predicting.conformal import (
    DIGITS,
    ConformalMap,
    RatedResponses,
    cross_conformal,
    held_out_coverage,
)
from calibration.predicting.prediction_powered import (
    LEAST_WEIGHED,
    UNLIKE,
    MeanEstimate,
    PredictionPowered,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
    stratified,
)
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import RubricShape, Scores
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, NAN, AnalysisOptions
from calibration.verdict import Verdicts
from data.errors import BadInput, TooFew

COLUMNS = (
    *("response_id", "benchmark", "instance_id", "jury", "clinician_scale", "low", "high"),
    *("rated_by_clinicians", "notes"),
)
IN_JSON = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}
NO_AGREEMENT = AgreementRow("", "jury")
SUMMED = ("n_both", "n_fit", "n_calibration", "n_predicted", "n_checked")
USABLE = (DecisionKind.USABLE, DecisionKind.USABLE_COMBINED)


@dataclass(frozen=True)
class PredictedRow(Noted):
    """One benchmark, or all combined. Means and q are in points; undefined is NaN, see `notes`.

    Attributes
    ----------
    n_both, n_fit, n_calibration : int
        Responses with composites of jury and clinicians; those the map was fitted on; and
        instances that its error was estimated from.
    q : half the mean width of the intervals of single responses, before any cut at the scale
    n_predicted : responses with a value on the clinicians' scale
    mean_clinicians, mean_jury, mean_corrected : of the rated, of all, prediction-powered
    weight, n_rated, n_unrated, gain : lambda, n, N and ratio of variances of the last
    rated_unrated_difference : of jury means, in standard deviations
    coverage : share of `n_checked` rated responses inside intervals computed without them
    agreement : the jury's row of the agreement table
    verdict : the kind of the study's decision on the jury, such as "non_inferior"
    """

    benchmark: str
    n_both: int = 0
    n_fit: int = 0
    n_calibration: int = 0
    q: float = NAN
    n_predicted: int = 0
    mean_clinicians: float = NAN
    clinicians_low: float = NAN
    clinicians_high: float = NAN
    mean_jury: float = NAN
    mean_corrected: float = NAN
    low: float = NAN
    high: float = NAN
    weight: float = NAN
    n_rated: int = 0
    n_unrated: int = 0
    gain: float = NAN
    rated_unrated_difference: float = NAN
    coverage: float = NAN
    n_checked: int = 0
    agreement: AgreementRow = NO_AGREEMENT
    verdict: str = ""

    @property
    def validated(self) -> bool:
        """Whether real jurors agree with real clinicians as well as the study's protocol asks."""
        return self.verdict == DecisionKind.NON_INFERIOR and not self.simulated

    @property
    def unlike(self) -> bool:
        """Whether the jury scores the rated responses higher or lower than the others."""
        return abs(self.rated_unrated_difference) > UNLIKE


def to_json(row: PredictedRow) -> dict[str, Any]:
    """Return a row as `analyse predict --json` has it; what is undefined becomes None."""
    figures = {IN_JSON.get(name, name): value for name, value in json_value(row).items()}
    agreement, notes = (
        figures.pop("agreement"),
        {key: figures.pop(key) for key in ("note", "notes")},
    )
    ends = {"icc": "icc", "icc_low": "low", "icc_high": "high"}
    figures |= {name: agreement[field] for name, field in ends.items()}
    figures["n_instances"] = agreement["n_instances"]
    return figures | {"validated": row.validated} | notes


def predictions(
    scores: Scores,
    options: AnalysisOptions,
    verdicts: Verdicts,
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> tuple[list[PredictedRow], pd.DataFrame]:
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
    rows : for each benchmark, then "combined" if there are several: its means are the
        benchmarks' weighted by their responses, whatever share of each was rated
    responses : a row of `COLUMNS` for each response that the jury scored, predicted from its own
        benchmark's ratings alone. clinician_scale is the map's value, low and high the ends of the
        conformal interval within the scale, in points and NaN where undefined, see `notes`

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
    rows: list[PredictedRow] = []
    means: list[PredictionPowered] = []
    responses: list[pd.DataFrame] = []
    for scope in scopes(scores, options, tick):
        if scope.jury is None:
            raise TooFew("no juror has rated anything: there is no jury to predict with")
        agreement = verdicts.jury_on(scope.name)
        row = PredictedRow(
            scope.name, agreement=agreement, verdict=verdicts.decisions[scope.name].kind.value
        )
        if scope.name == COMBINED:
            rows.append(
                _combined(row, scope, why_undefined_scope(scores, scope), rows, means, level)
            )
            continue
        row, own, table = _of_benchmark(row, scores, scope, level)
        rows.append(row)
        means.append(own)
        responses.append(table)
    return rows, pd.concat(responses, ignore_index=True)


def _of_benchmark(
    row: PredictedRow, scores: Scores, scope: Scope, level: float
) -> tuple[PredictedRow, PredictionPowered, pd.DataFrame]:
    composites = composites_of_both(scores, scope)
    scored = composites[composites["jury"].notna()].reset_index(drop=True)
    _, instances = np.unique(scored["instance_id"].to_numpy(dtype=str), return_inverse=True)
    jury, clinicians = (scored[who].to_numpy(dtype=np.float64) for who in ("jury", "clinicians"))
    rated = ~np.isnan(clinicians)
    sample = RatedSample(
        clinicians[rated], jury[rated], instances[rated], jury[~rated], instances[~rated]
    )
    both = RatedResponses(sample.jury, sample.clinicians, sample.instances)
    reason, seed = why_undefined_scope(scores, scope), scope.options.seed
    fitted = cross_conformal(both, level, seed)
    coverage, n_checked = held_out_coverage(both, level, seed)
    means = prediction_powered_mean(sample)
    row = replace(
        row,
        **_figures(means, level),
        n_both=len(both.jury),
        n_fit=fitted.n_fit,
        n_calibration=fitted.n_calibration,
        q=fitted.radius,
        n_predicted=len(scored) if fitted.map else 0,
        n_rated=len(both.jury),
        n_unrated=len(sample.unrated_jury),
        rated_unrated_difference=standardised_difference(sample.jury, sample.unrated_jury),
        coverage=coverage,
        n_checked=n_checked,
    )
    notes = [reason] if reason else [*_notes(scope, sample, row, fitted), _unscored(composites)]
    row = replace(row, notes=noted(*notes, _simulated(scope)))
    responses = _responses(scope, scored, fitted, scores.rubrics[scope.name], reason)
    return row, means, responses


def _figures(means: PredictionPowered, level: float) -> dict[str, Any]:
    """Return the fields of a row that are its means."""
    ends = zip(("clinicians_low", "clinicians_high"), means.clinicians.interval(level), strict=True)
    low, high = means.corrected.interval(level)
    return dict(ends) | {
        "mean_clinicians": means.clinicians.mean,
        "mean_jury": means.jury,
        "mean_corrected": means.corrected.mean,
        "low": low,
        "high": high,
        "weight": means.weight,
        "gain": means.gain,
    }


def _combined(
    row: PredictedRow,
    scope: Scope,
    reason: Note | None,
    rows: Sequence[PredictedRow],
    means: Sequence[PredictionPowered],
    level: float,
) -> PredictedRow:
    defined = [(own, mean) for own, mean in zip(rows, means, strict=True) if own.n_rated]
    defined = [] if reason else defined
    sizes = [own.n_rated + own.n_unrated for own, _ in defined]
    together = PredictionPowered(MeanEstimate(), MeanEstimate(), NAN, NAN)
    if defined:
        together = PredictionPowered(
            clinicians=stratified([mean.clinicians for _, mean in defined], sizes),
            corrected=stratified([mean.corrected for _, mean in defined], sizes),
            jury=float(np.average([mean.jury for _, mean in defined], weights=sizes)),
            weight=NAN,
        )
    checked = sum(own.n_checked for own in rows)
    covered = sum(own.coverage * own.n_checked for own in rows if own.n_checked)
    in_no_mean = [own.benchmark for own in rows if not own.n_rated]
    without_interval = [own.benchmark for own, mean in defined if np.isnan(mean.clinicians.error)]
    notes = [
        _warning(scope, row.verdict),
        note(
            "weighed_by_responses",
            "each benchmark weighs by its responses; q and lambda are each benchmark's own",
        ),
    ]
    if in_no_mean:
        left_out = "left out of all means, without a response that both rated: {benchmarks}"
        notes.append(note("in_no_mean", left_out, benchmarks=in_no_mean))
    if without_interval:
        too_few = "no interval: too few rated instances of {benchmarks}"
        notes.append(note("no_mean_interval", too_few, benchmarks=without_interval))
    return replace(
        row,
        **_figures(together, level),
        **{name: sum(getattr(own, name) for own in rows) for name in SUMMED},
        n_rated=sum(own.n_rated for own, _ in defined),
        n_unrated=sum(own.n_unrated for own, _ in defined),
        coverage=covered / checked if checked else NAN,
        notes=noted(*([reason] if reason else notes), _simulated(scope)),
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
    for name, own, least in (("jury", of_jurors, needed), ("clinicians", of_clinicians, 1)):
        grouped = scope.composites[own].groupby("response_id")["composite"]
        means = grouped.agg(["mean", "count"])
        of_enough = means["mean"].where(means["count"] >= least).astype(float)
        table[name] = table["response_id"].map(of_enough)
    return table


def _responses(
    scope: Scope,
    scored: pd.DataFrame,
    fitted: ConformalMap,
    rubric: RubricShape,
    reason: Note | None,
) -> pd.DataFrame:
    """Return a row of `COLUMNS` for each response that the jury scored."""
    jury = scored["jury"].to_numpy(dtype=np.float64)
    low, high = fitted.interval(jury)
    outside = fitted.map.outside(jury) if fitted.map else np.zeros(len(jury), dtype=np.bool_)
    cut = (low < rubric.low - 10**-DIGITS) | (high > rubric.high + 10**-DIGITS)
    simulated = note("raters_simulated", "simulated raters") if _simulated(scope) else None
    by_case = {
        (is_outside, is_cut): noted(
            note("outside_map", "outside what the map was fitted on") if is_outside else None,
            note("cut_at_scale", "cut at the scale") if is_cut else None,
            reason or fitted.reason,
            simulated,
        )
        for is_outside in (False, True)
        for is_cut in (False, True)
    }
    notes = [by_case[case] for case in zip(outside.tolist(), cut.tolist(), strict=True)]
    responses = scored.assign(
        clinician_scale=fitted.map(jury) if fitted.map else NAN,
        low=np.maximum(low, rubric.low),  # no composite lies outside its scale
        high=np.minimum(high, rubric.high),
        rated_by_clinicians=scored["clinicians"].notna(),
        notes=pd.Series(notes, scored.index, dtype=object),
    )
    return responses[list(COLUMNS)]


def _notes(
    scope: Scope, sample: RatedSample, row: PredictedRow, fitted: ConformalMap
) -> Iterator[Note | None]:
    """Yield the notes on a benchmark's figures: what they rest on and what they do not show."""
    yield _warning(scope, row.verdict)
    yield fitted.reason
    if fitted.map and np.ptp(fitted.map.values) <= 10**-DIGITS:
        yield note(
            "map_level",
            "the map is flat: every response gets the same value, whatever the jury's score",
        )
    if row.unlike:
        yield note(
            "rated_unlike",
            "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others "
            "{unrated:.2f}, {deviations:.2f} standard deviations apart, and unless the rated were "
            "drawn at random the corrected mean may be wrong",
            rated=sample.jury.mean(),
            unrated=sample.unrated_jury.mean(),
            deviations=abs(row.rated_unrated_difference),
        )
    if not row.n_rated:
        yield undefined("none_of_both", "no response has composites of both jury and clinicians")
    elif not row.n_unrated:
        yield note(
            "all_rated",
            "every response that the jury rated is rated by clinicians: nothing to correct with",
        )
    elif sample.n_instances < LEAST_WEIGHED:
        yield note(
            "jury_left_out",
            "fewer than {least} rated instances: the jury is left out of the mean",
            least=LEAST_WEIGHED,
        )
    elif not row.weight:
        yield note(
            "jury_tells_nothing",
            "lambda is 0: the jury's scores say nothing about the clinicians' mean and are not used",
        )
    yield remarks.few_instances(sample.n_instances)
    if sample.has_repeated_instances:
        yield note(
            "errors_over_instances",
            "instances have several responses: standard errors are over instances",
        )
    if scope.jury:
        yield remarks.fewer_jurors(scope.jury.needed, len(scope.jury.members))
    yield remarks.incomplete(
        sum(scope.incomplete.get(name, 0) for name in (*scope.jurors, *scope.clinicians))
    )


def _warning(scope: Scope, verdict: str) -> Note | None:
    """Return the note that a jury is simulated or not validated, or None."""
    if _simulated(scope):
        return note(
            "simulated_validate_not", "NOT VALIDATED: a jury is not validated by simulated raters"
        )
    if verdict == DecisionKind.NON_INFERIOR:
        return None
    return note("not_validated", f"NOT VALIDATED: {VERDICTS[verdict]}", verdict=verdict)


def _unscored(composites: pd.DataFrame) -> Note | None:
    """Return a note that counts the responses the jury did not score; None where there are none."""
    unscored = composites[composites["jury"].isna()]
    if unscored.empty:
        return None
    return note(
        "jury_unscored",
        "the jury scored {scored} of {responses:response}: the others are left out, {rated} of them "
        "rated by clinicians",
        scored=len(composites) - len(unscored),
        responses=len(composites),
        rated=int(unscored["clinicians"].notna().sum()),
    )


def _simulated(scope: Scope) -> Note | None:
    return remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})


def decide(rows: Sequence[PredictedRow], verdicts: Mapping[str, Decision]) -> Decision:
    """Return whether the predictions may be used: the study's verdict on the jury that decides.

    Parameters
    ----------
    rows : a row a benchmark, then "combined" if there are several; at least one
    verdicts : of `verdict.decisions` on the same jury, by benchmark

    Returns
    -------
    Decision
        Of subject "predictions"; figures, reasons and kind are those of the verdict that decides,
        on all combined, or on the only benchmark; where that on all combined is undefined, on
        the first benchmark that is not validated. "simulated" where any rater is; "usable" where
        it is "non_inferior" on every benchmark, and "usable_combined" where only on all combined.
    """
    row = rows[-1]
    parts = [own for own in rows if own.benchmark != COMBINED]
    if row.benchmark != COMBINED or verdicts[COMBINED].kind is DecisionKind.UNDEFINED:
        row = min(parts, key=lambda own: own.validated)
    verdict = verdicts[row.benchmark]
    kind, reasons, next_step = verdict.kind, [*verdict.reasons], verdict.next
    for other in rows:
        if other is not row and not other.validated:
            name = other.benchmark
            reasons.append(note("unshown_in", "not shown in {benchmark} by itself", benchmark=name))
    for own in rows:
        if unlike := own.told("rated_unlike"):
            what = {"benchmark": own.benchmark, "what": unlike}
            reasons.append(note("of_benchmark", "in {benchmark}, {what}", **what))
    if raters := simulated_in(rows):
        kind, reasons = DecisionKind.SIMULATED, [note(*SIMULATED, raters=raters)]
        next_step = note(
            "do_rate_for_real",
            "have clinicians rate a random sample, and a real jury score every response",
        )
    elif kind is DecisionKind.NON_INFERIOR:
        kind = USABLE[not all(own.validated for own in parts)]
        at_random = "draw the responses that clinicians rate at random"
        is_unlike = any(own.unlike for own in rows)
        next_step = note("do_rate_at_random", at_random) if is_unlike else None
    return Decision(
        "predictions",
        kind,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        reasons=tuple(reasons),
        basis=(
            note(
                "both_rated",
                "{responses:response} of {instances:instance} that both the jury and clinicians "
                "rated",
                responses=row.agreement.n_responses,
                instances=row.agreement.n_instances,
            ),
            note(
                "predicted_for",
                "{responses:response} that the jury alone rated",
                responses=row.n_unrated,
            ),
        ),
        next=next_step,
    )
