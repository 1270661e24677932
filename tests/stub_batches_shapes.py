"""How both vendors write a batch and its results, for the stub that plays them."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stub_llm import Do, Seen, _anthropic, _openai, verdict

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
    body: Any = _openai(seen, do, verdict(seen) if do.text is None else do.text)
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
    message = _anthropic(seen, do, verdict(seen) if do.text is None else do.text)
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
