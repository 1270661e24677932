"""OpenAI's protocol at Azure and at Google: their addresses, and their ways to sign in."""

from typing import Any
from urllib.parse import urlsplit

import openai

from jury.panel import Juror
from jury.provider_settings import auth_of
from jury.providers.credentials import (
    AZURE_OPENAI_SCOPE,
    Renewed,
    entra_token,
    google_token,
)
from jury.providers.openai_chat import OpenAIChat

AZURE_V1 = "/openai/v1"


class AzureChat(OpenAIChat):
    """A juror at Azure OpenAI: its v1 address, or a deployment with an `api-version`."""

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        juror = self.juror
        if juror.api_version:
            return self._of_deployment(key, common)
        base = juror.base_url.rstrip("/")
        address = base if urlsplit(base).path else base + AZURE_V1
        return openai.AsyncOpenAI(api_key=self._token(juror) or key, base_url=address, **common)

    def newest_names(self) -> bool:
        """Return that the limit is called as OpenAI's newest models call it."""
        return True

    def model(self) -> str:
        """Return the deployment: Azure calls models by what its owner has called them."""
        return self.juror.deployment or self.juror.model

    def _of_deployment(self, key: str, common: dict[str, Any]) -> Any:
        """Return a client whose requests name deployment and `api-version` in the address."""
        juror = self.juror
        token = self._token(juror)
        sign_in: dict[str, Any] = {"azure_ad_token_provider": token} if token else {"api_key": key}
        return openai.AsyncAzureOpenAI(
            azure_endpoint=juror.base_url,
            azure_deployment=self.model(),
            api_version=juror.api_version,
            **sign_in,
            **common,
        )

    def _token(self, juror: Juror) -> Renewed[str] | None:
        """Return Entra's tokens, None where the juror has a key."""
        if auth_of(juror.provider, juror.auth) == "entra":
            self.credential = entra_token(AZURE_OPENAI_SCOPE)
        return self.credential


class GeminiChat(OpenAIChat):
    """A juror at Google's OpenAI-compatible address: Gemini's own with a key, or Vertex AI's."""

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        juror = self.juror
        if auth_of(juror.provider, juror.auth) == "google":
            self.credential = google_token()
        return openai.AsyncOpenAI(api_key=self.credential or key, base_url=juror.base_url, **common)
