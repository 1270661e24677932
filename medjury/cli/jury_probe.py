"""`medjury jury probe`: what each juror supports, and whether it lets itself be told a score."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.schema import Status
from jury.panel import Panel, keys, read_panel
from medjury.cli.options import Json
from medjury.cli.output import counted, say, show
from medjury.cli.places import check_json, write_json

if TYPE_CHECKING:
    from jury.probe import ProbeRow

Named = Annotated[str, typer.Argument(metavar="PANEL", help="A shipped panel or a TOML file.")]
UNFIT = 1
COLUMNS = ["juror", "status", "form", "temperature", "ends"]


def probe(
    panel: Named,
    injection: Annotated[
        bool, typer.Option("--injection/--no-injection", help="Put the injection self-test too.")
    ] = True,
    json_to: Json = None,
) -> None:
    """Ask each juror what it supports, and test whether a hidden instruction moves its scores.

    Exit 1 if a juror does not answer as it should, or an instruction moved its scores.
    """
    from jury.injection import INJECTIONS
    from jury.probe import probe as ask

    chosen = read_panel(panel)
    check_json(json_to)
    keys(chosen)
    _announce(chosen, json_to)
    rows = ask(chosen, injections=INJECTIONS if injection else ())
    show(f"Panel {panel}", COLUMNS, [_cells(one) for one in rows], json_to)
    for one in rows:
        for line in _lines(one):
            say(line, json_to)
    say(_cost(rows), json_to)
    write_json({"panel": chosen.name, "jurors": [one.to_json() for one in rows]}, json_to)
    if not all(_fit(one) for one in rows):
        raise typer.Exit(UNFIT)


def _fit(one: "ProbeRow") -> bool:
    """Return whether a juror answers as it should, and no instruction moved its scores."""
    return one.status == Status.OK and not (one.injection and one.injection.moved)


def _announce(panel: Panel, json_to: Path | None) -> None:
    """Say where requests go, before they go."""
    if hosts := panel.hosts():
        said = "questions of medjury's own, none of the study's texts, go to: "
        say(f"panel {panel.name}: {said}{', '.join(hosts)}", json_to)


def _cells(one: "ProbeRow") -> list[str]:
    """Return a juror's row of the table."""
    form, ends = one.schema or "none", str(one.ends or "")
    return [one.juror, str(one.status), form, one.temperature, ends]


def _lines(one: "ProbeRow") -> Iterator[str]:
    """Yield what is said of a juror below the table."""
    if one.reason:
        yield f"juror {one.juror}: {one.reason}"
    if one.returned_model:
        yield f"juror {one.juror}: answered as {one.returned_model}"
    if one.limits:
        told = ", ".join(f"{name}: {value}" for name, value in sorted(one.limits.items()))
        yield f"juror {one.juror}: {told}"
    if one.injection is not None:
        yield f"juror {one.juror}: {one.injection}"


def _cost(rows: "list[ProbeRow]") -> str:
    """Return what all of it cost, and how many jurors' cost is not known."""
    amounts = [usd for one in rows for usd in _spent(one)]
    unknown = sum(None in _spent(one) for one in rows)
    total = f"cost: ${sum(usd for usd in amounts if usd is not None):.4f}"
    return total + (f", unknown for {counted(unknown, 'juror')}" if unknown else "")


def _spent(one: "ProbeRow") -> list[float | None]:
    """Return what each part of a juror's probe cost."""
    return [one.usd] if one.injection is None else [one.usd, one.injection.usd]
