"""Recommend a jury: the cheapest, or smallest, of those with the highest expected ICC."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, isfinite

from calibration.decision import Decision, DecisionKind
from calibration.headlines import VERDICTS
from calibration.juries.ranking import JuryRow, Ranking
from calibration.notes import Figures, Note, filled, note, noted
from calibration.remarks import FEW_INSTANCES, MOST_LOST, MOST_TIMES
from calibration.shared_notes import (
    DO_MORE_INSTANCES,
    DO_REAL_RATERS,
    DO_RUN_JURY_ON,
    DO_SHARED_RESPONSES,
    MADE_UP,
    NO_INTERVAL,
    between_words,
    juries_words,
)
from calibration.tables.numbers import money
from calibration.values import NAN


def _expected_whole(figures: Figures) -> str:
    number, between = len(figures["jurors"]), between_words(figures)
    text = (
        f"expected ICC(C,2) of all {number} jurors together with the clinicians on new responses: "
        f"{{expected:z.3f}}, {between}; observed here, with no choice of jury, {{icc:z.3f}}"
    )
    return filled(text, figures)


def _only_jury(figures: Figures) -> str:
    text = (
        f"ICC(C,2) of {{jurors}} with the clinicians: {{icc:z.3f}}, {between_words(figures)}; there is no "
        "other jury to choose"
    )
    return filled(text, figures)


DO_CALIBRATE_JURY = (
    "do_calibrate_jury",
    ("compare {jurors} with a clinician: a ranking does not say whether it agrees as well as one"),
)
DO_CONFIRM_JURY = (
    "do_confirm_jury",
    (
        "have clinicians rate new responses, and judge {jurors} by those: an expected ICC is "
        "an estimate, not an observation"
    ),
)
EXPECTED_WHOLE = ("expected_whole", _expected_whole)
ONLY_JURY = ("only_jury", _only_jury)

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
    why = note("verdict_on", _verdict_on, jury=recommended.names[0], verdict=verdict.kind.value)
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
        return note(
            "few_to_choose",
            "{instances:instance}: choosing a jury takes at least {least}",
            instances=row.n_instances,
            least=FEW_INSTANCES,
        )
    if not isfinite(row.honest_low):
        return note(*NO_INTERVAL)
    lost = row.told("undefined_resamples")
    if lost and lost["lost"] > MOST_LOST * lost["resamples"]:
        return note(
            "icc_lost",
            "{lost} of {resamples} resamples have no ICC: its interval is unreliable",
            lost=lost["lost"],
            resamples=lost["resamples"],
        )
    return None


def _reasons(
    kind: DecisionKind, ranking: Ranking, considered: list[Candidate], chosen: Candidate | None
) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(*MADE_UP, raters=ranking.simulated)
    if kind is DecisionKind.UNDEFINED:
        why = dict.fromkeys(remark for row in ranking.rows for remark in row.notes[:1])
        yield from [*why][:MOST_REASONS]
    if chosen is None:
        yield (
            note(
                "no_expected",
                (
                    "the ICC on new responses cannot be estimated: that takes at least 2 instances and "
                    "resamples"
                ),
            )
            if kind is DecisionKind.TOO_FEW
            else None
        )
        return
    if kind is DecisionKind.TOO_FEW:
        yield _why_too_few(ranking, chosen.row)
    if kind is DecisionKind.INCONCLUSIVE:
        yield _not_above_zero(chosen.row)
    yield _expected(chosen, ranking)
    yield from _comparisons(ranking, considered, chosen)


def _not_above_zero(row: JuryRow) -> Note:
    ends = {"low": row.honest_low, "high": row.honest_high}
    return note(
        "not_above_zero", _not_above_zero_words, jurors=row.jurors, icc=row.icc_honest, **ends
    )


def _expected(chosen: Candidate, ranking: Ranking) -> Note:
    """Return a note with the ICC to expect of a jury on new responses."""
    row = chosen.row
    figures = {"expected": chosen.expected, "icc": row.icc}
    figures |= {"low": row.honest_low, "high": row.honest_high}
    if chosen.compared > 1:
        return note(
            "expected_chosen",
            _expected_chosen,
            jurors=row.jurors,
            **figures,
            compared=chosen.compared,
        )
    code = ONLY_JURY if len(ranking.rows) == 1 else EXPECTED_WHOLE
    return note(*code, jurors=row.jurors, **figures)


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
        yield note(
            "choosing_expected",
            (
                "choosing a jury brings no gain: {expected:z.3f} is expected of the best of "
                "{compared} juries, whichever it is"
            ),
            **figures,
        )
    elif best and best.row not in (chosen.row, highest.row):
        yield note(
            "highest_is_luck",
            (
                "the highest observed ICC, {icc:z.3f}, is that of {jurors}; the ICC expected on new "
                "responses of the best of {compared} juries is {expected:z.3f}"
            ),
            jurors=best.row.jurors,
            icc=best.row.icc,
            expected=best.row.icc_honest,
            compared=best.n_compared,
        )
    if all_jurors and all_jurors not in (chosen, highest):
        yield note(
            "all_together",
            "expected of all {jurors} jurors together, without a choice: {expected:z.3f}",
            jurors=all_jurors.row.size,
            expected=all_jurors.expected,
        )


def _why_not_highest(highest: Candidate, chosen: Candidate) -> Note:
    """Return why the jury with the highest expected ICC is not taken."""
    row = highest.row
    if _is_above_zero(chosen) and not _is_above_zero(highest):
        return _not_above_zero(row)
    cheaper = _is_cheaper(chosen.row, row)
    figures = {"expected": highest.expected, "alike": ALIKE, "cheaper": cheaper}
    return note("as_good", _as_good, jurors=row.jurors, **figures)


def _is_cheaper(row: JuryRow, other: JuryRow) -> bool:
    usd, others = row.usd_per_response, other.usd_per_response
    return usd is not None and others is not None and usd < others


def _cost(row: JuryRow, is_made_up: bool) -> Note:
    if row.usd_per_response is None:
        return note(
            "costs_unknown",
            "what it costs is not known: scores came from a file, or a call has no price",
        )
    return note("costs", _costs, usd=row.usd_per_response, made_up=is_made_up)


def _basis(ranking: Ranking) -> Note:
    n = [row.n_responses for row in ranking.rows]
    return note(
        "juries_ranked",
        _juries_ranked,
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
        return note(*DO_RUN_JURY_ON, responses=unscored)
    if lacking > 0:
        return note(*DO_MORE_INSTANCES, instances=lacking)
    return note(*DO_SHARED_RESPONSES)


def _of_inconclusive(row: JuryRow) -> Note:
    """Say how many responses would show the jury to agree, its interval shrinking as 1/sqrt(n)."""
    times = ((row.icc_honest - row.honest_low) / row.icc_honest) ** 2 if row.icc_honest > 0 else NAN
    if not times <= MOST_TIMES:
        return note(
            "do_other_jurors",
            "run other jurors: none of these is seen to agree with the clinicians",
        )
    return note(
        "do_more_to_choose",
        (
            "have clinicians and jurors rate more: about {responses} responses in all would show "
            "that this jury agrees with clinicians, if its ICC stays what it is"
        ),
        responses=ceil(times * row.n_responses),
    )


def _next(kind: DecisionKind, ranking: Ranking, chosen: Candidate | None) -> Note:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if chosen is None or kind is DecisionKind.UNDEFINED:
        return note(*DO_SHARED_RESPONSES)
    if kind is DecisionKind.TOO_FEW:
        return _of_too_few(ranking, chosen.row)
    if kind is DecisionKind.INCONCLUSIVE:
        return _of_inconclusive(chosen.row)
    n = [row.n_responses for row in ranking.rows if row.rank]
    if min(n) < UNLIKE * max(n):
        return note(
            "do_rank_common",
            (
                "rank the juries on common responses: each was judged on its own, and some may have "
                "had easier ones"
            ),
        )
    if len(ranking.rows) == 1:
        return note("do_more_jurors", "run more jurors, to have juries to choose from")
    code = DO_CALIBRATE_JURY if chosen.compared == 1 else DO_CONFIRM_JURY
    return note(*code, jurors=chosen.row.jurors)


def _expected_chosen(figures: Figures) -> str:
    text = (
        "expected ICC(C,2) of {jurors} with the clinicians on new responses: {expected:z.3f}, "
        f"{between_words(figures)}; observed here, where it was chosen from {{compared}} juries, "
        "{icc:z.3f}"
    )
    return filled(text, figures)


def _as_good(figures: Figures) -> str:
    how = "costs less" if figures["cheaper"] else "has fewer jurors"
    text = (
        "the highest expected ICC is that of {jurors}, {expected:z.3f}, by less than {alike}: the "
        f"jury that {how} does as well"
    )
    return filled(text, figures)


def _not_above_zero_words(figures: Figures) -> str:
    return filled(
        f"not shown to agree with the clinicians: {{jurors}}, expected ICC {{icc:z.3f}}, "
        f"{between_words(figures)}",
        figures,
    )


def _costs(figures: Figures) -> str:
    price = " at made-up prices" if figures["made_up"] else ""
    return f"it costs {money(figures['usd'])} a response{price}"


def _juries_ranked(figures: Figures) -> str:
    least, most = figures["least"], figures["most"]
    n = f"{most}" if least == most else f"{least} to {most}"
    number = figures["juries"]
    text = f"{number} possible {juries_words(number)} of {{jurors:juror}}, {n} responses to {{instances:instance}}"
    return filled(text, figures)


def _verdict_on(figures: Figures) -> str:
    return filled("the study's verdict on {jury}: ", figures) + VERDICTS[figures["verdict"]]
