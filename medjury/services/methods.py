"""What a methods section and a checklist are filled from: counts, figures, and what was missing."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.values import AnalysisOptions
from data.queries import benchmarks
from data.queries.descriptions import consents, description_versions
from data.queries.jury import by_juror, juror_profiles, missing_verdicts
from data.queries.record import locked_since
from data.queries.study import BenchmarkView, Facts, facts, settings
from medjury.services.record import steered

if TYPE_CHECKING:
    from calibration.scope import AgreementRow
    from calibration.scores import Scores

REPS = 2000


@dataclass(frozen=True, slots=True)
class ParticipantInformation:
    """What clinicians are told of the study.

    Attributes
    ----------
    pages
        Of the guideline.
    asked
        Whether they are asked for consent; `consented` of those who rated gave it to this text.
    changed_after_rating
        Versions that were set when ratings were in.
    """

    title: str
    sha256: str
    pages: int
    asked: bool
    consented: int
    changed_after_rating: int


@dataclass(frozen=True, eq=False)
class StudyFacts:
    """All that the study knows of itself.

    Attributes
    ----------
    rows
        Of the agreement table, by the default method.
    readings, incomplete
        Clinicians' readings, and those of them that lack a criterion.
    unread
        Responses that no clinician has rated.
    failures
        Juror -> how calls ended whose verdict is missing -> number.
    warnings
        What went wrong without touching a figure.
    told
        None where clinicians are told nothing.
    """

    facts: Facts
    benchmarks: Sequence[BenchmarkView]
    rows: "Sequence[AgreementRow]"
    jury: Sequence[str]
    profiles: Mapping[str, Mapping[str, Any]]
    readings: int
    incomplete: int
    unread: int
    failures: Mapping[str, Mapping[str, int]]
    reference: str
    steered: Sequence[str]
    locked: str | None
    reps: int
    warnings: Sequence[str] = ()
    told: "ParticipantInformation | None" = None

    @property
    def simulated(self) -> tuple[str, ...]:
        """Return all raters behind whom nobody stands."""
        return tuple(name for kind in self.facts.raters.values() for name in kind.simulated)


def study_facts(
    engine: Engine, reps: int = REPS, tick: Callable[[float], None] | None = None
) -> StudyFacts:
    """Return what the study knows; the jury that is looked at is noted in the ledger."""
    from medjury.services.calibrate import CalibrationQuestion, calibrate

    calibration = calibrate(
        engine, CalibrationQuestion(AnalysisOptions(reps=reps), reference=False), tick=tick
    )
    scores = calibration.scores
    readings, incomplete = readings_of(scores)
    rated = set(scores.ratings.loc[scores.ratings["kind"] == "clinician", "response_id"])
    counts = facts(engine)
    return StudyFacts(
        facts=counts,
        benchmarks=[
            benchmark for benchmark in benchmarks(engine) if benchmark.name in scores.benchmarks
        ],
        rows=calibration.rows,
        jury=calibration.jury,
        profiles=juror_profiles(engine, calibration.jury),
        readings=readings,
        incomplete=incomplete,
        unread=len(set(scores.responses["response_id"]) - rated),
        failures=by_juror(missing_verdicts(engine)),
        reference=settings(engine).reference,
        steered=steered(engine),
        locked=locked_since(engine),
        reps=reps,
        warnings=calibration.warnings,
        told=_told(engine, counts.raters["clinician"].names),
    )


def _told(engine: Engine, rated: Collection[str]) -> ParticipantInformation | None:
    """Return what clinicians are told now, and how many of those who rated gave consent to it."""
    versions = description_versions(engine)
    if not versions:
        return None
    present = versions[-1]
    return ParticipantInformation(
        title=present.description.title,
        sha256=present.sha256,
        pages=len(present.description.guideline),
        asked=bool(present.consent_sha256),
        consented=sum(consent.holds and consent.handle in rated for consent in consents(engine)),
        changed_after_rating=sum(version.ratings > 0 for version in versions[1:]),
    )


def readings_of(scores: "Scores") -> tuple[int, int]:
    """Return how many readings clinicians gave, and how many of them lack a criterion."""
    by_clinicians = scores.ratings[scores.ratings["kind"] == "clinician"]
    criteria = by_clinicians.groupby(["benchmark", "response_id", "rater", "pass_"])[
        "criterion"
    ].nunique()
    needed = [
        len(scores.rubrics[str(name)].criteria) for name in criteria.index.get_level_values(0)
    ]
    return len(criteria), int((criteria.to_numpy() < needed).sum())
