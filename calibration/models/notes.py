"""The notes on the figures of a model: what they rest on, and what not to conclude."""

from collections.abc import Iterable, Sequence

import numpy as np

from calibration import remarks
from calibration.codes import NoteCode as Code
from calibration.models.corrected import LEAST_RATED
from calibration.models.figures import CATEGORIES, MACRO, Figures
from calibration.models.gaps import Gap
from calibration.models.rows import CORRECTED
from calibration.models.scores import Table
from calibration.models.shared import Sharing
from calibration.models.win_rate import benchmark_win_rates
from calibration.scores import Flags
from calibration.values import Note, note, noted


def model_notes(
    table: Table, found: Figures, model: int, shared: Sharing | None, gaps: Iterable[Gap]
) -> tuple[Note, ...]:
    """Return the notes on a model's row; `shared` says which instances all models have."""
    left = table.left_out
    return noted(
        *_coverage(table, found, model),
        _absent(table, found, model),
        note(Code.CRITERION_LEFT_OUT, benchmarks=left) if left else None,
        _alone(table, found, model),
        _other_instances(shared, model) if shared else None,
        _few(found, model, np.ones(len(table.layout.benchmarks), dtype=np.bool_)),
        _lost(found, model, MACRO),
        _not_detected(table.layout.models, model, gaps),
        found.of.warning,
        remarks.simulated(_simulated(table, found.of.by)),
    )


def category_notes(table: Table, found: Figures, model: int, category: str) -> tuple[Note, ...]:
    """Return the notes on a model's mean of a category."""
    own = found.members[category]
    lost = _names(table, own & np.isnan(found.means[model]))
    return noted(
        note(Code.WITHOUT_BENCHMARKS, benchmarks=lost) if lost else None,
        _few(found, model, own),
        _lost(found, model, CATEGORIES + [*found.members].index(category)),
        remarks.simulated(_simulated(table, found.of.by)),
    )


def _coverage(table: Table, found: Figures, model: int) -> Sequence[Note]:
    own = table.frame["model"] == model
    counted = found.of.counted & own
    scored, every = int(counted.sum()), int(own.sum())
    said = remarks.coverage(scored, every, scored, every)
    if found.of.by != CORRECTED:
        return [said]
    rated = counted & table.frame["clinicians"].notna()
    return [said, note(Code.RATED_BY_CLINICIANS, responses=rated.sum())]


def _absent(table: Table, found: Figures, model: int) -> Note | None:
    none = np.isnan(found.means[model])
    if not none.any():
        return None
    why = note(Code.NOTHING_SCORED)
    if found.of.by == CORRECTED:
        why = note(Code.FEW_RATED_BY_BOTH, least=LEAST_RATED)
    if none.all():
        return why
    lost = _names(table, none)
    return note(
        Code.LACKS_BENCHMARKS, why=why, benchmarks=lost, on=int((~none).sum()), of=len(none)
    )


def _alone(table: Table, found: Figures, model: int) -> Note | None:
    """Say where no other model has a mean, so that there is nobody to win against."""
    wins = benchmark_win_rates(found.means)[model]
    alone = ~np.isnan(found.means[model]) & np.isnan(wins)
    if not alone.any():
        return None
    if np.isnan(wins).all():
        return note(Code.NO_OPPONENT)
    return note(Code.NO_OPPONENT_ON, benchmarks=_names(table, alone))


def _other_instances(shared: Sharing, model: int) -> Note | None:
    """Say how many of a model's instances all others have too, unless they all do."""
    own, common = int(shared.own[model]), int(shared.common[model])
    if own == common == shared.every:
        return None
    return note(Code.OTHER_INSTANCES, common=common, own=own)


def _few(found: Figures, model: int, own: Flags) -> Note | None:
    """Warn of the benchmark where a model has fewest instances with a score."""
    counts = found.of.instances[model, own & ~np.isnan(found.means[model])]
    if not len(counts) or counts.min() >= remarks.FEW_INSTANCES:
        return None
    if counts.min() == 1:
        return note(Code.ONE_SCORED_INSTANCE)
    return note(
        Code.FEW_SCORED_INSTANCES,
        instances=counts.min(),
        are_rated=found.of.by == CORRECTED,
        least=remarks.FEW_INSTANCES,
    )


def _lost(found: Figures, model: int, place: int) -> Note | None:
    drawn = found.drawn[:, model, place]
    return remarks.undefined_resamples(drawn) if np.isfinite(drawn).any() else None


def _not_detected(models: Sequence[str], model: int, gaps: Iterable[Gap]) -> Note | None:
    """Name the models whose macro-average differs by no more than 80 % power would find."""
    own = [gap.of(models[model]) for gap in gaps if models[model] in (gap.first, gap.second)]
    close = [
        gap.second
        for gap in own
        if np.isfinite(gap.detectable) and not (gap.exceeds_detectable and gap.excludes_zero)
    ]
    return note(Code.NOT_DETECTED, models=sorted(close, key=models.index)) if close else None


def _names(table: Table, which: Flags) -> list[str]:
    return [name for name, one in zip(table.layout.benchmarks, which, strict=True) if one]


def _simulated(table: Table, by: str) -> frozenset[str]:
    if by == CORRECTED:
        return frozenset().union(*table.simulated.values())
    return table.simulated[by]
