"""What is put to a juror and what comes back: the one seam between medjury and a vendor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from data.status import Status

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
        Characters at its beginning with which other requests of the same run begin as well, 0
        where nothing is gained by caching them. It decides what a request costs, and nothing
        that the juror reads.
    """

    role: Literal["user", "assistant"]
    text: str
    shared: int = 0

    @property
    def pieces(self) -> tuple[str, ...]:
        """The text, cut where its shared beginning ends; uncut where there is none to cache."""
        first, rest = self.text[: self.shared], self.text[self.shared :]
        return (first, rest) if first.strip() and rest.strip() else (self.text,)


@dataclass(frozen=True, slots=True)
class Call:
    """One request: the conversation so far and the form the answer is to have.

    Attributes
    ----------
    schema
        JSON Schema of the answer, with a property a criterion.
    form
        How the endpoint is asked to keep to it; "text" asks in the prompt only.
    replicate
        0, or the number of the repetition; a real juror never learns of it.
    probabilities
        Whether the endpoint is to say how likely each token was, and the others in its place.
    """

    messages: tuple[Turn, ...]
    schema: Mapping[str, Any]
    form: Form = "json_schema"
    replicate: int = 0
    probabilities: bool = False

    @property
    def prefix(self) -> str:
        """What other requests begin with as well, empty where nothing is gained by caching it."""
        pieces = self.messages[0].pieces
        return pieces[0] if len(pieces) > 1 else ""


@dataclass(frozen=True, slots=True)
class Token:
    """A stretch of an answer that was written at once, and what might have stood there.

    Attributes
    ----------
    text
        Its bytes: a token may hold a part of a character.
    options
        Bytes and probability (0 to 1) of the likeliest tokens in its place, itself among them.
    """

    text: bytes
    options: tuple[tuple[bytes, float], ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as billed; None where the endpoint did not say. `tokens_in` includes cached ones."""

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
        OK when a whole text came, which may still not be a usable verdict.
    reason
        Why not OK, in words that hold nothing of any text sent.
    text
        The juror's words, or the body of an error, verbatim.
    sent
        The settings the request really carried, without its texts.
    http
        Status code, or None when no HTTP answer came and a vendor may have billed all the same.
    transient
        Whether the same request may succeed a little later.
    retry_after
        Seconds the endpoint asks to wait.
    unsent
        Whether no connection came about, so that nothing left and nothing can be billed.
    tokens
        The tokens of the answer, where their probabilities were asked for and served; others that
        the model wrote, such as its reasoning, may be among them.
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


class JurorSettings(Protocol):
    """What a request says of the juror it is made to."""

    @property
    def model(self) -> str: ...  # noqa: D102 - the panel's own keys
    @property
    def max_tokens(self) -> int: ...  # noqa: D102
    @property
    def temperature(self) -> float | None: ...  # noqa: D102
    @property
    def effort(self) -> str | None: ...  # noqa: D102


class Provider(Protocol):
    """A juror's line: whatever can turn a call into an answer."""

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended; raises only when cancelled."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...
