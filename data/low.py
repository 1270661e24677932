"""Which scores are low enough to ask a clinician why."""

from data.rubric import Rubric

SHARE = 0.4


def low_points(rubric: Rubric) -> tuple[int, ...]:
    """Return the lowest 40 % of the scale's points, rounded down, but at least the lowest."""
    points = rubric.scale.points
    return tuple(points[: max(1, int(SHARE * len(points) + 1e-9))])
