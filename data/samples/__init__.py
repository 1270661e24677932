"""The demo study: written for the project, invented patients, simulated raters.

Everything read from here is marked simulated and can never become a validated export.
"""

import csv
import tomllib
from collections.abc import Iterator
from pathlib import Path
from random import Random

from data.importers.rows import Origin, RatingRow
from data.schema import Kind

FOLDER = Path(__file__).parent
RESPONSES = FOLDER / "responses.jsonl"
READING = 0.85  # sd in points of the impression a reading leaves on all criteria
Planned = dict[str, dict[str, float]]

# How each simulated clinician differs from the planned quality: leaning in points, noise in points.
CLINICIANS = {
    "sim-clinician-1": (0.2, 0.9),
    "sim-clinician-2": (-0.35, 0.8),
    "sim-clinician-3": (0.0, 1.1),
    "sim-clinician-4": (0.4, 0.9),
}


def benchmarks() -> list[dict[str, str]]:
    """Return the demo's benchmarks: name, category, subcategory, rubric."""
    found: list[dict[str, str]] = tomllib.loads((FOLDER / "benchmarks.toml").read_text("utf-8"))[
        "benchmark"
    ]
    return found


def planned() -> Planned:
    """Return the quality each response was written to have: response_id -> criterion -> 1-5."""
    quality: Planned = {}
    with (FOLDER / "planned.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            quality.setdefault(row["response_id"], {})[row["criterion"]] = float(row["quality"])
    return quality


def clinicians_ratings(readers: dict[str, list[str]], seed: int = 0) -> Iterator[RatingRow]:
    """Yield simulated ratings: planned quality, plus a leaning, a reading and noise, in whole points.

    `readers` says which response_ids each simulated clinician reads. A reading shifts all
    criteria of a response together, as a clinician's overall impression does.
    """
    quality = planned()
    for handle, responses in sorted(readers.items()):
        leaning, noise = CLINICIANS[handle]
        for response in sorted(responses):
            random = Random(f"{seed} {handle} {response}")  # noqa: S311 a simulation, not a secret
            reading = random.gauss(leaning, READING)
            for criterion, planned_score in quality[response].items():
                drawn = planned_score + reading + random.gauss(0, noise)
                yield RatingRow(
                    origin=Origin("simulated", 0),
                    response_id=response,
                    rater=handle,
                    kind=Kind.CLINICIAN,
                    criterion=criterion,
                    score=str(min(5, max(1, round(drawn)))),
                    comment="simulated",
                )
