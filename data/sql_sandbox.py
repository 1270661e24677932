"""Run the SQL that models wrote: on one database that is only read, with limits on time, memory and rows."""

import contextlib
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from data.errors import BadFile

CHILD = Path(__file__).with_name("sql_sandbox_child.py")
HEADER = b"SQLite format 3\x00"
GRACE = 2.0  # seconds beyond a query's own, after which its process is ended
START = 20.0  # seconds to open the database

Reason = Literal["", "error", "time", "rows", "memory", "refused"]
Value = int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Limits:
    """What one query may take.

    Attributes
    ----------
    seconds : of the clock
    rows : the most it may give
    memory : bytes of its process, Python and SQLite included
    """

    seconds: float = 10.0
    rows: int = 100_000
    memory: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class QueryRows:
    """What a query gave: its rows, or none and the reason.

    `reason` is "error" for what SQLite does not take, "refused" for anything but reading, and
    "time", "rows" or "memory" for a limit; "" where it ran.
    """

    rows: tuple[tuple[Value, ...], ...] = ()
    reason: Reason = ""


class SqlSandbox:
    """A process that runs queries on a database; use it in a `with` block.

    Nothing but reading the database's tables is allowed: no writing, attaching, pragma or
    extension, and the process can open and write no file. A query that ends the process, or
    does not end itself, costs that process alone: the next gets another.

    Raises
    ------
    BadFile
        If the file is no SQLite database that can be read.
    """

    def __init__(self, database: Path, limits: Limits | None = None) -> None:
        self.database, self.limits = database, limits or Limits()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        _check(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, query: str) -> QueryRows:
        """Return what a query gives. Whatever it is, this returns within the limit and two seconds."""
        process = self._process or self._start()
        try:
            told = self._ask(process, query)
        except (BrokenPipeError, EOFError):
            self._end()
            return QueryRows(reason="memory")
        if told is None:
            self._end()
            return QueryRows(reason="time")
        rows = told.get("rows", ())
        return QueryRows(tuple(tuple(map(_value, row)) for row in rows), told.get("reason", ""))

    def _start(self) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(  # noqa: S603 our own module, by our own Python
            [sys.executable, "-I", "-S", str(CHILD)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
        )
        self._process, self._rest = process, b""
        asked = {
            "database": self.database.resolve().as_uri(),
            "seconds": self.limits.seconds,
            "rows": self.limits.rows,
            "bytes": self.limits.memory,
        }
        with contextlib.suppress(BrokenPipeError, EOFError):
            self._send(process, asked)
            if self._line(process, START):
                return process
        self._end()
        raise BadFile(f"{self.database}: is no SQLite database that can be read")

    def _ask(self, process: "subprocess.Popen[bytes]", query: str) -> dict[str, Any] | None:
        """Return what the process answers; None where it takes too long."""
        self._send(process, query)
        line = self._line(process, self.limits.seconds + GRACE)
        return json.loads(line) if line else None

    @staticmethod
    def _send(process: "subprocess.Popen[bytes]", body: object) -> None:
        stdin = process.stdin
        if stdin is None:  # never: it was asked for
            raise EOFError
        stdin.write(json.dumps(body).encode("ascii") + b"\n")
        stdin.flush()

    def _line(self, process: "subprocess.Popen[bytes]", seconds: float) -> bytes:
        """Return the next line, b"" where none comes in time; EOFError where the process ended."""
        stdout = process.stdout
        if stdout is None:  # never: it was asked for
            raise EOFError
        while b"\n" not in self._rest:
            ready, _, _ = select.select([stdout], [], [], seconds)
            if not ready:
                return b""
            part = os.read(stdout.fileno(), 1 << 20)
            if not part:
                raise EOFError
            self._rest += part
        line, _, self._rest = self._rest.partition(b"\n")
        return line

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        process.wait()


def run_queries(
    database: Path, queries: Sequence[str], limits: Limits | None = None
) -> Iterator[QueryRows]:
    """Yield what each query gives on a database, in order; equal queries run once."""
    known: dict[str, QueryRows] = {}
    with SqlSandbox(database, limits) as sandbox:
        for query in queries:
            if query not in known:
                known[query] = sandbox.run(query)
            yield known[query]


def _check(database: Path) -> None:
    try:
        with database.open("rb") as file:
            header = file.read(len(HEADER))
    except OSError as error:
        raise BadFile(f"{database}: cannot be read ({error.strerror})") from None
    if header != HEADER:
        raise BadFile(f"{database}: is no SQLite database; name the file that the queries are for")


def _value(value: Any) -> Value:
    """Return a value as SQLite had it."""
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    plain: Value = value
    return plain
