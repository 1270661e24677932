"""`medjury study import` and `medjury rate ratings`: files and packages into the study."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput, Conflict
from data.importers.grades import Grades, rubric_of_grades
from data.importers.medhelm_ratings import MedhelmFile, StudyResponse, columns_needed
from data.importers.ratings import RatingFile
from data.importers.readers import MEDHELM, REDCAP, Reader, opening_of
from data.importers.redcap import RedcapFile
from data.importers.responses import ResponseFile
from data.importers.source import PIPE
from data.importers.table import TableFile
from data.rubric import Rubric, missing_from_prompt, read_rubric
from data.rubrics import known_as
from data.samples import benchmarks as sample_benchmarks
from data.schema import Kind
from data.study.access import pseudonym_key
from data.study.frames import responses_frame
from data.study.package import import_package, opened_package
from data.study.ratings import RatingsAdded, import_ratings
from data.study.responses import ResponsesAdded, import_responses
from data.study.standing import benchmarks
from medjury.cli import import_helm, import_inspect, redcap
from medjury.cli.blinding import mask_new
from medjury.cli.files import write_json
from medjury.cli.import_tables import (
    EncodingOption,
    FileArgument,
    FormatOption,
    GuessOption,
    MapOption,
    PathsArgument,
    ScaleOption,
    SourceOption,
    checked_format,
    opened,
    run_format,
    say_left_out,
    say_medhelm_left,
    scale_named,
    show_guess,
    source_of,
)
from medjury.cli.options import Db, Json, RubricOption, rubric_named, study_of
from medjury.cli.output import counted, hint, progress, say
from medjury.services.record import authors_for

GENERIC = "generic"
BY_AUTHOR = "a file of ratings names each response by its author (MedHELM's layout)"
IMPORTER = "researcher"


def import_(
    context: typer.Context,
    paths: PathsArgument,
    form: SourceOption = None,
    benchmark: Annotated[str | None, typer.Option(help="For rows that name none.")] = None,
    rubric: RubricOption = None,
    map_to: MapOption = None,
    guess: GuessOption = False,
    scale: ScaleOption = None,
    encoding: EncodingOption = "",
    accept_findings: Annotated[
        bool,
        typer.Option(
            "--accept-findings", help="Of a package: store it although verify has findings."
        ),
    ] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Import responses with their instances; repeating it changes nothing.

    Finished HELM runs (a folder, a suite) and logs of Inspect (.eval, .json) bring their jurors'
    ratings with them; a package of `medjury share export` brings a whole study. Files of other tools are
    known by their content; columns of any names are taken with --map.
    """
    checked_format(form)
    run = None if guess else run_format(paths, form, encoding)
    own = partial(_own_study, context, db)
    if scale is not None and run != "inspect":
        raise typer.BadParameter("belongs to logs of Inspect, and to ratings", param_hint="--scale")
    if accept_findings and run != "package":
        raise BadInput("--accept-findings belongs to a package")
    if run == "package":
        study = partial(study_of, context, db, create=True)
        write_json(restore(paths, study, accept_findings=accept_findings), json_to)
    elif run == "helm":
        existing = partial(study_of, context, db)
        import_helm.bring_helm(paths, benchmark, rubric, json_to, own, existing)
    elif run == "inspect":
        named = scale_named(scale)
        import_inspect.bring_inspect(paths, benchmark, rubric, json_to, own, rubric_for, named)
    elif guess:
        if json_to is not None:
            raise typer.BadParameter("does not go with --guess", param_hint="--json")
        show_guess(paths, "responses", form, map_to, benchmark, encoding)
    else:
        table, reader = opened(paths, "responses", form, map_to, benchmark, encoding)
        write_json(_bring_rows(paths, table, reader, benchmark, rubric, own), json_to)


def _bring_rows(
    paths: list[Path],
    table: TableFile,
    reader: Reader | None,
    benchmark: str | None,
    rubric: str | None,
    own: Callable[[], Engine],
) -> dict[str, Any]:
    """Open the study and store the rows of files that could be opened.

    Return what was stored as `study import --json` has it.
    """
    rows = ResponseFile(table, benchmark)
    engine = own()
    chosen = rubric_named(engine, rubric)
    if chosen and (why := missing_from_prompt(chosen.prompt, chosen.criteria)):
        typer.echo(f"WARNING: rubric {chosen.name}: {why}", err=True)
    stored = _store_responses(engine, table, rows, chosen, reader)
    if reader and reader.ratings:
        hint(f"next: its scores, with `medjury rate ratings {paths[0].name}`")
    return stored


def _store_responses(
    engine: Engine,
    table: TableFile,
    rows: ResponseFile,
    chosen: Rubric | None,
    reader: Reader | None = None,
) -> dict[str, Any]:
    """Store a file's responses, tell what came of it, and look for authors' names in them."""
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        added = import_responses(
            engine,
            rows,
            _rubrics_of(reader),
            chosen,
            tick=lambda _: at(table.read_bytes),
        )
    _say_responses(table, rows, added)
    masked = mask_new(engine)
    return {
        "file": table.path.name,
        **asdict(added),
        "columns_not_taken": {name: rows.not_taken[name] for name in rows.ignored},
        "rows_left_out": dict(table.left_out),
        "masked": asdict(masked),
    }


def _rubrics_of(reader: Reader | None) -> Callable[[str], Rubric]:
    """Return what gives a new benchmark's rubric: the tool's own, or the one of its name."""
    own = reader.rubric if reader else None
    return rubric_for if own is None else lambda _: own


def _own_study(context: typer.Context, db: str | None) -> Engine:
    """Return the study to import into, made if it is not there; never the demo."""
    engine = study_of(context, db, create=True)
    _refuse_demo(engine)
    return engine


def _refuse_demo(engine: Engine) -> None:
    """Refuse to mix somebody's own responses into the demo study."""
    demo = {sample["name"] for sample in sample_benchmarks()}
    if demo & {benchmark.name for benchmark in benchmarks(engine)}:
        raise Conflict(
            "this is the demo study, and its raters are simulated: give your own study another "
            "place, such as --db sqlite:///study.db"
        )


def ratings(
    context: typer.Context,
    path: FileArgument,
    rubric: RubricOption = None,
    form: FormatOption = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="REDCap: forms that are not complete, too.")
    ] = False,
    jury_mean: Annotated[
        bool, typer.Option("--jury-mean", help="MedHELM: its llm_ columns as a juror, too.")
    ] = False,
    benchmark: Annotated[
        str | None, typer.Option(help="A tool's file: the benchmark's name at its import.")
    ] = None,
    map_to: MapOption = None,
    guess: GuessOption = False,
    scale: ScaleOption = None,
    encoding: EncodingOption = "",
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Import ratings made elsewhere: by clinicians, jurors or metrics; also REDCap and MedHELM."""
    checked_format(form, ("redcap", "medhelm"))
    named = scale_named(scale)
    if guess:
        if json_to is not None:
            raise typer.BadParameter("does not go with --guess", param_hint="--json")
        show_guess([path], "ratings", form, map_to, benchmark, encoding)
        return
    kind = form or _layout(path, encoding)
    if incomplete and kind != "redcap":
        raise typer.BadParameter("belongs to --format redcap", param_hint="--incomplete")
    if jury_mean and kind != "medhelm":
        raise typer.BadParameter("belongs to --format medhelm", param_hint="--jury-mean")
    rows: RatingFile | RedcapFile | MedhelmFile
    if kind in ("redcap", "medhelm"):
        table = TableFile(source_of(path, encoding))
        engine = study_of(context, db)
        rows = _of_layout(engine, table, kind, incomplete or jury_mean)
    else:
        table, _ = opened([path], "ratings", form, map_to, benchmark, encoding)
        rows = RatingFile(table, named)
        engine = study_of(context, db)
    stored = _store_ratings(engine, table, rows, _rated_on(engine, rubric, named, rows))
    write_json(stored, json_to)


def _of_layout(
    engine: Engine, table: TableFile, layout: str, more: bool
) -> RedcapFile | MedhelmFile:
    """Return REDCap's or MedHELM's rows; `more` takes its incomplete forms, or its jury's means."""
    if layout == "redcap":
        return redcap.redcap_file(engine, table, more)
    return medhelm_file(engine, table, more)


def _layout(path: Path, encoding: str) -> str | None:
    """Return redcap or medhelm where a file has their columns, None for any other."""
    if str(path) == PIPE or not path.is_file():
        return None
    opening = opening_of(source_of(path, encoding))
    if opening.has(MEDHELM) and not opening.has({"response_id"}):
        return "medhelm"
    return "redcap" if opening.has(REDCAP) else None


def _rated_on(
    engine: Engine,
    rubric: str | None,
    scale: Grades | None,
    rows: RatingFile | RedcapFile | MedhelmFile,
) -> Rubric | None:
    """Return the rubric that ratings are held to: named, made of a scale, or each benchmark's own."""
    chosen = rubric_named(engine, rubric)
    if scale is None or not isinstance(rows, RatingFile):
        return chosen
    if chosen is None:
        criteria = list(dict.fromkeys(row.criterion for row in rows if row.kind != Kind.METRIC))
        return rubric_of_grades("scale", criteria, scale, "a file of ratings")
    if chosen.scale != scale.scale:
        raise BadInput(
            f"--scale has the points {scale.scale}, and the rubric {chosen.name} {chosen.scale}; "
            "give one of both, or points for words under [scale] in --map"
        )
    return chosen


def _store_ratings(
    engine: Engine,
    table: TableFile,
    rows: RatingFile | RedcapFile | MedhelmFile,
    chosen: Rubric | None,
) -> dict[str, Any]:
    """Store a file's ratings and tell what came of it; return it as `rate ratings --json` has it."""
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        added = import_ratings(engine, rows, chosen, tick=lambda _: at(table.read_bytes))
    _say_ratings(table, rows, added)
    if isinstance(rows, RatingFile):
        for theirs, ours in rows.renamed.items():
            say(f"the criterion {theirs!r} is {ours} here: a name has no blanks")
    say_left_out(table)
    if isinstance(rows, RedcapFile):
        redcap.say_left(rows)
    if isinstance(rows, MedhelmFile):
        say_medhelm_left(rows)
    return {
        "file": table.path.name,
        **asdict(added),
        "other_rubric": sorted(added.other_rubric),
        "missing": rows.missing,
        "rows_left_out": dict(table.left_out),
    }


def rubric_for(benchmark: str) -> Rubric:
    """Return the shipped rubric of that benchmark, by HELM's or the paper's name, or the generic one."""
    bare = {_bare(name): rubric for name, rubric in known_as().items()}
    return read_rubric(bare.get(_bare(benchmark), GENERIC))


def _bare(name: str) -> str:
    """Return a name without what people spell differently: case, hyphens, underscores, blanks."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def _say_responses(table: TableFile, rows: ResponseFile, added: ResponsesAdded) -> None:
    say(
        f"{table.path.name}: {counted(added.responses, 'response')} to "
        f"{counted(added.instances, 'new instance')} imported, "
        f"{added.unchanged} were there already ({table.encoding})"
    )
    for doubt in table.doubts:
        say(doubt)
    if not (added.responses or added.groups):
        say("nothing changed")
    for name, responses in sorted(added.groups.items()):
        say(f"group {name}: {counted(responses, 'response')} put into it")
    for name, rubric in added.benchmarks.items():
        say(f"new benchmark {name}, rated on the rubric {rubric} (--rubric chooses another)")
    _say_same_texts(added)
    if rows.ignored:
        say("columns not taken: " + ", ".join(_not_taken(rows, name) for name in rows.ignored))
    say_left_out(table)
    if not rows.contexts:
        say(
            "WARNING: no row has a context: clinicians and jurors will have nothing but the prompt "
            "to hold a response against. If the source is missing by mistake, begin a new study"
        )


def _say_same_texts(added: ResponsesAdded) -> None:
    """Tell which responses have the text of another one."""
    if added.unnamed:
        say(
            f"{counted(added.unnamed, 'row')} without a response_id counted as there already by instance "
            "and text, as no id tells an author: give equal texts of several models ids of their own"
        )
    if added.twins:
        repeat = "repeats" if added.twins == 1 else "repeat"
        say(
            f"{added.twins} of them {repeat} a text to the same instance under another "
            "response_id: if that is one response, its ratings are now split over two"
        )


def _not_taken(rows: ResponseFile, name: str) -> str:
    """Return a column with how many values of it are not stored, and what may have been meant."""
    values = counted(rows.not_taken[name], "value")
    suggestion = f"; did you mean {rows.meant[name]}?" if name in rows.meant else ""
    return f"{name} ({values}{suggestion})"


def _say_ratings(
    table: TableFile, rows: RatingFile | RedcapFile | MedhelmFile, added: RatingsAdded
) -> None:
    say(
        f"{table.path.name}: {counted(added.added, 'rating')} imported, {added.revised} revised an earlier one, "
        f"{added.unchanged} were there already, {counted(rows.missing, 'empty cell')} "
        f"{'stays' if rows.missing == 1 else 'stay'} missing"
    )
    for doubt in table.doubts:
        say(doubt)
    if not (added.added or added.revised):
        say("nothing changed")
    if added.raters:
        say("new raters: " + ", ".join(added.raters))
    for name, criteria in sorted(added.lacking.items()):
        say(
            f"{name}: no rating of {', '.join(criteria)} in this file; without all criteria of the "
            "rubric there is no composite"
        )
    for name in sorted(added.other_rubric):
        say(
            f"{name} already has ratings on another rubric: these are kept apart and do not count "
            "in calibrate, which reads the benchmark's own rubric"
        )


def restore(
    paths: Sequence[Path], study: Callable[[], Engine], *, accept_findings: bool
) -> dict[str, Any]:
    """Read a package whole, and only when it holds open the study and store it.

    Return what was stored as `study import --json` has it.
    """
    if len(paths) > 1:
        raise BadInput("a package becomes a study of its own: import one, and alone")
    with opened_package(paths[0]) as package:
        engine = study()
        added = import_package(engine, package, IMPORTER, accept_findings=accept_findings)
    stored = {"file": package.path.name, **asdict(added), "findings": list(added.findings)}
    if added.unchanged:
        say(f"{package.path.name}: was imported before; nothing changed")
        return stored
    for table, number in added.rows.items():
        say(f"{table}: {counted(number, 'row')}")
    if package.manifest.authors == "without":
        say(
            "no author is in it; `medjury study import` of a package made with --authors-only adds them"
        )
    for finding in added.findings:
        typer.echo(f"FINDING {finding}", err=True)
    say(
        "the record is whole"
        if not added.findings
        else f"WARNING: stored with {counted(len(added.findings), 'finding')}, which the record keeps"
    )
    return stored


def medhelm_file(engine: Engine, table: TableFile, jury_mean: bool) -> MedhelmFile:
    """Return a file of MedHELM's layout as rows of ratings of this study.

    Usernames become pseudonyms by the study's own secret, which no export holds.
    """
    columns_needed(
        table, jury_mean
    )  # before the secret is made: a file of another layout changes nothing
    wrote, lifted = authors_for(engine, BY_AUTHOR, "researcher")
    if lifted:
        say(f"the blind is lifted, and that is recorded: {BY_AUTHOR}")
    frame = responses_frame(engine)
    columns = (frame[name] for name in ("response_id", "benchmark", "instance_id"))
    responses = [
        StudyResponse(response, benchmark, instance.removeprefix(f"{benchmark}/"), wrote[response])
        for response, benchmark, instance in zip(*columns, strict=True)
        if response in wrote
    ]
    return MedhelmFile(table, responses, pseudonym_key(engine), jury_mean)
