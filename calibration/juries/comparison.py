"""Decide which of two juries agrees better with the clinicians."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from calibration.decision import Decision, DecisionKind
from calibration.differences import LEVEL, DifferenceRow
from calibration.notes import Figures, Note, Noted, filled, listed, note, noted
from calibration.remarks import FEW_INSTANCES, MOST_TIMES
from calibration.shared_notes import (
    DO_MORE_INSTANCES,
    DO_MORE_RESPONSES,
    DO_REAL_RATERS,
    DO_SHARED_RESPONSES,
    FEW_TO_TRUST,
    MADE_UP,
    NO_INTERVAL,
    NOT_DETECTABLE,
    between_words,
)
from calibration.tables.numbers import TERMINAL, chance
from calibration.values import NAN

DO_CHEAPER_JURY = ("do_cheaper_jury", "use the one that costs less")


def compared_juries(row: DifferenceRow, first: Sequence[str], second: Sequence[str]) -> Decision:
    """Return which of two juries agrees better with the clinicians, or why that is not shown.

    Parameters
    ----------
    row : the first jury's ICC minus the second's, on the responses of both
    first, second : the jurors of each jury

    Returns
    -------
    Decision
        Of subject "comparison". "simulated" where any rater is; "undefined" without a
        difference; "too_few" with fewer than 20 instances, or without an interval and p;
        "first_better" or "second_better" where p is at most 0.05, and so the 95 % interval
        excludes 0 on that side, however many comparisons were made; else "inconclusive".
    """
    kind = _kind(row)
    return Decision(
        "comparison",
        kind,
        estimate=row.difference,
        low=row.low,
        high=row.high,
        p=row.p,
        reasons=noted(*_reasons(kind, row, first, second)),
        basis=(_basis(row, first, second),),
        next=_next(kind, row, (first, second)),
        names=(listed(first), listed(second)),
    )


def _kind(row: DifferenceRow) -> DecisionKind:
    if row.simulated:
        return DecisionKind.SIMULATED
    if not isfinite(row.difference):
        return DecisionKind.UNDEFINED
    if _why_too_few(row):
        return DecisionKind.TOO_FEW
    if row.p <= LEVEL and _side(row):
        return DecisionKind.FIRST_BETTER if row.difference > 0 else DecisionKind.SECOND_BETTER
    return DecisionKind.INCONCLUSIVE


def _side(row: DifferenceRow) -> bool:
    """Return whether the whole interval lies on the difference's side of 0."""
    return row.low > 0 if row.difference > 0 else row.difference < 0 and row.high < 0


def _why_too_few(row: DifferenceRow) -> Note | None:
    """Return why interval and p decide nothing, or None where they do."""
    if few := row.told("too_few_for_p"):
        return note(*FEW_TO_TRUST, instances=few["instances"], least=FEW_INSTANCES)
    if not all(map(isfinite, (row.low, row.high, row.p))):
        return note(*NO_INTERVAL)
    return None


def _reasons(
    kind: DecisionKind, row: DifferenceRow, first: Sequence[str], second: Sequence[str]
) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(*MADE_UP, raters=row.simulated)
    if not isfinite(row.difference):
        yield from row.notes[:1]  # a row without a difference begins with the reason
        return
    yield note(
        "two_iccs",
        "on the same responses: {first} ICC(C,2) {icc_first:z.3f}, {second} {icc_second:z.3f}",
        first=first,
        icc_first=row.icc_a,
        second=second,
        icc_second=row.icc_b,
    )
    yield _difference(row)
    if kind is DecisionKind.TOO_FEW:
        yield _why_too_few(row)
    elif kind is DecisionKind.INCONCLUSIVE:
        yield from _doubts(row)


def _difference(row: DifferenceRow) -> Note:
    names = ("difference", "low", "high", "p")
    finite = {name: getattr(row, name) for name in names if isfinite(getattr(row, name))}
    return note(
        "difference", _difference_words, **dict.fromkeys(names) | finite, n_tried=row.n_tried
    )


def _doubts(row: DifferenceRow) -> Iterator[Note | None]:
    """Yield why no difference is shown."""
    yield note("none_shown", "the interval includes 0: a difference is neither shown nor excluded")
    if isfinite(row.detectable):
        yield note(*NOT_DETECTABLE, least=row.detectable)


def _basis(row: DifferenceRow, first: Sequence[str], second: Sequence[str]) -> Note:
    on_both = row.told("only_both")
    responses = (on_both["of_first"], on_both["of_second"]) if on_both else (row.n_responses,) * 2
    return note(
        "juries_compared",
        _juries_compared,
        responses=row.n_responses,
        first=first,
        of_first=responses[0],
        second=second,
        of_second=responses[1],
    )


def _next(
    kind: DecisionKind, row: DifferenceRow, juries: tuple[Sequence[str], Sequence[str]]
) -> Note:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if kind is DecisionKind.TOO_FEW and (few := row.told("too_few_for_p")):
        return note(*DO_MORE_INSTANCES, instances=FEW_INSTANCES - few["instances"])
    if kind in (DecisionKind.UNDEFINED, DecisionKind.TOO_FEW):
        return note(*DO_SHARED_RESPONSES)
    if kind is DecisionKind.INCONCLUSIVE:
        return _to_decide(row)
    return note(
        "do_take_jury",
        "use {jurors}, unless the lower cost of the other outweighs the difference",
        jurors=juries[kind is DecisionKind.SECOND_BETTER],
    )


def _to_decide(row: DifferenceRow) -> Note:
    """Return how many responses would show a difference of this size, or what else to do."""
    if row.difference == 0:
        return note(*DO_CHEAPER_JURY)
    toward_zero = row.difference - row.low if row.difference > 0 else row.high - row.difference
    narrower = toward_zero / abs(row.difference)  # the factor that makes the interval end at 0
    if narrower > MOST_TIMES**0.5:
        return note(*DO_CHEAPER_JURY)
    responses = ceil(max(narrower, 1) ** 2 * row.n_responses)  # its width shrinks as 1 / sqrt(n)
    return note(*DO_MORE_RESPONSES, responses=responses)


@dataclass(frozen=True)
class ComparedRow(Noted):
    """A jury with its ICC, or the difference of two with what belongs to it."""

    jury: str
    icc: float
    n_responses: int
    low: float = NAN
    high: float = NAN
    p: float = NAN
    n_tried: int | None = None


def compared_rows(
    row: DifferenceRow, first: Sequence[str], second: Sequence[str]
) -> list[ComparedRow]:
    """Return two juries with their ICCs on the responses that both have, then the difference."""
    simulated = tuple(remark for remark in row.notes if remark.code == "simulated")
    juries = ((first, row.icc_a), (second, row.icc_b))
    return [
        *(
            ComparedRow(listed(jurors), icc, row.n_responses, notes=simulated)
            for jurors, icc in juries
        ),
        ComparedRow(
            "Difference",
            row.difference,
            row.n_responses,
            row.low,
            row.high,
            row.p,
            row.n_tried,
            notes=row.notes,
        ),
    ]


def _difference_words(figures: Figures) -> str:
    between = between_words(figures)
    text = f"difference {{difference:z.3f}} ({between}), p {chance(figures['p'], TERMINAL)}"
    many = ", not corrected for the {n_tried} different comparisons looked at on this study"
    return filled(text + (many if figures["n_tried"] > 1 else ""), figures)


def _juries_compared(figures: Figures) -> str:
    text = filled("{responses:response} that both juries scored", figures)
    if figures["of_first"] == figures["of_second"] == figures["responses"]:
        return text
    return text + filled("; {first} has {of_first}, {second} has {of_second}", figures)
