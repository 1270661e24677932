"""`medjury share export --leaderboard, --every-eval-ever`: figures of models in the shapes others publish."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from data.errors import BadInput
from jury.exports.export import refuse_full, write_folder
from medjury.cli.output import counted, say
from medjury.services.leaderboards import Leaderboard, leaderboard, leaderboard_files
from medjury.services.models import lift

OPTIONS = {"helm": "--leaderboard", "every-eval-ever": "--every-eval-ever"}
Boards = Mapping[str, Path | None]


def check(boards: Boards, authors: str) -> None:
    """Refuse folders that hold something, and figures of models that are to name only authors.

    Raises
    ------
    BadInput
        If only the authors are asked for.
    BadFile
        If a folder holds something.
    """
    for shape, out in boards.items():
        if out is None:
            continue
        if authors == "only":
            raise BadInput(f"{OPTIONS[shape]} holds figures and no authors alone: give --unblind")
        refuse_full(out, OPTIONS[shape])


def write(engine: Engine, boards: Boards, who: str, organization: str) -> None:
    """Write the figures in each shape that is asked for; a study that is not locked must be unblinded.

    Raises
    ------
    NotAllowed
        If the study is open and its blind was not lifted.
    """
    wanted = {shape: out for shape, out in boards.items() if out is not None}
    if not wanted:
        return
    lift(engine, "", who)
    found = leaderboard(engine)
    at = datetime.now(UTC)
    for shape, out in wanted.items():
        files = leaderboard_files(engine, found, shape, at, organization)
        write_folder(out, files, OPTIONS[shape])
        say(f"{out}: {counted(len(files), 'file')}, {_of(found)}")


def _of(found: Leaderboard) -> str:
    """Return what the figures are of, and whether anybody behind them is simulated."""
    models = len({one.model for one in found.rows})
    benchmarks = len({one.benchmark for one in found.rows})
    made_up = f"; SIMULATED: {', '.join(found.simulated)}" if found.simulated else ""
    return (
        f"{counted(models, 'model')} on {counted(benchmarks, 'benchmark')}, by clinicians, the jury "
        f"and {counted(len(found.jurors), 'juror')}{made_up}"
    )
