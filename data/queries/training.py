"""Where a clinician stands in training, and what to show them. The author's table is not read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Engine, bindparam
from sqlmodel import Session, col, select

from data import training
from data.card import Card
from data.database import reading
from data.queries.cards import card, shown
from data.queries.rating_room import Task
from data.rubric import Rubric
from data.schema import (
    Account,
    Benchmark,
    Drill,
    Expert,
    Instance,
    Rater,
    Response,
    RubricText,
    Setting,
)
from data.settings import read_settings
from data.store.audit import LOCKED
from data.store.training import expert_scores
from data.training import SECRET, Outcome, Standing, standing_key

_STANDING = select(Setting.key, Setting.value).where(
    col(Setting.key).in_((SECRET, LOCKED)) | (col(Setting.key) == bindparam("standing"))
)


@dataclass(frozen=True, slots=True)
class Exercise:
    """A training response to rate: the `number`-th of `total` in a round counted from 1."""

    task: Task
    round_: int
    number: int
    total: int


@dataclass(frozen=True, slots=True)
class Mark:
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
    marks: tuple[Mark, ...]
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
class Result:
    """How a round went; `halted` where only a coordinator can help. The worst miss comes first."""

    outcome: Outcome
    misses: tuple[Miss, ...]
    round_: int
    total: int
    halted: bool


@dataclass(frozen=True, slots=True)
class Trainee:
    """Where a clinician stands, for coordinators: `answered` of `total` in the round begun."""

    name: str
    rounds: tuple[Outcome, ...]
    answered: int
    total: int
    ended: str
    halted: bool


Stage = Exercise | Feedback | Result


def stage(engine: Engine, rater: int) -> Stage | None:
    """Return what a clinician is to see next in training; None once it is over or the study locked."""
    with reading(engine) as session:
        kept = dict(session.exec(_STANDING, params={"standing": standing_key(rater)}).all())
        if SECRET not in kept or LOCKED in kept:
            return None
        standing = _read(kept.get(standing_key(rater)))
        if standing.over:
            return None
        return _Round(session, rater, kept[SECRET], standing).stage()


def trainees(engine: Engine) -> list[Trainee]:
    """Return where every clinician who can sign in stands, by name; none without training."""
    with reading(engine) as session:
        kept = {one.key: one.value for one in session.exec(select(Setting))}
        if SECRET not in kept:
            return []
        total = len(expert_scores(session))
        drills = [(one.rater, one.round) for one in session.exec(select(Drill))]
        query = (
            select(Rater.id, Rater.handle)
            .join(Account, col(Account.rater) == col(Rater.id))
            .where(col(Rater.simulated).is_(False))
            .order_by(Rater.handle)
        )
        found = []
        for key, name in session.exec(query):
            one = _read(kept.get(standing_key(key or 0)))
            answered = drills.count((key or 0, len(one.rounds)))
            found.append(Trainee(name, one.rounds, answered, total, one.ended, one.halted))
        return found


class _Round:
    """A clinician's training, read once: their answers and the round they are in."""

    def __init__(self, session: Session, rater: int, secret: str, standing: Standing) -> None:
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
        done = {one.response for one in self.drills if one.round == round_}
        response = next(one for one in order if one not in done)
        shown_card, rubric = self._card(response, round_, ("on_request",))
        kept = self.standing.draft if self.standing.draft.get("code") == shown_card.code else {}
        task = Task(
            card=shown_card,
            rubric=rubric,
            draft=kept.get("draft", {}),
            draft_seq=kept.get("seq", 0),
            seconds_active=kept.get("seconds", 0.0),
        )
        return Exercise(task, round_ + 1, len(done) + 1, len(order))

    def _feedback(self, drill: Drill) -> Feedback:
        response, total = drill.response, len(self.experts)
        shown_card, rubric = self._card(response, drill.round, ("on_request", "after_rating"))
        experts = self.session.exec(select(Expert).where(Expert.response == response))
        said = {one.criterion: one for one in experts}
        marks = tuple(
            Mark(name, drill.scores[name], said[name].score, said[name].why)
            for name in rubric.criteria
            if name in said and name in drill.scores
        )
        number = sum(one.round == drill.round for one in self.drills)
        return Feedback(drill.id or 0, shown_card, rubric, marks, drill.round + 1, number, total)

    def _result(self) -> Result:
        round_ = len(self.standing.rounds) - 1
        answers = {one.response: one.scores for one in self.drills if one.round == round_}
        gaps = training.differences(answers, self.experts)
        misses = [Miss(name, sum(map(abs, one)) / len(one), sum(one)) for name, one in gaps.items()]
        misses.sort(key=lambda one: -one.distance)
        return Result(
            self.standing.rounds[-1], tuple(misses), round_ + 1, len(answers), self.standing.halted
        )

    def _card(self, response: int, round_: int, opens: Sequence[str]) -> tuple[Card, Rubric]:
        """Return what is shown of a response; its reference only if the study's setting opens it."""
        *texts, body = self.session.execute(
            shown(RubricText.body)
            .join(Benchmark, col(Benchmark.name) == col(Instance.benchmark))
            .join(RubricText, col(RubricText.sha256) == col(Benchmark.rubric_sha256))
            .where(col(Response.id) == response)
        ).one()
        rubric = Rubric.from_json(body)
        code = training.code(self.secret, self.rater, response, round_)
        found = card(code, list(texts), rubric)
        kept = {one.key: one.value for one in self.session.exec(select(Setting))}
        opened = read_settings(kept).reference in opens
        return (found if opened else replace(found, reference=None)), rubric


def _read(text: str | None) -> Standing:
    return Standing.model_validate_json(text) if text else Standing()
