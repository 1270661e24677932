"""A study as a line of steps: how far each is, its answer, and which one is next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from calibration.codes import StepCode as Code
from calibration.messages.form import Words
from calibration.values import Note, note
from medjury.services.status import ReportStatus, StudyStatus

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
        return StepState.OPEN, note(Code.NO_MARGIN_YET)
    day = study.protocol_set_at[:DAY]
    return StepState.DONE, note(Code.MARGIN_FIXED, margin=study.margin, day=day)


def _responses(study: StudyStatus) -> Answered:
    if not study.clinicians.responses:
        return StepState.OPEN, note(Code.NO_RESPONSE_YET)
    instances = sum(benchmark.instances for benchmark in study.benchmarks)
    own = {"instances": instances, "benchmarks": len(study.benchmarks)}
    return StepState.DONE, note(Code.RESPONSES_IN, responses=study.clinicians.responses, **own)


def _design(study: StudyStatus) -> Answered:
    people = study.clinicians
    counts = {"clinicians": people.clinicians, "simulated": people.simulated}
    if people.assigned:
        return StepState.DONE, note(Code.WORK_ASSIGNED, readings=people.assigned, **counts)
    if people.clinicians:
        return StepState.DONE, note(Code.RATED_ELSEWHERE, **counts)
    if people.invited:
        return StepState.UNDER_WAY, note(Code.INVITED_ONLY, invited=people.invited)
    return StepState.OPEN, note(Code.NOBODY_TO_RATE)


def _rating(study: StudyStatus) -> Answered:
    people = study.clinicians
    if not people.responses_rated:
        return StepState.OPEN, note(Code.NOTHING_RATED_YET)
    counts = {"rated": people.responses_rated, "responses": people.responses}
    if not people.assigned:
        return StepState.DONE, note(Code.RESPONSES_RATED, **counts)
    state = StepState.DONE if people.done >= people.assigned else StepState.UNDER_WAY
    return state, note(Code.READINGS_DONE, done=people.done, assigned=people.assigned, **counts)


def _clinicians(study: StudyStatus) -> Answered:
    people = study.clinicians
    if not people.shared:
        return StepState.OPEN, note(Code.NONE_READ_TWICE)
    state = StepState.DONE if people.done >= people.assigned else StepState.UNDER_WAY
    return state, note(Code.READ_TWICE, responses=people.shared)


def _jury(study: StudyStatus) -> Answered:
    jury = study.jury
    if not jury.jurors:
        return StepState.OPEN, note(Code.NOBODY_SITS)
    answer = note(
        Code.JURY_RATED,
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
        return StepState.UNDER_WAY, note(Code.NOT_KEPT)
    return StepState.OPEN, note(Code.BOTH_NEEDED)


def _kept(report: ReportStatus) -> Note:
    iccs = {"jury": report.jury_icc, "clinicians": report.clinicians_icc}
    return note(Code.KEPT, report=report.number, day=report.at[:DAY], **iccs)


def _use(study: StudyStatus) -> Answered:
    report = study.report
    if report is None or not report.headline:
        return StepState.OPEN, note(Code.NO_USE_YET)
    told = {"report": report.number, "headline": Words(report.headline.removesuffix("."))}
    if report.decision == SHOWS_USE:
        return StepState.UNDER_WAY, note(Code.USE_SHOWN, **told)
    return StepState.OPEN, note(Code.NO_USE_SHOWN, **told)


def _watch(study: StudyStatus) -> Answered:
    if study.report is None:
        return StepState.OPEN, note(Code.NOTHING_TO_WATCH)
    counts = {"reports": study.reports, "day": study.report.at[:DAY]}
    return StepState.UNDER_WAY, note(Code.WATCHED_FROM, **counts)


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
