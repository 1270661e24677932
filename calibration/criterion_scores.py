"""The scores of responses, criterion by criterion: of those that a clinician rated, or of all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from calibration.agreement import PanelColumns
from calibration.notes import Figures, Note, filled, note, quoted
from calibration.rating_matrix import FLAT, mean_of_given
from calibration.scores import Array, Flags, Integers, Scores
from calibration.values import COMBINED

LEAST_ALIKE = 5  # responses: fewer may well deserve the same score


@dataclass(frozen=True, eq=False)
class CriterionScores:
    """Scores in points, a rater's repeats and replicates averaged.

    Attributes
    ----------
    values : shape (n, raters, criteria), NaN where there is none
    measured : shape (n, metrics), each metric's mean over its own criteria
    responses, instances, benchmarks : of the n responses that a clinician scored on any criterion,
        or of all if they were asked for
    raters : clinicians, then the jurors asked for
    n_clinicians : how many of the raters are clinicians
    criteria, metrics : names
    """

    values: Array
    measured: Array
    responses: tuple[str, ...]
    instances: Sequence[str]
    benchmarks: Sequence[str]
    raters: tuple[str, ...]
    n_clinicians: int
    criteria: tuple[str, ...]
    metrics: tuple[str, ...]

    def of(self, rows: Flags) -> "CriterionScores":
        """Return the scores of some responses."""
        places = np.flatnonzero(rows).tolist()
        names = (self.responses, self.instances, self.benchmarks)
        responses, instances, benchmarks = ([own[place] for place in places] for own in names)
        return CriterionScores(
            self.values[rows],
            self.measured[rows],
            tuple(responses),
            instances,
            benchmarks,
            self.raters,
            self.n_clinicians,
            self.criteria,
            self.metrics,
        )

    def clusters(self) -> Integers:
        """Return the instance of each response, numbered from 0, shape (n,)."""
        _, numbers = np.unique(
            np.array(self.instances, dtype=object).astype(str), return_inverse=True
        )
        return numbers.astype(np.int64)

    def of_raters(self, criterion: str, raters: Sequence[str]) -> Array:
        """Return some raters' scores on a criterion, shape (n, raters)."""
        columns = [self.raters.index(name) for name in raters]
        return self.values[:, columns, self.criteria.index(criterion)]

    def of_clinicians(self, criterion: str) -> Array:
        """Return the clinicians' scores on a criterion, shape (n, clinicians)."""
        return self.values[:, : self.n_clinicians, self.criteria.index(criterion)]

    def of_jury(self, criterion: str, jury: PanelColumns) -> Array:
        """Return the jury's mean on a criterion, shape (n,); NaN where too few of it scored."""
        own = self.of_raters(criterion, jury.members)
        enough = (~np.isnan(own)).sum(axis=1) >= jury.needed
        return np.where(enough, mean_of_given(own), np.nan)


def criterion_scores(
    scores: Scores, jurors: Sequence[str], *, unrated: bool = False
) -> CriterionScores:
    """Return the scores of every response that a clinician scored, on every criterion.

    A score on a criterion that the benchmark's rubric does not have counts for nothing.

    Parameters
    ----------
    scores : Scores
    jurors : whose scores are taken beside all clinicians'
    unrated : whether the responses that no clinician scored are there too

    Returns
    -------
    CriterionScores
        In points of the scale; a rater's repeats and replicates are averaged.
    """
    judged = scores.ratings[_on_rubric(scores)]
    clinical = judged[judged["kind"] == "clinician"]
    clinicians, metrics = tuple(sorted(clinical["rater"].unique())), scores.raters("metric")
    raters = (*clinicians, *jurors)
    criteria = tuple(dict.fromkeys(c for s in scores.rubrics.values() for c in s.criteria))
    is_rated = scores.responses["response_id"].isin(clinical["response_id"].unique())
    about = scores.responses if unrated else scores.responses[is_rated]
    values = _means(judged, about, (("rater", raters), ("criterion", criteria)))
    measured = scores.ratings[scores.ratings["kind"] == "metric"].dropna(subset=["score"])
    return CriterionScores(
        values,
        _means(measured, about, (("rater", metrics),)),
        tuple(about["response_id"]),
        about["instance_id"].tolist(),
        about["benchmark"].tolist(),
        raters,
        len(clinicians),
        criteria,
        metrics,
    )


def scopes_of(scores: Scores, table: CriterionScores) -> Iterator[tuple[str, CriterionScores]]:
    """Yield each benchmark with its responses, then "combined" if there are several."""
    own = np.array(table.benchmarks, dtype=object)
    for name in scores.benchmarks:
        yield name, table.of(own == name)
    if len(scores.benchmarks) > 1:
        yield COMBINED, table


def same_scores_given(
    scores: Scores, jurors: Sequence[str], criterion: str | None = None
) -> dict[str, tuple[Note, ...]]:
    """Return notes on who gave every response of a benchmark one and the same score.

    Parameters
    ----------
    scores : Scores
    jurors : who sits on the jury
    criterion : the only one that is analysed, or None

    Returns
    -------
    benchmark, or "combined" -> notes
        First the jurors who tell no response from another on any criterion, then for each
        criterion those who do not on it, "the clinicians" where all of them gave one score.
        Of at least `LEAST_ALIKE` responses.
    """
    table = criterion_scores(scores, jurors)
    return {name: tuple(_alike(own, jurors, criterion)) for name, own in scopes_of(scores, table)}


def _alike(table: CriterionScores, jurors: Sequence[str], criterion: str | None) -> Iterator[Note]:
    criteria = [name for name in table.criteria if criterion in (None, name)]
    criteria = [name for name in criteria if np.isfinite(table.of_clinicians(name)).any()]
    same = {name: [who for who in jurors if _one_score(table, name, [who])] for name in criteria}
    everywhere = [who for who in jurors if criteria and all(who in same[name] for name in criteria)]
    if everywhere:
        yield note("same_everywhere", _same_everywhere, raters=everywhere)
    clinicians = table.raters[: table.n_clinicians]
    for name, own in same.items():
        raters = [who for who in own if who not in everywhere]
        if _one_score(table, name, clinicians):
            raters = ["the clinicians", *raters]
        if raters:
            yield note("same_on_criterion", _same_on_criterion, raters=raters, criterion=name)


def _one_score(table: CriterionScores, criterion: str, raters: Sequence[str]) -> bool:
    """Return whether some raters gave enough responses a score, and all the same one."""
    given = table.of_raters(criterion, raters)
    responses = np.isfinite(given).any(axis=1).sum()
    given = given[np.isfinite(given)]
    return bool(responses >= LEAST_ALIKE and np.ptp(given) <= FLAT * np.abs(given).max())


def _on_rubric(scores: Scores) -> Flags:
    """Return which ratings are a score of a clinician or juror on the benchmark's rubric."""
    table = scores.ratings
    known = pd.MultiIndex.from_tuples(
        [
            (name, criterion)
            for name, shape in scores.rubrics.items()
            for criterion in shape.criteria
        ]
    )
    of = pd.MultiIndex.from_frame(table[["benchmark", "criterion"]])
    is_judged: Flags = of.isin(known) & (table["kind"] != "metric").to_numpy()
    return is_judged & table["score"].notna().to_numpy()


def _means(
    ratings: pd.DataFrame, about: pd.DataFrame, axes: Sequence[tuple[str, Sequence[str]]]
) -> Array:
    """Return the mean score in each cell of responses by some columns' values; NaN of an empty cell."""
    names = [about["response_id"], *(own for _, own in axes)]
    columns = ["response_id", *(column for column, _ in axes)]
    shape = [len(own) for own in names]
    codes = [
        pd.Index(own).get_indexer(ratings[column])
        for own, column in zip(names, columns, strict=True)
    ]
    in_table = np.all([code >= 0 for code in codes], axis=0)
    cells = (
        np.ravel_multi_index([code[in_table] for code in codes], shape)
        if in_table.any()
        else np.empty(0, int)
    )
    size, values = int(np.prod(shape)), ratings["score"].to_numpy(dtype=np.float64)[in_table]
    number = np.bincount(cells, minlength=size)
    total = np.bincount(cells, weights=values, minlength=size)
    with np.errstate(invalid="ignore"):
        return np.where(number > 0, total / number, np.nan).reshape(shape)


def _same_everywhere(figures: Figures) -> str:
    which = "it tells" if len(figures["raters"]) == 1 else "they tell"
    return (
        f"{_givers(figures)} gave every response the same scores: {which} no response from another"
    )


def _same_on_criterion(figures: Figures) -> str:
    return (
        f"{_givers(figures)} {filled('gave every response the same score on {criterion}', figures)}"
    )


def _givers(figures: Figures) -> str:
    return " and ".join(
        name if name == "the clinicians" else f"juror {quoted(name)}" for name in figures["raters"]
    )
