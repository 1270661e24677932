"""Files of users read with limits (TOML), and files written completely or not at all.

In a CSV file no text in a cell runs as a formula.
"""

import csv
import io
import json
import os
import re
import secrets
import shutil
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import BadFile
from data.safe_text import guarded, guarded_name, one_line

if TYPE_CHECKING:
    import pandas as pd

MOST_BYTES = 1_000_000
DEEPEST = 200  # dots of one key: reading takes the square of them
CHAINS = re.compile(r"[^\w\"'. \t-]")  # what ends a dotted key
WRITTEN = re.compile(  # a comment or a string; what has no end goes on as far as it could
    r'''#[^\n]*+|"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)|\'{3}.*?(?:\'{3,5}|\Z)'''
    r"""|"(?:\\[^\n]|[^"\\\n])*+"?|\'[^\'\n]*+\'?""",
    re.DOTALL,
)
DOTTED = re.compile(r"(?<![\w\"'-])[\w\"'-]++[ \t]*+\.")
LONGEST = 160  # characters of what the TOML reader says


def keep_private() -> None:
    """Have all files that this process and its children make be read and written by their owner alone.

    Exports, reports, packages, keys and backups hold what patients and raters said. A file that is
    written anew keeps who may read it.
    """
    os.umask(0o077)


class NotToml(ValueError):
    """A file that cannot be read as TOML, with the reason in one line."""


def read_user_toml(path: Path, where: str) -> dict[str, Any]:
    """Read a user's TOML file; `where` is what a message begins with.

    Raises
    ------
    BadFile
        In one line, if the file cannot be opened or is not TOML.
    """
    try:
        return read_toml(path)
    except OSError as error:
        raise BadFile(f"{where}: {error.strerror}") from error
    except NotToml as error:
        raise BadFile(f"{where}: not TOML: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file in UTF-8, with or without a byte-order mark.

    Raises
    ------
    OSError
        If the file cannot be opened.
    NotToml
        If it is no TOML in UTF-8, over a megabyte, nested too deep, or has a number too long.
    """
    if path.stat().st_size > MOST_BYTES:
        raise NotToml(f"over {MOST_BYTES} bytes")
    try:
        text = path.read_text("utf-8-sig")
        keys = WRITTEN.sub('""', text)
        if any(len(DOTTED.findall(chain)) > DEEPEST for chain in CHAINS.split(keys)):
            raise NotToml("nested too deep")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotToml(one_line(str(error), LONGEST)) from error
    except UnicodeDecodeError as error:
        raise NotToml(f"not text in UTF-8 at byte {error.start + 1}") from error
    except RecursionError as error:
        raise NotToml("nested too deep") from error
    except NotToml:
        raise
    except ValueError as error:  # of int(), which takes no number of any length
        raise NotToml("a number in it is too long") from error


def refuse_full(out: Path, where: str) -> None:
    """Refuse a folder that holds something."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadFile(f"{where}: is there already; name a new folder")


@contextmanager
def new_folder(out: Path, where: str) -> Iterator[Path]:
    """Yield a folder that takes the place of `out`, new or empty, once all of it is written.

    Raises
    ------
    BadFile
        If it cannot be written, or `out` holds something; `where` says what named it.
    """
    folder: Path | None = None
    try:
        refuse_full(out, where)
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        yield folder
        folder.chmod(0o755)
        if out.exists():
            out.rmdir()
        folder.rename(out)
    except OSError as error:
        raise BadFile(f"{where}: {error.strerror}") from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def private(path: str, flags: int) -> int:
    """Open a new file that its owner alone may read; an `opener` of `open`."""
    return os.open(path, flags, 0o600)


def part_of(to: Path) -> Path:
    """Return a unique hidden path beside a file, to write it before it gets its name.

    A number of the process would not do: a killed one may have had it, or one of another container.
    """
    return to.with_name(f".{to.name}.{secrets.token_hex(8)}.part")


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """Yield a path to write to; it is renamed when the block ends and removed if it fails.

    Raises
    ------
    FileExistsError
        If there is a file of that name by then.
    """
    part = part_of(to)
    try:
        yield part
        publish(part, to)
    finally:
        part.unlink(missing_ok=True)


def publish(part: Path, to: Path) -> None:
    """Rename a finished file in one step, never over another, once it is on the disk."""
    _to_disk(part)
    try:
        os.link(part, to)
    except FileExistsError:
        raise
    except OSError:  # a disk without hard links
        if os.path.lexists(to):
            raise FileExistsError(to) from None
        part.rename(to)
    with suppress(OSError):  # of a disk that has no such thing for folders
        _to_disk(to.parent)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


FOR_SPREADSHEETS = "utf-8-sig"
FREE_TEXT = {"comment", "remark", "text", "note", "actor", "title"}


def write_csv(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    encoding: str = "utf-8",
) -> int:
    """Write rows to a new CSV file that its owner alone may read, whole or not at all; return how many there were.

    With the mark of `FOR_SPREADSHEETS` Excel knows that it is UTF-8, not Windows-1252.
    """
    written = 0
    try:
        with (
            whole_file(path) as part,
            open(part, "x", encoding=encoding, newline="", opener=private) as file,
        ):
            writer = csv.writer(file)
            writer.writerow(columns)
            for row in rows:
                writer.writerow(row)
                written += 1
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    return written


def csv_bytes(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """Return a CSV file as a browser saves it, in UTF-8 with the mark of `FOR_SPREADSHEETS`."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue().encode(FOR_SPREADSHEETS)


def cells(columns: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> Iterator[list[object]]:
    """Yield rows as a file has them: no text can be a formula in a spreadsheet.

    A name that is a number, such as -5, stays one; free text that begins like one does not.
    """
    guards = [guarded if name in FREE_TEXT else guarded_name for name in columns]
    for row in rows:
        pairs = zip(guards, row, strict=True)
        yield [guard(cell) if isinstance(cell, str) else _cell(cell) for guard, cell in pairs]


def frame_cells(table: "pd.DataFrame") -> tuple[list[str], Iterator[list[object]]]:
    """Return a frame of responses as `cells` with its columns: each instance has its own name.

    What is missing in the frame is an empty cell.
    """
    columns = [str(name) for name in table.columns]
    values = table.astype(object)
    if "instance_id" in table:
        values["instance_id"] = [
            str(name).removeprefix(f"{benchmark}/")
            for name, benchmark in zip(table["instance_id"], table["benchmark"], strict=True)
        ]
    rows = values.where(values.notna(), None).itertuples(index=False, name=None)
    return columns, cells(columns, rows)


def _cell(value: Any) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, dict | list):
        return json.dumps(value, sort_keys=True)
    return "" if value is None else value
