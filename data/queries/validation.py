"""What a study can say for a rubric and a jury: who rated on it, and its responses."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select
from sqlmodel import col

from data.database import reading
from data.errors import BadInput
from data.queries.record import acts
from data.rubric import Rubric
from data.samples import RESPONSES as DEMO
from data.schema import Benchmark, Expert, Instance, Kind, Rater, Rating, Response

Seat = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RaterBehind:
    """A clinician or juror with a rating on the rubric; `profile` is empty for imported jurors."""

    handle: str
    kind: Kind
    simulated: bool
    profile: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Behind:
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
    raters: tuple[RaterBehind, ...]
    demo: bool
    checklists: bool


@dataclass(frozen=True, slots=True)
class Material:
    """One response as raters see it, with its instance; no author."""

    instance_id: str
    context: str
    prompt: str
    reference: str | None
    response: str


def behind(engine: Engine, rubric: Rubric) -> Behind:
    """Return who rated on exactly this rubric, and on what. Training responses are left out."""
    with reading(engine) as session:
        named = select(col(Benchmark.name)).where(col(Benchmark.rubric_sha256) == rubric.sha256)
        benchmarks = tuple(session.scalars(named.order_by(col(Benchmark.name))))
        rated = (
            select(col(Rating.rater))
            .join(Response, col(Response.id) == col(Rating.response))
            .join(Instance, col(Instance.id) == col(Response.instance))
            .where(
                col(Instance.benchmark).in_(benchmarks),
                col(Rating.rubric_sha256) == rubric.sha256,
                col(Response.id).not_in(select(col(Expert.response))),
            )
        )
        raters = session.execute(
            select(col(Rater.handle), col(Rater.kind), col(Rater.simulated), col(Rater.profile))
            .where(col(Rater.id).in_(rated), col(Rater.kind) != Kind.METRIC)
            .order_by(col(Rater.handle))
        )
        found = tuple(
            RaterBehind(name, kind, made_up, profile or {})
            for name, kind, made_up, profile in raters
        )
        lists = select(col(Instance.id)).where(
            col(Instance.benchmark).in_(benchmarks), col(Instance.checklist).is_not(None)
        )
        checklists = session.scalars(lists.limit(1)).first() is not None
    return Behind(benchmarks, found, _is_demo(engine, rubric), checklists)


def material(engine: Engine, rubric: Rubric) -> Iterator[Material]:
    """Yield the responses of the benchmarks on a rubric, as raters see them, by instance.

    The reference is None where there is none and where the rubric's gold policy is "never".
    """
    query = (
        select(Instance, col(Response.shown), col(Response.text))
        .join(Response, col(Response.instance) == col(Instance.id))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .where(
            col(Benchmark.rubric_sha256) == rubric.sha256,
            col(Response.id).not_in(select(col(Expert.response))),
        )
        .order_by(col(Instance.id), col(Response.id))
    )
    with reading(engine) as session:
        for one, shown, text in session.execute(query):
            yield Material(
                f"{one.benchmark}/{one.instance_id}",
                one.context,
                one.prompt,
                None if rubric.gold == "never" else one.reference,
                text if shown is None else shown,
            )


def evidence(found: Behind, seats: Sequence[Seat], made_up: Collection[str]) -> dict[str, Any]:
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


def caveats(engine: Engine, found: Behind, seats: Sequence[Seat]) -> list[str]:
    """Return what a reader should know of a validation, although it does not undo one."""
    imported = {one.handle for one in found.raters if one.kind == Kind.JUROR and not one.profile}
    told = [
        f"{one['name']}: imported ratings; that they come from these settings is the importer's word"
        for one in seats
        if one["name"] in imported
    ]
    if found.checklists:
        told.append("instances have checklists, which are not exported")
    counts = {action: len(acts(engine, action)) for action in ("unblinded", "reopened")}
    return told + [
        f"the study was {action}: {number}" for action, number in counts.items() if number
    ]


def _is_demo(engine: Engine, rubric: Rubric) -> bool:
    """Tell whether a response on the rubric is the demo's, under whatever name it was brought in."""
    lines = DEMO.read_text("utf-8").splitlines()
    made_up = {json.loads(line)["response"] for line in lines if line.strip()}
    return any(one.response in made_up for one in material(engine, rubric))
