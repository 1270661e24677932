"""Simulated jurors for the demo: arithmetic, no model is asked and nothing is sent anywhere.

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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

from data.errors import BadPanel
from data.schema import Status
from jury.call import Answer, Call, Usage
from jury.panel import Juror
from jury.window import CHARACTERS_PER_TOKEN

SAMPLES = Path(__file__).parents[2] / "data" / "samples"
RESPONSE = re.compile(r"^<response>\n(.*)\n</response>$", re.DOTALL | re.MULTILINE)
PAIR = re.compile(r"^<first>\n(.*)\n</first>\n<second>\n(.*)\n</second>$", re.DOTALL | re.MULTILINE)
SIMULATED_GUIDANCE = "simulated; learned from nothing"
PLANNED_ON = (1, 5)
UNPLANNED = NormalDist(3.4, 0.8)
NORMAL = NormalDist()


@dataclass(frozen=True, slots=True)
class Character:
    """How a simulated juror deviates from the planned quality, in points of a 1-5 scale."""

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
        """Return an answer in the form a real juror gives it; it says that it is simulated."""
        parts = call.schema["properties"]
        if not all("score" in part.get("properties", ()) for part in parts.values()):
            return self._answer(call, json.dumps(self._other(call)))
        prompt = call.messages[0].text
        match = RESPONSE.search(prompt)  # without its tags; a rubric may have none
        pair = PAIR.search(prompt)
        response = (match[1] if match else prompt).strip()
        scales = {name: _points(part["properties"]["score"]) for name, part in parts.items()}
        quality = {
            name: self._preference(pair, name, call.replicate)
            if pair
            else self._rating(response, name, points, call.replicate)
            for name, points in scales.items()
        }
        verdict = {name: self._verdict(call, name, value) for name, value in quality.items()}
        return self._answer(call, json.dumps(verdict))

    def _answer(self, call: Call, text: str) -> Answer:
        return Answer(
            status=Status.OK,
            text=text,
            sent={"simulated": self._juror.model},
            usage=Usage(_tokens(*(turn.text for turn in call.messages)), _tokens(text)),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _other(self, call: Call) -> dict[str, Any]:
        """Return what is said of a reference, of which one in five is marked, or of a rubric."""
        text, parts = call.messages[0].text, call.schema["properties"]
        if "absent" in parts:
            marked = _uniform("reference", text) < 0.2
            absent = marked is (_uniform(self._juror.name, text) < 0.9)
            facts = [f"simulated by {self._juror.model}; not a judgement"] if absent else []
            return {"absent": absent, "facts": facts}
        said = f"{SIMULATED_GUIDANCE} ({len(text)})"
        return {
            name: _filled(part, said if name == "guidance" else "") for name, part in parts.items()
        }

    def _verdict(self, call: Call, criterion: str, quality: float) -> dict[str, Any]:
        verdict = call.schema["properties"][criterion]["properties"]
        explanation = f"simulated by {self._juror.model}; not a judgement"
        score = min(_points(verdict["score"]), key=lambda point: abs(point - quality))
        return {key: score if key == "score" else explanation for key in verdict}

    def _preference(self, pair: re.Match[str], criterion: str, replicate: int) -> float:
        """Return how much better this juror rates the first of two texts, on a 1-5 scale."""
        first, second = (
            self._rating(text.strip(), criterion, [*PLANNED_ON], replicate)
            for text in pair.groups()
        )
        return first - second

    def _rating(self, text: str, criterion: str, points: list[int], replicate: int) -> float:
        """Return this juror's rating of a text, on the scale but not rounded to its points."""
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
        return points[0] + share * (points[-1] - points[0])


def _filled(schema: Mapping[str, Any], text: str) -> Any:
    if schema["type"] == "string":
        return text
    return {name: _filled(part, text) for name, part in schema["properties"].items()}


def _points(score: Mapping[str, Any]) -> list[int]:
    """Return the points that a score may be; a simulated juror leaves nothing open."""
    points: list[int] = score.get("enum") or score["anyOf"][0]["enum"]
    return points


def _tokens(*texts: str) -> int:
    return round(sum(map(len, texts)) / CHARACTERS_PER_TOKEN)


def _quality(text: str, criterion: str) -> float:
    planned = _planned().get((_sha256(text), criterion))
    return UNPLANNED.inv_cdf(_uniform("quality", text)) if planned is None else planned


@cache
def _planned() -> dict[tuple[str, str], float]:
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
    common, own = (NORMAL.inv_cdf(_uniform(*names)) for names in (seeds, (criterion, *seeds)))
    return (common + own) / 2**0.5


def _uniform(*seeds: str) -> float:
    """Return a number between 0 and 1, neither included, the same for the same seeds."""
    return (int(_sha256("\x1f".join(seeds))[:12], 16) + 0.5) / 16**12


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
