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

from calibration.report.content import Study
from calibration.values import COMBINED
from data.schema import now
from data.study.calls import juror_profiles, other_models
from data.study.costs import study_spending
from data.study.ledger import compositions_tried
from data.study.standing import benchmarks
from medjury.services.calibration import Calibration

FORMATS = ("html", "markdown", "csv", "latex")
SOFTWARE = ("medjury", "numpy", "pandas", "scipy", "statsmodels")


def report_text(engine: Engine | None, calibration: Calibration, form: str) -> str:
    """Return a calibration in one of `FORMATS`; it is of no study where there is no engine.

    The page needs `details` and `page` to have been asked for; the tables only the rows.
    """
    if form == "html":
        from calibration.report.page import page

        return page(content_of(engine, calibration) if engine else _of_file(calibration))
    options = calibration.question.options
    if form == "csv":
        from calibration.writers import table_csv

        settings = {"method": options.method, "reps": options.reps, "seed": options.seed}
        return table_csv(calibration.rows, settings)
    from calibration.writers import agreement_table, latex, markdown

    scope = f", criterion {options.criterion}" if options.criterion else ""
    scope += f", {calibration.readings.named} readings" if calibration.readings.named else ""
    how_made = f"Method {options.method}{scope}; 95 %: jackknife over instances"
    table = agreement_table(calibration.rows, how_made)
    return markdown(table) if form == "markdown" else latex(table)


def content_of(engine: Engine, calibration: Calibration) -> Calibration:
    """Return a calibration with the facts that every report owes its reader."""
    looked = calibration.looked
    ledger, spent = compositions_tried(engine), study_spending(engine)
    profiles = juror_profiles(engine, looked.jurors)
    keys = {looked.entry(name).key for name in (*calibration.benchmarks, COMBINED)}
    study = replace(
        _of_file(calibration).study,
        fingerprint=next((entry.fingerprint for entry in ledger if entry.key in keys), ""),
        jurors={name: with_hash(profiles.get(name, {})) for name in looked.jurors},
        silent=calibration.silent,
        other_models=other_models(engine),
        rubrics=[one for one in benchmarks(engine) if one.name in calibration.benchmarks],
        tried=ledger,
        usd=spent.known,
        calls=spent.calls,
        calls_unknown=spent.unknown,
    )
    return replace(calibration, study=study)


def _of_file(calibration: Calibration) -> Calibration:
    """Return a calibration with the facts of a report that need no study."""
    looked, software = calibration.looked, {package: version(package) for package in SOFTWARE}
    study = Study(
        made=f"{now():%Y-%m-%d %H:%M} UTC",
        options=calibration.question.options,
        needed=looked.needed,
        jurors={name: {} for name in looked.jurors},
        rated=calibration.scores.rated_by("juror"),
        told=calibration.told,
        versions={"Python": platform.python_version()} | software,
    )
    return replace(calibration, study=study)


def with_hash(profile: Mapping[str, Any]) -> dict[str, Any]:
    """Return a juror's settings with their SHA-256; nothing where the study has none."""
    if not profile:
        return {}
    settings = json.dumps(dict(profile), sort_keys=True)
    return dict(profile) | {"sha256": hashlib.sha256(settings.encode()).hexdigest()}
