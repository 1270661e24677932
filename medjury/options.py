"""Options that several commands share, and how the study is opened."""

from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.database import DEFAULT_URL, open_study
from data.queries import stored_rubric
from data.rubric import Rubric, read_rubric, shipped

Db = Annotated[
    str | None,
    typer.Option(
        "--db",
        envvar="MEDJURY_DB",
        metavar="URL",
        help=f"The study's database; by default {DEFAULT_URL} in the working folder.",
    ),
]
Json = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write the figures as JSON; - is standard output."),
]
Seed = Annotated[int, typer.Option(help="Same seed, same result.")]
RubricOption = Annotated[
    str | None, typer.Option("--rubric", help="A rubric that ships with medjury, or a folder.")
]


def study_of(context: typer.Context, db: str | None, create: bool = False) -> Engine:
    """Return the study the user means: the command's --db, the one before it, or the default."""
    return open_study(url_of(context, db), create=create)


def url_of(context: typer.Context, db: str | None) -> str:
    """Return the database URL the user means; a plain path is taken as a SQLite file."""
    url = db or context.obj or DEFAULT_URL
    return url if "://" in url else f"sqlite:///{url}"


def rubric_named(engine: Engine, name: str | None) -> Rubric | None:
    """Return the rubric the user names: one that ships, one the study has, or a folder."""
    if name is None:
        return None
    return (None if name in shipped() else stored_rubric(engine, name)) or read_rubric(name)
