"""A methods section in words, filled in from a study: it names no author and quotes no text."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.headlines import LIKE, MISSING, Z
from calibration.notes import counted, listed, quoted
from data.person import is_blind
from data.rubric import Rubric
from data.study.calls import by_juror, juror_profiles, missing_verdicts
from data.study.settings import consents, description_versions
from data.study.standing import BenchmarkView, Facts, benchmarks, settings
from medjury.services.record import steered

if TYPE_CHECKING:
    from calibration.scores import Scores
    from medjury.services.calibration import Calibration

REFERENCES = (
    "References: Shrout PE, Fleiss JL (1979). Psychological Bulletin 86:420-428. McGraw KO, Wong SP "
    "(1996). Psychological Methods 1:30-46."
)
SHOWN = {
    "hidden": "never shown",
    "on_request": "shown when a clinician asked for it, which was recorded",
    "after_rating": "shown after the rating",
}
READINGS = {"third": "third blinded reading", "consensus": "consensus reading"}


def methods_section(engine: Engine, calibration: "Calibration", facts: Facts) -> Mapping[str, str]:
    """Return heading -> paragraph: material, raters, rating, statistics, what is missing, and counts."""
    analysed = [one for one in benchmarks(engine) if one.name in calibration.scores.benchmarks]
    parts = {
        "Material": _material(analysed, 0 if is_blind(engine) else facts.models),
        "Raters": _raters(engine, calibration, facts),
        "Rating": _rating(engine, facts),
        "Statistics": _statistics(calibration),
        "Missing ratings": _missing(engine, calibration),
        "Readings": _readings(calibration, facts),
    }
    return {heading: " ".join(sentences) for heading, sentences in parts.items()}


def _material(analysed: list[BenchmarkView], models: int) -> Iterator[str]:
    """Yield what was rated; while the study is blind nothing comes from authors, so `models` is 0."""
    of = f" of {counted(models, 'model')}" if models else ""
    yield (
        f"{counted(sum(one.responses for one in analysed), 'response')}{of} to "
        f"{counted(sum(one.instances for one in analysed), 'instance')} were the subjects."
    )
    for benchmark in analysed:
        rubric = benchmark.rubric
        yield (
            f"{quoted(benchmark.name)} ({counted(benchmark.instances, 'instance')}, "
            f"{counted(benchmark.responses, 'response')}) was rated on the rubric {rubric.name} "
            f"{rubric.version} (SHA-256 {rubric.sha256[:12]}): {listed(_on_scales(rubric))}, "
            "with the points described in words."
        )


def _on_scales(rubric: Rubric) -> list[str]:
    """Return the criteria with their scales, each once where all have the same."""
    scales = {name: rubric.scale_of(name) for name in rubric.criteria}
    ends = {name: f"from {scale.min} to {scale.max}" for name, scale in scales.items()}
    if rubric.is_mixed:
        return [f"{name} {own}" for name, own in ends.items()]
    *others, last = rubric.criteria
    return [*others, f"{last}, each {ends[last]}"]


def _raters(engine: Engine, calibration: "Calibration", facts: Facts) -> Iterator[str]:
    people, metrics = facts.clinicians, facts.metrics
    special = ", ".join(f"{number} {name}" for name, number in facts.specialties.items())
    yield f"{counted(len(people), 'clinician')} rated{f' ({special})' if special else ''}."
    yield from _participant_information(engine, people)
    if calibration.jury:
        profiles = juror_profiles(engine, calibration.jury)
        models = {name: str(profiles.get(name, {}).get("model", "")) for name in calibration.jury}
        jurors = (
            f"{quoted(name)} ({model})" if model not in ("", name) else quoted(name)
            for name, model in models.items()
        )
        yield f"{counted(len(models), 'language model')} rated as a jury: {', '.join(jurors)}."
    if metrics:
        yield f"Metrics measured against the references: {listed(metrics)}."
    if facts.training:
        yield (
            f"{counted(facts.trained, 'clinician')} went through a training round on "
            f"{counted(facts.training, 'response')} that experts had rated; none of it counts."
        )


def _participant_information(engine: Engine, rated: tuple[str, ...]) -> Iterator[str]:
    """Yield what clinicians read about the study, and how many consented to it."""
    versions = description_versions(engine)
    if not versions:
        return
    present, description = versions[-1], versions[-1].description
    pages = len(description.guideline)
    guide = f" and a guideline of {counted(pages, 'page')}" if pages else ""
    yield (
        f'Clinicians were told of the study as "{description.title}", with its description (SHA-256 '
        f"{present.sha256[:12]}){guide} at hand while they rated."
    )
    if changed := sum(version.ratings > 0 for version in versions[1:]):
        yield f"The description was changed {counted(changed, 'time')} after ratings were in."
    if present.consent_sha256:
        consented = sum(one.holds and one.handle in rated for one in consents(engine))
        yield (
            f"Of {counted(len(rated), 'clinician')} who rated, {consented} gave consent in the rating "
            "page to the text now in force."
        )


def _rating(engine: Engine, facts: Facts) -> Iterator[str]:
    if facts.per_response:
        seeds = f", drawn from the seed {', '.join(map(str, facts.seeds))}" if facts.seeds else ""
        yield (
            f"Each response was to be read by {counted(int(facts.per_response), 'clinician')}; who read "
            f"what, and in which order, was allocated with balance{seeds}."
        )
        yield (
            "In the rating page clinicians saw source, task and response under a random code; "
            "authors and other raters' scores were hidden. A reference, where the rubric allows "
            f"one, was {SHOWN[settings(engine).reference]}."
        )
    if facts.elsewhere:
        yield (
            f"{counted(facts.elsewhere, 'reading')} came from outside the rating page; how these "
            "were made, and whether blinded, the study does not know."
        )
    if facts.masked:
        yield f"In {counted(facts.masked, 'response')} words that named the author were masked."
    if facts.median_seconds is not None:
        yield f"A reading took {facts.median_seconds:.0f} s of active work (median)."
    if facts.first and facts.last:
        yield f"Clinicians rated from {facts.first:%Y-%m-%d} to {facts.last:%Y-%m-%d}."
    yield from (f"The study was {act}." for act in steered(engine))


def _statistics(calibration: "Calibration") -> Iterator[str]:
    options = calibration.question.options
    yield "A composite is the mean of a rater's scores of one response over the rubric's criteria."
    yield f"{Z[options.method][:1].upper()}{Z[options.method][1:]}."
    yield (
        "ICC(C,2) = ICC(3,2) is the consistency of two columns, the clinicians' and the scorer's "
        "(Shrout & Fleiss 1979; McGraw & Wong 1996): a constant added to one of them changes "
        "nothing. It has no lower bound and is not cut at 0."
    )
    yield (
        "Intervals of ICCs are 95 %: the jackknife over instances on Fisher's z, with everything "
        "computed anew without each instance and Satterthwaite's degrees of freedom."
    )
    yield LIKE
    yield (
        "Clinicians among each other: the mean of ICC(C,2) over all pairs who share two responses or "
        f"more. {REFERENCES}"
    )


def _missing(engine: Engine, calibration: "Calibration") -> Iterator[str]:
    readings, incomplete = readings_of(calibration.scores)
    yield MISSING.strip()
    yield (
        "A response's jury score exists only where every juror gave one. "
        f"{counted(incomplete, 'reading')} of {readings} by clinicians lack a criterion; "
        f"{counted(unread(calibration.scores), 'response')} had no clinician's rating."
    )
    for juror, statuses in by_juror(missing_verdicts(engine)).items():
        counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
        yield f"Verdicts missing of {quoted(juror)}: {counts}."


def _readings(calibration: "Calibration", facts: Facts) -> Iterator[str]:
    readings, _ = readings_of(calibration.scores)
    people = counted(len(facts.clinicians), "clinician")
    yield (
        f"{counted(readings, 'reading')} by {people}, {facts.repeats} of them second readings of the "
        "same response."
    )
    if sum(facts.adjudicated.values()):
        counts = " and ".join(
            f"{counted(number, 'response')} by a {READINGS[reading]}"
            for reading, number in facts.adjudicated.items()
            if number
        )
        yield f"Differences were settled on {counts}; no figure here is of these readings."
    if facts.states:
        counts = ", ".join(f"{number} {state}" for state, number in sorted(facts.states.items()))
        yield f"Of the readings that were assigned: {counts}."


def unread(scores: "Scores") -> int:
    """Return how many responses no clinician has rated."""
    rated = set(scores.ratings.loc[scores.ratings["kind"] == "clinician", "response_id"])
    return len(set(scores.responses["response_id"]) - rated)


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
