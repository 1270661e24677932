"""What people answer to reporting guidelines; only ever added to."""

from collections.abc import Mapping

from sqlalchemy import Engine

from data.database import transaction
from data.description import UNFIT
from data.errors import BadInput, Unknown
from data.guidelines import LONGEST_ANSWER, Answer, questions
from data.person import Person, only
from data.queries.dossiers import answers_in
from data.safe_text import short
from data.schema import AnswerKind, DossierAnswer, Role, now
from data.store.audit import log, write_rows

ANSWERED = "dossier answered"


@only(Role.RESEARCHER, Role.COORDINATOR)
def keep_answers(person: Person, engine: Engine, answers: Mapping[str, Answer]) -> int:
    """Keep answers to questions, by their names; return how many are new.

    Earlier answers stay in the study. A locked study takes them too: they change no rating and no
    figure, and the form is filled in when the ratings are done.

    Raises
    ------
    Unknown
        If there is no such question.
    BadInput
        If an answer is too long, has a sign that cannot be shown, or does not say why.
    """
    for name, answer in answers.items():
        _check(name, answer)
    with transaction(engine) as session:
        present = answers_in(session)
        at = now()
        rows = [
            {"question": name, "kind": answer.kind.value, "text": answer.text}
            | {"author": person.actor, "at": at}
            for name, answer in answers.items()
            if _changes(present[name].answer if name in present else None, answer)
        ]
        if rows:
            log(
                session,
                person.actor,
                ANSWERED,
                {"written": write_rows(session, DossierAnswer, rows)},
            )
    return len(rows)


def _changes(present: Answer | None, answer: Answer) -> bool:
    if answer.kind is AnswerKind.WITHDRAWN:
        return present is not None
    return present != answer


def _check(name: str, answer: Answer) -> None:
    if name not in questions():
        raise Unknown(
            f"{short(name)}: no guideline asks this; `share dossier --to NAME --questions` lists the "
            "questions with their names; nothing was stored"
        )
    if len(answer.text) > LONGEST_ANSWER:
        raise BadInput(
            f"{name}: has {len(answer.text):,} characters; at most {LONGEST_ANSWER:,}; nothing was stored"
        )
    if unfit := UNFIT.search(answer.text):
        raise BadInput(
            f"{name}: has a sign that cannot be shown (U+{ord(unfit[0]):04X}); nothing was stored"
        )
    if not answer.text.strip() and answer.kind is not AnswerKind.WITHDRAWN:
        raise BadInput(f"{name}: say why it does not apply; nothing was stored")
