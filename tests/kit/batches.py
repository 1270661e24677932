"""A server on the loopback that speaks both vendors' batches and misbehaves on cue, and runs at it."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.parser import BytesParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from sqlalchemy import Engine
from sqlmodel import select

from data.schema import JuryBatch, JuryRequest
from jury.batch.run import Polling, run_batches
from jury.panel import Panel
from jury.run_result import RunResult
from kit.jurors import Do, Seen, anthropic_body, openai_body, verdict
from kit.jury_runs import capped, checked, stored
from kit.loopback import HTTPLoopback, QuietHandler

Script = Callable[[Seen], "Do | str"]


@dataclass
class Batch:
    """A batch at the provider; `vendor` is "openai" or "anthropic"."""

    id: str
    vendor: str
    requests: list[dict[str, Any]]
    made: float
    input_file: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    state: str = "in_progress"
    results: list[dict[str, Any]] = field(default_factory=list)


def is_bad(line: dict[str, Any]) -> bool:
    return bool(line["error"]) or line["response"]["status_code"] != 200


def _openai_result(name: str, seen: Seen, do: "Do | str") -> dict[str, Any]:
    if isinstance(do, str):
        code = {"expired": "batch_expired", "canceled": "batch_cancelled"}.get(do, do)
        error = {"code": code, "message": "echo: " + seen.prompt}
        return {"id": "x", "custom_id": name, "response": None, "error": error}
    body: Any = openai_body(seen, do, verdict(seen) if do.text is None else do.text)
    if do.status != 200:
        body = {"error": {"message": "echo: " + seen.prompt, "type": do.code or "some_error"}}
    response = {"status_code": do.status, "request_id": "req-" + name[-3:], "body": body}
    return {"id": "x", "custom_id": name, "response": response, "error": None}


def _anthropic_result(name: str, seen: Seen, do: "Do | str") -> dict[str, Any]:
    if isinstance(do, str):
        return {"custom_id": name, "result": {"type": do}}
    if do.status != 200:
        error = {"type": do.code or "api_error", "message": "echo: " + seen.prompt}
        wrapped = {"type": "error", "error": error}
        return {"custom_id": name, "result": {"type": "errored", "error": wrapped}}
    message = anthropic_body(seen, do, verdict(seen) if do.text is None else do.text)
    return {"custom_id": name, "result": {"type": "succeeded", "message": message}}


RESULT = {"openai": _openai_result, "anthropic": _anthropic_result}


def _openai_batch(files_there: Mapping[str, Any], invalid: str, batch: Batch) -> dict[str, Any]:
    files = {name: f"{name[:3]}_{batch.id}" for name in ("output", "error")}
    present = {name: key if key in files_there else None for name, key in files.items()}
    errors = [{"code": invalid, "message": "echo", "line": 1}]
    done = sum(not is_bad(result) for result in batch.results)
    counts = {"total": len(batch.requests), "completed": done}
    shown = {"id": batch.id, "object": "batch", "created_at": int(batch.made)}
    shown |= {"endpoint": "/v1/chat/completions", "completion_window": "24h"}
    shown |= {"input_file_id": batch.input_file, "metadata": batch.metadata}
    shown |= {"output_file_id": present["output"], "error_file_id": present["error"]}
    shown |= {"request_counts": counts | {"failed": len(batch.results) - done}}
    found = {"object": "list", "data": errors} if batch.state == "failed" else None
    return shown | {"status": batch.state, "errors": found}


def _anthropic_batch(_: Mapping[str, Any], __: str, batch: Batch) -> dict[str, Any]:
    kinds = [result["result"]["type"] for result in batch.results]
    counts = {name: kinds.count(name) for name in ("succeeded", "errored", "canceled", "expired")}
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(batch.made))
    ended = batch.state == "ended"
    shown = {"id": batch.id, "type": "message_batch", "processing_status": batch.state}
    shown |= {"request_counts": counts | {"processing": 0 if ended else len(batch.requests)}}
    shown |= {"created_at": created, "expires_at": created, "cancel_initiated_at": None}
    shown |= {"archived_at": None, "ended_at": created if ended else None}
    return shown | {"results_url": "http://elsewhere.invalid/results" if ended else None}


SHOW = {"openai": _openai_batch, "anthropic": _anthropic_batch}


def answer(batch: Batch, script: Script) -> None:
    """Give every request of a batch its result, the last one first."""
    body = "body" if batch.vendor == "openai" else "params"
    for number, request in enumerate(reversed(batch.requests)):
        seen = Seen(number, batch.vendor, {}, request[body])
        batch.results.append(RESULT[batch.vendor](request["custom_id"], seen, script(seen)))
    lost = any(result.get("error") for result in batch.results)
    batch.state = {"anthropic": "ended", "openai": "expired" if lost else "completed"}[batch.vendor]


def result_files(batch: Batch) -> Iterator[tuple[str, str]]:
    """Yield the beginning of the name and the text of each file of results OpenAI makes."""
    for name, wrong in (("out", False), ("err", True)) if batch.vendor == "openai" else ():
        if lines := [json.dumps(one) + "\n" for one in batch.results if is_bad(one) == wrong]:
            yield name, "".join(lines)


HOURS = 20  # seconds; longer than any test waits


class BatchStub(HTTPLoopback):
    """The server.

    Attributes
    ----------
    script
        Request -> a `Do`, or "expired" or "canceled". An HTTP status other than 200 is an error
        inside the batch.
    hold
        Whether batches stay in progress until it is cleared.
    fails
        (method, beginning of the path) -> statuses to answer with, one after another; 0 closes
        the line before and -1 after the request has been carried out, and -2 never answers.
    invalid
        Code with which OpenAI batches fail as a whole.
    """

    def __init__(self) -> None:
        super().__init__(Handler)
        self.script: Script = lambda _: Do()
        self.hold = False
        self.invalid = ""
        self.fails: dict[tuple[str, str], list[int]] = {}
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, tuple[str, bytes, dict[str, str]]] = {}
        self.log: list[tuple[str, str]] = []
        self.deleted: list[str] = []
        self.cut_results = 0
        self._next = 0

    @property
    def openai_url(self) -> str:
        """Base URL for the openai SDK."""
        return f"{self.address}/v1"

    @property
    def anthropic_url(self) -> str:
        """Base URL for the anthropic SDK."""
        return self.address

    def creations(self) -> int:
        """Return how many batches were asked for."""
        paths = ("/v1/batches", "/v1/messages/batches")
        return sum(method == "POST" and path in paths for method, path in self.log)

    def asked(self) -> list[str]:
        """Return the custom ids of all requests of all batches."""
        return [one["custom_id"] for batch in self.batches.values() for one in batch.requests]

    def planned(self, method: str, path: str) -> int:
        """Return the status that is planned for a request, and use it up."""
        for (fails_at, start), statuses in self.fails.items():
            if method == fails_at and path.startswith(start) and statuses:
                return statuses.pop(0)
        return 200

    def new_id(self, kind: str) -> str:
        """Return an id that was not used yet."""
        self._next += 1
        return f"{kind}_{self._next}"

    def take(self, vendor: str, requests: list[dict[str, Any]], **fields: Any) -> Batch:
        """Make a batch."""
        batch = Batch(self.new_id("batch"), vendor, requests, time.time(), **fields)
        self.batches[batch.id] = batch
        return batch

    def advance(self, batch: Batch) -> None:
        """End a batch that may end."""
        if batch.state != "in_progress" or self.hold:
            return
        if self.invalid and batch.vendor == "openai":
            batch.state = "failed"
            return
        answer(batch, self.script)
        batch.results = batch.results[: len(batch.results) - self.cut_results]
        for name, text in result_files(batch):
            self.files[f"{name}_{batch.id}"] = ("results", text.encode(), {})


class Handler(QuietHandler):
    """Answers for the stub that its server carries."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        """Answer, or fail as planned."""
        stub: BatchStub = self.server.owner  # type: ignore[attr-defined]
        parts = urlsplit(self.path)
        body = self.read_body()
        stub.log.append((self.command, parts.path))
        status = stub.planned(self.command, parts.path)
        answer_status, text = status, '{"error": {"type": "planned"}}'
        if status in (200, -1, -2):
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            answer_status, text = _route(stub, self.command, parts.path, query, body, self.headers)
        if status == -2:
            time.sleep(HOURS)
        if status <= 0:
            self.close_connection = True
            return
        self.send_json(text, answer_status)


def _route(
    stub: BatchStub, method: str, path: str, query: dict[str, str], body: bytes, headers: Any
) -> tuple[int, str]:
    """Carry a request out; return the status and body of the answer."""
    for verb, pattern, act in ROUTES:
        if method == verb and (match := re.fullmatch(pattern, path)):
            content = act(stub, match[1] if match.groups() else "", query, body, headers)
            if content is None:
                break
            return 200, content if isinstance(content, str) else json.dumps(content)
    return 404, '{"error": {"type": "not_found_error", "code": "not_found"}}'


def _upload(stub: BatchStub, _: str, __: Any, body: bytes, headers: Any) -> Any:
    head = f"content-type: {headers['content-type']}\r\n\r\n".encode()
    fields, name = {}, ""
    for part in BytesParser().parsebytes(head + body).get_payload():
        field_name = part.get_param("name", header="content-disposition")
        fields[field_name] = part.get_payload(decode=True)
        name = part.get_filename() or name
    key = stub.new_id("file")
    metadata = {part: value.decode() for part, value in fields.items() if part != "file"}
    stub.files[key] = (name, fields["file"], metadata)
    return {"id": key, "object": "file", "filename": name, "purpose": "batch"}


def _create_openai(stub: BatchStub, _: str, __: Any, body: bytes, ___: Any) -> Any:
    order = json.loads(body)
    lines = stub.files[order["input_file_id"]][1].decode().splitlines()
    fields = {"input_file": order["input_file_id"], "metadata": order["metadata"]}
    return _shown(stub, stub.take("openai", list(map(json.loads, lines)), **fields))


def _create_anthropic(stub: BatchStub, _: str, __: Any, body: bytes, ___: Any) -> Any:
    return _shown(stub, stub.take("anthropic", json.loads(body)["requests"]))


def _shown(stub: BatchStub, batch: Batch) -> dict[str, Any]:
    return SHOW[batch.vendor](stub.files, stub.invalid, batch)


def _list(vendor: str, after: str) -> Callable[..., Any]:
    def page(stub: BatchStub, _: str, query: dict[str, str], *__: Any) -> Any:
        own = [batch for batch in reversed(stub.batches.values()) if batch.vendor == vendor]
        for batch in own:
            stub.advance(batch)
        names = [batch.id for batch in own]
        start = names.index(query[after]) + 1 if after in query else 0
        end = start + min(2, int(query["limit"]))  # small pages, so that they are turned
        shown = [_shown(stub, batch) for batch in own[start:end]]
        return {"object": "list", "data": shown, "has_more": end < len(own)}

    return page


def _show(stub: BatchStub, key: str, *_: Any) -> Any:
    if key not in stub.batches:
        return None
    stub.advance(stub.batches[key])
    return _shown(stub, stub.batches[key])


def _results(stub: BatchStub, key: str, *_: Any) -> Any:
    batch = stub.batches.get(key)
    return "".join(json.dumps(result) + "\n" for result in batch.results) if batch else None


def _delete_batch(stub: BatchStub, key: str, *_: Any) -> Any:
    stub.deleted.append(key)
    return stub.batches.pop(key, None) and {"id": key, "type": "message_batch_deleted"}


def _content(stub: BatchStub, key: str, *_: Any) -> Any:
    return stub.files[key][1].decode() if key in stub.files else None


def _delete_file(stub: BatchStub, key: str, *_: Any) -> Any:
    stub.deleted.append(key)
    return stub.files.pop(key, None) and {"id": key, "object": "file", "deleted": True}


def _list_files(stub: BatchStub, *_: Any) -> Any:
    rows = [{"id": key, "filename": stored[0]} for key, stored in stub.files.items()]
    return {"object": "list", "data": rows, "has_more": False}


ROUTES: list[tuple[str, str, Callable[..., Any]]] = [
    ("POST", "/v1/files", _upload),
    ("GET", "/v1/files", _list_files),
    ("GET", "/v1/files/([^/]+)/content", _content),
    ("DELETE", "/v1/files/([^/]+)", _delete_file),
    ("POST", "/v1/batches", _create_openai),
    ("GET", "/v1/batches", _list("openai", "after")),
    ("GET", "/v1/batches/([^/]+)", _show),
    ("POST", "/v1/messages/batches", _create_anthropic),
    ("GET", "/v1/messages/batches", _list("anthropic", "after_id")),
    ("GET", "/v1/messages/batches/([^/]+)", _show),
    ("GET", "/v1/messages/batches/([^/]+)/results", _results),
    ("DELETE", "/v1/messages/batches/([^/]+)", _delete_batch),
]

HASTY = Polling(first=0.01, longest=0.02, grace=0.0)


def run(engine: Engine, panel: Panel, **options: Any) -> RunResult:
    """Run a panel in batches and check that its figures add up."""
    result = run_batches(engine, panel, **{"pace": HASTY} | capped(options))
    return checked(result, options.get("replicates", 1))


def batches(engine: Engine) -> list[JuryBatch]:
    return stored(engine, select(JuryBatch))


def requests(engine: Engine) -> list[JuryRequest]:
    return stored(engine, select(JuryRequest))


@pytest.fixture
def stub() -> Iterator[BatchStub]:
    with BatchStub() as running:
        yield running
