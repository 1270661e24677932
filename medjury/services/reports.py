"""A calibration as a report for readers elsewhere: the facts it owes them, and its four forms.

Nothing here says who wrote a response, and nothing quotes one.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Any

from sqlalchemy import Engine

from calibration.json_values import decision_json, json_value
from calibration.report.content import Costs, ReportedJuror, Study, UsedRubric
from calibration.tables.juries import MINUTE
from calibration.values import COMBINED
from data.queries import benchmarks
from data.queries.costs import spending
from data.queries.jury import juror_profiles
from data.queries.ledger import compositions_tried
from data.schema import Composition, now
from medjury.services.calibrate import Calibration
from medjury.services.record import protocol_json

FORMATS = ("html", "markdown", "csv", "latex")
SOFTWARE = ("medjury", "numpy", "pandas", "scipy", "statsmodels")


def report_text(engine: Engine, calibration: Calibration, form: str) -> str:
    """Return a calibration in one of `FORMATS`.

    The page needs `details` and `page` to have been asked for; the tables only the rows.
    """
    if form == "html":
        from calibration.report.page import page

        return page(content_of(engine, calibration))
    options = calibration.question.options
    if form == "csv":
        from calibration.writers.agreement_table import table_csv

        settings = {"method": options.method, "reps": options.reps, "seed": options.seed}
        return table_csv(calibration.rows, settings)
    from calibration.writers import agreement_table

    scope = f", criterion {options.criterion}" if options.criterion else ""
    scope += f", {calibration.readings.named} readings" if calibration.readings.named else ""
    how_made = f"Method {options.method}{scope}; 95 %: jackknife over instances"
    return {"markdown": agreement_table.markdown, "latex": agreement_table.latex}[form](
        calibration.rows, how_made
    )


def content_of(engine: Engine, calibration: Calibration) -> Calibration:
    """Return a calibration with the facts that a report shows."""
    return replace(calibration, study=facts_of(engine, calibration))


def facts_of(engine: Engine, calibration: Calibration) -> Study:
    """Return the facts that every report owes its reader."""
    options, looked, scores = calibration.question.options, calibration.looked, calibration.scores
    profiles, ledger = juror_profiles(engine, looked.jurors), compositions_tried(engine)
    spent = spending(engine)
    keys = {looked.entry(name).key for name in (*scores.benchmarks, COMBINED)}
    return Study(
        made=f"{now():%Y-%m-%d %H:%M} UTC",
        method=options.method,
        criterion=options.criterion,
        reps=options.reps,
        seed=options.seed,
        min_shared=options.min_shared,
        needed=looked.needed,
        references=options.references,
        fingerprint=next((entry.fingerprint for entry in ledger if entry.key in keys), ""),
        jurors=[juror_of_report(name, profiles.get(name, {})) for name in looked.jurors],
        silent=calibration.silent,
        rubrics=[
            UsedRubric(
                one.name,
                one.rubric.name,
                one.rubric.version,
                one.rubric.criteria,
                str(one.rubric.scale),
                one.rubric.sha256,
            )
            for one in benchmarks(engine)
            if one.name in scores.benchmarks
        ],
        tried=ledger,
        costs=Costs(spent.usd, spent.calls, spent.unknown, scores.rated_by("juror")),
        told=calibration.told,
        versions={"Python": platform.python_version()}
        | {package: version(package) for package in SOFTWARE},
    )


def as_json(engine: Engine, calibration: Calibration, *, pairs: bool = False) -> dict[str, Any]:
    """Return a calibration as `analyse calibrate --json` has it; `pairs` adds what only a page shows."""
    options = calibration.question.options
    body: dict[str, Any] = {
        "method": options.method,
        "k": 2,
        "reps": options.reps,
        "seed": options.seed,
        "decision": decision_json(calibration.decision),
        "protocol": protocol_json(calibration.protocol),
        **calibration.readings.to_json(),
        "rows": json_value(calibration.rows),
        "raters": json_value(calibration.raters),
        "reliability": json_value(calibration.reference),
    }
    if calibration.question.details:
        body["details"] = json_value(calibration.details)
    body |= {
        "detection": json_value(calibration.detection),
        "subgroups": json_value(calibration.subgroups),
        **calibration.kept.to_json(),
        "checked_with": calibration.checked.to_json() if calibration.checked else None,
    }
    if pairs:
        facts = facts_of(engine, calibration)
        tried = [_tried(entry) for entry in facts.tried]
        body |= {
            "criteria": json_value(calibration.criteria),
            "pairs": [
                {
                    "benchmark": paired.benchmark,
                    "responses": list(paired.responses),
                    "clinicians": [round(float(value), 6) for value in paired.clinicians],
                    "jury": [round(float(value), 6) for value in paired.jury],
                }
                for paired in calibration.paired.values()
            ],
            "study": json_value(replace(facts, tried=())) | {"tried": tried},
        }
    return body


def _tried(entry: Composition) -> dict[str, Any]:
    names = ("needed", "benchmark", "criterion", "method", "instances", "icc", "n_responses")
    figures = {name: getattr(entry, name) for name in (*names, "times", "simulated")}
    return {"jurors": list(entry.jurors), "last": f"{entry.last_at:{MINUTE}}"} | figures


def juror_of_report(name: str, profile: Mapping[str, Any]) -> ReportedJuror:
    """Return a juror as a report names it; without settings where the study has none."""
    if not profile:
        return ReportedJuror(name)
    settings = json.dumps(dict(profile), sort_keys=True)
    return ReportedJuror(
        name,
        model=str(profile.get("model", "")),
        provider=str(profile.get("provider", "")),
        sha256=hashlib.sha256(settings.encode()).hexdigest(),
    )
