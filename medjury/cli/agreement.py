"""`medjury calibrate`: how well jury, jurors and metrics agree with clinicians."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from sqlalchemy import Engine

from medjury.cli.agreement_details import print_details
from medjury.cli.agreement_pairs import Pairs, pairs_of
from medjury.cli.agreement_table import print_table
from medjury.cli.elsewhere import SCORES, On, computing
from medjury.cli.freezing import Freeze, Name, freeze_calibration, named
from medjury.cli.options import Db, Json, Seed, named_jurors, study_of
from medjury.cli.output import At, progress, say, say_unnoted
from medjury.cli.places import write_json
from medjury.cli.reporting import (
    NOWHERE,
    Beyond,
    Csv,
    Html,
    Latex,
    Markdown,
    Places,
    Told,
    look_beyond,
    write_reports,
)
from medjury.services.ledger import Looked, known_of
from medjury.services.record import steered
from medjury.services.references import REFERENCES, Kept, all_instances, sound_only
from medjury.services.scores import all_jurors, panel_families, scores_of, silent_jurors

if TYPE_CHECKING:
    import pandas as pd

    from calibration.scope import Asked as Options
    from calibration.scopes import Sitting
    from calibration.scores import Scores

METHODS = ("paper", "published")
Names = Annotated[str | None, typer.Option(metavar="a,b,c", help="Only these jurors.")]


def calibrate(
    context: typer.Context,
    panel: Annotated[str | None, typer.Option(metavar="PANEL", help="Only its jurors.")] = None,
    jurors: Names = None,
    method: Annotated[str, typer.Option(metavar="[paper|published]")] = "paper",
    benchmark: Annotated[str | None, typer.Option(help="Only this one, not all of them.")] = None,
    criterion: Annotated[str | None, typer.Option(help="One criterion, not the composite.")] = None,
    reps: Annotated[int, typer.Option(min=1, help="Bootstrap replicates.")] = 2000,
    seed: Seed = 0,
    min_shared: Annotated[int, typer.Option(min=2, help="Responses a pair must share.")] = 2,
    min_jurors: Annotated[
        int | None, typer.Option(min=1, help="Jurors a response needs; by default all.")
    ] = None,
    kept: Annotated[
        str, typer.Option("--references", metavar="[all|sound]", help="Whose instances count.")
    ] = "all",
    more: Annotated[
        bool, typer.Option("--details", help="Differences, influence, jurors one by one, and more.")
    ] = False,
    pairs: Pairs = False,
    html: Html = None,
    markdown: Markdown = None,
    csv: Csv = None,
    latex: Latex = None,
    freeze: Freeze = False,
    name: Name = "",
    json_to: Json = None,
    on: On = None,
    db: Db = None,
) -> None:
    """Compare jury, jurors and metrics with the clinicians: the agreement table."""
    if method not in METHODS:
        raise typer.BadParameter(
            f"{method!r} is neither paper nor published", param_hint="--method"
        )
    if kept not in REFERENCES:
        raise typer.BadParameter(f"{kept!r} is neither all nor sound", param_hint="--references")
    places = Places(html, markdown, csv, latex)
    engine = study_of(context, db)
    chosen = named_jurors(panel, jurors)
    asked = Asked(
        chosen,
        benchmark,
        method,
        criterion,
        reps,
        seed,
        min_shared,
        min_jurors,
        kept,
        more,
        html is not None or pairs,
        named(freeze, name),
        panel_families(panel),
        pairs=pairs,
        on=on,
    )
    print_agreement(engine, asked, json_to, places)


@dataclass(frozen=True, slots=True)
class Asked:
    """What agreement is asked for, as the command's options say."""

    jurors: list[str] | None = None
    benchmark: str | None = None
    method: str = "paper"
    criterion: str | None = None
    reps: int = 2000
    seed: int = 0
    min_shared: int = 2
    min_jurors: int | None = None
    references: str = "all"
    details: bool = False
    page: bool = False
    frozen: str | None = None
    families: Mapping[str, str] = field(default_factory=dict)
    pairs: bool = False
    on: str | None = None


@dataclass(frozen=True, eq=False)
class Computed:
    """The table, its JSON, the details, and what only a page shows; empty where not asked for."""

    table: "pd.DataFrame"
    body: dict[str, Any]
    found: dict[str, list[dict[str, Any]]]
    beyond: Beyond
    looked: Looked
    options: "Options"


def print_agreement(
    engine: Engine,
    asked: Asked = Asked(),
    json_to: Path | None = None,
    places: Places = NOWHERE,
) -> None:
    """Compute the agreement table, print it, and write it as JSON and reports where asked."""
    from threadpoolctl import threadpool_limits

    from calibration.scopes import Sitting, checked

    take = sound_only if asked.references == "sound" else all_instances
    everything = scores_of(engine)
    chosen = everything.of(asked.benchmark) if asked.benchmark else everything
    kept: Kept = take(engine, chosen)
    jury, silent = asked.jurors or all_jurors(kept.scores), silent_jurors(engine, kept.scores)
    scores = replace(kept.scores, silent=frozenset(silent)) if asked.jurors else kept.scores
    options = _options(asked)
    checked(scores, Sitting(jury or None, asked.min_jurors), options)
    _say_who(jury, silent, json_to, seated=bool(asked.jurors))
    # Many small products: BLAS threads only wait for each other.
    with threadpool_limits(1), computing(asked.on, SCORES, json_to) as executor:
        how = replace(options, executor=executor)
        seen = _computed(engine, asked, how, scores, jury, everything.ratings)
    body, found = seen.body, seen.found
    print_table(seen.table, asked.method, (asked.reps, asked.seed), json_to)
    lines = (*kept.told, *steered(engine))
    for line in lines:
        say(line, json_to)
    if asked.details:
        print_details(found, json_to, asked.reps)
        if len(scores.benchmarks) > 1:
            say("--benchmark NAME shows the same of one benchmark; --json has all of them", json_to)
        body |= {"details": found}
    told = Told(seen.looked, seen.options, scores, body, found, seen.beyond, silent, lines)
    write_reports(engine, places, told, json_to)
    body |= kept.to_json() | (pairs_of(engine, told) if asked.pairs else {})
    write_json(body, json_to)
    for line in freeze_calibration(engine, asked, body, jury, everything.ratings):
        say(line, json_to)


def _say_who(jury: list[str], silent: list[str], json_to: Path | None, *, seated: bool) -> None:
    """Print who sits on the jury, and who was asked in vain."""
    if jury:
        say(f"jury: {', '.join(jury)}", json_to)
    if silent:
        seat = "without a score from them" if seated else "not in this jury"
        say(f"asked, and gave no rating: {', '.join(silent)}; {seat}", json_to)


def _computed(
    engine: Engine,
    asked: Asked,
    options: "Options",
    scores: "Scores",
    jury: list[str],
    ratings: "pd.DataFrame",
) -> Computed:
    """Return all that is asked for; the ledger is told of the jury."""
    from calibration.details import details
    from calibration.scope import compared_names
    from calibration.scopes import Sitting
    from calibration.table import to_json

    method, needed = options.method, asked.min_jurors or len(jury)
    looked = Looked(jury, needed, asked.criterion or "", method, _instances(asked))
    found: dict[str, list[dict[str, Any]]] = {}
    more, beyond = asked.details or asked.page, Beyond()
    sitting = Sitting(jury or None, asked.min_jurors)
    with progress("resampling", 1.0) as at:
        table = _table(scores, sitting, options, at)
        body = to_json(table, method=method, reps=asked.reps, seed=asked.seed)
        if jury:  # before the details, whose p values count every comparison ever made
            others = compared_names(jury, scores.raters("metric")) if more else []
            say_unnoted(looked.remember(engine, body["rows"], others, ratings))  # type: ignore[arg-type] # they are rows
        if jury and asked.page:
            beyond = look_beyond(engine, looked, scores, sitting, options)
        if more:
            found = details(scores, sitting, options, known_of(engine, looked, asked.families))
    return Computed(table, body, found, beyond, looked, options)


def _table(scores: "Scores", sitting: "Sitting", asked: "Options", at: At) -> "pd.DataFrame":
    """Return the agreement table of a jury."""
    from calibration.table import agreement_table

    return agreement_table(
        scores,
        jurors=sitting.jurors,
        method=asked.method,
        criterion=asked.criterion,
        reps=asked.reps,
        seed=asked.seed,
        min_shared=asked.min_shared,
        min_jurors=sitting.needed,
        tick=at,
        executor=asked.executor,
    )


def _options(asked: Asked) -> "Options":
    from calibration.scope import Asked as Options

    method: Literal["paper", "published"] = "paper" if asked.method == "paper" else "published"
    return Options(method, asked.criterion, asked.reps, asked.seed, asked.min_shared)


def _instances(asked: Asked) -> str:
    """Return what the ledger calls the instances that were kept."""
    return "" if asked.references == "all" else f"{asked.references} references"
