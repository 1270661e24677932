"""What the clinicians of a survey said of a taxonomy, round by round, and what changed."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.scores import Integers
from calibration.survey import (
    Coefficient,
    MeanRating,
    Share,
    ShareDifference,
    category_counts,
    confusion,
    mean_rating,
    overall_share,
    placed_as_intended,
    share_difference,
    with_interval,
)
from calibration.tables.numbers import PAGE, Typeface
from calibration.tables.spec import Table
from calibration.tables.surveys import (
    change_table,
    comment_table,
    confusion_table,
    item_table,
    summary_table,
)
from data.queries.surveys import SurveyView, surveys


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A card: where it belongs, how many placed it there, and where the others put it.

    `elsewhere` has other category -> clinicians; `comments` what was said of it, without names.
    """

    key: str
    text: str
    intended: str
    share: Share
    elsewhere: Mapping[str, int]
    comments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoundResults:
    """A round. All figures but the counts are None without an answer; `simulated` counts clinicians."""

    round: int
    kind: str
    taxonomy: str
    is_open: bool
    invited: int
    begun: int
    answered: int
    simulated: int
    categories: tuple[str, ...]
    items: tuple[ItemRow, ...]
    overall: Share | None
    kappa: Coefficient | None
    alpha: Coefficient | None
    confusion: tuple[tuple[int, ...], ...]
    comprehensiveness: MeanRating | None
    clarity: MeanRating | None
    comments: tuple[str, ...]

    @property
    def n_comments(self) -> int:
        """Comments on cards and on the whole."""
        return len(self.comments) + sum(len(item.comments) for item in self.items)


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A card in two rounds; the share, and its category, are None where a round does not have it."""

    text: str
    first: Share | None
    second: Share | None
    intended_first: str | None
    intended_second: str | None


@dataclass(frozen=True, slots=True)
class RoundChange:
    """What changed from one round to the next; `overall` is None where a round has no answer."""

    first: int
    second: int
    overall: ShareDifference | None
    items: tuple[ItemChange, ...]


@dataclass(frozen=True, slots=True)
class SurveyResults:
    """All rounds, and what changed between each and the one before."""

    rounds: tuple[RoundResults, ...]
    changes: tuple[RoundChange, ...]
    reps: int
    seed: int


def survey_results(engine: Engine, reps: int = 2000, seed: int = 0) -> SurveyResults:
    """Return the results of all rounds of a study's survey."""
    rounds = tuple(_results(view, reps, seed) for view in surveys(engine))
    changes = tuple(round_change(one, two) for one, two in itertools.pairwise(rounds))
    return SurveyResults(rounds, changes, reps, seed)


def _results(view: SurveyView, reps: int, seed: int) -> RoundResults:
    categories = tuple(category.name for category in view.taxonomy.categories)
    number = {name: place for place, name in enumerate(categories)}
    intended = np.array([number[item.intended] for item in view.items], dtype=np.int64)
    placed = _placed(view, number)
    head = (
        *(view.round, view.kind, view.taxonomy.name, view.closed is None, view.invited, view.begun),
        *(len(view.answers), sum(one.simulated for one in view.answers), categories),
    )
    items = _items(view, placed, intended, categories)
    comments = tuple(one.comment for one in view.answers if one.comment)
    if not view.answers:
        return RoundResults(*head, items, None, None, None, (), None, None, comments)
    counts = category_counts(placed, len(categories))
    return RoundResults(
        *head,
        items,
        overall_share(placed, intended),
        with_interval("kappa", counts, reps, seed),
        with_interval("alpha", counts, reps, seed),
        tuple(map(tuple, confusion(placed, intended, len(categories)).tolist())),
        mean_rating([one.comprehensiveness for one in view.answers]),
        mean_rating([one.clarity for one in view.answers]),
        comments,
    )


def _placed(view: SurveyView, number: Mapping[str, int]) -> Integers:
    """Return placements, shape (clinicians, cards); -1 where a card was not placed."""
    rows = [
        [number.get(one.placed.get(item.key, ""), -1) for item in view.items]
        for one in view.answers
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(view.items))


def _items(
    view: SurveyView, placed: Integers, intended: Integers, categories: Sequence[str]
) -> tuple[ItemRow, ...]:
    shares = placed_as_intended(placed, intended)
    counts = category_counts(placed, len(categories)).astype(int)
    rows = []
    for place, (item, share) in enumerate(zip(view.items, shares, strict=True)):
        elsewhere = {
            name: int(counts[place, column])
            for column, name in enumerate(categories)
            if counts[place, column] and name != item.intended
        }
        said = tuple(one.comments[item.key] for one in view.answers if item.key in one.comments)
        rows.append(ItemRow(item.key, item.text, item.intended, share, elsewhere, said))
    return tuple(rows)


def round_change(first: RoundResults, second: RoundResults) -> RoundChange:
    """Return what changed between two rounds; cards are told by their words."""
    before, after = ({item.text: item for item in one.items} for one in (first, second))
    items = []
    for text in dict.fromkeys((*before, *after)):
        old, new = before.get(text), after.get(text)
        items.append(
            ItemChange(
                text,
                old.share if old else None,
                new.share if new else None,
                old.intended if old else None,
                new.intended if new else None,
            )
        )
    overall = None
    if first.overall is not None and second.overall is not None:
        overall = share_difference(first.overall, second.overall)
    return RoundChange(first.round, second.round, overall, tuple(items))


def tables_of(results: SurveyResults, face: Typeface = PAGE) -> list[Table]:
    """Return all rounds as tables: the sums, then each round's cards, confusion, comments; changes last."""
    if not results.rounds:
        return []
    made = [summary_table(results.rounds, face)]
    for one in results.rounds:
        if not one.answered:
            continue
        made += [item_table(one, face), confusion_table(one)]
        made += [comment_table(one)] if one.n_comments else []
    return [*made, *(change_table(one, face) for one in results.changes if one.overall)]


def to_json(results: SurveyResults) -> dict[str, Any]:
    """Return the results as `--json` writes them."""
    body = json_value(results)
    for row, own in zip(body["rounds"], results.rounds, strict=True):
        row["n_comments"] = own.n_comments
        shares = [(row["overall"], own.overall)]
        shares += [(a["share"], b.share) for a, b in zip(row["items"], own.items, strict=True)]
        for made, share in shares:
            if made is not None and share is not None:
                made["value"] = json_value(share.value)
    return dict(body)
