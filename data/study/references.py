"""Which references have still to be checked against their source, and what jurors said of them.

The rule, in one place. A juror's newest answer about an instance counts. An instance is marked
where more than half of the jurors who answered, and at least two of them, say that its reference
states facts which the source does not hold. It is sound where more than half, and at least two,
say that it does not. A tie, or fewer than two answers, leaves it not known. Simulated jurors
count only in a study where no real one has answered. The author's table is not read here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Engine, and_, func
from sqlmodel import Session, col, select

from data.database import reading
from data.person import Person, asking, only
from data.schema import Attempt, Instance, Purpose, Rater, Response, Role, Status
from data.study.base import FOR_STUDY, Columns, columns_of, in_pages

PAGE = 200
LEAST_ANSWERS = 2
BLANKS = " \n\r\t"
CHECKABLE = and_(
    *(
        func.trim(func.coalesce(col(text), ""), BLANKS) != ""
        for text in (Instance.reference, Instance.context)
    )
)
_ANSWERED = and_(col(Attempt.purpose) == Purpose.REFERENCE, col(Attempt.status) == Status.OK)
Verdict = Literal["marked", "sound", "not known"]


@dataclass(frozen=True, slots=True)
class ReferenceCard:
    """An instance (primary key) as a juror gets it to check its reference, and its name for messages."""

    instance: int
    context: str
    prompt: str
    reference: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class References:
    """What is known of a study's references, training instances left out.

    Attributes
    ----------
    marked, sound, not_known
        Instances that have a reference and a context, as "benchmark/instance".
    unchecked
        Instances without a reference or without a context: there is nothing to check.
    jurors
        Those whose answers count, by name.
    simulated
        Whether they are simulated.
    """

    marked: frozenset[str]
    sound: frozenset[str]
    not_known: frozenset[str]
    unchecked: frozenset[str]
    jurors: tuple[str, ...]
    simulated: bool


@dataclass(frozen=True, slots=True)
class ReferenceAnswer:
    """What a juror said last of a reference: whether it states facts its source lacks, and which."""

    juror: str
    absent: bool
    facts: tuple[str, ...]
    simulated: bool


@dataclass(frozen=True, slots=True)
class CheckedReference:
    """A reference with its source and prompt, and each juror's newest answer, by the juror's name."""

    name: str
    context: str
    prompt: str
    reference: str
    answers: tuple[ReferenceAnswer, ...]


def verdict(answers: Sequence[bool]) -> Verdict:
    """Return what the jurors' answers (True: facts are absent from the source) come to."""
    absent = sum(answers)
    if len(answers) < LEAST_ANSWERS or 2 * absent == len(answers):
        return "not known"
    return "marked" if 2 * absent > len(answers) else "sound"


def reference_cards(
    engine: Engine, benchmarks: Sequence[str] | None = None
) -> Iterator[ReferenceCard]:
    """Yield the instances that have a reference and a context, in a fixed order.

    Read page by page, so that a run of hours holds no transaction open.
    """
    name, key = col(Instance.benchmark) + "/" + col(Instance.instance_id), col(Instance.id)
    texts = (Instance.context, Instance.prompt, Instance.reference, name)
    query = _instances_with_responses(benchmarks, *texts, key).where(CHECKABLE)
    for *texts_of, instance in in_pages(engine, query, key, size=PAGE):
        yield ReferenceCard(instance, *texts_of)


def answered_references(engine: Engine, rater: int) -> set[int]:
    """Return the instances (primary keys) about which a juror has answered."""
    query = select(Attempt.instance).where(Attempt.rater == rater, _ANSWERED)
    with reading(engine) as session:
        return {instance or 0 for instance in session.exec(query)}


def references(
    engine: Engine, jurors: Iterable[str] | None = None, benchmarks: Sequence[str] | None = None
) -> References:
    """Return what jurors make of a study's references.

    Parameters
    ----------
    jurors
        Only their answers, by name; None takes all real ones, or all simulated ones where no
        real one has answered.
    benchmarks
        Only these; None means all.
    """
    names = (Instance.id, Instance.benchmark, Instance.instance_id, CHECKABLE)
    with reading(engine) as session:
        given_by = _answers(session)
        rows = session.exec(_instances_with_responses(benchmarks, *names)).all()
    said = [answer for of_one in given_by.values() for answer in of_one.values()]
    everybody = frozenset(answer.juror for answer in said)
    simulated = frozenset(answer.juror for answer in said if answer.simulated)

    real = (everybody - simulated) or everybody  # never together with simulated ones
    counting = real if jurors is None else everybody & frozenset(jurors)
    sets: dict[str, set[str]] = {"marked": set(), "sound": set(), "not known": set(), "": set()}
    for key, benchmark, name, checkable in rows:
        answers = given_by.get(key, {})
        given = (answer.absent for who, answer in answers.items() if who in counting)
        sets[verdict([*given]) if checkable else ""].add(f"{benchmark}/{name}")
    return References(
        marked=frozenset(sets["marked"]),
        sound=frozenset(sets["sound"]),
        not_known=frozenset(sets["not known"]),
        unchecked=frozenset(sets[""]),
        jurors=tuple(sorted(counting)),
        simulated=bool(counting) and counting <= simulated,
    )


checked_references = asking(references, Role.RESEARCHER, Role.COORDINATOR)


@only(Role.RESEARCHER, Role.COORDINATOR)
def opened_reference(_: Person, engine: Engine, name: str) -> CheckedReference | None:
    """Return a reference by "benchmark/instance" with what jurors said of it; None if there is none."""
    named = col(Instance.benchmark) + "/" + col(Instance.instance_id)
    texts = (Instance.context, Instance.prompt, Instance.reference)
    query = _instances_with_responses(None, Instance.id, *texts).where(CHECKABLE, named == name)
    with reading(engine) as session:
        found = session.exec(query).first()
        if found is None:
            return None
        key, context, prompt, reference = found
        newest = _answers(session, Attempt.instance == key).get(key, {})
    answers = tuple(newest[juror] for juror in sorted(newest))
    return CheckedReference(name, context, prompt, reference, answers)


def _answers(session: Session, *where: Any) -> dict[int, dict[str, ReferenceAnswer]]:
    """Return instance -> juror -> newest answer."""
    query = (
        columns_of(Attempt.instance, Rater.handle, Rater.simulated, Attempt.answer)
        .select_from(Attempt)
        .join(Rater)
        .where(_ANSWERED, *where)
        .order_by(col(Attempt.id))
    )
    answers: dict[int, dict[str, ReferenceAnswer]] = {}
    for instance, juror, simulated, answer in session.exec(query):
        newest = ReferenceAnswer(juror, answer["absent"], tuple(answer["facts"]), bool(simulated))
        answers.setdefault(instance, {})[juror] = newest
    return answers


def _instances_with_responses(benchmarks: Sequence[str] | None, *columns: Any) -> Columns:
    """Select from the instances that have a response not for training, in their order."""
    counting = col(Instance.id).in_(select(Response.instance).where(FOR_STUDY))
    query = columns_of(*columns).where(counting).order_by(col(Instance.id))
    return query if benchmarks is None else query.where(col(Instance.benchmark).in_(benchmarks))
