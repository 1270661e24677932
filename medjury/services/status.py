"""Where a study stands, from counts alone: how far each step is, its answer, and which one is next."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Engine

from calibration.notes import Figures, Note, Words, counted, note
from calibration.tables.numbers import money
from calibration.values import COMBINED
from data.person import OPERATOR
from data.record import UNBLINDED
from data.schema import Report
from data.study.calls import missing_verdicts
from data.study.costs import study_spending
from data.study.people import workloads
from data.study.rubrics import frozen_reports, jurors_with_ratings
from data.study.standing import benchmarks
from data.study.steering import readings_by_response, standing, who_can_rate
from data.study.verify import present_head
from data.study.withdrawals import ended_words, ended_work
from medjury.services.record import protocol_of

SHARED_BY = 2  # clinicians who have rated a response that tells how far they agree
DAY = 10  # signs of an ISO time that are its day
SHOWS_USE = "non_inferior"


@dataclass(frozen=True, slots=True)
class BenchmarkStatus:
    """A benchmark's counts; `rated` is the responses that a clinician has rated."""

    benchmark: str
    rubric: str
    instances: int
    responses: int
    rated: int


@dataclass(frozen=True, slots=True)
class CliniciansStatus:
    """The clinicians' work: `clinicians` rated or are to rate, `simulated` of them are made up.

    `assigned` and `done` are showings, hidden repeats among them; what was imported has none.
    `invited` may sign in, with work or without. `shared` responses are rated by two or more.
    `ended` says whose access has ended, and what they left open.
    """

    clinicians: int
    simulated: int
    assigned: int
    done: int
    responses_rated: int
    responses: int
    invited: int
    shared: int
    ended: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JuryStatus:
    """What jurors have done and cost; `missing` are verdicts asked for that do not stand."""

    jurors: tuple[str, ...]
    missing: int
    calls: int
    usd: float
    usd_unknown: int
    usd_in_flight: float


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """The newest frozen report; ICCs and kind of decision are None where it has none."""

    number: int
    at: str
    decision: str | None
    headline: str | None
    jury_icc: float | None
    clinicians_icc: float | None


@dataclass(frozen=True, slots=True)
class RecordStatus:
    """The record's head, since when the study is locked, and how often it was unblinded."""

    events: int
    head: str
    locked: str | None
    unblinded: int
    simulated: bool


@dataclass(frozen=True, slots=True)
class StudyStatus:
    """Where a study stands; `protocol_set_at` and `report` are None where there is none.

    `reports` counts the frozen reports; `report` is the newest.
    """

    protocol_set_at: str | None
    margin: float | None
    benchmarks: tuple[BenchmarkStatus, ...]
    clinicians: CliniciansStatus
    jury: JuryStatus
    report: ReportStatus | None
    record: RecordStatus
    reports: int


def status(engine: Engine) -> StudyStatus:
    """Return where a study stands; authors are not read, and nothing is computed but counts.

    The decision is that of the newest frozen report: computing it anew takes a bootstrap.
    """
    protocol, frozen = protocol_of(engine), frozen_reports(OPERATOR, engine)
    counts, shown = readings_by_response(OPERATOR, engine), benchmarks(engine)
    rated = {name: sum(times.values()) - times[0] for name, times in counts.items()}
    often = (pair for times in counts.values() for pair in times.items())
    work = workloads(OPERATOR, engine)
    spent = study_spending(engine)
    head, now = present_head(engine), standing(OPERATOR, engine)
    return StudyStatus(
        protocol.set_at if protocol else None,
        protocol.margin if protocol else None,
        tuple(
            BenchmarkStatus(
                one.name, one.rubric.name, one.instances, one.responses, rated.get(one.name, 0)
            )
            for one in shown
        ),
        CliniciansStatus(
            clinicians=len(work),
            simulated=sum(clinician.simulated for clinician in work),
            assigned=sum(clinician.total for clinician in work if not clinician.ended),
            done=sum(clinician.done for clinician in work if not clinician.ended),
            responses_rated=sum(rated.get(one.name, 0) for one in shown),
            responses=sum(one.responses for one in shown),
            invited=len(who_can_rate(OPERATOR, engine)),
            ended=tuple(ended_words(ended_work(engine))),
            shared=sum(number for readings, number in often if readings >= SHARED_BY),
        ),
        JuryStatus(
            tuple(jurors_with_ratings(OPERATOR, engine)),
            len(missing_verdicts(engine)),
            spent.calls,
            round(spent.known, 9),
            spent.unknown,
            round(spent.usd_in_flight, 9),
        ),
        _report(frozen[-1]) if frozen else None,
        RecordStatus(
            head.events or 0,
            head.sha256,
            now.locked,
            sum(act == UNBLINDED for act, *_ in now.steered),
            now.simulated,
        ),
        len(frozen),
    )


def _report(newest: Report) -> ReportStatus:
    decision = newest.body.get("decision") or {}
    icc = {
        row.get("scorer"): row.get("icc")
        for row in newest.body.get("rows", ())
        if row.get("benchmark") == COMBINED
    }
    return ReportStatus(
        newest.id or 0,
        newest.at.isoformat(),
        decision.get("kind"),
        decision.get("headline"),
        icc.get("jury"),
        icc.get("clinicians"),
    )


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


class StepState(StrEnum):
    """How far a step is."""

    DONE = "done"
    UNDER_WAY = "under_way"
    OPEN = "open"


TITLES = {step.value: step.value.capitalize() for step in Step}
TITLES["clinicians"] = "Clinicians' agreement"
STATES = {state.value: state.value.replace("_", " ") for state in StepState}
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


@dataclass(frozen=True, slots=True)
class StepStatus:
    """A step of a study: how far it is, its answer, and whether the next action belongs to it."""

    step: Step
    state: StepState
    answer: Note
    is_next: bool = False


Answered = tuple[StepState, Note]


def steps_of(study: StudyStatus) -> tuple[StepStatus, ...]:
    """Return every step of a study, in their order; from counts and the newest report alone."""
    answers: Mapping[Step, Callable[[StudyStatus], Answered]] = {
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
    following = STEP_OF[next_of(study)]
    return tuple(
        StepStatus(step, *answer(study), is_next=step is following)
        for step, answer in answers.items()
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


def _plan(study: StudyStatus) -> Answered:
    if study.protocol_set_at is None or study.margin is None:
        words = "it is not fixed yet how much worse than a clinician a jury may be"
        return StepState.OPEN, note("no_margin_yet", words)
    figures = {"margin": study.margin, "day": study.protocol_set_at[:DAY]}
    words = "the margin of {margin:g} is fixed since {day}"
    return StepState.DONE, note("margin_fixed", words, **figures)


def _responses(study: StudyStatus) -> Answered:
    if not study.clinicians.responses:
        return StepState.OPEN, note("no_response_yet", "no response has been imported yet")
    return StepState.DONE, note(
        "responses_in",
        "{responses:response} to {instances:instance} in {benchmarks:benchmark}",
        responses=study.clinicians.responses,
        instances=sum(benchmark.instances for benchmark in study.benchmarks),
        benchmarks=len(study.benchmarks),
    )


def _design(study: StudyStatus) -> Answered:
    people = study.clinicians
    counts = {"clinicians": people.clinicians, "simulated": people.simulated}
    who = "{clinicians:clinician}" + (" ({simulated} simulated)" if people.simulated else "")
    if people.assigned:
        words = f"{{readings:reading}} assigned to {who}"
        return StepState.DONE, note("work_assigned", words, readings=people.assigned, **counts)
    if people.clinicians:
        words = f"{who} rated elsewhere; nothing is assigned here"
        return StepState.DONE, note("rated_elsewhere", words, **counts)
    if people.invited:
        words = "{invited:clinician} can sign in, and no work is assigned yet"
        return StepState.UNDER_WAY, note("invited_only", words, invited=people.invited)
    return StepState.OPEN, note("nobody_to_rate", "no clinician has work yet")


def _of_work(study: StudyStatus) -> StepState:
    people = study.clinicians
    return StepState.DONE if people.done >= people.assigned else StepState.UNDER_WAY


def _rating(study: StudyStatus) -> Answered:
    people = study.clinicians
    if not people.responses_rated:
        return StepState.OPEN, note("nothing_rated_yet", "no clinician has rated a response yet")
    counts = {"rated": people.responses_rated, "responses": people.responses}
    words = "{rated:,} of {responses:,} responses rated by a clinician"
    if not people.assigned:
        return StepState.DONE, note("responses_rated", words, **counts)
    words = f"{{done:,}} of {{assigned:,}} assigned readings done; {words}"
    work = {"done": people.done, "assigned": people.assigned}
    return _of_work(study), note("readings_done", words, **work, **counts)


def _clinicians(study: StudyStatus) -> Answered:
    shared = study.clinicians.shared
    if not shared:
        return StepState.OPEN, note("none_read_twice", "no response is rated by two clinicians yet")
    verb = "is" if shared == 1 else "are"
    words = f"{{responses:response}} {verb} rated by two clinicians or more"
    return _of_work(study), note("read_twice", words, responses=shared)


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


def _agreement(study: StudyStatus) -> Answered:
    report = study.report
    if report is not None:
        iccs = {"jury": report.jury_icc, "clinicians": report.clinicians_icc}
        known = ", ".join(
            f"{name} {{{name}:z.2f}}" for name, icc in iccs.items() if icc is not None
        )
        words = "report {report} of {day}" + (f": ICC(C,2) {known}" if known else "")
        figures = {"report": report.number, "day": report.at[:DAY]}
        return StepState.DONE, note("kept", words, **figures, **iccs)
    if study.clinicians.responses_rated and study.jury.jurors:
        return StepState.UNDER_WAY, note("not_kept", "it can be computed; no report is frozen yet")
    words = "it takes responses that both clinicians and a jury have rated"
    return StepState.OPEN, note("both_needed", words)


def _use(study: StudyStatus) -> Answered:
    report = study.report
    if report is None or not report.headline:
        words = "no frozen report says what the jury may be used for"
        return StepState.OPEN, note("no_use_yet", words)
    told = {"report": report.number, "headline": Words(report.headline.removesuffix("."))}
    if report.decision == SHOWS_USE:
        return StepState.UNDER_WAY, note("use_shown", "report {report}: {headline}", **told)
    words = "report {report} shows no use yet: {headline}"
    return StepState.OPEN, note("no_use_shown", words, **told)


def _watch(study: StudyStatus) -> Answered:
    if study.report is None:
        words = "no report is frozen that later results could be compared with"
        return StepState.OPEN, note("nothing_to_watch", words)
    counts = {"reports": study.reports, "day": study.report.at[:DAY]}
    words = "{reports:frozen report}, the newest of {day}"
    return StepState.UNDER_WAY, note("watched_from", words, **counts)
