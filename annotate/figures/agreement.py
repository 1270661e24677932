"""Agreement for its screen: the answer at once, then what stands behind it, then the report.

The worker process runs this. It keeps the last calibrations, so that what is asked second does not
compute the table again.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import replace

from sqlalchemy import Engine

from annotate.figures.shown import AgreementQuestion, Answer, Behind, Chart, Pair, Section
from annotate.vega import specification
from calibration.codes import NoteCode as Code
from calibration.decision import Decision, DecisionKind
from calibration.json_values import json_value
from calibration.report.content import Content
from calibration.report.figures import Figure, intervals
from calibration.report.ledger import juries_tried
from calibration.report.page import in_points, sensitivity
from calibration.report.sections import Section as ReportSection
from calibration.report.sections import sections
from calibration.tables.agreement import AGREEMENT
from calibration.tables.spec import Table, laid_out
from calibration.values import AnalysisOptions, note, simulated_in
from data.errors import BadInput, TooFew, Unrated
from data.queries.study import version
from medjury.services.calibrate import Calibration, CalibrationQuestion, calibrate, more
from medjury.services.record import protocol_of
from medjury.services.reports import FORMATS, content_of, report_text

KEPT = 4
UNRATED = (
    "No clinician has rated a response of this study yet. Let clinicians rate, or import ratings made "
    "elsewhere; then this page compares them."
)

_kept: OrderedDict[tuple[object, ...], Calibration] = OrderedDict()


def answer(engine: Engine, question: AgreementQuestion) -> Answer:
    """Return the decision, the table of all scorers, and the chart of the last benchmark."""
    try:
        calibration = _calibration(engine, question)
    except Unrated as error:
        raise BadInput(UNRATED) from error
    content = content_of(engine, calibration)
    last = content.benchmarks[-1]
    return Answer(
        calibration.decision,
        laid_out(AGREEMENT, calibration.rows, grouped=len(content.benchmarks) > 1),
        [_chart(figure) for figure in intervals(content, last)],
        tuple(calibration.jury),
        simulated_in(calibration.rows),
        calibration.told,
    )


def behind(engine: Engine, question: AgreementQuestion) -> Behind:
    """Return what stands behind the answer."""
    content = _whole(engine, question)
    last = content.benchmarks[-1]
    report_sections = sections(content)
    parts = [_section(section) for section in report_sections]
    return Behind(
        in_points(content, last),
        sensitivity(content, last),
        juries_tried(content.study),
        {section.number: section for section in parts},
        [_chart(figure) for section in report_sections for figure in _figures(section)],
        [
            Pair(name, pair.responses, tuple(pair.clinicians.tolist()), tuple(pair.jury.tolist()))
            for name, pair in content.paired.items()
        ],
    )


def reports(engine: Engine, question: AgreementQuestion) -> dict[str, str]:
    """Return the report and the table as texts, by form."""
    calibration = _detailed(engine, question)
    return {form: report_text(engine, calibration, form) for form in FORMATS}


def decision(engine: Engine, question: AgreementQuestion) -> Decision:
    """Return what may be said of the study, also where there is nothing to compute yet.

    Asked about nothing in particular, it is about what the protocol fixes.
    """
    protocol = protocol_of(engine)
    if protocol and question.options == AnalysisOptions():
        question = replace(question, options=protocol.analysis())
    try:
        return _calibration(engine, question).decision
    except (BadInput, TooFew):
        reasons = (note(Code.NO_CLINICIAN_RATING),)
        todo = note(Code.DO_LET_RATE)
        return Decision("agreement", DecisionKind.UNDEFINED, reasons=reasons, next=todo)


def _calibration(engine: Engine, question: AgreementQuestion) -> Calibration:
    """Return a calibration without its details, computed once for an unchanged study."""
    key = (engine.url, version(engine), question)
    if key not in _kept:
        table_only = CalibrationQuestion(
            question.options, reference=False, families=question.families
        )
        _kept[key] = calibrate(engine, table_only)
        while len(_kept) > KEPT:
            _kept.popitem(last=False)
    return _kept[key]


def _detailed(engine: Engine, question: AgreementQuestion) -> Calibration:
    """Return a calibration with its details, computed once for an unchanged study."""
    calibration = _calibration(engine, question)
    if not calibration.question.details:
        with_details = CalibrationQuestion(
            question.options, details=True, page=True, families=question.families
        )
        calibration = more(engine, calibration, with_details)
        _kept[engine.url, version(engine), question] = calibration
    return calibration


def _whole(engine: Engine, question: AgreementQuestion) -> Content:
    return content_of(engine, _detailed(engine, question))


def _chart(figure: Figure) -> Chart:
    return Chart(
        figure.name,
        figure.benchmark,
        json_value(specification(figure.chart)),
        figure.caption,
        figure.alt,
        json_value(figure.rows),
    )


def _figures(section: ReportSection) -> Iterator[Figure]:
    """Yield the charts of a section, those that stand side by side one after another."""
    for block in section.blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, tuple):
            yield from block


def _section(section: ReportSection) -> Section:
    facts = [fact for block in section.blocks if isinstance(block, list) for fact in block]
    tables = [block for block in section.blocks if isinstance(block, Table)]
    return Section(section.number, section.title, section.lead, tables, facts)
