"""Ranked juries on the screen and as JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medjury.cli.output import counted, say, show

if TYPE_CHECKING:
    from calibration.juries.ranking import Ranking
    from calibration.juries.rows import JuryRow, Winner
    from medjury.cli.juries import Asked

COLUMNS = ("jury", "rank", "ICC(C,2)", "honest", "95 %", "usd", "responses")
LEGEND = (
    "honest: what the jury chosen for this place is worth on responses it was not chosen on. "
    "95 %: bootstrap of this jury as if no other had been tried. usd: its members' verdicts on a "
    "response. *: no other jury has at least its ICC for at most its money."
)
Where = tuple[str, int, int]
"""The benchmark; how many juries were tried on the study before, in how many ways besides these."""


def print_ranking(
    found: "Ranking",
    asked: "Asked",
    where: Where,
    made_up: Sequence[str],
    json_to: Path | None,
) -> None:
    """Print the best jury of each size, the best of all, the front, and what to make of it.

    `made_up` are the jurors whose prices are made up.
    """
    simulated = ", simulated" if "simulated raters" in found.note else ""
    pooled = "weighted mean" if asked.pool == "weighted" else asked.pool
    said = f"{where[0]}: %s (method {asked.method}, {pooled} of members{simulated})"
    sizes = [_cells(one.row, one.icc_honest) for one in found.by_size]
    show(said % "the best jury of each size", COLUMNS, sizes, json_to)
    first = [_cells(row, row.icc_honest) for row in found.rows[: asked.top]]
    show(said % f"the first of {len(found.rows):,} juries", COLUMNS, first, json_to)
    front = sorted((row for row in found.rows if row.on_front), key=_price)
    if front:
        cells = [_cells(row, row.icc_honest) for row in front[: asked.top]]
        more = f", {asked.top} of {len(front)}" if len(front) > asked.top else ""
        money = "money at made-up prices" if made_up else "money"
        show(said % f"agreement for {money}, the cheapest first{more}", COLUMNS, cells, json_to)
    for line in _told(found, where):
        say(line, json_to)
    if made_up:
        say(f"usd: made-up prices of {', '.join(made_up)}; nothing was spent on them", json_to)


def to_json(
    found: "Ranking", asked: "Asked", where: Where, made_up: Sequence[str]
) -> dict[str, Any]:
    """Return what `medjury juries --json` writes; undefined is None."""
    return {
        "method": asked.method,
        "criterion": asked.criterion,
        "benchmark": where[0],
        "pool": asked.pool,
        "common": found.common,
        "k_jurors": len(found.pool),
        "n_juries": len(found.rows),
        "reps": asked.reps,
        "seed": asked.seed,
        "n_responses": found.n_responses,
        "n_juries_before": where[1],
        "n_tried_before": where[2],
        "n_unknown_cost": _unknown(found.rows),
        "usd_made_up": list(made_up),
        "winner": None if found.winner is None else _winner(found.winner),
        "by_size": [_winner(one) for one in found.by_size],
        "rows": [_row(row) for row in found.rows],
        "note": found.note,
    }


def _cells(row: "JuryRow", honest: float) -> list[str]:
    usd = "unknown" if row.usd_per_response is None else f"{row.usd_per_response:.4f}"
    return [
        ", ".join(row.jurors),
        "" if row.rank is None else f"{row.rank}",
        f"{row.icc:z.3f}" if math.isfinite(row.icc) else "undefined",
        f"{honest:z.3f}" if math.isfinite(honest) else "-",
        f"{row.low:z.2f} to {row.high:z.2f}" if math.isfinite(row.low) else "-",
        usd + ("*" if row.on_front else ""),
        f"{row.n_responses}",
    ]


def _told(found: "Ranking", where: Where) -> Iterator[str]:
    """Yield what to make of the tables."""
    best = found.winner
    if best is None:
        yield "no jury has an ICC; the reason is in the note of each row of --json"
    elif math.isfinite(best.optimism):
        yield (
            f"the best of {best.n_compared:,} juries, {', '.join(best.row.jurors)}: "
            f"ICC {best.row.icc:z.3f}, honest {best.icc_honest:z.3f} (optimism {best.optimism:z.3f})"
        )
    else:
        yield "no honest ICC: it takes at least 2 instances and some resamples"
    from calibration.report.ways import tried

    yield (
        f"tried on this study before, besides these: {tried(where[1], where[2])}; these are in "
        "the ledger now"
    )
    if unknown := _unknown(found.rows):
        yield (
            f"{counted(unknown, 'jury').replace('jurys', 'juries')} with a juror whose cost is not "
            "known: not weighed against money"
        )
    yield LEGEND
    yield from filter(None, found.note.split("; "))


def _unknown(rows: Sequence["JuryRow"]) -> int:
    """Count the juries whose cost is not known."""
    return sum(row.usd_per_response is None for row in rows)


def _price(row: "JuryRow") -> float:
    return math.inf if row.usd_per_response is None else row.usd_per_response


def _winner(winner: "Winner") -> dict[str, Any]:
    honest = {"icc_honest": winner.icc_honest, "optimism": winner.optimism}
    return _row(winner.row) | _plain(honest) | {"n_compared": winner.n_compared}


def _row(row: "JuryRow") -> dict[str, Any]:
    found = _plain(asdict(row)) | {"jurors": list(row.jurors)}
    if row.weights is None:
        return {name: value for name, value in found.items() if name != "weights"}
    return found | {"weights": list(row.weights)}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
