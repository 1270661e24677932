"""The protocols that jurors speak: OpenAI's chat completions and Anthropic's Messages API.

Many servers speak the first, some of them loosely.
"""

from collections.abc import Collection, Mapping
from typing import Any

from data.calls import Status
from data.question import with_lengths
from jury.call import Answer, Call, JurorSettings, Usage
from jury.http_answers import (
    LONGEST_BODY,
    believed,
    body_of,
    count,
    text_of,
    unreadable,
    unsupported_parameter,
)

CHAT_PATH = "/chat/completions"
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")  # what servers call the longest answer
TEXT_PARTS = ("text", "output_text")
NOTHING_WRITTEN = "not one token was written: the prompt may fill the host's context window"
# Kept as they came: why is said in other places at each host.
WHOLE_REPLY = (Status.REFUSED, Status.CONTENT_FILTER)
CHAT_STATUS = {"length": Status.TRUNCATED, "content_filter": Status.CONTENT_FILTER}


def limit_name(*, newest: bool, unsupported: Collection[str] = ()) -> str:
    """Return the parameter that limits the answer's length; with `newest`, that of OpenAI's newest models."""
    usual = LIMIT_NAMES if newest else LIMIT_NAMES[::-1]
    return next((name for name in usual if name not in unsupported), usual[0])


def chat_settings(juror: JurorSettings, *, model: str, limit: str, store: bool) -> dict[str, Any]:
    """Return a juror's settings as this API names them; without `store` texts are not to be stored."""
    settings_sent: dict[str, Any] = {
        "model": model,
        limit: juror.max_tokens,
        "temperature": juror.temperature,
        "reasoning_effort": juror.effort,
        "store": None if store else False,
    }
    return {name: value for name, value in settings_sent.items() if value is not None}


def chat_body(call: Call, settings: Mapping[str, Any], *, lengths: bool = True) -> dict[str, Any]:
    """Return the body of a request with settings that `chat_settings` has named.

    `lengths`: whether explanations are bounded in the schema; OpenAI's own dialect knows no lengths.
    """
    turns = [{"role": turn.role, "content": turn.text} for turn in call.messages]
    form = answer_form(call, lengths=lengths and LIMIT_NAMES[0] not in settings)
    return {"messages": turns} | dict(settings) | form


def answer_form(call: Call, *, lengths: bool = False) -> dict[str, Any]:
    """Return the part of a request that sets the form of the answer."""
    response_format: dict[str, Any] = {"type": call.form}
    if call.form == "json_schema":
        response_format["json_schema"] = {
            "name": "verdict",
            "strict": True,
            "schema": with_lengths(call.schema) if lengths else dict(call.schema),
        }
    return {} if call.form == "text" else {"response_format": response_format}


def read_chat(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body; servers that speak the protocol loosely are many."""
    content = body_of(text) or {}
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return unreadable(text)
    finish = text_of(choice.get("finish_reason"))
    refusal = text_of(message.get("refusal"))
    status = Status.REFUSED if refusal else CHAT_STATUS.get(finish, Status.OK)
    words = _words(message.get("content"))
    usage = believed(_chat_usage, content.get("usage"), words)
    reason = "" if status == Status.OK else f"finish_reason {finish}"
    if status == Status.OK and not words and usage.tokens_out == 0:
        status, reason = Status.TRUNCATED, NOTHING_WRITTEN
    return Answer(
        status,
        reason,
        text=text[:LONGEST_BODY] if status in WHOLE_REPLY else words,
        usage=usage,
        http=200,
        request_id=headers.get("x-request-id") or text_of(content.get("id")),
        returned_model=text_of(content.get("model")),
    )


def _words(content: Any) -> str:
    """Return the text of a message; of a list of parts those of the answer, not of the reasoning."""
    if not isinstance(content, list):
        return text_of(content)
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in TEXT_PARTS]
    return "".join(text_of(part.get("text")) for part in parts)


def refused_parameter(answer: Answer, sent: Collection[str]) -> str:
    """Return a parameter that a server refused and that can be renamed or left out, "" if none.

    Only what does not change the answers is sent otherwise: the name of the limit, and `store`.
    """
    name = unsupported_parameter(answer)
    return name if name in (*LIMIT_NAMES, "store") and name in sent else ""


def _chat_usage(usage: Any) -> Usage:
    """Return the token counts; cached tokens are included in the prompt's.

    Gemini and some gateways leave reasoning out of the completion's tokens and have it in the total.
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    spent = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    read, written = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    if read is not None and written is not None:
        written = max(written, (count(usage, "total_tokens") or 0) - read)
    return Usage(
        tokens_in=read,
        tokens_out=written,
        tokens_cached=count(details, "cached_tokens"),
        tokens_cache_write=count(details, "cache_write_tokens"),
        tokens_reasoning=count(spent, "reasoning_tokens"),
    )


MESSAGES_PATH = "/v1/messages"
MESSAGES_VERSION = "2023-06-01"
MESSAGES_STATUS = {
    "max_tokens": Status.TRUNCATED,
    "model_context_window_exceeded": Status.TRUNCATED,
    "refusal": Status.REFUSED,
}


def messages_body(juror: JurorSettings, call: Call) -> dict[str, Any]:
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


def read_message(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body."""
    reply = body_of(text) or {}
    content = reply.get("content")
    if not isinstance(content, list):
        return unreadable(text)
    finish = text_of(reply.get("stop_reason"))
    status = MESSAGES_STATUS.get(finish, Status.OK)
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    words = "".join(text_of(block.get("text")) for block in blocks)
    return Answer(
        status,
        "" if status == Status.OK else f"stop_reason {finish} {_category(reply)}".strip(),
        text=text[:LONGEST_BODY] if status in WHOLE_REPLY else words,
        usage=believed(_messages_usage, reply.get("usage"), words),
        http=200,
        request_id=headers.get("request-id") or text_of(reply.get("id")),
        returned_model=text_of(reply.get("model")),
    )


def _category(reply: Mapping[str, Any]) -> str:
    """Return the category of a refusal, such as bio."""
    details = reply.get("stop_details")
    return text_of(details.get("category")) if isinstance(details, dict) else ""


def _messages_usage(usage: Any) -> Usage:
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
