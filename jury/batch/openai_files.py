"""OpenAI's Batch API: a file of requests is uploaded, and files of answers and errors come back."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from data.schema import Status
from data.schema.jury import UNANSWERED, JuryBatch
from jury.batch.client import (
    PAGE,
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

ENDPOINT = "/v1/chat/completions"
INPUT_KEPT = 3 * 86_400  # seconds; the provider must still read it within its day
OUTPUT_KEPT = 30 * 86_400  # seconds; the longest it offers, for a run that is collected late
ENDED = ("completed", "failed", "expired", "cancelled")
NEVER_RAN = {"batch_expired": "expired", "batch_cancelled": "canceled"}
LEFTOVER = {"expired": "expired", "cancelled": "canceled"}
FILES = ("output_file_id", "error_file_id")


class OpenAIBatches(BatchClient):
    """Batches of an uploaded file; a batch's marker is in its metadata."""

    limits = BatchLimits(requests=50_000, bytes=200_000_000)
    path, after = "/batches", "after"

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
            files=tuple(id_in({"id": reply[key]}) for key in FILES if reply.get(key)),
        )

    async def delete_texts(self, batch: JuryBatch, status: BatchStatus) -> None:
        """Delete the input file and the files of results; the batch's own entry holds no text."""
        for name in filter(None, (batch.input_file, *status.files)):
            await self.delete(f"/files/{name}")

    def result_paths(self, provider_id: str, status: BatchStatus) -> Sequence[str]:
        """Return the paths of the output file and of the error file."""
        return [f"/files/{name}/content" for name in status.files]

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
        """Return the answer in a response of a batch."""
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
    """Return the name of a batch's input file, by which it is found again."""
    return f"medjury-{marker}.jsonl"


def _expiry(seconds: int) -> dict[str, Any]:
    return {"anchor": "created_at", "seconds": seconds}


def _bare(code: str) -> str:
    """Return a code if it is one word, which holds nothing of any text sent."""
    return code if code.replace("_", "").isalnum() else ""


def _complaint(reply: Mapping[str, Any]) -> str:
    """Return the code, and the line where there is one, of what is wrong with a whole batch."""
    errors = reply.get("errors")
    rows = errors.get("data") if isinstance(errors, dict) else None
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    line = first.get("line")
    code = _bare(text_of(first.get("code"))) or "no code given"
    return f"{code} (line {line} of its file)" if isinstance(line, int) else code
