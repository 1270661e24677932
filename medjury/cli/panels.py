"""`medjury jury panels`: the panels there are, with their jurors, models and prices."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from data.errors import BadPanel
from data.files import NotToml, read_toml
from jury.call import Usage
from jury.cost import price
from jury.panel import Juror, Panel, read_panel, shipped
from medjury.cli.options import Json
from medjury.cli.output import say, show
from medjury.cli.places import write_json

COLUMNS = ["juror", "provider", "model", "in", "out"]
SAMPLE = (
    1_000  # tokens of the call whose price is shown for a million: listed prices rise with size
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A panel and where it is: a file, or "" where it ships with medjury."""

    file: str
    panel: Panel


def panels(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="Where to look for TOML files of panels."),
    ] = Path(),
    json_to: Json = None,
) -> None:
    """List the panels that ship with medjury and those in this folder, with models and prices.

    Prices are US dollars per million tokens, the panel's own or else the price list's of today.
    """
    found = [Listed("", read_panel(name)) for name in shipped()]
    refused = []
    for path in sorted(folder.glob("*.toml")):
        if _is_panel(path):
            try:
                found.append(Listed(str(path), read_panel(path)))
            except BadPanel as error:
                refused.append(str(error))
    today = datetime.now(UTC)
    for one in found:
        rows = [_row(juror, today) for juror in one.panel.juror]
        where = f" ({one.file})" if one.file else ""
        show(f"{one.panel.name}{where}", COLUMNS, rows, json_to, words=COLUMNS[1:3])
    say("in, out: US dollars per million tokens; - where no price is known", json_to)
    for line in refused:
        say(f"not usable: {line}", json_to)
    write_json({"panels": [_json(one, today) for one in found], "refused": refused}, json_to)


def _is_panel(path: Path) -> bool:
    """Tell whether a TOML file has jurors; what cannot be read has none."""
    try:
        return "juror" in read_toml(path)
    except (OSError, NotToml):
        return False


def _row(juror: Juror, at: datetime) -> list[str]:
    prices = ["-" if usd is None else f"{usd:g}" for usd in _prices(juror, at)]
    return [juror.name, juror.provider, juror.model, *prices]


def _prices(juror: Juror, at: datetime) -> tuple[float | None, float | None]:
    """Return US dollars per million tokens in and out: the panel's own, else the list's."""
    of_input = price(juror, Usage(SAMPLE, 0), at).usd
    of_output = price(juror, Usage(0, SAMPLE), at).usd
    return _per_million(of_input), _per_million(of_output)


def _per_million(usd: float | None) -> float | None:
    return None if usd is None else round(usd * 1_000_000 / SAMPLE, 6)


def _json(one: Listed, at: datetime) -> dict[str, Any]:
    keys = ("name", "provider", "model", "family")
    jurors = []
    for juror in one.panel.juror:
        of_input, of_output = _prices(juror, at)
        usd = {"usd_per_million_in": of_input, "usd_per_million_out": of_output}
        jurors.append({key: getattr(juror, key) for key in keys} | usd)
    return {"panel": one.panel.name, "file": one.file or None, "jurors": jurors}
