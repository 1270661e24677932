"""A study as rows of CSV files, the data dictionary of their columns, and what REDCap is to ask.

What an export brings back is looked up here as well: instances, responses, rubrics.
"""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.card import CONSENSUS, Card, reading_of_pass
from data.database import reading
from data.importers.finished import InstanceTexts
from data.importers.package import columns
from data.importers.redcap import FormReading
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Event,
    Instance,
    Rater,
    Rating,
    Remark,
    Response,
    RubricText,
    Span,
    State,
    Submission,
)
from data.study.base import BY_CLINICIAN, NEWEST_SUBMISSION, Columns, card, columns_of, shown
from data.study.readings import every_reading
from data.study.standing import benchmarks

PAGE = 2000
RATINGS = (
    *("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at"),
    *("pass", "replicate", "reading"),
)
READINGS = (
    *("response_id", "rater", "pass", "position", "state", "opened_at", "done_at"),
    *("seconds_active", "reference_opened_at", "revision", "previous", "flags", "remark"),
    "reading",
)
SPANS = (
    *("response_id", "rater", "pass", "criterion", "start", "end", "text", "error", "note"),
    *("revision", "counts", "at", "side", "severity", "linked"),
)
SUBMISSIONS = (
    *("response_id", "rater", "pass", "revision", "comment", "seconds", "study_text"),
    *("appearance", "counts", "at"),
)
EVENTS = ("id", "at", "actor", "action", "detail", "previous", "sha256")
Cells = tuple[Any, ...]
_DICTIONARY = tomllib.loads(Path(__file__).with_name("dictionary.toml").read_text("utf-8"))
TABLES: dict[str, str] = {
    name: words.replace("{call}", _DICTIONARY["call"].strip())
    for name, words in _DICTIONARY["tables"].items()
}
FILES: dict[str, str] = _DICTIONARY["files"]
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
    "UTF-8, commas, one header row; a file in a folder begins with the mark (BOM) by which Excel knows "
    "UTF-8, a file in a package has none. A text that a spreadsheet would compute, one that begins with "
    "= + - @, a tab or a carriage return, has one ' before it, which `medjury study import` takes off "
    "again; numbers such as -5 are as they are. Keys join tables/ files to each other."
)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class ToRate:
    """One reading that a clinician has not done yet."""

    rater: str
    rubric: Rubric
    card: Card


def rating_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the ratings that count, those that settle a difference too; columns `RATINGS`."""
    rating = (Rating.criterion, Rating.score, Rating.comment, Rating.at)
    query = every_reading(
        *(Response.response_id, Rater.handle, Rater.kind),
        *(*rating, Rating.replicate, Rating.pass_),
    )
    for *cells, replicate, pass_ in _stream(engine, query):
        yield (*cells, pass_, replicate, reading_of_pass(pass_))


def reading_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every assignment in each clinician's order; columns `READINGS`."""
    remarks = _remarks(engine)
    position = (Assignment.pass_, Assignment.position, Assignment.state)
    times = (Assignment.opened_at, Assignment.done_at, Assignment.seconds_active)
    opened = (Assignment.reference_opened_at, Assignment.revision, Assignment.previous)
    names = (Assignment.id, Response.response_id, Rater.handle)
    query = _assigned(*names, *position, *times, *opened, Assignment.pass_)
    order = (col(Assignment.rater), col(Assignment.position), col(Assignment.id))
    for key, *cells, pass_ in _stream(engine, query.order_by(*order)):
        flags, remark = remarks.get(key, ("", ""))
        yield (*cells, flags, remark, reading_of_pass(pass_))


def span_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every marked stretch; those of the newest revision count. Columns `SPANS`."""
    newest = col(Span.revision) == NEWEST_SUBMISSION
    showing = (Response.response_id, Rater.handle, Assignment.pass_, Span.criterion)
    marked = (Span.start, Span.end, Span.text, Span.error, Span.note, Span.revision)
    kind = (Span.side, Span.severity, Span.linked)
    query = _assigned(*showing, *marked, newest, Span.at, *kind).join(Span).order_by(col(Span.id))
    yield from _stream(engine, query)


def submission_rows(engine: Engine) -> Iterator[Cells]:
    """Yield every submission with its comment on the whole; columns `SUBMISSIONS`."""
    newest = col(Submission.revision) == NEWEST_SUBMISSION
    showing = (Response.response_id, Rater.handle, Assignment.pass_, Submission.revision)
    content = (Submission.comment, Submission.seconds, Submission.study_text, Submission.appearance)
    query = _assigned(*showing, *content, newest, Submission.at).join(Submission)
    yield from _stream(engine, query.order_by(col(Submission.id)))


def event_rows(engine: Engine) -> Iterator[Cells]:
    """Yield the audit chain, oldest first; columns `EVENTS`."""
    query = columns_of(*(getattr(Event, name) for name in EVENTS)).order_by(col(Event.id))
    yield from _stream(engine, query)


def to_rate(engine: Engine) -> Iterator[ToRate]:
    """Yield every open assignment, each clinician's in their order; hidden repeats too.

    Consensus readings are left out: they need the others' scores and comments beside them.
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
            yield ToRate(rater, rubric, card(code, texts, rubric))


def readings(engine: Engine) -> dict[str, FormReading]:
    """Return, for every assignment's code, whose reading of what it is."""
    query = _assigned(Assignment.code, Response.response_id, Rater.handle, Assignment.pass_)
    return {
        code: FormReading(*reading_columns) for code, *reading_columns in _stream(engine, query)
    }


def _assigned(*columns: Any) -> Columns:
    """Select from assignments with their response and their rater."""
    return columns_of(*columns).select_from(Assignment).join(Response).join(Rater)


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


@dataclass(frozen=True, slots=True)
class DictionaryColumn:
    """One column of one file, in words; `missing` says what an empty cell means."""

    file: str
    column: str
    type: str
    unit: str
    meaning: str
    missing: str


HEADER = tuple(field.name for field in fields(DictionaryColumn))


def dictionary(files: Iterable[str]) -> list[DictionaryColumn]:
    """Return every column of the named files of an export, in their order."""
    return [column for name in files for column in _columns_of_file(name)]


def dictionary_rows(files: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the dictionary as rows, in the columns of `HEADER`."""
    return (astuple(column) for column in dictionary(files))


def dictionary_markdown(files: Iterable[str]) -> str:
    """Return the dictionary as a page, a table a file."""
    parts = [f"# Data dictionary\n\n{ABOUT}\n"]
    for name in files:
        rows = [
            f"| `{column.column}` | {column.type} | {column.unit} | {column.meaning} | {column.missing} |"
            for column in _columns_of_file(name)
        ]
        head = "| column | type | unit | meaning | empty |\n| --- | --- | --- | --- | --- |"
        parts.append(f"## {name}\n\n{head}\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _columns_of_file(file: str) -> Iterator[DictionaryColumn]:
    if file in FILES:
        for name, kind, meaning, unit, empty in _dictionary_lines(FILES[file], 5):
            yield DictionaryColumn(file, name, kind, unit, meaning, empty or NEVER)
        return
    table = file.removeprefix("tables/").removesuffix(".csv")
    types = columns(table)
    described = {name: words for name, *words in _dictionary_lines(TABLES[table], 4)}
    for name, (python, _) in types.items():
        meaning, unit, empty = described[name]
        kind = ", ".join(python) if issubclass(python, StrEnum) else TYPES[python]
        yield DictionaryColumn(file, name, kind, unit, meaning, empty or NEVER)


def _dictionary_lines(text: str, parts: int) -> Iterator[list[str]]:
    """Yield a line's parts; those left out at its end are empty."""
    for line in text.strip().splitlines():
        cells = [part.strip() for part in line.split("|")]
        yield cells + [""] * (parts - len(cells))


def instance_texts(engine: Engine, benchmarks: Iterable[str]) -> dict[Key, InstanceTexts]:
    """Return the texts of all instances of some benchmarks, by benchmark and the instance's id."""
    texts = (Instance.context, Instance.prompt, Instance.reference, Instance.checklist)
    query = columns_of(Instance.benchmark, Instance.instance_id, *texts)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        return {
            (name, instance_id): InstanceTexts(*texts_of)
            for name, instance_id, *texts_of in session.exec(query)
        }


def shown_responses(engine: Engine, benchmarks: Iterable[str]) -> dict[str, tuple[Key, str]]:
    """Return the place of each response and its text as raters see it, by its id."""
    columns = (Instance.benchmark, Instance.instance_id)
    text_shown = func.coalesce(Response.shown, Response.text)
    query = columns_of(Response.response_id, *columns, text_shown)
    query = query.select_from(Response).join(Instance)
    query = query.where(col(Instance.benchmark).in_(sorted(set(benchmarks))))
    with reading(engine) as session:
        return {
            name: ((benchmark, instance_id), text)
            for name, benchmark, instance_id, text in session.exec(query)
        }


def rubrics_known(engine: Engine) -> dict[str, Rubric]:
    """Return every rubric that stands in the study, by its hash."""
    with reading(engine) as session:
        rows = session.exec(select(RubricText.sha256, RubricText.body))
        return {sha256: Rubric.from_json(body) for sha256, body in rows}
