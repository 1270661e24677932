"""What of a study answers items of reporting guidelines: each piece of evidence is computed once."""

import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.decision import NOTHING_RATED, Decision
from calibration.dossier import Evidence, figure, hashed, word
from calibration.protocol import Protocol
from calibration.values import AnalysisOptions
from data.errors import TooFew, Unrated
from data.guidelines import EvidenceCode as Code
from data.person import UNBLINDED, is_blind
from data.queries import benchmarks
from data.queries.costs import call_dates, spending
from data.queries.descriptions import description_versions
from data.queries.learning import improvements
from data.queries.record import acts, locked_since, present_head
from data.queries.study import Facts
from medjury.services.evidence_figures import rated_evidence
from medjury.services.improvement import Outcome
from medjury.services.record import protocol_of

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration

SOFTWARE = ("medjury", "numpy", "pandas", "scipy", "statsmodels")
Tick = Callable[[float], None]
Found = Mapping[Code, tuple[Evidence, ...]]


@dataclass(frozen=True)
class StudyEvidence:
    """What a study has to answer with.

    A code that is not in `found`, or has nothing, is missing. `calibration` is None where clinicians
    have not rated, or too little, for any figure.
    """

    found: Found
    decision: Decision
    simulated: tuple[str, ...]
    calibration: "Calibration | None" = None


def study_evidence(
    engine: Engine, counts: Facts, reps: int, tick: Tick | None = None
) -> StudyEvidence:
    """Return all evidence of a study, its figures analysed as the protocol says where there is one.

    The jury that is looked at is noted in the ledger. No author of a response is read.
    """
    protocol = protocol_of(engine)
    options = protocol.analysis(reps, 0) if protocol else AnalysisOptions(reps=reps)
    calibration = _calibrated(engine, options, tick)
    found = recorded_evidence(engine, counts, protocol)
    if calibration is not None:
        found |= rated_evidence(engine, calibration, counts)
        found[Code.TABLE] = [word("agreement_table", "below, under Results")]
    return StudyEvidence(
        {code: tuple(of) for code, of in found.items()},
        calibration.decision if calibration else NOTHING_RATED,
        tuple(name for kind in counts.raters.values() for name in kind.simulated),
        calibration,
    )


def recorded_evidence(
    engine: Engine, counts: Facts, protocol: Protocol | None
) -> dict[Code, Iterable[Evidence]]:
    """Return what answers items without an analysis: counts, hashes, and what the record holds."""
    return {
        Code.RESPONSES: _responses(engine, counts),
        Code.RUBRICS: _rubrics(engine),
        Code.CLINICIANS: _clinicians(counts),
        Code.ALLOCATION: _allocation(counts),
        Code.TRAINING: _training(counts),
        Code.DESCRIPTION: _description(engine),
        Code.PROTOCOL: _protocol(protocol),
        Code.PRESPECIFIED: _prespecified(protocol),
        Code.COSTS: _costs(engine),
        Code.INFERENCE: _inference(engine),
        Code.RECORD: _record(engine),
        Code.IMPROVEMENT: _improvement(engine),
        Code.SOFTWARE: _software(),
    }


def _calibrated(
    engine: Engine, options: AnalysisOptions, tick: Tick | None
) -> "Calibration | None":
    """Return the figures; None where clinicians have not rated, or too little, for any."""
    from medjury.services.calibrate import CalibrationQuestion, calibrate

    try:
        return calibrate(engine, CalibrationQuestion(options, reference=False), tick=tick)
    except (Unrated, TooFew):
        return None


def _responses(engine: Engine, counts: Facts) -> Iterator[Evidence]:
    every = benchmarks(engine)
    if number := sum(benchmark.responses for benchmark in every):
        yield figure("responses", number)
        yield figure("instances", sum(benchmark.instances for benchmark in every))
        yield figure("benchmarks", len(every))
        if not is_blind(engine):  # while it is blind nothing that is told comes from authors
            yield figure("models", counts.models)


def _rubrics(engine: Engine) -> Iterator[Evidence]:
    rubrics = {benchmark.rubric.sha256: benchmark.rubric for benchmark in benchmarks(engine)}
    for sha256, rubric in sorted(rubrics.items()):
        name = f"{rubric.name} {rubric.version}"
        yield hashed("rubric", sha256, name)
        yield word("criteria", f"{', '.join(rubric.criteria)}; scale {rubric.scale}", name)


def _clinicians(counts: Facts) -> Iterator[Evidence]:
    people = counts.raters["clinician"]
    if people.names:
        yield figure("clinicians", len(people.names))
        for name, number in people.specialties.items():
            yield figure("specialty", number, name)


def _allocation(counts: Facts) -> Iterator[Evidence]:
    if counts.per_response:
        yield figure("per_response", int(counts.per_response))
        for seed in counts.seeds:
            yield figure("seed", seed)


def _training(counts: Facts) -> Iterator[Evidence]:
    if counts.trained:
        yield figure("trained", counts.trained)
        yield figure("training", counts.training)


def _description(engine: Engine) -> Iterator[Evidence]:
    """Yield the instructions for clinicians; a description without any is none."""
    if versions := description_versions(engine):
        present = versions[-1]
        if pages := len(present.description.guideline):
            yield hashed("description", present.sha256)
            yield figure("guideline_pages", pages)


def _protocol(protocol: Protocol | None) -> Iterator[Evidence]:
    if protocol is not None:
        yield hashed("protocol", protocol.sha256)
        yield word("protocol_set", protocol.set_at)
        yield figure("margin", protocol.margin)
        yield figure("ratings_before_protocol", protocol.set_after_ratings)


def _prespecified(protocol: Protocol | None) -> Iterator[Evidence]:
    """Yield when the protocol was fixed, where no clinician had rated by then."""
    if protocol is not None and not protocol.late:
        yield word("prespecified", protocol.set_at)


def _inference(engine: Engine) -> Iterator[Evidence]:
    """Yield between which days the jurors were asked."""
    if (days := call_dates(engine)) is not None:
        yield word("first_call", f"{days[0]:%Y-%m-%d}")
        yield word("last_call", f"{days[1]:%Y-%m-%d}")


def _costs(engine: Engine) -> Iterator[Evidence]:
    spent = spending(engine)
    if spent.calls:
        yield figure("calls", spent.calls)
        yield figure("usd", spent.usd)
        yield figure("usd_unknown", spent.unknown)


def _record(engine: Engine) -> Iterator[Evidence]:
    head = present_head(engine)
    if head.events:
        yield hashed("record_head", head.sha256)
        yield figure("events", head.events)
        if since := locked_since(engine):
            yield word("locked", f"since {since}")
        yield figure("unblinded", len(acts(engine, UNBLINDED)))


def _improvement(engine: Engine) -> Iterator[Evidence]:
    outcomes = [str(one.result.get("outcome", "")) for one in improvements(engine) if one.result]
    if ended := [outcome for outcome in outcomes if outcome != Outcome.STOPPED]:
        yield figure("improvements", len(ended))
        yield word("outcome", ended[-1])


def _software() -> Iterator[Evidence]:
    yield word("version", platform.python_version(), "Python")
    for package in SOFTWARE:
        yield word("version", version(package), package)
