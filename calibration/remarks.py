"""Notes that many statistics share: what was left out, and what not to conclude."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from calibration.clinicians import FRAGILE, ClinicianPairs, LikeForLike
from calibration.crossed import MixedModel
from calibration.icc import Interval
from calibration.notes import Figures, Note, filled, note, quoted, undefined
from calibration.rating_matrix import same_scores
from calibration.scores import Array
from calibration.shared_notes import SIMULATED, UNDEFINED_RESAMPLES

FEW_AGAIN = "{repeats} repeats, fewer than {least}"
CLINICIANS_AGAINST = (
    "clinicians_against",
    "the whole interval is below 0: clinicians rank responses in opposite orders",
)
NO_AGREEMENT = ("no_agreement", "below 0: no agreement beyond chance")
RANKS_AGAINST = (
    "ranks_against",
    "the whole interval is below 0: it ranks responses against the clinicians' order",
)

LEAST_SCORES = 20  # with fewer, one score more moves a share by over 5 %
LEAST_RESAMPLES = 200  # an end of a 95 % interval is then the fifth of them, and no fewer
FEW_INSTANCES = 20  # below this an interval over instances covers less than it says
MOST_LOST = 0.01  # share of undefined resamples above which an interval decides nothing
MOST_TIMES = 50  # a study is not advised to grow by more than this factor


def coverage(scored: int, analysed: int, scored_in_study: int, in_study: int) -> Note:
    """Say how many responses a scorer scored, of those analysed and of all."""
    return note(
        "coverage",
        _coverage,
        scored=scored,
        analysed=analysed,
        scored_in_study=scored_in_study,
        in_study=in_study,
    )


def analysed(analysed: int, in_study: int) -> Note | None:
    """Note how many responses of the study enter no figure of a benchmark, and why."""
    if in_study == analysed:
        return None
    return note(
        "analysed",
        (
            "{analysed} of {in_study:response} are analysed: the others have no complete reading "
            "by a clinician"
        ),
        analysed=analysed,
        in_study=in_study,
    )


def fewer_jurors(needed: int, jurors: int) -> Note | None:
    """Say that a mean takes fewer jurors than sit on the jury."""
    return (
        note(
            "fewer_jurors",
            "mean of at least {needed} of {jurors} jurors",
            needed=needed,
            jurors=jurors,
        )
        if needed < jurors
        else None
    )


def few_instances(instances: int) -> Note | None:
    """Warn of an interval from few instances, or say that one has none."""
    if instances == 1:
        return note("one_instance", "1 instance: an interval over instances is undefined")
    return (
        note(
            "few_instances",
            "fewer than {least} instances: the true uncertainty is larger than this interval",
            least=FEW_INSTANCES,
        )
        if 0 < instances < FEW_INSTANCES
        else None
    )


def shared_instances(responses: int, instances: int) -> Note | None:
    """Warn that the F interval takes responses to one instance as independent."""
    if responses <= instances:
        return None
    return note(
        "shared_instances",
        (
            "{responses} responses from {instances:instance}: the F interval takes them as "
            "independent, the jackknife does not"
        ),
        (
            "several responses of an instance: the F interval takes them as independent, the "
            "jackknife does not"
        ),
        responses=responses,
        instances=instances,
    )


def negative(icc: float, high: float, spearman: float) -> Note | None:
    """Say what a scorer's ICC below 0 means: nothing in common, or the opposite order."""
    if not icc < 0:
        return None
    return note(*(RANKS_AGAINST if high < 0 and spearman < 0 else NO_AGREEMENT))


def negative_pairs(clinician_pairs: ClinicianPairs, high: float, model: MixedModel) -> Note | None:
    """Note what a mean ICC of pairs below 0 means, or that it means little for fragile pairs."""
    if not clinician_pairs.icc < 0:
        return None
    if 2 * sum(pair.fragile for pair in clinician_pairs.defined) > len(clinician_pairs.defined):
        mixed = None if model.reason else model.consistency(2)
        return note("fragile_below_zero", _below_zero, mixed=mixed)
    return note(*(CLINICIANS_AGAINST if high < 0 else NO_AGREEMENT))


def no_variance(names: Sequence[str]) -> Note | None:
    """Name raters that have no z."""
    return (
        note("no_variance", "left out, no variance: {raters}", raters=tuple(names))
        if names
        else None
    )


def incomplete(readings: int) -> Note | None:
    """Count the readings without a composite."""
    return note("incomplete", _incomplete, readings=readings) if readings else None


def undefined_resamples(values: Array) -> Note | None:
    """Count the resamples in which the statistic does not exist."""
    lost = int((~np.isfinite(values)).sum())
    return note(*UNDEFINED_RESAMPLES, lost=lost, resamples=len(values)) if lost else None


def few_resamples(reps: int) -> Note | None:
    """Warn of intervals from too few resamples."""
    return (
        note("few_resamples", "{resamples:resample}: too few for an interval", resamples=reps)
        if reps < LEAST_RESAMPLES
        else None
    )


def simulated(names: Iterable[str]) -> Note | None:
    """Note that a figure rests on simulated raters."""
    raters = sorted(names)
    return note(*SIMULATED, raters=raters) if raters else None


def only_clinician(name: str) -> Note:
    """Say why clinicians cannot be compared where there is one."""
    return undefined(
        "only_clinician",
        "only one clinician rated here, {clinician}: there is no other to compare with",
        clinician=name,
    )


def pairs(clinician_pairs: ClinicianPairs, min_shared: int) -> Iterator[Note]:
    """Yield notes on the pairs that a mean is of, and on those left out."""
    if not clinician_pairs.defined and clinician_pairs.undefined:
        yield undefined("no_pair", "no pair of clinicians has an ICC")
    elif not clinician_pairs.defined:
        yield undefined(
            "no_shared", "no two clinicians share {min_shared} responses", min_shared=min_shared
        )
    if fragile := sum(pair.fragile for pair in clinician_pairs.defined):
        yield note(
            "fragile_pairs",
            lambda figures: f"fragile: {_few_shared(figures)}",
            _few_shared,
            fragile=fragile,
            pairs=len(clinician_pairs.defined),
            least=FRAGILE,
        )
    if clinician_pairs.undefined:
        lost = [((pair.first, pair.second), pair.reason) for pair in clinician_pairs.undefined]
        yield note("pairs_undefined", _pairs_undefined, pairs=lost)
    if clinician_pairs.too_few:
        yield note(
            "pairs_too_few",
            "{pairs:pair} left out for sharing fewer than {min_shared} responses",
            pairs=clinician_pairs.too_few,
            min_shared=min_shared,
        )


def held(like_for_like: LikeForLike, ends: Interval) -> Iterator[Note]:
    """Yield notes on the leave-one-clinician-out comparisons and how far they reach."""
    sizes = [len(comparison.rows) for comparison in like_for_like.defined]
    yield note(
        "held_on",
        "{clinicians:clinician} compared, each on {least} responses or more",
        clinicians=len(sizes),
        least=min(sizes),
    )
    if ends.low <= 0 <= ends.high:
        yield note("includes_zero", "the interval includes 0: neither is shown to agree better")


def corrected(benchmarks: int, level: float, ends: Interval) -> Note | None:
    """Give the interval that holds where several benchmarks are looked at, if there is one."""
    if not np.isfinite(ends.low):
        return None
    return note(
        "corrected", _corrected, benchmarks=benchmarks, level=level, low=ends.low, high=ends.high
    )


def mixed_model(model: MixedModel) -> Note:
    """Give the mixed model's ICCs, or why there are none."""
    if model.reason:
        return model.reason
    return note(
        "mixed_model",
        _mixed,
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
        "given_again",
        (
            "given twice: {exact:.0%} of {scores:single score} identical, {within_one:.0%} within "
            "one point"
        ),
        exact=every.exact,
        scores=every.scores,
        within_one=every.within_one,
    )
    own = {str(name): same_scores(part) for name, part in scores.groupby("rater")}
    enough = [
        (name, same.exact, same.scores) for name, same in own.items() if same.scores >= LEAST_SCORES
    ]
    if enough and len(own) > 1:
        yield note("given_again_each", _each_again, clinicians=enough)


def own_means(icc: float) -> Note | None:
    """Note the ICC of repeats without differences between clinicians."""
    return (
        note("own_means", "with each clinician's own mean taken out, ICC(A,1) {icc:z.3f}", icc=icc)
        if np.isfinite(icc)
        else None
    )


def few_repeats(number: int) -> Note | None:
    """Warn of an ICC from few repeats."""
    return (
        note("fragile_repeats", f"fragile: {FEW_AGAIN}", FEW_AGAIN, repeats=number, least=FRAGILE)
        if number < FRAGILE
        else None
    )


def unpaired(number: int) -> Note | None:
    """Count the repeats that have no composite both times."""
    return (
        note("unpaired", "{repeats:repeat} without a composite both times left out", repeats=number)
        if number
        else None
    )


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _coverage(figures: Figures) -> str:
    note = filled("scored {scored} of {analysed}", figures)
    if figures["in_study"] == figures["analysed"]:
        return note
    rest = " responses that clinicians rated, {scored_in_study} of all {in_study}"
    return note + filled(rest, figures)


def _incomplete(figures: Figures) -> str:
    if figures["readings"] == 1:
        return "1 reading lacks a criterion and has no composite"
    return filled("{readings} readings lack a criterion and have no composite", figures)


def _below_zero(figures: Figures) -> str:
    text = "below 0, but this mean depends on a few pairs that share few responses"
    if figures["mixed"] is None:
        return text
    return filled(text + ": prefer the mixed model's ICC, {mixed:z.3f}", figures)


def _few_shared(figures: Figures) -> str:
    share = _verb(figures["fragile"], "share")
    return filled(f"{{fragile}} of {{pairs:pair}} {share} fewer than {{least}} responses", figures)


def _pairs_undefined(figures: Figures) -> str:
    pairs = (f"{' and '.join(map(quoted, pair))} ({why})" for pair, why in figures["pairs"])
    return f"pairs left out as undefined: {', '.join(pairs)}"


def _corrected(figures: Figures) -> str:
    share = f"{100 * figures['level']:.2f}".rstrip("0").rstrip(".")
    text = (
        "% interval, corrected for {benchmarks} benchmarks (Bonferroni): {low:z.3f} to {high:z.3f}"
    )
    return f"{share} {filled(text, figures)}"


def _each_again(figures: Figures) -> str:
    own = (
        f"{quoted(name)} {exact:.0%} of {scores}" for name, exact, scores in figures["clinicians"]
    )
    return f"identical by clinician: {', '.join(own)}"


def _mixed(figures: Figures) -> str:
    text = "crossed mixed model of all readings: ICC(C,1) {consistency:z.3f}, "
    return filled(text + "ICC(C,2) {consistency_of_two:z.3f}, ICC(A,1) {agreement:z.3f}", figures)
