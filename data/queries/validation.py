"""What a study can say for a rubric and a jury: who rated on it, and what was found."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, func
from sqlmodel import col, select

from data.card import ExportRow
from data.database import reading
from data.errors import BadInput
from data.person import Person, asking, only
from data.queries.base import FOR_STUDY, INDEPENDENT, Columns, columns_of
from data.queries.ledger import reports, tried
from data.queries.record import acts
from data.queries.study import simulated_raters
from data.rubric import Rubric
from data.samples import RESPONSES as DEMO
from data.schema import (
    Benchmark,
    Composition,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Report,
    Response,
    Role,
    RubricText,
)

Seat = Mapping[str, Any]
COMBINED = "combined"
ADJUDICATED = "adjudicated readings"  # what the ledger calls figures of these
SIMULATED = "simulated"  # the code of a note on a figure of raters that are not real
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RubricRater:
    """A clinician or juror with a rating on the rubric; `profile` is empty for imported jurors."""

    handle: str
    kind: Kind
    simulated: bool
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RubricUse:
    """What stands in a study on one rubric, known by its hash.

    Attributes
    ----------
    benchmarks
        Those that are rated on it now, by name.
    raters
        Clinicians and jurors who rated responses of these on it.
    demo
        Whether a response has the text of one of the demo's.
    checklists
        Whether an instance has a checklist.
    """

    benchmarks: tuple[str, ...]
    raters: tuple[RubricRater, ...]
    demo: bool
    checklists: bool


def rubric_use(engine: Engine, rubric: Rubric) -> RubricUse:
    """Return who rated on exactly this rubric, and on what. Training responses are left out."""
    with reading(engine) as session:
        named = select(Benchmark.name).where(Benchmark.rubric_sha256 == rubric.sha256)
        benchmarks = tuple(session.exec(named.order_by(Benchmark.name)))
        own = col(Instance.benchmark).in_(benchmarks)
        rated = select(Rating.rater).join(Response).join(Instance)
        rated = rated.where(own, Rating.rubric_sha256 == rubric.sha256, FOR_STUDY, INDEPENDENT)
        raters = session.exec(
            select(Rater.handle, Rater.kind, Rater.simulated, Rater.profile)
            .where(col(Rater.id).in_(rated), Rater.kind != Kind.METRIC)
            .order_by(Rater.handle)
        )
        found = tuple(
            RubricRater(name, Kind(kind), made_up, profile or {})
            for name, kind, made_up, profile in raters
        )
        lists = select(Instance.id).where(own, col(Instance.checklist).is_not(None))
        checklists = session.exec(lists.limit(1)).first() is not None
    return RubricUse(benchmarks, found, _is_demo(engine, rubric), checklists)


def material(engine: Engine, rubric: Rubric) -> Iterator[ExportRow]:
    """Yield the responses of the benchmarks on a rubric, as raters see them, by instance.

    The reference is None where there is none and where the rubric's gold policy is "never".
    """
    query = (
        columns_of(Instance, func.coalesce(Response.shown, Response.text), Response.response_id)
        .select_from(Response)
        .join(Instance)
        .join(Benchmark)
        .where(Benchmark.rubric_sha256 == rubric.sha256, FOR_STUDY)
        .order_by(col(Instance.id), col(Response.id))
    )
    with reading(engine) as session:
        for one, text, response_id in session.exec(query):
            reference = None if rubric.gold == "never" else one.reference
            name = f"{one.benchmark}/{one.instance_id}"
            place = (one.checklist, one.benchmark, response_id)
            yield ExportRow(name, one.context, one.prompt, reference, text, *place)


def validation_evidence(
    found: RubricUse, seats: Sequence[Seat], made_up: Collection[str]
) -> dict[str, Any]:
    """Return who and what stands behind a jury's figures: JSON values, of clinicians only counts.

    Parameters
    ----------
    seats
        The jurors: `name`, and the profile they are asked with.
    made_up
        Names that simulated jurors go by.

    Raises
    ------
    BadInput
        If a juror goes by the name of a clinician who rated.
    """
    doctors = [one for one in found.raters if one.kind == Kind.CLINICIAN]
    heard = {one.handle: one for one in found.raters if one.kind == Kind.JUROR}
    names = [str(one["name"]) for one in seats]
    if both := sorted({one.handle for one in doctors} & {*names}):
        raise BadInput(
            f"juror {', '.join(both)}: a clinician of this study; name the juror otherwise"
        )
    simulated = {name for name, one in heard.items() if one.simulated} | {*made_up}
    simulated |= {str(one["name"]) for one in seats if one["provider"] == "simulated"}
    changed = {
        str(one["name"])
        for one in seats
        if (known := heard.get(str(one["name"])))
        and known.profile
        and {"name": known.handle, **known.profile} != dict(one)
    }
    return {
        "benchmarks": list(found.benchmarks),
        "clinicians": len(doctors),
        "simulated_clinicians": sum(one.simulated for one in doctors),
        "simulated_jurors": [name for name in names if name in simulated],
        "demo": found.demo,
        "unheard_jurors": [name for name in names if name not in heard],
        "changed_jurors": [name for name in names if name in changed],
    }


def caveats(engine: Engine, found: RubricUse, seats: Sequence[Seat]) -> list[str]:
    """Return what a reader should know of a validation, although it does not undo one."""
    imported = {one.handle for one in found.raters if one.kind == Kind.JUROR and not one.profile}
    told = [
        f"{one['name']}: imported ratings; that they come from these settings is the importer's word"
        for one in seats
        if one["name"] in imported
    ]
    if found.checklists:
        told.append(
            "instances have checklists: HELM without the plugin, and OpenAI, ask without them"
        )
    counts = {action: len(acts(engine, action)) for action in ("unblinded", "reopened")}
    return told + [
        f"the study was {action}: {number}" for action, number in counts.items() if number
    ]


def _is_demo(engine: Engine, rubric: Rubric) -> bool:
    """Tell whether a response on the rubric is the demo's, under whatever name it was brought in."""
    lines = DEMO.read_text("utf-8").splitlines()
    made_up = {json.loads(line)["response"] for line in lines if line.strip()}
    return any(one.response in made_up for one in material(engine, rubric))


@dataclass(frozen=True, slots=True)
class RatedOn:
    """How much was rated on one rubric, by its hash, by one kind of raters.

    Attributes
    ----------
    ratings
        Scores that stand in the study: corrected ones and repeats are counted too.
    readings
        Pairs of a rater and a response, of responses that are not for training.
    simulated
        How many of the raters are.
    """

    ratings: int = 0
    responses: int = 0
    raters: int = 0
    readings: int = 0
    simulated: int = 0


@dataclass(frozen=True, slots=True)
class StudyRubric:
    """A rubric that stands in the study; `benchmarks` are those rated on it now."""

    rubric: Rubric
    added: datetime
    benchmarks: tuple[str, ...]
    clinicians: RatedOn
    jurors: RatedOn


@dataclass(frozen=True, slots=True, kw_only=True)
class JuryValidation:
    """A jury that was held against clinicians on one exact rubric, and what was found.

    Attributes
    ----------
    report
        Number of the frozen report it is from; None from the ledger, which has no intervals.
    criterion
        Empty for the composite of all.
    like_for_like
        The difference with its interval; None where undefined or not known.
    times
        How often the ledger counts it; 1 for a report.
    """

    report: int | None = None
    name: str = ""
    at: datetime
    benchmark: str
    jurors: tuple[str, ...]
    criterion: str
    method: str
    simulated: bool
    icc: float | None
    low: float | None = None
    high: float | None = None
    n_responses: int
    n_clinicians: int | None = None
    like_for_like: tuple[float | None, float | None, float | None] = (None, None, None)
    times: int = 1


@only(Role.RESEARCHER, Role.COORDINATOR)
def study_rubrics(_: Person, engine: Engine) -> list[StudyRubric]:
    """Return every rubric that stands in the study, by name and then the newest first."""
    with reading(engine) as session:
        rows = list(session.exec(select(RubricText)))
        used = list(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)))
    rated = _rated(engine)
    found = [
        StudyRubric(
            Rubric.from_json(one.body),
            one.added,
            tuple(sorted(name for name, sha256 in used if sha256 == one.sha256)),
            rated.get((one.sha256, Kind.CLINICIAN), RatedOn()),
            rated.get((one.sha256, Kind.JUROR), RatedOn()),
        )
        for one in rows
    ]
    return sorted(found, key=lambda one: (one.rubric.name, -one.added.timestamp()))


# Return every frozen report, the oldest first.
frozen_reports = asking(reports, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def jurors_heard(_: Person, engine: Engine) -> list[str]:
    """Return the jurors that have rated anything, by name."""
    query = select(Rater.handle).where(
        Rater.kind == Kind.JUROR, col(Rater.id).in_(select(Rating.rater))
    )
    with reading(engine) as session:
        return sorted(session.exec(query))


@only(Role.RESEARCHER, Role.COORDINATOR)
def validations(_: Person, engine: Engine, sha256: str) -> list[JuryValidation]:
    """Return every time a jury was held against clinicians on this exact rubric, newest first.

    Frozen reports name the rubric of each benchmark. The ledger names the benchmark, and a
    benchmark that was rated never changes its rubric. A figure over several benchmarks counts
    where all of them are rated on this rubric. What was looked at with settled differences in it
    is left out.
    """
    with reading(engine) as session:
        now = dict(session.exec(select(Benchmark.name, Benchmark.rubric_sha256)).all())
    own = {name for name, used in now.items() if used == sha256}
    whole = own | ({COMBINED} if own and len(own) == len(now) else set())
    clinicians = _rated(engine).get((sha256, Kind.CLINICIAN), RatedOn())
    made_up = _MadeUp(frozenset(simulated_raters(engine)), clinicians.simulated > 0)
    found = [one for report in reports(engine) for one in _of_report(report, sha256, made_up)]
    independent = [one for one in tried(engine) if ADJUDICATED not in one.instances]
    found += [_of_ledger(one) for one in independent if one.benchmark in whole]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _rated(engine: Engine) -> dict[tuple[str, Kind], RatedOn]:
    """Return what was rated on each rubric, by hash and kind of rater."""
    place = (col(Rating.rubric_sha256), col(Rater.kind))
    each = (*place, col(Rating.rater), col(Rater.simulated))
    responses_of = func.count(func.distinct(Rating.response))
    query = columns_of(*each, func.count(), responses_of).group_by(*each)
    covered = columns_of(*place, responses_of).group_by(*place)
    with reading(engine) as session:
        rows = list(session.exec(_not_for_training(query)))
        responses = {(sha, kind): n for sha, kind, n in session.exec(_not_for_training(covered))}
    return {
        place: _sum([row for row in rows if (row[0], row[1]) == place], n)
        for place, n in responses.items()
    }


def _not_for_training(query: Columns) -> Columns:
    """Select from independent ratings on any rubric, training responses left out."""
    training = col(Rating.response).in_(select(Expert.response))
    query = query.select_from(Rating).join(Rater)
    return query.where(col(Rating.rubric_sha256).is_not(None), INDEPENDENT, ~training)


def _sum(rows: Sequence[Any], responses: int) -> RatedOn:
    return RatedOn(
        ratings=sum(row[4] for row in rows),
        responses=responses,
        raters=len(rows),
        readings=sum(row[5] for row in rows),
        simulated=sum(bool(row[3]) for row in rows),
    )


@dataclass(frozen=True, slots=True)
class _MadeUp:
    """Who is simulated in the study now: raters by name, and whether a clinician on a rubric is."""

    raters: frozenset[str]
    has_clinician: bool

    def behind(self, jury: Sequence[str], rows: Sequence[Row]) -> bool:
        """Tell whether a report's rows rest on simulated raters; from the study if they have no codes."""
        if all("notes" in row for row in rows):
            return any(note["code"] == SIMULATED for row in rows for note in row["notes"])
        return self.has_clinician or not self.raters.isdisjoint(jury)


def _of_report(one: Report, sha256: str, made_up: _MadeUp) -> list[JuryValidation]:
    """Return what a report says of juries on one rubric."""
    rubrics = one.body.get("rubrics", {})
    own = {name for name, told in rubrics.items() if told["sha256"] == sha256}
    whole = own | ({COMBINED} if own and len(own) == len(rubrics) else set())
    rows = [row for row in one.body.get("rows", ()) if row["benchmark"] in whole]
    held = {row["benchmark"]: row for row in rows if row["scorer"] == "like_for_like"}
    return [
        _of_row(one, row, held.get(row["benchmark"], {}), made_up)
        for row in rows
        if row["scorer"] == "jury"
    ]


def _of_row(one: Report, row: Row, held: Row, made_up: _MadeUp) -> JuryValidation:
    jury = tuple(one.body.get("jury", ()))
    return JuryValidation(
        report=one.id,
        name=one.body.get("name", ""),
        at=one.at,
        benchmark=row["benchmark"],
        jurors=jury,
        criterion=one.body.get("options", {}).get("criterion") or "",
        method=one.body.get("method") or "",
        simulated=made_up.behind(jury, [part for part in (row, held) if part]),
        icc=row["icc"],
        low=row["boot_low"],
        high=row["boot_high"],
        n_responses=row["n_responses"],
        n_clinicians=row["n_clinicians"],
        like_for_like=(held.get("icc"), held.get("boot_low"), held.get("boot_high")),
    )


def _of_ledger(one: Composition) -> JuryValidation:
    same = ("benchmark", "criterion", "method", "simulated", "icc", "n_responses", "times")
    figures = {name: getattr(one, name) for name in same}
    return JuryValidation(at=one.last_at, jurors=tuple(one.jurors), **figures)
