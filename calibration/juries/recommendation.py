"""Recommend a jury: the cheapest, or smallest, of those with the highest expected ICC."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, isfinite

from calibration.codes import NoteCode as Code
from calibration.decision import Decision, DecisionKind
from calibration.juries.ranking import JuryRow, Ranking
from calibration.remarks import FEW_INSTANCES, MOST_LOST, MOST_TIMES
from calibration.values import NAN, Note, note, noted

ALIKE = 0.01  # a smaller difference of two ICCs makes no practical difference
MOST_REASONS = 3
UNLIKE = 0.9  # a jury with a smaller share of the responses may lack the difficult ones


@dataclass(frozen=True, slots=True)
class Candidate:
    """The jury with the highest ICC of its size, and its expected ICC on new responses.

    `compared` is the number of juries it was chosen from: 1 only where it has all jurors.
    """

    row: JuryRow
    expected: float
    compared: int


def recommendation(ranking: Ranking, *, is_made_up: bool = False) -> Decision:
    """Return which jury to take, or why none can be recommended.

    Candidates are the juries with the highest ICC of each size. Each is judged by its expected
    ICC on new responses; that of all jurors together, which was not chosen among others, is its
    ICC itself. Only candidates with an interval above 0 count where there are any. Of those
    within `ALIKE` of the highest expected ICC the cheapest is taken; where a cost is not known,
    or is the same, the one with the fewest jurors.

    Parameters
    ----------
    ranking : Ranking
    is_made_up : bool
        Whether the prices of the jurors are made up, as those of simulated jurors are.

    Returns
    -------
    Decision
        Of subject "juries". "simulated" where any rater is; "undefined" where no jury has an
        ICC; "too_few" with fewer than 20 instances, without an expected ICC or interval, or
        where over 1 % of the resamples have none; "inconclusive" where no jury is shown to
        agree beyond chance: nothing above 0 is expected, or its interval reaches 0; else
        "recommended". `estimate` is the expected ICC, with its interval.
    """
    considered = candidates(ranking)
    chosen = simplest(considered)
    kind = _kind(ranking, chosen)
    cost = _cost(chosen.row, is_made_up) if chosen else None
    return Decision(
        "juries",
        kind,
        estimate=chosen.expected if chosen else NAN,
        low=chosen.row.honest_low if chosen else NAN,
        high=chosen.row.honest_high if chosen else NAN,
        reasons=noted(*_reasons(kind, ranking, considered, chosen), cost),
        basis=(_basis(ranking),),
        next=_next(kind, ranking, chosen),
        names=(chosen.row.name,) if chosen else (),
    )


def recommended_jurors(ranking: Ranking) -> tuple[str, ...]:
    """Return the jurors of the jury that `recommendation` names; () where there is none."""
    chosen = simplest(candidates(ranking))
    return chosen.row.jurors if chosen else ()


def with_verdict(recommended: Decision, verdict: Decision) -> Decision:
    """Return a recommendation, limited by the study's verdict on the recommended jury.

    Parameters
    ----------
    recommended : of `recommendation`
    verdict : of `verdict.decide` on the jury that it names

    Returns
    -------
    Decision
        "recommended" only where the verdict is "non_inferior"; else the verdict's own kind where
        that is "no_protocol" or "inferior"; else "inconclusive".
    """
    if (
        recommended.kind is not DecisionKind.RECOMMENDED
        or verdict.kind is DecisionKind.NON_INFERIOR
    ):
        return recommended
    claimed = verdict.kind in (DecisionKind.NO_PROTOCOL, DecisionKind.INFERIOR)
    why = note(Code.VERDICT_ON, jury=recommended.names[0], verdict=verdict.kind.value)
    return replace(
        recommended,
        kind=verdict.kind if claimed else DecisionKind.INCONCLUSIVE,
        reasons=(why, *recommended.reasons),
        next=verdict.next,
    )


def candidates(ranking: Ranking) -> list[Candidate]:
    """Return the jury with the highest ICC of each size, where it has an expected ICC."""
    best_by_size = []
    for winner in ranking.by_size:
        compared = winner.n_compared
        if winner.row.rank == 1 and compared > 1 and ranking.winner:
            compared = ranking.winner.n_compared
        best_by_size.append(Candidate(winner.row, winner.row.icc_honest, compared))
    return [candidate for candidate in best_by_size if isfinite(candidate.expected)]


def simplest(considered: list[Candidate]) -> Candidate | None:
    """Return the cheapest of the candidates that are as good as the best; else the smallest."""
    positive = [candidate for candidate in considered if _is_above_zero(candidate)] or considered
    if not positive:
        return None
    highest = max(candidate.expected for candidate in positive)
    alike = [candidate for candidate in positive if candidate.expected > highest - ALIKE]
    costs = [candidate.row.usd_per_response for candidate in alike]
    known = all(usd is not None for usd in costs)
    return min(
        alike,
        key=lambda candidate: ((candidate.row.usd_per_response or 0) * known, candidate.row.size),
    )


def _is_above_zero(candidate: Candidate) -> bool:
    return candidate.expected > 0 and candidate.row.honest_low > 0


def _kind(ranking: Ranking, chosen: Candidate | None) -> DecisionKind:
    if ranking.simulated:
        return DecisionKind.SIMULATED
    if ranking.winner is None:
        return DecisionKind.UNDEFINED
    if chosen is None or _why_too_few(ranking, chosen.row):
        return DecisionKind.TOO_FEW
    if not _is_above_zero(chosen):
        return DecisionKind.INCONCLUSIVE
    return DecisionKind.RECOMMENDED


def _why_too_few(ranking: Ranking, row: JuryRow) -> Note | None:
    """Return why a jury's figures decide nothing, or None where they do."""
    if row.n_instances < FEW_INSTANCES:
        return note(Code.FEW_TO_CHOOSE, instances=row.n_instances, least=FEW_INSTANCES)
    if not isfinite(row.honest_low):
        return note(Code.NO_INTERVAL)
    lost = row.told(Code.UNDEFINED_RESAMPLES)
    if lost and lost["lost"] > MOST_LOST * lost["resamples"]:
        return note(Code.ICC_LOST, lost=lost["lost"], resamples=lost["resamples"])
    return None


def _reasons(
    kind: DecisionKind, ranking: Ranking, considered: list[Candidate], chosen: Candidate | None
) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(Code.MADE_UP, raters=ranking.simulated)
    if kind is DecisionKind.UNDEFINED:
        why = dict.fromkeys(remark for row in ranking.rows for remark in row.notes[:1])
        yield from [*why][:MOST_REASONS]
    if chosen is None:
        yield note(Code.NO_EXPECTED) if kind is DecisionKind.TOO_FEW else None
        return
    if kind is DecisionKind.TOO_FEW:
        yield _why_too_few(ranking, chosen.row)
    if kind is DecisionKind.INCONCLUSIVE:
        yield _not_above_zero(chosen.row)
    yield _expected(chosen, ranking)
    yield from _comparisons(ranking, considered, chosen)


def _not_above_zero(row: JuryRow) -> Note:
    ends = {"low": row.honest_low, "high": row.honest_high}
    return note(Code.NOT_ABOVE_ZERO, jurors=row.jurors, icc=row.icc_honest, **ends)


def _expected(chosen: Candidate, ranking: Ranking) -> Note:
    """Return a note with the ICC to expect of a jury on new responses."""
    row = chosen.row
    figures = {"expected": chosen.expected, "icc": row.icc}
    figures |= {"low": row.honest_low, "high": row.honest_high}
    if chosen.compared > 1:
        return note(Code.EXPECTED_CHOSEN, jurors=row.jurors, **figures, compared=chosen.compared)
    code = Code.ONLY_JURY if len(ranking.rows) == 1 else Code.EXPECTED_WHOLE
    return note(code, jurors=row.jurors, **figures)


def _comparisons(
    ranking: Ranking, considered: list[Candidate], chosen: Candidate
) -> Iterator[Note | None]:
    """Yield why it is not the jury with the highest ICC, nor that of all jurors together."""
    highest, best = max(considered, key=lambda candidate: candidate.expected), ranking.winner
    all_jurors = next((candidate for candidate in considered if candidate.compared == 1), None)
    if highest is not chosen:
        yield _why_not_highest(highest, chosen)
    if best and chosen.compared == 1 and best.row.icc_honest < chosen.expected:
        figures = {"compared": best.n_compared, "expected": best.row.icc_honest}
        yield note(Code.CHOOSING_EXPECTED, **figures)
    elif best and best.row not in (chosen.row, highest.row):
        yield note(
            Code.HIGHEST_IS_LUCK,
            jurors=best.row.jurors,
            icc=best.row.icc,
            expected=best.row.icc_honest,
            compared=best.n_compared,
        )
    if all_jurors and all_jurors not in (chosen, highest):
        yield note(Code.ALL_TOGETHER, jurors=all_jurors.row.size, expected=all_jurors.expected)


def _why_not_highest(highest: Candidate, chosen: Candidate) -> Note:
    """Return why the jury with the highest expected ICC is not taken."""
    row = highest.row
    if _is_above_zero(chosen) and not _is_above_zero(highest):
        return _not_above_zero(row)
    cheaper = _is_cheaper(chosen.row, row)
    figures = {"expected": highest.expected, "alike": ALIKE, "cheaper": cheaper}
    return note(Code.AS_GOOD, jurors=row.jurors, **figures)


def _is_cheaper(row: JuryRow, other: JuryRow) -> bool:
    usd, others = row.usd_per_response, other.usd_per_response
    return usd is not None and others is not None and usd < others


def _cost(row: JuryRow, is_made_up: bool) -> Note:
    if row.usd_per_response is None:
        return note(Code.COSTS_UNKNOWN)
    return note(Code.COSTS, usd=row.usd_per_response, made_up=is_made_up)


def _basis(ranking: Ranking) -> Note:
    n = [row.n_responses for row in ranking.rows]
    return note(
        Code.JURIES_RANKED,
        juries=len(ranking.rows),
        jurors=len(ranking.pool),
        least=min(n),
        most=max(n),
        instances=ranking.n_instances,
    )


def _of_too_few(ranking: Ranking, row: JuryRow) -> Note:
    lacking = FEW_INSTANCES - row.n_instances
    unscored = ranking.n_responses - row.n_responses
    if lacking > 0 and unscored >= lacking:
        return note(Code.DO_RUN_JURY_ON, responses=unscored)
    if lacking > 0:
        return note(Code.DO_MORE_INSTANCES, instances=lacking)
    return note(Code.DO_SHARED_RESPONSES)


def _of_inconclusive(row: JuryRow) -> Note:
    """Say how many responses would show the jury to agree, its interval shrinking as 1/sqrt(n)."""
    times = ((row.icc_honest - row.honest_low) / row.icc_honest) ** 2 if row.icc_honest > 0 else NAN
    if not times <= MOST_TIMES:
        return note(Code.DO_OTHER_JURORS)
    return note(Code.DO_MORE_TO_CHOOSE, responses=ceil(times * row.n_responses))


def _next(kind: DecisionKind, ranking: Ranking, chosen: Candidate | None) -> Note:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(Code.DO_REAL_RATERS)
    if chosen is None or kind is DecisionKind.UNDEFINED:
        return note(Code.DO_SHARED_RESPONSES)
    if kind is DecisionKind.TOO_FEW:
        return _of_too_few(ranking, chosen.row)
    if kind is DecisionKind.INCONCLUSIVE:
        return _of_inconclusive(chosen.row)
    n = [row.n_responses for row in ranking.rows if row.rank]
    if min(n) < UNLIKE * max(n):
        return note(Code.DO_RANK_COMMON)
    if len(ranking.rows) == 1:
        return note(Code.DO_MORE_JURORS)
    code = Code.DO_CALIBRATE_JURY if chosen.compared == 1 else Code.DO_CONFIRM_JURY
    return note(code, jurors=chosen.row.jurors)
