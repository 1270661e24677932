"""Probabilities of tokens as chat completions serve them: `choices[].logprobs.content`."""

import math
from typing import Any

from jury.call import Token

ROUNDED = 0.0005  # above 0, the logarithm of certainty, by rounding
LEAST = -700.0  # below it a probability is 0 to a computer
MOST, FEW = 20, 5  # alternatives that are asked for, and where a server grants no more


def tokens_of(logprobs: Any) -> tuple[Token, ...]:
    """Return the tokens of an answer with their options; none where a server sends none.

    One entry that cannot be read makes all of them unusable: nothing says what stood there.
    """
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    tokens = [_token(entry) for entry in content] if isinstance(content, list) else []
    return tuple(one for one in tokens if one is not None) if None not in tokens else ()


def _token(entry: Any) -> Token | None:
    """Return one token with its options, itself among them even where the server left it out."""
    own = _option(entry)
    if own is None:
        return None
    others = entry.get("top_logprobs") or []
    options = [_option(one) for one in others] if isinstance(others, list) else [None]
    told = tuple(one for one in options if one is not None)
    if len(told) < len(options):
        return None
    return Token(own[0], told if own[0] in dict(told) else (own, *told))


def _option(entry: Any) -> tuple[bytes, float] | None:
    """Return the bytes of a token and its probability, None where that is not said."""
    if not isinstance(entry, dict):
        return None
    logprob, text = entry.get("logprob"), _bytes(entry)
    if text is None or isinstance(logprob, bool) or not isinstance(logprob, (int, float)):
        return None
    if not logprob <= ROUNDED:  # nor is NaN
        return None
    return text, math.exp(logprob) if logprob > LEAST else 0.0


def _bytes(entry: dict[str, Any]) -> bytes | None:
    """Return a token's bytes: as told, or else those of its text."""
    told, text = entry.get("bytes"), entry.get("token")
    if isinstance(told, list):
        whole = all(isinstance(one, int) and 0 <= one < 256 for one in told)
        return bytes(told) if whole else None
    return text.encode("utf-8", "replace") if isinstance(text, str) else None
