"""`medjury study protocol`: fix what a study is to show before it is rated, and check whether it does."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medjury.cli.options import Db, Json, Reps, Seed, finite, study_of
from medjury.cli.options import Method as MethodOption
from medjury.cli.output import progress, say, show_decision
from medjury.cli.places import write_json

if TYPE_CHECKING:
    from calibration.protocol import Protocol

NOT_MET = 1
NONE_SET = "no protocol is set: `medjury study protocol set --margin 0.1` fixes a margin"


def set_(
    context: typer.Context,
    margin: Annotated[
        float,
        typer.Option(
            help="Largest acceptable deficit of the jury's ICC against a clinician's.",
            callback=finite,
        ),
    ],
    criterion: Annotated[
        str, typer.Option(help="Criterion to analyse; by default the composite.")
    ] = "",
    panel: Annotated[
        str,
        typer.Option(metavar="PANEL", help="Panel whose jurors are analysed; by default any jury."),
    ] = "",
    responses: Annotated[
        int, typer.Option(min=0, help="Smallest number of responses before anything is claimed.")
    ] = 0,
    method: MethodOption = "paper",
    critical: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CRITERION<=POINTS",
            help="Responses that clinicians score this low are unsafe; repeatable.",
        ),
    ] = None,
    miss_at_most: Annotated[
        float | None,
        typer.Option(help="Largest share of unsafe responses that the jury may miss."),
    ] = None,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Fix the margin and the limits of the study; the record keeps when."""
    from calibration.protocol import Protocol
    from calibration.protocol import critical as critical_of
    from data.person import OPERATOR
    from medjury.services.protocol import fix, of_panel
    from medjury.services.record import protocol_json

    if method not in ("paper", "published"):
        raise typer.BadParameter(
            f"{method!r} is neither paper nor published", param_hint="--method"
        )
    if miss_at_most is not None and not critical:
        raise typer.BadParameter("needs --critical, such as safety<=2", param_hint="--miss-at-most")
    limit = float("nan") if miss_at_most is None else miss_at_most
    wanted = Protocol(
        margin=margin,
        criterion=criterion,
        panel=panel,
        jurors=of_panel(panel),
        responses=responses,
        method="paper" if method == "paper" else "published",
        critical=tuple(critical_of(one, limit) for one in critical or ()),
    )
    fixed = fix(OPERATOR, study_of(context, db), wanted)
    _say(fixed, json_to)
    write_json({"protocol": protocol_json(fixed)}, json_to)


def show(context: typer.Context, json_to: Json = None, db: Db = None) -> None:
    """Show the protocol and when it was fixed."""
    from medjury.services.record import protocol_json, protocol_of

    fixed = protocol_of(study_of(context, db))
    if fixed is None:
        say(NONE_SET, json_to)
    else:
        _say(fixed, json_to)
    write_json({"protocol": protocol_json(fixed)}, json_to)


def check(
    context: typer.Context,
    reps: Reps = 2000,
    seed: Seed = 0,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Analyse the study as its protocol says; exit 1 unless it shows what it is to show."""
    from calibration.values import AnalysisOptions
    from medjury.services.protocol import check as checked

    engine = study_of(context, db)
    with progress("resampling", 1.0) as at:
        found = checked(engine, at, AnalysisOptions(reps=reps, seed=seed))
    if found.protocol is None:
        say(NONE_SET, json_to)
    else:
        _say(found.protocol, json_to)
    show_decision(found.decision, json_to)
    write_json(found.to_json(), json_to)
    if not found.is_met:
        raise typer.Exit(NOT_MET)


def _say(fixed: "Protocol", json_to: Path | None) -> None:
    """Print a protocol, a line for each thing it fixes."""
    from calibration.messages.decisions import protocol_facts

    for name, words in protocol_facts(fixed):
        say(f"{name}: {words}", json_to)
