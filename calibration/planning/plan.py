"""How many responses make an ICC's interval narrow enough, and the sentences of a plan."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from calibration.icc import spearman_brown
from calibration.notes import Note, counted, filled, listed, note, noted, simulated_in
from calibration.planning.rows import (
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
from calibration.tables.numbers import TERMINAL, fixed, icc_interval
from calibration.values import NAN
from data.errors import BadInput

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75
ROUNDING = 1e-9  # a rounding error must not add a response
LEAST_FOR_WIDTH = 4  # of fewer responses the F interval has no mean width
STUDIES = 4000  # evenly spaced quantiles of a study's estimate
FOR_THESE = (
    "corrected for the {instances} instances there are: the interval then speaks of these alone, and "
    "calibrate prints the wider one, which speaks of others too"
)
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
    for own, columns in ((pilot.clinicians, per_response), (pilot.jury, 2)):
        ends: list[tuple[Basis, float]] = [("pilot", own.icc), ("low end", own.low)]
        for basis, icc in ends if columns > 1 else ():
            single = icc if own is pilot.clinicians else spearman_brown(icc, 1 / 2)
            row = PlanRow(per_response, own.scorer, basis, columns, 2, single, notes=own.notes)
            rows.append(_row(row, options))
    return rows


def _row(row: PlanRow, options: PlanOptions) -> PlanRow:
    """Return a row with the responses that its ICC takes; an undefined one with the reason."""
    if reason := _impossible(row):
        return replace(row, notes=(reason, *row.notes))
    single, columns, of = row.icc_single, row.columns, row.icc_of
    needed = exact_n(single, options.width, columns, of, options.assurance)
    population = options.population
    if population:
        needed = finite_population_n(needed, population)
    n = options.responses or needed
    readings, clinicians = n * options.per_response, options.clinicians
    per_clinician = math.ceil(readings / clinicians) if clinicians else None
    expected, assured = f_width(single, n, columns, of, options.assurance)
    for_these = note("finite_population", FOR_THESE, instances=population)
    return replace(
        row,
        icc_panel=spearman_brown(single, columns),
        width=options.width,
        n_exact=needed,
        n=n,
        readings=readings,
        per_clinician=per_clinician,
        minutes_per_clinician=(per_clinician or NAN) * (options.minutes or NAN),
        width_expected=expected,
        width_assured=assured,
        notes=noted(for_these if population else None, *row.notes),
    )


def _impossible(row: PlanRow) -> Note | None:
    """Return why an ICC cannot be planned for, or None."""
    if not math.isfinite(row.icc_single):
        if row.basis == "pilot":
            return note("no_pilot_icc", "no ICC in the pilot")
        return note("no_pilot_interval", "no interval in the pilot")
    if row.icc_single >= 1:
        return note("icc_of_one", "an ICC of 1 has no interval to plan for")
    if row.icc_single >= 0:
        return None
    return note(
        "planned_below_zero",
        "{icc:.2f}, below 0: cannot be distinguished from no agreement; --icc 0 plans for that",
        icc=row.icc_single,
    )


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

    low, high = LEAST_FOR_WIDTH - 1, LEAST_FOR_WIDTH
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
    if n < LEAST_FOR_WIDTH:
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


def finite_population_n(n: int, population: int) -> int:
    """Return the responses needed where only `population` instances exist: n M / (M + n - 1).

    Rounded up, at most the population. What is found then holds for these M instances, and
    not for others that might have been collected. (Cochran 1977, section 4.5.)
    """
    return min(population, math.ceil(n * population / (population + n - 1) - ROUNDING))


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
    if options.population:
        yield f"Numbers of responses are {filled(FOR_THESE, {'instances': options.population})}."
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
        f"studies no wider than {assured}. A width of {row.width:g} with {share} assurance takes "
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
