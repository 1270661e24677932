"""The codes of notes on where a study stands, step by step."""

from enum import StrEnum


class StepCode(StrEnum):
    """What a note says of a step of a study: an answer in one sentence."""

    NO_MARGIN_YET = "no_margin_yet"
    MARGIN_FIXED = "margin_fixed"
    NO_RESPONSE_YET = "no_response_yet"
    RESPONSES_IN = "responses_in"
    NOBODY_TO_RATE = "nobody_to_rate"
    INVITED_ONLY = "invited_only"
    RATED_ELSEWHERE = "rated_elsewhere"
    WORK_ASSIGNED = "work_assigned"
    NOTHING_RATED_YET = "nothing_rated_yet"
    READINGS_DONE = "readings_done"
    RESPONSES_RATED = "responses_rated"
    NONE_READ_TWICE = "none_read_twice"
    READ_TWICE = "read_twice"
    AGREEMENT_OF_CLINICIANS = "agreement_of_clinicians"
    NOBODY_SITS = "nobody_sits"
    JURY_RATED = "jury_rated"
    BOTH_NEEDED = "both_needed"
    NOT_KEPT = "not_kept"
    KEPT = "kept"
    AGREEMENT_OF_JURY = "agreement_of_jury"
    NO_FIGURE = "no_figure"
    NO_USE_YET = "no_use_yet"
    NO_USE_SHOWN = "no_use_shown"
    USE_SHOWN = "use_shown"
    NOTHING_TO_WATCH = "nothing_to_watch"
    WATCHED_FROM = "watched_from"
