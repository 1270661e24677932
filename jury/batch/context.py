"""What the steps of a run in batches share: worklist, jurors' sessions, budget and counts."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from sqlalchemy import Engine

from data.calls import TokenCosts
from data.schema import Status
from data.study.calls import BatchRequest, requests_in_flight, response_cards
from jury.ask import SamePrompts
from jury.batch.client import BatchClient, BatchError
from jury.budget import Budget
from jury.call import Call, Turn
from jury.panel import Juror
from jury.providers.registry import FORMS
from jury.run_result import INTERRUPTED, RunResult, RunTally
from jury.worklist import Job, Worklist, learned_by, pending_jobs

IN_FLIGHT = "in_flight"
FAILURES_IN_A_ROW = 10

Key = tuple[int, int, int, str]


@dataclass(frozen=True, slots=True)
class Polling:
    """How often a run asks for the state of its batches, in seconds.

    Attributes
    ----------
    first, longest
        Time until a batch is asked about again, growing by half each time up to the longest.
    grace
        How long a batch whose id never arrived is looked for before it counts as not taken.
    """

    first: float = 1.0
    longest: float = 60.0
    grace: float = 300.0

    def after(self, wait: float) -> float:
        """Return the wait that follows a wait."""
        return min(self.longest, max(self.first, wait * 1.5))


@dataclass(frozen=True, slots=True)
class BatchProgress:
    """How far a run has come: verdicts that are rated, are with providers, and failed in this run.

    `answered` of those in flight have ended at their provider, as far as it reports.
    """

    total: int
    rated: int
    in_flight: int
    answered: int
    failed: int
    usd: float


@dataclass
class BatchSession:
    """One juror within a run in batches.

    Attributes
    ----------
    stopped
        Status and reason once nothing more can be done for this juror in this run.
    full
        The same once nothing more may be submitted, while what is in flight is still awaited.
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
        prompt = Turn("user", job.prompt(explanation).text)
        schema = rubric.json_schema(explanation)
        return Call((prompt,), schema, form, job.replicate, self.juror.expected)

    def key(self, request: Job | BatchRequest) -> Key:
        """Return the key of the verdict that a job or a stored request asks for."""
        return (self.rater, request.response, request.replicate, request.rubric.sha256)

    def note_error(self, error: BatchError) -> None:
        """Note a request that failed; stop the juror after a lasting failure, or too many in a row."""
        answer = error.answer
        self.failures += 1
        if not answer.transient or self.failures >= FAILURES_IN_A_ROW:
            self.stopped = self.stopped or (answer.status, answer.reason)


@dataclass
class BatchContext:
    """One run in batches.

    Attributes
    ----------
    same, shared
        Finds verdicts on the same prompt, and how many this run took over.
    waits_for_same
        Whether a response waits for the verdict of a batch on the same prompt.
    most_read
        A prompt -> the most tokens of it that a provider reported.
    tally
        Notes which jurors answered as another model, and whose explanations say nothing.
    """

    engine: Engine
    worklist: Worklist
    sessions: list[BatchSession]
    budget: Budget
    pace: Polling
    tell: Callable[[str], None]
    watch: Callable[[BatchProgress], None]
    ended: dict[Key, str] = field(default_factory=dict)
    handed_in: set[Key] = field(default_factory=set)
    same: SamePrompts | None = None
    waits_for_same: bool = False
    shared: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)
    told_once: set[str] = field(default_factory=set)
    most_read: dict[str, int] = field(default_factory=dict)
    tally: RunTally = field(default_factory=lambda: RunTally(0, None))
    calls: int = 0
    usd: float = 0.0
    usd_unknown: int = 0
    usd_at_worst: float = 0.0

    def tell_once(self, text: str) -> None:
        """Tell the user something once that would otherwise be repeated in every round."""
        if text not in self.told_once:
            self.told_once.add(text)
            self.tell(text)

    def paid(self, usd: float | None, most: float | None) -> None:
        """Count the cost of one answer; an unknown one counts at its highest against a cap."""
        self.usd += usd or 0.0
        if usd is None:
            self.usd_unknown += 1
            self.usd_at_worst += inf if most is None else most

    def lost(self, requests: Iterable[BatchRequest]) -> None:
        """Count requests that the provider may have answered and billed, and whose answers are gone."""
        for request in requests:
            self.paid(None, request.usd_most)

    def held(self) -> float:
        """Return what this run has spent, plus the most that all in flight can cost, in US dollars.

        Infinite if something is in flight that had no price when it was submitted.
        """
        open_ = (
            most
            for c in self.sessions
            for most in requests_in_flight(self.engine, c.rater).values()
        )
        return self.usd + self.usd_at_worst + sum(inf if most is None else most for most in open_)

    def tick(self) -> None:
        """Report how far the run has come."""
        rated = sum(session.rated for session in self.sessions)
        open_ = sum(
            len(requests_in_flight(self.engine, session.rater)) for session in self.sessions
        )
        answered = sum(sum(session.answered.values()) for session in self.sessions)
        failed = sum(status != Status.OK for status in self.ended.values())
        total = self.worklist.responses * len(self.sessions) * self.worklist.replicates
        self.watch(BatchProgress(total, rated, open_, min(answered, open_), failed, self.usd))

    def result(self, panel: str) -> RunResult:
        """Return the result of the run."""
        by_juror = {session.juror.name: self._counted(session) for session in self.sessions}
        by_status = sum(by_juror.values(), Counter[str]())
        total = self.worklist.responses * len(self.sessions) * self.worklist.replicates
        rated = by_status[str(Status.OK)]
        ends = {session.juror.name: session.stopped or session.full for session in self.sessions}
        answers = self.tally.result(panel, 0, [])
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
            placeholders=answers.placeholders,
            other_models=answers.other_models,
        )

    def missing(self, session: BatchSession) -> Iterator[Job]:
        """Yield the jobs that a juror has still to do, and count anew those that are done."""
        session.rated = 0

        def rated(_: Status) -> None:
            session.rated += 1

        learned = learned_by(self.engine, session.juror, self.worklist)
        for group in pending_jobs(self.engine, self.worklist, session.rater, rated, learned):
            yield from group

    def calls_of(self, session: BatchSession, requests: Sequence[BatchRequest]) -> list[Call]:
        """Return what a juror was asked by some requests, in their order."""
        read = learned_by(self.engine, session.juror, self.worklist).rubric
        rubrics = {request.response: request.rubric for request in requests}
        cards = response_cards(self.engine, rubrics)
        return [
            session.call(
                Job(one.response, cards[one.response], one.rubric, one.replicate, read=read)
            )
            for one in requests
        ]

    def _counted(self, session: BatchSession) -> Counter[str]:
        """Return how many of a juror's verdicts on the worklist ended in which way."""
        counts: Counter[str] = Counter()
        open_ = requests_in_flight(self.engine, session.rater)
        stop = session.stopped or session.full
        otherwise = str(stop[0]) if stop else INTERRUPTED
        for job in self.missing(session):
            key = session.key(job)
            counts[IN_FLIGHT if key[1:] in open_ else self.ended.get(key, otherwise)] += 1
        counts[str(Status.OK)] = session.rated
        return counts
