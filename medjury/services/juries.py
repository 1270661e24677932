"""Which jury to take: every jury of the jurors already heard, ranked, and two of them compared.

Every jury that is looked at is noted in the study's ledger, which counts what was tried.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import Engine

from calibration.decision import Decision, DecisionKind
from calibration.notes import Figures, Note, note
from calibration.shared_notes import juries_words, tried_words
from calibration.values import COMBINED, AnalysisOptions
from data.errors import BadInput, NoStudy, TooFew, Unknown
from data.queries.costs import JurorCost, juror_costs
from data.queries.ledger import comparisons_besides, compositions_tried, fingerprint
from data.store.ledger import Evaluation, record_evaluations
from jury.cost import panel_usd
from jury.panel import read_panel
from medjury.services.record import steered
from medjury.services.scores import all_jurors, scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.differences import DifferenceRow
    from calibration.juries.ranking import Prices, Ranking
    from calibration.scope import Scope
    from calibration.scores import Scores

SIMULATED_PANEL = "simulated"
Tick = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class RankingQuestion:
    """What is asked of a ranking of juries.

    Attributes
    ----------
    options : whose scores, of what, and how resampled
    sizes : jurors of a jury; None is 1 to 5
    common : only responses that all jurors rated
    top : juries that are shown
    """

    options: AnalysisOptions
    sizes: range | None = None
    common: bool = False
    top: int = 10


@dataclass(frozen=True, slots=True)
class ComparisonQuestion:
    """What is asked of two juries: the jurors of each, and how both are judged."""

    options: AnalysisOptions
    first: tuple[str, ...]
    second: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class RankedJuries:
    """A ranking of juries, and which of them to take.

    Attributes
    ----------
    benchmark : the one that is ranked on, or "combined"
    juries_before, ways_before : tried on the study besides those ranked here
    made_up : jurors whose prices are made up
    silent : jurors who were asked and gave no rating
    told : lines that every report owes its reader
    unnoted : why the ledger could not be written, or ""
    """

    question: RankingQuestion
    benchmark: str
    ranking: "Ranking"
    decision: Decision
    juries_before: int
    ways_before: int
    made_up: tuple[str, ...]
    silent: tuple[str, ...]
    told: tuple[str, ...]
    unnoted: str

    @property
    def notes(self) -> list[Note]:
        """Return what must be known beside its tables, which themselves mark what is simulated."""
        before = note(
            "tried_before", _tried_before_words, juries=self.juries_before, ways=self.ways_before
        )
        unknown = self.ranking.n_unknown_cost
        without = [note("cost_unknown", _cost_unknown, juries=unknown)] if unknown else []
        prices = (
            [
                note(
                    "made_up_prices",
                    "US dollars at made-up prices of {jurors}; nothing was spent on them",
                    jurors=self.made_up,
                )
            ]
            if self.made_up
            else []
        )
        own = [remark for remark in self.ranking.notes if remark.code != "simulated"]
        return [before, *without, *prices, *own]


@dataclass(frozen=True, eq=False)
class ComparedJuries:
    """The paired difference of two juries, and which of them agrees better.

    `icc_first` and `icc_second` are each on all the responses that a jury itself has; `row` has
    both on the responses that both have. `told` and `unnoted` are as in `RankedJuries`.
    """

    question: ComparisonQuestion
    row: "DifferenceRow"
    icc_first: float
    icc_second: float
    decision: Decision
    told: tuple[str, ...]
    unnoted: str


def rank_juries(
    engine: Engine,
    question: RankingQuestion,
    *,
    tick: Tick | None = None,
    executor: Executor | None = None,
) -> RankedJuries:
    """Return every jury that the jurors of a study can make up, the best first.

    Parameters
    ----------
    engine : of the study
    question : what is asked
    tick : called with the share of the resamples that is done
    executor : where resamples are computed; None: here. The figures are the same

    Raises
    ------
    BadInput, Unknown, TooFew
        As `calibration.juries.ranking.jury_ranking`; where no juror has rated; and where there
        is no such benchmark, or no agreement on it.
    """
    options, scores = question.options, scores_of(engine, of_clinicians=True)
    names = options.jurors or tuple(all_jurors(scores))
    if not names:
        raise BadInput(
            "no juror has rated anything in this study: run a jury (`medjury jury run PANEL`; in the app: "
            "Jury lab)"
        )
    scope = _scope(scores, names, options, tick, executor)
    ranking, made_up = _ranked(engine, scope, question)
    entries = _ranked_entries(ranking, question, scope, fingerprint(scores.ratings))
    juries_before, ways_before = _tried_before(engine, entries, scope, ranking)
    return RankedJuries(
        question,
        scope.name,
        ranking,
        _recommended(engine, scores, question, (scope.name, ranking), is_made_up=bool(made_up)),
        juries_before,
        ways_before,
        made_up,
        silent=() if options.jurors else tuple(silent_jurors(engine, scores)),
        told=tuple(steered(engine)),
        unnoted=_unnoted(engine, entries),
    )


def _recommended(
    engine: Engine,
    scores: "Scores",
    question: RankingQuestion,
    ranked: "tuple[str, Ranking]",
    *,
    is_made_up: bool,
) -> Decision:
    """Return which jury to take, by the study's own verdict on it."""
    from calibration.juries.recommendation import recommendation, recommended_jurors, with_verdict
    from medjury.services.calibrate import verdicts_of

    (name, ranking), options = ranked, question.options
    advice, jurors = recommendation(ranking, is_made_up=is_made_up), recommended_jurors(ranking)
    if advice.kind is not DecisionKind.RECOMMENDED:
        return advice
    verdicts = verdicts_of(engine, scores, replace(options, jurors=jurors))
    return with_verdict(advice, verdicts.decisions[name])


def compare_juries(
    engine: Engine,
    question: ComparisonQuestion,
    *,
    tick: Tick | None = None,
    executor: Executor | None = None,
) -> ComparedJuries:
    """Return how much better one jury agrees with the clinicians than another.

    Parameters and exceptions are as in `rank_juries`.
    """
    from threadpoolctl import threadpool_limits

    from calibration.juries.comparison import compared_juries

    options, scores = question.options, scores_of(engine, of_clinicians=True)
    juries = question.first, question.second
    everybody = tuple(dict.fromkeys([*question.first, *question.second]))
    scope = _scope(scores, everybody, options, tick, executor)
    data, named = fingerprint(scores.ratings), f"jury:{', '.join(question.second)}"
    with threadpool_limits(1):
        first, second = (_own_entry(jury, scope, options, data) for jury in juries)
        first = replace(first, compared=[named])
        simulated = not scope.simulated.isdisjoint(everybody)
        besides = comparisons_besides(compositions_tried(engine), first, simulated=simulated)
        row = _difference(scope, juries, besides)
    return ComparedJuries(
        question,
        row,
        first.icc,
        second.icc,
        compared_juries(row, *juries),
        told=tuple(steered(engine)),
        unnoted=_unnoted(engine, [first, second]),
    )


def _scope(
    scores: "Scores",
    jurors: Sequence[str],
    options: AnalysisOptions,
    tick: Tick | None,
    executor: Executor | None,
) -> "Scope":
    """Return the benchmark asked for, or all combined, or the only one."""
    from calibration.scope import scopes, why_undefined_scope

    of_jurors = replace(options, jurors=tuple(jurors), executor=executor)
    every = {scope.name: scope for scope in scopes(scores, of_jurors)}
    name = options.benchmark or list(every)[-1]
    if name not in every:
        raise Unknown(f"no benchmark {name}: this study has {', '.join(every)}")
    if why := why_undefined_scope(scores, every[name]):
        raise TooFew(f"{name}: {why.text}; name another benchmark")
    return replace(every[name], tick=_Shares(tick, options.reps))


class _Shares:
    """Turns resamples done into the share of all of them."""

    def __init__(self, tick: Tick | None, reps: int) -> None:
        self.tick, self.reps, self.done = tick, reps, 0

    def __call__(self, resamples: int) -> None:
        self.done += resamples
        if self.tick:
            self.tick(self.done / self.reps)


def _ranked(
    engine: Engine, scope: "Scope", question: RankingQuestion
) -> tuple["Ranking", tuple[str, ...]]:
    """Return the ranking, and the jurors whose prices are made up."""
    from threadpoolctl import threadpool_limits

    from calibration.juries.ranking import RankingOptions, jury_ranking

    benchmark = None if scope.name == COMBINED else scope.name
    costs = juror_costs(engine, benchmark)
    made_up = made_up_costs(costs) if scope.simulated.issuperset(scope.jurors) else {}
    usd: Prices = {**{name: cost.usd_per_verdict for name, cost in costs.items()}, **made_up}
    ranking_options = RankingOptions(question.sizes, question.common, usd)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        ranking = jury_ranking(scope, ranking_options)
    return ranking, tuple(name for name in ranking.pool if name in made_up)


def made_up_costs(costs: Mapping[str, JurorCost]) -> dict[str, float]:
    """Return US dollars a verdict of simulated jurors, at the made-up prices of their panel.

    Nothing was spent on them; with these prices a demo has something to weigh. Where real jurors
    are ranked too, a simulated one costs nothing instead: made-up money is not added to real.
    """
    made_up = {}
    for juror in read_panel(SIMULATED_PANEL).juror:
        cost = costs.get(juror.name)
        if cost is None or not cost.simulated or not cost.verdicts:
            continue
        usd = panel_usd(juror, cost.tokens_in, cost.tokens_out)
        if usd is not None:
            made_up[juror.name] = usd / cost.verdicts
    return made_up


def _ranked_entries(
    ranking: "Ranking", question: RankingQuestion, scope: "Scope", data: str
) -> list[Evaluation]:
    method, criterion = question.options.method, question.options.criterion or ""
    return [
        Evaluation(
            jurors=row.jurors,
            benchmark=scope.name,
            method=method,
            fingerprint=data,
            n_responses=row.n_responses,
            icc=row.icc,
            criterion=criterion,
            instances=_responses(ranking, scope),
        )
        for row in ranking.rows
    ]


def _responses(ranking: "Ranking", scope: "Scope") -> str:
    """Return what the ledger calls the responses that were kept; empty for all."""
    is_complete = len(scope.grid.responses) == ranking.n_responses
    return "" if is_complete or not ranking.common else f"rated by all of {', '.join(ranking.pool)}"


def _tried_before(
    engine: Engine, entries: Sequence[Evaluation], scope: "Scope", ranking: "Ranking"
) -> tuple[int, int]:
    """Return the juries tried besides some entries, and in how many ways.

    Simulated juries count only beside simulated ones: no real one was chosen among them.
    """
    from calibration.report.ledger import different

    keys = {entry.key for entry in entries}
    rehearsal = not scope.simulated.isdisjoint(ranking.pool)
    besides = [
        entry
        for entry in compositions_tried(engine)
        if entry.key not in keys and (rehearsal or not entry.simulated)
    ]
    return different(besides), len(besides)


def _own_entry(
    jurors: Sequence[str], scope: "Scope", options: AnalysisOptions, data: str
) -> Evaluation:
    """Return a jury's entry in the ledger, with its ICC on all the responses that it has."""
    from calibration.agreement import PanelColumns, column_icc, columns

    pair = columns(scope.grid, PanelColumns(tuple(jurors), len(jurors)), options.method)
    icc = column_icc(pair.clinicians[pair.both], pair.scorer[pair.both], options.method)
    return Evaluation(
        jurors=jurors,
        benchmark=scope.name,
        method=options.method,
        fingerprint=data,
        n_responses=int(pair.both.sum()),
        icc=float(icc),
        criterion=options.criterion or "",
    )


def _difference(
    scope: "Scope", juries: tuple[Sequence[str], Sequence[str]], besides: int
) -> "DifferenceRow":
    """Return the paired difference, with how many comparisons were tried: it and those besides."""
    from calibration.agreement import PanelColumns
    from calibration.differences import difference_rows

    first, second = (PanelColumns(tuple(jury), len(jury)) for jury in juries)
    only = replace(scope, jury=first, metrics=())
    row = difference_rows(only, {", ".join(juries[1]): second})[-1]
    return replace(row, n_tried=besides + 1)


def _unnoted(engine: Engine, entries: Sequence[Evaluation]) -> str:
    """Note juries in the ledger; return why that could not be done, or ""."""
    try:
        record_evaluations(engine, entries)
    except NoStudy as error:
        return str(error)
    return ""


def _tried_before_words(figures: Figures) -> str:
    before = "tried on this study before, other than these: "
    before += tried_words(figures["juries"], figures["ways"]) if figures["ways"] else "none"
    return f"{before}; these are now in the ledger"


def _cost_unknown(figures: Figures) -> str:
    number = figures["juries"]
    return f"{number} {juries_words(number)} with a juror of unknown cost: not considered for best value"
