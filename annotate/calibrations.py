"""Calibrations that screens ask for, each computed once for an unchanged study, and what Study shows of them.

A process beside the server runs this. It loads no library that draws: who opens a study waits
for figures alone.
"""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy import Engine

from annotate.results import AgreementQuestion, HomeFigures
from calibration.decision import NOTHING_RATED
from calibration.notes import Figures, Kind, Note, filled, note
from calibration.tables.numbers import TERMINAL, icc_interval
from calibration.values import AnalysisOptions
from data.errors import BadInput, TooFew
from data.study.standing import version
from medjury.services.calibrate import Calibration, CalibrationQuestion, Tick, calibrate, more
from medjury.services.record import protocol_of

NOT_THE_JURYS = "not comparable with the jury's, which is with the mean of several clinicians"
NOT_THE_CLINICIANS = "not comparable with the clinicians', which is of one with one other"


def _icc(figures: Figures, of: str, on: str) -> str:
    """Return an ICC with its interval, whose it is, and on how much it rests."""
    ends = icc_interval(figures["low"], figures["high"], 2, TERMINAL)
    interval = f" (95 % interval {ends})" if ends else ""
    return filled(f"ICC(C,2) {of} {{icc:z.2f}}{interval} on {on}", figures)


def _of_clinicians(figures: Figures) -> str:
    return f"{_icc(figures, 'of one clinician with one other', '{pairs:pair}')}; {NOT_THE_JURYS}"


def _of_jury(figures: Figures) -> str:
    told = _icc(figures, "of the jury with the mean of the clinicians", "{responses:response}")
    return f"{told}; {NOT_THE_CLINICIANS}"


AGREEMENT_OF_CLINICIANS = ("agreement_of_clinicians", _of_clinicians)
AGREEMENT_OF_JURY = ("agreement_of_jury", _of_jury)

if TYPE_CHECKING:
    from calibration.scope import AgreementRow

Key = tuple[object, ...]
Value = TypeVar("Value")
KEPT = 4

_calibrations: OrderedDict[Key, Calibration] = OrderedDict()


def home(engine: Engine, question: AgreementQuestion, tick: Tick | None = None) -> HomeFigures:
    """Return what may be said of the study, and how far clinicians, and the jury with them, agree.

    Asked about nothing in particular, it is about what the protocol fixes.
    """
    protocol = protocol_of(engine)
    if protocol and question.options == AnalysisOptions():
        question = replace(question, options=protocol.analysis())
    try:
        calibration = calibration_of(engine, question, tick)
    except (BadInput, TooFew):
        return HomeFigures(NOTHING_RATED)
    widest = calibration.rows[-1].benchmark
    rows = {row.scorer: row for row in calibration.rows if row.benchmark == widest}
    between, jury = rows.get("clinicians"), rows.get("jury")
    return HomeFigures(
        calibration.decision,
        _answer_of(between, AGREEMENT_OF_CLINICIANS),
        _answer_of(jury, AGREEMENT_OF_JURY),
    )


def _answer_of(row: "AgreementRow | None", code: Kind) -> Note | None:
    """Return a row's ICC as the answer of a step, or why there is none; None without a row."""
    if row is None or not (math.isfinite(row.icc) or row.notes):
        return None
    if not math.isfinite(row.icc):
        return note("no_figure", "there is no figure: {reason}", reason=row.notes[0])
    ends = {"low": row.low, "high": row.high}
    return note(*code, icc=row.icc, **ends, pairs=row.n_pairs, responses=row.n_responses)


def calibration_of(
    engine: Engine, question: AgreementQuestion, tick: Tick | None = None
) -> Calibration:
    """Return a calibration without its details, computed once for an unchanged study."""
    table_only = CalibrationQuestion(question.options, reference=False, families=question.families)
    key = (engine.url, version(engine), question)
    return cached(_calibrations, key, lambda: calibrate(engine, table_only, tick=tick))


def detailed(engine: Engine, question: AgreementQuestion, tick: Tick | None = None) -> Calibration:
    """Return a calibration with its details, computed once for an unchanged study."""
    calibration = calibration_of(engine, question)
    if not calibration.question.details:
        with_details = CalibrationQuestion(
            question.options, details=True, page=True, families=question.families
        )
        calibration = more(engine, calibration, with_details, tick)
        _calibrations[engine.url, version(engine), question] = calibration
    return calibration


def cached(cache: OrderedDict[Key, Value], key: Key, compute: Callable[[], Value]) -> Value:
    """Return the cached value of a key, computing it if there is none; the last `KEPT` stay."""
    if key not in cache:
        cache[key] = compute()
        while len(cache) > KEPT:
            cache.popitem(last=False)
    return cache[key]
