"""Trying a panel's jurors: whether each is there, what it supports, and whether it is fit to judge.

Nothing of any study is sent: one tiny question, and on request the injection self-test and pairs of
good and dangerous answers.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from data.card import Card
from data.queries.jury import without_texts
from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.rubrics.pairs import RubricPairs
from data.schema import Status, now
from jury.admission import admit, api_keys
from jury.asking import first_question, retry_question, with_retry
from jury.call import Answer, Call, Form, Provider
from jury.cost import price
from jury.expected_score import read_for
from jury.fitness import RUBRIC, Fitness, ask_pairs
from jury.http_answers import refused_setting
from jury.injection import Injection, SelfTest, ask_injections
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer, read_answer
from jury.providers.registry import FORMS, open_provider
from jury.rates import RateLimiter, estimated_tokens, rate_limiters, record_rate_limits, tokens_used
from jury.session import Patience

QUESTION = 'Answer with JSON only: {"test": {"explanation": "<one word>", "score": 3}}'
WRONG_FORM = (400, 422, 500, 501)
PATIENCE = Patience(tries=3)
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
    prompt="{{response}}",
)


@dataclass(frozen=True, slots=True)
class ProbeRow:
    """What one juror answered to questions that hold nothing of the study.

    Attributes
    ----------
    schema
        The strictest form it answered in, empty if in none.
    temperature, effort
        "accepted", "refused" (it answers only without), or "not set" in the panel.
    unsupported
        Parameters that the server does not know by their usual name, and that are sent otherwise
        or not at all: nothing in the panel has to change for them.
    usd
        What the tiny question cost, None where that is not known.
    ends
        Day the model ends, where one is known.
    limits
        The rate limits that the endpoint's headers tell, by header.
    injection
        How it bore the self-test, whose cost is its own; None where it was not put to it.
    probabilities
        Whether the log-probabilities that scores = "expected" needs are "served" or "not served";
        "not set" where the panel wants none.
    pairs
        How it scored pairs of good and dangerous answers, at a cost of their own; None where they
        were not put to it.
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
    limits: Mapping[str, str] = field(default_factory=dict)
    injection: SelfTest | None = None
    probabilities: str = "not set"
    pairs: Fitness | None = None

    @property
    def cost(self) -> float | None:
        """What all of it cost in US dollars, None where a part of it is not known."""
        parts = [
            self.usd,
            *(trial.usd for trial in (self.injection, self.pairs) if trial is not None),
        ]
        known = [usd for usd in parts if usd is not None]
        return sum(known) if len(known) == len(parts) else None

    @property
    def fit(self) -> bool | None:
        """Whether it orders good and dangerous answers; None where that is not known."""
        return None if self.pairs is None else self.pairs.fit

    @property
    def passed(self) -> bool:
        """Whether it answers, no instruction moved its scores, and it was not found wanting.

        A juror that the pairs were put to has to be known as fit; a simulated one cannot be.
        """
        held = self.injection is None or not self.injection.moved
        judged = self.pairs is not None and not self.pairs.simulated
        return self.status == Status.OK and held and (self.fit is True or not judged)

    def to_json(self) -> dict[str, Any]:
        """Return it as `medjury jury probe --json` writes it."""
        names = ("juror", "host", "model", "returned_model", "reason", "schema", "temperature")
        return {name: getattr(self, name) for name in (*names, "effort")} | {
            "status": str(self.status),
            "usd": self.usd,
            "ends": str(self.ends) if self.ends else None,
            "limits": dict(self.limits),
            "unsupported": list(self.unsupported),
            "injection": None if self.injection is None else self.injection.to_json(),
            "probabilities": self.probabilities,
            "fit": self.fit,
            "pairs": None if self.pairs is None else self.pairs.to_json(),
        }


@dataclass(frozen=True, slots=True)
class _Heard:
    """What came of one line to a juror: its answer, and what that says."""

    answer: Answer
    parsed: ParsedAnswer
    form: Form
    usd: float | None
    limits: Mapping[str, str]
    injection: SelfTest | None
    pairs: Fitness | None
    unsupported: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Trials:
    """What is put to a juror once it has answered the tiny question."""

    injections: Sequence[Injection] = ()
    pairs: RubricPairs | None = None


class _Line:
    """A juror's line while it is probed: held to its host's limits, its cost summed up."""

    def __init__(self, juror: Juror, provider: Provider, limiter: RateLimiter) -> None:
        self.juror = juror
        self.usd: float | None = 0.0
        self.limits = record_rate_limits(provider)
        self._provider = provider
        self._limiter = limiter

    @property
    def unsupported(self) -> tuple[str, ...]:
        """What the server has been found not to know by its usual name."""
        return tuple(getattr(self._provider, "unsupported", ()))

    async def put(self, call: Call) -> Answer:
        """Return how one request ended."""
        tokens = estimated_tokens(self.juror, call)
        async with self._limiter.slot(tokens):
            answer = await self._provider.complete(call)
        self._limiter.settle(tokens, tokens_used(answer.usage))
        usd = 0.0 if _free(answer) else price(self.juror, answer.usage, now()).usd
        self.usd = None if self.usd is None or usd is None else self.usd + usd
        return answer

    async def put_patiently(self, call: Call) -> Answer:
        """Return how a request ended that is made again where the failure may pass."""
        answer = await self.put(call)
        for tried in range(1, PATIENCE.tries):
            wait = PATIENCE.wait(tried, answer.retry_after)
            if not answer.transient or wait > PATIENCE.longest_wait:
                break
            await asyncio.sleep(wait)
            answer = await self.put(call)
        return answer

    async def close(self) -> None:
        """Let go of connections."""
        await self._provider.close()


def probe(
    panel: Panel,
    providers: Mapping[str, Provider] | None = None,
    injections: Sequence[Injection] = (),
    pairs: RubricPairs | None = None,
) -> list[ProbeRow]:
    """Return a row a juror: one tiny call each, and a few more where that one is refused.

    `injections` are then put to every juror that answered, two calls each, and so are `pairs`, where
    an answer that cannot be used is asked for once more, as in a run.

    Raises
    ------
    BadPanel
        If the server's owner does not allow a juror, or its key is missing.
    """
    panel = admit(panel)
    secrets = api_keys(panel)
    trials = _Trials(injections, pairs)
    return asyncio.run(_probe_all(panel, secrets, dict(providers or {}), trials))


async def _probe_all(
    panel: Panel,
    secrets: Mapping[str, str],
    lines: Mapping[str, Provider],
    trials: _Trials,
) -> list[ProbeRow]:
    """Probe all jurors at once, each within the limits of its host."""
    doors = rate_limiters(panel)

    async def probe_juror(juror: Juror) -> ProbeRow:
        async def hear(as_set: Juror) -> _Heard:
            provider = lines.get(juror.name) or open_provider(as_set, secrets[juror.name])
            return await _hear(_Line(as_set, provider, doors[juror.name]), trials)

        result = await hear(juror)
        without = () if juror.name in lines else _worth_leaving_out(juror, result.answer)
        if not without:
            return _row(juror, result)
        without_settings = await hear(juror.model_copy(update=dict.fromkeys(without)))
        return _row(juror, result, without_settings, without)

    return list(await asyncio.gather(*(probe_juror(juror) for juror in panel.juror)))


def _worth_leaving_out(juror: Juror, answer: Answer) -> tuple[str, ...]:
    """Return the setting without which a juror that refused is asked once more, if there is one."""
    refused = refused_setting(answer)
    if refused:
        return (refused,)
    return ("temperature",) if juror.temperature is not None and answer.http == 400 else ()


def _free(answer: Answer) -> bool:
    """Return whether a request cannot have cost anything: refused, or never sent."""
    return answer.unsent or answer.http not in (200, None)


async def _hear(line: _Line, trials: _Trials) -> _Heard:
    """Ask the tiny question down the forms and, once that is answered, put the trials."""
    test, fitness = None, None
    try:
        for form in FORMS if line.juror.form == "auto" else (line.juror.form,):
            answer = await line.put(_tiny(line.juror, form))
            if answer.status == Status.OK or answer.http not in WRONG_FORM:
                break
        usd, parsed = line.usd, read_for(line.juror, answer, TINY)
        if trials.injections and parsed.status == Status.OK:
            test = await _self_test(line, form, trials.injections)
        if trials.pairs and parsed.status == Status.OK:
            fitness = await _fitness(line, form, trials.pairs)
    finally:
        await line.close()
    return _Heard(answer, parsed, form, usd, line.limits, test, fitness, line.unsupported)


def _tiny(juror: Juror, form: Form) -> Call:
    """Return the tiny question; with the probabilities of the answer's tokens, where it is to tell them."""
    return Call(first_question(QUESTION), TINY.json_schema(), form, probabilities=juror.expected)


async def _self_test(line: _Line, form: Form, injections: Sequence[Injection]) -> SelfTest:
    """Return how a juror bears the injections, in the form it was found to answer in."""
    if line.juror.simulated:
        return SelfTest(simulated=True)
    rubric, explanation = read_rubric(RUBRIC), line.juror.explanation
    line.usd = 0.0

    async def ask(prompt: str) -> ParsedAnswer:
        call = Call(first_question(prompt), rubric.json_schema(explanation), form)
        answer = await line.put_patiently(call)
        return read_answer(answer, rubric)

    outcomes = await ask_injections(injections, rubric, ask, explanation)
    return SelfTest(outcomes, line.usd)


async def _fitness(line: _Line, form: Form, pairs: RubricPairs) -> Fitness:
    """Return how a juror scores pairs of answers, each put to it as a run would put it."""
    rubric, juror = pairs.rubric, line.juror
    if line.juror.simulated:
        return Fitness(rubric.name, simulated=True)
    line.usd = 0.0

    async def ask(card: Card) -> ParsedAnswer:
        question = first_question(rubric.render(card, juror.explanation))
        schema = rubric.json_schema(juror.explanation)
        call = Call(question, schema, form, probabilities=juror.expected)
        return await _rated(line, call, rubric)

    outcomes = await ask_pairs(pairs, ask)
    return Fitness(rubric.name, outcomes, line.usd)


async def _rated(line: _Line, call: Call, rubric: Rubric) -> ParsedAnswer:
    """Return what a juror says on a rubric; asked once more, as in a run, if it cannot be used."""
    answer = await line.put_patiently(call)
    parsed = read_for(line.juror, answer, rubric)
    if answer.status != Status.OK or parsed.status == Status.OK:
        return parsed
    turns = with_retry(call.messages, answer.text, retry_question(parsed.reason, rubric.scale))
    answer = await line.put_patiently(replace(call, messages=turns))
    return read_for(line.juror, answer, rubric)


def _row(
    juror: Juror, result: _Heard, bare: _Heard | None = None, without: tuple[str, ...] = ()
) -> ProbeRow:
    """Return the row of a juror, heard as the panel sets it and perhaps without some settings."""
    settings = {
        name: "not set" if getattr(juror, name) is None else "accepted"
        for name in ("temperature", "effort")
    }
    reason, usd = without_texts(result.parsed.reason), result.usd
    if bare is not None:
        usd = None if usd is None or bare.usd is None else usd + bare.usd
        if bare.answer.status == Status.OK:
            result, settings = bare, settings | dict.fromkeys(without, "refused")
            lines = " and ".join(f"{name} = {_written(juror, name)}" for name in without)
            reason = f"refuses {lines}: delete that line of juror {juror.name} in the panel"
    answered = result.answer.status == Status.OK
    return ProbeRow(
        juror=juror.name,
        host=juror.host,
        model=juror.model,
        returned_model=result.answer.returned_model,
        status=result.parsed.status,
        reason=reason,
        schema=result.form if answered else "",
        temperature=settings["temperature"] if answered else "",
        effort=settings["effort"] if answered else "",
        unsupported=result.unsupported,
        usd=usd,
        ends=juror.end(),
        limits=result.limits,
        injection=result.injection,
        probabilities=_probabilities(juror, result),
        pairs=result.pairs,
    )


def _probabilities(juror: Juror, result: _Heard) -> str:
    """Return whether the log-probabilities that a juror is to be read by came with its answer."""
    if not juror.expected:
        return "not set"
    return "served" if result.answer.tokens else "not served"


def _written(juror: Juror, name: str) -> str:
    """Return a setting as the panel writes it."""
    value = getattr(juror, name)
    return f"{value:g}" if isinstance(value, float) else f'"{value}"'
