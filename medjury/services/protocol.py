"""The protocol of a study: fixing what it is to show, and checking whether it is shown."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine

from calibration.codes import NoteCode as Code
from calibration.decision import Decision, DecisionKind
from calibration.json_values import decision_json, json_value
from calibration.protocol import Protocol
from calibration.values import AnalysisOptions, note
from data.errors import BadInput, Unknown, Unrated
from data.person import Person, only
from data.queries import benchmarks
from data.rubric import Rubric
from data.schema import Role
from data.store.study import set_protocol
from medjury.services.record import protocol_json, protocol_of

NOTHING_RATED = Decision(
    "agreement",
    DecisionKind.UNDEFINED,
    reasons=(note(Code.NO_CLINICIAN_RATING),),
    next=note(Code.DO_LET_RATE),
)
FIXED = ("margin", "criterion", "panel", "jurors", "responses", "method", "critical")


@only(Role.COORDINATOR)
def fix(by: Person, engine: Engine, protocol: Protocol) -> Protocol:
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
    _check_criteria(protocol, [one.rubric for one in benchmarks(engine)])
    every = json_value(asdict(protocol))
    set_protocol(engine, by.actor, {name: every[name] for name in FIXED})
    fixed = protocol_of(engine)
    if fixed is None:
        raise BadInput("the protocol was not kept; set it again")
    return fixed


def of_panel(name: str) -> tuple[str, ...]:
    """Return the jurors of a panel, a shipped one's name or a file; () for no name."""
    from jury.panel import read_panel

    return tuple(one.name for one in read_panel(name).juror) if name else ()


def _check_numbers(protocol: Protocol) -> None:
    if not 0 < protocol.margin < 1:
        raise BadInput(f"margin {protocol.margin:g}: must be above 0 and below 1, such as 0.1")
    if protocol.responses < 0:
        raise BadInput(f"responses {protocol.responses}: must be 0 (not fixed) or more")
    for one in protocol.critical:
        limit = one.miss_at_most
        if not (math.isnan(limit) or 0 < limit < 1):
            raise BadInput(
                f"at most {limit:g} of the unsafe responses missed: must be above 0 and below 1; no "
                "number of responses can show that none is ever missed"
            )


def _check_criteria(protocol: Protocol, rubrics: Sequence[Rubric]) -> None:
    """Refuse a criterion that no rubric has, and a threshold that cannot tell responses apart."""
    known = sorted({name for rubric in rubrics for name in rubric.criteria})
    wanted = [protocol.criterion] if protocol.criterion else []
    for name in [*wanted, *(one.criterion for one in protocol.critical)]:
        if name not in known:
            has = f"it has {', '.join(known)}" if known else "it has no responses yet"
            raise Unknown(f"criterion {name}: no rubric of this study has it; {has}")
    for one in protocol.critical:
        for rubric in (own for own in rubrics if one.criterion in own.criteria):
            if not rubric.scale.min <= one.threshold < rubric.scale.max:
                raise BadInput(
                    f"{one.criterion}<={one.threshold:g}: the scale of {rubric.name} is "
                    f"{rubric.scale}; a threshold lies on it, below its top"
                )


@dataclass(frozen=True, slots=True)
class Checked:
    """A protocol, and what the study says of it; `protocol` is None where none was set."""

    protocol: Protocol | None
    decision: Decision

    @property
    def is_met(self) -> bool:
        """Tell whether what was to be shown is shown."""
        return self.protocol is not None and self.decision.kind is DecisionKind.NON_INFERIOR

    def to_json(self) -> dict[str, Any]:
        """Return it as `protocol check --json` has it."""
        return {
            "met": self.is_met,
            "protocol": protocol_json(self.protocol),
            "decision": decision_json(self.decision),
        }


def check(
    engine: Engine,
    tick: Callable[[float], None] | None = None,
    options: AnalysisOptions | None = None,
) -> Checked:
    """Analyse a study as its protocol says, and return the verdict.

    `options` gives the number of resamples and the seed alone. A study that no clinician has
    rated is undefined.
    """
    from medjury.services.calibrate import Question, calibrate

    protocol, given = protocol_of(engine), options or AnalysisOptions()
    as_fixed = protocol.analysis(given.reps, given.seed) if protocol else given
    try:
        found = calibrate(engine, Question(as_fixed, further=False, reference=False), tick=tick)
    except Unrated:
        return Checked(protocol, NOTHING_RATED)
    return Checked(protocol, found.decision)
