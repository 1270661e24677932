"""Jurors behind OpenAI's chat completions, or any server that speaks them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from hashlib import sha256
from typing import Any, ClassVar
from urllib.parse import urlsplit

import openai

from data.schema import now
from jury.api_protocols import (
    CHAT_PATH,
    LIMIT_NAMES,
    REFUSED,
    body_of,
    chat_body,
    chat_settings,
    limit_name,
    read_chat,
    refuses_so_many,
    unsupported_parameter,
)
from jury.call import Answer, Call, Token
from jury.cost import cache_writes_cost
from jury.panel import Juror
from jury.providers.http_client import (
    AZURE_OPENAI_SCOPE,
    Endpoint,
    Renewed,
    entra_token,
    google_token,
)
from jury.providers.registry import PROVIDERS, auth_of

CACHING = ("prompt_cache_key", "prompt_cache_options")
BREAKPOINT = "prompt_cache_breakpoint"
KEY_LENGTH = 32
TOP = "top_logprobs"
LENGTH = "maxLength"


class OpenAIChat(Endpoint):
    """A juror reached through the openai SDK."""

    sdk: ClassVar[Any] = openai
    path = CHAT_PATH

    def open(self, key: str, common: dict[str, Any]) -> Any:
        """Return the SDK's client."""
        return openai.AsyncOpenAI(api_key=key, base_url=self.juror.base_url, **common)

    def body(self, call: Call) -> dict[str, Any]:
        """Return the body of a request."""
        settings = self._settings(call)
        body = chat_body(call, settings, lengths=LENGTH not in self.unsupported)
        if "prompt_cache_options" in settings:
            mark = {BREAKPOINT: {"mode": "explicit"}}
            body["messages"] = [
                {"role": turn.role, "content": turn.marked(mark)} for turn in call.messages
            ]
        return body

    def sent(self, call: Call) -> dict[str, Any]:
        """Return the settings a request carries, without its texts."""
        where = {"base_url": self.juror.base_url, "schema": call.form}
        scores = {"scores": self.juror.scores} if call.probabilities else {}
        return where | scores | self._settings(call)

    def read(self, text: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer in a response body; servers that speak the protocol loosely are many."""
        answer = read_chat(text, headers)
        if not self.juror.expected or answer.transient:
            return answer
        choice = (body_of(text) or {})["choices"][0]
        return replace(answer, tokens=tokens_of(choice.get("logprobs")))

    def learns(self, answer: Answer, body: Mapping[str, Any]) -> bool:
        """Return whether a refused request can be sent with other parameters, and remember which.

        Only what does not change the answers is sent otherwise: the name of the limit, `store`,
        the length of explanations, what is about caching, and how many alternatives are told of each token. Another call may
        have learnt it meanwhile.
        """
        if body.get(TOP) == MOST and refuses_so_many(answer):
            self.without(TOP)
            return True
        if (
            answer.http in REFUSED
            and LENGTH in answer.text
            and LENGTH in f"{body.get('response_format')}"
        ):
            self.without(LENGTH)
            return True
        name = unsupported_parameter(answer)
        if name.endswith(BREAKPOINT):  # inside a message
            name = "prompt_cache_options"
        if name not in (*LIMIT_NAMES, "store", *CACHING) or name not in body:
            return False
        self.without(name)
        return not set(LIMIT_NAMES) <= set(self.unsupported)

    def newest_names(self) -> bool:
        """Return whether the limit of the answer's length has the name of OpenAI's newest models."""
        return self.juror.host == PROVIDERS["openai"].own_host

    def model(self) -> str:
        """Return the name of the model in a request."""
        return self.juror.model

    def _caching(self, call: Call) -> dict[str, Any]:
        """Return the parameters about caching the beginning that requests share, for OpenAI's own host.

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
        return cache_writes_cost(self.juror, now().date())

    def _settings(self, call: Call) -> dict[str, Any]:
        own = self.juror.host == PROVIDERS["openai"].own_host and "store" not in self.unsupported
        limit = limit_name(newest=self.newest_names(), unsupported=self.unsupported)
        settings = chat_settings(self.juror, model=self.model(), limit=limit, store=not own)
        settings |= self._caching(call)
        if call.probabilities:
            settings |= {"logprobs": True, TOP: FEW if TOP in self.unsupported else MOST}
        return settings


ROUNDED = 0.0005  # above 0, the logarithm of certainty, by rounding
LEAST = -700.0  # below it a probability is 0 to a computer
MOST, FEW = 20, 5  # alternatives that are asked for, and where a server grants no more


def tokens_of(logprobs: Any) -> tuple[Token, ...]:
    """Return the tokens of an answer with their alternatives, from `choices[].logprobs.content`.

    One entry that cannot be read makes all of them unusable: nothing says what stood there.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    tokens = [_token(entry) for entry in content] if isinstance(content, list) else []
    return tuple(token for token in tokens if token is not None) if None not in tokens else ()


def _token(entry: Any) -> Token | None:
    """Return one token with its alternatives, itself included even where the server left it out."""
    own = _option(entry)
    if own is None:
        return None
    others = entry.get("top_logprobs") or []
    options = [_option(other) for other in others] if isinstance(others, list) else [None]
    complete = tuple(option for option in options if option is not None)
    if len(complete) < len(options):
        return None
    return Token(own[0], complete if own[0] in dict(complete) else (own, *complete))


def _option(entry: Any) -> tuple[bytes, float] | None:
    """Return the bytes of a token and its probability, None if the entry lacks either."""
    if not isinstance(entry, dict):
        return None
    logprob, text = entry.get("logprob"), _bytes(entry)
    if text is None or isinstance(logprob, bool) or not isinstance(logprob, (int, float)):
        return None
    if not logprob <= ROUNDED:  # nor is NaN
        return None
    return text, math.exp(logprob) if logprob > LEAST else 0.0


def _bytes(entry: dict[str, Any]) -> bytes | None:
    """Return the bytes of a token: those of the entry, else those of its text."""
    values, text = entry.get("bytes"), entry.get("token")
    if isinstance(values, list):
        are_bytes = all(isinstance(value, int) and 0 <= value < 256 for value in values)
        return bytes(values) if are_bytes else None
    return text.encode("utf-8", "replace") if isinstance(text, str) else None


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
        """Return True: Azure uses the names of OpenAI's newest models."""
        return True

    def model(self) -> str:
        """Return the deployment, the owner's own name of a model at Azure."""
        return self.juror.deployment or self.juror.model

    def _of_deployment(self, key: str, common: dict[str, Any]) -> Any:
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
