"""What the form is sent in the rating room, where it has all its tools."""

from typing import Any

from annotate.panes import unseen
from annotate.replies import Answer, form_data
from data.queries import House, Task
from data.rubric import low_points


def room_data(
    task: Task, answer: Answer | None, house: House, *, previous: bool, after: bool
) -> dict[str, Any]:
    """Return the form's data with what was marked and flagged, and what this study asks for.

    Parameters
    ----------
    previous
        Whether there is something rated before this response.
    after
        Whether the response was just rated and is shown with its reference.
    """
    asks = house.settings.ask_why
    return form_data(task, answer) | {
        "tools": True,
        "mode": "after" if after else "rate",
        "previous": previous,
        "rated": task.done_at.isoformat() if task.ended and task.done_at else "",
        "unsent": task.ended and task.draft_seq > task.submitted_seq,
        "why": {
            "criterion": task.rubric.criteria[0],
            "points": list(low_points(task.rubric)) if asks else [],
        },
        "spans": task.draft.get("spans", []),
        "flags": task.draft.get("flags", []),
        "unseen": unseen(task.card.response),
        "pause": house.settings.pause_minutes,
    }
