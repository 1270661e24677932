"""Improve a jury by what clinicians said, and say honestly how much better it is.

The clinicians' instances are split once, before anything is asked, and the split is kept. From `train`
come the cases that a model is shown and the examples that jurors are shown; which candidate is taken
is decided on `choose`; `test` is opened once, for the one that was taken. Every verdict and proposal
is stored with its cost under the rubric that it was made on, so that a run that was killed goes on
where it was, and no trial counts among the jury's own ratings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy import Engine

from calibration.learning import CHOOSE, TEST, TRAIN
from calibration.values import AnalysisOptions
from data.errors import BadInput, TooFew
from data.person import OPERATOR
from data.rubric import Rubric
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
from jury.budget import Budget
from jury.panel import Juror, Panel, panel_toml
from jury.proposals import ProposalRequest, ask_for_rubric
from jury.run import run_panel
from jury.run_result import RunResult
from jury.session import Patience
from medjury.services.improvement import (
    IccGain,
    Improved,
    ImproveQuestion,
    Outcome,
    Tried,
    improved_of,
    rubric_diff,
    seated,
    trial_juror,
    with_setting,
)
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
    own = {juror.name: juror.profile() for juror in panel.juror}
    return tuple(trial_juror(juror, own.get(juror.name)) for juror in jurors)


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
        reading, result = ask_for_rubric(
            self.engine, proposer, request, budget=self.budget, patience=self.patience
        )
        self._spent(result)
        if reading is None or reading.status not in USED:
            why = reading.reason if reading else "the next call could pass the cap"
            raise _StoppedError(f"{proposer.name} proposed nothing in round {number}: {why}")
        return ProposedRubric(number, reading.status, reading.reason, reading.rubric)

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
        jurors = tuple(
            juror.model_copy(update={"name": own.name})
            for juror, own in zip(best.jurors, self.question.panel.juror, strict=True)
        )
        name = f"{self.question.panel.name.split('.v', 1)[0][:50]}.v{self.key}"
        reading = seated(jurors, self.key, best.rubric.sha256)
        return self.question.panel.model_copy(update={"name": name, "juror": reading})

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
                "name": rubric.name,
                "version": rubric.version,
                "sha256": rubric.sha256,
                "parent": rubric.parent,
            },
            split=self._counts(),
            tried=tuple(self.tried),
            parts=parts,
            opened_before=self._opened_before(),
            simulated=any(juror.simulated for juror in self.question.panel.juror),
            usd=round(self.usd, 9),
            usd_unknown=self.usd_unknown,
            stopped=stopped,
            diff=rubric_diff(self.base.rubric, rubric) if is_new else (),
        )

    def _counts(self) -> dict[str, dict[str, int]]:
        return {
            part: {
                "instances": len(self.material.split()[part]),
                "responses": len(responses),
            }
            for part, responses in self.material.parts.items()
        }

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
