"""Panels and what comes of them as tables: jurors, probes, estimates. Every text is escaped."""

from collections.abc import Mapping, Sequence
from datetime import date

from annotate.screens.markup import Cell, table
from jury.injection import SelfTest
from jury.panel import Juror, Panel
from jury.probe import ProbeRow
from medjury.services.jury_lab import RunEstimate

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


def probe_table(rows: Sequence[ProbeRow]) -> str:
    """Return what each juror answered to a probe."""
    return table("Probe", PROBED, [_probed(one) for one in rows], words=7)


def probe_reasons(rows: Sequence[ProbeRow]) -> list[str]:
    """Return why jurors did not answer as they should."""
    return [f"{one.juror}: {one.reason}" for one in rows if one.reason]


def estimate_table(expected: RunEstimate) -> str:
    """Return what a run would take, juror by juror and in all."""
    jurors, own = expected.jurors, expected.own.own
    rows: list[list[Cell]] = [
        [
            one.juror,
            own.get(one.juror, 0),
            one.calls,
            one.tokens_in,
            usd(one.usd_likely),
            usd(one.usd_most),
        ]
        for one in jurors
    ]
    if len(jurors) > 1:
        calls, tokens = sum(one.calls for one in jurors), sum(one.tokens_in for one in jurors)
        likely = usd(_total([one.usd_likely for one in jurors]))
        most = usd(_total([one.usd_most for one in jurors]))
        rows.append(["all", None, calls, tokens, likely, most])
    return table("Estimate", ESTIMATED, rows)


def usd(amount: float | None) -> str:
    """Return an amount; unknown is not free."""
    return "unknown" if amount is None else f"${amount:,.4f}"


def _total(amounts: Sequence[float | None]) -> float | None:
    """Return a sum, None if a part of it is unknown."""
    known = [one for one in amounts if one is not None]
    return sum(known) if len(known) == len(amounts) else None


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


def _probed(one: ProbeRow) -> list[Cell]:
    told = (one.juror, str(one.status), one.returned_model, one.schema, one.temperature)
    ends = str(one.ends) if one.ends else None
    return [*(cell or None for cell in told), _injections(one.injection), ends, usd(one.usd)]


def _injections(test: SelfTest | None) -> str | None:
    """Return how a juror bore the instructions hidden in answers."""
    if test is None:
        return None
    if test.simulated:
        return "not asked: simulated"
    unknown = len(test.outcomes) - test.held - test.moved
    counts = f"{test.held} held, {test.moved} moved"
    return counts + (f", {unknown} not known" if unknown else "")
