"""How many pairs a study takes: for the width of like for like, or to show that a jury is no worse."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from calibration.clinicians import mean_of_others
from calibration.notes import Noted
from calibration.pairs import PairScores, agreed, pair_rows
from calibration.remarks import FEW_INSTANCES
from calibration.scores import Array
from calibration.values import NAN, PlanOptions
from data.errors import BadInput

DRAWN = 100_000  # simulated pairs
MOST_PAIRS = 1_000_000
HIGHEST = 0.95  # agreement that can be planned for
CLEAREST = 30.0  # SD of what pairs are worth, in that of a clinician's error


@dataclass(frozen=True)
class PairPlanRow(Noted):
    """Pairs for a jury truly as good as a clinician, one pair an instance. NaN, None: undefined.

    Attributes
    ----------
    agreement, ties : of a clinician with the sign of the others' mean, and the share of single
        judgements that are ties, as assumed or from a pilot
    per_pair : clinicians who judge each pair
    n_for_width : pairs with which a share `assurance` of studies obtain the width of like for like
    n_for_power : pairs with which such a share shows "no worse" at the margin, its interval above
        minus the margin and the lower end of a clinician's agreement above one half by twice the
        margin; None without a margin, above a million, or where clinicians agree too little for it
    n : the number of responses in the options, else the larger of these
    readings, per_clinician : judgements by clinicians, in all and for each
    width_expected, power : of the 95 % interval, and the share that shows "no worse", with n pairs
    """

    agreement: float
    ties: float
    per_pair: int
    n_for_width: int | None = None
    n_for_power: int | None = None
    n: int | None = None
    readings: int | None = None
    per_clinician: int | None = None
    width_expected: float = NAN
    power: float = NAN


def pairs_needed(agreement: float, options: PlanOptions, ties: float = 0.1) -> PairPlanRow:
    """Return how many pairs a study takes.

    Clinicians and jury see what a pair is worth, normal with an SD that gives the agreement, each
    with an error of its own of SD 1; of what they see the nearest to 0 are ties, and half of the
    others clear preferences. From pairs that are drawn so come the variance between pairs of the
    difference, and how much that varies from study to study.

    Raises
    ------
    BadInput
        With fewer than two clinicians a pair, or an agreement or share of ties out of range.
    """
    from scipy.optimize import brentq  # slow to load, and seldom needed

    if options.per_response < 2 or not 0.5 < agreement <= HIGHEST or not 0 <= ties < 1:
        raise BadInput(
            f"pairs are planned for two clinicians a pair or more, an agreement above 0.5 to {HIGHEST:g} "
            f"and ties from 0 to below 1: not {options.per_response}, {agreement:g} and {ties:g}"
        )
    row = PairPlanRow(agreement, ties, options.per_response)
    draws = np.random.default_rng(options.seed).normal(size=(DRAWN, options.per_response + 2))

    def excess(worth: float) -> float:
        return float(np.nanmean(_hits(draws, worth, ties)[1])) - agreement

    hits = _hits(draws, float(brentq(excess, 0.0, CLEAREST, xtol=1e-3)), ties)
    difference, clinician = _moves(hits[0] - hits[1], 0.0), _moves(hits[1], agreement)
    return _planned(row, options, (difference, clinician))


def pairs_like(scores: PairScores, options: PlanOptions) -> PairPlanRow:
    """Return how many pairs a study takes whose clinicians agree, and tie, as these do.

    Raises as `pairs_needed`; BadInput too where no two clinicians judged a pair.
    """
    own = scores.preferences[scores.preferences["kind"] == "clinician"]
    between = [row for row in pair_rows(scores) if row.scorer == "clinicians"]
    if not between or math.isnan(between[-1].agreement):
        raise BadInput("no pilot: two clinicians have to have judged the same pairs")
    return pairs_needed(between[-1].agreement, options, float((own["preference"] == 0).mean()))


def _hits(draws: Array, worth: float, ties: float) -> Array:
    """Return agreement with the others of jury and clinicians, (2, pairs, clinicians)."""
    seen = draws[:, :1] * worth + draws[:, 1:]
    cuts = math.hypot(1.0, worth) * special.ndtri([(1 + ties) / 2, (3 + ties) / 4])
    points = np.sign(seen) * np.searchsorted(cuts, np.abs(seen)).astype(np.float64)
    others = mean_of_others(points[:, 1:])
    return np.stack([agreed(points[:, :1], others), agreed(points[:, 1:], others)])


def _moves(values: Array, mean: float) -> Array:
    """Return what each pair adds to the ratio of sums of values (pairs, clinicians), in units of n."""
    off = np.nansum(values - mean, axis=1)
    return np.asarray(off / (~np.isnan(values)).sum(axis=1).mean(), dtype=np.float64)


def _planned(row: PairPlanRow, options: PlanOptions, moves: tuple[Array, Array]) -> PairPlanRow:
    difference, clinician = moves
    sd, margin = float(difference.std()), options.margin
    spread = float((difference**4).mean()) / sd**4 - 1  # of a sample's variance, times n
    sure, room = float(special.ndtri(options.assurance)), row.agreement - 0.5 - 2 * (margin or 0.0)

    def half(n: int) -> float:
        return float(special.stdtrit(n - 1, 0.975)) * sd / math.sqrt(n)

    def narrow(n: int) -> bool:
        return 2 * half(n) * math.sqrt(1 + sure * math.sqrt(spread / n)) <= options.width

    def power(n: int) -> float:
        if margin is None:
            return NAN
        reach = float(special.stdtrit(n - 1, 0.975))
        return float(special.ndtr((margin - half(n)) / sd * math.sqrt(n))) * (
            room > reach * float(clinician.std()) / math.sqrt(n)
        )

    def shown(n: int) -> bool:
        least = float(special.stdtrit(n - 1, 0.975)) + sure
        return power(n) >= options.assurance and room > least * clinician.std() / math.sqrt(n)

    of_width = _fewest(narrow)
    of_power = _fewest(shown) if margin is not None and room > 0 else None
    n = options.responses or max(of_width or 0, of_power or 0) or None
    row = replace(row, n_for_width=of_width, n_for_power=of_power, n=n)
    if n is None:
        return row
    readings = n * row.per_pair
    return replace(
        row,
        readings=readings,
        per_clinician=math.ceil(readings / (options.clinicians or row.per_pair)),
        width_expected=2 * half(n),
        power=power(n),
    )


def _fewest(enough: Callable[[int], bool]) -> int | None:
    """Return the fewest pairs from 20 to a million that are enough, as all more are."""
    low, high = FEW_INSTANCES - 1, MOST_PAIRS
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
