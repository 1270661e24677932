"""Expert scores of training responses, and clinicians' answers in training; these are no ratings."""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session, col, select

from data import training
from data.card import Reply
from data.database import transaction
from data.errors import BadInput, BadRow, Conflict, NotAllowed, OffScale, Stale, Unknown
from data.importers.ratings import ExpertRow
from data.importers.rows import Origin
from data.person import asking
from data.record import log, refuse_locked
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
    Role,
    RubricText,
    Setting,
    State,
)
from data.settings import read_settings
from data.study.ratings import CHANGED, FormState, StoredState, next_number, refuse_unexplained
from data.study.rubrics import form_of, whole_scores
from data.training import (
    LET_THROUGH,
    PASSED,
    RATED_BEFORE,
    SECRET,
    RoundOutcome,
    TrainingStanding,
    standing_key,
)

IMPORTED, ANSWERED = "expert scores imported", "training answered"
ENDED = (State.DONE, State.UNRATED)
FOREIGN = "this response is not assigned to you"


@dataclass
class ExpertsAdded:
    """What an import of expert scores changed; `responses` are all that are now for training."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    responses: int = 0


Target = tuple[int, Rubric]  # a response's primary key, and its benchmark's rubric


def import_experts(
    engine: Engine, rows: Iterable[ExpertRow], actor: str = "coordinator"
) -> ExpertsAdded:
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
    expert_rows = list(rows)
    with transaction(engine) as session:
        refuse_locked(session)
        if expert_rows and lock_training(session) is None:
            session.add(Setting(key=SECRET, value=secrets.token_urlsafe(32)))
        targets = _targets(session, expert_rows)
        begun = session.exec(select(Drill.id).limit(1)).first() is not None
        stored = {
            (expert.response, expert.criterion): expert for expert in session.exec(select(Expert))
        }
        result = ExpertsAdded()
        for row, new in zip(expert_rows, _checked_scores(expert_rows, targets), strict=True):
            old = stored.get((new.response, new.criterion))
            if old is not None and (old.score, old.why) == (new.score, new.why):
                result.unchanged += 1
                continue
            if begun:
                raise Conflict(
                    f"{row.origin}, column criterion: {new.criterion!r}: clinicians have begun "
                    "training, so the experts' scores are fixed; nothing was imported"
                )
            if old is None:
                stored[new.response, new.criterion] = old = new
                result.added += 1
            else:
                old.score, old.why = new.score, new.why
                result.changed += 1
            session.add(old)
        for row in expert_rows:
            response, rubric = targets[row.response_id]
            if missing := [name for name in rubric.criteria if (response, name) not in stored]:
                why = f"the expert's score on {', '.join(missing)} is missing"
                raise _wrong_response(row, why)
        result.responses = len({response for response, _ in stored})
        if result.added or result.changed:
            _free_those_who_rated(session)
            log(session, actor, IMPORTED, asdict(result))
    return result


# Import expert scores in a coordinator's name.
bring_experts = asking(import_experts, Role.COORDINATOR)


def _checked_scores(rows: Sequence[ExpertRow], targets: Mapping[str, Target]) -> list[Expert]:
    """Return the rows as they are stored, or refuse the first that is wrong."""
    origins: dict[tuple[str, str], Origin] = {}
    experts = []
    for row in rows:
        if row.response_id not in targets:
            raise _wrong_response(row, "no such response in the study; import it first")
        if first := origins.get((row.response_id, row.criterion)):
            allowed = f"{row.response_id} is scored on {row.criterion} in row {first.row} already"
            raise row.origin.wrong("criterion", row.criterion, allowed)
        origins[row.response_id, row.criterion] = row.origin
        response, rubric = targets[row.response_id]
        if rubric.points is not None:
            why = "its benchmark is rated by points of the case: there is no training"
            raise _wrong_response(row, why)
        try:
            score = rubric.score(row.criterion, row.score, "an expert", row.response_id)
        except (Unknown, OffScale) as error:
            raise type(error)(f"{row.origin}: {error}; nothing was imported") from error
        if isinstance(score, str):
            raise row.origin.wrong("score", row.score, "training has scores alone")
        new = Expert(response=response, criterion=row.criterion, score=score, why=row.why)
        experts.append(new)
    return experts


def _targets(session: Session, rows: Sequence[ExpertRow]) -> dict[str, Target]:
    """Return the responses a file speaks of, refusing those that clinicians rate in the study."""
    query = (
        select(Response.response_id, Response.id, RubricText.body)
        .select_from(Response)
        .join(Instance)
        .join(Benchmark)
        .join(RubricText)
        .where(col(Response.response_id).in_({row.response_id for row in rows}))
    )
    targets = {name: (key or 0, Rubric.from_json(body)) for name, key, body in session.exec(query)}
    keys = [key for key, _ in targets.values()]
    given = select(Assignment.response).where(col(Assignment.response).in_(keys))
    assigned = set(session.exec(given))
    scored = select(Rating.response).join(Rater).where(col(Rating.response).in_(keys))
    rated = set(session.exec(scored.where(Rater.kind == Kind.CLINICIAN)))
    for row in rows:
        key, _ = targets.get(row.response_id, (0, None))
        if key in assigned:
            raise _wrong_response(
                row,
                "is assigned to clinicians for the study; train on another response, "
                "or import expert scores before the study's work is assigned",
            )
        if key in rated:
            why = "clinicians have rated it for the study; train on another response"
            raise _wrong_response(row, why)
    return targets


def _wrong_response(row: ExpertRow, allowed: str) -> BadRow:
    return row.origin.wrong("response_id", row.response_id, allowed)


def _free_those_who_rated(session: Session) -> None:
    """Note which clinicians have rated already: training comes before the work or not at all."""
    query = select(Assignment.rater).where(col(Assignment.state).in_(ENDED)).distinct()
    for rater in session.exec(query).all():
        if session.get(Setting, standing_key(rater)) is None:
            text = TrainingStanding(ended=RATED_BEFORE).model_dump_json()
            session.add(Setting(key=standing_key(rater), value=text))


def lock_training(session: Session) -> str | None:
    """Return the secret of a study's training, held until the transaction ends; None if none."""
    setting = session.exec(select(Setting).where(Setting.key == SECRET).with_for_update()).first()
    return setting.value if setting else None


def save_drill_draft(engine: Engine, rater: int, code: str, entered: FormState) -> int:
    """Keep a draft; return the number of the state that is stored now.

    One that is stored or answered already, or is older than what its own page sent since, changes
    nothing.

    Raises
    ------
    Stale
        If another page has changed what is stored since this page knew it.
    BadInput
        If a score, a comment or a mark cannot be: drafts are checked like answers.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        standing, response, _, answered = _showing_of(session, rater, code)
        reply = entered.reply()
        form_of(session, response, reply).refuse_impossible(reply)
        kept = standing.draft if standing.draft.get("code") == code else {}
        stored = StoredState(kept.get("draft", {}), kept.get("seq", 0))
        if answered or entered.known(stored):
            return stored.draft_seq
        if not entered.follows(stored):
            raise Stale(CHANGED)
        number = next_number(stored.draft_seq)
        draft = {"code": code, "seq": number, "draft": dict(entered.draft)}
        draft["seconds"] = entered.seconds
        _store_standing(session, rater, standing.model_copy(update={"draft": draft}))
    return number


def answer_drill(
    engine: Engine,
    rater: int,
    code: str,
    reply: Reply,
    notes: Mapping[str, Any],
    *,
    ask_why: bool = False,
) -> bool:
    """Store a clinician's answer, and how the round went if it was the last one.

    A second answer to the same showing changes nothing and gives False.

    Parameters
    ----------
    said
        What was sent besides scores; kept, not counted.
    ask_why
        Whether a low score on the first criterion needs a line of comment or a marked stretch.

    Raises
    ------
    Unexplained
        If such a reason is missing.
    NotAllowed
        If it is none of this clinician's training responses, or training is over or halted.
    BadInput
        If a criterion is missing or off the scale, or a comment or a mark cannot be.
    """
    with transaction(engine) as session:
        refuse_locked(session)
        standing, response, round_, answered = _showing_of(session, rater, code)
        if answered:
            return False
        if standing.ended or standing.halted:
            raise NotAllowed(FOREIGN)
        form = form_of(session, response, reply)
        form.refuse_impossible(reply)
        scores = whole_scores(form.rubric, reply, "in training every criterion is rated; not yet: ")
        refuse_unexplained(form.rubric, reply, ask_why)
        drill = Drill(rater=rater, response=response, round=round_, scores=scores)
        session.add(drill)
        session.flush()
        detail = {"drill": drill.id, "response": drill.response, "round": drill.round + 1}
        log(session, f"rater {rater}", ANSWERED, detail | {"scores": scores})
        remarks = standing.said | {str(drill.id): dict(notes)}
        standing = standing.model_copy(update={"draft": {}, "said": remarks})
        _store_standing(session, rater, _with_outcome(session, rater, standing))
    return True


def leave_feedback(engine: Engine, rater: int, drill: int) -> None:
    """Note that a clinician has read the feedback on an answer (primary key) and went on."""
    with transaction(engine) as session:
        standing = _standing(session, rater)
        last_seen = max(standing.seen, drill)
        _store_standing(session, rater, standing.model_copy(update={"seen": last_seen}))


def leave_outcome(engine: Engine, rater: int, rounds: int) -> None:
    """Note that a clinician has read how a round went and went on; `rounds` are those finished."""
    with transaction(engine) as session:
        standing = _standing(session, rater)
        rounds_seen = max(standing.told, min(rounds, len(standing.rounds)))
        if not standing.halted:
            _store_standing(session, rater, standing.model_copy(update={"told": rounds_seen}))


def let_through(engine: Engine, handle: str, reason: str, actor: str = "coordinator") -> None:
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
        raise BadInput("a reason is needed; it stays in the record")
    with transaction(engine) as session:
        refuse_locked(session)
        if lock_training(session) is None:
            raise BadInput("this study has no training: no expert scores were imported")
        rater = session.exec(
            select(Rater).where(Rater.handle == handle, Rater.kind == Kind.CLINICIAN)
        ).first()
        if rater is None or rater.id is None:
            raise Unknown(
                f"clinician {handle!r}: not in this study; the list of the training round has them"
            )
        standing = _standing(session, rater.id)
        if standing.ended:
            raise Conflict(f"{handle} may begin already: {standing.ended}")
        _store_standing(session, rater.id, standing.model_copy(update={"ended": LET_THROUGH}))
        detail = {"rater": rater.id, "rounds": len(standing.rounds), "reason": reason.strip()}
        log(session, actor, "training waived", detail)


# Let a clinician begin, in a coordinator's name.
let_through_as = asking(let_through, Role.COORDINATOR)


def expert_scores(session: Session) -> dict[int, dict[str, float]]:
    """Return training response (primary key) -> criterion -> the expert's score."""
    scores: dict[int, dict[str, float]] = {}
    for expert in session.exec(select(Expert).order_by(col(Expert.response))):
        scores.setdefault(expert.response, {})[expert.criterion] = expert.score
    return scores


def _showing_of(session: Session, rater: int, code: str) -> tuple[TrainingStanding, int, int, bool]:
    """Return where a clinician stands, and the response and round of a code, and if it is answered."""
    secret = lock_training(session)
    standing = _standing(session, rater)
    drills = set(session.exec(select(Drill.response, Drill.round).where(Drill.rater == rater)))
    for round_ in range(len(standing.rounds) + 1):
        for response in expert_scores(session) if secret else ():
            if training.code(secret or "", rater, response, round_) == code:
                return standing, response, round_, (response, round_) in drills
    raise NotAllowed(FOREIGN)


def _with_outcome(session: Session, rater: int, standing: TrainingStanding) -> TrainingStanding:
    """Return the standing with the present round's outcome, if all of it is answered."""
    experts = expert_scores(session)
    round_ = len(standing.rounds)
    rows = session.exec(select(Drill).where(Drill.rater == rater, Drill.round == round_))
    answers = {drill.response: drill.scores for drill in rows}
    if len(answers) < len(experts):
        return standing
    settings = {setting.key: setting.value for setting in session.exec(select(Setting))}
    chosen = read_settings(settings)
    gap = chosen.training_gap
    misordered = chosen.training_order and not training.is_worst_lowest(answers, experts)
    distance = training.distance(answers, experts)
    outcome = RoundOutcome(distance=distance, gap=gap, misordered=misordered)
    action = "training passed" if outcome.passed else "training not passed"
    detail = {"rater": rater, "round": round_ + 1, "distance": outcome.distance, "gap": gap}
    detail |= {"misordered": True} if misordered else {}
    log(session, f"rater {rater}", action, detail)
    ended = PASSED if outcome.passed else ""
    return standing.model_copy(update={"rounds": (*standing.rounds, outcome), "ended": ended})


def _standing(session: Session, rater: int) -> TrainingStanding:
    """Return where a clinician stands, held until the transaction ends."""
    query = select(Setting).where(Setting.key == standing_key(rater)).with_for_update()
    setting = session.exec(query).first()
    return TrainingStanding.model_validate_json(setting.value) if setting else TrainingStanding()


def _store_standing(session: Session, rater: int, standing: TrainingStanding) -> None:
    """Keep where a clinician stands; the record says so where it is new, not with each draft."""
    before = session.get(Setting, standing_key(rater))
    previous = None if before is None else TrainingStanding.model_validate_json(before.value)
    session.merge(Setting(key=standing_key(rater), value=standing.model_dump_json()))
    if previous is None or (previous.ended, previous.rounds) != (standing.ended, standing.rounds):
        detail = {"rater": rater, "rounds": len(standing.rounds), "ended": standing.ended}
        log(session, f"rater {rater}", "training stands", detail)
