"""Plan a study: responses for the width of an interval, and how often it shows that a jury is no worse.

One simulation gives both. It draws ratings of the design, of a jury truly as good as a clinician,
and applies what `calibrate` applies to each study.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from statistics import NormalDist

import numpy as np
from scipy import special
from scipy.optimize import brentq

from calibration.clinicians import LEAST_CLINICIANS
from calibration.intervals import fisher_z, icc_of_fisher, jackknife_interval
from calibration.notes import Noted, counted, listed, note, simulated_in
from calibration.reliability import ReliabilityRow
from calibration.scope import AgreementRow
from calibration.scores import Array, Flags
from calibration.tables.numbers import TERMINAL, fixed, icc_interval
from calibration.values import NAN, NORMAL_95, PlanOptions
from calibration.weighted import icc_of_sums, pooled_icc

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75
LEAST = 4  # of fewer responses no width and no power is computed
SPREAD = 0.1  # SD between clinicians of their correlation with what responses are worth
FEW_AT_TOP = 0.2  # share of a pilot's scores at the top; below it, scores are taken as normal
TOP = 0.7  # share of scores at the top that is planned for where nothing tells
BELOW_TOP = (0.5, 0.27, 0.16, 0.07)  # shares of the other scores, from 4 to 1
MORE = (0, 1, 2, 4)  # clinicians more than read a response
NUMBERS = 1_500_000  # simulated scores: half a second
FEWEST_DRAWN, MOST_DRAWN = 200, 600  # studies; of 200 a power of 80 % is known to 3 points
MANY = 1000  # responses beyond which the width falls as the root of their number
MOST_SIMULATED = 5000  # responses of a study; of more the widths follow by the root of their number
MOST_RESPONSES = 1_000_000


@dataclass(frozen=True)
class Pilot:
    """What a study's own ratings say.

    Attributes
    ----------
    clinicians : their ICC(C,1), as in the table of their reliability
    jury : its ICC(C,2), as in the agreement table; None without a jury
    minutes, timed : median minutes of rating a response, and how many ratings were timed
    told : sentences on when and why the study was unblinded or reopened
    top : share of the clinicians' composites that are the highest of all
    """

    benchmark: str
    jurors: tuple[str, ...]
    clinicians: ReliabilityRow
    jury: AgreementRow | None
    minutes: float | None
    timed: int
    told: tuple[str, ...]
    top: float = 0.0


@dataclass(frozen=True)
class PlanRow(Noted):
    """A design, and what it shows of a jury as good as a clinician. NaN or None where undefined.

    Attributes
    ----------
    basis : where the ICC comes from, in words
    icc_single, icc : ICC(C,1) of the clinicians and of the jury with one of them, and the ICC(C,2)
        of the jury with the clinicians' mean that follows
    per_response, clinicians : who read each response, and who take part
    ceiling : share of scores that are the highest of five; 0 for normal scores
    n_for_width : responses with which a share `assurance` of studies obtain the width
    n : the number of responses in the options, else `n_for_width`
    readings, per_clinician : ratings of a response by a clinician, in all and for each clinician
    width_expected, width_assured : of the 95 % interval of the jury's ICC(C,2) with n responses, on
        average and in a share `assurance` of studies
    power : share of studies that say "no worse" at the margin; NaN without one
    power_like_these : share that says so for clinicians like these too; NaN with fewer than three
    n_for_power : responses for the share that the plan is to assure; None above a million, or where
        clinicians agree too little for the margin
    """

    basis: str
    icc_single: float
    per_response: int
    clinicians: int
    ceiling: float = 0.0
    icc: float = NAN
    n_for_width: int | None = None
    n: int | None = None
    readings: int | None = None
    per_clinician: int | None = None
    width_expected: float = NAN
    width_assured: float = NAN
    power: float = NAN
    power_like_these: float = NAN
    n_for_power: int | None = None


def icc_with_mean(single: float, k: int) -> float:
    """Return the ICC(C,2) of a rater with the mean z of k others, from the ICC(C,1) of all of them."""
    return 4 * single / (1 + (1 + (k - 1) * single) / k + 2 * single)


def single_of(icc: float, k: int) -> float:
    """Return the ICC(C,1) of raters one of whom has an ICC(C,2) with the mean z of k others."""
    return icc * (1 + 1 / k) / (4 - icc * (2 + (k - 1) / k))


def assumed_rows(options: PlanOptions, icc: float | None, single: float | None) -> list[PlanRow]:
    """Return the plan for an assumed ICC(C,2), or instead ICC(C,1), and for the paper's if that is lower."""
    r = single_of(icc or 0.0, options.per_response) if single is None else single
    sources = [("assumed", r), ("paper obtained", PAPER)]
    return [row for basis, one in sources[: 1 + (r > PAPER)] for row in _rows(basis, one, options)]


def pilot_rows(pilot: Pilot, options: PlanOptions) -> list[PlanRow]:
    """Return the plan for a pilot's clinicians and jury, each as estimated and at its lower end."""
    own, jury, k = pilot.clinicians, pilot.jury, options.per_response
    ends = [("clinicians", own.icc, own.notes), ("clinicians' low end", own.low, own.notes)]
    if jury is not None:
        iccs = (("jury", jury.icc), ("jury's low end", jury.low))
        ends += [(basis, single_of(icc, k), jury.notes) for basis, icc in iccs]
    return [
        replace(row, notes=(*row.notes, *notes))
        for basis, single, notes in ends
        for row in _rows(basis, single, options, pilot.top)
    ]


def _rows(
    basis: str, single: float, options: PlanOptions, top: float | None = None
) -> list[PlanRow]:
    """Return the designs of one ICC: with a margin, for more clinicians and kinds of scores.

    `top` is the share of scores at the top in a pilot; None where there is none.
    """
    k, share = options.per_response, options.ceiling
    row = PlanRow(basis, single, k, options.clinicians or k)
    if not 0 <= single < 1:
        words = "an ICC of {icc:z.2f}: plan for one from 0 to below 1, as by --icc 0"
        none = note("no_pilot_figure", "the pilot has no such figure")
        beyond = note("planned_beyond", words, icc=single)
        return [replace(row, notes=(beyond if math.isfinite(single) else none,))]
    if share is None and top is not None:
        share = top if top >= FEW_AT_TOP else 0.0
    if options.margin is None:
        return [_planned(replace(row, ceiling=share or 0.0), options)]
    numbers = [options.clinicians] if options.clinicians else [k + more for more in MORE]
    return [
        _planned(replace(row, clinicians=number, ceiling=ceiling), options)
        for ceiling in ((0.0, TOP) if share is None else (share,))
        for number in numbers
    ]


def _planned(row: PlanRow, options: PlanOptions) -> PlanRow:
    """Return a design with what its studies show."""
    single, k, aim = row.icc_single, row.per_response, (options.width, options.assurance)
    needed = n_for_width(single, k, row.ceiling, *aim, options.seed)
    n = options.responses or needed
    studies, readings = SimulatedStudies.of(row, n, options.seed), n * k
    expected, assured = studies.widths(n, options.assurance)
    row = replace(
        row,
        icc=icc_with_mean(single, k),
        n_for_width=needed,
        n=n,
        readings=readings,
        per_clinician=math.ceil(readings / row.clinicians),
        width_expected=expected,
        width_assured=assured,
    )
    if options.margin is None:
        return row
    return with_power(row, studies, options.margin, options.assurance)


@cache
def n_for_width(
    single: float, k: int, ceiling: float, width: float, assurance: float = 0.8, seed: int = 0
) -> int:
    """Return the responses, read by k clinicians, with which a share `assurance` of studies obtain a width.

    Right to some 3 %. Beyond 1,000 responses widths fall as the root of their number. `single` is
    the ICC(C,1), `ceiling` as in `PlanRow`.
    """
    row = PlanRow("", single, k, k, ceiling)

    def excess(log_n: float) -> float:
        n = round(math.exp(log_n))
        _, assured = SimulatedStudies.of(row, n, seed).widths(n, assurance)
        return math.log(min(assured, 2.0) / width)

    few, most = math.log(LEAST), math.log(MANY)
    if excess(few) <= 0:
        return LEAST
    if (beyond := excess(most)) > 0:
        return math.ceil(math.exp(most + 2 * beyond))
    return math.ceil(math.exp(brentq(excess, few, most, xtol=0.005)))


def with_power(
    row: PlanRow, studies: "SimulatedStudies", margin: float, assurance: float
) -> PlanRow:
    """Return a row with how often its studies give the verdict "no worse than a clinician".

    By the parts of the rule (`calibration.verdict`): the interval of the difference above minus the
    margin; the lower ends of the jury's and of a clinician's ICC above 0, the latter at least twice
    the margin; and, with three clinicians or more, the same side without each of them. An interval is
    the estimate, for ICCs on Fisher's z, -+ 1.96 of its standard deviation over the studies; over
    clinicians the jackknife is added, as in `clinicians.population_interval`. `n_for_power` is by
    the ends of the intervals alone.
    """
    known = [*range(row.clinicians)]
    jury_icc, clinician_icc = studies.iccs(known)
    difference = jury_icc - clinician_icc
    sd, clinician_z = float(difference.std(ddof=1)), _z(clinician_icc)
    shown = (difference - NORMAL_95 * sd > -margin) & (_low_end(jury_icc) > 0)
    shown &= _low_end(clinician_icc) >= 2 * margin
    like_these = NAN
    if row.clinicians >= LEAST_CLINICIANS:
        left = [studies.iccs([other for other in known if other != one]) for one in known]
        for without_jury, without in left:
            shown &= (_low_end(without) > 0) & (without_jury - without > -margin)
        spread = (row.clinicians - 1) * np.array([one - other for one, other in left]).var(axis=0)
        t = special.stdtrit(row.clinicians - 1, 0.975)
        half = np.sqrt(t**2 * spread + (NORMAL_95 * sd) ** 2)
        like_these = float((shown & (difference - half > -margin)).mean())
    reach = NORMAL_95 + NormalDist().inv_cdf(assurance)
    room = float(clinician_z.mean() - _z(np.array(2 * margin)))
    shares = reach * sd / margin, reach * float(clinician_z.std(ddof=1)) / max(room, 1e-12)
    needed = len(studies.read) * max(shares) ** 2  # intervals shrink as the root of the responses
    return replace(
        row,
        power=float(shown.mean()),
        power_like_these=like_these,
        n_for_power=math.ceil(needed) if room > 0 and needed <= MOST_RESPONSES else None,
    )


def _z(icc: Array) -> Array:
    return fisher_z(np.clip(icc, -1 + 1e-12, 1 - 1e-12), mirrored=True)


def _low_end(icc: Array) -> Array:
    z = _z(icc)
    return icc_of_fisher(z - NORMAL_95 * z.std(ddof=1), mirrored=True)


class SimulatedStudies:
    """Studies of one design: z of clinicians (studies, n, clinicians) and jury (studies, n), and who read what.

    `read` is of shape (n, clinicians).
    """

    def __init__(self, scores: Array, jury: Array, read: Flags) -> None:
        given = np.where(read, scores, 0.0)
        number = np.maximum(read.sum(axis=0), 2)
        mean = given.sum(axis=1, keepdims=True) / number
        square = (np.where(read, scores - mean, 0.0) ** 2).sum(axis=1, keepdims=True) / (number - 1)
        scale = np.where(square > 0, square, np.inf)
        self.z = np.where(read, (scores - mean) / np.sqrt(scale), 0.0)
        spread = jury.std(axis=1, ddof=1, keepdims=True)
        self.jury = (jury - jury.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, np.inf)
        self.read = read

    @classmethod
    def of(cls, row: PlanRow, n: int, seed: int) -> "SimulatedStudies":
        """Draw studies of a design with n responses, at most 5,000.

        The correlation of a clinician with what the responses are worth differs between clinicians by
        a standard deviation of 0.1; the jury's is such that its ICC is a clinician's. Scores with a
        ceiling are points from 1 to 5, of the same single-rater ICC.
        """
        n, clinicians, random = min(n, MOST_SIMULATED), row.clinicians, np.random.default_rng(seed)
        draws = int(np.clip(NUMBERS // (n * (clinicians + 1)), FEWEST_DRAWN, MOST_DRAWN))
        alike = math.sqrt(latent_icc(row.icc_single, row.ceiling))
        places = special.ndtri((np.arange(clinicians) + 0.5) / clinicians)
        spread = SPREAD * places / max(float(places.std()), 1e-12)
        own = np.clip(alike + spread * (alike > 0), 0.0, 0.99)
        others = (own.sum() ** 2 - own @ own) / max(clinicians - 1, 1) / max(own.sum(), 1e-12)
        loading = np.append(own, others if clinicians > 1 else alike)
        worth = random.normal(size=(draws, n, 1))
        noise = random.normal(size=(draws, n, clinicians + 1))
        scores = loading * worth + np.sqrt(1 - loading**2) * noise
        if row.ceiling:
            scores = np.searchsorted(_cuts(row.ceiling), scores.ravel()).reshape(scores.shape) + 1.0
        order = np.argsort(random.random((n, clinicians)), axis=1)
        read = order.argsort(axis=1) < row.per_response
        return cls(scores[:, :, :-1], scores[:, :, -1], read)

    def widths(self, n: int, assurance: float) -> tuple[float, float]:
        """Return the width of the jury's interval with n responses, on average and with assurance.

        Each is of `intervals.jackknife_interval`, of the jury's ICC(C,2) with the clinicians' mean.
        """
        x, y = self.jury, self.z.sum(axis=2) / self.read.sum(axis=1)
        parts = np.stack([np.ones_like(x), x, y, x * x, y * y, x * y])
        whole = parts.sum(axis=2, keepdims=True)
        iccs = icc_of_sums(*np.concatenate([whole, whole - parts], axis=2), restandardise=False)
        ends = [jackknife_interval(one) for one in iccs]
        widths = np.array([end.high - end.low for end in ends]) * math.sqrt(x.shape[1] / n)
        widths_or_none = np.nan_to_num(widths, nan=np.inf)  # without an interval none is obtained
        quantile = np.quantile(widths_or_none, assurance, method="higher")
        return float(np.nanmean(widths)), float(quantile)

    def iccs(self, clinicians: Sequence[int]) -> tuple[Array, Array]:
        """Return the ICCs (studies,) of jury and clinician with the others of these clinicians."""
        total, number = self.z[:, :, clinicians].sum(axis=2), self.read[:, clinicians].sum(axis=1)
        squares = np.zeros((2, 3, len(self.z)))
        for one in clinicians:
            rows = np.flatnonzero(self.read[:, one] & (number > 1))
            own = self.z[:, rows, one]
            others = (total[:, rows] - own) / (number[rows] - 1)
            both = self.jury[:, rows], own, others
            *sides, y = (column - column.mean(axis=1, keepdims=True) for column in both)
            for place, x in enumerate(sides):
                pairs = ((x, x), (y, y), (x, y))
                squares[place] += [np.einsum("bn,bn->b", a, b) for a, b in pairs]
        jury, clinician = (np.nan_to_num(pooled_icc(side, "paper")) for side in squares)
        return jury, clinician


@cache
def latent_icc(single: float, ceiling: float) -> float:
    """Return the correlation of two normal scores whose points, cut at a ceiling, correlate by `single`."""
    if not ceiling or not single:
        return single
    cuts = _cuts(ceiling)
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    share, weights = special.ndtr(-cuts), weights / weights.sum()
    total = (
        np.minimum.outer(share, share) - np.outer(share, share)
    ).sum()  # variance of the points

    def beyond(rho: float) -> float:
        expected = special.ndtr((math.sqrt(rho) * nodes[:, None] - cuts) / math.sqrt(1 - rho))
        points = expected.sum(axis=1)
        return float((weights @ points**2 - (weights @ points) ** 2) / total) - single

    return float(brentq(beyond, 0.0, 1 - 1e-9, xtol=1e-6))


def _cuts(ceiling: float) -> Array:
    """Return where normal scores are cut into points 1 to 5 so that a share is 5."""
    shares = (1 - ceiling) * np.array(BELOW_TOP[::-1])
    cuts: Array = special.ndtri(shares.cumsum())
    return cuts


def protocol(
    rows: Sequence[PlanRow], options: PlanOptions, pilot: Pilot | None = None
) -> Iterator[str]:
    """Yield the sentences of a plan that a protocol can quote."""
    kinds = [[*kind] for _, kind in groupby(rows, key=lambda row: (row.basis, row.ceiling))]
    for kind in kinds:
        yield _width_words(kind[0], options)
    for kind in kinds if options.margin else ():
        if kind[0].n is not None:
            yield _margin_words(kind[0], kind[-1], options)
    if pilot:
        yield from _pilot_words(pilot)
    else:
        yield "All of this holds if the ICC is what was assumed."
    if raters := simulated_in(rows):
        yield f"The pilot's figures are of simulated raters: {listed(raters)}."
    yield (
        "Responses are counted one an instance: several to one instance are no independent "
        "evidence, and the numbers of responses then count instances."
    )
    yield (
        "The MedHELM paper planned with a single-rater ICC of 0.75 and obtained 0.31, ICC(C,2) "
        "0.47: be prepared for the row with the lower ICC."
    )


def _width_words(row: PlanRow, options: PlanOptions) -> str:
    if row.n is None:
        why = "; ".join(str(one) for one in row.notes if one.code != "simulated")
        return f"Nothing to plan for {row.basis}: {why}."
    load = f"up to {row.per_clinician} for each"
    if options.minutes:
        hours = (row.per_clinician or 0) * options.minutes / 60
        load += f", about {hours:.1f} hours at {options.minutes:.1f} minutes a response"
    share, widths = f"{options.assurance * 100:g} %", (row.width_expected, row.width_assured)
    expected, assured = (fixed(width, 2, TERMINAL) for width in widths)
    return (
        f"With {row.n} responses, each rated by {_readers(row)} ({row.readings} readings, {load}), the 95 % interval of the jury's "
        f"ICC(C,2), if that is {row.icc:z.2f} ({_kind(row)}; of single raters {row.icc_single:z.2f}), "
        f"is expected to be {expected} wide, and in {share} of such studies no wider than {assured}. A "
        f"width of {options.width:g} with {share} assurance takes {row.n_for_width} responses."
    )


def _readers(row: PlanRow) -> str:
    return f"{row.per_response} of {counted(row.clinicians, 'clinician')}"


def _kind(row: PlanRow) -> str:
    return f"{row.basis}, {row.ceiling:.0%} of scores at the top" if row.ceiling else row.basis


def _margin_words(few: PlanRow, many: PlanRow, options: PlanOptions) -> str:
    """Return what the fewest and the most clinicians planned for show of one ICC and kind of scores."""
    text = (
        f"At a margin of {options.margin:g} ({_kind(few)}), {few.n} responses, each rated by {_readers(few)}, show in {few.power:.0%} of "
        "studies that a jury truly as good as a clinician is no worse"
    )
    if many.clinicians > few.clinicians:
        text += f", by {many.clinicians} clinicians in {many.power:.0%}"
    if math.isfinite(many.power_like_these):
        text += f" (for others like these {many.clinicians} too in {many.power_like_these:.0%})"
    needed = few.n_for_power
    takes = f"takes {needed} responses" if needed else "cannot be reached by more responses"
    return f"{text}; {options.assurance:.0%} with the former {takes}."


def _pilot_words(pilot: Pilot) -> Iterator[str]:
    """Yield the figures of the pilot, and which of them hold only for a study like it."""
    yield f"Pilot: {pilot.benchmark}, jury {', '.join(pilot.jurors) or 'none'}."
    figures = {
        "single-rater ICC of clinicians": pilot.clinicians,
        "ICC(C,2) of the jury": pilot.jury,
    }
    for name, row in figures.items():
        if row is not None and math.isfinite(row.icc):
            between = icc_interval(row.low, row.high, 2, TERMINAL) or "- to -"
            over = counted(row.n_instances, "instance")
            yield (
                f"The pilot's {name}: {fixed(row.icc, 2, TERMINAL)}, 95 % interval {between} over {over}."
            )
    yield (
        "A jury's ICC holds for as many clinicians a response, and responses an instance, as in "
        "the pilot."
    )
    if pilot.minutes is not None:
        yield f"Median time of {pilot.timed} finished readings: {pilot.minutes:.1f} minutes."
