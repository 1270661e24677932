"""Improve a jury by what clinicians said, and say with its interval how much better it is.

The clinicians' instances are split once, before anything is asked, and the split is kept. From `train`
come the cases that a model is shown and the examples that jurors are shown; which candidate is taken
is decided on `choose`; `test` is opened once, for the one that was taken. Every verdict and proposal
is stored with its cost under the rubric that it was made on, so that a run that was killed goes on
where it was, and no trial counts among the jury's own ratings.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
from sqlalchemy import Engine

from calibration.json_values import json_value
from calibration.learning import CHOOSE, TEST, TRAIN, PartGain, part_gain, split_instances
from calibration.scores import Array
from calibration.values import NAN
from data.errors import BadInput, TooFew, Unknown
from data.person import OPERATOR
from data.rubric import Example, Rubric, rubric_toml
from data.schema import Status
from data.study.improving import (
    JurorVerdict,
    ProposedRubric,
    RatedResponse,
    begin_improvement,
    end_improvement,
    improvements,
    juror_verdicts,
    keep_learned,
    open_test,
    proposed_rubrics,
    rated_responses,
)
from data.study.runs import keep_panel
from data.study.standing import BenchmarkView, benchmarks
from jury.admission import with_counted_prices
from jury.budget import Budget
from jury.estimate import estimate
from jury.panel import Juror, Panel, panel_toml
from jury.proposals import ProposalRequest, ask_for_rubric, words_of
from jury.run import run_panel
from jury.run_result import RunResult
from jury.task import Patience

MOST_CASES = 12
LONGEST_EXAMPLE = 6_000  # characters of the source, task and response of an example
ANSWERED = (Status.OK, Status.INVALID_JSON, Status.MISSING_CRITERION)
Parts = Mapping[str, tuple[RatedResponse, ...]]  # "train", "choose", "test" -> responses


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
    rounds, examples
        Proposals asked for, and responses with clinicians' scores that jurors are shown, at most.
    max_usd
        Cap on what is spent from here on, in US dollars.
    """

    panel: Panel
    benchmarks: tuple[str, ...] = ()
    rounds: int = 3
    examples: int = 3
    seed: int = 0
    max_usd: float | None = None
    concurrency: int | None = None

    @property
    def proposer(self) -> Juror:
        """The model that proposes: the panel's `proposer`, else its first juror."""
        return self.panel.proposer or self.panel.juror[0]

    def asked(self, rubric: Rubric) -> dict[str, Any]:
        """Return what makes it the same improvement when it is asked for again."""
        jurors = {juror.name: juror.profile() for juror in self.panel.juror}
        names = ("rounds", "examples", "seed")
        return {name: getattr(self, name) for name in names} | {
            "panel": self.panel.name,
            "jurors": jurors,
            "proposer": {"name": self.proposer.name} | self.proposer.profile(),
            "benchmarks": list(self.benchmarks),
            "rubric": rubric.sha256,
        }


class _StoppedError(Exception):
    """The improvement cannot go on now; what was done is stored."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A rubric to try; `shown`: responses, primary keys, that are examples in it."""

    change: str
    rubric: Rubric
    shown: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class _Seated:
    """Jurors with what they gave on a rubric: response -> juror -> verdict."""

    jurors: Sequence[str]
    verdicts: Mapping[int, Mapping[str, JurorVerdict]]
    shown: frozenset[int] = frozenset()

    def means(self, responses: Sequence[RatedResponse]) -> Array:
        """Return the mean over jurors of their means over criteria.

        NaN where a juror gave no whole verdict, or where they were shown the response.
        """
        means = []
        for one in responses:
            given = self.verdicts.get(one.response, {})
            is_known = one.response not in self.shown and all(j in given for j in self.jurors)
            points = (fmean(given[juror].scores.values()) for juror in self.jurors)
            means.append(fmean(points) if is_known else NAN)
        return np.array(means)


def improve(
    engine: Engine,
    question: ImproveQuestion,
    *,
    tell: Callable[[str], None] = lambda _: None,
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> dict[str, Any]:
    """Improve a jury, or go on where an earlier run stopped; one that has ended is read back.

    `tell` is called with a line for every step.

    Returns
    -------
    dict
        JSON values, as the study keeps them and docs/jury.md has them. `parts` has the gain on
        each part with its interval: "train" and "choose" flatter, as the rubric was made and chosen by
        them; "test" is absent until it is opened.

    Raises
    ------
    TooFew
        If a part would have fewer than 10 instances.
    BadInput
        If the question cannot be asked of this panel or study; nothing is sent then.
    """
    budget = Budget(question.max_usd)
    _refuse_panel(question)
    views = _views_on_one_rubric(benchmarks(engine), question.benchmarks)
    asked = question.asked(views[0].rubric)
    before = next((one for one in reversed(improvements(engine)) if one.asked == asked), None)
    if before and before.result:
        tell(f"improvement {before.id} has ended; its result is read back, nothing is sent")
        return dict(before.result)
    parts = _parts(engine, views, question.seed, before.split if before else None)
    split = {part: sorted({one.instance for one in parts[part]}) for part in parts}
    key = before.id if before else begin_improvement(engine, views[0].rubric, asked, split)
    return _Improvement(engine, question, views, parts, key, tell, patience, budget).run()


def estimate_improvement(engine: Engine, question: ImproveQuestion) -> dict[str, Any]:
    """Return what an improvement takes at most; nothing is sent or stored.

    Returns
    -------
    dict
        `split` (part -> responses), `verdicts`, `proposals`, and `usd_likely` of the verdicts, None
        where a price is not known. Examples make prompts longer, and what the study has already is
        not asked again: neither is in it.

    Raises
    ------
    TooFew, BadInput
        As `improve`.
    """
    _refuse_panel(question)
    views = _views_on_one_rubric(benchmarks(engine), question.benchmarks)
    parts = _parts(engine, views, question.seed)
    split = {part: len(responses) for part, responses in parts.items()}
    rows = estimate(
        engine,
        with_counted_prices(question.panel),
        tasks=[replace(v, rubric=v.rubric.model_copy(update={"version": "?"})) for v in views],
        only=_keys(parts, TRAIN, CHOOSE),
    )
    each = split[TRAIN] + split[CHOOSE]
    times = each * (1 + question.rounds) + split[CHOOSE] * bool(question.examples) + 2 * split[TEST]
    prices = [row.usd_likely for row in rows if row.usd_likely is not None]
    return {
        "split": split,
        "verdicts": times * len(rows),
        "proposals": question.rounds,
        "usd_likely": sum(prices) * times / each if len(prices) == len(rows) else None,
    }


@dataclass
class _Improvement:
    """One improvement on its way."""

    engine: Engine
    question: ImproveQuestion
    views: Sequence[BenchmarkView]
    parts: Parts
    key: int
    tell: Callable[[str], None]
    patience: Patience
    budget: Budget

    def __post_init__(self) -> None:
        self.usd, self.usd_unknown = 0.0, 0
        self.tried: list[dict[str, Any]] = []
        self.base = _Candidate("as it is", self.views[0].rubric)

    def run(self) -> dict[str, Any]:
        """Work off what is left of it, and keep what came of it."""
        best, gains = self.base, dict[str, PartGain]()
        try:
            best = self._search()
            if best is not self.base:
                keep_learned(self.engine, self.key, best.rubric)
                gains = {part: self._gain(best, part) for part in (TRAIN, CHOOSE)}
                gains[TEST] = self._on_test(best)
        except _StoppedError as stop:
            return self._result(Outcome.STOPPED, best, gains, str(stop))
        outcome = Outcome.NONE_BETTER
        if best is not self.base:
            outcome = Outcome.BETTER if gains[TEST].is_shown else Outcome.NOT_SHOWN
        result = self._result(outcome, best, gains)
        if result["panel_file"]:
            keep_panel(OPERATOR, self.engine, result["panel"], result["panel_file"])
        end_improvement(self.engine, self.key, result)
        return result

    def _search(self) -> _Candidate:
        """Return the candidate that is nearest to the clinicians on the part to choose by."""
        self._rate(self.base, TRAIN, CHOOSE)
        best, failed = self.base, list[Rubric]()
        for number in range(1, self.question.rounds + 1):
            proposed = self._proposed(number, best, failed)
            if proposed.rubric is None:
                self._note(f"proposal {number}", {}, False, proposed.reason)
                continue
            candidate = _Candidate(f"proposal {number}", proposed.rubric)
            if self._is_better(candidate, best, TRAIN, CHOOSE):
                best, failed = candidate, []
            else:
                failed.append(candidate.rubric)
        if not self.question.examples:
            return best
        candidate = self._with_examples(best)
        return candidate if self._is_better(candidate, best, CHOOSE) else best

    def _with_examples(self, best: _Candidate) -> _Candidate:
        """Return a candidate with rated examples of train: the worst of each level of scores in turn.

        Responses that are too long to be read along with another one are left out.
        """
        by_level: dict[int, list[RatedResponse]] = {}
        for one in self._farthest(best):
            card = one.card
            if len(card.context + card.prompt + card.response) <= LONGEST_EXAMPLE:
                by_level.setdefault(round(_clinicians_mean(one)), []).append(one)
        turns = [
            one
            for turn in range(max(map(len, by_level.values()), default=0))
            for level in sorted(by_level)
            for one in by_level[level][turn : turn + 1]
        ]
        chosen = turns[: self.question.examples]
        rubric = best.rubric.model_copy(
            update={
                "version": f"{self.views[0].rubric.version}+{self.key}.examples",
                "parent": best.rubric.sha256,
                "example": tuple(map(_example, chosen)),
            }
        )
        shown = frozenset(one.response for one in chosen)
        return _Candidate(f"{len(chosen)} examples", rubric, shown)

    def _is_better(self, candidate: _Candidate, best: _Candidate, *parts: str) -> bool:
        """Return whether a candidate is nearer to the clinicians on each part; the first no ends it."""
        means: dict[str, float] = {}
        is_better = False
        for part in parts:
            self._rate(candidate, part)
            gain = self._gain(candidate, part, best)
            means[part], is_better = gain.after, gain.after < gain.before
            if not is_better:
                break
        self._note(candidate.change, means, is_better)
        return is_better

    def _gain(self, candidate: _Candidate, part: str, before: _Candidate | None = None) -> PartGain:
        """Return the gain of a candidate over another one, or the jury as it is, on their trial."""
        juries = (self._on(self.question.panel, one) for one in (before or self.base, candidate))
        return _gain_of(self.parts[part], *juries)

    def _on(self, panel: Panel, candidate: _Candidate) -> _Seated:
        names = [view.name for view in self.views]
        verdicts = juror_verdicts(self.engine, panel.jury, candidate.rubric, names)
        return _Seated(panel.jury, verdicts, candidate.shown)

    def _farthest(self, best: _Candidate) -> list[RatedResponse]:
        """Return the responses of train that jury and clinicians both rated, the farthest apart first."""
        responses = self.parts[TRAIN]
        means = self._on(self.question.panel, best).means(responses)
        rows = [
            (-abs(mean - _clinicians_mean(one)), one.response_id, one)
            for mean, one in zip(means, responses, strict=True)
            if not np.isnan(mean)
        ]
        return [one for *_, one in sorted(rows, key=lambda row: row[:2])]

    def _proposed(self, number: int, best: _Candidate, failed: Sequence[Rubric]) -> ProposedRubric:
        """Return what was proposed in a round, in an earlier run or now."""
        stored = proposed_rubrics(self.engine, self.key).get(number)
        if stored is not None and stored.status in ANSWERED:
            return stored
        verdicts = self._on(self.question.panel, best).verdicts
        worst = self._farthest(best)[:MOST_CASES]
        cases = tuple((one, verdicts[one.response]) for one in worst)
        request = ProposalRequest(
            self.key, number, self.views[0].rubric, best.rubric, cases, tuple(failed)
        )
        proposer = self.question.proposer
        self.tell(f"round {number}: {proposer.name} is asked for a better rubric")
        self._spent(ask_for_rubric(self.engine, proposer, request, self.budget, self.patience))
        stored = proposed_rubrics(self.engine, self.key).get(number)
        if stored is None or stored.status not in ANSWERED:
            why = stored.reason if stored else "it was not asked"
            raise _StoppedError(f"{proposer.name} proposed nothing in round {number}: {why}")
        return stored

    def _rate(self, candidate: _Candidate, *parts: str) -> None:
        """Have the jurors rate on a candidate what they have not rated of some parts."""
        tasks = [replace(view, rubric=candidate.rubric) for view in self.views]
        self._run(self.question.panel, candidate.change, tasks, parts)

    def _run(
        self, panel: Panel, change: str, tasks: Sequence[BenchmarkView], parts: Sequence[str]
    ) -> None:
        only = _keys(self.parts, *parts)
        self.tell(
            f"{change}: {len(panel.juror)} jurors rate {len(only)} responses of {', '.join(parts)}"
        )
        result = run_panel(
            self.engine,
            panel,
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

    def _on_test(self, best: _Candidate) -> PartGain:
        """Open the test part, once, and return the gain on it, by what the study keeps as ratings."""
        learned = self._learned_panel(best)
        open_test(self.engine, self.key)
        self._run(self.question.panel, "as it is", self.views, (TEST,))
        self._run(learned, "as learned", self.views, (TEST,))
        rated_on = _Candidate("", self.views[0].rubric)
        juries = (self._on(panel, rated_on) for panel in (self.question.panel, learned))
        return _gain_of(self.parts[TEST], *juries)

    def _learned_panel(self, best: _Candidate) -> Panel:
        """Return the panel that was learned: its jurors, under new names, read the rubric."""
        panel, reads = self.question.panel, best.rubric.sha256
        jurors = tuple(
            juror.model_copy(update={"name": f"{juror.name[:50]}.v{self.key}", "reads": reads})
            for juror in panel.juror
        )
        return panel.model_copy(update={"name": f"{panel.name[:50]}.v{self.key}", "juror": jurors})

    def _result(
        self,
        outcome: Outcome,
        best: _Candidate,
        gains: Mapping[str, PartGain],
        stopped: str = "",
    ) -> dict[str, Any]:
        """Return what came of it, as JSON values."""
        is_new, rubric, old = best is not self.base, best.rubric, self.base.rubric
        panel = self._learned_panel(best) if is_new else self.question.panel
        test = {one.instance for one in self.parts[TEST]}
        others = (one for one in improvements(self.engine) if one.id != self.key and one.opened)
        before, after = (f"{rubric_toml(one)}{one.prompt}".splitlines() for one in (old, rubric))
        diff = difflib.unified_diff(before, after, old.version, rubric.version, lineterm="", n=2)
        named = ("name", "version", "sha256", "parent")
        body: dict[str, Any] = json_value(
            {
                "id": self.key,
                "outcome": outcome,
                "panel": panel.name,
                "jurors": panel.jury,
                "rubric": {name: getattr(rubric, name) for name in named},
                "split": {
                    part: {"instances": len({r.instance for r in rows}), "responses": len(rows)}
                    for part, rows in self.parts.items()
                },
                "tried": self.tried,
                "parts": gains,
                "opened_before": sum(bool(test & set(one.split[TEST])) for one in others),
                "simulated": any(juror.simulated for juror in panel.juror),
                "usd": round(self.usd, 9),
                "usd_unknown": self.usd_unknown,
                "stopped": stopped,
                "diff": [*diff],
                "panel_file": panel_toml(panel) if TEST in gains else "",
            }
        )
        return body

    def _note(self, change: str, means: Mapping[str, float], kept: bool, reason: str = "") -> None:
        far = {part: means.get(part, NAN) for part in (TRAIN, CHOOSE)}
        self.tried.append({"change": change, **far, "kept": kept, "reason": reason})
        self.tell(f"{change}: {'kept' if kept else reason or 'not kept'}")

    def _spent(self, result: RunResult) -> None:
        self.usd += result.usd
        self.usd_unknown += result.usd_unknown


def _refuse_panel(question: ImproveQuestion) -> None:
    """Refuse a panel that has learned, or a proposer at a host where the panel sends no text."""
    panel, proposer = question.panel, question.proposer
    if any(juror.reads for juror in panel.juror):
        raise BadInput(
            f"panel {panel.name}: has learned already (`reads`); give the panel that it came from, with "
            "more rounds or another proposer"
        )
    about = f"panel {panel.name}, proposer {proposer.name}"
    if not proposer.simulated and proposer.place not in panel.hosts():
        raise BadInput(
            f"{about}: its host {proposer.place} receives no text from this panel, whose jurors are at "
            f"{', '.join(panel.hosts()) or 'no host'}; name a model at one of them"
        )
    if proposer.simulated != any(juror.simulated for juror in panel.juror):
        raise BadInput(f"{about}: a simulated model and real jurors do not mix")


def _views_on_one_rubric(
    views: Sequence[BenchmarkView], names: Sequence[str]
) -> tuple[BenchmarkView, ...]:
    """Return the benchmarks that are named, or all; they must be rated on one rubric."""
    known = {view.name: view for view in views}
    if absent := [name for name in names if name not in known]:
        raise Unknown(f"benchmark {absent[0]!r}: the study has {', '.join(known) or 'none'}")
    chosen = tuple(known[name] for name in names or known)
    if len({view.rubric.sha256 for view in chosen}) > 1:
        raise Unknown(
            "a jury learns one rubric at a time, and these benchmarks are rated on several: name those of "
            "one rubric with --benchmark: "
            + ", ".join(f"{view.name} ({view.rubric.name})" for view in chosen)
        )
    if compared := [view.name for view in chosen if view.rubric.compares]:
        raise BadInput(
            f"{', '.join(compared)}: what is improved is how a jury rates responses, not pairs; name the "
            "others with --benchmark"
        )
    if by_points := [view.name for view in chosen if view.rubric.points]:
        raise Unknown(
            f"benchmark {by_points[0]}: is rated by points of the case, each case with its own; there is "
            "no one rubric to better. Correct the points instead (`medjury study points`)"
        )
    if not chosen:
        raise TooFew("the study has no benchmark")
    if "{{criteria}}" not in chosen[0].rubric.prompt:
        raise BadInput(
            f"rubric {chosen[0].rubric.name}: its prompt writes the criteria out and has no {{{{criteria}}}}, "
            "so that guidance would reach no juror; put {{criteria}} in its place in a new version of it"
        )
    return chosen


def _parts(
    engine: Engine,
    views: Sequence[BenchmarkView],
    seed: int,
    kept: Mapping[str, Sequence[int]] | None = None,
) -> Parts:
    """Return the responses that clinicians rated whole, in the parts of a new or a kept split.

    Instances that came, or were rated, after a split was kept are in no part.
    """
    rated = [one for view in views for one in rated_responses(engine, view.name, view.rubric)]
    if not rated:
        raise TooFew("no clinician has rated a response of these benchmarks whole")
    split = kept or split_instances(_strata(rated), seed)
    part_of = {instance: part for part, members in split.items() for instance in members}
    return {part: tuple(r for r in rated if part_of.get(r.instance) == part) for part in split}


def _strata(rated: Sequence[RatedResponse]) -> dict[int, tuple[str, int]]:
    """Return instance -> its benchmark and in which third of it the clinicians' scores are."""
    strata: dict[int, tuple[str, int]] = {}
    for benchmark, group in groupby(rated, key=lambda one: one.benchmark):
        means: dict[int, list[float]] = {}
        for one in group:
            means.setdefault(one.instance, []).append(_clinicians_mean(one))
        ordered = sorted(means, key=lambda instance: (fmean(means[instance]), instance))
        for place, instance in enumerate(ordered):
            strata[instance] = benchmark, 3 * place // len(ordered)
    return strata


def _keys(parts: Parts, *names: str) -> frozenset[int]:
    return frozenset(one.response for name in names for one in parts[name])


def _clinicians_mean(response: RatedResponse) -> float:
    """Return the mean over clinicians of their means over criteria."""
    return fmean(fmean(one.scores.values()) for one in response.readings)


def _gain_of(responses: Sequence[RatedResponse], before: _Seated, after: _Seated) -> PartGain:
    """Return what a change of jury did on some responses."""
    clinicians = np.array([_clinicians_mean(one) for one in responses])
    instances = np.array([one.instance for one in responses], dtype=np.intp)
    return part_gain(clinicians, before.means(responses), after.means(responses), instances)


def _example(response: RatedResponse) -> Example:
    card, criteria = response.card, response.readings[0].scores
    return Example(
        context=card.context,
        prompt=card.prompt,
        response=card.response,
        scores={name: tuple(one.scores[name] for one in response.readings) for name in criteria},
        why=" | ".join(line for one in response.readings for line in words_of(one)),
    )
