"""Scores in which the reading that settled a difference stands for the clinicians' mean."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pandas as pd

from calibration.detection import DetectionRow
from calibration.notes import note
from calibration.scope import AgreementRow
from calibration.scores import Scores
from data.card import CONSENSUS, FIRST, THIRD

Row = TypeVar("Row", bound=AgreementRow | DetectionRow)

# Scorers whose figures compare clinicians with one another, or with themselves.
BETWEEN_CLINICIANS = ("clinicians", "like_for_like", "intra_rater", "jury_held_out")
# Sections of the details that do.
SECTIONS_BETWEEN_CLINICIANS = (
    *("reliability", "missing", "distributions"),
    *("chance_corrected", "severity", "test_retest"),
)


@dataclass(frozen=True, eq=False)
class Adjudicated:
    """Scores in which differences are settled, and how many are.

    Attributes
    ----------
    scores : on a response with a settling reading that is complete, clinicians' ratings are that
        reading alone; on the others they are as they were
    third, consensus : responses so settled, by the reading that counts
    """

    scores: Scores
    third: int = 0
    consensus: int = 0

    @property
    def responses(self) -> int:
        """Return how many responses are settled."""
        return self.third + self.consensus


def adjudicated(scores: Scores, settling: pd.DataFrame) -> Adjudicated:
    """Return the scores with settled differences in them.

    Parameters
    ----------
    scores : Scores
        With independent ratings alone.
    settling : DataFrame
        Ratings with the columns of `Scores.ratings`; `pass_` says by which reading. What is of
        no response of `scores`, or lacks a criterion of its rubric, is left out. A consensus
        goes before a third reading; several of the one that counts stay several raters.

    What compares clinicians with one another is not to be computed from the result: where a
    difference was settled it has a single clinician, so that those who differ most would be
    left out.
    """
    if settling.empty:
        return Adjudicated(scores)
    own = settling[settling["response_id"].isin(scores.responses["response_id"])]
    whole = own[_is_complete(own, scores)]
    last = whole.groupby("response_id")["pass_"].transform("max")
    counts = whole[whole["pass_"] == last]
    settled_by = counts.groupby("response_id")["pass_"].first()
    settled = scores.ratings["response_id"].isin(counts["response_id"])
    unsettled = scores.ratings[~settled | (scores.ratings["kind"] != "clinician")]
    parts = [unsettled, counts.assign(pass_=FIRST)[list(unsettled.columns)]]
    ratings = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return Adjudicated(
        replace(scores, ratings=ratings),
        third=int((settled_by == THIRD).sum()),
        consensus=int((settled_by == CONSENSUS).sum()),
    )


def _is_complete(own: pd.DataFrame, scores: Scores) -> pd.Series:
    """Return which ratings belong to a reading with every criterion of the rubric."""
    place = ["response_id", "rater", "pass_"]
    has = own.groupby(place)["criterion"].transform("nunique")
    needed = own["benchmark"].map(
        {name: len(shape.criteria) for name, shape in scores.rubrics.items()}
    )
    return has == needed


def with_independent(rows: Sequence[Row], independent: Sequence[Row]) -> list[Row]:
    """Return the rows of adjudicated scores, those between clinicians taken from the independent ones.

    Parameters
    ----------
    rows, independent : of the same question, from scores with differences settled and without

    Returns
    -------
    The rows of `independent`, in their order: those of `BETWEEN_CLINICIANS` with a note that they
    are of independent readings, each other one as `rows` has it.
    """
    known = {_key(row): row for row in rows}
    combined: list[Row] = []
    for row in independent:
        if row.scorer in BETWEEN_CLINICIANS:
            combined.append(
                replace(
                    row,
                    notes=(
                        *row.notes,
                        note(
                            "independent_readings",
                            "computed on independent readings: an adjudicated rating has a single clinician",
                        ),
                    ),
                )
            )
        elif _key(row) in known:
            combined.append(known[_key(row)])
    return combined


def _key(row: AgreementRow | DetectionRow) -> tuple[object, ...]:
    where = (row.criterion, row.threshold) if isinstance(row, DetectionRow) else ()
    return (row.benchmark, row.scorer, *where)
