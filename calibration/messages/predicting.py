"""What is said of predictions: whether the jury is validated, of means, and of single responses."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled
from calibration.messages.headlines import HEADLINES


def _not_validated(figures: Figures) -> str:
    said = HEADLINES["agreement"][figures["verdict"]]
    return f"NOT VALIDATED: {said[:1].lower()}{said[1:].rstrip('.')}"


def _few_to_calibrate(figures: Figures) -> str:
    said = (
        "no interval: {responses:rated instance}, {least} are needed "
        f"for {100 * figures['level']:g} %"
    )
    return filled(said, figures)


REASONS: Mapping[Code, Message] = {
    Code.NONE_OF_BOTH: "no response has composites of both jury and clinicians",
    Code.FEW_TO_FIT: (
        "the map has {responses} rated responses to be fitted on, {least} are needed"
    ),
}
MESSAGES: Mapping[Code, Message] = {
    Code.NOT_VALIDATED: _not_validated,
    Code.SIMULATED_VALIDATE_NOT: "NOT VALIDATED: a jury is not validated by simulated raters",
    Code.FEW_TO_CALIBRATE: _few_to_calibrate,
    Code.MAP_LEVEL: (
        "the map is level: every response has the same value, whatever the jury said of it"
    ),
    Code.RATED_UNLIKE: (
        "RATED AND UNRATED DIFFER: the jury gave rated responses {rated:.2f}, others {unrated:.2f}, "
        "{deviations:.2f} standard deviations apart, and unless the rated were drawn at random the "
        "corrected mean may be wrong"
    ),
    Code.ALL_RATED: (
        "every response that the jury rated is rated by clinicians: nothing to correct with"
    ),
    Code.JURY_LEFT_OUT: "fewer than {least} rated instances: the jury is left out of the mean",
    Code.JURY_TELLS_NOTHING: (
        "lambda is 0: the jury tells nothing of the clinicians' mean and is left out of it"
    ),
    Code.ERRORS_OVER_INSTANCES: "instances have several responses: errors are over instances",
    Code.JURY_UNSCORED: (
        "the jury scored {scored} of {responses:response}: the others are in no figure here, {rated} "
        "of them rated by clinicians"
    ),
    Code.WEIGHED_BY_RESPONSES: (
        "each benchmark weighs by its responses; q and lambda are each benchmark's own"
    ),
    Code.IN_NO_MEAN: "in no mean here, without a response that both rated: {benchmarks}",
    Code.NO_MEAN_INTERVAL: "no interval: too few rated instances of {benchmarks}",
    Code.OUTSIDE_MAP: "outside what the map was fitted on",
    Code.CUT_AT_SCALE: "cut at the scale",
    Code.RATERS_SIMULATED: "simulated raters",
    Code.UNSHOWN_IN: "not shown in {benchmark} by itself",
    Code.OF_BENCHMARK: "in {benchmark}, {what}",
    Code.BOTH_RATED: (
        "{responses:response} of {instances:instance} that both the jury and clinicians rated"
    ),
    Code.PREDICTED_FOR: "{responses:response} that the jury alone rated",
    Code.DO_RATE_AT_RANDOM: "draw the responses that clinicians rate at random",
    Code.DO_RATE_FOR_REAL: "let clinicians rate a random sample, and a real jury every response",
}
