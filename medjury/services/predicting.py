"""Predicting what clinicians would say of responses that none of them rated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration.decision import Decision
from calibration.json_values import decision_json
from calibration.notes import told
from calibration.predicting.predicted import predictions
from calibration.predicting.rows import PredictedRow, decide
from calibration.predicting.rows import to_json as row_to_json
from calibration.scope import checked_jury
from calibration.scores import Scores
from calibration.values import AnalysisOptions
from data.csv_files import cells
from medjury.services.calibrate import verdicts_of
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors


@dataclass(frozen=True, slots=True)
class PredictQuestion:
    """What is to be predicted, and at what level the intervals are."""

    options: AnalysisOptions
    level: float = 0.9


@dataclass(frozen=True, eq=False)
class Predictions:
    """What is predicted, and whether it may be used.

    Attributes
    ----------
    question : what was asked
    rows, responses : as `calibration.predicting.predicted.Predicted` has them
    decision : whether they may be used
    jury, silent : who sits on the jury, and which jurors were asked and gave no rating
    told : when and why the blind was lifted or the study reopened
    unnoted : why the jury is not in the ledger, or ""
    """

    question: PredictQuestion
    rows: Sequence[PredictedRow]
    responses: pd.DataFrame
    decision: Decision
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    told: tuple[str, ...]
    unnoted: str = ""


def predict(
    engine: Engine, question: PredictQuestion, tick: Callable[[float], None] | None = None
) -> Predictions:
    """Return the predictions; the ledger is told that the jury was compared with the clinicians.

    Parameters
    ----------
    engine, question : of which study, and what
    tick : called with the share of the work done

    Raises
    ------
    BadInput
        If the level is no share, or the study has no juror.
    Unknown
        If the study has no such juror, benchmark or criterion.
    """
    options, everything = question.options, scores_of(engine)
    silent = silent_jurors(engine, everything)
    jury = jury_named(everything, options.jurors, silent)
    scores = _seated(everything, jury, options.benchmark)
    options = replace(options, jurors=tuple(jury))
    checked_jury(scores, options)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        verdicts = verdicts_of(engine, scores, options)
        predicted = predictions(scores, options, verdicts, question.level, tick)
    return Predictions(
        question,
        predicted.rows,
        predicted.responses,
        decide(predicted.rows, verdicts.decisions),
        tuple(jury),
        tuple(silent),
        tuple(steered(engine)),
        _remember(engine, options, predicted.rows, jury, everything),
    )


def to_json(result: Predictions) -> dict[str, Any]:
    """Return the predictions as `analyse predict --json` has them."""
    return {
        "level": result.question.level,
        "seed": result.question.options.seed,
        "decision": decision_json(result.decision),
        "benchmarks": [row_to_json(row) for row in result.rows],
        "responses": len(result.responses),
    }


def csv_of(responses: pd.DataFrame) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row a response: nothing in it is a formula.

    A response's notes become words in `note`, and an instance has its own name.
    """
    words = {notes: told(notes) for notes in set(responses["notes"])}
    prefix = responses["benchmark"] + "/"
    names = [
        str(name).removeprefix(start)
        for name, start in zip(responses["instance_id"], prefix, strict=True)
    ]
    table = responses.assign(instance_id=names, note=responses["notes"].map(words))
    table = table.drop(columns="notes")
    columns = [str(name) for name in table.columns]
    rows = (tuple(map(_cell, row)) for row in table.itertuples(index=False, name=None))
    return columns, cells(columns, rows)


def _cell(value: Any) -> Any:
    """Return a value as Python has it; None where it is undefined."""
    value = value.item() if hasattr(value, "item") else value
    return None if value != value else value


def _seated(scores: Scores, jury: Sequence[str], benchmark: str | None) -> Scores:
    """Return the scores of one benchmark, or all; who sits on the jury has a seat in each."""
    return replace(scores.of(benchmark) if benchmark else scores, silent=frozenset(jury))


def _remember(
    engine: Engine,
    options: AnalysisOptions,
    rows: Sequence[PredictedRow],
    jury: Sequence[str],
    scores: Scores,
) -> str:
    """Note in the ledger what the agreement table would; return why not, or ""."""
    needed = options.min_jurors or len(jury)
    looked = Looked(jury, needed, options.criterion or "", options.method, "")
    return looked.remember(engine, [row.agreement for row in rows], [], scores.ratings)
