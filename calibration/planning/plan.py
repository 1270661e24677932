"""The rows of a plan: responses for a width, the load they make, and the power they have."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from calibration.codes import PlanningCode
from calibration.differences import DETECTABLE
from calibration.f_interval import spearman_brown
from calibration.planning.assurance import exact_n, f_width, zou_n
from calibration.planning.power import (
    CRITICAL,
    DRAWS,
    LEAST,
    Contest,
    detectable,
    power,
    responses_for,
)
from calibration.planning.rows import (
    EITHER,
    JURY,
    Basis,
    Expected,
    Pilot,
    PlanOptions,
    PlanRow,
    PowerRow,
    Variation,
)
from calibration.planning.sample_size import Aim, bonett_n, corrected, single_of
from calibration.remarks import FEW_INSTANCES
from calibration.values import NAN, Note, note, noted

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75


def assumed(icc: float | None, single: float | None, per_response: int) -> Iterator[Expected]:
    """Yield what an assumed ICC means for clinicians and jury, and what the paper obtained.

    Parameters
    ----------
    icc, single : the ICC(C,2), or instead the single-rater ICC; the other is None
    per_response : clinicians who rate each response
    """
    of = 2 if single is None else 1
    single = single_of(icc or 0.0) if single is None else single
    whom = [(JURY, 2)] if per_response == 1 else [("clinicians", per_response), (JURY, 2)]
    whom = [(EITHER, 2)] if per_response == 2 else whom
    for scorer, columns in whom:
        expected = Expected(scorer, "assumed", single, columns, of)
        yield expected
        if single > PAPER:
            yield replace(expected, basis="paper obtained", single=PAPER)


def expected_of(pilot: Pilot, per_response: int) -> Iterator[Expected]:
    """Yield the ICCs of a pilot's clinicians and jury, each as found and at its lower limit."""
    own, jury = pilot.clinicians, pilot.jury
    ends: tuple[Basis, ...] = ("pilot", "low end")
    if per_response > 1:
        for basis, icc in zip(ends, (own.icc, own.low), strict=True):
            yield Expected("clinicians", basis, icc, per_response, notes=own.notes)
    for basis, icc in zip(ends, (jury.icc, jury.low), strict=True):
        yield Expected(JURY, basis, single_of(icc), notes=jury.notes)


def plan_rows(expected: Sequence[Expected], options: PlanOptions) -> list[PlanRow]:
    """Return a row for every ICC to plan with, an undefined one with the reason."""
    return [_plan_row(one, options) for one in expected]


def _plan_row(one: Expected, options: PlanOptions) -> PlanRow:
    who = (options.per_response, one.scorer, one.basis, one.columns, one.of)
    if reason := _impossible(one):
        return PlanRow(*who, one.single, notes=(reason, *one.notes))
    aim = Aim(one.single, one.columns, one.of)
    share = (options.width, options.assurance)
    needed = [bonett_n(aim, options.width), zou_n(aim, *share), exact_n(aim, *share)]
    if options.population:
        needed = [corrected(n, options.population) for n in needed]
    n = options.responses or max(needed)
    each = math.ceil(n * options.per_response / options.clinicians) if options.clinicians else None
    width = f_width(aim, n, options.assurance)
    return PlanRow(
        *who,
        icc_single=one.single,
        icc_panel=spearman_brown(one.single, one.columns),
        width=options.width,
        n_bonett=needed[0],
        n_zou=needed[1],
        n_exact=needed[2],
        n=n,
        readings=n * options.per_response,
        per_clinician=each,
        minutes_per_clinician=each * options.minutes if each and options.minutes else NAN,
        width_expected=width.mean,
        width_assured=width.assured,
        notes=noted(_finite(options), *one.notes),
    )


def _impossible(one: Expected) -> Note | None:
    """Return why an ICC cannot be planned for, or None."""
    if not math.isfinite(one.single):
        return note(
            PlanningCode.NO_PILOT_ICC if one.basis == "pilot" else PlanningCode.NO_PILOT_INTERVAL
        )
    if one.single >= 1:
        return note(PlanningCode.ICC_OF_ONE)
    return note(PlanningCode.PLANNED_BELOW_ZERO, icc=one.single) if one.single < 0 else None


def _finite(options: PlanOptions) -> Note | None:
    population = options.population
    return note(PlanningCode.FINITE_POPULATION, instances=population) if population else None


def power_rows(
    rows: Sequence[PlanRow], options: PlanOptions, pilot: Pilot | None = None
) -> list[PowerRow]:
    """Return what the responses planned for the jury can show, from pilot or assumptions."""
    planned = [row for row in rows if row.is_of_jury and row.n is not None]
    if pilot is None:
        return [_simulated(row, options) for row in planned]
    enough = [row.n for row in (*planned, *rows) if row.n is not None]
    return [_of_pilot(one, enough[0], options) for one in pilot.varied] if enough else []


def _of_pilot(one: Variation, n: int, options: PlanOptions) -> PowerRow:
    """Return the power that the pilot's standard deviation gives, scaled by 1 / sqrt(n)."""
    sd, gap = one.at(n), NAN if options.difference is None else options.difference
    known = math.isfinite(sd) and math.isfinite(gap) and sd > 0
    needed = max(LEAST, math.ceil(n * (DETECTABLE * sd / gap) ** 2)) if known else None
    return PowerRow(
        compared=one.b,
        n=n,
        source=note(PlanningCode.FROM_PILOT, responses=one.n_responses, instances=one.n_instances),
        difference=gap,
        power=NormalDist().cdf(gap / sd - CRITICAL) if known else NAN,
        mde=DETECTABLE * sd if DETECTABLE * sd <= 1 else NAN,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        notes=noted(*one.notes, _beyond(needed, options)),
    )


def _simulated(row: PlanRow, options: PlanOptions) -> PowerRow:
    """Return the power by simulation from the ICC of a row and the shared error."""
    n, jury = max(LEAST, row.n or 0), row.icc_of_two
    null = Contest(jury, 0.0, options.shared)
    asked = replace(null, difference=options.difference) if options.difference else None
    sd, least = power(null, n, options.seed).sd, detectable(null, n, options.seed)
    found = power(asked, n, options.seed) if asked else None
    needed = responses_for(asked, options.seed) if asked else None
    basis = {"jury": jury, "basis": row.basis, "shared": options.shared}
    return PowerRow(
        compared="another scorer",
        n=n,
        source=note(PlanningCode.FROM_SIMULATION, draws=DRAWS, **basis),
        difference=asked.difference if asked else NAN,
        power=found.power if found else NAN,
        mc_error=found.mc_error if found else NAN,
        mde=least,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        notes=noted(_unlikely(least, jury, n), _beyond(needed, options)),
    )


def _unlikely(least: float, jury: float, n: int) -> Note | None:
    """Say where a power is not to be counted on, or is of a scorer that disagrees."""
    if n < FEW_INSTANCES:
        return note(PlanningCode.FEW_FOR_POWER, least=FEW_INSTANCES)
    return note(PlanningCode.BEYOND_NO_AGREEMENT) if least > jury else None


def _beyond(needed: int | None, options: PlanOptions) -> Note | None:
    population = options.population
    if not (needed and population and needed > population):
        return None
    return note(PlanningCode.BEYOND_POPULATION, instances=population)
