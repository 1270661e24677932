"""The MedHELM paper's tables and figures from a study, or from a leaderboard."""

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Engine

from calibration.codes import NoteCode as Code
from calibration.models.rows import PAPER
from calibration.paper.leaderboard import (
    Leaderboard,
    category_means,
    leaderboard_rows,
    win_rates_told,
)
from calibration.paper.values import Absent, Differs, Drawing, Page, PaperPage, PaperPages
from calibration.tables.agreement import AGREEMENT
from calibration.tables.models import DETECTABLE
from calibration.tables.paper import (
    COSTS,
    TABLE_1,
    TABLE_1_OF_LEADERBOARD,
    CostLine,
    LeaderboardLine,
    MeanLine,
    means_table,
)
from calibration.tables.spec import laid_out
from calibration.values import NAN, AnalysisOptions, Noted, note, simulated_in
from data.errors import MedjuryError, Unrated
from data.importers.leaderboard import read_leaderboard
from data.queries.authors import author_names
from data.queries.costs import recorded_calls
from data.queries.study import simulated_raters, study_id
from data.samples import COSTS as DEMO_COSTS
from data.schema import now
from data.taxonomy import shipped_taxonomy
from medjury.services.model_costs import jury_cost, read_costs, refuse_unknown
from medjury.services.models import (
    ModelsRequest,
    ModelsResult,
    ModelsTask,
    compared,
    lift,
    prepared,
)
from medjury.services.record import steered

if TYPE_CHECKING:
    from calibration.scope import AgreementRow

Tick = Callable[[float], None]
OF_AGREEMENT = (
    *("benchmark", "scorer", "icc", "f_low", "f_high", "boot_low", "boot_high", "n_responses"),
    *("n_instances", "n_clinicians", "n_pairs", "n_missing", "spearman"),
)
OF_MODELS = (
    *("model", "win_rate", "win_rate_low", "win_rate_high", "win_rate_sd", "macro_average"),
    *("low", "high", "macro_average_sd", "n_benchmarks", "n_responses", "n_missing"),
)
METHODS = ("published", "paper")
IN_TABLE_2, METRIC = ("jury", "clinicians"), "metric:"


@dataclass(frozen=True, slots=True)
class PaperQuestion:
    """What the pages are asked for: as `ModelsRequest`, and what each model cost."""

    options: AnalysisOptions = field(default_factory=AnalysisOptions)
    measured: Mapping[str, str] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Costs:
    """What each model cost in US dollars, and where the amounts come from."""

    usd: Mapping[str, float]
    source: Differs


def _costs(question: PaperQuestion, models: Sequence[str]) -> _Costs:
    """Return the costs that were given; of the demo's models alone those made up for them."""
    made_up = read_costs(DEMO_COSTS)
    if not question.costs and {*models} <= made_up.keys():
        return _Costs(made_up, Differs.MADE_UP_COSTS)
    return _Costs(question.costs, Differs.OWN_COSTS)


def paper_task(engine: Engine, question: PaperQuestion) -> ModelsTask:
    """Return a comparison that can be made, before anything is told of authors.

    Raises
    ------
    BadInput
        If it cannot, as `medjury.services.models.prepared`.
    """
    return prepared(engine, ModelsRequest(question.options, (PAPER,), question.measured))


def paper_of_study(
    engine: Engine, task: ModelsTask, question: PaperQuestion, tick: Tick = lambda _: None
) -> PaperPages:
    """Return all pages from a study whose blind is lifted; pages without figures say why.

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    result = compared(engine, task, tick)
    costs = _costs(question, [row.model for row in result.rows])
    pages = (
        _table_1(result),
        _figure_3(result),
        _figure_4(result),
        _figure_5(result.rows, costs, _simulated(result.rows)),
        _table_2(engine, question.options),
        _table_3(engine, result, costs),
        _detectable(result),
    )
    who = sorted({name for page in pages for name in page.simulated})
    return PaperPages(
        pages,
        study_id(engine)[:12],
        is_leaderboard=False,
        made=f"{now():%Y-%m-%d %H:%M} UTC",
        simulated=tuple(who),
        told=steered(engine),
        measured=result.measured,
    )


def lift_blind(engine: Engine, costs: Mapping[str, float], reason: str, who: str) -> None:
    """Record that the blind is lifted, and refuse costs of models that are not in the study."""
    from medjury.services.models import refuse_blind

    refuse_blind(engine, reason)
    refuse_unknown(costs, author_names(engine))
    lift(engine, reason, who)


def paper_of_leaderboard(path: Path, costs: Mapping[str, float]) -> PaperPages:
    """Return the pages that a leaderboard has figures for; the others say why they are empty.

    Raises
    ------
    BadFile
        If it is no leaderboard.
    Unknown
        If the costs name a model that is not in it.
    """
    read = read_leaderboard(path)
    scores = np.array(read.scores, dtype=np.float64)
    names, metrics = zip(*read.headings, strict=True)
    board = Leaderboard(read.models, names, metrics, scores, read.win_rates)
    refuse_unknown(costs, board.models)
    lines = [LeaderboardLine(**asdict(row)) for row in leaderboard_rows(board)]
    common = (Differs.NO_INTERVALS, Differs.ROUNDED, Differs.TIES, Differs.MORE_BENCHMARKS)
    empty = (Page.TABLE_2, Page.TABLE_3, Page.DETECTABLE)
    return PaperPages(
        (
            PaperPage(
                Page.TABLE_1,
                tuple(one.name for one in fields(LeaderboardLine) if one.name != "notes"),
                tuple(tuple(asdict(row).values()) for row in leaderboard_rows(board)),
                (laid_out(TABLE_1_OF_LEADERBOARD, lines),),
                differs=common,
            ),
            _heatmap(Page.FIGURE_3, "benchmark", board.models, board.benchmarks, board.means()),
            _board_categories(board),
            _figure_5(lines, _Costs(costs, Differs.OWN_COSTS), ()),
            *(PaperPage(page, absent=Absent.NO_INSTANCES) for page in empty),
        ),
        path.name,
        is_leaderboard=True,
        made=f"{now():%Y-%m-%d %H:%M} UTC",
        published=win_rates_told(board),
    )


def _board_categories(board: Leaderboard) -> PaperPage:
    """Return Figure 4 of a leaderboard, whose benchmarks are known by the catalogue's titles."""
    taxonomy = shipped_taxonomy()
    place = {name: at.path[0] for name, at in taxonomy.place_of().items()}
    titles = {
        _bare(title): place.get(one.name, "")
        for one in taxonomy.benchmarks
        for title in (one.title, one.paper_title, one.name)
        if title
    }
    names, means = category_means(
        board, {name: titles.get(_bare(name), "") for name in board.benchmarks}
    )
    if not names:
        return PaperPage(Page.FIGURE_4, absent=Absent.NO_CATEGORIES)
    return _heatmap(Page.FIGURE_4, "category", board.models, names, means)


def _bare(name: str) -> str:
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _heatmap(
    page: Page, place: str, models: Sequence[str], names: Sequence[str], means: Any
) -> PaperPage:
    """Return means of models under some names as a heatmap with its table, the best model first."""
    order = np.argsort(-np.nan_to_num(np.nanmean(means, axis=1)), kind="stable")
    by_name = {
        (models[at], name): float(means[at, column])
        for at in order
        for column, name in enumerate(names)
    }
    return _means_page(page, place, [models[at] for at in order], names, by_name, {})


def _means_page(
    page: Page,
    place: str,
    models: Sequence[str],
    names: Sequence[str],
    means: Mapping[tuple[str, str], float],
    notes: Mapping[str, tuple[Any, ...]],
) -> PaperPage:
    """Return means with their table: a line for each benchmark, or for each model under categories."""
    rows = tuple((model, name, means.get((model, name), NAN)) for model in models for name in names)
    if place == "benchmark":
        mark = next(iter(notes.values()), ())
        lines = [
            MeanLine(name, tuple(means.get((model, name), NAN) for model in models), notes=mark)
            for name in names
        ]
        table = laid_out(means_table("Benchmark", models), lines)
    else:
        lines = [
            MeanLine(
                model,
                tuple(means.get((model, name), NAN) for name in names),
                notes=notes.get(model, ()),
            )
            for model in models
        ]
        table = laid_out(means_table("Model", names), lines)
    return PaperPage(page, ("model", place, "mean"), rows, (table,), Drawing.HEATMAP)


def _simulated(rows: Sequence[Noted]) -> tuple[str, ...]:
    return tuple(simulated_in(rows))


def _table_1(result: ModelsResult) -> PaperPage:
    rows = tuple(tuple(getattr(row, name) for name in OF_MODELS) for row in result.rows)
    differs = (Differs.OWN_BENCHMARKS, Differs.INTERVALS, Differs.TIES, Differs.MISSING)
    tables = (laid_out(TABLE_1, result.rows),)
    return PaperPage(
        *(Page.TABLE_1, OF_MODELS, rows, tables), differs=differs, simulated=_simulated(result.rows)
    )


def _figure_3(result: ModelsResult) -> PaperPage:
    means = {(row.model, row.benchmark): row.mean for row in result.means}
    return _of_means(Page.FIGURE_3, "benchmark", result.benchmarks, means, result)


def _figure_4(result: ModelsResult) -> PaperPage:
    names = [name for name in dict.fromkeys(row.category for row in result.categories) if name]
    if not names:
        return PaperPage(Page.FIGURE_4, absent=Absent.NO_CATEGORIES)
    means = {(row.model, row.category): row.mean for row in result.categories}
    return _of_means(Page.FIGURE_4, "category", names, means, result)


def _of_means(
    page: Page,
    place: str,
    names: Sequence[str],
    means: Mapping[tuple[str, str], float],
    result: ModelsResult,
) -> PaperPage:
    notes = {row.model: _mark(row.notes) for row in result.rows}
    made = _means_page(page, place, [*notes], names, means, notes)
    return replace(
        made,
        differs=(Differs.OWN_BENCHMARKS, Differs.MISSING),
        simulated=_simulated(result.rows),
    )


def _mark(notes: Sequence[Any]) -> tuple[Any, ...]:
    """Return of a row's notes the one that says whose scores are made up."""
    return tuple(one for one in notes if simulated_in([Noted(notes=(one,))]))


def _figure_5(rows: Sequence[Any], costs: _Costs, simulated: tuple[str, ...]) -> PaperPage:
    if not costs.usd:
        return PaperPage(Page.FIGURE_5, absent=Absent.NO_COSTS)
    points = tuple((row.model, costs.usd.get(row.model), row.win_rate) for row in rows)
    return PaperPage(
        *(Page.FIGURE_5, ("model", "usd", "win_rate"), points),
        drawing=Drawing.COSTS,
        differs=(costs.source,),
        simulated=simulated,
    )


def _table_2(engine: Engine, options: AnalysisOptions) -> PaperPage:
    """Return the agreement by both of the paper's methods, the printed one's first."""
    try:
        by_method = {method: _agreement(engine, options, method) for method in METHODS}
    except Unrated:
        return PaperPage(Page.TABLE_2, absent=Absent.NO_CLINICIANS)
    except MedjuryError:
        return PaperPage(Page.TABLE_2, absent=Absent.NO_JURY)
    rows = [(method, row) for method, own in by_method.items() for row in own]
    tables = (
        laid_out(AGREEMENT, own, caption=f'By method "{method}"', grouped=True)
        for method, own in by_method.items()
    )
    return PaperPage(
        Page.TABLE_2,
        ("method", *OF_AGREEMENT),
        tuple((method, *(getattr(row, name) for name in OF_AGREEMENT)) for method, row in rows),
        tuple(tables),
        differs=(
            Differs.PUBLISHED_METHOD,
            Differs.PAPER_METHOD,
            Differs.NEGATIVE,
            Differs.OWN_BENCHMARKS,
        ),
        simulated=_simulated([row for _, row in rows]),
    )


def _agreement(engine: Engine, options: AnalysisOptions, method: Any) -> "list[AgreementRow]":
    from medjury.services.calibrate import CalibrationQuestion, calibrate

    asked = replace(options, method=method, further=False)
    found = calibrate(engine, CalibrationQuestion(asked, further=False, reference=False))
    return [row for row in found.rows if row.scorer in IN_TABLE_2 or row.scorer.startswith(METRIC)]


def _table_3(engine: Engine, result: ModelsResult, costs: _Costs) -> PaperPage:
    lines = [*_cost_lines(engine, result, costs)]
    if not lines:
        return PaperPage(Page.TABLE_3, absent=Absent.NO_CALLS)
    columns = ("who", "what", "calls", "usd", "bound")
    rows = tuple(tuple(getattr(line, name) for name in columns) for line in lines)
    differs = (Differs.RECORDED, costs.source)
    jury = {line.who for line in lines} & simulated_raters(engine)
    return PaperPage(
        *(Page.TABLE_3, columns, rows, (laid_out(COSTS, lines),)),
        differs=differs,
        simulated=tuple(sorted(jury)),
    )


def _cost_lines(engine: Engine, result: ModelsResult, costs: _Costs) -> Iterator[CostLine]:
    is_made_up = costs.source is Differs.MADE_UP_COSTS
    for model, usd in sorted(costs.usd.items()):
        notes = (note(Code.SIMULATED, raters=(model,)),) if is_made_up else ()
        yield CostLine(model, "its answers", None, usd, notes=notes)
    if not result.jury:
        return
    made_up = simulated_raters(engine)
    spent = jury_cost(recorded_calls(engine, result.jury), result.jury, None, made_up)
    for juror in spent.jurors:
        usd = NAN if juror.unknown else juror.usd
        yield CostLine(juror.juror, "its verdicts", juror.calls, usd, notes=juror.notes)
    if spent.jurors and spent.usd is not None:
        usd = NAN if spent.usd_unknown else spent.usd
        bound = NAN if spent.paper_usd is None else spent.paper_usd
        yield CostLine("jury", "all verdicts", spent.calls, usd, bound, notes=spent.notes)


def _detectable(result: ModelsResult) -> PaperPage:
    columns = ("benchmark", "mde", "mde_exact", "n_instances", "n_pairs")
    rows = tuple(tuple(getattr(row, name) for name in columns) for row in result.detectable)
    return PaperPage(
        *(Page.DETECTABLE, columns, rows, (laid_out(DETECTABLE, result.detectable),)),
        differs=(Differs.DDOF,),
        simulated=_simulated(result.rows),
    )


def paper_archive(engine: Engine, options: AnalysisOptions, tick: Tick = lambda _: None) -> bytes:
    """Return all pages of a study whose blind is lifted as a ZIP archive.

    Raises
    ------
    NotAllowed
        If the blind is not lifted.
    """
    from calibration.report.paper_page import paper_files

    question = PaperQuestion(options)
    pages = paper_of_study(engine, paper_task(engine, question), question, tick)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in paper_files(pages).items():
            archive.writestr(name, text)
    return packed.getvalue()
