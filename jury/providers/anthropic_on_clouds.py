"""Claude at Amazon, Google and Microsoft: the anthropic SDK's own classes for each."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import anthropic

from jury.call import Answer
from jury.provider_settings import auth_of
from jury.providers.anthropic_messages import AnthropicMessages
from jury.providers.credentials import FOUNDRY_SCOPE, aws_keys, entra_token, google_token

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
        """Put keys into the client that hold for a while; it signs each request with them."""
        if self.credential:
            keys = await self.credential()
            self.client.aws_access_key, self.client.aws_secret_key = (
                keys.access_key,
                keys.secret_key,
            )
            self.client.aws_session_token = keys.token

    def failure(self, status: int, headers: Mapping[str, str], text: str) -> Answer:
        """Return the answer that an HTTP error is, with Amazon's word for it, which is a header."""
        answer = super().failure(status, headers, text)
        kind = headers.get("x-amzn-errortype", "").split(":")[0]
        return replace(answer, reason=f"HTTP {status} {kind}") if kind.isalnum() else answer


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
        """Put a token into the client that holds for a while."""
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
