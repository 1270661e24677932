"""What a report says of the study it was made from: never who wrote a response, never a text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from data.queries import benchmarks
from data.queries.attempts import juror_profiles, spending
from data.queries.ledger import LedgerEntry, tried

if TYPE_CHECKING:
    from calibration.report.content import Costs, Juror, Study, Tried, UsedRubric
    from calibration.scope import Asked as Options
    from calibration.scores import Scores
    from medjury.services.ledger import Looked


def study_of_report(
    engine: Engine, looked: "Looked", options: "Options", scores: "Scores"
) -> "Study":
    """Return the facts that stand in the study; when and with what it was made is the caller's."""
    from calibration.report.content import Study

    profiles = juror_profiles(engine, looked.jurors)
    ledger = tried(engine)
    keys = {looked.entry(name).key for name in (*scores.benchmarks, "combined")}
    return Study(
        made="",
        method=options.method,
        criterion=options.criterion,
        reps=options.reps,
        seed=options.seed,
        min_shared=options.min_shared,
        needed=looked.needed,
        references=looked.instances.partition(" ")[0] or "all",
        fingerprint=next((one.fingerprint for one in ledger if one.key in keys), ""),
        jurors=[_juror(name, profiles.get(name, {})) for name in looked.jurors],
        rubrics=[_rubric(one) for one in benchmarks(engine) if one.name in scores.benchmarks],
        tried=[_tried(one) for one in ledger],
        costs=_costs(engine, scores),
    )


def _juror(name: str, profile: Mapping[str, Any]) -> "Juror":
    import hashlib
    import json

    from calibration.report.content import Juror

    if not profile:
        return Juror(name)
    settings = json.dumps(dict(profile), sort_keys=True)
    return Juror(
        name,
        model=str(profile.get("model", "")),
        provider=str(profile.get("provider", "")),
        sha256=hashlib.sha256(settings.encode()).hexdigest(),
    )


def _rubric(view: Any) -> "UsedRubric":
    from calibration.report.content import UsedRubric

    rubric = view.rubric
    return UsedRubric(
        view.name, rubric.name, rubric.version, rubric.criteria, str(rubric.scale), rubric.sha256
    )


def _tried(one: LedgerEntry) -> "Tried":
    from calibration.report.content import Tried

    return Tried(
        jurors=one.jurors,
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


def _costs(engine: Engine, scores: "Scores") -> "Costs":
    from calibration.report.content import Costs

    spent = spending(engine)
    rated = scores.ratings.loc[scores.ratings["kind"] == "juror", "response_id"].nunique()
    return Costs(spent.usd, spent.calls, spent.unknown, int(rated))
