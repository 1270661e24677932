"""The words beside the figures of a model: what they rest on, and what not to conclude."""

import numpy as np

from calibration import notes
from calibration.models.corrected import CORRECTED, LEAST_RATED
from calibration.models.figures import CATEGORIES, MACRO, Figures
from calibration.models.macro_average import macro_averages
from calibration.models.scores import Table
from calibration.models.shared import Sharing
from calibration.models.win_rate import benchmark_win_rates
from calibration.scores import Flags

DETECTABLE = 2.8  # standard errors: 1.96 for 5 % two-sided and 0.84 for 80 % power


def model_note(table: Table, found: Figures, model: int, shared: Sharing | None) -> str:
    """Return what stands beside a model's row; `shared` says which instances all models have."""
    return notes.joined(
        [
            _coverage(table, found, model),
            _absent(table, found, model),
            f"no such criterion: {', '.join(table.left_out)} left out" if table.left_out else "",
            _alone(table, found, model),
            _other_instances(shared, model) if shared else "",
            _few(found, model, np.ones(len(table.layout.benchmarks), dtype=np.bool_)),
            _lost(found, model, MACRO),
            _not_told_apart(table, found, model),
            found.of.warning,
            notes.simulated(_simulated(table, found.of.by)),
        ]
    )


def category_note(table: Table, found: Figures, model: int, own: Flags) -> str:
    """Return what stands beside a model's mean of a category."""
    place = CATEGORIES + next(n for n, one in enumerate(found.members.values()) if one is own)
    lost = np.array(table.layout.benchmarks)[own & np.isnan(found.means[model])]
    return notes.joined(
        [
            f"without {', '.join(lost)}" if len(lost) else "",
            _few(found, model, own),
            _lost(found, model, place),
            notes.simulated(_simulated(table, found.of.by)),
        ]
    )


def _coverage(table: Table, found: Figures, model: int) -> str:
    own = table.frame["model"] == model
    said = f"scored {int(found.of.counted[own].sum())} of {int(own.sum())}"
    if found.of.by != CORRECTED:
        return said
    rated = own & found.of.counted & table.frame["clinicians"].notna()
    return f"{said}; {int(rated.sum())} of them rated by clinicians"


def _absent(table: Table, found: Figures, model: int) -> str:
    lost = np.array(table.layout.benchmarks)[np.isnan(found.means[model])]
    if not len(lost):
        return ""
    why = "no score"
    if found.of.by == CORRECTED:
        why = f"fewer than {LEAST_RATED} instances that clinicians and jury both scored"
    if len(lost) == len(table.layout.benchmarks):
        return f"undefined: {why}"
    rest = f"on {len(found.means[model]) - len(lost)} of {len(found.means[model])} benchmarks"
    return (
        f"{why} on {', '.join(lost)}: {rest}, not comparable with models, or ways of scoring, that "
        "have one"
    )


def _alone(table: Table, found: Figures, model: int) -> str:
    """Say where no other model has a mean, so that there is nobody to win against."""
    wins = benchmark_win_rates(found.means)[model]
    alone = ~np.isnan(found.means[model]) & np.isnan(wins)
    if not alone.any():
        return ""
    if np.isnan(wins).all():
        return "win rate undefined: no other model has a score on the same benchmark"
    return f"no other model has a score on {', '.join(np.array(table.layout.benchmarks)[alone])}"


def _other_instances(shared: Sharing, model: int) -> str:
    """Say how many of a model's instances all others have too, unless they all do."""
    own, common = int(shared.own[model]), int(shared.common[model])
    if own == common == shared.every:
        return ""
    return (
        f"{common} of its {notes.counted(own, 'scored instance')} have scores for all models: "
        "its means are of other instances than theirs, the win rate by instance is not"
    )


def _few(found: Figures, model: int, own: Flags) -> str:
    """Warn of the benchmark where a model has fewest instances with a score."""
    counts = found.of.instances[model, own & ~np.isnan(found.means[model])]
    if not len(counts):
        return ""
    if counts.min() == 1:
        return "1 scored instance on a benchmark: intervals over instances are undefined"
    if counts.min() >= notes.FEW_INSTANCES:
        return ""
    rated = "rated" if found.of.by == CORRECTED else "scored"
    return (
        f"only {counts.min()} {rated} instances on a benchmark: with fewer than "
        f"{notes.FEW_INSTANCES} the interval is too narrow to trust"
    )


def _lost(found: Figures, model: int, place: int) -> str:
    drawn = found.drawn[:, model, place]
    return notes.undefined_resamples(drawn) if np.isfinite(drawn).any() else ""


def _not_told_apart(table: Table, found: Figures, model: int) -> str:
    """Name the models whose macro-average differs by less than 80 % power would find."""
    macro, drawn = macro_averages(found.means), found.drawn[:, :, MACRO]
    same = (np.isnan(found.means) == np.isnan(found.means[model])).all(axis=1)
    close = []
    for other in np.flatnonzero(same):
        apart = drawn[:, model] - drawn[:, other]
        finite = apart[np.isfinite(apart)]
        if other == model or len(finite) < 2:
            continue
        if abs(macro[model] - macro[other]) < DETECTABLE * float(np.std(finite, ddof=1)):
            close.append(table.layout.models[other])
    if not close:
        return ""
    return f"its macro-average differs by less than can be detected from that of {', '.join(close)}"


def _simulated(table: Table, by: str) -> frozenset[str]:
    if by == CORRECTED:
        return frozenset().union(*table.simulated.values())
    return table.simulated[by]
