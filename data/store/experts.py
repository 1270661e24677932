"""Storing what experts gave the training responses: all of a file, or nothing."""

import hashlib
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data.database import transaction
from data.errors import BadRow, Conflict, OffScale, Unknown
from data.importers.experts import ExpertRow
from data.importers.rows import Origin
from data.rubric import Rubric
from data.schema import (
    Assignment,
    Benchmark,
    Drill,
    Expert,
    Instance,
    Kind,
    Rater,
    Rating,
    Response,
    RubricText,
    Setting,
    State,
)
from data.store.audit import canonical, log, refuse_locked
from data.training import RATED_BEFORE, SECRET, Standing, standing_key

EXPERT = ("response", "criterion", "score", "why")
ENDED = (State.DONE, State.UNRATED)


@dataclass
class ExpertsAdded:
    """What an import of expert scores changed; `responses` are all that are now for training."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    responses: int = 0


@dataclass(frozen=True, slots=True)
class _Target:
    """A response as an expert's score needs it."""

    response: int
    rubric: Rubric


def import_experts(engine: Engine, rows: Iterable[ExpertRow]) -> ExpertsAdded:
    """Store expert scores; their responses are for training from then on, and for nothing else.

    The same file again changes nothing. A clinician who has rated already needs no training.

    Raises
    ------
    BadRow, OffScale, Unknown
        If a response is unknown, assigned or rated, a criterion or score is not the rubric's,
        stands twice, or a response lacks a criterion. Nothing is stored.
    Conflict
        If a row is new or differs after a clinician has begun training.
    """
    given = list(rows)
    with transaction(engine) as session:
        refuse_locked(session)
        if given and lock_training(session) is None:
            session.add(Setting(key=SECRET, value=secrets.token_urlsafe(32)))
        targets = _targets(session, given)
        begun = session.exec(select(Drill.id).limit(1)).first() is not None
        stored = {(one.response, one.criterion): one for one in session.exec(select(Expert))}
        result = ExpertsAdded()
        for row, new in zip(given, _checked(given, targets), strict=True):
            _keep(session, stored, new, row.origin if begun else None, result)
        _refuse_incomplete(given, targets, set(stored))
        result.responses = len({response for response, _ in stored})
        if result.added or result.changed:
            _free_those_who_rated(session)
            session.flush()
            detail = asdict(result) | {"sha256": experts_digest(session)}
            log(session, "coordinator", "expert scores imported", detail)
    return result


def _keep(
    session: Session,
    stored: dict[tuple[int, str], Expert],
    new: Expert,
    late: Origin | None,
    result: ExpertsAdded,
) -> None:
    """Add or change one score; refuse both where training has begun, naming the late row."""
    key = new.response, new.criterion
    old = stored.get(key)
    if old is not None and (old.score, old.why) == (new.score, new.why):
        result.unchanged += 1
        return
    if late is not None:
        raise Conflict(
            f"{late}, column criterion: {new.criterion!r}: clinicians have begun training, "
            "so the experts' scores are fixed; nothing was imported"
        )
    if old is None:
        stored[key] = new
        result.added += 1
    else:
        old.score, old.why = new.score, new.why
        result.changed += 1
    session.add(stored[key])


def _checked(rows: Sequence[ExpertRow], targets: Mapping[str, _Target]) -> list[Expert]:
    """Return the rows as they are stored, or refuse the first that is wrong."""
    seen: dict[tuple[str, str], Origin] = {}
    found = []
    for row in rows:
        if row.response_id not in targets:
            raise _wrong(row, "no such response in the study; import it first")
        if first := seen.get((row.response_id, row.criterion)):
            allowed = f"{row.response_id} is scored on {row.criterion} in row {first.row} already"
            raise row.origin.wrong("criterion", row.criterion, allowed)
        seen[row.response_id, row.criterion] = row.origin
        found.append(_expert(row, targets[row.response_id]))
    return found


def _expert(row: ExpertRow, target: _Target) -> Expert:
    """Return one row as it is stored, its score checked on the rubric."""
    try:
        score = target.rubric.score(row.criterion, row.score, "an expert", row.response_id)
    except (Unknown, OffScale) as error:
        raise type(error)(f"{row.origin}: {error}; nothing was imported") from error
    return Expert(response=target.response, criterion=row.criterion, score=score, why=row.why)


def _targets(session: Session, rows: Sequence[ExpertRow]) -> dict[str, _Target]:
    """Return the responses a file speaks of, refusing those that clinicians rate in the study."""
    query = (
        select(Response.response_id, Response.id, RubricText.body)
        .join(Instance, col(Instance.id) == col(Response.instance))
        .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
        .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
        .where(col(Response.response_id).in_({row.response_id for row in rows}))
    )
    found = {
        name: _Target(key or 0, Rubric.from_json(body)) for name, key, body in session.exec(query)
    }
    keys = {one.response for one in found.values()}
    assigned = set(
        session.exec(select(Assignment.response).where(col(Assignment.response).in_(keys)))
    )
    rated = set(
        session.exec(
            select(Rating.response)
            .join(Rater, col(Rater.id) == col(Rating.rater))
            .where(col(Rating.response).in_(keys), Rater.kind == Kind.CLINICIAN)
        )
    )
    for row in rows:
        target = found.get(row.response_id)
        if target is not None and target.response in assigned:
            raise _wrong(
                row,
                "is assigned to clinicians for the study; train on another response, "
                "or import expert scores before `medjury assign`",
            )
        if target is not None and target.response in rated:
            raise _wrong(row, "clinicians have rated it for the study; train on another response")
    return found


def _refuse_incomplete(
    rows: Sequence[ExpertRow], targets: Mapping[str, _Target], stored: set[tuple[int, str]]
) -> None:
    """Refuse a response that lacks the expert's score on a criterion of its rubric."""
    for row in rows:
        target = targets[row.response_id]
        missing = [one for one in target.rubric.criteria if (target.response, one) not in stored]
        if missing:
            raise _wrong(row, f"the expert's score on {', '.join(missing)} is missing")


def _wrong(row: ExpertRow, allowed: str) -> BadRow:
    return row.origin.wrong("response_id", row.response_id, allowed)


def _free_those_who_rated(session: Session) -> None:
    """Note which clinicians have rated already: training comes before the work or not at all."""
    query = select(Assignment.rater).where(col(Assignment.state).in_(ENDED)).distinct()
    for rater in session.exec(query).all():
        if session.get(Setting, standing_key(rater)) is None:
            text = Standing(ended=RATED_BEFORE).model_dump_json()
            session.add(Setting(key=standing_key(rater), value=text))


def experts_digest(session: Session) -> str:
    """Return the SHA-256 over all expert scores as they stand."""
    digest = hashlib.sha256()
    found = session.exec(select(Expert)).all()
    for one in sorted(found, key=lambda one: (one.response, one.criterion)):  # as Python sorts
        digest.update(canonical(one.model_dump(), EXPERT))
    return digest.hexdigest()


def lock_training(session: Session) -> str | None:
    """Return the secret of a study's training, held until the transaction ends; None if none."""
    held = session.exec(select(Setting).where(Setting.key == SECRET).with_for_update()).first()
    return held.value if held else None
