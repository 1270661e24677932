"""A provider's batches: both vendors' clients, what they have in common, and how they fail.

Anthropic's requests are submitted together, and results come as JSON Lines. At OpenAI a file of requests
is uploaded, and files of answers and errors come back.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from json import dumps
from pkgutil import resolve_name
from typing import Any, ClassVar, NamedTuple

import httpx2

from data.schema import UNANSWERED, JuryBatch, Status
from jury.api_protocols import body_of, http_failure, text_of, unreadable
from jury.call import NO_CONNECTION, Answer, Call
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


class BatchLimits(NamedTuple):
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
        Paths of what holds the results at the juror's own host; deleting them deletes the texts.
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


class BatchResult(NamedTuple):
    """One line of a batch's results: an answer, or an outcome without one."""

    custom_id: str
    answer: Answer | None = None
    outcome: str = ""


class BatchSearch(NamedTuple):
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


class _Batches(ABC):
    """What both providers' batches have in common. Every method may raise BatchError.

    Attributes
    ----------
    limits
        The largest batch that the provider takes.
    path, after
        Path of the list of batches, and its parameter for the batch that a page begins after.
    content
        What follows the path of results where they are read.
    """

    limits: ClassVar[BatchLimits]
    path: ClassVar[str]
    after: ClassVar[str]
    content: ClassVar[str]

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    async def withdraw(self, batch: JuryBatch) -> None:  # noqa: B027 - not all providers keep files
        """Delete what was uploaded for a batch that has no id."""

    @abstractmethod
    def parse_result(self, line: Body) -> BatchResult | None:
        """Return the result in a line, None where it does not name its request."""

    @abstractmethod
    def is_since(self, listed: Body, since: datetime) -> bool:
        """Return whether a batch was made since a time."""

    async def check(self) -> None:
        """Ask for the list of batches; raise BatchError if there is none."""
        await self.list_page(self._page(""))

    async def results(self, status: BatchStatus) -> AsyncIterator[BatchResult]:
        """Yield the results of a batch that has ended, in any order."""
        for path in status.files:
            for line in await self.lines(path + self.content):
                if entry := self.parse_result(line):
                    yield entry

    async def delete_texts(self, batch: JuryBatch, status: BatchStatus) -> None:
        """Delete what was uploaded and the results; what the provider's list keeps holds no text."""
        uploaded = [f"/files/{batch.input_file}"] if batch.input_file else []
        for path in (*uploaded, *status.files):
            await self.delete(path)

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


HTTP_OF = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class AnthropicBatches(_Batches):
    """Message Batches; a batch's marker is part of its custom ids, since it has no metadata."""

    limits = BatchLimits(requests=100_000, bytes=256_000_000)
    path, after, content = "/v1/messages/batches", "after_id", "/results"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._read: set[tuple[str, str]] = set()  # batches and the markers they do not hold

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as a batch holds it."""
        return {"custom_id": custom_id, "params": self.endpoint.body(call)}

    async def submit_batch(
        self, marker: str, requests: Sequence[Request], before_submit: Callable[[str], None]
    ) -> str:
        """Submit a batch and return its id.

        `before_submit` is called with the id of the input file, empty if there is none, just before the
        provider could begin to work on the batch.
        """
        before_submit("")
        return id_in(await self.object("post", self.path, body={"requests": requests}))

    async def find_lost(self, batch: JuryBatch, ours: frozenset[str]) -> BatchSearch:
        """Look for a recent batch of the same size, and for the marker in its results.

        A batch shows its custom ids only once it has ended. Until then a batch of the right size
        that is not known to be another one leaves a doubt.
        """
        doubt, since = "", (batch.asked or batch.prepared) - CLOCK_SKEW
        async for candidate in self.recent_batches(batch):
            if not self.is_since(candidate, since):
                continue
            looked_into = (id_in(candidate), batch.marker) in self._read
            size = sum(numbers(candidate.get("request_counts")).values())
            if id_in(candidate) in ours or looked_into or size != batch.requests:
                continue
            if candidate.get("processing_status") != "ended":
                doubt = f"{id_in(candidate)} may be it and has not ended"
            elif candidate.get("archived_at"):
                doubt = f"{id_in(candidate)} may be it and its results are gone"
            elif await self._marked(id_in(candidate), batch.marker):
                return BatchSearch(id_in(candidate))
        return BatchSearch(doubt=doubt)

    async def status_of(self, provider_id: str) -> BatchStatus:
        """Return the state of a batch."""
        reply = await self.object("get", f"{self.path}/{provider_id}")
        counts = numbers(reply.get("request_counts"))
        return BatchStatus(
            ended=reply.get("processing_status") == "ended",
            done=sum(counts.values()) - counts.get("processing", 0),
            counts=counts,
            # The SDK would follow the `results_url` of a reply, to whatever host that names.
            files=(f"{self.path}/{provider_id}",),
            gone=bool(reply.get("archived_at")),
        )

    def is_since(self, listed: Body, since: datetime) -> bool:
        """Return whether a batch was made since a time; one that does not say counts as new."""
        try:
            return datetime.fromisoformat(text_of(listed.get("created_at"))) >= since
        except (ValueError, TypeError):
            return True

    def parse_result(self, line: Body) -> BatchResult | None:
        """Return the result in a line, None where it does not name its request."""
        name, result = text_of(line.get("custom_id")), line.get("result")
        if not name or not isinstance(result, dict):
            return None
        kind = text_of(result.get("type"))
        if kind in ("canceled", "expired"):
            return BatchResult(name, outcome=kind)
        if kind == "succeeded":
            return BatchResult(name, self.endpoint.read(dumps(result.get("message")), {}))
        return BatchResult(name, _failure(result.get("error")))

    async def _marked(self, provider_id: str, marker: str) -> bool:
        lines = await self.lines(f"{self.path}/{provider_id}{self.content}")
        self._read.add((provider_id, marker))
        return any(text_of(line.get("custom_id")).startswith(marker) for line in lines)


def _failure(error: Any) -> Answer:
    inner = error.get("error") if isinstance(error, dict) else None
    detail = inner if isinstance(inner, dict) else error
    kind = text_of(detail.get("type")) if isinstance(detail, dict) else ""
    return http_failure(HTTP_OF.get(kind, 500), {}, dumps({"error": detail}))


ENDPOINT = "/v1/chat/completions"
INPUT_KEPT = 3 * 86_400  # seconds; the provider must still read it within its day
OUTPUT_KEPT = 30 * 86_400  # seconds; the longest it offers, for a run that is collected late
ENDED = ("completed", "failed", "expired", "cancelled")
NEVER_RAN = {"batch_expired": "expired", "batch_cancelled": "canceled"}
LEFTOVER = {"expired": "expired", "cancelled": "canceled"}
FILES = ("output_file_id", "error_file_id")


class OpenAIBatches(_Batches):
    """Batches of an uploaded file; a batch's marker is in its metadata."""

    limits = BatchLimits(requests=50_000, bytes=200_000_000)
    path, after, content = "/batches", "after", "/content"

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a line of the input file."""
        address = {"method": "POST", "url": ENDPOINT}
        return {"custom_id": custom_id, **address, "body": self.endpoint.body(call)}

    async def submit_batch(
        self, marker: str, requests: Sequence[Request], before_submit: Callable[[str], None]
    ) -> str:
        """Upload the requests, submit them as a batch that carries the marker, and return its id."""
        content = "".join(json.dumps(request) + "\n" for request in requests).encode()
        upload = await self.object(
            "post",
            "/files",
            body={"purpose": "batch", "expires_after": _expiry(INPUT_KEPT)},
            files={"file": (_file_name(marker), content)},
            options={"headers": {"Content-Type": "multipart/form-data"}},
        )
        before_submit(id_in(upload))
        batch = {
            "completion_window": "24h",
            "endpoint": ENDPOINT,
            "input_file_id": id_in(upload),
            "metadata": {"medjury": marker},
            "output_expires_after": _expiry(OUTPUT_KEPT),
        }
        return id_in(await self.object("post", self.path, body=batch))

    async def find_lost(self, batch: JuryBatch, ours: frozenset[str]) -> BatchSearch:
        """Look through the recent batches for the one whose metadata has the marker."""
        async for candidate in self.recent_batches(batch):
            if (candidate.get("metadata") or {}).get("medjury") == batch.marker:
                return BatchSearch(id_in(candidate))
        return BatchSearch()

    async def withdraw(self, batch: JuryBatch) -> None:
        """Delete the input file; a batch of it that arrives later can then no longer begin."""
        names = [batch.input_file] if batch.input_file else await self._uploads(batch.marker)
        for name in names:
            await self.delete(f"/files/{name}")

    async def status_of(self, provider_id: str) -> BatchStatus:
        """Return the state of a batch."""
        reply = await self.object("get", f"{self.path}/{provider_id}")
        state = text_of(reply.get("status"))
        counts = numbers(reply.get("request_counts"))
        return BatchStatus(
            ended=state in ENDED,
            done=counts.get("completed", 0) + counts.get("failed", 0),
            counts=counts,
            failed=_complaint(reply) if state == "failed" else "",
            leftover=LEFTOVER.get(state, UNANSWERED),
            files=tuple(f"/files/{id_in({'id': reply[key]})}" for key in FILES if reply.get(key)),
        )

    def is_since(self, listed: Body, since: datetime) -> bool:
        """Return whether a batch was made since a time; one that does not say counts as old."""
        created_at = listed.get("created_at")
        return isinstance(created_at, int) and created_at >= since.timestamp()

    def parse_result(self, line: Body) -> BatchResult | None:
        """Return the result in a line, None where it does not name its request."""
        name = text_of(line.get("custom_id"))
        response, error = line.get("response"), line.get("error")
        if not name:
            return None
        if isinstance(response, dict):
            return BatchResult(name, self._answer(response))
        code = text_of(error.get("code")) if isinstance(error, dict) else ""
        if code in NEVER_RAN:
            return BatchResult(name, outcome=NEVER_RAN[code])
        reason = f"failed in its batch: {_bare(code) or 'no code'}"
        return BatchResult(name, Answer(Status.REQUEST_FAILED, reason))

    def _answer(self, response: Body) -> Answer:
        code, text = response.get("status_code"), json.dumps(response.get("body"))
        if code != 200:
            status = code if isinstance(code, int) and 100 <= code < 600 else 500
            return http_failure(status, {}, text)
        request_id = text_of(response.get("request_id"))
        return self.endpoint.read(text, {"x-request-id": request_id} if request_id else {})

    async def _uploads(self, marker: str) -> list[str]:
        """Return the ids of input files that were uploaded and whose id never arrived."""
        page = await self.list_page(f"/files?purpose=batch&order=desc&limit={PAGE}")
        rows = [row for row in page["data"] if isinstance(row, dict)]
        return [id_in(row) for row in rows if row.get("filename") == _file_name(marker)]


def _file_name(marker: str) -> str:
    return f"medjury-{marker}.jsonl"


def _expiry(seconds: int) -> dict[str, Any]:
    return {"anchor": "created_at", "seconds": seconds}


def _bare(code: str) -> str:
    """Return a code if it is one word, which holds nothing of any text sent."""
    return code if code.replace("_", "").isalnum() else ""


def _complaint(reply: Mapping[str, Any]) -> str:
    errors = reply.get("errors")
    rows = errors.get("data") if isinstance(errors, dict) else None
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    line = first.get("line")
    code = _bare(text_of(first.get("code"))) or "no code given"
    return f"{code} (line {line} of its file)" if isinstance(line, int) else code


BatchClient = AnthropicBatches | OpenAIBatches


def open_client(juror: Juror, key: str) -> BatchClient:
    """Return the client for a juror's batches; each SDK is imported only when it is needed."""
    vendor = PROVIDERS[juror.provider]
    endpoint = resolve_name(vendor.client)(juror, key, UPLOAD_SECONDS, httpx2.AsyncClient)
    opened: BatchClient = resolve_name(vendor.batches)(endpoint)
    return opened
