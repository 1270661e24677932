"""Rows of `medjury predict` with their notes, and the decision whether the predictions may be used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from calibration import remarks
from calibration.codes import NoteCode, PlanningCode
from calibration.decision import Decision, Kind
from calibration.json_values import json_value
from calibration.predicting.conformal import Conformal
from calibration.predicting.prediction_powered import LEAST_WEIGHED, Sample
from calibration.scope import AgreementRow, Scope
from calibration.values import COMBINED, NAN, Note, Noted, note, noted, simulated_in

UNLIKE = 0.25  # standard deviations between rated and unrated (Rubin 2001): less is taken as alike
NO_AGREEMENT = AgreementRow("", "jury")
VALIDATED = "non_inferior"
NOTES = ("note", "notes")  # the last keys of a row
IN_JSON = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}


@dataclass(frozen=True)
class PredictedRow(Noted):
    """One benchmark, or all combined. Means and q are in points; NaN is undefined, see `notes`.

    Attributes
    ----------
    n_both, n_fit, n_calibration : int
        Responses with composites of jury and clinicians; those the map was fitted on; and
        their instances, which all measure its error.
    q : half the mean width of the intervals of single responses, before any cut at the scale
    n_predicted : responses with a value on the clinicians' scale
    mean_clinicians, mean_jury, mean_corrected : of the rated, of all, prediction-powered
    weight, n_rated, n_unrated, gain : lambda, n, N and ratio of variances of the last
    rated_unrated_difference : of jury means, in standard deviations
    coverage : share of `n_checked` rated responses held by intervals made without them
    agreement : the jury's row of the agreement table
    verdict : the kind of the study's decision on the jury, such as "non_inferior"
    """

    benchmark: str
    n_both: int = 0
    n_fit: int = 0
    n_calibration: int = 0
    q: float = NAN
    n_predicted: int = 0
    mean_clinicians: float = NAN
    clinicians_low: float = NAN
    clinicians_high: float = NAN
    mean_jury: float = NAN
    mean_corrected: float = NAN
    low: float = NAN
    high: float = NAN
    weight: float = NAN
    n_rated: int = 0
    n_unrated: int = 0
    gain: float = NAN
    rated_unrated_difference: float = NAN
    coverage: float = NAN
    n_checked: int = 0
    agreement: AgreementRow = NO_AGREEMENT
    verdict: str = ""

    @property
    def validated(self) -> bool:
        """Tell whether real jurors agree with real clinicians as the study's protocol asks."""
        return self.verdict == VALIDATED and not self.simulated

    @property
    def unlike(self) -> bool:
        """Tell whether the jury finds the rated responses better or worse than the others."""
        return abs(self.rated_unrated_difference) > UNLIKE


def to_json(row: PredictedRow) -> dict[str, Any]:
    """Return a row as `predict --json` has it; what is undefined becomes None."""
    figures = {IN_JSON.get(name, name): value for name, value in json_value(row).items()}
    agreement, notes = figures.pop("agreement"), {name: figures.pop(name) for name in NOTES}
    ends = {"icc": "icc", "icc_low": "boot_low", "icc_high": "boot_high"}
    figures |= {name: agreement[own] for name, own in ends.items()}
    figures["n_instances"] = agreement["n_instances"]
    return figures | {"validated": row.validated} | notes


def row_notes(
    scope: Scope, sample: Sample, row: PredictedRow, fitted: Conformal
) -> Iterator[Note | None]:
    """Say what a benchmark's figures rest on, and what not to conclude from them."""
    yield warning(scope, row.verdict)
    yield fitted.reason
    if fitted.map and fitted.map.flat:
        yield note(PlanningCode.MAP_LEVEL)
    yield from _mean_notes(sample, row)
    if scope.jury:
        yield remarks.fewer_jurors(scope.jury.needed, len(scope.jury.members))
    short = sum(scope.incomplete.get(name, 0) for name in (*scope.jurors, *scope.clinicians))
    yield remarks.incomplete(short)


def warning(scope: Scope, verdict: str) -> Note | None:
    """Return what to be told of a jury that is not validated, or None."""
    if simulated(scope):
        return note(PlanningCode.SIMULATED_VALIDATE_NOT)
    return None if verdict == VALIDATED else note(PlanningCode.NOT_VALIDATED, verdict=verdict)


def _mean_notes(sample: Sample, row: PredictedRow) -> Iterator[Note | None]:
    if row.unlike:
        yield note(
            PlanningCode.RATED_UNLIKE,
            rated=sample.jury.mean(),
            unrated=sample.unrated_jury.mean(),
            deviations=abs(row.rated_unrated_difference),
        )
    yield _correction(sample, row)
    yield remarks.few_instances(sample.n_instances)
    yield note(PlanningCode.ERRORS_OVER_INSTANCES) if sample.several else None


def _correction(sample: Sample, row: PredictedRow) -> Note | None:
    """Say where the jury corrects nothing, and why."""
    if not row.n_rated:
        return note(PlanningCode.NONE_OF_BOTH)
    if not row.n_unrated:
        return note(PlanningCode.ALL_RATED)
    if sample.n_instances < LEAST_WEIGHED:
        return note(PlanningCode.JURY_LEFT_OUT, least=LEAST_WEIGHED)
    return None if row.weight else note(PlanningCode.JURY_TELLS_NOTHING)


def unscored(every: pd.DataFrame) -> Note | None:
    """Count the responses without a composite of the jury, which are in no figure."""
    lost = every[every["jury"].isna()]
    if lost.empty:
        return None
    return note(
        PlanningCode.JURY_UNSCORED,
        scored=len(every) - len(lost),
        responses=len(every),
        rated=int(lost["clinicians"].notna().sum()),
    )


def simulated(scope: Scope) -> Note | None:
    """Name the raters of a scope that are not real."""
    return remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})


USABLE = (Kind.USABLE, Kind.USABLE_COMBINED)


def decide(rows: Sequence[PredictedRow], verdicts: Mapping[str, Decision]) -> Decision:
    """Return whether the predictions may be used.

    Parameters
    ----------
    rows : a row a benchmark, then "combined" if there are several; at least one
    verdicts : of `verdict.decisions` on the same jury, by benchmark

    Returns
    -------
    Decision
        Of subject "predictions"; figures, reasons and kind are those of the verdict that decides,
        on all combined, or on the only benchmark; where nothing is known of all combined, on the
        first benchmark that it holds back. "simulated" where any rater is; "usable" where it is
        "non_inferior" on every benchmark, and "usable_combined" where only on all combined.
    """
    row, verdict = _deciding(rows, verdicts)
    kind = _kind(rows, verdict)
    return Decision(
        "predictions",
        kind,
        estimate=verdict.estimate,
        low=verdict.low,
        high=verdict.high,
        reasons=noted(*_reasons(kind, rows, row, verdict)),
        basis=tuple(_basis(row)),
        next=_next(kind, rows, verdict),
    )


def _deciding(
    rows: Sequence[PredictedRow], verdicts: Mapping[str, Decision]
) -> tuple[PredictedRow, Decision]:
    """Return the row that decides, with the verdict on it."""
    whole = next((row for row in rows if row.benchmark == COMBINED), None)
    if whole and verdicts[COMBINED].kind is not Kind.UNDEFINED:
        return whole, verdicts[COMBINED]
    parts = [row for row in rows if row.benchmark != COMBINED]
    row = min(parts, key=lambda one: one.validated)
    return row, verdicts[row.benchmark]


def _kind(rows: Sequence[PredictedRow], verdict: Decision) -> Kind:
    if simulated_in(rows):
        return Kind.SIMULATED
    if verdict.kind is not Kind.NON_INFERIOR:
        return verdict.kind
    each = all(row.validated for row in rows if row.benchmark != COMBINED)
    return Kind.USABLE if each else Kind.USABLE_COMBINED


def _reasons(
    kind: Kind, rows: Sequence[PredictedRow], row: PredictedRow, verdict: Decision
) -> Iterator[Note | None]:
    if kind is Kind.SIMULATED:
        yield note(NoteCode.SIMULATED, raters=simulated_in(rows))
        return
    yield from verdict.reasons
    for other in (one for one in rows if one is not row and not one.validated):
        yield note(PlanningCode.UNSHOWN_IN, benchmark=other.benchmark)
    for one in rows:
        unlike = one.told(PlanningCode.RATED_UNLIKE)
        yield (
            note(PlanningCode.OF_BENCHMARK, benchmark=one.benchmark, what=unlike)
            if unlike
            else None
        )


def _basis(row: PredictedRow) -> Iterator[Note]:
    found = row.agreement
    yield note(PlanningCode.BOTH_RATED, responses=found.n_responses, instances=found.n_instances)
    yield note(PlanningCode.PREDICTED_FOR, responses=row.n_unrated)


def _next(kind: Kind, rows: Sequence[PredictedRow], verdict: Decision) -> Note | None:
    if kind is Kind.SIMULATED:
        return note(NoteCode.DO_RATE_FOR_REAL)
    if kind not in USABLE:
        return verdict.next
    return note(PlanningCode.DO_RATE_AT_RANDOM) if any(one.unlike for one in rows) else None
