"""What of a study's ratings answers items of reporting guidelines: a figure counts where it is defined."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import Decision, DecisionKind
from calibration.dossier import Evidence, figure, hashed, word
from calibration.values import COMBINED
from data.guidelines import EvidenceCode as Code
from data.person import OPERATOR, UNBLINDED
from data.queries import readings_by_response
from data.queries.jury import by_juror, juror_profiles, missing_verdicts
from data.queries.record import acts
from data.queries.study import Facts
from medjury.services.methods import readings_of, unread

if TYPE_CHECKING:
    from calibration.detection import DetectionRow
    from calibration.scope import AgreementRow
    from medjury.services.calibrate import Calibration

SHARED_BY = 2  # clinicians whose readings of one response tell how far they agree
SETTINGS = ("provider", "temperature", "max_tokens", "effort", "schema")
SAID_OF_JURY = (
    DecisionKind.NON_INFERIOR,
    DecisionKind.INFERIOR,
    DecisionKind.INCONCLUSIVE,
    DecisionKind.SIMULATED,
)


def rated_evidence(
    engine: Engine, calibration: "Calibration", counts: Facts
) -> dict[Code, Iterable[Evidence]]:
    """Return what rests on ratings."""
    readings, incomplete = readings_of(calibration.scores)
    widest = _widest(calibration)
    by_scorer = {row.scorer: row for row in calibration.rows if row.benchmark == widest}
    profiles = juror_profiles(engine, calibration.jury)
    return {
        Code.READINGS: _read(engine, readings, counts.repeats),
        Code.BLINDING: _blinding(engine, counts, readings),
        Code.MISSING: _missing(engine, calibration, incomplete),
        Code.JURORS: _jurors(calibration.jury, profiles),
        Code.JUROR_SETTINGS: juror_settings(calibration.jury, profiles),
        Code.AGREEMENT: agreement(by_scorer.get("jury"), "jury_icc"),
        Code.CLINICIAN_AGREEMENT: agreement(by_scorer.get("clinicians"), "clinician_icc"),
        Code.LIKE_FOR_LIKE: agreement(by_scorer.get("like_for_like"), "like_for_like"),
        Code.METRICS: _metrics(by_scorer),
        Code.DECISION: decided(calibration.jury, calibration.decision),
        Code.DETECTION: detection(
            [
                row
                for row in calibration.detection.rows
                if row.scorer == "jury" and row.benchmark == widest
            ]
        ),
    }


def agreement(row: "AgreementRow | None", name: str) -> Iterator[Evidence]:
    """Yield an ICC that has an interval: without one, nothing tells how sure it is."""
    if row is not None and _are_known(row.icc, row.boot_low, row.boot_high):
        yield figure(name, row.icc, low=row.boot_low, high=row.boot_high)


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
    from medjury.services.reports import juror_of_report

    if not all(profiles.get(name, {}).get("model") for name in jury):
        return
    for name in jury:
        profile = profiles[name]
        told = (f"{key} {profile[key]}" for key in SETTINGS if profile.get(key) not in (None, ""))
        yield word("juror_settings", ", ".join(told) or "none but the model", name)
        yield hashed("juror_settings", juror_of_report(name, profile).sha256, name)


def _jurors(jury: Sequence[str], profiles: Mapping[str, Mapping[str, Any]]) -> Iterator[Evidence]:
    for name in jury:
        yield word("juror", str(profiles.get(name, {}).get("model") or "model not known"), name)


def _are_known(*values: float) -> bool:
    return all(map(math.isfinite, values))


def _widest(calibration: "Calibration") -> str:
    """Return what all figures of a study are of: all benchmarks combined, or the only one."""
    names = [row.benchmark for row in calibration.rows]
    return COMBINED if COMBINED in names else names[0] if names else COMBINED


def _read(engine: Engine, readings: int, repeats: int) -> Iterator[Evidence]:
    if readings:
        yield figure("readings", readings)
        by_response = readings_by_response(OPERATOR, engine).values()
        several = sum(
            number for times in by_response for often, number in times.items() if often >= SHARED_BY
        )
        yield figure("read_twice", several)
        yield figure("repeats", repeats)


def _blinding(engine: Engine, counts: Facts, readings: int) -> Iterator[Evidence]:
    blinded = readings - counts.elsewhere
    if blinded > 0:
        yield figure("blinded_readings", blinded)
        yield figure("readings_elsewhere", counts.elsewhere)
        yield figure("masked", counts.masked)
        yield figure("unblinded", len(acts(engine, UNBLINDED)))


def _missing(engine: Engine, calibration: "Calibration", incomplete: int) -> Iterator[Evidence]:
    yield figure("incomplete", incomplete)
    yield figure("unread", unread(calibration.scores))
    for juror, statuses in by_juror(missing_verdicts(engine)).items():
        yield figure("missing_verdicts", sum(statuses.values()), juror)


def _metrics(rows: "Mapping[str, AgreementRow]") -> Iterator[Evidence]:
    for scorer, row in rows.items():
        if scorer.startswith("metric:") and _are_known(row.icc, row.boot_low, row.boot_high):
            of = scorer.removeprefix("metric:")
            yield figure("metric_icc", row.icc, of, low=row.boot_low, high=row.boot_high)
