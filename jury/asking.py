"""What is said to a juror about a response: the first question, and the one after a bad answer."""

from data.question import ScaleLike
from jury.call import Message
from jury.parse import storable

AGAIN = (
    "This answer cannot be used: {reason}. Rate the same response again. Answer with one JSON "
    "object only, in the form given above, every score a whole number on the scale {scale}."
)
NO_TEXT = "the response has no text"
NO_ANSWER = "(no answer)"
Turns = tuple[Message, ...]


def first_ask(prompt: str) -> Turns:
    """Return the conversation in which a juror is sent a rendered prompt."""
    return (Message("user", prompt),)


def again(reason: str, scale: ScaleLike) -> str:
    """Return the question once more, with what is wrong with the answer."""
    return AGAIN.format(reason=reason, scale=scale)


def next_ask(turns: Turns, answer: str, said: str) -> Turns:
    """Return the conversation with the juror's answer quoted back, and what is said to it."""
    quoted = storable(answer).strip() or NO_ANSWER
    return (*turns, Message("assistant", quoted), Message("user", said))
