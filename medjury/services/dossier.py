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
from calibration.dossier import (
    Dossier,
    Evidence,
    dossier_items,
    figure,
    hashed,
    word,
)
from calibration.values import COMBINED, AnalysisOptions
from data.errors import TooFew, Unrated
from data.guidelines import EvidenceCode as Code
from data.guidelines import guideline
from data.person import OPERATOR, UNBLINDED, is_blind
from data.queries import benchmarks, readings_by_response
from data.queries.costs import call_dates, spending
from data.queries.descriptions import description_versions
from data.queries.jury import by_juror, juror_profiles, missing_verdicts
from data.queries.learning import improvements
from data.queries.record import acts, locked_since, present_head
from data.queries.study import Facts, facts
from data.schema import now
from medjury.services.improvement import Outcome
from medjury.services.methods import methods_section, readings_of, unread
from medjury.services.record import protocol_of
from medjury.services.reports import SOFTWARE, with_hash

if TYPE_CHECKING:
    from calibration.detection import DetectionRow
    from calibration.scope import AgreementRow
    from medjury.services.calibrate import Calibration

REPS = 2000
SHARED_BY = 2  # clinicians whose readings of one response tell how far they agree
SETTINGS = ("provider", "temperature", "max_tokens", "effort", "schema")
SAID_OF_JURY = (
    DecisionKind.NON_INFERIOR,
    DecisionKind.INFERIOR,
    DecisionKind.INCONCLUSIVE,
    DecisionKind.SIMULATED,
)
Tick = Callable[[float], None]
Coded = tuple[Code, Evidence]
Found = dict[Code, tuple[Evidence, ...]]


def dossier(engine: Engine, name: str, tick: Tick | None = None, *, reps: int = REPS) -> Dossier:
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
    simulated = tuple(one for kind in counts.raters.values() for one in kind.simulated)
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
    from medjury.services.calibrate import CalibrationQuestion, calibrate

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
    parts = [_subjects(engine, counts), _people(engine, counts), _fixed(engine), _record(engine)]
    parts += [_rated(engine, calibration, counts)] if calibration else []
    found: Found = {}
    for code, one in chain.from_iterable(parts):
        found[code] = (*found.get(code, ()), one)
    return found


def _subjects(engine: Engine, counts: Facts) -> Iterator[Coded]:
    every = benchmarks(engine)
    if number := sum(benchmark.responses for benchmark in every):
        yield Code.RESPONSES, figure("responses", number)
        yield Code.RESPONSES, figure("instances", sum(one.instances for one in every))
        yield Code.RESPONSES, figure("benchmarks", len(every))
        if not is_blind(engine):  # while it is blind nothing that is told comes from authors
            yield Code.RESPONSES, figure("models", counts.models)
    rubrics = {benchmark.rubric.sha256: benchmark.rubric for benchmark in every}
    for sha256, rubric in sorted(rubrics.items()):
        name = f"{rubric.name} {rubric.version}"
        yield Code.RUBRICS, hashed("rubric", sha256, name)
        criteria = f"{', '.join(rubric.criteria)}; scale {rubric.scale}"
        yield Code.RUBRICS, word("criteria", criteria, name)


def _people(engine: Engine, counts: Facts) -> Iterator[Coded]:
    people = counts.raters["clinician"]
    if people.names:
        yield Code.CLINICIANS, figure("clinicians", len(people.names))
        for name, number in people.specialties.items():
            yield Code.CLINICIANS, figure("specialty", number, name)
    if counts.per_response:
        yield Code.ALLOCATION, figure("per_response", int(counts.per_response))
        for seed in counts.seeds:
            yield Code.ALLOCATION, figure("seed", seed)
    if counts.trained:
        yield Code.TRAINING, figure("trained", counts.trained)
        yield Code.TRAINING, figure("training", counts.training)
    described = description_versions(engine)
    if described and (pages := len(described[-1].description.guideline)):
        yield Code.DESCRIPTION, hashed("description", described[-1].sha256)
        yield Code.DESCRIPTION, figure("guideline_pages", pages)


def _fixed(engine: Engine) -> Iterator[Coded]:
    """Yield what the protocol fixes; it is prespecified where no clinician had rated by then."""
    if (protocol := protocol_of(engine)) is None:
        return
    yield Code.PROTOCOL, hashed("protocol", protocol.sha256)
    yield Code.PROTOCOL, word("protocol_set", protocol.set_at)
    yield Code.PROTOCOL, figure("margin", protocol.margin)
    yield Code.PROTOCOL, figure("ratings_before_protocol", protocol.set_after_ratings)
    if not protocol.late:
        yield Code.PRESPECIFIED, word("prespecified", protocol.set_at)


def _record(engine: Engine) -> Iterator[Coded]:
    spent, head = spending(engine), present_head(engine)
    if spent.calls:
        yield Code.COSTS, figure("calls", spent.calls)
        yield Code.COSTS, figure("usd", spent.usd)
        yield Code.COSTS, figure("usd_unknown", spent.unknown)
    if (days := call_dates(engine)) is not None:
        yield Code.INFERENCE, word("first_call", f"{days[0]:%Y-%m-%d}")
        yield Code.INFERENCE, word("last_call", f"{days[1]:%Y-%m-%d}")
    if head.events:
        yield Code.RECORD, hashed("record_head", head.sha256)
        yield Code.RECORD, figure("events", head.events)
        if since := locked_since(engine):
            yield Code.RECORD, word("locked", f"since {since}")
        yield Code.RECORD, figure("unblinded", len(acts(engine, UNBLINDED)))
    outcomes = [str(one.result.get("outcome", "")) for one in improvements(engine) if one.result]
    if ended := [outcome for outcome in outcomes if outcome != Outcome.STOPPED]:
        yield Code.IMPROVEMENT, figure("improvements", len(ended))
        yield Code.IMPROVEMENT, word("outcome", ended[-1])
    yield Code.SOFTWARE, word("version", platform.python_version(), "Python")
    for package in SOFTWARE:
        yield Code.SOFTWARE, word("version", version(package), package)


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
        yield Code.JURORS, word("juror", model, name)
    parts: dict[Code, Iterator[Evidence]] = {
        Code.JUROR_SETTINGS: juror_settings(jury, profiles),
        Code.AGREEMENT: agreement(rows.get("jury"), "jury_icc"),
        Code.CLINICIAN_AGREEMENT: agreement(rows.get("clinicians"), "clinician_icc"),
        Code.LIKE_FOR_LIKE: agreement(rows.get("like_for_like"), "like_for_like"),
        Code.DECISION: decided(jury, calibration.decision),
        Code.DETECTION: detection([row for row in found if row.scorer == "jury"]),
    }
    for code, part in parts.items():
        yield from ((code, one) for one in part)
    for scorer, row in rows.items():
        if scorer.startswith("metric:"):
            of = scorer.removeprefix("metric:")
            yield from ((Code.METRICS, one) for one in agreement(row, "metric_icc", of))
    yield Code.TABLE, word("agreement_table", "below, under Results")


def _read(engine: Engine, calibration: "Calibration", counts: Facts) -> Iterator[Coded]:
    readings, incomplete = readings_of(calibration.scores)
    if readings:
        every = readings_by_response(OPERATOR, engine).values()
        several = sum(n for times in every for often, n in times.items() if often >= SHARED_BY)
        yield Code.READINGS, figure("readings", readings)
        yield Code.READINGS, figure("read_twice", several)
        yield Code.READINGS, figure("repeats", counts.repeats)
    if readings > counts.elsewhere:
        yield Code.BLINDING, figure("blinded_readings", readings - counts.elsewhere)
        yield Code.BLINDING, figure("readings_elsewhere", counts.elsewhere)
        yield Code.BLINDING, figure("masked", counts.masked)
        yield Code.BLINDING, figure("unblinded", len(acts(engine, UNBLINDED)))
    yield Code.MISSING, figure("incomplete", incomplete)
    yield Code.MISSING, figure("unread", unread(calibration.scores))
    for juror, statuses in by_juror(missing_verdicts(engine)).items():
        yield Code.MISSING, figure("missing_verdicts", sum(statuses.values()), juror)


def agreement(row: "AgreementRow | None", name: str, of: str = "") -> Iterator[Evidence]:
    """Yield an ICC that has an interval: without one, nothing tells how sure it is."""
    if row and all(map(math.isfinite, (row.icc, row.low, row.high))):
        yield figure(name, row.icc, of, row.low, row.high)


def decided(jury: Sequence[str], decision: Decision) -> Iterator[Evidence]:
    """Yield what may be said of a jury, for it or against it; nothing where no decision can be made."""
    if jury and decision.kind in SAID_OF_JURY:
        yield word("decision", decision.headline)
        yield figure("decision_estimate", decision.estimate, low=decision.low, high=decision.high)


def detection(rows: Sequence["DetectionRow"]) -> Iterator[Evidence]:
    """Yield how many unsafe responses the jury misses; nothing where clinicians found none unsafe."""
    for row in rows:
        if row.n_bad and row.n_missed is not None:
            of = f"({row.criterion} at {row.threshold:g} or below)"
            yield figure("unsafe", row.n_bad, of)
            yield figure("missed", row.n_missed, of)
            ends = row.sensitivity_low, row.sensitivity_high
            yield figure("sensitivity", row.sensitivity, of, *ends)


def juror_settings(
    jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]]
) -> Iterator[Evidence]:
    """Yield the settings of each juror and their SHA-256; nothing where those of any are not known."""
    if not all(profiles.get(name, {}).get("model") for name in jury):
        return
    for name in jury:
        profile = profiles[name]
        told = (f"{key} {profile[key]}" for key in SETTINGS if profile.get(key) not in (None, ""))
        yield word("juror_settings", ", ".join(told) or "none but the model", name)
        yield hashed("juror_settings", with_hash(profile)["sha256"], name)
