"""Whether a jury's predictions may be used: told before the figures, from fields alone."""

import math
from collections.abc import Iterator, Sequence

from calibration.codes import NoteCode as Code
from calibration.decision import Decision, Kind
from calibration.predicting.row import PredictedRow
from calibration.remarks import FEW_INSTANCES
from calibration.values import COMBINED, Note, note, noted, simulated_in

USABLE = (Kind.USABLE, Kind.USABLE_COMBINED)


def decide(rows: Sequence[PredictedRow]) -> Decision:
    """Return whether the predictions may be used.

    Parameters
    ----------
    rows : a row a benchmark, then "combined" if there are several; at least one

    Returns
    -------
    Decision
        Of subject "predictions"; `estimate` is the jury's ICC(C,2) with the clinicians, of
        the row that decides. "simulated" where any rater is; "usable" where the jury is
        validated on every benchmark, and on all combined where these can be; "usable_combined"
        where it is on all combined, and not on each benchmark by itself. Else the row that is
        in the way decides: "undefined" without an ICC or its interval, "too_few" with fewer
        than 20 instances, "inconclusive" where the interval reaches 0.
    """
    kind, row = _decided(rows)
    found = row.agreement
    return Decision(
        "predictions",
        kind,
        estimate=found.icc,
        low=found.low,
        high=found.high,
        reasons=noted(*_reasons(kind, rows, row)),
        basis=tuple(_basis(row)),
        next=_next(kind, rows, row),
    )


def _decided(rows: Sequence[PredictedRow]) -> tuple[Kind, PredictedRow]:
    """Return what is decided, and the row that decides it."""
    whole = next((row for row in rows if row.benchmark == COMBINED), None)
    whole = whole if whole and math.isfinite(whole.agreement.icc) else None
    parts = [row for row in rows if row.benchmark != COMBINED]
    weakest = min(parts, key=lambda row: row.agreement.low if row.validated else -math.inf)
    row = whole or weakest
    if simulated_in(rows):
        return Kind.SIMULATED, row
    if not row.validated:
        return _why_not(row), row
    return (Kind.USABLE if weakest.validated else Kind.USABLE_COMBINED), row


def _why_not(row: PredictedRow) -> Kind:
    found = row.agreement
    if not math.isfinite(found.icc):
        return Kind.UNDEFINED
    if found.instances < FEW_INSTANCES:
        return Kind.TOO_FEW
    return Kind.INCONCLUSIVE if math.isfinite(found.low) else Kind.UNDEFINED


def _reasons(kind: Kind, rows: Sequence[PredictedRow], row: PredictedRow) -> Iterator[Note | None]:
    found = row.agreement
    if kind is Kind.SIMULATED:
        yield note(Code.SIMULATED, raters=simulated_in(rows))
        return
    if kind in USABLE:
        yield note(Code.AGREES, icc=found.icc, low=found.low, high=found.high)
    elif kind is Kind.INCONCLUSIVE:
        yield note(Code.REACHES_ZERO, icc=found.icc, low=found.low, high=found.high)
    elif kind is Kind.TOO_FEW:
        yield note(Code.INSTANCES_NEEDED, instances=found.instances, least=FEW_INSTANCES)
    else:
        yield found.why_not_shown
    for other in (one for one in rows if one is not row):
        why = other.agreement.why_not_shown
        yield note(Code.UNSHOWN_IN, benchmark=other.benchmark, why=why) if why else None
    for one in rows:
        unlike = one.told(Code.RATED_UNLIKE)
        yield note(Code.OF_BENCHMARK, benchmark=one.benchmark, what=unlike) if unlike else None


def _basis(row: PredictedRow) -> Iterator[Note]:
    found = row.agreement
    yield note(Code.BOTH_RATED, responses=found.responses, instances=found.instances)
    yield note(Code.PREDICTED_FOR, responses=row.n_unrated)


def _next(kind: Kind, rows: Sequence[PredictedRow], row: PredictedRow) -> Note | None:
    if kind is Kind.SIMULATED:
        return note(Code.DO_RATE_FOR_REAL)
    if kind is Kind.TOO_FEW:
        return note(Code.DO_RATE_INSTANCES, instances=FEW_INSTANCES - row.agreement.instances)
    if kind is Kind.INCONCLUSIVE:
        return note(Code.DO_RATE_MORE)
    if kind is Kind.UNDEFINED:
        return _of_undefined(row)
    if any(one.unlike for one in rows):
        return note(Code.DO_RATE_AT_RANDOM)
    return None


def _of_undefined(row: PredictedRow) -> Note:
    few = row.agreement.responses < FEW_INSTANCES
    return note(Code.DO_RATE_MORE if few else Code.DO_LOOK_AT_AGREEMENT)
