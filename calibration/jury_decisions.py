"""Which jury to take: the best of a ranking for its cost, or the better one of two."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil, isfinite

from calibration.decision import Decision, DecisionKind
from calibration.differences import LEVEL, DifferenceRow
from calibration.headlines import VERDICTS
from calibration.juries import JuryRow, Ranking
from calibration.notes import Figures, Note, listed, note, noted
from calibration.remarks import FEW_INSTANCES, MOST_LOST, MOST_TIMES
from calibration.shared_notes import (
    DO_MORE_INSTANCES,
    DO_MORE_RESPONSES,
    DO_REAL_RATERS,
    DO_RUN_JURY_ON,
    FEW_TO_TRUST,
    MADE_UP,
    NO_INTERVAL,
    juries_words,
)
from calibration.tables.numbers import TERMINAL, chance, icc_interval, money
from calibration.values import NAN

DO_SHARED_RESPONSES = (
    "do_shared_responses",
    "have clinicians and jurors rate more of the same responses",
)

ALIKE = 0.01  # a smaller difference of two ICCs makes no practical difference
DO_CHEAPER_JURY = ("do_cheaper_jury", "use the one that costs less")


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
    kind = _kind_of_ranking(ranking, chosen)
    reasons = [*_reasons_of_ranking(kind, ranking, considered, chosen)]
    if chosen and (usd := chosen.usd_per_response) is not None:
        words = f"it costs {money(usd)} a response{' at made-up prices' if is_made_up else ''}"
        reasons.append(note("costs", words, usd=usd, made_up=is_made_up))
    elif chosen:
        words = "what it costs is not known: scores came from a file, or a call has no price"
        reasons.append(note("costs_unknown", words))
    first = ranking.rows[0]
    number = len(ranking.rows)
    basis = note(
        "juries_ranked",
        f"{{juries}} possible {juries_words(number)} of {{jurors:juror}}, {{responses}} responses to "
        "{instances:instance}",
        juries=number,
        jurors=len(ranking.pool),
        responses=first.n_responses,
        instances=first.n_instances,
    )
    return Decision(
        "juries",
        kind,
        estimate=chosen.icc_honest if chosen else NAN,
        low=chosen.honest_low if chosen else NAN,
        high=chosen.honest_high if chosen else NAN,
        reasons=noted(*reasons),
        basis=(basis,),
        next=_next_of_ranking(kind, ranking, chosen),
        names=(chosen.name,) if chosen else (),
    )


def recommended_jurors(ranking: Ranking) -> tuple[str, ...]:
    """Return the jurors of the jury that `recommendation` names; () where there is none."""
    chosen = simplest(candidates(ranking))
    return chosen.jurors if chosen else ()


def with_verdict(recommended: Decision, verdict: Decision) -> Decision:
    """Return a recommendation, limited by the study's verdict (`verdict.decide`) on that jury.

    "recommended" only where the verdict is "non_inferior"; else the verdict's own kind where that
    is "no_protocol" or "inferior"; else "inconclusive".
    """
    if (
        DecisionKind.RECOMMENDED is not recommended.kind
        or verdict.kind is DecisionKind.NON_INFERIOR
    ):
        return recommended
    claimed = verdict.kind in (DecisionKind.NO_PROTOCOL, DecisionKind.INFERIOR)
    words = "the study's verdict on {jury}: " + VERDICTS[verdict.kind.value]
    why = note("verdict_on", words, jury=recommended.names[0], verdict=verdict.kind.value)
    return replace(
        recommended,
        kind=verdict.kind if claimed else DecisionKind.INCONCLUSIVE,
        reasons=(why, *recommended.reasons),
        next=verdict.next,
    )


def candidates(ranking: Ranking) -> list[JuryRow]:
    """Return the jury with the highest ICC of each size, where it has an expected ICC."""
    return [row for row in ranking.by_size if isfinite(row.icc_honest)]


def simplest(considered: Sequence[JuryRow]) -> JuryRow | None:
    """Return the cheapest of the candidates that are as good as the best; else the smallest."""
    shown = [row for row in considered if _is_above_zero(row)] or considered
    if not shown:
        return None
    highest = max(row.icc_honest for row in shown)
    alike = [row for row in shown if row.icc_honest > highest - ALIKE]
    known = all(row.usd_per_response is not None for row in alike)
    return min(alike, key=lambda row: ((row.usd_per_response or 0) * known, row.size))


def _is_above_zero(row: JuryRow) -> bool:
    return row.icc_honest > 0 and row.honest_low > 0


def _compared(ranking: Ranking, row: JuryRow) -> int:
    """Return from how many juries a candidate was chosen; 1 only where it has all jurors."""
    of_size = ranking.of_size(row.size)
    return len(ranking.rows) if row.rank == 1 and of_size > 1 else of_size


def _kind_of_ranking(ranking: Ranking, chosen: JuryRow | None) -> DecisionKind:
    if ranking.simulated:
        return DecisionKind.SIMULATED
    if ranking.winner is None:
        return DecisionKind.UNDEFINED
    if chosen is None or _why_too_few_to_choose(chosen):
        return DecisionKind.TOO_FEW
    return DecisionKind.RECOMMENDED if _is_above_zero(chosen) else DecisionKind.INCONCLUSIVE


def _why_too_few_to_choose(row: JuryRow) -> Note | None:
    """Return why a jury's figures decide nothing, or None where they do."""
    if row.n_instances < FEW_INSTANCES:
        words = "{instances:instance}: choosing a jury takes at least {least}"
        return note("few_to_choose", words, instances=row.n_instances, least=FEW_INSTANCES)
    if not isfinite(row.honest_low):
        return note(*NO_INTERVAL)
    lost = row.told("undefined_resamples")
    if lost and lost["lost"] > MOST_LOST * lost["resamples"]:
        words = "{lost} of {resamples} resamples have no ICC: its interval is unreliable"
        return note("icc_lost", words, lost=lost["lost"], resamples=lost["resamples"])
    return None


def _reasons_of_ranking(
    kind: DecisionKind, ranking: Ranking, considered: Sequence[JuryRow], chosen: JuryRow | None
) -> Iterator[Note | None]:
    if kind is DecisionKind.SIMULATED:
        yield note(*MADE_UP, raters=ranking.simulated)
    if kind is DecisionKind.UNDEFINED:
        yield from ranking.rows[0].notes[:1]
    if chosen is None:
        if kind is DecisionKind.TOO_FEW:
            words = "the ICC on new responses cannot be estimated: that takes at least 2 instances "
            yield note("no_expected", words + "and resamples")
        return
    if kind is DecisionKind.TOO_FEW:
        yield _why_too_few_to_choose(chosen)
    if kind is DecisionKind.INCONCLUSIVE:
        yield _not_above_zero(chosen)
    yield _expected(chosen, ranking)
    yield from _beside_chosen(ranking, considered, chosen)


def _not_above_zero(row: JuryRow) -> Note:
    figures = {"icc": row.icc_honest, "low": row.honest_low, "high": row.honest_high}
    words = "not shown to agree with the clinicians: {jurors}, expected ICC {icc:z.3f}, "
    return note("not_above_zero", words + _between(figures), jurors=row.jurors, **figures)


def _expected(row: JuryRow, ranking: Ranking) -> Note:
    """Return a note with the ICC to expect of the chosen jury on new responses."""
    ends = {"low": row.honest_low, "high": row.honest_high}
    figures = {"jurors": row.jurors, "expected": row.icc_honest, "icc": row.icc} | ends
    between, compared = _between(ends), _compared(ranking, row)
    on_new = f"with the clinicians on new responses: {{expected:z.3f}}, {between}; observed here, "
    if compared > 1:
        words = f"expected ICC(C,2) of {{jurors}} {on_new}where it was chosen from {{compared}} juries, "
        return note("expected_chosen", words + "{icc:z.3f}", **figures, compared=compared)
    if len(ranking.rows) == 1:
        words = f"ICC(C,2) of {{jurors}} with the clinicians: {{icc:z.3f}}, {between}; there is no "
        return note("only_jury", words + "other jury to choose", **figures)
    words = f"expected ICC(C,2) of all {row.size} jurors together {on_new}with no choice of jury, "
    return note("expected_whole", words + "{icc:z.3f}", **figures)


def _beside_chosen(
    ranking: Ranking, considered: Sequence[JuryRow], chosen: JuryRow
) -> Iterator[Note | None]:
    """Yield why it is not the jury with the highest ICC, nor that of all jurors together."""
    best = ranking.rows[0]
    highest = max(considered, key=lambda row: row.icc_honest)
    if highest is not chosen:
        yield _why_not_highest(highest, chosen)
    if _compared(ranking, chosen) == 1 and best.icc_honest < chosen.icc_honest:
        words = (
            "choosing a jury brings no gain: {expected:z.3f} is expected of the best of {compared} "
        )
        words += "juries, whichever it is"
        compared = len(ranking.rows)
        yield note("choosing_expected", words, compared=compared, expected=best.icc_honest)


def _why_not_highest(highest: JuryRow, chosen: JuryRow) -> Note:
    """Return why the jury with the highest expected ICC is not taken."""
    if _is_above_zero(chosen) and not _is_above_zero(highest):
        return _not_above_zero(highest)
    usd, others = chosen.usd_per_response, highest.usd_per_response
    is_cheaper = usd is not None and others is not None and usd < others
    return note(
        "as_good",
        "the highest expected ICC is that of {jurors}, {expected:z.3f}, by less than {alike}: the "
        f"jury that {'costs less' if is_cheaper else 'has fewer jurors'} does as well",
        jurors=highest.jurors,
        expected=highest.icc_honest,
        alike=ALIKE,
        cheaper=is_cheaper,
    )


def _next_of_ranking(kind: DecisionKind, ranking: Ranking, chosen: JuryRow | None) -> Note:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if chosen is None or kind is DecisionKind.UNDEFINED:
        return note(*DO_SHARED_RESPONSES)
    if kind is DecisionKind.TOO_FEW:
        lacking = FEW_INSTANCES - chosen.n_instances
        unscored = ranking.n_responses - chosen.n_responses
        if lacking > 0 and unscored >= lacking:
            return note(*DO_RUN_JURY_ON, responses=unscored)
        if lacking > 0:
            return note(*DO_MORE_INSTANCES, instances=lacking)
        return note(*DO_SHARED_RESPONSES)
    if kind is DecisionKind.INCONCLUSIVE:
        return _to_be_shown(chosen)
    if len(ranking.rows) == 1:
        return note("do_more_jurors", "run more jurors, to have juries to choose from")
    if _compared(ranking, chosen) == 1:
        words = (
            "compare {jurors} with a clinician: a ranking does not say whether it agrees as well "
        )
        return note("do_calibrate_jury", words + "as one", jurors=chosen.jurors)
    words = "have clinicians rate new responses, and judge {jurors} by those: an expected ICC is "
    return note("do_confirm_jury", words + "an estimate, not an observation", jurors=chosen.jurors)


def _to_be_shown(row: JuryRow) -> Note:
    """Say how many responses would show the jury to agree, its interval shrinking as 1/sqrt(n)."""
    times = ((row.icc_honest - row.honest_low) / row.icc_honest) ** 2 if row.icc_honest > 0 else NAN
    if not times <= MOST_TIMES:
        words = "run other jurors: none of these is seen to agree with the clinicians"
        return note("do_other_jurors", words)
    return note(
        "do_more_to_choose",
        "have clinicians and jurors rate more: about {responses} responses in all would show "
        "that this jury agrees with clinicians, if its ICC stays what it is",
        responses=ceil(times * row.n_responses),
    )


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
    kind = _kind_of_two(row)
    on_both = row.told("only_both")
    words = "{responses:response} that both juries scored"
    return Decision(
        "comparison",
        kind,
        estimate=row.difference,
        low=row.low,
        high=row.high,
        p=row.p,
        reasons=noted(*_reasons_of_two(kind, row, first, second)),
        basis=(
            note(
                "juries_compared",
                words + ("; {first} has {of_first}, {second} has {of_second}" if on_both else ""),
                responses=row.n_responses,
                first=first,
                of_first=on_both["of_first"] if on_both else row.n_responses,
                second=second,
                of_second=on_both["of_second"] if on_both else row.n_responses,
            ),
        ),
        next=_next_of_two(kind, row, (first, second)),
        names=(listed(first), listed(second)),
    )


def _kind_of_two(row: DifferenceRow) -> DecisionKind:
    if row.simulated:
        return DecisionKind.SIMULATED
    if not isfinite(row.difference):
        return DecisionKind.UNDEFINED
    if _why_too_few_to_compare(row):
        return DecisionKind.TOO_FEW
    if row.p <= LEVEL and row.difference > 0 and row.low > 0:
        return DecisionKind.FIRST_BETTER
    if row.p <= LEVEL and row.difference < 0 and row.high < 0:
        return DecisionKind.SECOND_BETTER
    return DecisionKind.INCONCLUSIVE


def _why_too_few_to_compare(row: DifferenceRow) -> Note | None:
    """Return why interval and p decide nothing, or None where they do."""
    if few := row.told("too_few_for_p"):
        return note(*FEW_TO_TRUST, instances=few["instances"], least=FEW_INSTANCES)
    if not all(map(isfinite, (row.low, row.high, row.p))):
        return note(*NO_INTERVAL)
    return None


def _reasons_of_two(
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
    figures = {name: getattr(row, name) for name in ("difference", "low", "high", "p")}
    figures = {name: value if isfinite(value) else None for name, value in figures.items()}
    words = f"difference {{difference:z.3f}} ({_between(figures)}), "
    words += f"p {chance(figures['p'], TERMINAL)}"
    if row.n_tried > 1:
        words += ", not corrected for the {n_tried} different comparisons looked at on this study"
    yield note("difference", words, **figures, n_tried=row.n_tried)
    if kind is DecisionKind.TOO_FEW:
        yield _why_too_few_to_compare(row)
    elif kind is DecisionKind.INCONCLUSIVE:
        words = "the interval includes 0: a difference is neither shown nor excluded"
        yield note("none_shown", words)


def _next_of_two(
    kind: DecisionKind, row: DifferenceRow, juries: tuple[Sequence[str], Sequence[str]]
) -> Note:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if kind is DecisionKind.TOO_FEW and (few := row.told("too_few_for_p")):
        return note(*DO_MORE_INSTANCES, instances=FEW_INSTANCES - few["instances"])
    if kind in (DecisionKind.UNDEFINED, DecisionKind.TOO_FEW):
        return note(*DO_SHARED_RESPONSES)
    if kind is not DecisionKind.INCONCLUSIVE:
        words = "use {jurors}, unless the lower cost of the other outweighs the difference"
        return note("do_take_jury", words, jurors=juries[kind is DecisionKind.SECOND_BETTER])
    if row.difference == 0:
        return note(*DO_CHEAPER_JURY)
    toward_zero = row.difference - row.low if row.difference > 0 else row.high - row.difference
    narrower = toward_zero / abs(row.difference)  # the factor that makes the interval end at 0
    if narrower > MOST_TIMES**0.5:
        return note(*DO_CHEAPER_JURY)
    responses = ceil(max(narrower, 1) ** 2 * row.n_responses)  # its width shrinks as 1 / sqrt(n)
    return note(*DO_MORE_RESPONSES, responses=responses)


def _between(figures: Figures) -> str:
    """Return the interval of an ICC, or that there is none."""
    ends = icc_interval(figures["low"], figures["high"], 3, TERMINAL)
    return f"95 % {ends}" if ends else "no interval"
