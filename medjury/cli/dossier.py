"""`medjury share dossier`: a reporting guideline filled in from the study, as files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data.guidelines import GUIDELINES, guideline, questions, read_answers
from data.person import OPERATOR
from data.queries import names_of_actors
from data.queries.dossiers import dossier_answers
from data.store.dossiers import keep_answers
from jury.exports.export import refuse_full, write_folder
from medjury.cli.files import write_json
from medjury.cli.options import Db, Json, study_of
from medjury.cli.output import counted, hint, progress, say, say_unnoted

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from calibration.dossier import Dossier

To = Annotated[str, typer.Option("--to", metavar="|".join(GUIDELINES), help="Which guideline.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FOLDER", help="Write HTML, Markdown and DOCX; new or empty."),
]
Answers = Annotated[
    Path | None,
    typer.Option(
        "--answers",
        metavar="FILE.toml",
        help='Keep answers of people first: lines such as funding = "a grant".',
    ),
]
Questions = Annotated[
    bool, typer.Option("--questions", help="List the questions to people, and which are open.")
]
Reps = Annotated[int, typer.Option("--reps", min=1, help="Bootstrap resamples.")]


def dossier(
    context: typer.Context,
    to: To,
    out: Out = None,
    answers: Answers = None,
    ask: Questions = False,
    reps: Reps = 2000,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Fill in a reporting guideline from the study: each item with its evidence, or "not done"."""
    from calibration.dossier import DossierQuestion, to_json
    from medjury.services.dossier import dossier as filled_in

    guideline(to)
    if out is not None:
        refuse_full(out, "--out")
    given = read_answers(answers) if answers is not None else {}
    engine = study_of(context, db)
    if given:
        kept = keep_answers(OPERATOR, engine, given)
        say(f"{answers}: {counted(kept, 'new answer')} kept, of {len(given)}", json_to)
    if ask:
        _list_questions(engine, to, json_to)
    with progress("filling in", 1.0) as tick:
        names = tuple(names_of_actors(OPERATOR, engine).items())
        made = filled_in(engine, DossierQuestion(to, reps, names), tick)
    for warning in made.warnings:
        say_unnoted(warning)
    _show(made, json_to)
    files = _write(made, out, json_to) if out is not None else ()
    if out is None:
        hint("give --out FOLDER to write it as HTML, Markdown and DOCX", json_to)
    write_json({**to_json(made), "files": list(files)}, json_to)


def _list_questions(engine: "Engine", to: str, json_to: Path | None) -> None:
    """Print the questions with their names."""
    kept = dossier_answers(engine)
    for name in guideline(to).asks:
        state = "answered" if name in kept else "open"
        say(f"{name} ({state}): {questions()[name]}", json_to)


def _show(made: "Dossier", json_to: Path | None) -> None:
    """Print what is said first, the decision, and every item with its status."""
    from calibration.messages.dossier import STATUS
    from calibration.writers.dossier import decision_lines, head_lines

    for line in (*head_lines(made), *decision_lines(made)):
        say(line, json_to)
    say("", json_to)
    for item in made.items:
        say(f"{item.item.number}  {STATUS[item.status]}: {item.item.about}", json_to)


def _write(made: "Dossier", out: Path, json_to: Path | None) -> tuple[str, ...]:
    """Write the files to a new folder; return their names."""
    from medjury.services.dossier_files import files_of_dossier

    written = files_of_dossier(made)
    write_folder(out, written.files, "--out")
    for line in written.told:
        say(line, json_to)
    say(f"{out}: {', '.join(written.files)}", json_to)
    return tuple(written.files)
