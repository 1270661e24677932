"""`medjury import` and `medjury ratings`: files, and packages, into the study."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import Engine

from data.errors import BadFile, BadInput, Conflict
from data.importers.corpora import aci_bench, mts_dialog
from data.importers.helm import is_helm
from data.importers.inspect_logs import is_inspect
from data.importers.medhelm_ratings import Known, MedhelmFile, needed
from data.importers.package import Package, is_package
from data.importers.ratings import RatingFile
from data.importers.redcap import RedcapFile
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.queries import benchmarks
from data.queries.frames import responses_frame
from data.queries.models import authors
from data.rubric import Rubric, read_rubric
from data.rubrics import known_as
from data.rubrics.complaints import unasked
from data.samples import benchmarks as sample_benchmarks
from data.store import RatingsAdded, ResponsesAdded, import_ratings, import_responses
from data.store.access import pseudonym_key
from data.store.package import import_package
from medjury.cli import import_runs, redcap
from medjury.cli.blinding import mask_new
from medjury.cli.options import Db, Json, RubricOption, rubric_named, study_of, table_format
from medjury.cli.output import counted, progress, say

GENERIC = "generic"
FORMS: Mapping[str, Callable[[Path], bool]] = {  # known by their files, the first that fits
    "package": is_package,
    "helm": is_helm,
    "inspect": is_inspect,
}
CORPORA = {"aci-bench": aci_bench, "mts-dialog": mts_dialog}
FormatOption = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="[csv|jsonl|redcap|medhelm]", help="By default from the name."
    ),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="[csv|jsonl|helm|inspect|package|aci-bench|mts-dialog]",
        help="By default from names and files.",
    ),
]
PathsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATH...",
        help="CSV or JSON Lines; folders of HELM runs; logs of Inspect; or a package.",
    ),
]
FileArgument = Annotated[Path, typer.Argument(metavar="PATH", help="CSV or JSON Lines.")]
IMPORTER = "researcher"


def import_(
    context: typer.Context,
    paths: PathsArgument,
    form: SourceOption = None,
    benchmark: Annotated[str | None, typer.Option(help="For rows that name none.")] = None,
    rubric: RubricOption = None,
    accept_findings: Annotated[
        bool,
        typer.Option(
            "--accept-findings", help="Of a package: store it although verify has findings."
        ),
    ] = False,
    json_to: Json = None,
    db: Db = None,
) -> None:
    """Bring responses in, with the instances they answer; twice changes nothing.

    Finished HELM runs (a folder, a suite) and logs of Inspect (.eval, .json) bring their jurors'
    ratings with them; a package of `medjury export` brings a whole study.
    """
    form = form or next((name for name, fits in FORMS.items() if any(map(fits, paths))), None)
    own = partial(_own_study, context, db)
    if accept_findings and form != "package":
        raise BadInput("--accept-findings belongs to a package")
    if form == "package":
        study = partial(study_of, context, db, create=True)
        restore(paths, study, accept_findings=accept_findings)
        return
    if form == "helm":
        import_runs.bring_helm(paths, benchmark, rubric, json_to, own)
        return
    if form == "inspect":
        import_runs.bring_inspect(paths, benchmark, rubric, json_to, own, rubric_for)
        return
    if form in CORPORA and json_to is None:
        table = CORPORA[form](paths)
    else:
        table = TableFile(_only(paths, json_to), table_format(form))
    rows = ResponseFile(table, benchmark)
    engine = _own_study(context, db)
    chosen = rubric_named(engine, rubric)
    if chosen and (why := unasked(chosen.prompt, chosen.criteria)):
        typer.echo(f"WARNING: rubric {chosen.name}: {why}", err=True)
    _store_responses(engine, table, rows, chosen)


def _store_responses(
    engine: Engine, table: TableFile, rows: ResponseFile, chosen: Rubric | None
) -> None:
    """Store a file's responses, tell what came of it, and look for authors' names in them."""
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        added = import_responses(
            engine,
            rows,
            rubric_for,
            chosen,
            tick=lambda _: at(table.read_bytes),
        )
    _say_responses(table, rows, added)
    mask_new(engine)


def _only(paths: list[Path], json_to: Path | None) -> Path:
    """Return the one file that is meant; several, and figures, are for runs."""
    if len(paths) > 1:
        raise BadInput("several files of responses: import them one after another")
    if paths[0].is_dir():
        raise BadFile(f"{paths[0]}: a folder without a finished run; name a file of responses")
    if json_to is not None:
        raise typer.BadParameter("belongs to finished runs", param_hint="--json")
    return paths[0]


def _own_study(context: typer.Context, db: str | None) -> Engine:
    """Return the study to import into, made if it is not there; never the demo."""
    engine = study_of(context, db, create=True)
    _refuse_demo(engine)
    return engine


def _refuse_demo(engine: Engine) -> None:
    """Refuse to mix somebody's own responses into the demo study."""
    demo = {one["name"] for one in sample_benchmarks()}
    if demo & {one.name for one in benchmarks(engine)}:
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
    db: Db = None,
) -> None:
    """Bring in ratings made elsewhere: clinicians', jurors' or metrics'; REDCap's, MedHELM's files."""
    from_redcap = form == "redcap"
    if incomplete and not from_redcap:
        raise typer.BadParameter("belongs to --format redcap", param_hint="--incomplete")
    if jury_mean and form != "medhelm":
        raise typer.BadParameter("belongs to --format medhelm", param_hint="--jury-mean")
    table = TableFile(path, "csv" if form in ("redcap", "medhelm") else table_format(form))
    rows: RatingFile | RedcapFile | MedhelmFile
    if from_redcap:
        engine = study_of(context, db)
        rows = redcap.redcap_file(engine, table, incomplete)
    elif form == "medhelm":
        engine = study_of(context, db)
        rows = medhelm_file(engine, table, jury_mean)
    else:
        rows = RatingFile(table)
        engine = study_of(context, db)
    chosen = rubric_named(engine, rubric)
    with progress(f"reading {path.name}", table.size_bytes) as at:
        added = import_ratings(engine, rows, chosen, tick=lambda _: at(table.read_bytes))
    _say_ratings(table, rows, added)
    if isinstance(rows, RedcapFile):
        redcap.say_left(rows)
    if isinstance(rows, MedhelmFile):
        _say_medhelm_left(rows)


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
    if table.doubt:
        say(table.doubt)
    if not (added.responses or added.groups):
        say("nothing changed")
    for name, responses in sorted(added.groups.items()):
        say(f"group {name}: {counted(responses, 'response')} put into it")
    for name, rubric in added.benchmarks.items():
        say(f"new benchmark {name}, rated on the rubric {rubric} (--rubric chooses another)")
    if added.twins:
        repeat = "repeats" if added.twins == 1 else "repeat"
        say(
            f"{added.twins} of them {repeat} a text of the same model to the same instance under another "
            "response_id: if that is one response, its ratings are now split over two"
        )
    if rows.ignored:
        asked = [
            f"{name} (did you mean {rows.meant[name]}?)" if name in rows.meant else name
            for name in rows.ignored
        ]
        say("columns without meaning here, ignored: " + ", ".join(asked))
    if not rows.contexts:
        say(
            "WARNING: no row has a context: clinicians and jurors will have nothing but the prompt "
            "to hold a response against. If the source is missing by mistake, begin a new study"
        )


def _say_ratings(
    table: TableFile, rows: RatingFile | RedcapFile | MedhelmFile, added: RatingsAdded
) -> None:
    say(
        f"{table.path.name}: {counted(added.added, 'rating')} imported, {added.revised} revised an earlier one, "
        f"{added.unchanged} were there already, {counted(rows.missing, 'empty cell')} "
        f"{'stays' if rows.missing == 1 else 'stay'} missing"
    )
    if table.doubt:
        say(table.doubt)
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


def restore(paths: Sequence[Path], study: Callable[[], Engine], *, accept_findings: bool) -> None:
    """Read a package whole, and only when it holds open the study and store it."""
    if len(paths) > 1:
        raise BadInput("a package becomes a study of its own: import one, and alone")
    package = Package(paths[0])
    engine = study()
    added = import_package(engine, package, IMPORTER, accept_findings=accept_findings)
    if added.unchanged:
        say(f"{package.path.name}: was imported before; nothing changed")
        return
    for table, number in added.rows.items():
        say(f"{table}: {counted(number, 'row')}")
    if package.authors == "without":
        say("no author is in it; `medjury import` of a package made with --authors-only adds them")
    for finding in added.findings:
        typer.echo(f"FINDING {finding}", err=True)
    say(
        "the record is whole"
        if not added.findings
        else f"WARNING: stored with {counted(len(added.findings), 'finding')}, which the record keeps"
    )


def medhelm_file(engine: Engine, table: TableFile, jury_mean: bool) -> MedhelmFile:
    """Return a file of MedHELM's layout as rows of ratings of this study.

    Usernames become pseudonyms by the study's own secret, which no export holds.
    """
    needed(table, jury_mean)  # before the secret is made: a file of another layout changes nothing
    wrote = authors(engine)
    frame = responses_frame(engine)
    columns = (frame[name] for name in ("response_id", "benchmark", "instance_id"))
    known = [
        Known(response, benchmark, instance.removeprefix(f"{benchmark}/"), wrote[response])
        for response, benchmark, instance in zip(*columns, strict=True)
        if response in wrote
    ]
    return MedhelmFile(table, known, pseudonym_key(engine), jury_mean)


def _say_medhelm_left(rows: MedhelmFile) -> None:
    """Tell what of a file was not taken."""
    say("usernames were replaced by pseudonyms, and are not in the study")
    if rows.unmatched:
        say(
            f"left out, as their response is not in the study: {counted(len(rows.unmatched), 'row')} "
            f"({_ranges(rows.unmatched)})"
        )
    if rows.ignored:
        say(f"columns not taken: {', '.join(rows.ignored)}")


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers with runs of them shortened: 2-5, 9."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        own = [number for _, number in run]
        runs.append(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}")
    return ", ".join(runs)
