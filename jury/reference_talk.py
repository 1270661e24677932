"""Putting one reference to one juror: the answer is read, and each request stored."""

import asyncio
import hashlib
import json

from sqlalchemy import Engine

from data.queries.references import ReferenceCard
from data.schema import Status
from data.store.references import ReferenceRecord, record_references
from jury.call import Answer, Call
from jury.lane import Lane
from jury.parse import storable
from jury.reference_question import AGAIN, SCHEMA, Said, prompt_for, read
from jury.talk import Heard, Talk


class ReferenceTalk(Talk[Said]):
    """A talk about one reference."""

    def __init__(self, engine: Engine, lane: Lane, card: ReferenceCard) -> None:
        super().__init__(lane, prompt_for(card), SCHEMA)
        self.engine, self.card = engine, card

    def read(self, answer: Answer) -> Said:
        """Return what an answer says, or why it says nothing."""
        return (
            read(answer.text) if answer.status == Status.OK else Said(answer.status, answer.reason)
        )

    def again(self, reason: str) -> str:
        """Return the question once more, with what is wrong."""
        return AGAIN.replace("{reason}", reason)

    async def store(self, heard: Heard, reading: Said) -> None:
        """Store one call."""
        await self._keep(_record(self, heard, reading))

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the reference was not put to the juror: a row with number 0 and no cost."""
        record = ReferenceRecord(
            instance=self.card.instance,
            rater=self.lane.rater,
            status=status,
            request_sha256=_request_sha256(self.lane, self.call()),
            number=0,
            reason=f"not asked: {reason}",
            usd=0.0,
            price_source="not asked",
        )
        await self._keep(record)
        return status

    async def _keep(self, record: ReferenceRecord) -> None:
        """Store a row beside the event loop."""
        await asyncio.to_thread(record_references, self.engine, [record])


def _record(talk: ReferenceTalk, heard: Heard, said: Said) -> ReferenceRecord:
    """Return a call as the study keeps it."""
    call, answer = heard.call, heard.answer
    return ReferenceRecord(
        instance=talk.card.instance,
        rater=talk.lane.rater,
        status=said.status,
        request_sha256=_request_sha256(talk.lane, call),
        absent=said.absent,
        facts=said.facts,
        reason=storable(said.reason),
        number=talk.number,
        sent={**answer.sent, "turns": len(call.messages)},
        raw=storable(answer.text),
        tokens_in=answer.usage.tokens_in,
        tokens_out=answer.usage.tokens_out,
        tokens_cached=answer.usage.tokens_cached,
        tokens_reasoning=answer.usage.tokens_reasoning,
        usd=heard.cost.usd,
        price_source=heard.cost.source,
        latency_seconds=heard.seconds,
        request_id=answer.request_id,
        returned_model=answer.returned_model,
    )


def _request_sha256(lane: Lane, call: Call) -> str:
    """Return the hash of all that makes a request that request."""
    turns = [[turn.role, turn.text] for turn in call.messages]
    profile = lane.juror.profile() | {"max_tokens": lane.juror.max_tokens}
    body = [profile, call.form, SCHEMA, turns]
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
