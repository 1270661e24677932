"""Jurors that are arithmetic, for the demo: no model is asked and nothing is sent anywhere.

A simulated juror knows how good each demo response was written to be (`data/samples/planned.csv`)
and gives that quality, plus its own severity, plus three kinds of noise: one that all simulated
jurors share (a text that misleads every model alike), one of its own, and a small one that
differs between repetitions. The sum is put on the nearest point of the scale; that is part of the
simulation, and real jurors' scores are never bent so. A text that is not in the plan gets a
quality drawn from its hash.
"""

import csv
import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

from data.errors import BadPanel
from data.schema import Status
from jury.call import Answer, Call, Usage
from jury.cost import CHARACTERS_PER_TOKEN
from jury.panel import Juror

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
RESPONSE = re.compile(r"^<response>\n(.*)\n</response>$", re.DOTALL | re.MULTILINE)
PLANNED_ON = (1, 5)
UNPLANNED = NormalDist(3.4, 0.8)
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Character:
    """How a simulated juror departs from the planned quality, in points of a 1-5 scale."""

    severity: float
    own: float
    shared: float = 1.1
    repeat: float = 0.3


CHARACTERS = {
    "simulated-lenient": Character(0.4, own=1.2),
    "simulated-steady": Character(0.0, own=0.8),
    "simulated-strict": Character(-0.5, own=1.0),
}


class Simulated:
    """A simulated juror."""

    def __init__(self, juror: Juror, key: str = "", timeout: float = 0.0) -> None:
        if juror.model not in CHARACTERS:
            raise BadPanel(
                f"juror {juror.name}, model {juror.model!r}: the simulated models are "
                + ", ".join(CHARACTERS)
            )
        self._juror = juror

    async def complete(self, call: Call) -> Answer:
        """Return a verdict in the form a real juror gives it."""
        text = _response(call.messages[0].text)
        verdict = {
            name: {
                "explanation": f"simulated by {self._juror.model}; not a judgement",
                "score": self._score(text, name, points, call.replicate),
            }
            for name, points in _points(call).items()
        }
        told = json.dumps(verdict)
        return Answer(
            Status.OK,
            text=told,
            sent={"simulated": self._juror.model},
            usage=Usage(_tokens(*(one.text for one in call.messages)), _tokens(told)),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _score(self, text: str, criterion: str, points: list[int], replicate: int) -> int:
        """Return the point nearest to what this juror makes of a text."""
        character = CHARACTERS[self._juror.model]
        own = self._juror.name
        felt = (
            _quality(text, criterion)
            + character.severity
            + character.shared * _noise(criterion, "all", text)
            + character.own * _noise(criterion, own, text)
            + character.repeat * _noise(criterion, own, text, str(replicate))
        )
        low, high = PLANNED_ON
        share = (felt - low) / (high - low)
        wanted = points[0] + share * (points[-1] - points[0])
        return min(points, key=lambda point: abs(point - wanted))


def _tokens(*texts: str) -> int:
    """Return about how many tokens a model would count; nothing is tokenized."""
    return round(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def _points(call: Call) -> dict[str, list[int]]:
    """Return the points of the scale for each criterion, out of the schema of the answer."""
    criteria = call.schema["properties"]
    return {name: one["properties"]["score"]["enum"] for name, one in criteria.items()}


def _response(prompt: str) -> str:
    """Return the response a prompt holds, or the whole prompt of a rubric that tags none."""
    found = RESPONSE.search(prompt)
    return (found[1] if found else prompt).strip()


def _quality(text: str, criterion: str) -> float:
    """Return how good a text was written to be, drawn from its hash where nobody planned it."""
    planned = _planned().get((_sha256(text), criterion))
    return UNPLANNED.inv_cdf(_uniform("quality", text)) if planned is None else planned


@cache
def _planned() -> dict[tuple[str, str], float]:
    """Return the planned quality by the hash of the response's text and the criterion."""
    table, texts = SAMPLES / "planned.csv", SAMPLES / "responses.jsonl"
    if not (table.is_file() and texts.is_file()):
        return {}
    with texts.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    hashes = {row["response_id"]: _sha256(row["response"].strip()) for row in rows}
    with table.open(encoding="utf-8", newline="") as file:
        return {
            (hashes[row["response_id"]], row["criterion"]): float(row["quality"])
            for row in csv.DictReader(file)
            if row["response_id"] in hashes
        }


def _noise(criterion: str, *seeds: str) -> float:
    """Return noise of variance 1, half of it common to all criteria of a response."""
    return (_normal(*seeds) + _normal(criterion, *seeds)) / 2**0.5


def _normal(*seeds: str) -> float:
    """Return a standard normal number that these seeds always give."""
    return NORMAL.inv_cdf(_uniform(*seeds))


def _uniform(*seeds: str) -> float:
    """Return a number between 0 and 1, neither included, that these seeds always give."""
    return (int(_sha256("\x1f".join(seeds))[:12], 16) + 0.5) / 16**12


def _sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
