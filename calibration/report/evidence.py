"""What a report needs beyond the agreement table and its details: each criterion, each pair of means."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from calibration.agreement import columns
from calibration.rows import scope_rows
from calibration.scope import NAN, Asked, Row, Scope
from calibration.scopes import Sitting, scopes, why_undefined_scope
from calibration.scores import COMBINED, Array, Scores
from calibration.secondary import secondary_rows


@dataclass(frozen=True)
class CriterionRow(Row):
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
    if criterion is not None or all(len(one.criteria) == 1 for one in scores.rubrics.values()):
        return ()
    every = [name for shape in scores.rubrics.values() for name in shape.criteria]
    return tuple(dict.fromkeys(every))


def criterion_rows(scores: Scores, sitting: Sitting, asked: Asked) -> list[CriterionRow]:
    """Return the jury's agreement on every criterion by itself, on each benchmark and combined.

    Parameters
    ----------
    scores, sitting, asked
        As for `table.agreement_table`: the same replicates and seed.

    Returns
    -------
    list of CriterionRow
        A benchmark whose rubric lacks a criterion has no row of it; `combined` only has
        those of several benchmarks. None without a jury, or where there is one criterion.

    Raises
    ------
    Unknown, BadInput, TooFew
        As `table.agreement_table`.
    """
    found: list[CriterionRow] = []
    for name in criterion_names(scores, asked.criterion):
        having = [one for one, shape in scores.rubrics.items() if name in shape.criteria]
        wanted = {*having, COMBINED} if len(having) > 1 else set(having)
        found += [
            _criterion_row(replace(scope, jurors=(), metrics=()), scores, name)
            for scope in scopes(scores, sitting, replace(asked, criterion=name))
            if scope.jury and scope.name in wanted
        ]
    return sorted(found, key=lambda row: (row.benchmark == COMBINED, row.benchmark))


def paired_means(scores: Scores, sitting: Sitting, asked: Asked) -> Iterator[Paired]:
    """Yield the raw means of clinicians and jury, of each scope where an ICC can be asked for."""
    for scope in scopes(scores, sitting, asked):
        if scope.jury and not why_undefined_scope(scores, scope):
            raw = columns(scope.grid, scope.jury, "published")
            ids = tuple(scope.grid.responses[place] for place in np.flatnonzero(raw.both))
            yield Paired(scope.name, ids, raw.clinicians[raw.both], raw.scorer[raw.both])


def _criterion_row(scope: Scope, scores: Scores, criterion: str) -> CriterionRow:
    reason = why_undefined_scope(scores, scope)
    if reason:
        return CriterionRow(scope.name, "jury", note=reason, criterion=criterion)
    row = next(scope_rows(scope))
    points = secondary_rows(scope, scores)[0]
    names = ("bias", "bias_low", "bias_high", "limits_low", "limits_high")
    own = {field.name: getattr(row, field.name) for field in dataclasses.fields(Row)}
    return CriterionRow(
        **own, criterion=criterion, **{name: getattr(points, name) for name in names}
    )
