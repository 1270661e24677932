"""What a protocol can say of a plan, with what it rests on; each sentence is a note."""

import math
from collections.abc import Iterator, Sequence

from calibration.codes import NoteCode, PlanningCode
from calibration.planning.rows import (
    NonInferiorityRow,
    Pilot,
    PlanOptions,
    PlanRow,
    PowerRow,
    Reliability,
)
from calibration.values import Note, note, noted, simulated_in


def protocol(
    rows: Sequence[PlanRow],
    shown: Sequence[PowerRow],
    options: PlanOptions,
    pilot: Pilot | None = None,
    at_margin: Sequence[NonInferiorityRow] = (),
) -> tuple[Note, ...]:
    """Return the sentences of a plan."""
    return noted(
        *(_of_plan(row, options) for row in rows if row.n is not None),
        *(_nothing(row) for row in rows if row.n is None),
        *(_of_power(row) for row in shown),
        *(_of_margin(row, options) for row in at_margin),
        *(_of_pilot(pilot) if pilot else [note(PlanningCode.IF_AS_ASSUMED, shared=options.shared)]),
        _simulated([*rows, *shown]),
        note(PlanningCode.CORRECTED_FOR_ALL) if options.population else None,
        note(PlanningCode.ONE_AN_INSTANCE),
        note(PlanningCode.PAPER_OBTAINED),
    )


def _of_plan(row: PlanRow, options: PlanOptions) -> Note:
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


def _of_margin(row: NonInferiorityRow, options: PlanOptions) -> Note:
    return note(
        PlanningCode.NON_INFERIORITY_SHOWN,
        margin=row.margin,
        icc=row.icc_single,
        responses=row.n,
        power=row.power,
        wanted=options.assurance,
        needed=row.n_for_power,
    )


def _nothing(row: PlanRow) -> Note:
    return note(PlanningCode.NOTHING_TO_PLAN, scorer=row.scorer, because=_because(row))


def _of_power(row: PowerRow) -> Note:
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
        because=_because(row),
    )


def _because(row: PlanRow | PowerRow | Reliability) -> tuple[Note, ...]:
    """Return the notes of a row but for the simulated raters, who are named once for all."""
    return tuple(one for one in row.notes if one.code is not NoteCode.SIMULATED)


def _of_pilot(pilot: Pilot) -> Iterator[Note]:
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
                because=_because(one),
            )
    yield note(PlanningCode.AS_IN_THE_PILOT)
    if pilot.minutes is not None:
        yield note(PlanningCode.READING_TIME, readings=pilot.timed, minutes=pilot.minutes)


def _simulated(rows: Sequence[PlanRow | PowerRow]) -> Note | None:
    raters = simulated_in(rows)
    return note(PlanningCode.PILOT_SIMULATED, raters=raters) if raters else None
