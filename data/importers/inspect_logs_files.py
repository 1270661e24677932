"""Files of Inspect logs: a zip of JSON (.eval) or one JSON file, read with limits.

Nothing is unpacked to disk. A log may come from a stranger, so that sizes are held to bounds before
anything is read, and nothing is read beyond what the file's own list of parts declares. What no
class here names is ignored.
"""

import io
import json
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from backports import zstd
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import BadFile
from data.importers.source import BROKEN

HEADER, STARTED, SAMPLES = "header.json", "_journal/start.json", "samples/"
ZSTANDARD = 93
MOST_PART, MOST_BYTES, MOST_PARTS = 256 << 20, 8 << 30, 200_000
MOST_JSON = 1 << 30
MOST_RATIO, FREE_BYTES, FREE_WHOLE = (
    400,
    32 << 20,
    256 << 20,
)  # a log repeats itself: events hold every message again
Found = tuple[dict[str, Any], Iterator[dict[str, Any]]]
OWN = "medjury"  # the key under which our own export keeps what it says


def wrong(path: Path, why: str) -> BadFile:
    """Return the error that names the log."""
    return BadFile(f"{path}: {why}; nothing was imported")


def read_log(path: Path) -> Found:
    """Return a log's head, and its samples as they are read.

    Raises
    ------
    BadFile
        If it is no log, cut short, or larger than any bound here. No text of it is quoted.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        size = path.stat().st_size
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    if start.startswith(b"PK"):
        return _read_zip(path)
    if path.suffix.lower() == ".eval":
        raise wrong(path, "no .eval log, or cut short; copy it again")
    if size > MOST_JSON:
        raise wrong(path, "over 1 GiB of JSON; `inspect log convert --to eval` makes it readable")
    try:
        log = _json_object(path, path.name, path.read_bytes())
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    samples = log.pop("samples", None)
    if not isinstance(samples or [], list):
        raise wrong(path, "samples are not a list, as Inspect writes them")
    return log, iter(samples or [])


def _read_zip(path: Path) -> Found:
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except BROKEN as error:
        raise wrong(path, "not a whole zip, as an .eval log is; copy it again") from error
    _check_parts(path, parts)
    part_of = {part.filename: part for part in parts}
    if HEADER not in part_of:
        why = (
            "the run did not end (no header.json); `inspect log recover` may save what there is"
            if STARTED in part_of
            else "a zip, but no log of Inspect (no header.json)"
        )
        raise wrong(path, why)
    head = _json_object(path, HEADER, _part_content(path, part_of[HEADER]))
    own = [part for part in parts if part.filename.startswith(SAMPLES)]
    return head, (_json_object(path, "a sample", _part_content(path, part)) for part in own)


def _check_parts(path: Path, parts: list[zipfile.ZipInfo]) -> None:
    """Refuse names that lead out of the log, and sizes beyond the limits, before reading any."""
    if len(parts) > MOST_PARTS:
        raise wrong(path, f"over {MOST_PARTS} parts")
    if len({part.filename for part in parts}) < len(parts):
        raise wrong(path, "a part of it stands in it twice")
    for part in parts:
        steps = PurePosixPath(part.filename.replace("\\", "/"))
        if steps.is_absolute() or ".." in steps.parts or stat.S_ISLNK(part.external_attr >> 16):
            raise wrong(path, "a part of it leads out of it: this is no log of Inspect")
        if part.flag_bits & 1:
            raise wrong(path, "it is encrypted; import it without a password")
        if part.file_size > MOST_PART or _is_dense(part.file_size, part.compress_size, FREE_BYTES):
            raise wrong(path, "a part of it would unpack to more than any sample has")
    unpacked = sum(part.file_size for part in parts)
    if unpacked > MOST_BYTES or _is_dense(
        unpacked, sum(part.compress_size for part in parts), FREE_WHOLE
    ):
        raise wrong(path, "it would unpack to more than any log has")


def _is_dense(unpacked: int, packed: int, free: int) -> bool:
    """Tell whether something unpacks to far more than its size and than a free allowance."""
    return unpacked > free and unpacked > MOST_RATIO * max(packed, 1)


def _part_content(path: Path, part: zipfile.ZipInfo) -> bytes:
    """Return the content of a part, never more than its zip declares."""
    try:
        if part.compress_type == ZSTANDARD:
            content = _zstandard_content(path, part)
        else:
            with zipfile.ZipFile(path) as archive, archive.open(part) as stream:
                content = stream.read(part.file_size + 1)
    except (*BROKEN, zstd.ZstdError) as error:
        raise wrong(path, "a part of it is damaged or cut short; copy it again") from error
    if len(content) != part.file_size:
        raise wrong(path, "a part of it has another length than the zip says; copy it again")
    return content


def _zstandard_content(path: Path, part: zipfile.ZipInfo) -> bytes:
    """Return a part packed with Zstandard, which zipfile cannot read before Python 3.14."""
    with path.open("rb") as file:
        file.seek(part.header_offset)
        fixed = file.read(30)
        if len(fixed) < 30 or not fixed.startswith(b"PK\x03\x04"):
            raise zipfile.BadZipFile
        name, extra = struct.unpack("<HH", fixed[26:30])
        file.seek(name + extra, io.SEEK_CUR)
        packed = file.read(part.compress_size)
    with zstd.ZstdFile(io.BytesIO(packed)) as stream:
        content = stream.read(part.file_size + 1)
    if zlib.crc32(content) != part.CRC:
        raise zipfile.BadZipFile
    return content


def _json_object(path: Path, name: str, body: bytes) -> dict[str, Any]:
    """Return a JSON object; bare NaN, which Inspect writes for missing scores, is allowed."""
    try:
        value = json.loads(body.decode("utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        position = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise wrong(path, f"{name} is not whole JSON ({position}); copy the log again") from error
    except UnicodeError as error:
        raise wrong(path, f"{name} is not text in UTF-8") from error
    except (RecursionError, ValueError) as error:
        raise wrong(path, f"{name} is nested too deep, or has a number too long") from error
    if not isinstance(value, dict):
        raise wrong(path, f"{name} is no JSON object: this is no log of Inspect")
    return value


class LogPart(BaseModel):
    """Base of a log's parts; other keys are ignored."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


P = TypeVar("P", bound=LogPart)


class LogMessage(LogPart):
    """A turn of a talk; content in pieces may hold images, which are no text."""

    role: str = "user"
    content: str | list[dict[str, Any]] = ""

    @property
    def text(self) -> str:
        """Return its text, pieces of it on lines of their own."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(
            str(piece.get("text")) for piece in self.content if piece.get("type") == "text"
        )

    @property
    def pictures(self) -> bool:
        """Whether it holds anything other than text and reasoning."""
        pieces = self.content if isinstance(self.content, list) else []
        return any(piece.get("type") not in ("text", "reasoning") for piece in pieces)


class Choice(LogPart):
    """An answer."""

    message: LogMessage


class LogOutput(LogPart):
    """The output of a model."""

    choices: list[Choice] = Field(default_factory=list)
    completion: str = ""

    @property
    def text(self) -> str:
        """Return the first answer."""
        return self.choices[0].message.text if self.choices else self.completion


class Score(LogPart):
    """A score, as a scorer gave it."""

    value: Any = None
    explanation: str | None = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def own(self) -> Mapping[str, Any]:
        """Return the record of our own scorer, empty for any other scorer."""
        body = (self.metadata or {}).get(OWN)
        return body if isinstance(body, dict) and isinstance(body.get("jurors"), dict) else {}


class Sample(LogPart):
    """One answer to one input, with its scores."""

    id: str = Field(min_length=1)
    epoch: int = 1
    input: str | list[LogMessage]
    target: str | list[str] = ""
    output: LogOutput = Field(default_factory=LogOutput)
    scores: dict[str, Score] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    error: Any = None
    invalidation: Any = None
    attachments: dict[str, str] = Field(default_factory=dict)


class LogSpec(LogPart):
    """The task that was run, with its model and scorers."""

    task: str = Field(min_length=1)
    model: str = Field(min_length=1)
    scorers: list[dict[str, Any]] | None = None
    model_roles: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class LogHead(LogPart):
    """A log without its samples."""

    version: int
    status: str
    eval: LogSpec
    invalidated: bool = False


def checked(path: Path, name: str, value: Any, form: type[P]) -> P:
    """Return a validated part of a log, or refuse the log without quoting it."""
    try:
        return form.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(step)[:40] for step in first["loc"][:2])
        raise wrong(path, f"{name}: {key} is not as Inspect writes it ({first['type']})") from error
