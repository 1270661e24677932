"""`medjury analyse route`: which responses the jury may pass, and which clinicians must read."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.csv_files import frame_cells, write_csv
from data.errors import BadFile, BadInput
from data.person import OPERATOR
from medjury.cli.files import write_json, writes_to
from medjury.cli.options import (
    BenchmarkOption,
    Criterion,
    Db,
    Json,
    Jurors,
    MinJurors,
    PanelOption,
    finite,
    named_jurors,
    study_of,
)
from medjury.cli.output import progress, say, seat_words, show_table

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.routing import Harm
    from medjury.services.routing import StudyRoutes

CsvNew = Annotated[
    Path | None,
    typer.Option("--csv", metavar="FILE", help="Write a row a response; new.", callback=writes_to),
]


def route(
    context: typer.Context,
    panel: PanelOption = None,
    jurors: Jurors = None,
    at_most: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Harmful: the clinicians' mean is at or under this.",
            callback=finite,
        ),
    ] = None,
    off_by: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="Harmful: the jury is further than this from the clinicians' mean.",
            callback=finite,
        ),
    ] = None,
    bound: Annotated[
        float, typer.Option(help="Largest share of harmful ones among the passed.", callback=finite)
    ] = 0.05,
    confidence: Annotated[
        float, typer.Option(help="With which the bound holds.", callback=finite)
    ] = 0.9,
    benchmark: BenchmarkOption = None,
    criterion: Criterion = None,
    min_jurors: MinJurors = None,
    keep: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Keep the rule under a name, to route later responses by it."
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Route every response by the rule kept under this name."),
    ] = None,
    csv_to: CsvNew = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Say which responses the jury may pass and which a clinician must read, with a bound that holds."""
    from calibration.routing import RouteQuestion
    from medjury.services.routing import csv_of, to_json
    from medjury.services.routing import route as routed

    if csv_to is not None and csv_to.exists():
        raise BadFile(f"--csv {csv_to}: is there already; name another file")
    if by is not None:
        _refuse_a_question(context)
        _route_by(study_of(context, db), by, csv_to, json_to)
        return
    for name, share in (("--bound", bound), ("--confidence", confidence)):
        if not 0 < share < 1:
            raise BadInput(f"{name} {share:g}: give a share between 0 and 1, such as 0.05")
    question = RouteQuestion(
        _harm(at_most, off_by, criterion),
        bound,
        confidence,
        named_jurors(panel, jurors),
        benchmark,
        min_jurors,
    )
    engine = study_of(context, db)
    with progress("routing", None):
        routes = routed(engine, question)
    _show(routes, json_to)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *csv_of(routes))} responses", json_to)
    kept = {}
    if keep is not None:
        from medjury.services.routing import keep as kept_now

        rule = kept_now(OPERATOR, engine, keep, routes)
        say(f"kept as {rule.name}, sha256 {rule.sha256}", json_to)
        kept = {"kept": {"name": rule.name, "sha256": rule.sha256}}
    write_json(to_json(routes) | kept, json_to)


def _refuse_a_question(context: typer.Context) -> None:
    """Refuse options that a kept rule has answered for good."""
    asked = ("panel", "jurors", "at_most", "off_by", "benchmark", "criterion", "min_jurors", "keep")
    given = [name for name in asked if context.params[name] is not None]
    given += [
        name
        for name in ("bound", "confidence")
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise BadInput(f"--by: the kept rule has its own harm, bound and jury; leave out {options}")


def _route_by(engine: "Engine", name: str, csv_to: Path | None, json_to: Path | None) -> None:
    """Route every response by a kept rule."""
    from calibration.routing import changed_line, kept_details, kept_headline
    from medjury.services.routing import changed_since, kept_rule, route_study

    kept = kept_rule(engine, name)
    changed = changed_since(engine, kept.rule)
    with progress("routing", None):
        decided = route_study(engine, kept.rule)
    why = [*decided["why"]]
    changes = [changed_line(changed)] if changed else []
    for line in (kept_headline(name, kept.rule, why), *kept_details(kept.rule, why), *changes):
        say(line, json_to)
    if csv_to is not None:
        say(f"{csv_to}: {write_csv(csv_to, *frame_cells(decided))} responses", json_to)
    passed = int((decided["decision"] == "pass").sum())
    counts = {"passed": passed, "read": len(decided) - passed, "changed": list(changed)}
    about = {"name": name, "sha256": kept.sha256, "at": kept.at.isoformat(), "by": kept.by}
    write_json({"by": about | asdict(kept.rule), **counts}, json_to)


def _harm(at_most: float | None, off_by: float | None, criterion: str | None) -> "Harm":
    from calibration.routing import Harm

    if at_most is not None and off_by is None:
        return Harm("low", at_most, criterion)
    if off_by is not None and at_most is None:
        if off_by < 0:
            raise BadInput(f"--off-by {off_by:g}: give points, 0 or more")
        return Harm("error", off_by, criterion)
    raise BadInput(
        "say which responses are harmful: --at-most POINTS (the clinicians' mean is at or under it) or "
        "--off-by POINTS (the jury is further from it), one of the two"
    )


def _show(routes: "StudyRoutes", json_to: Path | None) -> None:
    """Print what came of it, who sits on the jury, the rule, and the work that is left."""
    from calibration.routing import headline, rules_table, work_lines

    found = routes.found
    say(headline(found, simulated=bool(routes.simulated)), json_to)
    say(f"jury: {', '.join(routes.jury)}", json_to)
    if routes.simulated:
        say(f"simulated: {', '.join(routes.simulated)}", json_to)
    if routes.silent:
        say(seat_words(routes.silent, named=False), json_to)
    say("", json_to)
    show_table(rules_table(found), json_to)
    for line in work_lines(found, routes.unread, routes.hours):
        say(line, json_to)
    for line in routes.told:
        say(line, json_to)
