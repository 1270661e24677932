"""What clinicians answer in the training round. It never becomes a rating."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data import training
from data.card import Reply
from data.database import transaction
from data.errors import BadInput, Conflict, NotAllowed, Unknown
from data.rubric import Rubric
from data.schema import (
    Benchmark,
    Drill,
    Expert,
    Instance,
    Kind,
    Rater,
    Response,
    RubricText,
    Setting,
)
from data.settings import read_settings
from data.store.audit import log, refuse_locked
from data.store.experts import lock_training
from data.training import LET_THROUGH, PASSED, Outcome, Standing, standing_key

FOREIGN = "this response is not assigned to you"


@dataclass(frozen=True, slots=True)
class _Place:
    """A training response of a clinician's present or an earlier round; `drill` if answered."""

    response: int
    round_: int
    drill: Drill | None


def save_drill_draft(
    engine: Engine, rater: int, code: str, seq: int, draft: Mapping[str, Any], seconds: float
) -> bool:
    """Keep a draft; one that is older than what is stored, or is answered, gives False."""
    with transaction(engine) as session:
        refuse_locked(session)
        standing, place = _found(session, rater, code)
        kept = standing.draft
        if place.drill is not None or (kept.get("code") == code and seq <= kept["seq"]):
            return False
        entered = {"code": code, "seq": seq, "draft": dict(draft), "seconds": seconds}
        _store(session, rater, standing.model_copy(update={"draft": entered}))
    return True


def answer_drill(
    engine: Engine, rater: int, code: str, reply: Reply, said: Mapping[str, Any]
) -> bool:
    """Store a clinician's answer, and how the round went if it was the last one.

    A second answer to the same showing changes nothing and gives False.

    Parameters
    ----------
    said
        What was sent besides scores; kept, not counted.

    Raises
    ------
    NotAllowed
        If it is none of this clinician's training responses, or training is over or halted.
    BadInput
        If a criterion is missing or off the scale.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        standing, place = _found(session, rater, code)
        if place.drill is not None:
            return False
        if standing.ended or standing.halted:
            raise NotAllowed(FOREIGN)
        scores = _complete(_rubric(session, place.response), reply)
        drill = Drill(rater=rater, response=place.response, round=place.round_, scores=scores)
        session.add(drill)
        session.flush()
        detail = {"drill": drill.id, "response": drill.response, "round": drill.round + 1}
        log(session, f"rater {rater}", "training answered", detail | {"scores": scores})
        notes = standing.said | {str(drill.id): dict(said)}
        kept = standing.model_copy(update={"draft": {}, "said": notes})
        _store(session, rater, _closed(session, rater, kept))
    return True


def leave_feedback(engine: Engine, rater: int, drill: int) -> None:
    """Note that a clinician has read the feedback on an answer (primary key) and went on."""
    with transaction(engine) as session:
        standing = _standing(session, rater)
        seen = max(standing.seen, drill)
        _store(session, rater, standing.model_copy(update={"seen": seen}))


def leave_outcome(engine: Engine, rater: int, rounds: int) -> None:
    """Note that a clinician has read how a round went and went on; `rounds` are those finished."""
    with transaction(engine) as session:
        standing = _standing(session, rater)
        told = max(standing.told, min(rounds, len(standing.rounds)))
        if not standing.halted:
            _store(session, rater, standing.model_copy(update={"told": told}))


def let_through(engine: Engine, handle: str, reason: str, who: str = "coordinator") -> None:
    """Let a clinician begin the real work without having passed; the reason stays in the record.

    Raises
    ------
    BadInput
        If no reason is given, or the study has no training.
    Unknown
        If there is no such clinician.
    Conflict
        If nothing keeps them from beginning.
    """
    if not reason.strip():
        raise BadInput("--reason is needed; it stays in the record")
    with transaction(engine) as session:
        refuse_locked(session)
        if lock_training(session) is None:
            raise BadInput("this study has no training: no expert scores were imported")
        rater = session.exec(
            select(Rater).where(Rater.handle == handle, Rater.kind == Kind.CLINICIAN)
        ).first()
        if rater is None or rater.id is None:
            raise Unknown(f"clinician {handle!r}: not in this study; `medjury training` lists them")
        standing = _standing(session, rater.id)
        if standing.ended:
            raise Conflict(f"{handle} may begin already: {standing.ended}")
        _store(session, rater.id, standing.model_copy(update={"ended": LET_THROUGH}))
        detail = {"rater": rater.id, "rounds": len(standing.rounds), "reason": reason.strip()}
        log(session, who, "training waived", detail)


def expert_scores(session: Session) -> dict[int, dict[str, float]]:
    """Return training response (primary key) -> criterion -> the expert's score."""
    found: dict[int, dict[str, float]] = {}
    for one in session.exec(select(Expert).order_by(col(Expert.response))):
        found.setdefault(one.response, {})[one.criterion] = one.score
    return found


def _found(session: Session, rater: int, code: str) -> tuple[Standing, _Place]:
    """Return where a clinician stands and which showing a code names, up to the present round."""
    secret = lock_training(session)
    standing = _standing(session, rater)
    drills = {
        (one.response, one.round): one
        for one in session.exec(select(Drill).where(Drill.rater == rater))
    }
    for round_ in range(len(standing.rounds) + 1):
        for response in expert_scores(session) if secret else ():
            if training.code(secret or "", rater, response, round_) == code:
                return standing, _Place(response, round_, drills.get((response, round_)))
    raise NotAllowed(FOREIGN)


def _closed(session: Session, rater: int, standing: Standing) -> Standing:
    """Return the standing with the present round's outcome, if all of it is answered."""
    experts = expert_scores(session)
    round_ = len(standing.rounds)
    rows = session.exec(select(Drill).where(Drill.rater == rater, Drill.round == round_))
    answers = {one.response: one.scores for one in rows}
    if len(answers) < len(experts):
        return standing
    gap = read_settings({one.key: one.value for one in session.exec(select(Setting))}).training_gap
    outcome = Outcome(distance=training.distance(answers, experts), gap=gap)
    action = "training passed" if outcome.passed else "training not passed"
    detail = {"rater": rater, "round": round_ + 1, "distance": outcome.distance, "gap": gap}
    log(session, f"rater {rater}", action, detail)
    ended = PASSED if outcome.passed else ""
    return standing.model_copy(update={"rounds": (*standing.rounds, outcome), "ended": ended})


def _complete(rubric: Rubric, reply: Reply) -> dict[str, float]:
    """Return a score for every criterion, or say which is missing."""
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput("in training every criterion is rated; not yet: " + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }


def _rubric(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    body = session.exec(
        select(RubricText.body)
        .join(Benchmark, col(Benchmark.rubric_sha256) == col(RubricText.sha256))
        .join(Instance, col(Instance.benchmark) == col(Benchmark.name))
        .join(Response, col(Response.instance) == col(Instance.id))
        .where(Response.id == response)
    ).one()
    return Rubric.from_json(body)


def _standing(session: Session, rater: int) -> Standing:
    """Return where a clinician stands, held until the transaction ends."""
    query = select(Setting).where(Setting.key == standing_key(rater)).with_for_update()
    held = session.exec(query).first()
    return Standing.model_validate_json(held.value) if held else Standing()


def _store(session: Session, rater: int, standing: Standing) -> None:
    session.merge(Setting(key=standing_key(rater), value=standing.model_dump_json()))
    session.flush()
