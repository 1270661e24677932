"""The words a juror was sent, made again from what the study keeps and held to their hash.

A study stores of each request its settings and the SHA-256 of all that makes it, not its text a
second time. The text follows from the rubric and the response, and the hash tells whether it does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from data.queries.lab import CallView
from jury.ask import AGAIN, request_sha256
from jury.call import Call, Message
from jury.panel import Juror
from jury.parse import storable
from jury.providers import FORMS

MAX_TOKENS = 1500


@dataclass(frozen=True, slots=True)
class Prompt:
    """The conversation of one call; `exact` where its hash is the one stored with the call."""

    turns: tuple[Message, ...]
    exact: bool


def prompt_of(call: CallView, before: Sequence[CallView]) -> Prompt:
    """Return what a juror was sent in a call; `before` are the earlier calls of this verdict."""
    juror, schema = _juror(call), call.rubric.json_schema()
    candidates = list(_conversations(call, before))
    for turns, form in product(candidates, FORMS):
        if request_sha256(juror, Call(turns, schema, form, call.replicate)) == call.request_sha256:
            return Prompt(turns, exact=True)
    return Prompt(candidates[0], exact=False)


def _conversations(call: CallView, before: Sequence[CallView]) -> Iterator[tuple[Message, ...]]:
    """Yield what may have been said: the question, or it again after an unusable answer."""
    question = Message("user", call.rubric.render(call.card))
    if call.sent.get("turns", 1) == 1:
        yield (question,)
        return
    for one in reversed(before):
        said = Message("assistant", storable(one.raw).strip() or "(no answer)")
        again = AGAIN.format(reason=one.reason, scale=call.rubric.scale)
        yield (question, said, Message("user", again))
    yield (question,)


def _juror(call: CallView) -> Juror:
    """Return the juror as it was when it was asked."""
    sent = call.sent
    settings = {name: call.profile.get(name) for name in ("temperature", "effort", "schema")}
    return Juror.model_validate(
        {
            "name": call.juror,
            "provider": call.profile["provider"],
            "model": call.profile["model"],
            "family": "any",
            "base_url": sent.get("base_url", ""),
            "max_tokens": sent.get("max_tokens") or sent.get("max_completion_tokens") or MAX_TOKENS,
        }
        | {name: value for name, value in settings.items() if value is not None}
    )
