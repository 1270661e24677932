"""Compute what the screens of agreement, juries, models and monitoring show.

A process beside the server runs this: it loads pandas, scipy and Altair. What it returns is
in `annotate.results`. The last calibrations and judgements are kept, so that what is asked second
does not compute the first answer again.
"""

from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from annotate import tables
from annotate.calibrations import Key, cached, calibration_of, detailed
from annotate.results import (
    MOST_JURIES,
    AgreementQuestion,
    Answer,
    Behind,
    Chart,
    CostsRequest,
    ModelsFigures,
    MonitoringAnswer,
    MonitoringBehind,
    Pair,
    Section,
    ShownComparison,
    ShownRanking,
)
from annotate.vega import specification
from calibration.json_values import json_row, json_value
from calibration.jury_decisions import recommended_jurors
from calibration.monitoring import DRIFTS
from calibration.notes import simulated_in
from calibration.report.charts import chart_periods
from calibration.report.page import Figure, intervals, sections
from calibration.report.page import Section as ReportSection
from calibration.tables.agreement import AGREEMENT, EACH
from calibration.tables.juries import COMPARISON, RANKING, juries_tried, legend
from calibration.tables.models import difference_table, model_table
from calibration.tables.monitoring import ANCHOR, JURORS, mix_table, periods_table
from calibration.tables.numbers import fixed
from calibration.tables.spec import Table, laid_out
from calibration.values import NAN, MonitoringOptions
from data.errors import BadInput, NotAllowed, Unrated
from data.person import is_blind
from data.study.authors import author_names
from data.study.standing import version
from medjury.services import models
from medjury.services.calibrate import Tick
from medjury.services.juries import (
    ComparisonQuestion,
    RankingQuestion,
    compare_juries,
    rank_juries,
)
from medjury.services.models import ModelsRequest
from medjury.services.monitoring import Monitored, monitor
from medjury.services.reports import FORMATS, content_of, report_text

if TYPE_CHECKING:
    from calibration.juries import JuryRow

UNRATED = (
    "No clinician has rated a response of this study yet. Let clinicians rate, or import ratings made "
    "elsewhere; then this page compares them."
)
OF_ICC = (
    "Points are ICC(C,2) of the jury with the clinicians, lines the 95 % interval over "
    "instances. Baseline periods make the target."
)

_monitored_studies: OrderedDict[Key, Monitored] = OrderedDict()


def agreement(engine: Engine, question: AgreementQuestion, tick: Tick | None = None) -> Answer:
    """Return the decision, the table of all scorers, and the chart of the last benchmark."""
    try:
        calibration = calibration_of(engine, question, tick)
    except Unrated as error:
        raise BadInput(UNRATED) from error
    content = content_of(engine, calibration)
    last, is_one_of_many = content.benchmarks[-1], len(content.benchmarks) > 1
    widest = [row for row in calibration.rows if row.benchmark == last]
    return Answer(
        calibration.decision,
        laid_out(AGREEMENT, widest, grouped=is_one_of_many),
        [_report_chart(figure) for figure in intervals(content, last)],
        tuple(calibration.jury),
        simulated_in(calibration.rows),
        calibration.told,
        laid_out(AGREEMENT, calibration.rows, grouped=True) if is_one_of_many else None,
        laid_out(EACH, calibration.raters) if calibration.raters else None,
    )


def agreement_details(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> Behind:
    """Return what stands behind the answer."""
    content = content_of(engine, detailed(engine, question, tick))
    report_sections = sections(content)
    parts = [_section(section) for section in report_sections]
    return Behind(
        juries_tried(content.study.tried),
        content.check_line,
        {section.number: section for section in parts},
        [
            _report_chart(block)
            for section in report_sections
            for block in section.blocks
            if isinstance(block, Figure)
        ],
        [
            Pair(
                name,
                tuple(pair.index),
                tuple(pair["clinicians"].tolist()),
                tuple(pair["jury"].tolist()),
            )
            for name, pair in content.paired.items()
        ],
    )


def agreement_reports(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> dict[str, str]:
    """Return the report and the table as texts, by form."""
    calibration = detailed(engine, question, tick)
    return {form: report_text(engine, calibration, form) for form in FORMATS}


def _silent(_: float) -> None:
    """Tell nobody how far it is."""


def _report_chart(figure: Figure) -> Chart:
    return Chart(
        figure.name,
        figure.benchmark,
        json_value(specification(figure.chart)),
        figure.caption,
        figure.alt,
        json_value(figure.rows),
    )


def _section(section: ReportSection) -> Section:
    facts = [fact for block in section.blocks if isinstance(block, list) for fact in block]
    tables = [block for block in section.blocks if isinstance(block, Table)]
    return Section(section.number, section.title, section.lead, tables, facts)


def jury_ranking(
    engine: Engine, question: RankingQuestion, tick: Tick | None = None
) -> ShownRanking:
    """Return the ranking that is asked for, laid out."""
    ranked = rank_juries(engine, question, tick=tick)
    ranking_rows = ranked.ranking
    rows, more = ranking_rows.rows, len(ranking_rows.rows) - MOST_JURIES
    left_out = (f"{more:,} more juries stand in the CSV",) if more > 0 else ()
    return ShownRanking(
        ranked.decision,
        recommended_jurors(ranking_rows) if ranked.decision.names else (),
        laid_out(RANKING, ranking_rows.by_size, caption="The best jury of each size"),
        laid_out(RANKING, rows[:MOST_JURIES]),
        laid_out(
            RANKING,
            ranking_rows.front,
            caption="No cheaper jury agrees as well, the cheapest first",
        ),
        notes=(*legend(ranking_rows.front), *left_out, *map(str, ranked.notes), *ranked.told),
        without_cost=ranking_rows.n_unknown_cost,
        csv=tables.csv_of([_of_csv(row) for row in rows]),
    )


def jury_comparison(
    engine: Engine, question: ComparisonQuestion, tick: Tick | None = None
) -> ShownComparison:
    """Return two juries side by side, laid out."""
    compared = compare_juries(engine, question)
    return ShownComparison(compared.decision, laid_out(COMPARISON, [compared.row]), compared.told)


def _of_csv(row: "JuryRow") -> dict[str, Any]:
    return {key: value for key, value in json_row(row).items() if key != "notes"}


def check_models(engine: Engine, request: ModelsRequest) -> bool:
    """Return that models could be compared, which tells nothing of authors; else raise why not."""
    models.prepared(engine, request)
    return True


def compared_models(
    engine: Engine, request: ModelsRequest, tick: Tick | None = None
) -> ModelsFigures:
    """Return the comparison of a study whose blind is lifted."""
    from calibration.models import deciding_way

    task = models.prepared(engine, request)
    found, _ = models.compared(engine, task, tick or _silent)
    first = deciding_way(found.rows)
    table = model_table(sorted(found.rows, key=lambda row: row.by != first), narrow=True)
    pairs = [row for row in found.differences if row.by == first]
    differences = difference_table(pairs) if pairs else None
    return ModelsFigures(found.decision, table, differences, found.rows)


def models_costs(engine: Engine, request: CostsRequest) -> dict[str, float]:
    """Return what each model cost in the reader's file; no trace of the file stays on the disk.

    Raises
    ------
    BadInput
        If the file is not one of costs, or names a model that the study does not have.
    NotAllowed
        If the blind is not lifted.
    """
    if is_blind(engine):
        raise NotAllowed(models.BLIND)
    with TemporaryDirectory(prefix="medjury-costs-") as folder:
        path = Path(folder, f"costs.{request.kind}")
        path.write_bytes(request.text)
        prices = models.read_costs(path)
    models.refuse_unknown(prices, author_names(engine))
    return prices


def monitoring(engine: Engine, options: MonitoringOptions) -> MonitoringAnswer:
    """Return the decision, the charts, and the table of periods."""
    found = _monitored(engine, options)
    return MonitoringAnswer(found.decision, _periods_chart(found), periods_table(found), found.jury)


def monitoring_details(engine: Engine, options: MonitoringOptions) -> MonitoringBehind:
    """Return what a change may come from, and when the jurors' models end."""
    found = _monitored(engine, options)
    shown = [laid_out(ANCHOR, found.anchor)] if found.anchor else []
    shown += [mix_table(found.mix)] if found.mix else []
    why = DRIFTS[found.drift]
    sentences = (f"{why[0].upper()}{why[1:]}.",)
    ends = laid_out(JURORS, found.jurors)
    return MonitoringBehind(sentences, shown, ends, bool(found.anchor))


def _monitored(engine: Engine, options: MonitoringOptions) -> Monitored:
    """Return what is found over time, computed once for an unchanged study."""
    key = (engine.url, version(engine), options)
    return cached(_monitored_studies, key, lambda: monitor(engine, options))


def _periods_chart(found: Monitored) -> Chart:
    options = found.options
    summary = ", ".join(f"{row.period} {fixed(row.icc)}" for row in found.periods)
    words = f"ICC by {options.every}, floor {options.floor:.2f}: {summary}"
    drawn = chart_periods(found.periods, options.floor, NAN if found.reason else found.target_icc)
    return Chart("agreement-over-time", "", specification(drawn), OF_ICC, words)
