"""What stands beside the agreement table on the screen: unsafe responses, and subgroups."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from calibration.tables.numbers import TERMINAL, place
from calibration.tables.response_groups import DETECTION, SUBGROUPS, by_threshold, threshold
from medjury.cli.output import say, show_fitted
from medjury.services.calibrate import Calibration

BRIEF = ("jury", "jury_held_out", "clinicians")


def show_unsafe(found: Calibration, json_to: Path | None, *, details: bool) -> None:
    """Print what is found of unsafe responses: always with details, else where it is critical.

    Of all benchmarks combined, or of the last one; without details of the jury and a clinician.
    """
    rows = [row for row in found.detection.rows if details or _is_brief(row)]
    for own in by_threshold(_last(rows)).values():
        title = f"{place(own[0].benchmark)}: {DETECTION.caption}, {threshold(own[0], TERMINAL)}"
        say("", json_to)
        show_fitted(DETECTION, own, title, json_to)


def show_subgroups(found: Calibration, json_to: Path | None, *, details: bool) -> None:
    """Print the subgroups: all with details or where some were asked for, else those to look at."""
    rows = list(found.subgroups)
    if not details and not found.question.options.groups:
        rows = [row for row in rows if row.finding != "shown" or row.bias_p_holm <= 0.05]
    if shown := _last(rows):
        say("", json_to)
        show_fitted(SUBGROUPS, shown, f"{place(shown[0].benchmark)}: {SUBGROUPS.caption}", json_to)


def _is_brief(row: Any) -> bool:
    return bool(row.critical) and row.scorer in BRIEF


def _last(rows: Sequence[Any]) -> list[Any]:
    """Return the rows of all benchmarks combined, or of the last one."""
    return [row for row in rows if row.benchmark == rows[-1].benchmark]
