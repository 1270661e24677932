"""The rows of the agreement table for one grid: scorers, clinicians, like for like, repeats."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from calibration import remarks
from calibration.agreement import (
    Panel,
    column_icc,
    columns,
    scorer_replicates,
    unscaled,
    why_no_icc,
)
from calibration.bootstrap import bca_interval
from calibration.clinician_rows import clinicians_row, interval, like_for_like_row
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, f_interval
from calibration.intra_rater import intra_rater_row
from calibration.like_for_like import LikeForLike, held_replicates, like_for_like
from calibration.pairs import Pairs, clinician_pairs, pair_replicates
from calibration.ranks import spearman as spearman_of
from calibration.resample import prepare
from calibration.scope import AgreementRow, Scope
from calibration.scores import Array, Flags
from calibration.stack import MOST_ROWS, LeftOut, Summed, together
from calibration.values import NAN, Note, note, noted

MOST_JACKKNIFED = 2000  # BCa leaves each instance out in turn; with more it corrects little


def scope_rows(scope: Scope) -> Iterator[AgreementRow]:
    """Yield the rows of a scope, in the order of the contract."""
    pairs = clinician_pairs(scope.grid, scope.asked.min_shared)
    held = like_for_like(scope.grid, scope.jury, scope.asked.method) if scope.jury else None
    drawn = _drawn(scope, pairs, held)
    for place, (scorer, panel) in enumerate(scope.scorers.items()):
        row = _scorer_row(scope, scorer, panel, drawn.scorers[:, place])
        yield _with_left_out(row, drawn.left_out) if scorer == "jury" else row
    yield clinicians_row(scope, pairs, drawn.pairs)
    if scope.jury and held:
        yield like_for_like_row(scope, scope.jury, held, drawn.held)
    if scope.repeats:
        yield intra_rater_row(scope)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Replicates of all that a scope's rows resample; empty where something is undefined.

    `left_out` is 1 where a juror that has variance in the study has none in the resample.
    """

    scorers: Array
    pairs: Array = field(default_factory=lambda: np.empty(0))
    held: Array = field(default_factory=lambda: np.empty(0))
    left_out: Array = field(default_factory=lambda: np.empty(0))


def _drawn(scope: Scope, pairs: Pairs, held: LikeForLike | None) -> _Drawn:
    """Return the replicates of scorers, pairs and like for like, on the same resamples."""
    grid, method = scope.grid, scope.asked.method
    alone: dict[str, Summed] = {}
    if pairs.defined:
        alone["pairs"] = pair_replicates(grid, pairs)
    if scope.jury and held and held.defined:
        alone["held"] = held_replicates(grid, scope.jury, held, method)
    if scope.jury and len(scope.jury.members) > 1 and method == "paper":
        flat = unscaled(grid, scope.jury.members)
        varied = [name for name in scope.jury.members if name not in flat]
        alone["left_out"] = LeftOut(grid.columns(varied))
    singles, every = (*scope.jurors, *scope.metrics), [*alone.values()]
    if scope.scorers:
        every = [scorer_replicates(grid, scope.jury, singles, method), *every]
    if not every:
        return _Drawn(np.empty((0, 0)))
    found = scope.resample(together(prepare(grid, method), every), most_rows=MOST_ROWS)
    first = len(scope.scorers)
    return _Drawn(found[:, :first], **dict(zip(alone, found[:, first:].T, strict=True)))


def _scorer_row(scope: Scope, scorer: str, panel: Panel, drawn: Array) -> AgreementRow:
    pair = columns(scope.grid, panel, scope.asked.method)
    both = pair.both
    x, y = pair.clinicians[both], pair.scorer[both]
    icc = column_icc(x, y, scope.asked.method)
    reason = _unscored(scope, scorer, panel)
    reason = reason or why_no_icc(scope.grid, panel, scope.asked.method, (x, y))
    exact = f_interval(icc, len(x))
    instances = scope.grid.instances(both)
    boot = UNDEFINED if reason else interval(drawn, instances)
    clinicians = _contributing(scope, both)
    resamples = None if reason else remarks.undefined_resamples(drawn)
    wanted = scope.asked.further and scorer == "jury" and np.isfinite(boot.low)
    corrected = _jury_bca(scope, drawn) if wanted else None
    spearman = NAN if reason else spearman_of(x, y)
    high = boot.high if np.isfinite(boot.high) else exact.high
    return AgreementRow(
        benchmark=scope.name,
        scorer=scorer,
        icc=icc,
        f_low=exact.low,
        f_high=exact.high,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=len(x),
        n_instances=instances,
        n_clinicians=len(clinicians),
        n_missing=int((~panel.present(scope.grid)).sum()),
        spearman=spearman,
        notes=noted(
            *_scorer_notes(scope, panel, both, clinicians, reason),
            *(reason, remarks.negative(icc, high, spearman), resamples, corrected),
        ),
    )


def _with_left_out(row: AgreementRow, left_out: Array) -> AgreementRow:
    """Return the jury's row, which says where many of its resamples are of a smaller jury."""
    smaller = remarks.members_left_out(int(np.nansum(left_out)), len(left_out))
    if smaller is None or not np.isfinite(row.boot_low):
        return row
    return replace(row, notes=(*row.notes, smaller))


def _unscored(scope: Scope, scorer: str, panel: Panel) -> Note | None:
    """Say that a scorer has no score at all on the analysed responses, if so."""
    if panel.present(scope.grid).any():
        return None
    if scorer == "jury":
        return note(Code.NO_JURY_SCORE, needed=panel.needed)
    kind, name = scorer.split(":", 1)
    return note(Code.NO_SCORE, kind=kind, name=name)


def _jury_bca(scope: Scope, drawn: Array) -> Note | None:
    clusters = scope.grid.n_clusters
    if clusters > MOST_JACKKNIFED:
        return note(Code.NO_BCA, most=MOST_JACKKNIFED)
    statistic = scorer_replicates(scope.grid, scope.jury, (), scope.asked.method)
    return remarks.bca(bca_interval(lambda counts: statistic(counts)[:, 0], drawn, clusters))


def _scorer_notes(
    scope: Scope, panel: Panel, both: Flags, clinicians: tuple[str, ...], reason: Note | None
) -> Iterator[Note | None]:
    yield _coverage(scope, panel)
    yield scope.analysed
    yield remarks.fewer_jurors(panel.needed, len(panel.members))
    if scope.asked.method == "paper" and not (reason and reason.code is Code.NO_Z):
        yield remarks.no_variance(unscaled(scope.grid, (*scope.clinicians, *panel.members)))
    yield remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in panel.members))
    instances = scope.grid.instances(both)
    yield remarks.few_instances(instances)
    yield remarks.shared_instances(int(both.sum()), instances)
    yield remarks.simulated(scope.simulated & {*panel.members, *clinicians})


def _coverage(scope: Scope, panel: Panel) -> Note:
    own = scope.given[scope.given["rater"].isin(panel.members)]
    heard = own.groupby("response_id")["rater"].size()
    return remarks.coverage(
        int(panel.present(scope.grid).sum()),
        len(scope.grid.responses),
        int((heard >= panel.needed).sum()),
        scope.in_study,
    )


def _contributing(scope: Scope, rows: Flags) -> tuple[str, ...]:
    """Return the clinicians whose composites enter the clinicians' column of some rows."""
    own = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    heard = np.flatnonzero((~np.isnan(own[rows])).any(axis=0))
    flat = unscaled(scope.grid, scope.clinicians) if scope.asked.method == "paper" else ()
    return tuple(name for name in np.array(scope.clinicians)[heard].tolist() if name not in flat)
