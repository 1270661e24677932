"""What claims gain and cost: the jury that judges claims beside the plain one, on the same responses."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from sqlalchemy import Engine

from calibration.codes import NoteCode as Code
from calibration.messages.form import counted
from calibration.tables.claims import (
    CLAIMS,
    PRICES,
    ClaimCounts,
    PriceRow,
    claims_lines,
    price_line,
)
from calibration.tables.juries import COMPARISON
from calibration.tables.numbers import PAGE, Typeface
from calibration.tables.spec import Table, laid_out
from calibration.values import NAN, AnalysisOptions, Note, note
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
from data.queries.costs import judges_of_claims
from data.queries.jury import juror_cards
from data.queries.study import BenchmarkView
from data.schema import Attempt, ClaimOrigin, ClaimSplit
from jury.panel import Panel
from medjury.services.juries import ComparedJuries, ComparisonQuestion, Tick, compare_juries


@dataclass(frozen=True, slots=True)
class ClaimsJury:
    """Jurors who judge the claims of one splitter, and derive one criterion by one formula.

    `seats` are pairs: a juror who judges claims, and the one whose plain verdict it completes.
    """

    splitter: str
    criterion: str
    formula: str
    seats: tuple[tuple[str, str], ...]

    @property
    def judges(self) -> tuple[str, ...]:
        """Return those who judge claims."""
        return tuple(judge for judge, _ in self.seats)

    @property
    def plain(self) -> tuple[str, ...]:
        """Return those who gave the plain verdicts."""
        return tuple(plain for _, plain in self.seats)


def jury_of(panel: Panel) -> ClaimsJury:
    """Return the jury of a panel that judges claims.

    Raises
    ------
    BadInput
        If it has no `[claims]`.
    """
    if panel.claims is None or panel.splitting is None:
        raise BadInput(
            f"panel {panel.name}: has no table [claims]; docs/claims.md says how to write it"
        )
    seats = zip(panel.judging, panel.juror, strict=True)
    return ClaimsJury(
        *(panel.splitting.name, panel.claims.criterion, panel.claims.formula),
        tuple((judge.name, juror.name) for judge, juror in seats),
    )


def juries_of_claims(engine: Engine) -> list[ClaimsJury]:
    """Return the juries of a study that judge claims, each with all of its jurors; [] without any."""
    seats: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
    for judge, derived in judges_of_claims(engine).items():
        kind = judge.removeprefix(derived["of"])  # two panels may name those who judge differently
        key = derived["splitter"], derived["criterion"], derived["formula"], kind
        seats.setdefault(key, []).append((judge, derived["of"]))
    return [
        ClaimsJury(splitter, criterion, formula, tuple(own))
        for (splitter, criterion, formula, _), own in sorted(seats.items())
    ]


@dataclass(frozen=True, slots=True)
class ClaimsQuestion:
    """What is asked: of which jury, with which options, and whether of the criteria's mean.

    Without `composite` both juries are compared on the criterion that is derived.
    """

    jury: ClaimsJury
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
    composite: bool = False


def claims_figures(
    engine: Engine, question: ClaimsQuestion, *, tick: Tick | None = None
) -> ClaimsFigures:
    """Return the gain and the price of claims; the comparison counts in the ledger.

    `tick` is as in `compare_juries`.

    Raises
    ------
    BadRubric
        If a benchmark's rubric has not the criterion.
    Unknown
        If the benchmark that is named is not there.
    Unrated
        If no response has been rated by all jurors of both juries.
    TooFew
        If the juries cannot be compared.
    """
    jury, options = question.jury, question.options
    tasks = _tasks(engine, options.benchmark)
    for task in tasks:
        refuse_criterion(task.rubric, jury.criterion)
    splitter = rater_key(engine, jury.splitter)
    plain, judging = (
        [rater_key(engine, name) for name in names] for names in (jury.plain, jury.judges)
    )
    both = _rated_by_all(engine, tasks, [*plain, *judging])
    if not both:
        raise Unrated(
            f"no response has been rated by all of {', '.join([*jury.plain, *jury.judges])}: "
            "`medjury jury run PANEL` asks for what is missing"
        )
    criterion = None if question.composite else jury.criterion
    options = replace(options, criterion=criterion)
    comparison = ComparisonQuestion(options, jury.judges, jury.plain)
    compared = compare_juries(engine, comparison, tick=tick)
    price = ClaimsPrice(
        spent_on(engine, Attempt, plain, both),
        spent_on(engine, ClaimSplit, [splitter], both),
        spent_on(engine, Attempt, judging, both),
    )
    return ClaimsFigures(
        *(compared.row.benchmark, jury.criterion, jury.formula, jury.splitter),
        *(len(both), compared, price),
        replace(_counts(engine, tasks, jury), notes=_simulated(compared.row.simulated)),
        composite=question.composite,
    )


def figures_tables(figures: ClaimsFigures, face: Typeface = PAGE) -> tuple[Table, Table, Table]:
    """Return both juries side by side, what both cost, and the claims, as tables."""
    from calibration.juries.comparison import compared_rows

    compared, price = figures.compared, figures.price
    question = compared.question
    rows = compared_rows(compared.row, question.first, question.second)
    on = "composite" if figures.composite else figures.criterion
    steps = {
        "plain jury": price.plain,
        "splitting": price.split,
        "judging claims": price.judged,
        "jury of claims, in all": price.whole,
    }
    notes = figures.counts.notes
    prices = [
        PriceRow(name, spent.calls, spent.usd, spent.unknown, notes=notes)
        for name, spent in steps.items()
    ]
    title = f"{PRICES.caption} on the {counted(figures.n_both, 'response')} that both rated"
    return (
        laid_out(
            COMPARISON, rows, face, caption=f"{figures.benchmark}, {on}: {COMPARISON.caption}"
        ),
        laid_out(PRICES, prices, face, caption=title),
        laid_out(CLAIMS, [figures.counts], face),
    )


def figures_lines(figures: ClaimsFigures) -> tuple[str, ...]:
    """Return what is to be known beside the tables, what every report owes its reader last."""
    lines = (
        price_line(figures.price.usd_ratio),
        f"{figures.criterion} is derived from the answers to claims by the formula {figures.formula}",
        *claims_lines(figures.counts),
        *figures.compared.told,
    )
    return tuple(filter(None, lines))


def _simulated(raters: Sequence[str]) -> tuple[Note, ...]:
    return (note(Code.SIMULATED, raters=raters),) if raters else ()


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


def _counts(engine: Engine, tasks: Iterable[BenchmarkView], jury: ClaimsJury) -> ClaimCounts:
    stored: list[StoredClaims] = []
    shares, outdated, answers = list[float](), set[int](), list[float]()
    splitter = rater_key(engine, jury.splitter)
    keys = {judge: rater_key(engine, judge) for judge in jury.judges}
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
            sha = _rubric_of(task, jury, one)
            for judge in jury.judges if one.claims else ():
                if (key, sha) in rated[judge] and key in whole[judge]:
                    answers += given_on(engine, keys[judge], key, sha)
                elif (key, task.rubric.sha256) in rated[judge]:
                    outdated.add(key)
    failed = Counter(status for status, _ in split_failures(engine, splitter).values())
    sizes = [len(one.claims) for one in stored if one.claims]
    return ClaimCounts(
        splitter=jury.splitter,
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


def _rubric_of(task: BenchmarkView, jury: ClaimsJury, one: StoredClaims) -> str:
    if not one.claims:
        return ""
    return claims_rubric(task.rubric, jury.criterion, jury.formula, one.claims).sha256
