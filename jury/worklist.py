"""The worklist of a run: which responses each juror has still to rate."""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, islice
from typing import Any

from sqlalchemy import Engine

from data.card import Card
from data.errors import BadPanel, Conflict, Unknown
from data.importers.rows import JurorRecord
from data.question import Explanation, RenderedPrompt
from data.rubric import Rubric
from data.schema import Status
from data.study import calls, standing
from data.study import points as study_points
from data.study.calls import JurorCard, juror_profiles
from data.study.improving import UNLEARNED, Learned, learned_rubric, responses_among
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
        0, or the number of the repetition; on a pair every other one has the responses in the other order.
    shares_prefix
        Whether the juror is asked about other responses to the same instance in this run.
    read
        The rubric in whose words it is asked, None for `rubric` itself; criteria and scale are equal.
    """

    response: int
    card: Card
    rubric: Rubric
    replicate: int = 0
    shares_prefix: bool = False
    read: Rubric | None = None

    @property
    def has_text(self) -> bool:
        """Whether there is anything to rate."""
        return all(text.strip() for text in self.card.rated)

    def question(self, explanation: Explanation | None = None) -> Turn:
        """Return the question to a juror, with its explanation asked for at the given place."""
        prompt = self.prompt(explanation)
        return Turn("user", prompt.text, len(prompt.shared) if self.shares_prefix else 0)

    def prompt(self, explanation: Explanation | None = None) -> RenderedPrompt:
        """Return the prompt, in the words of the rubric that the juror reads."""
        return (self.read or self.rubric).parts(self.card, explanation)


def job_of(
    response: int, card: Card, rubric: Rubric, replicate: int, read: Rubric | None = None
) -> Job:
    """Return the job of a response, a pair's in the order of its replicate."""
    is_turned = calls.order_of(replicate, rubric) == "second"
    return Job(response, card.turned() if is_turned else card, rubric, replicate, read=read)


@dataclass(frozen=True, slots=True)
class Worklist:
    """The benchmarks to rate, and how many verdicts each juror gives on each response.

    `only`: the responses that are meant, primary keys; None for all.
    """

    tasks: tuple[standing.BenchmarkView, ...]
    replicates: int
    only: frozenset[int] | None = None

    @property
    def responses(self) -> int:
        """How many responses there are in all tasks."""
        if self.only is not None:
            return len(self.only)
        return sum(task.responses for task in self.tasks)

    @property
    def questions(self) -> int:
        """How many verdicts a juror gives who leaves nothing out: on a pair two, one in each order."""
        if self.only is not None:
            return len(self.only) * self.replicates
        return sum(task.responses * task.rubric.orders for task in self.tasks) * self.replicates

    def verdicts(self, engine: Engine, learned: Sequence[Learned]) -> int:
        """Return how many verdicts jurors give on it who have learned so, each one's left out."""
        left_out = sum(self.left_out(engine, one) for one in learned)
        return self.questions * len(learned) - left_out * self.replicates

    def left_out(self, engine: Engine, learned: Learned) -> int:
        """Return how many of its responses a juror's rubric was learned from."""
        if self.only is not None:
            return len(self.only & learned.responses)
        return responses_among(engine, learned.responses, [task.name for task in self.tasks])


def pending_jobs(
    engine: Engine,
    worklist: Worklist,
    rater: int,
    rated: Callable[[Status], None],
    learned: Learned = UNLEARNED,
) -> Iterator[Sequence[Job]]:
    """Yield the jobs that a juror has still to do, a group for each instance; large ones in parts.

    They are read as they are needed. `rated` is called for each job that is done already. Responses
    that the juror's rubric was learned from are left out.
    """
    for task in worklist.tasks:
        done = calls.complete_ratings(engine, rater, task.rubric)
        cases = {case.key: case.rubric for case in study_points.case_rubrics(engine, task.name)}
        cards = (
            shown
            for shown in calls.juror_cards(engine, task.name, task.rubric)
            if worklist.only is None or shown.response in worklist.only
            if shown.response not in learned.responses
        )
        for key, instance in groupby(cards, key=lambda shown: shown.instance):
            rubric = cases.get(key, task.rubric)
            replicates = range(worklist.replicates * rubric.orders)
            pending = _pending(instance, rubric, replicates, done, rated)
            while group := list(islice(pending, LARGEST_GROUP)):
                yield _group(group, learned.rubric)


def learned_by(engine: Engine, juror: Juror, worklist: Worklist) -> Learned:
    """Return what a juror reads instead of the clinicians' rubric, and was learned from.

    Raises
    ------
    BadPanel
        If the study does not know the rubric that the juror reads, or if that one was not made from
        the rubric of each benchmark.
    """
    if not juror.reads:
        return UNLEARNED
    learned = learned_rubric(engine, juror.reads)
    for task in worklist.tasks:
        if task.rubric.sha256 not in (*learned.ancestors, juror.reads):
            raise BadPanel(
                f"juror {juror.name}, reads {juror.reads[:12]}: the study has no such rubric that was made "
                f"from {task.rubric.name}, on which {task.name} is rated; `medjury jury improve` makes "
                "one, in the study whose clinicians it learned from"
            )
    return learned


def _group(part: Sequence[Job], read: Rubric | None) -> list[Job]:
    """Return the jobs of one instance, those last whose response has no text and is not asked."""
    shares = sum(job.has_text for job in part) > 1
    ordered = sorted(part, key=lambda job: not job.has_text)
    if not shares and read is None:
        return ordered
    return [replace(job, shares_prefix=shares, read=read) for job in ordered]


def _pending(
    shown: Iterable[JurorCard],
    rubric: Rubric,
    replicates: range,
    done: Container[tuple[int, int]],
    rated: Callable[[Status], None],
) -> Iterator[Job]:
    for card in shown:
        for replicate in replicates:
            if (card.response, replicate) in done:
                rated(Status.OK)
            else:
                yield job_of(card.response, card.card, rubric, replicate)


def benchmarks_to_rate(
    engine: Engine, panel: Panel, names: Sequence[str] | None
) -> tuple[standing.BenchmarkView, ...]:
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
        study_points.refuse_without_points(engine, [benchmark])
    return chosen


def known_benchmarks(engine: Engine, names: Sequence[str] | None) -> list[standing.BenchmarkView]:
    """Return all benchmarks of the study; raise Unknown if one of `names` is not among them."""
    benchmarks = standing.benchmarks(engine)
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
        new = juror.profile()
        old = profiles.get(juror.name) or new
        changes = [
            f"{name}: {_setting(old.get(name))} -> {_setting(new.get(name))}"
            for name in (*new, *(set(old) - set(new)))
            if old.get(name) != new.get(name)
        ]
        if changes:
            raise Conflict(
                f"juror {juror.name!r}: a juror of this name with another profile is in the study "
                f"({', '.join(changes)}), and their ratings must not mix; put the setting back, or "
                "give the juror another name in the panel"
            )


def _setting(value: Any) -> str:
    return "not set" if value is None else f"{value}"
