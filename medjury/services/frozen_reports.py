"""Frozen reports: keeping a calibration as it is, and what each found and changed over time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.notes import Noted, note, noted
from calibration.shared_notes import SIMULATED
from calibration.values import COMBINED, AnalysisOptions
from data.errors import BadInput
from data.schema import Report
from data.study.calls import juror_profiles
from data.study.ledger import fingerprint, freeze
from data.study.standing import benchmarks

if TYPE_CHECKING:
    from medjury.services.calibration import Calibration

JURY = "jury"
FIGURES = ("method", "k", "reps", "seed", "rows", "references", "pairs")
OPTIONS = ("benchmark", "criterion", "min_shared", "min_jurors", "references")
SHOWN = ("benchmark", "icc", "low", "high", "n_responses", "n_instances")
NO_ROW: Mapping[str, Any] = {
    **dict.fromkeys(("benchmark", "icc", "low", "high")),
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
    low: float | None
    high: float | None
    n_responses: int
    n_instances: int
    jury: tuple[str, ...]
    method: str | None
    version: str | None
    fingerprint: str
    changed: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return its number, and its name where it has one."""
        return f"{self.report} {self.name}" if self.name else f"{self.report}"

    def to_json(self) -> dict[str, Any]:
        """Return it as `analyse monitor --json` has it."""
        figures: dict[str, Any] = json_value(self)
        return figures | {"simulated": bool(self.simulated)}


def report_rows(reports: Sequence[Report], benchmark: str | None = None) -> list[ReportRow]:
    """Return a row a report, the oldest first, with what has changed since the one before.

    Without a benchmark, of each report all benchmarks combined, or its only one.
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
    from medjury.services.calibrate import calibrate
    from medjury.services.calibration import CalibrationQuestion, as_json

    calibration = calibrate(engine, CalibrationQuestion(question.options))
    return keep_report(engine, calibration, question.name, as_json(calibration))


def keep_report(
    engine: Engine, calibration: "Calibration", name: str, body: Mapping[str, Any]
) -> int:
    """Freeze a calibration as a report, with the fingerprint of every rating; return its number.

    `body` is that of `analyse calibrate --json`; its details are left out.
    """
    from medjury.services.reports import with_hash

    options, jury = calibration.question.options, calibration.jury
    if options.reading != "independent":
        raise BadInput(
            f"a report of {options.reading} readings is not frozen: what is watched over time are "
            "independent ones"
        )
    frozen = {key: body[key] for key in FIGURES if key in body} | {
        "name": name,
        "version": version("medjury"),
        "jury": sorted(jury),
        "jurors": {
            juror: {"profile": dict(profile), "sha256": with_hash(profile).get("sha256")}
            for juror, profile in sorted(juror_profiles(engine, jury).items())
        },
        "rubrics": {
            one.name: {key: getattr(one.rubric, key) for key in ("name", "version", "sha256")}
            for one in benchmarks(engine)
        },
        "options": {key: getattr(options, key) for key in OPTIONS},
    }
    return freeze(engine, fingerprint(calibration.ratings), frozen)


def _row(report: Report, last: Report | None, benchmark: str | None) -> ReportRow:
    row, body = jury_row(report.body, benchmark), report.body
    changed = tuple(_changed(last, report, benchmark)) if last else ()
    known = (entry["raters"] for entry in row["notes"] if entry["code"] == "simulated")
    raters = sorted({name for names in known for name in names})
    words = "since the one before: {changes}"
    return ReportRow(
        report=report.id,
        at=report.at,
        name=body.get("name", ""),
        **{name: row[name] for name in SHOWN},
        jury=tuple(body.get("jury", ())),
        method=body.get("method"),
        version=body.get("version"),
        fingerprint=report.fingerprint,
        changed=changed,
        notes=noted(
            note(*SIMULATED, raters=raters) if raters else None,
            note("changed_since", words, changes=", ".join(changed)) if changed else None,
        ),
    )


def _changed(last: Report, report: Report, benchmark: str | None) -> Iterator[str]:
    """Yield what differs between a report and the one before it."""
    was, now = last.body, report.body
    old, new = was.get("rubrics", {}), now.get("rubrics", {})
    for name in sorted({*old, *new}):
        if name not in old or name not in new:
            yield f"benchmark {name} is {'gone' if name in old else 'new'}"
        elif old[name]["sha256"] != new[name]["sha256"]:
            yield f"rubric of {name}"
    before, after = set(was.get("jury", ())), set(now.get("jury", ()))
    yield from (f"juror {name} joined" for name in sorted(after - before))
    yield from (f"juror {name} left" for name in sorted(before - after))
    for name in sorted(before & after):
        marks = [body.get("jurors", {}).get(name, {}).get("sha256") for body in (was, now)]
        if marks[0] != marks[1]:
            yield f"settings of juror {name}"
    first, then = (
        {"method": body.get("method"), "version": body.get("version"), **body.get("options", {})}
        for body in (was, now)
    )
    for name in dict.fromkeys(["method", "version", *sorted(first), *sorted(then)]):
        if name != "jurors" and first.get(name) != then.get(name):
            yield f"{name} {first.get(name)} -> {then.get(name)}"
    if last.fingerprint != report.fingerprint:
        n = [jury_row(body, benchmark)["n_responses"] for body in (was, now)]
        yield f"ratings ({n[0]} -> {n[1]} responses)"
