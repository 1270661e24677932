"""Jurors behind OpenAI's chat completions, or any server that speaks them."""

from collections.abc import Mapping
from typing import Any, ClassVar

import openai

from jury import chat_completions
from jury.call import Answer, Call
from jury.chat_completions import LIMITS
from jury.providers import VENDORS
from jury.providers.http_client import Endpoint


class OpenAIChat(Endpoint):
    """A juror reached through the openai SDK.

    Attributes
    ----------
    unsupported
        Names of parameters that the server has refused in this run, and that are sent otherwise
        or not at all since.
    """

    sdk: ClassVar[Any] = openai
    path = chat_completions.PATH
    unsupported: tuple[str, ...] = ()

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        return openai.AsyncOpenAI(api_key=key, base_url=self.juror.base_url, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        return chat_completions.body(call, self._settings())

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        return {"base_url": self.juror.base_url, "schema": call.form} | self._settings()

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body."""
        return chat_completions.read(text, headers)

    def learns(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Return whether the request is worth making again under another name, and remember it.

        Another call may have learnt it meanwhile.
        """
        name = chat_completions.learnt(answer, body.keys())
        if not name:
            return False
        if name not in self.unsupported:
            self.unsupported = (*self.unsupported, name)
        return not set(LIMITS) <= set(self.unsupported)

    def newest_names(self) -> bool:
        """Return whether the server is one that calls the limit as OpenAI's newest models do."""
        return self.juror.host == VENDORS["openai"].own_host

    def model(self) -> str:
        """Return the model as a request names it."""
        return self.juror.model

    def _settings(self) -> dict[str, Any]:
        """Return the juror's settings as this API names them."""
        own = self.juror.host == VENDORS["openai"].own_host and "store" not in self.unsupported
        limit = chat_completions.limit_name(
            newest=self.newest_names(), unsupported=self.unsupported
        )
        return chat_completions.settings(self.juror, model=self.model(), limit=limit, store=not own)
