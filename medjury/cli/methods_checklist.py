"""The 15 items of GRRAS (Kottner et al. 2011), in our own words, as far as a study can answer them."""

import math
from collections.abc import Iterator

from medjury.cli.output import counted
from medjury.services.methods import StudyFacts

OWN = "to be filled in by the authors"
ITEMS = (
    ("Title", "Say in title or abstract that agreement or reliability between or within raters was studied"),
    ("Introduction", "Name the instrument: what is rated with what"),
    ("Introduction", "Whom or what the subjects stand for"),
    ("Introduction", "Whom the raters stand for"),
    ("Introduction", "What is known of its reliability and agreement, and why to study it"),
    ("Methods", "How the numbers of raters, subjects and repeats were chosen"),
    ("Methods", "How raters and subjects were sampled"),
    ("Methods", "How it was rated: interval between repeats, information given, blinding"),
    ("Methods", "Whether ratings were made independently"),
    ("Methods", "The statistics, and why these"),
    ("Results", "How many raters, subjects and repeats there were"),
    ("Results", "Who the raters and what the subjects were: experience, training, characteristics"),
    ("Results", "The estimates of reliability and agreement with their uncertainty"),
    ("Discussion", "What the result means in practice"),
    ("Auxiliary", "Where detailed results can be found"),
)  # fmt: skip


def checklist(known: StudyFacts) -> str:
    """Return the items as a Markdown table; what the study cannot know is left to its authors."""
    rows = (
        f"| {number} | {section} | {item} | {answer} |\n"
        for number, ((section, item), answer) in enumerate(
            zip(ITEMS, _answers(known), strict=True), 1
        )
    )
    return "| | section | item | from this study |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _answers(known: StudyFacts) -> Iterator[str]:
    yield OWN
    yield f"{_instruments(known)}; see Material"
    yield f"responses of language models to {', '.join(one.name for one in known.benchmarks)}; whom these stand for: {OWN}"
    yield _population(known)
    yield OWN
    yield _planned(known)
    yield f"{_allocated(known)}; how instances, models and clinicians were chosen: {OWN}"
    yield _process(known)
    yield _independent(known)
    yield "composite, z, ICC(C,2) (consistency), like for like: see Statistics; the reasons: " + OWN
    yield _found(known)
    yield _characteristics(known)
    yield f"see Results: {_jury_row(known)}"
    yield OWN
    yield (
        "`medjury export` (ratings without authors, data dictionary), `medjury calibrate --details "
        f"--json`, `medjury verify` (record); the place of publication: {OWN}"
    )


def _instruments(known: StudyFacts) -> str:
    rubrics = {
        (one.rubric.name, one.rubric.version, one.rubric.sha256[:12]) for one in known.benchmarks
    }
    return ", ".join(
        f"rubric {name} {version} ({sha256})" for name, version, sha256 in sorted(rubrics)
    )


def _population(known: StudyFacts) -> str:
    special = known.facts.raters["clinician"].specialties
    named = ", ".join(special) if special else "specialties are not recorded"
    return f"clinicians ({named}) and a jury of language models; whom these stand for: {OWN}"


def _planned(known: StudyFacts) -> str:
    wanted = known.facts.per_response
    design = (
        f"{wanted} clinicians for each response were wanted"
        if wanted
        else "no design was drawn up here"
    )
    return f"{design}; the reason (see `medjury plan`): {OWN}"


def _allocated(known: StudyFacts) -> str:
    seeds = ", ".join(map(str, known.facts.seeds))
    return (
        f"responses were allocated to clinicians at random (seed {seeds})"
        if seeds
        else "not allocated here"
    )


def _process(known: StudyFacts) -> str:
    facts = known.facts
    repeats = f"{counted(facts.repeats, 'second reading')}" if facts.repeats else "no repeats"
    away = f"; {facts.elsewhere} readings from elsewhere: {OWN}" if facts.elsewhere else ""
    told = (
        f"; {'; '.join(known.steered)}"
        if known.steered
        else "; the blind was not lifted by the record"
    )
    return f"{repeats}; see Rating{away}{told}"


def _independent(known: StudyFacts) -> str:
    if known.facts.elsewhere:
        return f"in the rating page nobody sees others' scores; for ratings from elsewhere: {OWN}"
    return "yes: nobody sees others' scores in the rating page; talk among raters: " + OWN


def _found(known: StudyFacts) -> str:
    people = known.facts.raters["clinician"]
    responses = sum(one.responses for one in known.benchmarks)
    return (
        f"{counted(len(people.names), 'clinician')}, {counted(len(known.jury), 'juror')}, "
        f"{counted(responses, 'response')} ({known.unread} unrated), {counted(known.readings, 'reading')} "
        f"({known.incomplete} lacking a criterion), {counted(known.facts.repeats, 'repeat')}"
        + (f"; simulated: {', '.join(known.simulated)}" if known.simulated else "")
    )


def _characteristics(known: StudyFacts) -> str:
    facts = known.facts
    trained = (
        f"{facts.trained} trained on {counted(facts.training, 'response')}"
        if facts.training
        else "no training round"
    )
    special = ", ".join(f"{n} {name}" for name, n in facts.raters["clinician"].specialties.items())
    return f"{trained}{'; ' + special if special else ''}; experience of raters, subjects' characteristics: {OWN}"


def _jury_row(known: StudyFacts) -> str:
    """Return the first row of the table that a jury has, in words; else that there is none."""
    row = next((one for one in known.rows if one.scorer == "jury"), None)
    if row is None:
        return "no jury was held against the clinicians"
    if not math.isfinite(row.icc):
        return f"jury on {row.benchmark}: undefined"
    return f"jury on {row.benchmark}: ICC(C,2) {row.icc:.3f}, and all others with intervals"
