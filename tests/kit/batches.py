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

from data.database import reading
from data.schema.jury import JuryBatch, JuryRequest
from jury.batch.context import Polling
from jury.batch.run import run_batches
from jury.panel import Panel
from jury.run_result import RunResult
from kit.jurors import Do, Seen, anthropic_body, openai_body, verdict
from kit.jury_runs import checked
from kit.loopback import HTTPLoopback, QuietHandler

Script = Callable[[Seen], "Do | str"]


@dataclass
class Held:
    """A batch at the provider; `vendor` is "openai" or "anthropic"."""

    id: str
    vendor: str
    requests: list[dict[str, Any]]
    made: float
    input_file: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    state: str = "in_progress"
    results: list[dict[str, Any]] = field(default_factory=list)
    archived: bool = False


def bad(line: dict[str, Any]) -> bool:
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


def _openai_batch(files_there: Mapping[str, Any], invalid: str, held: Held) -> dict[str, Any]:
    files = {name: f"{name[:3]}_{held.id}" for name in ("output", "error")}
    present = {name: key if key in files_there else None for name, key in files.items()}
    errors = [{"code": invalid, "message": "echo", "line": 1}]
    done = sum(not bad(one) for one in held.results)
    counts = {"total": len(held.requests), "completed": done}
    return {
        "id": held.id,
        "object": "batch",
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "created_at": int(held.made),
        "input_file_id": held.input_file,
        "metadata": held.metadata,
        "status": held.state,
        "errors": {"object": "list", "data": errors} if held.state == "failed" else None,
        "output_file_id": present["output"],
        "error_file_id": present["error"],
        "request_counts": counts | {"failed": len(held.results) - done},
    }


def _anthropic_batch(_: Mapping[str, Any], __: str, held: Held) -> dict[str, Any]:
    kinds = [one["result"]["type"] for one in held.results]
    counts = {name: kinds.count(name) for name in ("succeeded", "errored", "canceled", "expired")}
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(held.made))
    ended = held.state == "ended"
    return {
        "id": held.id,
        "type": "message_batch",
        "processing_status": held.state,
        "request_counts": counts | {"processing": 0 if ended else len(held.requests)},
        "created_at": made,
        "expires_at": made,
        "archived_at": made if held.archived else None,
        "ended_at": made if ended else None,
        "cancel_initiated_at": None,
        "results_url": "http://elsewhere.invalid/results" if ended else None,
    }


SHOW = {"openai": _openai_batch, "anthropic": _anthropic_batch}


def answer(held: Held, script: Script) -> None:
    """Give every request of a batch its result, the last one first."""
    body = "body" if held.vendor == "openai" else "params"
    for number, one in enumerate(reversed(held.requests)):
        seen = Seen(number, held.vendor, {}, one[body])
        held.results.append(RESULT[held.vendor](one["custom_id"], seen, script(seen)))
    lost = any(one.get("error") for one in held.results)
    held.state = {"anthropic": "ended", "openai": "expired" if lost else "completed"}[held.vendor]


def result_files(held: Held) -> Iterator[tuple[str, str]]:
    """Yield the beginning of the name and the text of each file of results OpenAI makes."""
    for name, wrong in (("out", False), ("err", True)) if held.vendor == "openai" else ():
        lines = [one for one in held.results if bad(one) == wrong]
        if lines:
            yield name, "".join(json.dumps(line) + "\n" for line in lines)


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
        self.batches: dict[str, Held] = {}
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
        made = ("/v1/batches", "/v1/messages/batches")
        return sum(method == "POST" and path in made for method, path in self.log)

    def asked(self) -> list[str]:
        """Return the custom ids of all requests of all batches."""
        return [one["custom_id"] for held in self.batches.values() for one in held.requests]

    def planned(self, method: str, path: str) -> int:
        """Return the status that is planned for a request, and use it up."""
        for (wanted, start), statuses in self.fails.items():
            if method == wanted and path.startswith(start) and statuses:
                return statuses.pop(0)
        return 200

    def new_id(self, kind: str) -> str:
        """Return an id that was not used yet."""
        self._next += 1
        return f"{kind}_{self._next}"

    def take(self, vendor: str, requests: list[dict[str, Any]], **fields: Any) -> Held:
        """Make a batch."""
        held = Held(self.new_id("batch"), vendor, requests, time.time(), **fields)
        self.batches[held.id] = held
        return held

    def advance(self, held: Held) -> None:
        """End a batch that may end."""
        if held.state != "in_progress" or self.hold:
            return
        if self.invalid and held.vendor == "openai":
            held.state = "failed"
            return
        answer(held, self.script)
        held.results = held.results[: len(held.results) - self.cut_results]
        for name, text in result_files(held):
            self.files[f"{name}_{held.id}"] = ("results", text.encode(), {})


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
        given, text = status, '{"error": {"type": "planned"}}'
        if status in (200, -1, -2):
            query = {name: one[0] for name, one in parse_qs(parts.query).items()}
            given, text = _route(stub, self.command, parts.path, query, body, self.headers)
        if status == -2:
            time.sleep(HOURS)
        if status <= 0:
            self.close_connection = True
            return
        self.send_json(text, given)


def _route(
    stub: BatchStub, method: str, path: str, query: dict[str, str], body: bytes, headers: Any
) -> tuple[int, str]:
    """Carry a request out; return the status and body of the answer."""
    for wanted, pattern, do in ROUTES:
        if method == wanted and (found := re.fullmatch(pattern, path)):
            done = do(stub, found[1] if found.groups() else "", query, body, headers)
            if done is None:
                break
            return 200, done if isinstance(done, str) else json.dumps(done)
    return 404, '{"error": {"type": "not_found_error", "code": "not_found"}}'


def _upload(stub: BatchStub, _: str, __: Any, body: bytes, headers: Any) -> Any:
    head = f"content-type: {headers['content-type']}\r\n\r\n".encode()
    fields, name = {}, ""
    for part in BytesParser().parsebytes(head + body).get_payload():
        field_name = part.get_param("name", header="content-disposition")
        fields[field_name] = part.get_payload(decode=True)
        name = part.get_filename() or name
    key = stub.new_id("file")
    rest = {one: value.decode() for one, value in fields.items() if one != "file"}
    stub.files[key] = (name, fields["file"], rest)
    return {"id": key, "object": "file", "filename": name, "purpose": "batch"}


def _create_openai(stub: BatchStub, _: str, __: Any, body: bytes, ___: Any) -> Any:
    given = json.loads(body)
    lines = stub.files[given["input_file_id"]][1].decode().splitlines()
    fields = {"input_file": given["input_file_id"], "metadata": given["metadata"]}
    held = stub.take("openai", [json.loads(line) for line in lines], **fields)
    return _shown(stub, held)


def _create_anthropic(stub: BatchStub, _: str, __: Any, body: bytes, ___: Any) -> Any:
    return _shown(stub, stub.take("anthropic", json.loads(body)["requests"]))


def _shown(stub: BatchStub, held: Held) -> dict[str, Any]:
    return SHOW[held.vendor](stub.files, stub.invalid, held)


def _list(vendor: str, after: str) -> Callable[..., Any]:
    def page(stub: BatchStub, _: str, query: dict[str, str], *__: Any) -> Any:
        rows = [one for one in reversed(stub.batches.values()) if one.vendor == vendor]
        for one in rows:
            stub.advance(one)
        names = [one.id for one in rows]
        start = names.index(query[after]) + 1 if after in query else 0
        end = start + min(2, int(query["limit"]))  # small pages, so that they are turned
        shown = [_shown(stub, one) for one in rows[start:end]]
        return {"object": "list", "data": shown, "has_more": end < len(rows)}

    return page


def _show(stub: BatchStub, key: str, *_: Any) -> Any:
    held = stub.batches.get(key)
    if held is None:
        return None
    stub.advance(held)
    return _shown(stub, held)


def _results(stub: BatchStub, key: str, *_: Any) -> Any:
    held = stub.batches.get(key)
    return "".join(json.dumps(one) + "\n" for one in held.results) if held else None


def _delete_batch(stub: BatchStub, key: str, *_: Any) -> Any:
    stub.deleted.append(key)
    return stub.batches.pop(key, None) and {"id": key, "type": "message_batch_deleted"}


def _content(stub: BatchStub, key: str, *_: Any) -> Any:
    return stub.files[key][1].decode() if key in stub.files else None


def _delete_file(stub: BatchStub, key: str, *_: Any) -> Any:
    stub.deleted.append(key)
    return stub.files.pop(key, None) and {"id": key, "object": "file", "deleted": True}


def _list_files(stub: BatchStub, *_: Any) -> Any:
    rows = [{"id": key, "filename": one[0]} for key, one in stub.files.items()]
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
    result = run_batches(engine, panel, **{"pace": HASTY} | options)
    return checked(result, options.get("replicates", 1))


def batches(engine: Engine) -> list[JuryBatch]:
    """Return all batches."""
    return _rows(engine, JuryBatch)


def requests(engine: Engine) -> list[JuryRequest]:
    """Return all requests in batches."""
    return _rows(engine, JuryRequest)


def _rows(engine: Engine, table: Any) -> list[Any]:
    with reading(engine) as session:
        rows = list(session.exec(select(table)))
        session.expunge_all()
    return rows


@pytest.fixture
def stub() -> Iterator[BatchStub]:
    with BatchStub() as running:
        yield running
