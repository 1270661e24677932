"""Taking in what the rating form sends in training: the same messages, other tables."""

from collections.abc import Mapping

from pydantic import ValidationError
from sqlalchemy import Engine

from annotate.replies import BUSY, CLOSED, FOREIGN, GARBLED, OFF, Answer, Message
from data.errors import BadInput, MedjuryError, NotAllowed, OffScale, Unknown
from data.store.training import answer_drill, save_drill_draft

NOT_SAID = {"code", "seq", "attempt", "submit", "scores"}


def take_in(engine: Engine, rater: int, payload: object) -> Answer:
    """Save a draft or an answer of the training round; the same message again changes nothing."""
    try:
        message = Message.model_validate(payload)
    except ValidationError:
        fields = payload if isinstance(payload, Mapping) else {}
        code, seq, attempt = (fields.get(name) for name in ("code", "seq", "attempt"))
        return Answer(code, seq, attempt, GARBLED)  # type: ignore[arg-type] # echoes what was sent
    return Answer(message.code, message.seq, message.attempt, _save(engine, rater, message))


def _save(engine: Engine, rater: int, message: Message) -> str:
    """Store a message; return what to tell the clinician, or nothing."""
    try:
        if message.submit:
            said = message.model_dump(mode="json", exclude=NOT_SAID)
            answer_drill(engine, rater, message.code, message.reply(), said)
        else:
            draft, seconds = message.draft(), message.seconds
            save_drill_draft(engine, rater, message.code, message.seq, draft, seconds)
    except (OffScale, Unknown):
        return OFF
    except NotAllowed as error:
        return CLOSED if "locked" in str(error) else FOREIGN
    except MedjuryError as error:
        return str(error) if isinstance(error, BadInput) else BUSY
    return ""
