"""Where a study stands, from counts alone, and what to do next."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Engine

from calibration.values import COMBINED
from data.person import OPERATOR, UNBLINDED
from data.queries import (
    benchmarks,
    frozen_reports,
    jurors_with_ratings,
    readings_by_response,
    standing,
    workloads,
)
from data.queries.costs import calls_in_flight, spending
from data.queries.jury import missing_verdicts
from data.queries.record import present_head
from medjury.services.record import protocol_of


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
    """The clinicians' work.

    Attributes
    ----------
    clinicians
        Those who rated or are to rate; `simulated` of them are made up.
    assigned, done
        Showings, hidden repeats among them; what was imported has none.
    responses_rated, responses
        Responses that at least one clinician has rated, of all.
    """

    clinicians: int
    simulated: int
    assigned: int
    done: int
    responses_rated: int
    responses: int


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
    """Where a study stands; `protocol_set_at` and `report` are None where there is none."""

    protocol_set_at: str | None
    margin: float | None
    benchmarks: tuple[BenchmarkStatus, ...]
    clinicians: CliniciansStatus
    jury: JuryStatus
    report: ReportStatus | None
    record: RecordStatus

    @property
    def next(self) -> NextStep:
        """Return the first step of a study that is not done yet."""
        people = self.clinicians
        steps = {
            NextStep.IMPORT_RESPONSES: bool(people.responses),
            NextStep.SHARE: self.record.locked is None,
            NextStep.SET_PROTOCOL: bool(self.protocol_set_at or people.responses_rated),
            NextStep.ASSIGN: bool(people.clinicians),
            NextStep.RUN_JURY: bool(self.jury.jurors),
            NextStep.LET_RATE: people.done >= people.assigned and people.responses_rated > 0,
            NextStep.COMPLETE_JURY: not self.jury.missing,
            NextStep.CALIBRATE: self.report is not None,
            NextStep.LOCK: self.record.locked is not None,
        }
        return next((step for step, is_done in steps.items() if not is_done), NextStep.SHARE)


def status(engine: Engine) -> StudyStatus:
    """Return where a study stands; authors are not read, and nothing is computed but counts.

    The decision is that of the newest frozen report: computing it anew takes a bootstrap.
    """
    protocol = protocol_of(engine)
    counts = readings_by_response(OPERATOR, engine)
    own = tuple(
        BenchmarkStatus(
            benchmark.name,
            benchmark.rubric.name,
            benchmark.instances,
            benchmark.responses,
            _rated(counts.get(benchmark.name, Counter())),
        )
        for benchmark in benchmarks(engine)
    )
    return StudyStatus(
        protocol.set_at if protocol else None,
        protocol.margin if protocol else None,
        own,
        _clinicians(engine, own),
        _jury(engine),
        _report(engine),
        _record(engine),
    )


def _rated(times: Counter[int]) -> int:
    """Return how many responses were rated at all, from how many were rated so many times."""
    return sum(number for readings, number in times.items() if readings)


def _clinicians(engine: Engine, own: tuple[BenchmarkStatus, ...]) -> CliniciansStatus:
    work = workloads(OPERATOR, engine)
    return CliniciansStatus(
        len(work),
        sum(clinician.simulated for clinician in work),
        sum(clinician.total for clinician in work if not clinician.ended),
        sum(clinician.done for clinician in work if not clinician.ended),
        sum(benchmark.rated for benchmark in own),
        sum(benchmark.responses for benchmark in own),
    )


def _jury(engine: Engine) -> JuryStatus:
    spent, missing = spending(engine), missing_verdicts(engine)
    return JuryStatus(
        tuple(jurors_with_ratings(OPERATOR, engine)),
        len(missing),
        spent.calls,
        round(spent.usd, 9),
        spent.unknown,
        round(calls_in_flight(engine).usd, 9),
    )


def _report(engine: Engine) -> ReportStatus | None:
    every = frozen_reports(OPERATOR, engine)
    if not every:
        return None
    newest = every[-1]
    decision: Mapping[str, Any] = newest.body.get("decision") or {}
    icc = {
        row.get("scorer"): row.get("icc")
        for row in newest.body.get("rows", ())
        if row.get("benchmark") == COMBINED
    }
    return ReportStatus(
        newest.id,
        newest.at.isoformat(),
        decision.get("kind"),
        decision.get("headline"),
        icc.get("jury"),
        icc.get("clinicians"),
    )


def _record(engine: Engine) -> RecordStatus:
    head, now = present_head(engine), standing(OPERATOR, engine)
    lifted = sum(act == UNBLINDED for act, *_ in now.steered)
    return RecordStatus(head.events or 0, head.sha256, now.locked, lifted, now.simulated)
