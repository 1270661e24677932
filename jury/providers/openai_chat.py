"""Jurors behind OpenAI's chat completions, or any server that speaks them."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import openai

from data.schema import now
from jury import chat_completions
from jury.call import Answer, Call, Message
from jury.chat_completions import LIMITS
from jury.cost import cache_writes_cost
from jury.http_answers import body_of
from jury.providers import VENDORS
from jury.providers.http_client import Endpoint
from jury.providers.token_probabilities import FEW, MOST, tokens_of
from jury.refused_parameter import refuses_so_many, unsupported_parameter

CACHING = ("prompt_cache_key", "prompt_cache_options")
BREAKPOINT = "prompt_cache_breakpoint"
KEY_LENGTH = 32
TOP = "top_logprobs"


class OpenAIChat(Endpoint):
    """A juror reached through the openai SDK."""

    sdk: ClassVar[Any] = openai
    path = chat_completions.PATH

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        return openai.AsyncOpenAI(api_key=key, base_url=self.juror.base_url, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        settings = self._settings() | self._caching(call) | self._probabilities(call)
        body = chat_completions.body(call, settings)
        if "prompt_cache_options" in settings:
            body["messages"] = [
                {"role": turn.role, "content": _marked(turn)} for turn in call.messages
            ]
        return body

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        where = {"base_url": self.juror.base_url, "schema": call.form}
        wanted = {"scores": self.juror.scores} if call.probabilities else {}
        settings = self._settings() | self._caching(call) | self._probabilities(call)
        return where | wanted | settings

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body; servers that speak the protocol loosely are many."""
        answer = chat_completions.read(text, headers)
        if not self.juror.expected or answer.transient:
            return answer
        choice = (body_of(text) or {})["choices"][0]
        return replace(answer, tokens=tokens_of(choice.get("logprobs")))

    def learns(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Return whether the request is worth making again under another name, and remember it.

        Only what does not change the answers is sent otherwise: the name of the limit, `store`,
        what is about caching, and how many alternatives are told of each token. Another call may
        have learnt it meanwhile.
        """
        if body.get(TOP) == MOST and refuses_so_many(answer):
            self.without(TOP)
            return True
        name = unsupported_parameter(answer)
        if name.endswith(BREAKPOINT):  # inside a message
            name = "prompt_cache_options"
        if name not in (*LIMITS, "store", *CACHING) or name not in body:
            return False
        self.without(name)
        return not set(LIMITS) <= set(self.unsupported)

    def newest_names(self) -> bool:
        """Return whether the server is one that calls the limit as OpenAI's newest models do."""
        return self.juror.host == VENDORS["openai"].own_host

    def model(self) -> str:
        """Return the model as a request names it."""
        return self.juror.model

    def _caching(self, call: Call) -> dict[str, Any]:
        """Return what a server of OpenAI's own is told of the prefix that requests share.

        It caches by itself. The key keeps an instance's requests on one machine, as the first
        few hundred tokens, which it goes by otherwise, are those of the rubric. Newer models
        bill what they write to the cache, and choose the whole prompt: they are told to write
        what is marked and nothing else.
        """
        if not self.newest_names():
            return {}
        settings: dict[str, Any] = {}
        if prefix := call.prefix:
            digest = sha256(prefix.encode("utf-8", "replace")).hexdigest()
            settings["prompt_cache_key"] = digest[:KEY_LENGTH]
        if self._writes_cost:
            settings["prompt_cache_options"] = {"mode": "explicit"}
        return {name: value for name, value in settings.items() if name not in self.unsupported}

    @cached_property
    def _writes_cost(self) -> bool:
        return cache_writes_cost(self.juror, now())

    def _probabilities(self, call: Call) -> dict[str, Any]:
        """Return what asks for the probabilities of tokens, where the call wants them."""
        if not call.probabilities:
            return {}
        return {"logprobs": True, TOP: FEW if TOP in self.unsupported else MOST}

    def _settings(self) -> dict[str, Any]:
        """Return the juror's settings as this API names them."""
        own = self.juror.host == VENDORS["openai"].own_host and "store" not in self.unsupported
        limit = chat_completions.limit_name(
            newest=self.newest_names(), unsupported=self.unsupported
        )
        return chat_completions.settings(self.juror, model=self.model(), limit=limit, store=not own)


def _marked(turn: Message) -> str | list[dict[str, Any]]:
    """Return a turn with the end of its shared beginning marked, if it has one."""
    first, *rest = turn.pieces
    if not rest:
        return turn.text
    mark = {BREAKPOINT: {"mode": "explicit"}}
    return [{"type": "text", "text": first} | mark, {"type": "text", "text": rest[0]}]
