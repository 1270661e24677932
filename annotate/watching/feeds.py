"""Outputs that come as rows of a database or lines of standard input: written as drops, then handled as those."""

import hashlib
import json
import os
import selectors
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from annotate.watching.drops import feed
from data.database import shown
from data.errors import BadInput, NoStudy

ROWS = 1000  # of a drop
READ = 1 << 16


class Feed(Protocol):
    """Where outputs come from, if not as files."""

    @property
    def has_ended(self) -> bool:
        """Whether nothing more can come."""

    def bring(self, folder: Path, seconds: float) -> int:
        """Write what came as drops, waiting up to so many seconds; return how many rows."""


@dataclass
class Files:
    """Nothing but the files themselves."""

    has_ended: bool = False

    def bring(self, folder: Path, seconds: float) -> int:
        """Return 0: files come by themselves."""
        return 0


@dataclass
class Lines:
    """Lines of standard input, an output each, as JSON.

    What is written as a drop, and on the disk, is told by `taken`: how many lines so far. A program
    that sends them sends the rest again after a kill; what came twice is stored once.
    """

    stream: BinaryIO
    has_ended: bool = False
    taken: int = 0
    _rest: bytes = b""
    _waiting: list[bytes] = field(default_factory=list)

    def bring(self, folder: Path, seconds: float) -> int:
        """Write the whole lines that came within so many seconds; what found no room waits."""
        for chunk in self._chunks(seconds):
            whole, _, self._rest = (self._rest + chunk).rpartition(b"\n")
            self._waiting += [line for line in whole.split(b"\n") if line.strip()]
            if len(self._waiting) >= ROWS:
                break
        if self.has_ended and self._rest.strip():
            self._waiting.append(self._rest)
            self._rest = b""
        before = self.taken
        while self._waiting:
            lines = self._waiting[:ROWS]
            feed(folder, lines)
            del self._waiting[:ROWS]
            self.taken += len(lines)
        return self.taken - before

    def _chunks(self, seconds: float) -> Iterator[bytes]:
        with selectors.DefaultSelector() as ready:
            ready.register(self.stream, selectors.EVENT_READ)
            while not self.has_ended and ready.select(seconds):
                chunk = os.read(self.stream.fileno(), READ)
                self.has_ended = not chunk
                if chunk:
                    yield chunk
                seconds = 0.05


@dataclass
class Query:
    """Rows that a database answers a query with; each is written once as long as this watch runs."""

    url: str
    query: str
    has_ended: bool = False
    _known: set[bytes] = field(default_factory=set)
    _engine: Engine | None = None

    def bring(self, folder: Path, seconds: float) -> int:
        """Ask the query, and write the rows that are new.

        Raises
        ------
        NoStudy
            If the database does not answer; it is asked again later.
        """
        written, new = 0, dict[bytes, bytes]()
        for line in self._rows():
            digest = hashlib.sha256(line).digest()
            if digest not in self._known:
                new[digest] = line
            if len(new) == ROWS:
                written += self._written(folder, new)
        return written + self._written(folder, new)

    def _written(self, folder: Path, new: dict[bytes, bytes]) -> int:
        """Write rows; only then are they known."""
        number = len(new)
        if new:
            feed(folder, [*new.values()])
        self._known |= new.keys()
        new.clear()
        return number

    def _rows(self) -> Iterator[bytes]:
        try:
            self._engine = self._engine or create_engine(self.url)
            with self._engine.connect() as connection:
                answer = connection.execution_options(yield_per=ROWS).execute(text(self.query))
                for row in answer.mappings():
                    yield json.dumps(dict(row), ensure_ascii=False, default=str).encode()
        except SQLAlchemyError as error:
            place = shown(self.url)
            raise NoStudy(f"source {place}: {type(error).__name__}; is it there?") from error


def feed_of(source: str, query: str, stream: BinaryIO) -> Feed:
    """Return where outputs come from: a folder, a database's URL, or - for standard input.

    Raises
    ------
    BadInput
        If a database is named without a query, or is none that can be asked.
    """
    if source == "-":
        return Lines(stream)
    if "://" not in source:
        return Files()
    if not query.strip().lower().startswith(("select", "with")):
        raise BadInput(
            'a database needs a query: write under [source] of --settings: query = "SELECT ...", with the '
            "columns instance_id, model, response and what else an import takes"
        )
    try:
        create_engine(source)
    except (ArgumentError, ModuleNotFoundError, ValueError) as error:
        raise BadInput(
            f"source {shown(source)}: not a database that can be asked ({type(error).__name__})"
        ) from error
    return Query(source, query)
