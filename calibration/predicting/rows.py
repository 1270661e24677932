"""Rows of `medjury analyse predict` with their notes, and whether the predictions may be used."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from calibration import remarks
from calibration.decision import Decision, DecisionKind
from calibration.headlines import VERDICTS
from calibration.json_values import json_value
from calibration.notes import Figures, Note, Noted, note, noted, simulated_in, undefined
from calibration.predicting.conformal import ConformalMap
from calibration.predicting.prediction_powered import LEAST_WEIGHED, UNLIKE, RatedSample
from calibration.scope import AgreementRow, Scope
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, NAN

NO_AGREEMENT = AgreementRow("", "jury")
NOTES = ("note", "notes")  # the last keys of a row
IN_JSON = {"weight": "lambda", "n_rated": "n", "n_unrated": "N"}
USABLE = (DecisionKind.USABLE, DecisionKind.USABLE_COMBINED)


@dataclass(frozen=True)
class PredictedRow(Noted):
    """One benchmark, or all combined. Means and q are in points; undefined is NaN, see `notes`.

    Attributes
    ----------
    n_both, n_fit, n_calibration : int
        Responses with composites of jury and clinicians; those the map was fitted on; and
        instances that its error was estimated from.
    q : half the mean width of the intervals of single responses, before any cut at the scale
    n_predicted : responses with a value on the clinicians' scale
    mean_clinicians, mean_jury, mean_corrected : of the rated, of all, prediction-powered
    weight, n_rated, n_unrated, gain : lambda, n, N and ratio of variances of the last
    rated_unrated_difference : of jury means, in standard deviations
    coverage : share of `n_checked` rated responses inside intervals computed without them
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
        """Whether real jurors agree with real clinicians as well as the study's protocol asks."""
        return self.verdict == DecisionKind.NON_INFERIOR and not self.simulated

    @property
    def unlike(self) -> bool:
        """Whether the jury scores the rated responses higher or lower than the others."""
        return abs(self.rated_unrated_difference) > UNLIKE


def to_json(row: PredictedRow) -> dict[str, Any]:
    """Return a row as `analyse predict --json` has it; what is undefined becomes None."""
    figures = {IN_JSON.get(name, name): value for name, value in json_value(row).items()}
    agreement, notes = figures.pop("agreement"), {name: figures.pop(name) for name in NOTES}
    ends = {"icc": "icc", "icc_low": "boot_low", "icc_high": "boot_high"}
    figures |= {name: agreement[field] for name, field in ends.items()}
    figures["n_instances"] = agreement["n_instances"]
    return figures | {"validated": row.validated} | notes


def row_notes(
    scope: Scope, sample: RatedSample, row: PredictedRow, fitted: ConformalMap
) -> Iterator[Note | None]:
    """Yield the notes on a benchmark's figures: what they rest on and what they do not show."""
    yield warning(scope, row.verdict)
    yield fitted.reason
    if fitted.map and fitted.map.is_flat:
        yield note(
            "map_level",
            "the map is flat: every response gets the same value, whatever the jury's score",
        )
    yield from _mean_notes(sample, row)
    if scope.jury:
        yield remarks.fewer_jurors(scope.jury.needed, len(scope.jury.members))
    n_incomplete = sum(scope.incomplete.get(name, 0) for name in (*scope.jurors, *scope.clinicians))
    yield remarks.incomplete(n_incomplete)


def warning(scope: Scope, verdict: str) -> Note | None:
    """Return the note that a jury is simulated or not validated, or None."""
    if simulated(scope):
        return note(
            "simulated_validate_not", "NOT VALIDATED: a jury is not validated by simulated raters"
        )
    return (
        None
        if verdict == DecisionKind.NON_INFERIOR
        else note("not_validated", _not_validated, verdict=verdict)
    )


def _mean_notes(sample: RatedSample, row: PredictedRow) -> Iterator[Note | None]:
    if row.unlike:
        yield note(
            "rated_unlike",
            (
                "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others "
                "{unrated:.2f}, {deviations:.2f} standard deviations apart, and unless the rated were "
                "drawn at random the corrected mean may be wrong"
            ),
            rated=sample.jury.mean(),
            unrated=sample.unrated_jury.mean(),
            deviations=abs(row.rated_unrated_difference),
        )
    yield _correction(sample, row)
    yield remarks.few_instances(sample.n_instances)
    yield (
        note(
            "errors_over_instances",
            "instances have several responses: standard errors are over instances",
        )
        if sample.has_repeated_instances
        else None
    )


def _correction(sample: RatedSample, row: PredictedRow) -> Note | None:
    """Return why the jury corrects nothing, or None where it does."""
    if not row.n_rated:
        return undefined("none_of_both", "no response has composites of both jury and clinicians")
    if not row.n_unrated:
        return note(
            "all_rated",
            "every response that the jury rated is rated by clinicians: nothing to correct with",
        )
    if sample.n_instances < LEAST_WEIGHED:
        return note(
            "jury_left_out",
            "fewer than {least} rated instances: the jury is left out of the mean",
            least=LEAST_WEIGHED,
        )
    return (
        None
        if row.weight
        else note(
            "jury_tells_nothing",
            (
                "lambda is 0: the jury's scores say nothing about the clinicians' mean and are not "
                "used"
            ),
        )
    )


def unscored(composites: pd.DataFrame) -> Note | None:
    """Return a note that counts the responses the jury did not score; None where there are none."""
    without_jury = composites[composites["jury"].isna()]
    if without_jury.empty:
        return None
    return note(
        "jury_unscored",
        (
            "the jury scored {scored} of {responses:response}: the others are left out, {rated} "
            "of them rated by clinicians"
        ),
        scored=len(composites) - len(without_jury),
        responses=len(composites),
        rated=int(without_jury["clinicians"].notna().sum()),
    )


def simulated(scope: Scope) -> Note | None:
    """Return a note that names the simulated raters of a scope, or None."""
    return remarks.simulated(scope.simulated & {*scope.jurors, *scope.clinicians})


def decide(rows: Sequence[PredictedRow], verdicts: Mapping[str, Decision]) -> Decision:
    """Return whether the predictions may be used, by the study's verdict on the jury.

    Parameters
    ----------
    rows : a row a benchmark, then "combined" if there are several; at least one
    verdicts : of `verdict.decisions` on the same jury, by benchmark

    Returns
    -------
    Decision
        Of subject "predictions"; figures, reasons and kind are those of the verdict that decides,
        on all combined, or on the only benchmark; where that on all combined is undefined, on
        the first benchmark that is not validated. "simulated" where any rater is; "usable" where
        it is "non_inferior" on every benchmark, and "usable_combined" where only on all combined.
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
    combined = next((row for row in rows if row.benchmark == COMBINED), None)
    if combined and verdicts[COMBINED].kind is not DecisionKind.UNDEFINED:
        return combined, verdicts[COMBINED]
    benchmarks = [row for row in rows if row.benchmark != COMBINED]
    row = min(benchmarks, key=lambda benchmark: benchmark.validated)
    return row, verdicts[row.benchmark]


def _kind(rows: Sequence[PredictedRow], verdict: Decision) -> DecisionKind:
    if simulated_in(rows):
        return DecisionKind.SIMULATED
    if verdict.kind is not DecisionKind.NON_INFERIOR:
        return verdict.kind
    all_validated = all(row.validated for row in rows if row.benchmark != COMBINED)
    return DecisionKind.USABLE if all_validated else DecisionKind.USABLE_COMBINED


def _reasons(
    kind: DecisionKind, rows: Sequence[PredictedRow], row: PredictedRow, verdict: Decision
) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(*SIMULATED, raters=simulated_in(rows))
        return
    yield from verdict.reasons
    for other in (other for other in rows if other is not row and not other.validated):
        yield note("unshown_in", "not shown in {benchmark} by itself", benchmark=other.benchmark)
    for other in rows:
        unlike = other.told("rated_unlike")
        yield (
            note("of_benchmark", "in {benchmark}, {what}", benchmark=other.benchmark, what=unlike)
            if unlike
            else None
        )


def _basis(row: PredictedRow) -> Iterator[Note]:
    agreement = row.agreement
    yield note(
        "both_rated",
        "{responses:response} of {instances:instance} that both the jury and clinicians rated",
        responses=agreement.n_responses,
        instances=agreement.n_instances,
    )
    yield note(
        "predicted_for", "{responses:response} that the jury alone rated", responses=row.n_unrated
    )


def _next(kind: DecisionKind, rows: Sequence[PredictedRow], verdict: Decision) -> Note | None:
    if kind is DecisionKind.SIMULATED:
        return note(
            "do_rate_for_real",
            "have clinicians rate a random sample, and a real jury score every response",
        )
    if kind not in USABLE:
        return verdict.next
    return (
        note("do_rate_at_random", "draw the responses that clinicians rate at random")
        if any(row.unlike for row in rows)
        else None
    )


def _not_validated(figures: Figures) -> str:
    return f"NOT VALIDATED: {VERDICTS[figures['verdict']]}"
