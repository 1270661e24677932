"""What the imports of finished runs share, whatever tool ran them: storing, families, words."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.importers.finished import FinishedRun, missing
from data.queries.families import families_of
from data.store.finished_runs import FinishedAdded
from medjury.cli.blinding import mask_new
from medjury.cli.output import counted, room, say, show, width
from medjury.cli.places import STANDARD_OUTPUT

NEXT = (
    "next: clinicians, on the same rubric: `medjury assign` and `medjury serve`, or their ratings "
    "from a file with `medjury ratings`; then `medjury calibrate`"
)


def with_families(run: FinishedRun) -> FinishedRun:
    """Return a run whose jurors have the family that their model's name tells."""
    jurors = tuple(replace(one, family=_family(one.profile.get("model", ""))) for one in run.jurors)
    return replace(run, jurors=jurors)


def mask_imported(engine: Engine, json_to: Path | None) -> None:
    """Look for authors' names in what came in; standard output is left to the figures."""
    with redirect_stdout(sys.stderr) if json_to == STANDARD_OUTPUT else nullcontext():
        mask_new(engine)


def added_figures(added: FinishedAdded, runs: Iterable[FinishedRun]) -> dict[str, Any]:
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


def added_lines(added: FinishedAdded) -> Iterator[str]:
    """Say what an import added."""
    new, old = added.responses, added.ratings
    yield (
        f"{counted(new.responses, 'response')} to {counted(new.instances, 'new instance')} and "
        f"{counted(old.added, 'rating')} imported; {new.unchanged} and {old.unchanged} were there "
        f"already, {old.revised} revised an earlier one"
    )
    if not (new.responses or old.added or old.revised or added.failures):
        yield "nothing changed"


def other_rubric_lines(added: FinishedAdded, benchmark: str) -> Iterator[str]:
    """Say where ratings came in on another rubric than those that are there."""
    if benchmark in added.ratings.other_rubric:
        yield (
            f"{benchmark} already has ratings on another rubric: these are kept apart and do not "
            "count in calibrate, which reads the benchmark's own rubric"
        )


def models_of(runs: Iterable[FinishedRun]) -> Mapping[str, Any]:
    """Return juror -> its model, None where it is not named."""
    return {juror.handle: juror.profile.get("model") for one in runs for juror in one.jurors}


def missing_lines(runs: Iterable[FinishedRun]) -> Iterator[str]:
    """Say which jurors' verdicts do not stand, and why."""
    for juror, counts in missing(runs).items():
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        yield f"missing: {juror}: {each}"


def show_runs(
    title: str, columns: Sequence[str], rows: Sequence[list[str]], json_to: Path | None
) -> None:
    """Show runs as a table or, where the screen is too narrow for it, a line each."""
    if width(columns, rows) <= room(json_to):
        show(title, columns, rows, json_to)
        return
    for run, *cells in rows:
        named = (f"{name} {cell}" for name, cell in zip(columns[1:], cells, strict=True))
        say(f"{run}: {', '.join(named)}", json_to)


def _family(model: str) -> str:
    found = families_of(model)
    return next(iter(found)) if len(found) == 1 else ""
