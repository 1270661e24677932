"""Finding run folders: one, a suite of them, or an output folder with several suites."""

import os
from pathlib import Path

from data.errors import BadFile, BadInput
from data.importers.helm.files import SPEC, STATE
from data.importers.helm.run import HelmRun, NoJury, read_run

ASIDE = {"eval_cache", "groups"}  # of a suite, beside its runs
DEEPEST = 4  # folders from the one that is named down to a run


def is_helm(path: Path) -> bool:
    """Tell whether a path is a HELM run, one of its two main files, or a folder with runs in it."""
    return path.name in (SPEC, STATE) or bool(path.is_dir() and run_folders(path))


def read_runs(path: Path, benchmark: str | None = None) -> tuple[list[HelmRun], dict[str, str]]:
    """Read every run with a jury that a path holds.

    Returns
    -------
    The runs, and for each run folder that is left out the reason. At least one run.

    Raises
    ------
    BadFile
        If there is none, or a file of one cannot be read.
    BadInput
        If a benchmark's name is given, and the runs are of several.
    """
    start = path.parent if path.name in (SPEC, STATE) else path
    runs, skipped = [], {}
    for folder in run_folders(start):
        name = folder.resolve().name if folder == start else str(folder.relative_to(start))
        try:
            runs.append(read_run(folder, name, benchmark))
        except NoJury as reason:
            skipped[name] = str(reason)
    if not runs:
        raise BadFile(f"{path}: {_none(skipped)}; nothing was imported")
    if benchmark and len({one.own_name for one in runs}) > 1:
        several = ", ".join(sorted({one.own_name for one in runs}))
        raise BadInput(f"--benchmark {benchmark}: there are several in it: {several}")
    return runs, skipped


def run_folders(start: Path) -> list[Path]:
    """Return the run folders at or under a folder, in the order of their names."""
    found = []
    for here, below, files in os.walk(start):
        folder = Path(here)
        if SPEC in files or STATE in files:
            found.append(folder)
            below.clear()
        if len(folder.relative_to(start).parts) >= DEEPEST:
            below.clear()
        below[:] = sorted(set(below) - ASIDE)
    return sorted(found)


def _none(skipped: dict[str, str]) -> str:
    """Return why nothing can be taken."""
    if not skipped:
        return f"no HELM run in it (a run's folder holds {SPEC} and {STATE})"
    name, reason = next(iter(skipped.items()))
    more = f", and {len(skipped) - 1} more" if len(skipped) > 1 else ""
    return f"no run in it can be taken: {name}: {reason}{more}"
