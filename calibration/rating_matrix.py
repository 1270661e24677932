"""The analysed set as a matrix, responses by raters: composites, z within raters, and hidden repeats."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from calibration.scores import Array, Flags, Integers, RubricShape, Scores, ends_of, spelled

FLAT = 1e-9  # a spread below this share of the largest score is rounding, not judgement
RESPONSE = ["response_id", "instance_id", "benchmark", "rater", "kind"]
RATING = [*RESPONSE, "pass_", "replicate"]
READING = ["response_id", "instance_id", "benchmark", "rater"]


@dataclass(frozen=True, eq=False)
class RatingMatrix:
    """Composites of the analysed set.

    Attributes
    ----------
    composites : shape (n, raters)
        NaN where a rater has no composite for a response.
    responses : the n response ids
    clusters : shape (n,)
        The instance of each response, numbered from 0.
    raters, kinds : one of each a column
    """

    composites: Array
    responses: tuple[str, ...]
    clusters: Integers
    raters: tuple[str, ...]
    kinds: tuple[str, ...]

    @property
    def n_clusters(self) -> int:
        """Return the number of instances."""
        return int(self.clusters.max()) + 1 if len(self.clusters) else 0

    def columns(self, raters: Iterable[str]) -> Integers:
        """Return the column numbers of some raters."""
        place = {name: column for column, name in enumerate(self.raters)}
        return np.array([place[name] for name in raters], dtype=np.int64)

    def of_kind(self, kind: str) -> Integers:
        """Return the column numbers of one kind of rater."""
        return np.flatnonzero(np.array(self.kinds) == kind)

    def instances(self, rows: Flags) -> int:
        """Return how many instances some responses come from."""
        return len(np.unique(self.clusters[rows]))

    def of_columns(self, columns: Integers) -> "RatingMatrix":
        """Return the matrix with some columns alone; responses and instances stay."""
        return replace(
            self,
            composites=self.composites[:, columns],
            raters=tuple(self.raters[column] for column in columns),
            kinds=tuple(self.kinds[column] for column in columns),
        )

    def only(self, rows: Flags) -> "RatingMatrix":
        """Return a matrix of the same shape and instances without the composites of other rows."""
        return replace(self, composites=np.where(rows[:, None], self.composites, np.nan))


def analysed_grid(
    values: pd.DataFrame,
    benchmarks: Sequence[str],
    *,
    jurors: Sequence[str],
    metrics: Sequence[str],
    unrated: bool = False,
) -> RatingMatrix:
    """Return the responses of some benchmarks that a clinician rated with a composite.

    Parameters
    ----------
    values : DataFrame
        As in `composite.Composites.values`.
    benchmarks : which benchmarks, pooled
    jurors, metrics : which of them get a column, even an empty one
    unrated : the responses that jurors or metrics alone rated, too

    Clinicians have a column if they rated one of the responses. Columns: clinicians,
    jurors, metrics; the clinicians in alphabetical order, the others in the order given.
    """
    chosen = values[values["benchmark"].isin(list(benchmarks))]
    clinical = chosen[chosen["kind"] == "clinician"]
    clinicians = sorted(clinical["rater"].unique())
    known = chosen if unrated else clinical
    instances = known.drop_duplicates("response_id").set_index("response_id")["instance_id"]
    instances = instances.sort_index()
    raters = [*clinicians, *jurors, *metrics]
    wide = chosen.pivot(index="response_id", columns="rater", values="composite")
    table = wide.reindex(index=instances.index, columns=raters)
    _, clusters = np.unique(instances.to_numpy(dtype=str), return_inverse=True)
    kinds = ["clinician"] * len(clinicians) + ["juror"] * len(jurors) + ["metric"] * len(metrics)
    return RatingMatrix(
        composites=table.to_numpy(dtype=np.float64),
        responses=tuple(instances.index),
        clusters=clusters.astype(np.int64),
        raters=tuple(raters),
        kinds=tuple(kinds),
    )


def z_within_raters(composites: Array) -> Array:
    """Return (c - mean) / sd of each column over its own composites, with ddof 1.

    Parameters
    ----------
    composites : shape (n, raters), NaN where missing

    Returns
    -------
    shape (n, raters)
        NaN where missing, and throughout for a rater without variance (all composites
        equal, or fewer than two): such a rater has no z.
    """
    flat = without_variance(composites)
    z = np.full_like(composites, np.nan)
    usable = composites[:, ~flat]
    if usable.size:
        mean = np.nanmean(usable, axis=0)
        z[:, ~flat] = (usable - mean) / np.nanstd(usable, axis=0, ddof=1)
    return z


def without_variance(composites: Array) -> Flags:
    """Return which columns hold fewer than two composites or only equal ones."""
    low = np.nanmin(composites, axis=0, initial=np.inf)
    high = np.nanmax(composites, axis=0, initial=-np.inf)
    largest = np.nanmax(np.abs(composites), axis=0, initial=0.0)
    few = (~np.isnan(composites)).sum(axis=0) < 2
    flat: Flags = few | (high - low <= FLAT * largest)
    return flat


def mean_of_given(values: Array) -> Array:
    """Return the mean of each row over what is not NaN; NaN for an empty row."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Mean of empty slice", RuntimeWarning)
        mean: Array = np.nanmean(values, axis=1) if values.shape[1] else _empty(len(values))
    return mean


def _empty(rows: int) -> Array:
    return np.full(rows, np.nan)


@dataclass(frozen=True, eq=False)
class Composites:
    """Composites, and how many readings were too incomplete to have one.

    Attributes
    ----------
    values : DataFrame
        response_id, instance_id, benchmark, rater, kind, composite: at most one row a
        rater and response.
    incomplete : DataFrame
        benchmark, rater, readings: how many lack a criterion of the rubric.
    """

    values: pd.DataFrame
    incomplete: pd.DataFrame


def composites(scores: Scores, criterion: str | None = None) -> Composites:
    """Average each reading over the rubric's criteria, then a rater's repeats of a response.

    c[r, i] is the mean over the criteria of the benchmark's rubric that apply; where their scales
    differ, of (score - min) / (max - min). A reading that lacks one of them, or could not tell one,
    has no composite and is counted instead. Hidden repeats and replicates are
    then averaged, so that a rater has one composite a response. A metric is not on the
    rubric: its composite is the mean of its own criteria, usually one.

    Parameters
    ----------
    scores : Scores
    criterion : str, optional
        Take this criterion alone instead of the mean; benchmarks whose rubric lacks it
        then have no composites. Metrics are unchanged.
    """
    judged = scores.ratings[scores.ratings["kind"] != "metric"]
    required = required_criteria(scores.rubrics, criterion)
    if criterion is None:
        judged = judged.assign(score=on_shared_scale(judged, scores.rubrics))
    readings = _readings(judged, required, scores.instead)
    complete = readings[readings["complete"]]
    metrics = scores.ratings[scores.ratings["kind"] == "metric"]
    measured = metrics.dropna(subset=["score"]).groupby(RATING, sort=False)["score"].mean()
    measured_table = measured.rename("composite").reset_index()
    columns = [*RATING, "composite"]
    parts = [part[columns] for part in (complete, measured_table) if len(part)]
    every = pd.concat(parts) if parts else complete[columns]
    composite = every.groupby(RESPONSE)["composite"].mean()
    short = readings[~readings["complete"]]
    incomplete = short.groupby(["benchmark", "rater"]).size().reset_index(name="readings")
    return Composites(composite.reset_index(), incomplete)


def required_criteria(
    rubrics: Mapping[str, RubricShape], criterion: str | None
) -> dict[str, tuple[str, ...]]:
    """Return the criteria a composite needs on each benchmark that can have one."""
    if criterion is None:
        return {name: shape.criteria for name, shape in rubrics.items()}
    return {name: (criterion,) for name, shape in rubrics.items() if criterion in shape.criteria}


def on_shared_scale(judged: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> "pd.Series[float]":
    """Return scores as they count in a composite: where scales differ, as a share of their own."""
    score = judged["score"].astype(float)
    mixed = [name for name, shape in rubrics.items() if shape.scales]
    if not mixed:
        return score
    low, high = ends_of(judged, rubrics)
    return score.where(~judged["benchmark"].isin(mixed), (score - low) / (high - low))


def _readings(
    judged: pd.DataFrame, required: Mapping[str, tuple[str, ...]], instead: pd.DataFrame
) -> pd.DataFrame:
    judged = judged[judged["benchmark"].isin(list(required))]
    required_pairs = pd.MultiIndex.from_tuples(
        [(name, criterion) for name, criteria in required.items() for criterion in criteria],
        names=["benchmark", "criterion"],
    )
    is_required = pd.MultiIndex.from_frame(judged[["benchmark", "criterion"]]).isin(required_pairs)
    # A score off the rubric becomes missing, so that its reading is still seen and counted.
    read = judged.assign(composite=judged["score"].astype(float).where(is_required))
    grouped = read.groupby(RATING, sort=False)["composite"]
    readings = grouped.agg(["mean", "count"]).reset_index().rename(columns={"mean": "composite"})
    needed = readings["benchmark"].map({name: len(own) for name, own in required.items()})
    complete = readings["count"] == needed
    if len(instead):
        inapplicable = _inapplicable(instead, required_pairs)
        known = readings.merge(inapplicable, how="left", on=RATING)["inapplicable"].fillna(0)
        complete = (readings["count"] > 0) & (readings["count"] + known.to_numpy() == needed)
    return readings.assign(complete=complete)


def _inapplicable(instead: pd.DataFrame, required_pairs: pd.MultiIndex) -> pd.DataFrame:
    """Return how many of the required criteria do not apply, a row a reading that has one."""
    is_required = pd.MultiIndex.from_frame(instead[["benchmark", "criterion"]]).isin(required_pairs)
    own = spelled(instead[is_required & (instead["answer"] == "not_applicable")])
    return own.groupby(RATING, sort=False).size().rename("inapplicable").reset_index()


@dataclass(frozen=True, eq=False)
class Repeats:
    """The hidden repeats: clinicians' scores of responses that they were shown a second time.

    Attributes
    ----------
    composites : DataFrame
        response_id, instance_id, benchmark, rater, first, again: a row a repeat with a
        composite both times.
    scores : DataFrame
        The same columns and criterion: a row a criterion scored both times.
    unpaired : DataFrame
        response_id, instance_id, benchmark, rater of repeats without a composite both times.
    """

    composites: pd.DataFrame
    scores: pd.DataFrame
    unpaired: pd.DataFrame

    def __bool__(self) -> bool:
        """Return whether there is any hidden repeat."""
        return len(self.composites) + len(self.unpaired) > 0

    def of(self, benchmarks: list[str]) -> "Repeats":
        """Return the repeats of some benchmarks."""
        parts = (self.composites, self.scores, self.unpaired)
        return Repeats(*(part[part["benchmark"].isin(benchmarks)] for part in parts))


@dataclass(frozen=True)
class Same:
    """How many single scores were given twice, and which share was the same or a point off."""

    scores: int
    exact: float
    within_one: float


def repeats(scores: Scores, criterion: str | None = None) -> Repeats:
    """Pair every clinician's first reading (pass 0) with the hidden repeat (pass 1).

    Composites are of the rubric's criteria, or of one criterion, as in
    `composites`; several replicates of one pass are averaged.

    Parameters
    ----------
    scores : Scores
    criterion : str, optional
        Take this criterion alone instead of the mean of the rubric's criteria.

    Returns
    -------
    Repeats
        Its tables are empty where nothing was rated a second time.
    """
    required = required_criteria(scores.rubrics, criterion)
    required_pairs = [(benchmark, name) for benchmark, names in required.items() for name in names]
    own = spelled(scores.ratings[scores.ratings["kind"] == "clinician"])
    if criterion is None:
        own = own.assign(score=on_shared_scale(own, scores.rubrics))
    is_required = pd.MultiIndex.from_frame(own[["benchmark", "criterion"]]).isin(required_pairs)
    read = own[is_required].dropna(subset=["score"])
    passes = [
        read[read["pass_"] == number].groupby([*READING, "criterion"])["score"].mean()
        for number in (0, 1)
    ]
    both = pd.concat(passes, axis=1, keys=["first", "again"]).astype(float)
    repeated = both[both["again"].notna()].reset_index()
    means = repeated.dropna().groupby(READING)[["first", "again"]].mean()
    counts = repeated.dropna().groupby(READING).size()
    needed = means.index.get_level_values("benchmark").map({k: len(v) for k, v in required.items()})
    complete = means[counts.to_numpy() == np.asarray(needed)]
    readings = pd.MultiIndex.from_frame(repeated[READING].drop_duplicates())
    unpaired = readings.difference(complete.index).to_frame(index=False)
    return Repeats(complete.reset_index(), repeated.dropna(), unpaired)


def same_scores(scores: pd.DataFrame) -> Same:
    """Return how often single scores were the same, and at most a point apart; NaN of none."""
    apart = (scores["first"] - scores["again"]).abs()
    exact, within = (float((apart <= most + FLAT).mean()) for most in (0, 1))
    return Same(len(apart), exact, within)
