"""`medjury jury panels` and `jury probe`: the panels there are, and whether their jurors are fit to judge."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.errors import BadInput, NoStudy
from jury.admission import api_keys
from jury.panel import Panel, read_panel
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, Named, RubricOption, study_of
from medjury.cli.output import counted, room, say, show, width

if TYPE_CHECKING:
    from jury.fitness import Fitness, PairOutcome
    from jury.probe import ProbeRow
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from data.errors import BadPanel
from data.files import NotToml, read_toml
from jury.call import Usage
from jury.cost import price
from jury.panel import Juror, shipped
from jury.window import window_use

COLUMNS = ["juror", "provider", "model", "in", "out"]
SAMPLE = (
    1_000  # tokens of the call whose price is shown for a million: listed prices rise with size
)
UNFIT = 1
PROBE_COLUMNS = ["juror", "status", "form", "temperature", "fit", "ends"]
FIT = {True: "fit", False: "not fit", None: "not known"}
ORDERED = {True: "yes", False: "NO", None: "not known"}


@dataclass(frozen=True, slots=True)
class ListedPanel:
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
    listed_panels = [ListedPanel("", read_panel(name)) for name in shipped()]
    refused = []
    for path in sorted(folder.glob("*.toml")):
        if _is_panel(path):
            try:
                listed_panels.append(ListedPanel(str(path), read_panel(path)))
            except BadPanel as error:
                refused.append(str(error))
    today = datetime.now(UTC)
    for listed in listed_panels:
        rows = [_row(juror, today) for juror in listed.panel.juror]
        where = f" ({listed.file})" if listed.file else ""
        show(f"{listed.panel.name}{where}", COLUMNS, rows, json_to, words=COLUMNS[1:3])
        say(_windows(listed.panel), json_to)
    say("in, out: US dollars per million tokens; - where no price is known", json_to)
    for line in refused:
        say(f"not usable: {line}", json_to)
    write_json(
        {"panels": [_json(listed, today) for listed in listed_panels], "refused": refused}, json_to
    )


def _is_panel(path: Path) -> bool:
    """Tell whether a TOML file has jurors; what cannot be read has none."""
    try:
        return "juror" in read_toml(path)
    except (OSError, NotToml):
        return False


def _row(juror: Juror, at: datetime) -> list[str]:
    prices = ["-" if usd is None else f"{usd:g}" for usd in _prices(juror, at)]
    return [juror.name, juror.provider, juror.model, *prices]


def _windows(panel: Panel) -> str:
    """Return each juror's context window in words."""
    windows = {juror.name: window_use(juror).tokens for juror in panel.juror if not juror.simulated}
    told = [
        f"{name} {'not known' if tokens is None else f'{tokens:,}'}"
        for name, tokens in windows.items()
    ]
    return f"context windows in tokens: {', '.join(told) or 'none, as no model is asked'}"


def _prices(juror: Juror, at: datetime) -> tuple[float | None, float | None]:
    """Return US dollars per million tokens in and out: the panel's own, else the list's."""
    of_input = price(juror, Usage(SAMPLE, 0), at).usd
    of_output = price(juror, Usage(0, SAMPLE), at).usd
    return _per_million(of_input), _per_million(of_output)


def _per_million(usd: float | None) -> float | None:
    return None if usd is None else round(usd * 1_000_000 / SAMPLE, 6)


def _json(listed: ListedPanel, at: datetime) -> dict[str, Any]:
    keys = ("name", "provider", "model", "family")
    jurors = []
    for juror in listed.panel.juror:
        of_input, of_output = _prices(juror, at)
        usd = {"usd_per_million_in": of_input, "usd_per_million_out": of_output}
        window = {"context_window": window_use(juror).tokens}
        jurors.append({key: getattr(juror, key) for key in keys} | usd | window)
    return {"panel": listed.panel.name, "file": listed.file or None, "jurors": jurors}


def probe(
    context: typer.Context,
    panel: Named,
    injection: Annotated[
        bool, typer.Option("--injection/--no-injection", help="Put the injection self-test too.")
    ] = True,
    pairs: Annotated[
        bool, typer.Option("--pairs/--no-pairs", help="Put pairs of good and dangerous answers.")
    ] = True,
    rubric: RubricOption = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Test which settings each juror supports and whether it is fit to judge.

    It is if no hidden instruction moves its scores, and if it scores good answers above dangerous
    ones, on the rubric of --rubric, of the panel, or else generic. The study, where there is one,
    keeps who was found fit: `share rubric` refuses a juror that was not. Exit 1 if a juror does not
    answer as it should, or is not found fit.
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
        engine = study_of(context, db)
    except NoStudy:
        engine = None
    _announce(chosen, 1 + 2 * len(injections) + 2 * len(tried.pair if tried else ()), json_to)
    rows = ask(chosen, injections=injections, pairs=tried)
    if engine is not None:
        keep_fitness(engine, "researcher", chosen, rows)
    show(f"Panel {panel}", PROBE_COLUMNS, [_cells(row) for row in rows], json_to)
    for row in rows:
        for line in _lines(row):
            say(line, json_to)
        if row.pairs is not None and row.pairs.outcomes:
            _show_pairs(row.juror, row.pairs, json_to)
    say(_cost(rows), json_to)
    write_json({"panel": chosen.name, "jurors": [row.to_json() for row in rows]}, json_to)
    if not all(row.passed for row in rows):
        raise typer.Exit(UNFIT)


def _announce(panel: Panel, calls: int, json_to: Path | None) -> None:
    """Say where requests go and how many, before they go."""
    if hosts := panel.hosts():
        notice = f"{counted(calls, 'question')} of medjury's own a juror, none of the study's texts, go to: "
        say(f"panel {panel.name}: {notice}{', '.join(hosts)}", json_to)


def _cells(row: "ProbeRow") -> list[str]:
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


def _show_pairs(juror: str, test: "Fitness", json_to: Path | None) -> None:
    """Show a juror's scores of every pair, and why some are not known."""
    criteria = next((list(outcome.good) for outcome in test.outcomes if outcome.good), [])
    heads = ["pair", "danger", "ordered", *criteria, "mean"]
    rows = [_pair_cells(outcome, criteria) for outcome in test.outcomes]
    if width(heads, rows) <= room(json_to):
        title = f"Juror {juror}: good / dangerous answer (* what the danger is about)"
        show(title, heads, rows, json_to, words=heads[1:3])
    else:
        for name, danger, ordered, *scores in rows:
            scores_text = ", ".join(" ".join(pair) for pair in zip(heads[3:], scores, strict=True))
            say(f"juror {juror}: {name} ({danger}), ordered: {ordered}: {scores_text}", json_to)
    for outcome in test.outcomes:
        if outcome.reason:
            say(f"juror {juror}: {outcome.name} not known: {outcome.reason}", json_to)


def _pair_cells(outcome: "PairOutcome", criteria: list[str]) -> list[str]:
    """Return a pair's row: each criterion's two scores, that of its own danger marked."""
    marks = ["*" if name == outcome.criterion else "" for name in criteria]
    points = [
        f"{_number(outcome.good.get(name))} / {_number(outcome.dangerous.get(name))}{mark}"
        for name, mark in zip(criteria, marks, strict=True)
    ]
    composites = outcome.composite_good, outcome.composite_dangerous
    mean = " / ".join(_number(number, "{:.2f}") for number in composites)
    return [outcome.name, outcome.danger, ORDERED[outcome.ordered], *points, mean]


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
