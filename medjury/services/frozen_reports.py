"""Frozen reports: keeping a calibration as it is, and what each found and changed over time."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.notes import Note, Noted, note, noted
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, AnalysisOptions
from data.errors import BadInput
from data.queries import benchmarks
from data.queries.jury import juror_profiles
from data.queries.ledger import fingerprint
from data.schema import Report
from data.store.ledger import freeze

if TYPE_CHECKING:
    from medjury.services.calibrate import Calibration

JURY = "jury"
FIGURES = ("method", "k", "reps", "seed", "rows", "references")
OPTIONS = ("benchmark", "criterion", "min_shared", "min_jurors", "references")
NO_ROW: Mapping[str, Any] = {
    **dict.fromkeys(("benchmark", "icc", "boot_low", "boot_high")),
    **dict.fromkeys(("n_responses", "n_instances"), 0),
    "notes": (),
}


@dataclass(frozen=True, slots=True)
class FreezeQuestion:
    """Which calibration is to be frozen, and what to call it; "" is no name."""

    options: AnalysisOptions
    name: str = ""


@dataclass(frozen=True)
class ReportRow(Noted):
    """What a frozen report found of its jury. None: it has no such figure.

    Its notes say which raters are not real, and what is different from the report before it.
    """

    report: int
    at: datetime
    name: str
    benchmark: str | None
    icc: float | None
    boot_low: float | None
    boot_high: float | None
    n_responses: int
    n_instances: int
    jury: tuple[str, ...]
    method: str | None
    version: str | None
    fingerprint: str

    @property
    def title(self) -> str:
        """Return its number, and its name where it has one."""
        return f"{self.report} {self.name}" if self.name else f"{self.report}"

    @property
    def changes(self) -> tuple[Note, ...]:
        """Return what is different from the report before it."""
        since = self.told("changed_since")
        return since["changes"] if since else ()

    def to_json(self) -> dict[str, Any]:
        """Return it as `analyse monitor --json` has it."""
        figures: dict[str, Any] = json_value(self)
        changed = [str(change) for change in self.changes]
        return figures | {"changed": changed, "simulated": bool(self.simulated)}


def report_rows(reports: Sequence[Report], benchmark: str | None = None) -> list[ReportRow]:
    """Return a row a report, the oldest first, with what has changed since the one before.

    Parameters
    ----------
    reports
        The oldest first.
    benchmark
        Or "combined"; None takes of each report all its benchmarks combined, or its only one.
    """
    pairs = zip([None, *reports], reports, strict=False)
    return [_row(report, last, benchmark) for last, report in pairs]


def jury_row(body: Mapping[str, Any], benchmark: str | None) -> Mapping[str, Any]:
    """Return the jury's row of a report on a benchmark; one without figures if it has none.

    Without a benchmark, that of all combined, or its only one.
    """
    rows = [row for row in body.get("rows", ()) if row["scorer"] == JURY]
    combined = [row for row in rows if row["benchmark"] == COMBINED] or rows[:1]
    matching = [row for row in rows if row["benchmark"] == benchmark] if benchmark else combined
    return matching[0] if matching else {**NO_ROW, "benchmark": benchmark}


def freeze_report(engine: Engine, question: FreezeQuestion) -> int:
    """Compute a calibration, which notes the jury in the ledger, and freeze it; return its number.

    Raises
    ------
    BadInput, Unknown, TooFew
        As `medjury.services.calibrate`.
    """
    from medjury.services.calibrate import CalibrationQuestion, calibrate
    from medjury.services.reports import as_json

    calibration = calibrate(engine, CalibrationQuestion(question.options))
    return keep_report(engine, calibration, question.name, as_json(engine, calibration))


def keep_report(
    engine: Engine, calibration: "Calibration", name: str, body: Mapping[str, Any]
) -> int:
    """Freeze a calibration as a report; return its number.

    Parameters
    ----------
    calibration
        The calibration; the report holds the fingerprint of every rating that counted.
    name
        What the user calls the report, or "".
    body
        As `analyse calibrate --json` has it; its details are left out.
    """
    options = calibration.question.options
    if options.reading != "independent":
        raise BadInput(
            f"a report of {options.reading} readings is not frozen: what is watched over time are "
            "independent ones"
        )
    frozen = {key: body[key] for key in FIGURES if key in body}
    frozen |= _made_with(engine, name, calibration.jury)
    frozen |= {"options": {name: getattr(options, name) for name in OPTIONS}}
    return freeze(engine, fingerprint(calibration.ratings), frozen)


def _made_with(engine: Engine, name: str, jury: Sequence[str]) -> dict[str, Any]:
    """Return what a report holds beside the figures: on what, by whom and with what."""
    profiles = juror_profiles(engine, jury)
    return {
        "name": name,
        "version": version("medjury"),
        "jury": sorted(jury),
        "jurors": {
            juror: {"profile": dict(profile), "sha256": _sha256(profile)}
            for juror, profile in sorted(profiles.items())
        },
        "rubrics": {
            benchmark.name: {
                "name": benchmark.rubric.name,
                "version": benchmark.rubric.version,
                "sha256": benchmark.rubric.sha256,
            }
            for benchmark in benchmarks(engine)
        },
    }


def _sha256(profile: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(dict(profile), sort_keys=True).encode()).hexdigest()


def _row(report: Report, last: Report | None, benchmark: str | None) -> ReportRow:
    row, body = jury_row(report.body, benchmark), report.body
    changes = tuple(_changed(last, report, benchmark)) if last else ()
    return ReportRow(
        report=report.id,
        at=report.at,
        name=body.get("name", ""),
        benchmark=row["benchmark"],
        icc=row["icc"],
        boot_low=row["boot_low"],
        boot_high=row["boot_high"],
        n_responses=row["n_responses"],
        n_instances=row["n_instances"],
        jury=tuple(body.get("jury", ())),
        method=body.get("method"),
        version=body.get("version"),
        fingerprint=report.fingerprint,
        notes=noted(
            _simulated(row),
            note(
                "changed_since",
                lambda figures: f"since the one before: {', '.join(figures['changes'])}",
                changes=changes,
            )
            if changes
            else None,
        ),
    )


def _simulated(row: Mapping[str, Any]) -> Note | None:
    """Return who behind a report's figure is not real."""
    own = (entry["raters"] for entry in row["notes"] if entry["code"] == "simulated")
    raters = {name for names in own for name in names}
    return note(*SIMULATED, raters=sorted(raters)) if raters else None


def _changed(last: Report, report: Report, benchmark: str | None) -> Iterator[Note]:
    """Yield what differs between a report and the one before it."""
    was, now = last.body, report.body
    yield from _rubrics(was.get("rubrics", {}), now.get("rubrics", {}))
    yield from _jurors(was, now)
    yield from _options(was, now, ("method", "version"))
    old, new = was.get("options", {}), now.get("options", {})
    yield from _options(old, new, sorted({*old, *new} - {"jurors"}))
    if last.fingerprint != report.fingerprint:
        n = [jury_row(body, benchmark)["n_responses"] for body in (was, now)]
        yield note("ratings_changed", "ratings ({was} -> {now} responses)", was=n[0], now=n[1])


def _options(
    was: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str]
) -> Iterator[Note]:
    for name in names:
        if was.get(name) != now.get(name):
            yield note(
                "option_changed",
                "{option} {was} -> {now}",
                option=name,
                was=was.get(name),
                now=now.get(name),
            )


def _rubrics(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Note]:
    for name in sorted({*was, *now}):
        if name not in was:
            yield note("benchmark_new", "benchmark {benchmark} is new", benchmark=name)
        elif name not in now:
            yield note("benchmark_gone", "benchmark {benchmark} is gone", benchmark=name)
        elif was[name]["sha256"] != now[name]["sha256"]:
            yield note("rubric_changed", "rubric of {benchmark}", benchmark=name)


def _jurors(was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Note]:
    before, after = set(was.get("jury", ())), set(now.get("jury", ()))
    yield from (
        note("juror_joined", "juror {juror} joined", juror=name) for name in sorted(after - before)
    )
    yield from (
        note("juror_left", "juror {juror} left", juror=name) for name in sorted(before - after)
    )
    for name in sorted(before & after):
        old, new = (body.get("jurors", {}).get(name, {}).get("sha256") for body in (was, now))
        if old != new:
            yield note("juror_settings", "settings of juror {juror}", juror=name)
