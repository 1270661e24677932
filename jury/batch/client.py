"""The seam between medjury and a provider's batches, and the ways a request to it can fail."""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pkgutil import resolve_name
from typing import Any, ClassVar

import httpx2

from data.schema import Status
from data.schema.jury import JuryBatch
from jury.call import NO_CONNECTION, Answer, Call
from jury.http_answers import body_of, http_failure, unreadable
from jury.panel import Juror
from jury.providers.http_client import Endpoint
from jury.providers.registry import PROVIDERS

UPLOAD_SECONDS = 600.0
NO_SUCH_PATH = (404, 405, 501)
CLOCK_SKEW = timedelta(hours=1)  # between this machine's clock and the provider's
PAGE = 100
PROVIDER_ID = re.compile(r"\w[\w.-]{0,199}")  # never a step out of a path
Request = dict[str, Any]
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that a provider takes in one batch."""

    requests: int
    bytes: int


@dataclass(frozen=True, slots=True)
class BatchStatus:
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
class BatchResult:
    """One line of a batch's results: an answer, or an outcome without one."""

    custom_id: str
    answer: Answer | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class BatchSearch:
    """What looking for a batch at its provider has shown; `doubt` says why it is not certain."""

    provider_id: str = ""
    doubt: str = ""


class BatchError(Exception):
    """A request about a batch that did not succeed, with the answer that it is."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.reason)
        self.answer = answer

    @property
    def sure(self) -> bool:
        """Whether the provider has said no: what was asked for has not been done."""
        return self.answer.http is not None and 400 <= self.answer.http < 500


class BatchClient(ABC):
    """A provider's batches of one juror. Every method may raise Trouble.

    Attributes
    ----------
    limits
        The most one batch may hold.
    path, after
        Where batches are, and how the list of them is told which one the page begins after.
    """

    limits: ClassVar[BatchLimits]
    path: ClassVar[str]
    after: ClassVar[str]

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @abstractmethod
    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as it stands in a batch."""

    @abstractmethod
    async def hand_in(
        self, marker: str, requests: Sequence[Request], asking: Callable[[str], None]
    ) -> str:
        """Hand a batch in and return its id.

        `asking` is called with the id of the input file, if there is one, just before the
        provider could begin to answer.
        """

    @abstractmethod
    async def find(self, batch: JuryBatch, ours: frozenset[str]) -> BatchSearch:
        """Look for a batch that was handed in and whose id was never heard."""

    @abstractmethod
    async def withdraw(self, batch: JuryBatch) -> None:
        """Take back what was uploaded for a batch that has no id."""

    @abstractmethod
    async def standing(self, provider_id: str) -> BatchStatus:
        """Return how far a batch is."""

    @abstractmethod
    async def forget(self, batch: JuryBatch, standing: BatchStatus) -> None:
        """Delete what the provider keeps of a batch's texts; what is not there is deleted."""

    @abstractmethod
    def files(self, provider_id: str, standing: BatchStatus) -> Sequence[str]:
        """Return the addresses of the results of a batch that has ended."""

    @abstractmethod
    def entry(self, line: Body) -> BatchResult | None:
        """Return what a line of results says; None where it does not say of which request."""

    @abstractmethod
    def is_since(self, listed: Body, since: datetime) -> bool:
        """Return whether a batch was made since a time."""

    async def check(self) -> None:
        """Ask for the list of batches; raises Trouble where there is none."""
        await self.listed(self._page(""))

    async def results(self, provider_id: str, standing: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended, in any order."""
        for path in self.files(provider_id, standing):
            for line in await self.lines(path):
                if entry := self.entry(line):
                    yield entry

    async def recent(self, batch: JuryBatch) -> AsyncIterator[dict[str, Any]]:
        """Yield the provider's batches, newest first, by pages until they are older than ours."""
        since, after = (batch.asked or batch.prepared) - CLOCK_SKEW, ""
        while True:
            page = await self.listed(self._page(after))
            rows = [row for row in page["data"] if isinstance(row, dict)]
            for row in rows:
                yield row
            if not page.get("has_more") or not rows or not self.is_since(rows[-1], since):
                return
            after = id_in(rows[-1])

    def _page(self, after: str) -> str:
        more = f"&{self.after}={after}" if after else ""
        return f"{self.path}?limit={PAGE}{more}"

    async def listed(self, path: str) -> dict[str, Any]:
        """Return a page of a list, or raise Trouble as if there were no such list."""
        page = body_of((await self.ask("get", path)).text) or {}
        if not isinstance(page.get("data"), list):
            raise BatchError(http_failure(404, {}, ""))
        return page

    async def object(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Return the JSON object that a request brings, or raise Trouble."""
        text = (await self.ask(method, path, **options)).text
        value = body_of(text)
        if value is None:
            raise BatchError(unreadable(text))
        return value

    async def lines(self, path: str) -> list[dict[str, Any]]:
        """Return the objects of a JSON Lines file; a line that holds none is left out."""
        content = (await self.ask("get", path)).content
        objects = (body_of(line.decode("utf-8", "replace")) for line in content.split(b"\n"))
        return [value for value in objects if value is not None]

    async def delete(self, path: str) -> None:
        """Delete something; what is not there any more is deleted."""
        try:
            await self.ask("delete", path)
        except BatchError as trouble:
            if trouble.answer.http != 404:
                raise

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Return the answer to one request, made by the SDK; what that raises is Trouble."""
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
    """Return a juror's batches; each SDK is imported only when it is needed."""
    vendor = PROVIDERS[juror.provider]
    endpoint = resolve_name(vendor.client)(juror, key, timeout, httpx2.AsyncClient)
    opened: BatchClient = resolve_name(vendor.batches)(endpoint)
    return opened


def id_in(body: Body) -> str:
    """Return the id in an object, or raise Trouble where there is none to use in an address."""
    value = body.get("id")
    if not isinstance(value, str) or not PROVIDER_ID.fullmatch(value):
        raise BatchError(unreadable(""))
    return value


def numbers(source: Any) -> dict[str, int]:
    """Return the counts in an object."""
    if not isinstance(source, dict):
        return {}
    return {str(name): value for name, value in source.items() if isinstance(value, int)}
