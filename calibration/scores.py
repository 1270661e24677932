"""The ratings of one study and the shape of its rubrics, as calibration takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from calibration.values import COMBINED, real_first
from data.errors import BadInput, OffScale, Unknown

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]
KINDS = ("clinician", "juror", "metric")
RATING_KEY = ["response_id", "rater", "criterion", "pass_", "replicate"]
RATING_COLUMNS = {*RATING_KEY, "instance_id", "benchmark", "kind", "score"}
RESPONSE_COLUMNS = {"response_id", "instance_id", "benchmark"}
INSTEAD_COLUMNS = [*RATING_KEY, "instance_id", "benchmark", "kind", "answer"]


@dataclass(frozen=True)
class RubricShape:
    """The criteria of a rubric, the two ends of its composite's scale, and what it calls unsafe.

    `critical` pairs a criterion with the highest score on it that is unsafe. `scales` has the ends of
    each criterion's own scale where they differ: the composite is then on the scale 0 to 1.
    """

    criteria: tuple[str, ...]
    low: int
    high: int
    critical: tuple[tuple[str, float], ...] = ()
    scales: tuple[tuple[int, int], ...] = ()

    def ends(self, criterion: str | None = None) -> tuple[int, int]:
        """Return the ends of a criterion's scale, or those of the composite's."""
        if criterion is None or not self.scales or criterion not in self.criteria:
            return self.low, self.high
        return self.scales[self.criteria.index(criterion)]

    @property
    def two_point(self) -> tuple[str, ...]:
        """Return the criteria that have two points: passed or failed."""
        return tuple(name for name in self.criteria if self.ends(name)[1] - self.ends(name)[0] == 1)


@dataclass(frozen=True, eq=False)
class Scores:
    """The ratings of one study, as plain values.

    Attributes
    ----------
    ratings : DataFrame
        One row a score: response_id, instance_id (unique over the whole study),
        benchmark, rater (handle), kind ("clinician", "juror" or "metric"), criterion,
        score, pass_ (1 for a hidden repeat, else 0) and replicate. Only the latest
        score of each (response, rater, criterion, pass_, replicate).
    responses : DataFrame
        Every response of the study, rated or not: response_id, instance_id, benchmark.
    rubrics : mapping
        The rubric's shape for every benchmark. Metrics are not on the rubric.
    simulated : frozenset
        Handles of raters that are no real clinician, juror or metric.
    silent : frozenset
        Jurors who were asked and gave no score; they have their seat in a jury all the same.
    groups : mapping
        Name of a group -> response_id -> value, of the responses that are in one.
    specialties : mapping
        Clinician -> specialty, of those who have one.
    instead : DataFrame
        What stands in the place of a score, a row each: as `ratings`, with `answer`
        ("not_applicable" or "cannot_tell") and no `score`. Never a score, never a missing one.

    Raises
    ------
    BadInput
        If a column is missing, a score is given twice, a rater has two kinds or a
        benchmark has no rubric; OffScale if a clinician's or juror's score is off it.
    """

    ratings: pd.DataFrame
    responses: pd.DataFrame
    rubrics: Mapping[str, RubricShape]
    simulated: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    specialties: Mapping[str, str] = field(default_factory=dict)
    instead: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=INSTEAD_COLUMNS))

    def __post_init__(self) -> None:
        _check_columns(self.ratings, RATING_COLUMNS, "ratings")
        _check_columns(self.responses, RESPONSE_COLUMNS, "responses")
        _check_benchmarks(self.responses, self.rubrics)
        _check_known(self.ratings, self.responses)
        _check_once(self.ratings)
        _check_kinds(self.ratings)
        _check_scale(self.ratings, self.rubrics)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Return the benchmarks that have responses, in alphabetical order."""
        return tuple(sorted(self.responses["benchmark"].unique()))

    def members(self, scope: str) -> tuple[str, ...]:
        """Return the benchmarks of a scope: the one of that name, or all of "combined"."""
        return self.benchmarks if scope == COMBINED else (scope,)

    def raters(self, kind: str) -> tuple[str, ...]:
        """Return the handles of one kind of rater, in alphabetical order."""
        rated = set(self.ratings.loc[self.ratings["kind"] == kind, "rater"].unique())
        return tuple(sorted(rated | (self.silent if kind == "juror" else frozenset())))

    def all_jurors(self) -> list[str]:
        """Return the jurors who sit where none are named.

        Real ones never sit with simulated ones.
        """
        return real_first(self.raters("juror"), self.simulated)

    def rated_by(self, kind: str) -> int:
        """Return how many responses some rater of a kind has rated."""
        return int(self.ratings.loc[self.ratings["kind"] == kind, "response_id"].nunique())

    def of(self, benchmark: str) -> "Scores":
        """Return the scores of one benchmark alone.

        Raises
        ------
        Unknown
            If the study has no response of it.
        """
        if benchmark not in self.benchmarks:
            known = ", ".join(self.benchmarks)
            raise Unknown(f"this study has no benchmark {benchmark}: it has {known}")
        tables = (self.ratings, self.responses, self.instead)
        parts = (table[table["benchmark"] == benchmark] for table in tables)
        ratings, responses, instead = (part.reset_index(drop=True) for part in parts)
        return replace(self, ratings=ratings, responses=responses, instead=instead)

    def instead_of(self, raters: Sequence[str], benchmarks: Sequence[str]) -> "pd.Series[int]":
        """Return how often some raters gave each answer in the place of a score, by answer."""
        own = self.instead
        chosen = own["rater"].isin(list(raters)) & own["benchmark"].isin(list(benchmarks))
        return own.loc[chosen, "answer"].value_counts()


def scores_of_table(ratings: pd.DataFrame, scale: tuple[int, int] | None = None) -> Scores:
    """Return ratings as `Scores`, with what one table of them leaves out.

    Parameters
    ----------
    ratings : DataFrame
        response_id, rater, kind and score; where absent, instance_id is the response's, benchmark
        "all", criterion "score", pass_ and replicate 0.
    scale : ends of clinicians' and jurors' scores; the lowest and the highest given where None

    Raises
    ------
    BadInput, OffScale
        As `Scores`.
    """
    _check_columns(ratings, {"response_id", "rater", "kind", "score"}, "ratings")
    rest: dict[str, Any] = {"instance_id": ratings["response_id"], "benchmark": "all"}
    rest |= {"criterion": "score", "pass_": 0, "replicate": 0}
    table = ratings.assign(**{name: of for name, of in rest.items() if name not in ratings})
    judged = table[table["kind"] != "metric"]
    low, high = scale or (floor(judged["score"].min()), ceil(judged["score"].max()))
    shapes = {
        str(name): RubricShape(tuple(own["criterion"].unique()), low, high)
        for name, own in judged.groupby("benchmark")
    }
    responses = table[["response_id", "instance_id", "benchmark"]].drop_duplicates()
    return Scores(table, responses.reset_index(drop=True), shapes)


def spelled(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its names as texts: those of ratings are numbers of a list of names."""
    coded = table.select_dtypes("category").columns
    return table.astype(dict.fromkeys(coded, "str"))


def _check_columns(table: pd.DataFrame, needed: set[str], name: str) -> None:
    if missing := needed - set(table.columns):
        raise BadInput(f"the {name} lack the columns {', '.join(sorted(missing))}")


def _check_benchmarks(responses: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> None:
    if COMBINED in set(responses["benchmark"]):
        raise BadInput(f"no benchmark may be called {COMBINED}: it is the row of all benchmarks")
    if missing := set(responses["benchmark"].unique()) - set(rubrics):
        raise BadInput(f"no rubric for the benchmarks {', '.join(sorted(missing))}")
    if responses["response_id"].duplicated().any():
        raise BadInput("the responses name a response_id twice")


def _check_known(ratings: pd.DataFrame, responses: pd.DataFrame) -> None:
    keys = ["response_id", "instance_id", "benchmark"]
    matched = ratings[keys].drop_duplicates().merge(responses[keys], how="left", indicator=True)
    lost = matched.loc[matched["_merge"] == "left_only", "response_id"]
    if len(lost):
        raise BadInput(
            f"{len(lost)} rated responses, {lost.iloc[0]} first, are not among the responses "
            "with that instance and benchmark"
        )


def _check_once(ratings: pd.DataFrame) -> None:
    twice = ratings.duplicated(RATING_KEY)
    if twice.any():
        row = ratings[twice].iloc[0]
        raise BadInput(
            f"{row['rater']} has two scores for {row['criterion']} on {row['response_id']}: "
            "hand over only the latest of each pass and replicate"
        )


def _check_kinds(ratings: pd.DataFrame) -> None:
    if odd := set(ratings["kind"].unique()) - set(KINDS):
        raise BadInput(f"unknown kinds of rater: {', '.join(sorted(map(str, odd)))}")
    kinds = ratings[["rater", "kind"]].drop_duplicates()
    if (double := kinds["rater"].duplicated()).any():
        raise BadInput(f"{kinds.loc[double, 'rater'].iloc[0]} is two kinds of rater at once")


def ends_of(
    judged: pd.DataFrame, rubrics: Mapping[str, RubricShape]
) -> tuple["pd.Series[float]", "pd.Series[float]"]:
    """Return the ends of the scale that each row's score is on, by benchmark and criterion."""
    ends = [
        judged["benchmark"].map({name: shape.ends()[n] for name, shape in rubrics.items()})
        for n in (0, 1)
    ]
    low, high = (own.astype(float) for own in ends)
    for name, shape in rubrics.items():
        for criterion, own in zip(shape.criteria, shape.scales, strict=False):
            here = (judged["benchmark"] == name) & (judged["criterion"] == criterion)
            low, high = low.mask(here, float(own[0])), high.mask(here, float(own[1]))
    return low, high


def _check_scale(ratings: pd.DataFrame, rubrics: Mapping[str, RubricShape]) -> None:
    judged = ratings[ratings["kind"] != "metric"]
    low, high = ends_of(judged, rubrics)
    score = judged["score"].astype(float)
    off = judged[(score < low) | (score > high)]
    if len(off):
        row = off.iloc[0]
        raise OffScale(
            f"{row['criterion']}={row['score']:g} by {row['rater']} on {row['response_id']} "
            f"is off the scale of {row['benchmark']}"
        )
