"""The rows of the agreement table for one grid: scorers, clinicians, like for like, repeats."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calibration import notes
from calibration.agreement import (
    Panel,
    column_icc,
    columns,
    scorer_replicates,
    unscaled,
    why_undefined,
)
from calibration.bootstrap import LEAST_CLUSTERS, bca_interval, percentile_interval
from calibration.f_interval import UNDEFINED, Interval, f_interval
from calibration.intra_rater import intra_rater_row
from calibration.like_for_like import LikeForLike, held_replicates, like_for_like
from calibration.mixed import clinicians_mixed_model
from calibration.pairs import Pairs, clinician_pairs, over_pairs, pair_replicates
from calibration.ranks import rank_correlations
from calibration.resample import prepare
from calibration.scope import NAN, Row, Scope
from calibration.scores import Array, Flags
from calibration.stack import MOST_ROWS, Summed, together

MOST_JACKKNIFED = 2000  # BCa leaves each instance out in turn; with more it corrects little


def scope_rows(scope: Scope) -> Iterator[Row]:
    """Yield the rows of a scope, in the order of the contract."""
    pairs = clinician_pairs(scope.grid, scope.asked.min_shared)
    held = like_for_like(scope.grid, scope.jury, scope.asked.method) if scope.jury else None
    drawn = _drawn(scope, pairs, held)
    for place, (scorer, panel) in enumerate(scope.scorers.items()):
        yield _scorer_row(scope, scorer, panel, drawn.scorers[:, place])
    yield _clinicians_row(scope, pairs, drawn.pairs)
    if scope.jury and held:
        yield _like_for_like_row(scope, scope.jury, held, drawn.held)
    if scope.repeats:
        yield intra_rater_row(scope)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Replicates of all that a scope's rows resample; empty where something is undefined."""

    scorers: Array
    pairs: Array
    held: Array


def _drawn(scope: Scope, pairs: Pairs, held: LikeForLike | None) -> _Drawn:
    """Return the replicates of scorers, pairs and like for like, on the same resamples."""
    grid, method = scope.grid, scope.asked.method
    statistics: list[Summed] = []
    if scope.scorers:
        singles = (*scope.jurors, *scope.metrics)
        statistics.append(scorer_replicates(grid, scope.jury, singles, method))
    if pairs.defined:
        statistics.append(pair_replicates(grid, pairs))
    if scope.jury and held and held.defined:
        statistics.append(held_replicates(grid, scope.jury, held, method))
    if not statistics:
        return _Drawn(np.empty((0, 0)), np.empty(0), np.empty(0))
    found = scope.resample(together(prepare(grid, method), statistics), most_rows=MOST_ROWS)
    first = len(scope.scorers)
    last = found[:, first + bool(pairs.defined) :].ravel()
    return _Drawn(found[:, :first], found[:, first] if pairs.defined else np.empty(0), last)


def _scorer_row(scope: Scope, scorer: str, panel: Panel, drawn: Array) -> Row:
    pair = columns(scope.grid, panel, scope.asked.method)
    both = pair.both
    x, y = pair.clinicians[both], pair.scorer[both]
    icc = column_icc(x, y, scope.asked.method)
    reason = _unscored(scope, scorer, panel) or why_undefined(x, y)
    exact = f_interval(icc, len(x))
    instances = scope.grid.instances(both)
    boot = UNDEFINED if reason else _interval(drawn, instances)
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
                *_scorer_notes(scope, panel, both, clinicians),
                *(reason, notes.negative(icc, high, spearman), resamples, corrected),
            ]
        ),
    )


def _interval(drawn: Array, instances: int) -> Interval:
    """Return the percentile interval, undefined where one instance alone has the scores."""
    return UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)


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
    scope: Scope, panel: Panel, both: Flags, clinicians: tuple[str, ...]
) -> Iterator[str]:
    yield _coverage(scope, panel)
    yield scope.analysed_note
    if panel.needed < len(panel.members):
        yield f"mean of at least {panel.needed} of {len(panel.members)} jurors"
    if scope.asked.method == "paper":
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


def _clinicians_row(scope: Scope, found: Pairs, drawn: Array) -> Row:
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.shared)
    boot = _interval(drawn, grid.instances(rows))
    return Row(
        benchmark=scope.name,
        scorer="clinicians",
        icc=found.icc,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(found.clinicians or scope.clinicians),
        n_pairs=len(found.defined),
        note=notes.joined(
            [
                *_pair_notes(scope, found),
                scope.analysed_note,
                notes.incomplete(sum(scope.incomplete.get(name, 0) for name in scope.clinicians)),
                notes.few_instances(grid.instances(rows)),
                notes.negative_pairs(found.icc, boot.high),
                notes.undefined_resamples(drawn),
                notes.simulated(scope.simulated & set(scope.clinicians)),
            ]
        ),
    )


def _pair_notes(scope: Scope, found: Pairs) -> Iterator[str]:
    if len(scope.clinicians) == 1:
        yield notes.only_clinician(scope.clinicians[0])
        return
    across = percentile_interval(over_pairs(found, reps=scope.asked.reps, seed=scope.asked.seed))
    yield from notes.pairs(found, scope.asked.min_shared, across)
    yield notes.mixed_model(clinicians_mixed_model(scope.grid))


def _like_for_like_row(scope: Scope, jury: Panel, found: LikeForLike, drawn: Array) -> Row:
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.rows)
    boot = _interval(drawn, grid.instances(rows))
    return Row(
        benchmark=scope.name,
        scorer="like_for_like",
        icc=found.difference,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(found.defined) or len(scope.clinicians),
        n_missing=int((~rows).sum()),
        note=notes.joined(
            [
                *_held_notes(scope, found),
                scope.analysed_note,
                notes.few_instances(grid.instances(rows)),
                notes.undefined_resamples(drawn),
                notes.simulated(scope.simulated & {*jury.members, *scope.clinicians}),
            ]
        ),
    )


def _held_notes(scope: Scope, found: LikeForLike) -> Iterator[str]:
    if len(scope.clinicians) == 1:
        yield notes.only_clinician(scope.clinicians[0])
        return
    if not found.defined:
        yield "undefined: no clinician can be compared with the mean of others"
    else:
        jury = np.mean([held.jury_icc for held in found.defined])
        own = np.mean([held.clinician_icc for held in found.defined])
        yield f"with the other clinicians: jury {jury:z.3f}, a clinician {own:z.3f}"
    if found.undefined:
        left = ", ".join(
            f"{held.clinician} ({held.reason.removeprefix('undefined: ')})"
            for held in found.undefined
        )
        yield f"not compared: {left}"
