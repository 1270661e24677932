"""Reading an uploaded file: what `medjury import` and `medjury ratings` would make of it."""

import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Engine

from annotate.blind import find_self_naming, mask
from data import queries
from data.errors import Conflict, MedjuryError
from data.importers.ratings import RatingFile
from data.importers.responses import ResponseFile
from data.importers.rows import ResponseRow
from data.importers.table import TableFile
from data.person import Person
from data.queries.steering import names_to_mask, unsearched_texts
from data.rubric import Rubric, read_rubric
from data.rubrics import known_as, shipped
from data.samples import benchmarks as sample_benchmarks
from data.store.masks import MaskedText
from data.store.ratings import RatingsAdded
from data.store.responses import ResponsesAdded
from data.store.steering import (
    bring_ratings,
    bring_responses,
    mask_found,
    try_ratings,
    try_responses,
)

FIRST_ROWS = 3
GENERIC = "generic"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in memory, and what was chosen for it; "" leaves it to the file."""

    name: str
    content: bytes
    rubric: str
    benchmark: str

    @property
    def key(self) -> str:
        """What tells this upload with these choices from any other."""
        parts = (self.name, self.rubric, self.benchmark, hashlib.sha256(self.content).hexdigest())
        return "\0".join(parts)


@dataclass(slots=True)
class Seen:
    """What a file of responses holds.

    Attributes
    ----------
    responses
        Rows, by benchmark; `instances` the distinct ones.
    sure, possible
        Responses that surely name an author, with their places; places that may.
    first
        The first rows.
    """

    responses: Counter[str] = field(default_factory=Counter)
    instances: Counter[str] = field(default_factory=Counter)
    models: int = 0
    sure: Counter[str] = field(default_factory=Counter)
    possible: int = 0
    first: list[ResponseRow] = field(default_factory=list)
    ignored: tuple[str, ...] = ()
    contexts: int = 0
    encoding: str = ""


@contextmanager
def on_disk(upload: Upload) -> Iterator[TableFile]:
    """Keep an upload in a private folder while it is read; messages name the file only."""
    with tempfile.TemporaryDirectory(prefix="medjury-") as folder:
        path = Path(folder) / (Path(upload.name).name or "upload.csv")
        path.write_bytes(upload.content)
        try:
            yield TableFile(path)
        except MedjuryError as error:
            raise type(error)(str(error).replace(f"{folder}/", "")) from error


def try_response_file(
    engine: Engine, person: Person, upload: Upload
) -> tuple[Seen, ResponsesAdded]:
    """Return what a file of responses holds and would change, or raise; nothing is stored."""
    _refuse_demo(engine, person)
    with on_disk(upload) as file:
        rows = ResponseFile(file, upload.benchmark or None)
        chosen = _rubric(engine, person, upload.rubric)
        added = try_responses(person, engine, rows, rubric_for, chosen)
        return _see(rows, names_to_mask(person, engine)), added


def bring_response_file(engine: Engine, person: Person, upload: Upload) -> tuple[int, int]:
    """Store a file of responses, mask what names an author; return responses added and masked."""
    with on_disk(upload) as file:
        rows = ResponseFile(file, upload.benchmark or None)
        chosen = _rubric(engine, person, upload.rubric)
        added = bring_responses(person, engine, rows, rubric_for, chosen)
    return added.responses, _mask_new(engine, person)


def try_rating_file(engine: Engine, person: Person, upload: Upload) -> tuple[RatingsAdded, int]:
    """Return what a file of ratings would change, and its empty cells, or raise."""
    with on_disk(upload) as file:
        rows = RatingFile(file)
        added = try_ratings(person, engine, rows, _rubric(engine, person, upload.rubric))
        return added, rows.missing


def bring_rating_file(engine: Engine, person: Person, upload: Upload) -> RatingsAdded:
    """Store a file of ratings."""
    with on_disk(upload) as file:
        chosen = _rubric(engine, person, upload.rubric)
        return bring_ratings(person, engine, RatingFile(file), chosen)


def rubrics_to_choose(engine: Engine, person: Person) -> list[str]:
    """Return the names of the rubrics that ship, and of those in the study."""
    return sorted({*shipped(), *queries.rubric_names(person, engine)})


def rubric_for(benchmark: str) -> Rubric:
    """Return the shipped rubric of that benchmark, by HELM's or the paper's name, or the generic one."""
    bare = {_bare(name): rubric for name, rubric in known_as().items()}
    return read_rubric(bare.get(_bare(benchmark), GENERIC))


def _bare(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _rubric(engine: Engine, person: Person, name: str) -> Rubric | None:
    """Return the rubric of a name that was offered; None leaves it to each benchmark."""
    if name not in rubrics_to_choose(engine, person):
        return None
    if name in shipped():
        return read_rubric(name)
    return queries.rubric_of_name(person, engine, name)


def _refuse_demo(engine: Engine, person: Person) -> None:
    """Refuse to mix somebody's own responses into the demo study."""
    demo = {one["name"] for one in sample_benchmarks()}
    if demo & {one.view.name for one in queries.materials(person, engine)}:
        raise Conflict(
            "this is the demo study, and its raters are simulated: begin a study of your own with "
            "`medjury import FILE --db sqlite:///study.db`"
        )


def _see(rows: ResponseFile, stored_names: Sequence[str]) -> Seen:
    """Return what a file holds; it is read twice, since a later row may name a new model."""
    models = {row.model for row in rows}
    names = sorted({*models, *stored_names})
    seen = Seen(models=len(models), ignored=rows.ignored, encoding=rows.table.encoding)
    instances: set[tuple[str, str]] = set()
    rows.contexts = 0
    for row in rows:
        seen.responses[row.benchmark] += 1
        if (key := (row.benchmark, row.instance_id)) not in instances:
            instances.add(key)
            seen.instances[row.benchmark] += 1
        _see_names(row, names, seen)
        if len(seen.first) < FIRST_ROWS:
            seen.first.append(row)
    seen.contexts = rows.contexts
    return seen


def _see_names(row: ResponseRow, names: Sequence[str], seen: Seen) -> None:
    """Count what betrays a response's author."""
    for one in find_self_naming(row.response, names):
        if one.kind == "sure":
            seen.sure[row.response_id] += 1
        else:
            seen.possible += 1


def _mask_new(engine: Engine, person: Person) -> int:
    """Mask what surely names an author in the responses not yet searched; return how many were."""
    names, done = names_to_mask(person, engine), 0
    for page in unsearched_texts(person, engine):
        found = [(one, mask(one.text, names)) for one in page]
        hits = [
            MaskedText(
                one.response, masked.text, [(at.start, at.end, at.text) for at in masked.changes]
            )
            for one, masked in found
            if masked.changes
        ]
        done += mask_found(person, engine, hits, page[-1].response)[0]
    return done
