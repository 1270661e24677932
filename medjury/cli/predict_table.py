"""What `medjury predict` shows: means, how single responses are predicted, and warnings."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medjury.cli.output import room, say, show, width

if TYPE_CHECKING:
    from calibration.predicting.row import PredictedRow

MEANS = ("benchmark", "clinicians\nalone", "jury\nalone", "corrected", "n", "N", "lambda", "gain")
SINGLE = ("benchmark", "both\nrated", "to fit", "m", "q", "held-out\ncoverage", "predicted")
WARNINGS = ("NOT VALIDATED", "RATED AND UNRATED DIFFER")
TOLD = (
    "corrected: the jury on all n + N responses, corrected by what clinicians said of n. gain: so "
    "many times n ratings would give clinicians alone that interval. Right if the n are a random "
    "sample of their benchmark.",
    "Single responses: the jury's composite mapped to the clinicians' scale, -+ q points, q from m "
    "instances that the map was not fitted on. held-out coverage: of rated responses, by map and q "
    "made without their instances (5-fold cross-fit).",
)


def print_predicted(
    rows: Sequence["PredictedRow"], level: float, json_to: Path | None = None
) -> None:
    """Print both tables, how well the jury agrees, and each note with its benchmarks."""
    simulated = ", simulated" if any(row.simulated for row in rows) else ""
    wide = [_means(row, " (", ")") for row in rows]
    fits = width(MEANS, wide) <= room(json_to)
    means = wide if fits else [_means(row, "\n", "") for row in rows]
    share = f"{100 * level:g} % intervals{simulated}"
    show(f"Clinicians' mean over all responses, points ({share})", MEANS, means, json_to)
    say("", json_to)
    single = [_single(row) for row in rows]
    show(f"Single responses ({share})", SINGLE, single, json_to)
    for line in ("", *map(_agreement, rows), "", *told(rows), "", *TOLD):
        say(line, json_to)


def told(rows: Sequence["PredictedRow"]) -> list[str]:
    """Return each note once, with the benchmarks it holds for; warnings come first."""
    holds: dict[str, list[str]] = {}
    for row in rows:
        for note in filter(None, row.note.split("; ")):
            holds.setdefault(note, []).append(row.benchmark)
    lines = sorted(holds, key=lambda note: not note.startswith(WARNINGS))
    return [
        note if len(holds[note]) == len(rows) else f"{', '.join(holds[note])}: {note}"
        for note in lines
    ]


def _means(row: "PredictedRow", opened: str, closed: str) -> list[str]:
    def mean(value: float, low: float, high: float) -> str:
        if not math.isfinite(low):
            return _points(value)
        return f"{_points(value)}{opened}{low:z.2f} to {high:z.2f}{closed}"

    return [
        row.benchmark,
        mean(row.mean_clinicians, row.clinicians_low, row.clinicians_high),
        _points(row.mean_jury),
        mean(row.mean_corrected, row.low, row.high),
        str(row.n_rated),
        str(row.n_unrated),
        _points(row.weight, "-"),
        _points(row.gain, "-"),
    ]


def _single(row: "PredictedRow") -> list[str]:
    covered = f"{row.coverage:.0%} of {row.n_checked}" if row.n_checked else "-"
    return [
        row.benchmark,
        str(row.n_both),
        str(row.n_fit),
        str(row.n_calibration),
        _points(row.q, "-"),
        covered.replace("%", " %"),
        str(row.n_predicted),
    ]


def _agreement(row: "PredictedRow") -> str:
    found = row.agreement
    if not math.isfinite(found.icc):
        return f"{row.benchmark}: agreement of jury and clinicians undefined"
    ends = f", 95 % interval {found.low:z.2f} to {found.high:z.2f}"
    return (
        f"{row.benchmark}: jury and clinicians ICC(C,2) {found.icc:z.2f}"
        f"{ends if math.isfinite(found.low) else ''}, {found.instances} instances"
    )


def _points(value: float, absent: str = "undefined") -> str:
    return f"{value:z.2f}" if math.isfinite(value) else absent
