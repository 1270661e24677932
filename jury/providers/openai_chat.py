"""Jurors behind OpenAI's chat completions, or any server that speaks them."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import httpx2
import openai

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

PATH = "/chat/completions"
OWN_HOST = "api.openai.com"
FINISH = {"length": Status.TRUNCATED, "content_filter": Status.CONTENT_FILTER}


class OpenAIChat:
    """A juror reached through the openai SDK, which neither retries nor follows redirects."""

    def __init__(self, juror: Juror, key: str, timeout: float) -> None:
        silence()
        self._juror = juror
        self._timeout = timeout
        self._client = openai.AsyncOpenAI(
            api_key=key,
            base_url=juror.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=client(openai.DefaultAioHttpClient, juror.base_url, timeout),
        )

    async def complete(self, call: Call) -> Answer:
        """Return how the call ended."""
        answer = await self._request(body(self._juror, call))
        return replace(answer, sent=sent(self._juror, call))

    async def close(self) -> None:
        """Let go of connections."""
        await self._client.close()

    async def _request(self, asked: dict[str, Any]) -> Answer:
        """Send one request; every way it can end is an answer.

        It goes by the SDK's `post`: `create` would walk through all texts and the schema first.
        """
        try:
            async with asyncio.timeout(self._timeout):
                raw = await self._client.post(PATH, body=asked, cast_to=httpx2.Response)
        except (TimeoutError, openai.APIConnectionError) as error:
            return unanswered(error, self._timeout)
        except openai.APIStatusError as error:
            return http_failure(error.status_code, error.response.headers, error.response.text)
        return read(raw.text, raw.headers)


def body(juror: Juror, call: Call) -> dict[str, Any]:
    """Return a request as it travels."""
    turns = [{"role": turn.role, "content": turn.text} for turn in call.messages]
    return {"messages": turns} | _settings(juror) | _format(call)


def sent(juror: Juror, call: Call) -> dict[str, Any]:
    """Return the settings a request carries, without its texts."""
    return {"base_url": juror.base_url, "schema": call.form} | _settings(juror)


def _settings(juror: Juror) -> dict[str, Any]:
    """Return the settings of a juror as this API names them."""
    own = juror.host == OWN_HOST
    settings: dict[str, Any] = {
        "model": juror.model,
        "max_completion_tokens" if own else "max_tokens": juror.max_tokens,
        "temperature": juror.temperature,
        "reasoning_effort": juror.effort,
        "store": False if own else None,
    }
    return {name: value for name, value in settings.items() if value is not None}


def _format(call: Call) -> dict[str, Any]:
    """Return the part of the request that asks for the form of the answer."""
    wanted: dict[str, Any] = {"type": call.form}
    if call.form == "json_schema":
        wanted["json_schema"] = {"name": "verdict", "strict": True, "schema": dict(call.schema)}
    return {} if call.form == "text" else {"response_format": wanted}


def read(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body; servers that speak the protocol loosely are many."""
    body = body_of(text) or {}
    choices = body.get("choices")
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
        usage=_usage(body.get("usage")),
        http=200,
        request_id=headers.get("x-request-id") or text_of(body.get("id")),
        returned_model=text_of(body.get("model")),
    )


def _usage(usage: Any) -> Usage:
    """Return the token counts; cached ones are inside the prompt's."""
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    spent = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        tokens_in=count(usage, "prompt_tokens"),
        tokens_out=count(usage, "completion_tokens"),
        tokens_cached=count(details, "cached_tokens"),
        tokens_cache_write=count(details, "cache_write_tokens"),
        tokens_reasoning=count(spent, "reasoning_tokens"),
    )
