"""Anthropic's Message Batches: requests go in together, and a stream of results comes out."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from json import dumps
from typing import Any, cast

import anthropic
import httpx2

from data.queries.batches import BatchView
from jury.batch.post import (
    UPLOAD_SECONDS,
    Entry,
    Found,
    Limits,
    Request,
    Standing,
    Trouble,
    client,
    id_in,
    lines_of,
    listed,
    numbers,
    object_in,
    told,
)
from jury.call import Answer, Call
from jury.panel import Juror
from jury.providers.anthropic_messages import body, read, sent
from jury.providers.replies import http_failure, silence, text_of

LIMITS = Limits(requests=100_000, bytes=256_000_000)
SKEW = timedelta(hours=1)  # between this machine's clock and the provider's
PAGE = 100
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


class AnthropicBatches:
    """Batches of one juror through the anthropic SDK, which neither retries nor redirects."""

    def __init__(self, juror: Juror, key: str, timeout: float = UPLOAD_SECONDS) -> None:
        silence()
        self.limits = LIMITS
        self._juror = juror
        self._timeout = timeout
        self._read: set[tuple[str, str]] = set()  # batches and the markers they do not hold
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=juror.base_url,
            max_retries=0,
            timeout=timeout,
            open_telemetry=False,
            http_client=client(juror.base_url, timeout),
        )

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as it stands in a batch."""
        return {"custom_id": custom_id, "params": body(self._juror, call)}

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        return sent(self._juror, call)

    async def check(self) -> None:
        """Ask for the list of batches; raises Trouble where there is none."""
        await self._page("")

    async def hand_in(
        self, marker: str, requests: Sequence[Request], asking: Callable[[str], None]
    ) -> str:
        """Ask for a batch; the marker stands in its custom ids, since it has no metadata."""
        asking("")
        with told(anthropic, self._timeout):
            raw = await self._client.messages.batches.with_raw_response.create(
                requests=cast(Any, requests)
            )
            text = await raw.text()
        return id_in(object_in(text))

    async def find(self, batch: BatchView, ours: frozenset[str]) -> Found:
        """Look for a recent batch of as many requests, and for the marker in its results.

        A batch shows its custom ids only once it has ended, so until then one of the right size
        that is not known to be another leaves a doubt.
        """
        doubt = ""
        for one in await self._recent((batch.asked or batch.prepared) - SKEW):
            looked_into = (id_in(one), batch.marker) in self._read
            if id_in(one) in ours or looked_into or _size(one) != batch.requests:
                continue
            if one.get("processing_status") != "ended":
                doubt = f"{id_in(one)} may be it and has not ended"
            elif one.get("archived_at"):
                doubt = f"{id_in(one)} may be it and its results are gone"
            elif await self._marked(id_in(one), batch.marker):
                return Found(id_in(one))
        return Found(doubt=doubt)

    async def withdraw(self, batch: BatchView) -> None:
        """Do nothing: nothing is uploaded apart from the batch."""

    async def standing(self, provider_id: str) -> Standing:
        """Return how far a batch is; until it has ended all its requests count as open."""
        with told(anthropic, self._timeout):
            raw = await self._client.messages.batches.with_raw_response.retrieve(provider_id)
            text = await raw.text()
        found = object_in(text)
        counts = numbers(found.get("request_counts"))
        return Standing(
            ended=found.get("processing_status") == "ended",
            done=sum(counts.values()) - counts.get("processing", 0),
            counts=counts,
            gone=bool(found.get("archived_at")),
        )

    async def results(self, provider_id: str, standing: Standing) -> AsyncIterator[Entry]:
        """Yield the results of a batch that has ended."""
        for line in lines_of(await self._lines(provider_id)):
            if line is not None and (entry := _entry(line)):
                yield entry

    async def forget(self, batch: BatchView, standing: Standing) -> None:
        """Delete the batch with its requests and results; one that is not there is deleted."""
        try:
            with told(anthropic, self._timeout):
                await self._client.messages.batches.with_raw_response.delete(batch.provider_id)
        except Trouble as trouble:
            if trouble.answer.http != 404:
                raise

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _lines(self, provider_id: str) -> bytes:
        """Return the results as they came.

        They are asked for at the juror's own address: the SDK would follow the `results_url` that
        the answer names, to whatever host that is.
        """
        with told(anthropic, self._timeout):
            got = await self._client.get(
                f"/v1/messages/batches/{provider_id}/results", cast_to=httpx2.Response
            )
        return got.content

    async def _marked(self, provider_id: str, marker: str) -> bool:
        """Return whether a batch that has ended is the one with this marker."""
        lines = lines_of(await self._lines(provider_id))
        self._read.add((provider_id, marker))
        return any(text_of((line or {}).get("custom_id")).startswith(marker) for line in lines)

    async def _recent(self, since: datetime) -> list[dict[str, Any]]:
        """Return the batches made since a time, the newest first."""
        found: list[dict[str, Any]] = []
        after = ""
        while True:
            page = await self._page(after)
            rows = [one for one in page["data"] if isinstance(one, dict)]
            found += [one for one in rows if _made(one, since)]
            if not page.get("has_more") or not rows or not _made(rows[-1], since):
                return found
            after = id_in(rows[-1])

    async def _page(self, after: str) -> dict[str, Any]:
        """Return a page of the list of batches."""
        more = {"after_id": after} if after else {}
        with told(anthropic, self._timeout):
            # Awaited, a list gives its first page; the wrapper's type does not know that.
            lists = cast(Any, self._client.messages.batches.with_raw_response.list)
            raw = await lists(limit=PAGE, **more)
            text = await raw.text()
        return listed(text)


def _size(one: Mapping[str, Any]) -> int:
    """Return how many requests a batch holds."""
    return sum(numbers(one.get("request_counts")).values())


def _made(one: Mapping[str, Any], since: datetime) -> bool:
    """Return whether a batch was made since a time; one that does not say counts as new."""
    try:
        return datetime.fromisoformat(text_of(one.get("created_at"))) >= since
    except (ValueError, TypeError):
        return True


def _entry(line: Mapping[str, Any]) -> Entry | None:
    """Return what a line of results says; None where it does not say of which request."""
    name, result = text_of(line.get("custom_id")), line.get("result")
    if not name or not isinstance(result, dict):
        return None
    kind = text_of(result.get("type"))
    if kind in ("canceled", "expired"):
        return Entry(name, outcome=kind)
    if kind == "succeeded":
        return Entry(name, read(dumps(result.get("message")), {}))
    return Entry(name, _failure(result.get("error")))


def _failure(error: Any) -> Answer:
    """Return the answer that an errored request is: the one it would have been on its own."""
    inner = error.get("error") if isinstance(error, dict) else None
    detail = inner if isinstance(inner, dict) else error
    kind = text_of(detail.get("type")) if isinstance(detail, dict) else ""
    return http_failure(HTTP_OF.get(kind, 500), {}, dumps({"error": detail}))
