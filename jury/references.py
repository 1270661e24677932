"""Asking every juror of a panel, once an instance, whether its reference says more than its source.

What is asked is about an instance and not a response, and no rubric is in it. Money, patience,
forms of answer and hosts' limits are those of a jury run.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from sqlalchemy import Engine

from data.queries.references import ReferenceCard, answered_references, reference_cards
from data.schema import Status, now
from data.store.references import ReferenceRecord, record_references
from jury.call import Answer, Call, Provider
from jury.conversation import Conversation, JurorSession, Patience, RunContext, not_asked, sha256_of
from jury.loop import RunLimits, known_sessions, refuse_numbers, run_all, run_loop
from jury.panel import Juror, Panel, keys, refuse_ended
from jury.providers import open_provider
from jury.reference_question import AGAIN, SCHEMA, Said, SimulatedReader, prompt_for, read
from jury.run_lock import run_lock
from jury.tally import Progress, RunResult, Tally
from jury.worklist import known_benchmarks

Watch = Callable[[Progress], None]


def check_references(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    max_usd: float | None = None,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> RunResult:
    """Ask every juror about every reference it has not answered about; see `run.run_panel`.

    Only instances with a reference and a context are asked about. In the result `responses`
    counts those instances, and `rated` the answers that stand.

    Raises
    ------
    BadPanel
        Before anything is sent: a key is missing, a model has ended, a cap without a price.
    BadInput
        If a number is out of range; Unknown if the study has no such benchmark.
    Conflict
        The study knows a juror of the same name with other settings.
    """
    refuse_numbers(panel, max_usd, concurrency=concurrency)
    known_benchmarks(engine, benchmarks)
    refuse_ended(panel, now().date())
    secrets = keys(panel)
    instances = sum(1 for _ in reference_cards(engine, benchmarks))
    tally = Tally(instances * len(panel.juror), progress)
    with run_lock(engine, waiting):
        lines = {one.name: _line(one, secrets[one.name]) for one in panel.juror}
        sessions = known_sessions(engine, panel, lines)
        queues = [_left(engine, session, benchmarks, tally) for session in sessions]
        limits = RunLimits(concurrency, max_usd, patience)
        run_loop(run_all(sessions, queues, partial(_ask, engine), tally, limits))
    return tally.result(panel.name, instances, sessions)


def _line(juror: Juror, key: str) -> Provider:
    return SimulatedReader(juror) if juror.simulated else open_provider(juror, key)


def _left(
    engine: Engine, session: JurorSession, benchmarks: Sequence[str] | None, tally: Tally
) -> Iterator[ReferenceCard]:
    """Yield what a juror has still to answer about; what it has is counted."""
    done = answered_references(engine, session.rater)
    for card in reference_cards(engine, benchmarks):
        if card.instance in done:
            tally.ended(session.juror.name, Status.OK)
        else:
            yield card


async def _ask(
    engine: Engine, context: RunContext, session: JurorSession, card: ReferenceCard
) -> Status | None:
    return await _ReferenceConversation(engine, session, card).hold(context)


class _ReferenceConversation(Conversation[Said]):
    """A conversation about one reference."""

    def __init__(self, engine: Engine, session: JurorSession, card: ReferenceCard) -> None:
        super().__init__(session, prompt_for(card), SCHEMA)
        self.engine, self.card = engine, card

    def read(self, answer: Answer) -> Said:
        """Return what an answer says, or why it says nothing."""
        return (
            read(answer.text) if answer.status == Status.OK else Said(answer.status, answer.reason)
        )

    def again(self, reason: str) -> str:
        """Return the question once more, with what is wrong."""
        return AGAIN.replace("{reason}", reason)

    def sha256_of(self, call: Call) -> str:
        """Return the hash of all that makes a request that request."""
        return sha256_of(self.session.juror, call)

    async def store(self, columns: dict[str, Any], reading: Said) -> None:
        """Store one call."""
        await self._keep(absent=reading.absent, facts=reading.facts, **columns)

    async def not_asked(self, status: Status, reason: str) -> Status:
        """Store why the reference was not put to the juror."""
        digest = self.sha256_of(self.call())
        await self._keep(**not_asked(self.session.rater, status, reason, digest))
        return status

    async def _keep(self, **columns: Any) -> None:
        """Store a row beside the event loop."""
        record = ReferenceRecord(instance=self.card.instance, **columns)
        await asyncio.to_thread(record_references, self.engine, [record])
