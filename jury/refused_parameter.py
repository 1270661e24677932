"""Which parameter or setting of a request a server has refused, as far as its error names it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jury.call import Answer

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


def unsupported_parameter(answer: Answer) -> str:
    """Return the name of a parameter that a server does not know, empty if it names none.

    An error may quote the text of a patient, so a name counts in a field of its own or at the
    beginning of the message, and nowhere else.
    """
    for error in _errors(answer):
        if error.get("code") in UNSUPPORTED and isinstance(error.get("param"), str):
            return str(error["param"])
        if error.get("type") == "extra_forbidden" and isinstance(error.get("loc"), list):
            return str(error["loc"][-1]) if error["loc"] else ""
        if found := SAYS_SO.match(_message(error)):
            return found[1]
    return ""


def refuses_caching(answer: Answer) -> bool:
    """Return whether an error says that a prefix cannot be marked for caching here."""
    if unsupported_parameter(answer).endswith("cache_control"):
        return True
    return any(NO_CACHING.match(_message(error)) for error in _errors(answer))


def refused_setting(answer: Answer) -> str:
    """Return which of a panel's settings an error is about, empty if about none that was sent."""
    for setting, names in SETTINGS.items():
        if value_sent(answer, setting) and _concerns(answer, names):
            return setting
    if value_sent(answer, "scores") and _named(answer, PROBABILITIES):
        return "scores"
    return ""


def refuses_so_many(answer: Answer) -> bool:
    """Return whether an error is about how many alternatives were asked for at each token."""
    return any(one.get("param") == "top_logprobs" for one in _errors(answer)) or _named(
        answer, SO_MANY
    )


def _named(answer: Answer, words: re.Pattern[str]) -> bool:
    """Return whether an error's message holds words that no text of a patient has."""
    return any(words.search(_message(error)) for error in _errors(answer, FORBIDDEN))


def value_sent(answer: Answer, setting: str) -> str:
    """Return a setting of a request as a panel writes it, empty if none was sent."""
    values = (answer.sent.get(name) for name in SETTINGS[setting])
    found = next((one for one in values if one is not None), None)
    if found is None:
        return ""
    return f"{found:g}" if isinstance(found, (int, float)) else f'"{found}"'


def _concerns(answer: Answer, names: Sequence[str]) -> bool:
    """Return whether an error is about a parameter with one of these names, whatever it says."""
    if unsupported_parameter(answer) in names:
        return True
    for error in _errors(answer):
        begins = BEGINS_WITH.match(_message(error))
        if error.get("param") in names or (begins and begins[1] in names):
            return True
    return False


def _errors(answer: Answer, statuses: Sequence[int] = REFUSED) -> Iterator[Mapping[str, Any]]:
    """Yield the errors in a body that refuses a request: OpenAI's one, FastAPI's list, Amazon's."""
    if answer.http not in statuses:
        return
    try:
        body = json.loads(answer.text)
    except (ValueError, RecursionError):
        return
    if not isinstance(body, dict):
        return
    detail = body.get("detail")
    whole = body.get("error", body)  # Amazon's is the body itself
    for error in [whole, *(detail if isinstance(detail, list) else [])]:
        if isinstance(error, dict):
            yield error


def _message(error: Mapping[str, Any]) -> str:
    message = error.get("message")
    return message if isinstance(message, str) else ""
