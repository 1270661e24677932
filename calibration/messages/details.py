"""Messages in the details behind the agreement table: points, missing scores, chance, and single raters."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled, quoted

GENERAL: Mapping[Code, Message] = {
    Code.SHARED_POINTS: (
        "several responses of an instance: the interval of the bias resamples instances, those "
        "of the limits take responses as independent"
    ),
    Code.SHARED_AC2: (
        "several responses of an instance: AC2's standard error takes them as independent"
    ),
}


def _left_out(figures: Figures) -> str:
    kind, size = figures["kind"], figures["responses"]
    return f"this {kind} of {size} responses" if size > 1 else f"this {kind}"


def _undefined_without(figures: Figures) -> str:
    return f"without {_left_out(figures)} the ICC is undefined"


def _decides_sign(figures: Figures) -> str:
    both = filled("{icc:z.3f} with it, {without:z.3f} without", figures)
    return f"{_left_out(figures)} decides the sign: {both}"


def _decides(figures: Figures) -> str:
    both = filled("{icc:z.3f} with it, {without:z.3f} without", figures)
    share = "" if figures["share"] is None else f", {figures['share']:.0%} of the ICC"
    return f"{_left_out(figures)} decides: {both}{share}"


def _at_end(figures: Figures) -> str:
    whose = {
        "clinicians": "the clinicians' {criterion} scores",
        "jury": "the jury's {criterion} means",
    }
    own = whose.get(figures["rater"], "{rater:scorer}'s {criterion} scores")
    return filled(f"{{share:.0%}} of {own} are exactly {{end}}", figures)


def _unvaried(figures: Figures) -> str:
    raters = (
        f"{quoted(name)} (all {count} are {score:g})" for name, score, count in figures["raters"]
    )
    return f"no variance: {', '.join(raters)}"


def _from_clinicians(figures: Figures) -> str:
    name = "the other clinicians" if figures["is_clinician"] else "the clinicians"
    return filled(f"compared with {name} alone {{points:+z.2f}} on {{responses:response}}", figures)


def _few_family_instances(figures: Figures) -> str:
    name = "its family" if figures["own"] else "other families"
    return filled(
        f"responses by {name} to {{instances:instance}}, and {{least}} are needed", figures
    )


REASONS: Mapping[Code, Message] = {
    Code.CRITERION_UNRATED: "no clinician has rated this criterion",
    Code.NOTHING_SCORED: "no score",
    Code.CRITERION_UNSCORED: "no clinician has scored {criterion} here",
    Code.NO_TWO_SCORES: "no response has the scores of two of these raters",
    Code.NO_OTHERS: "held out, a clinician needs others to be compared with",
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
    Code.UNVARIED_OR_NONE: "its scores do not vary, or there are none",
    Code.NO_REPLICATES: "no replicates; a jury run with 3 verdicts of each juror makes them",
}
MESSAGES: Mapping[Code, Message] = {
    Code.ONLY_ORDER: "not in points of the scale: only its order is compared",
    Code.ICC_UNDEFINED: "ICC undefined: {why}",
    Code.ICC_AND_RANKS_UNDEFINED: "ICC and rank correlation undefined: {why}",
    Code.NOT_IN_ORDER: "no variance, so not in the order: {raters}",
    Code.RANKS_UNDEFINED: "rank correlation undefined: {why}",
    Code.RANKS_OVER: "rank correlation over {responses} responses",
    Code.LIMITS: (
        "limits of agreement, 95 % intervals: low {low_low:z.2f} to {low_high:z.2f}, high "
        "{high_low:z.2f} to {high_high:z.2f} points"
    ),
    Code.SHARED_POINTS: (
        "{responses} responses from {instances} instances: the interval of the bias resamples "
        "instances, those of the limits take responses as independent"
    ),
    Code.NO_BIAS_INTERVAL: "the bias has no interval: it takes two instances and resamples",
    Code.UNDEFINED_WITHOUT: _undefined_without,
    Code.DECIDES_SIGN: _decides_sign,
    Code.DECIDES: _decides,
    Code.CEILING: lambda figures: f"{_at_end(figures)}: a ceiling",
    Code.FLOOR: lambda figures: f"{_at_end(figures)}: a floor",
    Code.UNVARIED: _unvaried,
    Code.ALONE_HAS_CRITERION: "{benchmarks} alone has the criterion",
    Code.ALPHA_UNDEFINED: "alpha undefined: all scores are the same",
    Code.OFF_POINTS: ("kappa and AC2 undefined: {scores:score} between the points of the scale"),
    Code.FIRST_SCORES: "first scores only: {scores:score} of repeats or replicates left out",
    Code.SHARED_AC2: (
        "{responses} responses from {instances} instances: AC2's standard error takes them as "
        "independent"
    ),
    Code.SINGLE_SCORES: (
        "{responses:response} with a single score: they count in AC2's chance term, and make its "
        "standard error too wide"
    ),
    Code.KAPPA_OF: "kappa: mean of {pairs:pair}",
    Code.KAPPA_ALIKE: "kappa undefined: every pair gave one and the same score",
    Code.KAPPA_NO_PAIR: "kappa undefined: no pair shares {min_shared} responses",
    Code.KAPPA_FRAGILE: (
        "fragile: {fragile} of {pairs:pair} with fewer than {least} shared responses"
    ),
    Code.KAPPA_ZERO: (
        "{constant} of {pairs:pair} with kappa 0, as one of the two gave one score only"
    ),
    Code.KAPPA_LEFT_ALIKE: "{pairs:pair} left out of kappa: both gave one and the same score",
    Code.KAPPA_LEFT_FEW: (
        "{pairs:pair} left out of kappa for sharing fewer than {min_shared} responses"
    ),
    Code.FROM_CLINICIANS: _from_clinicians,
    Code.UNKNOWN_FAMILY: "{responses:response} by an unknown family left out",
    Code.ON_A_LINE: "no interval: the distances lie on a line",
    Code.WORDLESS: "{responses:response} without a number of words left out",
    Code.JURY_OF_ONE: "a jury of one",
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
