"""Jurors behind Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any, ClassVar

import anthropic

from jury import messages_api
from jury.call import Answer, Call, Message
from jury.providers.http_client import Endpoint
from jury.refused_parameter import refuses_caching

MARK = "cache_control"
EPHEMERAL = {"type": "ephemeral"}  # for five minutes, anew with each use


class AnthropicMessages(Endpoint):
    """A juror reached through the anthropic SDK."""

    sdk: ClassVar[Any] = anthropic
    path = messages_api.PATH

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        url = self.juror.base_url
        return anthropic.AsyncAnthropic(api_key=key, base_url=url, open_telemetry=False, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels; json_object, which this API lacks, is left to words."""
        turns = [{"role": turn.role, "content": self._content(turn)} for turn in call.messages]
        return messages_api.body(self.juror, call) | {"messages": turns}

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
        return messages_api.read(text, headers)
