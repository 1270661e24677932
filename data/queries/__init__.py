"""The only package that reads a study. What serves raters never touches Authorship."""

from data.queries.jury import JurorCard, complete_ratings, juror_cards
from data.queries.people import Person, person, person_by_code
from data.queries.rating_room import Progress, Task, next_task, progress, rated_codes, task
from data.queries.study import (
    AssignedView,
    BenchmarkView,
    DesignItem,
    Pair,
    assigned,
    benchmarks,
    design_items,
    pairs,
    simulated_raters,
    stored_rubric,
)

__all__ = [
    "AssignedView",
    "BenchmarkView",
    "DesignItem",
    "JurorCard",
    "Pair",
    "Person",
    "Progress",
    "Task",
    "assigned",
    "benchmarks",
    "complete_ratings",
    "design_items",
    "juror_cards",
    "next_task",
    "pairs",
    "person",
    "person_by_code",
    "progress",
    "rated_codes",
    "simulated_raters",
    "stored_rubric",
    "task",
]
