"""What some thirty real hosts send back: each a script of the stub, and what has to come of it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from data.schema import Status
from kit.jurors import Do, Seen, verdict

THOUGHT = "The note omits the allergy, so completeness is perhaps 3, maybe 2."


@dataclass(frozen=True)
class Host:
    """One way to answer, the status that it comes to, and words of the reason."""

    answer: Callable[[Seen], Do]
    status: Status = Status.OK
    reason: str = ""
    calls: int = 1


def said(content: Any, finish: str = "stop", **message: Any) -> Callable[[Seen], Do]:
    """Return a chat completion whose message has this content; "VERDICT" is the verdict."""

    def answer(seen: Seen) -> Do:
        choice = {"message": {"role": "assistant", "content": content} | message}
        choice |= {"index": 0, "finish_reason": finish}
        body = {"model": seen.model, "choices": [choice], "usage": usage()}
        text = json.dumps(body)
        return Do(body=text.replace("VERDICT", json.dumps(verdict(seen))[1:-1]))

    return answer


def usage(read: int = 12_800, written: int = 100) -> Mapping[str, int]:
    """Return the tokens of an answer as OpenAI's chat completions have them."""
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def error(status: int, body: Any) -> Callable[[Seen], Do]:
    """Return an error with this body."""
    return lambda _: Do(status=status, body=json.dumps(body))


def text(kind: str, words: str) -> dict[str, Any]:
    """Return a part of a content that is a list."""
    return {"type": kind, "text": words}


def _split(seen: Seen) -> Do:
    """Return a verdict in two parts, with a thought between them."""
    whole = verdict(seen)
    parts = [text("text", whole[:20]), {"type": "thinking", "thinking": []}]
    return said([*parts, text("text", whole[20:])])(seen)


def _completion(seen: Seen) -> Do:
    choice = {"index": 0, "text": verdict(seen), "finish_reason": "stop"}
    return Do(body=json.dumps({"object": "text_completion", "choices": [choice]}))


def _nothing(seen: Seen) -> Do:
    choice = {"index": 0, "message": {"content": ""}, "finish_reason": "stop"}
    return Do(body=json.dumps({"choices": [choice], "usage": usage(4096, 0)}))


def _too_long(status: int, body: str) -> Host:
    answer = Do(status=status, body=body)
    return Host(lambda _: answer, Status.TOO_LONG, "longer than the model takes")


HOSTS = {
    "openai": Host(lambda _: Do(tokens=(12_800, 60))),
    "openai-refusal": Host(said(None, refusal="I cannot."), Status.REFUSED),
    "openai-filter": Host(said("", "content_filter"), Status.CONTENT_FILTER),
    "magistral": Host(
        said([{"type": "thinking", "thinking": [text("text", THOUGHT)]}, text("text", "VERDICT")])
    ),
    "databricks": Host(
        said(
            [
                {"type": "reasoning", "summary": [text("summary_text", THOUGHT)]},
                text("text", "VERDICT"),
            ]
        )
    ),
    "one-part": Host(said([text("text", "VERDICT")])),
    "output-text": Host(said([text("output_text", "VERDICT")])),
    "split-parts": Host(_split),
    "deepseek": Host(said("VERDICT", reasoning_content=THOUGHT)),
    "qwen-think": Host(said(f"<think>{THOUGHT}</think>\nVERDICT")),
    "qwen-no-opening": Host(said(f"{THOUGHT}\n</think>\n\nVERDICT")),
    "cohere": Host(
        said(
            f"<|START_THINKING|>{THOUGHT}<|END_THINKING|><|START_RESPONSE|>VERDICT<|END_RESPONSE|>"
        )
    ),
    "gemma": Host(said(f"<|channel>thought\n{THOUGHT}\n<channel|>VERDICT")),
    "granite": Host(said(f"Here is my thought process:\n{THOUGHT}\nHere is my response:\nVERDICT")),
    "vllm-cut-reasoning": Host(said(None, "length", reasoning_content=THOUGHT), Status.TRUNCATED),
    "text-completion": Host(_completion, Status.REQUEST_FAILED, "not an answer", 6),
    "lmstudio": _too_long(200, '{"error": "Context size has been exceeded."}'),
    "lmstudio-400": _too_long(
        400,
        '{"error": "The number of tokens to keep from the initial prompt is greater than the '
        'context length."}',
    ),
    "lmstudio-keep": _too_long(
        400,
        '{"error": "Trying to keep the first 5000 tokens when context the overflows. However"}',
    ),
    "lmstudio-empty": Host(_nothing, Status.TRUNCATED, "context window"),
    "ollama": _too_long(
        500, '{"error": {"message": "input exceeds context length", "type": "api_error"}}'
    ),
    "ollama-400": _too_long(
        400, '{"error": {"message": "input length exceeds the context length"}}'
    ),
    "tgi": _too_long(
        422,
        '{"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. '
        'Given: 5100 `inputs` tokens and 1500 `max_new_tokens`", "error_type": "validation"}',
    ),
    "sglang": _too_long(
        400,
        '{"object": "error", "message": "The input (5200 tokens) is longer than the model\'s context '
        'length (4096 tokens).", "type": "BadRequestError", "code": 400}',
    ),
    "llamacpp": _too_long(
        400,
        '{"error": {"code": 400, "message": "the request exceeds the available context size '
        '(4096 tokens)", "type": "exceed_context_size_error"}}',
    ),
    "llamacpp-old": _too_long(
        500,
        '{"error": {"code": 500, "message": "the request exceeds the available context size. try '
        'increasing it", "type": "server_error"}}',
    ),
    "vllm": _too_long(
        400,
        '{"object": "error", "message": "This model\'s maximum context length is 4096 tokens. '
        'However, you requested", "type": "BadRequestError"}',
    ),
    "ollama-cut": Host(lambda _: Do(tokens=(2048, 60)), Status.CUT, "has read a part of the text"),
    "openrouter-middle-out": Host(
        lambda seen: Do(tokens=(6000, 60), seconds=1.0),
        Status.CUT,
        "another juror's host read 12800",
    ),
    "portal": Host(
        lambda _: Do(body="<html><title>Hospital Wi-Fi</title></html>"),
        Status.REQUEST_FAILED,
        "not an answer",
        6,
    ),
    "overloaded": Host(
        error(529, {"type": "error", "error": {"type": "overloaded_error"}}),
        Status.REQUEST_FAILED,
        "HTTP 529 overloaded_error",
        6,
    ),
    "litellm-wrong-key": Host(
        error(400, {"error": {"message": "No connected db.", "type": "no_db_connection"}}),
        Status.REQUEST_FAILED,
        "HTTP 400 no_db_connection",
    ),
    "gone": Host(
        error(404, {"error": {"message": "model not found", "code": "model_not_found"}}),
        Status.REQUEST_FAILED,
        "model_not_found",
    ),
}
