"""The parts of an Inspect log that are read here; everything else in it is ignored."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from data.importers.inspect_logs_files import wrong

OWN = "medjury"  # the key under which our own export keeps what it says


class Part(BaseModel):
    """A piece of a log; what is not named here is ignored."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


P = TypeVar("P", bound=Part)


class Message(Part):
    """A turn of a talk; content in pieces may hold images, which are no text."""

    role: str = "user"
    content: str | list[dict[str, Any]] = ""

    @property
    def text(self) -> str:
        """Return its text, pieces of it on lines of their own."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(str(one.get("text")) for one in self.content if one.get("type") == "text")

    @property
    def pictures(self) -> bool:
        """Whether there is anything in it that is no text, and no thought either."""
        pieces = self.content if isinstance(self.content, list) else []
        return any(one.get("type") not in ("text", "reasoning") for one in pieces)


class Choice(Part):
    """An answer."""

    message: Message


class Output(Part):
    """What the model answered."""

    choices: list[Choice] = Field(default_factory=list)
    completion: str = ""

    @property
    def text(self) -> str:
        """Return the first answer."""
        return self.choices[0].message.text if self.choices else self.completion


class Score(Part):
    """What a scorer said."""

    value: Any = None
    explanation: str | None = None
    reason: str | None = None
    metadata: dict[str, Any] | None = None

    @property
    def own(self) -> Mapping[str, Any]:
        """Return what our own scorer says, empty where it is another's."""
        found = (self.metadata or {}).get(OWN)
        return found if isinstance(found, dict) and isinstance(found.get("jurors"), dict) else {}


class Sample(Part):
    """One answer to one input, with its scores."""

    id: str = Field(min_length=1)
    epoch: int = 1
    input: str | list[Message]
    target: str | list[str] = ""
    output: Output = Field(default_factory=Output)
    scores: dict[str, Score] | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    error: Any = None
    invalidation: Any = None
    attachments: dict[str, str] = Field(default_factory=dict)


class Spec(Part):
    """What was run."""

    task: str = Field(min_length=1)
    model: str = Field(min_length=1)
    scorers: list[dict[str, Any]] | None = None
    model_roles: dict[str, Any] | None = None


class Head(Part):
    """A log without its samples."""

    version: int
    status: str
    eval: Spec
    invalidated: bool = False


def checked(path: Path, what: str, found: Any, form: type[P]) -> P:
    """Return a part of a log, or refuse the log without quoting it."""
    try:
        return form.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(step)[:40] for step in first["loc"][:2])
        raise wrong(
            path, f"{what}: {place} is not as Inspect writes it ({first['type']})"
        ) from error
