"""Rows and sentences of a plan: responses for a width, the clinicians' load, and the power they give."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from calibration.codes import NoteCode, PlanningCode
from calibration.differences import DETECTABLE
from calibration.icc import spearman_brown
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
    NonInferiorityRow,
    Pilot,
    PlanOptions,
    PlanRow,
    PowerRow,
    Reliability,
    Variation,
)
from calibration.planning.sample_size import (
    Aim,
    bonett_n,
    corrected,
    exact_n,
    f_width,
    single_of,
    zou_n,
)
from calibration.remarks import FEW_INSTANCES
from calibration.values import NAN, Note, note, noted, simulated_in

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75


def assumed_iccs(icc: float | None, single: float | None, per_response: int) -> Iterator[Expected]:
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


def pilot_iccs(pilot: Pilot, per_response: int) -> Iterator[Expected]:
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
        notes=noted(_population_note(options), *one.notes),
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


def _population_note(options: PlanOptions) -> Note | None:
    population = options.population
    return note(PlanningCode.FINITE_POPULATION, instances=population) if population else None


def power_rows(
    rows: Sequence[PlanRow], options: PlanOptions, pilot: Pilot | None = None
) -> list[PowerRow]:
    """Return what the responses planned for the jury can show, from pilot or assumptions."""
    planned = [row for row in rows if row.is_of_jury and row.n is not None]
    if pilot is None:
        return [_power_by_simulation(row, options) for row in planned]
    enough = [row.n for row in (*planned, *rows) if row.n is not None]
    return [_power_from_pilot(one, enough[0], options) for one in pilot.varied] if enough else []


def _power_from_pilot(one: Variation, n: int, options: PlanOptions) -> PowerRow:
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
        notes=noted(*one.notes, _beyond_population(needed, options)),
    )


def _power_by_simulation(row: PlanRow, options: PlanOptions) -> PowerRow:
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
        notes=noted(_power_warning(least, jury, n), _beyond_population(needed, options)),
    )


def _power_warning(least: float, jury: float, n: int) -> Note | None:
    """Say where a power is not to be counted on, or is of a scorer that disagrees."""
    if n < FEW_INSTANCES:
        return note(PlanningCode.FEW_FOR_POWER, least=FEW_INSTANCES)
    return note(PlanningCode.BEYOND_NO_AGREEMENT) if least > jury else None


def _beyond_population(needed: int | None, options: PlanOptions) -> Note | None:
    population = options.population
    if not (needed and population and needed > population):
        return None
    return note(PlanningCode.BEYOND_POPULATION, instances=population)


def protocol(
    rows: Sequence[PlanRow],
    shown: Sequence[PowerRow],
    options: PlanOptions,
    pilot: Pilot | None = None,
    at_margin: Sequence[NonInferiorityRow] = (),
) -> tuple[Note, ...]:
    """Return the sentences of a plan."""
    return noted(
        *(_plan_note(row, options) for row in rows if row.n is not None),
        *(_nothing_to_plan(row) for row in rows if row.n is None),
        *(_power_note(row) for row in shown),
        *(_margin_note(row, options) for row in at_margin),
        *(
            _pilot_notes(pilot)
            if pilot
            else [note(PlanningCode.IF_AS_ASSUMED, shared=options.shared)]
        ),
        _simulated_pilot([*rows, *shown]),
        note(PlanningCode.CORRECTED_FOR_ALL) if options.population else None,
        note(PlanningCode.ONE_AN_INSTANCE),
        note(PlanningCode.PAPER_OBTAINED),
    )


def _plan_note(row: PlanRow, options: PlanOptions) -> Note:
    return note(
        PlanningCode.RESPONSES_PLANNED,
        responses=row.n,
        per_response=row.per_response,
        readings=row.readings,
        per_clinician=row.per_clinician,
        clinicians=options.clinicians,
        minutes_per_clinician=row.minutes_per_clinician,
        minutes=options.minutes,
        icc=row.icc_single if row.icc_of == 1 else row.icc_of_two,
        icc_of=row.icc_of,
        scorer=row.scorer,
        basis=row.basis,
        width=row.width,
        assurance=options.assurance,
        bonett=row.n_bonett,
        zou=row.n_zou,
        exact=row.n_exact,
        width_expected=row.width_expected,
        width_assured=row.width_assured,
    )


def _margin_note(row: NonInferiorityRow, options: PlanOptions) -> Note:
    return note(
        PlanningCode.NON_INFERIORITY_SHOWN,
        margin=row.margin,
        icc=row.icc_single,
        responses=row.n,
        power=row.power,
        wanted=options.assurance,
        needed=row.n_for_power,
    )


def _nothing_to_plan(row: PlanRow) -> Note:
    return note(PlanningCode.NOTHING_TO_PLAN, scorer=row.scorer, because=_reasons(row))


def _power_note(row: PowerRow) -> Note:
    return note(
        PlanningCode.DIFFERENCE_FOUND,
        compared=row.compared,
        responses=row.n,
        least=row.mde,
        is_known=math.isfinite(row.sd),
        difference=row.difference,
        power=row.power,
        needed=row.n_for_difference,
        source=row.source,
        because=_reasons(row),
    )


def _reasons(row: PlanRow | PowerRow | Reliability) -> tuple[Note, ...]:
    """Return the notes of a row but for the simulated raters, who are named once for all."""
    return tuple(one for one in row.notes if one.code is not NoteCode.SIMULATED)


def _pilot_notes(pilot: Pilot) -> Iterator[Note]:
    """Yield what the pilot found, and what of it carries over only to a study like it."""
    yield note(PlanningCode.PILOT_OF, benchmark=pilot.benchmark, jurors=pilot.jurors)
    for one in (pilot.clinicians, pilot.jury):
        if math.isfinite(one.icc):
            yield note(
                PlanningCode.PILOT_ICC,
                scorer=one.scorer,
                icc=one.icc,
                low=one.low,
                high=one.high,
                instances=one.n_instances,
                because=_reasons(one),
            )
    yield note(PlanningCode.AS_IN_THE_PILOT)
    if pilot.minutes is not None:
        yield note(PlanningCode.READING_TIME, readings=pilot.timed, minutes=pilot.minutes)


def _simulated_pilot(rows: Sequence[PlanRow | PowerRow]) -> Note | None:
    raters = simulated_in(rows)
    return note(PlanningCode.PILOT_SIMULATED, raters=raters) if raters else None
