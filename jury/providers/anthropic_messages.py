"""Jurors behind Anthropic's Messages API."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anthropic
import httpx2

from data.schema import Status
from jury.call import Answer, Call, Usage
from jury.panel import Juror
from jury.providers.replies import (
    body_of,
    count,
    http_failure,
    silence,
    text_of,
    unanswered,
    unreadable,
)
from jury.providers.wire import client

PATH = "/v1/messages"
FINISH = {
    "max_tokens": Status.TRUNCATED,
    "model_context_window_exceeded": Status.TRUNCATED,
    "refusal": Status.REFUSED,
}


class AnthropicMessages:
    """A juror reached through the anthropic SDK, which neither retries nor follows redirects."""

    def __init__(self, juror: Juror, key: str, timeout: float) -> None:
        silence()
        self._juror = juror
        self._timeout = timeout
        self._client = anthropic.AsyncAnthropic(
            api_key=key,
            base_url=juror.base_url,
            max_retries=0,
            timeout=timeout,
            open_telemetry=False,
            http_client=client(anthropic.DefaultAioHttpClient, juror.base_url, timeout),
        )

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended; json_object, which this API lacks, is asked for in words."""
        answer = await self._request(body(self._juror, call))
        return replace(answer, sent=sent(self._juror, call))

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _request(self, asked: dict[str, Any]) -> Answer:
        """Send one request; every way it can end is an answer.

        It goes by the SDK's `post`: `create` would walk through all texts and the schema first,
        and has no parameter for the temperature any more.
        """
        try:
            async with asyncio.timeout(self._timeout):
                raw = await self._client.post(PATH, body=asked, cast_to=httpx2.Response)
        except (TimeoutError, anthropic.APIConnectionError) as error:
            return unanswered(error, self._timeout)
        except anthropic.APIStatusError as error:
            return http_failure(error.status_code, error.response.headers, error.response.text)
        return read(raw.text, raw.headers)


def body(juror: Juror, call: Call) -> dict[str, Any]:
    """Return a request as it travels."""
    output: dict[str, Any] = {}
    if call.form == "json_schema":
        output["format"] = {"type": "json_schema", "schema": dict(call.schema)}
    if juror.effort is not None:
        output["effort"] = juror.effort
    extra = {"output_config": output or None, "temperature": juror.temperature}
    return {
        "model": juror.model,
        "max_tokens": juror.max_tokens,
        "messages": [{"role": turn.role, "content": turn.text} for turn in call.messages],
    } | {name: value for name, value in extra.items() if value is not None}


def sent(juror: Juror, call: Call) -> dict[str, Any]:
    """Return the settings a request carries, without its texts."""
    settings: dict[str, Any] = {
        "base_url": juror.base_url,
        "schema": "json_schema" if call.form == "json_schema" else "text",
        "model": juror.model,
        "max_tokens": juror.max_tokens,
        "temperature": juror.temperature,
        "effort": juror.effort,
    }
    return {name: value for name, value in settings.items() if value is not None}


def read(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body."""
    body = body_of(text) or {}
    content = body.get("content")
    if not isinstance(content, list):
        return unreadable(text)
    finish = text_of(body.get("stop_reason"))
    status = FINISH.get(finish, Status.OK)
    blocks = [one for one in content if isinstance(one, dict) and one.get("type") == "text"]
    return Answer(
        status,
        "" if status == Status.OK else f"stop_reason {finish} {_category(body)}".strip(),
        text="".join(text_of(one.get("text")) for one in blocks),
        usage=_usage(body.get("usage")),
        http=200,
        request_id=headers.get("request-id") or text_of(body.get("id")),
        returned_model=text_of(body.get("model")),
    )


def _category(body: dict[str, Any]) -> str:
    """Return what kind of refusal it was, such as bio."""
    details = body.get("stop_details")
    return text_of(details.get("category")) if isinstance(details, dict) else ""


def _usage(usage: Any) -> Usage:
    """Return the token counts; cached ones stand beside the fresh ones and are added."""
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
