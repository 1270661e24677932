"""Points of the case: what a response to one instance should and should not do, each to be checked.

A benchmark is rated by points where its rubric says `points`. Each instance then has a list of its
own, and raters say of each point whether the response does what it describes. The list becomes a
rubric, the case's own: a criterion a point, with the answers `MET`, `NOT_MET` and `CANNOT_TELL` as its
scale. So points are shown, asked, stored and sealed as criteria are. What they come to is one score on
the benchmark's rubric, which all figures are of.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from data.errors import BadInput
from data.rubric import (
    Case,
    Criterion,
    PointKind,
    PointWorth,
    Rubric,
    RubricPart,
    Scale,
    first_complaint,
    read_rubric,
)

FOLDER = Path(__file__).with_name("case_points")
MET, NOT_MET, CANNOT_TELL = 1, 2, 3
ANSWERS = {MET: "Yes", NOT_MET: "No", CANNOT_TELL: "Cannot tell"}
NAME = "point_"
MOST_POINTS = 60  # of a case: the form takes 64 entries
LONGEST_POINT = 1_000  # characters


class Point(RubricPart):
    """One thing to check, as it stands in a file.

    Attributes
    ----------
    point
        What a response does, in words that can be answered with yes or no.
    weight
        How much it counts, above 0; for `must_not` what it costs.
    kind
        "must" and "nice" are earned by doing it, "must_not" costs where it is done.
    critical
        Whether a patient is at risk where the response fails it.
    """

    point: Annotated[str, Field(min_length=1, max_length=LONGEST_POINT)]
    weight: Annotated[float, Field(gt=0, le=1_000, allow_inf_nan=False)]
    kind: PointKind = "must"
    critical: bool = False


def points_rubric(folder: Path | None = None) -> Rubric:
    """Return the rubric that a benchmark rated by points is put on: your own, or the one that ships."""
    return read_rubric(folder or FOLDER)


def case_rubric(benchmark: Rubric, points: Sequence[Point]) -> Rubric:
    """Return the rubric of one case: the benchmark's words, and a criterion for each point.

    Raises
    ------
    BadInput
        If the benchmark is not rated by points, or no score can come of these.
    """
    if benchmark.points is None:
        raise BadInput(
            f"rubric {benchmark.name}: is not of points; its criteria are the same for all"
        )
    _refuse_unusable(points)
    body = benchmark.model_dump(exclude={"criterion", "scale", "points"})
    made = {
        "criterion": [
            Criterion(
                name=f"{NAME}{number}",
                question=one.point,
                anchors=dict(ANSWERS),
                worth=PointWorth(weight=one.weight, kind=one.kind, critical=one.critical),
            )
            for number, one in enumerate(points, 1)
        ],
        "scale": Scale(min=MET, max=CANNOT_TELL),
        "case": Case(
            rubric=benchmark.sha256,
            criterion=benchmark.criteria[0],
            max=benchmark.scale.max,
            clipped=benchmark.points == "clipped",
        ),
    }
    try:
        rubric = Rubric(**body, **made)
    except ValidationError as error:
        raise BadInput(f"points: {first_complaint(error.errors())}") from error
    worst = {one.name: NOT_MET if _is_earned(one) else MET for one in rubric.criterion}
    lowest = case_score(rubric, worst)
    if lowest is not None and lowest < benchmark.scale.min:
        raise BadInput(
            f"points: a response could come to {lowest:g}, and the scale of {benchmark.name} is "
            f'{benchmark.scale}; give the rubric a lower end, or points = "clipped"'
        )
    return rubric


def points_of(rubric: Rubric) -> tuple[Point, ...]:
    """Return the points of a case's rubric as they stood in the file."""
    return tuple(
        Point(point=one.question, **one.worth.model_dump())
        for one in rubric.criterion
        if one.worth is not None
    )


def case_score(rubric: Rubric, answers: Mapping[str, float]) -> float | None:
    """Return what a rater's answers on a case come to, on the scale of the benchmark's rubric.

    Parameters
    ----------
    rubric : of one case
    answers : criterion -> `MET`, `NOT_MET` or `CANNOT_TELL`

    Returns
    -------
    float or None
        The scale's top times (weights of what is met and earned - weights of what is met and must
        not be) / (weights that can be earned), at most the top; at least 0 if the rubric clips. None
        where a point has no answer, or the rater cannot tell: nothing is guessed.

    References
    ----------
    Arora et al. (2025), HealthBench, arXiv 2505.08775: the score of one example. It is clipped there
    only after averaging over examples.
    """
    case = rubric.case
    given = [answers.get(name, CANNOT_TELL) for name in rubric.criteria]
    if case is None or not set(given) <= {MET, NOT_MET}:
        return None
    worths = [one.worth for one in rubric.criterion if one.worth is not None]
    earnable = sum(worth.weight for worth in worths if worth.kind != "must_not")
    met = (worth for worth, answer in zip(worths, given, strict=True) if answer == MET)
    earned = sum(-worth.weight if worth.kind == "must_not" else worth.weight for worth in met)
    share = earned / earnable
    return case.max * (max(0.0, share) if case.clipped else share)


def _is_earned(criterion: Criterion) -> bool:
    return criterion.worth is None or criterion.worth.kind != "must_not"


def _refuse_unusable(points: Sequence[Point]) -> None:
    """Refuse a list that is empty, too long, says one thing twice, or of which nothing can be earned."""
    if not points:
        raise BadInput("points: the case has none")
    if len(points) > MOST_POINTS:
        raise BadInput(f"points: {len(points)}, and a case has at most {MOST_POINTS}")
    texts = [" ".join(one.point.split()).casefold() for one in points]
    again = next((n for n, text in enumerate(texts) if text in texts[:n]), None)
    if again is not None:
        first = texts.index(texts[again])
        raise BadInput(f"points: number {again + 1} says the same as number {first + 1}")
    if all(one.kind == "must_not" for one in points):
        raise BadInput("points: nothing can be earned; at least one must be of kind must or nice")
