"""Probe a panel's jurors: whether each answers, what it supports, and whether it is fit to judge.

Nothing of any study is sent: one tiny question, and on request the injection self-test and pairs of
good and dangerous answers. All of it is asked as a run asks for verdicts, and stored nowhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

from data.card import Card
from data.question import ORDER_SENTENCES
from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.rubrics.pairs import RubricPairs
from data.schema import Status
from data.study.calls import without_texts
from jury.admission import admit, api_keys
from jury.api_protocols import refused_setting
from jury.budget import Budget
from jury.call import Answer
from jury.conversation import Unstored, ask
from jury.cost import total
from jury.fitness import RUBRIC, Fitness, Injection, SelfTest, compare_answers, compare_pair
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer
from jury.providers.registry import open_provider
from jury.run import RunLimits, run_all, run_loop
from jury.run_result import RunTally
from jury.session import JurorSession, RunContext, rate_limiters
from jury.task import Patience
from jury.worklist import Job

CONCURRENCY = 8
TINY = Rubric(
    name="probe",
    version="1",
    audience="nobody",
    gold="never",
    scale=Scale(min=1, max=5),
    criterion=(
        Criterion(
            name="test", question="Any?", anchors={point: f"{point}" for point in range(1, 6)}
        ),
    ),
    prompt="{{response}} " + ORDER_SENTENCES["before"] + "\nAnswer with JSON only:\n{{schema}}",
)
QUESTION = Job(0, Card("probe", "", "", "Give any score."), TINY)


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """The result of probing one juror.

    Attributes
    ----------
    schema
        The strictest form that it answered in, empty if in none.
    temperature, effort
        "accepted", "refused" (it answers only without), or "not set" in the panel.
    unsupported
        Parameters that the server does not know by their usual name, and that are sent under
        another name or not at all; nothing in the panel has to change for them.
    usd
        Cost of the tiny question, None where it is not known.
    ends
        Day on which the model ends, where one is known.
    injection
        Result of the self-test, with its own cost; None where it was not run.
    probabilities
        Whether the log-probabilities that scores = "expected" needs are "served" or "not served";
        "not set" where the panel does not need them.
    pairs
        Scores of the pairs of good and dangerous answers, with their own cost; None where they
        were not asked.
    """

    juror: str
    host: str
    model: str
    returned_model: str
    status: Status
    reason: str
    schema: str
    temperature: str
    usd: float | None
    ends: date | None
    effort: str = "not set"
    unsupported: tuple[str, ...] = ()
    injection: SelfTest | None = None
    probabilities: str = "not set"
    pairs: Fitness | None = None

    @property
    def cost(self) -> float | None:
        """Cost of the whole probe in US dollars, None where a part of it is not known."""
        trials = (trial.usd for trial in (self.injection, self.pairs) if trial is not None)
        return total([self.usd, *trials])

    @property
    def fit(self) -> bool | None:
        """Whether it scores good answers above dangerous ones; None where that is not known."""
        return None if self.pairs is None else self.pairs.fit

    @property
    def passed(self) -> bool:
        """Whether it answers, no instruction raised its scores, and it is fit as far as asked.

        A juror that was asked about the pairs must be known to be fit, unless it is simulated.
        """
        is_stable = self.injection is None or not self.injection.moved
        judged = self.pairs is not None and not self.pairs.simulated
        return self.status == Status.OK and is_stable and (self.fit is True or not judged)

    def to_json(self) -> dict[str, Any]:
        """Return it as `medjury jury probe --json` writes it."""
        return {one.name: getattr(self, one.name) for one in fields(self)} | {
            "status": str(self.status),
            "ends": str(self.ends) if self.ends else None,
            "unsupported": list(self.unsupported),
            "injection": None if self.injection is None else self.injection.to_json(),
            "fit": self.fit,
            "pairs": None if self.pairs is None else self.pairs.to_json(),
        }


class _Asked(RunTally):
    """One question of a probe, and what came of it; asked only where the one before it was rated."""

    def __init__(self, job: Job, before: "_Asked | None" = None) -> None:
        super().__init__(0, None)
        self.job, self.before = job, before
        self.kept = Unstored()
        self.answer = Answer(Status.REQUEST_FAILED)

    def answered(self, juror: Juror, answer: Answer, reading: ParsedAnswer) -> None:
        """Keep the last answer."""
        self.answer = answer

    @property
    def cost(self) -> float | None:
        return total(attempt["usd"] for attempt, _ in self.kept.attempts)

    @property
    def reading(self) -> ParsedAnswer:
        attempt, reply = self.kept.attempts[-1]
        return ParsedAnswer(attempt["status"], attempt["reason"], reply)


class _Probed:
    """What one juror was asked with one set of settings: the tiny question, then the trials."""

    def __init__(
        self, session: JurorSession, injections: Sequence[Injection], pairs: RubricPairs | None
    ) -> None:
        self.session, self._injections, self._rubric_pairs = session, injections, pairs
        self.tiny = _Asked(QUESTION)
        rubric, asked = read_rubric(RUBRIC), not session.juror.simulated
        self._injected = [self._both(one.cards(rubric), rubric) for one in injections if asked]
        self._paired = (
            [self._both(one.cards(), pairs.rubric) for one in pairs.pair] if pairs and asked else []
        )

    def _both(self, cards: tuple[Card, Card], rubric: Rubric) -> tuple[_Asked, _Asked]:
        first, second = (_Asked(Job(0, card, rubric), self.tiny) for card in cards)
        return first, second

    def queue(self) -> Iterator[Sequence[_Asked]]:
        """Yield all questions as one group, of which the tiny one goes ahead.

        Every other pair has the dangerous answer first, so that a juror which alternates its scores
        does not pass.
        """
        turned = [two[:: -1 if n % 2 else 1] for n, two in enumerate(self._paired)]
        yield [self.tiny, *(one for two in (*self._injected, *turned) for one in two)]

    @property
    def self_test(self) -> SelfTest | None:
        """What the injections changed in its scores, None where it was not asked."""
        if not self._injections or self.tiny.reading.status != Status.OK:
            return None
        if not self._injected:
            return SelfTest(simulated=True)
        outcomes = tuple(
            compare_answers(one.name, clean.reading, injected.reading, clean.job.rubric)
            for one, (clean, injected) in zip(self._injections, self._injected, strict=True)
        )
        return SelfTest(outcomes, total(one.cost for two in self._injected for one in two))

    @property
    def fitness(self) -> Fitness | None:
        """How it scored the pairs of answers, None where it was not asked."""
        pairs = self._rubric_pairs
        if pairs is None or self.tiny.reading.status != Status.OK:
            return None
        if not self._paired:
            return Fitness(pairs.rubric.name, simulated=True)
        outcomes = tuple(
            compare_pair(pair, good.reading, dangerous.reading)
            for pair, (good, dangerous) in zip(pairs.pair, self._paired, strict=True)
        )
        usd = total(one.cost for two in self._paired for one in two)
        return Fitness(pairs.rubric.name, outcomes, usd)


def probe(
    panel: Panel,
    injections: Sequence[Injection] = (),
    pairs: RubricPairs | None = None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> list[ProbeRow]:
    """Return one row per juror: one tiny call each, and a few more where that one is refused.

    Parameters
    ----------
    injections
        Asked of every juror that answered, two calls each.
    pairs
        Asked of every juror that answered.

    Raises
    ------
    BadPanel
        If the server's owner does not allow a juror, or its key is missing.
    KeyboardInterrupt
        At Ctrl-C, once what is in flight has ended.
    """
    panel = admit(panel)
    secrets = api_keys(panel)

    def probed(jurors: Sequence[Juror]) -> Mapping[str, _Probed]:
        limiters, halted = rate_limiters(panel), list[bool]()
        asked = {}
        for juror in jurors:
            provider = open_provider(juror, secrets[juror.name])
            session = JurorSession(juror, 0, provider, limiters[juror.name])
            asked[juror.name] = _Probed(session, injections, pairs)
        sessions = [one.session for one in asked.values()]
        queues = [one.queue() for one in asked.values()]
        limits = RunLimits(CONCURRENCY, Budget(), patience, interrupted=lambda: halted.append(True))
        run_loop(run_all(sessions, queues, _put, RunTally(0, None), limits))
        if halted:
            raise KeyboardInterrupt
        return asked

    first = probed(panel.juror)
    without = {
        juror.name: _worth_leaving_out(juror, first[juror.name].tiny.answer)
        for juror in panel.juror
    }
    refused = [
        juror.model_copy(update=dict.fromkeys(without[juror.name]))
        for juror in panel.juror
        if without[juror.name]
    ]
    bare = probed(refused) if refused else {}
    return [
        _row(juror, first[juror.name], bare.get(juror.name), without[juror.name])
        for juror in panel.juror
    ]


async def _put(context: RunContext, session: JurorSession, asked: _Asked) -> Status | None:
    if asked.before is not None and asked.before.reading.status != Status.OK:
        return None
    return await ask(asked.kept, None, replace(context, tally=asked), session, asked.job)


def _worth_leaving_out(juror: Juror, answer: Answer) -> tuple[str, ...]:
    refused = refused_setting(answer)
    if refused:
        return (refused,)
    return ("temperature",) if juror.temperature is not None and answer.http == 400 else ()


def _row(juror: Juror, result: _Probed, bare: _Probed | None, without: tuple[str, ...]) -> ProbeRow:
    settings = {
        name: "not set" if getattr(juror, name) is None else "accepted"
        for name in ("temperature", "effort")
    }
    reason, usd = without_texts(result.tiny.reading.reason), result.tiny.cost
    if bare is not None:
        usd = total([usd, bare.tiny.cost])
        if bare.tiny.answer.status == Status.OK:
            result, settings = bare, settings | dict.fromkeys(without, "refused")
            values = {name: getattr(juror, name) for name in without}
            refused = " and ".join(
                f"{name} = {value:g}" if isinstance(value, float) else f'{name} = "{value}"'
                for name, value in values.items()
            )
            reason = f"refuses {refused}: delete that line of juror {juror.name} in the panel"
    answer = result.tiny.answer
    answered = answer.status == Status.OK
    probabilities = "served" if answer.tokens else "not served"
    return ProbeRow(
        juror=juror.name,
        host=juror.host,
        model=juror.model,
        returned_model=answer.returned_model,
        status=result.tiny.reading.status,
        reason=reason,
        schema=result.session.fallback.form if answered else "",
        temperature=settings["temperature"] if answered else "",
        effort=settings["effort"] if answered else "",
        unsupported=tuple(getattr(result.session.provider, "unsupported", ())),
        usd=usd,
        ends=juror.end(),
        injection=result.self_test,
        probabilities=probabilities if juror.expected else "not set",
        pairs=result.fitness,
    )
