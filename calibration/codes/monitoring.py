"""The codes of notes on agreement over time."""

from enum import StrEnum


class MonitoringCode(StrEnum):
    """What a note says of agreement over time."""

    # On a period
    SCORED_OF = "scored_of"
    JOINED = "joined"
    FEW_OF_PERIOD = "few_of_period"
    NOT_OVER = "not_over"
    LEFT_OUT_FEW = "left_out_few"
    LEFT_OUT_NOT_OVER = "left_out_not_over"
    LEFT_OUT_NO_Z = "left_out_no_z"
    LEFT_OUT_NO_ERROR = "left_out_no_error"

    # Over all periods
    NO_CUSUM_YET = "no_cusum_yet"
    NO_CUSUM_SINCE = "no_cusum_since"
    TARGET = "target"
    DETECTABLE = "detectable"
    SCORED_AT_ONCE = "scored_at_once"
    ONE_PERIOD = "one_period"

    # What a change may come from
    NO_ANCHOR = "no_anchor"
    SAME_MOVE = "same_move"
    FEW_ANCHORS_RATED = "few_anchors_rated"
    MIX_UNDEFINED = "mix_undefined"
    MIX_OF_ONE = "mix_of_one"
    FEW_EFFECTIVE = "few_effective"
    NOT_RATED_NOW = "not_rated_now"
    SHARE_OF_BENCHMARK = "share_of_benchmark"
    NOT_LOWER = "not_lower"
    NOTHING_EARLIER = "nothing_earlier"
    DRIFT = "drift"
    JUROR_MOVED = "juror_moved"
    ANCHOR_ICC_FELL = "anchor_icc_fell"
    SHARES_EXPLAIN = "shares_explain"
    SPREAD_EXPLAINS = "spread_explains"

    # Reports and models
    CHANGED_SINCE = "changed_since"
    BENCHMARK_NEW = "benchmark_new"
    BENCHMARK_GONE = "benchmark_gone"
    RUBRIC_CHANGED = "rubric_changed"
    JUROR_JOINED = "juror_joined"
    JUROR_LEFT = "juror_left"
    JUROR_SETTINGS = "juror_settings"
    OPTION_CHANGED = "option_changed"
    RATINGS_CHANGED = "ratings_changed"
    MODEL_ENDED = "model_ended"
    MODEL_ENDS = "model_ends"

    # The decision
    ALARM = "alarm"
    NO_ALARM = "no_alarm"
    SHOWN_BELOW_FLOOR = "shown_below_floor"
    BELOW_FLOOR = "below_floor"
    BELOW_FLOOR_MAYBE = "below_floor_maybe"
    NOT_BELOW_FLOOR = "not_below_floor"
    NEWEST_PERIOD = "newest_period"
    NEWEST_UNDEFINED = "newest_undefined"
    LOWER_THAN_BASELINE = "lower_than_baseline"
    PERIOD_RESTS_ON = "period_rests_on"
    DO_SCORE_AGAIN = "do_score_again"
    DO_VALIDATE_AGAIN = "do_validate_again"
    DO_FREEZE = "do_freeze"
    DO_COMPARE_JURIES = "do_compare_juries"
    DO_RATE_MORE_OF = "do_rate_more_of"
    DO_SCORE_REST_OF = "do_score_rest_of"
    DO_LOOK_AGAIN = "do_look_again"
    DO_REAL_STUDY = "do_real_study"
