"""What models and the jury cost: the user's prices, the recorded calls, and the paper's formula."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from calibration.notes import Note, Noted, note, noted
from calibration.shared_notes import SIMULATED
from data.errors import BadFile, BadRow, Unknown
from data.files import read_user_toml
from data.importers.table import TableFile
from data.queries.costs import RecordedCalls
from data.safe_text import short
from data.schema import now
from jury.cost import PaperShare, rates, upper_bound
from jury.panel import Panel

if TYPE_CHECKING:
    from calibration.models.rows import ModelRow

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
    """What the jury's recorded calls cost; `paper_usd` is the bound by the paper's formula.

    `usd` is None without a call; `usd_unknown` counts the calls of unknown price.
    """

    jurors: tuple[JurorCalls, ...]
    calls: int
    usd: float | None
    usd_unknown: int
    paper_usd: float | None


def read_costs(path: Path) -> dict[str, float]:
    """Return model -> US dollars from a CSV file (model, usd) or a TOML file (model = usd).

    Raises
    ------
    BadFile, BadRow
        If it is not such a file, or a cost is no amount from 0 on, or a model stands twice.
    """
    rows = _toml(path) if path.suffix.lower() == ".toml" else _csv(path)
    costs: dict[str, float] = {}
    for where, model, value in rows:
        if model in costs:
            raise BadRow(
                f"{where}: the model {short(model)} stands twice; give each its whole cost once"
            )
        costs[model] = _amount(where, model, value)
    if not costs:
        raise BadFile(f"costs file {path.name}: names no model")
    return costs


def refuse_unknown(costs: Collection[str], models: Collection[str]) -> None:
    """Refuse costs of models that the study does not have; which it has stays blind here."""
    if lost := sorted(set(costs) - set(models)):
        raise Unknown(
            f"the costs name {', '.join(lost)}, and no response of this study is by that model: "
            "write models as in the file that was imported"
        )


def model_costs(prices: Mapping[str, float], rows: Sequence["ModelRow"]) -> tuple[ModelCost, ...]:
    """Return a row a model: its cost, None where not given, and its win rates; none without costs."""
    rate = {(row.model, row.by): row.win_rate for row in rows}
    scorings = dict.fromkeys(row.by for row in rows)
    missing = (note("no_cost_given", "no cost given"),)
    return tuple(
        ModelCost(
            name,
            prices.get(name),
            {by: rate[name, by] for by in scorings},
            notes=() if name in prices else missing,
        )
        for name in (sorted({row.model for row in rows}) if prices else ())
    )


def jury_cost(
    recorded: Sequence[RecordedCalls],
    jurors: Sequence[str],
    panel: Panel | None,
    simulated: Collection[str] = (),
) -> JuryCost:
    """Return what the jury's recorded calls cost, and what the paper's formula says of them."""
    bound, why = _bound(recorded, jurors, panel)
    absent = sorted({*jurors} - {calls.juror for calls in recorded})
    silent = [calls.juror for calls in recorded if calls.tokens_in is None]
    return JuryCost(
        jurors=tuple(
            JurorCalls(**asdict(calls), notes=_simulated({calls.juror} & {*simulated}))
            for calls in recorded
        ),
        calls=sum(calls.calls for calls in recorded),
        usd=sum(calls.usd for calls in recorded) if recorded else None,
        usd_unknown=sum(calls.unknown for calls in recorded),
        paper_usd=bound,
        notes=noted(
            note("no_recorded_call", "no recorded call of {jurors}: rated elsewhere", jurors=absent)
            if absent
            else None,
            why,
            note(
                "tokens_unknown",
                "input tokens are unknown for calls whose answer did not report them: {jurors}",
                jurors=silent,
            )
            if silent
            else None,
            *_simulated({*jurors} & {*simulated}),
        ),
    )


def _simulated(jurors: Collection[str]) -> tuple[Note, ...]:
    return (note(*SIMULATED, raters=sorted(jurors)),) if jurors else ()


def _bound(
    recorded: Sequence[RecordedCalls], jurors: Sequence[str], panel: Panel | None
) -> tuple[float | None, Note | None]:
    """Return the paper's upper bound of the recorded calls, or why there is none."""
    if not recorded:
        return None, None
    if panel is None:
        return None, note(
            "bound_needs_panel",
            "the paper's bound needs the jurors' prices: choose a panel as the jury",
        )
    if len(recorded) < len({*jurors}):
        return None, note("bound_needs_calls", "no bound: not all jurors have recorded calls")
    if lost := [calls.juror for calls in recorded if calls.tokens_in is None]:
        return None, note(
            "bound_needs_tokens",
            "no bound: calls of {jurors} do not record their input tokens",
            jurors=lost,
        )
    priced = {juror.name: rates(juror, now()) for juror in panel.juror}
    shares = [
        PaperShare(calls.tokens_in or 0, calls.calls, priced.get(calls.juror)) for calls in recorded
    ]
    usd = upper_bound(shares).usd
    return usd, None if usd is not None else note(
        "bound_needs_price", "no bound: the price of a juror is unknown"
    )


def _csv(path: Path) -> Iterator[tuple[str, str, object]]:
    table = TableFile(path)
    if lost := [name for name in COLUMNS if name not in table.columns]:
        raise BadFile(f"costs file {path.name}: column {lost[0]!r} is missing; {table.header}")
    for origin, cells in table:
        yield str(origin), cells["model"].strip(), cells["usd"].strip()


def _toml(path: Path) -> Iterator[tuple[str, str, object]]:
    body = read_user_toml(path, f"costs file {path.name}")
    yield from ((path.name, model, value) for model, value in body.items())


def _amount(where: str, model: str, value: object) -> float:
    try:
        usd = math.nan if isinstance(value, bool) else float(value)  # type: ignore[arg-type]  # tried
    except (TypeError, ValueError, OverflowError):
        usd = math.nan
    if not model or not math.isfinite(usd) or usd < 0:
        raise BadRow(f"{where}: a row needs a model and its cost in US dollars, 0 or more")
    return usd
