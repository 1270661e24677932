"""What of a study answers items of reporting guidelines: each piece of evidence is computed once."""

import math
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.decision import NOTHING_RATED, Decision
from calibration.dossier import Evidence, EvidenceKind
from calibration.protocol import Protocol
from calibration.values import COMBINED, AnalysisOptions
from data.errors import TooFew, Unrated
from data.guidelines import EvidenceCode as Code
from data.person import OPERATOR, UNBLINDED
from data.queries import benchmarks, frozen_reports, materials, readings_by_response
from data.queries.costs import spending
from data.queries.descriptions import consents, description_versions
from data.queries.jury import by_juror, juror_profiles, missing_verdicts
from data.queries.learning import improvements
from data.queries.ledger import compositions_tried
from data.queries.record import acts, locked_since, present_head
from data.queries.study import Facts, facts
from medjury.services.methods import readings_of
from medjury.services.record import protocol_of

if TYPE_CHECKING:
    from calibration.scope import AgreementRow
    from medjury.services.calibrate import Calibration

TABLE_FILE = "agreement.csv"
SHARED_BY = 2  # clinicians whose readings of one response tell how far they agree
SOFTWARE = ("medjury", "numpy", "pandas", "scipy", "statsmodels")
Tick = Callable[[float], None]
Found = Mapping[Code, tuple[Evidence, ...]]


@dataclass(frozen=True)
class StudyEvidence:
    """What a study has to answer with; a code that is not in `found`, or has nothing, is missing."""

    found: Found
    decision: Decision
    simulated: tuple[str, ...]
    agreement: str = ""
    warnings: tuple[str, ...] = field(default=())


def study_evidence(engine: Engine, reps: int, tick: Tick | None = None) -> StudyEvidence:
    """Return all evidence of a study, its figures analysed as the protocol says where there is one.

    The jury that is looked at is noted in the ledger. No author of a response is read.
    """
    counts, protocol = facts(engine), protocol_of(engine)
    calibration = _calibrated(engine, protocol, reps, tick)
    found: dict[Code, Iterable[Evidence]] = {
        Code.RESPONSES: _responses(engine, counts),
        Code.RUBRICS: _rubrics(engine),
        Code.REFERENCES: _references(engine),
        Code.CLINICIANS: _clinicians(counts),
        Code.DATES: _dates(counts),
        Code.REPEATS: [_figure("repeats", counts.repeats)] if counts.repeats else [],
        Code.ALLOCATION: _allocation(counts),
        Code.TRAINING: _training(counts),
        Code.ADJUDICATION: [
            _figure(name, number) for name, number in counts.adjudicated.items() if number
        ],
        Code.DESCRIPTION: _description(engine),
        Code.CONSENT: _consent(engine, counts),
        Code.PROTOCOL: _protocol(protocol),
        Code.COSTS: _costs(engine),
        Code.RECORD: _record(engine),
        Code.LEDGER: _ledger(engine),
        Code.MONITORING: _monitoring(engine),
        Code.IMPROVEMENT: _improvement(engine),
        Code.SOFTWARE: _software(),
    }
    table = ""
    if calibration is not None:
        found |= _of_calibration(engine, calibration, counts)
        table = _table(calibration)
        found[Code.TABLE] = [Evidence(EvidenceKind.FILE, "agreement_table", text=TABLE_FILE)]
    return StudyEvidence(
        {code: tuple(of) for code, of in found.items()},
        calibration.decision if calibration else NOTHING_RATED,
        tuple(name for kind in counts.raters.values() for name in kind.simulated),
        table,
        calibration.warnings if calibration else (),
    )


def _calibrated(
    engine: Engine, protocol: Protocol | None, reps: int, tick: Tick | None
) -> "Calibration | None":
    """Return the figures; None where clinicians have not rated, or too little, for any."""
    from medjury.services.calibrate import CalibrationQuestion, calibrate

    options = protocol.analysis(reps, 0) if protocol else AnalysisOptions(reps=reps)
    try:
        return calibrate(engine, CalibrationQuestion(options, reference=False), tick=tick)
    except (Unrated, TooFew):
        return None


def _table(calibration: "Calibration") -> str:
    from calibration.writers.agreement_table import table_csv

    options = calibration.question.options
    settings = {"method": options.method, "reps": options.reps, "seed": options.seed}
    return table_csv(calibration.rows, settings)


def _figure(
    name: str,
    value: float,
    of: str = "",
    low: float | None = None,
    high: float | None = None,
) -> Evidence:
    """Return a figure; what is not finite is undefined."""
    return Evidence(EvidenceKind.FIGURE, name, of, _known(value), _known(low), _known(high))


def _known(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _word(name: str, text: str, of: str = "") -> Evidence:
    return Evidence(EvidenceKind.FIGURE, name, of, text=text)


def _hash(name: str, sha256: str, of: str = "") -> Evidence:
    return Evidence(EvidenceKind.HASH, name, of, text=sha256)


def _responses(engine: Engine, counts: Facts) -> Iterator[Evidence]:
    every = benchmarks(engine)
    if number := sum(benchmark.responses for benchmark in every):
        yield _figure("responses", number)
        yield _figure("instances", sum(benchmark.instances for benchmark in every))
        yield _figure("benchmarks", len(every))
        yield _figure("models", counts.models)


def _rubrics(engine: Engine) -> Iterator[Evidence]:
    rubrics = {benchmark.rubric.sha256: benchmark.rubric for benchmark in benchmarks(engine)}
    for sha256, rubric in sorted(rubrics.items()):
        yield _hash("rubric", sha256, f"{rubric.name} {rubric.version}")


def _references(engine: Engine) -> Iterator[Evidence]:
    if number := sum(material.references for material in materials(OPERATOR, engine)):
        yield _figure("with_reference", number)


def _clinicians(counts: Facts) -> Iterator[Evidence]:
    people = counts.raters["clinician"]
    if people.names:
        yield _figure("clinicians", len(people.names))
        for name, number in people.specialties.items():
            yield _figure("specialty", number, name)


def _dates(counts: Facts) -> Iterator[Evidence]:
    if counts.first and counts.last:
        yield _word("first_rating", f"{counts.first:%Y-%m-%d}")
        yield _word("last_rating", f"{counts.last:%Y-%m-%d}")


def _allocation(counts: Facts) -> Iterator[Evidence]:
    if counts.per_response:
        yield _figure("per_response", int(counts.per_response))
        for seed in counts.seeds:
            yield _figure("seed", seed)


def _training(counts: Facts) -> Iterator[Evidence]:
    if counts.trained:
        yield _figure("trained", counts.trained)
        yield _figure("training", counts.training)


def _description(engine: Engine) -> Iterator[Evidence]:
    if versions := description_versions(engine):
        yield _hash("description", versions[-1].sha256)
        yield _figure("guideline_pages", len(versions[-1].description.guideline))


def _consent(engine: Engine, counts: Facts) -> Iterator[Evidence]:
    rated = counts.raters["clinician"].names
    if number := sum(consent.holds and consent.handle in rated for consent in consents(engine)):
        yield _figure("consented", number)
        yield _figure("clinicians", len(rated))


def _protocol(protocol: Protocol | None) -> Iterator[Evidence]:
    if protocol is not None:
        yield _hash("protocol", protocol.sha256)
        yield _word("protocol_set", protocol.set_at)
        yield _figure("margin", protocol.margin)
        yield _figure("ratings_before_protocol", protocol.set_after_ratings)


def _costs(engine: Engine) -> Iterator[Evidence]:
    spent = spending(engine)
    if spent.calls:
        yield _figure("calls", spent.calls)
        yield _figure("usd", spent.usd)
        yield _figure("usd_unknown", spent.unknown)


def _record(engine: Engine) -> Iterator[Evidence]:
    head = present_head(engine)
    if head.events:
        yield _hash("record_head", head.sha256)
        yield _figure("events", head.events)
        if since := locked_since(engine):
            yield _word("locked", f"since {since}")
        yield _figure("unblinded", len(acts(engine, UNBLINDED)))


def _ledger(engine: Engine) -> Iterator[Evidence]:
    if tried := {(*entry.jurors, entry.needed) for entry in compositions_tried(engine)}:
        yield _figure("juries_tried", len(tried))


def _monitoring(engine: Engine) -> Iterator[Evidence]:
    if frozen := frozen_reports(OPERATOR, engine):
        yield _figure("frozen_reports", len(frozen))
        yield _word("last_report", f"{frozen[-1].at:%Y-%m-%d}")


def _improvement(engine: Engine) -> Iterator[Evidence]:
    ended = [one for one in improvements(engine) if one.result]
    if ended:
        yield _figure("improvements", len(ended))
        yield _word("outcome", str(ended[-1].result.get("outcome", "")))


def _software() -> Iterator[Evidence]:
    yield _word("version", platform.python_version(), "Python")
    for package in SOFTWARE:
        yield _word("version", version(package), package)


def _of_calibration(
    engine: Engine, calibration: "Calibration", counts: Facts
) -> dict[Code, Iterable[Evidence]]:
    """Return what rests on ratings."""
    readings, incomplete = readings_of(calibration.scores)
    by_scorer = {
        row.scorer: row for row in calibration.rows if row.benchmark == _widest(calibration)
    }
    return {
        Code.READINGS: _read(engine, readings),
        Code.BLINDING: _blinding(engine, counts, readings),
        Code.MISSING: _missing(engine, calibration, incomplete),
        Code.JURORS: _jurors(engine, calibration),
        Code.AGREEMENT: _agreement(by_scorer, "jury", "jury_icc"),
        Code.CLINICIAN_AGREEMENT: _agreement(by_scorer, "clinicians", "clinician_icc"),
        Code.LIKE_FOR_LIKE: _agreement(by_scorer, "like_for_like", "like_for_like"),
        Code.METRICS: _metrics(by_scorer),
        Code.DECISION: _decision(calibration),
        Code.SUBGROUPS: _subgroups(calibration),
        Code.DETECTION: _detection(calibration),
    }


def _widest(calibration: "Calibration") -> str:
    """Return what all figures of a study are of: all benchmarks combined, or the only one."""
    names = [row.benchmark for row in calibration.rows]
    return COMBINED if COMBINED in names else names[0] if names else COMBINED


def _read(engine: Engine, readings: int) -> Iterator[Evidence]:
    if readings:
        yield _figure("readings", readings)
        by_response = readings_by_response(OPERATOR, engine).values()
        several = sum(
            number for times in by_response for often, number in times.items() if often >= SHARED_BY
        )
        yield _figure("read_twice", several)


def _blinding(engine: Engine, counts: Facts, readings: int) -> Iterator[Evidence]:
    blinded = readings - counts.elsewhere
    if blinded > 0:
        yield _figure("blinded_readings", blinded)
        yield _figure("readings_elsewhere", counts.elsewhere)
        yield _figure("masked", counts.masked)
        yield _figure("unblinded", len(acts(engine, UNBLINDED)))


def _missing(engine: Engine, calibration: "Calibration", incomplete: int) -> Iterator[Evidence]:
    scores = calibration.scores
    ratings = scores.ratings
    rated = set(ratings.loc[ratings["kind"] == "clinician", "response_id"])
    yield _figure("incomplete", incomplete)
    yield _figure("unread", len(set(scores.responses["response_id"]) - rated))
    for juror, statuses in by_juror(missing_verdicts(engine)).items():
        yield _figure("missing_verdicts", sum(statuses.values()), juror)


def _jurors(engine: Engine, calibration: "Calibration") -> Iterator[Evidence]:
    from medjury.services.reports import juror_of_report

    profiles = juror_profiles(engine, calibration.jury)
    for name in calibration.jury:
        juror = juror_of_report(name, profiles.get(name, {}))
        model = f" ({juror.model})" if juror.model and juror.model != name else ""
        if juror.sha256:
            yield _hash("juror", juror.sha256, f"{name}{model}")
        else:
            yield _word("juror", "rated elsewhere, settings not known", name)


def _agreement(rows: "Mapping[str, AgreementRow]", scorer: str, name: str) -> Iterator[Evidence]:
    row = rows.get(scorer)
    if row is not None and row.n_responses:
        yield _figure(name, row.icc, low=row.boot_low, high=row.boot_high)


def _metrics(rows: "Mapping[str, AgreementRow]") -> Iterator[Evidence]:
    for scorer, row in rows.items():
        if scorer.startswith("metric:"):
            of = scorer.removeprefix("metric:")
            yield _figure("metric_icc", row.icc, of, low=row.boot_low, high=row.boot_high)


def _decision(calibration: "Calibration") -> Iterator[Evidence]:
    decision = calibration.decision
    if calibration.jury:
        yield _word("decision", decision.headline)
        yield _figure("decision_estimate", decision.estimate, low=decision.low, high=decision.high)


def _subgroups(calibration: "Calibration") -> Iterator[Evidence]:
    for row in calibration.subgroups:
        if row.benchmark == _widest(calibration):
            yield _figure("subgroup_icc", row.icc, row.label, low=row.low, high=row.high)
            yield _figure(
                "subgroup_bias", row.bias, row.label, low=row.bias_low, high=row.bias_high
            )
            yield _word("finding", row.finding.value, row.label)


def _detection(calibration: "Calibration") -> Iterator[Evidence]:
    for row in calibration.detection.rows:
        if row.scorer == "jury" and row.benchmark == _widest(calibration) and row.n:
            of = f"({row.criterion} at {row.threshold:g} or below)"
            yield _figure("unsafe", row.n_bad, of)
            yield _figure("missed", _number(row.n_missed), of)
            yield _figure(
                "sensitivity", row.sensitivity, of, row.sensitivity_low, row.sensitivity_high
            )


def _number(count: int | None) -> float:
    return math.nan if count is None else count
