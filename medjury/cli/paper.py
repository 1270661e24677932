"""`medjury share paper`: the MedHELM paper's tables and figures, from a study or a leaderboard."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from data.errors import BadInput
from jury.exports.export import refuse_full, write_folder
from medjury.cli.files import write_json
from medjury.cli.models import named_metrics
from medjury.cli.options import (
    Db,
    Json,
    Jurors,
    PanelOption,
    Reason,
    Reps,
    Seed,
    Who,
    named_jurors,
    study_of,
)
from medjury.cli.output import progress, say
from medjury.services.model_costs import read_costs

if TYPE_CHECKING:
    from calibration.paper.values import PaperPages


def paper(
    context: typer.Context,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="FOLDER", help="Write HTML, CSV, LaTeX, SVG; new or empty."),
    ],
    leaderboard: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="A leaderboard of HELM, CSV or JSON, instead of a study."
        ),
    ] = None,
    panel: PanelOption = None,
    jurors: Jurors = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="BENCHMARK=METRIC", help="The metric that scores a benchmark."),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of what each model cost; columns model, usd."),
    ] = None,
    reps: Reps = 2000,
    seed: Seed = 0,
    unblind: Annotated[
        bool,
        typer.Option(
            "--unblind", help="Disclose the authors of a study that is still open; recorded."
        ),
    ] = False,
    reason: Reason = "",
    who: Who = "coordinator",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Make the MedHELM paper's tables and figures anew from a study or a leaderboard. Unblinds."""
    from calibration.report.paper_page import paper_files

    refuse_full(out, "--out")
    if unblind != bool(reason.strip()):
        raise BadInput("--unblind needs a --reason, which stays in the record, and only it does")
    prices = read_costs(costs) if costs else {}
    if leaderboard is not None:
        _refuse_study(panel=panel, jurors=jurors, metric=metric, unblind=unblind)
        from medjury.services.paper import paper_of_leaderboard

        pages = paper_of_leaderboard(leaderboard, prices)
    else:
        sits, measured = named_jurors(panel, jurors), named_metrics(metric or ())
        pages = _of_study(context, db, (sits, measured, prices, reps, seed), (reason, who))
    files = paper_files(pages)
    write_folder(out, files)
    _show(pages, out, len(files), json_to)
    write_json(_json(pages, list(files)), json_to)


def _of_study(
    context: typer.Context, db: str | None, asked: tuple[Any, ...], lifted: tuple[str, str]
) -> "PaperPages":
    from calibration.values import AnalysisOptions
    from medjury.services.paper import PaperQuestion, lift_blind, paper_of_study, paper_task

    sits, measured, prices, reps, seed = asked
    engine = study_of(context, db)
    question = PaperQuestion(AnalysisOptions(jurors=sits, reps=reps, seed=seed), measured, prices)
    task = paper_task(engine, question)
    lift_blind(engine, prices, *lifted)
    with progress("resampling", 1.0) as at:
        return paper_of_study(engine, task, question, at)


def _refuse_study(**given: Any) -> None:
    """Refuse options of a study beside a leaderboard."""
    if named := [name for name, value in given.items() if value]:
        raise BadInput(f"--{named[0]} belongs to a study, and --from names a leaderboard: give one")


def _show(pages: "PaperPages", out: Path, files: int, json_to: Path | None) -> None:
    from calibration.messages.paper import (
        ABSENT,
        SIMULATED,
        TITLES,
        measured_words,
        published_words,
    )

    if pages.simulated:
        say(SIMULATED, json_to)
    for page in pages.pages:
        why = "" if page.absent is None else f": {ABSENT[page.absent]}"
        say(f"{TITLES[page.page]}{why}", json_to)
    for words in filter(None, (measured_words(pages), published_words(pages))):
        say(words, json_to)
    say(f"{out}: {files} files, to be read from index.html", json_to)


def _json(pages: "PaperPages", files: list[str]) -> dict[str, Any]:
    from calibration.json_values import json_value

    return {
        "source": pages.source,
        "leaderboard": pages.is_leaderboard,
        "simulated": list(pages.simulated),
        "measured": dict(pages.measured),
        "pages": {
            page.page: {
                "rows": [
                    json_value(dict(zip(page.columns, row, strict=True))) for row in page.rows
                ],
                "differs": list(page.differs),
                "absent": page.absent,
                "simulated": list(page.simulated),
            }
            for page in pages.pages
        },
        "published": [
            {
                "model": one.model,
                "published": one.published,
                "computed": one.computed,
                "equal": one.equal,
            }
            for one in pages.published
        ],
        "files": files,
    }
