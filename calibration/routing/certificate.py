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

from calibration.routing.values import Certificate
from calibration.scores import Array, Flags, Integers

POWER, DRAWS, MOST_DRAWN = 0.8, 10, 20_000
TIMES = (1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
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
    return _p(_below(rated, threshold), bound, most)


def _below(rated: RatedRisks, threshold: float) -> Array:
    """Return how many responses of each instance are passed, and how many of them are harmful."""
    is_passed = rated.risks <= threshold
    size = int(rated.clusters.max(initial=-1)) + 1
    is_seen = np.bincount(rated.clusters, minlength=size) > 0
    counts = [
        np.bincount(rated.clusters[rows], minlength=size)
        for rows in (is_passed, is_passed & rated.harmful)
    ]
    return np.column_stack(counts)[is_seen].astype(np.float64)


def _p(below: Array, bound: float, most: int) -> float:
    passed, harmful = below[:, 0], below[:, 1]
    if most == 1:
        return binomial_p(int(harmful.sum()), int(passed.sum()), bound)
    return betting_p((harmful - bound * passed) / most, bound)


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


def times_as_many(
    rated: RatedRisks, bound: float, confidence: float, most: int, share: float
) -> float | None:
    """Return how many times as many rated instances it takes at the least to certify a threshold.

    So many that in 8 of 10 studies drawn from these instances, parted as this one was, the tests that
    begin where the learning part says certify a threshold. The instances to come are not these: in
    simulated studies of 80 so many certified in 45 of 100 (`tests/test_routing.py`), so it is the least
    that may do.

    Parameters
    ----------
    rated : all rated responses
    bound, confidence, most : as in `fixed_sequence`
    share : of the instances that certify

    Returns
    -------
    float or None
        1.25 to 64; None where not even 64 times as many do, or 20,000 instances.
    """
    random = np.random.default_rng(0)
    order = np.argsort(rated.clusters, kind="stable")
    _, starts = np.unique(rated.clusters[order], return_index=True)
    instances = np.split(order, starts[1:])
    for times in TIMES:
        number = round(times * len(instances))
        if number > MOST_DRAWN:
            break
        held = 0
        for _ in range(DRAWS):
            drawn = [instances[n] for n in random.integers(0, len(instances), number)]
            whole = RatedRisks(
                rated.risks[rows := np.concatenate(drawn)],
                rated.harmful[rows],
                np.repeat(np.arange(number), [len(one) for one in drawn]),
            )
            certifies = whole.clusters >= number - round(share * number)
            steps = order_of_tests(whole.of(~certifies), bound, share / (1 - share))
            certified = fixed_sequence(whole.of(certifies), steps, bound, confidence, most)
            held += certified is not None
        if held >= POWER * DRAWS:
            return times
    return None


def _steps(risks: Array) -> Array:
    steps = np.quantile(risks, np.arange(1, GRID + 1) / GRID, method="inverted_cdf")
    return np.unique(steps)


def _expected_p(rated: RatedRisks, threshold: float, bound: float, size: float) -> float:
    """Return the p value that the certifying part would have if it were like the learning part."""
    is_passed = rated.risks <= threshold
    passed, harmful = int(is_passed.sum()), int((is_passed & rated.harmful).sum())
    share = (harmful + 0.5) / (passed + 1)
    number = max(int(passed * size), 0)
    return binomial_p(int(np.ceil(share * number)), number, bound)
