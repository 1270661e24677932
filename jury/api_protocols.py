"""The protocols that jurors speak: OpenAI's chat completions and Anthropic's Messages API.

How requests are written, and how replies and failures are read. Many servers speak the first, some
of them loosely.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from data.calls import Status
from data.question import with_lengths
from jury.call import TOO_LONG, Answer, Call, Usage

if TYPE_CHECKING:
    from jury.panel import Juror

AUTH = (401, 403)
GATEWAY_TIMEOUTS = (408, 504, 524)  # LiteLLM has 408 for it, Cloudflare 524
QUOTA_CODES = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")
FILTER_CODES = ("content_filter", "content_policy_violation")
IN_LITELLM = "ContextWindowExceededError"  # which says it in its message alone
OVERFLOWS = (
    *("context_length_exceeded", "exceed_context_size_error", "request_too_large"),
    IN_LITELLM,
)
TOO_LARGE = (200, 400, 413, 422, 500)  # LM Studio says it with 200, Ollama with 500
# As Anthropic, Amazon, OpenAI, vLLM, Google, LM Studio, Ollama, TGI, SGLang and llama.cpp begin it.
SAYS_TOO_LONG = re.compile(
    r"prompt is too long|input length and `max_tokens` exceed|input is too long for requested model"
    r"|(?:[`'\"]?max_(?:completion_)?tokens\b.{0,60} is too large: \d+\. )?this model's maximum context length"
    r"|the (?:decoder )?prompt \([\w ]{0,40}\) is (?:too long|longer than the maximum model length)"
    r"|the input token count"
    r"|context size has been exceeded|trying to keep the first \d+ tokens when context"
    r"|the number of tokens to keep from the initial prompt is greater than the context length"
    r"|input (?:length )?exceeds (?:the )?context length"
    r"|input validation error: `inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)"
    r"|the input \(\d+ tokens\) is longer than the model's context length"
    r"|requested token count exceeds the model's maximum context length"
    r"|the request exceeds the available context size",
    re.IGNORECASE,
)
NO_CREDIT = "credit balance is too low"
BARE = re.compile(r"(?!\d+$)\w{1,59}")  # a word, and not just a number such as the HTTP status
MOST_TOKENS = 10_000_000  # of one call; no model reads or writes as many
LONGEST_WHOLE = 300  # digits of a number that a float still holds
LONGEST_WAIT = 366 * 86_400.0  # seconds; an endpoint that asks for more says nothing
LONGEST_BODY = 4_000
REFUSED = (400, 422)
FORBIDDEN = (*REFUSED, 403)  # some models are not "allowed" to tell probabilities
SETTINGS = {
    "temperature": ("temperature",),
    "effort": ("reasoning_effort", "effort"),
    "scores": ("scores", "logprobs", "top_logprobs"),
}
UNSUPPORTED = ("unsupported_parameter", "unsupported_value", "unknown_parameter")
SAYS_SO = re.compile(
    r"(?:unsupported parameter|unsupported value|unknown parameter|unrecognized parameter"
    r"|unrecognized request arguments? supplied|unknown name|this model does not support(?: the)?)"
    r":? ?[`'\"]?(\w+)",
    re.IGNORECASE,
)
NO_CACHING = re.compile(
    r"messages\.\d+\.content\.\d+\.(?:text\.)?cache_control\b"
    r"|You invoked an unsupported model or your request did not allow prompt caching"
)
PROBABILITIES = re.compile(r"log_?prob", re.IGNORECASE)
SO_MANY = re.compile(r"top_logprobs|logprobs of \d+", re.IGNORECASE)
BEGINS_WITH = re.compile(r"[`'\"]?(?:output_config\.)?(\w+)")


def http_failure(status: int, headers: Mapping[str, str], body: str) -> Answer:
    """Return the answer for an HTTP error; its reason holds only the error's own code."""
    code = _code(body)
    is_too_long = _says_too_long(status, code, body)
    more = f": {TOO_LONG}" if is_too_long else ""
    passes = code not in QUOTA_CODES and (status in (408, 409, 425, 429) or status >= 500)
    return Answer(
        Status.TOO_LONG if is_too_long else _status(status, code, body),
        f"HTTP {status} {code}".strip() + more,
        text=body[:LONGEST_BODY],
        http=status,
        transient=passes and not is_too_long,
        retry_after=_seconds(headers),
    )


def unreadable(body: str) -> Answer:
    """Return the answer for a success whose body cannot be read; it may be an error by its words."""
    failure = http_failure(200, {}, body)
    if failure.status == Status.TOO_LONG:
        return failure
    return Answer(
        Status.REQUEST_FAILED,
        "HTTP 200 with a body that is not an answer",
        text=body[:LONGEST_BODY],
        http=200,
        transient=True,
    )


def body_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object a response body is, or None; whole numbers that are too long are floats."""
    try:  # Python reads no whole number of thousands of digits, and would lose the answer
        value = json.loads(
            text, parse_int=lambda digits: (int if len(digits) < LONGEST_WHOLE else float)(digits)
        )
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class _NoCount(ValueError):
    """An endpoint reports as a number of tokens what can be none."""


def count(source: Any, name: str) -> int | None:
    """Return a number of tokens from a usage object, None where it has none.

    To be called from what `believed` is given: it raises for a number that cannot be true.
    """
    value = source.get(name) if isinstance(source, dict) else None
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST_TOKENS:
        raise _NoCount
    return value


def believed(read: Callable[[Any], Usage], source: Any, text: str) -> Usage:
    """Return the usage that is read from what an endpoint reports, empty where that cannot be true.

    Then the cost of the call is unknown and counts at its most: a report may make a call dearer
    than it was expected to be, never cheaper than nothing. Not believed is a number that is
    negative, absurd or none, no tokens for a prompt or for a `text`, and a part that is larger than
    its whole.
    """
    try:
        usage = read(source)
    except _NoCount:
        return Usage()
    parts = (usage.tokens_cached or 0) + (usage.tokens_cache_write or 0)
    is_true = (usage.tokens_in is None or usage.tokens_in >= max(parts, 1)) and (
        usage.tokens_out is None or usage.tokens_out >= (usage.tokens_reasoning or bool(text))
    )
    return usage if is_true else Usage()


def text_of(value: Any) -> str:
    """Return a value that should be text, empty if it is not."""
    return value if isinstance(value, str) else ""


def _status(status: int, code: str, body: str) -> Status:
    if status == 402 or code in QUOTA_CODES or NO_CREDIT in body:
        return Status.QUOTA
    if code in FILTER_CODES:
        return Status.CONTENT_FILTER
    if status in AUTH:
        return Status.AUTH
    if status == 429:
        return Status.RATE_LIMITED
    return Status.TIMEOUT if status in GATEWAY_TIMEOUTS else Status.REQUEST_FAILED


def _code(body: str) -> str:
    """Return the error's code or type: one word, so that no text that was sent can be in it."""
    error = _errors(body)[0]
    names = [text_of(error.get(name)) for name in ("code", "type", "status")]
    words = [IN_LITELLM, *names] if IN_LITELLM in text_of(error.get("message")) else names
    return next(filter(BARE.fullmatch, words), "")


def _says_too_long(status: int, code: str, body: str) -> bool:
    """Return whether an error says so by its code, or begins with words that no patient's text has."""
    error = _errors(body)[0]
    message = text_of(error.get("message")) or text_of(error.get("text"))
    return code in OVERFLOWS or (status in TOO_LARGE and SAYS_TOO_LONG.match(message) is not None)


def _errors(body: str) -> list[Mapping[str, Any]]:
    """Return the errors in a body, at least an empty one.

    FastAPI lists several, Amazon's is the body itself, Google's stands in a list, TGI's is a bare
    text, which may be anything: it says nothing of a setting.
    """
    content = body_of(body.strip().removeprefix("[").removesuffix("]")) or {}
    error, detail = content.get("error", content), content.get("detail")
    first = error if isinstance(error, dict) else {"text": error}
    others = detail if isinstance(detail, list) else []
    return [first, *(one for one in others if isinstance(one, dict))]


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the endpoint asks to wait, from milliseconds, seconds or a date.

    None where it names no time that anybody could wait.
    """
    retry_after = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            seconds = float(milliseconds) / 1000
        else:
            seconds = float(retry_after)
    except ValueError:
        try:
            left = parsedate_to_datetime(retry_after) - datetime.now(UTC)
        except (ValueError, TypeError, OverflowError):
            return None
        seconds = max(0.0, left.total_seconds())
    return seconds if 0 <= seconds <= LONGEST_WAIT else None


def unsupported_parameter(answer: Answer) -> str:
    """Return the name of the parameter that a server does not know, empty if it names none.

    An error may quote text of a patient, so a name counts only in a field of its own or at the
    beginning of the message.
    """
    for error in _refusals(answer):
        if error.get("code") in UNSUPPORTED and isinstance(error.get("param"), str):
            return str(error["param"])
        if error.get("type") == "extra_forbidden" and isinstance(error.get("loc"), list):
            return str(error["loc"][-1]) if error["loc"] else ""
        if match := SAYS_SO.match(text_of(error.get("message"))):
            return match[1]
    return ""


def refuses_caching(answer: Answer) -> bool:
    """Return whether an error says that a prefix cannot be marked for caching here."""
    if unsupported_parameter(answer).endswith("cache_control"):
        return True
    return any(NO_CACHING.match(text_of(error.get("message"))) for error in _refusals(answer))


def refused_setting(answer: Answer) -> str:
    """Return which setting of the panel an error is about, empty if none that was sent."""
    for setting, names in SETTINGS.items():
        if not value_sent(answer, setting):
            continue
        errors = _refusals(answer)
        begins = [BEGINS_WITH.match(text_of(error.get("message"))) for error in errors]
        named = [unsupported_parameter(answer), *(error.get("param") for error in errors)]
        if any(name in names for name in (*named, *(match[1] for match in begins if match))):
            return setting
    if value_sent(answer, "scores") and _message_matches(answer, PROBABILITIES):
        return "scores"
    return ""


def refuses_so_many(answer: Answer) -> bool:
    """Return whether an error is about the number of alternatives asked for at each token."""
    by_name = any(error.get("param") == "top_logprobs" for error in _refusals(answer))
    return by_name or _message_matches(answer, SO_MANY)


def _message_matches(answer: Answer, words: re.Pattern[str]) -> bool:
    refusals = _refusals(answer, FORBIDDEN)
    return any(words.search(text_of(error.get("message"))) for error in refusals)


def value_sent(answer: Answer, setting: str) -> str:
    """Return the value of a setting as a panel writes it, empty if it was not sent."""
    values = (answer.sent.get(name) for name in SETTINGS[setting])
    value = next((value for value in values if value is not None), None)
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, (int, float)) else f'"{value}"'


def _refusals(answer: Answer, statuses: Sequence[int] = REFUSED) -> list[Mapping[str, Any]]:
    return _errors(answer.text) if answer.http in statuses else []


CHAT_PATH = "/chat/completions"
LIMIT_NAMES = ("max_completion_tokens", "max_tokens")  # what servers call the longest answer
TEXT_PARTS = ("text", "output_text")
NOTHING_WRITTEN = "not one token was written: the prompt may fill the host's context window"
# Kept as they came: why is said in other places at each host.
WHOLE_REPLY = (Status.REFUSED, Status.CONTENT_FILTER)
CHAT_STATUS = {"length": Status.TRUNCATED, "content_filter": Status.CONTENT_FILTER}


def limit_name(*, newest: bool, unsupported: Collection[str] = ()) -> str:
    """Return the parameter that limits the answer's length; with `newest`, that of OpenAI's newest models."""
    usual = LIMIT_NAMES if newest else LIMIT_NAMES[::-1]
    return next((name for name in usual if name not in unsupported), usual[0])


def chat_settings(juror: "Juror", *, model: str, limit: str, store: bool) -> dict[str, Any]:
    """Return a juror's settings as this API names them; without `store` texts are not to be stored."""
    settings_sent: dict[str, Any] = {
        "model": model,
        limit: juror.max_tokens,
        "temperature": juror.temperature,
        "reasoning_effort": juror.effort,
        "store": None if store else False,
    }
    return {name: value for name, value in settings_sent.items() if value is not None}


def chat_body(call: Call, settings: Mapping[str, Any], *, lengths: bool = True) -> dict[str, Any]:
    """Return the body of a request with settings that `chat_settings` has named.

    `lengths`: whether explanations are bounded in the schema; OpenAI's own dialect knows no lengths.
    """
    turns = [{"role": turn.role, "content": turn.text} for turn in call.messages]
    body: dict[str, Any] = {"messages": turns} | dict(settings)
    if call.form == "text":
        return body
    bounded = lengths and LIMIT_NAMES[0] not in settings
    schema = with_lengths(call.schema) if bounded else dict(call.schema)
    named = {"name": "verdict", "strict": True, "schema": schema}
    more = {"json_schema": named} if call.form == "json_schema" else {}
    return body | {"response_format": {"type": call.form, **more}}


def read_chat(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body; servers that speak the protocol loosely are many."""
    content = body_of(text) or {}
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return unreadable(text)
    finish = text_of(choice.get("finish_reason"))
    refusal = text_of(message.get("refusal"))
    status = Status.REFUSED if refusal else CHAT_STATUS.get(finish, Status.OK)
    words = _words(message.get("content"))
    usage = believed(_chat_usage, content.get("usage"), words)
    reason = "" if status == Status.OK else f"finish_reason {finish}"
    if status == Status.OK and not words and usage.tokens_out == 0:
        status, reason = Status.TRUNCATED, NOTHING_WRITTEN
    return Answer(
        status,
        reason,
        text=text[:LONGEST_BODY] if status in WHOLE_REPLY else words,
        usage=usage,
        http=200,
        request_id=headers.get("x-request-id") or text_of(content.get("id")),
        returned_model=text_of(content.get("model")),
    )


def _words(content: Any) -> str:
    if not isinstance(content, list):
        return text_of(content)
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in TEXT_PARTS]
    return "".join(text_of(part.get("text")) for part in parts)


def _chat_usage(usage: Any) -> Usage:
    """Return the token counts; cached tokens are included in the prompt's.

    Gemini and some gateways leave reasoning out of the completion's tokens and have it in the total.
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    spent = usage.get("completion_tokens_details") if isinstance(usage, dict) else None
    read, written = count(usage, "prompt_tokens"), count(usage, "completion_tokens")
    if read is not None and written is not None:
        written = max(written, (count(usage, "total_tokens") or 0) - read)
    return Usage(
        tokens_in=read,
        tokens_out=written,
        tokens_cached=count(details, "cached_tokens"),
        tokens_cache_write=count(details, "cache_write_tokens"),
        tokens_reasoning=count(spent, "reasoning_tokens"),
    )


MESSAGES_PATH = "/v1/messages"
MESSAGES_STATUS = {
    "max_tokens": Status.TRUNCATED,
    "model_context_window_exceeded": Status.TRUNCATED,
    "refusal": Status.REFUSED,
}


def messages_body(juror: "Juror", call: Call) -> dict[str, Any]:
    """Return the body of a request; json_object, which this API lacks, is asked for in the prompt."""
    output: dict[str, Any] = {}
    if call.form == "json_schema":
        output["format"] = {"type": "json_schema", "schema": dict(call.schema)}
    if juror.effort is not None:
        output["effort"] = juror.effort
    extra = {"output_config": output or None, "temperature": juror.temperature}
    return {
        "model": juror.model,
        "max_tokens": juror.max_tokens,
        "messages": [{"role": turn.role, "content": turn.text} for turn in call.messages],
    } | {name: value for name, value in extra.items() if value is not None}


def read_message(text: str, headers: Mapping[str, str]) -> Answer:
    """Return the answer in a response body."""
    reply = body_of(text) or {}
    content = reply.get("content")
    if not isinstance(content, list):
        return unreadable(text)
    finish, details = text_of(reply.get("stop_reason")), reply.get("stop_details")
    category = text_of(details.get("category")) if isinstance(details, dict) else ""  # such as bio
    status = MESSAGES_STATUS.get(finish, Status.OK)
    blocks = [block for block in content if isinstance(block, dict) and block.get("type") == "text"]
    words = "".join(text_of(block.get("text")) for block in blocks)
    return Answer(
        status,
        "" if status == Status.OK else f"stop_reason {finish} {category}".strip(),
        text=text[:LONGEST_BODY] if status in WHOLE_REPLY else words,
        usage=believed(_messages_usage, reply.get("usage"), words),
        http=200,
        request_id=headers.get("request-id") or text_of(reply.get("id")),
        returned_model=text_of(reply.get("model")),
    )


def _messages_usage(usage: Any) -> Usage:
    """Return the token counts; cached tokens are reported apart from the others and are added."""
    fresh = count(usage, "input_tokens")
    cached = count(usage, "cache_read_input_tokens")
    written = count(usage, "cache_creation_input_tokens")
    details = usage.get("output_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        tokens_in=None if fresh is None else fresh + (cached or 0) + (written or 0),
        tokens_out=count(usage, "output_tokens"),
        tokens_cached=cached,
        tokens_cache_write=written,
        tokens_reasoning=count(details, "reasoning_tokens"),
    )
