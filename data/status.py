"""How a call to a juror ended."""

from enum import StrEnum


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
    REQUEST_FAILED = "request_failed"
    OFF_CONTRACT = "off_contract"
    NO_PROBABILITIES = "no_probabilities"
