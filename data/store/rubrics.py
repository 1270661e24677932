"""Storing rubrics by their hash, and checking what a rating form sends against its rubric."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Engine, bindparam, func
from sqlmodel import Session, col, select

from data.card import ERRORS, NOT_ENOUGH_CONTEXT, SEVERITIES, SIDES, Marked, Reply, Side
from data.database import transaction
from data.errors import BadInput
from data.record import log, refuse_locked
from data.rubric import Rubric
from data.safe_text import refuse_nul
from data.schema import (
    IS_RATED_ON,
    Benchmark,
    Expert,
    Instance,
    Rating,
    Response,
    RubricText,
    Setting,
)
from data.settings import ERROR_TYPES, read_error_types

# Made once: each submission asks it, and making it costs more than asking it.
_RUBRIC = (
    select(RubricText.body)
    .select_from(Response)
    .join(Instance)
    .join(Benchmark)
    .join(RubricText, IS_RATED_ON)
    .where(Response.id == bindparam("response"))
)
_ERROR_TYPES = select(Setting.value).where(Setting.key == ERROR_TYPES)
_TEXTS = (  # as raters see them
    select(func.coalesce(Response.shown, Response.text), Instance.context, Instance.prompt)
    .join(Instance)
    .where(col(Response.id) == bindparam("response"))
)


def rubric_of(session: Session, response: int) -> Rubric:
    """Return the rubric a response is rated on."""
    return Rubric.from_json(session.exec(_RUBRIC, params={"response": response}).one())


def whole_scores(rubric: Rubric, reply: Reply, lacking: str) -> dict[str, float]:
    """Return a score for every criterion, or refuse the reply in words that begin with `lacking`."""
    missing = [name for name in rubric.criteria if name not in reply.scores]
    if missing:
        raise BadInput(lacking + ", ".join(missing))
    return {
        name: rubric.score(name, value, "you", "this response")
        for name, value in reply.scores.items()
    }


def add_rubric(engine: Engine, rubric: Rubric) -> str:
    """Store a rubric in the study and return its SHA-256; one that is there already is kept."""
    with transaction(engine) as session:
        refuse_locked(session)
        return keep_rubric(session, rubric)


def keep_rubric(session: Session, rubric: Rubric) -> str:
    """Store a rubric inside the caller's transaction and return its SHA-256."""
    if session.get(RubricText, rubric.sha256) is None:
        row = RubricText(
            sha256=rubric.sha256, name=rubric.name, version=rubric.version, body=rubric.to_json()
        )
        session.add(row)
        detail = {"name": rubric.name, "version": rubric.version, "sha256": rubric.sha256}
        log(session, "researcher", "rubric added", detail)
    return rubric.sha256


def move_to_rubric(session: Session, name: str, rubric: Rubric) -> bool:
    """Put a benchmark on another rubric unless somebody rated on its present one.

    Returns False where ratings by clinicians or jurors, or experts' scores, stand on it.
    """
    benchmark = session.get_one(Benchmark, name)
    if benchmark.rubric_sha256 == rubric.sha256:
        return True
    rated = (
        select(Rating.id)
        .join(Response)
        .join(Instance)
        .where(Instance.benchmark == name, Rating.rubric_sha256 == benchmark.rubric_sha256)
        .limit(1)
    )
    drilled = (
        select(Expert.id).join(Response).join(Instance).where(Instance.benchmark == name).limit(1)
    )
    if any(session.exec(query).first() is not None for query in (rated, drilled)):
        return False
    benchmark.rubric_sha256 = keep_rubric(session, rubric)
    detail = {"benchmark": name, "rubric": rubric.name}
    log(session, "researcher", "rubric set", detail)
    return True


@dataclass(frozen=True, slots=True)
class RatingForm:
    """The form of a response: its rubric, the texts that can be marked, what a mark can be called."""

    rubric: Rubric
    texts: Mapping[Side, str] = field(default_factory=dict)
    errors: Sequence[str] = ERRORS

    def stretch(self, mark: Marked) -> str:
        """Return the words that are marked, or refuse a mark that is not in its text."""
        text = self.texts[mark.side]
        if not 0 <= mark.start < mark.end <= len(text):
            raise BadInput("a marked stretch is not part of its text; mark it again")
        return text[mark.start : mark.end]

    def refuse_impossible(self, reply: Reply) -> None:
        """Refuse what this form cannot have sent, whether or not all is rated.

        Raises
        ------
        OffScale, Unknown
            If a score is not on the scale, or its criterion not in the rubric.
        BadInput
            If a comment or a mark cannot be; the message says what to do.
        """
        refuse_nul((reply.comment, *reply.comments.values(), *(one.note for one in reply.spans)))
        for name, value in reply.scores.items():
            self.rubric.score(name, value, "you", "this response")
        if not set(reply.comments) <= set(self.rubric.criteria):
            raise BadInput("a comment belongs to no criterion; reload the page")
        for mark in reply.spans:
            self._refuse_odd(mark, reply.spans)

    def scores(self, reply: Reply) -> dict[str, float]:
        """Return a score for every criterion, none where it cannot be rated, or refuse the reply."""
        self.refuse_impossible(reply)
        if NOT_ENOUGH_CONTEXT in reply.flags and not reply.scores:
            return {}
        return whole_scores(self.rubric, reply, "not rated yet: ")

    def _refuse_odd(self, mark: Marked, marks: tuple[Marked, ...]) -> None:
        """Refuse a mark of no criterion or error, outside its text, or linked to none opposite."""
        if mark.criterion not in self.rubric.criteria:
            raise BadInput("a marked stretch belongs to no criterion; mark it again")
        is_known = mark.error in self.errors and mark.severity in SEVERITIES and mark.side in SIDES
        if not is_known:
            raise BadInput(
                f"this study's marks are {', '.join(self.errors)}, each minor, major or critical, "
                "in the response or the source; mark it again"
            )
        self.stretch(mark)
        if mark.linked is None:
            return
        if not 0 <= mark.linked < len(marks) or marks[mark.linked].side == mark.side:
            raise BadInput("a marked stretch is linked to none on the other side; mark it again")


def form_of(session: Session, response: int, reply: Reply) -> RatingForm:
    """Return the form of a response on its rubric, as far as a reply needs it."""
    return form_on(session, rubric_of(session, response), response, reply)


def form_on(session: Session, rubric: Rubric, response: int, reply: Reply) -> RatingForm:
    """Return the form of a response on a rubric; what marks need is read only if there are some."""
    if not reply.spans:
        return RatingForm(rubric)
    stored = session.exec(_ERROR_TYPES).first()
    errors = ERRORS if stored is None else read_error_types(stored)
    return RatingForm(rubric, _shown_texts(session, response), errors)


def _shown_texts(session: Session, response: int) -> dict[Side, str]:
    """Return a response's text and its source as raters see them; a bare task is its own source."""
    text, context, prompt = session.execute(_TEXTS, {"response": response}).one()
    return {"response": text, "source": context or prompt}
