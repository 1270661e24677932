"""Requests and answers in the protocol of OpenAI's chat completions, which many servers speak.

Pure: what medjury asks with, and what the exports carry along.
"""

from collections.abc import Collection, Mapping
from typing import Any

from data.calls import Status
from jury.call import Answer, Call, JurorSettings, Usage
from jury.http_answers import body_of, count, text_of, unreadable, unsupported_parameter

PATH = "/chat/completions"
LIMITS = ("max_completion_tokens", "max_tokens")  # what servers call the longest answer
FINISH = {"length": Status.TRUNCATED, "content_filter": Status.CONTENT_FILTER}


def limit_name(*, newest: bool, unsupported: Collection[str] = ()) -> str:
    """Return the parameter that limits the answer's length; with `newest`, that of OpenAI's newest models."""
    usual = LIMITS if newest else LIMITS[::-1]
    return next((name for name in usual if name not in unsupported), usual[0])


def settings(juror: JurorSettings, *, model: str, limit: str, store: bool) -> dict[str, Any]:
    """Return a juror's settings as this API names them; without `store` texts are not to be stored."""
    settings_sent: dict[str, Any] = {
        "model": model,
        limit: juror.max_tokens,
        "temperature": juror.temperature,
        "reasoning_effort": juror.effort,
        "store": None if store else False,
    }
    return {name: value for name, value in settings_sent.items() if value is not None}


def body(call: Call, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a request with settings that `settings` has named."""
    turns = [{"role": turn.role, "content": turn.text} for turn in call.messages]
    return {"messages": turns} | dict(settings) | wanted_form(call)


def wanted_form(call: Call) -> dict[str, Any]:
    """Return the part of a request that sets the form of the answer."""
    response_format: dict[str, Any] = {"type": call.form}
    if call.form == "json_schema":
        response_format["json_schema"] = {
            "name": "verdict",
            "strict": True,
            "schema": dict(call.schema),
        }
    return {} if call.form == "text" else {"response_format": response_format}


def read(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body; servers that speak the protocol loosely are many."""
    content = body_of(text) or {}
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return unreadable(text)
    finish = text_of(choice.get("finish_reason"))
    refusal = text_of(message.get("refusal"))
    status = Status.REFUSED if refusal else FINISH.get(finish, Status.OK)
    return Answer(
        status,
        "" if status == Status.OK else f"finish_reason {finish}",
        text=text_of(message.get("content")) or refusal,
        usage=_usage(content.get("usage")),
        http=200,
        request_id=headers.get("x-request-id") or text_of(content.get("id")),
        returned_model=text_of(content.get("model")),
    )


def learnt(answer: Answer, sent: Collection[str]) -> str:
    """Return a parameter that a server refused and that can be renamed or left out, "" if none.

    Only what does not change the answers is sent otherwise: the name of the limit, and `store`.
    """
    name = unsupported_parameter(answer)
    return name if name in (*LIMITS, "store") and name in sent else ""


def _usage(usage: Any) -> Usage:
    """Return the token counts; cached tokens are included in the prompt's."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    spent = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        tokens_in=count(usage, "prompt_tokens"),
        tokens_out=count(usage, "completion_tokens"),
        tokens_cached=count(details, "cached_tokens"),
        tokens_cache_write=count(details, "cache_write_tokens"),
        tokens_reasoning=count(spent, "reasoning_tokens"),
    )
