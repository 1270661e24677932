"""Jurors behind Anthropic's Messages API."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import anthropic

from data.calls import Status
from jury.api_protocols import MESSAGES_PATH, messages_body, read_message, refuses_caching
from jury.call import TOO_LONG, Answer, Call
from jury.providers.http_client import FOUNDRY_SCOPE, Endpoint, aws_keys, entra_token, google_token
from jury.providers.registry import auth_of

MARK = "cache_control"
EPHEMERAL = {"type": "ephemeral"}  # for five minutes, anew with each use


class AnthropicMessages(Endpoint):
    """A juror reached through the anthropic SDK."""

    sdk: ClassVar[Any] = anthropic
    path = MESSAGES_PATH

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        url = self.juror.base_url
        return anthropic.AsyncAnthropic(api_key=key, base_url=url, open_telemetry=False, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a request; json_object, which this API lacks, is asked for in the prompt."""
        body = messages_body(self.juror, call)
        if MARK not in self.unsupported:  # only what is marked is cached, and writing it costs more
            for turn, sent in zip(call.messages, body["messages"], strict=True):
                sent["content"] = turn.marked({MARK: EPHEMERAL})
        return body

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
        """Return whether the server does not support marks for caching, and remember it."""
        marked = any(isinstance(turn["content"], list) for turn in body["messages"])
        if not marked or not refuses_caching(answer):
            return False
        self.without(MARK)
        return True

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body."""
        return read_message(text, headers)


NOT_IN_USE = "not-in-use"  # keeps an SDK from looking for a credential of its own


class BedrockMessages(AnthropicMessages):
    """Claude on Amazon Bedrock, signed in with AWS's keys or with a key of Bedrock's own."""

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        juror = self.juror
        by_key = auth_of(juror.provider, juror.auth) == "key"
        opened = anthropic.AsyncAnthropicBedrock(
            api_key=key if by_key else NOT_IN_USE,
            aws_region=juror.region,
            base_url=juror.base_url,
            open_telemetry=False,
            **common,
        )
        if not by_key:
            self.credential = aws_keys(juror.region, juror.aws_profile)
            opened.api_key, opened.aws_profile = None, juror.aws_profile or None
        return opened

    async def signed_in(self) -> None:
        """Put valid keys into the client, which signs each request with them."""
        if self.credential:
            keys = await self.credential()
            self.client.aws_access_key, self.client.aws_secret_key = (
                keys.access_key,
                keys.secret_key,
            )
            self.client.aws_session_token = keys.token

    def failure(self, status: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return the answer for an HTTP error, with Amazon's name for it, which is in a header."""
        answer = super().failure(status, headers, text)
        kind = headers.get("x-amzn-errortype", "").split(":")[0]
        if not kind.isalnum():
            return answer
        more = f": {TOO_LONG}" if answer.status == Status.TOO_LONG else ""
        return replace(answer, reason=f"HTTP {status} {kind}{more}")


class VertexMessages(AnthropicMessages):
    """Claude on Google's Vertex AI, signed in with Google's application default credentials."""

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client; it has no key."""
        juror = self.juror
        self.credential = google_token()
        return anthropic.AsyncAnthropicVertex(
            region=juror.region,
            project_id=juror.project,
            base_url=juror.base_url,
            open_telemetry=False,
            **common,
        )

    async def signed_in(self) -> None:
        """Put a valid token into the client."""
        if self.credential:
            self.client.access_token = await self.credential()


class FoundryMessages(AnthropicMessages):
    """Claude on Microsoft Foundry, signed in with a key or with Entra."""

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        juror = self.juror
        if auth_of(juror.provider, juror.auth) == "entra":
            self.credential = entra_token(FOUNDRY_SCOPE)
            sign_in: dict[str, Any] = {"azure_ad_token_provider": self.credential}
        else:
            sign_in = {"api_key": key}
        opened = anthropic.AsyncAnthropicFoundry(
            base_url=juror.base_url, open_telemetry=False, **sign_in, **common
        )
        if self.credential:
            opened.api_key = None
        return opened
