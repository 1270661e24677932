"""Jurors behind Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any, ClassVar

import anthropic

from data.schema import Status
from jury.call import Answer, Call, Message, Usage
from jury.providers.http_client import Endpoint, body_of, count, text_of, unreadable
from jury.refused_parameter import refuses_caching

MARK = "cache_control"
EPHEMERAL = {"type": "ephemeral"}  # for five minutes, anew with each use
FINISH = {
    "max_tokens": Status.TRUNCATED,
    "model_context_window_exceeded": Status.TRUNCATED,
    "refusal": Status.REFUSED,
}


class AnthropicMessages(Endpoint):
    """A juror reached through the anthropic SDK."""

    sdk: ClassVar[Any] = anthropic
    path = "/v1/messages"

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        url = self.juror.base_url
        return anthropic.AsyncAnthropic(api_key=key, base_url=url, open_telemetry=False, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels; json_object, which this API lacks, is left to words."""
        juror = self.juror
        output: dict[str, Any] = {}
        if call.form == "json_schema":
            output["format"] = {"type": "json_schema", "schema": dict(call.schema)}
        if juror.effort is not None:
            output["effort"] = juror.effort
        extra = {"output_config": output or None, "temperature": juror.temperature}
        return {
            "model": juror.model,
            "max_tokens": juror.max_tokens,
            "messages": [
                {"role": turn.role, "content": self._content(turn)} for turn in call.messages
            ],
        } | {name: value for name, value in extra.items() if value is not None}

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        names = ("model", "max_tokens", "temperature", "effort")
        settings = {name: getattr(self.juror, name) for name in names}
        form = "json_schema" if call.form == "json_schema" else "text"
        cached = {MARK: EPHEMERAL["type"]} if call.prefix and MARK not in self.unsupported else {}
        return (
            {"base_url": self.juror.base_url, "schema": form}
            | cached
            | {name: value for name, value in settings.items() if value is not None}
        )

    def learns(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Return whether a server does not know how to mark a prefix, and remember it."""
        marked = any(isinstance(turn["content"], list) for turn in body["messages"])
        if not marked or not refuses_caching(answer):
            return False
        self.without(MARK)
        return True

    def _content(self, turn: Message) -> str | list[dict[str, Any]]:
        """Return a turn; where it begins as others do, in two blocks with the first to be cached.

        The vendor caches only what is marked, and what is written to the cache costs more.
        """
        first, *rest = turn.pieces
        if not rest or MARK in self.unsupported:
            return turn.text
        return [{"type": "text", "text": first, MARK: EPHEMERAL}, {"type": "text", "text": rest[0]}]

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
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
