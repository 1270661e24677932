"""The rows that compare clinicians with clinicians: by pairs, and like for like with the jury."""

from collections.abc import Iterator

import numpy as np

from calibration import notes
from calibration.agreement import Panel
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.f_interval import UNDEFINED, Interval
from calibration.like_for_like import LikeForLike
from calibration.mixed import MixedModel, clinicians_mixed_model
from calibration.pairs import Pairs, over_pairs
from calibration.scope import Row, Scope
from calibration.scores import Array

ERROR = 0.05  # of all intervals of single benchmarks together


def interval(drawn: Array, instances: int) -> Interval:
    """Return the percentile interval, undefined where one instance alone has the scores."""
    return UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)


def clinicians_row(scope: Scope, found: Pairs, drawn: Array) -> Row:
    """Return the row of clinicians against one another, pair by pair."""
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.shared)
    boot, model = interval(drawn, grid.instances(rows)), clinicians_mixed_model(grid)
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
                *_pair_notes(scope, found, model),
                scope.analysed_note,
                notes.incomplete(sum(scope.incomplete.get(name, 0) for name in scope.clinicians)),
                notes.few_instances(grid.instances(rows)),
                notes.negative_pairs(found, boot.high, model),
                notes.undefined_resamples(drawn),
                notes.simulated(scope.simulated & set(scope.clinicians)),
            ]
        ),
    )


def _pair_notes(scope: Scope, found: Pairs, model: MixedModel) -> Iterator[str]:
    if len(scope.clinicians) == 1:
        yield notes.only_clinician(scope.clinicians[0])
        return
    across = percentile_interval(over_pairs(found, reps=scope.asked.reps, seed=scope.asked.seed))
    yield from notes.pairs(found, scope.asked.min_shared, across)
    yield notes.mixed_model(model)


def like_for_like_row(scope: Scope, jury: Panel, found: LikeForLike, drawn: Array) -> Row:
    """Return the row of the jury and a held-out clinician before the other clinicians."""
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.rows)
    boot = interval(drawn, grid.instances(rows))
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
                *_held_notes(scope, found, boot),
                _corrected(scope, drawn, grid.instances(rows)),
                scope.analysed_note,
                notes.few_instances(grid.instances(rows)),
                notes.undefined_resamples(drawn),
                notes.simulated(scope.simulated & {*jury.members, *scope.clinicians}),
            ]
        ),
    )


def _corrected(scope: Scope, drawn: Array, instances: int) -> str:
    """Return the interval corrected for looking at several benchmarks (Bonferroni), or ""."""
    if scope.looked == 1 or instances < LEAST_CLUSTERS:
        return ""
    level = 1 - ERROR / scope.looked
    return notes.looked(scope.looked, level, percentile_interval(drawn, level))


def _held_notes(scope: Scope, found: LikeForLike, boot: Interval) -> Iterator[str]:
    if len(scope.clinicians) == 1:
        yield notes.only_clinician(scope.clinicians[0])
        return
    if not found.defined:
        yield "undefined: no clinician can be compared with the mean of others"
    else:
        jury = np.mean([held.jury_icc for held in found.defined])
        own = np.mean([held.clinician_icc for held in found.defined])
        yield f"with the other clinicians: jury {jury:z.3f}, a clinician {own:z.3f}"
        yield from notes.held(found, boot)
    if found.undefined:
        left = ", ".join(
            f"{held.clinician} ({held.reason.removeprefix('undefined: ')})"
            for held in found.undefined
        )
        yield f"not compared: {left}"
