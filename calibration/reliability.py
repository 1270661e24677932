"""How reliable the clinicians' own ratings are: the reference that everything is compared with."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from calibration import remarks
from calibration.codes import NoteCode as Code
from calibration.crossed import MixedModel, crossed_model
from calibration.f_interval import (
    UNDEFINED,
    Interval,
    absolute_interval,
    f_interval,
    spearman_brown,
)
from calibration.icc import mean_squares
from calibration.planning.rows import PanelSizeRow
from calibration.reliability_interval import agreement_interval, consistency_interval, design_of
from calibration.scope import Asked, Scope
from calibration.scopes import Sitting, scopes, why_undefined_scope
from calibration.scores import Array, Scores
from calibration.true_agreement import TrueAgreementRow, true_agreement_row
from calibration.values import COMBINED, NAN, Note, Noted, note, noted
from calibration.zscore import FLAT

FORMS = ("ICC(C,k)", "ICC(A,k)", "ICC(C,1)", "ICC(A,1)")  # the one to quote first
SIZES = range(1, 7)  # raters whose mean is planned for
CHANGE = 1.96 * math.sqrt(2)  # standard errors that two scores must differ by


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
class Reliabilities:
    """Single-rater reliability of a table, and the variance of one score about the truth."""

    consistency: float = NAN
    consistency_ends: Interval = UNDEFINED
    agreement: float = NAN
    agreement_ends: Interval = UNDEFINED
    error: float = NAN
    reason: Note | None = None


@dataclass(frozen=True, eq=False)
class Reference:
    """What the clinicians are worth as a reference, on each benchmark and combined."""

    reliability: Sequence[ReliabilityRow] = ()
    disattenuated: Sequence[TrueAgreementRow] = ()


def reference(scores: Scores, sitting: Sitting, asked: Asked) -> Reference:
    """Return the clinicians' reliability, and the jury's agreement freed of their error."""
    reliable: list[ReliabilityRow] = []
    freed: list[TrueAgreementRow] = []
    for scope in scopes(scores, sitting, asked):
        reason = why_undefined_scope(scores, scope)
        reliable += reliability_rows(scope, reason)
        if scope.jury:
            freed.append(true_agreement_row(scope, scope.jury, reason))
    return Reference(reliable, freed)


def reliability_rows(scope: Scope, reason: Note | None = None) -> list[ReliabilityRow]:
    """Return the reliability of a scope's clinicians in its four forms.

    Raw composites whatever the method. A complete table has McGraw & Wong's forms from its mean
    squares with their F intervals, and may be below 0; one with missing cells has them from the
    variances of `crossed.crossed_model`, with Wald's exact interval of consistency and that of
    `reliability_interval.agreement_interval`.

    Parameters
    ----------
    scope : Scope
    reason : why the scope has no agreement, if it has none

    Returns
    -------
    list of ReliabilityRow
        One a form of `FORMS`; undefined with the reason as `crossed_model` has it.

    References
    ----------
    McGraw & Wong (1996), Psychological Methods 1, 30. SEM and smallest detectable change: de Vet,
    Terwee, Knol & Bouter (2006), Journal of Clinical Epidemiology 59, 1033.
    """
    table = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    found = Reliabilities(reason=reason) if reason else reliabilities(table)
    k = _raters(table)
    return [_row(scope, form, found, k) for form in FORMS]


def _raters(table: Array) -> float:
    """Return the clinicians of a response, the harmonic mean of their number where it varies."""
    number = (~np.isnan(table)).sum(axis=1)
    if not len(number):
        return NAN
    even = number.min() == number.max()
    return float(number[0] if even else len(number) / (1 / number).sum())


def reliabilities(table: Array) -> Reliabilities:
    """Return the single-rater reliability of scores (n, raters), NaN where missing."""
    if np.isnan(table).any() or min(table.shape) < 2:
        return _of_model(table)
    if np.ptp(table) <= FLAT * np.abs(table).max():
        return Reliabilities(reason=note(Code.MIXED_FLAT))
    return _of_squares(table)


def _of_squares(table: Array) -> Reliabilities:
    """Return the forms of a complete table from its mean squares."""
    (n, k), ms = table.shape, mean_squares(table)
    rows, columns, error = float(ms.rows), float(ms.columns), float(ms.error)
    if not rows or not error:
        return Reliabilities(reason=note(Code.RELIABILITY_EXTREME))
    ends = f_interval(1 - error / rows, n, k)
    of_one = Interval(*(spearman_brown(end, 1 / k) for end in (ends.low, ends.high)))
    below = rows + (k - 1) * error + k * (columns - error) / n
    absolute = (rows - error) / below
    among = absolute_interval((rows, columns, error), n, k)
    ends = Interval(*(spearman_brown(end, 1 / k) for end in (among.low, among.high)))
    return Reliabilities(
        (rows - error) / (rows + (k - 1) * error),
        of_one,
        absolute,
        ends if ends.low <= absolute <= ends.high else UNDEFINED,
        error + (columns - error) / n,
    )


def _of_model(table: Array) -> Reliabilities:
    model = crossed_model(table)
    if model.reason:
        return Reliabilities(reason=model.reason)
    return Reliabilities(
        model.consistency(),
        consistency_interval(table),
        model.agreement(),
        agreement_interval(model, design_of(table)),
        model.rater + model.residual,
    )


def _row(scope: Scope, form: str, found: Reliabilities, k: float) -> ReliabilityRow:
    grid, agreement, times = scope.grid, "A" in form, k if form.endswith("k)") else 1.0
    single = found.agreement if agreement else found.consistency
    ends = found.agreement_ends if agreement else found.consistency_ends
    sem = math.sqrt(found.error / times) if found.error >= 0 else NAN
    known = math.isfinite(single)
    return ReliabilityRow(
        benchmark=scope.name,
        criterion=scope.asked.criterion or "composite",
        form=form,
        icc=spearman_brown(single, times),
        low=spearman_brown(ends.low, times),
        high=spearman_brown(ends.high, times),
        n_raters=k,
        n_responses=len(grid.responses),
        n_instances=grid.n_clusters,
        n_clinicians=len(scope.clinicians),
        sem=(sem if known else NAN) if agreement else None,
        smallest_change=(CHANGE * sem if known else NAN) if agreement else None,
        notes=noted(*_notes(scope, found, k)),
    )


def _notes(scope: Scope, found: Reliabilities, k: float) -> Iterator[Note | None]:
    yield found.reason
    if not found.reason:
        if k != round(k):
            yield note(Code.RELIABILITY_UNEVEN, raters=k)
        responses, instances = len(scope.grid.responses), scope.grid.n_clusters
        if responses > instances:
            yield note(Code.RELIABILITY_SHARED, responses=responses, instances=instances)
        yield _within(scope)
    yield scope.analysed
    yield remarks.simulated(scope.simulated & set(scope.clinicians))


def _within(scope: Scope) -> Note | None:
    """Give ICC(C,1) with each benchmark's own mean taken out, where several are combined."""
    if scope.name != COMBINED:
        return None
    of = dict(zip(scope.given["response_id"], scope.given["benchmark"], strict=True))
    groups = [str(of[one]) for one in scope.grid.responses]
    table = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    model = crossed_model(table, groups=groups, group_effect="fixed")
    return None if model.reason else note(Code.RELIABILITY_WITHIN, icc=model.consistency())


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
