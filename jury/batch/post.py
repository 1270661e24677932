"""The seam between medjury and a provider's batches, and the ways a request to it can fail."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2

from data.errors import BadPanel
from data.queries.batches import BatchView
from data.schema import Status
from jury.call import Answer, Call
from jury.providers.replies import body_of, http_failure, unreadable

UPLOAD_SECONDS = 600.0
NO_SUCH = (404, 405, 501)
PROVIDER_ID = re.compile(r"[\w.-]{1,200}")
Request = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that a provider takes in one batch."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a batch is at its provider.

    Attributes
    ----------
    done
        Requests that have ended, as far as the provider tells before all have.
    failed
        The provider's code where it refused the batch as a whole, empty where it did not.
    leftover
        Outcome of the requests that its results do not name.
    files
        Ids of the files that hold its results.
    gone
        Whether its results can no longer be had.
    """

    ended: bool
    done: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: str = ""
    leftover: str = "unanswered"
    files: tuple[str, ...] = ()
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a batch's results: an answer, or an outcome without one."""

    custom_id: str
    answer: Answer | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What looking for a batch at its provider has shown; `doubt` says why it is not certain."""

    provider_id: str = ""
    doubt: str = ""


class Trouble(Exception):
    """A request about a batch that did not succeed, with the answer that it is."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason)
        self.answer = answer

    @property
    def sure(self) -> bool:
        """Whether the provider has said no: what was asked for has not been done."""
        return self.answer.http is not None and 400 <= self.answer.http < 500


class Post(Protocol):
    """A provider's counter for batches of one juror. Every method may raise Trouble."""

    @property
    def limits(self) -> Limits:
        """Return the most one batch may hold."""
        ...

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as it stands in a batch."""
        ...

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        ...

    async def check(self) -> None:
        """Ask for the list of batches; raises Trouble where there is none."""
        ...

    async def hand_in(
        self, marker: str, requests: Sequence[Request], asking: Callable[[str], None]
    ) -> str:
        """Hand a batch in and return its id.

        `asking` is called with the id of the input file, if there is one, just before the
        provider could begin to answer.
        """
        ...

    async def find(self, batch: BatchView, ours: frozenset[str]) -> Found:
        """Look for a batch that was handed in and whose id was never heard."""
        ...

    async def withdraw(self, batch: BatchView) -> None:
        """Take back what was uploaded for a batch that has no id."""
        ...

    async def standing(self, provider_id: str) -> Standing:
        """Return how far a batch is."""
        ...

    def results(self, provider_id: str, standing: Standing) -> AsyncIterator[Entry]:
        """Yield the results of a batch that has ended, in any order."""
        ...

    async def forget(self, batch: BatchView, standing: Standing) -> None:
        """Delete what the provider keeps of a batch's texts."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


def client(base_url: str, timeout: float) -> httpx2.AsyncClient:
    """Return a client like the live jurors', that follows no redirect.

    A proxy of the environment carries https only, whose texts it cannot read.
    """
    encrypted = base_url.startswith("https://")
    return httpx2.AsyncClient(follow_redirects=False, trust_env=encrypted, timeout=timeout)


@contextmanager
def told(sdk: Any, seconds: float) -> Iterator[None]:
    """Turn what an SDK raises into Trouble; `sdk` is the anthropic or the openai module."""
    try:
        yield
    except sdk.APITimeoutError as error:
        reason = f"no answer within {seconds:g} s"
        raise Trouble(Answer(Status.TIMEOUT, reason, transient=True)) from error
    except sdk.APIConnectionError as error:
        reason = f"no connection: {type(error.__cause__ or error).__name__}"
        raise Trouble(Answer(Status.REQUEST_FAILED, reason, transient=True)) from error
    except sdk.APIStatusError as error:
        failed = http_failure(error.status_code, error.response.headers, error.response.text)
        raise Trouble(failed) from error


def object_in(text: str) -> dict[str, Any]:
    """Return the JSON object in a body, or raise Trouble."""
    found = body_of(text)
    if found is None:
        raise Trouble(unreadable(text))
    return found


def listed(text: str) -> dict[str, Any]:
    """Return a page of a list, or raise Trouble as if there were no such list."""
    found = body_of(text) or {}
    if not isinstance(found.get("data"), list):
        raise Trouble(http_failure(404, {}, ""))
    return found


def id_in(body: Mapping[str, Any]) -> str:
    """Return the id in an object, or raise Trouble where there is none to use in an address."""
    found = body.get("id")
    if not isinstance(found, str) or not PROVIDER_ID.fullmatch(found):
        raise Trouble(unreadable(""))
    return found


def numbers(source: Any) -> dict[str, int]:
    """Return the counts in an object."""
    if not isinstance(source, dict):
        return {}
    return {str(name): value for name, value in source.items() if isinstance(value, int)}


def lines_of(content: bytes) -> Iterator[dict[str, Any] | None]:
    """Yield the objects of a JSON Lines file, None for a line that holds none."""
    for line in content.split(b"\n"):
        if line.strip():
            yield body_of(line.decode("utf-8", "replace"))


def no_batches(panel: str, juror: str, host: str) -> BadPanel:
    """Return the complaint that an endpoint has no batches."""
    return BadPanel(
        f"panel {panel}, juror {juror}: this endpoint ({host}) has no batches; run without --batch"
    )
