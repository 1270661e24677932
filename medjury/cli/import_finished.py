"""What the imports of finished runs share, whatever tool ran them: storing, families, words."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.importers.finished import FinishedRun, missing
from data.queries.families import families_of
from data.store.finished_runs import FinishedAdded, import_finished
from medjury.cli.blinding import mask_new
from medjury.cli.output import counted, room, say, show, width
from medjury.cli.places import STANDARD_OUTPUT, write_json

NEXT = (
    "next: clinicians, on the same rubric: `medjury assign` and `medjury serve`, or their ratings "
    "from a file with `medjury ratings`; then `medjury calibrate`"
)


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of finished runs beside what came of storing them.

    Attributes
    ----------
    title, columns, rows
        Their table.
    first, jurors, last
        Lines: before all others, of the jurors, and after the jurors.
    rubrics
        Benchmark -> on what it is rated.
    left_out, notes, skipped
        What nobody can rate, and what else is not in the study -> how many; runs not read.
    body, end
        What `--json` has before and after the figures of what was added.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[list[str]]
    rubrics: Mapping[str, str]
    jurors: Iterable[str]
    left_out: Mapping[str, str]
    notes: Mapping[str, int]
    body: Mapping[str, Any]
    skipped: Iterable[str] = ()
    first: Iterable[str] = ()
    last: Iterable[str] = ()
    end: Mapping[str, Any] = field(default_factory=dict)


def store_finished(
    engine: Engine, runs: Sequence[FinishedRun], told: Told, json_to: Path | None
) -> None:
    """Store runs, look for authors' names in them, and tell what came of it."""
    added = import_finished(engine, [_with_families(one) for one in runs])
    _show_runs(told, json_to)
    for line in _lines(runs, told, added):
        say(line, json_to)
    with redirect_stdout(sys.stderr) if json_to == STANDARD_OUTPUT else nullcontext():
        mask_new(engine)  # standard output is left to the figures
    write_json({**told.body, **_added_figures(added, runs), **told.end}, json_to)


def models_of(runs: Iterable[FinishedRun]) -> Mapping[str, Any]:
    """Return juror -> its model, None where it is not named."""
    return {juror.handle: juror.profile.get("model") for one in runs for juror in one.jurors}


def _with_families(run: FinishedRun) -> FinishedRun:
    """Return a run whose jurors have the family that their model's name tells."""
    jurors = tuple(replace(one, family=_family(one.profile.get("model", ""))) for one in run.jurors)
    return replace(run, jurors=jurors)


def _family(model: str) -> str:
    found = families_of(model)
    return next(iter(found)) if len(found) == 1 else ""


def _show_runs(told: Told, json_to: Path | None) -> None:
    """Show runs as a table or, where the screen is too narrow for it, a line each."""
    if width(told.columns, told.rows) <= room(json_to):
        show(told.title, told.columns, told.rows, json_to)
        return
    for run, *cells in told.rows:
        named = (f"{name} {cell}" for name, cell in zip(told.columns[1:], cells, strict=True))
        say(f"{run}: {', '.join(named)}", json_to)


def _lines(runs: Sequence[FinishedRun], told: Told, added: FinishedAdded) -> Iterator[str]:
    new, old = added.responses, added.ratings
    yield (
        f"{counted(new.responses, 'response')} to {counted(new.instances, 'new instance')} and "
        f"{counted(old.added, 'rating')} imported; {new.unchanged} and {old.unchanged} were there "
        f"already, {old.revised} revised an earlier one"
    )
    if not (new.responses or old.added or old.revised or added.failures):
        yield "nothing changed"
    yield from told.first
    for name, rated in told.rubrics.items():
        yield f"benchmark {name} is rated on {rated}"
        if name in old.other_rubric:
            yield (
                f"{name} already has ratings on another rubric: these are kept apart and do not "
                "count in calibrate, which reads the benchmark's own rubric"
            )
    yield from told.jurors
    for juror, counts in missing(runs).items():
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        yield f"missing: {juror}: {each}"
    yield from told.last
    yield from (
        f"left out, as nobody can rate it: {of} {what}" for what, of in told.left_out.items()
    )
    yield from (f"not in the study: {number} {what}" for what, number in told.notes.items())
    yield from told.skipped
    yield NEXT


def _added_figures(added: FinishedAdded, runs: Iterable[FinishedRun]) -> dict[str, Any]:
    """Return what an import added, as `medjury import --json` writes it."""
    return {
        "instances": added.responses.instances,
        "responses": added.responses.responses,
        "responses_unchanged": added.responses.unchanged,
        "ratings": added.ratings.added,
        "ratings_revised": added.ratings.revised,
        "ratings_unchanged": added.ratings.unchanged,
        "failures": added.failures,
        "missing": missing(runs),
        "other_rubric": sorted(added.ratings.other_rubric),
    }
