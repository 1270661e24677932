"""Notes that several statistics make: the code and the words of each."""

from calibration.notes import Figures, filled

MOST_NAMED = 3


def have_words(responses: int) -> str:
    """Return how many responses have something, up to the verb."""
    if responses == 0:
        return "no response has"
    return "1 response has" if responses == 1 else f"{responses} responses have"


def no_score_words(figures: Figures) -> str:
    """Return that a scorer has no score, of a metric with what may be the reason."""
    why = " (no reference, or not measured)" if figures["kind"] == "metric" else ""
    return filled("no response here has a {name} score", figures) + why


def too_few_responses_words(figures: Figures) -> str:
    """Return how many responses can be compared, and how many it takes."""
    have = have_words(figures["responses"])
    return filled(f"{have} all the scores needed, and {{least}} are required", figures)


def made_up_words(figures: Figures) -> str:
    """Return whose ratings are simulated, by name where they are few."""
    number = len(figures["raters"])
    if number > MOST_NAMED:
        return f"these figures rest on {number} simulated raters"
    return filled("these figures rest on simulated raters: {raters}", figures)


def juries_words(number: int) -> str:
    """Return the noun for so many juries."""
    return "jury" if number == 1 else "juries"


ALONE_HAS_CRITERION = ("alone_has_criterion", "{benchmarks} alone has the criterion")
CRITERION_UNSCORED = ("criterion_unscored", "no clinician has scored {criterion} here")
DIFFERENT_SCALES = ("different_scales", "the benchmarks use different scales")
DO_MORE_INSTANCES = (
    "do_more_instances",
    "have clinicians rate responses to {instances} more instances",
)
DO_MORE_RESPONSES = (
    "do_more_responses",
    (
        "about {responses} responses in all would narrow the interval enough, if the "
        "difference stays what it is"
    ),
)
DO_REAL_RATERS = (
    "do_real_raters",
    "import your own responses, have clinicians rate them and run real jurors",
)
DO_RUN_JURY_ON = (
    "do_run_jury_on",
    "run the jury on the {responses:response} that it has not scored",
)
FEW_TO_TRUST = (
    "few_to_trust",
    "with {instances:instance}, fewer than {least}, that interval is unreliable",
)
MADE_UP = ("made_up", made_up_words)
NOTHING_SCORED = ("nothing_scored", "no score")
NO_CRITERION = ("no_criterion", "its rubric has no criterion {criterion}")
NO_INTERVAL = ("no_interval", "there is no interval")
NO_JURY_SCORE = ("no_jury_score", "no response here has the scores of {needed} of the jurors")
NO_SCORE = ("no_score", no_score_words)
ONLY_ORDER = ("only_order", "not in points of the scale: only its order is compared")
SAME_SCORE = ("same_score", "{who:scorer} gave all these responses the same score")
SIMULATED = ("simulated", "simulated raters: {raters}")
TOO_FEW_RESPONSES = ("too_few_responses", too_few_responses_words)
UNDEFINED_RESAMPLES = (
    "undefined_resamples",
    "{lost} of {resamples} resamples undefined and left out",
)
