"""Messages on single raters: leniency, preference, length, contribution, test-retest."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled


def _from_clinicians(figures: Figures) -> str:
    name = "the other clinicians" if figures["is_clinician"] else "the clinicians"
    return filled(f"compared with {name} alone {{points:+z.2f}} on {{responses:response}}", figures)


def _few_family_instances(figures: Figures) -> str:
    name = "its family" if figures["own"] else "other families"
    return filled(
        f"responses by {name} to {{instances:instance}}, and {{least}} are needed", figures
    )


REASONS: Mapping[Code, Message] = {
    Code.NONE_SHARED: "no response that this rater and another one rated",
    Code.NOT_ESTIMABLE: "the data cannot tell the jurors' preferences apart",
    Code.NO_RESIDUAL: "the scores vary only by juror and family",
    Code.NO_KNOWN_FAMILY: (
        "no response by a known family that another juror and a clinician rated"
    ),
    Code.NO_OWN_RESPONSE: "no response by its family",
    Code.FEW_FAMILY_INSTANCES: _few_family_instances,
    Code.NO_FAMILY: "imported, no family is stored: --panel names families",
    Code.AFTER_UNBLINDING: "known after unblinding",
    Code.NO_WORDS: "no response has both the scores and the number of words needed",
    Code.FEW_RESPONDED: "responses to {instances:instance}, and {least} are needed",
    Code.ONE_LENGTH: "all responses have the same number of words",
    Code.NO_JUROR_VARIES: "no juror has scores that vary",
    Code.FEW_RATED_BY_ALL: "{responses:response} that all jurors rated, and {least} are needed",
    Code.CONSTANT_ERROR: "a juror's error is the same on all responses",
    Code.ERRORS_CANCEL: "the jurors' errors cancel exactly",
    Code.UNVARIED_OR_NONE: "its scores do not vary, or there are none",
    Code.NO_REPLICATES: "no replicates; a jury run with 3 verdicts of each juror makes them",
}
MESSAGES: Mapping[Code, Message] = {
    Code.NOT_SHRUNKEN: "not shrunken: {why}",
    Code.FROM_CLINICIANS: _from_clinicians,
    Code.UNKNOWN_FAMILY: "{responses:response} by an unknown family left out",
    Code.ON_A_LINE: "no interval: the distances lie on a line",
    Code.WORDLESS: "{responses:response} without a number of words left out",
    Code.JURY_OF_ONE: "a jury of one",
    Code.MORE_THAN_THERE_ARE: "more than the number of jurors: their errors offset one another",
    Code.NOT_RATED_BY_ALL: "{responses:response} that not all jurors rated left out",
    Code.SINGLE_REPLICATES: "{responses:response} with a single replicate left out",
    Code.WITHOUT_ALL_REPLICATES: (
        "{responses:response} without all replicates left out of the ICC"
    ),
    Code.FEW_REPLICATED: (
        "no ICC: {responses:response} with all {replicates} replicates, and {least} are needed"
    ),
    Code.REPLICATES_ALIKE: "no ICC: all composites are the same",
    Code.SAME_OFF_POINTS: (
        "{scores:score} between the points of the scale, which count as the same only where they are "
        "equal"
    ),
    Code.IDENTICAL_REPLICATES: "replicates are identical",
}
