"""What models and the jury cost: the user's prices, and the recorded calls."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.notes import Note, Noted, note
from calibration.shared_notes import SIMULATED
from data.errors import BadFile, BadRow, Unknown
from data.files import read_user_toml
from data.importers.table import TableFile
from data.queries.costs import RecordedCalls
from data.safe_text import short

if TYPE_CHECKING:
    from calibration.model_values import ModelRow

COLUMNS = ("model", "usd")


@dataclass(frozen=True)
class ModelCost(Noted):
    """What a model cost, None where it is not given, beside its win rate by each way of scoring."""

    model: str
    usd: float | None
    win_rate: Mapping[str, float]


@dataclass(frozen=True)
class JurorCalls(Noted):
    """What one juror's stored calls have come to: see `data.queries.costs.RecordedCalls`."""

    juror: str
    calls: int
    tokens_in: int | None
    usd: float
    unknown: int


@dataclass(frozen=True)
class JuryCost(Noted):
    """What the jury's recorded calls cost: `usd` is None without a call, `usd_unknown` have no price."""

    jurors: tuple[JurorCalls, ...]
    calls: int
    usd: float | None
    usd_unknown: int


def read_costs(path: Path) -> dict[str, float]:
    """Return model -> US dollars from a CSV file (model, usd) or a TOML file (model = usd).

    Raises
    ------
    BadFile, BadRow
        If it is not such a file, or a cost is no amount from 0 on, or a model stands twice.
    """
    costs: dict[str, float] = {}
    for where, model, value in _toml(path) if path.suffix.lower() == ".toml" else _csv(path):
        try:
            usd = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # tried
        except (TypeError, ValueError, OverflowError):
            usd = math.nan
        if not model or not math.isfinite(usd) or usd < 0:
            raise BadRow(f"{where}: a row needs a model and its cost in US dollars, 0 or more")
        if model in costs:
            raise BadRow(
                f"{where}: the model {short(model)} stands twice; give each its whole cost once"
            )
        costs[model] = usd
    if not costs:
        raise BadFile(f"costs file {path.name}: names no model")
    return costs


def _csv(path: Path) -> Iterator[tuple[str, str, object]]:
    table = TableFile(path)
    if lost := [name for name in COLUMNS if name not in table.columns]:
        raise BadFile(f"costs file {path.name}: column {lost[0]!r} is missing; {table.header}")
    for origin, cells in table:
        yield str(origin), cells["model"].strip(), cells["usd"].strip()


def _toml(path: Path) -> Iterator[tuple[str, str, object]]:
    body = read_user_toml(path, f"costs file {path.name}")
    yield from ((path.name, model, value) for model, value in body.items())


def refuse_unknown(costs: Collection[str], models: Collection[str]) -> None:
    """Refuse costs of models that the study does not have; which it has stays blind here."""
    if lost := sorted(set(costs) - set(models)):
        raise Unknown(
            f"the costs name {', '.join(lost)}, and no response of this study is by that model: "
            "write models as in the file that was imported"
        )


def model_costs(prices: Mapping[str, float], rows: Sequence["ModelRow"]) -> tuple[ModelCost, ...]:
    """Return a row a model: its cost, None where not given, and its win rates; none without costs."""
    rates: dict[str, dict[str, float]] = {}
    for row in rows if prices else ():
        rates.setdefault(row.model, {})[row.by] = row.win_rate
    missing = (note("no_cost_given", "no cost given"),)
    return tuple(
        ModelCost(name, prices.get(name), own, notes=() if name in prices else missing)
        for name, own in sorted(rates.items())
    )


def jury_cost(
    recorded: Sequence[RecordedCalls], jurors: Sequence[str], simulated: Collection[str] = ()
) -> JuryCost:
    """Return what the jury's recorded calls cost."""
    absent = sorted({*jurors} - {calls.juror for calls in recorded})
    elsewhere = note(
        "no_recorded_call", "no recorded call of {jurors}: rated elsewhere", jurors=absent
    )
    return JuryCost(
        jurors=tuple(
            JurorCalls(**asdict(calls), notes=_simulated({calls.juror} & {*simulated}))
            for calls in recorded
        ),
        calls=sum(calls.calls for calls in recorded),
        usd=sum(calls.usd for calls in recorded) if recorded else None,
        usd_unknown=sum(calls.unknown for calls in recorded),
        notes=(*([elsewhere] if absent else []), *_simulated({*jurors} & {*simulated})),
    )


def _simulated(jurors: Collection[str]) -> tuple[Note, ...]:
    return (note(*SIMULATED, raters=sorted(jurors)),) if jurors else ()
