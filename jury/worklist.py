"""The worklist of a run: which responses each juror has still to rate."""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Engine

from data import queries
from data.card import Card
from data.errors import BadPanel, Conflict, Unknown
from data.importers.rows import JurorRecord
from data.queries.jury import JurorCard, juror_profiles
from data.question import Explanation
from data.rubric import Rubric
from data.schema import Status
from jury.call import Turn
from jury.panel import Juror, Panel, refuse_form

LARGEST_GROUP = 200  # so that an instance with thousands of responses is not held as a whole


@dataclass(frozen=True, slots=True)
class Job:
    """One response, to be rated once by one juror on a rubric.

    Attributes
    ----------
    response
        Its primary key.
    replicate
        0, or the number of the repetition.
    shares_prefix
        Whether the juror is asked about other responses to the same instance in this run.
    """

    response: int
    card: Card
    rubric: Rubric
    replicate: int = 0
    shares_prefix: bool = False

    @property
    def has_text(self) -> bool:
        """Whether there is anything to rate."""
        return bool(self.card.response.strip())

    def question(self, explanation: Explanation | None = None) -> Turn:
        """Return the question to a juror, with its explanation asked for at the given place."""
        prompt = self.rubric.parts(self.card, explanation)
        return Turn("user", prompt.text, len(prompt.shared) if self.shares_prefix else 0)


@dataclass(frozen=True, slots=True)
class Worklist:
    """The benchmarks to rate, and how many verdicts each juror gives on each response."""

    tasks: tuple[queries.BenchmarkView, ...]
    replicates: int

    @property
    def responses(self) -> int:
        """How many responses there are in all tasks."""
        return sum(task.responses for task in self.tasks)


def pending_jobs(
    engine: Engine, worklist: Worklist, rater: int, rated: Callable[[Status], None]
) -> Iterator[Sequence[Job]]:
    """Yield the jobs that a juror has still to do, a group for each instance; large ones in parts.

    They are read as they are needed. `rated` is called for each job that is done already.
    """
    for task in worklist.tasks:
        done = queries.complete_ratings(engine, rater, task.rubric)
        cards = queries.juror_cards(engine, task.name, task.rubric)
        for _, instance in groupby(cards, key=lambda shown: shown.instance):
            pending = _pending(instance, task.rubric, range(worklist.replicates), done, rated)
            while group := list(islice(pending, LARGEST_GROUP)):
                yield _group(group)


def _group(part: Sequence[Job]) -> list[Job]:
    """Return the jobs of one instance, those last whose response has no text and is not asked."""
    shares = sum(job.has_text for job in part) > 1
    ordered = sorted(part, key=lambda job: not job.has_text)
    return [replace(job, shares_prefix=shares) for job in ordered]


def _pending(
    shown: Iterable[JurorCard],
    rubric: Rubric,
    replicates: range,
    done: Container[tuple[int, int]],
    rated: Callable[[Status], None],
) -> Iterator[Job]:
    """Yield the jobs on some responses that are not done."""
    for card in shown:
        for replicate in replicates:
            if (card.response, replicate) in done:
                rated(Status.OK)
            else:
                yield Job(card.response, card.card, rubric, replicate)


def benchmarks_to_rate(
    engine: Engine, panel: Panel, names: Sequence[str] | None
) -> tuple[queries.BenchmarkView, ...]:
    """Return the benchmarks to rate, all or those named.

    Raises
    ------
    Unknown
        If one that is named is not in the study.
    BadPanel
        If the panel is for another rubric, or a juror cannot be asked on a rubric in its form.
    """
    benchmarks = known_benchmarks(engine, names)
    chosen = tuple(
        benchmark for benchmark in benchmarks if names is None or benchmark.name in names
    )
    for benchmark in chosen:
        if panel.rubric not in (None, benchmark.rubric.name):
            raise BadPanel(
                f"panel {panel.name}, rubric {panel.rubric!r}: the benchmark {benchmark.name} is rated "
                f"on {benchmark.rubric.name!r}; jurors and clinicians must rate on one rubric"
            )
        refuse_form(panel, benchmark.rubric)
    return chosen


def known_benchmarks(engine: Engine, names: Sequence[str] | None) -> list[queries.BenchmarkView]:
    """Return all benchmarks of the study; raise Unknown if one of `names` is not among them."""
    benchmarks = queries.benchmarks(engine)
    for name in names or ():
        if name not in [benchmark.name for benchmark in benchmarks]:
            existing = ", ".join(benchmark.name for benchmark in benchmarks) or "none"
            raise Unknown(f"benchmark {name!r}: the study has {existing}")
    return benchmarks


def juror_record(juror: Juror) -> JurorRecord:
    """Return a juror as a study stores it."""
    return JurorRecord(juror.name, juror.profile(), juror.family, juror.simulated)


def refuse_changed(engine: Engine, panel: Panel) -> None:
    """Raise Conflict, with what differs, if a juror has rated in this study with other settings."""
    profiles = juror_profiles(engine, [juror.name for juror in panel.juror])
    for juror in panel.juror:
        if changes := _changes(profiles.get(juror.name), juror.profile()):
            raise Conflict(
                f"juror {juror.name!r}: a juror of this name with another profile is in the study "
                f"({', '.join(changes)}), and their ratings must not mix; put the setting back, or "
                "give the juror another name in the panel"
            )


def _changes(old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ, the old value first."""
    if old is None or not old:
        return []
    names = [name for name in (*new, *(set(old) - set(new))) if old.get(name) != new.get(name)]
    return [f"{name}: {_setting(old.get(name))} -> {_setting(new.get(name))}" for name in names]


def _setting(value: Any) -> str:
    return "not set" if value is None else f"{value}"
