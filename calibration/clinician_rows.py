"""The rows that compare clinicians with clinicians: by pairs, and like for like with the jury."""

from collections.abc import Iterator

import numpy as np

from calibration import remarks
from calibration.agreement import Panel
from calibration.bootstrap import LEAST_CLUSTERS, percentile_interval
from calibration.codes import NoteCode as Code
from calibration.f_interval import UNDEFINED, Interval
from calibration.like_for_like import LikeForLike
from calibration.mixed import MixedModel, clinicians_mixed_model
from calibration.pairs import Pairs, over_pairs
from calibration.scope import AgreementRow, LikeForLikeRow, Scope
from calibration.scores import Array
from calibration.values import Note, note, noted

ERROR = 0.05  # of all intervals of single benchmarks together


def interval(drawn: Array, instances: int) -> Interval:
    """Return the percentile interval, undefined where one instance alone has the scores."""
    return UNDEFINED if instances < LEAST_CLUSTERS else percentile_interval(drawn)


def clinicians_row(scope: Scope, found: Pairs, drawn: Array) -> AgreementRow:
    """Return the row of clinicians against one another, pair by pair."""
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.shared)
    boot = interval(drawn, grid.instances(rows))
    model = clinicians_mixed_model(grid) if _wants_model(scope, found) else None
    return AgreementRow(
        benchmark=scope.name,
        scorer="clinicians",
        icc=found.icc,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(found.clinicians or scope.clinicians),
        n_pairs=len(found.defined),
        notes=noted(
            *_pair_notes(scope, found, model),
            scope.analysed,
            remarks.incomplete(sum(scope.incomplete.get(name, 0) for name in scope.clinicians)),
            remarks.few_instances(grid.instances(rows)),
            remarks.negative_pairs(found, boot.high, model) if model else None,
            remarks.undefined_resamples(drawn),
            remarks.simulated(scope.simulated & set(scope.clinicians)),
        ),
    )


def _wants_model(scope: Scope, found: Pairs) -> bool:
    """Tell whether the mixed model is told: beside a mean below 0 always, else where asked for."""
    return scope.asked.further or found.icc < 0


def _pair_notes(scope: Scope, found: Pairs, model: MixedModel | None) -> Iterator[Note]:
    if len(scope.clinicians) == 1:
        yield remarks.only_clinician(scope.clinicians[0])
        return
    across = UNDEFINED
    if scope.asked.further:
        drawn = over_pairs(found, reps=scope.asked.reps, seed=scope.asked.seed)
        across = percentile_interval(drawn)
    yield from remarks.pairs(found, scope.asked.min_shared, across)
    if model:
        yield remarks.mixed_model(model)


def like_for_like_row(
    scope: Scope, jury: Panel, found: LikeForLike, drawn: Array
) -> LikeForLikeRow:
    """Return the row of the jury and a held-out clinician before the other clinicians."""
    grid = scope.grid
    rows = np.isin(np.arange(len(grid.responses)), found.rows)
    boot = interval(drawn, grid.instances(rows))
    ends, level = _corrected(scope, drawn, grid.instances(rows))
    jury_icc, clinician_icc = found.iccs
    return LikeForLikeRow(
        benchmark=scope.name,
        scorer="like_for_like",
        icc=found.difference,
        boot_low=boot.low,
        boot_high=boot.high,
        n_responses=int(rows.sum()),
        n_instances=grid.instances(rows),
        n_clinicians=len(found.defined) or len(scope.clinicians),
        n_missing=int((~rows).sum()),
        jury_icc=jury_icc,
        clinician_icc=clinician_icc,
        corrected_low=ends.low,
        corrected_high=ends.high,
        undefined_resamples=int((~np.isfinite(drawn)).sum()),
        resamples=len(drawn),
        notes=noted(
            *_held_notes(scope, found, boot),
            remarks.corrected(scope.looked, level, ends),
            scope.analysed,
            remarks.few_instances(grid.instances(rows)),
            remarks.undefined_resamples(drawn),
            remarks.simulated(scope.simulated & {*jury.members, *scope.clinicians}),
        ),
    )


def _corrected(scope: Scope, drawn: Array, instances: int) -> tuple[Interval, float]:
    """Return the interval corrected for looking at several benchmarks (Bonferroni), and its level."""
    level = 1 - ERROR / scope.looked
    if scope.looked == 1 or instances < LEAST_CLUSTERS:
        return UNDEFINED, level
    return percentile_interval(drawn, level), level


def _held_notes(scope: Scope, found: LikeForLike, boot: Interval) -> Iterator[Note]:
    if len(scope.clinicians) == 1:
        yield remarks.only_clinician(scope.clinicians[0])
        return
    if not found.defined:
        yield note(Code.NONE_HELD)
    else:
        jury, own = found.iccs
        yield note(Code.HELD_ICCS, jury=jury, clinician=own)
        yield from remarks.held(found, boot)
    if found.undefined:
        left = [(held.clinician, held.reason) for held in found.undefined]
        yield note(Code.NOT_HELD, clinicians=left)
