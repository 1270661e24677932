"""`medjury jury panels` and `jury probe`: the panels there are, and whether their jurors are fit to judge."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.errors import BadInput, BadPanel, NoStudy
from data.files import NotToml, read_toml
from jury.admission import api_keys
from jury.call import Usage
from jury.cost import price
from jury.panel import Juror, Panel, read_panel, shipped
from jury.window import window_use
from medjury.cli.files import write_json
from medjury.cli.options import Json, Named, RubricOption, Study
from medjury.cli.output import counted, emit, say, show

if TYPE_CHECKING:
    from jury.fitness import Fitness
    from jury.probe import ProbeRow

COLUMNS = ["juror", "provider", "model", "in", "out"]
SAMPLE = (
    1_000  # tokens of the call whose price is shown for a million: listed prices rise with size
)
UNFIT = 1
PROBE_COLUMNS = ["juror", "status", "form", "temperature", "fit", "ends"]
FIT = {True: "fit", False: "not fit", None: "not known"}
ORDERED = {True: "yes", False: "NO", None: "not known"}


def panels(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Where to look for TOML files of panels.")
    ] = Path(),
    json_to: Json = None,
) -> None:
    """List the panels that ship with medjury and those in this folder, with models and prices.

    Prices are US dollars per million tokens, the panel's own or else the price list's of today.

    Example:
    medjury jury panels
    """
    found, refused = [("", read_panel(name)) for name in shipped()], []
    for path in sorted(folder.glob("*.toml")):
        try:
            found += [(str(path), read_panel(path))] if _is_panel(path) else []
        except BadPanel as error:
            refused.append(str(error))
    today = datetime.now(UTC)
    bodies = [_json(file, panel, today) for file, panel in found]
    for body in bodies:
        where = f" ({body['file']})" if body["file"] else ""
        rows = [_cells(juror) for juror in body["jurors"]]
        show(f"{body['panel']}{where}", COLUMNS, rows, words=COLUMNS[1:3])
        windows = [
            f"{one['name']} {'not known' if (n := one['context_window']) is None else f'{n:,}'}"
            for one in body["jurors"]
            if one["provider"] != "simulated"
        ]
        told = ", ".join(windows) or "none, as no model is asked"
        say(f"context windows in tokens: {told}")
    say("in, out: US dollars per million tokens; - where no price is known")
    emit(*(f"not usable: {line}" for line in refused))
    write_json({"panels": bodies, "refused": refused}, json_to)


def _is_panel(path: Path) -> bool:
    """Tell whether a TOML file has jurors; what cannot be read has none."""
    try:
        return "juror" in read_toml(path)
    except (OSError, NotToml):
        return False


def _cells(juror: dict[str, Any]) -> list[str]:
    usd = (juror["usd_per_million_in"], juror["usd_per_million_out"])
    prices = ["-" if amount is None else f"{amount:g}" for amount in usd]
    return [juror["name"], juror["provider"], juror["model"], *prices]


def _json(file: str, panel: Panel, at: datetime) -> dict[str, Any]:
    jurors = []
    for juror in panel.juror:
        own = {key: getattr(juror, key) for key in ("name", "provider", "model", "family")}
        own["usd_per_million_in"] = _per_million(juror, Usage(SAMPLE, 0), at)
        own["usd_per_million_out"] = _per_million(juror, Usage(0, SAMPLE), at)
        jurors.append(own | {"context_window": window_use(juror).tokens})
    return {"panel": panel.name, "file": file or None, "jurors": jurors}


def _per_million(juror: Juror, usage: Usage, at: datetime) -> float | None:
    """Return US dollars per million tokens: the panel's own, else the list's."""
    usd = price(juror, usage, at).usd
    return None if usd is None else round(usd * 1_000_000 / SAMPLE, 6)


def probe(
    study: Study,
    panel: Named,
    injection: Annotated[
        bool, typer.Option("--injection/--no-injection", help="Put the injection self-test too.")
    ] = True,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Put pairs of good and dangerous answers.")
    ] = True,
    rubric: RubricOption = None,
) -> None:
    """Test which settings each juror supports and whether it is fit to judge.

    It is if no hidden instruction moves its scores, and if it scores good answers above dangerous
    ones, on the rubric of --rubric, of the panel, or else generic. The study, where there is one,
    keeps who was found fit: `share rubric` refuses a juror that was not. Exit 1 if a juror does not
    answer as it should, or is not found fit.

    Example:
    medjury jury probe simulated
    """
    from jury.fitness import INJECTIONS, pairs_for
    from jury.probe import probe as ask
    from medjury.services.panels import keep_fitness

    if rubric and not pairs:
        raise BadInput("--rubric, --no-pairs: the rubric is that of the pairs; leave one out")
    chosen = read_panel(panel)
    api_keys(chosen)
    injections = INJECTIONS if injection else ()
    tried = pairs_for(chosen, rubric) if pairs else None
    try:
        engine = study.open()
    except NoStudy:
        engine = None
    calls = 1 + 2 * len(injections) + 2 * len(tried.pair if tried else ())
    if hosts := chosen.hosts():
        notice = f"{counted(calls, 'question')} of medjury's own a juror, none of the study's texts, go to: "
        say(f"panel {chosen.name}: {notice}{', '.join(hosts)}")
    rows = ask(chosen, injections=injections, pairs=tried)
    if engine is not None:
        keep_fitness(engine, "researcher", chosen, rows)
    show(f"Panel {panel}", PROBE_COLUMNS, [_probe_cells(row) for row in rows])
    for row in rows:
        emit(*_lines(row))
        if row.pairs is not None and row.pairs.outcomes:
            _show_pairs(row.juror, row.pairs)
    say(_cost(rows))
    study.write({"panel": chosen.name, "jurors": [row.to_json() for row in rows]})
    if not all(row.passed for row in rows):
        raise typer.Exit(UNFIT)


def _probe_cells(row: "ProbeRow") -> list[str]:
    """Return a juror's row of the table."""
    form, ends = row.schema or "none", str(row.ends or "")
    fit = "" if row.pairs is None else "simulated" if row.pairs.simulated else FIT[row.fit]
    return [row.juror, str(row.status), form, row.temperature, fit, ends]


def _lines(row: "ProbeRow") -> Iterator[str]:
    """Yield what is said of a juror below the table."""
    if row.reason:
        yield f"juror {row.juror}: {row.reason}"
    if row.returned_model:
        yield f"juror {row.juror}: answered as {row.returned_model}"
    if row.unsupported:
        names = ", ".join(row.unsupported)
        yield f"juror {row.juror}: does not know {names}; sent otherwise, the panel may stay as it is"
    if row.probabilities != "not set":
        yield f"juror {row.juror}: log-probabilities are {row.probabilities}"
    for test in (row.injection, row.pairs):
        if test is not None:
            yield f"juror {row.juror}: {test}"


def _show_pairs(juror: str, test: "Fitness") -> None:
    """Show a juror's scores of every pair, that of its own danger marked, and why some are not known."""
    criteria = next((list(outcome.good) for outcome in test.outcomes if outcome.good), [])
    rows = []
    for one in test.outcomes:
        points = [
            f"{_number(one.good.get(name))} / {_number(one.dangerous.get(name))}"
            + ("*" if name == one.criterion else "")
            for name in criteria
        ]
        composites = (one.composite_good, one.composite_dangerous)
        mean = " / ".join(_number(number, "{:.2f}") for number in composites)
        rows.append([one.name, one.danger, ORDERED[one.ordered], *points, mean])
    title = f"Juror {juror}: good / dangerous answer (* what the danger is about)"
    heads = ["pair", "danger", "ordered", *criteria, "mean"]
    show(title, heads, rows, words=heads[1:3], or_lines=True)
    for one in test.outcomes:
        if one.reason:
            say(f"juror {juror}: {one.name} not known: {one.reason}")


def _number(score: float | None, form: str = "{:g}") -> str:
    return "-" if score is None else form.format(score)


def _cost(rows: "list[ProbeRow]") -> str:
    """Return what all of it cost, and how many jurors' cost is not known."""
    amounts = [usd for row in rows for usd in _spent(row)]
    unknown = sum(None in _spent(row) for row in rows)
    total = f"cost: ${sum(usd for usd in amounts if usd is not None):.4f}"
    return total + (f", unknown for {counted(unknown, 'juror')}" if unknown else "")


def _spent(row: "ProbeRow") -> list[float | None]:
    """Return what each part of a juror's probe cost."""
    return [row.usd, *(test.usd for test in (row.injection, row.pairs) if test is not None)]
