"""When the models of a jury end: what their vendors have announced, by the panels we know."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from jury.panel import NOTICE_DAYS, Juror, read_panel, shipped


def juror_ends(
    jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]], panel: str | None, today: date
) -> list[dict[str, Any]]:
    """Return a row a juror: its model, the day it ends, and the days that are left.

    Parameters
    ----------
    jury
        Handles.
    profiles
        Handle -> settings it was run with; empty for one whose ratings were brought in.
    panel
        A panel of the user's; its jurors are known by their names, those of shipped panels by
        model and host. None and "not known" where neither has the juror, or announces an end.
    today
        In UTC. Below 0 days: the model has ended.
    """
    own = {one.name: one for one in read_panel(panel).juror} if panel else {}
    announced = {
        (one.model, one.host): one
        for name in shipped()
        for one in read_panel(name).juror
        if one.end()
    }
    return [_row(name, own.get(name), profiles.get(name, {}), announced, today) for name in jury]


def notices(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for every juror whose model has ended, or ends within 90 days."""
    for row in rows:
        if row["days_left"] is None or row["days_left"] > NOTICE_DAYS:
            continue
        who = f"juror {row['juror']} ({row['model']})"
        if row["days_left"] <= 0:
            yield f"{who} ended on {row['ends']}: no new response can be scored by it"
        else:
            yield f"{who} ends on {row['ends']}: validate its successor while both can be asked"


def _row(
    name: str,
    own: Juror | None,
    profile: Mapping[str, Any],
    announced: Mapping[tuple[Any, Any], Juror],
    today: date,
) -> dict[str, Any]:
    key = (profile.get("model"), profile.get("host"))
    known = own if own and own.end() else announced.get(key)
    end = known.end() if known else None
    return {
        "juror": name,
        "model": profile.get("model") or (own.model if own else None),
        "ends": end.isoformat() if end else None,
        "days_left": (end - today).days if end else None,
    }
