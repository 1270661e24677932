"""Certify a rule that passes responses: of those passed, at most a share is harmful.

Angelopoulos, Bates, Candes, Jordan, Lei (2021), Learn then Test, arXiv:2110.01052: thresholds are put
in an order that owes nothing to the certifying data, and tested one after the other until one fails.
The chance that any threshold that passed its test breaks the bound is then at most one minus the
confidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from calibration.scores import Array, Flags, Integers

POWER = 0.8
GRID = 40  # thresholds looked at, at equal steps of the share that is passed
BETS = 32  # sizes of bet that share the stake; more of them change the p value by under 1 %


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


@dataclass(frozen=True, slots=True)
class Certificate:
    """A threshold that holds the bound with the confidence, and what was seen below it.

    Attributes
    ----------
    threshold : responses with a risk at or under it are passed
    passed, harmful : certifying responses passed, and how many of them were harmful
    p : p value of the threshold's own test
    """

    threshold: float
    passed: int
    harmful: int
    p: float


def binomial_p(harmful: int, passed: int, bound: float) -> float:
    """Return the exact p value of "the share of harmful among the passed is over the bound".

    For responses that are independent: one of each instance. 1 where none is passed.
    """
    return float(binom.cdf(harmful, passed, bound)) if passed else 1.0


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


def threshold_p(rated: RatedRisks, threshold: float, bound: float, most: int) -> float:
    """Return the p value of a threshold: exact for one response an instance, else by betting.

    `most`: the most responses of any instance, in the study and in what is routed.
    """
    is_passed = rated.risks <= threshold
    if most == 1:
        return binomial_p(int((is_passed & rated.harmful).sum()), int(is_passed.sum()), bound)
    size = int(rated.clusters.max(initial=-1)) + 1
    weights = np.where(is_passed, rated.harmful - bound, 0.0) / most
    excess = np.bincount(rated.clusters, weights=weights, minlength=size).astype(np.float64)
    seen = np.bincount(rated.clusters, minlength=size) > 0
    return betting_p(excess[seen], bound)


def fixed_sequence(
    rated: RatedRisks, thresholds: Sequence[float], bound: float, confidence: float, most: int
) -> Certificate | None:
    """Return the last threshold before the first that fails its test; None if the first one fails.

    Parameters
    ----------
    rated : the certifying part, seen by nothing that chose the thresholds or their order
    thresholds : in the order of the tests, each at least as loose as the one before
    bound, confidence : in (0, 1)
    most : the most responses of any instance
    """
    found = None
    for threshold in thresholds:
        p = threshold_p(rated, threshold, bound, most)
        if p > 1 - confidence:
            break
        is_passed = rated.risks <= threshold
        harmful = int((is_passed & rated.harmful).sum())
        found = Certificate(threshold, int(is_passed.sum()), harmful, p)
    return found


def order_of_tests(rated: RatedRisks, bound: float, size: float) -> list[float]:
    """Return thresholds to test, from the learning part alone: the likeliest to pass, then looser ones.

    Parameters
    ----------
    rated : the learning part
    bound : float, in (0, 1)
    size : certifying instances for each learning one
    """
    steps = _steps(rated.risks)
    expected = [_expected_p(rated, step, bound, size) for step in steps]
    first = int(np.argmin(expected))
    return [float(step) for step in steps[first:]]


def more_instances(
    rated: RatedRisks, bound: float, confidence: float, most: int = 100_000
) -> int | None:
    """Return how many certifying responses the bound needs if they are like these; None: no number does.

    So many that the best threshold passes its test with a chance of 80 %, each response its own instance.
    """
    needed = []
    for threshold in _steps(rated.risks):
        is_passed = rated.risks <= threshold
        passed = int(is_passed.sum())
        share = (int((is_passed & rated.harmful).sum()) + 0.5) / (passed + 1)
        if share < bound:
            number = _least_passed(share, bound, 1 - confidence, most)
            needed += [int(np.ceil(number * len(rated.risks) / passed))] if number else []
    return min(needed, default=None)


def _steps(risks: Array) -> Array:
    steps = np.quantile(risks, np.arange(1, GRID + 1) / GRID, method="inverted_cdf")
    return np.unique(steps)


def _least_passed(share: float, bound: float, level: float, most: int) -> int | None:
    numbers = np.unique(np.geomspace(1, most, 400).astype(int))
    enough = np.asarray(binom.cdf(binom.ppf(POWER, numbers, share), numbers, bound) <= level)
    return int(numbers[np.argmax(enough)]) if enough.any() else None


def _expected_p(rated: RatedRisks, threshold: float, bound: float, size: float) -> float:
    """Return the p value that the certifying part would have if it were like the learning part."""
    is_passed = rated.risks <= threshold
    passed, harmful = int(is_passed.sum()), int((is_passed & rated.harmful).sum())
    share = (harmful + 0.5) / (passed + 1)
    number = max(int(passed * size), 0)
    return binomial_p(int(np.ceil(share * number)), number, bound)
