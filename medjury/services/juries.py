"""Which jury to take: every jury of the jurors already heard, ranked, and two of them compared.

Every jury that is looked at is noted in the study's ledger, which counts what was tried.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import Decision, DecisionKind
from calibration.notes import Note, note
from calibration.shared_notes import juries_words
from calibration.tables.juries import different, tried_words
from calibration.values import COMBINED, AnalysisOptions
from data.errors import BadInput, TooFew, Unknown
from data.schema import Composition
from data.study.costs import JurorCost, juror_costs
from data.study.ledger import Evaluation, comparisons_besides, compositions_tried, fingerprint
from jury.cost import panel_usd
from jury.panel import read_panel
from medjury.services.ledger import remembered
from medjury.services.record import steered
from medjury.services.scores import scores_of, silent_jurors

if TYPE_CHECKING:
    from calibration.differences import DifferenceRow
    from calibration.juries import JuryRow, Ranking
    from calibration.scope import Scope
    from calibration.scores import Scores

Tick = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class RankingQuestion:
    """What is asked of a ranking of juries: of how many jurors (None: 1 to 5); `top` are shown."""

    options: AnalysisOptions
    sizes: range | None = None
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

    `juries_before` were tried on the study besides those ranked here, in so many ways; the prices
    of `made_up` jurors are made up; `silent` ones were asked and gave no rating. `told` is what
    every report owes its reader, `unnoted` why the ledger could not be written, or "".
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
        before = "tried on this study before, other than these: "
        before += tried_words(self.juries_before, self.ways_before) if self.ways_before else "none"
        before += "; these are now in the ledger"
        notes = [note("tried_before", before, juries=self.juries_before, ways=self.ways_before)]
        if unknown := self.ranking.n_unknown_cost:
            words = (
                f"{unknown} {juries_words(unknown)} with a juror of unknown cost: not considered "
            )
            notes.append(note("cost_unknown", words + "for best value", juries=unknown))
        if self.made_up:
            words = "US dollars at made-up prices of {jurors}; nothing was spent on them"
            notes.append(note("made_up_prices", words, jurors=self.made_up))
        return notes + [own for own in self.ranking.notes if own.code != "simulated"]


@dataclass(frozen=True, eq=False)
class ComparedJuries:
    """The paired difference of two juries, and which of them agrees better.

    `icc_first` and `icc_second` are each on all the responses that a jury itself has; `row` has
    both on the responses that both have. `told` and `unnoted` are as in `RankedJuries`.
    """

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

    `tick` is called with the share of the resamples that is done; `executor` computes them (None:
    here) and changes no figure.

    Raises
    ------
    BadInput, Unknown, TooFew
        As `calibration.juries.jury_ranking`; where no juror has rated; and where there
        is no such benchmark, or no agreement on it.
    """
    from threadpoolctl import threadpool_limits

    from calibration.juries import jury_ranking
    from calibration.jury_decisions import recommendation, recommended_jurors, with_verdict
    from medjury.services.calibrate import verdicts_of

    options, scores = question.options, scores_of(engine)
    names = options.jurors or tuple(scores.all_jurors())
    if not names:
        raise BadInput(
            "no juror has rated anything in this study: run a jury (`medjury jury run PANEL`; in the app: "
            "Jury)"
        )
    scope = _scope(scores, names, replace(options, executor=executor))
    costs = juror_costs(engine, None if scope.name == COMBINED else scope.name)
    made_up = made_up_costs(costs) if scope.simulated.issuperset(scope.jurors) else {}
    usd = {name: cost.usd_per_verdict for name, cost in costs.items()} | made_up
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        ranking = jury_ranking(scope, question.sizes, usd, tick)
    data, pool = fingerprint(scores.ratings), ", ".join(ranking.pool)
    entries = [
        _entry(
            *(scope, data, row.jurors, row.n_responses, row.icc),
            "" if row.n_responses == ranking.n_responses else f"rated by all of {pool}",
        )
        for row in ranking.rows
    ]
    rehearsal = not scope.simulated.isdisjoint(ranking.pool)
    before = _before(engine, entries, rehearsal=rehearsal)
    priced = tuple(name for name in ranking.pool if name in made_up)
    advice = recommendation(ranking, is_made_up=bool(priced))
    if advice.kind is DecisionKind.RECOMMENDED:
        of_jury = replace(options, jurors=recommended_jurors(ranking))
        advice = with_verdict(advice, verdicts_of(engine, scores, of_jury).decisions[scope.name])
    return RankedJuries(
        *(question, scope.name, ranking, advice, different(before), len(before), priced),
        silent=() if options.jurors else tuple(silent_jurors(engine, scores)),
        told=tuple(steered(engine)),
        unnoted=remembered(engine, entries),
    )


def compare_juries(engine: Engine, question: ComparisonQuestion) -> ComparedJuries:
    """Return how much better one jury agrees with the clinicians than another.

    Exceptions are as in `rank_juries`.
    """
    from threadpoolctl import threadpool_limits

    from calibration.columns import PanelColumns, column_icc, columns
    from calibration.differences import paired_rows
    from calibration.jury_decisions import compared_juries

    options, scores = question.options, scores_of(engine)
    juries = question.first, question.second
    everybody = tuple(dict.fromkeys([*question.first, *question.second]))
    scope = _scope(scores, everybody, options)
    data, named = fingerprint(scores.ratings), f"jury:{', '.join(question.second)}"
    panels = [PanelColumns(jury, len(jury)) for jury in juries]
    with threadpool_limits(1):
        entries = []
        for panel in panels:
            pair = columns(scope.grid, panel, options.method)
            own = pair.clinicians[pair.both], pair.scorer[pair.both]
            icc = column_icc(*own, options.method)
            entries.append(_entry(scope, data, panel.members, len(own[0]), icc))
        row = paired_rows(replace(scope, jury=panels[0]), [(named, panels[1])])[0]
    first, second = replace(entries[0], compared=[named]), entries[1]
    simulated = not scope.simulated.isdisjoint(everybody)
    besides = comparisons_besides(compositions_tried(engine), first, simulated=simulated)
    row = replace(row, n_tried=besides + 1)
    decision, unnoted = compared_juries(row, *juries), remembered(engine, [first, second])
    return ComparedJuries(row, first.icc, second.icc, decision, tuple(steered(engine)), unnoted)


def _scope(scores: "Scores", jurors: Sequence[str], options: AnalysisOptions) -> "Scope":
    """Return the benchmark asked for, or all combined, or the only one."""
    from calibration.scope import scopes, why_undefined_scope

    of_jurors = replace(options, jurors=tuple(jurors))
    every = {scope.name: scope for scope in scopes(scores, of_jurors)}
    name = options.benchmark or list(every)[-1]
    if name not in every:
        raise Unknown(f"no benchmark {name}: this study has {', '.join(every)}")
    if why := why_undefined_scope(scores, every[name]):
        raise TooFew(f"{name}: {why.text}; name another benchmark")
    return every[name]


def _before(engine: Engine, entries: Sequence[Evaluation], *, rehearsal: bool) -> list[Composition]:
    """Return what the ledger has besides; no real jury was chosen among simulated ones."""
    keys = {entry.key for entry in entries}
    tried = compositions_tried(engine)
    return [one for one in tried if one.key not in keys and (rehearsal or not one.simulated)]


def made_up_costs(costs: Mapping[str, JurorCost]) -> dict[str, float]:
    """Return US dollars a verdict of simulated jurors, at the made-up prices of their panel.

    Nothing was spent on them; with these prices a demo has something to weigh. Where real jurors
    are ranked too, a simulated one costs nothing instead: made-up money is not added to real.
    """
    made_up: dict[str, float] = {}
    for juror in read_panel("simulated").juror:
        cost = costs.get(juror.name)
        if cost and cost.simulated and cost.verdicts:
            usd = panel_usd(juror, cost.tokens.all_input, cost.tokens.output)
            made_up |= {} if usd is None else {juror.name: usd / cost.verdicts}
    return made_up


def _entry(
    scope: "Scope", data: str, jurors: Sequence[str], n: int, icc: float, instances: str = ""
) -> Evaluation:
    """Return a jury's entry in the ledger, with its ICC on n responses; `instances` says which."""
    return Evaluation(
        jurors=jurors,
        benchmark=scope.name,
        method=scope.options.method,
        fingerprint=data,
        n_responses=n,
        icc=icc,
        criterion=scope.options.criterion or "",
        instances=instances,
    )


def ranking_json(ranked: RankedJuries) -> dict[str, Any]:
    """Return what `medjury analyse juries --json` writes; undefined is None."""
    from calibration.json_values import decision_json, json_row, json_value
    from calibration.notes import told

    ranking, question = ranked.ranking, ranked.question
    options = question.options
    return {
        "method": options.method,
        "criterion": options.criterion,
        "benchmark": ranked.benchmark,
        "k_jurors": len(ranking.pool),
        "n_juries": len(ranking.rows),
        "reps": options.reps,
        "seed": options.seed,
        "n_responses": ranking.n_responses,
        "n_juries_before": ranked.juries_before,
        "n_tried_before": ranked.ways_before,
        "n_unknown_cost": ranking.n_unknown_cost,
        "usd_made_up": list(ranked.made_up),
        "winner": _best_json(ranking.winner, len(ranking.rows)) if ranking.winner else None,
        "by_size": [_best_json(row, ranking.of_size(row.size)) for row in ranking.by_size],
        "rows": [json_row(row) for row in ranking.rows],
        "note": told(ranking.notes),
        "notes": json_value(ranking.notes),
        "decision": decision_json(ranked.decision),
    }


def comparison_json(question: ComparisonQuestion, compared: ComparedJuries) -> dict[str, Any]:
    """Return what `medjury analyse juries --compare --json` writes; undefined is None."""
    from calibration.json_values import decision_json, json_row, json_value

    options = question.options
    chosen = {name: getattr(options, name) for name in ("method", "criterion", "reps", "seed")}
    juries = {"first": question.first, "second": question.second}
    iccs = {"icc_first": compared.icc_first, "icc_second": compared.icc_second}
    decision = {"decision": decision_json(compared.decision)}
    head: dict[str, Any] = json_value(chosen | juries | iccs)
    return head | json_row(compared.row) | decision


def _best_json(row: "JuryRow", n_compared: int) -> dict[str, Any]:
    """Return the best of so many juries, and by how much its ICC is too high."""
    from calibration.json_values import json_row, json_value

    return json_row(row) | {"optimism": json_value(row.optimism), "n_compared": n_compared}
