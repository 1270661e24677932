"""Storing instances and responses from rows; importing the same file twice changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import Conflict
from data.importers.rows import Origin, ResponseRow, Tick, batches
from data.rubric import Rubric
from data.said import short
from data.schema import Authorship, Benchmark, Instance, Response
from data.store.audit import INSTANCE, Batch, log, refuse_locked
from data.store.rubrics import keep_rubric, move_to_rubric
from data.store.subgroups import keep_subgroups, refuse_authors, subgroup_names

Key = tuple[str, str]
RubricFor = Callable[[str], Rubric]


@dataclass
class ResponsesAdded:
    """What an import changed: counts of rows stored now and of rows that were there already.

    `benchmarks` are new to the study, each with its rubric's name. `twins` repeat a stored text
    of the same model to the same instance under another response_id. `groups` counts, by name, the
    responses that were put in a group.
    """

    instances: int = 0
    responses: int = 0
    unchanged: int = 0
    twins: int = 0
    benchmarks: dict[str, str] = field(default_factory=dict)
    groups: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark stands in the taxonomy."""

    category: str = ""
    subcategory: str = ""


def import_responses(
    engine: Engine,
    rows: Iterable[ResponseRow],
    rubric_for: RubricFor,
    chosen: Rubric | None = None,
    places: Mapping[str, Place] | None = None,
    tick: Tick = lambda _: None,
) -> ResponsesAdded:
    """Store responses with their instances, all of them or none.

    Parameters
    ----------
    rows
        Streamed; memory does not grow with the length of the texts.
    rubric_for
        Gives the rubric of a benchmark that is new to the study.
    chosen
        The rubric of all benchmarks in the file, new or not; a benchmark that has been
        rated on another one is refused.
    places
        Benchmark name -> place in the taxonomy, for new benchmarks.
    tick
        Called with the number of rows of each batch stored.

    Raises
    ------
    BadRow
        If a row contradicts the file or the study: nothing of the file is stored.
    Conflict
        If a benchmark has ratings on a rubric other than `chosen`, or a group tells authors.
    """
    added, written, grouped = ResponsesAdded(), Batch("response"), Batch("subgroup")
    with transaction(engine) as session:
        refuse_locked(session)

        def keep(name: str) -> None:
            place = (places or {}).get(name, Place())
            keep_benchmark(session, name, chosen or rubric_for(name), place, added)
            if chosen and not move_to_rubric(session, name, chosen):
                raise _rated_already(name, chosen)

        keep_rows(session, rows, keep, (added, written, grouped), tick)
        refuse_authors(session, subgroup_names(session))
        log_added(session, added, written, grouped)
    return added


def keep_rows(
    session: Session,
    rows: Iterable[ResponseRow],
    keep: Callable[[str], None],
    told: tuple[ResponsesAdded, Batch, Batch],
    tick: Tick = lambda _: None,
) -> None:
    """Store rows inside the caller's transaction and add to what is told of them.

    `keep` is called once with the name of each benchmark, before its first row is stored.
    """
    added, written, grouped = told
    seen: dict[str, Origin] = {}
    known: set[str] = set()
    for batch in batches(rows):
        _refuse_repeats(batch, seen)
        for name in dict.fromkeys(row.benchmark for row in batch):
            if name not in known:
                keep(name)
                known.add(name)
        instances = _keep_instances(session, batch, added)
        keys = _keep_responses(session, batch, instances, added, written)
        with_groups = [(keys[row.response_id], row) for row in batch if row.groups]
        added.groups += keep_subgroups(session, with_groups, grouped)
        session.expunge_all()
        tick(len(batch))


def log_added(session: Session, added: ResponsesAdded, written: Batch, grouped: Batch) -> None:
    """Let the record say which responses and subgroups were stored, if any were."""
    if added.responses or added.instances or added.groups:
        detail = {"instances": added.instances} | written.detail()
        if added.groups:
            detail["written"] = [grouped.detail()]
        log(session, "researcher", "responses imported", detail)


def _refuse_repeats(batch: list[ResponseRow], seen: dict[str, Origin]) -> None:
    """Refuse a response_id that the file has already used."""
    for row in batch:
        if first := seen.get(row.response_id):
            raise row.origin.wrong(
                "response_id", row.response_id, f"already used in row {first.row}; ids must differ"
            )
        seen[row.response_id] = row.origin


def _rated_already(name: str, rubric: Rubric) -> Conflict:
    return Conflict(
        f"benchmark {short(name)!r} has ratings on another rubric than {rubric.name} {rubric.version}; "
        "import under another benchmark name, or without --rubric; nothing was imported"
    )


def keep_benchmark(
    session: Session, name: str, rubric: Rubric, place: Place, added: ResponsesAdded
) -> None:
    """Store a benchmark that is new to the study, with its rubric."""
    stored = session.get(Benchmark, name)
    if stored is None:
        sha256 = keep_rubric(session, rubric)
        session.add(Benchmark(name=name, rubric_sha256=sha256, **asdict(place)))
        session.flush()
        added.benchmarks[name] = rubric.name


def _keep_instances(
    session: Session, batch: list[ResponseRow], added: ResponsesAdded
) -> dict[Key, int]:
    """Store the batch's new instances; return the primary key of each instance in the batch."""
    found = session.exec(
        select(Instance).where(
            col(Instance.benchmark).in_({row.benchmark for row in batch}),
            col(Instance.instance_id).in_({row.instance_id for row in batch}),
        )
    )
    stored = {(one.benchmark, one.instance_id): one for one in found}
    for row in batch:
        key = (row.benchmark, row.instance_id)
        if key not in stored:
            stored[key] = Instance(**{name: getattr(row, name) for name in INSTANCE})
            session.add(stored[key])
            added.instances += 1
        _refuse_change(row, stored[key])
    session.flush()
    return {key: one.id for key, one in stored.items() if one.id is not None}


def _refuse_change(row: ResponseRow, stored: Instance) -> None:
    """Refuse a row whose instance reads otherwise than it was first given."""
    for column in INSTANCE[2:]:  # what its key does not say
        if getattr(row, column) != getattr(stored, column):
            raise row.origin.wrong(
                column,
                getattr(row, column),
                f"in response {short(row.response_id)}: instance {short(row.instance_id)} of "
                f"{short(row.benchmark)} "
                f"already has another {column}; use another instance_id for another text",
            )


def _keep_responses(
    session: Session,
    batch: list[ResponseRow],
    instances: dict[Key, int],
    added: ResponsesAdded,
    written: Batch,
) -> dict[str, int]:
    """Store the batch's new responses and their authors; refuse changed ones. Return all keys."""
    found = session.exec(
        select(Response, Authorship.model)
        .join(Authorship)
        .where(col(Response.response_id).in_([row.response_id for row in batch]))
    )
    there = [(one, model) for one, model in found]
    stored = {one.response_id: (one.instance, one.text, model) for one, model in there}
    new: list[tuple[Response, ResponseRow]] = []
    for row in batch:
        instance = instances[row.benchmark, row.instance_id]
        if row.response_id not in stored:
            made = Response(response_id=row.response_id, instance=instance, text=row.response)
            made.batch = written.token
            new.append((made, row))
        elif stored[row.response_id] == (instance, row.response, row.model):
            added.unchanged += 1
        else:
            raise row.origin.wrong(
                "response_id",
                row.response_id,
                "the study already has this id with another text, model or instance; "
                "responses are never changed",
            )
    added.twins += _twins(session, new)
    session.add_all([one for one, _ in new])
    session.flush()
    session.add_all([Authorship(response=one.id or 0, model=row.model) for one, row in new])
    session.flush()
    written.add(asdict(row) | {"text": row.response} for _, row in new)
    added.responses += len(new)
    every = [*(one for one, _ in there), *(one for one, _ in new)]
    return {one.response_id: one.id or 0 for one in every}


def _twins(session: Session, new: list[tuple[Response, ResponseRow]]) -> int:
    """Count new responses whose text the same model has given to the same instance already."""
    found = session.exec(
        select(Response.instance, Response.text, Authorship.model)
        .join(Authorship)
        .where(col(Response.instance).in_({one.instance for one, _ in new}))
    )
    stored = set(found)
    return sum((one.instance, one.text, row.model) in stored for one, row in new)
