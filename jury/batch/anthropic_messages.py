"""Anthropic's Message Batches: requests are submitted together, and results come as JSON Lines."""

from collections.abc import Callable, Sequence
from datetime import datetime
from json import dumps
from typing import Any

from data.schema.jury import JuryBatch
from jury.batch.client import (
    CLOCK_SKEW,
    BatchClient,
    BatchLimits,
    BatchResult,
    BatchSearch,
    BatchStatus,
    Body,
    Request,
    id_in,
    numbers,
)
from jury.call import Answer, Call
from jury.http_answers import http_failure, text_of
from jury.providers.http_client import Endpoint

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


class AnthropicBatches(BatchClient):
    """Message Batches; a batch's marker is part of its custom ids, since it has no metadata."""

    limits = BatchLimits(requests=100_000, bytes=256_000_000)
    path, after = "/v1/messages/batches", "after_id"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._read: set[tuple[str, str]] = set()  # batches and the markers they do not hold

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a request as a batch holds it."""
        return {"custom_id": custom_id, "params": self.endpoint.body(call)}

    async def submit_batch(
        self, marker: str, requests: Sequence[Request], before_submit: Callable[[str], None]
    ) -> str:
        """Submit a batch and return its id."""
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

    async def withdraw(self, batch: JuryBatch) -> None:
        """Do nothing: nothing is uploaded apart from the batch."""

    async def status_of(self, provider_id: str) -> BatchStatus:
        """Return the state of a batch."""
        reply = await self.object("get", f"{self.path}/{provider_id}")
        counts = numbers(reply.get("request_counts"))
        return BatchStatus(
            ended=reply.get("processing_status") == "ended",
            done=sum(counts.values()) - counts.get("processing", 0),
            counts=counts,
            gone=bool(reply.get("archived_at")),
        )

    async def delete_texts(self, batch: JuryBatch, status: BatchStatus) -> None:
        """Delete the batch with its requests and results."""
        await self.delete(f"{self.path}/{batch.provider_id}")

    def result_paths(self, provider_id: str, status: BatchStatus) -> Sequence[str]:
        """Return the path of the results at the juror's own host.

        The SDK would follow the `results_url` of a reply, to whatever host that names.
        """
        return [f"{self.path}/{provider_id}/results"]

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
        """Return whether a batch that has ended is the one with this marker."""
        lines = await self.lines(f"{self.path}/{provider_id}/results")
        self._read.add((provider_id, marker))
        return any(text_of(line.get("custom_id")).startswith(marker) for line in lines)


def _failure(error: Any) -> Answer:
    """Return the answer for a request that failed in its batch, as for one sent by itself."""
    inner = error.get("error") if isinstance(error, dict) else None
    detail = inner if isinstance(inner, dict) else error
    kind = text_of(detail.get("type")) if isinstance(detail, dict) else ""
    return http_failure(HTTP_OF.get(kind, 500), {}, dumps({"error": detail}))
