"""What the steps of a run in batches share: the worklist, the jurors, the money and the count."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import inf

from sqlalchemy import Engine

from data.queries.jury import in_flight
from data.rubric import Rubric
from data.schema import Status
from data.token_costs import TokenCosts
from jury.ask import SamePrompts
from jury.batch.client import BatchClient, BatchError
from jury.call import Call, Turn
from jury.panel import Juror
from jury.providers.registry import FORMS
from jury.run_result import INTERRUPTED, RunCap, RunResult
from jury.worklist import Job, Worklist, pending_jobs

IN_FLIGHT = "in_flight"
FAILURES_IN_A_ROW = 10

Key = tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class Polling:
    """How a run waits, in seconds.

    Attributes
    ----------
    first, longest
        Wait before a batch is looked at again, growing by half each time up to the longest.
    grace
        How long a batch whose id was never heard is looked for before it counts as not taken.
    """

    first: float = 1.0
    longest: float = 60.0
    grace: float = 300.0

    def after(self, wait: float) -> float:
        """Return the wait that follows a wait."""
        return min(self.longest, max(self.first, wait * 1.5))


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a run is: verdicts that stand, are with providers, and failed in this run.

    `answered` of those in flight have ended at their provider, as far as it tells.
    """

    total: int
    rated: int
    in_flight: int
    answered: int
    failed: int
    usd: float


@dataclass
class BatchSession:
    """One juror with its batches at the provider.

    Attributes
    ----------
    stopped
        Status and reason once nothing more can be done about this juror in this run.
    full
        The same once nothing more may be handed in, while what is in flight is still awaited.
    """

    juror: Juror
    rater: int
    client: BatchClient
    stopped: tuple[Status, str] | None = None
    full: tuple[Status, str] | None = None
    rated: int = 0
    failures: int = 0
    answered: dict[int, int] = field(default_factory=dict)

    def call(self, job: Job) -> Call:
        """Return the request for a job, in the strictest form the juror may be asked in."""
        form = FORMS[0] if self.juror.form == "auto" else self.juror.form
        rubric, explanation = job.rubric, self.juror.explanation
        prompt = Turn("user", rubric.render(job.card, explanation))
        schema = rubric.json_schema(explanation)
        return Call((prompt,), schema, form, job.replicate, self.juror.expected)

    def key(self, response: int, replicate: int, rubric: Rubric) -> Key:
        """Return what names a verdict of this juror."""
        return (self.rater, response, replicate, rubric.sha256)

    def troubled(self, trouble: BatchError) -> None:
        """Note a request that failed; one that will not pass, or too many in a row, stop it."""
        answer = trouble.answer
        self.failures += 1
        if not answer.transient or self.failures >= FAILURES_IN_A_ROW:
            self.stopped = self.stopped or (answer.status, answer.reason)


@dataclass
class BatchContext:
    """One run in batches.

    Attributes
    ----------
    same, shared
        Verdicts that count for more than one response, and how many did in this run.
    waits_for_same
        Whether a response waits for what a batch brings on one with the same prompt.
    """

    engine: Engine
    worklist: Worklist
    sessions: list[BatchSession]
    max_usd: float | None
    pace: Polling
    tell: Callable[[str], None]
    watch: Callable[[BatchProgress], None]
    ended: dict[Key, str] = field(default_factory=dict)
    handed_in: set[Key] = field(default_factory=set)
    same: SamePrompts | None = None
    waits_for_same: bool = False
    shared: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)
    said: set[str] = field(default_factory=set)
    calls: int = 0
    usd: float = 0.0
    usd_unknown: int = 0
    usd_at_worst: float = 0.0
    cap: RunCap = field(default_factory=lambda: RunCap(None))

    def say_once(self, text: str) -> None:
        """Say a thing that would else be said at every look."""
        if text not in self.said:
            self.said.add(text)
            self.tell(text)

    def paid(self, usd: float | None, most: float | None) -> None:
        """Count what one answer cost; unknown is held at its worst against a cap."""
        self.usd += usd or 0.0
        self.usd_unknown += usd is None
        self.usd_at_worst += (most or 0.0) if usd is None else 0.0

    def held(self) -> float:
        """Return what this run has spent and what all that is in flight may yet cost.

        Infinite where something is in flight that had no price when it was handed in.
        """
        open_ = (most for c in self.sessions for most in in_flight(self.engine, c.rater).values())
        return self.usd + self.usd_at_worst + sum(inf if most is None else most for most in open_)

    def tick(self) -> None:
        """Tell how far the run is."""
        rated = sum(session.rated for session in self.sessions)
        open_ = sum(len(in_flight(self.engine, session.rater)) for session in self.sessions)
        answered = sum(sum(session.answered.values()) for session in self.sessions)
        failed = sum(status != Status.OK for status in self.ended.values())
        total = self.worklist.responses * len(self.sessions) * self.worklist.replicates
        self.watch(BatchProgress(total, rated, open_, min(answered, open_), failed, self.usd))

    def result(self, panel: str) -> RunResult:
        """Return what the run has come to."""
        by_juror = {session.juror.name: self._counted(session) for session in self.sessions}
        by_status = sum(by_juror.values(), Counter[str]())
        total = self.worklist.responses * len(self.sessions) * self.worklist.replicates
        rated = by_status[str(Status.OK)]
        ends = {session.juror.name: session.stopped or session.full for session in self.sessions}
        return RunResult(
            panel=panel,
            responses=self.worklist.responses,
            jurors=len(self.sessions),
            rated=rated,
            missing=total - rated,
            by_status={name: by_status[name] for name in sorted(by_status) if by_status[name]},
            by_juror={name: dict(counts) for name, counts in by_juror.items()},
            calls=self.calls,
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped={name: end[1] for name, end in ends.items() if end},
            tokens=self.tokens,
            shared_prompts=self.shared,
        )

    def missing(self, session: BatchSession) -> Iterator[Job]:
        """Yield what a juror has still to rate, and count anew what it has rated."""
        session.rated = 0

        def rated(_: Status) -> None:
            session.rated += 1

        for group in pending_jobs(self.engine, self.worklist, session.rater, rated):
            yield from group

    def _counted(self, session: BatchSession) -> Counter[str]:
        """Return how each verdict of a juror that the worklist asks for has ended."""
        counts: Counter[str] = Counter()
        open_ = in_flight(self.engine, session.rater)
        stop = session.stopped or session.full
        otherwise = str(stop[0]) if stop else INTERRUPTED
        for job in self.missing(session):
            key = session.key(job.response, job.replicate, job.rubric)
            counts[IN_FLIGHT if key[1:] in open_ else self.ended.get(key, otherwise)] += 1
        counts[str(Status.OK)] = session.rated
        return counts
