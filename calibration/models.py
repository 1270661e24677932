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
from calibration.icc import Interval
from calibration.intervals import Difference
from calibration.notes import Note, note, noted, simulated_in, undefined
from calibration.predicting import (
    UNLIKE,
    means_of_both,
    prediction_powered_mean,
    standardised_difference,
)
from calibration.rating_matrix import composites, required_criteria
from calibration.scope import checked_jury
from calibration.scores import Array, Flags, Integers, Scores
from calibration.shared_notes import DO_REAL_RATERS, NOTHING_SCORED, SIMULATED
from calibration.tables.models import (
    CLINICIANS,
    CORRECTED,
    FEW_INSTANCES,
    JURY,
    WAYS,
    DifferenceRow,
    ModelRow,
)
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput, TooFew

ROUNDING = 1e-9  # means, and ends of intervals, that are closer differ by rounding only
LEAST_RATED = 5  # instances of a model and benchmark; with fewer the correction is a guess
COMPARED_BY = {
    CLINICIANS: "rated by clinicians",
    JURY: "scored by the jury",
    CORRECTED: "scored by the jury, corrected with the clinicians' ratings of {rated} of them",
}


@dataclass(frozen=True)
class ModelComparison:
    """Models compared, by each way of scoring.

    Attributes
    ----------
    rows : models by win rate, the best first, for each way of scoring
    differences : between the macro-averages of all pairs of models, for each way of scoring
    decision : whether a model leads
    n_both : responses that both clinicians and the jury scored
    benchmarks : those compared; benchmarks that lack the criterion are left out
    """

    rows: tuple[ModelRow, ...]
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
    and of differences are by t (`Estimate.contrast`), those of win rates from resamples, the same
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
    jurors = options.jurors or ()
    frame = model_scores(scores, authors, jurors, options.criterion)
    compared = tuple(sorted(frame["benchmark"].unique()))
    left_out = [name for name in scores.benchmarks if name not in compared]
    words = "no such criterion: {benchmarks} left out"
    criterion = note("criterion_left_out", words, benchmarks=left_out) if left_out else None
    rows: list[ModelRow] = []
    differences: list[DifferenceRow] = []
    for done, way in enumerate(by, start=1):
        found = estimate(frame, way)
        own = difference_rows(found)
        raters = {*(jurors if way != CLINICIANS else ())}
        raters |= {*(scores.raters("clinician") if way != JURY else ())}
        not_random = _not_random(frame) if way == CORRECTED else None
        on_all = noted(criterion, not_random, remarks.simulated(scores.simulated & raters))
        rows += _model_rows(frame, found, own, categories, options, on_all)
        differences += own
        tick(done / len(by))
    n_both = int(frame[[CLINICIANS, JURY]].notna().all(axis=1).sum())
    return ModelComparison(
        tuple(rows), tuple(differences), decide(rows, differences), n_both, compared
    )


def check_comparison(scores: Scores, options: AnalysisOptions, by: Sequence[str] = WAYS) -> None:
    """Raise the BadInput or Unknown that `compare_models` would, without reading any author."""
    checked_jury(scores, options)
    if options.reps < 1 or options.seed < 0:
        raise BadInput(f"reps={options.reps}, seed={options.seed}: at least 1, and 0 or more")
    if unknown := [way for way in by if way not in WAYS]:
        raise BadInput(f"by={unknown[0]}: it is {', '.join(WAYS)}")
    if not options.jurors and {JURY, CORRECTED} & {*by}:
        raise BadInput("there is no jury to compare by: no juror has rated anything in this study")


def mean_of_defined(values: Array, needed: Flags | None = None) -> Array:
    """Return the mean over the last axis of what is not NaN; NaN where all is.

    With `needed`, it is the mean of those that are True there, NaN if any of them is.
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
    wins = np.full_like(means, -0.5)  # each is also compared with itself: half a win
    for model in range(means.shape[-2]):
        difference = means - means[..., model : model + 1, :]
        wins += (difference > ROUNDING) + 0.5 * (np.abs(difference) <= ROUNDING)
    opponents = (~np.isnan(means)).sum(axis=-2, keepdims=True) - 1
    defined = ~np.isnan(means) & (opponents > 0)
    return np.where(defined, wins / np.maximum(opponents, 1), np.nan)


def win_rates(means: Array) -> Array:
    """Return the mean of `benchmark_win_rates` over the benchmarks where a model has one, as in HELM."""
    return mean_of_defined(benchmark_win_rates(means))


def model_scores(
    scores: Scores, authors: Mapping[str, str], jurors: Sequence[str], criterion: str | None = None
) -> pd.DataFrame:
    """Return every response with its model, the clinicians' mean and the jury's.

    These are raw composites, (score - low) / (high - low) of the scale, as in the paper's Table 1:
    from 1 to 5 it is (x - 1) / 4. z within raters would remove differences between models. The
    jury has a score only where all its jurors have a composite. Parameters are as in
    `compare_models`; no jurors are no jury.

    Returns
    -------
    DataFrame
        benchmark, instance (numbered from 0 within its benchmark), model, clinicians and jury:
        from 0, the worst, to 1, the best; NaN where there is none.

    Raises
    ------
    BadInput, TooFew
        If a response has no author; if the study has no responses.
    """
    names = required_criteria(scores.rubrics, criterion)
    responses = scores.responses[scores.responses["benchmark"].isin(list(names))]
    if not len(responses):
        raise TooFew("the study has no responses to compare models by")
    ids = responses["response_id"]
    if without_author := [name for name in ids if name not in authors]:
        raise BadInput(
            f"{len(without_author)} responses, {without_author[0]} first, have no author in the study"
        )
    means = means_of_both(composites(scores, criterion).values, jurors, len(set(jurors)))
    shapes = [scores.rubrics[name] for name in responses["benchmark"]]
    low, high = np.array([shape.ends(criterion) for shape in shapes], dtype=np.float64).T
    of_instances = responses.groupby("benchmark", observed=True)["instance_id"]
    instances = of_instances.transform(lambda own: pd.factorize(own, sort=True)[0])
    frame = pd.DataFrame(
        {
            "benchmark": responses["benchmark"].astype(str),
            "instance": instances.astype(int),
            "model": ids.map(dict(authors)).astype(str),
        }
    )
    for who in (CLINICIANS, JURY):
        frame[who] = (means[who].reindex(ids).to_numpy() - low) / (high - low)
    return frame.reset_index(drop=True)


@dataclass(frozen=True, eq=False)
class Estimate:
    """The means of models by one way of scoring, and what each instance adds to their errors.

    A mean is the sum of two ratios, of sums to numbers of responses: of the scores, which of
    "corrected" are what the clinicians' lie above the jury's weighted ones; and of the jury's
    weighted scores of responses that no clinician rated, 0 but of "corrected".

    Attributes
    ----------
    models, benchmarks : their names in alphabetical order
    means : shape (models, benchmarks), NaN where there is none
    sums, numbers : of both, shape (2, benchmarks, instances, models)
    sizes : how many instances each benchmark has
    spent : degrees of freedom that a mean takes, (models, benchmarks): 1, and 1 for a jury's weight
    counted : shape (responses,), True where a response's score enters
    """

    by: str
    models: list[str]
    benchmarks: list[str]
    means: Array
    sums: Array
    numbers: Array
    sizes: list[int]
    spent: Integers
    counted: Flags

    @property
    def instances(self) -> Integers:
        """Instances with a score, (models, benchmarks); of "corrected" those that clinicians rated."""
        instances: Integers = (self.numbers[0] > 0).sum(axis=1).T
        return instances

    def contrast(self, signs: Mapping[int, float], on: Flags) -> Difference:
        """Return a sum of models' means over some benchmarks, with its interval and the p of 0.

        It is t times the error between instances: each instance adds (sum - mean number) / total
        of every model with its sign, enlarged by sqrt(G / (G - 1)) for G instances, or G - 2 where
        they also gave the jury's weight, and the squares of what instances add are summed. With
        one response of both models to each instance of one benchmark it is the paired t interval.
        Degrees of freedom are Satterthwaite's, of ratios and benchmarks with G - 1 or G - 2 each.

        Parameters
        ----------
        signs : number of a model -> 1, or -1 where its mean is subtracted
        on : shape (benchmarks,), those on which all these models have a mean

        Returns
        -------
        Difference
            Without interval and p where no instance adds anything, or one has a single instance.

        References
        ----------
        Cochran (1977), Sampling Techniques, chapter 6: the error of a ratio. Satterthwaite (1946),
        Biometrics Bulletin 2, 110.
        """
        models, sign, places = [*signs], np.array([*signs.values()]), np.flatnonzero(on)
        if not len(places):
            return Difference()
        value = sum(sign * self.means[models][:, places].mean(axis=1))
        if self.instances[models][:, places].min() < 2:
            return Difference(value)
        sums, numbers = (one[:, places][..., models] for one in (self.sums, self.numbers))
        totals, groups = numbers.sum(axis=2), (numbers > 0).sum(axis=2)
        off = sums - (sums.sum(axis=2) / totals)[:, :, None] * numbers
        left = np.stack([groups[0] - self.spent[models][:, places].T, groups[1] - 1])
        left = np.maximum(left, 1)
        moves = (off * (np.sqrt(groups / left) / totals)[:, :, None]) @ sign / len(places)
        error = float(np.linalg.norm(moves.sum(axis=0)))
        if not error > ROUNDING:
            return Difference(value)
        parts = (moves**2).sum(axis=2)
        of_t = float(parts.sum() ** 2 / (parts**2 / left.min(axis=2)).sum())
        half = float(special.stdtrit(of_t, 0.975)) * error
        p = 2 * float(special.stdtr(of_t, -abs(value) / error))
        return Difference(value, value - half, value + half, p)


def estimate(frame: pd.DataFrame, by: str) -> Estimate:
    """Return a model's mean on a benchmark as clinicians, the jury, or both together give it.

    "clinicians" and "jury" are the means over the responses that have such a score. "corrected" is
    the prediction-powered mean of the model's own responses to the benchmark
    (`predicting.prediction_powered_mean`): the jury's mean on the responses that no clinician
    rated, corrected by the difference of clinicians and jury on those that both rated, for each
    model by itself. Where clinicians rated all of a model's responses it is their mean; else it is
    NaN with fewer than 5 rated instances. In resamples the weight of the jury is fixed.

    `frame` is as `model_scores` returns it.
    """
    model, models = pd.factorize(frame["model"], sort=True)
    benchmark, benchmarks = pd.factorize(frame["benchmark"], sort=True)
    instance = frame["instance"].to_numpy()
    clinicians, jury = (frame[who].to_numpy(dtype=np.float64) for who in (CLINICIANS, JURY))
    spent = np.ones((len(models), len(benchmarks)), dtype=np.int64)
    scores = np.full((2, len(frame)), np.nan)
    scores[0] = jury if by == JURY else clinicians
    for place in np.ndindex(*spent.shape) if by == CORRECTED else ():
        own = (model == place[0]) & (benchmark == place[1])
        weight = _jury_weight(clinicians[own], jury[own], instance[own])
        if weight is None:  # clinicians rated all
            continue
        scores[0, own] = clinicians[own] - weight * jury[own]
        scores[1, own] = np.where(np.isnan(clinicians[own]), weight * jury[own], np.nan)
        spent[place] += weight > 0
    sizes = pd.Series(instance).groupby(benchmark).max() + 1
    sums = np.zeros((2, len(benchmarks), sizes.max(), len(models)))
    numbers = np.zeros_like(sums)
    for term, values in enumerate(scores):
        known = ~np.isnan(values)
        at = benchmark[known], instance[known], model[known]
        np.add.at(sums[term], at, values[known])
        np.add.at(numbers[term], at, 1.0)
    is_none = ~sums[1].any(axis=1, keepdims=True)  # then 0 / 1 in every resample, never 0 / 0
    numbers[1] = np.where(is_none, 1.0, numbers[1])
    with np.errstate(invalid="ignore"):
        means = (sums.sum(axis=2) / numbers.sum(axis=2)).sum(axis=0).T
    counted = ~np.isnan(scores).all(axis=0)
    return Estimate(by, [*models], [*benchmarks], means, sums, numbers, [*sizes], spent, counted)


def _jury_weight(clinicians: Array, jury: Array, instances: Integers) -> float | None:
    """Return the jury's weight for a model's responses to a benchmark.

    None where clinicians rated all, NaN where there are too few that both scored.
    """
    if not np.isnan(clinicians).any():
        return None
    own = ~np.isnan(jury)
    if len(np.unique(instances[own & ~np.isnan(clinicians)])) < LEAST_RATED:
        return NAN
    return prediction_powered_mean(clinicians[own], jury[own], instances[own]).weight


def win_rate_replicates(found: Estimate, options: AnalysisOptions) -> Array:
    """Return win rates in resamples of the instances of each benchmark, shape (reps, models).

    NaN where one of the study's win rates is undefined in the resample, and in all resamples where a
    mean rests on one instance, which would make them all equal.
    """
    has_rate = ~np.isnan(benchmark_win_rates(found.means))
    cells = max(sum(found.sizes), len(found.models) * found.means.size)
    streams = []
    for at, size in enumerate(found.sizes):
        seed = int(np.random.SeedSequence([options.seed, at]).generate_state(1)[0])
        streams.append(draw_counts(size, reps=options.reps, seed=seed, rows=cells))
    lots = []
    for counts in zip(*streams, strict=True):
        with np.errstate(invalid="ignore"):
            means = [
                (n @ found.sums[:, at, : n.shape[1]] / (n @ found.numbers[:, at, : n.shape[1]]))
                for at, n in enumerate(counts)
            ]
        rates = benchmark_win_rates(np.stack(means, axis=-1).sum(axis=0))
        lots.append(mean_of_defined(rates, has_rate))
    replicates = np.concatenate(lots)
    replicates[:, (found.instances == 1).any(axis=1)] = np.nan
    return replicates


def difference_rows(found: Estimate) -> list[DifferenceRow]:
    """Return the difference of every two models whose means are of the same benchmarks, the higher first."""
    macro, wins = mean_of_defined(found.means), win_rates(found.means)
    has_mean, instances = ~np.isnan(found.means), found.instances
    rows = []
    for first, second in combinations(np.lexsort((-wins, -macro)), 2):
        on = has_mean[first]
        if not on.any() or (on != has_mean[second]).any():
            continue
        apart = found.contrast({first: 1.0, second: -1.0}, on)
        rows.append(
            DifferenceRow(
                *(found.by, found.models[first], found.models[second]),
                *(apart.value, apart.low, apart.high, apart.p),
                instances=int(instances[[first, second]][:, on].min()),
            )
        )
    corrected = holm(np.array([row.p for row in rows]))
    return [replace(row, p_holm=float(p)) for row, p in zip(rows, corrected, strict=True)]


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
    frame: pd.DataFrame,
    found: Estimate,
    differences: Sequence[DifferenceRow],
    categories: Mapping[str, str],
    options: AnalysisOptions,
    on_all: Sequence[Note],
) -> list[ModelRow]:
    """Return a row for each model, by win rate and then by macro-average, the best first."""
    wins, macro = win_rates(found.means), mean_of_defined(found.means)
    replicates, sd = win_rate_replicates(found, options), pd.DataFrame(found.means).std(axis=1)
    kinds = np.array([categories.get(name, "") for name in found.benchmarks])
    places = standings(
        {name: rate for name, rate in zip(found.models, wins, strict=True) if rate >= 0},
        differences,
    )
    rows = []
    for model in np.lexsort((-macro, -wins)):
        name, has_mean = found.models[model], ~np.isnan(found.means[model])
        win, mean = (
            _win_rate_interval(found, replicates, model),
            found.contrast({model: 1.0}, has_mean),
        )
        is_own = (frame["model"] == name).to_numpy()
        is_scored = found.counted & is_own
        scored, every = int(is_scored.sum()), int(is_own.sum())
        rank_low, rank_high, alike = places.get(name, (None, None, ()))
        rows.append(
            ModelRow(
                model=name,
                by=found.by,
                win_rate=float(wins[model]),
                win_rate_low=win.low,
                win_rate_high=win.high,
                macro_average=float(macro[model]),
                macro_average_sd=float(sd[model]),
                low=mean.low,
                high=mean.high,
                shared_rank_low=rank_low,
                shared_rank_high=rank_high,
                not_told_apart=alike,
                categories={
                    str(kind): float(mean_of_defined(found.means[model, kinds == kind]))
                    for kind in np.unique(kinds)
                },
                n_benchmarks=int(has_mean.sum()),
                without=_named(found, ~has_mean),
                n_responses=scored,
                n_missing=every - scored,
                n_rated=int((is_scored & frame[CLINICIANS].notna()).sum()),
                notes=noted(
                    remarks.coverage(scored, every, scored, every),
                    *_notes(found, model),
                    remarks.undefined_resamples(replicates[:, model]),
                    *on_all,
                ),
            )
        )
    return rows


def _named(found: Estimate, flags: Flags) -> tuple[str, ...]:
    return tuple(name for name, flag in zip(found.benchmarks, flags, strict=True) if flag)


def _win_rate_interval(found: Estimate, replicates: Array, model: int) -> Interval:
    """Return a win rate's percentile interval; where all resamples agree Wilson's.

    That is as of as many independent comparisons as there are instances: where a model leads clearly
    all resamples agree, which does not make it certain.
    """
    ends = percentile_interval(replicates[:, model])
    if not ends.high - ends.low <= ROUNDING:
        return ends
    rates = benchmark_win_rates(found.means)[model]
    share = float(mean_of_defined(rates))
    ends = wilson(share, float(found.instances[model, ~np.isnan(rates)].sum()))
    return Interval(min(share, ends.low), max(share, ends.high))  # whatever rounding does


def _notes(found: Estimate, model: int) -> Iterator[Note | None]:
    """Yield where a model has no mean, or nothing to compare it with, or not what others have."""
    missing, counts = np.isnan(found.means[model]), found.instances[model]
    reason = undefined(*NOTHING_SCORED)
    if found.by == CORRECTED:
        words = "fewer than {least} instances that clinicians and jury both scored"
        reason = undefined("few_rated_by_both", words, least=LEAST_RATED)
    if missing.all():
        yield reason
        return
    if missing.any():
        yield note(
            "lacks_benchmarks",
            "{why} on {benchmarks}: with a mean on {on} of {of} benchmarks, not comparable with "
            "models, or ways of scoring, that have one there",
            why=reason,
            benchmarks=_named(found, missing),
            on=int((~missing).sum()),
            of=len(missing),
        )
    alone = np.isnan(benchmark_win_rates(found.means)[model]) & ~missing
    if alone.any():
        words = "win rate undefined: no other model has a score on {benchmarks}"
        yield note("no_opponent", words, benchmarks=_named(found, alone))
    scored = (found.numbers[0] > 0).reshape(-1, len(found.models))
    if found.by != CORRECTED and not scored[scored.any(axis=1)].all():
        yield note(
            "other_instances",
            "{common} of its {own:scored instance} have scores for all models: its means are over "
            "other instances than theirs",
            common=int(scored.all(axis=1).sum()),
            own=int(scored[:, model].sum()),
        )
    yield remarks.few_instances(int(counts[~missing].min()))


def _not_random(frame: pd.DataFrame) -> Note | None:
    """Return a note on the benchmarks where the jury scores rated and unrated responses unlike.

    They are unlike if their means differ by over a quarter of a standard deviation
    (`standardised_difference`) and two standard errors, with each model's own mean subtracted
    and the responses to one instance averaged.
    """
    unlike = []
    for name, own in frame.dropna(subset=[JURY]).groupby("benchmark"):
        deviations = own[JURY] - own.groupby("model")[JURY].transform("mean")
        is_rated = own[CLINICIANS].notna()
        rated, rest = (
            deviations[flags].groupby(own["instance"]).mean().to_numpy()
            for flags in (is_rated, ~is_rated)
        )
        size = standardised_difference(rated, rest)
        if abs(size) > UNLIKE and abs(size) > 2 * math.sqrt(1 / len(rated) + 1 / len(rest)):
            unlike.append((name, size))
    words = ", ".join(
        f"{name} ({abs(size):.2f} sd {'better' if size > 0 else 'worse'})" for name, size in unlike
    )
    text = f"rated responses may be no random sample by the jury's scores: {words}"
    return note("not_random", lambda _: text, benchmarks=unlike) if unlike else None


def decide(rows: Sequence[ModelRow], differences: Sequence[DifferenceRow]) -> Decision:
    """Return whether a model leads, by the corrected scores or else by the clinicians'.

    Rows and differences are of all ways of scoring that were asked for; `deciding_way` tells which
    one decides. The decision is "simulated" where any rater behind the scores is; "undefined" where
    fewer than two models are ranked; "told_apart" where the model with the highest macro-average
    can be told apart from every other ranked one (`DifferenceRow.is_ahead`) and has the highest win
    rate; "too_few" where the difference that decides rests on too few instances; else, and always
    by the jury alone, "inconclusive". The estimate is the difference to the next model, or to the
    first that cannot be told apart.
    """
    by, doubt = deciding_way(rows), _doubt(rows)
    ranked = sorted(_ranked(rows, by), key=lambda row: -row.macro_average)
    unranked = [row.model for row in rows if row.by == by and row.shared_rank_low is None]
    words = "not ranked, without comparable scores: {models}"
    not_ranked = note("not_ranked", words, models=unranked) if unranked else None
    if len(ranked) < 2:
        few = note("fewer_than_two", "fewer than two models have means on the same benchmark")
        action = "have clinicians rate responses of at least two models to the same benchmark"
        step = note("do_rate_two_models", action)
        return Decision("models", DecisionKind.UNDEFINED, reasons=noted(few, not_ranked), next=step)
    leader = ranked[0]
    to = {row.second: row for row in differences if (row.by, row.first) == (by, leader.model)}
    in_order = [to[row.model] for row in ranked[1:] if row.model in to]
    not_ahead = [row for row in in_order if row.second in leader.not_told_apart]
    deciding = next(iter(not_ahead or in_order), None)
    kind, reasons, todo = _conclusion(ranked, deciding, _doubt(ranked))
    compared = note(
        "models_compared",
        "{models:model} on {benchmarks:benchmark}, {responses:response} " + COMPARED_BY[by],
        by=by,
        models=len(ranked),
        benchmarks=max(row.n_benchmarks for row in ranked),
        responses=sum(row.n_responses for row in ranked),
        rated=sum(row.n_rated for row in ranked),
    )
    return Decision(
        "models",
        kind,
        estimate=deciding.difference if deciding else NAN,
        low=deciding.low if deciding else NAN,
        high=deciding.high if deciding else NAN,
        reasons=noted(*reasons, doubt, not_ranked),
        basis=(compared,),
        next=todo,
        names=(leader.model,),
    )


def deciding_way(rows: Sequence[ModelRow]) -> str:
    """Return the way of scoring that `decide` uses.

    The corrected scores, where they have as many means as the clinicians' and the rated responses
    are not in doubt as a sample; else the clinicians'; the jury's where nothing else was asked for.
    """
    ways = {row.by for row in rows}
    if ways == {JURY}:
        return JURY
    clinical, corrected = _ranked(rows, CLINICIANS), _ranked(rows, CORRECTED)
    means, of_both = (sum(row.n_benchmarks for row in own) for own in (clinical, corrected))
    if len(corrected) > 1 and of_both >= means and not _doubt(corrected):
        return CORRECTED
    by_clinicians = CLINICIANS in ways and (len(clinical) > 1 or len(corrected) < 2)
    return CLINICIANS if by_clinicians else CORRECTED


def _ranked(rows: Sequence[ModelRow], by: str) -> list[ModelRow]:
    return [row for row in rows if row.by == by and row.shared_rank_low is not None]


def _doubt(rows: Sequence[ModelRow]) -> Note | None:
    """Return the note that the rated responses may not be a random sample, or None."""
    return next(filter(None, (row.told("not_random") for row in rows)), None)


def _conclusion(
    ranked: Sequence[ModelRow], deciding: DifferenceRow | None, doubt: Note | None
) -> tuple[DecisionKind, list[Note], Note | None]:
    """Return what may be said of the ranked models, why, and what to do next."""
    leader, differ = ranked[0], [_differ(deciding)] if deciding else []
    if raters := simulated_in(ranked):
        made_up = note(*SIMULATED, raters=raters)
        return DecisionKind.SIMULATED, [made_up, *differ], note(*DO_REAL_RATERS)
    kind = DecisionKind.INCONCLUSIVE
    if leader.by == JURY:
        words = "by the jury's scores alone, and a jury may favour a model: clinicians may differ"
        action = "compare by the clinicians' ratings, or by the jury corrected with them"
        step = note("do_compare_with_clinicians", action)
        return kind, [note("by_jury_alone", words), *differ], step
    if deciding and deciding.instances < FEW_INSTANCES:
        figures = {"instances": deciding.instances, "least": FEW_INSTANCES}
        words = "a mean rests on {instances:instance} of a benchmark, fewer than {least}"
        action = "have clinicians rate responses to at least {least} instances of each benchmark"
        step = note("do_rate_each_benchmark", action, **figures)
        return DecisionKind.TOO_FEW, [*differ, note("few_on_benchmark", words, **figures)], step
    others = [row.model for row in ranked[1:] if row.without != leader.without]
    if others or deciding is None:
        words = "scored on other benchmarks, and so not comparable: {models}"
        step = note("do_score_same_benchmarks", "have all models scored on the same benchmarks")
        return kind, [*differ, note("other_benchmarks", words, models=others)], step
    if doubt:
        action = "have clinicians rate a random sample of each model's responses"
        return kind, differ, note("do_rate_a_sample", action)
    if leader.shared_rank_high == 1:
        return DecisionKind.TOLD_APART, differ, None
    if deciding.is_ahead:
        words = "{model} has the lower macro-average but not the lower win rate: the two disagree"
        action = "look at the benchmarks one by one: each model is better on some of them"
        why = note("win_rate_elsewhere", words, model=deciding.second)
        return kind, [*differ, why], note("do_see_benchmarks", action)
    step = note("do_rate_more_of_each", "have clinicians rate more responses of each model")
    return kind, differ, step


def _differ(deciding: DifferenceRow) -> Note:
    """Return the difference that decides, as a reason."""
    is_known = math.isfinite(deciding.low)
    ends = "(no interval)"
    if is_known:
        ends = "(95 % interval {low:z.3f} to {high:z.3f}; p {p:.3f}, corrected for all pairs)"
    return note(
        "models_differ",
        "the macro-averages of {first} and {second} differ by {difference:.3f} " + ends,
        first=deciding.first,
        second=deciding.second,
        difference=deciding.difference,
        low=deciding.low if is_known else None,
        high=deciding.high if is_known else None,
        p=deciding.p_holm if is_known else None,
    )
