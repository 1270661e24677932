"""Improve a jury by what clinicians said, and say honestly how much better it is.

The clinicians' instances are split once, before anything is asked, and the split is kept. From `train`
come the cases that a model is shown and the examples that jurors are shown; which candidate is taken
is decided on `choose`; `test` is opened once, for the one that was taken. Every verdict and proposal
is stored with its cost under the rubric that it was made on, so that a run that was killed goes on
where it was, and no trial counts among the jury's own ratings.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from typing import Any

import numpy as np
from pydantic import ValidationError
from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.learning import CHOOSE, TEST, TRAIN, PartGain
from calibration.values import NAN, AnalysisOptions
from data.errors import BadInput, TooFew
from data.person import OPERATOR
from data.rubric import Rubric, rubric_toml
from data.schema import Improvement, Status
from data.study.improving import (
    ProposedRubric,
    begin_improvement,
    end_improvement,
    improvements,
    juror_verdicts,
    keep_learned,
    learned_rubric,
    open_test,
    proposed_rubrics,
)
from data.study.runs import keep_panel
from data.study.standing import BenchmarkView, benchmarks
from jury.admission import with_counted_prices
from jury.budget import Budget
from jury.estimate import estimate
from jury.panel import Juror, Panel, first_fault, panel_toml
from jury.proposals import ProposalRequest, ask_for_rubric
from jury.run import run_panel
from jury.run_result import RunResult
from jury.session import Patience
from medjury.services.juries import ComparisonQuestion, compare_juries
from medjury.services.learning_material import (
    Material,
    SeatedJury,
    distances,
    examples_of,
    gain_on,
    material_of,
    views_on_one_rubric,
    worst_cases,
)

SETTINGS = ("effort", "explanation", "scores", "temperature")


class Outcome(StrEnum):
    """How an improvement ended.

    BETTER: the gain on the test part lies above 0. NOT_SHOWN: a rubric was chosen, and its gain there
    may be none. NONE_BETTER: none was better on the part to choose by; the test part is unopened.
    STOPPED: the cap, the proposer or a juror ended it; run again, it goes on.
    """

    BETTER = "better"
    NOT_SHOWN = "not_shown"
    NONE_BETTER = "none_better"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ImproveQuestion:
    """What is asked for.

    Attributes
    ----------
    benchmarks
        Rated on one rubric; none for all of the study.
    proposer
        Name of the panel's juror that proposes rubrics; "" is the panel's own `proposer`, else its
        first juror.
    rounds
        Proposals asked for, at most.
    examples
        Responses by clinicians that jurors are shown, where that helps; 0 tries none.
    settings
        Of the jurors, to be tried, such as ("explanation", "after").
    max_usd
        Cap on what is spent from here on, in US dollars.
    """

    panel: Panel
    benchmarks: tuple[str, ...] = ()
    proposer: str = ""
    rounds: int = 3
    examples: int = 3
    settings: tuple[tuple[str, str], ...] = ()
    seed: int = 0
    max_usd: float | None = None
    concurrency: int | None = None
    reps: int = 2000

    def proposing(self) -> Juror:
        """Return the model that proposes.

        Raises
        ------
        BadInput
            If the panel has no juror of that name, or its proposer is at a host where none of its
            jurors is: clinicians' comments and texts would go where the panel does not say.
        """
        panel = self.panel
        known = {juror.name: juror for juror in panel.juror}
        if self.proposer and self.proposer not in known:
            raise BadInput(f"proposer {self.proposer!r}: the jurors are {', '.join(known)}")
        chosen = known.get(self.proposer) or panel.proposer or panel.juror[0]
        if not chosen.simulated and chosen.place not in panel.hosts():
            raise BadInput(
                f"panel {panel.name}, proposer {chosen.name}: its host {chosen.place} receives no text "
                f"from this panel, whose jurors are at {', '.join(panel.hosts()) or 'no host'}; name a "
                "model at one of them"
            )
        if chosen.simulated != any(juror.simulated for juror in panel.juror):
            raise BadInput(
                f"panel {panel.name}, proposer {chosen.name}: a simulated model and real jurors do not mix"
            )
        return chosen

    def asked(self) -> dict[str, Any]:
        """Return what makes it the same improvement when it is asked for again."""
        return {
            "panel": self.panel.name,
            "jurors": [{"name": juror.name} | juror.profile() for juror in self.panel.juror],
            "proposer": {"name": self.proposing().name} | self.proposing().profile(),
            "benchmarks": list(self.benchmarks),
            "rounds": self.rounds,
            "examples": self.examples,
            "settings": [list(one) for one in self.settings],
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class Tried:
    """One candidate: what was changed, how far it is from the clinicians, and whether it was kept.

    `train` and `choose` are mean distances in points on these parts, NaN where it was not run;
    `reason` says why a proposal could not be used.
    """

    change: str
    train: float = NAN
    choose: float = NAN
    kept: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class IccGain:
    """The ICCs of both juries on the test part, and their difference, not corrected for `n_tried` comparisons."""

    before: float
    after: float
    difference: float
    low: float
    high: float
    p: float
    kind: str
    n_tried: int


@dataclass(frozen=True, slots=True)
class Improved:
    """What came of an improvement.

    Attributes
    ----------
    parts
        "train", "choose", "test" -> gain; train and choose flatter, as the rubric was made and
        chosen by them. "test" is absent until it is opened.
    split
        Part -> how many instances and responses.
    opened_before
        Earlier improvements of the study that had opened a test part with some of the same instances.
    diff
        The rubric that was learned against the one before, line by line.
    panel_file
        The panel that was learned, as TOML; "" where none was.
    """

    id: int
    outcome: Outcome
    panel: str
    jurors: tuple[str, ...]
    rubric: Mapping[str, str]
    split: Mapping[str, Mapping[str, int]]
    tried: tuple[Tried, ...]
    parts: Mapping[str, PartGain] = field(default_factory=dict)
    icc: IccGain | None = None
    opened_before: int = 0
    simulated: bool = False
    usd: float = 0.0
    usd_unknown: int = 0
    stopped: str = ""
    diff: tuple[str, ...] = ()
    panel_file: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return what `medjury jury improve --json` writes, and the study keeps."""
        body: dict[str, Any] = json_value(self)
        return body


def improved_of(body: Mapping[str, Any]) -> Improved:
    """Return what `to_json` wrote."""
    whole = dict(body) | {
        "outcome": Outcome(body["outcome"]),
        "tried": tuple(_figures(Tried, one) for one in body["tried"]),
        "parts": {part: _figures(PartGain, gain) for part, gain in body["parts"].items()},
        "icc": _figures(IccGain, body["icc"]) if body["icc"] else None,
        "jurors": tuple(body["jurors"]),
        "diff": tuple(body["diff"]),
    }
    return Improved(**whole)


def _figures(made: Any, body: Mapping[str, Any]) -> Any:
    return made(**{name: NAN if value is None else value for name, value in body.items()})


def with_setting(jurors: Sequence[Juror], setting: tuple[str, str]) -> tuple[Juror, ...]:
    """Return the jurors with one setting changed.

    Raises
    ------
    BadInput
        If a juror has no such setting, or cannot take the value.
    """
    name, value = setting
    if name not in SETTINGS:
        raise BadInput(f"--try {name}={value}: what can be tried is {', '.join(SETTINGS)}")
    return tuple(_changed(juror, name, value) for juror in jurors)


def _changed(juror: Juror, name: str, value: str) -> Juror:
    body = juror.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
    try:
        return Juror.model_validate(body | {name: float(value) if name == "temperature" else value})
    except ValidationError as error:
        why = first_fault(error, {"juror": [body]})
    except ValueError:
        why = "not a number"
    raise BadInput(f"--try {name}={value}: juror {juror.name}: {why}")


@dataclass(frozen=True, slots=True)
class ImprovementEstimate:
    """What an improvement takes at most: verdicts of jurors, proposals, and US dollars.

    `usd_likely` is of the verdicts, None where a price is not known; examples make prompts longer,
    and what the study has already is not asked again: neither is in it.
    """

    split: Mapping[str, int]
    verdicts: int
    proposals: int
    usd_likely: float | None


UNASKED = "never asked"


def estimate_improvement(engine: Engine, question: ImproveQuestion) -> ImprovementEstimate:
    """Return what an improvement takes at most; nothing is sent or stored.

    Raises
    ------
    TooFew, BadInput
        As `improve`.
    """
    question.proposing()
    views = views_on_one_rubric(benchmarks(engine), question.benchmarks)
    material = material_of(engine, views, question.seed)
    split = {part: len(responses) for part, responses in material.parts.items()}
    panel = with_counted_prices(question.panel)
    tasks = [
        replace(view, rubric=view.rubric.model_copy(update={"version": UNASKED})) for view in views
    ]
    stripped = panel.model_copy(
        update={"juror": tuple(juror.model_copy(update={"reads": ""}) for juror in panel.juror)}
    )
    asked = material.keys(TRAIN, CHOOSE)
    rows = estimate(engine, stripped, tasks=tasks, only=asked)
    variants = bool(question.examples) + len(question.settings)
    responses = len(asked) * (1 + question.rounds) + split[CHOOSE] * variants + 2 * split[TEST]
    prices = [row.usd_likely for row in rows]
    known = [price for price in prices if price is not None]
    each = sum(known) / len(asked) if len(known) == len(prices) else None
    return ImprovementEstimate(
        split,
        responses * len(panel.juror),
        question.rounds,
        None if each is None else each * responses,
    )


Tell = Callable[[str], None]
USED = (Status.OK, Status.INVALID_JSON, Status.MISSING_CRITERION)  # a proposal that was answered


class _StoppedError(Exception):
    """The improvement cannot go on now; what was done is stored."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A rubric with the jurors who read it; `shown`: responses that are examples in it."""

    change: str
    rubric: Rubric
    jurors: tuple[Juror, ...]
    shown: frozenset[int] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the jurors."""
        return tuple(juror.name for juror in self.jurors)


def improve(
    engine: Engine,
    question: ImproveQuestion,
    *,
    tell: Tell = lambda _: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> Improved:
    """Improve a jury, or go on where an earlier run stopped; one that has ended is read back.

    `tell` is called with a line for every step.

    Raises
    ------
    TooFew
        If a part would have fewer than 10 instances.
    BadInput
        If the question cannot be asked of this panel or study; nothing is sent then.
    """
    budget = Budget(question.max_usd)
    views = views_on_one_rubric(benchmarks(engine), question.benchmarks)
    asked = question.asked() | {"rubric": views[0].rubric.sha256}
    before = [one for one in improvements(engine) if one.asked == asked]
    if before and before[-1].result:
        tell(f"improvement {before[-1].id} has ended; its result is read back, nothing is sent")
        return improved_of(before[-1].result)
    base = _base(engine, question, views)
    kept = before[-1] if before else _kept_split(engine, question.panel)
    material = material_of(engine, views, question.seed, kept.split if kept else None)
    key = (
        before[-1].id
        if before
        else begin_improvement(engine, views[0].rubric, asked, material.split())
    )
    return _Improvement(engine, question, views, material, base, key, tell, patience, budget).run()


def _kept_split(engine: Engine, panel: Panel) -> Improvement | None:
    """Return the improvement that a panel came from: its parts are kept, or the test would be seen."""
    reads = {juror.reads for juror in panel.juror} - {""}
    return next((one for one in improvements(engine) if one.learned in reads), None)


def _base(engine: Engine, question: ImproveQuestion, views: Sequence[BenchmarkView]) -> Candidate:
    """Return the jury as it is, reading what it reads."""
    reads = {juror.reads for juror in question.panel.juror}
    if len(reads) > 1:
        raise BadInput(f"panel {question.panel.name}: its jurors read several rubrics")
    [sha256] = reads
    rubric = learned_rubric(engine, sha256).rubric if sha256 else views[0].rubric
    if rubric is None:
        raise BadInput(
            f"panel {question.panel.name}, reads {sha256[:12]}: not a rubric of this study"
        )
    if "{{criteria}}" not in rubric.prompt:
        raise BadInput(
            f"rubric {rubric.name}: its prompt writes the criteria out and has no {{{{criteria}}}}, so that "
            "guidance would reach no juror; put {{criteria}} in its place in a new version of it"
        )
    for setting in question.settings:
        with_setting(question.panel.juror, setting)
    return Candidate("as it is", rubric, _trial(question.panel.juror, question.panel))


def _trial(jurors: Sequence[Juror], panel: Panel) -> tuple[Juror, ...]:
    """Return jurors as they sit in a trial: under their own names only with their own settings."""
    own = {juror.name: juror.profile() for juror in panel.juror}
    plain = [juror.model_copy(update={"reads": ""}) for juror in jurors]
    return tuple(
        juror
        if juror.profile() == own.get(juror.name)
        else juror.model_copy(update={"name": f"{juror.name[:50]}.try-{_digest(juror)}"})
        for juror in plain
    )


def _digest(juror: Juror) -> str:
    return sha256(repr(sorted(juror.profile().items())).encode()).hexdigest()[:6]


@dataclass
class _Improvement:
    """One improvement on its way."""

    engine: Engine
    question: ImproveQuestion
    views: Sequence[BenchmarkView]
    material: Material
    base: Candidate
    key: int
    tell: Tell
    patience: Patience
    budget: Budget

    def __post_init__(self) -> None:
        self.usd, self.usd_unknown = 0.0, 0
        self.tried: list[Tried] = []

    def run(self) -> Improved:
        """Work off what is left of it, and keep what came of it."""
        try:
            best = self._search()
        except _StoppedError as stop:
            return self._improved(Outcome.STOPPED, self.base, stopped=str(stop))
        if best is self.base:
            result = self._improved(Outcome.NONE_BETTER, best)
        else:
            keep_learned(self.engine, self.key, best.rubric)
            try:
                result = self._on_test(best)
            except _StoppedError as stop:
                return self._improved(Outcome.STOPPED, best, stopped=str(stop))
            keep_panel(OPERATOR, self.engine, result.panel, result.panel_file)
        end_improvement(self.engine, self.key, result.to_json())
        return result

    def _search(self) -> Candidate:
        """Return the candidate that is nearest to the clinicians on the part to choose by."""
        self._rate(self.base, TRAIN, CHOOSE)
        best, failed = self.base, list[Rubric]()
        for number in range(1, self.question.rounds + 1):
            proposed = self._proposed(number, best, failed)
            if proposed.rubric is None:
                self._note(Tried(f"proposal {number}", reason=proposed.reason))
                continue
            candidate = replace(best, change=f"proposal {number}", rubric=proposed.rubric)
            if self._is_better(candidate, best, TRAIN, CHOOSE):
                best, failed = candidate, []
            else:
                failed.append(candidate.rubric)
        for candidate in self._variants(best):
            if self._is_better(candidate, best, CHOOSE):
                best = candidate
        return best

    def _variants(self, best: Candidate) -> Sequence[Candidate]:
        """Return the candidates that need no proposal: with examples, and with other settings."""
        variants = []
        if self.question.examples:
            chosen = examples_of(self.material, self._jury(best), self.question.examples)
            rubric = self._version(best.rubric, "examples", example=tuple(chosen.values()))
            shown = frozenset(chosen)
            variants.append(Candidate(f"{len(chosen)} examples", rubric, best.jurors, shown))
        for setting in self.question.settings:
            jurors = _trial(with_setting(best.jurors, setting), self.question.panel)
            change = "=".join(setting)
            variants.append(Candidate(change, self._version(best.rubric, change), jurors))
        return variants

    def _version(self, rubric: Rubric, change: str, **changes: object) -> Rubric:
        named = {"version": f"{self.views[0].rubric.version}+{self.key}.{change}"}
        return rubric.model_copy(update={**named, "parent": rubric.sha256, **changes})

    def _is_better(self, candidate: Candidate, best: Candidate, *parts: str) -> bool:
        """Return whether a candidate is nearer to the clinicians on each part; the first no ends it."""
        means: dict[str, float] = {}
        for part in parts:
            self._rate(candidate, part)
            juries = self._jury(candidate), self._jury(best)
            on_both = [distances(self.material.parts[part], jury) for jury in juries]
            known = ~np.isnan(on_both[0] + on_both[1])
            own, other = (float(one[known].mean()) if known.any() else np.nan for one in on_both)
            means[part] = own
            if not own < other:
                break
        kept = len(means) == len(parts) and own < other
        self._note(
            Tried(candidate.change, means.get(TRAIN, np.nan), means.get(CHOOSE, np.nan), kept)
        )
        return kept

    def _proposed(self, number: int, best: Candidate, failed: Sequence[Rubric]) -> ProposedRubric:
        """Return what was proposed in a round, in an earlier run or now."""
        stored = proposed_rubrics(self.engine, self.key).get(number)
        if stored is not None and stored.status in USED:
            return stored
        request = ProposalRequest(
            *(self.key, number, self.views[0].rubric, best.rubric),
            worst_cases(self.material, self._jury(best)),
            tuple(failed),
        )
        proposer = self.question.proposing()
        self.tell(f"round {number}: {proposer.name} is asked for a better rubric")
        result = ask_for_rubric(
            self.engine, proposer, request, budget=self.budget, patience=self.patience
        )
        self._spent(result)
        stored = proposed_rubrics(self.engine, self.key).get(number)
        if stored is None or stored.status not in USED:
            why = stored.reason if stored else "it was not asked"
            raise _StoppedError(f"{proposer.name} proposed nothing in round {number}: {why}")
        return stored

    def _rate(self, candidate: Candidate, *parts: str) -> None:
        """Have the jurors of a candidate rate what they have not rated of some parts."""
        tasks = [replace(view, rubric=candidate.rubric) for view in self.views]
        panel = self.question.panel.model_copy(update={"juror": candidate.jurors})
        self._run(panel, candidate.change, tasks, parts)

    def _run(
        self, panel: Panel, change: str, tasks: Sequence[BenchmarkView], parts: Sequence[str]
    ) -> None:
        only = self.material.keys(*parts)
        self.tell(
            f"{change}: {len(panel.juror)} jurors rate {len(only)} responses of {', '.join(parts)}"
        )
        result = run_panel(
            *(self.engine, panel),
            concurrency=self.question.concurrency,
            budget=self.budget,
            tasks=tasks,
            only=only,
            patience=self.patience,
        )
        self._spent(result)
        if result.interrupted:
            raise _StoppedError("stopped by hand")
        if result.by_status.get(str(Status.BUDGET_STOPPED)):
            raise _StoppedError("the cap is reached")
        if result.stopped:
            told = "; ".join(f"{name}: {why}" for name, why in result.stopped.items())
            raise _StoppedError(f"jurors gave no answers: {told}")

    def _jury(self, candidate: Candidate) -> SeatedJury:
        names = [view.name for view in self.views]
        verdicts = juror_verdicts(self.engine, candidate.names, candidate.rubric, names)
        return SeatedJury(candidate.names, verdicts, candidate.shown)

    def _on_test(self, best: Candidate) -> Improved:
        """Open the test part, once, and return the gain on it."""
        panel = self.learned_panel(best)
        open_test(self.engine, self.key)
        self._run(self.question.panel, "as it is", self.views, (TEST,))
        self._run(panel, "as learned", self.views, (TEST,))
        names, rubric = [view.name for view in self.views], self.views[0].rubric
        juries = []
        for one in (self.question.panel, panel):
            jurors = tuple(juror.name for juror in one.juror)
            juries.append(SeatedJury(jurors, juror_verdicts(self.engine, jurors, rubric, names)))
        gain = gain_on(self.material.parts[TEST], *juries)
        outcome = Outcome.BETTER if gain.is_shown else Outcome.NOT_SHOWN
        found = self._improved(outcome, best)
        icc = self._icc(juries[1].jurors, juries[0].jurors)
        text = panel_toml(panel)
        return replace(found, parts={**found.parts, TEST: gain}, icc=icc, panel_file=text)

    def learned_panel(self, best: Candidate) -> Panel:
        """Return the panel that was learned: its jurors, under new names, read the rubric."""

        def renamed(name: str) -> str:
            return f"{name.split('.v', 1)[0][:50]}.v{self.key}"

        panel, reads = self.question.panel, best.rubric.sha256
        jurors = tuple(
            juror.model_copy(update={"name": renamed(own.name), "reads": reads})
            for juror, own in zip(best.jurors, panel.juror, strict=True)
        )
        return panel.model_copy(update={"name": renamed(panel.name), "juror": jurors})

    def _icc(self, after: Sequence[str], before: Sequence[str]) -> IccGain | None:
        """Return both ICCs on the responses of both juries, counted in the ledger; None if undefined."""
        chosen = self.views[0].name if len(self.views) == 1 else None
        options = AnalysisOptions(benchmark=chosen, reps=self.question.reps)
        try:
            compared = compare_juries(
                self.engine, ComparisonQuestion(options, tuple(after), tuple(before))
            )
        except TooFew:
            return None
        row = compared.row
        return IccGain(
            *(row.icc_b, row.icc_a, row.difference, row.low, row.high, row.p),
            compared.decision.kind.value,
            row.n_tried,
        )

    def _improved(self, outcome: Outcome, best: Candidate, stopped: str = "") -> Improved:
        panel, rubric = self.learned_panel(best), best.rubric
        is_new = best is not self.base
        parts = {}
        if is_new:
            juries = self._jury(self.base), self._jury(best)
            parts = {part: gain_on(self.material.parts[part], *juries) for part in (TRAIN, CHOOSE)}
        return Improved(
            *(self.key, outcome),
            panel=panel.name if is_new else self.question.panel.name,
            jurors=tuple(juror.name for juror in (panel if is_new else self.question.panel).juror),
            rubric={
                name: getattr(rubric, name) for name in ("name", "version", "sha256", "parent")
            },
            split={
                part: {"instances": len(self.material.split()[part]), "responses": len(responses)}
                for part, responses in self.material.parts.items()
            },
            tried=tuple(self.tried),
            parts=parts,
            opened_before=self._opened_before(),
            simulated=any(juror.simulated for juror in self.question.panel.juror),
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped=stopped,
            diff=self._diff(rubric) if is_new else (),
        )

    def _diff(self, rubric: Rubric) -> tuple[str, ...]:
        """Return what differs from the rubric before, as a unified diff of both files."""
        before = self.base.rubric
        old, new = (f"{rubric_toml(one)}{one.prompt}".splitlines() for one in (before, rubric))
        names = before.version, rubric.version
        return tuple(difflib.unified_diff(old, new, *names, lineterm="", n=2))

    def _opened_before(self) -> int:
        """Return how many other improvements had opened a test part that shares instances with this one."""
        own = set(self.material.split()[TEST])
        return sum(
            one.opened is not None and one.id != self.key and bool(own & set(one.split[TEST]))
            for one in improvements(self.engine)
        )

    def _note(self, tried: Tried) -> None:
        self.tried.append(tried)
        self.tell(f"{tried.change}: {'kept' if tried.kept else tried.reason or 'not kept'}")

    def _spent(self, result: RunResult) -> None:
        self.usd += result.usd
        self.usd_unknown += result.usd_unknown
