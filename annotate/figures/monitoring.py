"""Agreement over time for its screen: the judgement at once, then what a change may come from.

The worker process runs this. It keeps the last judgements, so that what is asked second does not
compute the periods again.
"""

from collections import OrderedDict
from collections.abc import Iterator

import altair as alt
from sqlalchemy import Engine

from annotate.figures.shown import Chart, MonitoringAnswer, MonitoringBehind
from annotate.vega import specification
from calibration.messages import sentence, told
from calibration.report.chart_monitoring import chart_cusum, chart_periods
from calibration.tables.monitoring import ANCHOR, JURORS, mix_table, periods_table
from calibration.tables.numbers import fixed
from calibration.tables.spec import Table, laid_out
from calibration.values import NAN
from data.queries.study import version
from medjury.services.monitoring import Causes, Judged, MonitoringQuestion, causes, judge

KEPT = 4
OF_ICC = (
    "Points are ICC(C,2) of the jury with the clinicians, lines the bootstrap interval over "
    "instances. Baseline periods make the target."
)
OF_CUSUM = (
    "Falls below the target added up over the latest periods, at most a year, and where they raise "
    "an alarm. The limit is set by the false alarms a year that are allowed; an alarm stands until "
    "watching begins anew."
)

_kept: OrderedDict[tuple[object, ...], Judged] = OrderedDict()


def answer(engine: Engine, question: MonitoringQuestion) -> MonitoringAnswer:
    """Return the decision, the charts, and the table of periods."""
    judged = _judged(engine, question)
    rows = judged.periods, judged.watched.rows, judged.remarks
    table = periods_table(*rows, title=judged.title)
    return MonitoringAnswer(judged.decision, [*_charts(judged)], table, judged.study.jury)


def behind(engine: Engine, question: MonitoringQuestion) -> MonitoringBehind:
    """Return what a change may come from, and when the jurors' models end."""
    judged = causes(engine, _judged(engine, question))
    sentences = [*map(sentence, judged.drift.notes)]
    if judged.mix and not judged.mix.is_defined:
        sentences.append(f"Case mix: {told(judged.mix.notes)}.")
    return MonitoringBehind(
        tuple(sentences),
        [*_tables(judged)],
        laid_out(JURORS, judged.jurors),
        bool(judged.anchor),
    )


def _judged(engine: Engine, question: MonitoringQuestion) -> Judged:
    """Return a judgement, computed once for an unchanged study."""
    key = (engine.url, version(engine), question)
    if key not in _kept:
        _kept[key] = judge(engine, question)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return _kept[key]


def _charts(judged: Judged) -> Iterator[Chart]:
    watched, question = judged.watched, judged.question
    summary = ", ".join(f"{row.period} {fixed(row.icc)}" for row in judged.periods)
    words = f"ICC by {question.every}, floor {question.floor:.2f}: {summary}"
    target = watched.target_icc if watched.rows else NAN
    drawn = chart_periods(judged.periods, watched.rows, question.floor, target)
    yield _chart("agreement-over-time", drawn, OF_ICC, words)
    summed = sum(row.role == "watched" for row in watched.rows)
    if summed:
        state = f"alarm in {watched.alarm.period}" if watched.alarm else "no alarm"
        words = f"CUSUM of {summed} periods, limit {fixed(watched.limit)}: {state}"
        yield _chart("cusum", chart_cusum(watched.rows), OF_CUSUM, words)


def _chart(name: str, drawn: alt.TopLevelMixin, caption: str, words: str) -> Chart:
    return Chart(name, "", specification(drawn), caption, words)


def _tables(judged: Causes) -> Iterator[Table]:
    if judged.anchor:
        yield laid_out(ANCHOR, judged.anchor)
    if judged.mix and judged.mix.is_defined:
        yield mix_table(judged.mix)
