"""The demo study: written for the project, invented patients, simulated raters; and one file of real scores.

Everything of the study is marked simulated and can never become a validated export.
"""

import csv
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from data.card import Marked, Reply, Severity, Side
from data.importers.rows import Origin, RatingRow
from data.schema import Kind

FOLDER = Path(__file__).parent
RESPONSES = FOLDER / "responses.jsonl"
CALCULATIONS = FOLDER / "calculations.jsonl"
KEYS = FOLDER / "calculation_keys.csv"
COSTS = FOLDER / "costs.csv"
METRICS = FOLDER / "metrics.csv"
MENTALBENCH = FOLDER / "mentalbench_safety.csv"  # real: experts and four models, without texts
MENTALBENCH_UNSAFE = 2  # the highest score on safety that is unsafe
CLOSED_ENDED = "demo_calculations"
CLOSED_ENDED_METRIC = "medcalc"
SECONDS_PER_WORD = 0.3  # of a simulated reading: about 200 words a minute
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


class PlannedMark(NamedTuple):
    """A stretch that a simulated clinician marks: `reader` is 1 or 2 of a response's two, by name."""

    response_id: str
    reader: int
    criterion: str
    error: str
    severity: Severity
    side: Side
    words: str
    note: str


class MarkedReading(NamedTuple):
    """What a simulated clinician answers in a reading in which marks can be made, in how long."""

    clinician: str
    response_id: str
    reply: Reply
    seconds: float


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


def texts() -> dict[str, dict[str, str]]:
    """Return the rows of `RESPONSES` by response_id."""
    with RESPONSES.open(encoding="utf-8") as lines:
        return {row["response_id"]: row for row in map(json.loads, filter(str.strip, lines))}


def planned_marks() -> list[PlannedMark]:
    """Return the marks in the order of their file."""
    with (FOLDER / "marks.csv").open(encoding="utf-8", newline="") as file:
        return [
            PlannedMark(
                *(row["response_id"], int(row["reader"]), row["criterion"], row["error"]),
                *(cast(Severity, row["severity"]), cast(Side, row["side"])),
                *(row["words"], row["note"]),
            )
            for row in csv.DictReader(file)
        ]


def metric_ratings() -> Iterator[RatingRow]:
    """Yield ROUGE-L and BERTScore of the responses, as they were once computed."""
    with METRICS.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=2):
            origin = Origin(METRICS.name, number)
            about = row["response_id"], row["metric"], Kind.METRIC, "f1"
            yield RatingRow(origin, *about, row["f1"], row["comment"])


def marked_instances() -> frozenset[str]:
    """Return the instances whose responses are read where marks can be made."""
    rows = texts()
    return frozenset(rows[mark.response_id]["instance_id"] for mark in planned_marks())


def marked_readings(readings: Iterable[SimulatedReading], seed: int = 0) -> Iterator[MarkedReading]:
    """Yield what simulated clinicians answer: scores as in `clinicians_ratings`, and planned marks.

    Of each response the readings are those of both its clinicians, first ones.
    """
    rows, marks = texts(), planned_marks()
    given: dict[tuple[str, str], list[RatingRow]] = {}
    for rating in clinicians_ratings(readings, seed):
        given.setdefault((rating.rater, rating.response_id), []).append(rating)
    for (clinician, response_id), ratings in given.items():
        row = rows[response_id]
        reader = 1 + sorted(who for who, of in given if of == response_id).index(clinician)
        spans = tuple(
            _marked(mark, row)
            for mark in marks
            if (mark.response_id, mark.reader) == (response_id, reader)
        )
        reply = Reply(
            scores={one.criterion: float(one.score) for one in ratings},
            comments={one.criterion: one.comment for one in ratings},
            spans=spans,
        )
        words = len(f"{row['context']} {row['response']}".split())
        seconds = float(round(words * SECONDS_PER_WORD))
        yield MarkedReading(clinician, response_id, reply, seconds)


def _marked(mark: PlannedMark, row: Mapping[str, str]) -> Marked:
    """Return a mark with its place in the text that it is of."""
    text = row["response" if mark.side == "response" else "context"]
    start = text.index(mark.words)
    return Marked(
        *(mark.criterion, start, start + len(mark.words), mark.error),
        *(f"simulated: {mark.note}", mark.side, mark.severity),
    )


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
