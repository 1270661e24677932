"""What the workbench finds responses by: words, subgroups, missed unsafe scores; and their snippets.

A response is searched as raters see it: what is masked is not found. The table of authors is not
read here.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import Engine, func, or_
from sqlmodel import col, select

from data.database import reading
from data.person import Person, only
from data.queries.base import BY_CLINICIAN, FOR_STUDY, NEWEST, NEWEST_SUBMISSION, Columns
from data.queries.workbench import STEER, Chosen, compared
from data.schema import Assignment, Rating, Remark, Response, Span, Subgroup, Submission
from data.study.standing import version

SNIPPET = 150  # characters of a text beside its response
BEFORE = 50  # characters shown before the words that were searched for
SHOWN_TEXT = func.coalesce(col(Response.shown), col(Response.text))
SEARCHED_AT_LEAST = 2  # characters
MORE = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class UnsafeAt:
    """A benchmark's criterion, and the highest score on it that is unsafe."""

    benchmark: str
    criterion: str
    points: float


@dataclass(frozen=True, slots=True)
class Snippet:
    """A stretch of a response's text; of a comment on it where only that has the words searched for."""

    text: str
    of_comment: bool = False


@only(*STEER)
def responses_with(person: Person, engine: Engine, words: str) -> frozenset[int]:
    """Return the responses that have these words in their text, id, comments or explanations.

    The words are one phrase, in capitals or not: beyond ASCII SQLite compares what is typed, all
    small, all large, and with a capital first. Under two characters nothing is searched: none.
    """
    phrase = words.strip()
    if len(phrase) < SEARCHED_AT_LEAST:
        return frozenset()
    return _responses_with(engine, version(engine), phrase)


@lru_cache(maxsize=8)
def _responses_with(engine: Engine, _: tuple[int, ...], phrase: str) -> frozenset[int]:
    """Return what was found; kept until the study changes."""
    in_text = select(Response.id).where(
        _has(SHOWN_TEXT, phrase) | _has(col(Response.response_id), phrase), FOR_STUDY
    )
    with reading(engine) as session:
        responses = {key or 0 for key in session.exec(in_text)}
        for query, words in _commented():
            found = query.with_only_columns(query.selected_columns[0]).where(_has(words, phrase))
            responses |= {key for (key,) in session.execute(found)}
    return frozenset(responses)


def _has(column: Any, phrase: str) -> Any:
    forms = dict.fromkeys((phrase, phrase.lower(), phrase.upper(), phrase.capitalize()))
    tried = [phrase] if phrase.isascii() else [*forms]
    return or_(*(column.icontains(form, autoescape=True) for form in tried))


def _commented() -> Iterator[tuple[Columns, Any]]:
    """Yield selections of (response, words) of what was written about responses, with the words."""
    rated = Columns(col(Rating.response), col(Rating.comment)).where(NEWEST)
    yield rated, col(Rating.comment)
    on_whole = (Submission.revision == NEWEST_SUBMISSION,)
    for model, words, newest in (
        (Submission, Submission.comment, on_whole),
        (Remark, Remark.text, (Remark.revision >= NEWEST_SUBMISSION, BY_CLINICIAN)),
        (Span, Span.note, (Span.revision == NEWEST_SUBMISSION,)),
    ):
        query = Columns(col(Assignment.response), col(words)).select_from(Assignment).join(model)
        yield query.where(*newest), col(words)


@only(*STEER)
def snippets(
    person: Person, engine: Engine, responses: Collection[int], words: str = ""
) -> dict[int, Snippet]:
    """Return a snippet of each of some responses: where the words stand, else the beginning.

    Ask for the responses of one page: their whole texts are read.
    """
    phrase = words.strip() if len(words.strip()) >= SEARCHED_AT_LEAST else ""
    texts = select(Response.id, SHOWN_TEXT).where(col(Response.id).in_(responses), FOR_STUDY)
    with reading(engine) as session:
        shown = {key or 0: text for key, text in session.exec(texts)}
        cut = {key: Snippet(_cut(text, phrase)) for key, text in shown.items()}
        missing = [key for key, text in shown.items() if phrase and _place(text, phrase) < 0]
        for query, column in _commented() if missing else ():
            there = query.selected_columns[0].in_(missing)
            for key, comment in session.execute(query.where(there, _has(column, phrase))):
                cut[key] = Snippet(_cut(comment, phrase), of_comment=True)
    return cut


def _place(text: str, phrase: str) -> int:
    return text.casefold().find(phrase.casefold())


def _cut(text: str, phrase: str) -> str:
    """Return a stretch of a text on one line, with an ellipsis where it goes on."""
    place = _place(text, phrase) if phrase else 0
    start = max(0, place - BEFORE) if place > BEFORE else 0
    line = " ".join(text[start : start + 2 * SNIPPET].split())
    if start and " " in line[:BEFORE]:  # not in the middle of a word
        line = line.split(" ", 1)[1]
    goes_on = len(line) > SNIPPET or start + 2 * SNIPPET < len(text)
    return f"{MORE if start else ''}{line[:SNIPPET]}{MORE if goes_on else ''}"


@only(*STEER)
def subgroup_values(person: Person, engine: Engine) -> list[tuple[str, str]]:
    """Return the subgroups of the study as (name, value), by name."""
    query = (
        select(Subgroup.name, Subgroup.value)
        .join(Response)
        .where(FOR_STUDY)
        .distinct()
        .order_by(Subgroup.name, Subgroup.value)
    )
    with reading(engine) as session:
        return [(name, value) for name, value in session.exec(query)]


@only(*STEER)
def in_subgroup(person: Person, engine: Engine, name: str, value: str) -> frozenset[int]:
    """Return the responses of a subgroup."""
    query = select(Subgroup.response).where(Subgroup.name == name, Subgroup.value == value)
    with reading(engine) as session:
        return frozenset(session.exec(query))


@only(*STEER)
def missed_unsafe(
    person: Person, engine: Engine, chosen: Chosen, unsafe: Collection[UnsafeAt]
) -> frozenset[int]:
    """Return the responses that are unsafe for the clinicians, by their mean, and not for the jury.

    Both sides' means on the criterion, in points; a jury that is not whole on a response misses
    nothing there.
    """
    missed: set[int] = set()
    for limit in unsafe:
        if chosen.benchmark not in ("", limit.benchmark):
            continue
        asked = replace(
            chosen, benchmark=limit.benchmark, criterion=limit.criterion, measure="points"
        )
        for row in compared(person, engine, asked):
            people, jury = row.clinicians.mean, row.jury.mean
            if people is not None and jury is not None and people <= limit.points < jury:
                missed.add(row.response)
    return frozenset(missed)
