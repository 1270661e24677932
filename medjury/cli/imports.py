"""`medjury study import` and `medjury rate ratings`: files, runs of other tools and packages into the study."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from itertools import groupby, islice
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.columns import (
    ColumnMap,
    What,
    guess,
    mapped,
    read_map,
    taken,
    toml_of,
)
from data.importers.grades import Grades, grades_named, rubric_of_grades
from data.importers.ratings import RatingFile, columns_needed, medhelm_rows
from data.importers.redcap import CODE, RECORD
from data.importers.responses import SIDES, PairFile, ResponseFile
from data.importers.source import PIPE, Source
from data.importers.table import TableFile
from data.importers.tools import (
    PLAIN,
    RATINGS,
    READERS,
    RUNS,
    Reader,
    opening_of,
    rows_of,
    run_of,
    within,
)
from data.rubric import Rubric, missing_from_prompt, read_rubric
from data.schema import Kind
from data.study.access import PSEUDONYM_KEY, study_key
from data.study.frames import responses_frame
from data.study.package import import_package, opened_package
from data.study.pairs import import_pairs, make_pairs
from data.study.ratings import RatingsAdded, import_ratings
from data.study.responses import ResponsesAdded, import_responses
from data.study.standing import benchmarks
from medjury.cli.blinding import mask_new
from medjury.cli.options import RubricOption, Seed, Study, listed_names, rubric_named
from medjury.cli.output import counted, emit, hint, progress, say, show
from medjury.services.finished_runs import bring_helm, bring_inspect
from medjury.services.importing import (
    PAIRS_RUBRIC,
    rating_notices,
    refuse_demo,
    response_notices,
    rubrics_of_reader,
)
from medjury.services.record import authors_for
from medjury.services.redcap import redcap_ratings

BY_AUTHOR = "a file of ratings names each response by its author (MedHELM's layout)"
IMPORTER = "researcher"
SHOWN, LOOKED_AT, LONGEST_SHOWN = 3, 500, 200
SHOWN_RESPONSE = (
    *("instance_id", "benchmark", "response_id", "model", "context", "prompt", "reference"),
    *("checklist", "response"),
)
MEDHELM = {"username", "instance_id", "dataset_name", "model_key"}
REDCAP = {RECORD, CODE}
MapOption = Annotated[
    Path | None,
    typer.Option("--map", metavar="FILE", help="TOML that names columns: theirs = ours."),
]
GuessOption = Annotated[
    bool,
    typer.Option(
        "--guess", help="Print the map it would use and three rows as stored; store nothing."
    ),
]
ScaleOption = Annotated[
    str | None,
    typer.Option(
        "--scale", metavar="0-10|WORD,WORD", help="The scale of grades, words from worst to best."
    ),
]
EncodingOption = Annotated[
    str, typer.Option("--encoding", metavar="NAME", help="Of a text that is not UTF-8.")
]


def import_(
    study: Study,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Rows (CSV, Excel, Parquet, JSON, also .gz, - for standard input); a tool's files; folders of HELM runs; logs of Inspect; or a package.",
        ),
    ],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="By default from the content; csv, jsonl, helm, inspect, package or a tool's reader.",
        ),
    ] = None,
    benchmark: Annotated[str | None, typer.Option(help="For rows that name none.")] = None,
    rubric: RubricOption = None,
    map_to: MapOption = None,
    guess: GuessOption = False,
    scale: ScaleOption = None,
    encoding: EncodingOption = "",
    pairs: Annotated[
        bool, typer.Option("--pairs", help="A row is a pair: two responses to be compared.")
    ] = False,
    accept_findings: Annotated[
        bool,
        typer.Option(
            "--accept-findings", help="Of a package: store it although verify has findings."
        ),
    ] = False,
) -> None:
    """Import responses with their instances; repeating it changes nothing.

    Finished HELM runs (a folder, a suite) and logs of Inspect (.eval, .json) bring their jurors'
    ratings with them; a package of `medjury share export` brings a whole study. Files of other tools are
    known by their content; columns of any names are taken with --map.

    Example:
    medjury study import responses.csv --benchmark visits
    """
    _check_format(form)
    kind: What = "pairs" if pairs else "responses"
    if pairs and not guess:
        table, _ = rows_of(_sources(paths, encoding), kind, form, _map(map_to, kind), benchmark)
        study.write(_bring_pairs(study, table, benchmark, rubric))
        return
    run = None if guess else _run_format(paths, form, encoding)
    if scale is not None and run != "inspect":
        raise typer.BadParameter("belongs to logs of Inspect, and to ratings", param_hint="--scale")
    if accept_findings and run != "package":
        raise BadInput("--accept-findings belongs to a package")
    if run == "package":
        study.write(_restore(study, paths, accept_findings=accept_findings))
    elif run:
        own = partial(_own_study, study)
        brought = (
            bring_helm(paths, benchmark, rubric, own, study.open, rubric_named)
            if run == "helm"
            else bring_inspect(paths, benchmark, rubric, own, rubric_named, _grades(scale))
        )
        show(brought.title, brought.columns, brought.rows, or_lines=True)
        emit(*brought.lines)
        mask_new(brought.engine)
        study.write(brought.body)
    elif guess:
        source = _sources(paths, encoding)[0]
        _show_guess(study, source, kind, form, _map(map_to, kind), benchmark)
    else:
        sources, given = _sources(paths, encoding), _map(map_to, kind)
        table, reader = rows_of(sources, kind, form, given, benchmark)
        if reader is None and taken(table.columns, "pairs"):
            raise BadInput(
                f"{table.path.name}: a row has two responses, first and second: give --pairs"
            )
        study.write(_bring_rows(study, table, reader, benchmark, rubric))
        if reader and not reader.instead:
            hint(f"next: its scores, with `medjury rate ratings {paths[0].name}`")


def _grades(scale: str | None) -> Grades | None:
    return None if scale is None else grades_named(scale)


def _check_format(form: str | None, others: Iterable[str] = ()) -> None:
    """Refuse a format that is no reader's."""
    formats = (*PLAIN, *RUNS, *READERS, *others)
    if form is not None and form not in formats:
        raise typer.BadParameter(f"{form!r} is none of {', '.join(formats)}", param_hint="--format")


def _run_format(paths: Sequence[Path], form: str | None, encoding: str) -> str | None:
    """Return "package", "helm" or "inspect" where paths are stored as a whole, else None."""
    if form is not None:
        return form if form in RUNS else None
    there = (path for path in paths if str(path) != PIPE and (path.is_dir() or path.is_file()))
    path = next(there, None)
    return run_of(path if path.is_dir() else _source(path, encoding)) if path else None


def _source(path: Path, encoding: str) -> Source:
    """Return a file's bytes, the same for all that looks at it in a command: it is read once."""
    if not path.is_file():
        return Source(path, encoding=encoding)
    state = path.stat()
    return _source_once(path, encoding, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _source_once(path: Path, encoding: str, *_: int) -> Source:
    return Source(path, encoding=encoding)


def _sources(paths: Sequence[Path], encoding: str) -> list[Source]:
    """Return the files that paths name; a folder's are a tool's files in it."""
    files = (file for path in paths for file in (within(path) if path.is_dir() else [path]))
    return [_source(file, encoding) for file in files]


def _map(path: Path | None, kind: What) -> ColumnMap | None:
    return None if path is None else read_map(path, kind)


def _show_guess(
    study: Study,
    source: Source,
    kind: What,
    form: str | None,
    given: ColumnMap | None,
    benchmark: str | None,
) -> None:
    """Print the map that a file would be read with, and its first rows as they would be stored."""
    if study.json_to is not None:
        raise typer.BadParameter("does not go with --guess", param_hint="--json")
    if given is None:
        table, reader = rows_of([source], kind, form, None, benchmark)
        if reader is not None:
            say(f"{source.path.name}: {reader.title}; it needs no map of columns")
            _show_first(table, kind, benchmark)
            return
    table = TableFile(source, PLAIN.get(form or ""), given.sheet if given else None)
    chosen = given or guess(table, kind, benchmark)[0]
    say(toml_of(chosen, table.columns))
    _show_first(mapped(table, chosen, kind), kind, benchmark)


def _show_first(table: TableFile, kind: What, benchmark: str | None) -> None:
    """Print the first rows as they would be stored, or what keeps them from being so."""
    rows: Iterable[dict[str, Any]]
    if kind == "pairs":
        rows = (
            {"pair_id": row.pair_id, "instance_id": row.rows[0].instance_id}
            | {side: one.response for side, one in zip(SIDES, row.rows, strict=True)}
            for row in PairFile(table, benchmark)
        )
    elif kind == "responses":
        rows = (
            {name: getattr(row, name) for name in SHOWN_RESPONSE}
            | {f"group:{name}": value for name, value in row.groups}
            for row in ResponseFile(table, benchmark)
        )
    else:
        rows = ({name: getattr(row, name) for name in RATINGS} for row in RatingFile(table))
    try:
        for number, row in enumerate(islice(rows, SHOWN), start=1):
            emit(
                f"row {number}",
                *(f"  {k}: {_short(v)}" for k, v in row.items() if v not in (None, "")),
            )
    except BadInput as error:
        say(f"as it stands this would be refused: {error}")
    say("nothing was stored; save the map, change it where it is wrong, and give it with --map")


def _short(value: object) -> str:
    text = repr(str(value))
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"{text[:LONGEST_SHOWN]}... ({counted(len(str(value)), 'character')})"


def _own_study(study: Study) -> Engine:
    """Return the study to import into, made if it is not there; never the demo."""
    engine = study.open(create=True)
    another = "give your own study another place, such as --db sqlite:///study.db"
    refuse_demo((benchmark.name for benchmark in benchmarks(engine)), another)
    return engine


def _bring_pairs(
    study: Study, table: TableFile, benchmark: str | None, rubric: str | None
) -> dict[str, Any]:
    """Store a file's pairs with their responses, tell what came of it, and look for authors' names."""
    rows, engine = PairFile(table, benchmark), _own_study(study)
    chosen = rubric_named(engine, rubric) or read_rubric(PAIRS_RUBRIC)
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        added = import_pairs(engine, rows, chosen, lambda _: at(table.read_bytes))
    say(
        f"{table.path.name}: {counted(added.pairs, 'pair')} of "
        f"{counted(added.responses.responses, 'response')} imported, "
        f"{added.unchanged} were there already ({table.encoding})"
    )
    for name, used in added.responses.benchmarks.items():
        say(f"new benchmark {name}, its pairs rated on the rubric {used}")
    emit(*([f"columns not taken: {', '.join(rows.ignored)}"] if rows.ignored else []))
    return {
        "file": table.path.name,
        **asdict(added),
        "columns_not_taken": list(rows.ignored),
        "masked": asdict(mask_new(engine)),
    }


def pairs(
    study: Study,
    benchmark: Annotated[str, typer.Argument(help="Whose responses are paired.")],
    into: Annotated[
        str | None, typer.Option(help="The pairs' own benchmark; by default BENCHMARK-pairs.")
    ] = None,
    models: Annotated[
        str | None, typer.Option(metavar="A,B", help="Of these models alone; once unblinded.")
    ] = None,
    number: Annotated[
        int | None, typer.Option(min=1, help="So many, balanced over models; by default all.")
    ] = None,
    rubric: RubricOption = None,
    seed: Seed = 0,
) -> None:
    """Make pairs of responses that are there, to be compared by clinicians and jurors.

    Example:
    medjury study pairs visits --number 60
    """
    engine = study.open()
    chosen = rubric_named(engine, rubric) or read_rubric(PAIRS_RUBRIC)
    named = listed_names(models, "--models", "model") if models else ()
    own = into or f"{benchmark}-pairs"
    added = make_pairs(engine, benchmark, own, chosen, models=named, number=number, seed=seed)
    say(
        f"{own}: {counted(added.pairs, 'pair')} on "
        f"{counted(added.responses.instances, 'instance')}, rated on the rubric {chosen.name}"
    )
    study.write({"benchmark": own, "pairs": added.pairs, "instances": added.responses.instances})


def _bring_rows(
    study: Study,
    table: TableFile,
    reader: Reader | None,
    benchmark: str | None,
    rubric: str | None,
) -> dict[str, Any]:
    """Store a file's responses, tell what came of it, and look for authors' names in them."""
    rows = ResponseFile(table, benchmark)
    engine = _own_study(study)
    chosen = rubric_named(engine, rubric)
    if chosen and (why := missing_from_prompt(chosen.prompt, chosen.criteria)):
        typer.echo(f"WARNING: rubric {chosen.name}: {why}", err=True)
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        rubrics, tick = rubrics_of_reader(reader), lambda _: at(table.read_bytes)
        added = import_responses(engine, rows, rubrics, chosen, tick=tick)
    emit(*_responses_lines(table, rows, added))
    masked = mask_new(engine)
    return {
        "file": table.path.name,
        **asdict(added),
        "columns_not_taken": {name: rows.not_taken[name] for name in rows.ignored},
        "rows_left_out": dict(table.left_out),
        "masked": asdict(masked),
    }


def _responses_lines(table: TableFile, rows: ResponseFile, added: ResponsesAdded) -> Iterator[str]:
    yield (
        f"{table.path.name}: {counted(added.responses, 'response')} to "
        f"{counted(added.instances, 'new instance')} imported, "
        f"{added.unchanged} were there already ({table.encoding})"
    )
    yield from table.doubts
    if not (added.responses or added.groups):
        yield "nothing changed"
    for name, responses in sorted(added.groups.items()):
        yield f"group {name}: {counted(responses, 'response')} put into it"
    for name, rubric in added.benchmarks.items():
        yield f"new benchmark {name}, rated on the rubric {rubric} (--rubric chooses another)"
    yield from response_notices(rows, added)


def _restore(study: Study, paths: Sequence[Path], *, accept_findings: bool) -> dict[str, Any]:
    """Read a package whole, and only when it holds open the study and store it."""
    if len(paths) > 1:
        raise BadInput("a package becomes a study of its own: import one, and alone")
    with opened_package(paths[0]) as package:
        engine = study.open(create=True)
        added = import_package(engine, package, IMPORTER, accept_findings=accept_findings)
    stored = {"file": package.path.name, **asdict(added), "findings": list(added.findings)}
    if added.unchanged:
        say(f"{package.path.name}: was imported before; nothing changed")
        return stored
    emit(*(f"{table}: {counted(number, 'row')}" for table, number in added.rows.items()))
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


def ratings(
    study: Study,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="PATH",
            help="Rows (CSV, Excel, Parquet, JSON, also .gz, - for standard input) or a tool's file.",
        ),
    ],
    rubric: RubricOption = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="By default from the content; csv, jsonl, redcap, medhelm or a tool's reader.",
        ),
    ] = None,
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
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Withdraw earlier imported scores that the file leaves out."
        ),
    ] = False,
) -> None:
    """Import ratings made elsewhere: by clinicians, jurors or metrics; also REDCap and MedHELM.

    Example:
    medjury rate ratings ratings.csv
    """
    _check_format(form, ("redcap", "medhelm"))
    grades = _grades(scale)
    if guess:
        source = _sources([path], encoding)[0]
        _show_guess(study, source, "ratings", form, _map(map_to, "ratings"), benchmark)
        return
    kind = form or _layout(path, encoding)
    if incomplete and kind != "redcap":
        raise typer.BadParameter("belongs to --format redcap", param_hint="--incomplete")
    if jury_mean and kind != "medhelm":
        raise typer.BadParameter("belongs to --format medhelm", param_hint="--jury-mean")
    more: Callable[[], list[str]] = list
    if kind in ("redcap", "medhelm"):
        table, engine, grades = TableFile(_source(path, encoding)), study.open(), None
        of_layout = redcap_ratings if kind == "redcap" else medhelm_ratings
        table, more = of_layout(engine, table, incomplete or jury_mean)
        rows = RatingFile(table)
    else:
        sources, given = _sources([path], encoding), _map(map_to, "ratings")
        table, _ = rows_of(sources, "ratings", form, given, benchmark)
        rows, engine = RatingFile(table, grades), study.open()
    chosen = _rated_on(rubric_named(engine, rubric), grades, rows)
    with progress(f"reading {table.path.name}", table.size_bytes) as at:
        added = import_ratings(
            engine, rows, chosen, tick=lambda _: at(table.read_bytes), replace=replace
        )
    emit(*_ratings_lines(table, rows, added), *more())
    study.write(
        {
            "file": table.path.name,
            **asdict(added),
            "other_rubric": sorted(added.other_rubric),
            "missing": rows.missing,
            "rows_left_out": dict(table.left_out),
        }
    )


def _layout(path: Path, encoding: str) -> str | None:
    """Return redcap or medhelm where a file has their columns, None for any other."""
    if str(path) == PIPE or not path.is_file():
        return None
    _, first = opening_of(_source(path, encoding))
    if first.keys() >= MEDHELM and "response_id" not in first:
        return "medhelm"
    return "redcap" if first.keys() >= REDCAP else None


def medhelm_ratings(
    engine: Engine, table: TableFile, jury_mean: bool
) -> tuple[TableFile, Callable[[], list[str]]]:
    """Return a file of MedHELM's layout as a file of ratings, and what to say of it when it is read.

    Usernames become pseudonyms by the study's own secret, which no export holds. A file of another
    layout changes nothing.
    """
    needed = columns_needed(table, jury_mean)
    wrote, lifted = authors_for(engine, BY_AUTHOR, "researcher")
    if lifted:
        say(f"the blind is lifted, and that is recorded: {BY_AUTHOR}")
    frame = responses_frame(engine)
    columns = (frame[name] for name in ("response_id", "benchmark", "instance_id"))
    responses = [
        (response, benchmark, instance.removeprefix(f"{benchmark}/"), wrote[response])
        for response, benchmark, instance in zip(*columns, strict=True)
        if response in wrote
    ]
    rows, unmatched = medhelm_rows(table, responses, study_key(engine, PSEUDONYM_KEY), jury_mean)

    def lines() -> list[str]:
        of_rows = f"{counted(len(unmatched), 'row')} ({_ranges(unmatched)})"
        ignored = ", ".join(name for name in table.columns if name and name not in needed)
        return [
            "usernames were replaced by pseudonyms, and are not in the study",
            *([f"left out, as their response is not in the study: {of_rows}"] if unmatched else []),
            *([f"columns not taken: {ignored}"] if ignored else []),
        ]

    return rows, lines


def _rated_on(chosen: Rubric | None, scale: Grades | None, rows: RatingFile) -> Rubric | None:
    """Return the rubric that ratings are held to: named, made of a scale, or each benchmark's own."""
    if scale is None:
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


def _ratings_lines(table: TableFile, rows: RatingFile, added: RatingsAdded) -> Iterator[str]:
    missing = rows.missing - added.cleared
    yield (
        f"{table.path.name}: {counted(added.added, 'rating')} imported, {added.revised} revised an earlier one, "
        f"{added.unchanged} were there already, {counted(missing, 'empty cell')} "
        f"{'stays' if missing == 1 else 'stay'} missing"
    )
    yield from _earlier_lines(added)
    yield from table.doubts
    if not (added.added or added.revised or added.cleared or added.replaced):
        yield "nothing changed"
    if added.raters:
        yield "new raters: " + ", ".join(added.raters)
    yield from rating_notices(rows, added)


def _earlier_lines(added: RatingsAdded) -> Iterator[str]:
    """Yield what became of earlier scores, and which names may be one person's."""
    if added.cleared:
        yield (
            f"{counted(added.cleared, 'earlier score')} cleared, as empty in this file: withdrawn, not deleted"
        )
    if added.replaced:
        yield f"{counted(added.replaced, 'earlier score')} not in this file withdrawn, not deleted"
    if added.staying:
        whose = ", ".join(f"{name} {number}" for name, number in sorted(added.staying.items()))
        yield f"earlier scores not in this file still count ({whose}); --replace withdraws them"
    for one, other in added.spellings:
        yield (
            f"WARNING: {one} and {other} may be one person; they count as two until "
            f'`medjury rate people join "{one}" "{other}" --reason "..."`'
        )


def _ranges(numbers: list[int]) -> str:
    """Return ascending numbers with runs of them shortened: 2-5, 9."""
    runs = []
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        own = [number for _, number in run]
        runs.append(str(own[0]) if len(own) == 1 else f"{own[0]}-{own[-1]}")
    return ", ".join(runs)
