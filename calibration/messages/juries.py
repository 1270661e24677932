"""Messages on juries: their ranking, which one to use, and the comparison of two."""

from collections.abc import Mapping

from calibration.codes import NoteCode as Code
from calibration.messages.decisions import VERDICTS
from calibration.messages.form import Figures, Message, filled
from calibration.tables.numbers import TERMINAL, chance, icc_interval, money, whole

WAY = "benchmark, criterion, method, responses, jurors needed"
REASONS: Mapping[Code, Message] = {}


def tried(juries: int, ways: int) -> str:
    """Return how many juries were compared with clinicians, and in how many ways, as text."""
    different = f"{whole(juries)} different {_juries(juries)}"
    return f"{different} in {whole(ways)} {'way' if ways == 1 else 'ways'} ({WAY})"


def _juries(number: int) -> str:
    return "jury" if number == 1 else "juries"


def _between(figures: Figures) -> str:
    ends = icc_interval(figures["low"], figures["high"], 3, TERMINAL)
    return f"95 % {ends}" if ends else "no interval"


def _tried_before(figures: Figures) -> str:
    before = "tried on this study before, other than these: "
    before += tried(figures["juries"], figures["ways"]) if figures["ways"] else "none"
    return f"{before}; these are now in the ledger"


def _ever_tried(figures: Figures) -> str:
    real = f"of real jurors, {tried(figures['juries'], figures['ways'])}"
    if not figures["simulated_ways"]:
        return real
    made_up = tried(figures["simulated_juries"], figures["simulated_ways"])
    return f"{real}; with simulated jurors, {made_up}"


def _cost_unknown(figures: Figures) -> str:
    number = figures["juries"]
    return f"{number} {_juries(number)} with a juror of unknown cost: not considered for best value"


def _expected_whole(figures: Figures) -> str:
    number, between = len(figures["jurors"]), _between(figures)
    text = (
        f"expected ICC(C,2) of all {number} jurors together with the clinicians on new responses: "
        f"{{expected:z.3f}}, {between}; observed here, with no choice of jury, {{icc:z.3f}}"
    )
    return filled(text, figures)


def _expected_chosen(figures: Figures) -> str:
    text = (
        "expected ICC(C,2) of {jurors} with the clinicians on new responses: {expected:z.3f}, "
        f"{_between(figures)}; observed here, where it was chosen from {{compared}} juries, "
        "{icc:z.3f}"
    )
    return filled(text, figures)


def _only_jury(figures: Figures) -> str:
    text = (
        f"ICC(C,2) of {{jurors}} with the clinicians: {{icc:z.3f}}, {_between(figures)}; there is no "
        "other jury to choose"
    )
    return filled(text, figures)


def _as_good(figures: Figures) -> str:
    how = "costs less" if figures["cheaper"] else "has fewer jurors"
    text = (
        "the highest expected ICC is that of {jurors}, {expected:z.3f}, by less than {alike}: the "
        f"jury that {how} does as well"
    )
    return filled(text, figures)


def _not_above_zero(figures: Figures) -> str:
    return filled(
        f"not shown to agree with the clinicians: {{jurors}}, expected ICC {{icc:z.3f}}, "
        f"{_between(figures)}",
        figures,
    )


def _costs(figures: Figures) -> str:
    price = " at made-up prices" if figures["made_up"] else ""
    return f"it costs {money(figures['usd'])} a response{price}"


def _juries_ranked(figures: Figures) -> str:
    least, most = figures["least"], figures["most"]
    n = f"{most}" if least == most else f"{least} to {most}"
    number = figures["juries"]
    text = f"{number} possible {_juries(number)} of {{jurors:juror}}, {n} responses to {{instances:instance}}"
    return filled(text, figures)


def _difference(figures: Figures) -> str:
    between = _between(figures)
    text = f"difference {{difference:z.3f}} ({between}), p {chance(figures['p'], TERMINAL)}"
    many = ", not corrected for the {n_tried} different comparisons looked at on this study"
    return filled(text + (many if figures["n_tried"] > 1 else ""), figures)


def _juries_compared(figures: Figures) -> str:
    text = filled("{responses:response} that both juries scored", figures)
    if figures["of_first"] == figures["of_second"] == figures["responses"]:
        return text
    return text + filled("; {first} has {of_first}, {second} has {of_second}", figures)


def _verdict_on(figures: Figures) -> str:
    return filled("the study's verdict on {jury}: ", figures) + VERDICTS[figures["verdict"]]


MESSAGES: Mapping[Code, Message] = {
    Code.VERDICT_ON: _verdict_on,
    Code.OWN_RESPONSES: (
        "juries rated {least} to {most} responses, and each is judged on its own: rank on common "
        "responses to judge all on the same ones"
    ),
    Code.COMMON_RESPONSES: (
        "all juries on the same {responses} responses, those that all jurors rated"
    ),
    Code.SIT_NOWHERE: "left out, with no scores or all scores equal: {jurors}",
    Code.TRIED_BEFORE: _tried_before,
    Code.EVER_TRIED: _ever_tried,
    Code.COST_UNKNOWN: _cost_unknown,
    Code.MADE_UP_PRICES: "US dollars at made-up prices of {jurors}; nothing was spent on them",
    Code.EXPECTED_CHOSEN: _expected_chosen,
    Code.EXPECTED_WHOLE: _expected_whole,
    Code.ONLY_JURY: _only_jury,
    Code.AS_GOOD: _as_good,
    Code.HIGHEST_IS_LUCK: (
        "the highest observed ICC, {icc:z.3f}, is that of {jurors}; the ICC expected on new responses "
        "of the best of {compared} juries is {expected:z.3f}"
    ),
    Code.CHOOSING_EXPECTED: (
        "choosing a jury brings no gain: {expected:z.3f} is expected of the best of {compared} "
        "juries, whichever it is"
    ),
    Code.ALL_TOGETHER: "expected of all {jurors} jurors together, without a choice: {expected:z.3f}",
    Code.NOT_ABOVE_ZERO: _not_above_zero,
    Code.NO_EXPECTED: (
        "the ICC on new responses cannot be estimated: that takes at least 2 instances and resamples"
    ),
    Code.FEW_TO_CHOOSE: "{instances:instance}: choosing a jury takes at least {least}",
    Code.ICC_LOST: ("{lost} of {resamples} resamples have no ICC: its interval is unreliable"),
    Code.COSTS: _costs,
    Code.COSTS_UNKNOWN: (
        "what it costs is not known: scores came from a file, or a call has no price"
    ),
    Code.JURIES_RANKED: _juries_ranked,
    Code.DO_CONFIRM_JURY: (
        "have clinicians rate new responses, and judge {jurors} by those: an expected ICC is an "
        "estimate, not an observation"
    ),
    Code.DO_CALIBRATE_JURY: (
        "compare {jurors} with a clinician: a ranking does not say whether it agrees as well as one"
    ),
    Code.DO_RANK_COMMON: (
        "rank the juries on common responses: each was judged on its own, and some may have had "
        "easier ones"
    ),
    Code.DO_MORE_TO_CHOOSE: (
        "have clinicians and jurors rate more: about {responses} responses in all would show that this "
        "jury agrees with clinicians, if its ICC stays what it is"
    ),
    Code.DO_OTHER_JURORS: "run other jurors: none of these is seen to agree with the clinicians",
    Code.DO_MORE_JURORS: "run more jurors, to have juries to choose from",
    Code.DO_SHARED_RESPONSES: "have clinicians and jurors rate more of the same responses",
    Code.TWO_ICCS: (
        "on the same responses: {first} ICC(C,2) {icc_first:z.3f}, {second} {icc_second:z.3f}"
    ),
    Code.DIFFERENCE: _difference,
    Code.NONE_SHOWN: "the interval includes 0: a difference is neither shown nor excluded",
    Code.JURIES_COMPARED: _juries_compared,
    Code.DO_TAKE_JURY: "use {jurors}, unless the lower cost of the other outweighs the difference",
    Code.DO_CHEAPER_JURY: "use the one that costs less",
}
