"""Options that several commands share, in groups, and how the study is opened."""

import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import typer

from calibration.values import RESAMPLES
from data import DEFAULT_STUDY_URL, STUDY_VARIABLE
from data.errors import BadInput
from medjury.cli.files import forget_streaming, write_json, writes_new, writes_to

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.values import AnalysisOptions
    from data.rubric import Rubric

worked_on: list[str] = []  # the URL of the study this process opened, its password hidden
_quiet: list[bool] = []  # holds True while a command runs that is to be quiet


def finite(value: float | None) -> float | None:
    """Refuse "nan" and "inf", which pass every range: the callback of each option with a number."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a number")
    return value


Who = Annotated[str, typer.Option(metavar="NAME", help="Who does it; kept in the record.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the record and in every later report.")]
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
CsvNew = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        metavar="FILE",
        help="Write them all, one a row, to a new file.",
        callback=writes_new,
    ),
]
Html = Annotated[
    Path | None,
    typer.Option(
        "--html", metavar="FILE", help="Write a page to read and print.", callback=writes_to
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
# Where no figure rests on chance: taken, and of no effect, so that a script that gives it still runs.
NoReps = Annotated[int, typer.Option("--reps", min=1, hidden=True)]
PanelOption = Annotated[
    str | None,
    typer.Option("--panel", metavar="PANEL", help="Use the jurors of this panel only."),
]
Jurors = Annotated[
    str | None,
    typer.Option("--jurors", metavar="A,B,C", help="Use these jurors only, by name."),
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
MinJurors = Annotated[
    int | None,
    typer.Option(
        min=1, help="Smallest number of jurors who must have rated a response; by default all."
    ),
]
Method = Annotated[
    Literal["paper", "published"],
    typer.Option(
        help="paper: z of each rater, then their mean; published: the raters' mean, then its z."
    ),
]
Port = Annotated[int, typer.Option(min=1, max=65535, help="Port of the page.")]
RubricOption = Annotated[
    str | None, typer.Option("--rubric", help="A rubric that ships with medjury, or a folder.")
]


@dataclass(frozen=True, slots=True)
class Study:
    """The study that a command works on, and where its figures go."""

    context: typer.Context
    json_to: Json = None

    @property
    def url(self) -> str:
        """The address that the user means: `--db`, else MEDJURY_DB, else the default.

        A plain path is taken as a SQLite file.
        """
        chosen = self.context.obj
        if chosen is None:
            chosen = os.environ.get(STUDY_VARIABLE)
        if chosen is not None and not chosen.strip():
            raise BadInput(
                f"--db (or {STUDY_VARIABLE}) is empty: give a URL such as {DEFAULT_STUDY_URL}"
            )
        url = chosen or DEFAULT_STUDY_URL
        return url if "://" in url else f"sqlite:///{url}"

    def open(self, *, create: bool = False) -> "Engine":
        """Return the study; the command's last line names it."""
        from data.database import open_study, shown

        engine = open_study(self.url, create=create)
        worked_on[:] = [shown(engine.url)]
        return engine

    def write(self, body: Mapping[str, Any]) -> None:
        """Write figures as JSON where the user wants them."""
        write_json(body, self.json_to)


@dataclass(frozen=True, slots=True)
class Analysis:
    """What an analysis is of: the jurors, the responses, the scores and how they are compared."""

    panel: PanelOption = None
    jurors: Jurors = None
    benchmark: BenchmarkOption = None
    criterion: Criterion = None
    min_jurors: MinJurors = None
    method: Method = "paper"
    reps: Reps = RESAMPLES
    seed: Seed = 0

    @property
    def jury(self) -> tuple[str, ...] | None:
        """The jurors that the user names, None for all."""
        return named_jurors(self.panel, self.jurors)

    def options(self, **more: Any) -> "AnalysisOptions":
        """Return it as the services take it, with fields that one command has."""
        from calibration.values import AnalysisOptions

        own = {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in ("panel", "jurors")
        }
        return AnalysisOptions(jurors=self.jury, **own | more)


OF_SCORES = "panel jurors benchmark criterion min_jurors"


def flat(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of its groups in its own signature.

    A group is a parameter of a dataclass, `Study` or `Analysis`; `Annotated[Analysis, "panel
    jurors"]` takes those options alone. The options of the study stand last.
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, tuple[type, list[str]]] = {}
    own: list[Parameter] = []
    last: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        kind, names = _group(hints[parameter.name])
        if kind is None:
            own.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = kind, names
        (last if kind is Study else own).extend(_options(kind, names))

    def command(**given: Any) -> None:
        for name, (kind, names) in groups.items():
            given[name] = kind(**{option: given.pop(option) for option in names})
        function(**given)

    command.__signature__ = Signature([*own, *last])  # type: ignore[attr-defined]
    return command


def _group(hint: Any) -> tuple[type | None, list[str]]:
    """Return the class of a group and the options that are taken of it; None for a plain option."""
    kind, *chosen = get_args(hint) or (hint,)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return None, []
    return kind, chosen[0].split() if chosen else [field.name for field in fields(kind)]


def _options(kind: type, names: list[str]) -> Iterator[Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        if field.name in names:
            default = Parameter.empty if field.default is MISSING else field.default
            hint = hints[field.name]
            yield Parameter(field.name, Parameter.KEYWORD_ONLY, default=default, annotation=hint)


def be_quiet(quiet: bool) -> None:
    """Leave out progress, advice and the study's name from now on; False of an option is no word.

    The callback of `--quiet`.
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


def rubric_named(engine: "Engine", name: str | None) -> "Rubric | None":
    """Return the rubric the user names: one that ships, one the study has, or a folder."""
    from data.rubric import read_rubric, shipped
    from data.study.standing import stored_rubric

    if name is None:
        return None
    return (None if name in shipped() else stored_rubric(engine, name)) or read_rubric(name)


def named_jurors(panel: str | None, jurors: str | None) -> tuple[str, ...] | None:
    """Return the jurors the user names, one way or the other; None means all."""
    if panel and jurors is not None:
        raise typer.BadParameter("give --panel or --jurors, not both")
    if panel:
        from jury.panel import read_panel

        return read_panel(panel).jury
    return None if jurors is None else listed_names(jurors, "--jurors", "juror")


def listed_names(listed: str, option: str, kind: str) -> tuple[str, ...]:
    """Return the names in A,B,C; refuse an empty one and one that stands there twice."""
    names = [name.strip() for name in listed.split(",")]
    again = dict.fromkeys(name for name in names if name and names.count(name) > 1)
    wrong = [f"{name} more than once" for name in again]
    wrong += ["an empty name"] if "" in names else []
    if wrong:
        raise typer.BadParameter(
            f"{listed!r} has {' and '.join(wrong)}: name every {kind} once", param_hint=option
        )
    return tuple(names)
