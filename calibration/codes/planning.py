"""The codes of notes on what has not been rated: plans, and predictions from a jury."""

from enum import StrEnum


class PlanningCode(StrEnum):
    """What a note says of a plan, or of a prediction for responses that nobody has rated."""

    # Planning: what a pilot says
    FEW_PAIRED = "few_paired"
    READINGS_ALIKE = "readings_alike"
    NOBODY_ON_JURY = "nobody_on_jury"
    INSTANCE_ALONE = "instance_alone"
    RARE_EXTREMES = "rare_extremes"
    FEW_COMPOSITES = "few_composites"

    # Planning: what a plan rests on
    NO_PILOT_ICC = "no_pilot_icc"
    NO_PILOT_INTERVAL = "no_pilot_interval"
    ICC_OF_ONE = "icc_of_one"
    PLANNED_BELOW_ZERO = "planned_below_zero"
    FINITE_POPULATION = "finite_population"
    FEW_FOR_POWER = "few_for_power"
    BEYOND_NO_AGREEMENT = "beyond_no_agreement"
    BEYOND_POPULATION = "beyond_population"
    FROM_PILOT = "from_pilot"
    FROM_SIMULATION = "from_simulation"

    # Planning: what a protocol can say
    RESPONSES_PLANNED = "responses_planned"
    NOTHING_TO_PLAN = "nothing_to_plan"
    DIFFERENCE_FOUND = "difference_found"
    IF_AS_ASSUMED = "if_as_assumed"
    PILOT_OF = "pilot_of"
    PILOT_ICC = "pilot_icc"
    AS_IN_THE_PILOT = "as_in_the_pilot"
    READING_TIME = "reading_time"
    PILOT_SIMULATED = "pilot_simulated"
    CORRECTED_FOR_ALL = "corrected_for_all"
    ONE_AN_INSTANCE = "one_an_instance"
    JURY_LIKE_CLINICIAN = "jury_like_clinician"
    NON_INFERIORITY_SHOWN = "non_inferiority_shown"
    PAPER_OBTAINED = "paper_obtained"

    # Predicting: whether the jury is validated
    NOT_VALIDATED = "not_validated"
    SIMULATED_VALIDATE_NOT = "simulated_validate_not"
    NONE_OF_BOTH = "none_of_both"

    # Predicting: the mean over all responses, and each of them
    FEW_TO_FIT = "few_to_fit"
    FEW_TO_CALIBRATE = "few_to_calibrate"
    MAP_LEVEL = "map_level"
    RATED_UNLIKE = "rated_unlike"
    ALL_RATED = "all_rated"
    JURY_LEFT_OUT = "jury_left_out"
    JURY_TELLS_NOTHING = "jury_tells_nothing"
    ERRORS_OVER_INSTANCES = "errors_over_instances"
    JURY_UNSCORED = "jury_unscored"
    WEIGHED_BY_RESPONSES = "weighed_by_responses"
    IN_NO_MEAN = "in_no_mean"
    NO_MEAN_INTERVAL = "no_mean_interval"
    OUTSIDE_MAP = "outside_map"
    CUT_AT_SCALE = "cut_at_scale"
    RATERS_SIMULATED = "raters_simulated"

    # Predicting: the decision
    UNSHOWN_IN = "unshown_in"
    OF_BENCHMARK = "of_benchmark"
    BOTH_RATED = "both_rated"
    PREDICTED_FOR = "predicted_for"
    DO_RATE_AT_RANDOM = "do_rate_at_random"
