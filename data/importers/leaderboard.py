"""A leaderboard of HELM as it is downloaded: CSV, or the JSON of a group of a release."""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.errors import BadFile
from data.importers.table import TableFile
from data.safe_text import short

MODEL, WIN_RATE = "Model", "Mean win rate"
BETWEEN = " - "  # a benchmark and its metric in a heading


@dataclass(frozen=True, slots=True)
class LeaderboardFile:
    """Headings and scores of a leaderboard: a row a model; None where there is no score."""

    models: tuple[str, ...]
    headings: tuple[tuple[str, str], ...]
    scores: tuple[tuple[float | None, ...], ...]
    win_rates: dict[str, float]


def read_leaderboard(path: Path) -> LeaderboardFile:
    """Return a leaderboard: columns Model, Mean win rate (if any), and "BENCHMARK - METRIC".

    Raises
    ------
    BadFile
        If it is none, a model stands twice, or a score is no number; the cell is named.
    """
    header, rows = _of_json(path) if path.suffix.lower() == ".json" else _of_table(path)
    if not header or header[0].strip().lower() != MODEL.lower():
        raise BadFile(f"{path}: is no leaderboard of HELM, whose first column is {MODEL}")
    places = [at for at, name in enumerate(header) if at and name.strip() != WIN_RATE]
    if len(places) < 1 or len(rows) < 2:
        raise BadFile(
            f"{path}: has {len(rows)} models and {len(places)} benchmarks; two and one at least"
        )
    win = next((at for at, name in enumerate(header) if name.strip() == WIN_RATE), None)
    models: list[str] = []
    scores: list[tuple[float | None, ...]] = []
    win_rates: dict[str, float] = {}
    for number, row in enumerate(rows, start=1):
        model = str(row[0]).strip()
        if not model or model in models:
            raise BadFile(
                f"{path}: row {number}: the model {short(model)!r} is empty or stands twice"
            )
        models.append(model)
        scores.append(tuple(_score(path, number, header[at], row[at]) for at in places))
        told = None if win is None else _score(path, number, WIN_RATE, row[win])
        win_rates |= {} if told is None else {model: told}
    headings = tuple(_heading(header[at]) for at in places)
    return LeaderboardFile(tuple(models), headings, tuple(scores), win_rates)


def _heading(name: str) -> tuple[str, str]:
    benchmark, _, metric = " ".join(name.split()).partition(BETWEEN)
    return benchmark, metric


def _of_table(path: Path) -> tuple[list[str], list[list[Any]]]:
    table = TableFile(path)
    header = list(table.columns)
    return header, [[cells.get(name, "") for name in header] for _, cells in table]


def _of_json(path: Path) -> tuple[list[str], list[list[Any]]]:
    """Return the table of a group: an object with header and rows of cells, or a list of them."""
    try:
        body = json.loads(path.read_text("utf-8"))
        table = body[0] if isinstance(body, list) else body
        header = [str(cell["value"]) for cell in table["header"]]
        return header, [[cell.get("value") for cell in row] for row in table["rows"]]
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise BadFile(f"{path}: is no table of a HELM release (header and rows of cells)") from None


def _score(path: Path, number: int, heading: str, value: Any) -> float | None:
    """Return a score; None for an empty cell or a dash."""
    if value is None or str(value).strip() in ("", "-", "\u2013"):
        return None
    try:
        score = float(value)
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        raise BadFile(f"{path}: row {number}, {short(heading)}: {short(str(value))!r} is no number")
    return score
