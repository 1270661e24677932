"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.decision import Decision, DecisionKind
from calibration.models import estimates
from calibration.models.estimates import Estimate, Gap, ModelScores, mean_of_defined
from calibration.models.rows import (
    ALL_WAYS,
    CLINICIANS,
    CORRECTED,
    JURY,
    PAPER,
    WAYS,
    CategoryRow,
    ModelRow,
)
from calibration.notes import Note, note, noted, simulated_in, undefined
from calibration.remarks import FEW_INSTANCES
from calibration.scores import Array, Flags, Scores
from calibration.shared_notes import DO_REAL_RATERS, NOTHING_SCORED, SIMULATED
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput, Unknown

UNRANKED = {"shared_rank_low": None, "shared_rank_high": None, "not_told_apart": ()}
FEW_RATED = (
    "few_rated_by_both",
    "fewer than {least} instances that clinicians and jury both scored",
)
LACKS_BENCHMARKS = (
    "lacks_benchmarks",
    "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with "
    "models, or ways of scoring, that have one there",
)
OTHER_INSTANCES = (
    "{common} of its {own:scored instance} have scores for all models: its means are over other "
    "instances than theirs, whereas the win rate by instance uses shared instances",
    "not all of its scored instances have scores for all models: its means are over other "
    "instances than theirs, whereas the win rate by instance uses shared instances",
)
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


@dataclass(frozen=True)
class ModelComparison:
    """Models compared, by each way of scoring.

    Attributes
    ----------
    rows : models by win rate, the best first, for each way of scoring
    categories : their means of the categories
    gaps : differences between two models, each from both sides
    decision : whether a model leads
    n_both : responses that both clinicians and the jury scored
    benchmarks : those compared; benchmarks that lack the criterion are left out
    """

    rows: tuple[ModelRow, ...]
    categories: tuple[CategoryRow, ...]
    gaps: tuple[Gap, ...]
    decision: Decision
    n_both: int
    benchmarks: tuple[str, ...]


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
        `estimates.model_scores`.
    """
    check_comparison(scores, options, by, measured)
    table = estimates.model_scores(
        scores, authors, options.jurors or (), options.criterion, measured
    )
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    all_gaps: list[Gap] = []
    done = 0

    def advance(resamples: int) -> None:
        nonlocal done
        done += resamples
        tick(done / (len(by) * options.reps))

    for way in by:
        found = estimates.estimate(table, way, categories, (options.reps, options.seed), advance)
        own_gaps = [*estimates.gaps(found, table.models)]
        rows += _model_rows(table, found, own_gaps)
        of_categories += _category_rows(table, found)
        all_gaps += own_gaps
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    rows = [_with_bias(row, corrected.get(row.model)) for row in rows]
    return ModelComparison(
        tuple(rows),
        tuple(of_categories),
        tuple(all_gaps),
        decide(rows, all_gaps),
        int(table.frame[[CLINICIANS, JURY]].notna().all(axis=1).sum()),
        table.benchmarks,
    )


def check_comparison(
    scores: Scores,
    options: AnalysisOptions,
    by: Sequence[str] = WAYS,
    measured: Mapping[str, str] | None = None,
) -> None:
    """Raise the BadInput or Unknown that `compare_models` would, without reading any author."""
    of_metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    for benchmark, metric in (measured or {}).items():
        if benchmark not in scores.rubrics:
            known = ", ".join(scores.benchmarks)
            raise Unknown(f"no benchmark {benchmark} in this study: it has {known}")
        on_it = of_metrics[of_metrics["benchmark"] == benchmark]
        own = on_it.loc[on_it["rater"] == metric, "score"]
        if not len(own):
            names = ", ".join(sorted(on_it["rater"].unique())) or "none"
            raise Unknown(f"{benchmark} has no scores by the metric {metric}: it has {names}")
        if own.min() < 0 or own.max() > 1:
            raise BadInput(f"{metric} on {benchmark} leaves the range from 0 to 1")
    jurors = scores.raters("juror")
    if lost := [name for name in options.jurors or () if name not in jurors]:
        known = f"it has {', '.join(jurors)}" if jurors else "it has none"
        raise Unknown(f"no ratings by a juror {', '.join(lost)} in this study: {known}")
    criteria = dict.fromkeys(name for rubric in scores.rubrics.values() for name in rubric.criteria)
    if options.criterion is not None and options.criterion not in criteria:
        known = ", ".join(criteria)
        raise Unknown(f"no rubric has the criterion {options.criterion}: they have {known}")
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if unknown := [way for way in by if way not in ALL_WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(ALL_WAYS)}")
    needs_jury = {JURY, CORRECTED} if measured else {JURY, CORRECTED, PAPER}
    if not options.jurors and {*by} & needs_jury:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def _model_rows(table: ModelScores, found: Estimate, gaps: Sequence[Gap]) -> list[ModelRow]:
    """Return a row for each model, by win rate and then by macro-average, the best first."""
    wins, macro = estimates.win_rates(found.means), mean_of_defined(found.means)
    sds = estimates.win_rate_sd(found.means), pd.DataFrame(found.means).std(axis=1)
    ranked = {name: rate for name, rate in zip(table.models, wins, strict=True) if rate >= 0}
    places = standings(ranked, gaps)
    rates, pairs, other_instances = _by_instance(table, found.by)
    rows = []
    for model, name in enumerate(table.models):
        win, mean = (found.interval(model, column) for column in (estimates.WIN, estimates.MACRO))
        has_mean = ~np.isnan(found.means[model])
        is_own = table.frame["model"] == model
        is_scored = found.counted & is_own
        row = ModelRow(
            model=name,
            by=found.by,
            win_rate=float(wins[model]),
            win_rate_sd=float(sds[0][model]),
            win_rate_low=win.low,
            win_rate_high=win.high,
            win_rate_by_instance=float(rates[model]),
            macro_average=float(macro[model]),
            macro_average_sd=float(sds[1][model]),
            low=mean.low,
            high=mean.high,
            **places.get(name, UNRANKED),
            n_benchmarks=int(has_mean.sum()),
            without=tuple(_named(table, ~has_mean)),
            n_responses=int(is_scored.sum()),
            n_missing=int((is_own & ~is_scored).sum()),
            n_rated=int((is_scored & table.frame[CLINICIANS].notna()).sum()),
            n_paired=int(pairs[model]),
        )
        notes = noted(
            remarks.coverage(*2 * (row.n_responses, row.n_responses + row.n_missing)),
            *_missing(table, found, model),
            other_instances[model],
            *_reliability(found, model, estimates.MACRO, np.ones(len(has_mean), dtype=np.bool_)),
            found.warning,
            _simulated(table, found.by),
        )
        rows.append(replace(row, notes=notes))
    return sorted(rows, key=lambda row: (-_known(row.win_rate), -_known(row.macro_average)))


def _known(value: float) -> float:
    """Return a value for sorting that puts NaN after all others."""
    return -np.inf if np.isnan(value) else value


def standings(wins: Mapping[str, float], gaps: Iterable[Gap]) -> dict[str, dict[str, Any]]:
    """Return the ranks that each model may have and whom it cannot be told apart from, as fields of its row.

    One model is ahead of another where their macro-averages can be told apart and its win rate
    is the higher one too. A model's ranks begin behind all models that are ahead of it, and end
    before all those that it is ahead of.
    """
    ahead = {
        (gap.first, gap.second)
        for gap in gaps
        if gap.is_ahead
        and wins.get(gap.first, NAN) - wins.get(gap.second, NAN) > estimates.ROUNDING
    }
    found = {}
    for model in wins:
        before = {other for other in wins if (other, model) in ahead}
        behind = {other for other in wins if (model, other) in ahead}
        found[model] = {
            "shared_rank_low": 1 + len(before),
            "shared_rank_high": len(wins) - len(behind),
            "not_told_apart": tuple(name for name in wins if name not in before | behind | {model}),
        }
    return found


def _by_instance(table: ModelScores, by: str) -> tuple[Array, Array, list[Note | None]]:
    """Return what models win on the instances that they have in common, by single responses.

    The mean over benchmarks of `estimates.paired_wins`, the pairs behind it, and a note on each model
    whose instances are not all those of the others. A corrected mean has no score of a response.
    """
    models = len(table.models)
    if by == CORRECTED:
        return np.full(models, NAN), np.zeros(models), [None] * models
    grids = [table.by_instance(name, by) for name in table.benchmarks]
    rates, pairs = zip(*map(estimates.paired_wins, grids), strict=True)
    scored = [~np.isnan(grid) for grid in grids]
    by_all = [own & own[own.any(axis=1)].all(axis=0) for own in scored]
    n_scored, n_common = (np.hstack(flags).sum(axis=1) for flags in (scored, by_all))
    every = int(np.hstack([own.any(axis=0) for own in scored]).sum())
    notes = [
        None
        if own == common == every
        else note("other_instances", *OTHER_INSTANCES, common=common, own=own)
        for own, common in zip(n_scored, n_common, strict=True)
    ]
    return mean_of_defined(np.stack(rates, axis=-1)), np.sum(pairs, axis=0), notes


def _category_rows(table: ModelScores, found: Estimate) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    for column, (category, is_member) in enumerate(
        found.categories.items(), start=estimates.CATEGORIES
    ):
        counted = table.frame["benchmark"].isin(_named(table, is_member)) & found.counted
        for model, name in enumerate(table.models):
            without = _named(table, is_member & np.isnan(found.means[model]))
            interval = found.interval(model, column)
            yield CategoryRow(
                model=name,
                category=category,
                by=found.by,
                mean=float(mean_of_defined(found.means[model, is_member])),
                low=interval.low,
                high=interval.high,
                n=int((counted & (table.frame["model"] == model)).sum()),
                without=tuple(without),
                notes=noted(
                    note("without_benchmarks", "without {benchmarks}", benchmarks=without)
                    if without
                    else None,
                    *_reliability(found, model, column, is_member),
                    _simulated(table, found.by),
                ),
            )


def _missing(table: ModelScores, found: Estimate, model: int) -> Iterator[Note]:
    """Yield on which benchmarks a model has no mean, or nothing to compare it with."""
    missing = np.isnan(found.means[model])
    few_rated = undefined(*FEW_RATED, least=estimates.LEAST_RATED)
    reason = few_rated if found.by == CORRECTED else undefined(*NOTHING_SCORED)
    if missing.all():
        yield reason
    elif missing.any():
        yield note(
            *LACKS_BENCHMARKS,
            why=reason,
            benchmarks=_named(table, missing),
            on=int((~missing).sum()),
            of=len(missing),
        )
    if table.left_out:
        words = "no such criterion: {benchmarks} left out"
        yield note("criterion_left_out", words, benchmarks=table.left_out)
    alone = np.isnan(estimates.benchmark_win_rates(found.means)[model]) & ~missing
    if alone.any():
        words = "win rate undefined: no other model has a score on {benchmarks}"
        yield note("no_opponent", words, benchmarks=_named(table, alone))


def _reliability(
    found: Estimate, model: int, column: int, is_member: Flags
) -> Iterator[Note | None]:
    """Yield what makes the interval of a mean over these benchmarks wrong, or undefined."""
    counts = found.instances[model, is_member & ~np.isnan(found.means[model])]
    drawn = found.replicates[:, model, column]
    if len(counts) and counts.min() == 1:
        words = "1 scored instance on a benchmark: intervals over instances are undefined"
        yield note("one_scored_instance", words)
    elif len(counts) and counts.min() < FEW_INSTANCES:
        are_rated = found.by == CORRECTED
        words = (
            f"only {{instances}} {'rated' if are_rated else 'scored'} instances on a benchmark: with "
            "fewer than {least} the true uncertainty is larger than this interval"
        )
        figures = {"are_rated": are_rated, "least": FEW_INSTANCES}
        yield note("few_scored_instances", words, instances=counts.min(), **figures)
    if np.isfinite(drawn).any():
        yield remarks.undefined_resamples(drawn)
        if np.isnan(found.interval(model, column).low):
            yield note("no_spread", "all resamples have the same mean, which makes no interval")


def _named(table: ModelScores, flags: Flags) -> list[str]:
    return [name for name, is_named in zip(table.benchmarks, flags, strict=True) if is_named]


def _simulated(table: ModelScores, by: str) -> Note | None:
    ways = table.simulated if by == CORRECTED else [by]
    return remarks.simulated(set().union(*(table.simulated[way] for way in ways)))


def jury_bias(jury: ModelRow, corrected: ModelRow) -> Note | None:
    """Return a note where the intervals of both macro-averages do not overlap."""
    if not (jury.low > corrected.high or jury.high < corrected.low):
        return None
    is_above = jury.low > corrected.high
    return note(
        "beyond_corrected",
        f"the jury alone scores it {'higher' if is_above else 'lower'} than clinicians would, beyond "
        "both intervals (corrected {corrected:z.3f}, {low:z.3f} to {high:z.3f}): do not rank it by "
        "the jury alone",
        is_above=is_above,
        corrected=corrected.macro_average,
        low=corrected.low,
        high=corrected.high,
    )


def _with_bias(row: ModelRow, corrected: ModelRow | None) -> ModelRow:
    bias = jury_bias(row, corrected) if row.by == JURY and corrected else None
    return replace(row, notes=noted(*row.notes, bias))


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
    if kind is DecisionKind.TOO_FEW and gap.resamples + gap.lost < estimates.LEAST_RESAMPLES:
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
