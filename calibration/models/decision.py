"""Whether a model leads, by the corrected scores or else by the clinicians'."""

import math
from collections.abc import Iterator, Sequence

from calibration.decision import Decision, DecisionKind
from calibration.models.estimates import LEAST_RESAMPLES, Gap
from calibration.models.rows import CLINICIANS, CORRECTED, JURY, PAPER, ModelRow
from calibration.notes import Note, note, noted, simulated_in
from calibration.remarks import FEW_INSTANCES
from calibration.shared_notes import DO_REAL_RATERS, SIMULATED
from calibration.values import NAN

COMPARED_BY = {
    CLINICIANS: "rated by clinicians",
    JURY: "scored by the jury",
    CORRECTED: "scored by the jury, corrected with the clinicians' ratings of {rated} of them",
    PAPER: "scored by each benchmark's own metric, or else by the jury",
}
DO_RATE_TWO = (
    "do_rate_two_models",
    "have clinicians rate responses of at least two models to the same benchmark",
)


def decide(rows: Sequence[ModelRow], gaps: Sequence[Gap]) -> Decision:
    """Return whether a model leads, by the corrected scores or else by the clinicians'.

    The corrected scores decide where they have as many means as the clinicians' and the rated
    responses are not in doubt as a sample. By the jury alone no model is said to lead.

    Rows and gaps are of all ways of scoring that were asked for, each gap from both sides. The
    decision is "simulated" where any rater behind the scores is; "undefined" where fewer than two
    models are ranked; "told_apart" where the model with the highest macro-average can be told apart
    from every other ranked one (`Gap.is_ahead`) and has the highest win rate; "too_few" where the
    difference that decides rests on too few instances or resamples; else "inconclusive". The
    estimate is the difference to the next model, or to the first that cannot be told apart.
    """
    by = deciding_way(rows)
    ranked = sorted(_ranked(rows, by), key=lambda row: -row.macro_average)
    unranked = [row.model for row in rows if row.by == by and row.shared_rank_low is None]
    if len(ranked) < 2:
        whose = "clinicians" if by == CLINICIANS else "clinicians and the jury"
        text = f"fewer than two models have a mean by {whose} on the same benchmark"
        without = "; without one: {models}" if unranked else ""
        reason = note("fewer_than_two", text + without, by=by, models=unranked)
        return Decision(
            "models", DecisionKind.UNDEFINED, reasons=(reason,), next=note(*DO_RATE_TWO)
        )
    leader = ranked[0]
    to = {gap.second: gap for gap in gaps if (gap.by, gap.first) == (by, leader.model)}
    in_order = [to[row.model] for row in ranked[1:] if row.model in to]
    open_gaps = [gap for gap in in_order if gap.second in leader.not_told_apart]
    gap = next(iter(open_gaps or in_order), None)
    kind = _kind(ranked, gap)
    left_out = note(
        "not_ranked", "not ranked, without comparable scores: {models}", models=unranked
    )
    compared = note(
        "models_compared",
        "{models:model} on {benchmarks:benchmark}, {responses:response} " + COMPARED_BY[by],
        by=by,
        models=len(ranked),
        benchmarks=max(row.n_benchmarks for row in ranked),
        responses=sum(row.n_responses for row in ranked),
        rated=sum(row.n_rated for row in ranked),
    )
    difference, low, high = (gap.difference, gap.low, gap.high) if gap else (NAN, NAN, NAN)
    return Decision(
        "models",
        kind,
        estimate=difference,
        low=low,
        high=high,
        reasons=noted(*_reasons(kind, ranked, gap), _doubt(rows), left_out if unranked else None),
        basis=(compared,),
        next=_next(kind, ranked, gap),
        names=(leader.model,),
    )


def deciding_way(rows: Sequence[ModelRow]) -> str:
    """Return the way of scoring that `decide` uses."""
    clinical, corrected = _ranked(rows, CLINICIANS), _ranked(rows, CORRECTED)
    clinical_means, corrected_means = (
        sum(row.n_benchmarks for row in own) for own in (clinical, corrected)
    )
    if len(corrected) > 1 and corrected_means >= clinical_means and not _doubt(corrected):
        return CORRECTED
    ways = {row.by for row in rows}
    if ways <= {JURY, PAPER}:
        return JURY if JURY in ways else PAPER
    by_clinicians = CLINICIANS in ways and (len(clinical) > 1 or len(corrected) < 2)
    return CLINICIANS if by_clinicians else CORRECTED


def _ranked(rows: Sequence[ModelRow], by: str) -> list[ModelRow]:
    return [row for row in rows if row.by == by and row.shared_rank_low is not None]


def _doubt(rows: Sequence[ModelRow]) -> Note | None:
    """Return the note that the rated responses may not be a random sample, or None."""
    return next(filter(None, (row.told("not_random") for row in rows)), None)


def _kind(ranked: Sequence[ModelRow], gap: Gap | None) -> DecisionKind:
    if simulated_in(ranked):
        return DecisionKind.SIMULATED
    if gap is None or ranked[0].by in (JURY, PAPER):
        return DecisionKind.INCONCLUSIVE
    if not gap.is_trusted:
        return DecisionKind.TOO_FEW
    leads = ranked[0].shared_rank_high == 1 and gap.is_ahead and not _doubt(ranked)
    return DecisionKind.TOLD_APART if leads else DecisionKind.INCONCLUSIVE


def _reasons(
    kind: DecisionKind, ranked: Sequence[ModelRow], gap: Gap | None
) -> Iterator[Note | None]:
    leader = ranked[0]
    if raters := simulated_in(ranked):
        yield note(*SIMULATED, raters=raters)
    if leader.by in (JURY, PAPER):
        yield note(
            "by_jury_alone",
            "these are the jury's scores alone, and a jury may favour a model: what clinicians "
            "would say is not known",
        )
    if gap is not None:
        yield from _of_gap(kind, leader, gap)
    if kind is DecisionKind.TOLD_APART:
        yield leader.told("other_instances")
    if kind is not DecisionKind.INCONCLUSIVE:
        return
    if gap is not None and gap.is_ahead and gap.second in leader.not_told_apart:
        yield note(
            "win_rate_elsewhere",
            "{model} has the lower macro-average but not the lower win rate: the two figures "
            "disagree",
            model=gap.second,
        )
    if elsewhere := _on_other_benchmarks(ranked):
        yield note(
            "other_benchmarks",
            "scored on other benchmarks, and so not comparable: {models}",
            models=elsewhere,
        )


def _of_gap(kind: DecisionKind, leader: ModelRow, gap: Gap) -> Iterator[Note]:
    """Yield the difference that decides, and why it does not where it does not."""
    is_known = math.isfinite(gap.low)
    between = "(95 % interval {low:z.3f} to {high:z.3f})" if is_known else "(no interval)"
    figures = {
        "difference": gap.difference,
        "low": gap.low if is_known else None,
        "high": gap.high if is_known else None,
    }
    if kind is DecisionKind.TOLD_APART:
        yield note(
            "leads_by",
            "its macro-average, {of:.3f}, is {difference:.3f} above that of the next model, {next} "
            + between,
            of=leader.macro_average,
            next=gap.second,
            **figures,
        )
        return
    yield note(
        "models_differ",
        "the macro-averages of {first} and {second} differ by {difference:.3f} " + between,
        first=gap.first,
        second=gap.second,
        **figures,
    )
    if kind is DecisionKind.TOO_FEW and gap.instances < FEW_INSTANCES:
        yield note(
            "few_on_benchmark",
            "a mean rests on {instances:instance} of a benchmark, and with fewer than {least} the "
            "true uncertainty is larger than its interval",
            instances=gap.instances,
            least=FEW_INSTANCES,
        )
    elif kind is DecisionKind.TOO_FEW:
        yield note(
            "few_drawn",
            "{known} of {resamples:resample} have a difference: too few for an interval",
            known=gap.resamples,
            resamples=gap.resamples + gap.lost,
        )
    elif kind is DecisionKind.INCONCLUSIVE and gap.low <= 0 <= gap.high:
        yield note("gap_spans_zero", "the interval includes 0")


def _on_other_benchmarks(ranked: Sequence[ModelRow]) -> list[str]:
    return [row.model for row in ranked[1:] if row.without != ranked[0].without]


def _next(kind: DecisionKind, ranked: Sequence[ModelRow], gap: Gap | None) -> Note | None:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if ranked[0].by in (JURY, PAPER):
        return note(
            "do_compare_with_clinicians",
            "compare by the clinicians' ratings, or by the jury corrected with them",
        )
    if kind is DecisionKind.TOLD_APART:
        return None
    if gap is None or (gap.is_ahead and _on_other_benchmarks(ranked)):
        return note("do_score_same_benchmarks", "have all models scored on the same benchmarks")
    if kind is DecisionKind.TOO_FEW and gap.instances < FEW_INSTANCES:
        return note(
            "do_rate_each_benchmark",
            "have clinicians rate responses to at least {least} instances of each benchmark; one "
            "has {instances}",
            least=FEW_INSTANCES,
            instances=gap.instances,
        )
    if kind is DecisionKind.TOO_FEW and gap.resamples + gap.lost < LEAST_RESAMPLES:
        return note("do_compare_again", "compare again with 2,000 resamples")
    if _doubt(ranked):
        return note(
            "do_rate_a_sample", "have clinicians rate a random sample of each model's responses"
        )
    if gap.is_ahead:
        return note(
            "do_see_benchmarks",
            "look at the benchmarks one by one: each model is better on some of them",
        )
    return note("do_rate_more_of_each", "have clinicians rate more responses of each model")
