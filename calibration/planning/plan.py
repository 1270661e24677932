"""Rows and notes of a plan: responses for a width, the clinicians' load, and their power."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

from calibration.differences import DETECTABLE
from calibration.icc import spearman_brown
from calibration.notes import Figures, Note, counted, filled, note, noted, simulated_in
from calibration.planning.power import (
    DRAWS,
    LEAST_FOR_POWER,
    ComparedScorers,
    detectable,
    power,
    responses_for,
)
from calibration.planning.rows import (
    AIMS,
    EITHER,
    JURY,
    Basis,
    NonInferiorityRow,
    Pilot,
    PlannedIcc,
    PlanOptions,
    PlanRow,
    PowerRow,
    Reliability,
    Variation,
    opponent,
)
from calibration.planning.sample_size import (
    TargetIcc,
    bonett_n,
    exact_n,
    f_width,
    finite_population_n,
    single_rater_icc,
    zou_n,
)
from calibration.remarks import FEW_INSTANCES
from calibration.shared_notes import FEW_FOR_POWER
from calibration.tables.numbers import TERMINAL, fixed, icc_interval
from calibration.values import NAN, NORMAL_95

BASES = {
    "assumed": "as assumed",
    "paper obtained": "as the MedHELM paper obtained",
    "pilot": "as in the pilot",
    "low end": "at the low end of the pilot's 95 % interval",
}
ICCS = {"clinicians": "single-rater ICC of clinicians", "jury": "ICC(C,2) of the jury"}
NO_PILOT_ICC = ("no_pilot_icc", "no ICC in the pilot")
NO_PILOT_INTERVAL = ("no_pilot_interval", "no interval in the pilot")

PAPER = 0.31  # the single-rater ICC that the MedHELM paper obtained, having planned with 0.75


def assumed_iccs(
    icc: float | None, single: float | None, per_response: int
) -> Iterator[PlannedIcc]:
    """Yield the ICCs to plan with for an assumed one: of clinicians and jury, and the paper's.

    Parameters
    ----------
    icc, single : the ICC(C,2), or instead the single-rater ICC; the other is None
    per_response : clinicians who rate each response
    """
    icc_of = 2 if single is None else 1
    single = single_rater_icc(icc or 0.0) if single is None else single
    scorers = [(JURY, 2)] if per_response == 1 else [("clinicians", per_response), (JURY, 2)]
    scorers = [(EITHER, 2)] if per_response == 2 else scorers
    for scorer, columns in scorers:
        planned = PlannedIcc(scorer, "assumed", single, columns, icc_of)
        yield planned
        if single > PAPER:
            yield replace(planned, basis="paper obtained", single=PAPER)


def pilot_iccs(pilot: Pilot, per_response: int) -> Iterator[PlannedIcc]:
    """Yield the ICCs of a pilot's clinicians and jury, each as estimated and at its lower end."""
    clinicians, jury = pilot.clinicians, pilot.jury
    ends: tuple[Basis, ...] = ("pilot", "low end")
    if per_response > 1:
        for basis, icc in zip(ends, (clinicians.icc, clinicians.low), strict=True):
            yield PlannedIcc("clinicians", basis, icc, per_response, notes=clinicians.notes)
    for basis, icc in zip(ends, (jury.icc, jury.low), strict=True):
        yield PlannedIcc(JURY, basis, single_rater_icc(icc), notes=jury.notes)


def plan_rows(planned: Sequence[PlannedIcc], options: PlanOptions) -> list[PlanRow]:
    """Return a row for every ICC to plan with; an undefined one has the reason in its notes."""
    return [_plan_row(icc, options) for icc in planned]


def _plan_row(planned: PlannedIcc, options: PlanOptions) -> PlanRow:
    identity = (options.per_response, planned.scorer, planned.basis, planned.columns, planned.of)
    if reason := _impossible(planned):
        return PlanRow(*identity, planned.single, notes=(reason, *planned.notes))
    target = TargetIcc(planned.single, planned.columns, planned.of)
    share = (options.width, options.assurance)
    needed = [bonett_n(target, options.width), zou_n(target, *share), exact_n(target, *share)]
    if options.population:
        needed = [finite_population_n(n, options.population) for n in needed]
    n = options.responses or max(needed)
    readings, clinicians = n * options.per_response, options.clinicians
    per_clinician = math.ceil(readings / clinicians) if clinicians else None
    width = f_width(target, n, options.assurance)
    return PlanRow(
        *identity,
        icc_single=planned.single,
        icc_panel=spearman_brown(planned.single, planned.columns),
        width=options.width,
        n_bonett=needed[0],
        n_zou=needed[1],
        n_exact=needed[2],
        n=n,
        readings=readings,
        per_clinician=per_clinician,
        minutes_per_clinician=(per_clinician or NAN) * (options.minutes or NAN),
        width_expected=width.mean,
        width_assured=width.assured,
        notes=noted(_population_note(options), *planned.notes),
    )


def _impossible(planned: PlannedIcc) -> Note | None:
    """Return why an ICC cannot be planned for, or None."""
    if not math.isfinite(planned.single):
        of_pilot = planned.basis == "pilot"
        return note(*(NO_PILOT_ICC if of_pilot else NO_PILOT_INTERVAL))
    if planned.single >= 1:
        return note("icc_of_one", "an ICC of 1 has no interval to plan for")
    return (
        note(
            "planned_below_zero",
            (
                "{icc:.2f}, below 0: cannot be distinguished from no agreement; --icc 0 plans for "
                "that"
            ),
            icc=planned.single,
        )
        if planned.single < 0
        else None
    )


def _population_note(options: PlanOptions) -> Note | None:
    population = options.population
    return (
        note(
            "finite_population",
            (
                "corrected for {instances} instances: it holds for these alone, and the interval of "
                "calibrate (width_expected) for others too"
            ),
            instances=population,
        )
        if population
        else None
    )


def power_rows(
    rows: Sequence[PlanRow], options: PlanOptions, pilot: Pilot | None = None
) -> list[PowerRow]:
    """Return the power of the responses planned for the jury, from a pilot or from assumptions."""
    planned = [row for row in rows if row.is_of_jury and row.n is not None]
    if pilot is None:
        return [_power_by_simulation(row, options) for row in planned]
    numbers = [row.n for row in (*planned, *rows) if row.n is not None]
    return (
        [_power_from_pilot(variation, numbers[0], options) for variation in pilot.varied]
        if numbers
        else []
    )


def _power_from_pilot(variation: Variation, n: int, options: PlanOptions) -> PowerRow:
    """Return the power that the pilot's standard deviation gives, scaled by 1 / sqrt(n)."""
    sd, gap = variation.at(n), NAN if options.difference is None else options.difference
    known = math.isfinite(sd) and math.isfinite(gap) and sd > 0
    needed = max(LEAST_FOR_POWER, math.ceil(n * (DETECTABLE * sd / gap) ** 2)) if known else None
    return PowerRow(
        compared=variation.b,
        n=n,
        source=note(
            "from_pilot",
            "pilot: {responses} responses to {instances} instances, by 1 / sqrt(n)",
            responses=variation.n_responses,
            instances=variation.n_instances,
        ),
        difference=gap,
        power=NormalDist().cdf(gap / sd - NORMAL_95) if known else NAN,
        mde=DETECTABLE * sd if DETECTABLE * sd <= 1 else NAN,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        notes=noted(*variation.notes, _beyond_population(needed, options)),
    )


def _power_by_simulation(row: PlanRow, options: PlanOptions) -> PowerRow:
    """Return the power by simulation from the ICC of a row and the shared error."""
    n, jury = max(LEAST_FOR_POWER, row.n or 0), row.icc_of_two
    no_difference = ComparedScorers(jury, 0.0, options.shared)
    scorers = replace(no_difference, difference=options.difference) if options.difference else None
    sd, least = power(no_difference, n, options.seed).sd, detectable(no_difference, n, options.seed)
    estimate = power(scorers, n, options.seed) if scorers else None
    needed = responses_for(scorers, options.seed) if scorers else None
    basis = {"jury": jury, "basis": row.basis, "shared": options.shared}
    return PowerRow(
        compared="another scorer",
        n=n,
        source=note("from_simulation", _from_simulation, draws=DRAWS, **basis),
        difference=scorers.difference if scorers else NAN,
        power=estimate.power if estimate else NAN,
        mc_error=estimate.mc_error if estimate else NAN,
        mde=least,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        notes=noted(_power_warning(least, jury, n), _beyond_population(needed, options)),
    )


def _power_warning(smallest: float, jury: float, n: int) -> Note | None:
    """Return a note where the power is uncertain, or the smallest difference exceeds the ICC."""
    if n < FEW_INSTANCES:
        return note(*FEW_FOR_POWER, least=FEW_INSTANCES)
    return (
        note(
            "beyond_no_agreement", "larger than the difference from a scorer without any agreement"
        )
        if smallest > jury
        else None
    )


def _beyond_population(needed: int | None, options: PlanOptions) -> Note | None:
    population = options.population
    if not (needed and population and needed > population):
        return None
    return note(
        "beyond_population",
        "it takes more than the {instances} instances there are",
        instances=population,
    )


def protocol(
    rows: Sequence[PlanRow],
    shown: Sequence[PowerRow],
    options: PlanOptions,
    pilot: Pilot | None = None,
    at_margin: Sequence[NonInferiorityRow] = (),
) -> tuple[Note, ...]:
    """Return the notes whose sentences make up the protocol of a plan, in order."""
    return noted(
        *(_plan_note(row, options) for row in rows if row.n is not None),
        *(_nothing_to_plan(row) for row in rows if row.n is None),
        *(_power_note(row) for row in shown),
        *_margin_notes(at_margin, options),
        *(
            _pilot_notes(pilot)
            if pilot
            else [
                note(
                    "if_as_assumed",
                    (
                        "All of this holds if the ICC is what was assumed, and power for scorers with a "
                        "shared error of {shared:g}: the correlation of what the clinicians' mean leaves "
                        "unexplained of the two"
                    ),
                    shared=options.shared,
                )
            ]
        ),
        _simulated_pilot([*rows, *shown]),
        note(
            "corrected_for_all",
            (
                "The numbers of responses are corrected for all the instances there are: the interval "
                "then speaks of these alone, and calibrate prints the wider one, which speaks of "
                "others too"
            ),
        )
        if options.population
        else None,
        note(
            "one_an_instance",
            (
                "Responses are counted one an instance: several to one instance are no independent "
                "evidence, and the numbers of responses for a width then count instances"
            ),
        ),
        note(
            "paper_obtained",
            (
                "The MedHELM paper planned with a single-rater ICC of 0.75 and obtained 0.31, "
                "ICC(C,2) 0.47: be prepared for the row with the lower ICC"
            ),
        ),
    )


def _plan_note(row: PlanRow, options: PlanOptions) -> Note:
    return note(
        "responses_planned",
        _responses_planned,
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


def _margin_notes(rows: Sequence[NonInferiorityRow], options: PlanOptions) -> Iterator[Note]:
    """Yield what the fewest and the most clinicians planned for show, of each ICC and kind of scores."""
    by_kind: dict[tuple[str, float], list[NonInferiorityRow]] = {}
    for row in rows:
        by_kind.setdefault((row.basis, row.ceiling), []).append(row)
    for (_, ceiling), kind in by_kind.items():
        few, many = kind[0], kind[-1]
        yield note(
            "non_inferiority_shown",
            _non_inferiority_shown,
            margin=few.margin,
            icc=few.icc_single,
            ceiling=ceiling,
            responses=few.n,
            per_response=few.per_response,
            clinicians=few.clinicians,
            power=few.power,
            wanted=options.assurance,
            needed=few.n_for_power,
            most=many.clinicians,
            power_of_most=many.power,
            like_these=many.power_like_these,
        )


def _nothing_to_plan(row: PlanRow) -> Note:
    return note("nothing_to_plan", _nothing_to_plan_words, scorer=row.scorer, because=_reasons(row))


def _power_note(row: PowerRow) -> Note:
    return note(
        "difference_found",
        _difference_found,
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
    return tuple(remark for remark in row.notes if remark.code != "simulated")


def _pilot_notes(pilot: Pilot) -> Iterator[Note]:
    """Yield the figures of the pilot, and which of them hold only for a study like it."""
    yield note(
        "pilot_of",
        lambda figures: (
            f"Pilot: {figures['benchmark']}, jury {', '.join(figures['jurors']) or 'none'}"
        ),
        benchmark=pilot.benchmark,
        jurors=pilot.jurors,
    )
    for reliability in (pilot.clinicians, pilot.jury):
        if math.isfinite(reliability.icc):
            yield note(
                "pilot_icc",
                _pilot_icc,
                scorer=reliability.scorer,
                icc=reliability.icc,
                low=reliability.low,
                high=reliability.high,
                instances=reliability.n_instances,
                because=_reasons(reliability),
            )
    yield note(
        "as_in_the_pilot",
        (
            "Power and a jury's ICC hold for as many clinicians a response, and responses an "
            "instance, as in the pilot"
        ),
    )
    if pilot.minutes is not None:
        yield note(
            "reading_time",
            "Median time of {readings} finished readings: {minutes:.1f} minutes",
            readings=pilot.timed,
            minutes=pilot.minutes,
        )


def _simulated_pilot(rows: Sequence[PlanRow | PowerRow]) -> Note | None:
    raters = simulated_in(rows)
    return (
        note(
            "pilot_simulated",
            "The pilot's figures are of simulated raters: {raters}",
            raters=raters,
        )
        if raters
        else None
    )


def _from_simulation(figures: Figures) -> str:
    return filled(
        "{draws} simulated studies: jury ICC(C,2) {jury:.2f} ({basis}), shared error {shared:g}",
        figures,
    )


def _responses_planned(figures: Figures) -> str:
    share = f"{figures['assurance'] * 100:g} %"
    expected, assured = (
        fixed(figures[name], 2, TERMINAL) for name in ("width_expected", "width_assured")
    )
    text = (
        f"With {_load(figures)}, the 95 % interval of the {AIMS[figures['icc_of']]} ({{scorer}}), if "
        f"that is {{icc:z.2f}} {BASES[figures['basis']]}, is expected to be {expected} wide, and in "
        f"{share} of such studies no wider than {assured}. A width of {{width:g}} takes {{bonett}} "
        f"responses on average (Bonett), {{zou}} with {share} assurance (Zou), {{exact}} with the "
        "exact F interval"
    )
    return filled(text, figures)


def _load(figures: Figures) -> str:
    text = "{responses} responses rated by {per_response:clinician} each ({readings} readings"
    if figures["per_clinician"]:
        text += ", up to {per_clinician} for each of {clinicians} clinicians"
    if math.isfinite(figures["minutes_per_clinician"]):
        hours = figures["minutes_per_clinician"] / 60
        text += f", about {hours:.1f} hours each at {{minutes:.1f}} minutes a response"
    return filled(text + ")", figures)


def _difference_found(figures: Figures) -> str:
    text = f"Jury against {opponent(figures['compared'])}: {figures['responses']} responses "
    if math.isfinite(figures["least"]):
        text += f"find a difference of {figures['least']:.2f} with 80 % power at two-sided 5 %"
    elif figures["is_known"]:
        text += "find not even a difference of 1 with 80 % power"
    else:
        text += "find a difference of unknown size"
    if math.isfinite(figures["power"]):
        text += f", one of {figures['difference']:g} with {figures['power'] * 100:.0f} %"
        text += f"; for 80 % it takes {figures['needed']}" if figures["needed"] else ""
    return f"{text} ({'; '.join((figures['source'], *figures['because']))})"


def _pilot_icc(figures: Figures) -> str:
    low, high = figures["low"], figures["high"]
    between = icc_interval(low, high, 2, TERMINAL) or "- to -"
    text = (
        f"The pilot's {ICCS[figures['scorer']]}: {fixed(figures['icc'], 2, TERMINAL)}, 95 % interval "
        f"{between} over {counted(figures['instances'], 'instance')}"
    )
    return "; ".join((text, *figures["because"]))


def _nothing_to_plan_words(figures: Figures) -> str:
    return f"Nothing to plan for {figures['scorer']}: {'; '.join(figures['because'])}"


def _non_inferiority_shown(figures: Figures) -> str:
    power, most, like = figures["power"], figures["most"], figures["like_these"]
    kind = f" where {figures['ceiling']:.0%} of scores are at the top" if figures["ceiling"] else ""
    text = (
        "At a margin of {margin:g} and a single-rater ICC of {icc:.2f}"
        + kind
        + ", {responses} responses, each "
        "read by {per_response} of {clinicians:clinician}, "
    )
    if not math.isfinite(power):
        return filled(text, figures) + "are too few to say how often they show anything"
    needed = figures["needed"]
    takes = f"takes {needed} responses" if needed else "cannot be reached by more responses"
    text += f"show in {power:.0%} of studies that a jury truly as good as a clinician is no worse"
    if most > figures["clinicians"]:
        text += f", by {most} clinicians in {figures['power_of_most']:.0%}"
    if math.isfinite(like):
        text += f" (for others like these {most} too in {like:.0%})"
    return filled(text, figures) + f"; {figures['wanted']:.0%} with the former {takes}"
