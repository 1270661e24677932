"""A calibration as a report for readers elsewhere: the facts it owes them, and its four forms.

Nothing here says who wrote a response, and nothing quotes one.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from sqlalchemy import Engine

from calibration.json_values import decision_json, json_value
from calibration.report.content import Content, Costs, Juror, Study, Tried, UsedRubric
from calibration.report.evidence import Paired
from calibration.scores import Scores
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


def report_text(engine: Engine, found: Calibration, form: str) -> str:
    """Return a calibration in one of `FORMATS`.

    The page needs `details` and `page` to have been asked for; the tables only the rows.
    """
    if form == "html":
        from calibration.report.page import page

        return page(content_of(engine, found))
    options = found.question.options
    if form == "csv":
        from calibration.writers.table_csv import table_csv

        how = {"method": options.method, "reps": options.reps, "seed": options.seed}
        return table_csv(found.rows, how)
    from calibration.writers import markup

    what = f", criterion {options.criterion}" if options.criterion else ""
    what += f", {found.readings.named} readings" if found.readings.named else ""
    how_made = (
        f"Method {options.method}{what}; bootstrap over instances, {options.reps} resamples, seed "
        f"{options.seed}"
    )
    return {"markdown": markup.markdown, "latex": markup.latex}[form](found.rows, how_made)


def content_of(engine: Engine, found: Calibration) -> Content:
    """Return what a report is made from."""
    facts = facts_of(engine, found)
    return Content(
        found.rows,
        found.decisions,
        found.details,
        found.criteria,
        found.paired,
        facts,
        found.detection,
        found.subgroups,
        found.opinions,
        found.protocol,
    )


def facts_of(engine: Engine, found: Calibration) -> Study:
    """Return the facts that every report owes its reader."""
    options, looked, scores = found.question.options, found.looked, found.scores
    profiles, ledger = juror_profiles(engine, looked.jurors), compositions_tried(engine)
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
        fingerprint=next((one.fingerprint for one in ledger if one.key in keys), ""),
        jurors=[_juror(name, profiles.get(name, {})) for name in looked.jurors],
        silent=found.silent,
        rubrics=[_rubric(one) for one in benchmarks(engine) if one.name in scores.benchmarks],
        tried=[_tried(one) for one in ledger],
        costs=_costs(engine, scores),
        told=found.told,
        versions={"Python": platform.python_version()} | {one: version(one) for one in SOFTWARE},
    )


def as_json(engine: Engine, found: Calibration, *, pairs: bool = False) -> dict[str, Any]:
    """Return a calibration as `calibrate --json` has it; `pairs` adds what only a page shows."""
    options = found.question.options
    body: dict[str, Any] = {"method": options.method, "k": 2}
    body |= {"reps": options.reps, "seed": options.seed}
    body |= {"decision": decision_json(found.decision), "protocol": protocol_json(found.protocol)}
    body |= found.readings.to_json()
    body |= {"rows": json_value(found.rows)}
    body |= {
        "reliability": json_value(found.reference.reliability),
        "disattenuated": json_value(found.reference.disattenuated),
    }
    if found.question.details:
        body |= {"details": json_value(found.details)}
    body |= {
        "detection": json_value(found.detection.rows),
        "subgroups": json_value(found.subgroups),
    }
    body |= found.kept.to_json()
    if found.question.second_opinion:
        body |= {"second_opinion": json_value(found.opinions)}
    if pairs:
        body |= {
            "criteria": json_value(found.criteria),
            "pairs": [_pair(one) for one in found.paired.values()],
            "study": json_value(facts_of(engine, found)),
        }
    return body


def _pair(one: Paired) -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "responses": list(one.responses),
        "clinicians": [round(float(value), 6) for value in one.clinicians],
        "jury": [round(float(value), 6) for value in one.jury],
    }


def _juror(name: str, profile: Mapping[str, Any]) -> Juror:
    if not profile:
        return Juror(name)
    settings = json.dumps(dict(profile), sort_keys=True)
    return Juror(
        name,
        model=str(profile.get("model", "")),
        provider=str(profile.get("provider", "")),
        sha256=hashlib.sha256(settings.encode()).hexdigest(),
    )


def _rubric(view: Any) -> UsedRubric:
    rubric = view.rubric
    return UsedRubric(
        view.name, rubric.name, rubric.version, rubric.criteria, str(rubric.scale), rubric.sha256
    )


def _tried(one: Composition) -> Tried:
    return Tried(
        jurors=tuple(one.jurors),
        needed=one.needed,
        benchmark=one.benchmark,
        criterion=one.criterion,
        method=one.method,
        instances=one.instances,
        icc=one.icc,
        n_responses=one.n_responses,
        times=one.times,
        last=f"{one.last_at:%Y-%m-%d %H:%M}",
        simulated=one.simulated,
    )


def _costs(engine: Engine, scores: Scores) -> Costs:
    spent = spending(engine)
    rated = scores.ratings.loc[scores.ratings["kind"] == "juror", "response_id"].nunique()
    return Costs(spent.usd, spent.calls, spent.unknown, int(rated))
