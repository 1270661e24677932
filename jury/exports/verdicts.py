"""What an exported jury says of a response: each juror's reading, and their mean or why there is none.

Pure: this module travels with the exports.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from data.calls import Status
from jury.exports.settings import JurySettings
from jury.parse import ParsedAnswer


@dataclass(frozen=True, slots=True)
class JuryVerdict:
    """The readings of all jurors, by name. A juror without a reply leaves the jury without scores."""

    settings: JurySettings
    readings: Mapping[str, ParsedAnswer]

    @property
    def rated(self) -> bool:
        """Whether every juror gave a whole verdict."""
        return all(one.reply is not None for one in self.readings.values())

    @property
    def scores(self) -> dict[str, float]:
        """Return the mean of all jurors on each criterion; empty, never zeros, where not rated."""
        replies = [one.reply.scores for one in self.readings.values() if one.reply is not None]
        if not self.rated:
            return {}
        criteria = self.settings.rubric.criteria
        return {name: sum(one[name] for one in replies) / len(replies) for name in criteria}

    @property
    def composite(self) -> float | None:
        """Return the mean over all criteria, None where not rated."""
        scores = self.scores
        return sum(scores.values()) / len(scores) if scores else None

    @property
    def reason(self) -> str:
        """Return who said what, or why there are no scores."""
        if not self.rated:
            failed = [
                f"{name}: {one.reason or one.status}"
                for name, one in self.readings.items()
                if one.reply is None
            ]
            return f"NOT RATED: {'; '.join(failed)}"
        told = [
            f"{name} " + ", ".join(f"{key} {score:g}" for key, score in one.reply.scores.items())
            for name, one in self.readings.items()
            if one.reply is not None
        ]
        return f"{'; '.join(told)}; jury {self.settings.status} by medjury"

    def told(self) -> dict[str, Any]:
        """Return what goes along with the scores and what `medjury import` reads: JSON values."""
        profiles = {one.name: one for one in self.settings.jurors}
        jurors = {
            name: {"family": profiles[name].family, "profile": dict(profiles[name].profile)}
            | said(one)
            for name, one in self.readings.items()
        }
        return self.settings.origin() | {"jury": self.settings.status, "jurors": jurors}


def said(reading: ParsedAnswer) -> dict[str, Any]:
    """Return a reading as JSON values."""
    told: dict[str, Any] = {"status": Status(reading.status).value}
    if reading.reply is None:
        return told | {"reason": reading.remark}
    return told | {
        "scores": dict(reading.reply.scores),
        "explanations": dict(reading.reply.comments),
    }
