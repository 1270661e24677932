"""A study as CSV files with a data dictionary, and what REDCap is to ask.

What an export brings back is looked up here as well: instances, responses, rubrics. Which columns a
file has, and what they mean, stands in `dictionary.toml`; those of a table are the table's own.
"""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine, func
from sqlmodel import col

from data.card import CONSENSUS, IN_FILES, Card, reading_of_pass
from data.database import one_moment, reading
from data.errors import BadFile, BadInput
from data.files import FOR_SPREADSHEETS, cells, private, whole_file, write_csv
from data.importers.finished import InstanceTexts
from data.importers.redcap import FormReading
from data.person import OPERATOR
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Event,
    Instance,
    Rater,
    Rating,
    Remark,
    Response,
    Span,
    State,
    Submission,
    Table,
)
from data.study.base import BY_CLINICIAN, NEWEST_SUBMISSION, Columns, card, columns_of, shown
from data.study.copies import PACKED, holds, kind_of, leaving
from data.study.readings import every_reading
from data.study.reviews import standing_reviews
from data.study.settings import consent_rows, described_rows
from data.study.standing import benchmarks

PAGE = 2000
Cells = tuple[Any, ...]
Key = tuple[str, str]
HEADER = ("file", "column", "type", "unit", "meaning", "missing")
DICTIONARY_CSV, DICTIONARY_PAGE = "data_dictionary.csv", "data_dictionary.md"
_WORDS = tomllib.loads(Path(__file__).with_name("dictionary.toml").read_text("utf-8"))
FILES: dict[str, str] = _WORDS["files"]
TYPES = {
    int: "whole number",
    float: "number",
    str: "text",
    bool: "0 or 1",
    datetime: "time, ISO 8601",
    dict: "JSON object",
    list: "JSON list",
}
NEVER = "never empty"
ABOUT = (
    "UTF-8, commas, one header row; a file begins with the mark (BOM) by which Excel knows UTF-8. A "
    "text that a spreadsheet would compute, one that begins with = + - @, a tab or a carriage return, "
    "has one ' before it, which `medjury study import` takes off again; numbers such as -5 are as they "
    "are. Keys join tables to each other."
)


class ToRate(NamedTuple):
    """One reading that a clinician has not done yet."""

    rater: str
    rubric: Rubric
    card: Card


def write_folder(
    engine: Engine, folder: Path, authors: str, who_wrote: Sequence[tuple[str, str]]
) -> dict[str, int]:
    """Write the study at one moment into an empty folder: files for analysis, tables, dictionary.

    Parameters
    ----------
    authors
        "with", "without" or "only" them.
    who_wrote
        response_id and model of every response, none "without" the authors.

    Returns
    -------
    File -> number of rows.
    """
    written = {}
    with one_moment(engine), reading(engine) as session:
        written = write_files(engine, folder, authors, who_wrote)
        for table in PACKED:
            if holds(authors, table.name):
                names, query = table.c.keys(), leaving(session, table, authors)
                file = f"tables/{table.name}.csv"
                (folder / file).parent.mkdir(exist_ok=True)
                written[file] = _write(folder / file, names, _stream(engine, query))
    return written | write_dictionary(folder, written)


def write_files(
    engine: Engine, folder: Path, authors: str, who_wrote: Sequence[tuple[str, str]]
) -> dict[str, int]:
    """Write the files for analysis, as `write_folder`; return file -> number of rows."""
    files: dict[str, Iterable[Cells]] = {}
    if authors != "only":
        files = {
            "ratings.csv": rating_rows(engine),
            "readings.csv": reading_rows(engine),
            "spans.csv": span_rows(engine),
            "submissions.csv": submission_rows(engine),
            "reviews.csv": standing_reviews(OPERATOR, engine),
            "events.csv": event_rows(engine),
            "descriptions.csv": described_rows(engine),
            "consents.csv": consent_rows(engine),
        }
    if authors != "without":
        files["authors.csv"] = who_wrote
    return {name: _write(folder / name, columns(name), rows) for name, rows in files.items()}


def write_dictionary(folder: Path, files: Iterable[str]) -> dict[str, int]:
    """Write the data dictionary of files, as a table and as a page; return rows of the table."""
    rows = [row for file in files for row in dictionary(file)]
    written = {DICTIONARY_CSV: _write(folder / DICTIONARY_CSV, HEADER, rows)}
    parts = [f"# Data dictionary\n\n{ABOUT}\n"]
    head = "| column | type | unit | meaning | empty |\n| --- | --- | --- | --- | --- |"
    for file, described in groupby(rows, key=lambda row: row[0]):
        lines = [
            f"| `{name}` | {kind} | {unit} | {meaning} | {missing} |"
            for _, name, kind, unit, meaning, missing in described
        ]
        parts.append(f"## {file}\n\n{head}\n" + "\n".join(lines) + "\n")
    try:
        with (
            whole_file(folder / DICTIONARY_PAGE) as part,
            open(part, "x", encoding="utf-8", opener=private) as page,
        ):
            page.write("\n".join(parts))
    except OSError as error:
        raise BadFile(f"{folder / DICTIONARY_PAGE}: {error.strerror}") from error
    return written


def _write(path: Path, names: Sequence[str], rows: Iterable[Cells]) -> int:
    return write_csv(path, names, cells(names, rows), FOR_SPREADSHEETS)


def columns(file: str) -> tuple[str, ...]:
    """Return the columns of a file for analysis."""
    return tuple(name for name, *_ in _described(FILES[file], 5))


def dictionary(file: str) -> Iterator[tuple[str, ...]]:
    """Yield what each column of a file or table is, in the columns of `HEADER`."""
    if file in FILES:
        for name, kind, meaning, unit, missing in _described(FILES[file], 5):
            yield file, name, kind, unit, meaning, missing or NEVER
        return
    table = Path(file).stem
    text = _WORDS["tables"][table].replace("{call}", _WORDS["call"].strip())
    words = {name: described for name, *described in _described(text, 4)}
    for column in Table.metadata.tables[table].c:
        name = column.name
        meaning, unit, missing = words[name]
        python = kind_of(table, name)
        kind = ", ".join(python) if issubclass(python, StrEnum) else TYPES[python]
        yield file, name, kind, unit, meaning, missing or NEVER


def _described(text: str, parts: int) -> Iterator[list[str]]:
    """Yield a line's parts; those left out at its end are empty."""
    for line in text.strip().splitlines():
        described = [part.strip() for part in line.split("|")]
        yield described + [""] * (parts - len(described))


def rating_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the ratings that count, those that settle a difference too; columns of `ratings.csv`."""
    rating = (Rating.criterion, Rating.score, Rating.answer, Rating.comment, Rating.at)
    query = every_reading(
        *(Response.response_id, Rater.handle, Rater.kind),
        *(*rating, Rating.replicate, Rating.shown_first, Rating.pass_),
    )
    for *row, score, answer, comment, at, replicate, first, pass_ in _stream(engine, query):
        said = IN_FILES.get(answer, score)
        yield (*row, said, comment, at, pass_, replicate, reading_of_pass(pass_), first)


def reading_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every assignment in each clinician's order; columns of `readings.csv`."""
    remarks = _remarks(engine)
    position = (Assignment.pass_, Assignment.position, Assignment.state)
    times = (Assignment.opened_at, Assignment.done_at, Assignment.seconds_active)
    opened = (Assignment.reference_opened_at, Assignment.revision, Assignment.previous)
    names = (Assignment.id, Response.response_id, Rater.handle)
    query = _assigned(*names, *position, *times, *opened, Assignment.pass_)
    order = (col(Assignment.rater), col(Assignment.position), col(Assignment.id))
    for key, *row, pass_ in _stream(engine, query.order_by(*order)):
        flags, remark = remarks.get(key, ("", ""))
        yield (*row, flags, remark, reading_of_pass(pass_))


def span_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every marked stretch; those of the newest revision count. Columns of `spans.csv`."""
    newest = col(Span.revision) == NEWEST_SUBMISSION
    showing = (Response.response_id, Rater.handle, Assignment.pass_, Span.criterion)
    marked = (Span.start, Span.end, Span.text, Span.error, Span.note, Span.revision)
    kind = (Span.side, Span.severity, Span.linked)
    query = _assigned(*showing, *marked, newest, Span.at, *kind).join(Span).order_by(col(Span.id))
    yield from _stream(engine, query)


def submission_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every submission with its comment on the whole; columns of `submissions.csv`."""
    newest = col(Submission.revision) == NEWEST_SUBMISSION
    showing = (Response.response_id, Rater.handle, Assignment.pass_, Submission.revision)
    content = (Submission.comment, Submission.seconds, Submission.study_text, Submission.appearance)
    query = _assigned(*showing, *content, newest, Submission.at).join(Submission)
    yield from _stream(engine, query.order_by(col(Submission.id)))


def event_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the audit chain, oldest first; columns of `events.csv`."""
    query = columns_of(*(getattr(Event, name) for name in columns("events.csv")))
    yield from _stream(engine, query.order_by(col(Event.id)))


def to_rate(engine: Engine) -> Iterator[ToRate]:
    """Yield every open assignment, each clinician's in their order; hidden repeats too.

    Consensus readings are left out: they need the others' scores and comments beside them.

    Raises
    ------
    BadInput
        If one is of a pair.
    """
    rubrics = {benchmark.name: benchmark.rubric for benchmark in benchmarks(engine)}
    query = (
        shown(Assignment.code, Rater.handle, Instance.benchmark)
        .join(Assignment)
        .join(Rater)
        .where(Assignment.state == State.OPEN, Assignment.pass_ != CONSENSUS)
        .order_by(col(Rater.handle), col(Assignment.position), col(Assignment.id))
    )
    with reading(engine) as session:
        for *texts, code, rater, benchmark in session.exec(query):
            rubric = rubrics[benchmark]
            if rubric.compares:
                raise BadInput(
                    f"{benchmark}: pairs are judged in the rating room, which balances their sides; a form of "
                    "REDCap has one response"
                )
            yield ToRate(rater, rubric, card(code, texts, rubric))


def readings(engine: Engine) -> dict[str, FormReading]:
    """Return, for every assignment's code, whose reading of what it is."""
    query = _assigned(Assignment.code, Response.response_id, Rater.handle, Assignment.pass_)
    return {code: FormReading(*about) for code, *about in _stream(engine, query)}


def _assigned(*names: Any) -> Columns:
    """Select from assignments with their response and their rater."""
    return columns_of(*names).select_from(Assignment).join(Response).join(Rater)


def _remarks(engine: Engine) -> dict[int, tuple[str, str]]:
    """Return the flags and the remark of each assignment's newest revision."""
    query = (
        columns_of(Remark.assignment, Remark.kind, Remark.text)
        .join(Assignment)
        .where(col(Remark.revision) >= NEWEST_SUBMISSION, BY_CLINICIAN)
        .order_by(col(Remark.id))
    )
    remarks: dict[int, list[tuple[str, str]]] = {}
    for assignment, kind, text in _stream(engine, query):
        remarks.setdefault(assignment, []).append((kind, text))
    return {
        key: (" ".join(dict.fromkeys(kind for kind, _ in stated)), stated[-1][1])
        for key, stated in remarks.items()
    }


def _stream(engine: Engine, query: Columns) -> Iterator[Cells]:
    paged = query.execution_options(yield_per=PAGE)
    with reading(engine) as session, session.execute(paged) as rows:
        yield from map(tuple, rows)


def instance_texts(engine: Engine, benchmarks: Iterable[str]) -> dict[Key, InstanceTexts]:
    """Return the texts of all instances of some benchmarks, by benchmark and the instance's id."""
    texts = (Instance.context, Instance.prompt, Instance.reference, Instance.checklist)
    query = columns_of(Instance.benchmark, Instance.instance_id, *texts)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        rows = session.exec(query)
        return {(name, instance): InstanceTexts(*own) for name, instance, *own in rows}


def shown_responses(engine: Engine, benchmarks: Iterable[str]) -> dict[str, tuple[Key, str]]:
    """Return the place of each response and its text as raters see it, by its id."""
    place = (Instance.benchmark, Instance.instance_id)
    text_shown = func.coalesce(Response.shown, Response.text)
    query = columns_of(Response.response_id, *place, text_shown)
    query = query.select_from(Response).join(Instance)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        return {name: ((of, instance), text) for name, of, instance, text in session.exec(query)}
