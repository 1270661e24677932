"""`medjury calibrate --pairs --json F`: what a page shows beyond the table and its details."""

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from sqlalchemy import Engine

from medjury.cli.reporting import Told, facts_of

if TYPE_CHECKING:
    from calibration.report.evidence import Paired

Pairs = Annotated[
    bool,
    typer.Option("--pairs", help="In --json: each criterion, each response's means, the facts."),
]


def pairs_of(engine: Engine, told: Told) -> dict[str, Any]:
    """Return the keys of `calibrate --json` that `--pairs` adds: criteria, pairs and study."""
    return {
        "criteria": [_plain(row) for row in told.beyond.criteria],
        "pairs": [_pair(one) for one in told.beyond.paired.values()],
        "study": _plain(asdict(facts_of(engine, told))),
    }


def _pair(one: "Paired") -> dict[str, Any]:
    return {
        "benchmark": one.benchmark,
        "responses": list(one.responses),
        "clinicians": [round(float(value), 6) for value in one.clinicians],
        "jury": [round(float(value), 6) for value in one.jury],
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON takes it: what is not finite becomes None."""
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
