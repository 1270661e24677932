"""How often planned responses and clinicians show that a jury is no worse than a clinician."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy import special
from scipy.optimize import brentq

from calibration.like_for_like import LEAST_CLINICIANS
from calibration.notes import note, noted
from calibration.planning.rows import NonInferiorityRow, PlanOptions, PlanRow
from calibration.scores import Array, Flags
from calibration.values import NAN, NORMAL_95
from calibration.weighted import pooled_icc

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
    planned = {row.basis: (row.icc_single, row.n) for row in rows if row.n is not None}
    clinicians = [options.clinicians] if options.clinicians else []
    share = options.ceiling
    if share is None and top is not None:
        share = top if top >= FEW_AT_TOP else 0.0
    return [
        with_power(
            NonInferiorityRow(
                basis, single, options.per_response, number, ceiling, options.margin, n
            ),
            options.assurance,
            options.seed,
        )
        for basis, (single, n) in planned.items()
        for ceiling in ((0.0, TOP) if share is None else (share,))
        for number in clinicians or [options.per_response + more for more in MORE]
    ]


def with_power(row: NonInferiorityRow, assurance: float = 0.8, seed: int = 0) -> NonInferiorityRow:
    """Return a row with how often its study gives the verdict "no worse than a clinician".

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
    row : what is planned: ICC from 0 to below 1, two clinicians a response or more
    assurance : share of studies that `n_for_power` is for; by the ends of the intervals alone
    seed : of the simulation
    """
    notes = noted(
        note("jury_like_clinician", "for a jury that is truly as good as a clinician"),
        note(
            "few_for_power",
            "fewer than {least} responses: too few for a reliable power",
            least=LEAST,
        )
        if row.n < LEAST
        else None,
    )
    if row.n < LEAST:
        return replace(row, notes=notes)
    scores, jury, read = _simulated(row, np.random.default_rng(seed))
    every = _IccsOfStudies(scores, jury, read)
    known = range(row.clinicians)
    jury_icc, clinician_icc = every.iccs([*known])
    difference = jury_icc - clinician_icc
    sd, jury_z, clinician_z = float(difference.std(ddof=1)), _z(jury_icc), _z(clinician_icc)
    single_low = np.tanh(clinician_z - NORMAL_95 * clinician_z.std(ddof=1))
    clinician_low = 2 * single_low / (1 + np.abs(single_low))
    shown = difference - NORMAL_95 * sd > -row.margin
    shown &= jury_z - NORMAL_95 * jury_z.std(ddof=1) > 0
    shown &= (clinician_low > 0) & (clinician_low >= 2 * row.margin)
    like_these = np.zeros_like(shown)
    left_out = row.clinicians >= LEAST_CLINICIANS
    if left_out:
        left = [every.iccs([other for other in known if other != one]) for one in known]
        for without_jury, without in left:
            z = _z(without)
            shown &= (z - NORMAL_95 * z.std(ddof=1) > 0) & (without_jury - without > -row.margin)
        differences = np.array([without_jury - without for without_jury, without in left])
        spread = (row.clinicians - 1) * differences.var(axis=0)
        t = special.stdtrit(row.clinicians - 1, 0.975)
        half = np.sqrt(t**2 * spread + (NORMAL_95 * sd) ** 2)
        like_these = shown & (difference - half > -row.margin)
    power = float(shown.mean())
    gaps = [
        (row.margin, sd),
        (float(clinician_z.mean()) - float(_z(2 * row.margin)), float(clinician_z.std(ddof=1))),
    ]
    return replace(
        row,
        power=power,
        power_like_these=float(like_these.mean()) if left_out else NAN,
        mc_error=math.sqrt(power * (1 - power) / len(shown)),
        sd=sd,
        n_for_power=_needed(row.n, NORMAL_95 + NormalDist().inv_cdf(assurance), gaps),
        notes=notes,
    )


def _needed(responses: int, reach: float, gaps: Sequence[tuple[float, float]]) -> int | None:
    """Return the responses with which each gap is `reach` standard deviations, which fall as 1 / sqrt(n)."""
    if any(gap <= 0 for gap, _ in gaps):
        return None
    needed = max(responses * (reach * sd / gap) ** 2 for gap, sd in gaps)
    return math.ceil(needed) if needed <= MOST_RESPONSES else None


def _z(icc: Array | float) -> Array:
    """Return Fisher's z of the single-rater consistency of ICCs of two raters."""
    z: Array = np.arctanh(np.clip(icc / (2 - np.abs(icc)), -1 + 1e-12, 1 - 1e-12))
    return z


def _simulated(row: NonInferiorityRow, random: np.random.Generator) -> tuple[Array, Array, Flags]:
    """Return scores (studies, n, clinicians), the jury's (studies, n), and who read what (n, clinicians)."""
    n, clinicians = row.n, row.clinicians
    draws = int(np.clip(NUMBERS // (n * (clinicians + 1)), FEWEST_DRAWN, MOST_DRAWN))
    alike = math.sqrt(latent_icc(row.icc_single, row.ceiling))
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
    if row.ceiling:
        scores = np.searchsorted(_cuts(row.ceiling), scores.ravel()).reshape(scores.shape) + 1.0
    order = np.argsort(random.random((n, clinicians)), axis=1)
    read = order.argsort(axis=1) < row.per_response
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
