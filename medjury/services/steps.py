"""A study as a line of steps: how far each is, its answer, and which one is next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from calibration.notes import Figures, Note, Words, counted, filled, note
from calibration.tables.numbers import money
from medjury.services.status import ReportStatus, StudyStatus

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
STATES = {"done": "done", "under_way": "under way", "open": "open"}


DAY = 10  # signs of an ISO time that are its day
SHOWS_USE = "non_inferior"


class Step(StrEnum):
    """A step of a study, in their order."""

    PLAN = "plan"
    RESPONSES = "responses"
    DESIGN = "design"
    RATING = "rating"
    CLINICIANS = "clinicians"
    JURY = "jury"
    AGREEMENT = "agreement"
    USE = "use"
    WATCH = "watch"


class NextStep(StrEnum):
    """The one useful thing to do next."""

    IMPORT_RESPONSES = "import_responses"
    SET_PROTOCOL = "set_protocol"
    ASSIGN = "assign"
    RUN_JURY = "run_jury"
    LET_RATE = "let_rate"
    COMPLETE_JURY = "complete_jury"
    CALIBRATE = "calibrate"
    LOCK = "lock"
    SHARE = "share"


STEP_OF: Mapping[NextStep, Step] = {
    NextStep.IMPORT_RESPONSES: Step.RESPONSES,
    NextStep.SET_PROTOCOL: Step.PLAN,
    NextStep.ASSIGN: Step.DESIGN,
    NextStep.RUN_JURY: Step.JURY,
    NextStep.LET_RATE: Step.RATING,
    NextStep.COMPLETE_JURY: Step.JURY,
    NextStep.CALIBRATE: Step.AGREEMENT,
    NextStep.LOCK: Step.USE,
    NextStep.SHARE: Step.USE,
}


class StepState(StrEnum):
    """How far a step is."""

    DONE = "done"
    UNDER_WAY = "under_way"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class StepStatus:
    """A step of a study: how far it is, its answer, and whether the next action belongs to it."""

    step: Step
    state: StepState
    answer: Note
    is_next: bool = False


def steps_of(study: StudyStatus) -> tuple[StepStatus, ...]:
    """Return every step of a study, in their order; from counts and the newest report alone."""
    following = STEP_OF[next_of(study)]
    return tuple(
        StepStatus(step, *answer(study), is_next=step is following)
        for step, answer in _ANSWERS.items()
    )


def next_of(study: StudyStatus) -> NextStep:
    """Return the first thing to do in a study that is not done yet."""
    people = study.clinicians
    is_done = {
        NextStep.IMPORT_RESPONSES: bool(people.responses),
        NextStep.SHARE: study.record.locked is None,
        NextStep.SET_PROTOCOL: bool(study.protocol_set_at or people.responses_rated),
        NextStep.ASSIGN: bool(people.clinicians),
        NextStep.RUN_JURY: bool(study.jury.jurors),
        NextStep.LET_RATE: people.done >= people.assigned and people.responses_rated > 0,
        NextStep.COMPLETE_JURY: not study.jury.missing,
        NextStep.CALIBRATE: study.report is not None,
        NextStep.LOCK: study.record.locked is not None,
    }
    return next((step for step, done in is_done.items() if not done), NextStep.SHARE)


Answered = tuple[StepState, Note]


def _plan(study: StudyStatus) -> Answered:
    if study.protocol_set_at is None or study.margin is None:
        return StepState.OPEN, note(
            "no_margin_yet", "it is not fixed yet how much worse than a clinician a jury may be"
        )
    day = study.protocol_set_at[:DAY]
    return StepState.DONE, note(
        "margin_fixed",
        "the margin of {margin:g} is fixed since {day}",
        margin=study.margin,
        day=day,
    )


def _responses(study: StudyStatus) -> Answered:
    if not study.clinicians.responses:
        return StepState.OPEN, note("no_response_yet", "no response has been imported yet")
    instances = sum(benchmark.instances for benchmark in study.benchmarks)
    own = {"instances": instances, "benchmarks": len(study.benchmarks)}
    return StepState.DONE, note(
        "responses_in", _responses_in, responses=study.clinicians.responses, **own
    )


def _design(study: StudyStatus) -> Answered:
    people = study.clinicians
    counts = {"clinicians": people.clinicians, "simulated": people.simulated}
    if people.assigned:
        return StepState.DONE, note(
            "work_assigned", _work_assigned, readings=people.assigned, **counts
        )
    if people.clinicians:
        return StepState.DONE, note("rated_elsewhere", _rated_elsewhere, **counts)
    if people.invited:
        return StepState.UNDER_WAY, note(
            "invited_only",
            "{invited:clinician} can sign in, and no work is assigned yet",
            invited=people.invited,
        )
    return StepState.OPEN, note("nobody_to_rate", "no clinician has work yet")


def _rating(study: StudyStatus) -> Answered:
    people = study.clinicians
    if not people.responses_rated:
        return StepState.OPEN, note("nothing_rated_yet", "no clinician has rated a response yet")
    counts = {"rated": people.responses_rated, "responses": people.responses}
    if not people.assigned:
        return StepState.DONE, note(
            "responses_rated", "{rated:,} of {responses:,} responses rated by a clinician", **counts
        )
    state = StepState.DONE if people.done >= people.assigned else StepState.UNDER_WAY
    return state, note(
        "readings_done", _readings_done, done=people.done, assigned=people.assigned, **counts
    )


def _clinicians(study: StudyStatus) -> Answered:
    people = study.clinicians
    if not people.shared:
        return StepState.OPEN, note("none_read_twice", "no response is rated by two clinicians yet")
    state = StepState.DONE if people.done >= people.assigned else StepState.UNDER_WAY
    return state, note("read_twice", _shared, responses=people.shared)


def _jury(study: StudyStatus) -> Answered:
    jury = study.jury
    if not jury.jurors:
        return StepState.OPEN, note("nobody_sits", "no juror has rated a response yet")
    answer = note(
        "jury_rated",
        _jury_rated,
        jurors=len(jury.jurors),
        missing=jury.missing,
        calls=jury.calls,
        usd=jury.usd,
        unknown=jury.usd_unknown,
        in_flight=jury.usd_in_flight,
    )
    return StepState.UNDER_WAY if jury.missing else StepState.DONE, answer


def _agreement(study: StudyStatus) -> Answered:
    if study.report is not None:
        return StepState.DONE, _kept(study.report)
    if study.clinicians.responses_rated and study.jury.jurors:
        return StepState.UNDER_WAY, note("not_kept", "it can be computed; no report is frozen yet")
    return StepState.OPEN, note(
        "both_needed", "it takes responses that both clinicians and a jury have rated"
    )


def _kept(report: ReportStatus) -> Note:
    iccs = {"jury": report.jury_icc, "clinicians": report.clinicians_icc}
    return note("kept", _kept_words, report=report.number, day=report.at[:DAY], **iccs)


def _use(study: StudyStatus) -> Answered:
    report = study.report
    if report is None or not report.headline:
        return StepState.OPEN, note(
            "no_use_yet", "no frozen report says what the jury may be used for"
        )
    told = {"report": report.number, "headline": Words(report.headline.removesuffix("."))}
    if report.decision == SHOWS_USE:
        return StepState.UNDER_WAY, note("use_shown", "report {report}: {headline}", **told)
    return StepState.OPEN, note(
        "no_use_shown", "report {report} shows no use yet: {headline}", **told
    )


def _watch(study: StudyStatus) -> Answered:
    if study.report is None:
        return StepState.OPEN, note(
            "nothing_to_watch", "no report is frozen that later results could be compared with"
        )
    counts = {"reports": study.reports, "day": study.report.at[:DAY]}
    return StepState.UNDER_WAY, note(
        "watched_from", "{reports:frozen report}, the newest of {day}", **counts
    )


_ANSWERS: Mapping[Step, Callable[[StudyStatus], Answered]] = {
    Step.PLAN: _plan,
    Step.RESPONSES: _responses,
    Step.DESIGN: _design,
    Step.RATING: _rating,
    Step.CLINICIANS: _clinicians,
    Step.JURY: _jury,
    Step.AGREEMENT: _agreement,
    Step.USE: _use,
    Step.WATCH: _watch,
}


def _responses_in(figures: Figures) -> str:
    responses, instances, benchmarks = (
        counted(figures[f"{thing}s"], thing) for thing in ("response", "instance", "benchmark")
    )
    return f"{responses} to {instances} in {benchmarks}"


def _work_assigned(figures: Figures) -> str:
    return f"{counted(figures['readings'], 'reading')} assigned to {_clinicians_words(figures)}"


def _rated_elsewhere(figures: Figures) -> str:
    return f"{_clinicians_words(figures)} rated elsewhere; nothing is assigned here"


def _clinicians_words(figures: Figures) -> str:
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


def _kept_words(figures: Figures) -> str:
    values = {"jury": figures["jury"], "clinicians": figures["clinicians"]}
    told = [f"{name} {icc:z.2f}" for name, icc in values.items() if icc is not None]
    iccs = f": ICC(C,2) {', '.join(told)}" if told else ""
    return filled(f"report {{report}} of {{day}}{iccs}", figures)
