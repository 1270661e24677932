"""`medjury jury missing`: what jurors have not rated and why, and what all calls have cost."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from data.calls import TokenCosts
from data.queries.jury import MissingVerdict, Spending, missing_verdicts, spending
from data.queries.jury import by_juror as missing_by_juror
from data.queries.planted import Planted, planted_texts
from data.queries.spending import InFlight, in_flight
from data.queries.token_costs import token_costs_by_juror
from medjury.cli.jury_words import in_flight_words, planted_words, token_words
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, room, say, show, width
from medjury.cli.places import check_json, write_json

COLUMNS = ["juror", "response_id", "status", "calls", "reason"]


def missing(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """List missing verdicts with the last reason, and what all calls have cost."""
    engine = study_of(context, db)
    check_json(json_to)
    rows, spent, open_ = missing_verdicts(engine), spending(engine), in_flight(engine)
    planted = planted_texts(engine)
    held = {(one.benchmark, one.response_id): one for one in planted}
    if rows:
        _table(_cells(rows), json_to)
    totals = missing_by_juror(rows)
    for juror, counts in totals.items():
        each = ", ".join(f"{number} {status}" for status, number in counts.items())
        say(f"missing: {juror}: {each}", json_to)
    if not rows:
        say("no verdict is missing of what jurors were asked for", json_to)
    for line in planted_words(planted):
        say(line, json_to)
    _say_spent(spent, open_, json_to)
    costs = token_costs_by_juror(engine)
    for line in told_costs(costs):
        say(line, json_to)
    body = {
        "missing": [
            one.to_json() | _of_its_response(held.get((one.benchmark, one.response_id)))
            for one in rows
        ],
        **_planted_json(planted),
        "jurors": [
            {"juror": juror, "missing": sum(counts.values()), "by_status": counts}
            for juror, counts in totals.items()
        ],
        "tokens": {juror: one.to_json() for juror, one in costs.items()},
    }
    write_json(body | _money(spent, open_), json_to)


def _of_its_response(held: Planted | None) -> dict[str, Any]:
    """Return what a row says of what its response holds."""
    return {
        "verdict_in_response": held is not None and held.verdict,
        "tags_broken_in": list(held.tags_broken_in) if held is not None else [],
    }


def _planted_json(planted: Sequence[Planted]) -> dict[str, Any]:
    """Return which responses of the study hold a verdict, and which tags of the prompt."""
    named = [({"benchmark": one.benchmark, "response_id": one.response_id}, one) for one in planted]
    return {
        "verdicts_in_responses": [name for name, one in named if one.verdict],
        "tags_broken_in": [
            name | {"parts": list(one.tags_broken_in)} for name, one in named if one.tags_broken_in
        ],
    }


def told_costs(costs: Mapping[str, TokenCosts]) -> Iterator[str]:
    """Yield what each juror's calls took and cost, by kind of token."""
    for juror, one in costs.items():
        if words := token_words(one):
            yield f"{juror}: {words}"


def _money(spent: Spending, open_: InFlight) -> dict[str, float]:
    """Return the figures on all calls of the study."""
    return {
        "calls": spent.calls,
        "usd": round(spent.usd, 9),
        "usd_unknown": spent.unknown,
        "calls_in_flight": open_.calls + open_.batched,
        "usd_in_flight": round(open_.usd, 9),
        "usd_study": round(spent.usd + open_.usd, 9),
    }


def _say_spent(spent: Spending, open_: InFlight, json_to: Path | None) -> None:
    """Say what all calls have cost, and what some can have cost besides."""
    unknown = f" and {counted(spent.unknown, 'call')} of unknown price" if spent.unknown else ""
    said = f"spent over all runs: ${spent.usd:.4f}{unknown} ({counted(spent.calls, 'call')})"
    say(f"{said}; probes are not stored", json_to)
    if number := open_.calls + open_.batched:
        say(in_flight_words(number, open_.usd), json_to)


def _cells(rows: Sequence[MissingVerdict]) -> list[list[str]]:
    """Return the rows of the table of missing verdicts."""
    return [
        [
            one.juror,
            one.response_id + (f" (replicate {one.replicate})" if one.replicate else ""),
            one.status,
            f"{one.calls}",
            one.reason,
        ]
        for one in rows
    ]


def _table(cells: list[list[str]], json_to: Path | None) -> None:
    """Show the verdicts as a table or, where the screen is too narrow for it, a line each."""
    if width(COLUMNS, cells) <= room(json_to):
        show("Missing verdicts", COLUMNS, cells, json_to)
        return
    for juror, response, status, calls, reason in cells:
        say(f"{juror}, {response}: {status}, {counted(int(calls), 'call')}: {reason}", json_to)
