"""A calibration on the screen: the answer, the combined table, and more where it is asked for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from calibration.codes import NoteCode as Code
from calibration.messages import words
from calibration.messages.form import listed
from calibration.remarks import few_resamples
from calibration.tables.agreement import AGREEMENT, SECOND_OPINION
from calibration.tables.jurors import SECTIONS
from calibration.tables.numbers import TERMINAL, place
from calibration.tables.spec import Table, TableSpec, laid_out
from calibration.values import simulated_in
from medjury.cli.output import counted, room, say, show_decision, show_table, table_width
from medjury.services.calibrate import Calibration

FEW_NOTES = 3  # that change how the table is read; --notes has all
ELSEWHERE = (Code.SHARED_INSTANCES, Code.INCLUDES_ZERO)  # of F alone; the decision says it
ABOUT = (
    "ICC(C,2) = ICC(3,2) is consistency: a rater who is always a point stricter still agrees. Like "
    "for like is a difference: the jury's ICC with the other clinicians minus a held-out clinician's."
)
AGAIN = (
    "Same clinician again is ICC(A,1), absolute agreement of a reading with its hidden repeat: one "
    "reading, not a mean."
)
LEGEND = (
    "Terms: advantage is how often a scorer is at least as near to the other clinicians as the one "
    "held out; leniency is points above the mean of all others, shrunken the same in the mixed model, "
    "drawn towards 0; kappa is quadratic weighted, alpha Krippendorff's for ordinal scores, AC2 "
    "Gwet's; worth is how many jurors with unrelated errors would do as well; a juror adds the jury's "
    "ICC minus that of the jury without it; same score again is the share of scores given again; other counts means "
    "between the points of the scale."
)
OF_ONE = "--benchmark NAME shows the same of one benchmark; --json has all of them"


@dataclass(frozen=True, slots=True)
class Shown:
    """How much is printed beside the answer and the combined table."""

    by_benchmark: bool = False
    notes: bool = False
    details: bool = False


def show_calibration(found: Calibration, shown: Shown, json_to: Path | None = None) -> None:
    """Print the answer first, then the table, then the notes that change how it is read."""
    if found.jury:
        say(f"jury: {listed(found.jury)}", json_to)
    if found.silent:
        seat = "without a score from them" if found.question.options.jurors else "not in this jury"
        say(f"asked, and gave no rating: {listed(found.silent)}; {seat}", json_to)
    show_decision(found.decision, json_to)
    say("", json_to)
    names = [*found.decisions]
    for name in names if shown.by_benchmark else names[-1:]:
        _show_benchmark(found, name, shown, json_to)
    if shown.notes or shown.details:
        if made_up := simulated_in(found.rows):
            say(f"simulated raters: {listed(made_up)}", json_to)
        say(_about(found), json_to)
    elif hint := _hint(found, shown):
        say(hint, json_to)


def show_details(found: Calibration, json_to: Path | None = None) -> None:
    """Print every section that has rows: of all benchmarks combined, or of the last one."""
    for name, spec in SECTIONS.items():
        every: Sequence[Any] = found.details.get(name, ())
        rows = [row for row in every if row.benchmark == every[-1].benchmark]
        if rows:
            _show_section(spec, rows, json_to)
            say("", json_to)
    say(LEGEND, json_to)
    if len(found.decisions) > 1:
        say(OF_ONE, json_to)


def show_opinions(found: Calibration, json_to: Path | None = None) -> None:
    """Print how far other libraries' figures are from these, where that was asked for."""
    if found.opinions:
        show_table(fitted(SECOND_OPINION, found.opinions, SECOND_OPINION.caption, json_to), json_to)


def _show_section(spec: TableSpec, rows: Sequence[Any], json_to: Path | None) -> None:
    """Print one section: a table, or a line where there is nothing to tabulate."""
    shown, rest = spec.shown(rows), spec.rest(rows)
    of, about = place(rows[0].benchmark), spec.caption
    if spec.says(shown):
        show_table(fitted(spec, shown, f"{of}: {about}", json_to), json_to)
        if rest:
            say(f"  {rest}", json_to)
    else:
        say(f"{of}: {rest or f'{about}: {_undefined(spec, shown)}'}", json_to)


def _show_benchmark(found: Calibration, name: str, shown: Shown, json_to: Path | None) -> None:
    rows = [row for row in found.rows if row.benchmark == name]
    method = found.question.options.method
    title = f"{place(name)}: agreement with the clinicians (method {method})"
    table = fitted(AGREEMENT, rows, title, json_to)
    show_table(table, json_to, notes=shown.notes or shown.details)
    if not (shown.notes or shown.details):
        telling = [one for one in table.notes if not one.is_quiet and one.code not in ELSEWHERE]
        for note in telling[:FEW_NOTES]:
            say(f"  {note.text}", json_to)
    if few := few_resamples(found.question.options.reps):
        say(f"  {words(few)}", json_to)
    if shown.by_benchmark or shown.notes or shown.details:
        say("", json_to)


def fitted(spec: TableSpec, rows: Sequence[Any], caption: str, json_to: Path | None) -> Table:
    """Return a table without as few of its wide columns, from the last on, as have no room."""
    table = laid_out(spec, rows, TERMINAL, caption=caption)
    wide = [one for one in spec.columns if one.wide]
    while wide and table_width(table) > room(json_to):
        columns = tuple(one for one in spec.columns if one is not wide[-1])
        spec, wide = replace(spec, columns=columns), wide[:-1]
        table = laid_out(spec, rows, TERMINAL, caption=caption)
    return table


def _undefined(spec: TableSpec, rows: Sequence[Any]) -> str:
    """Return in a line why no row of a section has a figure."""
    table = laid_out(spec, rows, TERMINAL)
    return "; ".join(one.text for one in table.notes) or "nothing to tell"


def _about(found: Calibration) -> str:
    options = found.question.options
    again = f" {AGAIN}" if any(row.scorer == "intra_rater" for row in found.rows) else ""
    return f"{ABOUT}{again} {counted(options.reps, 'resample')}, seed {options.seed}."


def _hint(found: Calibration, shown: Shown) -> str:
    """Return which options show what is not printed here."""
    several = len(found.decisions) - 1
    parts = [f"--by-benchmark: each of {several}"] if several and not shown.by_benchmark else []
    return "; ".join([*parts, "--notes: all notes", "--details: all behind it"])
