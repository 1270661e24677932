"""Messages on where a study stands: the answer of each of its steps."""

from collections.abc import Mapping

from calibration.codes import AnyCode
from calibration.codes.steps import StepCode as Code
from calibration.messages.form import Figures, Message, counted, filled
from calibration.tables.numbers import TERMINAL, icc_interval, money

TITLES = {
    "plan": "Plan",
    "responses": "Responses",
    "design": "Design",
    "rating": "Rating",
    "clinicians": "Clinicians' agreement",
    "jury": "Jury",
    "agreement": "Agreement",
    "use": "Use",
    "watch": "Watch",
}
NOT_THE_JURYS = "not comparable with the jury's, which is with the mean of several clinicians"
NOT_THE_CLINICIANS = "not comparable with the clinicians', which is of one with one other"
STATES = {"done": "done", "under_way": "under way", "open": "open"}


def _responses_in(figures: Figures) -> str:
    responses, instances, benchmarks = (
        counted(figures[f"{thing}s"], thing) for thing in ("response", "instance", "benchmark")
    )
    return f"{responses} to {instances} in {benchmarks}"


def _work_assigned(figures: Figures) -> str:
    return f"{counted(figures['readings'], 'reading')} assigned to {_clinicians(figures)}"


def _rated_elsewhere(figures: Figures) -> str:
    return f"{_clinicians(figures)} rated elsewhere; nothing is assigned here"


def _clinicians(figures: Figures) -> str:
    """Return how many clinicians there are, and how many of them are made up."""
    made_up = f" ({figures['simulated']} simulated)" if figures["simulated"] else ""
    return f"{counted(figures['clinicians'], 'clinician')}{made_up}"


def _readings_done(figures: Figures) -> str:
    return filled(
        "{done:,} of {assigned:,} assigned readings done; {rated:,} of {responses:,} responses rated by a "
        "clinician",
        figures,
    )


def _shared(figures: Figures) -> str:
    verb = "is" if figures["responses"] == 1 else "are"
    return f"{counted(figures['responses'], 'response')} {verb} rated by two clinicians or more"


def _jury_rated(figures: Figures) -> str:
    missing, unknown = figures["missing"], figures["unknown"]
    verdicts = (
        f"{counted(missing, 'verdict')} missing"
        if missing
        else "no verdict missing in the benchmarks they were asked about"
    )
    price = f" and {counted(unknown, 'call')} of unknown price" if unknown else ""
    flight = f"; at most {money(figures['in_flight'])} in flight" if figures["in_flight"] else ""
    spent = f"; {counted(figures['calls'], 'call')}, {money(figures['usd'])}{price}{flight}"
    called = spent if figures["calls"] or flight else ""
    return f"{counted(figures['jurors'], 'juror')} rated; {verdicts}{called}"


def _icc(figures: Figures, of: str, on: str) -> str:
    """Return an ICC with its interval, whose it is, and on how much it rests."""
    ends = icc_interval(figures["low"], figures["high"], 2, TERMINAL)
    interval = f" (95 % interval {ends})" if ends else ""
    return filled(f"ICC(C,2) {of} {{icc:z.2f}}{interval} on {on}", figures)


def _of_clinicians(figures: Figures) -> str:
    return f"{_icc(figures, 'of one clinician with one other', '{pairs:pair}')}; {NOT_THE_JURYS}"


def _of_jury(figures: Figures) -> str:
    told = _icc(figures, "of the jury with the mean of the clinicians", "{responses:response}")
    return f"{told}; {NOT_THE_CLINICIANS}"


def _kept(figures: Figures) -> str:
    values = {"jury": figures["jury"], "clinicians": figures["clinicians"]}
    told = [f"{name} {icc:z.2f}" for name, icc in values.items() if icc is not None]
    iccs = f": ICC(C,2) {', '.join(told)}" if told else ""
    return filled(f"report {{report}} of {{day}}{iccs}", figures)


REASONS: Mapping[AnyCode, Message] = {}
MESSAGES: Mapping[AnyCode, Message] = {
    Code.NO_MARGIN_YET: "it is not fixed yet how much worse than a clinician a jury may be",
    Code.MARGIN_FIXED: "the margin of {margin:g} is fixed since {day}",
    Code.NO_RESPONSE_YET: "no response has been imported yet",
    Code.RESPONSES_IN: _responses_in,
    Code.NOBODY_TO_RATE: "no clinician has work yet",
    Code.INVITED_ONLY: "{invited:clinician} can sign in, and no work is assigned yet",
    Code.RATED_ELSEWHERE: _rated_elsewhere,
    Code.WORK_ASSIGNED: _work_assigned,
    Code.NOTHING_RATED_YET: "no clinician has rated a response yet",
    Code.READINGS_DONE: _readings_done,
    Code.RESPONSES_RATED: "{rated:,} of {responses:,} responses rated by a clinician",
    Code.NONE_READ_TWICE: "no response is rated by two clinicians yet",
    Code.READ_TWICE: _shared,
    Code.AGREEMENT_OF_CLINICIANS: _of_clinicians,
    Code.NOBODY_SITS: "no juror has rated a response yet",
    Code.JURY_RATED: _jury_rated,
    Code.BOTH_NEEDED: "it takes responses that both clinicians and a jury have rated",
    Code.NOT_KEPT: "it can be computed; no report is frozen yet",
    Code.KEPT: _kept,
    Code.AGREEMENT_OF_JURY: _of_jury,
    Code.NO_FIGURE: "there is no figure: {reason}",
    Code.NO_USE_YET: "no frozen report says what the jury may be used for",
    Code.NO_USE_SHOWN: "report {report} shows no use yet: {headline}",
    Code.USE_SHOWN: "report {report}: {headline}",
    Code.NOTHING_TO_WATCH: "no report is frozen that later results could be compared with",
    Code.WATCHED_FROM: "{reports:frozen report}, the newest of {day}",
}
