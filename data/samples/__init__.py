"""The demo study: written for the project, invented patients, simulated raters.

Everything read from here is marked simulated and can never become a validated export.
"""

import csv
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

from data.importers.rows import Origin, RatingRow
from data.schema import Kind

FOLDER = Path(__file__).parent
RESPONSES = FOLDER / "responses.jsonl"
IMPRESSION = 0.95  # sd in points of a clinician's impression of a response, on all criteria
Planned = dict[str, dict[str, float]]

# How each simulated clinician differs from the planned quality: leaning in points, noise in points.
CLINICIANS = {
    "sim-clinician-1": (0.2, 0.9),
    "sim-clinician-2": (-0.35, 0.8),
    "sim-clinician-3": (0.0, 1.1),
    "sim-clinician-4": (0.4, 0.9),
}


class SimulatedReading(NamedTuple):
    """One reading of a response by a simulated clinician; `pass_` is 1 the second time."""

    clinician: str
    response_id: str
    pass_: int = 0


def benchmarks() -> list[dict[str, str]]:
    """Return the demo's benchmarks: name, category, subcategory, rubric."""
    listed: list[dict[str, str]] = tomllib.loads((FOLDER / "benchmarks.toml").read_text("utf-8"))[
        "benchmark"
    ]
    return listed


def planned() -> Planned:
    """Return the planned quality of each response: response_id -> criterion -> 1-5."""
    quality: Planned = {}
    with (FOLDER / "planned.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            quality.setdefault(row["response_id"], {})[row["criterion"]] = float(row["quality"])
    return quality


def clinicians_ratings(readings: Iterable[SimulatedReading], seed: int = 0) -> Iterator[RatingRow]:
    """Yield simulated ratings: planned quality, plus a leaning, an impression and noise, in points.

    An impression shifts all criteria of a response together and comes back when the clinician
    reads the response again; the noise is drawn anew. Scores are whole points.
    """
    quality = planned()
    for reading in sorted(readings):
        leaning, noise = CLINICIANS[reading.clinician]
        key = f"{seed} {reading.clinician} {reading.response_id}"
        impression = Random(key).gauss(leaning, IMPRESSION)  # noqa: S311 a simulation, not a secret
        random = Random(f"{key} {reading.pass_}")  # noqa: S311
        for criterion, planned_score in quality[reading.response_id].items():
            drawn = planned_score + impression + random.gauss(0, noise)
            yield RatingRow(
                origin=Origin("simulated", 0),
                response_id=reading.response_id,
                rater=reading.clinician,
                kind=Kind.CLINICIAN,
                criterion=criterion,
                score=str(min(5, max(1, round(drawn)))),
                comment="simulated",
                pass_=reading.pass_,
            )
