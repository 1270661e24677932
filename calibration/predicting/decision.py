"""Whether a jury's predictions may be used: the study's verdict on the jury, told before figures."""

from collections.abc import Iterator, Mapping, Sequence

from calibration.codes import NoteCode, PlanningCode
from calibration.decision import Decision, Kind
from calibration.predicting.row import PredictedRow
from calibration.values import COMBINED, Note, note, noted, simulated_in

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
