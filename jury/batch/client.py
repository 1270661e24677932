"""A provider's batches: the interface that both vendors' clients implement, and how it fails."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pkgutil import resolve_name
from typing import Any, ClassVar

import httpx2

from data.schema import Status
from data.schema.jury import UNANSWERED, JuryBatch
from jury.call import NO_CONNECTION, Answer, Call
from jury.http_answers import body_of, http_failure, unreadable
from jury.panel import Juror
from jury.providers.http_client import Endpoint
from jury.providers.registry import PROVIDERS

UPLOAD_SECONDS = 600.0
NO_SUCH_PATH = (404, 405, 501)
CLOCK_SKEW = timedelta(hours=1)  # between this machine's clock and the provider's
PAGE = 100
MOST_REQUESTS = 10_000_000  # of one batch; no provider takes as many
PROVIDER_ID = re.compile(r"\w[\w.-]{0,199}")  # never a step out of a path
Request = dict[str, Any]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The largest batch that a provider takes."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The state of a batch at its provider.

    Attributes
    ----------
    done
        Number of requests that have ended, as far as the provider reports it before all have.
    failed
        The provider's code if it refused the batch as a whole, else empty.
    leftover
        Outcome of the requests that the results do not name.
    files
        Ids of the files that hold the results.
    gone
        Whether the results are not available any more.
    """

    ended: bool
    done: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    failed: str = ""
    leftover: str = UNANSWERED
    files: tuple[str, ...] = ()
    gone: bool = False


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One line of a batch's results: an answer, or an outcome without one."""

    custom_id: str
    answer: Answer | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class BatchSearch:
    """The result of looking for a batch at its provider; `doubt` says why it is not certain."""

    provider_id: str = ""
    doubt: str = ""


class BatchError(Exception):
    """A request about a batch that failed; `answer` says how."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason)
        self.answer = answer

    @property
    def sure(self) -> bool:
        """Whether the provider refused, so that what was asked for has certainly not been done."""
        return self.answer.http is not None and 400 <= self.answer.http < 500


class BatchClient(ABC):
    """A provider's batches of one juror. Every method may raise BatchError.

    Attributes
    ----------
    limits
        The largest batch that the provider takes.
    path, after
        Path of the list of batches, and its parameter for the batch that a page begins after.
    """

    limits: ClassVar[BatchLimits]
    path: ClassVar[str]
    after: ClassVar[str]

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @abstractmethod
    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as a batch holds it."""

    @abstractmethod
    async def submit_batch(
        self, marker: str, requests: Sequence[Request], before_submit: Callable[[str], None]
    ) -> str:
        """Submit a batch and return its id.

        `before_submit` is called with the id of the input file, empty if there is none, just before the
        provider could begin to work on the batch.
        """

    @abstractmethod
    async def find_lost(self, batch: JuryBatch, ours: frozenset[str]) -> BatchSearch:
        """Look for a batch that was submitted and whose id never arrived."""

    @abstractmethod
    async def withdraw(self, batch: JuryBatch) -> None:
        """Delete what was uploaded for a batch that has no id."""

    @abstractmethod
    async def status_of(self, provider_id: str) -> BatchStatus:
        """Return the state of a batch."""

    @abstractmethod
    async def delete_texts(self, batch: JuryBatch, status: BatchStatus) -> None:
        """Delete what the provider keeps of a batch's texts; what is missing counts as deleted."""

    @abstractmethod
    def result_paths(self, provider_id: str, status: BatchStatus) -> Sequence[str]:
        """Return the paths of the results of a batch that has ended."""

    @abstractmethod
    def parse_result(self, line: Body) -> BatchResult | None:
        """Return the result in a line, None where it does not name its request."""

    @abstractmethod
    def is_since(self, listed: Body, since: datetime) -> bool:
        """Return whether a batch was made since a time."""

    async def check(self) -> None:
        """Ask for the list of batches; raise BatchError if there is none."""
        await self.list_page(self._page(""))

    async def results(self, provider_id: str, status: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended, in any order."""
        for path in self.result_paths(provider_id, status):
            for line in await self.lines(path):
                if entry := self.parse_result(line):
                    yield entry

    async def recent_batches(self, batch: JuryBatch) -> AsyncIterator[dict[str, Any]]:
        """Yield the provider's batches, newest first, until they are older than this one."""
        since, after = (batch.asked or batch.prepared) - CLOCK_SKEW, ""
        while True:
            page = await self.list_page(self._page(after))
            rows = [row for row in page["data"] if isinstance(row, dict)]
            for row in rows:
                yield row
            if not page.get("has_more") or not rows or not self.is_since(rows[-1], since):
                return
            after = id_in(rows[-1])

    def _page(self, after: str) -> str:
        more = f"&{self.after}={after}" if after else ""
        return f"{self.path}?limit={PAGE}{more}"

    async def list_page(self, path: str) -> dict[str, Any]:
        """Return a page of a list; raise BatchError as for HTTP 404 if it is not one."""
        page = body_of((await self.send("get", path)).text) or {}
        if not isinstance(page.get("data"), list):
            raise BatchError(http_failure(404, {}, ""))
        return page

    async def object(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Return the JSON object that a request brings, or raise BatchError."""
        text = (await self.send(method, path, **options)).text
        value = body_of(text)
        if value is None:
            raise BatchError(unreadable(text))
        return value

    async def lines(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a JSON Lines file; a line that holds none is left out."""
        content = (await self.send("get", path)).content
        objects = (body_of(line.decode("utf-8", "replace")) for line in content.split(b"\n"))
        return [value for value in objects if value is not None]

    async def delete(self, path: str) -> None:
        """Delete what is at a path; what is missing counts as deleted."""
        try:
            await self.send("delete", path)
        except BatchError as error:
            if error.answer.http != 404:
                raise

    async def send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Send one request through the SDK; raise BatchError for whatever the SDK raises."""
        sdk, seconds = self.endpoint.sdk, self.endpoint.timeout
        send = getattr(self.endpoint.client, method)
        try:
            answer: httpx2.Response = await send(path, cast_to=httpx2.Response, **options)
        except sdk.APITimeoutError as error:
            reason = f"no answer within {seconds:g} s"
            raise BatchError(Answer(Status.TIMEOUT, reason, transient=True)) from error
        except sdk.APIConnectionError as error:
            reason = f"{NO_CONNECTION}: {type(error.__cause__ or error).__name__}"
            raise BatchError(Answer(Status.REQUEST_FAILED, reason, transient=True)) from error
        except sdk.APIStatusError as error:
            failed = http_failure(error.status_code, error.response.headers, error.response.text)
            raise BatchError(failed) from error
        return answer


def open_client(juror: Juror, key: str, timeout: float = UPLOAD_SECONDS) -> BatchClient:
    """Return the client for a juror's batches; each SDK is imported only when it is needed."""
    vendor = PROVIDERS[juror.provider]
    endpoint = resolve_name(vendor.client)(juror, key, timeout, httpx2.AsyncClient)
    opened: BatchClient = resolve_name(vendor.batches)(endpoint)
    return opened


def id_in(body: Body) -> str:
    """Return the id in an object; raise BatchError for one that must not stand in a path."""
    value = body.get("id")
    if not isinstance(value, str) or not PROVIDER_ID.fullmatch(value):
        raise BatchError(unreadable(""))
    return value


def numbers(source: Any) -> dict[str, int]:
    """Return the numbers of requests in an object, without what can be none."""
    if not isinstance(source, dict):
        return {}
    return {
        name: value
        for name, value in source.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_REQUESTS
    }
