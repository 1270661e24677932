"""What a run has come to: counted while it goes, and told when it ends."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from data.schema import Status
from jury.conversation import JurorSession

INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run has come to.

    Attributes
    ----------
    rated, missing
        Verdicts that stand in the study, from this run or an earlier one, and those that do not;
        together responses x jurors x replicates.
    by_status
        Status -> verdicts that ended so; "ok" is `rated`. Verdicts that a stopped run never came
        to are "interrupted".
    by_juror
        The same for each juror.
    calls
        Requests sent in this run, those repeated included.
    usd, usd_unknown
        What they cost together, and for how many of them no cost is known.
    stopped
        Juror -> why it was asked no more.
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

    @property
    def interrupted(self) -> bool:
        """Whether the run was stopped before it came to its end."""
        return INTERRUPTED in self.by_status

    def to_json(self) -> dict[str, Any]:
        """Return what `medjury jury run --json` writes."""
        names = ("panel", "responses", "jurors", "rated", "missing")
        body = {name: getattr(self, name) for name in names}
        body["by_status"] = dict(self.by_status)
        return body | {name: getattr(self, name) for name in ("calls", "usd", "usd_unknown")}


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is: of `total` verdicts `done` have ended, as counted in `by_status`."""

    total: int
    done: int
    by_status: Mapping[str, int]
    calls: int
    usd: float
    usd_unknown: int


class Tally:
    """Counts a run; `tick` is told after every verdict."""

    def __init__(self, total: int, tick: Callable[[Progress], None] | None) -> None:
        self._total = total
        self._tick = tick
        self._done: dict[str, Counter[str]] = {}
        self._status: Counter[str] = Counter()
        self.calls = 0
        self.usd = 0.0
        self.usd_unknown = 0

    def called(self, usd: float | None) -> None:
        """Count one request and its cost."""
        self.calls += 1
        self.usd += usd or 0.0
        self.usd_unknown += usd is None

    def ended(self, juror: str, status: Status | None) -> None:
        """Count one verdict; None is one that the run was stopped before."""
        name = INTERRUPTED if status is None else str(status)
        self._status[name] += 1
        self._done.setdefault(juror, Counter())[name] += 1
        if self._tick is not None:
            self._tick(self.progress())

    def stands(self, juror: str) -> Callable[[Status], None]:
        """Return what counts a juror's verdict that stands already."""
        return lambda status: self.ended(juror, status)

    def progress(self) -> Progress:
        """Return how far the run is."""
        done = self._status.total()
        counts = dict(self._status)
        return Progress(self._total, done, counts, self.calls, self.usd, self.usd_unknown)

    def result(self, panel: str, responses: int, sessions: Sequence[JurorSession]) -> RunResult:
        """Return what the run has come to."""
        rated = self._status[str(Status.OK)]
        return RunResult(
            panel=panel,
            responses=responses,
            jurors=len(sessions),
            rated=rated,
            missing=self._total - rated,
            by_status={name: self._status[name] for name in sorted(self._status)},
            by_juror={name: dict(counts) for name, counts in self._done.items()},
            calls=self.calls,
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped={one.juror.name: one.stopped[1] for one in sessions if one.stopped},
        )
