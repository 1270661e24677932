"""Messages on the agreement table, its intervals, paired differences, and the clinicians' own reliability."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.form import Figures, Message, filled, quoted

FEW_AGAIN = "{repeats} repeats, fewer than {least}"
QUOTES: Mapping[str, str] = {
    "ICC(C,k)": "Quote first: how reliably the reference, the clinicians' mean, ranks responses",
    "ICC(A,k)": "where scores count as points, such as at a threshold; raters are a random sample",
    "ICC(C,1)": "how similarly two clinicians rank responses; the basis for planning more clinicians",
    "ICC(A,1)": "how far the points of one clinician can replace another's",
}


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _have(responses: int) -> str:
    if responses == 0:
        return "no response has"
    return "1 response has" if responses == 1 else f"{responses} responses have"


def _coverage(figures: Figures) -> str:
    note = filled("scored {scored} of {analysed}", figures)
    if figures["in_study"] == figures["analysed"]:
        return note
    rest = " responses that clinicians rated, {scored_in_study} of all {in_study}"
    return note + filled(rest, figures)


def _incomplete(figures: Figures) -> str:
    if figures["readings"] == 1:
        return "1 reading lacks a criterion and has no composite"
    return filled("{readings} readings lack a criterion and have no composite", figures)


def _below_zero(figures: Figures) -> str:
    text = "below 0, but this mean depends on a few pairs that share few responses"
    if figures["mixed"] is None:
        return text
    return filled(text + ": prefer the mixed model's ICC, {mixed:z.3f}", figures)


def _few_shared(figures: Figures) -> str:
    share = _verb(figures["fragile"], "share")
    return filled(f"{{fragile}} of {{pairs:pair}} {share} fewer than {{least}} responses", figures)


def _pairs_undefined(figures: Figures) -> str:
    pairs = (f"{' and '.join(map(quoted, pair))} ({why})" for pair, why in figures["pairs"])
    return f"pairs left out as undefined: {', '.join(pairs)}"


def _not_held(figures: Figures) -> str:
    clinicians = (f"{quoted(name)} ({why})" for name, why in figures["clinicians"])
    return f"not compared: {', '.join(clinicians)}"


def _corrected(figures: Figures) -> str:
    share = f"{100 * figures['level']:.2f}".rstrip("0").rstrip(".")
    text = (
        "% interval, corrected for {benchmarks} benchmarks (Bonferroni): {low:z.3f} to {high:z.3f}"
    )
    return f"{share} {filled(text, figures)}"


def _each_again(figures: Figures) -> str:
    own = (
        f"{quoted(name)} {exact:.0%} of {scores}" for name, exact, scores in figures["clinicians"]
    )
    return f"identical by clinician: {', '.join(own)}"


def _no_score(figures: Figures) -> str:
    why = " (no reference, or not measured)" if figures["kind"] == "metric" else ""
    return filled("no response here has a {name} score", figures) + why


def _too_few_responses(figures: Figures) -> str:
    have = _have(figures["responses"])
    return filled(f"{have} all the scores needed, and {{least}} are required", figures)


def _mixed(figures: Figures) -> str:
    text = "crossed mixed model of all readings: ICC(C,1) {consistency:z.3f}, "
    return filled(text + "ICC(C,2) {consistency_of_two:z.3f}, ICC(A,1) {agreement:z.3f}", figures)


def _flat_raters(figures: Figures) -> str:
    return f"{' and '.join(map(quoted, figures['raters']))} without variance"


def _tells_none_apart(figures: Figures) -> str:
    which = "they tell" if figures["who"] == "the clinicians" else "it tells"
    text = "{who:scorer} gave all {responses:response} the same score: "
    return filled(text + f"{which} no response from another", figures)


def _same_everywhere(figures: Figures) -> str:
    which = "it tells" if len(figures["raters"]) == 1 else "they tell"
    return (
        f"{_givers(figures)} gave every response the same scores: {which} no response from another"
    )


def _same_on_criterion(figures: Figures) -> str:
    return (
        f"{_givers(figures)} {filled('gave every response the same score on {criterion}', figures)}"
    )


def _givers(figures: Figures) -> str:
    return " and ".join(
        name if name == "the clinicians" else f"juror {quoted(name)}" for name in figures["raters"]
    )


def _no_z(figures: Figures) -> str:
    have = "have" if figures["several"] else "has"
    return filled(f"{{who:scorer}} {have} no variance, hence no z", figures)


REASONS: Mapping[Code, Message] = {
    Code.ONLY_CLINICIAN: (
        "only one clinician rated here, {clinician}: there is no other to compare with"
    ),
    Code.TOO_FEW_RESPONSES: _too_few_responses,
    Code.SAME_SCORE: "{who:scorer} gave all these responses the same score",
    Code.TELLS_NONE_APART: _tells_none_apart,
    Code.MIRRORED: "one column of scores is the exact mirror of the other",
    Code.NO_Z: _no_z,
    Code.NO_CRITERION: "its rubric has no criterion {criterion}",
    Code.NOT_RATED: ("no clinician has rated a response of this benchmark with a composite"),
    Code.DIFFERENT_SCALES: "the benchmarks use different scales",
    Code.NO_JURY_SCORE: "no response here has the scores of {needed} of the jurors",
    Code.NO_SCORE: _no_score,
    Code.NO_PAIR: "no pair of clinicians has an ICC",
    Code.NO_SHARED: "no two clinicians share {min_shared} responses",
    Code.FLAT_RATERS: _flat_raters,
    Code.FLAT_SHARED: "no variance on the shared responses",
    Code.FLAT: "no variance",
    Code.NONE_HELD: "no clinician can be compared with the mean of others",
    Code.FEW_REPEATS: "{repeats} complete repeats, and {least} are needed",
    Code.REPEATS_ALIKE: "all first and repeated composites are the same",
    Code.RELIABILITY_EXTREME: "there is no residual variance, or responses do not differ at all",
}
MESSAGES: Mapping[Code, Message] = {
    Code.SIMULATED: "simulated raters: {raters}",
    Code.INDEPENDENT_READINGS: (
        "computed on independent readings: an adjudicated rating has a single clinician"
    ),
    Code.ANALYSED: (
        "{analysed} of {in_study:response} are analysed: the others have no complete reading by a "
        "clinician"
    ),
    Code.COVERAGE: _coverage,
    Code.SAME_EVERYWHERE: _same_everywhere,
    Code.SAME_ON_CRITERION: _same_on_criterion,
    Code.FEWER_JURORS: "mean of at least {needed} of {jurors} jurors",
    Code.INCOMPLETE: _incomplete,
    Code.NO_VARIANCE: "left out, no variance: {raters}",
    Code.ONE_INSTANCE: "1 instance: an interval over instances is undefined",
    Code.FEW_INSTANCES: (
        "fewer than {least} instances: the true uncertainty is larger than this interval"
    ),
    Code.SHARED_INSTANCES: (
        "{responses} responses from {instances:instance}: the F interval takes them as "
        "independent, the bootstrap does not"
    ),
    Code.UNDEFINED_RESAMPLES: "{lost} of {resamples} resamples undefined and left out",
    Code.FEW_RESAMPLES: "{resamples:resample}: too few for an interval",
    Code.RANKS_AGAINST: "the whole interval is below 0: it ranks responses against the clinicians' order",
    Code.NO_AGREEMENT: "below 0: no agreement beyond chance",
    Code.CLINICIANS_AGAINST: (
        "the whole interval is below 0: clinicians rank responses in opposite orders"
    ),
    Code.FRAGILE_BELOW_ZERO: _below_zero,
    Code.SMALLER_JURY: "in {resamples} of {reps} resamples a juror without variance is left out",
    Code.BCA: "BCa bootstrap {low:z.3f} to {high:z.3f}",
    Code.NO_BCA: "no BCa interval for more than {most} instances",
    Code.FRAGILE_PAIRS: lambda figures: f"fragile: {_few_shared(figures)}",
    Code.PAIRS_UNDEFINED: _pairs_undefined,
    Code.PAIRS_TOO_FEW: "{pairs:pair} left out for sharing fewer than {min_shared} responses",
    Code.PAIRS_INTERVAL: "bootstrap over pairs {low:z.3f} to {high:z.3f}",
    Code.MIXED_MODEL: _mixed,
    Code.MIXED_FEW: "the mixed model needs 3 responses that two clinicians rated",
    Code.MIXED_FLAT: "the mixed model needs composites that differ",
    Code.MIXED_ONE: "the mixed model needs two clinicians",
    Code.MIXED_UNCONVERGED: "the mixed model did not converge",
    Code.HELD_ICCS: "ICC with the other clinicians: jury {jury:z.3f}, held-out clinician {clinician:z.3f}",
    Code.HELD_ON: "{clinicians:clinician} compared, each on {least} responses or more",
    Code.INCLUDES_ZERO: "the interval includes 0: neither is shown to agree better",
    Code.CORRECTED: _corrected,
    Code.NOT_HELD: _not_held,
    Code.POPULATION_FEW: (
        "no interval over clinicians like these: {clinicians:clinician} can be held out, and {least} "
        "are needed"
    ),
    Code.POPULATION_UNDEFINED: (
        "no interval over clinicians like these: without one of them there is nothing to compare"
    ),
    Code.FRAGILE_REPEATS: f"fragile: {FEW_AGAIN}",
    Code.NO_F: "no F interval: the mean square between responses is 0, all pairs have the same mean",
    Code.GIVEN_AGAIN: (
        "given twice: {exact:.0%} of {scores:single score} identical, {within_one:.0%} within one "
        "point"
    ),
    Code.GIVEN_AGAIN_EACH: _each_again,
    Code.OWN_MEANS: "with each clinician's own mean taken out, ICC(A,1) {icc:z.3f}",
    Code.UNPAIRED: "{repeats:repeat} without a composite both times left out",
    Code.ONLY_BOTH: "only responses that both scored: {first} has {of_first}, {second:scorer} {of_second}",
    Code.BOTH_ICCS: "{first} {of_first:z.3f}, {second:scorer} {of_second:z.3f}",
    Code.TOO_FEW_FOR_P: "{instances:instance}: too few for a reliable interval and p value",
    Code.NO_TEST: (
        "no interval and no p value: an ICC is 1, or undefined without one of the instances"
    ),
    Code.NOT_DETECTABLE: "smaller than the difference detectable here with 80 % power, {least:.2f}",
    Code.RELIABILITY_UNEVEN: (
        "k is {raters:z.2f}, the harmonic mean of the clinicians of a response"
    ),
    Code.RELIABILITY_SHARED: (
        "{responses} responses from {instances:instance}: the intervals take them as independent"
    ),
    Code.RELIABILITY_WITHIN: "with each benchmark's own mean taken out, ICC(C,1) {icc:z.3f}",
}
# The name of the row says "fragile".
GENERAL: Mapping[Code, Message] = {
    Code.FRAGILE_PAIRS: _few_shared,
    Code.FRAGILE_REPEATS: FEW_AGAIN,
    Code.SHARED_INSTANCES: (
        "several responses of an instance: the F interval takes them as independent, the bootstrap "
        "does not"
    ),
}
