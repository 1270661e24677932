"""Requests and answers in the protocol of Anthropic's Messages API.

Pure: what medjury asks with, and what the exports carry along.
"""

from collections.abc import Mapping
from typing import Any

from data.calls import Status
from jury.call import Answer, Call, JurorSettings, Usage
from jury.http_answers import body_of, count, text_of, unreadable

PATH = "/v1/messages"
VERSION = "2023-06-01"
FINISH = {
    "max_tokens": Status.TRUNCATED,
    "model_context_window_exceeded": Status.TRUNCATED,
    "refusal": Status.REFUSED,
}


def body(juror: JurorSettings, call: Call) -> dict[str, Any]:
    """Return the body of a request; json_object, which this API lacks, is asked for in the prompt."""
    extra = {"output_config": output_config(juror, call) or None, "temperature": juror.temperature}
    return {
        "model": juror.model,
        "max_tokens": juror.max_tokens,
        "messages": [{"role": turn.role, "content": turn.text} for turn in call.messages],
    } | {name: value for name, value in extra.items() if value is not None}


def output_config(juror: JurorSettings, call: Call) -> dict[str, Any]:
    """Return the part of a request that sets the form of the answer and the effort."""
    output: dict[str, Any] = {}
    if call.form == "json_schema":
        output["format"] = {"type": "json_schema", "schema": dict(call.schema)}
    if juror.effort is not None:
        output["effort"] = juror.effort
    return output


def read(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body."""
    reply = body_of(text) or {}
    content = reply.get("content")
    if not isinstance(content, list):
        return unreadable(text)
    finish = text_of(reply.get("stop_reason"))
    status = FINISH.get(finish, Status.OK)
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return Answer(
        status,
        "" if status == Status.OK else f"stop_reason {finish} {_category(reply)}".strip(),
        text="".join(text_of(block.get("text")) for block in blocks),
        usage=_usage(reply.get("usage")),
        http=200,
        request_id=headers.get("request-id") or text_of(reply.get("id")),
        returned_model=text_of(reply.get("model")),
    )


def _category(reply: Mapping[str, Any]) -> str:
    """Return the category of a refusal, such as bio."""
    details = reply.get("stop_details")
    return text_of(details.get("category")) if isinstance(details, dict) else ""


def _usage(usage: Any) -> Usage:
    """Return the token counts; cached tokens are reported apart from the others and are added."""
    fresh = count(usage, "input_tokens")
    cached = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        tokens_in=None if fresh is None else fresh + (cached or 0) + (written or 0),
        tokens_out=count(usage, "output_tokens"),
        tokens_cached=cached,
        tokens_cache_write=written,
        tokens_reasoning=count(details, "reasoning_tokens"),
    )
