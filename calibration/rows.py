"""The rows of the agreement table for one grid: scorers, clinicians, like for like, repeats."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from calibration import notes
from calibration.agreement import (
    NO_Z,
    Panel,
    column_icc,
    columns,
    scorer_replicates,
    unscaled,
    why_no_icc,
)
from calibration.bootstrap import bca_interval
from calibration.clinician_rows import clinicians_row, interval, like_for_like_row
from calibration.f_interval import UNDEFINED, f_interval
from calibration.intra_rater import intra_rater_row
from calibration.like_for_like import LikeForLike, held_replicates, like_for_like
from calibration.pairs import Pairs, clinician_pairs, pair_replicates
from calibration.ranks import rank_correlations
from calibration.resample import prepare
from calibration.scope import NAN, Row, Scope
from calibration.scores import Array, Flags
from calibration.stack import MOST_ROWS, LeftOut, Summed, together

MOST_JACKKNIFED = 2000  # BCa leaves each instance out in turn; with more it corrects little


def scope_rows(scope: Scope) -> Iterator[Row]:
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


def _scorer_row(scope: Scope, scorer: str, panel: Panel, drawn: Array) -> Row:
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
    resamples = "" if reason else notes.undefined_resamples(drawn)
    corrected = _jury_bca(scope, drawn) if scorer == "jury" and np.isfinite(boot.low) else ""
    spearman = NAN if reason else rank_correlations(x, y).spearman
    high = boot.high if np.isfinite(boot.high) else exact.high
    return Row(
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
        note=notes.joined(
            [
                *_scorer_notes(scope, panel, both, clinicians, reason),
                *(reason, notes.negative(icc, high, spearman), resamples, corrected),
            ]
        ),
    )


def _with_left_out(row: Row, left_out: Array) -> Row:
    """Return the jury's row, which says where many of its resamples are of a smaller jury."""
    said = notes.members_left_out(int(np.nansum(left_out)), len(left_out))
    return replace(row, note=notes.joined([row.note, said])) if np.isfinite(row.boot_low) else row


def _unscored(scope: Scope, scorer: str, panel: Panel) -> str:
    """Say that a scorer has no score at all on the analysed responses, if so."""
    if panel.present(scope.grid).any():
        return ""
    if scorer == "jury":
        return f"undefined: no response here has the scores of {panel.needed} of the jurors"
    kind, name = scorer.split(":", 1)
    why = " (no reference, or not measured)" if kind == "metric" else ""
    return f"undefined: no response here has a {name} score{why}"


def _jury_bca(scope: Scope, drawn: Array) -> str:
    clusters = scope.grid.n_clusters
    if clusters > MOST_JACKKNIFED:
        return f"no BCa interval for more than {MOST_JACKKNIFED} instances"
    statistic = scorer_replicates(scope.grid, scope.jury, (), scope.asked.method)
    return notes.bca(bca_interval(lambda counts: statistic(counts)[:, 0], drawn, clusters))


def _scorer_notes(
    scope: Scope, panel: Panel, both: Flags, clinicians: tuple[str, ...], reason: str
) -> Iterator[str]:
    yield _coverage(scope, panel)
    yield scope.analysed_note
    if panel.needed < len(panel.members):
        yield f"mean of at least {panel.needed} of {len(panel.members)} jurors"
    if scope.asked.method == "paper" and NO_Z not in reason:
        yield notes.no_variance(unscaled(scope.grid, (*scope.clinicians, *panel.members)))
    yield notes.incomplete(sum(scope.incomplete.get(name, 0) for name in panel.members))
    instances = scope.grid.instances(both)
    yield notes.few_instances(instances)
    yield notes.shared_instances(int(both.sum()), instances)
    yield notes.simulated(scope.simulated & {*panel.members, *clinicians})


def _coverage(scope: Scope, panel: Panel) -> str:
    own = scope.given[scope.given["rater"].isin(panel.members)]
    heard = own.groupby("response_id")["rater"].size()
    return notes.coverage(
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
