"""Figures of a report besides the agreement table and its details: by criterion, and paired means."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibration import remarks
from calibration.agreement import (
    PanelColumns,
    column_icc,
    columns,
    scorer_replicates,
    unscaled,
    why_undefined,
)
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.icc import UNDEFINED, f_interval
from calibration.other_measures import secondary_rows
from calibration.ranks import spearman as spearman_of
from calibration.resampled_moments import MOST_ROWS, joint_statistic, prepare
from calibration.scope import AgreementRow, Scope, scopes, why_undefined_scope
from calibration.scores import COMBINED, Array, Scores
from calibration.values import NAN, AnalysisOptions, Note, note, noted
from data.errors import TooFew

IN_POINTS = ("bias", "bias_low", "bias_high", "limits_low", "limits_high")


@dataclass(frozen=True)
class CriterionRow(AgreementRow):
    """The jury on one criterion: its row of the agreement table, and its points of the scale.

    `bias` is the mean of jury minus clinicians, with its 95 % interval; between the two
    limits lie 95 % of single differences where they are normal. NaN where undefined.
    """

    criterion: str = ""
    bias: float = NAN
    bias_low: float = NAN
    bias_high: float = NAN
    limits_low: float = NAN
    limits_high: float = NAN


@dataclass(frozen=True, eq=False)
class Paired:
    """The means of clinicians and jury on the responses that have both, in points.

    Attributes
    ----------
    benchmark : the scope's name
    responses : ids
    clinicians, jury : shape (n,), no NaN
    """

    benchmark: str
    responses: tuple[str, ...]
    clinicians: Array
    jury: Array


def criterion_names(scores: Scores, criterion: str | None) -> tuple[str, ...]:
    """Return the criteria worth a row of their own: none where one is all there is."""
    shapes = [scores.rubrics[name] for name in scores.benchmarks]
    if criterion is not None or all(len(one.criteria) == 1 for one in shapes):
        return ()
    every = [name for shape in shapes for name in shape.criteria]
    return tuple(dict.fromkeys(every))


def criterion_rows(scores: Scores, options: AnalysisOptions) -> list[CriterionRow]:
    """Return the jury's agreement on every criterion by itself, on each benchmark and combined.

    Parameters
    ----------
    scores, options
        As for `table.agreement_table`: the same replicates and seed.

    Returns
    -------
    list of CriterionRow
        A benchmark whose rubric lacks a criterion has no row of it; `combined` only has
        those of several benchmarks. None without a jury, or where there is one criterion.

    Raises
    ------
    Unknown, BadInput
        As `table.agreement_table`. A criterion that no clinician rated is undefined, no error.
    """
    found: list[CriterionRow] = []
    for name in criterion_names(scores, options.criterion) if scores.raters("juror") else ():
        having = [one for one in scores.benchmarks if name in scores.rubrics[one].criteria]
        wanted = [*having, COMBINED] if len(having) > 1 else having
        try:
            found += [
                _criterion_row(scope, scope.jury, scores, name)
                for scope in scopes(scores, replace(options, criterion=name))
                if scope.jury and scope.name in wanted
            ]
        except TooFew:
            why = (note(Code.CRITERION_UNRATED),)
            found += [CriterionRow(one, "jury", notes=why, criterion=name) for one in wanted]
    return sorted(found, key=lambda row: (row.benchmark == COMBINED, row.benchmark))


def paired_means(scores: Scores, options: AnalysisOptions) -> Iterator[Paired]:
    """Yield the raw means of clinicians and jury, of each scope where an ICC can be asked for."""
    for scope in scopes(scores, options):
        if scope.jury and not why_undefined_scope(scores, scope):
            raw = columns(scope.grid, scope.jury, "published")
            ids = tuple(scope.grid.responses[place] for place in np.flatnonzero(raw.both))
            yield Paired(scope.name, ids, raw.clinicians[raw.both], raw.scorer[raw.both])


def _criterion_row(
    scope: Scope, jury: PanelColumns, scores: Scores, criterion: str
) -> CriterionRow:
    reason = why_undefined_scope(scores, scope)
    if reason:
        return CriterionRow(scope.name, "jury", notes=(reason,), criterion=criterion)
    grid, method = scope.grid, scope.options.method
    pair = columns(grid, jury, method)
    x, y = pair.clinicians[pair.both], pair.scorer[pair.both]
    icc, reason, instances = (
        column_icc(x, y, method),
        why_undefined(x, y),
        grid.instances(pair.both),
    )
    drawn = np.empty(0) if reason else _drawn(scope, jury)
    boot = UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)
    exact, spearman = f_interval(icc, len(x)), NAN if reason else spearman_of(x, y)
    high = boot.high if np.isfinite(boot.high) else exact.high
    heard = ~np.isnan(grid.composites[pair.both][:, grid.of_kind("clinician")])
    points = secondary_rows(replace(scope, jurors=(), metrics=()), scores)[0]
    of = (reason, remarks.negative(icc, high, spearman), remarks.undefined_resamples(drawn))
    return CriterionRow(
        benchmark=scope.name,
        scorer="jury",
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=len(x),
        n_instances=instances,
        n_clinicians=int(heard.any(axis=0).sum()),
        n_missing=int((~jury.present(grid)).sum()),
        spearman=spearman,
        notes=noted(*_notes(scope, jury, len(x), instances), *of),
        criterion=criterion,
        **{name: getattr(points, name) for name in IN_POINTS},
    )


def _drawn(scope: Scope, jury: PanelColumns) -> Array:
    """Return the jury's resampled ICCs, the agreement table's own."""
    grid, method = scope.grid, scope.options.method
    statistic = scorer_replicates(grid, jury, (), method)
    drawn = scope.resample(joint_statistic(prepare(grid, method), [statistic]), most_rows=MOST_ROWS)
    return drawn[:, 0]


def _notes(
    scope: Scope, jury: PanelColumns, responses: int, instances: int
) -> Iterator[Note | None]:
    yield scope.analysed
    yield remarks.fewer_jurors(jury.needed, len(jury.members))
    if scope.options.method == "paper":
        yield remarks.no_variance(unscaled(scope.grid, (*scope.clinicians, *jury.members)))
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in jury.members))
    yield remarks.few_instances(instances)
    yield remarks.shared_instances(responses, instances)
    yield remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians})
