"""Files of Inspect logs: a zip of JSON (.eval) or one JSON file. What no class here names is ignored.

Nothing is unpacked to disk, and one sample after the other is read by a process of its own.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.errors import BadFile
from data.importers.child import in_child
from data.importers.safe import Unsafe, read_json, zip_part, zip_parts

HEADER, STARTED, SAMPLES = "header.json", "_journal/start.json", "samples/"
MOST_RATIO = 400  # a log repeats itself: events hold every message again
Found = tuple[dict[str, Any], Iterator[dict[str, Any]]]
OWN = "medjury"  # the key under which our own export keeps what it says


def wrong(path: Path, why: str) -> BadFile:
    """Return the error that names the log."""
    return BadFile(f"{path}: {why}; nothing was imported")


def read_log(path: Path) -> Found:
    """Return a log's head, and its samples as a process of their own reads them.

    Raises
    ------
    BadFile
        If it is no log, cut short, or larger than any bound here. No text of it is quoted.
    """
    try:
        size = path.stat().st_size
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    parts = in_child(_parts, path, name=path, size=size)
    return next(parts), parts


def _parts(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a log's head, and then its samples."""
    try:
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                yield from _parts_of_zip(path, file)
                return
            if path.suffix.lower() == ".eval":
                raise wrong(path, "no .eval log, or cut short; copy it again")
            file.seek(0)
            log = _json_object(path, path.name, file.read())
    except OSError as error:
        raise wrong(path, str(error.strerror)) from error
    samples = log.pop("samples", None) or []
    if not isinstance(samples, list):
        raise wrong(path, "samples are not a list, as Inspect writes them")
    yield log
    yield from samples


def _parts_of_zip(path: Path, file: BinaryIO) -> Iterator[dict[str, Any]]:
    try:
        parts = zip_parts(file, MOST_RATIO)
        if HEADER not in parts:
            why = (
                "the run did not end (no header.json); `inspect log recover` may save what there is"
                if STARTED in parts
                else "a zip, but no log of Inspect (no header.json)"
            )
            raise wrong(path, why)
        yield _json_object(path, HEADER, zip_part(file, parts[HEADER]))
        for name, part in parts.items():
            if name.startswith(SAMPLES):
                yield _json_object(path, "a sample", zip_part(file, part))
    except Unsafe as error:
        raise wrong(path, str(error)) from error


def _json_object(path: Path, name: str, body: bytes) -> dict[str, Any]:
    try:
        value = read_json(body.decode("utf-8-sig"))
    except UnicodeError as error:
        raise wrong(path, f"{name} is not text in UTF-8") from error
    except Unsafe as error:
        raise wrong(path, f"{name} {error}; copy the log again") from error
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
