"""Messages on predictions: whether the jury is validated, means, and single responses."""

from collections.abc import Mapping

from calibration.codes import AnyCode, NoteCode, PlanningCode
from calibration.messages.form import Figures, Message, filled
from calibration.messages.headlines import VERDICTS


def _not_validated(figures: Figures) -> str:
    return f"NOT VALIDATED: {VERDICTS[figures['verdict']]}"


def _few_to_calibrate(figures: Figures) -> str:
    said = (
        "no interval: {responses:rated instance}, {least} are needed "
        f"for {100 * figures['level']:g} %"
    )
    return filled(said, figures)


REASONS: Mapping[AnyCode, Message] = {
    PlanningCode.NONE_OF_BOTH: "no response has composites of both jury and clinicians",
    PlanningCode.FEW_TO_FIT: (
        "the map has {responses} rated responses to be fitted on, {least} are needed"
    ),
}
MESSAGES: Mapping[AnyCode, Message] = {
    PlanningCode.NOT_VALIDATED: _not_validated,
    PlanningCode.SIMULATED_VALIDATE_NOT: "NOT VALIDATED: a jury is not validated by simulated raters",
    PlanningCode.FEW_TO_CALIBRATE: _few_to_calibrate,
    PlanningCode.MAP_LEVEL: (
        "the map is flat: every response gets the same value, whatever the jury's score"
    ),
    PlanningCode.RATED_UNLIKE: (
        "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others {unrated:.2f}, "
        "{deviations:.2f} standard deviations apart, and unless the rated were drawn at random the "
        "corrected mean may be wrong"
    ),
    PlanningCode.ALL_RATED: (
        "every response that the jury rated is rated by clinicians: nothing to correct with"
    ),
    PlanningCode.JURY_LEFT_OUT: "fewer than {least} rated instances: the jury is left out of the mean",
    PlanningCode.JURY_TELLS_NOTHING: (
        "lambda is 0: the jury's scores say nothing about the clinicians' mean and are not used"
    ),
    PlanningCode.ERRORS_OVER_INSTANCES: "instances have several responses: standard errors are over instances",
    PlanningCode.JURY_UNSCORED: (
        "the jury scored {scored} of {responses:response}: the others are left out, {rated} "
        "of them rated by clinicians"
    ),
    PlanningCode.WEIGHED_BY_RESPONSES: (
        "each benchmark weighs by its responses; q and lambda are each benchmark's own"
    ),
    PlanningCode.IN_NO_MEAN: "left out of all means, without a response that both rated: {benchmarks}",
    PlanningCode.NO_MEAN_INTERVAL: "no interval: too few rated instances of {benchmarks}",
    PlanningCode.OUTSIDE_MAP: "outside what the map was fitted on",
    PlanningCode.CUT_AT_SCALE: "cut at the scale",
    PlanningCode.RATERS_SIMULATED: "simulated raters",
    PlanningCode.UNSHOWN_IN: "not shown in {benchmark} by itself",
    PlanningCode.OF_BENCHMARK: "in {benchmark}, {what}",
    PlanningCode.BOTH_RATED: (
        "{responses:response} of {instances:instance} that both the jury and clinicians rated"
    ),
    PlanningCode.PREDICTED_FOR: "{responses:response} that the jury alone rated",
    PlanningCode.DO_RATE_AT_RANDOM: "draw the responses that clinicians rate at random",
    NoteCode.DO_RATE_FOR_REAL: "have clinicians rate a random sample, and a real jury score every response",
}
