"""Run a panel that judges claims: plain verdicts, each response split once, and each claim judged.

A juror `a` of the panel gives its plain verdict first, and under its own name. Then it judges the
claims of the response as `a.claims`, a rater of its own. What it answers comes to the score on the criterion that the
panel derives; its other scores are those of its plain verdict. Both juries so stand beside each
other on the same responses. Every call is stored with its cost before the next, so that a run that was
killed goes on where it was. Of a list that people corrected since, the jurors are asked again.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any

from sqlalchemy import Engine

from data.claims import (
    ABSENT,
    CONTRADICTED,
    NAME,
    SUPPORTED,
    claims_rubric,
    refuse_criterion,
    unfounded,
)
from data.errors import BadInput
from data.queries.claims import (
    StoredClaims,
    newest_claims,
    rated_by,
    rater_key,
    split_failures,
    whole_verdicts,
)
from data.queries.jury import juror_cards
from data.queries.study import BenchmarkView
from data.rubric import Rubric
from data.schema import Attempt, Status, now
from data.store.calls import Step, known_jurors
from jury.admission import admit, api_keys
from jury.answer_text import after_reasoning, objects
from jury.ask import Verdict
from jury.budget import Budget
from jury.call import Answer, Call, Provider, Usage
from jury.conversation import Writer, not_asked_columns
from jury.cost import JurorEstimate
from jury.panel import Juror, Panel, refuse_ended
from jury.parse import ParsedAnswer
from jury.providers.registry import open_provider
from jury.run import RunLimits, Watch, known_sessions, refuse_numbers, run_all, run_lock, run_loop
from jury.run_result import INTERRUPTED, RunResult, RunTally, with_study_spending
from jury.session import JurorSession, Patience, RunContext
from jury.splitting import (
    SimulatedSplitter,
    SplitConversation,
    SplitJob,
    likely_claims,
    split_question,
    with_room,
)
from jury.window import prompt_size, window_use
from jury.worklist import Job, benchmarks_to_rate, juror_record

NOTHING_TO_CHECK = "the response states nothing that can be checked"
CLAIM_NAME = re.compile(rf"{NAME}\d+")
NOT_SPLIT = "the response has no claims yet"


@dataclass(frozen=True, slots=True)
class ClaimsRun:
    """What became of the claims: `split` counts responses, `judged` verdicts on their claims."""

    split: RunResult
    judged: RunResult


def refuse_claims(panel: Panel, benchmarks: Sequence[BenchmarkView], **asked: object) -> None:
    """Raise where a criterion cannot be derived from claims, or not in the way that is asked for."""
    if panel.claims is None:
        return
    for option, value in asked.items():
        if value:
            raise BadInput(
                f"panel {panel.name}, {option}: claims are judged once, live and here; leave it out, or "
                "run a panel without [claims]"
            )
    for benchmark in benchmarks:
        refuse_criterion(benchmark.rubric, panel.claims.criterion)


def run_claims(
    engine: Engine,
    panel: Panel,
    *,
    concurrency: int = 8,
    budget: Budget | None = None,
    benchmarks: Sequence[str] | None = None,
    progress: Watch | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
    waiting: Callable[[], None] = lambda: None,
) -> ClaimsRun:
    """Split what jurors of a panel have rated, and have them judge the claims; see `run_panel`.

    Raises
    ------
    BadPanel, BadInput, Conflict
        As `run_panel`, and if the panel has no `[claims]` or a rubric not the criterion.
    """
    panel, budget = admit(panel), budget or Budget()
    splitter = panel.splitting
    if splitter is None:
        raise BadInput(f"panel {panel.name}: has no table [claims]")
    tasks = benchmarks_to_rate(engine, panel, benchmarks)
    refuse_claims(panel, tasks)
    split_by = Panel(name=panel.name, juror=(with_room(splitter),))
    split_by = admit(split_by)
    judges = Panel.model_construct(
        **{**dict(panel), "juror": tuple(map(with_room, panel.judging)), "claims": None}
    )
    for part in (split_by, judges):
        refuse_numbers(part, budget, concurrency=concurrency)
        refuse_ended(part, now().date())
    secrets = api_keys(split_by) | api_keys(judges)
    limits = RunLimits(concurrency, budget, patience)
    run = _Run(engine, panel, tasks, secrets, limits, progress)
    with run_lock(engine, waiting):
        split = run.split(split_by)
        if split.interrupted:
            return ClaimsRun(split, RunTally(0, None).result(panel.name, 0, []))
        return ClaimsRun(split, run.judged(judges))


@dataclass(frozen=True, slots=True)
class _Run:
    """One run on its way."""

    engine: Engine
    panel: Panel
    tasks: Sequence[BenchmarkView]
    secrets: Mapping[str, str]
    limits: RunLimits
    progress: Watch | None

    def split(self, panel: Panel) -> RunResult:
        """Ask the splitter about every response that a juror has rated and that has no claims."""
        [splitter] = panel.juror
        line: Provider = (
            SimulatedSplitter(splitter)
            if splitter.simulated
            else open_provider(splitter, self.secrets[splitter.name])
        )
        sessions = known_sessions(self.engine, panel, {splitter.name: line})
        jobs = list(unsplit(self.engine, self.panel, self.tasks, sessions[0].rater))
        tally = RunTally(len(jobs), None)
        queue: Iterator[Sequence[SplitJob]] = iter([(job,) for job in jobs])
        self.limits.budget.begin(self.engine, panel)
        asking = partial(_split, Writer(self.engine))
        run_loop(run_all(sessions, [queue], asking, tally, self.limits))
        result = tally.result(self.panel.name, len(jobs), sessions)
        return with_study_spending(result, self.engine, self.limits.budget)

    def judged(self, panel: Panel) -> RunResult:
        """Ask each juror about the claims of each response that it has rated."""
        lines: dict[str, Provider] = {
            juror.name: SimulatedJudge(juror)
            if juror.simulated
            else open_provider(juror, self.secrets[juror.name])
            for juror in panel.juror
        }
        sessions = known_sessions(self.engine, panel, lines)
        jobs = {
            one.rater: list(to_judge(self.engine, one.juror, one.rater, self.tasks))
            for one in sessions
        }
        responses = {job.response for own in jobs.values() for job in own}
        tally = RunTally(sum(map(len, jobs.values())), self.progress)
        queues = [
            self._queue(jobs[one.rater], tally.counter_of(one.juror.name)) for one in sessions
        ]
        self.limits.budget.begin(self.engine, panel)
        asking = partial(_judge, Writer(self.engine))
        run_loop(run_all(sessions, queues, asking, tally, self.limits))
        result = tally.result(self.panel.name, len(responses), sessions)
        return with_study_spending(result, self.engine, self.limits.budget)

    def _queue(
        self, jobs: Sequence["JudgeJob"], done: Callable[[Status], None]
    ) -> Iterator[Sequence["JudgeJob"]]:
        for job in jobs:
            if job.is_done:
                done(Status.OK)
            else:
                yield (job,)


@dataclass(frozen=True, slots=True)
class JudgeJob:
    """The claims of one response, to be judged by one juror.

    Attributes
    ----------
    job
        The response on the rubric of its claims; on the benchmark's where it has none.
    carried
        The juror's plain scores on the criteria that are not derived.
    missing
        Why nothing can be asked: a status and a reason; None where there are claims.
    is_done
        Whether the juror has judged this version of them.
    """

    job: Job
    carried: Mapping[str, float]
    missing: tuple[Status, str] | None = None
    is_done: bool = False

    @property
    def response(self) -> int:
        """The response's primary key."""
        return self.job.response


def unsplit(
    engine: Engine, panel: Panel, tasks: Sequence[BenchmarkView], splitter: int
) -> Iterator[SplitJob]:
    """Yield the responses with text that a juror of the panel has rated and nobody has split."""
    raters = known_jurors(engine, [juror_record(juror) for juror in panel.juror])
    for task in tasks:
        split = newest_claims(engine, splitter, task.name)
        rated = set[int]()
        for rater in raters.values():
            rated |= set(whole_verdicts(engine, rater, task.rubric))
        for shown in juror_cards(engine, task.name, task.rubric):
            is_wanted = shown.response in rated and shown.response not in split
            if is_wanted and shown.card.response.strip():
                yield SplitJob(shown.response, shown.card)


def to_judge(
    engine: Engine, judge: Juror, rater: int, tasks: Sequence[BenchmarkView]
) -> Iterator[JudgeJob]:
    """Yield what a juror who judges claims is to give on each response that it rated plainly."""
    derived = judge.claims
    if derived is None:
        return
    plain, splitter = (rater_key(engine, name) for name in (derived.of, derived.splitter))
    given, failures = rated_by(engine, rater), split_failures(engine, splitter)
    for task in tasks:
        lists = newest_claims(engine, splitter, task.name)
        verdicts = whole_verdicts(engine, plain, task.rubric)
        derived_of = whole_verdicts(engine, rater, task.rubric)
        for shown in juror_cards(engine, task.name, task.rubric):
            if (own := verdicts.get(shown.response)) is None:
                continue
            carried = {
                name: own[name] for name in task.rubric.criteria if name != derived.criterion
            }
            job = Job(shown.response, shown.card, task.rubric)
            stored = lists.get(shown.response)
            if stored is None or not stored.claims:
                why = _why_missing(stored, failures.get(shown.response))
                yield JudgeJob(job, carried, why)
                continue
            rubric = claims_rubric(task.rubric, derived.criterion, derived.formula, stored.claims)
            is_done = (shown.response, rubric.sha256) in given and shown.response in derived_of
            yield JudgeJob(replace(job, rubric=rubric), carried, is_done=is_done)


def _why_missing(stored: StoredClaims | None, failed: tuple[str, str] | None) -> tuple[Status, str]:
    if stored is not None:
        return Status.NO_CLAIMS, NOTHING_TO_CHECK
    if failed is None:
        return Status.NO_CLAIMS, NOT_SPLIT
    return Status(failed[0]), f"{NOT_SPLIT}: {failed[1]}"


async def _split(
    writer: Writer, context: RunContext, session: JurorSession, job: SplitJob
) -> Status | None:
    asked = SplitConversation(writer, session, job)
    size = prompt_size(session.juror, asked.messages[0].text)
    if size.is_too_long:
        return await asked.not_asked(Status.TOO_LONG, size.reason)
    return await asked.run(context)


async def _judge(
    writer: Writer, context: RunContext, session: JurorSession, job: JudgeJob
) -> Status | None:
    if job.missing is not None:
        status, reason = job.missing
        digest = sha256(job.job.card.response.encode("utf-8", "replace")).hexdigest()
        columns = not_asked_columns(session.rater, status, reason, digest)
        call = Attempt(response=job.response, **columns)
        await writer.write(Step(attempt=(call, job.job.rubric, None)))
        return status
    asked = _ClaimsVerdict(writer, session, job)
    size = prompt_size(session.juror, asked.messages[0].text)
    if size.is_too_long:
        return await asked.not_asked(Status.TOO_LONG, size.reason)
    return await asked.run(context)


class _ClaimsVerdict(Verdict):
    """One juror asked about the claims of one response."""

    def __init__(self, writer: Writer, session: JurorSession, asked: JudgeJob) -> None:
        super().__init__(writer, session, asked.job)
        self.carried = asked.carried

    def read(self, answer: Answer) -> ParsedAnswer:
        """Return the answers to the claims, or why there are none."""
        parsed = super().read(answer)
        if parsed.reply is None:
            return parsed
        reply, rubric = parsed.reply, self.job.rubric
        if name := not_asked_about(answer.text, rubric):
            why = f"{name}: answered, and not asked about: these are the claims of another response"
            return ParsedAnswer(Status.INVALID_JSON, why)
        name = unfounded(rubric, reply.scores, reply.comments, self.job.card)
        if name:
            why = f"{name}: its evidence does not stand in the material"
            return ParsedAnswer(Status.NOT_IN_TEXT, why)
        return replace(parsed, reply=replace(reply, carried=dict(self.carried)))


def not_asked_about(text: str, rubric: Rubric) -> str:
    """Return the first claim that an answer names and its rubric does not have, "" without one."""
    named = (
        name
        for found in objects(after_reasoning(text))
        for name in (found if isinstance(found, dict) else ())
    )
    asked = set(rubric.criteria)
    return next((name for name in named if CLAIM_NAME.fullmatch(name) and name not in asked), "")


def claims_estimate(
    engine: Engine, panel: Panel, benchmarks: Sequence[str] | None = None
) -> list[JurorEstimate]:
    """Return what splitting and judging would take: a row for the splitter, then one for each juror.

    Nothing is sent or stored. Where a response has no claims yet, its sentences stand for them.
    """
    splitter = panel.splitting
    if splitter is None:
        return []
    tasks = benchmarks_to_rate(engine, panel, benchmarks)
    refuse_claims(panel, tasks)
    splitter = with_room(splitter)
    split = JurorEstimate(f"{splitter.name} (splits)", window=window_use(splitter))
    judges = [with_room(juror) for juror in panel.judging]
    rows = {juror.name: JurorEstimate(juror.name, window=window_use(juror)) for juror in judges}
    done = {juror.name: rated_by(engine, rater_key(engine, juror.name)) for juror in judges}
    for task in tasks:
        lists = newest_claims(engine, rater_key(engine, splitter.name), task.name)
        for shown in juror_cards(engine, task.name, task.rubric):
            if not shown.card.response.strip():
                continue
            stored = lists.get(shown.response)
            claims = stored.claims if stored else likely_claims(shown.card.response)
            if stored is None:
                split = split.plus(splitter, split_question(shown.card), len(claims) or 1, now())
            for juror in judges if claims else ():
                derived = juror.claims
                assert derived is not None  # noqa: S101 - `judging` gives each one
                rubric = claims_rubric(task.rubric, derived.criterion, derived.formula, claims)
                if (shown.response, rubric.sha256) not in done[juror.name]:
                    prompt = rubric.render(shown.card)
                    rows[juror.name] = rows[juror.name].plus(juror, prompt, len(claims), now())
    return [split, *rows.values()]


def with_claims(plain: RunResult, claims: ClaimsRun) -> RunResult:
    """Return the result of the whole run: both kinds of verdicts, and the money of all calls."""
    split, judged = claims.split, claims.judged
    by_status: dict[str, int] = dict(plain.by_status)
    for status, number in judged.by_status.items():
        by_status[status] = by_status.get(status, 0) + number
    unasked = split.by_status.get(INTERRUPTED, 0)
    if unasked:
        by_status[INTERRUPTED] = by_status.get(INTERRUPTED, 0) + unasked
    runs = (plain, split, judged)
    tokens = plain.tokens.plus(split.tokens).plus(judged.tokens)
    return replace(
        judged,
        responses=plain.responses,
        jurors=plain.jurors + judged.jurors,
        rated=plain.rated + judged.rated,
        missing=plain.missing + judged.missing + unasked,
        by_status=by_status,
        by_juror={**plain.by_juror, **judged.by_juror},
        calls=sum(run.calls for run in runs),
        usd=round(sum(run.usd for run in runs), 9),
        usd_unknown=sum(run.usd_unknown for run in runs),
        stopped={**plain.stopped, **split.stopped, **judged.stopped},
        calls_carried=max(run.calls_carried for run in runs),  # over all phases up to each
        usd_carried=max(run.usd_carried for run in runs),
        tokens=tokens,
        shared_prompts=plain.shared_prompts,
    )


class SimulatedJudge:
    """A simulated juror of claims: its answers are drawn from hashes, and quote the source's beginning."""

    def __init__(self, juror: Juror) -> None:
        self._juror = juror

    async def complete(self, call: Call) -> Answer:
        """Return answers in the form that a real juror gives them."""
        text = call.messages[0].text
        source = text.partition("<context>\n")[2].partition("\n</context>")[0]
        task = text.partition("<task>\n")[2].partition("\n</task>")[0]
        quote = " ".join((source or task).split()[:6])
        answers: dict[str, dict[str, Any]] = {}
        for name in call.schema["properties"]:
            drawn = sha256(f"{self._juror.name} {name} {text}".encode()).hexdigest()
            share = int(drawn[:8], 16) / 16**8
            answer = SUPPORTED if share < 0.8 else CONTRADICTED if share < 0.9 else ABSENT
            if not any(sign.isalnum() for sign in quote):
                answer = ABSENT
            answers[name] = {"evidence": "" if answer == ABSENT else quote, "score": answer}
        return Answer(
            Status.OK,
            text=json.dumps(answers),
            sent={"simulated": self._juror.model},
            usage=Usage(tokens_in=0, tokens_out=0),
            http=200,
            returned_model=self._juror.model,
        )

    async def close(self) -> None:
        """Do nothing: there is no connection."""
