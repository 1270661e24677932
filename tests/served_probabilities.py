"""Answers with log-probabilities, as servers of chat completions send them."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from stub_llm import Do, Seen

from jury.json_objects import member_spans

SHARES = {"4": 0.6, "5": 0.3, "3": 0.1}


def criteria_of(seen: Seen) -> dict[str, Any]:
    """Return the criteria of a request's schema, each with what a verdict on it has."""
    form = seen.body["response_format"]["json_schema"]["schema"]
    return {name: list(one["properties"]) for name, one in form["properties"].items()}


def verdict_of(seen: Seen, score: int = 4) -> str:
    """Return a whole verdict in the order that the schema asks for."""
    said: dict[str, Any] = {
        "explanation": "38,5 \N{DEGREE SIGN}C \N{STETHOSCOPE}; 2 of 5",
        "score": score,
    }
    asked = criteria_of(seen)
    return json.dumps({name: {key: said[key] for key in keys} for name, keys in asked.items()})


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
    others = sorted(shares.items(), key=lambda one: -one[1])
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
