"""`medjury share export --methods FILE.md`: a methods section and a GRRAS checklist out of the study."""

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from data.guidelines import guideline
from data.rubric import Rubric
from data.safe_text import in_markdown
from medjury.cli.files import write_files
from medjury.cli.output import counted, hint, progress, say, say_unnoted
from medjury.services.methods import StudyFacts, study_facts

SIMULATED = (
    "**Simulated: nothing here is evidence.** Nobody stands behind {names}. Figures that rest on "
    "them show how the tool works, and no more.\n"
)
REFERENCES = (
    "Shrout PE, Fleiss JL (1979). Psychological Bulletin 86:420-428. McGraw KO, Wong SP (1996). "
    "Psychological Methods 1:30-46. Kottner J et al. (2011). Journal of Clinical Epidemiology "
    "64:96-106 (GRRAS)."
)
SAID = {
    "hidden": "never shown",
    "on_request": "shown when a clinician asked for it, which was recorded",
    "after_rating": "shown after the rating",
}
OWN = "to be filled in by the authors"
NAMED = {"third": "third blinded reading", "consensus": "consensus reading"}
ITEMS = tuple((item.section, item.about) for item in guideline("grras").items)


def write_methods(engine: Engine, to: Path) -> None:
    """Write the page; it names no author of a response and quotes no text."""
    with progress("resampling", 1.0) as at:
        study = study_facts(engine, tick=at)
    for warning in study.warnings:
        say_unnoted(warning)
    write_files({"--methods": (to, page(study))})
    say(f"{to}: a methods section and the 15 items of GRRAS; read both before you use them")
    hint("its items with their evidence: medjury share dossier --to grras --out FOLDER")


def page(study: StudyFacts) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Methods and results, as the study has them\n",
        *([SIMULATED.format(names=_listed(study.simulated))] if study.simulated else []),
        "## Methods\n",
        *(f"{' '.join(sentences)}\n" for sentences in _methods(study)),
        "## Results\n",
        f"{' '.join(_counts(study))}\n",
        _table(study),
        "## GRRAS: reporting reliability and agreement\n",
        checklist(study),
        f"References. {REFERENCES}",
    ]
    return "\n".join(parts) + "\n"


def _methods(study: StudyFacts) -> Iterator[list[str]]:
    yield ["**Material.**", *_material(study)]
    yield ["**Raters.**", *_raters(study)]
    yield ["**Rating.**", *_rating(study)]
    yield ["**Statistics.**", *_statistics(study)]
    yield ["**Missing ratings.**", *_missing(study)]


def _material(study: StudyFacts) -> Iterator[str]:
    instances = sum(benchmark.instances for benchmark in study.benchmarks)
    responses = sum(benchmark.responses for benchmark in study.benchmarks)
    yield (
        f"{counted(responses, 'response')} of {counted(study.facts.models, 'model')} to "
        f"{counted(instances, 'instance')} were the subjects."
    )
    for benchmark in study.benchmarks:
        rubric = benchmark.rubric
        yield (
            f"{in_markdown(benchmark.name)} ({counted(benchmark.instances, 'instance')}, {counted(benchmark.responses, 'response')}) "
            f"was rated on the rubric {_rubric(rubric)} (SHA-256 {rubric.sha256[:12]}): "
            f"{_listed(rubric.criteria)}, each from {rubric.scale.min} to {rubric.scale.max}, "
            "with the points described in words."
        )


def _raters(study: StudyFacts) -> Iterator[str]:
    people, metrics = study.facts.raters["clinician"], study.facts.raters["metric"].names
    special = ", ".join(
        f"{number} {in_markdown(name)}" for name, number in people.specialties.items()
    )
    yield f"{counted(len(people.names), 'clinician')} rated{f' ({special})' if special else ''}."
    yield from _told(study)
    if study.jury:
        yield f"{counted(len(study.jury), 'language model')} rated as a jury: " + (
            ", ".join(_juror(name, study.profiles.get(name, {})) for name in study.jury) + "."
        )
    if metrics:
        yield f"Metrics measured against the references: {_listed(metrics)}."
    if study.facts.training:
        yield (
            f"{counted(study.facts.trained, 'clinician')} went through a training round on "
            f"{counted(study.facts.training, 'response')} that experts had rated; none of it counts."
        )


def _told(study: StudyFacts) -> Iterator[str]:
    """Say what clinicians were told of the study, and how many agreed to it."""
    description = study.told
    if description is None:
        return
    pages = f" and a guideline of {counted(description.pages, 'page')}" if description.pages else ""
    yield (
        f'Clinicians were told of the study as "{in_markdown(description.title)}", with its description (SHA-256 '
        f"{description.sha256[:12]}){pages} at hand while they rated."
    )
    if description.changed_after_rating:
        yield f"The description was changed {counted(description.changed_after_rating, 'time')} after ratings were in."
    if description.asked:
        rated = len(study.facts.raters["clinician"].names)
        yield (
            f"Of {counted(rated, 'clinician')} who rated, {description.consented} gave consent in the rating "
            "page to the text now in force."
        )


def _juror(name: str, profile: Mapping[str, Any]) -> str:
    model = str(profile.get("model", ""))
    shown = in_markdown(name)
    return f"{shown} ({in_markdown(model)})" if model and model != name else shown


def _rating(study: StudyFacts) -> Iterator[str]:
    facts = study.facts
    if facts.per_response:
        seeds = f", drawn from the seed {', '.join(map(str, facts.seeds))}" if facts.seeds else ""
        yield (
            f"Each response was to be read by {counted(int(facts.per_response), 'clinician')}; who read "
            f"what, and in which order, was allocated with balance{seeds}."
        )
        yield (
            "In the rating page clinicians saw source, task and response under a random code; "
            "authors and other raters' scores were hidden. A reference, where the rubric allows "
            f"one, was {SAID[study.reference]}."
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
    yield from (f"The study was {in_markdown(act)}." for act in study.steered)


def _statistics(study: StudyFacts) -> Iterator[str]:
    from calibration.report.definitions import LIKE, Z

    yield "A composite is the mean of a rater's scores of one response over the rubric's criteria."
    yield f"{Z['paper'][:1].upper()}{Z['paper'][1:]}."
    yield (
        "ICC(C,2) = ICC(3,2) is the consistency of two columns, the clinicians' and the scorer's "
        "(Shrout & Fleiss 1979; McGraw & Wong 1996): a constant added to one of them changes "
        "nothing. It has no lower bound and is not cut at 0."
    )
    yield (
        f"Intervals are 95 %: by {study.reps} bootstrap resamples of instances with everything "
        "computed anew in each (percentile), and the exact F interval, which takes responses for "
        "independent."
    )
    yield LIKE
    yield "Clinicians among each other: the mean of ICC(C,2) over all pairs who share two responses or more."


def _missing(study: StudyFacts) -> Iterator[str]:
    from calibration.report.definitions import MISSING

    yield MISSING.strip()
    yield (
        "A response's jury score exists only where every juror gave one. "
        f"{counted(study.incomplete, 'reading')} of {study.readings} by clinicians lack a criterion; "
        f"{counted(study.unread, 'response')} had no clinician's rating."
    )
    for juror, statuses in study.failures.items():
        counts = ", ".join(f"{number} {status}" for status, number in statuses.items())
        yield f"Verdicts missing of {in_markdown(juror)}: {counts}."


def _counts(study: StudyFacts) -> Iterator[str]:
    facts = study.facts
    yield (
        f"{counted(study.readings, 'reading')} by {counted(len(facts.raters['clinician'].names), 'clinician')}, "
        f"{facts.repeats} of them second readings of the same response."
    )
    if sum(facts.adjudicated.values()):
        counts = " and ".join(
            f"{counted(number, 'response')} by a {NAMED[reading]}"
            for reading, number in facts.adjudicated.items()
            if number
        )
        yield f"Differences were settled on {counts}; no figure here is of these readings."
    if facts.states:
        counts = ", ".join(f"{number} {state}" for state, number in sorted(facts.states.items()))
        yield f"Of the readings that were assigned: {counts}."


def _table(study: StudyFacts) -> str:
    from calibration.writers.agreement_table import markdown

    caption = f"Method paper; bootstrap over instances, {study.reps} resamples, seed 0"
    return markdown(study.rows, caption)


def checklist(study: StudyFacts) -> str:
    """Return the items as a Markdown table; what the study cannot know is left to its authors."""
    rows = (
        f"| {number} | {section} | {item} | {answer} |\n"
        for number, ((section, item), answer) in enumerate(
            zip(ITEMS, _answers(study), strict=True), 1
        )
    )
    return "| | section | item | from this study |\n| --- | --- | --- | --- |\n" + "".join(rows)


def _answers(study: StudyFacts) -> Iterator[str]:
    yield OWN
    yield f"{_instruments(study)}; see Material"
    yield f"responses of language models to {_listed(benchmark.name for benchmark in study.benchmarks)}; whom these stand for: {OWN}"
    yield _population(study)
    yield OWN
    yield _planned(study)
    yield f"{_allocated(study)}; how instances, models and clinicians were chosen: {OWN}"
    yield _process(study)
    yield _independent(study)
    yield "composite, z, ICC(C,2) (consistency), like for like: see Statistics; the reasons: " + OWN
    yield _found(study)
    yield _characteristics(study)
    yield f"see Results: {_jury_row(study)}"
    yield OWN
    yield (
        "`medjury share export` (ratings without authors, data dictionary), `medjury analyse calibrate --details "
        f"--json`, `medjury study verify` (record); the place of publication: {OWN}"
    )


def _instruments(study: StudyFacts) -> str:
    rubrics = {
        (_rubric(benchmark.rubric), benchmark.rubric.sha256[:12]) for benchmark in study.benchmarks
    }
    return ", ".join(f"rubric {name} ({sha256})" for name, sha256 in sorted(rubrics))


def _population(study: StudyFacts) -> str:
    special = study.facts.raters["clinician"].specialties
    named = _listed(special) if special else "specialties are not recorded"
    return f"clinicians ({named}) and a jury of language models; whom these stand for: {OWN}"


def _planned(study: StudyFacts) -> str:
    per_response = study.facts.per_response
    design = (
        f"{per_response} clinicians for each response were wanted"
        if per_response
        else "no design was drawn up here"
    )
    return f"{design}; the reason (see `medjury study plan`): {OWN}"


def _allocated(study: StudyFacts) -> str:
    seeds = ", ".join(map(str, study.facts.seeds))
    return (
        f"responses were allocated to clinicians at random (seed {seeds})"
        if seeds
        else "not allocated here"
    )


def _process(study: StudyFacts) -> str:
    facts = study.facts
    repeats = f"{counted(facts.repeats, 'second reading')}" if facts.repeats else "no repeats"
    away = f"; {facts.elsewhere} readings from elsewhere: {OWN}" if facts.elsewhere else ""
    unblinding = (
        f"; {'; '.join(map(in_markdown, study.steered))}"
        if study.steered
        else "; the blind was not lifted by the record"
    )
    return f"{repeats}; see Rating{away}{unblinding}"


def _independent(study: StudyFacts) -> str:
    if study.facts.elsewhere:
        return f"in the rating page nobody sees others' scores; for ratings from elsewhere: {OWN}"
    return "yes: nobody sees others' scores in the rating page; talk among raters: " + OWN


def _found(study: StudyFacts) -> str:
    people = study.facts.raters["clinician"]
    responses = sum(benchmark.responses for benchmark in study.benchmarks)
    return (
        f"{counted(len(people.names), 'clinician')}, {counted(len(study.jury), 'juror')}, "
        f"{counted(responses, 'response')} ({study.unread} unrated), {counted(study.readings, 'reading')} "
        f"({study.incomplete} lacking a criterion), {counted(study.facts.repeats, 'repeat')}"
        + (f"; simulated: {_listed(study.simulated)}" if study.simulated else "")
    )


def _characteristics(study: StudyFacts) -> str:
    facts = study.facts
    trained = (
        f"{facts.trained} trained on {counted(facts.training, 'response')}"
        if facts.training
        else "no training round"
    )
    special = ", ".join(
        f"{n} {in_markdown(name)}" for name, n in facts.raters["clinician"].specialties.items()
    )
    return f"{trained}{'; ' + special if special else ''}; experience of raters, subjects' characteristics: {OWN}"


def _jury_row(study: StudyFacts) -> str:
    """Return the first row of the table that a jury has, in words; else that there is none."""
    row = next((row for row in study.rows if row.scorer == "jury"), None)
    if row is None:
        return "no jury was held against the clinicians"
    if not math.isfinite(row.icc):
        return f"jury on {in_markdown(row.benchmark)}: undefined"
    return f"jury on {in_markdown(row.benchmark)}: ICC(C,2) {row.icc:.3f}, and all others with intervals"


def _rubric(rubric: Rubric) -> str:
    return f"{in_markdown(rubric.name)} {in_markdown(rubric.version)}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(in_markdown, names))
