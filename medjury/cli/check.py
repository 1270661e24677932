"""`medjury check`: a verdict from one file of scores."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibration.values import RESAMPLES
from data.errors import BadInput
from medjury.cli.agreement import print_calibration, show_pairs
from medjury.cli.files import write_files, write_json, writes_to
from medjury.cli.options import Criterion, Json, Method, NoReps, finite, listed_names
from medjury.cli.output import say, show_decision

if TYPE_CHECKING:
    import pandas as pd

    from calibration.pair_results import PairResult
    from medjury.services.check import CheckQuestion


def check(
    file: Annotated[Path, typer.Argument(help="Scores: CSV, TSV, JSON lines, XLSX or Parquet.")],
    human: Annotated[
        str, typer.Option(metavar="A,B", help="Whose scores are the humans'; else by their names.")
    ] = "",
    judge: Annotated[
        str, typer.Option(metavar="X,Y", help="Whose are the judges'; else by their names.")
    ] = "",
    item: Annotated[str, typer.Option(metavar="COL", help="Names what is scored.")] = "",
    cluster: Annotated[
        str, typer.Option(metavar="COL", help="Names what several items have in common.")
    ] = "",
    criterion: Criterion = None,
    scale: Annotated[
        str, typer.Option(metavar="MIN-MAX", help="By default the lowest to the highest score.")
    ] = "",
    margin: Annotated[
        float | None,
        typer.Option(
            min=0.001, help="Of non-inferiority, in ICC; fixed beforehand.", callback=finite
        ),
    ] = None,
    unsafe: Annotated[
        float | None,
        typer.Option(metavar="SCORE", help="The highest score that is unsafe.", callback=finite),
    ] = None,
    method: Method = "paper",
    reps: NoReps = RESAMPLES,
    seed: Annotated[int, typer.Option(hidden=True)] = 0,  # as --reps
    json_to: Json = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page to read.", callback=writes_to)
    ] = None,
) -> None:
    """Say from one file of scores whether judges may stand in for humans; no study is needed.

    A row an item and a column a rater (RATER.CRITERION of several criteria), or a row a score: item,
    rater, kind, criterion, score. Of pairs a row a preference: pair_id, rater, kind, preference (-2 to 2,
    above 0 where the first is better), shown_first, first_model, second_model.

    Example:
    medjury check scores.csv --human dr_a,dr_b --judge gpt --margin 0.1
    """
    from medjury.services.check import CheckQuestion, texts_of
    from medjury.services.check_pairs import checked_pairs, has_preferences

    question = CheckQuestion(
        humans=listed_names(human, "--human", "human") if human else (),
        judges=listed_names(judge, "--judge", "judge") if judge else (),
        item=item,
        cluster=cluster,
        criterion=criterion or "",
        scale=_ends(scale),
        margin=margin,
        unsafe=unsafe,
        method=method,
    )
    frame = texts_of(file)
    if has_preferences(frame):
        if other := [
            name for name, given in (("--html", html), ("--unsafe", unsafe)) if given is not None
        ]:
            raise BadInput(f"{other[0]}: is of scores, and {file.name} has preferences on pairs")
        _say_pairs(checked_pairs(frame, question, file.name), json_to)
    else:
        _say_scores(frame, question, file.name, json_to, html)


def _say_scores(
    frame: "pd.DataFrame",
    question: "CheckQuestion",
    name: str,
    json_to: Path | None,
    html: Path | None,
) -> None:
    """Print the verdict on scores and the table; write what was asked for."""
    from medjury.services.calibration import as_json
    from medjury.services.check import checked

    brief = json_to is None and html is None  # what is printed needs neither pingouin nor a model
    found = checked(frame, question, name, page=html is not None, brief=brief).calibration
    print_calibration(found, has_more=False)
    if html is not None:
        from medjury.services.reports import report_text

        write_files({f"--html {html}": (html, report_text(None, found, "html"))})
        say(f"html report: {html}")
    write_json(as_json(found), json_to)
    say(
        "With the texts, `medjury study import FILE` and `medjury rate ratings FILE` make a study of it: "
        "blinded ratings, juries of your own, unsafe responses one by one."
    )


def _say_pairs(found: "PairResult", json_to: Path | None) -> None:
    """Print the verdict on pairs, the table, and the models where they are known."""
    if decision := found.decision:
        show_decision(decision)
    show_pairs(found)
    write_json(found.to_json(), json_to)


def _ends(text: str) -> tuple[int, int] | None:
    """Return the ends of a scale such as 1-5."""
    if not text:
        return None
    low, dash, high = text.rpartition("-")
    try:
        ends = int(low), int(high)
    except ValueError:
        raise BadInput(f"--scale {text}: write the ends as 1-5") from None
    if not dash or ends[0] >= ends[1]:
        raise BadInput(f"--scale {text}: the lower end comes first, as in 1-5")
    return ends
