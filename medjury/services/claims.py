"""What claims gain and cost: the jury that judges claims beside the plain one, on the same responses."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sqlalchemy import Engine

from calibration.values import NAN, AnalysisOptions
from data.claims import ABSENT, CONTRADICTED, SUPPORTED, claims_rubric, coverage, refuse_criterion
from data.errors import BadInput, Unknown, Unrated
from data.queries import benchmarks
from data.queries.claims import (
    Spent,
    StoredClaims,
    given_on,
    newest_claims,
    rated_by,
    rater_key,
    spent_on,
    split_failures,
    whole_verdicts,
)
from data.queries.jury import juror_cards
from data.queries.study import BenchmarkView
from data.schema import Attempt, ClaimOrigin, ClaimSplit
from jury.panel import Juror, Panel
from medjury.services.juries import ComparedJuries, ComparisonQuestion, compare_juries


@dataclass(frozen=True, slots=True)
class ClaimsQuestion:
    """What is asked: of which panel, with which options, and whether of the criteria's mean.

    Without `composite` both juries are compared on the criterion that is derived.
    """

    panel: Panel
    options: AnalysisOptions
    composite: bool = False


@dataclass(frozen=True, slots=True)
class ClaimsPrice:
    """What both juries cost on the responses that both rated.

    The jury that judges claims needs all three: its plain verdicts, the splitting and the judging.
    `usd_ratio` is all three to the plain verdicts; NaN where a price is unknown or those cost nothing.
    """

    plain: Spent
    split: Spent
    judged: Spent

    @property
    def whole(self) -> Spent:
        """What the jury that judges claims costs."""
        return self.plain.plus(self.split).plus(self.judged)

    @property
    def usd_ratio(self) -> float:
        """How many times as much it costs as the plain jury."""
        if self.whole.unknown or not self.plain.usd:
            return NAN
        return self.whole.usd / self.plain.usd


@dataclass(frozen=True, slots=True)
class ClaimCounts:
    """The claims of the responses that a panel's splitter has split.

    Attributes
    ----------
    n_responses
        With a list; `n_empty` of them state nothing that can be checked.
    n_corrected
        Whose list people have corrected.
    n_claims, fewest, mean, most
        In all, and of one response, those without any left out; NaN where there are none.
    coverage
        Mean share of a response's words, 0 to 1, that its claims quote; NaN where there are none.
    supported, contradicted, absent
        Answers of all jurors on the lists that count.
    n_outdated
        Responses whose list was corrected since a score was derived, which counts no longer: run the panel again.
    failed
        Status -> responses whose splitting ended so.
    """

    n_responses: int
    n_empty: int
    n_corrected: int
    n_claims: int
    fewest: float
    mean: float
    most: float
    coverage: float
    supported: int
    contradicted: int
    absent: int
    n_outdated: int
    failed: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class ClaimsFigures:
    """Both juries side by side; `both` are the responses that each juror of both has rated."""

    benchmark: str
    criterion: str
    formula: str
    splitter: str
    n_both: int
    compared: ComparedJuries
    price: ClaimsPrice
    counts: ClaimCounts


def claims_figures(engine: Engine, question: ClaimsQuestion) -> ClaimsFigures:
    """Return the gain and the price of claims; the comparison counts in the ledger.

    Raises
    ------
    BadInput
        If the panel has no `[claims]`, or a benchmark's rubric not the criterion.
    Unknown
        If the benchmark that is named is not there.
    Unrated
        If no response has been rated by all jurors of both juries.
    TooFew
        If the juries cannot be compared.
    """
    panel, options = question.panel, question.options
    if panel.claims is None or panel.splitting is None:
        raise BadInput(
            f"panel {panel.name}: has no table [claims]; docs/claims.md says how to write it"
        )
    tasks = _tasks(engine, options.benchmark)
    for task in tasks:
        refuse_criterion(task.rubric, panel.claims.criterion)
    splitter = rater_key(engine, panel.splitting.name)
    plain, judging = (
        {juror.name: rater_key(engine, juror.name) for juror in jurors}
        for jurors in (panel.juror, panel.judging)
    )
    both = _rated_by_all(engine, tasks, [*plain.values(), *judging.values()])
    if not both:
        raise Unrated(
            f"no response has been rated by all of {', '.join([*plain, *judging])}: "
            "`medjury jury run PANEL` asks for what is missing"
        )
    criterion = None if question.composite else panel.claims.criterion
    compared = compare_juries(
        engine,
        ComparisonQuestion(replace(options, criterion=criterion), tuple(judging), tuple(plain)),
    )
    price = ClaimsPrice(
        spent_on(engine, Attempt, plain.values(), both),
        spent_on(engine, ClaimSplit, [splitter], both),
        spent_on(engine, Attempt, judging.values(), both),
    )
    return ClaimsFigures(
        *(compared.row.benchmark, panel.claims.criterion, panel.claims.formula),
        panel.splitting.name,
        len(both),
        compared,
        price,
        _counts(engine, tasks, splitter, panel.judging),
    )


def _tasks(engine: Engine, named: str | None) -> list[BenchmarkView]:
    known = benchmarks(engine)
    chosen = [one for one in known if named in (None, one.name)]
    if not chosen:
        names = ", ".join(one.name for one in known) or "none"
        raise Unknown(f"benchmark {named!r}: the study has {names}")
    return chosen


def _rated_by_all(
    engine: Engine, tasks: Iterable[BenchmarkView], raters: Sequence[int]
) -> set[int]:
    both = set[int]()
    for task in tasks:
        both |= set.intersection(*(set(whole_verdicts(engine, r, task.rubric)) for r in raters))
    return both


def _counts(
    engine: Engine, tasks: Iterable[BenchmarkView], splitter: int, judges: Sequence[Juror]
) -> ClaimCounts:
    stored: list[StoredClaims] = []
    shares, outdated, answers = list[float](), set[int](), list[float]()
    keys = {judge.name: rater_key(engine, judge.name) for judge in judges}
    rated = {name: rated_by(engine, key) for name, key in keys.items()}
    for task in tasks:
        whole = {name: whole_verdicts(engine, key, task.rubric) for name, key in keys.items()}
        lists = newest_claims(engine, splitter, task.name)
        stored += lists.values()
        texts = {
            shown.response: shown.card for shown in juror_cards(engine, task.name, task.rubric)
        }
        for key, one in lists.items():
            if one.claims and key in texts:
                shares.append(coverage(one.claims, texts[key].response))
            for judge in judges if one.claims else ():
                sha = _rubric_of(task, judge, one)
                if (key, sha) in rated[judge.name] and key in whole[judge.name]:
                    answers += given_on(engine, keys[judge.name], key, sha)
                elif (key, task.rubric.sha256) in rated[judge.name]:
                    outdated.add(key)
    failed = Counter(status for status, _ in split_failures(engine, splitter).values())
    sizes = [len(one.claims) for one in stored if one.claims]
    return ClaimCounts(
        n_responses=len(stored),
        n_empty=sum(not one.claims for one in stored),
        n_corrected=sum(one.origin == ClaimOrigin.PEOPLE for one in stored),
        n_claims=sum(sizes),
        fewest=min(sizes, default=NAN),
        mean=fmean(sizes) if sizes else NAN,
        most=max(sizes, default=NAN),
        coverage=fmean(shares) if shares else NAN,
        supported=answers.count(SUPPORTED),
        contradicted=answers.count(CONTRADICTED),
        absent=answers.count(ABSENT),
        n_outdated=len(outdated),
        failed=failed,
    )


def _rubric_of(task: BenchmarkView, judge: Juror, one: StoredClaims) -> str:
    derived = judge.claims
    if derived is None or not one.claims:
        return ""
    return claims_rubric(task.rubric, derived.criterion, derived.formula, one.claims).sha256
