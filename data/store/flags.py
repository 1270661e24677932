"""Answers to clinicians' flags, and that they were seen; append-only, as the flags are."""

from sqlalchemy import Engine
from sqlmodel import Session, select

from data.database import transaction
from data.errors import BadInput, NotAllowed, Unknown
from data.person import asking
from data.record import log, refuse_locked
from data.schema import ANSWER, SEEN, Assignment, Remark, Role

RECUSED = "recused"
LONGEST = 2000


def answer_flag(engine: Engine, actor: str, remark: int, text: str) -> int:
    """Answer a flag (primary key of its remark); return the answer's own key.

    Another answer to the same flag is added. `annotate.adjudicate.answer` first looks whether the
    text names a model of the study, which no clinician may read.

    Raises
    ------
    Unknown
        If there is no such flag.
    BadInput
        If the text is empty or over 2,000 characters.
    """
    answer = text.strip()
    if not 0 < len(answer) <= LONGEST:
        raise BadInput(f"an answer has 1 to {LONGEST:,} characters")
    with transaction(engine) as session:
        refuse_locked(session)
        flag = session.get(Remark, remark)
        if flag is None or flag.about is not None or flag.kind == RECUSED:
            raise Unknown(
                f"flag {remark}: there is none of this number (`medjury rate flags` lists them)"
            )
        return _write(session, actor, "flag answered", flag, ANSWER, answer)


# Answer a flag in a coordinator's name.
answer_flag_as = asking(answer_flag, Role.COORDINATOR)


def answer_seen(engine: Engine, rater: int, answer: int) -> bool:
    """Record that a clinician has seen an answer (its own key); False if that was so already.

    Raises
    ------
    NotAllowed
        If it is no answer to this clinician.
    """
    with transaction(engine) as session:
        remark = session.get(Remark, answer)
        own = session.get(Assignment, remark.assignment) if remark else None
        if remark is None or own is None or remark.kind != ANSWER or own.rater != rater:
            raise NotAllowed("this is no answer to you")
        seen_remarks = select(Remark.id).where(Remark.about == answer, Remark.kind == SEEN)
        if session.exec(seen_remarks.limit(1)).first() is not None:
            return False
        _write(session, f"rater {rater}", "answer seen", remark, SEEN, "")
    return True


def _write(session: Session, actor: str, act: str, about: Remark, kind: str, text: str) -> int:
    """Add a remark about a remark with its event; return its key."""
    new = Remark(
        assignment=about.assignment,
        kind=kind,
        text=text,
        revision=about.revision,
        about=about.id,
    )
    session.add(new)
    log(session, actor, act, {"remark": about.id})
    return new.id or 0
