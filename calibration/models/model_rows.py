"""Make the rows of a comparison of models, and of its categories, with their notes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration import remarks
from calibration.bootstrap import percentile_interval
from calibration.codes import NoteCode as Code
from calibration.icc import Interval
from calibration.models.estimates import CATEGORIES, LEAST_RATED, MACRO, WIN, Figures, rank_ends
from calibration.models.gaps import Gap, Standing, mean_interval, share_interval, standings
from calibration.models.model_scores import Table
from calibration.models.rows import CORRECTED, CategoryRow, ModelRow
from calibration.models.win_rate import (
    NAN,
    ROUNDING,
    benchmark_win_rates,
    macro_average_sd,
    macro_averages,
    mean_of_defined,
    paired_wins,
    win_rate_sd,
    win_rates,
)
from calibration.scores import Array, Flags, Integers
from calibration.values import Note, note, noted


@dataclass(frozen=True, eq=False)
class Sharing:
    """What single instances say of the models, shape (models,) each.

    Attributes
    ----------
    rates : win rate on common instances (`win_rate.paired_wins`), mean over benchmarks
    pairs : how many pairs (instance, opponent) that rests on
    own : instances with a score of this model
    common : those of them with a score of every model that the benchmark has
    every : instances with a score of any model
    """

    rates: Array
    pairs: Integers
    own: Integers
    common: Integers
    every: int


def sharing(table: Table, by: str) -> Sharing:
    """Return what the models share where scores are of single responses.

    `by` is "clinicians" or "jury"; a corrected mean has no score of a single response.
    """
    scores = [table.by_instance(name, by) for name in table.layout.benchmarks]
    found = [paired_wins(one) for one in scores]
    given = [~np.isnan(one) for one in scores]
    everybody = [one[one.any(axis=1)].all(axis=0) & one.any(axis=0) for one in given]
    return Sharing(
        rates=mean_of_defined(np.stack([one.rates for one in found], axis=-1)),
        pairs=np.sum([one.pairs for one in found], axis=0),
        own=np.sum([one.sum(axis=1) for one in given], axis=0),
        common=np.sum(
            [(one & all_).sum(axis=1) for one, all_ in zip(given, everybody, strict=True)], axis=0
        ),
        every=sum(int(one.any(axis=0).sum()) for one in given),
    )


def model_rows(table: Table, found: Figures, gaps: Sequence[Gap]) -> list[ModelRow]:
    """Return a row a model, by win rate and then by macro-average, the best first."""
    shared = None if found.of.by == CORRECTED else sharing(table, found.of.by)
    columns, places = _columns(found, shared), _ranks(found)
    standing = _standings(table, found, gaps)
    rows = [
        ModelRow(
            model=name,
            by=found.of.by,
            **_of_model(columns, places, model),
            **_standing(standing.get(name)),
            **_counts(table, found, model, shared),
            notes=model_notes(table, found, model, shared, gaps),
        )
        for model, name in enumerate(table.layout.models)
    ]
    return sorted(rows, key=lambda row: (-_last(row.win_rate), -_last(row.macro_average)))


def category_rows(table: Table, found: Figures) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    benchmarks = np.array(table.layout.benchmarks)
    for place, (category, own) in enumerate(found.members.items(), start=CATEGORIES):
        here = table.frame["benchmark"].isin(benchmarks[own]) & found.of.counted
        mean = mean_of_defined(found.means[:, own])
        for model, name in enumerate(table.layout.models):
            drawn = found.drawn[:, model, place]
            ends = percentile_interval(drawn)
            given = own & ~np.isnan(found.means[model])
            if given.any():
                of_each = found.of.instances[model, given]
                ends = mean_interval(ends, found.means[model, given], of_each)
            yield CategoryRow(
                *(name, category, found.of.by, float(mean[model]), ends.low, ends.high),
                unchanged=_unchanged(drawn, mean[model]),
                n=int((here & (table.frame["model"] == model)).sum()),
                without=_named(benchmarks, own & np.isnan(found.means[model])),
                notes=category_notes(table, found, model, category),
            )


def _columns(found: Figures, shared: Sharing | None) -> dict[str, Array]:
    """Return the figures of all models, shape (models,), by the name of their field."""
    wins, macro = win_rates(found.means), macro_averages(found.means)
    return {
        "win_rate": wins,
        "win_rate_sd": win_rate_sd(found.means),
        "win_rate_by_instance": shared.rates if shared else np.full(len(wins), NAN),
        "macro_average": macro,
        "macro_average_sd": macro_average_sd(found.means),
        **_ends(found, WIN, wins, "win_rate_"),
        **_ends(found, MACRO, macro, ""),
    }


def _of_model(
    figures: Mapping[str, Array], ranks: Mapping[str, Array], model: int
) -> dict[str, Any]:
    """Return the figures and ranks of one model by the name of their field."""
    whole = {name: _whole(values[model]) for name, values in ranks.items()}
    return whole | {name: float(values[model]) for name, values in figures.items()}


def _ends(found: Figures, place: int, values: Array, name: str) -> dict[str, Array]:
    """Return every model's interval of a figure (models,), and what its replicates say, as columns."""
    drawn = found.drawn[:, :, place].T
    ends = [
        _interval(found, model, place, percentile_interval(own)) for model, own in enumerate(drawn)
    ]
    same = [_unchanged(own, value) for own, value in zip(drawn, values, strict=True)]
    return {
        f"{name}low": np.array([one.low for one in ends]),
        f"{name}high": np.array([one.high for one in ends]),
        f"{name}unchanged": np.array(same),
    }


def _interval(found: Figures, model: int, place: int, ends: Interval) -> Interval:
    """Return a model's interval, as `edges` has it where all resamples agree."""
    means, instances = found.means[model], found.of.instances[model].astype(np.float64)
    if place == MACRO:
        given = ~np.isnan(means)
        return mean_interval(ends, means[given], instances[given]) if given.any() else ends
    won = benchmark_win_rates(found.means)[model]
    given = ~np.isnan(won)
    if not given.any():
        return ends
    return share_interval(ends, float(won[given].mean()), float(instances[given].sum()))


def _unchanged(drawn: Array, value: float) -> float:
    """Return the share of the finite replicates that are the figure itself; NaN without any."""
    finite = drawn[np.isfinite(drawn)]
    return float((np.abs(finite - value) <= ROUNDING).mean()) if len(finite) else NAN


def _ranks(found: Figures) -> dict[str, Array]:
    best, worst = found.ranks
    return {
        "rank": rank_ends(win_rates(found.means))[0],
        "rank_low": np.array([_quantile(own, 0.025, "lower") for own in best.T]),
        "rank_high": np.array([_quantile(own, 0.975, "higher") for own in worst.T]),
    }


def _quantile(ranks: Array, share: float, side: str) -> float:
    """Return a quantile that is a rank itself; NaN without any."""
    finite = ranks[~np.isnan(ranks)]
    if not len(finite):
        return NAN
    return float(np.quantile(finite, share, method="lower" if side == "lower" else "higher"))


def _standings(table: Table, found: Figures, gaps: Sequence[Gap]) -> Mapping[str, Standing]:
    """Return the standing of each model that has a win rate."""
    wins = dict(zip(table.layout.models, win_rates(found.means).tolist(), strict=True))
    return standings({name: rate for name, rate in wins.items() if not np.isnan(rate)}, gaps)


def _standing(found: Standing | None) -> dict[str, Any]:
    """Return the fields of a row that say which ranks are open to a model, if it has one."""
    low, high, alike = (found.low, found.high, found.not_told_apart) if found else (None, None, ())
    return {"shared_rank_low": low, "shared_rank_high": high, "not_told_apart": alike}


def _counts(table: Table, found: Figures, model: int, shared: Sharing | None) -> dict[str, Any]:
    """Return the fields of a row that say what its figures rest on."""
    given = ~np.isnan(found.means[model])
    own = table.frame["model"] == model
    scored = found.of.counted[own]
    rated = table.frame["clinicians"].notna()[own]
    return {
        "n_benchmarks": int(given.sum()),
        "without": _named(np.array(table.layout.benchmarks), ~given),
        "n_responses": int(scored.sum()),
        "n_missing": int((~scored).sum()),
        "n_rated": int((scored & rated).sum()),
        "n_paired": int(shared.pairs[model]) if shared else 0,
        "least_instances": int(found.of.instances[model, given].min()) if given.any() else 0,
    }


def _named(
    benchmarks: "np.ndarray[tuple[int], np.dtype[np.str_]]", which: Flags
) -> tuple[str, ...]:
    return tuple(map(str, benchmarks[which]))


def _whole(rank: float) -> int | None:
    return None if np.isnan(rank) else int(rank)


def _last(value: float) -> float:
    """Return a value for sorting that puts NaN after all others."""
    return -np.inf if np.isnan(value) else value


def model_notes(
    table: Table, found: Figures, model: int, shared: Sharing | None, gaps: Iterable[Gap]
) -> tuple[Note, ...]:
    """Return the notes on a model's row; `shared` says which instances all models have."""
    left = table.left_out
    return noted(
        *_coverage(table, found, model),
        _absent(table, found, model),
        note(Code.CRITERION_LEFT_OUT, benchmarks=left) if left else None,
        _alone(table, found, model),
        _other_instances(shared, model) if shared else None,
        _few(found, model, np.ones(len(table.layout.benchmarks), dtype=np.bool_)),
        _lost(found, model, MACRO),
        _not_detected(table.layout.models, model, gaps),
        found.of.warning,
        remarks.simulated(_simulated(table, found.of.by)),
    )


def category_notes(table: Table, found: Figures, model: int, category: str) -> tuple[Note, ...]:
    """Return the notes on a model's mean of a category."""
    own = found.members[category]
    lost = _names(table, own & np.isnan(found.means[model]))
    return noted(
        note(Code.WITHOUT_BENCHMARKS, benchmarks=lost) if lost else None,
        _few(found, model, own),
        _lost(found, model, CATEGORIES + [*found.members].index(category)),
        remarks.simulated(_simulated(table, found.of.by)),
    )


def _coverage(table: Table, found: Figures, model: int) -> Sequence[Note]:
    own = table.frame["model"] == model
    counted = found.of.counted & own
    scored, every = int(counted.sum()), int(own.sum())
    said = remarks.coverage(scored, every, scored, every)
    if found.of.by != CORRECTED:
        return [said]
    rated = counted & table.frame["clinicians"].notna()
    return [said, note(Code.RATED_BY_CLINICIANS, responses=rated.sum())]


def _absent(table: Table, found: Figures, model: int) -> Note | None:
    none = np.isnan(found.means[model])
    if not none.any():
        return None
    why = note(Code.NOTHING_SCORED)
    if found.of.by == CORRECTED:
        why = note(Code.FEW_RATED_BY_BOTH, least=LEAST_RATED)
    if none.all():
        return why
    lost = _names(table, none)
    return note(
        Code.LACKS_BENCHMARKS, why=why, benchmarks=lost, on=int((~none).sum()), of=len(none)
    )


def _alone(table: Table, found: Figures, model: int) -> Note | None:
    """Say where no other model has a mean, so that there is nobody to win against."""
    wins = benchmark_win_rates(found.means)[model]
    alone = ~np.isnan(found.means[model]) & np.isnan(wins)
    if not alone.any():
        return None
    if np.isnan(wins).all():
        return note(Code.NO_OPPONENT)
    return note(Code.NO_OPPONENT_ON, benchmarks=_names(table, alone))


def _other_instances(shared: Sharing, model: int) -> Note | None:
    """Say how many of a model's instances all others have too, unless they all do."""
    own, common = int(shared.own[model]), int(shared.common[model])
    if own == common == shared.every:
        return None
    return note(Code.OTHER_INSTANCES, common=common, own=own)


def _few(found: Figures, model: int, own: Flags) -> Note | None:
    """Warn of the benchmark where a model has fewest instances with a score."""
    counts = found.of.instances[model, own & ~np.isnan(found.means[model])]
    if not len(counts) or counts.min() >= remarks.FEW_INSTANCES:
        return None
    if counts.min() == 1:
        return note(Code.ONE_SCORED_INSTANCE)
    return note(
        Code.FEW_SCORED_INSTANCES,
        instances=counts.min(),
        are_rated=found.of.by == CORRECTED,
        least=remarks.FEW_INSTANCES,
    )


def _lost(found: Figures, model: int, place: int) -> Note | None:
    drawn = found.drawn[:, model, place]
    return remarks.undefined_resamples(drawn) if np.isfinite(drawn).any() else None


def _not_detected(models: Sequence[str], model: int, gaps: Iterable[Gap]) -> Note | None:
    """Name the models whose macro-average differs by no more than 80 % power would find."""
    own = [gap.of(models[model]) for gap in gaps if models[model] in (gap.first, gap.second)]
    close = [
        gap.second
        for gap in own
        if np.isfinite(gap.detectable) and not (gap.exceeds_detectable and gap.excludes_zero)
    ]
    return note(Code.NOT_DETECTED, models=sorted(close, key=models.index)) if close else None


def _names(table: Table, which: Flags) -> list[str]:
    return [name for name, one in zip(table.layout.benchmarks, which, strict=True) if one]


def _simulated(table: Table, by: str) -> frozenset[str]:
    if by == CORRECTED:
        return frozenset().union(*table.simulated.values())
    return table.simulated[by]
