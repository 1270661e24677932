"""The points of an instance's own rubric, as HealthBench has them, as a checklist."""

from collections.abc import Iterable, Mapping
from typing import Any


def checklist_of(items: Iterable[Any] | None) -> str:
    """Return the points of a rubric as lines, each with what it earns."""
    points = [one for one in items or () if isinstance(one, Mapping)]
    return "\n".join(f"({_worth(one)}) {one.get('criterion', '')}" for one in points)


def _worth(one: Mapping[str, Any]) -> str:
    points = one.get("points", 0)
    return f"{points:+g}" if isinstance(points, int | float) else str(points)
