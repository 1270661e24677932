"""What may be said of the jury: whether it agrees with clinicians as well as a clinician does."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from calibration.codes import NoteCode as Code
from calibration.decision import Decision, Kind
from calibration.remarks import FEW_INSTANCES
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.values import COMBINED, Note, note, noted, simulated_in

MOST_LOST = 0.01  # share of resamples without the figure above which its interval decides nothing
MOST_TIMES = 50  # a study that would have to grow more than this is no advice


def decisions(rows: Sequence[AgreementRow], margin: float = 0.0) -> dict[str, Decision]:
    """Return what may be said on each benchmark, and last on all combined, by its name.

    Parameters
    ----------
    rows : the agreement table
    margin : as in `decide`
    """
    names = [*dict.fromkeys(row.benchmark for row in rows)]
    single = sum(name != COMBINED for name in names)
    return {
        name: decide(
            [row for row in rows if row.benchmark == name],
            margin,
            looked=1 if name == COMBINED else single,
        )
        for name in names
    }


def decide(rows: Sequence[AgreementRow], margin: float = 0.0, looked: int = 1) -> Decision:
    """Return what the rows of one benchmark allow to be said of the jury.

    Parameters
    ----------
    rows : rows of the agreement table, all of one benchmark
    margin : float
        Non-inferiority margin in ICC, 0 or more, fixed before the ratings were seen. "As well
        as a clinician" is said where the whole 95 % interval of like for like lies above
        -margin; with the default 0 that is above 0.
    looked : int
        How many benchmarks are looked at side by side, this one among them. With several, "as
        well as a clinician" takes the interval at level 1 - 0.05 / looked (Bonferroni); no
        other kind is corrected for it, and the reasons say so.

    Returns
    -------
    Decision
        Of subject "agreement". "simulated" where any rater behind the claim is; "undefined"
        without a jury or a difference; "too_few" with fewer than 20 instances, without an
        interval, or where over 1 % of resamples have no difference; "non_inferior", "inferior"
        (the whole interval below 0, and not above -margin) or "inconclusive".

    Raises
    ------
    ValueError
        If the margin is below 0 or no number, or there are no rows.
    """
    if not rows or not margin >= 0:
        raise ValueError(f"a verdict takes rows and a margin of 0 or more, not {margin}")
    jury = next((row for row in rows if row.scorer == "jury"), None)
    held = next((row for row in rows if isinstance(row, LikeForLikeRow)), None)
    if jury is None or held is None:
        lacking = note(Code.NO_JUROR), note(Code.DO_RUN_JURY)
        return Decision("agreement", Kind.UNDEFINED, reasons=lacking[:1], next=lacking[1])
    kind = _kind(held, jury, margin, looked)
    return Decision(
        "agreement",
        kind,
        estimate=held.icc,
        low=held.boot_low,
        high=held.boot_high,
        reasons=noted(*_reasons(kind, (held, jury), margin, looked)),
        basis=(_basis(jury),),
        next=_next(kind, held, jury),
    )


def _basis(jury: AgreementRow) -> Note:
    return note(
        Code.RESTS_ON,
        responses=jury.n_responses,
        instances=jury.n_instances,
        clinicians=jury.n_clinicians,
        missing=jury.n_missing,
    )


def _kind(held: LikeForLikeRow, jury: AgreementRow, margin: float, looked: int) -> Kind:
    if simulated_in([held, jury]):
        return Kind.SIMULATED
    if not np.isfinite(held.icc):
        return Kind.UNDEFINED
    if _why_too_few(held):
        return Kind.TOO_FEW
    if held.boot_low > -margin:
        low = held.boot_low if looked == 1 else held.corrected_low
        return Kind.NON_INFERIOR if low > -margin else Kind.INCONCLUSIVE
    return Kind.INFERIOR if held.boot_high < 0 else Kind.INCONCLUSIVE


def _why_too_few(held: LikeForLikeRow) -> Note | None:
    """Return why the interval of like for like decides nothing, or None where it does."""
    if held.n_instances < FEW_INSTANCES:
        return note(Code.FEW_TO_TRUST, instances=held.n_instances, least=FEW_INSTANCES)
    if not np.isfinite(held.boot_low):
        return note(Code.NO_INTERVAL)
    if held.undefined_resamples > MOST_LOST * held.resamples:
        return note(Code.LOST_TO_TRUST, lost=held.undefined_resamples, resamples=held.resamples)
    return None


def _reasons(
    kind: Kind, rows: tuple[LikeForLikeRow, AgreementRow], margin: float, looked: int
) -> Iterator[Note | None]:
    held = rows[0]
    if kind is Kind.SIMULATED:
        yield note(Code.MADE_UP, raters=simulated_in(rows))
    if kind is Kind.UNDEFINED:
        yield next((one for one in held.notes if one.code is not Code.ANALYSED), None)
    if not np.isfinite(held.icc):
        return
    yield _gap(held)
    if kind is Kind.TOO_FEW:
        yield _why_too_few(held)
    elif kind is not Kind.SIMULATED:
        yield from _reading(kind, held, margin, looked)


def _gap(held: LikeForLikeRow) -> Note:
    known = np.isfinite(held.boot_low)
    return note(
        Code.GAP,
        gap=held.icc,
        low=held.boot_low if known else None,
        high=held.boot_high if known else None,
        jury=held.jury_icc,
        clinician=held.clinician_icc,
    )


def _reading(kind: Kind, held: LikeForLikeRow, margin: float, looked: int) -> Iterator[Note | None]:
    """Yield how the interval lies to the margin, and whether several were looked at."""
    if kind is Kind.NON_INFERIOR:
        yield note(Code.ALL_ABOVE, margin=margin)
        yield note(Code.HOLDS_CORRECTED, benchmarks=looked) if looked > 1 else None
        return
    if kind is Kind.INFERIOR:
        yield note(Code.ALL_BELOW)
    elif held.boot_low > -margin:
        yield note(Code.CORRECTED_REACHES, margin=margin, benchmarks=looked)
        return
    else:
        yield note(Code.REACHES_BELOW, margin=margin)
    yield note(Code.NOT_CORRECTED, benchmarks=looked) if looked > 1 else None


def _next(kind: Kind, held: LikeForLikeRow, jury: AgreementRow) -> Note | None:
    """Return the next useful action."""
    if kind is Kind.SIMULATED:
        return note(Code.DO_REAL_RATERS)
    if jury.n_missing and kind in (Kind.UNDEFINED, Kind.TOO_FEW, Kind.INCONCLUSIVE):
        return note(Code.DO_RUN_JURY_ON, responses=jury.n_missing)
    if kind is Kind.UNDEFINED:
        return _of_undefined(held)
    if kind is Kind.TOO_FEW and held.n_instances < FEW_INSTANCES:
        return note(Code.DO_MORE_INSTANCES, instances=FEW_INSTANCES - held.n_instances)
    if kind is Kind.INCONCLUSIVE or kind is Kind.TOO_FEW:
        return _more_responses(held)
    return note(Code.DO_OTHER_JURY if kind is Kind.INFERIOR else Code.DO_EXPORT)


def _of_undefined(held: LikeForLikeRow) -> Note:
    if held.told(Code.ONLY_CLINICIAN):
        return note(Code.DO_SECOND_CLINICIAN)
    if held.told(Code.NONE_HELD):
        return note(Code.DO_MORE_CLINICIANS, least=FEW_INSTANCES)
    return note(Code.DO_SEE_NOTES)


def _more_responses(held: LikeForLikeRow) -> Note:
    """Say how many responses would bring the low end to 0, the half width shrinking as 1/sqrt(n)."""
    if not held.icc > 0 or not np.isfinite(held.boot_low):
        return note(Code.DO_OTHER_JURY)
    widths = (held.icc - held.boot_low) / held.icc
    if not 1 < widths <= math.sqrt(MOST_TIMES):
        return note(Code.DO_OTHER_JURY)
    return note(Code.DO_MORE_RESPONSES, responses=math.ceil(widths**2 * held.n_responses))
