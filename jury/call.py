"""What is put to a juror and what comes back: the one seam between medjury and a vendor."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from data.status import Status

NO_CONNECTION = "no connection"
NO_CREDENTIALS = "no credentials"
Form = Literal["json_schema", "json_object", "text"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of the conversation with a juror."""

    role: Literal["user", "assistant"]
    text: str


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
    """

    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    form: Form = "json_schema"
    replicate: int = 0


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
