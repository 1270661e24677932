"""What a response of an endpoint over HTTP says: the parts that all protocols share.

Pure: what medjury reads with, and what the exports carry along.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from data.status import Status
from jury.call import TOO_LONG, Answer

AUTH = (401, 403)
QUOTA_CODES = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")
FILTER_CODES = ("content_filter", "content_policy_violation")
IN_LITELLM = "ContextWindowExceededError"  # which says it in its message alone
OVERFLOWS = ("context_length_exceeded", "exceed_context_size_error", IN_LITELLM)
NO_CREDIT = "credit balance is too low"
TOKEN_LENGTH = 60
LONGEST_BODY = 4_000


def http_failure(status: int, headers: Mapping[str, str], body: str) -> Answer:
    """Return the answer that an HTTP error is; its reason holds only the error's own code."""
    code = _code(body)
    more = f": {TOO_LONG}" if code in OVERFLOWS else ""
    return Answer(
        _status(status, code, body),
        f"HTTP {status} {code}".strip() + more,
        text=body[:LONGEST_BODY],
        http=status,
        transient=_passes(status, code),
        retry_after=_seconds(headers),
    )


def unreadable(body: str) -> Answer:
    """Return the answer that a success with a body nobody can read is."""
    return Answer(
        Status.REQUEST_FAILED,
        "HTTP 200 with a body that is not an answer",
        text=body[:LONGEST_BODY],
        http=200,
        transient=True,
    )


def body_of(text: str) -> dict[str, Any] | None:
    """Return the JSON object a response body is, or None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def count(source: Any, name: str) -> int | None:
    """Return a token count out of a usage object, None where there is none."""
    value = source.get(name) if isinstance(source, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text_of(value: Any) -> str:
    """Return a value that should be text, and empty text where it is not."""
    return value if isinstance(value, str) else ""


def _status(status: int, code: str, body: str) -> Status:
    """Return what an HTTP error means for the rating."""
    if status == 402 or code in QUOTA_CODES or NO_CREDIT in body:
        return Status.QUOTA
    if code in FILTER_CODES:
        return Status.CONTENT_FILTER
    if status in AUTH:
        return Status.AUTH
    if status == 429:
        return Status.RATE_LIMITED
    return Status.TIMEOUT if status in (408, 504) else Status.REQUEST_FAILED


def _passes(status: int, code: str) -> bool:
    """Return whether an HTTP error may pass by itself."""
    return code not in QUOTA_CODES and (status in (408, 409, 425, 429) or status >= 500)


def _code(body: str) -> str:
    """Return the error's code or type: a bare word, so that no text sent can come back in it."""
    found = body_of(body.strip().removeprefix("[").removesuffix("]")) or {}  # a list at Google
    error = found.get("error", found)
    if not isinstance(error, dict):
        return ""
    names = [text_of(error.get(name)) for name in ("code", "type", "status")]
    words = [IN_LITELLM, *names] if IN_LITELLM in text_of(error.get("message")) else names
    return next((word for word in words if _is_bare(word)), "")


def _is_bare(word: str) -> bool:
    """Return whether it is one word, and more than the number of the HTTP status once again."""
    return word.replace("_", "").isalnum() and not word.isdecimal() and len(word) < TOKEN_LENGTH


def _seconds(headers: Mapping[str, str]) -> float | None:
    """Return how long the endpoint asks to wait, by any of the three ways to say it."""
    asked = headers.get("retry-after", "")
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(asked)) if asked else None
    except ValueError:
        return _until(asked)


def _until(date: str) -> float | None:
    """Return the seconds until an HTTP date."""
    try:
        return max(0.0, (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
