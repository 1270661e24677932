"""Compare jury, jurors and metrics with the clinicians: the agreement table and all behind it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.adjudicated import (
    SECTIONS_BETWEEN_CLINICIANS,
    adjudicated,
    with_independent,
)
from calibration.clinicians import ClinicianRow
from calibration.decision import NOTHING_RATED, Decision, DecisionKind
from calibration.detection import NOTHING, Detection, all_misses, detection, untested
from calibration.json_values import decision_json
from calibration.notes import note
from calibration.protocol import Critical, Protocol
from calibration.reliability import ReliabilityRow, clinician_reliability
from calibration.scope import (
    AgreementRow,
    CliniciansRow,
    checked_jury,
    compared_names,
    without_clinicians,
)
from calibration.scores import Scores
from calibration.subgroups import SubgroupRow, subgroup_rows
from calibration.table import agreement_rows
from calibration.test_retest import has_replicates
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim, Verdicts, decisions
from data.errors import Unrated
from data.queries.frames import adjudicated_frame
from data.queries.validation import ADJUDICATED
from medjury.services.ledger import Looked, known_of
from medjury.services.record import protocol_json, protocol_of, steered
from medjury.services.scores import (
    Kept,
    Readings,
    all_instances,
    all_jurors,
    scores_of,
    silent_jurors,
    sound_only,
)

if TYPE_CHECKING:
    from calibration.details import Details
    from calibration.pingouin_check import PingouinCheck
    from calibration.report.content import CriterionRow, Paired

Tick = Callable[[float], None]


DEFAULT = AnalysisOptions()


@dataclass(frozen=True, slots=True)
class CalibrationQuestion:
    """What is asked: how to analyse, and how much beyond the table.

    Attributes
    ----------
    details : every section of statistics behind the table
    page : each criterion and each response's means too, as a page shows them
    further : the intervals and the model that stand in notes alone
    reference : how reliable the clinicians are, as JSON has it; details and a page always have it
    check : whether pingouin finds the same ICCs; a page always says so
    families : juror -> model family, of a panel; they count for jurors of whom the study has none
    """

    options: AnalysisOptions = DEFAULT
    details: bool = False
    page: bool = False
    further: bool = True
    reference: bool = True
    families: tuple[tuple[str, str], ...] = ()
    check: bool = False

    @property
    def wants_reference(self) -> bool:
        """Tell whether anything that is asked for says how reliable the clinicians are."""
        return self.reference or self.details or self.page

    @property
    def wants_check(self) -> bool:
        """Tell whether anything that is asked for says whether pingouin finds the same ICCs."""
        return self.check or self.page


THE_TABLE = CalibrationQuestion()


@dataclass(frozen=True, eq=False)
class Calibration:
    """The answer: the table, what may be said, and as much behind it as was asked for.

    Attributes
    ----------
    ratings : every rating of the study that counts
    reference : how reliable the clinicians are, and the jury's agreement freed of their error
    jury, silent : who sits, and who was asked and gave no rating
    protocol : what the study is to show, None where it was not fixed
    detection : what scorers find of unsafe responses
    subgroups : what the jury does in each subgroup
    checked : how far pingouin's ICCs are from these; None where it was not asked or is not installed
    readings : which readings the figures are of, and how many differences are settled
    told : lines that every report owes its reader
    warnings : what went wrong without touching a figure
    """

    question: CalibrationQuestion
    ratings: pd.DataFrame
    scores: Scores
    kept: Kept
    looked: Looked
    silent: tuple[str, ...]
    rows: list[AgreementRow]
    decisions: Mapping[str, Decision]
    protocol: Protocol | None = None
    reference: Sequence[ReliabilityRow] = ()
    detection: Detection = NOTHING
    subgroups: Sequence[SubgroupRow] = ()
    details: "Details" = field(default_factory=dict)
    criteria: "Sequence[CriterionRow]" = ()
    paired: "Mapping[str, Paired]" = field(default_factory=dict)
    checked: "PingouinCheck | None" = None
    readings: Readings = field(default_factory=Readings)
    told: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def jury(self) -> Sequence[str]:
        """Return who sits on the jury."""
        return self.looked.jurors

    @property
    def raters(self) -> Sequence[ClinicianRow]:
        """Return each clinician against the others, on all benchmarks combined or on the only one."""
        between = [row for row in self.rows if isinstance(row, CliniciansRow)]
        return between[-1].each if between else ()

    @property
    def check_line(self) -> str:
        """Return in words how far pingouin's ICCs are from these; "" where it was not asked."""
        from calibration.pingouin_check import NOT_CHECKED

        checked = self.checked.line if self.checked else NOT_CHECKED
        return checked if self.question.wants_check else ""

    @property
    def decision(self) -> Decision:
        """Return what may be said of all benchmarks combined, or of the only one."""
        return [*self.decisions.values()][-1]


def calibrate(
    engine: Engine,
    question: CalibrationQuestion = THE_TABLE,
    *,
    tick: Tick | None = None,
) -> Calibration:
    """Return how far jury, jurors and metrics agree with the clinicians of a study.

    Every jury that is looked at is noted in the study's ledger.

    Parameters
    ----------
    engine : of the study
    question : what is asked
    tick : called with the share of the table that is done

    Raises
    ------
    BadInput, Unknown, TooFew
        As `calibration.table.agreement_table`.
    """
    ready, options = _ready(engine, question), question.options
    protocol = protocol_of(engine)
    critical = protocol.critical if protocol else ()
    analysis = ready.scores, ready.options
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        rows, detected = _figures(ready, critical, tick)
        claim = claim_of(protocol, ready.looked.jurors, options, detected)
        verdicts = decisions(rows, claim)
        calibration = Calibration(
            question,
            ready.ratings,
            ready.scores,
            ready.kept,
            ready.looked,
            ready.silent,
            rows,
            {
                name: replace(decision, reading=ready.readings.named)
                for name, decision in verdicts.items()
            },
            protocol,
            detection=detected,
            subgroups=subgroup_rows(*analysis, options.groups, critical),
            readings=ready.readings,
            told=(*ready.readings.told, *ready.kept.told, *steered(engine)),
        )
        return _with_more(engine, _noted(engine, calibration, ready), ready)


def _figures(
    ready: "_Ready", critical: Sequence[Critical], tick: Tick | None
) -> tuple[list[AgreementRow], Detection]:
    """Return the table, and what is found of unsafe responses."""
    analysed, independent, options = ready.scores, ready.independent, ready.options
    rows = [_left_out(row, options) for row in agreement_rows(analysed, options, tick)]
    detected = detection(analysed, options, critical)
    if independent is analysed:
        return rows, detected
    rows = with_independent(rows, agreement_rows(independent, options))
    unsafe = detection(independent, options, critical).rows
    return rows, replace(detected, rows=with_independent(detected.rows, unsafe))


def _left_out(row: AgreementRow, options: AnalysisOptions) -> AgreementRow:
    """Return a row with a note on the clinicians that were left out on purpose."""
    if not options.without:
        return row
    return replace(
        row,
        notes=(
            note("left_out", "left out on purpose: {clinicians}", clinicians=options.without),
            *row.notes,
        ),
    )


def verdicts_of(engine: Engine, scores: Scores, options: AnalysisOptions) -> Verdicts:
    """Return the study's verdict on the jury of the options, as `calibrate` has it."""
    protocol = protocol_of(engine)
    detected = detection(scores, options, protocol.critical if protocol else ())
    rows = agreement_rows(scores, replace(options, further=False))
    claim = claim_of(protocol, options.jurors or (), options, detected)
    return Verdicts(rows, decisions(rows, claim))


def claim_of(
    protocol: Protocol | None, jurors: Sequence[str], options: AnalysisOptions, detected: Detection
) -> JuryClaim:
    """Return what is claimed of a jury, with the unsafe responses that it misses.

    Parameters
    ----------
    protocol : of the study, None where it was not fixed
    jurors, options : who sits on the jury, and the analysis
    detected : of `calibration.detection.detection`, asked with `critical` of the protocol
    """
    limits = protocol.critical if protocol else ()
    every = all_misses(detected.rows, limits)
    if protocol is None or not protocol.is_about(jurors, options):
        return JuryClaim(protocol, is_of_protocol=False, misses=every, without=options.without)
    return JuryClaim(protocol, misses=every, untested=untested(detected.rows, limits))


def more(
    engine: Engine,
    calibration: Calibration,
    question: CalibrationQuestion,
    tick: Tick | None = None,
) -> Calibration:
    """Return a calibration with what else is asked of it; the table is not computed again.

    `tick` is called with the share of the details that is done.
    """
    extended = replace(calibration, question=question)
    with threadpool_limits(1):
        return _with_more(engine, extended, _ready(engine, question), tick)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A study made ready for a question.

    `ratings` are all of the study; `scores` what is analysed, `independent` without settled
    differences: the same where these are not asked for.
    """

    ratings: pd.DataFrame
    scores: Scores
    independent: Scores
    readings: Readings
    kept: Kept
    looked: Looked
    silent: tuple[str, ...]
    options: AnalysisOptions


def _ready(engine: Engine, question: CalibrationQuestion) -> _Ready:
    options = question.options
    take = sound_only if options.references == "sound" else all_instances
    everything = _scores(engine, question)
    if options.without:
        everything = without_clinicians(everything, options.without)
    chosen = everything.of(options.benchmark) if options.benchmark else everything
    selection = take(engine, chosen)
    jury = list(options.jurors or all_jurors(selection.scores))
    silent = silent_jurors(engine, selection.scores)
    scores = (
        replace(selection.scores, silent=frozenset(silent)) if options.jurors else selection.scores
    )
    settling = adjudicated_frame(engine)
    settled, ratings, independent = adjudicated(scores, settling), everything.ratings, scores
    if options.reading == "adjudicated":
        scores, ratings = settled.scores, adjudicated(everything, settling).scores.ratings
    readings = Readings(options.reading, settled.third, settled.consensus)
    further = question.further
    seated = replace(options, jurors=tuple(jury) or None, further=further)
    checked_jury(scores, seated)
    needed, instances = options.min_jurors or len(jury), _instances(options)
    looked = Looked(jury, needed, options.criterion or "", options.method, instances)
    of = ratings, scores, independent, readings
    return _Ready(*of, selection, looked, tuple(silent), seated)


def _scores(engine: Engine, question: CalibrationQuestion) -> Scores:
    """Return the ratings that the figures need: of most studies those that clinicians rated too."""
    if question.options.references != "all":
        return scores_of(engine)
    scores = scores_of(engine, of_clinicians=True)
    repeated = (question.details or question.page) and has_replicates(scores)
    return scores_of(engine) if repeated else scores


def _instances(options: AnalysisOptions) -> str:
    """Return what the ledger calls the instances that were kept, and readings but independent ones."""
    labels = [] if options.references == "all" else [f"{options.references} references"]
    labels += [] if options.reading == "independent" else [ADJUDICATED]
    labels += [f"without {name}" for name in options.without]
    return ", ".join(labels)


def _noted(engine: Engine, calibration: Calibration, ready: _Ready) -> Calibration:
    """Note the jury in the ledger: before the details, whose p values count every comparison."""
    if not calibration.jury:
        return calibration
    compares_metrics = calibration.question.details or calibration.question.page
    others = (
        compared_names(calibration.jury, calibration.scores.raters("metric"))
        if compares_metrics
        else []
    )
    warning = calibration.looked.remember(engine, calibration.rows, others, calibration.ratings)
    return replace(calibration, warnings=(warning,) if warning else ())


def _with_more(
    engine: Engine, calibration: Calibration, ready: _Ready, tick: Tick | None = None
) -> Calibration:
    question = calibration.question
    if question.wants_reference and not calibration.reference:
        reliable = clinician_reliability(ready.independent, ready.options)
        calibration = replace(calibration, reference=reliable)
    if question.wants_check:
        from calibration.pingouin_check import pingouin_check

        own = [row for row in calibration.rows if not row.told("independent_readings")]
        check = pingouin_check(calibration.scores, ready.options, own)
        warnings = (*calibration.warnings, *([check.warning] if check and check.differs else []))
        calibration = replace(calibration, checked=check, warnings=warnings)
    if calibration.jury and question.page:
        from calibration.report.content import criterion_rows, paired_means

        criteria = criterion_rows(calibration.scores, ready.options)
        warning = calibration.looked.remember_criteria(engine, criteria)
        pairs = {
            means.benchmark: means for means in paired_means(calibration.scores, ready.options)
        }
        warnings = (*calibration.warnings, *([warning] if warning else []))
        calibration = replace(calibration, criteria=criteria, paired=pairs, warnings=warnings)
    if question.details or question.page:
        from calibration.details import details

        context = known_of(engine, calibration.looked, dict(question.families))
        context = replace(context, reference=calibration.reference)
        analysis = ready.options, context
        rows = details(calibration.scores, *analysis, tick)
        if ready.independent is not ready.scores:
            others = details(ready.independent, *analysis)
            rows |= {name: others.get(name, []) for name in SECTIONS_BETWEEN_CLINICIANS}
        calibration = replace(calibration, details=rows)
    return calibration


@dataclass(frozen=True, slots=True)
class Checked:
    """A protocol, and what the study says of it; `protocol` is None where none was set."""

    protocol: Protocol | None
    decision: Decision

    @property
    def is_met(self) -> bool:
        """Tell whether what was to be shown is shown."""
        return self.protocol is not None and self.decision.kind is DecisionKind.NON_INFERIOR

    def to_json(self) -> dict[str, Any]:
        """Return it as `study protocol check --json` has it."""
        return {
            "met": self.is_met,
            "protocol": protocol_json(self.protocol),
            "decision": decision_json(self.decision),
        }


def check_protocol(
    engine: Engine,
    tick: Callable[[float], None] | None = None,
    options: AnalysisOptions | None = None,
) -> Checked:
    """Analyse a study as its protocol says, and return the verdict.

    `options` gives the number of resamples and the seed alone. A study that no clinician has
    rated is undefined.
    """
    protocol, chosen = protocol_of(engine), options or AnalysisOptions()
    as_fixed = protocol.analysis(chosen.reps, chosen.seed) if protocol else chosen
    try:
        calibration = calibrate(
            engine, CalibrationQuestion(as_fixed, further=False, reference=False), tick=tick
        )
    except Unrated:
        return Checked(protocol, NOTHING_RATED)
    return Checked(protocol, calibration.decision)
