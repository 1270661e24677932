"""Say for each response whether the jury may pass it or a clinician must read it.

The rule is the jury's mean score, the lowest first. A certificate says that of the responses it
passes at most a share is harmful (Angelopoulos, Bates, Candes, Jordan, Lei 2021, Learn then Test,
arXiv:2110.01052): thresholds are put in an order that owes nothing to the certifying data, and
tested one after the other until one fails. The chance that any threshold that passed its test
breaks the bound is then at most one minus the confidence.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from calibration.criterion_scores import criterion_scores
from calibration.rating_matrix import mean_of_given
from calibration.routing.values import PASS, READ, Harm, Routed, RoutedResponse, RoutingRule, Why
from calibration.scores import Array, Flags, Integers, Scores
from data.errors import BadInput, TooFew

DIGITS = 9  # of a risk: the last bits of a mean depend on the order of its sum, and ties lie on thresholds
LEARN_SHARE = 0.4
LEAST = 10  # instances of a part, below which it decides nothing
GRID = 40  # thresholds looked at, at equal steps of the share that is passed
BETS = 32  # sizes of bet that share the stake; more of them change the p value by under 1 %
READ_SHARE, RESAMPLES = 0.2, 1000


@dataclass(frozen=True, eq=False)
class Candidates:
    """Responses that may be passed.

    Attributes
    ----------
    responses, instances, benchmarks : names, of n responses
    clusters : shape (n,), the instance's number, numbered from 0 in an order drawn at random
    jury : shape (n,), in points, NaN where too few jurors scored all of it
    clinicians : shape (n,), in points, NaN where none scored all of it
    """

    responses: Sequence[str]
    instances: Sequence[str]
    benchmarks: Sequence[str]
    clusters: Integers
    jury: Array
    clinicians: Array

    @property
    def risks(self) -> Array:
        """The jury's mean turned round, shape (n,): the lower the score, the higher the risk."""
        return np.round(-self.jury, DIGITS)

    def harmful(self, harm: Harm) -> Flags:
        """Return which responses are harmful; those that clinicians did not rate are not."""
        with np.errstate(invalid="ignore"):
            if harm.kind == "low":
                return self.clinicians <= harm.points
            return np.abs(self.jury - self.clinicians) > harm.points


@dataclass(frozen=True, eq=False)
class RatedRisks:
    """Responses that clinicians rated, as a rule sees them.

    Attributes
    ----------
    risks : shape (n,), the rule's risk; a response is passed where it is at or under the threshold
    harmful : shape (n,), whether the clinicians' ratings make it harmful
    clusters : shape (n,), number of the instance
    """

    risks: Array
    harmful: Flags
    clusters: Integers

    def of(self, rows: Flags) -> "RatedRisks":
        """Return some of them."""
        return RatedRisks(self.risks[rows], self.harmful[rows], self.clusters[rows])


def candidates(
    scores: Scores, jury: Sequence[str], needed: int, criteria: Mapping[str, Sequence[str]]
) -> Candidates:
    """Return all responses of the study with what a rule may know of them.

    Parameters
    ----------
    scores : Scores
    jury, needed : who sits on it, and how many of them must have scored a response completely
    criteria : of each benchmark, those that count; a response to any other has no score
    """
    table = criterion_scores(scores, jury, unrated=True)
    places = np.array(table.benchmarks, dtype=object)
    own = np.zeros((len(places), len(table.criteria)), dtype=bool)
    for name, names in criteria.items():
        own[places == name] = np.isin(table.criteria, names)
    used = np.where(own[:, None, :], table.values, 0.0)  # NaN of an own criterion goes through
    counted = np.where(own.any(axis=1), own.sum(axis=1), np.nan)
    composites = used.sum(axis=2) / counted[:, None]
    by_clinicians, by_jurors = np.split(composites, [table.n_clinicians], axis=1)
    given = (~np.isnan(by_jurors)).sum(axis=1)
    clusters = table.clusters()
    order = np.random.default_rng(0).permutation(int(clusters.max(initial=-1)) + 1)
    return Candidates(
        table.responses,
        table.instances,
        table.benchmarks,
        order[clusters].astype(np.int64),
        np.where(given >= needed, mean_of_given(by_jurors), np.nan),
        mean_of_given(by_clinicians),
    )


def criteria_of(scores: Scores, criterion: str | None) -> dict[str, Sequence[str]]:
    """Return the criteria of each benchmark that count; BadInput where one bound cannot be of all."""
    scales = {name: (shape.low, shape.high) for name, shape in scores.rubrics.items()}
    if len(set(scales.values())) > 1:
        told = ", ".join(f"{name} {low} to {high}" for name, (low, high) in scales.items())
        raise BadInput(f"the benchmarks have different scales ({told}): name one with --benchmark")
    without = [name for name, shape in scores.rubrics.items() if criterion not in shape.criteria]
    if criterion is not None and without:
        raise BadInput(
            f"--criterion {criterion}: {', '.join(without)} has no such criterion; name a benchmark "
            "that has it with --benchmark"
        )
    return {
        name: shape.criteria if criterion is None else (criterion,)
        for name, shape in scores.rubrics.items()
    }


def routes(table: Candidates, harm: Harm, bound: float, confidence: float, seed: int = 0) -> Routed:
    """Return the rule of the jury's low score, at a threshold that holds the bound.

    Two fifths of the rated instances choose the order in which thresholds are tested; the rest certify.

    Parameters
    ----------
    table, harm : the responses, and which of them are harmful
    bound : the largest share of harmful ones among the passed, in (0, 1)
    confidence : with which it holds, in (0, 1)
    seed : of the parts

    Raises
    ------
    TooFew
        If a part has fewer than 10 instances.
    """
    scored = ~np.isnan(table.jury)
    rated = scored & ~np.isnan(table.clinicians)
    every = RatedRisks(table.risks, table.harmful(harm), table.clusters)
    clusters = np.unique(table.clusters[rated])
    number = round(LEARN_SHARE * len(clusters))
    if number < LEAST:
        raise TooFew(
            f"{len(clusters)} instances rated by clinicians and by the whole jury: 25 are the fewest "
            "of which one part can choose a rule and the other certify it"
        )
    drawn = np.random.default_rng(seed).permutation(clusters)[:number]
    is_learning = np.isin(table.clusters, drawn)
    learning, certifying = every.of(rated & is_learning), every.of(rated & ~is_learning)
    order = order_of_tests(learning, bound, len(certifying.risks) / len(learning.risks))
    most = int(np.bincount(table.clusters[scored], minlength=1).max())
    threshold, p = fixed_sequence(certifying, order, bound, confidence, most)
    passes = certifying.risks <= threshold
    caught, low, high = caught_with_interval(certifying)
    return Routed(
        harm=harm,
        bound=bound,
        confidence=confidence,
        threshold=threshold,
        p=p,
        certified_passed=int(passes.sum()),
        certified_harmful=int((passes & certifying.harmful).sum()),
        caught=caught,
        caught_low=low,
        caught_high=high,
        responses=len(table.responses),
        not_scored=int((~scored).sum()),
        passed=int((every.risks[scored] <= threshold).sum()),
        n_train=len(learning.risks),
        n_certify=len(certifying.risks),
        harmful=int(every.harmful[rated].sum()),
        rated=int(rated.sum()),
    )


def threshold_p(rated: RatedRisks, threshold: float, bound: float, most: int) -> float:
    """Return the p value of "the share of harmful among the passed is over the bound".

    Exact (binomial) for one response an instance, else by betting. `most`: the most responses of
    any instance, in the study and in what is routed. 1 where none is passed.
    """
    is_passed = rated.risks <= threshold
    _, place = np.unique(rated.clusters, return_inverse=True)
    passed, harmful = (
        np.bincount(place, weights=rows) for rows in (is_passed, is_passed & rated.harmful)
    )
    if most > 1:
        return betting_p((harmful - bound * passed) / most, bound)
    return float(binom.cdf(harmful.sum(), passed.sum(), bound)) if passed.any() else 1.0


def betting_p(excess: Array, bound: float) -> float:
    """Return a p value of "excess harm an instance is over 0 on average", whatever the instances are.

    Waudby-Smith, Ramdas (2024), Estimating means of bounded random variables by betting, JRSS B
    86(1): wealth that starts at 1 and is bet against each instance in turn cannot be expected to grow
    if the hypothesis holds, so by Ville's inequality one over its largest value is a p value.

    Parameters
    ----------
    excess : shape (instances,), in [-bound, 1 - bound], in an order drawn at random
        Of an instance: (harmful passed - bound x passed) / the most responses of any instance.
    bound : float, in (0, 1)
    """
    if not len(excess):
        return 1.0
    bets = np.arange(1, BETS + 1) / (BETS + 1) / (1 - bound)
    wealth = np.exp(np.cumsum(np.log1p(-bets[:, None] * excess[None, :]), axis=1)).mean(axis=0)
    return float(min(1.0, 1 / wealth.max()))


def fixed_sequence(
    rated: RatedRisks, thresholds: Sequence[float], bound: float, confidence: float, most: int
) -> tuple[float, float]:
    """Return the last threshold before the first that fails its test, and its p value.

    -inf and NaN if the first one fails.

    Parameters
    ----------
    rated : the certifying part, seen by nothing that chose the thresholds or their order
    thresholds : in the order of the tests, each at least as loose as the one before
    bound, confidence : in (0, 1)
    most : the most responses of any instance
    """
    found = -math.inf, math.nan
    for threshold in thresholds:
        p = threshold_p(rated, threshold, bound, most)
        if p > 1 - confidence:
            break
        found = threshold, p
    return found


def order_of_tests(rated: RatedRisks, bound: float, size: float) -> list[float]:
    """Return thresholds to test, from the learning part alone: the likeliest to pass, then looser ones.

    Parameters
    ----------
    rated : the learning part
    bound : float, in (0, 1)
    size : certifying instances for each learning one
    """
    steps = np.unique(
        np.quantile(rated.risks, np.arange(1, GRID + 1) / GRID, method="inverted_cdf")
    )
    expected = []  # the p value if the certifying part were like the learning part
    for step in steps:
        is_passed = rated.risks <= step
        passed, harmful = int(is_passed.sum()), int((is_passed & rated.harmful).sum())
        number = int(passed * size)
        share = (harmful + 0.5) / (passed + 1)
        expected.append(binom.cdf(np.ceil(share * number), number, bound) if number else 1.0)
    return [float(step) for step in steps[int(np.argmin(expected)) :]]


def caught(risks: Array, harmful: Flags) -> float:
    """Return the share of the harmful among the riskiest 20 %; ties are read in equal parts.

    NaN where nothing is harmful.
    """
    if not harmful.any():
        return math.nan
    number = READ_SHARE * len(risks)
    cut = np.sort(risks)[::-1][max(int(np.ceil(number)) - 1, 0)]
    over, tied = risks > cut, risks == cut
    part = (number - over.sum()) / tied.sum()
    return float((harmful[over].sum() + part * harmful[tied].sum()) / harmful.sum())


def caught_with_interval(rated: RatedRisks) -> tuple[float, float, float]:
    """Return what is caught at 20 % read, with a percentile interval over 1,000 resamples of instances."""
    order = np.argsort(rated.clusters, kind="stable")
    _, starts = np.unique(rated.clusters[order], return_index=True)
    random, instances, drawn = np.random.default_rng(0), np.split(order, starts[1:]), []
    for _ in range(RESAMPLES):
        sample = random.integers(0, len(instances), len(instances))
        rows = np.concatenate([instances[n] for n in sample])
        drawn.append(caught(rated.risks[rows], rated.harmful[rows]))
    known = [share for share in drawn if share == share]
    low, high = np.quantile(known, [0.025, 0.975]) if known else (math.nan, math.nan)
    return caught(rated.risks, rated.harmful), float(low), float(high)


def route_by(
    rule: RoutingRule, table: Candidates, rubrics: Mapping[str, str]
) -> list[RoutedResponse]:
    """Return the decision of a kept rule on responses, in their order.

    What the rule was not certified for is read: another benchmark, another rubric, or a response that
    too few of its jurors have scored.

    Parameters
    ----------
    rule : that is kept
    table : of its jury, and of its criteria
    rubrics : the SHA-256 of each benchmark's rubric now
    """
    certified = {one.name: one.rubric_sha256 for one in rule.benchmarks}
    decided = []
    for name, place, risk in zip(
        table.responses, table.benchmarks, table.risks.tolist(), strict=True
    ):
        if place not in certified:
            why, risk = Why.OTHER_BENCHMARK, math.nan
        elif certified[place] != rubrics[place]:
            why, risk = Why.OTHER_RUBRIC, math.nan
        elif risk != risk:
            why = Why.NOT_SCORED
        else:
            why = Why.UNDER_THRESHOLD if risk <= rule.threshold else Why.OVER_THRESHOLD
        decision = PASS if why is Why.UNDER_THRESHOLD else READ
        decided.append(RoutedResponse(name, place, decision, risk, why))
    return decided
