"""What both SDKs' replies have in common: HTTP failures, unreadable bodies, silent loggers."""

import json
import logging
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import httpx2

from data.schema import Status
from jury.call import NO_CONNECTION, Answer

AUTH = (401, 403)
QUOTA_CODES = ("insufficient_quota", "billing_error", "billing_hard_limit_reached")
FILTER_CODES = ("content_filter", "content_policy_violation")
NO_CREDIT = "credit balance is too low"
TOKEN_LENGTH = 60
LONGEST_BODY = 4_000


def silence() -> None:
    """Keep the SDKs from logging: at debug level anthropic's prints whole prompts.

    Their loggers are switched off rather than turned down, so that neither ANTHROPIC_LOG nor a
    level set later brings the texts back.
    """
    for name in ("anthropic", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
        logging.getLogger(f"{name}._base_client").disabled = True
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)


def http_failure(status: int, headers: Mapping[str, str], body: str) -> Answer:
    """Return the answer that an HTTP error is; its reason holds only the error's own code."""
    code = _code(body)
    return Answer(
        _status(status, code, body),
        f"HTTP {status} {code}".strip(),
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


def unanswered(error: BaseException, seconds: float) -> Answer:
    """Return the answer that silence or a broken connection is, named by its cause's kind alone."""
    causes = list(_causes(error))
    cause = causes[-1]
    unsent = any(isinstance(one, aiohttp.ClientConnectorError) for one in causes)
    if not unsent and isinstance(cause, (TimeoutError, httpx2.TimeoutException)):
        return Answer(Status.TIMEOUT, f"no answer within {seconds:g} s", transient=True)
    reason = f"{NO_CONNECTION}: {type(cause).__name__}"
    return Answer(Status.REQUEST_FAILED, reason, transient=True, unsent=unsent)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came of, down to the first time limit.

    The SDKs' own words say too little: over aiohttp a line that breaks after the request was sent
    is a `ConnectTimeout` as well. Only aiohttp's error in the chain says that nothing was sent.
    """
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = None if isinstance(cause, TimeoutError) else cause.__cause__


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
    found = body_of(body) or {}
    error = found.get("error", found)
    if not isinstance(error, dict):
        return ""
    words = (text_of(error.get(name)) for name in ("code", "type"))
    return next((w for w in words if w.replace("_", "").isalnum() and len(w) < TOKEN_LENGTH), "")


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
