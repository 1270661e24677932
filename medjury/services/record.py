"""What the record of a study owes every report."""

import math
from dataclasses import asdict
from typing import Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.protocol import Critical, Protocol
from data.errors import NotAllowed
from data.person import is_blind
from data.queries.authors import authors
from data.queries.record import acts, locked_since
from data.store.record import PROTOCOL_SET, unblind


def steered(engine: Engine) -> list[str]:
    """Return, for every report, when and why the blind was lifted or the study reopened."""
    return [
        f"{act.action} on {act.at:%Y-%m-%d %H:%M} UTC by {act.actor}: {act.detail['reason']}"
        for act in acts(engine, "unblinded", "reopened")
    ]


def authors_for(engine: Engine, reason: str, who: str) -> tuple[dict[str, str], bool]:
    """Return who wrote what, and whether the blind was lifted for that: it is recorded first.

    Raises
    ------
    NotAllowed
        If the study is blind and locked: nothing that this is for could be stored.
    """
    lifts = is_blind(engine)
    if lifts and (since := locked_since(engine)) is not None:
        raise NotAllowed(f"the study is locked since {since}: nothing can be brought in")
    if lifts:
        unblind(engine, who, reason)
    return authors(engine), lifts


def protocol_of(engine: Engine) -> Protocol | None:
    """Return the protocol that holds for a study, the last that was set; None where none was."""
    every = acts(engine, PROTOCOL_SET)
    if not every:
        return None
    detail = every[-1].detail
    return Protocol(
        margin=detail["margin"],
        criterion=detail["criterion"],
        panel=detail["panel"],
        jurors=tuple(detail["jurors"]),
        responses=detail["responses"],
        method=detail["method"],
        critical=tuple(_critical(one) for one in detail["critical"]),
        set_after_ratings=detail["ratings"],
        set_at=f"{every[-1].at:%Y-%m-%dT%H:%M:%SZ}",
        sha256=detail["sha256"],
        replaced=len(every) - 1,
    )


def _critical(one: dict[str, Any]) -> Critical:
    limit = one["miss_at_most"]
    return Critical(one["criterion"], one["threshold"], math.nan if limit is None else limit)


def protocol_json(protocol: Protocol | None) -> dict[str, Any] | None:
    """Return a protocol as JSON values; None where there is none."""
    return None if protocol is None else json_value(asdict(protocol))
