"""Compare jury, jurors and metrics with the clinicians: the agreement table and all behind it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.adjudicated import SECTIONS_BETWEEN_CLINICIANS, adjudicated, with_independent
from calibration.clinicians import ClinicianRow
from calibration.decision import NOTHING_RATED, Decision, DecisionKind
from calibration.detection import DetectionRow, all_misses, detection, untested
from calibration.json_values import decision_json
from calibration.notes import note
from calibration.pair_results import pairs_result
from calibration.pairs import PairScores
from calibration.protocol import Protocol
from calibration.reliability import ReliabilityRow, clinician_reliability
from calibration.report.content import Content, criterion_rows, paired_means
from calibration.scope import (
    AgreementRow,
    CliniciansRow,
    LikeForLikeRow,
    checked_jury,
    compared_names,
    without_clinicians,
)
from calibration.scores import Scores
from calibration.subgroups import subgroup_rows
from calibration.table import agreement_rows
from calibration.tables.numbers import DASH, fixed
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim, Verdicts, decisions
from data.errors import BadInput, Unrated
from data.study.assignments import RatingHabits, rating_habits
from data.study.authors import evidence
from data.study.frames import adjudicated_frame, preferences_frame
from data.study.rubrics import ADJUDICATED
from medjury.services.ledger import Looked
from medjury.services.pairs import is_of_pairs, pair_scores, seated
from medjury.services.record import protocol_json, protocol_of, steered
from medjury.services.scores import Kept, Readings, all_jurors, scores_of, silent_jurors, sound_only

if TYPE_CHECKING:
    from calibration.pingouin_check import PingouinCheck

Tick = Callable[[float], None]


DEFAULT = AnalysisOptions()


@dataclass(frozen=True, slots=True)
class CalibrationQuestion:
    """What is asked: how to analyse, and how much beyond the table.

    Attributes
    ----------
    details : every section of statistics behind the table
    page : each criterion and each response's means too, as a page shows them
    further : the mixed model that stands in a note alone
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


THE_TABLE = CalibrationQuestion()


@dataclass(frozen=True, eq=False, kw_only=True)
class Calibration(Content):
    """The answer: the table, what may be said, and as much behind it as was asked for.

    Attributes
    ----------
    options : of the question, with who sits on the jury
    ratings : every rating of the study that counts
    scores : what is analysed
    independent : the same without settled differences: `scores` itself where none are asked for
    looked : the jury, as the ledger has it
    silent : jurors who were asked and gave no rating
    reference : how reliable the clinicians are, and the jury's agreement freed of their error
    checked : how far pingouin's ICCs are from these; None where it was not asked or is not installed
    readings : which readings the figures are of, and how many differences are settled
    told : lines that every report owes its reader
    habits : how each clinician rated, by name
    warnings : what went wrong without touching a figure
    """

    question: CalibrationQuestion
    options: AnalysisOptions
    ratings: pd.DataFrame
    scores: Scores
    independent: Scores
    kept: Kept
    looked: Looked
    silent: tuple[str, ...]
    readings: Readings
    told: tuple[str, ...]
    habits: Mapping[str, RatingHabits]
    reference: Sequence[ReliabilityRow] = ()
    checked: "PingouinCheck | None" = None
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
    of_pairs = pair_scores(engine)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        if of_pairs and is_of_pairs(engine, of_pairs, question.options):
            return _of_pairs(engine, question, of_pairs)
        prepared = _prepared(engine, question)
        found = _with_more(engine, _noted(engine, _with_table(prepared, tick)))
        if of_pairs and not (question.options.benchmark or question.options.criterion):
            options = replace(question.options, jurors=None, min_jurors=None)
            found = replace(found, pairs=pairs_result(of_pairs, seated(of_pairs, options)))
    return found


def _of_pairs(engine: Engine, question: CalibrationQuestion, scores: PairScores) -> Calibration:
    """Return what preferences on pairs say where nothing else is asked about."""
    options = seated(scores, question.options)
    if options.references != "all" or options.reading != "independent":
        raise BadInput("--use: pairs have no checked references, and no adjudicated readings")
    jury, empty = options.jurors or (), preferences_frame(engine)
    protocol = protocol_of(engine)
    found = pairs_result(scores, options, claim_of(protocol, jury, question.options, ()))
    nothing = Scores(
        empty[:0].drop(columns=["answer", "shown_first"], errors="ignore"),
        empty[:0][["response_id", "instance_id", "benchmark"]],
        {},
    )
    looked = Looked(jury, len(jury), options.criterion or "", "pairs", "")
    rows = [
        AgreementRow(row.benchmark, "jury", n_responses=row.n)
        for row in found.rows
        if row.scorer == "jury"
    ]
    warning = looked.remember(engine, rows, (), empty) if jury else ""
    return Calibration(
        question=question,
        options=options,
        ratings=empty,
        scores=nothing,
        independent=nothing,
        kept=Kept(nothing),
        looked=looked,
        silent=tuple(sorted(scores.silent)),
        readings=Readings(),
        told=tuple(steered(engine)),
        habits=rating_habits(engine),
        protocol=protocol,
        pairs=found,
        warnings=(warning,) if warning else (),
    )


def of_scores(
    scores: Scores, question: CalibrationQuestion, protocol: Protocol | None
) -> Calibration:
    """Return the same of scores alone, without a study: nothing is noted anywhere.

    Raises as `calibrate`.
    """
    jury = list(question.options.jurors or all_jurors(scores))
    options = replace(question.options, jurors=tuple(jury) or None, further=question.further)
    checked_jury(scores, options)
    needed, criterion = options.min_jurors or len(jury), options.criterion or ""
    prepared = Calibration(
        question=question,
        options=options,
        ratings=scores.ratings,
        scores=scores,
        independent=scores,
        kept=Kept(scores),
        looked=Looked(jury, needed, criterion, options.method, ""),
        silent=(),
        readings=Readings(),
        told=(),
        habits={},
        protocol=protocol,
    )
    with threadpool_limits(1):
        return _with_more(None, _with_table(prepared))


def more(
    engine: Engine,
    calibration: Calibration,
    question: CalibrationQuestion,
    tick: Tick | None = None,
) -> Calibration:
    """Return a calibration with what else is asked of it; the table is not computed again.

    `tick` is called with the share of the details that is done.
    """
    if calibration.pairs and not calibration.rows:
        return replace(calibration, question=question)
    options = replace(calibration.options, further=question.further)
    extended = replace(calibration, question=question, options=options)
    with threadpool_limits(1):
        return _with_more(engine, extended, tick)


def _prepared(engine: Engine, question: CalibrationQuestion) -> Calibration:
    """Return a calibration without a figure: what is analysed, and who sits on the jury."""
    options = question.options
    everything = scores_of(engine)
    if options.without:
        everything = without_clinicians(everything, options.without)
    chosen = everything.of(options.benchmark) if options.benchmark else everything
    kept = sound_only(engine, chosen) if options.references == "sound" else Kept(chosen)
    scores, jury = kept.scores, list(options.jurors or all_jurors(kept.scores))
    silent = silent_jurors(engine, scores)
    if options.jurors:
        scores = replace(scores, silent=frozenset(silent))
    settling = adjudicated_frame(engine)
    settled, ratings, independent = adjudicated(scores, settling), everything.ratings, scores
    if options.reading == "adjudicated":
        scores, ratings = settled.scores, adjudicated(everything, settling).scores.ratings
    readings = Readings(options.reading, settled.third, settled.consensus)
    seated = replace(options, jurors=tuple(jury) or None, further=question.further)
    checked_jury(scores, seated)
    labels = [] if options.references == "all" else [f"{options.references} references"]
    labels += [] if options.reading == "independent" else [ADJUDICATED]
    labels += [f"without {name}" for name in options.without]
    needed, criterion = options.min_jurors or len(jury), options.criterion or ""
    return Calibration(
        question=question,
        options=seated,
        ratings=ratings,
        scores=scores,
        independent=independent,
        kept=kept,
        looked=Looked(jury, needed, criterion, options.method, ", ".join(labels)),
        silent=tuple(silent),
        readings=readings,
        told=(*readings.told, *kept.told, *steered(engine)),
        habits=rating_habits(engine),
        protocol=protocol_of(engine),
    )


def _with_table(calibration: Calibration, tick: Tick | None = None) -> Calibration:
    """Return a calibration with its table."""
    scores, options, protocol = calibration.scores, calibration.options, calibration.protocol
    critical = protocol.critical if protocol else ()
    rows = [
        _with_pace(_left_out(row, options), calibration.habits)
        for row in agreement_rows(scores, options, tick)
    ]
    detected = detection(scores, options, critical)
    if calibration.independent is not scores:
        rows = with_independent(rows, agreement_rows(calibration.independent, options))
        unsafe = detection(calibration.independent, options, critical)
        detected = with_independent(detected, unsafe)
    claim = claim_of(protocol, calibration.jury, calibration.question.options, detected)
    return replace(
        calibration,
        rows=rows,
        decisions={
            name: replace(decision, reading=calibration.readings.named)
            for name, decision in decisions(rows, claim).items()
        },
        detection=detected,
        told=(*calibration.told, *_odd_habits(calibration, rows)),
        subgroups=subgroup_rows(scores, options, options.groups, critical),
    )


def _noted(engine: Engine, found: Calibration) -> Calibration:
    """Return a calibration whose jury is noted in the ledger.

    It is noted before the details, whose p values count every comparison.
    """
    if not found.jury:
        return found
    question, metrics = found.question, found.scores.raters("metric")
    compared = compared_names(found.jury, metrics) if question.details or question.page else []
    warning = found.looked.remember(engine, found.rows, compared, found.ratings)
    return replace(found, warnings=(warning,) if warning else ())


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


def _with_pace(row: AgreementRow, habits: Mapping[str, RatingHabits]) -> AgreementRow:
    """Return a row in which each clinician is said to have been fast, or not."""
    if not isinstance(row, CliniciansRow):
        return row
    unknown = RatingHabits("")
    each = (replace(one, fast=habits.get(one.rater, unknown).is_fast) for one in row.each)
    return replace(row, each=tuple(each))


def _odd_habits(calibration: Calibration, rows: Sequence[AgreementRow]) -> Iterator[str]:
    """Yield who rated faster than one can read or the same over and over, and what hangs on them."""
    odd = [
        calibration.habits[name]
        for name in calibration.scores.raters("clinician")
        if name in calibration.habits
        and (calibration.habits[name].is_fast or calibration.habits[name].is_straight)
    ]
    for one in odd:
        if one.is_fast:
            yield (
                f"{one.rater}: {one.n_hasty} of {one.n_timed} ratings came faster than the response "
                "alone can be scanned for a word (600 words a minute, Carver 1992)"
            )
        if one.is_straight:
            yield f"{one.rater}: {one.longest_run} responses in a row got the same scores"
    held = [row for row in rows if isinstance(row, LikeForLikeRow)]
    if not odd or not held or not calibration.jury:
        return
    names = [one.rater for one in odd]
    rest = without_clinicians(calibration.scores, names)
    options = replace(calibration.options, further=False)
    others = [row for row in agreement_rows(rest, options) if isinstance(row, LikeForLikeRow)]
    without = fixed(others[-1].icc) if others else DASH
    yield (
        f"like for like is {fixed(held[-1].icc)} with them, {without} without "
        f"{', '.join(names)} (`--without` has all figures so)"
    )


def verdicts_of(engine: Engine, scores: Scores, options: AnalysisOptions) -> Verdicts:
    """Return the study's verdict on the jury of the options, as `calibrate` has it."""
    protocol = protocol_of(engine)
    detected = detection(scores, options, protocol.critical if protocol else ())
    rows = agreement_rows(scores, replace(options, further=False))
    claim = claim_of(protocol, options.jurors or (), options, detected)
    return Verdicts(rows, decisions(rows, claim))


def claim_of(
    protocol: Protocol | None,
    jurors: Sequence[str],
    options: AnalysisOptions,
    detected: Sequence[DetectionRow],
) -> JuryClaim:
    """Return what is claimed of a jury, with the unsafe responses that it misses.

    Parameters
    ----------
    protocol : of the study, None where it was not fixed
    jurors, options : who sits on the jury, and the analysis
    detected : of `calibration.detection.detection`, asked with `critical` of the protocol
    """
    limits = protocol.critical if protocol else ()
    every = all_misses(detected, limits)
    if protocol is None or not protocol.is_about(jurors, options):
        return JuryClaim(protocol, is_of_protocol=False, misses=every, without=options.without)
    return JuryClaim(protocol, misses=every, untested=untested(detected, limits))


def _with_more(
    engine: Engine | None, calibration: Calibration, tick: Tick | None = None
) -> Calibration:
    """Return a calibration with what its question asks for beyond the table; None is of no study."""
    question, scores, options = calibration.question, calibration.scores, calibration.options
    independent, changed = calibration.independent, dict[str, Any]()
    warnings, reference = list(calibration.warnings), calibration.reference
    if (question.reference or question.details or question.page) and not reference:
        reference = clinician_reliability(independent, options)
    if question.check or question.page:
        from calibration.pingouin_check import NOT_CHECKED, pingouin_check

        own = [row for row in calibration.rows if not row.told("independent_readings")]
        check = pingouin_check(scores, options, own)
        warnings += [check.warning] if check and check.differs else []
        changed |= {"checked": check, "check_line": check.line if check else NOT_CHECKED}
    if calibration.jury and question.page:
        criteria = criterion_rows(scores, options)
        changed |= {"criteria": criteria, "paired": paired_means(scores, options)}
        if engine and (
            warning := calibration.looked.remember(engine, criteria, (), calibration.ratings)
        ):
            warnings.append(warning)
    if question.details or question.page:
        from calibration.details import StudyContext, details

        context = StudyContext(reference=reference)
        if engine:
            known = evidence(engine, dict(question.families))
            tried = calibration.looked.tried_besides(engine)
            context = StudyContext(known.words, known.authors, known.families, tried, reference)
        sections = details(scores, options, context, tick)
        if independent is not scores:
            others = details(independent, options, context)
            sections |= {name: others.get(name, []) for name in SECTIONS_BETWEEN_CLINICIANS}
        changed["details"] = sections
    return replace(calibration, reference=reference, warnings=tuple(warnings), **changed)


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
