"""Jurors behind Anthropic's Messages API."""

from collections.abc import Mapping
from typing import Any, ClassVar

import anthropic

from jury import messages_api
from jury.call import Answer, Call
from jury.providers.http_client import Endpoint


class AnthropicMessages(Endpoint):
    """A juror reached through the anthropic SDK."""

    sdk: ClassVar[Any] = anthropic
    path = messages_api.PATH

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        url = self.juror.base_url
        return anthropic.AsyncAnthropic(api_key=key, base_url=url, open_telemetry=False, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        return messages_api.body(self.juror, call)

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        names = ("model", "max_tokens", "temperature", "effort")
        settings = {name: getattr(self.juror, name) for name in names}
        form = "json_schema" if call.form == "json_schema" else "text"
        return {"base_url": self.juror.base_url, "schema": form} | {
            name: value for name, value in settings.items() if value is not None
        }

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body."""
        return messages_api.read(text, headers)
