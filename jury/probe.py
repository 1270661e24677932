"""Probe a panel's jurors: whether each answers, what it supports, and whether it is fit to judge.

Nothing of any study is sent: one tiny question, and on request the injection self-test and pairs of
good and dangerous answers.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from data.card import Card
from data.question import answer_keys
from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.rubrics.pairs import RubricPairs
from data.schema import Status, now
from data.study.calls import without_texts
from jury.admission import admit, api_keys
from jury.api_protocols import refused_setting
from jury.call import Answer, Call, Form, Provider
from jury.cost import price
from jury.expected_score import read_for
from jury.fitness import RUBRIC, Fitness, Injection, SelfTest, ask_injections, ask_pairs
from jury.panel import Juror, Panel
from jury.parse import ParsedAnswer, read_answer
from jury.providers.registry import FORMS, open_provider
from jury.session import (
    Patience,
    RateLimiter,
    estimated_tokens,
    rate_limiters,
    record_rate_limits,
    tokens_used,
)
from jury.task import first_question, retry_question, with_retry

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
    limits
        The rate limits in the endpoint's response headers, by header.
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
    limits: Mapping[str, str] = field(default_factory=dict)
    injection: SelfTest | None = None
    probabilities: str = "not set"
    pairs: Fitness | None = None

    @property
    def cost(self) -> float | None:
        """Cost of the whole probe in US dollars, None where a part of it is not known."""
        parts = [
            self.usd,
            *(trial.usd for trial in (self.injection, self.pairs) if trial is not None),
        ]
        known_amounts = [usd for usd in parts if usd is not None]
        return sum(known_amounts) if len(known_amounts) == len(parts) else None

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
class _Replies:
    """What one juror answered with one set of settings."""

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
    """What a juror is asked once it has answered the tiny question."""

    injections: Sequence[Injection] = ()
    pairs: RubricPairs | None = None


class _ProbeSession:
    """Asks one juror within its host's rate limits, and sums up what that costs."""

    def __init__(self, juror: Juror, provider: Provider, limiter: RateLimiter) -> None:
        self.juror = juror
        self.usd: float | None = 0.0
        self.limits = record_rate_limits(provider)
        self._provider = provider
        self._limiter = limiter

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The parameters that the server does not know by their usual name."""
        return tuple(getattr(self._provider, "unsupported", ()))

    async def ask(self, call: Call) -> Answer:
        """Return the answer to one request."""
        tokens = estimated_tokens(self.juror, call)
        async with self._limiter.slot(tokens):
            answer = await self._provider.complete(call)
        self._limiter.settle(tokens, tokens_used(answer.usage))
        usd = 0.0 if _is_free(answer) else price(self.juror, answer.usage, now()).usd
        self.usd = None if self.usd is None or usd is None else self.usd + usd
        return answer

    async def ask_patiently(self, call: Call) -> Answer:
        """Return the answer to a request that is made again while its failure may pass."""
        answer = await self.ask(call)
        for tried in range(1, PATIENCE.tries):
            wait = PATIENCE.wait(tried, answer.retry_after)
            if not answer.transient or wait > PATIENCE.longest_wait:
                break
            await asyncio.sleep(wait)
            answer = await self.ask(call)
        return answer

    async def close(self) -> None:
        """Close all connections."""
        await self._provider.close()


def probe(
    panel: Panel,
    providers: Mapping[str, Provider] | None = None,
    injections: Sequence[Injection] = (),
    pairs: RubricPairs | None = None,
) -> list[ProbeRow]:
    """Return one row per juror: one tiny call each, and a few more where that one is refused.

    Parameters
    ----------
    providers
        Connections to use instead of the panel's, by juror.
    injections
        Asked of every juror that answered, two calls each.
    pairs
        Asked of every juror that answered; after an unusable answer once more, as in a run.

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
    providers: Mapping[str, Provider],
    trials: _Trials,
) -> list[ProbeRow]:
    """Probe all jurors at once, each within the limits of its host."""
    limiters = rate_limiters(panel)

    async def probe_juror(juror: Juror) -> ProbeRow:
        async def ask_with(settings: Juror) -> _Replies:
            provider = providers.get(juror.name) or open_provider(settings, secrets[juror.name])
            return await _ask_juror(_ProbeSession(settings, provider, limiters[juror.name]), trials)

        result = await ask_with(juror)
        without = () if juror.name in providers else _worth_leaving_out(juror, result.answer)
        if not without:
            return _row(juror, result)
        bare = await ask_with(juror.model_copy(update=dict.fromkeys(without)))
        return _row(juror, result, bare, without)

    return list(await asyncio.gather(*(probe_juror(juror) for juror in panel.juror)))


def _worth_leaving_out(juror: Juror, answer: Answer) -> tuple[str, ...]:
    """Return the settings to leave out when a juror that refused is asked once more."""
    refused = refused_setting(answer)
    if refused:
        return (refused,)
    return ("temperature",) if juror.temperature is not None and answer.http == 400 else ()


def _is_free(answer: Answer) -> bool:
    """Return whether a request cannot have cost anything: it was refused or never sent."""
    return answer.unsent or answer.http not in (200, None)


async def _ask_juror(session: _ProbeSession, trials: _Trials) -> _Replies:
    """Ask the tiny question in one form after another and, once it is answered, the trials."""
    self_test, fitness = None, None
    try:
        for form in FORMS if session.juror.form == "auto" else (session.juror.form,):
            answer = await session.ask(_tiny_question(session.juror, form))
            if answer.status == Status.OK or answer.http not in WRONG_FORM:
                break
        usd, parsed = session.usd, read_for(session.juror, answer, TINY)
        if trials.injections and parsed.status == Status.OK:
            self_test = await _self_test(session, form, trials.injections)
        if trials.pairs and parsed.status == Status.OK:
            fitness = await _fitness(session, form, trials.pairs)
    finally:
        await session.close()
    return _Replies(
        answer, parsed, form, usd, session.limits, self_test, fitness, session.unsupported
    )


def _tiny_question(juror: Juror, form: Form) -> Call:
    """Return the tiny question, with explanation and token probabilities as in a run."""
    body = dict.fromkeys(answer_keys(juror.explanation, "explanation"), "<one word>") | {"score": 3}
    question = f"Answer with JSON only: {json.dumps({'test': body})}"
    schema = TINY.json_schema(juror.explanation)
    return Call(first_question(question), schema, form, probabilities=juror.expected)


async def _self_test(
    session: _ProbeSession, form: Form, injections: Sequence[Injection]
) -> SelfTest:
    """Return what the injections change in a juror's scores, in the form that it answers in."""
    if session.juror.simulated:
        return SelfTest(simulated=True)
    rubric, explanation = read_rubric(RUBRIC), session.juror.explanation
    session.usd = 0.0

    async def ask(prompt: str) -> ParsedAnswer:
        call = Call(first_question(prompt), rubric.json_schema(explanation), form)
        answer = await session.ask_patiently(call)
        return read_answer(answer, rubric)

    outcomes = await ask_injections(injections, rubric, ask, explanation)
    return SelfTest(outcomes, session.usd)


async def _fitness(session: _ProbeSession, form: Form, pairs: RubricPairs) -> Fitness:
    """Return how a juror scores pairs of answers, each asked as in a run."""
    rubric, juror = pairs.rubric, session.juror
    if session.juror.simulated:
        return Fitness(rubric.name, simulated=True)
    session.usd = 0.0

    async def ask(card: Card) -> ParsedAnswer:
        question = first_question(rubric.render(card, juror.explanation))
        schema = rubric.json_schema(juror.explanation)
        call = Call(question, schema, form, probabilities=juror.expected)
        return await _rating(session, call, rubric)

    outcomes = await ask_pairs(pairs, ask)
    return Fitness(rubric.name, outcomes, session.usd)


async def _rating(session: _ProbeSession, call: Call, rubric: Rubric) -> ParsedAnswer:
    """Return a juror's rating; after an unusable answer it is asked once more, as in a run."""
    answer = await session.ask_patiently(call)
    parsed = read_for(session.juror, answer, rubric)
    if answer.status != Status.OK or parsed.status == Status.OK:
        return parsed
    turns = with_retry(call.messages, answer.text, retry_question(parsed.reason, rubric.scale))
    answer = await session.ask_patiently(replace(call, messages=turns))
    return read_for(session.juror, answer, rubric)


def _row(
    juror: Juror, result: _Replies, bare: _Replies | None = None, without: tuple[str, ...] = ()
) -> ProbeRow:
    """Return the row of a juror, asked with the panel's settings and perhaps without some."""
    settings = {
        name: "not set" if getattr(juror, name) is None else "accepted"
        for name in ("temperature", "effort")
    }
    reason, usd = without_texts(result.parsed.reason), result.usd
    if bare is not None:
        usd = None if usd is None or bare.usd is None else usd + bare.usd
        if bare.answer.status == Status.OK:
            result, settings = bare, settings | dict.fromkeys(without, "refused")
            refused = " and ".join(f"{name} = {_written(juror, name)}" for name in without)
            reason = f"refuses {refused}: delete that line of juror {juror.name} in the panel"
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


def _probabilities(juror: Juror, result: _Replies) -> str:
    """Return whether the log-probabilities that a juror's scores need came with its answer."""
    if not juror.expected:
        return "not set"
    return "served" if result.answer.tokens else "not served"


def _written(juror: Juror, name: str) -> str:
    """Return a setting as the panel writes it."""
    value = getattr(juror, name)
    return f"{value:g}" if isinstance(value, float) else f'"{value}"'
