"""Having a jury rate what came: within a day's budget, and without the jurors that do not answer."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from sqlalchemy import Engine

from annotate.watching.log import Log
from annotate.watching.settings import JurySettings
from data.errors import Conflict
from data.queries.study import BenchmarkView
from data.queries.watch import mean_cost, pending, raters_of, spent_since
from data.schema import Status, now
from jury.budget import Budget
from jury.panel import Juror, Panel
from jury.run import run_panel
from jury.run_result import RunResult
from jury.session import Patience
from jury.worklist import benchmarks_to_rate

MOST, FEW, PROBE = (
    500,
    50,
    3,
)  # responses of a run: at most, where no price is known, for a juror that was down
LONGEST_RETRY = 30 * 60.0
BUDGET = "budget_stopped"
PASSING = (Status.RATE_LIMITED, Status.TIMEOUT, Status.AUTH, Status.QUOTA, Status.REQUEST_FAILED)


class Busy(Conflict):
    """Another run of a jury is on in this study."""


@dataclass
class _Down:
    """A juror that did not answer: when it is tried again, and after which pause then."""

    until: float
    pause: float


@dataclass
class Asking:
    """The jury of a watch.

    Attributes
    ----------
    used_up : the day on which the budget had no room for the next call; None while it has
    """

    panel: Panel
    settings: JurySettings
    log: Log
    monotonic: Callable[[], float] = time.monotonic
    clock: Callable[[], datetime] = now
    patience: Patience = Patience()  # noqa: RUF009 - frozen
    used_up: date | None = None
    down: dict[str, _Down] = field(default_factory=dict)

    def work(self, engine: Engine) -> bool:
        """Ask about a part of what is pending; return whether more can be asked at once.

        Raises
        ------
        KeyboardInterrupt
            If the run was told to stop; what was answered is stored.
        BadPanel
            If the panel cannot be asked.
        """
        today = self.clock().date()
        if self.used_up not in (None, today):
            self.used_up = None
        if self.used_up:
            return False
        waiting = self.pending(engine)
        up = [juror for juror in self.panel.juror if juror.name not in self.down]
        wanted = {juror.name for juror in up if waiting[juror.name]}
        if due := self._due(waiting):
            self._run(engine, [due], waiting[due.name][:PROBE])
        if not wanted or self.used_up:
            return False
        keys = sorted({key for name in wanted for key in waiting[name]})
        part = keys[: self._size(engine, len(wanted))]
        result = self._run(engine, up, part)
        return result is not None and not self.used_up and len(keys) > len(part)

    def pending(self, engine: Engine) -> dict[str, list[int]]:
        """Return juror -> the responses, primary keys, that it has still to rate."""
        tasks, raters = self._tasks(engine), raters_of(engine, [j.name for j in self.panel.juror])
        most = self.settings.most_answers
        return {
            juror.name: pending(engine, tasks, raters.get(juror.name), most)
            for juror in self.panel.juror
        }

    def spent(self, engine: Engine) -> float:
        """Return what this day may have cost by now, in US dollars; a day begins at midnight UTC."""
        start = self.clock().replace(hour=0, minute=0, second=0, microsecond=0)
        return spent_since(engine, start)

    def _tasks(self, engine: Engine) -> tuple[BenchmarkView, ...]:
        return benchmarks_to_rate(engine, self.panel, None)

    def _due(self, waiting: Mapping[str, list[int]]) -> Juror | None:
        """Return a juror that did not answer and is to be tried again."""
        present = self.monotonic()
        for juror in self.panel.juror:
            down = self.down.get(juror.name)
            if down and down.until <= present and waiting[juror.name]:
                return juror
        return None

    def _size(self, engine: Engine, jurors: int) -> int:
        """Return about how many responses a run has the money for, so that few are told there is none."""
        if self.settings.daily_usd is None:
            return MOST
        left = self.settings.daily_usd - self.spent(engine)
        cost = mean_cost(engine, raters_of(engine, [j.name for j in self.panel.juror]).values())
        return FEW if not cost else max(1, min(MOST, int(left / cost / jurors) + 1))

    def _run(self, engine: Engine, jurors: list[Juror], keys: list[int]) -> RunResult | None:
        """Ask some jurors about some responses; None where another run is on."""
        cap = self.settings.daily_usd
        left = None if cap is None else max(0.0, cap - self.spent(engine))
        try:
            result = run_panel(
                engine,
                self.panel.model_copy(update={"juror": tuple(jurors)}),
                concurrency=self.settings.concurrency,
                budget=Budget(left),
                tasks=self._tasks(engine),
                only=frozenset(keys),
                waiting=_refuse_to_wait,
                patience=self.patience,
            )
        except Busy:
            self.log.write("jury_busy")
            return None
        self._note(engine, jurors, result)
        if result.interrupted:
            raise KeyboardInterrupt
        return result

    def _note(self, engine: Engine, jurors: list[Juror], result: RunResult) -> None:
        """Keep who did not answer and whether the money is used up, and log the run."""
        for juror in jurors:
            if juror.name in result.stopped or _is_silent(result.by_juror.get(juror.name, {})):
                pause = self.down[juror.name].pause * 2 if juror.name in self.down else 0.0
                pause = min(LONGEST_RETRY, pause or self.settings.retry_minutes * 60)
                self.down[juror.name] = _Down(self.monotonic() + pause, pause)
            else:
                self.down.pop(juror.name, None)
        spent = round(self.spent(engine), 6)
        self.log.write(
            "asked",
            responses=result.responses,
            by_status=dict(result.by_status),
            calls=result.calls,
            usd=result.usd,
            usd_today=spent,
            down=sorted(self.down),
        )
        if result.by_status.get(BUDGET):
            self.used_up = self.clock().date()
            waiting = sum(len(keys) for keys in self.pending(engine).values())
            self.log.write(
                "budget_used_up",
                usd_today=spent,
                daily_usd=self.settings.daily_usd,
                verdicts_waiting=waiting,
            )


def _is_silent(by_status: Mapping[str, int]) -> bool:
    """Tell whether a juror gave no verdict, and failed in a way that may pass."""
    failed = sum(by_status.get(status, 0) for status in PASSING)
    return bool(failed) and not by_status.get(Status.OK, 0)


def _refuse_to_wait() -> None:
    raise Busy("another run of a jury is on")
