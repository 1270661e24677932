"""Notes that many statistics share: what was left out, and what not to conclude."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from calibration.codes import NoteCode as Code
from calibration.crossed import MixedModel
from calibration.icc import Interval
from calibration.like_for_like import LikeForLike
from calibration.pairs import FRAGILE, ClinicianPairs
from calibration.rating_matrix import same_scores
from calibration.scores import Array
from calibration.values import Note, note

LEAST_PAIRS = 6  # resamples of fewer pairs say little more than their least and greatest ICC
LEAST_SCORES = 20  # with fewer, one score more moves a share by over 5 %
MANY = 0.05  # of the resamples
LEAST_RESAMPLES = 200  # an end of a 95 % interval is then the fifth of them, and no fewer
FEW_INSTANCES = 20  # below this the bootstrap over instances covers less than it says
MOST_LOST = 0.01  # share of undefined resamples above which an interval decides nothing
MOST_TIMES = 50  # a study is not advised to grow by more than this factor


def coverage(scored: int, analysed: int, scored_in_study: int, in_study: int) -> Note:
    """Say how many responses a scorer scored, of those analysed and of all."""
    return note(
        Code.COVERAGE,
        scored=scored,
        analysed=analysed,
        scored_in_study=scored_in_study,
        in_study=in_study,
    )


def analysed(analysed: int, in_study: int) -> Note | None:
    """Note how many responses of the study enter no figure of a benchmark, and why."""
    if in_study == analysed:
        return None
    return note(Code.ANALYSED, analysed=analysed, in_study=in_study)


def fewer_jurors(needed: int, jurors: int) -> Note | None:
    """Say that a mean takes fewer jurors than sit on the jury."""
    return note(Code.FEWER_JURORS, needed=needed, jurors=jurors) if needed < jurors else None


def few_instances(instances: int) -> Note | None:
    """Warn of an interval from few instances, or say that one has none."""
    if instances == 1:
        return note(Code.ONE_INSTANCE)
    return note(Code.FEW_INSTANCES, least=FEW_INSTANCES) if 0 < instances < FEW_INSTANCES else None


def shared_instances(responses: int, instances: int) -> Note | None:
    """Warn that the F interval takes responses to one instance as independent."""
    if responses <= instances:
        return None
    return note(Code.SHARED_INSTANCES, responses=responses, instances=instances)


def negative(icc: float, high: float, spearman: float) -> Note | None:
    """Say what a scorer's ICC below 0 means: nothing in common, or the opposite order."""
    if not icc < 0:
        return None
    return note(Code.RANKS_AGAINST if high < 0 and spearman < 0 else Code.NO_AGREEMENT)


def negative_pairs(clinician_pairs: ClinicianPairs, high: float, model: MixedModel) -> Note | None:
    """Note what a mean ICC of pairs below 0 means, or that it means little for fragile pairs."""
    if not clinician_pairs.icc < 0:
        return None
    if 2 * sum(pair.fragile for pair in clinician_pairs.defined) > len(clinician_pairs.defined):
        mixed = None if model.reason else model.consistency(2)
        return note(Code.FRAGILE_BELOW_ZERO, mixed=mixed)
    return note(Code.CLINICIANS_AGAINST if high < 0 else Code.NO_AGREEMENT)


def no_variance(names: Sequence[str]) -> Note | None:
    """Name raters that have no z."""
    return note(Code.NO_VARIANCE, raters=tuple(names)) if names else None


def incomplete(readings: int) -> Note | None:
    """Count the readings without a composite."""
    return note(Code.INCOMPLETE, readings=readings) if readings else None


def members_left_out(resamples: int, reps: int) -> Note | None:
    """Warn of an interval for which many resamples made the jury smaller."""
    if not resamples > MANY * reps:
        return None
    return note(Code.SMALLER_JURY, resamples=resamples, reps=reps)


def undefined_resamples(values: Array) -> Note | None:
    """Count the resamples in which the statistic does not exist."""
    lost = int((~np.isfinite(values)).sum())
    return note(Code.UNDEFINED_RESAMPLES, lost=lost, resamples=len(values)) if lost else None


def few_resamples(reps: int) -> Note | None:
    """Warn of intervals from too few resamples."""
    return note(Code.FEW_RESAMPLES, resamples=reps) if reps < LEAST_RESAMPLES else None


def bca(interval: Interval) -> Note | None:
    """Give the bias-corrected interval beside the percentile one, when it is defined."""
    if not np.isfinite(interval.low):
        return None
    return note(Code.BCA, low=interval.low, high=interval.high)


def simulated(names: Iterable[str]) -> Note | None:
    """Note that a figure rests on simulated raters."""
    raters = sorted(names)
    return note(Code.SIMULATED, raters=raters) if raters else None


def only_clinician(name: str) -> Note:
    """Say why clinicians cannot be compared where there is one."""
    return note(Code.ONLY_CLINICIAN, clinician=name)


def pairs(clinician_pairs: ClinicianPairs, min_shared: int, interval: Interval) -> Iterator[Note]:
    """Yield notes on the pairs that a mean is of, and on those left out."""
    if not clinician_pairs.defined and clinician_pairs.undefined:
        yield note(Code.NO_PAIR)
    elif not clinician_pairs.defined:
        yield note(Code.NO_SHARED, min_shared=min_shared)
    if fragile := sum(pair.fragile for pair in clinician_pairs.defined):
        yield note(
            Code.FRAGILE_PAIRS, fragile=fragile, pairs=len(clinician_pairs.defined), least=FRAGILE
        )
    if clinician_pairs.undefined:
        undefined = [((pair.first, pair.second), pair.reason) for pair in clinician_pairs.undefined]
        yield note(Code.PAIRS_UNDEFINED, pairs=undefined)
    if clinician_pairs.too_few:
        yield note(Code.PAIRS_TOO_FEW, pairs=clinician_pairs.too_few, min_shared=min_shared)
    if len(clinician_pairs.defined) >= LEAST_PAIRS and np.isfinite(interval.low):
        yield note(Code.PAIRS_INTERVAL, low=interval.low, high=interval.high)


def held(like_for_like: LikeForLike, boot: Interval) -> Iterator[Note]:
    """Yield notes on the leave-one-clinician-out comparisons and how far they reach."""
    sizes = [len(comparison.rows) for comparison in like_for_like.defined]
    yield note(Code.HELD_ON, clinicians=len(sizes), least=min(sizes))
    if boot.low <= 0 <= boot.high:
        yield note(Code.INCLUDES_ZERO)


def corrected(benchmarks: int, level: float, ends: Interval) -> Note | None:
    """Give the interval that holds where several benchmarks are looked at, if there is one."""
    if not np.isfinite(ends.low):
        return None
    return note(Code.CORRECTED, benchmarks=benchmarks, level=level, low=ends.low, high=ends.high)


def mixed_model(model: MixedModel) -> Note:
    """Give the mixed model's ICCs, or why there are none."""
    if model.reason:
        return model.reason
    return note(
        Code.MIXED_MODEL,
        consistency=model.consistency(),
        consistency_of_two=model.consistency(2),
        agreement=model.agreement(),
    )


def same_again(scores: pd.DataFrame) -> Iterator[Note]:
    """Say how often clinicians gave a single score again, all together and each of them."""
    if not len(scores):
        return
    every = same_scores(scores)
    yield note(
        Code.GIVEN_AGAIN, exact=every.exact, scores=every.scores, within_one=every.within_one
    )
    own = {str(name): same_scores(part) for name, part in scores.groupby("rater")}
    enough = [
        (name, same.exact, same.scores) for name, same in own.items() if same.scores >= LEAST_SCORES
    ]
    if enough and len(own) > 1:
        yield note(Code.GIVEN_AGAIN_EACH, clinicians=enough)


def own_means(icc: float) -> Note | None:
    """Note the ICC of repeats without differences between clinicians."""
    return note(Code.OWN_MEANS, icc=icc) if np.isfinite(icc) else None


def few_repeats(number: int) -> Note | None:
    """Warn of an ICC from few repeats."""
    return note(Code.FRAGILE_REPEATS, repeats=number, least=FRAGILE) if number < FRAGILE else None


def unpaired(number: int) -> Note | None:
    """Count the repeats that have no composite both times."""
    return note(Code.UNPAIRED, repeats=number) if number else None
