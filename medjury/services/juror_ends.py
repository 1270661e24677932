"""When the models of a jury end: what their vendors have announced, by the panels we know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from calibration.codes import MonitoringCode
from calibration.values import Note, Noted, note, noted
from jury.panel import NOTICE_DAYS, Juror, read_panel, shipped


@dataclass(frozen=True)
class JurorEnd(Noted):
    """When the model of a juror ends, by what its vendor has announced; None: not known.

    `days_left` below 0: it has ended.
    """

    juror: str
    model: str | None
    ends: date | None
    days_left: int | None


def juror_ends(
    jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]], panel: str | None, today: date
) -> list[JurorEnd]:
    """Return when the model of each juror ends, with a note where that is near.

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
        In UTC.
    """
    own = {one.name: one for one in read_panel(panel).juror} if panel else {}
    announced = {
        (one.model, one.host): one
        for name in shipped()
        for one in read_panel(name).juror
        if one.end()
    }
    return [_end(name, own.get(name), profiles.get(name, {}), announced, today) for name in jury]


def _end(
    name: str,
    own: Juror | None,
    profile: Mapping[str, Any],
    announced: Mapping[tuple[Any, Any], Juror],
    today: date,
) -> JurorEnd:
    key = (profile.get("model"), profile.get("host"))
    known = own if own and own.end() else announced.get(key)
    day = known.end() if known else None
    model = profile.get("model") or (own.model if own else None)
    left = (day - today).days if day else None
    return JurorEnd(name, model, day, left, notes=noted(_notice(name, model, day, left)))


def _notice(name: str, model: str | None, day: date | None, left: int | None) -> Note | None:
    """Say of a model that it has ended, or will within 90 days."""
    if left is None or left > NOTICE_DAYS:
        return None
    code = MonitoringCode.MODEL_ENDS if left > 0 else MonitoringCode.MODEL_ENDED
    return note(code, juror=name, model=model, day=day)
