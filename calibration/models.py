"""Compare models: win rates and macro-averages by clinicians, by the jury, and by both together."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import special

from calibration import remarks
from calibration.bootstrap import draw_counts, percentile_interval
from calibration.clustered_intervals import wilson
from calibration.decision import Decision, DecisionKind
from calibration.differences import holm
from calibration.icc import UNDEFINED, Interval
from calibration.model_values import (
    CLINICIANS,
    CORRECTED,
    FEW_INSTANCES,
    JURY,
    LEVEL,
    WAYS,
    CategoryRow,
    DifferenceRow,
    ModelRow,
)
from calibration.notes import Note, note, noted, simulated_in, undefined
from calibration.predicting import (
    UNLIKE,
    RatedSample,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.rating_matrix import composites, required_criteria
from calibration.scores import Array, Flags, Integers, Scores
from calibration.shared_notes import DO_REAL_RATERS, NOTHING_SCORED, SIMULATED
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput, TooFew, Unknown

ROUNDING = 1e-9  # means, and ends of intervals, that are closer differ by rounding only
LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess


@dataclass(frozen=True)
class ModelComparison:
    """Models compared, by each way of scoring.

    Attributes
    ----------
    rows : models by win rate, the best first, for each way of scoring
    categories : their means of the categories
    differences : between the macro-averages of all pairs of models, for each way of scoring
    decision : whether a model leads
    n_both : responses that both clinicians and the jury scored
    benchmarks : those compared; benchmarks that lack the criterion are left out
    """

    rows: tuple[ModelRow, ...]
    categories: tuple[CategoryRow, ...]
    differences: tuple[DifferenceRow, ...]
    decision: Decision
    n_both: int
    benchmarks: tuple[str, ...]


def compare_models(
    scores: Scores,
    authors: Mapping[str, str],
    categories: Mapping[str, str],
    options: AnalysisOptions,
    by: Sequence[str] = WAYS,
    tick: Callable[[float], None] = lambda share: None,
) -> ModelComparison:
    """Compare the models of a study by their responses' scores.

    Instances are the sample, with all their responses; the benchmarks are fixed. Intervals of means
    and of differences are by t (`Estimate.interval`), those of win rates from resamples, the same
    for all ways of scoring.

    Parameters
    ----------
    scores : Scores
    authors : response_id -> model
    categories : benchmark -> category; absent or "" for none
    options : of which jurors (None for clinicians alone), criterion, reps and seed are used
    by : some of "clinicians", "jury" and "corrected"
    tick : called with the share of the work done, in (0, 1]

    Raises
    ------
    BadInput
        If an option is out of range or a jury is needed and there is none; also as `model_scores`.
    """
    check_comparison(scores, options, by)
    table = model_scores(scores, authors, options.jurors or (), options.criterion)
    rows: list[ModelRow] = []
    of_categories: list[CategoryRow] = []
    differences: list[DifferenceRow] = []
    for done, way in enumerate(by, start=1):
        found = estimate(table, way)
        own = difference_rows(found, table.models)
        rows += _model_rows(table, found, win_rate_replicates(found, options), own)
        of_categories += _category_rows(table, found, categories)
        differences += own
        tick(done / len(by))
    corrected = {row.model: row for row in rows if row.by == CORRECTED}
    rows = [
        replace(row, notes=noted(*row.notes, jury_bias(row, corrected[row.model])))
        if row.by == JURY and row.model in corrected
        else row
        for row in rows
    ]
    return ModelComparison(
        tuple(rows),
        tuple(of_categories),
        tuple(differences),
        decide(rows, differences),
        int(table.frame[[CLINICIANS, JURY]].notna().all(axis=1).sum()),
        table.benchmarks,
    )


def check_comparison(scores: Scores, options: AnalysisOptions, by: Sequence[str] = WAYS) -> None:
    """Raise the BadInput or Unknown that `compare_models` would, without reading any author."""
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
    if unknown := [way for way in by if way not in WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(WAYS)}")
    if not options.jurors and {JURY, CORRECTED} & {*by}:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def mean_of_defined(values: Array, needed: Flags | None = None) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where all is.

    With `needed`, it is the mean of those that are True there, NaN if any of them is. Over
    benchmarks on one scale it is the macro-average: of those that a model has, so that models
    with different benchmarks are not comparable.
    """
    counted = ~np.isnan(values) if needed is None else needed
    with np.errstate(invalid="ignore"):
        mean: Array = np.where(counted, values, 0.0).sum(axis=-1) / counted.sum(axis=-1)
    return mean


def benchmark_win_rates(means: Array) -> Array:
    """Return the share of the other models that each model beats, on each benchmark.

    Of means (..., models, benchmarks), higher is better, NaN where a model has none, in the same
    shape: over the other models that have a mean on that benchmark; a tie is half a win. NaN where
    the model has no mean or no other model has one. Leading axes are independent tables.

    References
    ----------
    Liang et al. (2023), HELM, mean win rate; `compute_aggregate_row_win_rates` of
    stanford-crfm/helm, whose ties are half a win too (in versions since 2025).
    """
    wins = np.zeros_like(means)
    for model in range(means.shape[-2]):
        wins += _wins(means, means[..., model : model + 1, :])
    opponents = (~np.isnan(means)).sum(axis=-2, keepdims=True) - 1
    defined = ~np.isnan(means) & (opponents > 0)
    # Each model was also compared with itself: half a win against one opponent.
    return np.where(defined, (wins - 0.5) / np.maximum(opponents, 1), np.nan)


def win_rates(means: Array) -> Array:
    """Return the mean of `benchmark_win_rates` over the benchmarks where a model has one, as in HELM."""
    return mean_of_defined(benchmark_win_rates(means))


def win_rate_sd(means: Array) -> Array:
    """Return the SD of a model's win rates against each single other model, ddof 0.

    This is the "Win SD" of the paper's Table 1: not over benchmarks but over opponents.
    Against one opponent the win rate is the share of benchmarks won, of those that both have.
    Shape (models, benchmarks) to (models,); NaN without an opponent that shares a benchmark.

    References
    ----------
    `tables/1_win_rate_table.py` of som-shahlab/medhelm; there a tie is no win, here half a
    one, as in the win rate itself. Without ties or gaps the two are the same.
    """
    wins = np.stack([_wins(row, means).sum(axis=1) for row in means])
    shared = np.stack([(~np.isnan(row - means)).sum(axis=1) for row in means])
    np.fill_diagonal(wins, 0.0)
    np.fill_diagonal(shared, 0)
    with np.errstate(invalid="ignore"):
        rates = pd.DataFrame(wins / shared)
    return rates.std(axis=1, ddof=0).to_numpy(dtype=np.float64)


def _wins(scores: Array, opponents: Array) -> Array:
    """Return 1 for a win, half for a tie, 0 for a loss or where either has no score."""
    difference = scores - opponents
    wins: Array = (difference > ROUNDING) + 0.5 * (np.abs(difference) <= ROUNDING)
    return wins


@dataclass(frozen=True, eq=False)
class ModelScores:
    """Every response of the study with its model and its scores.

    Attributes
    ----------
    frame : benchmark, instance (numbered from 0 within its benchmark), model (its number in `models`),
        clinicians and jury: means of composites from 0, the worst, to 1, the best; NaN where there
        is none.
    models, benchmarks : names in alphabetical order
    simulated : "clinicians", "jury" or "corrected" -> simulated raters behind that score
    left_out : benchmarks whose rubric lacks the criterion
    """

    frame: pd.DataFrame
    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    simulated: Mapping[str, frozenset[str]]
    left_out: tuple[str, ...]

    def named(self, flags: Flags) -> list[str]:
        """Return the names of the benchmarks whose flag is set."""
        return [name for name, is_named in zip(self.benchmarks, flags, strict=True) if is_named]


def model_scores(
    scores: Scores,
    authors: Mapping[str, str],
    jurors: Sequence[str],
    criterion: str | None = None,
) -> ModelScores:
    """Return every response with its model, the clinicians' mean and the jury's.

    These are raw composites, (score - low) / (high - low) of the scale, as in the paper's Table 1:
    from 1 to 5 it is (x - 1) / 4. z within raters would remove differences between models. The
    jury has a score only where all its jurors have a composite. Parameters are as in
    `compare_models`; no jurors are no jury.

    Raises
    ------
    BadInput, TooFew
        If a response has no author; if the study has no responses.
    """
    names = required_criteria(scores.rubrics, criterion)
    frame = scores.responses[scores.responses["benchmark"].isin(list(names))]
    if not len(frame):
        raise TooFew("the study has no responses to compare models by")
    ids = frame["response_id"]
    if without_author := [name for name in ids if name not in authors]:
        raise BadInput(
            f"{len(without_author)} responses, {without_author[0]} first, have no author in the study"
        )
    given = composites(scores, criterion).values
    of_clinicians = given[given["kind"] == "clinician"]
    of_jurors = given[(given["kind"] == "juror") & given["rater"].isin(list(jurors))]
    jury = of_jurors.groupby("response_id")["composite"].agg(["mean", "count"])
    whole_jury = jury.loc[jury["count"] == len(set(jurors)), "mean"]
    shapes = [scores.rubrics[name] for name in frame["benchmark"]]
    low, high = np.array([(shape.low, shape.high) for shape in shapes], dtype=np.float64).T
    clinicians = of_clinicians.groupby("response_id")["composite"].mean()
    for column, of_responses in ((CLINICIANS, clinicians), (JURY, whole_jury)):
        own = of_responses.reindex(ids).to_numpy(dtype=np.float64)
        frame = frame.assign(**{column: (own - low) / (high - low)})
    models, model = np.unique(ids.map(dict(authors)).to_numpy(dtype=str), return_inverse=True)
    instances = frame.groupby("benchmark", observed=True)["instance_id"]
    frame = frame.assign(
        model=model,
        instance=instances.transform(lambda own: pd.factorize(own, sort=True)[0]).astype(np.int64),
    ).reset_index(drop=True)
    raters = {CLINICIANS: set(of_clinicians["rater"]), JURY: set(jurors)}
    raters[CORRECTED] = raters[CLINICIANS] | raters[JURY]
    return ModelScores(
        frame,
        tuple(map(str, models)),
        tuple(sorted(map(str, frame["benchmark"].unique()))),
        {way: scores.simulated & own for way, own in raters.items()},
        tuple(benchmark for benchmark in scores.benchmarks if benchmark not in names),
    )


@dataclass(frozen=True, eq=False)
class Estimate:
    """The means of models by one way of scoring, and what each instance adds to their errors.

    A mean is the sum of its terms: one, or of "corrected" two, that of the rated responses and that of
    the others. A term is a ratio, sums over numbers of responses.

    Attributes
    ----------
    means : shape (models, benchmarks), NaN where there is none
    terms : for each benchmark sums and numbers, shape (2, terms, instances, models)
    spent : degrees of freedom that a mean takes, (models, benchmarks): 1, and 1 for a jury's weight
    counted : shape (responses,), True where a response's score enters
    warning : of "corrected", where the rated responses may not be a random sample, or None
    """

    by: str
    means: Array
    terms: Sequence[Array]
    spent: Integers
    counted: pd.Series
    warning: Note | None

    @property
    def instances(self) -> Integers:
        """Instances with a score, (models, benchmarks); of "corrected" those that clinicians rated."""
        return np.stack([(term[1, 0] > 0).sum(axis=0) for term in self.terms], axis=-1)

    def interval(self, signs: Mapping[int, float], on: Flags) -> tuple[Interval, float]:
        """Return the interval of a sum of models' means over some benchmarks, and its p of 0.

        It is t times the error between instances: each instance adds (sum - mean number) / total
        of every model with its sign, enlarged by sqrt(G / (G - 1)) for G instances, or G - 2 where
        they also gave the jury's weight, and the squares of what instances add are summed. With
        one response of both models to each instance of one benchmark it is the paired t interval.
        Degrees of freedom are Satterthwaite's, of terms and benchmarks with G - 1 or G - 2 each.

        Parameters
        ----------
        signs : number of a model -> 1, or -1 where its mean is subtracted
        on : shape (benchmarks,), those on which all these models have a mean

        Returns
        -------
        Interval and p
            NaN without an error, or with a single instance on a benchmark.

        References
        ----------
        Cochran (1977), Sampling Techniques, chapter 6: the error of a ratio. Satterthwaite (1946),
        Biometrics Bulletin 2, 110.
        """
        models, places = [*signs], np.flatnonzero(on)
        if not len(places) or self.instances[models][:, places].min() < 2:
            return UNDEFINED, NAN
        variance, parts, freedom = 0.0, [], []
        for place in map(int, places):
            sums, numbers = self.terms[place][..., models]
            totals, groups = numbers.sum(axis=1), (numbers > 0).sum(axis=1)
            off = (sums - (sums.sum(axis=1) / totals)[:, None] * numbers) / totals[:, None]
            left = groups - 1
            left[0] = groups[0] - self.spent[models, place]
            left = np.maximum(left, 1)
            off *= np.sqrt(groups / left)[:, None]
            moves = off @ np.array([*signs.values()]) / len(places)
            variance += float((moves.sum(axis=0) ** 2).sum())
            parts += [*(moves**2).sum(axis=1)]
            freedom += [*left.min(axis=1)]
        error = math.sqrt(variance)
        if not error > ROUNDING:
            return UNDEFINED, NAN
        of_t = sum(parts) ** 2 / float(np.array(parts) ** 2 @ (1 / np.array(freedom)))
        mean = sum(sign * float(self.means[model, places].mean()) for model, sign in signs.items())
        half = float(special.stdtrit(of_t, 0.975)) * error
        p = 2 * float(special.stdtr(of_t, -abs(mean) / error))
        return Interval(mean - half, mean + half), p


def estimate(table: ModelScores, by: str) -> Estimate:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians" and "jury" are the means over the responses that have such a score.
    "corrected" is the prediction-powered mean of the model's own responses to the
    benchmark (`predicting.prediction_powered_mean`): the jury's mean on the responses
    that no clinician rated, corrected by the difference of clinicians and jury on those that
    both rated, for each model by itself. Where clinicians rated all of a model's responses it is
    their mean; else it is NaN with fewer than 5 rated instances. In resamples the weight of the
    jury is fixed.
    """
    spent = np.ones((len(table.models), len(table.benchmarks)), dtype=np.int64)
    if by == CORRECTED:
        terms, weighted, counted = _corrected(table)
        spent += weighted
    else:
        values = table.frame[by]
        terms, counted = [term[:, None] for term in _sums(table, values)], values.notna()
    every = [np.ones((1, term.shape[2])) for term in terms]
    warning = _unlike_benchmarks(table.frame) if by == CORRECTED else None
    return Estimate(by, _means(terms, every)[0], terms, spent, counted, warning)


def _sums(table: ModelScores, values: pd.Series) -> list[Array]:
    """Return for each benchmark the sums and numbers, (2, instances, models), of one value of each response."""
    by_benchmark = []
    for name in table.benchmarks:
        own = table.frame[table.frame["benchmark"] == name]
        sums = np.zeros((2, int(own["instance"].max()) + 1, len(table.models)))
        own = own[values[own.index].notna()]
        places = own["instance"].to_numpy(), own["model"].to_numpy()
        np.add.at(sums[0], places, values[own.index].to_numpy(dtype=np.float64))
        np.add.at(sums[1], places, 1.0)
        by_benchmark.append(sums)
    return by_benchmark


def _means(terms: Sequence[Array], counts: Sequence[Array]) -> Array:
    """Return the means of resamples, the sums of their terms, shape (B, models, benchmarks)."""
    with np.errstate(invalid="ignore"):
        ratios = [
            ((n @ sums) / (n @ numbers)).sum(axis=0)
            for n, (sums, numbers) in zip(counts, terms, strict=True)
        ]
    return np.stack(ratios, axis=-1)


def _corrected(table: ModelScores) -> tuple[list[Array], Flags, pd.Series]:
    """Return the terms of corrected means, which means weigh the jury, and the responses that enter."""
    frame = table.frame
    residuals, predicted = pd.Series(np.nan, frame.index), pd.Series(np.nan, frame.index)
    weights = np.full((len(table.models), len(table.benchmarks)), NAN)
    for model, place in np.ndindex(*weights.shape):
        own = frame[(frame["benchmark"] == table.benchmarks[place]) & (frame["model"] == model)]
        is_rated = own[CLINICIANS].notna()
        rated, unrated = (own[flags & own[JURY].notna()] for flags in (is_rated, ~is_rated))
        if is_rated.all():
            rated = own
            weights[model, place] = 0.0 if len(own) else NAN
        elif rated["instance"].nunique() >= LEAST_RATED:
            columns = [
                *(rated[name].to_numpy() for name in (CLINICIANS, JURY, "instance")),
                *(unrated[name].to_numpy() for name in (JURY, "instance")),
            ]
            weights[model, place] = prediction_powered_mean(RatedSample(*columns)).weight
        weight = weights[model, place]
        residuals[rated.index] = rated[CLINICIANS] - (weight * rated[JURY] if weight else 0.0)
        predicted[unrated.index] = weight * unrated[JURY]
    both = zip(_sums(table, residuals), _sums(table, predicted), strict=True)
    terms = [np.stack(pair, axis=1) for pair in both]
    for model, place in np.argwhere(weights == 0.0):  # 0 / 1 in every resample, never 0 / 0
        terms[place][:, 1, :, model] = [[0.0], [1.0]]
    return terms, weights > 0, residuals.notna() | predicted.notna()


def _unlike_benchmarks(frame: pd.DataFrame) -> Note | None:
    """Return a note on the benchmarks where the jury scores rated and unrated responses unlike.

    They are unlike if their means differ by over a quarter of a standard deviation
    (`standardised_difference`) and two standard errors, with each model's own mean subtracted
    and the responses to one instance averaged.
    """
    unlike = []
    for name, own in frame.dropna(subset=[JURY]).groupby("benchmark", observed=True):
        deviations = own[JURY] - own.groupby("model")[JURY].transform("mean")
        is_rated = own[CLINICIANS].notna()
        rated, unrated = (
            deviations[flags].groupby(own["instance"]).mean().to_numpy()
            for flags in (is_rated, ~is_rated)
        )
        size = float(standardised_difference(rated, unrated))
        if abs(size) > UNLIKE and abs(size) > 2 * np.sqrt(1 / len(rated) + 1 / len(unrated)):
            unlike.append((str(name), size))
    if not unlike:
        return None
    words = ", ".join(
        f"{name} ({abs(size):.2f} sd {'better' if size > 0 else 'worse'})" for name, size in unlike
    )
    text = f"rated responses may be no random sample by the jury's scores: {words}"
    return note("not_random", lambda _: text, benchmarks=unlike)


def win_rate_replicates(found: Estimate, options: AnalysisOptions) -> Array:
    """Return win rates in resamples of the instances of each benchmark, shape (reps, models).

    NaN where one of the study's win rates is undefined in the resample, and in all resamples where a
    mean rests on one instance, which would make them all equal.
    """
    has_rate = ~np.isnan(benchmark_win_rates(found.means))
    models, benchmarks = found.means.shape
    sizes = [term.shape[2] for term in found.terms]
    cells = max(sum(sizes), models**2 * benchmarks)
    seeds = [
        int(np.random.SeedSequence([options.seed, at]).generate_state(1)[0])
        for at in range(benchmarks)
    ]
    streams = [
        draw_counts(size, reps=options.reps, seed=seed, rows=cells)
        for size, seed in zip(sizes, seeds, strict=True)
    ]
    replicates = np.concatenate(
        [
            mean_of_defined(benchmark_win_rates(_means(found.terms, counts)), has_rate)
            for counts in zip(*streams, strict=True)
        ]
    )
    replicates[:, (found.instances == 1).any(axis=1)] = np.nan
    return replicates


def _win_rate_interval(replicates: Array, share: float, instances: int) -> Interval:
    """Return a win rate's percentile interval; where all resamples agree Wilson's.

    That is as of as many independent comparisons as there are instances: where a model leads clearly
    all resamples agree, which does not make it certain.
    """
    ends = percentile_interval(replicates)
    if not ends.high - ends.low <= ROUNDING:
        return ends
    ends = wilson(share, float(instances))
    return Interval(min(share, ends.low), max(share, ends.high))  # whatever rounding does


def difference_rows(found: Estimate, models: Sequence[str]) -> list[DifferenceRow]:
    """Return the difference of every two models whose means are of the same benchmarks, the higher first."""
    macro, wins = mean_of_defined(found.means), win_rates(found.means)
    has_mean, instances = ~np.isnan(found.means), found.instances
    in_order = sorted(
        range(len(models)), key=lambda model: (-macro[model], -_known(float(wins[model])))
    )
    rows = []
    for first, second in combinations(in_order, 2):
        on = has_mean[first]
        if not on.any() or (on != has_mean[second]).any():
            continue
        ends, p = found.interval({first: 1.0, second: -1.0}, on)
        rows.append(
            DifferenceRow(
                by=found.by,
                first=models[first],
                second=models[second],
                difference=float(macro[first] - macro[second]),
                low=ends.low,
                high=ends.high,
                p=p,
                instances=int(instances[[first, second]][:, on].min()),
            )
        )
    corrected = holm(np.array([row.p for row in rows]))
    return [replace(row, p_holm=float(p)) for row, p in zip(rows, corrected, strict=True)]


def _known(value: float) -> float:
    """Return a value for sorting that puts NaN after all others."""
    return -math.inf if math.isnan(value) else value


def standings(
    wins: Mapping[str, float], differences: Sequence[DifferenceRow]
) -> dict[str, tuple[int, int, tuple[str, ...]]]:
    """Return the lowest and the highest rank that each model may have, and whom it cannot be told apart from.

    One model is ahead of another where their macro-averages can be told apart and its win rate
    is the higher one too. A model's ranks begin behind all models that are ahead of it, and end
    before all those that it is ahead of.
    """
    ahead = {
        (row.first, row.second)
        for row in differences
        if row.is_ahead and wins.get(row.first, NAN) - wins.get(row.second, NAN) > ROUNDING
    }
    found = {}
    for model in wins:
        before = {other for other in wins if (other, model) in ahead}
        behind = {other for other in wins if (model, other) in ahead}
        alike = tuple(name for name in wins if name not in before | behind | {model})
        found[model] = (1 + len(before), len(wins) - len(behind), alike)
    return found


def _model_rows(
    table: ModelScores, found: Estimate, replicates: Array, differences: Sequence[DifferenceRow]
) -> list[ModelRow]:
    """Return a row for each model, by win rate and then by macro-average, the best first."""
    wins, macro = win_rates(found.means), mean_of_defined(found.means)
    sd_wins, sd_means = win_rate_sd(found.means), pd.DataFrame(found.means).std(axis=1)
    has_mean, has_rate = ~np.isnan(found.means), ~np.isnan(benchmark_win_rates(found.means))
    ranked = {name: rate for name, rate in zip(table.models, wins, strict=True) if rate >= 0}
    places = standings(ranked, differences)
    rows = []
    for model, name in enumerate(table.models):
        counts = found.instances[model]
        win = _win_rate_interval(
            replicates[:, model], float(wins[model]), int(counts[has_rate[model]].sum())
        )
        mean, _ = found.interval({model: 1.0}, has_mean[model])
        is_own = table.frame["model"] == model
        is_scored = found.counted & is_own
        scored, every = int(is_scored.sum()), int(is_own.sum())
        rank_low, rank_high, alike = places.get(name, (None, None, ()))
        rows.append(
            ModelRow(
                model=name,
                by=found.by,
                win_rate=float(wins[model]),
                win_rate_sd=float(sd_wins[model]),
                win_rate_low=win.low,
                win_rate_high=win.high,
                macro_average=float(macro[model]),
                macro_average_sd=float(sd_means[model]),
                low=mean.low,
                high=mean.high,
                shared_rank_low=rank_low,
                shared_rank_high=rank_high,
                not_told_apart=alike,
                n_benchmarks=int(has_mean[model].sum()),
                without=tuple(table.named(~has_mean[model])),
                n_responses=scored,
                n_missing=every - scored,
                n_rated=int((is_scored & table.frame[CLINICIANS].notna()).sum()),
                notes=noted(
                    remarks.coverage(scored, every, scored, every),
                    *_missing(table, found, model),
                    *_few(found, counts[has_mean[model]]),
                    remarks.undefined_resamples(replicates[:, model]),
                    found.warning,
                    remarks.simulated(table.simulated[found.by]),
                ),
            )
        )
    return sorted(rows, key=lambda row: (-_known(row.win_rate), -_known(row.macro_average)))


def _missing(table: ModelScores, found: Estimate, model: int) -> Iterator[Note | None]:
    """Yield where a model has no mean, or nothing to compare it with, or not what others have."""
    missing = np.isnan(found.means[model])
    reason = undefined(*NOTHING_SCORED)
    if found.by == CORRECTED:
        words = "fewer than {least} instances that clinicians and jury both scored"
        reason = undefined("few_rated_by_both", words, least=LEAST_RATED)
    if missing.all():
        yield reason
    elif missing.any():
        yield note(
            "lacks_benchmarks",
            "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with "
            "models, or ways of scoring, that have one there",
            why=reason,
            benchmarks=table.named(missing),
            on=int((~missing).sum()),
            of=len(missing),
        )
    if table.left_out:
        words = "no such criterion: {benchmarks} left out"
        yield note("criterion_left_out", words, benchmarks=table.left_out)
    alone = np.isnan(benchmark_win_rates(found.means)[model]) & ~missing
    if alone.any():
        words = "win rate undefined: no other model has a score on {benchmarks}"
        yield note("no_opponent", words, benchmarks=table.named(alone))
    scored = np.concatenate([term[1, 0] > 0 for term in found.terms])
    if found.by != CORRECTED and scored[:, model].any() and not scored[scored.any(axis=1)].all():
        yield note(
            "other_instances",
            "{common} of its {own:scored instance} have scores for all models: its means are over "
            "other instances than theirs",
            common=int(scored.all(axis=1).sum()),
            own=int(scored[:, model].sum()),
        )


def _few(found: Estimate, instances: Integers) -> Iterator[Note]:
    """Yield what makes intervals over so many instances a benchmark undefined, or doubtful."""
    if len(instances) and instances.min() == 1:
        words = "1 scored instance on a benchmark: intervals over instances are undefined"
        yield note("one_scored_instance", words)
    elif len(instances) and instances.min() < FEW_INSTANCES:
        verb = "rated" if found.by == CORRECTED else "scored"
        words = f"only {{instances}} {verb} instances on a benchmark, fewer than {{least}}"
        yield note(
            "few_scored_instances", words, instances=int(instances.min()), least=FEW_INSTANCES
        )


def _category_rows(
    table: ModelScores, found: Estimate, categories: Mapping[str, str]
) -> Iterator[CategoryRow]:
    """Yield a row for each category and model, in alphabetical order."""
    of = np.array([categories.get(benchmark, "") for benchmark in table.benchmarks])
    for category in sorted({*of.tolist()}):
        is_member = of == category
        counted = table.frame["benchmark"].isin(table.named(is_member)) & found.counted
        for model, name in enumerate(table.models):
            on = is_member & ~np.isnan(found.means[model])
            ends, _ = found.interval({model: 1.0}, on)
            yield CategoryRow(
                model=name,
                category=category,
                by=found.by,
                mean=float(mean_of_defined(found.means[model, is_member])),
                low=ends.low,
                high=ends.high,
                n=int((counted & (table.frame["model"] == model)).sum()),
                without=tuple(table.named(is_member & ~on)),
                notes=noted(remarks.simulated(table.simulated[found.by])),
            )


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


def decide(rows: Sequence[ModelRow], differences: Sequence[DifferenceRow]) -> Decision:
    """Return whether a model leads, by the corrected scores or else by the clinicians'.

    The corrected scores decide where they have as many means as the clinicians' and the rated
    responses are not in doubt as a sample. By the jury alone no model is said to lead.

    Rows and differences are of all ways of scoring that were asked for. The decision is "simulated"
    where any rater behind the scores is; "undefined" where fewer than two models are ranked;
    "told_apart" where the model with the highest macro-average can be told apart from every other
    ranked one (`DifferenceRow.is_ahead`) and has the highest win rate; "too_few" where the
    difference that decides rests on too few instances; else "inconclusive". The estimate is the
    difference to the next model, or to the first that cannot be told apart.
    """
    by = deciding_way(rows)
    ranked = sorted(_ranked(rows, by), key=lambda row: -row.macro_average)
    unranked = [row.model for row in rows if row.by == by and row.shared_rank_low is None]
    if len(ranked) < 2:
        whose = "clinicians" if by == CLINICIANS else "clinicians and the jury"
        text = f"fewer than two models have a mean by {whose} on the same benchmark"
        without = "; without one: {models}" if unranked else ""
        reason = note("fewer_than_two", text + without, by=by, models=unranked)
        action = "have clinicians rate responses of at least two models to the same benchmark"
        todo = note("do_rate_two_models", action)
        return Decision("models", DecisionKind.UNDEFINED, reasons=(reason,), next=todo)
    leader = ranked[0]
    to = {row.second: row for row in differences if (row.by, row.first) == (by, leader.model)}
    in_order = [to[row.model] for row in ranked[1:] if row.model in to]
    not_ahead = [row for row in in_order if row.second in leader.not_told_apart]
    deciding = next(iter(not_ahead or in_order), None)
    kind = _kind(ranked, deciding)
    compared_by = {
        CLINICIANS: "rated by clinicians",
        JURY: "scored by the jury",
        CORRECTED: "scored by the jury, corrected with the clinicians' ratings of {rated} of them",
    }
    compared = note(
        "models_compared",
        "{models:model} on {benchmarks:benchmark}, {responses:response} " + compared_by[by],
        by=by,
        models=len(ranked),
        benchmarks=max(row.n_benchmarks for row in ranked),
        responses=sum(row.n_responses for row in ranked),
        rated=sum(row.n_rated for row in ranked),
    )
    words = "not ranked, without comparable scores: {models}"
    left_out = note("not_ranked", words, models=unranked) if unranked else None
    return Decision(
        "models",
        kind,
        estimate=deciding.difference if deciding else NAN,
        low=deciding.low if deciding else NAN,
        high=deciding.high if deciding else NAN,
        reasons=noted(*_reasons(kind, ranked, deciding), _doubt(rows), left_out),
        basis=(compared,),
        next=_next(kind, ranked, deciding),
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
    if ways == {JURY}:
        return JURY
    by_clinicians = CLINICIANS in ways and (len(clinical) > 1 or len(corrected) < 2)
    return CLINICIANS if by_clinicians else CORRECTED


def _ranked(rows: Sequence[ModelRow], by: str) -> list[ModelRow]:
    return [row for row in rows if row.by == by and row.shared_rank_low is not None]


def _doubt(rows: Sequence[ModelRow]) -> Note | None:
    """Return the note that the rated responses may not be a random sample, or None."""
    return next(filter(None, (row.told("not_random") for row in rows)), None)


def _kind(ranked: Sequence[ModelRow], deciding: DifferenceRow | None) -> DecisionKind:
    if simulated_in(ranked):
        return DecisionKind.SIMULATED
    if deciding is None or ranked[0].by == JURY:
        return DecisionKind.INCONCLUSIVE
    if deciding.instances < FEW_INSTANCES:
        return DecisionKind.TOO_FEW
    leads = ranked[0].shared_rank_high == 1 and deciding.is_ahead and not _doubt(ranked)
    return DecisionKind.TOLD_APART if leads else DecisionKind.INCONCLUSIVE


def _reasons(
    kind: DecisionKind, ranked: Sequence[ModelRow], deciding: DifferenceRow | None
) -> Iterator[Note | None]:
    """Yield the difference that decides, and why it does not where it does not."""
    leader = ranked[0]
    if raters := simulated_in(ranked):
        yield note(*SIMULATED, raters=raters)
    if leader.by == JURY:
        yield note(
            "by_jury_alone",
            "these are the jury's scores alone, and a jury may favour a model: what clinicians "
            "would say is not known",
        )
    if deciding is not None:
        is_known = math.isfinite(deciding.low)
        ends = "(95 % interval {low:z.3f} to {high:z.3f})" if is_known else "(no interval)"
        yield note(
            "models_differ",
            "the macro-averages of {first} and {second} differ by {difference:.3f} " + ends,
            first=deciding.first,
            second=deciding.second,
            difference=deciding.difference,
            low=deciding.low if is_known else None,
            high=deciding.high if is_known else None,
        )
    if kind is DecisionKind.TOLD_APART:
        yield leader.told("other_instances")
    elif kind is DecisionKind.TOO_FEW and deciding is not None:
        words = "a mean rests on {instances:instance} of a benchmark, fewer than {least}"
        figures = {"instances": deciding.instances, "least": FEW_INSTANCES}
        yield note("few_on_benchmark", words, **figures)
    elif kind is DecisionKind.INCONCLUSIVE:
        yield from _inconclusive(leader, deciding)
        if others := _on_other_benchmarks(ranked):
            words = "scored on other benchmarks, and so not comparable: {models}"
            yield note("other_benchmarks", words, models=others)


def _inconclusive(leader: ModelRow, deciding: DifferenceRow | None) -> Iterator[Note]:
    if deciding is None or deciding.second not in leader.not_told_apart:
        return
    if deciding.is_ahead:
        yield note(
            "win_rate_elsewhere",
            "{model} has the lower macro-average but not the lower win rate: the two figures "
            "disagree",
            model=deciding.second,
        )
    elif deciding.low <= 0 <= deciding.high:
        yield note("gap_spans_zero", "the interval includes 0")
    elif deciding.p_holm >= LEVEL:
        words = "p is {p:.3f} when corrected for all pairs of models"
        yield note("not_after_holm", words, p=deciding.p_holm)


def _on_other_benchmarks(ranked: Sequence[ModelRow]) -> list[str]:
    return [row.model for row in ranked[1:] if row.without != ranked[0].without]


def _next(
    kind: DecisionKind, ranked: Sequence[ModelRow], deciding: DifferenceRow | None
) -> Note | None:
    """Return the next useful action."""
    if kind is DecisionKind.SIMULATED:
        return note(*DO_REAL_RATERS)
    if ranked[0].by == JURY:
        return note(
            "do_compare_with_clinicians",
            "compare by the clinicians' ratings, or by the jury corrected with them",
        )
    if kind is DecisionKind.TOLD_APART:
        return None
    if deciding is None or (deciding.is_ahead and _on_other_benchmarks(ranked)):
        return note("do_score_same_benchmarks", "have all models scored on the same benchmarks")
    if kind is DecisionKind.TOO_FEW:
        return note(
            "do_rate_each_benchmark",
            "have clinicians rate responses to at least {least} instances of each benchmark; one "
            "has {instances}",
            least=FEW_INSTANCES,
            instances=deciding.instances,
        )
    if _doubt(ranked):
        action = "have clinicians rate a random sample of each model's responses"
        return note("do_rate_a_sample", action)
    if deciding.is_ahead:
        action = "look at the benchmarks one by one: each model is better on some of them"
        return note("do_see_benchmarks", action)
    return note("do_rate_more_of_each", "have clinicians rate more responses of each model")
