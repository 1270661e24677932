"""The words beside the numbers: what was left out, and what not to conclude."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from calibration.f_interval import Interval
from calibration.like_for_like import LikeForLike
from calibration.mixed import MixedModel
from calibration.pairs import FRAGILE, Pair, Pairs
from calibration.repeats import same_scores
from calibration.scores import Array

LEAST_PAIRS = 6  # resamples of fewer pairs say little more than their least and greatest ICC
LEAST_SCORES = 20  # with fewer, one score more moves a share by over 5 %
MANY = 0.05  # of the resamples
NO_F = "no F interval: the mean square between responses is 0, all pairs have the same mean"
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


def analysed(analysed: int, in_study: int) -> str:
    """Say how many responses of the study enter no number of a benchmark, and why."""
    if in_study == analysed:
        return ""
    return (
        f"{analysed} of {counted(in_study, 'response')} are analysed: the others have no complete "
        "reading by a clinician"
    )


def counted(number: int, thing: str) -> str:
    """Return a number with its noun, in the plural where it is not 1."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def few_instances(instances: int) -> str:
    """Warn of an interval from few instances, or say that one has none."""
    if instances == 1:
        return "1 instance: an interval over instances is undefined"
    if not 0 < instances < FEW_INSTANCES:
        return ""
    return f"fewer than {FEW_INSTANCES} instances: the interval is too narrow to trust"


def shared_instances(responses: int, instances: int) -> str:
    """Warn that the F interval takes responses to one instance as independent."""
    if responses <= instances:
        return ""
    return (
        f"{responses} responses from {counted(instances, 'instance')}: the F interval takes them as "
        "independent, the bootstrap does not"
    )


def negative(icc: float, high: float, spearman: float) -> str:
    """Say what a scorer's ICC below 0 means: nothing in common, or the opposite order."""
    if not icc < 0:
        return ""
    if high < 0 and spearman < 0:
        return "below 0 with its whole interval: it ranks against the clinicians"
    return "below 0: no agreement beyond chance"


def negative_pairs(found: Pairs, high: float, model: MixedModel) -> str:
    """Say what a mean ICC of pairs below 0 means; of fragile pairs that it means little."""
    if not found.icc < 0:
        return ""
    if 2 * sum(pair.fragile for pair in found.defined) > len(found.defined):
        rather = (
            "" if model.reason else f", rather read the mixed model's {model.consistency(2):z.3f}"
        )
        return f"below 0, but a few pairs that share few responses carry this mean{rather}"
    if high < 0:
        return "below 0 with its whole interval: clinicians rank against one another"
    return "below 0: no agreement beyond chance"


def no_variance(names: Sequence[str]) -> str:
    """Name raters that have no z."""
    return f"left out, no variance: {', '.join(names)}" if names else ""


def incomplete(readings: int) -> str:
    """Count the readings without a composite."""
    if readings == 1:
        return "1 reading lacks a criterion and has no composite"
    return f"{readings} readings lack a criterion and have no composite" if readings else ""


def members_left_out(resamples: int, reps: int) -> str:
    """Warn of an interval for which many resamples made the jury smaller."""
    if not resamples > MANY * reps:
        return ""
    return f"in {resamples} of {reps} resamples a juror without variance is left out"


def undefined_resamples(values: Array) -> str:
    """Count the resamples in which the statistic does not exist."""
    lost = int((~np.isfinite(values)).sum())
    return f"{lost} of {len(values)} resamples undefined and left out" if lost else ""


def bca(interval: Interval) -> str:
    """Give the bias-corrected interval beside the percentile one, when it is defined."""
    if not np.isfinite(interval.low):
        return ""
    return f"BCa bootstrap {interval.low:z.3f} to {interval.high:z.3f}"


def simulated(names: Iterable[str]) -> str:
    """Mark a number that rests on raters that are not real."""
    found = sorted(names)
    return f"simulated raters: {', '.join(found)}" if found else ""


def pairs(found: Pairs, min_shared: int, interval: Interval) -> Iterable[str]:
    """Say what the mean over pairs rests on."""
    if not found.defined:
        yield _no_pair(found, min_shared)
    if fragile := sum(pair.fragile for pair in found.defined):
        of = counted(len(found.defined), "pair")
        yield f"fragile: {fragile} of {of} {_verb(fragile, 'share')} fewer than {FRAGILE} responses"
    if found.undefined:
        yield f"pairs left out as undefined: {', '.join(map(_why, found.undefined))}"
    if found.too_few:
        left = counted(found.too_few, "pair")
        yield f"{left} left out for sharing fewer than {min_shared} responses"
    if len(found.defined) >= LEAST_PAIRS and np.isfinite(interval.low):
        yield f"bootstrap over pairs {interval.low:z.3f} to {interval.high:z.3f}"


def held(found: LikeForLike, boot: Interval) -> Iterable[str]:
    """Say what the comparisons like for like rest on, and what may not be read from them."""
    sizes = [len(one.rows) for one in found.defined]
    yield f"{counted(len(sizes), 'clinician')} compared, each on {min(sizes)} responses or more"
    if fragile := sum(size < FRAGILE for size in sizes):
        of = counted(len(sizes), "comparison")
        yield f"fragile: {fragile} of {of} {_verb(fragile, 'rest')} on fewer than {FRAGILE} responses"
    if boot.low <= 0 <= boot.high:
        yield "the interval includes 0: neither is shown to agree better"


def looked(benchmarks: int, level: float, ends: Interval) -> str:
    """Give the interval that holds where several benchmarks are looked at; "" where undefined."""
    if not np.isfinite(ends.low):
        return ""
    share = f"{100 * level:.2f}".rstrip("0").rstrip(".")
    return (
        f"{share} % interval, for looking at {benchmarks} benchmarks (Bonferroni): "
        f"{ends.low:z.3f} to {ends.high:z.3f}"
    )


def only_clinician(name: str) -> str:
    """Say why clinicians cannot be compared where there is one."""
    return f"undefined: {name} is the only clinician here, and there is no other to compare with"


def mixed_model(model: MixedModel) -> str:
    """Give the mixed model's ICCs, or why there are none."""
    if model.reason:
        return model.reason
    return (
        f"crossed mixed model of all readings: ICC(C,1) {model.consistency():z.3f}, "
        f"ICC(C,2) {model.consistency(2):z.3f}, ICC(A,1) {model.agreement():z.3f}"
    )


def _no_pair(found: Pairs, min_shared: int) -> str:
    if found.undefined:
        return "undefined: no pair of clinicians has an ICC"
    return f"undefined: no two clinicians share {min_shared} responses"


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _why(pair: Pair) -> str:
    return f"{pair.name} ({pair.reason})"


def same_again(scores: pd.DataFrame) -> Iterable[str]:
    """Say how often clinicians gave a single score again, all together and each of them."""
    if not len(scores):
        return
    every = same_scores(scores)
    yield (
        f"given again: {every.exact:.0%} of {counted(every.scores, 'single score')} the same, "
        f"{every.within_one:.0%} within one point"
    )
    own = {str(name): same_scores(part) for name, part in scores.groupby("rater")}
    enough = [
        f"{name} {one.exact:.0%} of {one.scores}"
        for name, one in own.items()
        if one.scores >= LEAST_SCORES
    ]
    if enough and len(own) > 1:
        yield f"the same by clinician: {', '.join(enough)}"


def own_means(icc: float) -> str:
    """Give the ICC of repeats to which differences between clinicians add nothing."""
    if not np.isfinite(icc):
        return ""
    return f"with each clinician's own mean taken out, ICC(A,1) {icc:z.3f}"


def few_repeats(number: int) -> str:
    """Call an ICC of a handful of repeats fragile."""
    return f"fragile: {number} repeats, fewer than {FRAGILE}" if number < FRAGILE else ""


def unpaired(number: int) -> str:
    """Count the repeats that have no composite both times."""
    if not number:
        return ""
    return f"{counted(number, 'repeat')} without a composite both times left out"
