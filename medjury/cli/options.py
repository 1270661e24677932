"""Options that several commands share, and how the study is opened."""

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from data import DEFAULT_STUDY_URL, STUDY_VARIABLE
from data.errors import BadInput
from medjury.cli.files import forget_streaming, writes_to

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.values import Method as AnalysisMethod
    from data.importers.table import Format
    from data.rubric import Rubric

Who = Annotated[str, typer.Option(metavar="NAME", help="Who does it; kept in the record.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the record and in every later report.")]

W = TypeVar("W", bound=str)
METHODS: "tuple[AnalysisMethod, AnalysisMethod]" = ("paper", "published")
FORMATS: "tuple[Format, Format]" = ("csv", "jsonl")
worked_on: list[str] = []  # the URL of the study this process opened, its password hidden
_quiet: list[bool] = []  # holds True while a command runs that is to be quiet
Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        metavar="URL",
        help=f"The study's database; by default {STUDY_VARIABLE}, else {DEFAULT_STUDY_URL} in this folder.",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option(
        "--json",
        metavar="FILE",
        help="Write the figures as JSON; - is standard output.",
        callback=writes_to,
    ),
]
Named = Annotated[
    str,
    typer.Argument(metavar="PANEL", help="A shipped panel (see `jury panels`) or a TOML file."),
]
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of the random numbers: same seed, same result.")
]
Reps = Annotated[int, typer.Option(min=1, help="Number of bootstrap replicates.")]
# Where no figure rests on chance: taken, and of no effect, so that a script that gives them still runs.
NoReps = Annotated[int, typer.Option("--reps", min=1, hidden=True)]
NoSeed = Annotated[int, typer.Option("--seed", min=0, hidden=True)]
PanelOption = Annotated[
    str | None,
    typer.Option("--panel", metavar="PANEL", help="Use the jurors of this panel only."),
]
Jurors = Annotated[
    str | None,
    typer.Option("--jurors", metavar="A,B,C", help="Use these jurors only, by name."),
]
MinJurors = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Smallest number of jurors who must have rated a response; by default all.",
    ),
]
BenchmarkOption = Annotated[
    str | None,
    typer.Option(
        "--benchmark", metavar="NAME", help="Use this benchmark only; by default all of them."
    ),
]
Criterion = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Use this criterion only; by default the composite of all."),
]
Method = Annotated[
    str,
    typer.Option(
        metavar="[paper|published]",
        help="paper: z of each rater, then their mean; published: the raters' mean, then its z.",
    ),
]

Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")]


def finite(value: float | None) -> float | None:
    """Refuse "nan" and "inf", which pass every range: the callback of each option with a number."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number")
    return value


RubricOption = Annotated[
    str | None, typer.Option("--rubric", help="A rubric that ships with medjury, or a folder.")
]


def be_quiet(quiet: bool) -> None:
    """Leave out progress, advice and the study's name from now on; False of an option is no word.

    The callback of `--quiet`, which stands before the command or behind it.
    """
    if quiet:
        _quiet[:] = [True]


def is_quiet() -> bool:
    """Tell whether only results, warnings and errors are wanted."""
    return bool(_quiet)


def begin() -> None:
    """Forget what the last command of this process was told and worked on."""
    worked_on.clear()
    _quiet.clear()
    forget_streaming()


def study_of(context: typer.Context, db: str | None, create: bool = False) -> "Engine":
    """Return the study the user means; the command's last line names it, so that nobody errs."""
    from data.database import open_study, shown

    url = url_of(context, db)
    engine = open_study(url, create=create)
    worked_on[:] = [shown(engine.url)]
    return engine


def url_of(context: typer.Context, db: str | None) -> str:
    """Return the URL the user means: the command's --db, the one before it, MEDJURY_DB, default.

    A plain path is taken as a SQLite file.
    """
    chosen = next(
        (address for address in (db, context.obj) if address is not None),
        os.environ.get(STUDY_VARIABLE),
    )
    if chosen is not None and not chosen.strip():
        raise BadInput(
            f"--db (or {STUDY_VARIABLE}) is empty: give a URL such as {DEFAULT_STUDY_URL}"
        )
    url = chosen or DEFAULT_STUDY_URL
    return url if "://" in url else f"sqlite:///{url}"


def rubric_named(engine: "Engine", name: str | None) -> "Rubric | None":
    """Return the rubric the user names: one that ships, one the study has, or a folder."""
    from data.rubric import read_rubric, shipped
    from data.study.standing import stored_rubric

    if name is None:
        return None
    return (None if name in shipped() else stored_rubric(engine, name)) or read_rubric(name)


def table_format(form: str | None) -> "Format | None":
    """Return the format as the reader names it."""
    return None if form is None else either(form, FORMATS, "--format")


def either(value: str, words: tuple[W, W], option: str) -> W:
    """Return which of two words the user gave with an option; refuse any other."""
    for word in words:
        if value == word:
            return word
    raise typer.BadParameter(f"{value!r} is neither {words[0]} nor {words[1]}", param_hint=option)


def named_jurors(panel: str | None, jurors: str | None) -> tuple[str, ...] | None:
    """Return the jurors the user names, one way or the other; None means all."""
    if panel and jurors is not None:
        raise typer.BadParameter("give --panel or --jurors, not both")
    if panel:
        from jury.panel import read_panel

        return read_panel(panel).jury
    return None if jurors is None else _each_once(jurors)


def _each_once(jurors: str) -> tuple[str, ...]:
    """Return the names between the commas; refuse an empty one, and one that comes again."""
    names = [name.strip() for name in jurors.split(",")]
    again = dict.fromkeys(name for name in names if name and names.count(name) > 1)
    wrong = [f"{name} more than once" for name in again]
    wrong += ["an empty name"] if "" in names else []
    if wrong:
        raise typer.BadParameter(
            f"{jurors!r} has {' and '.join(wrong)}: name every juror once", param_hint="--jurors"
        )
    return tuple(names)
