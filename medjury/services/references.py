"""`medjury calibrate --references sound`: leaving out what no honest response could do well on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.messages.form import counted
from data.errors import BadInput
from data.queries.references import References, references

if TYPE_CHECKING:
    from calibration.scores import Scores

REFERENCES = ("all", "sound")


@dataclass(frozen=True, slots=True)
class Kept:
    """The scores that count, what is told of those that do not, and the counts for JSON."""

    scores: "Scores"
    told: tuple[str, ...] = ()
    counts: Mapping[str, object] = field(default_factory=dict)

    def to_json(self) -> dict[str, object]:
        """Return the key that `calibrate --json` has only where instances were left out."""
        return {"references": dict(self.counts)} if self.counts else {}


def all_instances(_: Engine, scores: "Scores") -> Kept:
    """Keep everything, which is what is done unless it is asked for otherwise."""
    return Kept(scores)


def sound_only(engine: Engine, scores: "Scores") -> Kept:
    """Leave out the instances whose references jurors have marked.

    Raises
    ------
    BadInput
        If no juror has answered about any reference, or nothing would be left.
    """
    from calibration.scope import without_instances

    found = references(engine)
    if not found.jurors:
        raise BadInput(
            "--references sound: no reference of this study has been checked yet; "
            "`medjury jury references PANEL` asks jurors about them"
        )
    left = without_instances(scores, found.marked)
    if left.responses.empty:
        raise BadInput("--references sound: every instance is marked, so nothing would be left")
    responses = len(scores.responses) - len(left.responses)
    counts = {
        "kept": "sound",
        "responses_left_out": responses,
        "instances_left_out": len(found.marked),
        "instances_not_known": len(found.not_known),
        "instances_unchecked": len(found.unchecked),
        "checked_by": list(found.jurors),
        "simulated": found.simulated,
    }
    return Kept(left, _told(found, responses), counts)


def _told(found: References, responses: int) -> tuple[str, ...]:
    """Return what a reader has to know of what was left out."""
    who = f"{'simulated ' if found.simulated else ''}jurors {', '.join(found.jurors)}"
    return (
        f"references sound: {counted(responses, 'response')} of "
        f"{counted(len(found.marked), 'instance')} left out, whose references state facts that the "
        f"source does not hold (say {who})",
        f"kept though not known: {counted(len(found.not_known), 'instance')}; kept without a "
        f"reference or a context to check: {counted(len(found.unchecked), 'instance')}",
    )
