"""A request to a juror and how it ended: the one interface between medjury and a provider."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from data.calls import Status

NO_CONNECTION = "no connection"
NO_CREDENTIALS = "no credentials"
TOO_LONG = "the prompt is longer than the model takes"
Form = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the conversation with a juror.

    Attributes
    ----------
    shared
        Number of characters at its beginning with which other requests of the run begin as well;
        0 where caching them gains nothing. It changes what a request costs, not what the juror
        reads.
    """

    role: Literal["user", "assistant"]
    text: str
    shared: int = 0

    @property
    def prefix(self) -> str:
        """The beginning that other requests share, empty where caching it gains nothing."""
        first, own = self.text[: self.shared], self.text[self.shared :]
        return first if first.strip() and own.strip() else ""

    def marked(self, mark: Mapping[str, Any]) -> str | list[dict[str, Any]]:
        """Return the text; with a shared beginning as two blocks, the first with a mark for caching."""
        if not self.prefix:
            return self.text
        first, own = (
            {"type": "text", "text": text} for text in (self.prefix, self.text[self.shared :])
        )
        return [first | dict(mark), own]


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the conversation so far, and the form of answer that is asked for.

    Attributes
    ----------
    schema
        JSON Schema of the answer, with one property per criterion.
    form
        How the endpoint is asked to keep to the schema; "text" asks in the prompt only.
    replicate
        0, or the number of the repetition; it is not sent to a real juror.
    probabilities
        Whether the endpoint is to return the probabilities of each token and its alternatives.
    """

    messages: tuple[Turn, ...]
    schema: Mapping[str, Any]
    form: Form = "json_schema"
    replicate: int = 0
    probabilities: bool = False

    @property
    def prefix(self) -> str:
        """The beginning that other requests share, empty where caching it gains nothing."""
        return self.messages[0].prefix


@dataclass(frozen=True, slots=True)
class Token:
    """One token of an answer, with its alternatives.

    Attributes
    ----------
    text
        Its bytes: a token may hold part of a character.
    options
        Bytes and probability (0 to 1) of the likeliest tokens in its place, itself included.
    """

    text: bytes
    options: tuple[tuple[bytes, float], ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed, None where the endpoint did not report them.

    `tokens_in` includes cached tokens.
    """

    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens_cached: int | None = None
    tokens_cache_write: int | None = None
    tokens_reasoning: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """How a request ended. No request raises: a failure is an answer too.

    Attributes
    ----------
    status
        OK when a complete text came, which may still not be a usable verdict.
    reason
        Why not OK, without anything of the texts that were sent.
    text
        The juror's words, or the body of an error, verbatim.
    sent
        The settings that the request carried, without its texts.
    http
        Status code; None when no HTTP reply came, though the request may have been billed.
    transient
        Whether the same request may succeed a little later.
    retry_after
        Seconds that the endpoint asks to wait.
    unsent
        Whether there was no connection, so that nothing was sent and nothing can be billed.
    tokens
        The tokens of the answer, where their probabilities were asked for and served; other
        tokens that the model wrote, such as its reasoning, may be among them.
    """

    status: Status
    reason: str = ""
    text: str = ""
    sent: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    http: int | None = None
    transient: bool = False
    retry_after: float | None = None
    request_id: str = ""
    returned_model: str = ""
    unsent: bool = False
    tokens: tuple[Token, ...] = ()


class Provider(Protocol):
    """The connection to a juror: whatever turns a call into an answer."""

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended; raise only when cancelled."""
        ...

    async def slots(self) -> int:
        """Return how many requests its server works on at once, 1 where that is not known."""
        return 1

    async def close(self) -> None:
        """Close all connections."""
        ...
