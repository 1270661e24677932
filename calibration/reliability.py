"""How reliable raters are: clinicians among one another, and whoever rates the same again."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.crossed import MixedModel, crossed_model, reliability_intervals
from calibration.icc import (
    UNDEFINED,
    agreement_interval,
    icc_agreement,
    mean_squares,
    spearman_brown,
)
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import Note, Noted, note, noted, undefined
from calibration.other_measures import spearman
from calibration.rating_matrix import FLAT, on_shared_scale, required_criteria
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.values import NAN, NORMAL_95, AnalysisOptions

FORMS = ("ICC(C,k)", "ICC(C,1)", "ICC(A,1)")  # the one to quote first
SIZES = range(1, 7)  # raters whose mean is planned for
LEAST_REPEATED = 3  # responses rated again, for an ICC
ITEM = ["benchmark", "response_id", "criterion"]
READING = ["pass_", "replicate"]
CHANGE = NORMAL_95 * math.sqrt(2)  # standard errors that two scores must differ by


@dataclass(frozen=True)
class ReliabilityRow(Noted):
    """One reliability of the clinicians of one benchmark.

    Attributes
    ----------
    form : of `FORMS`: consistency (C) or agreement (A), of the panel as it rated (k) or of one
    icc, low, high : with the 95 % interval; raters are random where the form is agreement
    n_raters : the panel's k: clinicians a response, their harmonic mean where that varies
    n_responses, n_instances, n_clinicians : what it rests on
    sem : standard error of measurement, in points of the scale; None where the form is consistency
    smallest_change : points by which two scores must differ to differ by more than that error
    """

    benchmark: str
    criterion: str
    form: str
    icc: float = NAN
    low: float = NAN
    high: float = NAN
    n_raters: float = NAN
    n_responses: int = 0
    n_instances: int = 0
    n_clinicians: int = 0
    sem: float | None = NAN
    smallest_change: float | None = NAN


@dataclass(frozen=True)
class PanelSizeRow(Noted):
    """The reliability of the mean of a number of raters: a decision study.

    Attributes
    ----------
    raters : "clinicians" or "jurors"; jurors with one another, not with clinicians
    number : of raters, m
    consistency, agreement : ICC(C,m) and ICC(A,m); None where only an ICC(C) is assumed
    """

    raters: str
    number: int
    consistency: float = NAN
    agreement: float | None = NAN


def clinician_reliability(scores: Scores, options: AnalysisOptions) -> list[ReliabilityRow]:
    """Return how reliable the clinicians are as a reference, on each benchmark and combined."""
    return [
        row
        for scope in scopes(scores, options)
        for row in reliability_rows(scope, why_undefined_scope(scores, scope))
    ]


def reliability_rows(scope: Scope, reason: Note | None = None) -> list[ReliabilityRow]:
    """Return the reliability of a scope's clinicians, one row a form of `FORMS`.

    From the variances of `crossed.crossed_model` of raw composites, whatever the method, with the
    intervals of `crossed.reliability_intervals`. `reason` says why the scope has no agreement, if
    it has none.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30. SEM and smallest detectable change: de Vet,
    Terwee, Knol & Bouter (2006), Journal of Clinical Epidemiology 59, 1033.
    """
    grid = scope.grid
    table = grid.composites[:, grid.of_kind("clinician")]
    model = MixedModel(reason=reason) if reason else crossed_model(table)
    number, k = (~np.isnan(table)).sum(axis=1), NAN
    if len(number):
        is_even = number.min() == number.max()
        k = float(number[0] if is_even else len(number) / (1 / number).sum())
    responses, instances = len(grid.responses), grid.n_clusters
    notes = noted(
        model.reason,
        note(
            "reliability_shared",
            "{responses} responses from {instances:instance}: the intervals take them as independent",
            responses=responses,
            instances=instances,
        )
        if responses > instances and not model.reason
        else None,
        remarks.simulated(scope.simulated & set(scope.clinicians)),
    )
    consistency, agreement = reliability_intervals(model, table)
    rows = []
    for form, single, ends, times in (
        (FORMS[0], model.consistency(), consistency, k),
        (FORMS[1], model.consistency(), consistency, 1.0),
        (FORMS[2], model.agreement(), agreement, 1.0),
    ):
        sem = math.sqrt(model.rater + model.residual) if form == "ICC(A,1)" else None
        rows.append(
            ReliabilityRow(
                benchmark=scope.name,
                criterion=scope.options.criterion or "composite",
                form=form,
                icc=spearman_brown(single, times),
                low=spearman_brown(ends.low, times),
                high=spearman_brown(ends.high, times),
                n_raters=k,
                n_responses=responses,
                n_instances=instances,
                n_clinicians=len(scope.clinicians),
                sem=sem,
                smallest_change=None if sem is None else CHANGE * sem,
                notes=notes,
            )
        )
    return rows


def panel_sizes(raters: str, model: MixedModel) -> list[PanelSizeRow]:
    """Return ICC(C,m) and ICC(A,m) of the mean of 1 to 6 raters, from the variances of single ones.

    References
    ----------
    Brennan (2001), Generalizability Theory: decision studies. Spearman-Brown where consistency
    alone counts.
    """
    return [
        PanelSizeRow(raters, m, model.consistency(m), model.agreement(m), notes=noted(model.reason))
        for m in SIZES
    ]


def assumed_panel_sizes(single: float) -> list[PanelSizeRow]:
    """Return ICC(C,m) of the mean of 1 to 6 clinicians, from an assumed ICC of single ones."""
    return [PanelSizeRow("clinicians", m, spearman_brown(single, m), None) for m in SIZES]


@dataclass(frozen=True)
class RetestRow(Noted):
    """How far one juror agrees with itself on one benchmark.

    Attributes
    ----------
    icc_one : ICC(A,1) of composites: responses in rows, replicates in columns
    sd_points : standard deviation of the juror's composites of one response, in points
    exact_agreement : share of pairs of replicates that gave a criterion of a response the same
        score; means of distributions are the same only where they are equal
    n_responses, n_replicates : responses with two composites or more; the most that one has
    """

    benchmark: str
    juror: str
    icc_one: float
    sd_points: float
    exact_agreement: float
    n_responses: int
    n_replicates: int


def test_retest_rows(scope: Scope, scores: Scores) -> list[RetestRow]:
    """Return how far each juror of a scope agrees with itself.

    Composites of single readings, raw under both methods, on all responses of the scope's
    benchmarks: no clinician is needed. A reading without all criteria has no composite.
    """
    composed = {*scope.composites["benchmark"]}
    rubrics = {name: own for name, own in scores.rubrics.items() if name in composed}
    required = required_criteria(rubrics, scope.options.criterion)
    pairs = [(name, criterion) for name, own in required.items() for criterion in own]
    read = scores.ratings[scores.ratings["rater"].isin(scope.jurors)].dropna(subset=["score"])
    if scope.options.criterion is None:
        read = read.assign(score=on_shared_scale(read, scores.rubrics))
    read = read[pd.MultiIndex.from_frame(read[["benchmark", "criterion"]]).isin(pairs)]
    return [
        _retest_row(scope, name, read[read["rater"] == name], required) for name in scope.jurors
    ]


def _retest_row(
    scope: Scope, name: str, read: pd.DataFrame, required: Mapping[str, Sequence[str]]
) -> RetestRow:
    single = table = np.full((0, 1), np.nan)
    incomplete = 0
    if len(read):
        scores = read.set_index([*ITEM, *READING])["score"].astype(float).unstack(READING)
        given = scores.groupby(ITEM[:2]).agg(["mean", "count"]).stack(READING, future_stack=True)
        given = given[given["count"] > 0]
        benchmarks = given.index.get_level_values("benchmark").astype(str)
        needed = benchmarks.map(lambda one: len(required[one]))
        complete = given.loc[given["count"] == needed, "mean"]
        incomplete = len(given) - len(complete)
        single, table = (
            one.to_numpy(dtype=np.float64) for one in (scores, complete.unstack(READING))
        )
    number = (~np.isnan(table)).sum(axis=1)
    return RetestRow(
        benchmark=scope.name,
        juror=name,
        icc_one=icc_one(table[number == table.shape[1]]),
        sd_points=sd_within(table),
        exact_agreement=same_pairs(single),
        n_responses=int((number > 1).sum()),
        n_replicates=int(number.max(initial=0)),
        notes=noted(
            *_retest_notes(table),
            remarks.incomplete(incomplete),
            remarks.simulated(scope.simulated & {name}),
        ),
    )


def _retest_notes(table: Array) -> Iterator[Note | None]:
    """Yield why there is no ICC of a juror's composites, and how many responses are left out."""
    number, replicates = (~np.isnan(table)).sum(axis=1), table.shape[1]
    if not (number > 1).any():
        yield undefined(
            "no_replicates", "no replicates; a jury run with 3 verdicts of each juror makes them"
        )
        return
    whole = table[number == replicates]
    yield why_no_icc(whole)
    if short := len(table) - len(whole):
        yield note(
            "without_all_replicates",
            "{responses:response} without all replicates left out of the ICC",
            responses=short,
        )


def icc_one(table: Array) -> float:
    """Return ICC(A,1) of composites (n, m), repeated readings in columns, no NaN.

    Whoever is stricter the second time loses by it. NaN with fewer than 3 responses or 2 readings,
    or where all composites are equal.
    """
    return NAN if why_no_icc(table) else icc_agreement(table)


def why_no_icc(table: Array) -> Note | None:
    """Return why composites (n, m) of repeated readings have no ICC, or None when they have one."""
    if len(table) < LEAST_REPEATED or table.shape[1] < 2:
        return undefined(
            "few_repeats",
            "{repeats} complete repeats, and {least} are needed",
            repeats=len(table),
            least=LEAST_REPEATED,
        )
    if np.ptp(table) <= FLAT * np.abs(table).max():
        return undefined("repeats_alike", "all first and repeated composites are the same")
    return None


def sd_within(table: Array) -> float:
    """Return the standard deviation of replicates about their response's mean, in points.

    Parameters
    ----------
    table : shape (n, m), NaN where missing

    Returns
    -------
    float
        sqrt(sum of squares within responses / sum of (replicates - 1)); NaN where no
        response has two.

    References
    ----------
    Bland & Altman (1996), BMJ 312, 1654: within-subject standard deviation.
    """
    number = (~np.isnan(table)).sum(axis=1)
    twice, free = table[number > 1], int((number[number > 1] - 1).sum())
    if not free:
        return NAN
    away = twice - np.nanmean(twice, axis=1, keepdims=True)
    return float(np.sqrt(np.nansum(away**2) / free))


def same_pairs(table: Array) -> float:
    """Return the share of pairs of replicates with the same score.

    Parameters
    ----------
    table : shape (n, m), scores of a response and criterion in a row, NaN where missing

    Returns
    -------
    float
        0 to 1, over all pairs of all rows; NaN where no row has two scores.
    """
    first, second = np.triu_indices(table.shape[1], 1)
    apart = np.abs(table[:, first] - table[:, second])
    both = ~np.isnan(apart)
    return float((apart[both] <= FLAT).mean()) if both.any() else NAN


def intra_rater_row(scope: Scope) -> AgreementRow:
    """Return how far clinicians agree with themselves, pooled over all hidden repeats."""
    composites = scope.repeats.composites
    pairs = composites[["first", "again"]].to_numpy(dtype=np.float64)
    reason, instances = why_no_icc(pairs), composites["instance_id"].nunique()
    exact = ends = UNDEFINED
    if not reason:
        ms, n = mean_squares(pairs), len(pairs)
        squares = float(ms.rows), float(ms.columns), float(ms.error)
        exact = agreement_interval(squares, (n - 1, 1, n - 1), (2, n))
        numbers = np.unique(composites["instance_id"].to_numpy(dtype=str), return_inverse=True)[1]
        kept = left_out(instances)[:, numbers] > 0
        iccs = [icc_one(pairs[rows]) for rows in kept]
        ends = jackknife_interval(np.array(iccs), single=True)
    is_varied = not reason and (np.ptp(pairs, axis=0) > 0).all()
    return AgreementRow(
        benchmark=scope.name,
        scorer="intra_rater",
        icc=icc_one(pairs),
        f_low=exact.low,
        f_high=exact.high,
        low=ends.low,
        high=ends.high,
        n_responses=len(pairs),
        n_instances=instances,
        n_clinicians=composites["rater"].nunique(),
        n_missing=len(scope.repeats.unpaired),
        spearman=spearman(*pairs.T) if is_varied else NAN,
        notes=noted(
            reason,
            None if reason else remarks.few_repeats(len(pairs)),
            *remarks.same_again(scope.repeats.scores),
            _within_clinicians(scope, pairs),
            remarks.unpaired(len(scope.repeats.unpaired)),
            remarks.few_instances(instances),
            remarks.simulated(scope.simulated & set(composites["rater"])),
        ),
    )


def _within_clinicians(scope: Scope, pairs: Array) -> Note | None:
    """Give the ICC of repeats less each clinician's mean, where there are several clinicians."""
    raters = scope.repeats.composites["rater"]
    if raters.nunique() < 2:
        return None
    clinical = scope.composites[scope.composites["kind"] == "clinician"]
    means = clinical.groupby("rater")["composite"].mean()
    own = raters.map(means).to_numpy(dtype=np.float64)
    return remarks.own_means(icc_one(pairs - own[:, None]))
