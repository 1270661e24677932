"""How often planned responses and clinicians show that a jury is no worse than a clinician."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy import special
from scipy.optimize import brentq

from calibration.like_for_like import LEAST_CLINICIANS, pooled_icc
from calibration.notes import note, noted
from calibration.planning.rows import NonInferiorityRow, PlanOptions, PlanRow
from calibration.scores import Array, Flags
from calibration.shared_notes import FEW_FOR_POWER
from calibration.values import NAN, NORMAL_95
from data.errors import BadInput

SPREAD = (
    0.1  # standard deviation between clinicians of their correlation with what responses are worth
)
FEW_AT_TOP = 0.2  # share of a pilot's scores at the top; below it, scores are taken as normal
TOP = 0.7  # share of scores at the top that is planned for where nothing tells
BELOW_TOP = (0.5, 0.27, 0.16, 0.07)  # shares of the other scores, from 4 to 1
MORE = (0, 1, 2, 4)  # clinicians more than read a response
NUMBERS = 1_500_000  # simulated scores a row: half a second
FEWEST_DRAWN, MOST_DRAWN = 200, 1000  # studies; of 200 a power of 80 % is known to 3 points
LEAST = 4  # responses; of fewer no power is computed
MOST_RESPONSES = 1_000_000


@dataclass(frozen=True)
class PlannedStudy:
    """A study of a jury that is as good as a clinician: the assumptions.

    Attributes
    ----------
    single : ICC of a single clinician's scores, at least 0 and below 1
    responses : one an instance
    clinicians, per_response : who take part; who read each response, 2 or more
    ceiling : share of scores that are the highest of five, below 1; 0 for normal scores

    Raises
    ------
    BadInput
        If one is outside its range.
    """

    single: float
    responses: int
    clinicians: int = 2
    per_response: int = 2
    ceiling: float = 0.0

    def __post_init__(self) -> None:
        if not 2 <= self.per_response <= self.clinicians:
            raise BadInput("like for like takes two clinicians a response or more")
        if not 0 <= self.single < 1:
            raise BadInput(
                f"a single-rater ICC of {self.single:g}: it is 0 or more and below 1 here"
            )
        if not 0 <= self.ceiling < 1:
            raise BadInput(
                f"{self.ceiling:g} of the scores at the top: it is 0 or more and below 1"
            )


@dataclass(frozen=True)
class VerdictPower:
    """Shares of simulated studies; NaN for too few responses.

    Attributes
    ----------
    power : that say "no worse", for these clinicians or for others like them
    like_these : that say so for others like them
    mc_error : standard error of `power` by the simulation
    sd : of the difference between the jury's ICC and a clinician's, for the same clinicians
    needed : responses with which a share `assured` of studies says so; None above a million, or
        where more responses do not help
    """

    power: float = NAN
    like_these: float = NAN
    mc_error: float = NAN
    sd: float = NAN
    needed: int | None = None


def non_inferiority_rows(
    rows: Sequence[PlanRow], options: PlanOptions, top: float | None = None
) -> list[NonInferiorityRow]:
    """Return what a plan's responses show at its margin, by number of clinicians and kind of scores.

    Empty where the plan has no margin, or one clinician a response.

    Parameters
    ----------
    rows : of the plan
    options : with a number of clinicians, only that is planned for
    top : share of scores at the top in a pilot; None where there is none
    """
    if options.margin is None or options.per_response < 2:
        return []
    planned = {row.basis: (row, row.n) for row in rows if row.n is not None}
    numbers = [options.clinicians or 0] if options.clinicians else _numbers(options.per_response)
    share = (
        options.ceiling if options.ceiling is not None or top is None else top * (top >= FEW_AT_TOP)
    )
    ceilings = (0.0, TOP) if share is None else (share,)
    return [
        _row(row, n, options.margin, options, clinicians, ceiling)
        for row, n in planned.values()
        for ceiling in ceilings
        for clinicians in numbers
    ]


def _numbers(per_response: int) -> list[int]:
    return [per_response + more for more in MORE]


def _row(
    row: PlanRow, n: int, margin: float, options: PlanOptions, clinicians: int, ceiling: float
) -> NonInferiorityRow:
    study = PlannedStudy(row.icc_single, n, clinicians, options.per_response, ceiling)
    found = verdict_power(study, margin, options.assurance, options.seed)
    return NonInferiorityRow(
        basis=row.basis,
        icc_single=row.icc_single,
        per_response=options.per_response,
        clinicians=clinicians,
        ceiling=ceiling,
        margin=margin,
        n=n,
        power=found.power,
        power_like_these=found.like_these,
        mc_error=found.mc_error,
        sd=found.sd,
        n_for_power=found.needed,
        notes=noted(
            note("jury_like_clinician", "for a jury that is truly as good as a clinician"),
            note(*FEW_FOR_POWER, least=LEAST) if n < LEAST else None,
        ),
    )


def verdict_power(
    study: PlannedStudy, margin: float, assured: float = 0.8, seed: int = 0
) -> VerdictPower:
    """Return how often a study gives the verdict "no worse than a clinician".

    Scores are simulated and judged by the parts of the rule (`calibration.verdict`): the interval
    of the difference above minus the margin; the lower ends of the jury's and of a clinician's ICC
    above 0, the latter at least twice the margin; and, with three clinicians or more, the same
    side without each of them. An interval is the estimate, for ICCs on Fisher's z, -+ 1.96 of its
    standard deviation over the studies; over clinicians the jackknife is added, as in
    `like_for_like.population_interval`. The correlation of a clinician with what the responses are
    worth differs between clinicians by a standard deviation of 0.1; the jury's is such that the
    difference is 0.
    Scores with a ceiling are points from 1 to 5, of the same single-rater ICC.

    Parameters
    ----------
    study : PlannedStudy
    margin : above 0
    assured : share of studies that `needed` is for; by the ends of the intervals alone
    seed : of the simulation
    """
    if study.responses < LEAST:
        return VerdictPower()
    scores, jury, read = _simulated(study, np.random.default_rng(seed))
    every = _IccsOfStudies(scores, jury, read)
    known = range(study.clinicians)
    jury_icc, clinician_icc = every.iccs([*known])
    difference = jury_icc - clinician_icc
    sd, jury_z, clinician_z = float(difference.std(ddof=1)), _z(jury_icc), _z(clinician_icc)
    clinician_low = _icc(clinician_z - NORMAL_95 * clinician_z.std(ddof=1))
    shown = difference - NORMAL_95 * sd > -margin
    shown &= jury_z - NORMAL_95 * jury_z.std(ddof=1) > 0
    shown &= (clinician_low > 0) & (clinician_low >= 2 * margin)
    like_these = np.zeros_like(shown)
    if study.clinicians >= LEAST_CLINICIANS:
        left = [every.iccs([other for other in known if other != one]) for one in known]
        for without_jury, without in left:
            z = _z(without)
            shown &= (z - NORMAL_95 * z.std(ddof=1) > 0) & (without_jury - without > -margin)
        differences = np.array([without_jury - without for without_jury, without in left])
        like_these = shown & (difference - _half(differences, sd) > -margin)
    power = float(shown.mean())
    reach = NORMAL_95 + NormalDist().inv_cdf(assured)
    gaps = [
        (margin, sd),
        (float(clinician_z.mean()) - float(_z(2 * margin)), float(clinician_z.std(ddof=1))),
    ]
    return VerdictPower(
        power,
        float(like_these.mean()) if study.clinicians >= LEAST_CLINICIANS else NAN,
        math.sqrt(power * (1 - power) / len(shown)),
        sd,
        _needed(study.responses, reach, gaps),
    )


def _needed(responses: int, reach: float, gaps: Sequence[tuple[float, float]]) -> int | None:
    """Return the responses with which each gap is `reach` standard deviations, which fall as 1 / sqrt(n)."""
    if any(gap <= 0 for gap, _ in gaps):
        return None
    needed = max(responses * (reach * sd / gap) ** 2 for gap, sd in gaps)
    return math.ceil(needed) if needed <= MOST_RESPONSES else None


def _half(left_out: Array, sd: float) -> Array:
    """Return half the width of the interval over clinicians like these, from those without each."""
    clinicians = len(left_out)
    spread = (clinicians - 1) * left_out.var(axis=0)
    t = special.stdtrit(clinicians - 1, 0.975)
    half: Array = np.sqrt(t**2 * spread + (NORMAL_95 * sd) ** 2)
    return half


def _z(icc: Array | float) -> Array:
    """Return Fisher's z of the single-rater consistency of ICCs of two raters."""
    z: Array = np.arctanh(np.clip(icc / (2 - np.abs(icc)), -1 + 1e-12, 1 - 1e-12))
    return z


def _icc(z: Array) -> Array:
    single = np.tanh(z)
    icc: Array = 2 * single / (1 + np.abs(single))
    return icc


def _simulated(study: PlannedStudy, random: np.random.Generator) -> tuple[Array, Array, Flags]:
    """Return scores (studies, n, clinicians), the jury's (studies, n), and who read what (n, clinicians)."""
    n, clinicians = study.responses, study.clinicians
    draws = int(np.clip(NUMBERS // (n * (clinicians + 1)), FEWEST_DRAWN, MOST_DRAWN))
    alike = math.sqrt(latent_icc(study.single, study.ceiling))
    places = special.ndtri((np.arange(clinicians) + 0.5) / clinicians)
    spread = SPREAD * places / max(float(places.std()), 1e-12)
    own = np.clip(alike + spread * (alike > 0), 0.0, 0.99)
    worth = random.normal(size=(draws, n, 1))
    loading = np.append(
        own, (own.sum() ** 2 - own @ own) / (clinicians - 1) / max(own.sum(), 1e-12)
    )
    scores = loading * worth + np.sqrt(1 - loading**2) * random.normal(
        size=(draws, n, clinicians + 1)
    )
    if study.ceiling:
        scores = np.searchsorted(_cuts(study.ceiling), scores.ravel()).reshape(scores.shape) + 1.0
    order = np.argsort(random.random((n, clinicians)), axis=1)
    read = order.argsort(axis=1) < study.per_response
    return scores[:, :, :-1], scores[:, :, -1], read


@cache
def latent_icc(single: float, ceiling: float) -> float:
    """Return the correlation of two normal scores whose points, cut at a ceiling, correlate by `single`."""
    if not ceiling or not single:
        return single
    cuts = _cuts(ceiling)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    share = special.ndtr(-cuts)
    total = sum(
        float(np.minimum(a, b) - a * b) for a in share for b in share
    )  # variance of a sum of indicators of one score

    def beyond(rho: float) -> float:
        expected = special.ndtr((math.sqrt(rho) * nodes[:, None] - cuts) / math.sqrt(1 - rho))
        mean = weights @ expected.sum(axis=1) / weights.sum()
        square = weights @ expected.sum(axis=1) ** 2 / weights.sum()
        return float((square - mean**2) / total) - single

    return float(brentq(beyond, 0.0, 1 - 1e-9, xtol=1e-6))


def _cuts(ceiling: float) -> Array:
    """Return where normal scores are cut into points 1 to 5 so that a share is 5."""
    shares = (1 - ceiling) * np.array(BELOW_TOP[::-1])
    cuts: Array = special.ndtri(shares.cumsum())
    return cuts


class _IccsOfStudies:
    """Like for like of simulated studies, by the clinicians that are taken."""

    def __init__(self, scores: Array, jury: Array, read: Flags) -> None:
        given = np.where(read, scores, 0.0)
        number = read.sum(axis=0)
        mean = given.sum(axis=1, keepdims=True) / number
        square = (np.where(read, scores - mean, 0.0) ** 2).sum(axis=1, keepdims=True) / (number - 1)
        scale = np.where(square > 0, square, np.inf)
        self.z = np.where(read, (scores - mean) / np.sqrt(scale), 0.0)
        spread = jury.std(axis=1, ddof=1, keepdims=True)
        self.jury = (jury - jury.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
        self.read = read

    def iccs(self, clinicians: Sequence[int]) -> tuple[Array, Array]:
        """Return the ICCs (studies,) of jury and clinician with the others of these clinicians."""
        total, number = self.z[:, :, clinicians].sum(axis=2), self.read[:, clinicians].sum(axis=1)
        held = np.sum([self._held(one, total, number) for one in clinicians], axis=0)
        jury, clinician = (pooled_icc(squares, "paper") for squares in held)
        return np.nan_to_num(jury), np.nan_to_num(clinician)

    def _held(self, one: int, total: Array, number: Array) -> Array:
        """Return Sxx, Syy and Sxy of jury and clinician, with the others' mean, (2, 3, studies)."""
        rows = np.flatnonzero(self.read[:, one] & (number > 1))
        own = self.z[:, rows, one]
        others = (total[:, rows] - own) / (number[rows] - 1)
        others = others - others.mean(axis=1, keepdims=True)
        return np.stack([_squares(column, others) for column in (self.jury[:, rows], own)])


def _squares(column: Array, others: Array) -> Array:
    x = column - column.mean(axis=1, keepdims=True)
    return np.stack(
        [np.einsum("bn,bn->b", a, b) for a, b in ((x, x), (others, others), (x, others))]
    )
