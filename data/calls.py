"""Calls to jurors: how each ended, and which tokens they took at which cost."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a call to a juror ended; only OK makes ratings."""

    OK = "ok"
    INVALID_JSON = "invalid_json"
    TWO_VERDICTS = "two_verdicts"
    MISSING_CRITERION = "missing_criterion"
    OUT_OF_RANGE = "out_of_range"
    TRUNCATED = "truncated"
    REFUSED = "refused"
    CONTENT_FILTER = "content_filter"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    AUTH = "auth"
    QUOTA = "quota"
    BUDGET_STOPPED = "budget_stopped"
    EMPTY_RESPONSE = "empty_response"
    TOO_LONG = "too_long"
    CUT = "cut"
    REQUEST_FAILED = "request_failed"
    OFF_CONTRACT = "off_contract"
    NO_PROBABILITIES = "no_probabilities"


# What a juror wrote itself, whether it could be used or not.
ANSWERED = (
    *(Status.OK, Status.INVALID_JSON, Status.TWO_VERDICTS, Status.MISSING_CRITERION),
    *(Status.OUT_OF_RANGE, Status.TRUNCATED, Status.REFUSED, Status.NO_PROBABILITIES),
)
PLACE = re.compile(r"^.*/|^(?:[a-z]+\.)+(?=[a-z])|\.gguf$")  # a folder, a cloud's prefix
SNAPSHOT = re.compile(r"(?:[-@:](?:latest|\d{4}-\d\d-\d\d|\d{3,8}|v\d+(?::\d+)?))+$")


def is_other_model(asked: str, returned: str) -> bool:
    """Return whether a host answers with another model than was asked for.

    A snapshot of the same model, and its name with a cloud's prefix or a file's path, are no other.
    """
    names = [
        SNAPSHOT.sub("", PLACE.sub("", PLACE.sub("", name.lower()))) for name in (asked, returned)
    ]
    return bool(returned) and names[0] != names[1]


def other_model_words(models: Sequence[str]) -> str:
    """Return that a host answers with another model than it is asked for."""
    return f"the host answers as {', '.join(models)}, another model than it is asked for"


def first_asking_words(usable: int, answers: int) -> str:
    """Return how many of a juror's answers were usable at first asking."""
    return f"{usable:,} of {answers:,} answers usable at first asking"


@dataclass(frozen=True, slots=True)
class TokenCosts:
    """Tokens of a number of calls by kind, and what each kind cost in US dollars.

    Attributes
    ----------
    input
        Read anew; `cached` were read from a vendor's cache and `cache_write` written to one. The
        three together are all input.
    output
        All of it, `reasoning` included, where the endpoint says how much that was.
    usd_input, usd_cached, usd_cache_write, usd_output
        Of the calls of known price: the four add up to what those cost.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    usd_input: float = 0.0
    usd_cached: float = 0.0
    usd_cache_write: float = 0.0
    usd_output: float = 0.0

    @property
    def all_input(self) -> int:
        """Input read anew, from a cache, and written to one."""
        return self.input + self.cached + self.cache_write

    def plus(self, other: "TokenCosts") -> "TokenCosts":
        """Return the sum with other costs."""
        return TokenCosts(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def to_json(self) -> dict[str, Any]:
        """Return the figures as `--json` writes them."""
        return {
            name: round(value, 9) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def token_costs(tokens: Iterable[int | None], usd: Iterable[float | None]) -> TokenCosts:
    """Return the tokens and costs of one call, or of many, from the columns that a study stores.

    Parameters
    ----------
    tokens
        All input, read from a cache, written to one, all output, reasoning; None counts as 0.
    usd
        In all, of cached input, of what was written to a cache, and of output; None counts as 0.
    """
    all_input, cached, written, output, reasoning = (int(count or 0) for count in tokens)
    total, usd_cached, usd_written, usd_output = (float(amount or 0.0) for amount in usd)
    return TokenCosts(
        input=all_input - cached - written,
        cached=cached,
        cache_write=written,
        output=output,
        reasoning=reasoning,
        usd_input=total - usd_cached - usd_written - usd_output,
        usd_cached=usd_cached,
        usd_cache_write=usd_written,
        usd_output=usd_output,
    )
