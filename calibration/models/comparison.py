"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from calibration import remarks
from calibration.decision import Decision
from calibration.models.decision import decide
from calibration.models.estimates import (
    CATEGORIES,
    LEAST_RATED,
    MACRO,
    WIN,
    Estimate,
    Gap,
    estimate,
    gaps,
)
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
from calibration.models.scores import (
    ROUNDING,
    ModelScores,
    benchmark_win_rates,
    check_measured,
    check_names,
    mean_of_defined,
    model_scores,
    paired_wins,
    win_rate_sd,
    win_rates,
)
from calibration.notes import Note, note, noted, undefined
from calibration.scores import Flags, Scores
from calibration.shared_notes import NOTHING_SCORED
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput

COMMON = ["rate", "pairs", "own", "common"]  # of one model's instances, those that others have too


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
        `scores.model_scores`.
    """
    check_comparison(scores, options, by, measured)
    table = model_scores(scores, authors, options.jurors or (), options.criterion, measured)
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    all_gaps: list[Gap] = []
    done = 0

    def advance(resamples: int) -> None:
        nonlocal done
        done += resamples
        tick(done / (len(by) * options.reps))

    for way in by:
        found = estimate(table, way, categories, (options.reps, options.seed), advance)
        own_gaps = [*gaps(found, table.models)]
        rows += _model_rows(table, found, own_gaps)
        of_categories += _category_rows(table, found)
        all_gaps += own_gaps
    rows = [*_with_bias(rows)]
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
    check_measured(scores, measured or {})
    check_names(scores, options.jurors or (), options.criterion)
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if unknown := [way for way in by if way not in ALL_WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(ALL_WAYS)}")
    needs_jury = {JURY, CORRECTED} if measured else {JURY, CORRECTED, PAPER}
    if not options.jurors and {*by} & needs_jury:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def _model_rows(table: ModelScores, found: Estimate, gaps: Sequence[Gap]) -> list[ModelRow]:
    """Return a row for each model, by win rate and then by macro-average, the best first."""
    wins, sds, macro = (
        win_rates(found.means),
        win_rate_sd(found.means),
        mean_of_defined(found.means),
    )
    ranked = {name: rate for name, rate in zip(table.models, wins, strict=True) if rate >= 0}
    ahead = ahead_pairs(ranked, gaps)
    common, total = _common_instances(table, found.by)
    rows = []
    for model, name in enumerate(table.models):
        win, mean = (found.interval(model, column) for column in (WIN, MACRO))
        has_mean = ~np.isnan(found.means[model])
        is_own = table.frame["model"] == model
        is_scored = found.counted & is_own
        rows.append(
            ModelRow(
                model=name,
                by=found.by,
                win_rate=float(wins[model]),
                win_rate_sd=float(sds[model]),
                win_rate_low=win.low,
                win_rate_high=win.high,
                win_rate_by_instance=float(common["rate"][model]),
                macro_average=float(macro[model]),
                macro_average_sd=float(pd.Series(found.means[model]).std()),
                low=mean.low,
                high=mean.high,
                **standing(name, ranked, ahead),
                n_benchmarks=int(has_mean.sum()),
                without=tuple(_named(table, ~has_mean)),
                n_responses=int(is_scored.sum()),
                n_missing=int((is_own & ~is_scored).sum()),
                n_rated=int((is_scored & table.frame[CLINICIANS].notna()).sum()),
                n_paired=int(common["pairs"][model]),
                notes=noted(
                    *_coverage(table, found, model),
                    _other_instances(
                        int(common["own"][model]), int(common["common"][model]), total
                    ),
                    *_reliability(found, model, MACRO, np.ones(len(has_mean), dtype=np.bool_)),
                    _not_detected(name, gaps),
                    found.warning,
                    _simulated(table, found.by),
                ),
            )
        )
    return sorted(
        rows, key=lambda row: tuple(-np.nan_to_num([row.win_rate, row.macro_average], nan=-np.inf))
    )


def ahead_pairs(wins: Mapping[str, float], gaps: Iterable[Gap]) -> set[tuple[str, str]]:
    """Return which model is ahead of which other.

    It is where their macro-averages can be told apart and its win rate is the higher one too.
    """
    return {
        (gap.first, gap.second)
        for gap in gaps
        if gap.is_ahead and wins.get(gap.first, NAN) - wins.get(gap.second, NAN) > ROUNDING
    }


def standing(model: str, wins: Mapping[str, float], ahead: set[tuple[str, str]]) -> dict[str, Any]:
    """Return the ranks that a model may have and whom it cannot be told apart from, as fields of its row.

    Its ranks begin behind all models that are ahead of it, and end before all those that it is
    ahead of.
    """
    if model not in wins:
        return {"shared_rank_low": None, "shared_rank_high": None, "not_told_apart": ()}
    before = {other for other in wins if (other, model) in ahead}
    behind = {other for other in wins if (model, other) in ahead}
    return {
        "shared_rank_low": 1 + len(before),
        "shared_rank_high": len(wins) - len(behind),
        "not_told_apart": tuple(name for name in wins if name not in before | behind | {model}),
    }


def _common_instances(table: ModelScores, by: str) -> tuple[pd.DataFrame, int]:
    """Return what models win on the instances that they have in common, by single responses.

    A row a model: `rate`, mean over benchmarks of `scores.paired_wins`; `pairs` behind it; `own`
    instances with a score; `common`, those of them with a score of every model that the benchmark
    has. And the number of instances with any score. A corrected mean has no score of a response.
    """
    if by == CORRECTED:
        return pd.DataFrame(0, range(len(table.models)), COMMON).assign(rate=NAN), 0
    tables, total = [], 0
    for name in table.benchmarks:
        scores = table.by_instance(name, by)
        is_scored = ~np.isnan(scores)
        by_any = is_scored.any(axis=0)
        by_all = is_scored[is_scored.any(axis=1)].all(axis=0) & by_any
        counts = (*paired_wins(scores), is_scored.sum(axis=1), (is_scored & by_all).sum(axis=1))
        tables.append(pd.DataFrame(dict(zip(COMMON, counts, strict=True))))
        total += int(by_any.sum())
    models = pd.concat(tables).groupby(level=0)
    return models.sum().assign(rate=models["rate"].mean()), total


def _category_rows(table: ModelScores, found: Estimate) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    for column, (category, is_member) in enumerate(found.categories.items(), start=CATEGORIES):
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


def _coverage(table: ModelScores, found: Estimate, model: int) -> Iterator[Note | None]:
    """Yield how many of a model's responses have a score, and on which benchmarks figures are lacking."""
    is_own = table.frame["model"] == model
    is_scored = found.counted & is_own
    scored, total = int(is_scored.sum()), int(is_own.sum())
    yield remarks.coverage(scored, total, scored, total)
    if found.by == CORRECTED:
        rated = int((is_scored & table.frame[CLINICIANS].notna()).sum())
        yield note(
            "rated_by_clinicians", "{responses} of them rated by clinicians", responses=rated
        )
    yield _missing_benchmarks(table, found, model)
    if table.left_out:
        yield note(
            "criterion_left_out",
            "no such criterion: {benchmarks} left out",
            benchmarks=table.left_out,
        )
    wins = benchmark_win_rates(found.means)[model]
    alone = ~np.isnan(found.means[model]) & np.isnan(wins)
    if alone.any() and np.isnan(wins).all():
        yield note(
            "no_opponent", "win rate undefined: no other model has a score on the same benchmark"
        )
    elif alone.any():
        yield note(
            "no_opponent_on",
            "no other model has a score on {benchmarks}",
            benchmarks=_named(table, alone),
        )


def _missing_benchmarks(table: ModelScores, found: Estimate, model: int) -> Note | None:
    missing = np.isnan(found.means[model])
    if not missing.any():
        return None
    reason = undefined(*NOTHING_SCORED)
    if found.by == CORRECTED:
        reason = undefined(
            "few_rated_by_both",
            "fewer than {least} instances that clinicians and jury both scored",
            least=LEAST_RATED,
        )
    if missing.all():
        return reason
    return note(
        "lacks_benchmarks",
        (
            "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with "
            "models, or ways of scoring, that have one there"
        ),
        why=reason,
        benchmarks=_named(table, missing),
        on=int((~missing).sum()),
        of=len(missing),
    )


def _other_instances(own: int, common: int, total: int) -> Note | None:
    """Say how many of a model's instances all others have too, unless they all do."""
    if own == common == total or not total:
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
        common=common,
        own=own,
    )


def _reliability(
    found: Estimate, model: int, column: int, is_member: Flags
) -> Iterator[Note | None]:
    """Yield what makes the interval of a mean over these benchmarks wrong, or undefined."""
    counts = found.instances[model, is_member & ~np.isnan(found.means[model])]
    drawn = found.replicates[:, model, column]
    if len(counts) and counts.min() == 1:
        yield note(
            "one_scored_instance",
            "1 scored instance on a benchmark: intervals over instances are undefined",
        )
    elif len(counts) and counts.min() < remarks.FEW_INSTANCES:
        kind = "rated" if found.by == CORRECTED else "scored"
        yield note(
            "few_scored_instances",
            f"only {{instances}} {kind} instances on a benchmark: with fewer than {{least}} the "
            "true uncertainty is larger than this interval",
            instances=counts.min(),
            are_rated=found.by == CORRECTED,
            least=remarks.FEW_INSTANCES,
        )
    if np.isfinite(drawn).any():
        yield remarks.undefined_resamples(drawn)
        if np.isnan(found.interval(model, column).low):
            yield note("no_spread", "all resamples have the same mean, which makes no interval")


def _not_detected(model: str, gaps: Iterable[Gap]) -> Note | None:
    """Name the models whose macro-average cannot be told from its own: the interval reaches 0."""
    names = [gap.second for gap in gaps if gap.first == model and gap.low <= 0 <= gap.high]
    if not names:
        return None
    return note(
        "not_detected",
        "not told apart, as the 95 % interval of the difference includes 0: {models}",
        models=names,
    )


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


def _with_bias(rows: Sequence[ModelRow]) -> Iterator[ModelRow]:
    """Yield the rows, with a note on the jury's where the corrected interval does not overlap."""
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    for row in rows:
        bias = jury_bias(row, corrected[row.model]) if row.by == JURY and corrected else None
        yield replace(row, notes=(*row.notes, bias)) if bias else row
