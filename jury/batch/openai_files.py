"""OpenAI's Batch API: a file of requests goes in, and files of answers and of errors come out."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, cast

import openai

from data.queries.batches import BatchView
from data.schema import Status
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
from jury.providers.openai_chat import body, read, sent
from jury.providers.replies import http_failure, silence, text_of

LIMITS = Limits(requests=50_000, bytes=200_000_000)
INPUT_KEPT = 3 * 86_400  # seconds; the provider must still read it within its day
OUTPUT_KEPT = 30 * 86_400  # seconds; the longest it offers, for a run that is collected late
SKEW = timedelta(hours=1)  # between this machine's clock and the provider's
PAGE = 100
ENDED = ("completed", "failed", "expired", "cancelled")
NEVER_RAN = {"batch_expired": "expired", "batch_cancelled": "canceled"}
LEFTOVER = {"expired": "expired", "cancelled": "canceled"}


class OpenAIBatches:
    """Batches of one juror through the openai SDK, which neither retries nor follows redirects."""

    def __init__(self, juror: Juror, key: str, timeout: float = UPLOAD_SECONDS) -> None:
        silence()
        self.limits = LIMITS
        self._juror = juror
        self._timeout = timeout
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=juror.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=client(juror.base_url, timeout),
        )

    def request(self, custom_id: str, call: Call) -> Request:
        """Return a line of the input file."""
        address = {"method": "POST", "url": "/v1/chat/completions"}
        return {"custom_id": custom_id, **address, "body": body(self._juror, call)}

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        return sent(self._juror, call)

    async def check(self) -> None:
        """Ask for the list of batches; raises Trouble where there is none."""
        await self._page("")

    async def hand_in(
        self, marker: str, requests: Sequence[Request], asking: Callable[[str], None]
    ) -> str:
        """Upload the requests, and ask for a batch of them that carries the marker."""
        content = "".join(json.dumps(one) + "\n" for one in requests).encode()
        with told(openai, self._timeout):
            raw = await self._client.files.with_raw_response.create(
                file=(_file_name(marker), content),
                purpose="batch",
                expires_after={"anchor": "created_at", "seconds": INPUT_KEPT},
            )
        uploaded = id_in(object_in(raw.text))
        asking(uploaded)
        with told(openai, self._timeout):
            made = await self._client.batches.with_raw_response.create(
                completion_window="24h",
                endpoint="/v1/chat/completions",
                input_file_id=uploaded,
                metadata={"medjury": marker},
                output_expires_after={"anchor": "created_at", "seconds": OUTPUT_KEPT},
            )
        return id_in(object_in(made.text))

    async def find(self, batch: BatchView, ours: frozenset[str]) -> Found:
        """Look through the recent batches for the one whose metadata hold the marker."""
        since = ((batch.asked or batch.prepared) - SKEW).timestamp()
        after = ""
        while True:
            page = await self._page(after)
            rows = [one for one in page["data"] if isinstance(one, dict)]
            for one in rows:
                if (one.get("metadata") or {}).get("medjury") == batch.marker:
                    return Found(id_in(one))
            oldest = rows[-1].get("created_at") if rows else None
            if not page.get("has_more") or not isinstance(oldest, int) or oldest < since:
                return Found()
            after = id_in(rows[-1])

    async def withdraw(self, batch: BatchView) -> None:
        """Delete the input file; a batch of it that arrives later can then no longer begin."""
        names = [batch.input_file] if batch.input_file else await self._uploads(batch.marker)
        for name in names:
            await self._delete(name)

    async def standing(self, provider_id: str) -> Standing:
        """Return how far a batch is."""
        with told(openai, self._timeout):
            raw = await self._client.batches.with_raw_response.retrieve(provider_id)
        found = object_in(raw.text)
        state = text_of(found.get("status"))
        counts = numbers(found.get("request_counts"))
        return Standing(
            ended=state in ENDED,
            done=counts.get("completed", 0) + counts.get("failed", 0),
            counts=counts,
            failed=_complaint(found) if state == "failed" else "",
            leftover=LEFTOVER.get(state, "unanswered"),
            files=tuple(
                name
                for key in ("output_file_id", "error_file_id")
                if (name := text_of(found.get(key)))
            ),
        )

    async def results(self, provider_id: str, standing: Standing) -> AsyncIterator[Entry]:
        """Yield the lines of the output file and of the error file."""
        for name in standing.files:
            with told(openai, self._timeout):
                file = await self._client.files.content(name)
            for line in lines_of(file.content):
                if line is not None and (entry := _entry(line)):
                    yield entry

    async def forget(self, batch: BatchView, standing: Standing) -> None:
        """Delete the input file and the files of results; the batch's own entry holds no text."""
        for name in (batch.input_file, *standing.files):
            await self._delete(name)

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _page(self, after: str) -> dict[str, Any]:
        """Return a page of the list of batches, the newest first."""
        more = {"after": after} if after else {}
        with told(openai, self._timeout):
            # Awaited, a list gives its first page; the wrapper's type does not know that.
            lists = cast(Any, self._client.batches.with_raw_response.list)
            raw = await lists(limit=PAGE, **more)
        return listed(raw.text)

    async def _uploads(self, marker: str) -> list[str]:
        """Return the ids of input files that were uploaded and whose id was never heard."""
        with told(openai, self._timeout):
            lists = cast(Any, self._client.files.with_raw_response.list)
            raw = await lists(purpose="batch", order="desc", limit=PAGE)
        rows = [one for one in listed(raw.text)["data"] if isinstance(one, dict)]
        return [id_in(one) for one in rows if one.get("filename") == _file_name(marker)]

    async def _delete(self, name: str) -> None:
        """Delete a file; one that is not there any more is deleted."""
        if not name:
            return
        try:
            with told(openai, self._timeout):
                await self._client.files.with_raw_response.delete(name)
        except Trouble as trouble:
            if trouble.answer.http != 404:
                raise


def _file_name(marker: str) -> str:
    """Return the name of a batch's input file, by which it is found again."""
    return f"medjury-{marker}.jsonl"


def _entry(line: Mapping[str, Any]) -> Entry | None:
    """Return what a line of results says; None where it does not say of which request."""
    name = text_of(line.get("custom_id"))
    response, error = line.get("response"), line.get("error")
    if not name:
        return None
    if isinstance(response, dict):
        code = response.get("status_code")
        text = json.dumps(response.get("body"))
        request_id = text_of(response.get("request_id"))
        if code == 200:
            return Entry(name, read(text, {"x-request-id": request_id} if request_id else {}))
        return Entry(name, http_failure(code if isinstance(code, int) else 500, {}, text))
    code = text_of(error.get("code")) if isinstance(error, dict) else ""
    if code in NEVER_RAN:
        return Entry(name, outcome=NEVER_RAN[code])
    known = code if code.replace("_", "").isalnum() else "no code"
    return Entry(name, Answer(Status.REQUEST_FAILED, f"failed in its batch: {known}"))


def _complaint(found: Mapping[str, Any]) -> str:
    """Return the code, and the line where there is one, of what is wrong with a whole batch."""
    errors = found.get("errors")
    rows = errors.get("data") if isinstance(errors, dict) else None
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    code = text_of(first.get("code"))
    line = first.get("line")
    said = code if code.replace("_", "").isalnum() else "no code given"
    return f"{said} (line {line} of its file)" if isinstance(line, int) else said
