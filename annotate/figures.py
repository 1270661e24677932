"""What screens of figures ask for, computed beside the server; each calibration once for an unchanged study.

What loads pandas and scipy is imported where it is used: the server imports this module too.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import Engine

from calibration.decision import NOTHING_RATED
from calibration.tables.numbers import fixed
from calibration.tables.spec import Table, laid_out
from calibration.values import NAN, AnalysisOptions, MonitoringOptions
from data.errors import BadInput, TooFew, Unrated
from data.study.standing import version

if TYPE_CHECKING:
    from medjury.services.calibration import Calibration
    from medjury.services.juries import ComparisonQuestion, RankingQuestion
    from medjury.services.models import ModelsRequest

Found = dict[str, Any]
Tick = Callable[[float], None]
KEPT = 4
UNRATED = (
    "No clinician has rated a response of this study yet. Let clinicians rate, or import ratings made "
    "elsewhere; then this page compares them."
)


@dataclass(frozen=True, slots=True)
class AgreementQuestion:
    """What the agreement screen asks: how to analyse, and a panel's families by juror."""

    options: AnalysisOptions
    families: tuple[tuple[str, str], ...] = ()


_calibrations: "OrderedDict[tuple[object, ...], Calibration]" = OrderedDict()


def calibration_of(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> "Calibration":
    """Return a calibration without its details, computed once for an unchanged study."""
    from medjury.services.calibrate import calibrate
    from medjury.services.calibration import CalibrationQuestion

    key = (engine.url, version(engine), question)
    if key not in _calibrations:
        table = CalibrationQuestion(question.options, reference=False, families=question.families)
        _calibrations[key] = calibrate(engine, table, tick=tick)
        while len(_calibrations) > KEPT:
            _calibrations.popitem(last=False)
    return _calibrations[key]


def detailed(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> "Calibration":
    """Return a calibration with its details, computed once for an unchanged study."""
    from medjury.services.calibrate import more
    from medjury.services.calibration import CalibrationQuestion

    calibration = calibration_of(engine, question)
    if not calibration.question.details:
        whole = CalibrationQuestion(
            question.options, details=True, page=True, families=question.families
        )
        calibration = more(engine, calibration, whole, tick)
        _calibrations[engine.url, version(engine), question] = calibration
    return calibration


def agreement(engine: Engine, question: AgreementQuestion, tick: Tick | None = None) -> Found:
    """Return the decision, and the one comparison that it rests on.

    Returns
    -------
    decision, jury, simulated, told
        What may be said; who sits; who is simulated; lines that every report owes its reader.
    held
        Jury and a clinician against the same other clinicians: `jury`, `clinician`, `difference`,
        each as (figure, low, high), the `unit` of these, and the `margin` of the protocol, NaN without
        one. None where nothing could be held out.
    pairs
        What preferences say, as a section below, where somebody judged pairs.
    """
    from calibration.scope import LikeForLikeRow
    from calibration.tables.pairs import HOW_TO_READ, tables_of

    try:
        found = calibration_of(engine, question, tick)
    except Unrated as error:
        raise BadInput(UNRATED) from error
    held = next((row for row in reversed(found.rows) if isinstance(row, LikeForLikeRow)), None)
    of_pairs = found.of_pairs.held if found.of_pairs else None
    drawn: Found | None = None
    if (one := held or of_pairs) is not None:
        names = (
            ("jury_icc", "clinician_icc", "icc") if held else ("jury", "clinician", "difference")
        )
        jury, clinician, difference = (getattr(one, name) for name in names)
        drawn = {
            "jury": (jury, one.jury_low, one.jury_high),
            "clinician": (clinician, one.clinician_low, one.clinician_high),
            "difference": (difference, one.low, one.high),
            "unit": "ICC(C,2)" if held else "Share of pairs",
            "margin": found.protocol.margin if found.protocol else NAN,
        }
    return {
        "decision": found.decision,
        "jury": tuple(found.jury),
        "simulated": found.simulated,
        "told": found.told,
        "held": drawn if drawn and math.isfinite(drawn["difference"][0]) else None,
        "pairs": (HOW_TO_READ, tables_of(found.pairs) if found.pairs else [], []),
    }


def agreement_details(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> Found:
    """Return what stands behind the answer.

    Returns
    -------
    table
        Of all scorers.
    checked, tried
        How far pingouin's ICCs are from these, in a line; how many juries were ever tried.
    2, 3, 4, 6, 11, 12, 13
        Sections of the report that the study has: (how to read it, its tables, its facts).
    """
    from calibration.report.page import sections
    from calibration.tables.agreement import AGREEMENT
    from calibration.tables.juries import juries_tried
    from calibration.tables.pairs import PAIRS
    from medjury.services.reports import content_of

    content = content_of(engine, detailed(engine, question, tick))
    parts = {
        one.number: (
            one.lead,
            [block for block in one.blocks if isinstance(block, Table)],
            [fact for block in one.blocks if isinstance(block, list) for fact in block],
        )
        for one in sections(content)
    }
    grouped = len(content.benchmarks) > 1
    if content.of_pairs:
        parts["2"] = parts["13"]
    return parts | {
        "table": laid_out(PAIRS, content.of_pairs.last)
        if content.of_pairs
        else laid_out(AGREEMENT, content.rows, grouped=grouped),
        "checked": content.check_line,
        "tried": juries_tried(content.study.tried),
    }


def agreement_report(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> dict[str, str]:
    """Return the report and the table of all scorers as texts, by form."""
    from medjury.services.reports import FORMATS, report_text

    calibration = detailed(engine, question, tick)
    return {form: report_text(engine, calibration, form) for form in FORMATS}


def home(engine: Engine, question: AgreementQuestion, tick: Tick | None = None) -> Found:
    """Return what `agreement` does; asked about nothing in particular, of what the protocol fixes."""
    from medjury.services.record import protocol_of

    protocol = protocol_of(engine)
    if protocol and question.options == AnalysisOptions():
        question = replace(question, options=protocol.analysis())
    try:
        return agreement(engine, question, tick)
    except (BadInput, TooFew):
        return {"decision": NOTHING_RATED, "jury": (), "held": None}


def jury_ranking(engine: Engine, question: "RankingQuestion", tick: Tick | None = None) -> Found:
    """Return the decision, who sits on the jury that it names, and the tables of all juries.

    Of pairs alone there is no decision, and one table.
    """
    from calibration.jury_decisions import recommended_jurors
    from calibration.pair_juries import pair_ranking
    from calibration.tables.juries import RANKING
    from calibration.tables.pairs import JURIES
    from medjury.services.juries import rank_juries
    from medjury.services.pairs import pairs_alone, seated

    if of_pairs := pairs_alone(engine, question.options):
        rows = pair_ranking(of_pairs, seated(of_pairs, question.options), question.sizes)
        return {"decision": None, "ranking": laid_out(JURIES, rows)}
    ranked = rank_juries(engine, question, tick=tick)
    found = ranked.ranking
    front = "No cheaper jury agrees as well, the cheapest first"
    told = [str(one) for one in ranked.notes if one.code != "tried_before"]  # the ledger follows
    return {
        "decision": ranked.decision,
        "jurors": recommended_jurors(found) if ranked.decision.names else (),
        "by_size": laid_out(RANKING, found.by_size, caption="The best jury of each size"),
        "ranking": laid_out(RANKING, found.rows),
        "front": laid_out(RANKING, found.front, caption=front) if found.front else None,
        "notes": (*told, *ranked.told),
        "without_cost": found.n_unknown_cost,
    }


def jury_comparison(engine: Engine, question: "ComparisonQuestion") -> Found:
    """Return the decision on two juries, their table, and what every report owes its reader."""
    from calibration.tables.juries import COMPARISON
    from medjury.services.juries import compare_juries

    compared = compare_juries(engine, question)
    table = laid_out(COMPARISON, [compared.row])
    return {"decision": compared.decision, "table": table, "told": compared.told}


def check_models(engine: Engine, request: "ModelsRequest") -> bool:
    """Return that models could be compared, which tells nothing of authors; else raise why not."""
    from medjury.services.models import prepared
    from medjury.services.pairs import pairs_alone

    if pairs_alone(engine, request.options) is None:
        prepared(engine, request)
    return True


def compared_models(engine: Engine, request: "ModelsRequest", tick: Tick | None = None) -> Found:
    """Return the comparison of a study whose blind is lifted: the decision, tables, and rows.

    The first rows are by the way of scoring that decides, and `differences` those alone.
    """
    from calibration.models import deciding_way
    from calibration.tables.models import category_table, difference_table, model_table
    from calibration.tables.pairs import WINS
    from medjury.services.models import compared, prepared, wins
    from medjury.services.pairs import pairs_alone

    won = wins(engine, request.options)
    of_pairs = {"pairs": laid_out(WINS, won) if won else None}
    if pairs_alone(engine, request.options):
        return {**dict.fromkeys(("decision", "models", "differences", "categories")), **of_pairs}
    found, _ = compared(engine, prepared(engine, request), tick or (lambda _: None))
    first = deciding_way(found.rows)
    pairs = [row for row in found.differences if row.by == first]
    rows = sorted(found.rows, key=lambda row: row.by != first)
    return {
        "decision": found.decision,
        "models": model_table(rows, narrow=True),
        "differences": difference_table(pairs) if pairs else None,
        "categories": category_table(found.rows),
        "rows": tuple(found.rows),
        **of_pairs,
    }


def models_costs(engine: Engine, file: tuple[bytes, str]) -> Mapping[str, float]:
    """Return what each model cost in the reader's file; no trace of the file stays on the disk.

    Parameters
    ----------
    file : its bytes, and its kind, "csv" or "toml"

    Raises
    ------
    BadInput
        If the file is not one of costs, or names a model that the study does not have.
    NotAllowed
        If the blind is not lifted.
    """
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from data.errors import NotAllowed
    from data.person import is_blind
    from data.study.authors import author_names
    from medjury.services import models

    if is_blind(engine):
        raise NotAllowed(models.BLIND)
    body, kind = file
    with TemporaryDirectory(prefix="medjury-costs-") as folder:
        path = Path(folder, f"costs.{kind}")
        path.write_bytes(body)
        prices = models.read_costs(path)
    models.refuse_unknown(prices, author_names(engine))
    return prices


def monitoring(engine: Engine, options: MonitoringOptions) -> Found:
    """Return the decision over time, its chart and tables, and what a change may come from.

    Returns
    -------
    decision, jury, chart, alt, periods
        The chart is a Vega-Lite specification, `alt` what it shows in words.
    why, tables, ends
        What a change may come from, in a sentence and in tables; when the jurors' models end.
    anchored : whether responses were scored again, by which a changed model is known
    """
    from calibration.monitoring import DRIFTS
    from calibration.report.charts import chart_periods
    from calibration.tables.monitoring import ANCHOR, JURORS, mix_table, periods_table
    from medjury.services.monitoring import monitor

    found = monitor(engine, options)
    summary = ", ".join(f"{row.period} {fixed(row.icc)}" for row in found.periods)
    target = NAN if found.reason else found.target_icc
    tables = [laid_out(ANCHOR, found.anchor)] if found.anchor else []
    return {
        "decision": found.decision,
        "jury": found.jury,
        "chart": chart_periods(found.periods, options.floor, target).to_dict(),
        "alt": f"ICC by {options.every}, floor {options.floor:.2f}: {summary}",
        "periods": periods_table(found),
        "why": DRIFTS[found.drift],
        "tables": [*tables, *([mix_table(found.mix)] if found.mix else [])],
        "ends": laid_out(JURORS, found.jurors),
        "anchored": bool(found.anchor),
    }
