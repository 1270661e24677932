"""Panels and what comes of them as tables: jurors, probes, estimates. Every text is escaped."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from annotate.screens.markup import Cell, table
from jury.panel import Juror, Panel

JURORS = ("Juror", "Model", "Family", "Texts go to", "Key in", "Ends", "USD per million in / out")
PROBED = ("Juror", "Status", "Answered as", "Form", "Temperature", "Injections", "Ends", "USD")
ESTIMATED = ("Juror", "Own family", "Calls", "Tokens in", "USD, likely", "USD, at most")
NOWHERE = "nowhere: simulated"


def jurors_table(panel: Panel, environment: Mapping[str, str]) -> str:
    """Return who sits on a panel; of a key only the variable's name, and whether it is set."""
    rows = [_juror(one, environment) for one in panel.juror]
    return table(f"Jurors of the panel {panel.name}", JURORS, rows, words=6)


def notices(panel: Panel, today: date) -> list[str]:
    """Return what is to be known before the panel is run, most urgent first."""
    over = [
        f"juror {one.name}: {one.model} ended on {end} and cannot be asked any more; a run refuses "
        "this panel"
        for one in panel.juror
        if (end := one.end()) is not None and end <= today
    ]
    simulated = [one.name for one in panel.juror if one.simulated]
    made_up = [f"simulated, no judgement: {', '.join(simulated)}"] if simulated else []
    return over + panel.notices(today) + made_up


def probe_table(figures: Mapping[str, Any]) -> str:
    """Return what each juror answered to a probe."""
    return table("Probe", PROBED, [_probed(one) for one in figures["jurors"]], words=7)


def probe_reasons(figures: Mapping[str, Any]) -> list[str]:
    """Return why jurors did not answer as they should."""
    return [f"{one['juror']}: {one['reason']}" for one in figures["jurors"] if one["reason"]]


def estimate_table(figures: Mapping[str, Any]) -> str:
    """Return what a run would take, juror by juror and in all."""
    jurors, own = figures["jurors"], figures["own_family"]
    rows: list[list[Cell]] = [
        [
            one["juror"],
            own.get(one["juror"], 0),
            one["calls"],
            one["tokens_in"],
            usd(one["usd_likely"]),
            usd(one["usd_most"]),
        ]
        for one in jurors
    ]
    if len(jurors) > 1:
        sums = [sum(one[name] for one in jurors) for name in ("calls", "tokens_in")]
        money = [usd(total(figures, name)) for name in ("usd_likely", "usd_most")]
        rows.append(["all", None, *sums, *money])
    return table("Estimate", ESTIMATED, rows)


def total(figures: Mapping[str, Any], name: str) -> float | None:
    """Return a sum over an estimate's jurors, None if it is unknown for any."""
    each = [one[name] for one in figures["jurors"]]
    return None if None in each else sum(each)


def usd(amount: float | None) -> str:
    """Return an amount; unknown is not free."""
    return "unknown" if amount is None else f"${amount:,.4f}"


def _juror(one: Juror, environment: Mapping[str, str]) -> list[Cell]:
    name = one.api_key_env
    key = f"{name}, {'set' if environment.get(name) else 'NOT SET'}" if name else "no key"
    price = "price list of the day"
    if one.usd_per_million_in is not None:
        price = f"{one.usd_per_million_in:g} / {one.usd_per_million_out:g}"
    if one.simulated:
        return [one.name, one.model, one.family, NOWHERE, "no key", None, "0 / 0"]
    end = one.end()
    return [one.name, one.model, one.family, one.place, key, str(end) if end else None, price]


def _probed(one: Mapping[str, Any]) -> list[Cell]:
    names = ("juror", "status", "returned_model", "schema", "temperature")
    told = [one[name] or None for name in names]
    return [*told, _injections(one["injection"]), one["ends"], usd(one["usd"])]


def _injections(test: Mapping[str, Any] | None) -> str | None:
    """Return how a juror bore the instructions hidden in answers."""
    if test is None:
        return None
    if test.get("simulated"):
        return "not asked: simulated"
    held, moved = test["held"], test["moved"]
    unknown = test["of"] - held - moved
    return f"{held} held, {moved} moved" + (f", {unknown} not known" if unknown else "")
