"""The rows of the table of models and of its categories, made from their figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from calibration.bootstrap import percentile_interval
from calibration.f_interval import Interval
from calibration.models.edges import mean_interval, share_interval
from calibration.models.figures import CATEGORIES, MACRO, WIN, Figures, rank_ends
from calibration.models.gaps import Gap, Standing, standings
from calibration.models.macro_average import macro_average_sd, macro_averages
from calibration.models.notes import category_notes, model_notes
from calibration.models.rows import CORRECTED, CategoryRow, ModelRow
from calibration.models.scores import Table
from calibration.models.shared import Sharing, sharing
from calibration.models.win_rate import (
    NAN,
    ROUNDING,
    benchmark_win_rates,
    mean_of_defined,
    win_rate_sd,
    win_rates,
)
from calibration.scores import Array, Flags


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
