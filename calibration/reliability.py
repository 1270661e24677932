"""How reliable the clinicians' own ratings are: the reference of every comparison."""

import math
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.crossed import (
    MixedModel,
    component_interval,
    consistency_interval,
    crossed_model,
)
from calibration.icc import UNDEFINED, spearman_brown
from calibration.notes import Note, Noted, note, noted
from calibration.scope import Scope, scopes, why_undefined_scope
from calibration.scores import Scores
from calibration.values import NAN, NORMAL_95, AnalysisOptions

FORMS = ("ICC(C,k)", "ICC(C,1)", "ICC(A,1)")  # the one to quote first
SIZES = range(1, 7)  # raters whose mean is planned for
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

    From the variances of `crossed.crossed_model` of raw composites, whatever the method, with
    Wald's exact interval of consistency and that of `crossed.component_interval`. `reason` says why
    the scope has no agreement, if it has none.

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
    consistency = agreement = UNDEFINED
    if not model.reason:
        consistency, agreement = consistency_interval(table), component_interval(model, table)
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
