"""Make the rows of a comparison of models, and of its categories, with their notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import remarks
from calibration.bootstrap import percentile_interval
from calibration.icc import Interval
from calibration.models.estimates import (
    CATEGORIES,
    LEAST_RATED,
    MACRO,
    WIN,
    ResampledFigures,
    rank_ends,
)
from calibration.models.gaps import Gap, RankRange, mean_interval, rank_ranges, share_interval
from calibration.models.model_scores import (
    ROUNDING,
    ModelScores,
    benchmark_win_rates,
    macro_average_sd,
    macro_averages,
    mean_of_defined,
    paired_wins,
    win_rate_sd,
    win_rates,
)
from calibration.models.rows import CORRECTED, CategoryRow, ModelRow
from calibration.notes import Figures, Note, filled, note, noted, undefined
from calibration.scores import Array, Flags, Integers
from calibration.shared_notes import NOTHING_SCORED
from calibration.values import NAN


@dataclass(frozen=True, eq=False)
class CommonInstances:
    """The instances that models have in common, and their wins on them, shape (models,) each.

    Attributes
    ----------
    rates : win rate on common instances (`win_rate.paired_wins`), mean over benchmarks
    pairs : number of pairs (instance, opponent) behind it
    scored : instances with a score of this model
    common : those of them with a score of every model that the benchmark has
    total : instances with a score of any model, an int
    """

    rates: Array
    pairs: Integers
    scored: Integers
    common: Integers
    total: int


def common_instances(table: ModelScores, by: str) -> CommonInstances:
    """Return the instances that models have in common, by scores of single responses.

    `by` is "clinicians" or "jury"; a corrected mean has no score of a single response.
    """
    scores = [table.by_instance(name, by) for name in table.layout.benchmarks]
    wins = [paired_wins(benchmark) for benchmark in scores]
    is_scored = [~np.isnan(benchmark) for benchmark in scores]
    by_all = [scored[scored.any(axis=1)].all(axis=0) & scored.any(axis=0) for scored in is_scored]
    n_common = [
        (scored & common).sum(axis=1) for scored, common in zip(is_scored, by_all, strict=True)
    ]
    return CommonInstances(
        rates=mean_of_defined(np.stack([benchmark.rates for benchmark in wins], axis=-1)),
        pairs=np.sum([benchmark.pairs for benchmark in wins], axis=0),
        scored=np.sum([scored.sum(axis=1) for scored in is_scored], axis=0),
        common=np.sum(n_common, axis=0),
        total=sum(int(scored.any(axis=0).sum()) for scored in is_scored),
    )


def model_rows(
    table: ModelScores, figures: ResampledFigures, gaps: Sequence[Gap]
) -> list[ModelRow]:
    """Return a row for each model, by win rate and then by macro-average, the best first."""
    by = figures.estimate.by
    common = None if by == CORRECTED else common_instances(table, by)
    columns, ranks = _columns(figures, common), _ranks(figures)
    ranges = _rank_ranges(table, figures, gaps)
    rows = [
        ModelRow(
            model=name,
            by=by,
            **_figures_of_model(columns, ranks, model),
            **_rank_range_fields(ranges.get(name)),
            **_counts(table, figures, model, common),
            notes=model_notes(table, figures, model, common, gaps),
        )
        for model, name in enumerate(table.layout.models)
    ]
    return sorted(rows, key=lambda row: (-_nan_last(row.win_rate), -_nan_last(row.macro_average)))


def category_rows(table: ModelScores, figures: ResampledFigures) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    benchmarks = np.array(table.layout.benchmarks)
    for column, (category, is_member) in enumerate(figures.members.items(), start=CATEGORIES):
        in_category = table.frame["benchmark"].isin(benchmarks[is_member])
        counted = in_category & figures.estimate.counted
        mean = mean_of_defined(figures.means[:, is_member])
        for model, name in enumerate(table.layout.models):
            replicates = figures.replicates[:, model, column]
            interval = percentile_interval(replicates)
            has_mean = is_member & ~np.isnan(figures.means[model])
            if has_mean.any():
                instances = figures.estimate.instances[model, has_mean]
                interval = mean_interval(interval, figures.means[model, has_mean], instances)
            yield CategoryRow(
                model=name,
                category=category,
                by=figures.estimate.by,
                mean=float(mean[model]),
                low=interval.low,
                high=interval.high,
                unchanged=_unchanged(replicates, mean[model]),
                n=int((counted & (table.frame["model"] == model)).sum()),
                without=tuple(_benchmark_names(table, is_member & ~has_mean)),
                notes=category_notes(table, figures, model, category),
            )


def _columns(figures: ResampledFigures, common: CommonInstances | None) -> dict[str, Array]:
    """Return the figures of all models, shape (models,), by the name of their field."""
    wins, macro = win_rates(figures.means), macro_averages(figures.means)
    return {
        "win_rate": wins,
        "win_rate_sd": win_rate_sd(figures.means),
        "win_rate_by_instance": common.rates if common else np.full(len(wins), NAN),
        "macro_average": macro,
        "macro_average_sd": macro_average_sd(figures.means),
        **_interval_columns(figures, WIN, wins, "win_rate_"),
        **_interval_columns(figures, MACRO, macro, ""),
    }


def _figures_of_model(
    figures: Mapping[str, Array], ranks: Mapping[str, Array], model: int
) -> dict[str, Any]:
    """Return the figures and ranks of one model by the name of their field."""
    whole = {name: _whole_rank(values[model]) for name, values in ranks.items()}
    return whole | {name: float(values[model]) for name, values in figures.items()}


def _interval_columns(
    figures: ResampledFigures, column: int, values: Array, name: str
) -> dict[str, Array]:
    """Return the intervals of a figure (models,), and how many replicates equal it, as columns."""
    replicates = figures.replicates[:, :, column].T
    intervals = [
        _interval(figures, model, column, percentile_interval(of_model))
        for model, of_model in enumerate(replicates)
    ]
    unchanged = [
        _unchanged(of_model, value) for of_model, value in zip(replicates, values, strict=True)
    ]
    return {
        f"{name}low": np.array([interval.low for interval in intervals]),
        f"{name}high": np.array([interval.high for interval in intervals]),
        f"{name}unchanged": np.array(unchanged),
    }


def _interval(figures: ResampledFigures, model: int, column: int, percentile: Interval) -> Interval:
    """Return a model's interval, which has a width although all resamples may be equal."""
    means, instances = figures.means[model], figures.estimate.instances[model].astype(np.float64)
    if column == MACRO:
        defined = ~np.isnan(means)
        if not defined.any():
            return percentile
        return mean_interval(percentile, means[defined], instances[defined])
    rates = benchmark_win_rates(figures.means)[model]
    defined = ~np.isnan(rates)
    if not defined.any():
        return percentile
    return share_interval(percentile, float(rates[defined].mean()), float(instances[defined].sum()))


def _unchanged(replicates: Array, value: float) -> float:
    """Return the share of the finite replicates that equal the figure; NaN without any."""
    finite = replicates[np.isfinite(replicates)]
    return float((np.abs(finite - value) <= ROUNDING).mean()) if len(finite) else NAN


def _ranks(figures: ResampledFigures) -> dict[str, Array]:
    best, worst = figures.ranks
    return {
        "rank": rank_ends(win_rates(figures.means))[0],
        "rank_low": np.array([_quantile(ranks, 0.025, "lower") for ranks in best.T]),
        "rank_high": np.array([_quantile(ranks, 0.975, "higher") for ranks in worst.T]),
    }


def _quantile(ranks: Array, share: float, side: str) -> float:
    """Return the quantile of ranks that is itself one of them; NaN without any."""
    finite = ranks[~np.isnan(ranks)]
    if not len(finite):
        return NAN
    return float(np.quantile(finite, share, method="lower" if side == "lower" else "higher"))


def _rank_ranges(
    table: ModelScores, figures: ResampledFigures, gaps: Sequence[Gap]
) -> Mapping[str, RankRange]:
    """Return the ranks that each model with a win rate may have."""
    wins = dict(zip(table.layout.models, win_rates(figures.means).tolist(), strict=True))
    return rank_ranges({name: rate for name, rate in wins.items() if not np.isnan(rate)}, gaps)


def _rank_range_fields(ranks: RankRange | None) -> dict[str, Any]:
    """Return the ranks that a model may have, as the fields of its row."""
    return {
        "shared_rank_low": ranks.low if ranks else None,
        "shared_rank_high": ranks.high if ranks else None,
        "not_told_apart": ranks.not_told_apart if ranks else (),
    }


def _counts(
    table: ModelScores, figures: ResampledFigures, model: int, common: CommonInstances | None
) -> dict[str, Any]:
    """Return the counts behind a model's figures, as the fields of its row."""
    has_mean = ~np.isnan(figures.means[model])
    is_of_model = table.frame["model"] == model
    is_scored = figures.estimate.counted[is_of_model]
    is_rated = table.frame["clinicians"].notna()[is_of_model]
    return {
        "n_benchmarks": int(has_mean.sum()),
        "without": tuple(_benchmark_names(table, ~has_mean)),
        "n_responses": int(is_scored.sum()),
        "n_missing": int((~is_scored).sum()),
        "n_rated": int((is_scored & is_rated).sum()),
        "n_paired": int(common.pairs[model]) if common else 0,
        "least_instances": int(figures.estimate.instances[model, has_mean].min())
        if has_mean.any()
        else 0,
    }


def _whole_rank(rank: float) -> int | None:
    return None if np.isnan(rank) else int(rank)


def _nan_last(value: float) -> float:
    """Return a value for sorting that puts NaN after all others."""
    return -np.inf if np.isnan(value) else value


def model_notes(
    table: ModelScores,
    figures: ResampledFigures,
    model: int,
    common: CommonInstances | None,
    gaps: Iterable[Gap],
) -> tuple[Note, ...]:
    """Return the notes on a model's row; `common` says which instances all models have."""
    left_out = table.left_out
    return noted(
        *_coverage(table, figures, model),
        _missing_benchmarks(table, figures, model),
        note("criterion_left_out", "no such criterion: {benchmarks} left out", benchmarks=left_out)
        if left_out
        else None,
        _no_opponent(table, figures, model),
        _other_instances_note(common, model) if common else None,
        _few_instances(figures, model, np.ones(len(table.layout.benchmarks), dtype=np.bool_)),
        _lost_resamples(figures, model, MACRO),
        _not_detected(table.layout.models, model, gaps),
        figures.estimate.warning,
        remarks.simulated(_simulated(table, figures.estimate.by)),
    )


def category_notes(
    table: ModelScores, figures: ResampledFigures, model: int, category: str
) -> tuple[Note, ...]:
    """Return the notes on a model's mean of a category."""
    is_member = figures.members[category]
    missing = _benchmark_names(table, is_member & np.isnan(figures.means[model]))
    return noted(
        note("without_benchmarks", "without {benchmarks}", benchmarks=missing) if missing else None,
        _few_instances(figures, model, is_member),
        _lost_resamples(figures, model, CATEGORIES + [*figures.members].index(category)),
        remarks.simulated(_simulated(table, figures.estimate.by)),
    )


def _coverage(table: ModelScores, figures: ResampledFigures, model: int) -> Sequence[Note]:
    is_of_model = table.frame["model"] == model
    counted = figures.estimate.counted & is_of_model
    scored, total = int(counted.sum()), int(is_of_model.sum())
    coverage = remarks.coverage(scored, total, scored, total)
    if figures.estimate.by != CORRECTED:
        return [coverage]
    rated = counted & table.frame["clinicians"].notna()
    return [
        coverage,
        note(
            "rated_by_clinicians", "{responses} of them rated by clinicians", responses=rated.sum()
        ),
    ]


def _missing_benchmarks(table: ModelScores, figures: ResampledFigures, model: int) -> Note | None:
    missing = np.isnan(figures.means[model])
    if not missing.any():
        return None
    reason = undefined(*NOTHING_SCORED)
    if figures.estimate.by == CORRECTED:
        reason = undefined(
            "few_rated_by_both",
            "fewer than {least} instances that clinicians and jury both scored",
            least=LEAST_RATED,
        )
    if missing.all():
        return reason
    names = _benchmark_names(table, missing)
    return note(
        "lacks_benchmarks",
        (
            "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with "
            "models, or ways of scoring, that have one there"
        ),
        why=reason,
        benchmarks=names,
        on=int((~missing).sum()),
        of=len(missing),
    )


def _no_opponent(table: ModelScores, figures: ResampledFigures, model: int) -> Note | None:
    """Return a note where no other model has a mean, so that there is no win rate."""
    wins = benchmark_win_rates(figures.means)[model]
    without_opponent = ~np.isnan(figures.means[model]) & np.isnan(wins)
    if not without_opponent.any():
        return None
    if np.isnan(wins).all():
        return note(
            "no_opponent", "win rate undefined: no other model has a score on the same benchmark"
        )
    return note(
        "no_opponent_on",
        "no other model has a score on {benchmarks}",
        benchmarks=_benchmark_names(table, without_opponent),
    )


def _other_instances_note(instances: CommonInstances, model: int) -> Note | None:
    """Say how many of a model's instances all others have too, unless they all do."""
    n_own, n_common = int(instances.scored[model]), int(instances.common[model])
    if n_own == n_common == instances.total:
        return None
    return note(
        "other_instances",
        (
            "{common} of its {own:scored instance} have scores for all models: its means are over "
            "other instances than theirs, whereas the win rate by instance uses shared instances"
        ),
        (
            "not all of its scored instances have scores for all models: its means are over other "
            "instances than theirs, whereas the win rate by instance uses shared instances"
        ),
        common=n_common,
        own=n_own,
    )


def _few_instances(figures: ResampledFigures, model: int, is_member: Flags) -> Note | None:
    """Warn of the benchmark where a model has fewest instances with a score."""
    counts = figures.estimate.instances[model, is_member & ~np.isnan(figures.means[model])]
    if not len(counts) or counts.min() >= remarks.FEW_INSTANCES:
        return None
    if counts.min() == 1:
        return note(
            "one_scored_instance",
            "1 scored instance on a benchmark: intervals over instances are undefined",
        )
    return note(
        "few_scored_instances",
        _few_instances_words,
        instances=counts.min(),
        are_rated=figures.estimate.by == CORRECTED,
        least=remarks.FEW_INSTANCES,
    )


def _lost_resamples(figures: ResampledFigures, model: int, column: int) -> Note | None:
    drawn = figures.replicates[:, model, column]
    return remarks.undefined_resamples(drawn) if np.isfinite(drawn).any() else None


def _not_detected(models: Sequence[str], model: int, gaps: Iterable[Gap]) -> Note | None:
    """Name the models whose macro-average cannot be told from its own: the interval reaches 0."""
    gaps_of_model = [
        gap.of(models[model]) for gap in gaps if models[model] in (gap.first, gap.second)
    ]
    undetected = [
        gap.second for gap in gaps_of_model if np.isfinite(gap.low) and not gap.excludes_zero
    ]
    return (
        note(
            "not_detected",
            "not told apart, as the 95 % interval of the difference includes 0: {models}",
            models=sorted(undetected, key=models.index),
        )
        if undetected
        else None
    )


def _benchmark_names(table: ModelScores, flags: Flags) -> list[str]:
    return [name for name, is_named in zip(table.layout.benchmarks, flags, strict=True) if is_named]


def _simulated(table: ModelScores, by: str) -> frozenset[str]:
    if by == CORRECTED:
        return frozenset().union(*table.simulated.values())
    return table.simulated[by]


def _few_instances_words(figures: Figures) -> str:
    kind = "rated" if figures["are_rated"] else "scored"
    text = (
        f"only {{instances}} {kind} instances on a benchmark: with fewer than {{least}} the "
        "true uncertainty is larger than this interval"
    )
    return filled(text, figures)
