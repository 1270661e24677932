"""A verdict from one table of preferences: which of two responses is better, without a study."""

from typing import Any

import pandas as pd

from calibration.pair_results import PairResult, pairs_result
from calibration.pairs import PairScores
from calibration.protocol import Protocol
from calibration.values import AnalysisOptions
from calibration.verdict import JuryClaim
from data.errors import BadInput
from data.importers.ratings import PREFERENCES
from data.safe_text import short
from medjury.services.check import CheckQuestion, kinds_of

PREFERENCE = ("preference", "winner")  # columns, of which a table of pairs has one
# Words of a preference -> points: above 0 the first is better.
WORDS = {**PREFERENCES, "model_a": 1.0, "model_b": -1.0}
WORDS |= {"a": 1.0, "b": -1.0, "model a": 1.0, "model b": -1.0, "tie (bothbad)": 0.0, "equal": 0.0}
SIDES = {"first": "first", "second": "second", "1": "first", "2": "second", "": ""}
MODELS = {"first_model": ("first_model", "model_a"), "second_model": ("second_model", "model_b")}


def has_preferences(frame: pd.DataFrame) -> bool:
    """Tell whether a table is one of preferences on pairs."""
    return any(name in frame.columns for name in PREFERENCE)


def checked_pairs(frame: pd.DataFrame, question: CheckQuestion, name: str) -> PairResult:
    """Return what a table of texts says: a row a preference of a rater on a pair.

    Parameters
    ----------
    frame : columns pair_id, rater and preference (-2 to 2, above 0 where the first is better; or first,
        second, tie) or winner (model_a, model_b, tie); where there are, kind, criterion, shown_first,
        instance_id, benchmark, and the models of both sides
    question : humans, judges, criterion and margin (in share of pairs); its column of items names the pair
    name : the file's, for messages
    """
    pair = question.item or "pair_id"
    if lost := [one for one in (pair, "rater") if one not in frame.columns]:
        raise BadInput(
            f"{name}: a table of pairs has a column {lost[0]} (--item names that of the pair)"
        )
    given = next(one for one in PREFERENCE if one in frame.columns)
    is_given = frame[given].astype(str).str.strip() != ""
    rows: pd.DataFrame = frame.loc[is_given].reset_index(drop=True)
    cells = rows[given].astype(str).str.strip()
    points = cells.map(_points)
    if points.isna().any():
        at = int(points.isna().to_numpy().argmax())
        who, on = (short(str(rows[one].iloc[at])) for one in ("rater", pair))
        raise BadInput(
            f"{name}: {given} of {on} by {who}: {short(cells.iloc[at])!r} is no preference: -2 to 2, first, "
            "second or tie"
        )
    raters = rows["rater"].astype(str).str.strip()
    kinds = kinds_of(name, raters, rows.get("kind"), question)
    table = pd.DataFrame(
        {
            "pair_id": _column(rows, pair, ""),
            "instance_id": _column(rows, question.cluster or "instance_id", rows[pair]),
            "benchmark": _column(rows, "benchmark", "all"),
            "criterion": _column(rows, "criterion", "overall"),
            "rater": raters,
            "preference": points,
            "shown_first": _column(rows, "shown_first", "").str.lower().map(SIDES).fillna(""),
            "pass_": 0,
        }
    )
    sides = {
        side: next((_column(rows, one, "") for one in names if one in rows), "")
        for side, names in MODELS.items()
    }
    table = table.assign(kind=table["rater"].map(kinds), **sides)
    table = table[table["kind"].isin(["clinician", "juror"])]
    pairs = table[["pair_id", "instance_id", "benchmark", *MODELS]].drop_duplicates("pair_id")
    scores = PairScores(table.drop(columns=[*MODELS]), pairs.reset_index(drop=True))
    protocol = (
        Protocol(question.margin, question.criterion, jurors=scores.raters("juror"))
        if question.margin is not None
        else None
    )
    options = AnalysisOptions(criterion=question.criterion or None)
    return pairs_result(scores, options, JuryClaim(protocol))


def _points(cell: str) -> float | None:
    """Return a preference as points, None where it is none."""
    if cell.lower() in WORDS:
        return WORDS[cell.lower()]
    try:
        return float(cell)
    except ValueError:
        return None


def _column(rows: pd.DataFrame, name: str, otherwise: "str | pd.Series[Any]") -> "pd.Series[Any]":
    """Return a column of texts, or what stands for it where there is none."""
    own = rows[name] if name in rows else pd.Series(otherwise, index=rows.index)
    return own.astype(str).str.strip()
