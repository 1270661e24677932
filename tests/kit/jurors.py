"""A server on the loopback that speaks OpenAI chat and Anthropic messages, and misbehaves on cue.

Besides, one juror at an address with its answers, and answers with log-probabilities.
"""

import asyncio
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jury.call import Answer, Call, Turn
from jury.panel import Juror
from jury.parse import member_spans
from jury.providers.registry import open_provider
from kit.loopback import AsyncLoopback

USAGE_IN, USAGE_OUT = 1000, 100

CLAUDE = ("/messages", "/invoke", ":rawPredict")


@dataclass(frozen=True)
class Seen:
    """A request as it came in: its number from 0, its path, headers, and body."""

    number: int
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """First text of the conversation."""
        content = self.body["messages"][0]["content"]
        return content if isinstance(content, str) else "".join(one["text"] for one in content)

    @property
    def model(self) -> str:
        """Model asked for."""
        return str(self.body.get("model", "m"))

    @property
    def form(self) -> str:
        """Form of answer asked for."""
        if "output_config" in self.body:
            return "json_schema"
        return str(self.body.get("response_format", {}).get("type", "text"))


@dataclass(frozen=True)
class Do:
    """What to do with a request; `text` None gives a whole verdict, `drop` closes the line."""

    text: str | None = None
    status: int = 200
    finish: str = "ok"
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    seconds: float = 0.0
    drop: bool = False
    usage: bool = True
    tokens: tuple[int, int] = (USAGE_IN, USAGE_OUT)
    refusal: str = ""
    code: str = ""
    logprobs: Any = None


def verdict(seen: Seen, score: Any = 3) -> str:
    """Return a whole verdict in the form the prompt shows."""
    names = re.findall(r'^  "([\w.-]+)": \{"explanation"', seen.prompt, re.MULTILINE) or ["test"]
    return json.dumps({name: {"explanation": "because", "score": score} for name in names})


Script = Callable[[Seen], Do] | list[Do]


class Stub(AsyncLoopback):
    """The server; `seen` holds all requests, `raw` their bytes, `peak` the most open at a time.

    `props` is what it answers as llama.cpp does to who asks for its slots, a text as it stands; each
    such request is in `asked_props`.
    """

    def __init__(self, script: Script | None = None, props: Any = None) -> None:
        super().__init__()
        self.props: Any = {"total_slots": 8} if props is None else props
        self.asked_props: list[str] = []
        self.script: Script = script if script is not None else (lambda _: Do())
        self.seen: list[Seen] = []
        self.raw: list[bytes] = []
        self.peak = 0
        self._open = 0

    @property
    def openai_url(self) -> str:
        """Base URL for the openai SDK."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def anthropic_url(self) -> str:
        """Base URL for the anthropic SDK."""
        return f"http://127.0.0.1:{self.port}"

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests until the client or the script closes the connection."""
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        start = await reader.readuntil(b"\r\n\r\n")
        head = start.decode()
        first, *lines = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
        if first.startswith("GET "):
            self.asked_props.append(start.decode())
            text = self.props if isinstance(self.props, str) else json.dumps(self.props)
            writer.write(_response(Do(), text))
            await writer.drain()
            return True
        content = await reader.readexactly(int(headers.get("content-length", 0)))
        self.raw.append(start + content)
        body = json.loads(content)
        seen = Seen(len(self.seen), first.split()[1], headers, body)
        self.seen.append(seen)
        do = self.script(seen) if callable(self.script) else self.script.pop(0)
        self._open += 1
        self.peak = max(self.peak, self._open)
        await asyncio.sleep(do.seconds)
        self._open -= 1
        if do.drop:
            return False
        writer.write(_response(do, do.body if do.body is not None else _body(seen, do)))
        await writer.drain()
        return True


def _response(do: Do, body: str) -> bytes:
    """Return the bytes of a whole HTTP response."""
    kind = "text/html" if do.body is not None else "application/json"
    headers = {"content-type": kind, "x-request-id": "req-1", "request-id": "req-1"} | do.headers
    data = body.encode()
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([f"HTTP/1.1 {do.status} X", f"content-length: {len(data)}", *lines, "", ""])
    return head.encode() + data


def _body(seen: Seen, do: Do) -> str:
    """Return an answer or an error in the protocol that was spoken."""
    if do.status != 200:
        error = {"message": "echo: " + seen.prompt, "type": do.code or "some_error", "code": None}
        return json.dumps({"type": "error", "error": error})
    text = verdict(seen) if do.text is None else do.text
    speak = anthropic_body if seen.path.endswith(CLAUDE) else openai_body
    return json.dumps(speak(seen, do, text))


def openai_body(seen: Seen, do: Do, text: str) -> dict[str, Any]:
    """Return an answer as OpenAI's chat completions have it."""
    finish = {"ok": "stop", "truncated": "length", "filtered": "content_filter"}[do.finish]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if do.refusal:
        message |= {"content": None, "refusal": do.refusal}
    read, written = do.tokens
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    details = {"prompt_tokens_details": {"cached_tokens": 10}}
    details |= {"completion_tokens_details": {"reasoning_tokens": 7}}
    choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": do.logprobs}
    body = {"id": "chat-1", "object": "chat.completion", "created": 1, "choices": [choice]}
    body |= {"model": f"{seen.model}-returned"}
    return body | ({"usage": usage | details} if do.usage else {})


def anthropic_body(seen: Seen, do: Do, text: str) -> dict[str, Any]:
    """Return an answer as Anthropic's messages have it."""
    stop = "refusal" if do.refusal else {"ok": "end_turn", "truncated": "max_tokens"}[do.finish]
    usage = {"input_tokens": do.tokens[0] - 10, "output_tokens": do.tokens[1]}
    usage |= {"cache_read_input_tokens": 10, "cache_creation_input_tokens": 0}
    body = {"id": "msg-1", "type": "message", "role": "assistant", "stop_sequence": None}
    body |= {"model": f"{seen.model}-returned", "stop_reason": stop}
    body |= {"content": [{"type": "text", "text": do.refusal or text}]}
    body |= {"stop_details": {"type": "refusal", "category": "bio"} if do.refusal else None}
    return body | ({"usage": usage} if do.usage else {})


CALL = Call((Turn("user", "A case."),), {"type": "object", "properties": {}})


def juror(provider: str, url: str, **settings: Any) -> Juror:
    body = {"name": "j", "provider": provider, "model": "m", "family": "f", "base_url": url}
    return Juror.model_validate(body | settings)


def answers(
    juror_asked: Juror,
    number: int = 1,
    key: str = "the-key",
    *,
    call: Call = CALL,
    seconds: float = 5.0,
) -> list[Answer]:
    """Return the answers to one call made a number of times, one after another, on one line."""

    async def ask() -> list[Answer]:
        line = open_provider(juror_asked, key, seconds)
        try:
            return [await line.complete(call) for _ in range(number)]
        finally:
            await line.close()

    return asyncio.run(ask())


def slots_of(juror_asked: Juror) -> int:
    """Return how many requests at a time a juror's server says that it takes."""

    async def ask() -> int:
        line = open_provider(juror_asked, "none")
        try:
            return await line.slots()
        finally:
            await line.close()

    return asyncio.run(ask())


SHARES = {"4": 0.6, "5": 0.3, "3": 0.1}


def criteria_of(seen: Seen) -> dict[str, Any]:
    """Return the criteria of a request's schema, each with what a verdict on it has."""
    form = seen.body["response_format"]["json_schema"]["schema"]
    return {name: list(shape["properties"]) for name, shape in form["properties"].items()}


def verdict_of(seen: Seen, score: int = 4) -> str:
    """Return a whole verdict in the order that the schema asks for."""
    words = "38,5 \N{DEGREE SIGN}C \N{STETHOSCOPE}; 2 of 5"
    said: dict[str, Any] = {"explanation": words, "score": score}
    asked = criteria_of(seen).items()
    return json.dumps({name: {key: said[key] for key in keys} for name, keys in asked})


def served(
    seen: Seen, text: str | None = None, shares: Mapping[str, float] | None = None, score: int = 4
) -> Do:
    """Return an answer whose scores have these probabilities, and all else is certain."""
    said = verdict_of(seen, score) if text is None else text
    entries, at = [], 0
    for _, place in member_spans(said, said.index("{")):
        own = dict(member_spans(said, place.start))["score"]
        entries += _certain(said[at : own.start])
        entries.append(entry(said[own.start : own.end], shares or SHARES))
        at = own.end
    return Do(said, logprobs={"content": [*entries, *_certain(said[at:])], "refusal": None})


def entry(text: str, shares: Mapping[str, float]) -> dict[str, Any]:
    """Return a token as a server tells it, the likeliest alternatives first."""
    others = sorted(shares.items(), key=lambda other: -other[1])
    own = _one(text, shares.get(text, 0.0))
    return own | {"top_logprobs": [_one(*other) for other in others]}


def _certain(text: str) -> Sequence[dict[str, Any]]:
    """Return a text as tokens of five bytes, some of which are no whole characters."""
    whole = text.encode()
    cuts = [whole[at : at + 5] for at in range(0, len(whole), 5)]
    return [_bytes(cut, 1.0) | {"top_logprobs": [_bytes(cut, 1.0)]} for cut in cuts]


def _one(text: str, share: float) -> dict[str, Any]:
    return _bytes(text.encode(), share)


def _bytes(text: bytes, share: float) -> dict[str, Any]:
    logprob = math.log(share) if share else -9999.0
    return {"token": text.decode("utf-8", "replace"), "bytes": list(text), "logprob": logprob}
