"""Importing instances, responses and their subgroups; the same file again changes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine, func
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadInput, BadRow, Conflict
from data.importers.responses import GROUP, tells_authors
from data.importers.rows import Origin, ResponseRow, Tick, batches
from data.record import commitment, log, new_salt, refuse_locked
from data.rubric import Rubric
from data.safe_text import short
from data.schema import Benchmark, Instance, Response, Subgroup
from data.study.authors import (
    Ids,
    ValueAndAuthor,
    add_authors,
    contradicted,
    pairs_of_group,
)
from data.study.rubrics import ONLY_PAIRS, keep_rubric, move_to_rubric

Key = tuple[str, str]
INSTANCE = ("benchmark", "instance_id", "context", "prompt", "reference", "checklist")
RubricFor = Callable[[str], Rubric]
MOST_VALUES = 100  # with more, a column is a number or a name of each response, and no group


@dataclass
class ResponsesAdded:
    """What an import changed: counts of rows stored now and of rows that were there already.

    `unnamed` of those that were there had no id in the file and were known by instance and text.
    `benchmarks` are new to the study, each with its rubric's name. `twins` repeat a stored text to
    the same instance under another response_id. `groups` counts, by name, the responses that were
    put in a group.
    """

    instances: int = 0
    responses: int = 0
    unchanged: int = 0
    unnamed: int = 0
    twins: int = 0
    benchmarks: dict[str, str] = field(default_factory=dict)
    groups: Counter[str] = field(default_factory=Counter)


Claimed = dict[str, set[Key]]  # group -> its values with the authors that an import's rows have


def import_responses(
    engine: Engine,
    rows: Iterable[ResponseRow],
    rubric_for: RubricFor,
    chosen: Rubric | None = None,
    places: Mapping[str, tuple[str, str]] | None = None,
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
        Benchmark name -> category and subcategory in the taxonomy, for new benchmarks.
    tick
        Called with the number of rows of each batch stored.

    Raises
    ------
    BadRow
        If a row contradicts the file or the study: nothing of the file is stored.
    Conflict
        If a benchmark has ratings on a rubric other than `chosen`, or a group tells authors.
    """
    added = ResponsesAdded()
    claimed: Claimed = {}
    if chosen is not None and chosen.compares:
        raise BadInput(f"rubric {chosen.name}: {ONLY_PAIRS}; nothing was imported")
    with transaction(engine) as session:
        refuse_locked(session)
        last = last_group(session)

        def keep(name: str) -> None:
            keep_benchmark(
                session, name, chosen or rubric_for(name), added, (places or {}).get(name)
            )
            if chosen and not move_to_rubric(session, name, chosen):
                rubric = f"rubric than {chosen.name} {chosen.version}"
                raise Conflict(
                    f"benchmark {short(name)!r} has ratings on another {rubric}; import under "
                    "another benchmark name, or without --rubric; nothing was imported"
                )

        keep_rows(session, rows, keep, added, claimed, tick)
        refuse_authors(session, claimed, last)
        log_added(session, added)
    return added


def keep_rows(
    session: Session,
    rows: Iterable[ResponseRow],
    keep: Callable[[str], None],
    added: ResponsesAdded,
    claimed: Claimed,
    tick: Tick = lambda _: None,
    ids: Ids | None = None,
) -> dict[str, str]:
    """Store rows inside the caller's transaction; add to what is told of them, and to `claimed`.

    `keep` is called once with the name of each benchmark, before its first row is stored. `ids` is
    that of rows of the same import that were stored before.

    Returns
    -------
    dict
        The id of a row -> its id in the study, where the study has another.
    """
    origins: dict[str, Origin] = {}
    kept_benchmarks: set[str] = set()
    renamed: dict[str, str] = {}
    ids = ids or Ids()
    for given_rows in batches(rows):
        batch = ids.of(given_rows)
        pairs = zip(given_rows, batch, strict=True)
        renamed |= {
            a.response_id: b.response_id for a, b in pairs if a.response_id != b.response_id
        }
        _refuse_repeats(batch, origins)
        for name in dict.fromkeys(row.benchmark for row in batch):
            if name not in kept_benchmarks:
                keep(name)
                kept_benchmarks.add(name)
        instances = _keep_instances(session, batch, added)
        keys = _keep_responses(session, batch, instances, added)
        with_groups = [(keys[row.response_id], row) for row in batch if row.groups]
        added.groups += keep_subgroups(session, with_groups)
        for _, row in with_groups:
            for name, value in row.groups:
                claimed.setdefault(name, set()).add((value, row.model))
        session.expunge_all()
        tick(len(batch))
    return renamed


def log_added(session: Session, added: ResponsesAdded) -> None:
    """Let the record say which responses and subgroups were stored, if any were."""
    if added.responses or added.instances or added.groups:
        detail = {"instances": added.instances, "responses": added.responses}
        log(session, "researcher", "responses imported", detail)


def _refuse_repeats(batch: list[ResponseRow], origins: dict[str, Origin]) -> None:
    """Refuse a response_id that the file has already used."""
    for row in batch:
        if first := origins.get(row.response_id):
            raise row.origin.wrong(
                "response_id", row.response_id, f"already used in row {first.row}; ids must differ"
            )
        origins[row.response_id] = row.origin


def keep_benchmark(
    session: Session,
    name: str,
    rubric: Rubric,
    added: ResponsesAdded,
    place: tuple[str, str] | None = None,
) -> None:
    """Store a benchmark that is new to the study, with its rubric and place in the taxonomy."""
    stored = session.get(Benchmark, name)
    if stored is None:
        own = dict(zip(("category", "subcategory"), place or (), strict=False))
        session.add(Benchmark(name=name, rubric_sha256=keep_rubric(session, rubric), **own))
        log(session, "researcher", "benchmark added", {"benchmark": name})
        added.benchmarks[name] = rubric.name


def _keep_instances(
    session: Session, batch: list[ResponseRow], added: ResponsesAdded
) -> dict[Key, int]:
    """Store the batch's new instances; return the primary key of each instance in the batch."""
    rows = session.exec(
        select(Instance).where(
            col(Instance.benchmark).in_({row.benchmark for row in batch}),
            col(Instance.instance_id).in_({row.instance_id for row in batch}),
        )
    )
    stored = {(instance.benchmark, instance.instance_id): instance for instance in rows}
    new: list[Instance] = []
    for row in batch:
        key = (row.benchmark, row.instance_id)
        if key not in stored:
            stored[key] = Instance(**{name: getattr(row, name) for name in INSTANCE})
            session.add(stored[key])
            new.append(stored[key])
        _refuse_change(row, stored[key])
    session.flush()
    added.instances += len(new)
    return {key: instance.id for key, instance in stored.items() if instance.id is not None}


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
) -> dict[str, int]:
    """Store the batch's new responses and their authors; refuse changed ones. Return all keys."""
    names = [row.response_id for row in batch]
    rows = session.exec(select(Response).where(col(Response.response_id).in_(names)))
    stored = {response.response_id: response for response in rows}
    new: list[tuple[Response, ResponseRow]] = []
    unchanged: list[tuple[Response, ResponseRow]] = []
    for row in batch:
        instance = instances[row.benchmark, row.instance_id]
        if (response := stored.get(row.response_id)) is None:
            answer = Response(response_id=row.response_id, instance=instance, text=row.response)
            answer.salt = new_salt()
            answer.commitment = commitment(answer.salt, answer.text)
            new.append((answer, row))
        elif (response.instance, response.text) == (instance, row.response):
            unchanged.append((response, row))
        else:
            raise _another_response(row)
    others = contradicted(session, [(response, row.model) for response, row in unchanged])
    for response, row in unchanged:
        if response.id in others:
            raise _another_response(row)
    added.unchanged += len(unchanged)
    added.unnamed += sum(row.id_made for _, row in unchanged)
    # Whose text was given to the same instance already, by whomever.
    texts = select(Response.instance, Response.text)
    there = set(
        session.exec(
            texts.where(col(Response.instance).in_({answer.instance for answer, _ in new}))
        )
    )
    added.twins += sum((answer.instance, answer.text) in there for answer, _ in new)
    session.add_all([response for response, _ in new])
    session.flush()
    add_authors(session, [(response, row.model) for response, row in new])
    added.responses += len(new)
    return {
        response.response_id: response.id or 0
        for response in (*stored.values(), *(response for response, _ in new))
    }


def _another_response(row: ResponseRow) -> BadRow:
    """Return the error of a row whose id the study has with something else."""
    return row.origin.wrong(
        "response_id",
        row.response_id,
        "the study already has this id with another text, model or instance; responses are never "
        "changed: give the new text another response_id",
    )


def keep_subgroups(session: Session, rows: Sequence[tuple[int, ResponseRow]]) -> Counter[str]:
    """Store the groups of responses, given by their keys, that have none of that name yet.

    Returns
    -------
    Counter
        Name -> how many were stored.

    Raises
    ------
    BadRow
        If a response has another value already.
    """
    query = select(Subgroup).where(col(Subgroup.response).in_([key for key, _ in rows]))
    stored = {
        (subgroup.response, subgroup.name): subgroup.value for subgroup in session.exec(query)
    }
    new: list[Subgroup] = []
    for key, row in rows:
        for name, value in row.groups:
            if (key, name) not in stored:
                stored[key, name] = value
                new.append(Subgroup(response=key, name=name, value=value))
            elif stored[key, name] != value:
                raise row.origin.wrong(
                    "group",
                    "",
                    f"the study has another {GROUP}{name} for this response; groups never change",
                )
    session.add_all(new)
    session.flush()
    return Counter(subgroup.name for subgroup in new)


def last_group(session: Session) -> int:
    """Return the greatest key of a subgroup, 0 where there is none: an import's own come after it."""
    return session.exec(select(func.max(Subgroup.id))).one() or 0


def refuse_authors(session: Session, claimed: Mapping[str, set[ValueAndAuthor]], last: int) -> None:
    """Refuse groups of an import whose values tell who wrote a response.

    They are looked at in the whole study; of a blind one in the import, beside the values that the
    study has from others: an import of one value and one author then tells too much as well.

    Parameters
    ----------
    claimed
        Group -> its values with their authors, as the import has them.
    last
        `last_group` before the import.

    Raises
    ------
    Conflict
        If values correspond one to one with authors, are authors' names, or are too many.
    """
    for name in sorted(claimed):
        pairs, apart = pairs_of_group(session, name, claimed[name], last)
        values = {value for value, _ in pairs}
        if tells_authors(pairs) or (apart and len(pairs) == 1 and not values & apart):
            more = "; bring all files with it in as one" if apart else ""
            raise Conflict(
                f"{GROUP}{name} tells who wrote a response: its values are authors, or go one to one "
                f"with them, which would lift the blind{more}; nothing was imported"
            )
        if len(apart | values) > MOST_VALUES:
            raise Conflict(
                f"{GROUP}{name} has more than {MOST_VALUES} values: give a few groups, such as bands "
                "of age; nothing was imported"
            )
