"""What a plan is asked for, and its rows: responses for an interval, and the power they have."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from calibration.values import NAN, Note, Noted

if TYPE_CHECKING:
    from calibration.planning.pilot import Reliability, Variation

JURY = "jury"
EITHER = "clinicians or jury"  # with two clinicians a response both are two columns
Basis = Literal["assumed", "paper obtained", "pilot", "low end"]


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What is wanted and what there is.

    Attributes
    ----------
    width : of the 95 % interval, from end to end
    per_response : clinicians who rate each response
    assurance : share of studies that are to obtain the width
    clinicians, minutes : clinicians there are, and minutes a reading takes: for the load of each
    responses : what there will be; None is what the width takes
    difference : between two ICC(C,2), to be shown
    population : the instances there are at all, if few
    shared : of the errors of the two scorers compared, where no pilot tells
    seed : of the simulation
    """

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


@dataclass(frozen=True)
class Expected(Noted):
    """An ICC to plan with: of whom, on what basis, from how many columns, and of how many ratings."""

    scorer: str
    basis: Basis
    single: float
    columns: int = 2
    of: int = 2


@dataclass(frozen=True)
class Pilot:
    """What a study's own ratings say; `minutes` is the median of `timed` finished readings.

    `told` is when and why the blind was lifted or the study reopened.
    """

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
        ends: tuple[Basis, ...] = ("pilot", "low end")
        if per_response > 1:
            for basis, icc in zip(ends, (own.icc, own.low), strict=True):
                yield Expected("clinicians", basis, icc, per_response, notes=own.notes)
        for basis, icc in zip(ends, (jury.icc, jury.low), strict=True):
            yield Expected(JURY, basis, single_of(icc), notes=jury.notes)


@dataclass(frozen=True)
class PlanRow(Noted):
    """Responses for one ICC; `n` is those asked about, else the largest. NaN or None: undefined."""

    per_response: int
    scorer: str
    basis: Basis
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

    @property
    def icc_of_two(self) -> float:
        """Return its ICC as the agreement table has it: ICC(C,2)."""
        return two(self.icc_single)

    @property
    def is_of_jury(self) -> bool:
        """Tell whether the row is planned for the jury, alone or with the clinicians."""
        return self.scorer in (JURY, EITHER)


@dataclass(frozen=True)
class PowerRow(Noted):
    """What n responses can show of a difference between the jury and what it is `compared` with.

    `mde` is the smallest difference found with 80 % power; `sd` that of the estimated difference
    where there is none, and `rule` 2.8 times it. `n_for_difference`: for 80 % power to find it.
    `source` says what all of it rests on.
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
    source: Note = field(kw_only=True)


def two(single: float) -> float:
    """Return the ICC(C,2) over a single-rater ICC."""
    return 2 * single / (1 + single)
