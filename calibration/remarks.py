"""Notes that many statistics share: what was left out, and what not to conclude."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from calibration.clinicians import FRAGILE, ClinicianPairs, LikeForLike
from calibration.crossed import MixedModel
from calibration.icc import Interval
from calibration.notes import Note, note, quoted, undefined
from calibration.rating_matrix import same_scores
from calibration.scores import Array
from calibration.shared_notes import SIMULATED, UNDEFINED_RESAMPLES

NO_AGREEMENT = ("no_agreement", "below 0: no agreement beyond chance")
LEAST_SCORES = 20  # with fewer, one score more moves a share by over 5 %
FEW_INSTANCES = 20  # below this an interval over instances covers less than it says
MOST_LOST = 0.01  # share of undefined resamples above which an interval decides nothing
MOST_TIMES = 50  # a study is not advised to grow by more than this factor


def coverage(scored: int, analysed: int, scored_in_study: int, in_study: int) -> Note:
    """Say how many responses a scorer scored, of those analysed and of all."""
    words = "scored {scored} of {analysed}"
    if in_study != analysed:
        words += " responses that clinicians rated, {scored_in_study} of all {in_study}"
    return note(
        "coverage",
        words,
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
        "{analysed} of {in_study:response} are analysed: the others have no complete reading by a "
        "clinician",
        analysed=analysed,
        in_study=in_study,
    )


def fewer_jurors(needed: int, jurors: int) -> Note | None:
    """Say that a mean takes fewer jurors than sit on the jury."""
    if needed >= jurors:
        return None
    words = "mean of at least {needed} of {jurors} jurors"
    return note("fewer_jurors", words, needed=needed, jurors=jurors)


def few_instances(instances: int) -> Note | None:
    """Warn of an interval from few instances, or say that one has none."""
    if instances == 1:
        return note("one_instance", "1 instance: an interval over instances is undefined")
    if not 0 < instances < FEW_INSTANCES:
        return None
    words = "fewer than {least} instances: the true uncertainty is larger than this interval"
    return note("few_instances", words, least=FEW_INSTANCES)


def negative(icc: float, high: float, spearman: float) -> Note | None:
    """Say what a scorer's ICC below 0 means: nothing in common, or the opposite order."""
    if not icc < 0:
        return None
    if not (high < 0 and spearman < 0):
        return note(*NO_AGREEMENT)
    return note(
        "ranks_against",
        "the whole interval is below 0: it ranks responses against the clinicians' order",
    )


def negative_pairs(clinician_pairs: ClinicianPairs, high: float, model: MixedModel) -> Note | None:
    """Note what a mean ICC of pairs below 0 means, or that it means little for fragile pairs."""
    if not clinician_pairs.icc < 0:
        return None
    if 2 * sum(pair.fragile for pair in clinician_pairs.defined) > len(clinician_pairs.defined):
        mixed = None if model.reason else model.consistency(2)
        words = "below 0, but this mean depends on a few pairs that share few responses"
        instead = "" if mixed is None else ": prefer the mixed model's ICC, {mixed:z.3f}"
        return note("fragile_below_zero", words + instead, mixed=mixed)
    if not high < 0:
        return note(*NO_AGREEMENT)
    return note(
        "clinicians_against",
        "the whole interval is below 0: clinicians rank responses in opposite orders",
    )


def no_variance(names: Sequence[str]) -> Note | None:
    """Name raters that have no z."""
    words = "left out, no variance: {raters}"
    return note("no_variance", words, raters=tuple(names)) if names else None


def incomplete(readings: int) -> Note | None:
    """Count the readings without a composite."""
    verbs = "lacks a criterion and has" if readings == 1 else "lack a criterion and have"
    words = f"{{readings:reading}} {verbs} no composite"
    return note("incomplete", words, readings=readings) if readings else None


def undefined_resamples(values: Array) -> Note | None:
    """Count the resamples in which the statistic does not exist."""
    lost = int((~np.isfinite(values)).sum())
    return note(*UNDEFINED_RESAMPLES, lost=lost, resamples=len(values)) if lost else None


def simulated(names: Iterable[str]) -> Note | None:
    """Note that a figure rests on simulated raters."""
    raters = sorted(names)
    return note(*SIMULATED, raters=raters) if raters else None


def only_clinician(name: str) -> Note:
    """Say why clinicians cannot be compared where there is one."""
    words = "only one clinician rated here, {clinician}: there is no other to compare with"
    return undefined("only_clinician", words, clinician=name)


def pairs(clinician_pairs: ClinicianPairs, min_shared: int) -> Iterator[Note]:
    """Yield notes on the pairs that a mean is of, and on those left out."""
    if not clinician_pairs.defined and clinician_pairs.undefined:
        yield undefined("no_pair", "no pair of clinicians has an ICC")
    elif not clinician_pairs.defined:
        words = "no two clinicians share {min_shared} responses"
        yield undefined("no_shared", words, min_shared=min_shared)
    if fragile := sum(pair.fragile for pair in clinician_pairs.defined):
        words = f"{{fragile}} of {{pairs:pair}} share{'s' * (fragile == 1)} fewer than {{least}} responses"
        of = len(clinician_pairs.defined)
        yield note(
            "fragile_pairs", f"fragile: {words}", words, fragile=fragile, pairs=of, least=FRAGILE
        )
    if clinician_pairs.undefined:
        lost = [((pair.first, pair.second), pair.reason) for pair in clinician_pairs.undefined]
        yield note(
            "pairs_undefined",
            lambda figures: (
                "pairs left out as undefined: "
                + ", ".join(
                    f"{' and '.join(map(quoted, pair))} ({why})" for pair, why in figures["pairs"]
                )
            ),
            pairs=lost,
        )
    if clinician_pairs.too_few:
        words = "{pairs:pair} left out for sharing fewer than {min_shared} responses"
        yield note("pairs_too_few", words, pairs=clinician_pairs.too_few, min_shared=min_shared)


def held(like_for_like: LikeForLike, ends: Interval) -> Iterator[Note]:
    """Yield notes on the leave-one-clinician-out comparisons and how far they reach."""
    sizes = [len(comparison.rows) for comparison in like_for_like.defined]
    words = "{clinicians:clinician} compared, each on {least} responses or more"
    yield note("held_on", words, clinicians=len(sizes), least=min(sizes))
    if ends.low <= 0 <= ends.high:
        yield note("includes_zero", "the interval includes 0: neither is shown to agree better")


def corrected(benchmarks: int, level: float, ends: Interval) -> Note | None:
    """Give the interval that holds where several benchmarks are looked at, if there is one."""
    if not np.isfinite(ends.low):
        return None
    share = f"{100 * level:.2f}".rstrip("0").rstrip(".")
    return note(
        "corrected",
        f"{share} % interval, corrected for {{benchmarks}} benchmarks (Bonferroni): {{low:z.3f}} to "
        "{high:z.3f}",
        benchmarks=benchmarks,
        level=level,
        low=ends.low,
        high=ends.high,
    )


def mixed_model(model: MixedModel) -> Note:
    """Give the mixed model's ICCs, or why there are none."""
    return model.reason or note(
        "mixed_model",
        "crossed mixed model of all readings: ICC(C,1) {consistency:z.3f}, ICC(C,2) "
        "{consistency_of_two:z.3f}, ICC(A,1) {agreement:z.3f}",
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
        "given twice: {exact:.0%} of {scores:single score} identical, {within_one:.0%} within one "
        "point",
        exact=every.exact,
        scores=every.scores,
        within_one=every.within_one,
    )
    own = {str(name): same_scores(part) for name, part in scores.groupby("rater")}
    enough = [
        (name, same.exact, same.scores) for name, same in own.items() if same.scores >= LEAST_SCORES
    ]
    if enough and len(own) > 1:
        yield note(
            "given_again_each",
            lambda figures: (
                "identical by clinician: "
                + ", ".join(
                    f"{quoted(name)} {same:.0%} of {n}" for name, same, n in figures["clinicians"]
                )
            ),
            clinicians=enough,
        )


def own_means(icc: float) -> Note | None:
    """Note the ICC of repeats without differences between clinicians."""
    words = "with each clinician's own mean taken out, ICC(A,1) {icc:z.3f}"
    return note("own_means", words, icc=icc) if np.isfinite(icc) else None


def few_repeats(number: int) -> Note | None:
    """Warn of an ICC from few repeats."""
    if number >= FRAGILE:
        return None
    words = "{repeats} repeats, fewer than {least}"
    return note("fragile_repeats", f"fragile: {words}", words, repeats=number, least=FRAGILE)


def unpaired(number: int) -> Note | None:
    """Count the repeats that have no composite both times."""
    words = "{repeats:repeat} without a composite both times left out"
    return note("unpaired", words, repeats=number) if number else None
