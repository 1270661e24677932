"""Compare jury, jurors and metrics with the clinicians: the agreement table and all behind it."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.adjudicated import adjudicated
from calibration.decision import NOTHING_RATED, Decision, DecisionKind
from calibration.detection import detection
from calibration.json_values import decision_json, protocol_json
from calibration.pair_results import pairs_result
from calibration.pairs import PairScores
from calibration.protocol import Protocol
from calibration.scope import (
    AgreementRow,
    checked_jury,
    compared_names,
    without_clinicians,
)
from calibration.scores import Scores
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
from calibration.verdict import Verdicts, decisions
from data.errors import BadInput, Unrated
from data.study.assignments import rating_habits
from data.study.authors import evidence
from data.study.frames import adjudicated_frame, preferences_frame
from data.study.rubrics import ADJUDICATED
from medjury.services.calibration import (
    THE_TABLE,
    Calibration,
    CalibrationQuestion,
    Kept,
    Readings,
    Tick,
    claim_of,
    with_checks,
    with_details,
    with_table,
)
from medjury.services.ledger import Looked
from medjury.services.pairs import beside, is_of_pairs, pair_scores, seated
from medjury.services.record import protocol_of, steered
from medjury.services.scores import scores_of, silent_jurors, sound_only


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
        found = _with_more(engine, _noted(engine, with_table(prepared, tick)))
        if of_pairs and (options := beside(of_pairs, question.options)):
            found = replace(found, pairs=pairs_result(of_pairs, options))
    return found


def _of_pairs(engine: Engine, question: CalibrationQuestion, scores: PairScores) -> Calibration:
    """Return what preferences on pairs say where nothing else is asked about."""
    options = seated(scores, question.options)
    if options.references != "all" or options.reading != "independent":
        raise BadInput("--use: pairs have no checked references, and no adjudicated readings")
    jury, given = options.jurors or (), preferences_frame(engine)
    protocol = protocol_of(engine)
    found = pairs_result(scores, options, claim_of(protocol, jury, question.options, ()))
    nothing = Scores(
        given[:0].drop(columns="shown_first"),
        given[:0][["response_id", "instance_id", "benchmark"]],
        {},
    )
    looked = Looked(jury, len(jury), options.criterion or "", "pairs", "")
    rows = [
        AgreementRow(row.benchmark, "jury", n_responses=row.n)
        for row in found.rows
        if row.scorer == "jury"
    ]
    warning = looked.remember(engine, rows, (), given) if jury else ""
    return Calibration(
        question=question,
        options=options,
        ratings=given,
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


def more(
    engine: Engine,
    calibration: Calibration,
    question: CalibrationQuestion,
    tick: Tick | None = None,
) -> Calibration:
    """Return a calibration with what else is asked of it; the table is not computed again.

    `tick` is called with the share of the details that is done.
    """
    if calibration.of_pairs:
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
    scores, jury = kept.scores, list(options.jurors or kept.scores.all_jurors())
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


def verdicts_of(engine: Engine, scores: Scores, options: AnalysisOptions) -> Verdicts:
    """Return the study's verdict on the jury of the options, as `calibrate` has it."""
    protocol = protocol_of(engine)
    detected = detection(scores, options, protocol.critical if protocol else ())
    rows = agreement_rows(scores, replace(options, further=False))
    claim = claim_of(protocol, options.jurors or (), options, detected)
    return Verdicts(rows, decisions(rows, claim))


def _with_more(engine: Engine, calibration: Calibration, tick: Tick | None = None) -> Calibration:
    """Return a calibration with what its question asks for beyond the table.

    Criteria are noted in the ledger before the details, whose p values count every comparison.
    """
    found, question = with_checks(calibration), calibration.question
    if (
        found.jury
        and question.page
        and (warning := found.looked.remember(engine, found.criteria, (), found.ratings))
    ):
        found = replace(found, warnings=(*found.warnings, warning))
    if not (question.details or question.page):
        return found
    from calibration.details import StudyContext

    known = evidence(engine, dict(question.families))
    tried = found.looked.tried_besides(engine)
    context = StudyContext(known.words, known.authors, known.families, tried)
    return with_details(found, context, tick)


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
    tick: Tick | None = None,
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
