"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibration.decision import Decision, DecisionKind
from calibration.models.estimates import model_means, resampled_figures
from calibration.models.gaps import LEAST_RESAMPLES, Gap, detectable_row, gaps
from calibration.models.model_rows import category_rows, model_rows
from calibration.models.model_scores import (
    ModelScores,
    check_measured,
    check_names,
    model_scores,
)
from calibration.models.rows import (
    ALL_WAYS,
    CLINICIANS,
    CORRECTED,
    JURY,
    PAPER,
    WAYS,
    BenchmarkRow,
    CategoryRow,
    DetectableRow,
    ModelRow,
)
from calibration.notes import Figures, Note, counted, filled, note, noted, simulated_in
from calibration.remarks import FEW_INSTANCES, MOST_TIMES
from calibration.scores import Array, RubricShape, Scores
from calibration.shared_notes import DO_REAL_RATERS, SIMULATED
from calibration.values import AnalysisOptions
from data.errors import BadInput

COMPARED_BY = {
    "clinicians": "rated by clinicians",
    "jury": "scored by the jury",
    "corrected": ("scored by the jury, corrected with the clinicians' ratings of {rated} of them"),
    "paper": "scored by each benchmark's own metric, or else by the jury",
}
DO_SCORE_SAME_BENCHMARKS = (
    "do_score_same_benchmarks",
    "have all models scored on the same benchmarks",
)


def decide(rows: Sequence[ModelRow], gaps: Sequence[Gap]) -> Decision:
    """Return whether a model leads, by the corrected scores or else by the clinicians'.

    The corrected scores decide where they have as many means as the clinicians' and the rated
    responses are not in doubt as a sample. By the jury alone no model is said to lead.

    Parameters
    ----------
    rows : of all models, by all ways of scoring that were asked for
    gaps : the differences between models, by the same ways

    Returns
    -------
    Decision
        Of subject "models". "simulated" where any rater behind the scores is; "undefined" where
        fewer than two models are ranked; "told_apart" where the model with the highest
        macro-average can be told apart from every other ranked one (`Gap.is_told`) and has the
        highest win rate; "too_few" where the difference that decides rests on too few instances
        or resamples; else "inconclusive". The estimate is the difference to the next model, or
        to the first one that cannot be told apart.
    """
    by = deciding_way(rows)
    ranked = sorted(_ranked(rows, by), key=lambda row: -row.macro_average)
    unranked = [row.model for row in rows if row.by == by and row.rank is None]
    if len(ranked) < 2:
        return _undefined(by, unranked)
    leader = ranked[0]
    gap = _deciding_gap(ranked, [difference for difference in gaps if difference.by == by])
    kind = _kind(ranked, gap)
    interval: dict[str, Any] = {} if gap is None else dict(_figures(gap))
    return Decision(
        "models",
        kind,
        **interval,
        reasons=noted(*_reasons(kind, ranked, gap), _doubt(rows), *_left_out(unranked)),
        basis=(_basis(ranked),),
        next=_next(kind, ranked, gap),
        names=(leader.model,),
    )


def deciding_way(rows: Sequence[ModelRow]) -> str:
    """Return the way of scoring that `decide` uses."""
    clinical, corrected = _ranked(rows, CLINICIANS), _ranked(rows, CORRECTED)
    as_many = _means(corrected) >= _means(clinical)
    if len(corrected) > 1 and as_many and not _doubt(corrected):
        return CORRECTED
    ways = {row.by for row in rows}
    if ways <= {JURY, PAPER}:
        return JURY if JURY in ways else PAPER
    by_clinicians = CLINICIANS in ways and (len(clinical) > 1 or len(corrected) < 2)
    return CLINICIANS if by_clinicians else CORRECTED


def _ranked(rows: Sequence[ModelRow], by: str) -> list[ModelRow]:
    return [row for row in rows if row.by == by and row.rank is not None]


def _means(rows: Sequence[ModelRow]) -> int:
    return sum(row.n_benchmarks for row in rows)


def _doubt(rows: Sequence[ModelRow]) -> Note | None:
    """Return the note that the rated responses may not be a random sample, or None."""
    return next(filter(None, (row.told("not_random") for row in rows)), None)


def _left_out(models: Sequence[str]) -> tuple[Note, ...]:
    return (
        (note("not_ranked", "not ranked, without comparable scores: {models}", models=models),)
        if models
        else ()
    )


def _undefined(by: str, unranked: Sequence[str]) -> Decision:
    return Decision(
        "models",
        DecisionKind.UNDEFINED,
        reasons=(note("fewer_than_two", _fewer_than_two, by=by, models=unranked),),
        next=note(
            "do_rate_two_models",
            "have clinicians rate responses of at least two models to the same benchmark",
        ),
    )


def _deciding_gap(ranked: Sequence[ModelRow], gaps: Sequence[Gap]) -> Gap | None:
    """Return the leader's difference to the first model not told apart, else to the next."""
    leader = ranked[0].model
    gap_to = {
        gap.of(leader).second: gap.of(leader) for gap in gaps if leader in (gap.first, gap.second)
    }
    gaps_in_order = [gap_to[row.model] for row in ranked[1:] if row.model in gap_to]
    not_told_apart = [gap for gap in gaps_in_order if gap.second in ranked[0].not_told_apart]
    return next(iter(not_told_apart or gaps_in_order), None)


def _figures(gap: Gap) -> dict[str, float]:
    return {"estimate": gap.difference, "low": gap.low, "high": gap.high}


def _kind(ranked: Sequence[ModelRow], gap: Gap | None) -> DecisionKind:
    if simulated_in(ranked):
        return DecisionKind.SIMULATED
    if gap is None or ranked[0].by in (JURY, PAPER):
        return DecisionKind.INCONCLUSIVE
    if not gap.is_trusted:
        return DecisionKind.TOO_FEW
    leads = ranked[0].shared_rank_high == 1 and gap.is_told
    return DecisionKind.TOLD_APART if leads and not _doubt(ranked) else DecisionKind.INCONCLUSIVE


def _reasons(
    kind: DecisionKind, ranked: Sequence[ModelRow], gap: Gap | None
) -> Iterator[Note | None]:
    leader = ranked[0]
    if raters := simulated_in(ranked):
        yield note(*SIMULATED, raters=raters)
    if leader.by in (JURY, PAPER):
        yield note(
            "by_jury_alone",
            (
                "these are the jury's scores alone, and a jury may favour a model: what clinicians "
                "would say is not known"
            ),
        )
    if gap is not None:
        yield from _of_gap(kind, leader, gap)
    if kind is DecisionKind.TOLD_APART:
        yield leader.told("other_instances")
    if kind is DecisionKind.INCONCLUSIVE:
        yield from _of_ranks(ranked, gap)


def _of_gap(kind: DecisionKind, leader: ModelRow, gap: Gap) -> Iterator[Note | None]:
    """Yield the difference, and what size of one such a study is likely to show."""
    has_interval = math.isfinite(gap.low)
    figures = {
        "difference": gap.difference,
        "low": gap.low if has_interval else None,
        "high": gap.high if has_interval else None,
    }
    if kind is DecisionKind.TOLD_APART:
        yield note("leads_by", _leads_by, of=leader.macro_average, next=gap.second, **figures)
        return
    yield note("models_differ", _models_differ, first=gap.first, second=gap.second, **figures)
    if kind is DecisionKind.TOO_FEW:
        yield _too_few(gap)
    elif kind is DecisionKind.INCONCLUSIVE and not gap.excludes_zero:
        yield note("gap_spans_zero", "the interval includes 0")
        if math.isfinite(gap.detectable):
            yield note(
                "to_be_detected",
                (
                    "of studies with as many responses, 80 % would show a true difference of "
                    "{detectable:.3f}"
                ),
                detectable=gap.detectable,
            )


def _too_few(gap: Gap) -> Note:
    drawn = gap.resamples + gap.lost
    if gap.instances < FEW_INSTANCES:
        return note(
            "few_on_benchmark",
            (
                "a mean rests on {instances:instance} of a benchmark, and with fewer than {least} the "
                "true uncertainty is larger than its interval"
            ),
            instances=gap.instances,
            least=FEW_INSTANCES,
        )
    if drawn < LEAST_RESAMPLES:
        return note(
            "few_drawn",
            "{resamples:resample} do not make an interval; {least} are needed",
            resamples=drawn,
            least=LEAST_RESAMPLES,
        )
    return note(
        "lost_drawn",
        "{lost} of {resamples} resamples have no difference: the interval is unreliable",
        lost=gap.lost,
        resamples=drawn,
    )


def _of_ranks(ranked: Sequence[ModelRow], gap: Gap | None) -> Iterator[Note | None]:
    """Yield the other reasons why the model with the highest macro-average does not lead."""
    leader = ranked[0]
    if gap is not None and gap.is_told and gap.second in leader.not_told_apart:
        yield note(
            "win_rate_elsewhere",
            (
                "{model} has the lower macro-average but not the lower win rate: the two figures "
                "disagree"
            ),
            model=gap.second,
        )
    if elsewhere := _on_other_benchmarks(ranked):
        yield note(
            "other_benchmarks",
            "scored on other benchmarks, and so not comparable: {models}",
            models=elsewhere,
        )


def _on_other_benchmarks(ranked: Sequence[ModelRow]) -> list[str]:
    return [row.model for row in ranked[1:] if row.without != ranked[0].without]


def _basis(ranked: Sequence[ModelRow]) -> Note:
    return note(
        "models_compared",
        _compared,
        by=ranked[0].by,
        models=len(ranked),
        benchmarks=max(row.n_benchmarks for row in ranked),
        responses=sum(row.n_responses for row in ranked),
        rated=sum(row.n_rated for row in ranked),
    )


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
    if gap is None or (gap.is_told and _on_other_benchmarks(ranked)):
        return note(*DO_SCORE_SAME_BENCHMARKS)
    if kind is DecisionKind.TOO_FEW:
        return _more_data(gap)
    if _doubt(ranked):
        return note(
            "do_rate_a_sample", "have clinicians rate a random sample of each model's responses"
        )
    return (
        note(
            "do_see_benchmarks",
            "look at the benchmarks one by one: each model is better on some of them",
        )
        if gap.is_told
        else _more_responses(ranked, gap)
    )


def _more_data(gap: Gap) -> Note:
    if gap.instances < FEW_INSTANCES:
        return note(
            "do_rate_each_benchmark",
            (
                "have clinicians rate responses to at least {least} instances of each benchmark; one "
                "has {instances}"
            ),
            least=FEW_INSTANCES,
            instances=gap.instances,
        )
    if gap.resamples + gap.lost < LEAST_RESAMPLES:
        return note("do_compare_again", "compare again with 2,000 resamples")
    return note(*DO_SCORE_SAME_BENCHMARKS)


def _more_responses(ranked: Sequence[ModelRow], gap: Gap) -> Note:
    """Return how many responses would show the difference in 80 % of studies: as 1/sqrt(n)."""
    rated = min(row.n_rated for row in ranked if row.model in (gap.first, gap.second))
    if not gap.difference or abs(gap.detectable / gap.difference) > math.sqrt(MOST_TIMES):
        return note(
            "do_take_as_equal",
            (
                "treat the two as equally good: showing a difference like this would take more than "
                "{times} times as many responses"
            ),
            times=MOST_TIMES,
        )
    times = max(1.0, (gap.detectable / gap.difference) ** 2)
    return note("do_rate_more_of_each", _rate_more, responses=math.ceil(times * rated), rated=rated)


@dataclass(frozen=True)
class ModelComparison:
    """Models compared, by each way of scoring.

    Attributes
    ----------
    rows : models by win rate, the best first, for each way of scoring
    means : of every model on every benchmark, for each way of scoring
    categories, detectable : rows of the categories, and of the minimum detectable effects
    gaps : differences between two models
    decision : whether a model leads
    n_both : responses that both clinicians and the jury scored
    benchmarks : those compared; benchmarks that lack the criterion are left out
    """

    rows: tuple[ModelRow, ...]
    categories: tuple[CategoryRow, ...]
    detectable: tuple[DetectableRow, ...]
    gaps: tuple[Gap, ...]
    decision: Decision
    n_both: int
    benchmarks: tuple[str, ...]
    means: tuple[BenchmarkRow, ...] = ()


def compare_models(
    scores: Scores,
    authors: Mapping[str, str],
    categories: Mapping[str, str],
    options: AnalysisOptions,
    by: Sequence[str] = WAYS,
    *,
    measured: Mapping[str, str] | None = None,
    tick: Callable[[float], None] = lambda share: None,
) -> ModelComparison:
    """Compare the models of a study by their responses' scores.

    Intervals resample the instances of each benchmark with all their responses; the
    benchmarks themselves are fixed. All ways of scoring get the same resamples.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model
    categories : benchmark -> category; absent or "" for none
    options : of which jurors (None for clinicians alone), criterion, reps and seed are used
    by : some of "clinicians", "jury", "corrected" and "paper"
    measured : benchmark -> the metric that scores it; of "paper"
    tick : called with the share of the work done, in (0, 1]

    Raises
    ------
    BadInput
        If an option is out of range or a jury is needed and there is none; also as
        `model_scores.model_scores`.
    """
    check_comparison(scores, options, by, measured)
    table = model_scores(scores, authors, options.jurors or (), options.criterion, measured)
    both = table.frame[["clinicians", "jury"]].notna().all(axis=1)
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    all_gaps: list[Gap] = []
    means: list[BenchmarkRow] = []
    for number, way in enumerate(by):
        advance = _progress_of(tick, number * options.reps, len(by) * options.reps)
        resampling = (options.reps, options.seed)
        figures = resampled_figures(table, model_means(table, way), categories, resampling, advance)
        gaps_of_way = [*gaps(figures, table.layout.models)]
        rows += model_rows(table, figures, gaps_of_way)
        of_categories += category_rows(table, figures)
        all_gaps += gaps_of_way
        means += _benchmark_rows(table, way, figures.means)
    rows = [*_with_bias(rows)]
    return ModelComparison(
        tuple(rows),
        tuple(of_categories),
        tuple(
            row
            for way in by
            for row in _detectable_rows(table, way, _shapes(scores, way, measured))
            if row.n_instances or row.benchmark not in (measured or {})
        ),
        tuple(all_gaps),
        decide(rows, all_gaps),
        int(both.sum()),
        table.layout.benchmarks,
        tuple(means),
    )


def _benchmark_rows(table: ModelScores, by: str, means: Array) -> Iterator[BenchmarkRow]:
    """Yield the means of shape (models, benchmarks) as rows."""
    for model, name in enumerate(table.layout.models):
        for at, benchmark in enumerate(table.layout.benchmarks):
            yield BenchmarkRow(name, benchmark, by, float(means[model, at]))


def _shapes(
    scores: Scores, by: str, measured: Mapping[str, str] | None
) -> Mapping[str, RubricShape]:
    """Return the scale of each benchmark's scores; a metric's is from 0 to 1."""
    if by != PAPER:
        return scores.rubrics
    return {
        name: RubricShape(shape.criteria, 0, 1) if name in (measured or {}) else shape
        for name, shape in scores.rubrics.items()
    }


def check_comparison(
    scores: Scores,
    options: AnalysisOptions,
    by: Sequence[str] = WAYS,
    measured: Mapping[str, str] | None = None,
) -> None:
    """Raise the BadInput or Unknown that `compare_models` would, without reading any author."""
    check_measured(scores, measured or {})
    check_names(scores, options.jurors or (), options.criterion)
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if unknown := [way for way in by if way not in ALL_WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(ALL_WAYS)}")
    needs_jury = {JURY, CORRECTED} if measured else {JURY, CORRECTED, PAPER}
    if not options.jurors and {*by} & needs_jury:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def jury_bias(jury: ModelRow, corrected: ModelRow) -> Note | None:
    """Return a note where the intervals of both macro-averages do not overlap."""
    if not (jury.low > corrected.high or jury.high < corrected.low):
        return None
    return note(
        "beyond_corrected",
        _beyond_corrected,
        is_above=jury.low > corrected.high,
        corrected=corrected.macro_average,
        low=corrected.low,
        high=corrected.high,
    )


def _with_bias(rows: Sequence[ModelRow]) -> Iterator[ModelRow]:
    """Yield the rows, with a note on the jury's where the corrected interval does not overlap."""
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    for row in rows:
        corrected_row = corrected.get(row.model) if row.by == JURY else None
        bias = jury_bias(row, corrected_row) if corrected_row else None
        yield replace(row, notes=(*row.notes, bias)) if bias else row


def _progress_of(tick: Callable[[float], None], done: int, work: int) -> Callable[[int], None]:
    """Return a function that takes resamples done and calls `tick` with the share of all work."""

    def advance(resamples: int) -> None:
        nonlocal done
        done += resamples
        tick(done / work)

    return advance


def _detectable_rows(
    table: ModelScores, by: str, rubrics: Mapping[str, RubricShape]
) -> Iterator[DetectableRow]:
    """Yield the minimum detectable effect of each benchmark; none for corrected means."""
    for name in table.layout.benchmarks if by != CORRECTED else ():
        shape = rubrics[name]
        points = shape.low + table.by_instance(name, by) * (shape.high - shape.low)
        yield detectable_row(name, by, points, shape)


def _beyond_corrected(figures: Figures) -> str:
    way = "higher" if figures["is_above"] else "lower"
    text = (
        f"the jury alone scores it {way} than clinicians would, beyond both intervals (corrected "
        "{corrected:z.3f}, {low:z.3f} to {high:z.3f}): do not rank it by the jury alone"
    )
    return filled(text, figures)


def _fewer_than_two(figures: Figures) -> str:
    whose = "clinicians" if figures["by"] == "clinicians" else "clinicians and the jury"
    text = f"fewer than two models have a mean by {whose} on the same benchmark"
    return f"{text}; without one: {', '.join(figures['models'])}" if figures["models"] else text


def _between(figures: Figures) -> str:
    if figures["low"] is None:
        return "(no interval)"
    return filled("(95 % interval {low:z.3f} to {high:z.3f})", figures)


def _leads_by(figures: Figures) -> str:
    text = "its macro-average, {of:.3f}, is {difference:.3f} above that of the next model, {next} "
    return filled(text, figures) + _between(figures)


def _models_differ(figures: Figures) -> str:
    text = "the macro-averages of {first} and {second} differ by {difference:.3f} "
    return filled(text, figures) + _between(figures)


def _compared(figures: Figures) -> str:
    on = "{models:model} on {benchmarks:benchmark}, {responses:response} "
    return filled(on + COMPARED_BY[figures["by"]], figures)


def _rate_more(figures: Figures) -> str:
    text = (
        "have clinicians rate more responses: about {responses} of each model, where "
        f"{_have(figures['rated'])} rated now, would show a true difference of this size in 80 % of studies"
    )
    return filled(text, figures)


def _have(rated: int) -> str:
    return f"{counted(rated, 'response')} {'is' if rated == 1 else 'are'}"
