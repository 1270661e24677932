"""Plan a study: responses for the width of an interval, power at a margin, and what a pilot tells of both."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from statistics import NormalDist

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq

from calibration import remarks
from calibration.clinicians import LEAST_CLINICIANS
from calibration.columns import LEAST_RESPONSES, column_icc, columns, why_undefined
from calibration.icc import UNDEFINED, Interval, spearman_brown
from calibration.intervals import jackknife_interval, left_out
from calibration.notes import Note, counted, listed, note, noted, simulated_in, undefined
from calibration.plan_values import (
    AIMS,
    EITHER,
    JURY,
    Basis,
    NonInferiorityRow,
    Pilot,
    PlanOptions,
    PlanRow,
    Reliability,
)
from calibration.rating_matrix import RatingMatrix, without_variance
from calibration.scope import Scope
from calibration.scores import Array, Flags
from calibration.tables.numbers import TERMINAL, fixed, icc_interval
from calibration.values import NAN, NORMAL_95
from calibration.weighted import ROUNDING, pooled_icc, scorer_iccs, weighted
from data.errors import BadInput

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75
LEAST = 4  # of fewer responses no width and no power is computed
STUDIES = 4000  # evenly spaced quantiles of a study's estimate
FEW_COMPOSITES = 5  # a z over fewer composites says little
SPREAD = 0.1  # SD between clinicians of their correlation with what responses are worth
FEW_AT_TOP = 0.2  # share of a pilot's scores at the top; below it, scores are taken as normal
TOP = 0.7  # share of scores at the top that is planned for where nothing tells
BELOW_TOP = (0.5, 0.27, 0.16, 0.07)  # shares of the other scores, from 4 to 1
MORE = (0, 1, 2, 4)  # clinicians more than read a response
NUMBERS = 1_500_000  # simulated scores a row: half a second
FEWEST_DRAWN, MOST_DRAWN = 200, 1000  # studies; of 200 a power of 80 % is known to 3 points
MOST_RESPONSES = 1_000_000
BASES = {
    "assumed": "as assumed",
    "paper obtained": "as the MedHELM paper obtained",
    "pilot": "as in the pilot",
    "low end": "at the low end of the pilot's 95 % interval",
}
ICCS = {"clinicians": "single-rater ICC of clinicians", "jury": "ICC(C,2) of the jury"}


def assumed_rows(icc: float | None, single: float | None, options: PlanOptions) -> list[PlanRow]:
    """Return a row each for an assumed ICC of clinicians and jury, and for the paper's.

    Parameters
    ----------
    icc, single : the ICC(C,2), or instead the single-rater ICC; the other is None
    """
    per_response, icc_of = options.per_response, 2 if single is None else 1
    single = spearman_brown(icc or 0.0, 1 / 2) if single is None else single
    scorers = [(JURY, 2)] if per_response == 1 else [("clinicians", per_response), (JURY, 2)]
    scorers = [(EITHER, 2)] if per_response == 2 else scorers
    iccs: list[tuple[Basis, float]] = [("assumed", single), ("paper obtained", PAPER)]
    return [
        _row(PlanRow(per_response, scorer, basis, columns, icc_of, r), options)
        for scorer, columns in scorers
        for basis, r in (iccs if single > PAPER else iccs[:1])
    ]


def pilot_rows(pilot: Pilot, options: PlanOptions) -> list[PlanRow]:
    """Return rows for a pilot's clinicians and jury, each as estimated and at its lower end."""
    per_response, rows = options.per_response, list[PlanRow]()
    for own, raters in ((pilot.clinicians, per_response), (pilot.jury, 2)):
        ends: list[tuple[Basis, float]] = [("pilot", own.icc), ("low end", own.low)]
        for basis, icc in ends if raters > 1 else ():
            single = icc if own is pilot.clinicians else spearman_brown(icc, 1 / 2)
            row = PlanRow(per_response, own.scorer, basis, raters, 2, single, notes=own.notes)
            rows.append(_row(row, options))
    return rows


def _row(row: PlanRow, options: PlanOptions) -> PlanRow:
    """Return a row with the responses that its ICC takes; an undefined one with the reason."""
    if reason := _impossible(row):
        return replace(row, notes=(reason, *row.notes))
    single, columns, of = row.icc_single, row.columns, row.icc_of
    needed = exact_n(single, options.width, columns, of, options.assurance)
    n = options.responses or needed
    readings, clinicians = n * options.per_response, options.clinicians
    per_clinician = math.ceil(readings / clinicians) if clinicians else None
    expected, assured = f_width(single, n, columns, of, options.assurance)
    return replace(
        row,
        n_exact=needed,
        n=n,
        readings=readings,
        per_clinician=per_clinician,
        minutes_per_clinician=(per_clinician or NAN) * (options.minutes or NAN),
        width_expected=expected,
        width_assured=assured,
    )


def _impossible(row: PlanRow) -> Note | None:
    """Return why an ICC cannot be planned for, or None."""
    if not math.isfinite(row.icc_single):
        lacking = "ICC" if row.basis == "pilot" else "interval"
        return note(f"no_pilot_{lacking.lower()}", f"no {lacking} in the pilot")
    if row.icc_single >= 1:
        return note("icc_of_one", "an ICC of 1 has no interval to plan for")
    if row.icc_single >= 0:
        return None
    words = "{icc:.2f}, below 0: cannot be distinguished from no agreement; --icc 0 plans for that"
    return note("planned_below_zero", words, icc=row.icc_single)


def exact_n(
    single: float, width: float, columns: int = 2, of: int = 1, assurance: float = 0.8
) -> int:
    """Return the least responses whose exact F interval keeps a width with assurance.

    This is `f_width` solved for n. The formulas of Bonett (2002) and Zou (2012) assume a normal
    interval: above an ICC of 0.75 theirs are too few.

    Parameters
    ----------
    single : the ICC(C,1) expected, in (-1 / (columns - 1), 1)
    width : from the lower to the upper end, above 0
    columns, of : the interval is that of ICC(C,of), estimated from so many columns of scores
    assurance : share of studies that are to obtain the width, from 0.5 to below 1

    Returns
    -------
    int
        Independent responses, so at most one an instance; at least 4.

    Raises
    ------
    BadInput
        If the width is not above 0 or the assurance out of its range.

    Examples
    --------
    >>> exact_n(0.75, 0.35), exact_n(0.31, 0.3)
    (39, 151)
    """
    if not 0 < width < math.inf:
        raise BadInput(f"a width of {width:g}: it is the distance of two limits, above 0")
    if not 0.5 <= assurance < 1:
        raise BadInput(f"an assurance of {assurance:g}: it is a share from 0.5 to below 1")

    def is_too_wide(n: int) -> bool:
        return f_width(single, n, columns, of, assurance)[1] > width

    low, high = LEAST - 1, LEAST
    while is_too_wide(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_too_wide(middle) else (low, middle)
    return high


def f_width(
    single: float, n: int, columns: int = 2, of: int = 1, assurance: float = 0.8
) -> tuple[float, float]:
    """Return the width of the 95 % F interval with n responses, on average and with assurance.

    If the ICC is what was assumed, 1 - the estimated ICC(C,k) is (1 - ICC(C,k)) F with
    (n - 1)(k - 1) and n - 1 degrees of freedom: the widths follow without simulation. Both are
    NaN with fewer than 4 responses. Parameters are as for `exact_n`; n counts one an instance.

    References
    ----------
    McGraw & Wong (1996), table 7, for the interval.
    """
    if n < LEAST:
        return NAN, NAN
    k, above, below = columns, n - 1, (n - 1) * (columns - 1)
    panel = k * single / (1 + (k - 1) * single)
    likely = (np.arange(STUDIES) + 0.5) / STUDIES
    error = (1 - panel) * stats.f.ppf(likely, below, above)
    low = 1 - error * stats.f.ppf(0.975, above, below)
    high = 1 - error / stats.f.ppf(0.975, below, above)
    least, most = (of / k * icc / (1 + (of / k - 1) * icc) for icc in (low, high))
    widths = most - least
    return float(widths.mean()), float(np.quantile(widths, assurance))


def protocol(
    rows: Sequence[PlanRow],
    options: PlanOptions,
    pilot: Pilot | None = None,
    at_margin: Sequence[NonInferiorityRow] = (),
) -> Iterator[str]:
    """Yield the sentences of a plan that a protocol can quote."""
    for row in rows:
        if row.n is not None:
            yield _width_words(row, options)
    for row in rows:
        if row.n is None:
            yield f"Nothing to plan for {row.scorer}: {'; '.join(_reasons(row))}."
    by_kind: dict[tuple[str, float], list[NonInferiorityRow]] = {}
    for row_at_margin in at_margin:
        by_kind.setdefault((row_at_margin.basis, row_at_margin.ceiling), []).append(row_at_margin)
    for kind in by_kind.values():
        yield _margin_words(kind[0], kind[-1], options.assurance)
    if pilot:
        yield from _pilot_words(pilot)
    else:
        yield "All of this holds if the ICC is what was assumed."
    if raters := simulated_in(rows):
        yield f"The pilot's figures are of simulated raters: {listed(raters)}."
    yield (
        "Responses are counted one an instance: several to one instance are no independent "
        "evidence, and the numbers of responses for a width then count instances."
    )
    yield (
        "The MedHELM paper planned with a single-rater ICC of 0.75 and obtained 0.31, ICC(C,2) "
        "0.47: be prepared for the row with the lower ICC."
    )


def _reasons(row: PlanRow | Reliability) -> list[str]:
    """Return the notes of a row but for the simulated raters, who are named once for all."""
    return [str(remark) for remark in row.notes if remark.code != "simulated"]


def _width_words(row: PlanRow, options: PlanOptions) -> str:
    load = f"{row.n} responses rated by {counted(row.per_response, 'clinician')} each"
    load += f" ({row.readings} readings"
    if row.per_clinician:
        load += f", up to {row.per_clinician} for each of {options.clinicians} clinicians"
    if math.isfinite(row.minutes_per_clinician):
        hours = row.minutes_per_clinician / 60
        load += f", about {hours:.1f} hours each at {options.minutes:.1f} minutes a response"
    share = f"{options.assurance * 100:g} %"
    expected, assured = (
        fixed(width, 2, TERMINAL) for width in (row.width_expected, row.width_assured)
    )
    icc = row.icc_single if row.icc_of == 1 else row.icc_of_two
    return (
        f"With {load}), the 95 % interval of the {AIMS[row.icc_of]} ({row.scorer}), if that is "
        f"{icc:z.2f} {BASES[row.basis]}, is expected to be {expected} wide, and in {share} of such "
        f"studies no wider than {assured}. A width of {options.width:g} with {share} assurance takes "
        f"{row.n_exact} responses."
    )


def _margin_words(few: NonInferiorityRow, many: NonInferiorityRow, assurance: float) -> str:
    """Return what the fewest and the most clinicians planned for show of one ICC and kind of scores."""
    at_top = f" where {few.ceiling:.0%} of scores are at the top" if few.ceiling else ""
    text = (
        f"At a margin of {few.margin:g} and a single-rater ICC of {few.icc_single:.2f}{at_top}, "
        f"{few.n} responses, each read by {few.per_response} of "
        f"{counted(few.clinicians, 'clinician')}, "
    )
    if not math.isfinite(few.power):
        return text + "are too few to say how often they show anything."
    text += (
        f"show in {few.power:.0%} of studies that a jury truly as good as a clinician is no worse"
    )
    if many.clinicians > few.clinicians:
        text += f", by {many.clinicians} clinicians in {many.power:.0%}"
    if math.isfinite(many.power_like_these):
        text += f" (for others like these {many.clinicians} too in {many.power_like_these:.0%})"
    needed = few.n_for_power
    takes = f"takes {needed} responses" if needed else "cannot be reached by more responses"
    return f"{text}; {assurance:.0%} with the former {takes}."


def _pilot_words(pilot: Pilot) -> Iterator[str]:
    """Yield the figures of the pilot, and which of them hold only for a study like it."""
    yield f"Pilot: {pilot.benchmark}, jury {', '.join(pilot.jurors) or 'none'}."
    for row in (pilot.clinicians, pilot.jury):
        if math.isfinite(row.icc):
            between = icc_interval(row.low, row.high, 2, TERMINAL) or "- to -"
            text = (
                f"The pilot's {ICCS[row.scorer]}: {fixed(row.icc, 2, TERMINAL)}, 95 % interval "
                f"{between} over {counted(row.n_instances, 'instance')}"
            )
            yield "; ".join((text, *_reasons(row))) + "."
    yield (
        "A jury's ICC holds for as many clinicians a response, and responses an instance, as in "
        "the pilot."
    )
    if pilot.minutes is not None:
        yield f"Median time of {pilot.timed} finished readings: {pilot.minutes:.1f} minutes."


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
    `clinicians.population_interval`. The correlation of a clinician with what the responses are
    worth differs between clinicians by a standard deviation of 0.1; the jury's is such that the
    difference is 0.
    Scores with a ceiling are points from 1 to 5, of the same single-rater ICC.

    Parameters
    ----------
    row : what is planned: ICC from 0 to below 1, two clinicians a response or more
    assurance : share of studies that `n_for_power` is for; by the ends of the intervals alone
    seed : of the simulation
    """
    equal = note("jury_like_clinician", "for a jury that is truly as good as a clinician")
    if row.n < LEAST:
        words = "fewer than {least} responses: too few for a reliable power"
        return replace(row, notes=(equal, note("few_for_power", words, least=LEAST)))
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
        sd=sd,
        n_for_power=_needed(row.n, NORMAL_95 + NormalDist().inv_cdf(assurance), gaps),
        notes=(equal,),
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


def share_at_top(scope: Scope) -> float:
    """Return the share of the clinicians' composites that are the highest of all; 0 without any."""
    composites = scope.grid.composites[:, scope.grid.of_kind("clinician")]
    given = composites[~np.isnan(composites)]
    return float((given == given.max()).mean()) if len(given) else 0.0


def clinicians_reliability(scope: Scope) -> Reliability:
    """Return the ICC(C,1) of single clinicians, from all responses that two or more rated.

    It is the pooled correlation, over all ordered pairs of clinicians of a response, of their z
    (within clinician, over the analysed set): sum z_a z_b over sum z_a^2, about the mean of the
    z used. Unlike a mean over pairs of clinicians it uses every response once, and few shared
    responses do not take it below -1. Where a clinician has few composites, z removes some of
    the differences between responses: the ICC is then too low, and the plan asks for more
    responses than it needs.

    Parameters
    ----------
    scope : Scope

    Returns
    -------
    Reliability
        NaN where fewer than three responses have two clinicians with a z, or their z do not vary.
    """
    grid, clinicians = scope.grid, scope.grid.of_kind("clinician")
    composites = grid.composites[:, clinicians]
    usable = ~without_variance(composites)
    rows: Flags = (~np.isnan(composites) * usable).sum(axis=1) >= 2
    icc, reason = NAN, None
    if rows.sum() < LEAST_RESPONSES:
        have = "response has" if rows.sum() == 1 else "responses have"
        words = f"{{responses}} {have} two clinicians with a z, and {{least}} are needed"
        reason = undefined("few_paired", words, responses=int(rows.sum()), least=LEAST_RESPONSES)
    elif not math.isfinite(
        icc := float(paired_correlation(grid, np.ones((1, grid.n_clusters)))[0])
    ):
        reason = undefined("readings_alike", "the readings of two clinicians do not vary")
    few = int(((~np.isnan(composites)).sum(axis=0) < FEW_COMPOSITES).sum())
    few_composites = note(
        "few_composites",
        "{clinicians:clinician} with fewer than {least} composites: their z says little",
        clinicians=few,
        least=FEW_COMPOSITES,
    )
    notes, interval = noted(reason, few_composites if few else None), UNDEFINED
    if not reason:
        weights = left_out(grid.n_clusters, grid.clusters[rows])
        interval = jackknife_interval(paired_correlation(grid, weights), single=True)
    return _reliability(scope, Reliability("clinicians", icc, notes=notes), rows, interval)


def paired_correlation(grid: RatingMatrix, counts: Array) -> Array:
    """Return the pooled correlation of clinicians under weights (B, m) of the instances, shape (B,).

    NaN where no response has two clinicians, or none varies.
    """
    clinicians = grid.of_kind("clinician")
    drawn = weighted(grid, counts, "paper")
    z_sum, number = drawn.panel(clinicians)
    values, known = drawn.values[:, clinicians].T, drawn.known[:, clinicians].T
    factor, mean = drawn.factor[:, clinicians], drawn.mean[:, clinicians]
    squares = factor**2 @ values**2 - 2 * (factor**2 * mean) @ values
    squares += (factor * mean) ** 2 @ known
    weights = drawn.weights * (number >= 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (weights * z_sum).sum(axis=1) / (weights * number).sum(axis=1)
        centre = centre[:, None]
        total = z_sum - number * centre
        squares_about_centre = squares - 2 * centre * z_sum + number * centre**2
        denominator = (weights * (number - 1) * squares_about_centre).sum(axis=1)
        numerator = (weights * (total**2 - squares_about_centre)).sum(axis=1)
        least = ROUNDING * weights.sum(axis=1)
        return np.where(denominator > least, numerator / denominator, np.nan)


def jury_reliability(scope: Scope) -> Reliability:
    """Return the jury's ICC(C,2) with the clinicians' mean and its interval, as in the table."""
    grid, jury, method = scope.grid, scope.jury, scope.options.method
    if jury is None:
        nobody = undefined("nobody_on_jury", "no juror has rated in this study")
        return Reliability("jury", notes=(nobody,))
    pair = columns(grid, jury, method)
    both = pair.both
    clinicians, scorer = pair.clinicians[both], pair.scorer[both]
    reason, interval = why_undefined(clinicians, scorer), UNDEFINED
    if not reason:
        weights = left_out(grid.n_clusters)
        interval = jackknife_interval(scorer_iccs(grid, [jury], method, weights)[:, 0])
    coverage = remarks.coverage(int(jury.present(grid).sum()), len(both), len(scorer), len(both))
    row = Reliability("jury", column_icc(clinicians, scorer, method), notes=noted(reason, coverage))
    return _reliability(scope, row, both, interval, jury.members)


def _reliability(
    scope: Scope, row: Reliability, rows: Flags, interval: Interval, jurors: Sequence[str] = ()
) -> Reliability:
    """Return a reliability with its interval and the counts of its rows."""
    instances = scope.grid.instances(rows)
    return replace(
        row,
        low=interval.low,
        high=interval.high,
        n_responses=int(rows.sum()),
        n_instances=instances,
        notes=noted(
            *row.notes,
            scope.analysed,
            remarks.few_instances(instances),
            remarks.simulated(scope.simulated & {*jurors, *scope.clinicians}),
        ),
    )
