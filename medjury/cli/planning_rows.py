"""The rows of a plan: responses for a width, the load they make, and the power they have."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibration.planning.pilot import Reliability, Variation

NAN = math.nan
EITHER = "clinicians or jury"  # with two clinicians a response both are two columns
LEAST = 4  # responses for which power is told


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted and what there is, as the command's options say."""

    width: float = 0.3
    per_response: int = 2
    assurance: float = 0.8
    clinicians: int | None = None
    minutes: float | None = None
    responses: int | None = None
    difference: float | None = None
    population: int | None = None
    shared: float = 0.5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Expected:
    """An ICC to plan with: of whom, on what basis, from how many columns, and of how many ratings."""

    scorer: str
    basis: str
    single: float
    columns: int = 2
    of: int = 2
    note: str = ""


@dataclass(frozen=True, slots=True)
class Piloted:
    """What a study's own ratings say; `minutes` is the median of `timed` finished readings."""

    benchmark: str
    jurors: tuple[str, ...]
    clinicians: "Reliability"
    jury: "Reliability"
    varied: tuple["Variation", ...]
    minutes: float | None
    timed: int
    told: tuple[str, ...]

    def expected(self, per_response: int) -> Iterator[Expected]:
        """Yield the ICCs of clinicians and jury, each as found and at its lower limit."""
        from calibration.planning.sample_size import single_of

        own, jury = self.clinicians, self.jury
        if per_response > 1:
            for basis, icc in (("pilot", own.icc), ("low end", own.low)):
                yield Expected("clinicians", basis, icc, per_response, 2, own.note)
        for basis, icc in (("pilot", jury.icc), ("low end", jury.low)):
            yield Expected("jury", basis, single_of(icc), 2, 2, jury.note)


@dataclass(frozen=True, slots=True)
class PlanRow:
    """Responses for one ICC; `n` is those asked about, else the largest. NaN or None: undefined."""

    per_response: int
    scorer: str
    basis: str
    columns: int
    icc_of: int
    icc_single: float = NAN
    icc_panel: float = NAN
    width: float = NAN
    n_bonett: int | None = None
    n_zou: int | None = None
    n_exact: int | None = None
    n: int | None = None
    readings: int | None = None
    per_clinician: int | None = None
    minutes_per_clinician: float = NAN
    width_expected: float = NAN
    width_assured: float = NAN
    note: str = ""


@dataclass(frozen=True, slots=True)
class PowerRow:
    """What n responses can show of a difference between the jury and what it is `compared` with.

    `mde` is the smallest difference found with 80 % power; `sd` that of the estimated difference
    where there is none, and `rule` 2.8 times it. `n_for_difference`: for 80 % power to find it.
    """

    compared: str
    n: int
    difference: float = NAN
    power: float = NAN
    mc_error: float = NAN
    mde: float = NAN
    n_for_difference: int | None = None
    sd: float = NAN
    rule: float = NAN
    source: str = ""
    note: str = ""


def plan_rows(expected: Sequence[Expected], wanted: Wanted) -> list[PlanRow]:
    """Return a row for every ICC to plan with, an undefined one with the reason."""
    return [_plan_row(one, wanted) for one in expected]


def _plan_row(one: Expected, wanted: Wanted) -> PlanRow:
    from calibration.f_interval import spearman_brown
    from calibration.planning.assurance import exact_n, f_width, zou_n
    from calibration.planning.sample_size import Aim, bonett_n, corrected

    who = (wanted.per_response, one.scorer, one.basis, one.columns, one.of)
    if reason := _impossible(one):
        return PlanRow(*who, one.single, note="; ".join(filter(None, (reason, one.note))))
    aim = Aim(one.single, one.columns, one.of)
    share = (wanted.width, wanted.assurance)
    needed = [bonett_n(aim, wanted.width), zou_n(aim, *share), exact_n(aim, *share)]
    if wanted.population:
        needed = [corrected(n, wanted.population) for n in needed]
    n = wanted.responses or max(needed)
    each = math.ceil(n * wanted.per_response / wanted.clinicians) if wanted.clinicians else None
    got = f_width(aim, n, wanted.assurance)
    return PlanRow(
        *who,
        icc_single=one.single,
        icc_panel=spearman_brown(one.single, one.columns),
        width=wanted.width,
        n_bonett=needed[0],
        n_zou=needed[1],
        n_exact=needed[2],
        n=n,
        readings=n * wanted.per_response,
        per_clinician=each,
        minutes_per_clinician=each * wanted.minutes if each and wanted.minutes else NAN,
        width_expected=got.mean,
        width_assured=got.assured,
        note="; ".join(filter(None, (_finite(wanted), one.note))),
    )


def _impossible(one: Expected) -> str:
    if not math.isfinite(one.single):
        return f"no {'ICC' if one.basis == 'pilot' else 'interval'} in the pilot"
    if one.single >= 1:
        return "an ICC of 1 has no interval to plan for"
    if one.single < 0:
        return f"{one.single:.2f}, below 0: not told from no agreement; --icc 0 plans for that"
    return ""


def _finite(wanted: Wanted) -> str:
    said = "it holds for these alone, and the interval of calibrate (width_expected) for others too"
    return f"corrected for {wanted.population} instances: {said}" if wanted.population else ""


def power_rows(
    rows: Sequence[PlanRow], wanted: Wanted, pilot: Piloted | None = None
) -> list[PowerRow]:
    """Return what the responses planned for the jury can show, from pilot or assumptions."""
    planned = [row for row in rows if "jury" in row.scorer and row.n is not None]
    if pilot is None:
        return [_simulated(row, wanted) for row in planned]
    enough = [row.n for row in (*planned, *rows) if row.n is not None]
    return [_of_pilot(one, enough[0], wanted) for one in pilot.varied] if enough else []


def _of_pilot(one: "Variation", n: int, wanted: Wanted) -> PowerRow:
    """Return the power that the pilot's standard deviation gives, scaled by 1 / sqrt(n)."""
    from calibration.differences import DETECTABLE
    from calibration.planning.power import CRITICAL

    sd, gap = one.at(n), NAN if wanted.difference is None else wanted.difference
    known = math.isfinite(sd) and math.isfinite(gap) and sd > 0
    needed = max(LEAST, math.ceil(n * (DETECTABLE * sd / gap) ** 2)) if known else None
    return PowerRow(
        compared=one.b,
        n=n,
        difference=gap,
        power=NormalDist().cdf(gap / sd - CRITICAL) if known else NAN,
        mde=DETECTABLE * sd if DETECTABLE * sd <= 1 else NAN,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        source=f"pilot: {one.n_responses} responses to {one.n_instances} instances, by 1 / sqrt(n)",
        note="; ".join(filter(None, (one.note, _beyond(needed, wanted)))),
    )


def _simulated(row: PlanRow, wanted: Wanted) -> PowerRow:
    """Return the power by simulation from the ICC of a row and the shared error."""
    from calibration.differences import DETECTABLE
    from calibration.planning.power import DRAWS, Contest, detectable, power, responses_for

    n, jury = max(LEAST, row.n or 0), two(row.icc_single)
    null = Contest(jury, 0.0, wanted.shared)
    asked = replace(null, difference=wanted.difference) if wanted.difference else None
    sd, least = power(null, n, wanted.seed).sd, detectable(null, n, wanted.seed)
    found = power(asked, n, wanted.seed) if asked else None
    needed = responses_for(asked, wanted.seed) if asked else None
    return PowerRow(
        compared="another scorer",
        n=n,
        difference=asked.difference if asked else NAN,
        power=found.power if found else NAN,
        mc_error=found.mc_error if found else NAN,
        mde=least,
        n_for_difference=needed,
        sd=sd,
        rule=DETECTABLE * sd,
        source=(
            f"{DRAWS} simulated studies: jury ICC(C,2) {jury:.2f} ({row.basis}), "
            f"shared error {wanted.shared:g}"
        ),
        note="; ".join(filter(None, (_unlikely(least, jury, n), _beyond(needed, wanted)))),
    )


def _unlikely(least: float, jury: float, n: int) -> str:
    """Say where a power is not to be counted on, or is of a scorer that disagrees."""
    from calibration.notes import FEW_INSTANCES

    if n < FEW_INSTANCES:
        return f"fewer than {FEW_INSTANCES} responses: too few for a power to trust"
    return "that is more than from a scorer without any agreement" if least > jury else ""


def two(single: float) -> float:
    """Return the ICC(C,2) over a single-rater ICC."""
    return 2 * single / (1 + single)


def _beyond(needed: int | None, wanted: Wanted) -> str:
    beyond = needed and wanted.population and needed > wanted.population
    return f"it takes more than the {wanted.population} instances there are" if beyond else ""
