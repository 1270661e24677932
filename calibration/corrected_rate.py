"""The share of responses that fail by the clinicians' standard, from a jury's flags and its errors."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from calibration.clustered_intervals import clustered_proportion, effective_trials
from calibration.icc import UNDEFINED, Interval
from calibration.scores import Flags, Integers
from calibration.values import NAN

HALF = 0.5  # a pseudo-count of either outcome: shares of 0 and 1 have errors too


@dataclass(frozen=True, slots=True)
class Share:
    """A share of responses, with half a response of either outcome added, and its error.

    Attributes
    ----------
    value : in (0, 1)
    trials : number of independent responses that tell as much, with those added
    part : of all responses that those of this share are
    """

    value: float
    trials: float
    part: float = 0.0

    @property
    def variance(self) -> float:
        """Return the variance of the share."""
        return self.value * (1 - self.value) / self.trials

    @property
    def common(self) -> float:
        """Return its covariance with the share of all responses, among which its own are."""
        return self.part * self.variance


def corrected_rate(
    flagged: Flags, clusters: Integers, rated: Integers, failing: Flags
) -> tuple[float, Interval]:
    """Return the share of failing responses, corrected for the errors of who flags them.

    With p the share flagged of all, s of the failing rated ones (sensitivity) and f of the other
    rated ones (1 - specificity), the rate is (p - f) / (s - f), cut to [0, 1]. The interval holds
    the rates R at which p - R s - (1 - R) f is within 1.96 of its standard errors from 0: a
    Fieller set, whose variance has the errors of all three shares and what they have in common,
    since the rated responses are among all. Instances that are more alike than chance make the
    numbers of responses behind the shares smaller. Where all are rated nothing is corrected: the
    share that the clinicians fail, with the interval of `clustered_proportion`.

    The rated responses must be a random sample of all.

    Parameters
    ----------
    flagged, clusters : shape (n,)
        Of every response with a score: whether it is flagged, and its instance, numbered from 0.
    rated : shape (m,)
        Positions among the n of those that clinicians rated.
    failing : shape (m,)
        Whether these fail by the clinicians.

    Returns
    -------
    rate, interval
        NaN where no failing or no other response was rated, the interval also with one instance.
        NaN too where s is not above f: then flags tell nothing of failing.

    References
    ----------
    Rogan & Gladen (1978), American Journal of Epidemiology 107, 71, for the rate; Lang & Reiczigel
    (2014), Preventive Veterinary Medicine 113, 13, and Lee et al. (2026), arXiv 2511.21140, for an
    interval that carries all errors; Fieller (1954), JRSS B 16, 175, for the set.
    """
    of_rated, own = flagged[rated], clusters[rated]
    if failing.all() or not failing.any():
        return NAN, UNDEFINED
    is_all = len(rated) == len(flagged)
    sensitivity, false_alarms = of_rated[failing].mean(), of_rated[~failing].mean()
    if sensitivity <= false_alarms:
        return NAN, UNDEFINED
    rate = float((flagged.mean() - false_alarms) / (sensitivity - false_alarms))
    rate = min(max(rate, 0.0), 1.0)
    if len(np.unique(own)) < 2:
        return rate, UNDEFINED
    if is_all:
        every = np.ones(len(failing))
        return rate, clustered_proportion(failing.astype(np.float64), every, own)
    total = len(flagged)
    shares = [
        _share(flagged, clusters, total),
        _share(of_rated[failing], own[failing], total),
        _share(of_rated[~failing], own[~failing], total),
    ]
    return rate, fieller(*shares)


def fieller(p: Share, s: Share, f: Share) -> Interval:
    """Return the rates R at which p - R s - (1 - R) f is no further from 0 than chance takes it.

    p is of all responses, s of those that fail, f of the others; the set is cut to [0, 1], and is
    all of it where s and f cannot be told apart.
    """
    z2 = float(special.ndtri(0.975)) ** 2
    gap, above = s.value - f.value, p.value - f.value
    a = gap**2 - z2 * (s.variance + f.variance)
    b = -2 * above * gap + 2 * z2 * (s.common - f.common + f.variance)
    c = above**2 - z2 * (p.variance - 2 * f.common + f.variance)
    inner = b * b - 4 * a * c
    if a <= 0 or inner < 0:
        return Interval(0.0, 1.0)
    low, high = ((-b + sign * inner**0.5) / (2 * a) for sign in (-1, 1))
    return Interval(min(max(low, 0.0), 1.0), min(max(high, 0.0), 1.0))


def _share(flagged: Flags, clusters: Integers, total: int) -> Share:
    hits, every = flagged.astype(np.float64), np.ones(len(flagged))
    value = (hits.sum() + HALF) / (len(flagged) + 2 * HALF)
    trials = effective_trials(hits, every, clusters) + 2 * HALF
    return Share(float(value), trials, len(flagged) / total)
