"""What a clinician rates next, in the study and in training.

The table of authors is not read here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import BindParameter, Engine, bindparam, func
from sqlmodel import Session, col, select

from data import training
from data.card import THIRD, Card, Reading, reading_of_pass
from data.database import glance, reading
from data.description import CONSENT_TEXT, consent_key
from data.record import LOCKED
from data.rubric import Rubric
from data.schema import (
    IS_RATED_ON,
    Account,
    Assignment,
    Benchmark,
    Drill,
    Expert,
    Instance,
    Rater,
    Rating,
    Response,
    RubricText,
    Setting,
    State,
)
from data.settings import Settings, read_settings
from data.study.base import WITHDRAWN_RESPONSES, card, setting_values, shown
from data.study.training import expert_scores
from data.training import SECRET, RoundOutcome, TrainingStanding, standing_key

ENDED = (State.DONE, State.UNRATED)
TEXTS = 6
# Made once: each message of a clinician asks them, and making one costs more than asking it.
RATER: BindParameter[int] = bindparam("rater")
_OF_RATER = (
    col(Assignment.rater) == RATER,
    col(Assignment.state) != State.RECUSED,
    col(Assignment.response).not_in(WITHDRAWN_RESPONSES),
)
_IS_ENDED = col(Assignment.state).in_(ENDED)
_IS_REPEAT = (col(Assignment.pass_) > 0) & (col(Assignment.pass_) < THIRD)
_PROGRESS = select(
    func.count(col(Assignment.id)).filter(_IS_ENDED),
    func.count(col(Assignment.id)),
    func.count(col(Assignment.id)).filter(_IS_REPEAT),
).where(*_OF_RATER)
# When it was first rated, by the order of storing: a clock may be set back. The sum keeps a
# database from looking for the least number through all that the rater has rated.
_FIRST_RATING = (
    select(func.min(col(Rating.id) + 0))
    .where(
        Rating.response == Assignment.response,
        Rating.rater == Assignment.rater,
        Rating.pass_ == Assignment.pass_,
    )
    .correlate(Assignment)
    .scalar_subquery()
)
_RATED = (
    select(Assignment.code, _FIRST_RATING)
    .where(*_OF_RATER, col(Assignment.state).in_(ENDED))
    .order_by(col(Assignment.position))
)
_TASKS = (  # from the draft on in the order of a `Task`
    shown(
        Assignment.code,
        RubricText.body,
        Assignment.draft,
        Assignment.draft_seq,
        Assignment.seconds_active,
        Assignment.state,
        Assignment.revision,
        col(Assignment.opened_at).is_not(None),
        col(Assignment.reference_opened_at).is_not(None),
        Assignment.submitted_seq,
        Assignment.done_at,
        Assignment.pass_,
        Instance.benchmark,
        Assignment.shown_first,
    )
    .join(Assignment)
    .join(Benchmark)
    .join(RubricText, IS_RATED_ON)
    .where(*_OF_RATER)
)
_BY_CODE = _TASKS.where(col(Assignment.code) == bindparam("code"))
_FIRST_OPEN = (
    select(Assignment.id)
    .where(*_OF_RATER, Assignment.state == State.OPEN)
    .order_by(col(Assignment.position))
    .limit(1)
    .scalar_subquery()
)
_COUNTS = tuple(
    _PROGRESS.with_only_columns(count).scalar_subquery() for count in _PROGRESS.selected_columns
)
# Not to sort the texts of all; with how far the clinician is, from the end of a row.
_NEXT = _TASKS.where(col(Assignment.id) == _FIRST_OPEN).add_columns(*_COUNTS)
# What holds in the room, and where one clinician stands in training: not what others' standings say.
_SETTINGS = select(Setting.key, Setting.value).where(
    col(Setting.key).in_(
        (SECRET, LOCKED, CONSENT_TEXT, *(setting.name for setting in fields(Settings)))
    )
    | col(Setting.key).in_((bindparam("standing"), bindparam("consent")))
)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of a clinician's assignments are done; those given back do not count.

    `repeats` of them are hidden repeats of others.
    """

    done: int
    total: int
    repeats: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """A response a clinician is at, with what they have entered so far.

    Attributes
    ----------
    draft, draft_seq
        The newest state of the form, and its number.
    state, revision
        Whether it is rated, and how often it was submitted.
    opened
        Whether it has been shown before.
    reference_opened
        Whether its reference has been opened.
    submitted_seq, done_at
        The draft's number at the last submission, and when the first one was made.
    reading
        "independent", "third", or "consensus", which is shown what others said.
    benchmark, shown_first
        Decides how its texts are shown; which response of a pair stands first. Never sent.
    """

    card: Card
    rubric: Rubric
    draft: Mapping[str, Any]
    draft_seq: int
    seconds_active: float
    state: State = State.OPEN
    revision: int = 0
    opened: bool = False
    reference_opened: bool = False
    submitted_seq: int = 0
    done_at: datetime | None = None
    reading: Reading = "independent"
    benchmark: str = ""
    shown_first: str = ""

    @property
    def ended(self) -> bool:
        """Whether this response was submitted, rated or as one that cannot be rated."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class NextTask:
    """How far a clinician is, and the first open response in their own order, None at the end."""

    progress: Progress
    task: Task | None


def next_task(engine: Engine, rater: int) -> NextTask:
    """Return where a clinician is, in one reading."""
    with glance(engine) as session:
        row = session.execute(_NEXT, {"rater": rater}).first()
        if row is None:
            return NextTask(Progress(*session.execute(_PROGRESS, {"rater": rater}).one()), None)
    *told, done, total, repeats = row
    return NextTask(Progress(done, total, repeats), _task(told))


def task(engine: Engine, rater: int, code: str) -> Task | None:
    """Return a clinician's own response by its code, rated or not; None if it is not theirs."""
    with glance(engine) as session:
        row = session.execute(_BY_CODE, {"rater": rater, "code": code}).first()
    return None if row is None else _task(row)


def rated_codes(engine: Engine, rater: int) -> list[str]:
    """Return the codes of what a clinician has rated, in the order it was first submitted.

    What could not be rated stands after what is before it in the clinician's list.
    """
    with glance(engine) as session:
        rows = session.execute(_RATED, {"rater": rater}).all()
    last, codes = 0, []
    for code, first in rows:
        last = last if first is None else first
        codes.append((last, code))
    return [code for _, code in sorted(codes, key=itemgetter(0))]


def _task(row: Sequence[Any]) -> Task:
    """Return the task of a row of `_TASKS`."""
    texts, (code, body, draft, seq, seconds, state, *rest) = list(row[:TEXTS]), row[TEXTS:]
    rubric = Rubric.from_json(body)
    rest[-3] = reading_of_pass(rest[-3])
    own = card(code, texts, rubric, rest[-1])
    return Task(own, rubric, draft, seq, seconds, State(state), *rest)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A training response to rate: the `number`-th of `total` in a round counted from 1."""

    task: Task
    round_: int
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class ScoredCriterion:
    """A clinician's score on a criterion beside the expert's, with the expert's reason."""

    criterion: str
    own: float
    expert: float
    why: str


@dataclass(frozen=True, slots=True)
class Feedback:
    """A training response as it was answered; `drill` is the answer's primary key."""

    drill: int
    card: Card
    rubric: Rubric
    benchmark: str
    marks: tuple[ScoredCriterion, ...]
    round_: int
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class Miss:
    """How far a clinician was from the experts on a criterion over a round, in points.

    `lean` is above 0 where they scored higher than the experts on the whole.
    """

    criterion: str
    distance: float
    lean: float


@dataclass(frozen=True, slots=True)
class RoundResult:
    """How a round went; `halted` where only a coordinator can help. The worst miss comes first."""

    outcome: RoundOutcome
    misses: tuple[Miss, ...]
    round_: int
    total: int
    halted: bool


@dataclass(frozen=True, slots=True)
class Trainee:
    """Where a clinician stands, for coordinators: `answered` of `total` in the round begun."""

    name: str
    rounds: tuple[RoundOutcome, ...]
    answered: int
    total: int
    ended: str
    halted: bool


Stage = Exercise | Feedback | RoundResult


@dataclass(frozen=True, slots=True)
class Situation:
    """What holds for a clinician now: the study's settings, and whether it is locked.

    Attributes
    ----------
    stage
        What is next in training; None once it is over, or the study locked.
    consents
        Whether the clinician has agreed to what they are asked to, if to anything.
    """

    settings: Settings
    locked: bool
    stage: Stage | None = None
    consents: bool = True


def situation(engine: Engine, rater: int) -> Situation:
    """Return what holds for a clinician and what they are to see next in training, in one reading.

    For everybody, whom 0 stands for, there are only settings and lock.
    """
    with glance(engine) as session:
        now, secret, standing = _situation(session, rater)
    if not _is_trained(now, secret, standing, rater):
        return now
    with reading(engine) as session:  # anew, since a round is told by several queries
        now, secret, standing = _situation(session, rater)
        if not _is_trained(now, secret, standing, rater):
            return now
        return replace(now, stage=_TrainingRound(session, rater, secret, standing).stage())


def _is_trained(now: Situation, secret: str, standing: TrainingStanding, rater: int) -> bool:
    """Tell whether a clinician is in training now."""
    return bool(secret and rater) and not now.locked and not standing.over


def _situation(session: Session, rater: int) -> tuple[Situation, str, TrainingStanding]:
    """Return what holds for a clinician outside training, the secret of training, and their standing."""
    keys = {"standing": standing_key(rater), "consent": consent_key(rater)}
    stored = dict(session.execute(_SETTINGS, keys).all())
    consent_sha256 = stored.get(CONSENT_TEXT, "")
    has_consented = not consent_sha256 or stored.get(consent_key(rater)) == consent_sha256
    now = Situation(read_settings(stored), LOCKED in stored, consents=has_consented)
    standing = _read_standing(stored.get(standing_key(rater)))
    return now, stored.get(SECRET, ""), standing


def trainees(engine: Engine) -> list[Trainee]:
    """Return where every clinician who can sign in stands, by name; none without training."""
    with reading(engine) as session:
        stored = setting_values(session)
        if SECRET not in stored:
            return []
        total = len(expert_scores(session))
        answered_rounds = [(drill.rater, drill.round) for drill in session.exec(select(Drill))]
        query = (
            select(Rater.id, Rater.handle)
            .join(Account)
            .where(col(Rater.simulated).is_(False))
            .order_by(Rater.handle)
        )
        trainees_found = []
        for key, name in session.exec(query):
            standing = _read_standing(stored.get(standing_key(key or 0)))
            answered = answered_rounds.count((key or 0, len(standing.rounds)))
            trainees_found.append(
                Trainee(name, standing.rounds, answered, total, standing.ended, standing.halted)
            )
        return trainees_found


class _TrainingRound:
    """A clinician's training, read once: their answers and the round they are in."""

    def __init__(
        self, session: Session, rater: int, secret: str, standing: TrainingStanding
    ) -> None:
        self.session, self.rater, self.secret, self.standing = session, rater, secret, standing
        self.experts = expert_scores(session)
        query = select(Drill).where(Drill.rater == rater).order_by(col(Drill.id))
        self.drills = list(session.exec(query))

    def stage(self) -> Stage:
        """Return feedback that was not left yet, else a round's outcome, else what is next."""
        if self.drills and (self.drills[-1].id or 0) > self.standing.seen:
            return self._feedback(self.drills[-1])
        if self.standing.told < len(self.standing.rounds):
            return self._result()
        return self._exercise()

    def _exercise(self) -> Exercise:
        round_ = len(self.standing.rounds)
        order = training.order(self.secret, self.rater, sorted(self.experts), round_)
        answered = {drill.response for drill in self.drills if drill.round == round_}
        response = next(response for response in order if response not in answered)
        shown_card, rubric, benchmark = self._card(response, round_, ("on_request",))
        stored = self.standing.draft if self.standing.draft.get("code") == shown_card.code else {}
        task = Task(
            card=shown_card,
            rubric=rubric,
            draft=stored.get("draft", {}),
            draft_seq=stored.get("seq", 0),
            seconds_active=stored.get("seconds", 0.0),
            benchmark=benchmark,
        )
        return Exercise(task, round_ + 1, len(answered) + 1, len(order))

    def _feedback(self, drill: Drill) -> Feedback:
        response, total = drill.response, len(self.experts)
        opens = ("on_request", "after_rating")
        shown_card, rubric, benchmark = self._card(response, drill.round, opens)
        experts = self.session.exec(select(Expert).where(Expert.response == response))
        by_criterion = {expert.criterion: expert for expert in experts}
        marks = tuple(
            ScoredCriterion(name, drill.scores[name], expert.score, expert.why)
            for name in rubric.criteria
            if (expert := by_criterion.get(name)) and name in drill.scores
        )
        number = sum(answered.round == drill.round for answered in self.drills)
        of_round = drill.round + 1, number, total
        return Feedback(drill.id or 0, shown_card, rubric, benchmark, marks, *of_round)

    def _result(self) -> RoundResult:
        round_ = len(self.standing.rounds) - 1
        answers = {drill.response: drill.scores for drill in self.drills if drill.round == round_}
        gaps = training.differences(answers, self.experts)
        misses = [
            Miss(name, sum(map(abs, differences)) / len(differences), sum(differences))
            for name, differences in gaps.items()
        ]
        misses.sort(key=lambda miss: -miss.distance)
        return RoundResult(
            self.standing.rounds[-1], tuple(misses), round_ + 1, len(answers), self.standing.halted
        )

    def _card(self, response: int, round_: int, opens: Sequence[str]) -> tuple[Card, Rubric, str]:
        """Return what is shown of a response, its rubric and benchmark.

        Its reference is only shown if the study's setting opens it.
        """
        *texts, body, benchmark = self.session.execute(
            shown(RubricText.body, Instance.benchmark)
            .join(Benchmark)
            .join(RubricText, IS_RATED_ON)
            .where(Response.id == response)
        ).one()
        rubric = Rubric.from_json(body)
        code = training.code(self.secret, self.rater, response, round_)
        whole_card = card(code, list(texts), rubric)
        is_opened = read_settings(setting_values(self.session)).reference in opens
        if not is_opened:
            whole_card = replace(whole_card, reference=None)
        return whole_card, rubric, benchmark


def _read_standing(text: str | None) -> TrainingStanding:
    return TrainingStanding.model_validate_json(text) if text else TrainingStanding()
