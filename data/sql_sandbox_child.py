"""The process in which a model's SQL runs: one read-only database, no other file, little time and memory.

Reads a JSON list of queries' limits from its first line, then a query a line, and answers a line each.
Only the standard library: it is started alone, with nothing of medjury in reach.
"""

import json
import resource
import sqlite3
import sys
import time
from typing import Any

READING = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
FORBIDDEN = {"load_extension", "fts3_tokenizer", "sqlite_log", "writefile", "readfile", "edit"}
LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 10_000_000,  # bytes of a value or row
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 200_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 1_000,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 200,
}
STEPS = 10_000  # of SQLite's machine between two looks at the clock


def allowed(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Tell SQLite whether a statement may do what it asks for."""
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in FORBIDDEN:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def plain(value: Any) -> Any:
    """Return a value as JSON has it; bytes as {"hex": ...}."""
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def opened(path: str) -> sqlite3.Connection:
    """Return the database, to be read only."""
    database = sqlite3.connect(f"{path}?mode=ro&immutable=1", uri=True, isolation_level=None)
    database.execute("pragma temp_store = memory")  # what it sorts goes to no file
    database.execute("select count(*) from sqlite_master").fetchone()
    for limit, value in LIMITS.items():
        database.setlimit(limit, value)
    database.set_authorizer(allowed)
    return database


def answer(database: sqlite3.Connection, query: str, seconds: float, most: int) -> dict[str, Any]:
    """Return the rows of a query, or why there are none."""
    end = time.monotonic() + seconds
    database.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    try:
        rows = database.execute(query).fetchmany(most + 1)
    except sqlite3.DatabaseError as error:
        denied = "not authorized" in str(error) or "prohibited" in str(error)
        reason = "time" if "interrupted" in str(error) else "refused" if denied else "error"
        return {"reason": reason}
    except (sqlite3.Error, sqlite3.Warning, OverflowError, UnicodeError, ValueError):
        return {"reason": "error"}
    except MemoryError:
        return {"reason": "memory"}
    if len(rows) > most:
        return {"reason": "rows"}
    return {"rows": [[plain(value) for value in row] for row in rows]}


def main() -> None:
    """Answer the queries of standard input, until it ends."""
    asked = json.loads(sys.stdin.readline())
    resource.setrlimit(resource.RLIMIT_AS, (asked["bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    database = opened(asked["database"])
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    print(json.dumps({"ready": True}), flush=True)  # noqa: T201 its answer
    for line in sys.stdin:
        told = answer(database, json.loads(line), asked["seconds"], asked["rows"])
        print(json.dumps(told), flush=True)  # noqa: T201 its answer


if __name__ == "__main__":
    main()
