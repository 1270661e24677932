"""Messages on responses without ratings: plans, what they rest on, and predictions from a jury."""

import math
from collections.abc import Mapping

from calibration.codes import AnyCode, NoteCode, PlanningCode
from calibration.messages.decisions import VERDICTS
from calibration.messages.form import Figures, Message, counted, filled
from calibration.tables.numbers import TERMINAL, fixed, icc_interval

AIMS = {1: "single-rater ICC", 2: "ICC(C,2)"}  # by how many ratings the ICC is of
BASES = {
    "assumed": "as assumed",
    "paper obtained": "as the MedHELM paper obtained",
    "pilot": "as in the pilot",
    "low end": "at the low end of the pilot's 95 % interval",
}
ICCS = {"clinicians": "single-rater ICC of clinicians", "jury": "ICC(C,2) of the jury"}


def opponent(compared: str) -> str:
    """Return what a jury is compared with, as a plan names it."""
    name = "held-out clinician" if compared == "like_for_like" else compared
    return name.removeprefix("metric:").removeprefix("juror:")


def _few_paired(figures: Figures) -> str:
    have = "response has" if figures["responses"] == 1 else "responses have"
    return filled(
        f"{{responses}} {have} two clinicians with a z, and {{least}} are needed", figures
    )


def _from_simulation(figures: Figures) -> str:
    return filled(
        "{draws} simulated studies: jury ICC(C,2) {jury:.2f} ({basis}), shared error {shared:g}",
        figures,
    )


def _responses_planned(figures: Figures) -> str:
    share = f"{figures['assurance'] * 100:g} %"
    expected, assured = (
        fixed(figures[name], 2, TERMINAL) for name in ("width_expected", "width_assured")
    )
    text = (
        f"With {_load(figures)}, the 95 % interval of the {AIMS[figures['icc_of']]} ({{scorer}}), if "
        f"that is {{icc:z.2f}} {BASES[figures['basis']]}, is expected to be {expected} wide, and in "
        f"{share} of such studies no wider than {assured}. A width of {{width:g}} takes {{bonett}} "
        f"responses on average (Bonett), {{zou}} with {share} assurance (Zou), {{exact}} with the "
        "exact F interval"
    )
    return filled(text, figures)


def _load(figures: Figures) -> str:
    text = "{responses} responses rated by {per_response:clinician} each ({readings} readings"
    if figures["per_clinician"]:
        text += ", up to {per_clinician} for each of {clinicians} clinicians"
    if math.isfinite(figures["minutes_per_clinician"]):
        hours = figures["minutes_per_clinician"] / 60
        text += f", about {hours:.1f} hours each at {{minutes:.1f}} minutes a response"
    return filled(text + ")", figures)


def _difference_found(figures: Figures) -> str:
    text = f"Jury against {opponent(figures['compared'])}: {figures['responses']} responses "
    if math.isfinite(figures["least"]):
        text += f"find a difference of {figures['least']:.2f} with 80 % power at two-sided 5 %"
    elif figures["is_known"]:
        text += "find not even a difference of 1 with 80 % power"
    else:
        text += "find a difference of unknown size"
    if math.isfinite(figures["power"]):
        text += f", one of {figures['difference']:g} with {figures['power'] * 100:.0f} %"
        text += f"; for 80 % it takes {figures['needed']}" if figures["needed"] else ""
    return f"{text} ({'; '.join((figures['source'], *figures['because']))})"


def _pilot_icc(figures: Figures) -> str:
    low, high = figures["low"], figures["high"]
    between = icc_interval(low, high, 2, TERMINAL) or "- to -"
    text = (
        f"The pilot's {ICCS[figures['scorer']]}: {fixed(figures['icc'], 2, TERMINAL)}, 95 % interval "
        f"{between} over {counted(figures['instances'], 'instance')}"
    )
    return "; ".join((text, *figures["because"]))


def _nothing_to_plan(figures: Figures) -> str:
    return f"Nothing to plan for {figures['scorer']}: {'; '.join(figures['because'])}"


def _non_inferiority_shown(figures: Figures) -> str:
    power, most, like = figures["power"], figures["most"], figures["like_these"]
    kind = f" where {figures['ceiling']:.0%} of scores are at the top" if figures["ceiling"] else ""
    text = (
        "At a margin of {margin:g} and a single-rater ICC of {icc:.2f}"
        + kind
        + ", {responses} responses, each "
        "read by {per_response} of {clinicians:clinician}, "
    )
    if not math.isfinite(power):
        return filled(text, figures) + "are too few to say how often they show anything"
    needed = figures["needed"]
    takes = f"takes {needed} responses" if needed else "cannot be reached by more responses"
    text += f"show in {power:.0%} of studies that a jury truly as good as a clinician is no worse"
    if most > figures["clinicians"]:
        text += f", by {most} clinicians in {figures['power_of_most']:.0%}"
    if math.isfinite(like):
        text += f" (for others like these {most} too in {like:.0%})"
    return filled(text, figures) + f"; {figures['wanted']:.0%} with the former {takes}"


def _not_validated(figures: Figures) -> str:
    return f"NOT VALIDATED: {VERDICTS[figures['verdict']]}"


def _few_to_calibrate(figures: Figures) -> str:
    text = (
        "no interval: {responses:rated instance}, {least} are needed "
        f"for {100 * figures['level']:g} %"
    )
    return filled(text, figures)


REASONS: Mapping[AnyCode, Message] = {
    PlanningCode.FEW_PAIRED: _few_paired,
    PlanningCode.READINGS_ALIKE: "the readings of two clinicians do not vary",
    PlanningCode.NOBODY_ON_JURY: "no juror has rated in this study",
    PlanningCode.INSTANCE_ALONE: "a single instance does not vary",
    PlanningCode.NONE_OF_BOTH: "no response has composites of both jury and clinicians",
    PlanningCode.FEW_TO_FIT: (
        "the map has {responses} rated responses to be fitted on, {least} are needed"
    ),
}
MESSAGES: Mapping[AnyCode, Message] = {
    PlanningCode.RARE_EXTREMES: "rare extremes, sd {sd:.3g}: the sd of a normal distribution is used instead",
    PlanningCode.FEW_COMPOSITES: (
        "{clinicians:clinician} with fewer than {least} composites: their z says little"
    ),
    PlanningCode.NO_PILOT_ICC: "no ICC in the pilot",
    PlanningCode.NO_PILOT_INTERVAL: "no interval in the pilot",
    PlanningCode.ICC_OF_ONE: "an ICC of 1 has no interval to plan for",
    PlanningCode.PLANNED_BELOW_ZERO: (
        "{icc:.2f}, below 0: cannot be distinguished from no agreement; --icc 0 plans for that"
    ),
    PlanningCode.FINITE_POPULATION: (
        "corrected for {instances} instances: it holds for these alone, and the interval of "
        "calibrate (width_expected) for others too"
    ),
    PlanningCode.FEW_FOR_POWER: "fewer than {least} responses: too few for a reliable power",
    PlanningCode.BEYOND_NO_AGREEMENT: "larger than the difference from a scorer without any agreement",
    PlanningCode.BEYOND_POPULATION: "it takes more than the {instances} instances there are",
    PlanningCode.FROM_PILOT: "pilot: {responses} responses to {instances} instances, by 1 / sqrt(n)",
    PlanningCode.FROM_SIMULATION: _from_simulation,
    PlanningCode.RESPONSES_PLANNED: _responses_planned,
    PlanningCode.NOTHING_TO_PLAN: _nothing_to_plan,
    PlanningCode.DIFFERENCE_FOUND: _difference_found,
    PlanningCode.IF_AS_ASSUMED: (
        "All of this holds if the ICC is what was assumed, and power for scorers with a shared error "
        "of {shared:g}: the correlation of what the clinicians' mean leaves unexplained of the two"
    ),
    PlanningCode.PILOT_OF: lambda figures: (
        f"Pilot: {figures['benchmark']}, jury {', '.join(figures['jurors']) or 'none'}"
    ),
    PlanningCode.PILOT_ICC: _pilot_icc,
    PlanningCode.AS_IN_THE_PILOT: (
        "Power and a jury's ICC hold for as many clinicians a response, and responses an instance, as "
        "in the pilot"
    ),
    PlanningCode.READING_TIME: "Median time of {readings} finished readings: {minutes:.1f} minutes",
    PlanningCode.PILOT_SIMULATED: "The pilot's figures are of simulated raters: {raters}",
    PlanningCode.CORRECTED_FOR_ALL: (
        "The numbers of responses are corrected for all the instances there are: the interval then "
        "speaks of these alone, and calibrate prints the wider one, which speaks of others too"
    ),
    PlanningCode.ONE_AN_INSTANCE: (
        "Responses are counted one an instance: several to one instance are no independent evidence, "
        "and the numbers of responses for a width then count instances"
    ),
    PlanningCode.JURY_LIKE_CLINICIAN: "for a jury that is truly as good as a clinician",
    PlanningCode.NON_INFERIORITY_SHOWN: _non_inferiority_shown,
    PlanningCode.PAPER_OBTAINED: (
        "The MedHELM paper planned with a single-rater ICC of 0.75 and obtained 0.31, ICC(C,2) 0.47: "
        "be prepared for the row with the lower ICC"
    ),
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
