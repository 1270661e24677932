"""Where a study stands, from counts alone; `medjury.services.steps` says what to do next."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
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
    who_can_rate,
    workloads,
)
from data.queries.costs import calls_in_flight, spending
from data.queries.jury import missing_verdicts
from data.queries.record import present_head
from data.schema import Report
from medjury.services.record import protocol_of

SHARED_BY = 2  # clinicians who have rated a response that tells how far they agree


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
    invited
        Clinicians who may sign in, whether they have work or not.
    shared
        Responses that two clinicians or more have rated.
    """

    clinicians: int
    simulated: int
    assigned: int
    done: int
    responses_rated: int
    responses: int
    invited: int
    shared: int


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
    frozen = frozen_reports(OPERATOR, engine)
    return StudyStatus(
        protocol.set_at if protocol else None,
        protocol.margin if protocol else None,
        own,
        _clinicians(engine, own, sum(_rated(times, SHARED_BY) for times in counts.values())),
        _jury(engine),
        _report(frozen[-1]) if frozen else None,
        _record(engine),
        len(frozen),
    )


def _rated(times: Counter[int], least: int = 1) -> int:
    """Return how many responses have so many readings at least, from how many have each number."""
    return sum(number for readings, number in times.items() if readings >= least)


def _clinicians(engine: Engine, own: tuple[BenchmarkStatus, ...], shared: int) -> CliniciansStatus:
    work = workloads(OPERATOR, engine)
    return CliniciansStatus(
        len(work),
        sum(clinician.simulated for clinician in work),
        sum(clinician.total for clinician in work if not clinician.ended),
        sum(clinician.done for clinician in work if not clinician.ended),
        sum(benchmark.rated for benchmark in own),
        sum(benchmark.responses for benchmark in own),
        len(who_can_rate(OPERATOR, engine)),
        shared,
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


def _report(newest: Report) -> ReportStatus:
    decision: Mapping[str, Any] = newest.body.get("decision") or {}
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


def _record(engine: Engine) -> RecordStatus:
    head, now = present_head(engine), standing(OPERATOR, engine)
    lifted = sum(act == UNBLINDED for act, *_ in now.steered)
    return RecordStatus(head.events or 0, head.sha256, now.locked, lifted, now.simulated)
