"""What models and the jury cost: the user's prices, the recorded calls, and the paper's formula."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadRow, Unknown
from data.importers.table import TableFile
from data.queries.models import Recorded
from data.said import short
from data.schema import now
from data.toml_file import NotToml, read_toml
from jury.cost import Share, rates, upper_bound
from jury.panel import Panel

COLUMNS = ("model", "usd")
Row = Mapping[str, Any]


def read_costs(path: Path) -> dict[str, float]:
    """Return model -> US dollars from a CSV file (model, usd) or a TOML file (model = usd).

    Raises
    ------
    BadFile, BadRow
        If it is not such a file, or a cost is no amount from 0 on, or a model stands twice.
    """
    rows = _toml(path) if path.suffix.lower() == ".toml" else _csv(path)
    found: dict[str, float] = {}
    for where, model, value in rows:
        if model in found:
            raise BadRow(
                f"{where}: the model {short(model)} stands twice; give each its whole cost once"
            )
        found[model] = _amount(where, model, value)
    if not found:
        raise BadFile(f"--costs {path}: names no model")
    return found


def refuse_unknown(costs: Collection[str], models: Collection[str]) -> None:
    """Refuse costs of models that the study does not have; which it has stays blind here."""
    if lost := sorted(set(costs) - set(models)):
        raise Unknown(
            f"--costs names {', '.join(lost)}, and no response of this study is by that model: "
            "write models as in the file that was imported"
        )


def models_costs(costs: Mapping[str, float], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return a row a model: its cost, None where not given, and its win rates; none without costs."""
    rate = {(row["model"], row["by"]): row["win_rate"] for row in rows}
    ways = dict.fromkeys(row["by"] for row in rows)
    return [
        {
            "model": name,
            "usd": costs.get(name),
            "win_rate": {by: rate[name, by] for by in ways},
            "note": "" if name in costs else "no cost given",
        }
        for name in (sorted({row["model"] for row in rows}) if costs else ())
    ]


def jury_cost(
    found: Sequence[Recorded],
    jurors: Sequence[str],
    panel: Panel | None,
    simulated: Collection[str] = (),
) -> dict[str, Any]:
    """Return what the jury's recorded calls cost, and what the paper's formula says of them."""
    bound, why = _bound(found, jurors, panel)
    absent = sorted(set(jurors) - {one.juror for one in found})
    unreal = sorted(set(jurors) & set(simulated))
    said = [
        f"no recorded call of {', '.join(absent)}: rated elsewhere" if absent else "",
        why,
        f"simulated jurors: {', '.join(unreal)}" if unreal else "",
    ]
    return {
        "jurors": [asdict(one) for one in found],
        "calls": sum(one.calls for one in found),
        "usd": sum(one.usd for one in found) if found else None,
        "usd_unknown": sum(one.unknown for one in found),
        "paper_usd": bound,
        "note": "; ".join(filter(None, said)),
    }


def _bound(
    found: Sequence[Recorded], jurors: Sequence[str], panel: Panel | None
) -> tuple[float | None, str]:
    """Return the paper's upper bound of the recorded calls, or why there is none."""
    if not found:
        return None, ""
    if panel is None:
        return None, "the paper's bound needs the jurors' prices: choose a panel as the jury"
    if len(found) < len(set(jurors)):
        return None, "no bound: not all jurors have recorded calls"
    if lost := [one.juror for one in found if one.tokens_in is None]:
        return None, f"no bound: calls of {', '.join(lost)} do not say what they read"
    priced = {one.name: rates(one, now()) for one in panel.juror}
    shares = [Share(one.tokens_in or 0, one.calls, priced.get(one.juror)) for one in found]
    usd = upper_bound(shares).usd
    return usd, "" if usd is not None else "no bound: the price of a juror is unknown"


def _csv(path: Path) -> Iterator[tuple[str, str, object]]:
    table = TableFile(path)
    if lost := [name for name in COLUMNS if name not in table.columns]:
        raise BadFile(f"--costs {path}: column {lost[0]!r} is missing; {table.header}")
    for origin, cells in table:
        yield str(origin), cells["model"].strip(), cells["usd"].strip()


def _toml(path: Path) -> Iterator[tuple[str, str, object]]:
    try:
        body = read_toml(path)
    except OSError as error:
        raise BadFile(f"--costs {path}: {error.strerror}") from error
    except NotToml as error:
        raise BadFile(f"--costs {path}: not a TOML file ({error})") from error
    yield from ((path.name, model, value) for model, value in body.items())


def _amount(where: str, model: str, value: object) -> float:
    try:
        usd = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError, OverflowError):
        usd = math.nan
    if not model or not math.isfinite(usd) or usd < 0:
        raise BadRow(f"{where}: a row needs a model and its cost in US dollars, 0 or more")
    return usd
