"""Count a run while it goes, and what came of it."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Engine

from data.calls import TokenCosts, is_other_model
from data.question import is_placeholder
from data.schema import Status
from data.study.costs import study_spending
from jury.budget import Budget
from jury.call import Answer, Usage
from jury.cost import Price
from jury.panel import Juror
from jury.parse import ParsedAnswer
from jury.reading import storable

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes
    ----------
    rated, missing
        Verdicts that the study has, from this run or an earlier one, and those that it lacks;
        together responses x jurors x replicates.
    by_status
        Status -> number of verdicts that ended so; "ok" is `rated`. Verdicts that a stopped run
        did not ask for are "interrupted".
    by_juror
        The same for each juror.
    calls
        Requests sent in this run, repeated ones included.
    usd, usd_unknown
        What they cost together in US dollars, and for how many of them no cost is known.
    stopped
        Juror -> why it was not asked any more.
    usd_in_flight, calls_in_flight
        Calls of the study, of this run and all earlier ones, whose cost is not known: in flight
        when a run was killed, never answered, or in a batch; and the most that they can cost.
    usd_study, budget
        What the study has spent over all runs, such calls at their highest cost, and what it may
        spend at most; None where it has no budget.
    usd_carried, calls_carried
        Of the calls in flight, those of killed runs that count against the cap of this command.
    tokens
        Tokens of this run's calls by kind, and what each kind cost.
    shared_prompts
        Verdicts of this run that needed no call, as the juror had rated the very same prompt.
    placeholders
        Juror -> explanations of this run that repeat the form's own words and say nothing.
    other_models
        Juror -> models that answered in this run instead of the one that was asked for.
    """

    panel: str
    responses: int
    jurors: int
    rated: int
    missing: int
    by_status: Mapping[str, int]
    by_juror: Mapping[str, Mapping[str, int]]
    calls: int
    usd: float
    usd_unknown: int
    stopped: Mapping[str, str] = field(default_factory=dict)
    usd_in_flight: float = 0.0
    calls_in_flight: int = 0
    usd_study: float = 0.0
    budget: float | None = None
    usd_carried: float = 0.0
    calls_carried: int = 0
    tokens: TokenCosts = field(default_factory=TokenCosts)
    shared_prompts: int = 0
    placeholders: Mapping[str, int] = field(default_factory=dict)
    other_models: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it came to its end."""
        return INTERRUPTED in self.by_status

    def to_json(self) -> dict[str, Any]:
        """Return what `medjury jury run --json` writes."""
        names = (
            *("panel", "responses", "jurors", "rated", "missing", "calls", "usd", "usd_unknown"),
            *("usd_in_flight", "usd_study", "shared_prompts"),
        )
        return {name: getattr(self, name) for name in names} | {
            "by_status": dict(self.by_status),
            "cached_tokens": self.tokens.cached,
            "tokens": self.tokens.to_json(),
            "placeholders": dict(self.placeholders),
            "other_models": {juror: list(models) for juror, models in self.other_models.items()},
        }


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run has come: of `total` verdicts `done` have ended, as `by_status` counts them."""

    total: int
    done: int
    by_status: Mapping[str, int]
    calls: int
    usd: float
    usd_unknown: int


class RunTally:
    """Counts the verdicts and calls of a run; `tick` is called after every verdict."""

    def __init__(self, total: int, tick: Callable[[RunProgress], None] | None) -> None:
        self._total = total
        self._tick = tick
        self._done: dict[str, Counter[str]] = {}
        self._status: Counter[str] = Counter()
        self._tokens = TokenCosts()
        self._shared = 0
        self._placeholders: Counter[str] = Counter()
        self._other_models: dict[str, set[str]] = {}
        self.calls = 0
        self.usd = 0.0
        self.usd_unknown = 0

    def called(self, cost: Price, usage: Usage) -> None:
        """Count one request, its cost and its tokens."""
        self.calls += 1
        self.usd += cost.usd or 0.0
        self.usd_unknown += cost.usd is None
        self._tokens = self._tokens.plus(cost.of(usage))

    def answered(self, juror: Juror, answer: Answer, reading: ParsedAnswer) -> None:
        """Count explanations without words of their own, and note another model than was asked for."""
        comments = reading.reply.comments.values() if reading.reply else ()
        if empty := sum(map(is_placeholder, comments)):
            self._placeholders[juror.name] += empty
        if is_other_model(juror.model, answer.returned_model):
            self._other_models.setdefault(juror.name, set()).add(storable(answer.returned_model))

    def shared(self) -> None:
        """Count one verdict that was taken over from the same prompt."""
        self._shared += 1

    def ended(self, juror: str, status: str | None) -> None:
        """Count one verdict; None is one that a stopped run did not ask for."""
        name = INTERRUPTED if status is None else str(status)
        self._status[name] += 1
        self._done.setdefault(juror, Counter())[name] += 1
        if self._tick is not None:
            done, counts = self._status.total(), dict(self._status)
            spent = (self.calls, self.usd, self.usd_unknown)
            self._tick(RunProgress(self._total, done, counts, *spent))

    def result(
        self, panel: str, responses: int, ends: Mapping[str, tuple[Status, str] | None]
    ) -> RunResult:
        """Return the result of the run; `ends` says why a juror was stopped, None for one that was not."""
        rated = self._status[str(Status.OK)]
        return RunResult(
            panel=panel,
            responses=responses,
            jurors=len(ends),
            rated=rated,
            missing=self._status.total() - rated,
            by_status={name: self._status[name] for name in sorted(self._status)},
            by_juror={name: dict(counts) for name, counts in self._done.items()},
            calls=self.calls,
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped={name: end[1] for name, end in ends.items() if end},
            tokens=self._tokens,
            shared_prompts=self._shared,
            placeholders=dict(self._placeholders),
            other_models={name: sorted(models) for name, models in self._other_models.items()},
        )


def with_study_spending(result: RunResult, engine: Engine, budget: Budget) -> RunResult:
    """Return a result with what the study has spent over all runs, and its calls of unknown cost."""
    spent = study_spending(engine)
    return replace(
        result,
        usd_in_flight=round(spent.usd_in_flight, 9),
        calls_in_flight=spent.in_flight,
        usd_study=round(spent.usd, 9),
        budget=spent.budget,
        calls_carried=budget.calls_carried,
        usd_carried=budget.usd_carried,
    )
