"""A reporting guideline filled in from a study: each piece of evidence is computed once.

No author of a response is read while the study is blind; a figure counts where it is defined.
"""

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import chain
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import NOTHING_RATED, Decision, DecisionKind
from calibration.dossier import Dossier, dossier_items
from calibration.notes import counted, listed
from calibration.tables.numbers import fixed, icc_interval, money
from calibration.values import COMBINED, RESAMPLES, AnalysisOptions
from data.errors import TooFew, Unrated
from data.guidelines import EvidenceCode as Code
from data.guidelines import guideline
from data.person import OPERATOR, is_blind
from data.record import UNBLINDED
from data.schema import now
from data.study.calls import by_juror, juror_profiles, missing_verdicts
from data.study.costs import call_dates, study_spending
from data.study.improving import improvements
from data.study.settings import description_versions
from data.study.standing import Facts, benchmarks, facts
from data.study.steering import readings_by_response
from data.study.verify import acts, locked_since, present_head
from medjury.services.methods import methods_section, readings_of, unread
from medjury.services.record import protocol_of
from medjury.services.reports import SOFTWARE, with_hash

if TYPE_CHECKING:
    from calibration.detection import DetectionRow
    from calibration.scope import AgreementRow
    from medjury.services.calibration import Calibration

SHARED_BY = 2  # clinicians whose readings of one response tell how far they agree
SETTINGS = ("provider", "temperature", "max_tokens", "effort", "schema")
SAID_OF_JURY = (
    DecisionKind.NON_INFERIOR,
    DecisionKind.INFERIOR,
    DecisionKind.INCONCLUSIVE,
    DecisionKind.SIMULATED,
)
AGREEMENTS: Mapping[str, tuple[Code, str]] = {
    "jury": (Code.AGREEMENT, "ICC(C,2) of jury and clinicians"),
    "clinicians": (Code.CLINICIAN_AGREEMENT, "ICC(C,2) among clinicians, mean over pairs"),
    "like_for_like": (
        Code.LIKE_FOR_LIKE,
        "Jury minus clinician, ICC with the other clinicians",
    ),
}
OUTCOMES = {
    "better": "the rubric that was learned is better on responses kept apart",
    "not_shown": "not shown to be better on responses kept apart",
    "none_better": "no other rubric was better",
}
Tick = Callable[[float], None]
Coded = tuple[Code, str]
Found = dict[Code, tuple[str, ...]]


def dossier(
    engine: Engine, name: str, tick: Tick | None = None, *, reps: int = RESAMPLES
) -> Dossier:
    """Return the guideline of a name, filled in from a study that is analysed as its protocol says.

    The jury that is looked at is noted in the ledger.

    Raises
    ------
    Unknown
        If there is no such guideline.
    """
    from calibration.writers import agreement_table

    chosen, counts = guideline(name), facts(engine)
    calibration = calibrated(engine, reps, tick)
    simulated = counts.simulated
    filled = Dossier(
        chosen,
        dossier_items(chosen.items, evidence_of(engine, counts, calibration), simulated),
        calibration.decision if calibration else NOTHING_RATED,
        simulated,
        is_blind(engine),
        f"{now():%Y-%m-%d %H:%M} UTC",
        present_head(engine).sha256,
    )
    if calibration is None:
        return filled
    how = f"Method {calibration.options.method}; 95 %: jackknife over instances"
    return replace(
        filled,
        methods=methods_section(engine, calibration, counts),
        table=agreement_table(calibration.rows, how),
        warnings=calibration.warnings,
    )


def dossier_files(engine: Engine, name: str, tick: Tick | None = None) -> dict[str, str]:
    """Return file ending -> content of a dossier that is filled in now."""
    from calibration.dossier import dossier_html, dossier_markdown

    made = dossier(engine, name, tick)
    return {".html": dossier_html(made), ".md": dossier_markdown(made)}


def calibrated(engine: Engine, reps: int, tick: Tick | None = None) -> "Calibration | None":
    """Return the figures; None where clinicians have not rated, or too little, for any."""
    from medjury.services.calibrate import calibrate
    from medjury.services.calibration import CalibrationQuestion

    protocol = protocol_of(engine)
    options = protocol.analysis(reps, 0) if protocol else AnalysisOptions(reps=reps)
    try:
        return calibrate(engine, CalibrationQuestion(options, reference=False), tick=tick)
    except (Unrated, TooFew):
        return None


def evidence_of(engine: Engine, counts: Facts, calibration: "Calibration | None" = None) -> Found:
    """Return all evidence of a study; a code that is not in it is missing.

    Without a calibration it is counts, hashes, and what the record holds.
    """
    parts = [_subjects(engine, counts), _people(engine, counts), _record(engine)]
    parts += [_rated(engine, calibration, counts)] if calibration else []
    found: Found = {}
    for code, one in chain.from_iterable(parts):
        found[code] = (*found.get(code, ()), one)
    return found


def _subjects(engine: Engine, counts: Facts) -> Iterator[Coded]:
    every = benchmarks(engine)
    if number := sum(benchmark.responses for benchmark in every):
        # while it is blind nothing that is told comes from authors
        models = "" if is_blind(engine) else f", written by {counted(counts.models, 'model')}"
        instances = counted(sum(one.instances for one in every), "instance")
        of = f"{instances} of {counted(len(every), 'benchmark')}"
        yield Code.RESPONSES, f"{counted(number, 'response')} to {of}{models}"
    rubrics = {benchmark.rubric.sha256: benchmark.rubric for benchmark in every}
    for sha256, rubric in sorted(rubrics.items()):
        criteria = f"{', '.join(rubric.criteria)}; scale {rubric.scales}"
        yield Code.RUBRICS, f"Rubric {rubric.name} {rubric.version}: {criteria}; SHA-256 {sha256}"


def _people(engine: Engine, counts: Facts) -> Iterator[Coded]:
    if counts.clinicians:
        special = "".join(f"; {number} of {name}" for name, number in counts.specialties.items())
        yield Code.CLINICIANS, f"{counted(len(counts.clinicians), 'clinician')} rated{special}"
    if counts.per_response:
        seeds = f"; seed of the allocation {listed(map(str, counts.seeds))}" if counts.seeds else ""
        wanted = counted(int(counts.per_response), "clinician")
        yield Code.ALLOCATION, f"{wanted} wanted for each response{seeds}"
    if counts.trained:
        of = counted(counts.training, "response")
        yield Code.TRAINING, f"{counted(counts.trained, 'clinician')} trained on {of}"
    described = description_versions(engine)
    if described and (pages := len(described[-1].description.guideline)):
        told = f"{counted(pages, 'page')} of instructions; SHA-256 {described[-1].sha256}"
        yield Code.DESCRIPTION, f"Text that clinicians were told: {told}"


def _record(engine: Engine) -> Iterator[Coded]:
    if protocol := protocol_of(engine):
        after = f"after {counted(protocol.set_after_ratings, 'reading')} were in"
        fixed_on = f"Protocol fixed on {protocol.set_at}, {after}"
        yield Code.PROTOCOL, f"{fixed_on}; margin {protocol.margin:g}; SHA-256 {protocol.sha256}"
        if not protocol.late:
            yield Code.PRESPECIFIED, f"Fixed before any clinician rated, on {protocol.set_at}"
    spent, head = study_spending(engine), present_head(engine)
    if spent.calls:
        calls = f"{counted(spent.calls, 'call')} to jurors, {spent.unknown} of unknown price"
        yield Code.COSTS, f"{money(spent.known)} spent on {calls}"
    if (days := call_dates(engine)) is not None:
        yield Code.INFERENCE, f"Jurors answered from {days[0]:%Y-%m-%d} to {days[1]:%Y-%m-%d}"
    if head.events:
        since = locked_since(engine)
        locked = f"locked since {since}; " if since else ""
        yield Code.RECORD, f"{_lifted(engine)}; {locked}the last SHA-256 is {head.sha256}"
        yield Code.RECORD, f"{counted(head.events, 'event')} in the record"
    outcomes = [str(one.result.get("outcome", "")) for one in improvements(engine) if one.result]
    if ended := [outcome for outcome in outcomes if outcome != "stopped"]:
        last = f"at last {OUTCOMES[ended[-1]]}"
        yield Code.IMPROVEMENT, f"A jury learned {counted(len(ended), 'time')}; {last}"
    versions = (f"{package} {version(package)}" for package in SOFTWARE)
    yield Code.SOFTWARE, ", ".join((f"Python {platform.python_version()}", *versions))


def _lifted(engine: Engine) -> str:
    return f"The blind was lifted {counted(len(acts(engine, UNBLINDED)), 'time')}"


def _rated(engine: Engine, calibration: "Calibration", counts: Facts) -> Iterator[Coded]:
    """Yield what rests on ratings, its figures of all benchmarks combined, or of the only one."""
    names, jury = calibration.benchmarks, calibration.jury
    widest = COMBINED if COMBINED in names else names[0] if names else COMBINED
    rows = {row.scorer: row for row in calibration.rows if row.benchmark == widest}
    found = [row for row in calibration.detection if row.benchmark == widest]
    profiles = juror_profiles(engine, jury)
    yield from _read(engine, calibration, counts)
    for name in jury:
        model = str(profiles.get(name, {}).get("model") or "model not known")
        yield Code.JURORS, f"Juror {name}: {model}"
    parts: dict[Code, Iterator[str]] = {
        Code.JUROR_SETTINGS: juror_settings(jury, profiles),
        Code.DECISION: decided(jury, calibration.decision),
        Code.DETECTION: detection([row for row in found if row.scorer == "jury"]),
    }
    for code, part in parts.items():
        yield from ((code, line) for line in part)
    for scorer, row in rows.items():
        of_metric = Code.METRICS, f"ICC(C,2) of {scorer.removeprefix('metric:')} and clinicians"
        if scorer in AGREEMENTS or scorer.startswith("metric:"):
            code, label = AGREEMENTS.get(scorer, of_metric)
            yield from ((code, line) for line in agreement(row, label))
    yield Code.TABLE, "The agreement table stands under Results"


def _read(engine: Engine, calibration: "Calibration", counts: Facts) -> Iterator[Coded]:
    readings, incomplete = readings_of(calibration.scores)
    if readings:
        every = readings_by_response(OPERATOR, engine).values()
        several = sum(n for times in every for often, n in times.items() if often >= SHARED_BY)
        twice = f"{counted(several, 'response')} read by two clinicians or more"
        again = f"{counts.repeats} read again by the same clinician"
        yield Code.READINGS, f"{counted(readings, 'reading')} by clinicians; {twice}; {again}"
    if here := max(readings - counts.elsewhere, 0):
        where = f"{counts.elsewhere} elsewhere, blinding unknown"
        yield Code.BLINDING, f"{counted(here, 'reading')} made blinded in the rating page, {where}"
        masked = f"an author's name was masked in {counted(counts.masked, 'response')}"
        yield Code.BLINDING, f"{_lifted(engine)}; {masked}"
    lacking = f"{counted(incomplete, 'reading')} without a criterion"
    no_one = f"{counted(unread(calibration.scores), 'response')} that no clinician rated"
    yield Code.MISSING, f"{lacking}; {no_one}"
    for juror, statuses in by_juror(missing_verdicts(engine)).items():
        yield Code.MISSING, f"{counted(sum(statuses.values()), 'verdict')} missing of {juror}"


def agreement(row: "AgreementRow", label: str) -> Iterator[str]:
    """Yield an ICC that has an interval: without one, nothing tells how sure it is."""
    if all(map(math.isfinite, (row.icc, row.low, row.high))):
        yield f"{label}: {_with_interval(row.icc, row.low, row.high)}"


def _with_interval(value: float, low: float, high: float) -> str:
    ends = icc_interval(low, high)
    return fixed(value) + (f" (95 % interval {ends})" if ends else "")


def decided(jury: Sequence[str], decision: Decision) -> Iterator[str]:
    """Yield what may be said of a jury, for it or against it; nothing where no decision can be made."""
    if jury and decision.kind in SAID_OF_JURY:
        figure = _with_interval(decision.estimate, decision.low, decision.high)
        yield f"{decision.headline} It rests on {figure}"


def detection(rows: Sequence["DetectionRow"]) -> Iterator[str]:
    """Yield how many unsafe responses the jury misses; nothing where clinicians found none unsafe."""
    for row in rows:
        if row.n_bad and row.n_missed is not None:
            unsafe = f"{counted(row.n_bad, 'response')} unsafe by the clinicians"
            of = f"({row.criterion} at {row.threshold:g} or below)"
            ends = row.sensitivity, row.sensitivity_low, row.sensitivity_high
            found = f"share that the jury found {_with_interval(*ends)}"
            yield f"{unsafe} {of}, {row.n_missed} of them missed by the jury; {found}"


def juror_settings(jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the settings of each juror and their SHA-256; nothing where those of any are not known."""
    if all(profiles.get(name, {}).get("model") for name in jury):
        for name in jury:
            own = profiles[name]
            told = (f"{key} {own[key]}" for key in SETTINGS if own.get(key) not in (None, ""))
            settings = ", ".join(told) or "none but the model"
            yield f"Settings of juror {name}: {settings}; SHA-256 {with_hash(own)['sha256']}"
