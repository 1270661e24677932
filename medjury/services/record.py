"""What the record of a study says: its protocol, and the acts that every report states."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.protocol import DECIDING, Critical, Protocol, changed
from data.errors import BadInput, NotAllowed, Unknown
from data.person import Person, is_blind, only
from data.record import REOPENED, UNBLINDED
from data.rubric import Rubric
from data.schema import Role
from data.study.authors import authors
from data.study.settings import PROTOCOL_SET, set_protocol, unblind
from data.study.standing import benchmarks
from data.study.verify import acts, locked_since
from data.study.withdrawals import withdrawals

FIXED = (*DECIDING, "panel", "because")


def steered(engine: Engine) -> list[str]:
    """Return, for every report, when and why the blind was lifted, the study reopened, or what withdrawn."""
    return [
        f"{act.action} on {act.at:%Y-%m-%d %H:%M} UTC by {act.actor}: {act.detail['reason']}"
        for act in acts(engine, UNBLINDED, REOPENED)
    ] + [one.words for one in withdrawals(engine)]


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
    before = [act for act in every if not act.detail["ratings"]]
    fixed = _fixed(every[-1].detail)
    return replace(
        fixed,
        late=changed(_fixed(before[-1].detail) if before else None, fixed),
        set_after_ratings=every[-1].detail["ratings"],
        set_at=f"{every[-1].at:%Y-%m-%dT%H:%M:%SZ}",
        sha256=every[-1].detail["sha256"],
        replaced=len(every) - 1,
    )


def _fixed(detail: Mapping[str, Any]) -> Protocol:
    fixed = {name: detail[name] for name in FIXED}
    critical = tuple(Critical(**limit) for limit in detail["critical"])
    return Protocol(**fixed | {"jurors": tuple(detail["jurors"]), "critical": critical})


@only(Role.COORDINATOR)
def fix_protocol(by: Person, engine: Engine, protocol: Protocol) -> Protocol:
    """Fix what a study is to show; return it as the record has it.

    Parameters
    ----------
    by, engine : who fixes it, for which study
    protocol : when it was set and its SHA-256 are the record's to say

    Raises
    ------
    BadInput, Unknown
        If a number is out of its range, or no rubric of the study has such a criterion.
    NotAllowed
        If the study is locked, or a researcher asks.
    """
    _check_numbers(protocol)
    _check_criteria(protocol, [benchmark.rubric for benchmark in benchmarks(engine)])
    every = json_value(asdict(protocol))
    set_protocol(engine, by.actor, {name: every[name] for name in FIXED})
    fixed = protocol_of(engine)
    if fixed is None:
        raise BadInput("the protocol was not kept; set it again")
    return fixed


def panel_jurors(name: str) -> tuple[str, ...]:
    """Return the jurors of a panel, a shipped one's name or a file; () for no name."""
    from jury.panel import read_panel

    return read_panel(name).jury if name else ()


def _check_numbers(protocol: Protocol) -> None:
    if not 0 < protocol.margin < 1:
        raise BadInput(f"margin {protocol.margin:g}: must be above 0 and below 1, such as 0.1")
    if protocol.responses < 0:
        raise BadInput(f"responses {protocol.responses}: must be 0 (not fixed) or more")
    if not 0 <= protocol.floor < 1:
        raise BadInput(f"floor {protocol.floor:g}: must be 0 or above and below 1")
    for critical in protocol.critical:
        limit = critical.miss_at_most
        if not 0 < limit < 1:
            raise BadInput(
                f"at most {limit:g} of the unsafe responses missed: must be above 0 and below 1; no "
                "number of responses can show that none is ever missed"
            )


def _check_criteria(protocol: Protocol, rubrics: Sequence[Rubric]) -> None:
    """Refuse a criterion that no rubric has, and a threshold that cannot tell responses apart."""
    criteria = sorted({name for rubric in rubrics for name in rubric.criteria})
    composite = [protocol.criterion] if protocol.criterion else []
    for name in [*composite, *(critical.criterion for critical in protocol.critical)]:
        if name not in criteria:
            has = f"it has {', '.join(criteria)}" if criteria else "it has no responses yet"
            raise Unknown(f"criterion {name}: no rubric of this study has it; {has}")
    for critical in protocol.critical:
        for rubric in (own for own in rubrics if critical.criterion in own.criteria):
            scale = rubric.scale_of(critical.criterion)
            if not scale.min <= critical.threshold < scale.max:
                raise BadInput(
                    f"{critical.criterion}<={critical.threshold:g}: the scale of {rubric.name} is "
                    f"{scale}; a threshold lies on it, below its top"
                )
