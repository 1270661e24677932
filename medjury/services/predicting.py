"""Predicting what clinicians would say of responses that none of them rated."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from sqlalchemy import Engine
from threadpoolctl import threadpool_limits

from calibration import predicting
from calibration.decision import Decision
from calibration.json_values import decision_json
from calibration.notes import told
from calibration.scope import checked_jury
from calibration.values import AnalysisOptions
from data.files import frame_cells
from medjury.services.calibrate import verdicts_of
from medjury.services.ledger import Looked
from medjury.services.record import steered
from medjury.services.scores import jury_named, scores_of, silent_jurors


@dataclass(frozen=True, eq=False)
class Predictions:
    """What is predicted of what was asked, and whether it may be used.

    `rows` and `responses` are as `calibration.predicting.predictions` has them; `silent` jurors were
    asked and gave no rating; `told` is when and why the blind was lifted or the study reopened;
    `unnoted` is why the jury is not in the ledger, or "".
    """

    options: AnalysisOptions
    level: float
    rows: Sequence[predicting.PredictedRow]
    responses: pd.DataFrame
    decision: Decision
    jury: tuple[str, ...]
    silent: tuple[str, ...]
    told: tuple[str, ...]
    unnoted: str = ""


def predict(
    engine: Engine,
    asked: AnalysisOptions,
    level: float = 0.9,
    tick: Callable[[float], None] | None = None,
) -> Predictions:
    """Return the predictions; the ledger is told that the jury was compared with the clinicians.

    `level` is that of the intervals, in (0, 1); `tick` is called with the share of the work done.

    Raises
    ------
    BadInput, Unknown
        If the level is no share, or the study has no juror; no such juror, benchmark or criterion.
    """
    everything = scores_of(engine)
    silent = silent_jurors(engine, everything)
    jury = tuple(jury_named(everything, asked.jurors, silent))
    options = replace(asked, jurors=jury)
    scores = everything.of(options.benchmark) if options.benchmark else everything
    scores = replace(scores, silent=frozenset(jury))  # who sits on the jury has a seat in each
    checked_jury(scores, options)
    with threadpool_limits(1):  # many small products: BLAS threads only wait for each other
        verdicts = verdicts_of(engine, scores, options)
        rows, responses = predicting.predictions(scores, options, verdicts.decisions, level, tick)
    needed = options.min_jurors or len(jury)
    looked = Looked(list(jury), needed, options.criterion or "", options.method, "")
    unnoted = looked.remember(engine, verdicts.rows, [], everything.ratings)
    decision = predicting.decide(rows, verdicts.decisions)
    lifted = tuple(steered(engine))
    return Predictions(
        asked, level, rows, responses, decision, jury, tuple(silent), lifted, unnoted
    )


def to_json(result: Predictions) -> dict[str, Any]:
    """Return the predictions as `analyse predict --json` has them."""
    return {
        "level": result.level,
        "seed": result.options.seed,
        "decision": decision_json(result.decision),
        "benchmarks": [predicting.to_json(row) for row in result.rows],
        "responses": len(result.responses),
    }


def csv_of(responses: pd.DataFrame) -> tuple[list[str], Iterator[list[object]]]:
    """Return the columns of the file, and a row a response: nothing in it is a formula.

    A response's notes become words in `note`.
    """
    table = responses.assign(note=responses["notes"].map(told)).drop(columns="notes")
    return frame_cells(table)
