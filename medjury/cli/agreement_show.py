"""A calibration on the screen: the answer, the combined table, unsafe responses, subgroups, details."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration.notes import listed, quoted, simulated_in
from calibration.tables.agreement import AGREEMENT, EACH
from calibration.tables.jurors import SECTIONS
from calibration.tables.numbers import TERMINAL, place
from calibration.tables.response_groups import DETECTION, SUBGROUPS, by_threshold, threshold
from calibration.tables.spec import Table, TableSpec, laid_out
from medjury.cli.output import (
    room,
    say,
    seat_words,
    show_decision,
    show_fitted,
    show_table,
    table_width,
)
from medjury.services.calibrate import Calibration

FEW_NOTES = 3  # that change how the table is read; --notes has all
ABOUT = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. Like "
    "for like is a difference: the jury's ICC with the other clinicians minus a held-out clinician's."
)
AGAIN = (
    "Same clinician again is ICC(A,1), absolute agreement of a reading with its hidden repeat: one "
    "reading, not a mean."
)
LEGEND = (
    "Terms: kappa is quadratic weighted, alpha Krippendorff's for ordinal scores, AC2 Gwet's; other: "
    "between points."
)
OF_ONE = "--benchmark NAME shows the same of one benchmark; --json has all of them"
BRIEF = ("jury", "jury_held_out", "clinicians")


@dataclass(frozen=True, slots=True)
class Shown:
    """How much is printed beside the answer and the combined table."""

    by_benchmark: bool = False
    notes: bool = False
    details: bool = False


def show_calibration(calibration: Calibration, shown: Shown, json_to: Path | None = None) -> None:
    """Print the answer first, then the table, then the notes that change how it is read."""
    if calibration.jury:
        say(f"jury: {listed(calibration.jury)}{_left_out(calibration)}", json_to)
    if calibration.silent:
        named = bool(calibration.question.options.jurors)
        say(seat_words([*map(quoted, calibration.silent)], named=named), json_to)
    show_decision(calibration.decision, json_to)
    say("", json_to)
    names = [*calibration.decisions]
    for name in names if shown.by_benchmark else names[-1:]:
        _show_benchmark(calibration, name, shown, json_to)
    if calibration.check_line:
        say(calibration.check_line, json_to)
    if calibration.raters:
        show_table(
            fitted(EACH, calibration.raters, f"{EACH.caption}{_left_out(calibration)}", json_to),
            json_to,
        )
    if shown.notes:
        if made_up := simulated_in(calibration.rows):
            say(f"simulated raters: {listed(made_up)}", json_to)
        say(_about(calibration), json_to)
    elif hint := _hint(calibration, shown):
        say(f"{hint}.", json_to)


def show_details(calibration: Calibration, json_to: Path | None = None) -> None:
    """Print every section that has rows: of all benchmarks combined, or of the last one."""
    for name, spec in SECTIONS.items():
        every: Sequence[Any] = calibration.details.get(name, ())
        rows = [row for row in every if row.benchmark == every[-1].benchmark]
        if rows:
            _show_section(spec, rows, json_to)
            say("", json_to)
    say(LEGEND, json_to)
    if len(calibration.decisions) > 1:
        say(OF_ONE, json_to)


def _show_section(spec: TableSpec, rows: Sequence[Any], json_to: Path | None) -> None:
    """Print one section with the notes that warn, or a line where there is nothing to tabulate."""
    shown, remainder = spec.shown(rows), spec.rest(rows)
    if not spec.says(shown):
        say(remainder or f"{spec.caption}: {_undefined(spec, shown)}", json_to)
        return
    table = fitted(spec, shown, spec.caption, json_to)
    show_table(replace(table, notes=tuple(one for one in table.notes if not one.is_quiet)), json_to)
    if remainder:
        say(f"  {remainder}", json_to)


def _show_benchmark(
    calibration: Calibration, name: str, shown: Shown, json_to: Path | None
) -> None:
    rows = [row for row in calibration.rows if row.benchmark == name]
    method = calibration.question.options.method
    title = (
        f"{place(name)}{_left_out(calibration)}: agreement with the clinicians (method {method})"
    )
    table = fitted(AGREEMENT, rows, title, json_to)
    show_table(table, json_to, notes=shown.notes)
    if not shown.notes:
        telling_notes = [
            note for note in table.notes if not note.is_quiet and note.code != "includes_zero"
        ]
        for note in telling_notes[:FEW_NOTES]:
            say(f"  {note.text}", json_to)
    if shown.by_benchmark or shown.notes or shown.details:
        say("", json_to)


def fitted(spec: TableSpec, rows: Sequence[Any], caption: str, json_to: Path | None) -> Table:
    """Return a table without as few of its wide columns, from the last on, as have no room."""
    table = laid_out(spec, rows, TERMINAL, caption=caption)
    wide = [column for column in spec.columns if column.wide]
    while wide and table_width(table) > room(json_to):
        columns = tuple(column for column in spec.columns if column is not wide[-1])
        spec, wide = replace(spec, columns=columns), wide[:-1]
        table = laid_out(spec, rows, TERMINAL, caption=caption)
    return table


def _left_out(calibration: Calibration) -> str:
    """Return whose ratings were left out on purpose, as a heading says it; "" where nobody's were."""
    names = calibration.question.options.without
    return f", without {listed(names)}" if names else ""


def _undefined(spec: TableSpec, rows: Sequence[Any]) -> str:
    """Return in a line why no row of a section has a figure."""
    table = laid_out(spec, rows, TERMINAL)
    return "; ".join(note.text for note in table.notes) or "nothing to tell"


def _about(calibration: Calibration) -> str:
    again = f" {AGAIN}" if any(row.scorer == "intra_rater" for row in calibration.rows) else ""
    return f"{ABOUT}{again}"


def _hint(calibration: Calibration, shown: Shown) -> str:
    """Return which options show what is not printed here."""
    several = len(calibration.decisions) - 1
    parts = [f"--by-benchmark: each of {several}"] if several and not shown.by_benchmark else []
    parts += [] if shown.details else ["--details: all behind it"]
    return "; ".join([*parts, "--notes: all notes"])


def show_unsafe(calibration: Calibration, json_to: Path | None, *, details: bool) -> None:
    """Print what is found of unsafe responses: always with details, else where it is critical.

    Of all benchmarks combined, or of the last one; without details of the jury and a clinician.
    """
    rows = [row for row in calibration.detection if details or _is_brief(row)]
    for own in by_threshold(_last(rows)).values():
        title = f"{place(own[0].benchmark)}: {DETECTION.caption}, {threshold(own[0], TERMINAL)}"
        say("", json_to)
        show_fitted(DETECTION, own, title, json_to)


def show_subgroups(calibration: Calibration, json_to: Path | None, *, details: bool) -> None:
    """Print the subgroups: all with details or where some were asked for, else those to look at."""
    rows = list(calibration.subgroups)
    if not details and not calibration.question.options.groups:
        rows = [row for row in rows if row.finding != "shown" or row.bias_p_holm <= 0.05]
    if shown := _last(rows):
        say("", json_to)
        show_fitted(SUBGROUPS, shown, f"{place(shown[0].benchmark)}: {SUBGROUPS.caption}", json_to)


def _is_brief(row: Any) -> bool:
    return row.scorer in BRIEF


def _last(rows: Sequence[Any]) -> list[Any]:
    """Return the rows of all benchmarks combined, or of the last one."""
    return [row for row in rows if row.benchmark == rows[-1].benchmark]
