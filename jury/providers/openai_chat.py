"""Jurors behind OpenAI's chat completions, or any server that speaks them."""

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar

import openai

from data.schema import Status, now
from jury.call import Answer, Call, Message, Usage
from jury.cost import cache_writes_cost
from jury.providers import VENDORS
from jury.providers.http_client import Endpoint, body_of, count, text_of, unreadable
from jury.providers.token_probabilities import FEW, MOST, tokens_of
from jury.refused_parameter import refuses_so_many, unsupported_parameter

LIMITS = ("max_completion_tokens", "max_tokens")  # what servers call the longest answer
CACHING = ("prompt_cache_key", "prompt_cache_options")
BREAKPOINT = "prompt_cache_breakpoint"
KEY_LENGTH = 32
TOP = "top_logprobs"
FINISH = {"length": Status.TRUNCATED, "content_filter": Status.CONTENT_FILTER}


class OpenAIChat(Endpoint):
    """A juror reached through the openai SDK."""

    sdk: ClassVar[Any] = openai
    path = "/chat/completions"

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        return openai.AsyncOpenAI(api_key=key, base_url=self.juror.base_url, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return a request as it travels."""
        marked = "prompt_cache_options" in self._caching(call)
        turns = [
            {"role": turn.role, "content": _marked(turn) if marked else turn.text}
            for turn in call.messages
        ]
        settings = self._settings() | self._caching(call) | self._probabilities(call)
        return {"messages": turns} | settings | _format(call)

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        where = {"base_url": self.juror.base_url, "schema": call.form}
        wanted = {"scores": self.juror.scores} if call.probabilities else {}
        settings = self._settings() | self._caching(call) | self._probabilities(call)
        return where | wanted | settings

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
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
            tokens=tokens_of(choice.get("logprobs")) if self.juror.expected else (),
        )

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

    def _limit(self) -> str:
        """Return what the longest answer is called here."""
        usual = LIMITS if self.newest_names() else LIMITS[::-1]
        return next((name for name in usual if name not in self.unsupported), usual[0])

    def _probabilities(self, call: Call) -> dict[str, Any]:
        """Return what asks for the probabilities of tokens, where the call wants them."""
        if not call.probabilities:
            return {}
        return {"logprobs": True, TOP: FEW if TOP in self.unsupported else MOST}

    def _settings(self) -> dict[str, Any]:
        """Return the juror's settings as this API names them."""
        juror = self.juror
        own = juror.host == VENDORS["openai"].own_host and "store" not in self.unsupported
        settings: dict[str, Any] = {
            "model": self.model(),
            self._limit(): juror.max_tokens,
            "temperature": juror.temperature,
            "reasoning_effort": juror.effort,
            "store": False if own else None,
        }
        return {name: value for name, value in settings.items() if value is not None}


def _marked(turn: Message) -> str | list[dict[str, Any]]:
    """Return a turn with the end of its shared beginning marked, if it has one."""
    first, *rest = turn.pieces
    if not rest:
        return turn.text
    mark = {BREAKPOINT: {"mode": "explicit"}}
    return [{"type": "text", "text": first} | mark, {"type": "text", "text": rest[0]}]


def _format(call: Call) -> dict[str, Any]:
    """Return the part of the request that asks for the form of the answer."""
    wanted: dict[str, Any] = {"type": call.form}
    if call.form == "json_schema":
        wanted["json_schema"] = {"name": "verdict", "strict": True, "schema": dict(call.schema)}
    return {} if call.form == "text" else {"response_format": wanted}


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
