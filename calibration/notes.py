"""The words beside the numbers: what was left out, and what not to conclude."""

from collections.abc import Iterable, Sequence

import numpy as np

from calibration.f_interval import Interval
from calibration.mixed import MixedModel
from calibration.pairs import Pair, Pairs
from calibration.scores import Array

FEW_INSTANCES = 20  # below this the bootstrap over instances covers less than it says


def joined(parts: Iterable[str]) -> str:
    """Return the sentences that say something, as one note."""
    return "; ".join(part for part in parts if part)


def coverage(scored: int, analysed: int, scored_in_study: int, in_study: int) -> str:
    """Say how many responses a scorer scored, of those analysed and of all."""
    note = f"scored {scored} of {analysed}"
    if in_study == analysed:
        return note
    return f"{note} responses that clinicians rated, {scored_in_study} of all {in_study}"


def few_instances(instances: int) -> str:
    """Warn of an interval from few instances."""
    if not 0 < instances < FEW_INSTANCES:
        return ""
    return f"fewer than {FEW_INSTANCES} instances: the interval is too narrow to trust"


def shared_instances(responses: int, instances: int) -> str:
    """Warn that the F interval takes responses to one instance as independent."""
    if responses <= instances:
        return ""
    return (
        f"{responses} responses from {instances} instances: the F interval takes them as "
        "independent, the bootstrap does not"
    )


def negative(icc: float) -> str:
    """Say what an ICC below 0 means."""
    return "below 0: no agreement beyond chance" if icc < 0 else ""


def no_variance(names: Sequence[str]) -> str:
    """Name raters that have no z."""
    return f"left out, no variance: {', '.join(names)}" if names else ""


def incomplete(ratings: int) -> str:
    """Count the ratings without a composite."""
    return f"{ratings} ratings lack a criterion and have no composite" if ratings else ""


def undefined_resamples(values: Array) -> str:
    """Count the resamples in which the statistic does not exist."""
    lost = int((~np.isfinite(values)).sum())
    return f"{lost} of {len(values)} resamples undefined and left out" if lost else ""


def bca(interval: Interval) -> str:
    """Give the bias-corrected interval beside the percentile one, when it is defined."""
    if not np.isfinite(interval.low):
        return ""
    return f"BCa bootstrap {interval.low:.3f} to {interval.high:.3f}"


def simulated(names: Iterable[str]) -> str:
    """Mark a number that rests on raters that are not real."""
    found = sorted(names)
    return f"simulated raters: {', '.join(found)}" if found else ""


def pairs(found: Pairs, min_shared: int, interval: Interval) -> Iterable[str]:
    """Say what the mean over pairs rests on."""
    if not found.defined:
        yield "undefined: no pair of clinicians has an ICC"
    if fragile := sum(pair.fragile for pair in found.defined):
        yield f"fragile: {fragile} of {len(found.defined)} pairs share fewer than 10 responses"
    if found.undefined:
        yield f"pairs left out as undefined: {', '.join(map(_why, found.undefined))}"
    if found.too_few:
        yield f"{found.too_few} pairs left out for sharing fewer than {min_shared} responses"
    if np.isfinite(interval.low):
        yield f"bootstrap over pairs {interval.low:.3f} to {interval.high:.3f}"


def mixed_model(model: MixedModel) -> str:
    """Give the mixed model's ICCs, or why there are none."""
    if model.reason:
        return model.reason
    return (
        f"crossed mixed model of all ratings: ICC(C,1) {model.consistency():.3f}, "
        f"ICC(C,2) {model.consistency(2):.3f}, ICC(A,1) {model.agreement():.3f}"
    )


def _why(pair: Pair) -> str:
    return f"{pair.name} ({pair.reason})"
