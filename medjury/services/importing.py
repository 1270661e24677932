"""Bringing files into a study: what one holds and would change, then the import itself.

Shared by all ways in: the rubric of a benchmark that is new, and masking what names an author.
"""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from sqlalchemy import Engine

from calibration.notes import counted
from data.errors import BadFile, Conflict
from data.importers.columns import What, guess, map_of, taken, toml_of
from data.importers.ratings import RatingFile
from data.importers.responses import PairFile, ResponseFile
from data.importers.rows import RatingRow, ResponseRow
from data.importers.source import Source
from data.importers.table import TableFile
from data.importers.tools import Reader, reader_of, rows_of
from data.person import Person
from data.rubric import Rubric, read_rubric
from data.rubrics import known_as, shipped
from data.samples import benchmarks as sample_benchmarks
from data.study import steering
from data.study.masks import names_to_mask
from data.study.ratings import RatingsAdded
from data.study.responses import ResponsesAdded
from data.study.standing import study_benchmarks
from data.study.steering import (
    bring_pairs,
    bring_ratings,
    bring_responses,
    dry_run,
)
from medjury.services.blinding.places import mask_found
from medjury.services.blinding.search import find_self_naming

GENERIC, PAIRS_RUBRIC = "generic", "preference"
OTHER_RUBRIC = (
    "{} already has ratings on another rubric: these are kept apart and do not count "
    "in its agreement, which is on the benchmark's own rubric"
)
FIRST_ROWS = 3
UNNAMED = "upload.csv"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file in memory, and what was chosen for it; "" leaves it to the file.

    `columns` is a map of columns in TOML.
    """

    name: str
    content: bytes
    rubric: str
    benchmark: str
    columns: str = ""

    @property
    def key(self) -> str:
        """What tells this upload with these choices from any other."""
        parts = (self.name, self.rubric, self.benchmark, self.columns)
        return "\0".join((*parts, hashlib.sha256(self.content).hexdigest()))

    @property
    def source(self) -> Source:
        """Its bytes under its own name; nothing of it is written to disk."""
        return Source(Path(Path(self.name).name or UNNAMED), self.content)


def rows_in(upload: Upload, content: What) -> tuple[TableFile, Reader | None]:
    """Return an upload's rows, and the reader of the tool that wrote it, if one did.

    Raises
    ------
    BadFile
        If it is nothing that is read, or its map is none.
    """
    given = None
    if upload.columns.strip():
        try:
            body = tomllib.loads(upload.columns)
        except tomllib.TOMLDecodeError as error:
            raise BadFile(f"The map of columns: {error}") from error
        given = map_of(body, content, "The map of columns")
    return rows_of([upload.source], content, None, given, upload.benchmark or None)


def map_needed(upload: Upload, content: What) -> str:
    """Return the map that an upload's columns suggest, "" where they are ours or a tool's."""
    source = upload.source
    if reader_of(source) is not None:
        return ""
    table = TableFile(source)
    if taken(table.columns, content) or taken(table.columns, "pairs"):
        return ""
    return toml_of(*guess(table, content, upload.benchmark))


@dataclass(slots=True)
class Seen:
    """What a file of responses or of ratings holds.

    Attributes
    ----------
    responses
        Rows, by benchmark; `instances` the distinct ones.
    sure, possible
        Responses that surely name an author, with their places; places that may.
    first
        The first rows.
    notices
        What is odd and still allowed.
    empty
        Cells of a file of ratings without a score.
    """

    responses: Counter[str] = field(default_factory=Counter)
    instances: Counter[str] = field(default_factory=Counter)
    models: int = 0
    sure: Counter[str] = field(default_factory=Counter)
    possible: int = 0
    first: list[ResponseRow] = field(default_factory=list)
    first_ratings: list[RatingRow] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    empty: int = 0
    encoding: str = ""


def try_response_file(
    engine: Engine, person: Person, upload: Upload
) -> tuple[Seen, ResponsesAdded]:
    """Return what a file of responses holds and would change, or raise; nothing is stored."""
    _refuse_demo(engine, person)
    rows, added = _brought(engine, dry_run(engine), person, upload)
    notices = [*rows.table.doubts, *response_notices(rows, added)]
    return _see(rows, names_to_mask(person, engine), notices), added


def bring_response_file(engine: Engine, person: Person, upload: Upload) -> tuple[int, int]:
    """Store a file of responses, mask what names an author; return responses added and masked."""
    _, added = _brought(engine, engine, person, upload)
    return added.responses, mask_found(person, engine)


def _brought(
    engine: Engine, to: Engine, person: Person, upload: Upload
) -> tuple[ResponseFile | PairFile, ResponsesAdded]:
    """Store a file of responses, or of pairs, in a study or beside it; return what it holds too."""
    file, reader = rows_in(upload, "responses")
    chosen = _rubric(engine, person, upload.rubric)
    if reader is None and taken(file.columns, "pairs"):
        pairs = PairFile(file, upload.benchmark or None)
        added = bring_pairs(person, to, pairs, chosen or read_rubric(PAIRS_RUBRIC), lambda _: None)
        return pairs, added.responses
    rows = ResponseFile(file, upload.benchmark or None)
    return rows, bring_responses(person, to, rows, rubrics_of_reader(reader), chosen)


def try_rating_file(engine: Engine, person: Person, upload: Upload) -> tuple[Seen, RatingsAdded]:
    """Return what a file of ratings holds and would change, or raise; nothing is stored."""
    rows = RatingFile(rows_in(upload, "ratings")[0])
    added = bring_ratings(person, dry_run(engine), rows, _rubric(engine, person, upload.rubric))
    seen = Seen(empty=rows.missing, notices=[*rows.table.doubts, *rating_notices(rows, added)])
    seen.first_ratings = list(islice(rows, FIRST_ROWS))
    return seen, added


def bring_rating_file(engine: Engine, person: Person, upload: Upload) -> RatingsAdded:
    """Store a file of ratings."""
    rows = RatingFile(rows_in(upload, "ratings")[0])
    return bring_ratings(person, engine, rows, _rubric(engine, person, upload.rubric))


def response_notices(rows: ResponseFile | PairFile, added: ResponsesAdded) -> Iterator[str]:
    """Yield what of a file of responses is odd and still allowed."""
    if added.unnamed:
        yield (
            f"{counted(added.unnamed, 'row')} without a response_id counted as there already by instance "
            "and text, as no id tells an author: give equal texts of several models ids of their own"
        )
    if added.twins:
        repeat = "repeats" if added.twins == 1 else "repeat"
        yield (
            f"{added.twins} of them {repeat} a text to the same instance under another "
            "response_id: if that is one response, its ratings are now split over two"
        )
    columns = []
    for name in rows.ignored:
        meant = f"; did you mean {rows.meant[name]}?" if name in rows.meant else ""
        columns.append(f"{name} ({counted(rows.not_taken[name], 'value')}{meant})")
    yield from [f"columns not taken: {', '.join(columns)}"] if columns else []
    yield from _left_out(rows.table)
    if not rows.contexts:
        yield (
            "WARNING: no row has a context: clinicians and jurors will have nothing but the prompt "
            "to hold a response against. If the source is missing by mistake, begin a new study"
        )


def rating_notices(rows: RatingFile, added: RatingsAdded) -> Iterator[str]:
    """Yield what of a file of ratings is odd and still allowed."""
    for name, criteria in sorted(added.lacking.items()):
        yield (
            f"{name}: no rating of {', '.join(criteria)} in this file; without all criteria of the "
            "rubric there is no composite"
        )
    yield from (OTHER_RUBRIC.format(name) for name in sorted(added.other_rubric))
    for theirs, ours in rows.renamed.items():
        yield f"the criterion {theirs!r} is {ours} here: a name has no blanks"
    yield from _left_out(rows.table)


def _left_out(table: TableFile) -> list[str]:
    return [f"not taken: {reason}: {n:,}" for reason, n in table.left_out.items() if n]


def rubrics_of_reader(reader: Reader | None) -> Callable[[str], Rubric]:
    """Return what gives a new benchmark's rubric: the tool's own, or the one of its name."""
    own = reader.rubric if reader else None
    return rubric_for if own is None else lambda _: own


def rubrics_to_choose(engine: Engine, person: Person) -> list[str]:
    """Return the names of the rubrics that ship, and of those in the study."""
    return sorted({*shipped(), *steering.rubric_names(person, engine)})


def _rubric(engine: Engine, person: Person, name: str) -> Rubric | None:
    """Return the rubric of a name that was offered; None leaves it to each benchmark."""
    if name in shipped():
        return read_rubric(name)
    return steering.rubric_of_name(person, engine, name) if name else None


def _refuse_demo(engine: Engine, person: Person) -> None:
    """Refuse to mix somebody's own responses into the demo study."""
    names = {one.name for one in study_benchmarks(person, engine)}
    refuse_demo(names, "import your own responses into a study of your own")


def refuse_demo(names: Iterable[str], to_do: str) -> None:
    """Refuse a study that has benchmarks of the demo, and say what to do."""
    if {benchmark["name"] for benchmark in sample_benchmarks()} & {*names}:
        raise Conflict(f"this is the demo study, and its raters are simulated: {to_do}")


def _see(rows: ResponseFile | PairFile, stored_names: Sequence[str], notices: list[str]) -> Seen:
    """Return what a file holds; it is read twice, since a later row may name a new model."""
    models = {row.model for row in rows.responses()}
    names = sorted({*models, *stored_names})
    preview = Seen(models=len(models), notices=notices, encoding=rows.table.encoding)
    instances: set[tuple[str, str]] = set()
    for row in rows.responses():
        preview.responses[row.benchmark] += 1
        preview.instances[row.benchmark] += (row.benchmark, row.instance_id) not in instances
        instances.add((row.benchmark, row.instance_id))
        for hit in find_self_naming(row.response, names):
            preview.sure[row.response_id] += hit.kind == "sure"
            preview.possible += hit.kind != "sure"
        if len(preview.first) < FIRST_ROWS:
            preview.first.append(row)
    preview.sure = +preview.sure
    return preview


def rubric_for(benchmark: str) -> Rubric:
    """Return the shipped rubric of that benchmark, by HELM's or the paper's name, or the generic one."""
    bare = {_bare(name): rubric for name, rubric in known_as().items()}
    return read_rubric(bare.get(_bare(benchmark), GENERIC))


def _bare(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())
