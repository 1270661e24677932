"""Looks at a study that is still being rated: each an event of the record, since each has to be counted."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine
from sqlmodel import col, select

from data.database import transaction
from data.errors import BadInput
from data.schema import Event
from data.store.audit import log

LOOKED = "looked at whether to go on rating"


def record_look(
    engine: Engine,
    actor: str,
    goal: Mapping[str, Any],
    rated: int,
    planned: int,
    statistic: float,
) -> list[tuple[int, float | None]]:
    """Count a look at a goal, unless nothing was rated since the last; return all looks there were.

    Each is the responses rated and the statistic, None where it was not kept.

    A locked study takes this too: to look again is what must be counted.

    Parameters
    ----------
    goal : plain values that say what is to be shown; looks at another goal do not count
    rated, planned : responses rated now, and at most; what the first look planned holds for all
    statistic : how far the figure is from its target, in standard errors

    Raises
    ------
    BadInput
        If an earlier look at this goal planned another number: a plan that follows the figures
        makes the interval too narrow.
    """
    with transaction(engine) as session:
        every = session.exec(
            select(Event.detail).where(Event.action == LOOKED).order_by(col(Event.id))
        ).all()
        own = [one for one in every if one["goal"] == dict(goal)]
        if own and own[0]["planned"] != planned:
            raise BadInput(
                f"--planned {planned}: the first look planned {own[0]['planned']} responses; an interval "
                "that holds under stopping keeps to that, whatever is seen"
            )
        looks = [(one["rated"], one.get("statistic")) for one in own]
        if not looks or looks[-1][0] != rated:
            kept = round(statistic, 6)
            detail = {"goal": dict(goal), "rated": rated, "planned": planned, "statistic": kept}
            log(session, actor, LOOKED, detail)
            looks.append((rated, kept))
        return looks
