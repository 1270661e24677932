"""Registry of readers: the tools whose files are read, and how each file is recognised.

A file that no reader here knows is a table of rows, in columns of ours or of any names with a map.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadInput
from data.importers import tools
from data.importers.columns import ColumnMap, What, as_named, mapped
from data.importers.helm import is_helm
from data.importers.rows import is_name
from data.importers.source import Form, Source, form_of
from data.importers.table import Cells, DerivedTable, TableFile
from data.rubric import Rubric

MEANT: dict[str, Form] = {".eval": "inspect", ".zip": "package"}
MOST_FILES = 10_000
MEDHELM = {"username", "instance_id", "dataset_name", "model_key"}
REDCAP = {"mj_record", "mj_code"}


@dataclass(frozen=True, slots=True)
class Opening:
    """The beginning of a file, by which its reader is chosen.

    Attributes
    ----------
    form
        How it is read; None for a folder.
    first
        The first row of a table or of JSON Lines, or a JSON object, as the file has it.
    """

    path: Path
    form: Form | None = None
    first: Mapping[str, Any] = field(default_factory=dict)

    def has(self, keys: set[str]) -> bool:
        """Tell whether the first row, or the object, has all of some keys."""
        return keys <= set(self.first)


Make = Callable[[TableFile, Cells, ColumnMap | None], DerivedTable]


@dataclass(frozen=True, slots=True)
class Reader:
    """A tool whose files are read.

    Attributes
    ----------
    name
        As `--format` names it.
    title
        What messages call its file, with its article.
    fits
        Whether a file is such a one, by its content.
    responses, ratings
        Make rows of the file; None where it holds none.
    instead
        What to do where it holds none.
    rubric
        The one that its scores stand on, where the tool says it.
    within
        In a folder, the files that are read.
    """

    name: str
    title: str
    fits: Callable[[Opening], bool]
    responses: Make | None = None
    ratings: Make | None = None
    instead: str = ""
    rubric: Rubric | None = None
    within: str = ""


def _without_map(make: Callable[[TableFile, Cells], DerivedTable]) -> Make:
    """Return a maker that ignores the column map."""
    return lambda table, constant, _: make(table, constant)


# What is stored as a whole by `medjury study import` itself, not as rows.
RUNS: tuple[Reader, ...] = (
    Reader("package", "a package of medjury", lambda opening: opening.form == "package"),
    Reader("helm", "a run of HELM", lambda opening: is_helm(opening.path)),
    Reader("inspect", "a log of Inspect", lambda opening: _is_inspect(opening)),
)
TOOLS: tuple[Reader, ...] = (
    Reader(
        "lm-eval",
        "a file of samples of lm-evaluation-harness",
        lambda opening: opening.has(tools.LM_EVAL),
        _without_map(tools.lm_eval_responses),
        _without_map(tools.lm_eval_ratings),
        within="samples_*.jsonl",
    ),
    Reader(
        "label-studio",
        "an export of Label Studio",
        lambda opening: opening.has(tools.LABEL_STUDIO),
        tools.label_studio_responses,
        tools.label_studio_ratings,
    ),
    Reader(
        "healthbench",
        "HealthBench's set of questions",
        lambda opening: (
            opening.has(tools.HEALTHBENCH_SET) and isinstance(opening.first["rubrics"], list)
        ),
        _without_map(tools.set_responses),
        instead="it holds rubrics and no ratings; those of the physicians are in its meta-evaluation",
        rubric=tools.SHARE,
    ),
    Reader(
        "healthbench-meta",
        "HealthBench's meta-evaluation",
        lambda opening: opening.has(tools.HEALTHBENCH_META),
        _without_map(tools.meta_responses),
        _without_map(tools.meta_ratings),
        rubric=tools.MET,
    ),
    Reader(
        "healthbench-results",
        "HealthBench's results by simple-evals",
        lambda opening: tools.is_results(opening.first),
        _without_map(tools.results_responses),
        _without_map(tools.results_ratings),
        rubric=tools.SHARE,
    ),
)
# What is known and not read -> what to do; the first that fits.
OTHERS: tuple[tuple[str, Callable[[Opening], bool], str], ...] = (
    (
        "the summary of a run of lm-evaluation-harness",
        lambda opening: opening.has({"results", "configs", "versions"}),
        "the responses are in samples_*.jsonl beside it (lm_eval --log_samples)",
    ),
    (
        "the results of promptfoo",
        lambda opening: opening.has({"evalId", "results"}),
        "save them as CSV there (promptfoo export), and name the columns in --map FILE",
    ),
    (
        "a JSON object of no tool known here",
        lambda opening: opening.form == "object" and not _key_of_rows(opening.first),
        "save its rows as a JSON array or as JSON Lines",
    ),
)
NAMED = {reader.name: reader for reader in (*RUNS, *TOOLS)}


def opening_of(source: Source | Path) -> Opening:
    """Return the beginning of a file, or refuse a file that cannot be read."""
    if isinstance(source, Path):
        return Opening(source)
    if named := MEANT.get(source.path.suffix.lower()):
        return Opening(source.path, named)  # a broken one is refused by its own reader
    form = form_of(source)
    if form in ("inspect", "package", "xlsx"):  # no tool known here writes workbooks
        return Opening(source.path, form)
    rows = TableFile(source, "object" if form == "object" else None).first(1)
    return Opening(source.path, form, rows[0][1] if rows else {})


def reader_of(opening: Opening) -> Reader | None:
    """Return the reader of a file, None for a table of no known tool.

    Raises
    ------
    BadFile
        If it is known, and is not read.
    """
    reader = next((candidate for candidate in (*RUNS, *TOOLS) if candidate.fits(opening)), None)
    if reader is None:
        for title, fits, to_do in OTHERS:
            if fits(opening):
                raise BadFile(f"{opening.path}: this is {title}; {to_do}")
        if opening.form == "object":
            key = _key_of_rows(opening.first)
            named = repr(key) if is_name(key) else "one of its keys"
            raise BadFile(
                f"{opening.path}: this is a JSON object, and its rows may stand under {named}; save "
                "them alone, as a JSON array or JSON Lines"
            )
    return reader


def within(folder: Path) -> tuple[Reader, list[Path]] | None:
    """Return the reader and the files of a folder, None if no tool's files are in it."""
    for reader in TOOLS:
        if reader.within:
            paths = sorted(folder.rglob(reader.within))[: MOST_FILES + 1]
            if len(paths) > MOST_FILES:
                raise BadFile(f"{folder}: over {MOST_FILES} files; name one folder after another")
            if paths:
                return reader, paths
    return None


def rows_of(
    sources: Sequence[Source],
    what: What,
    form: str | None = None,
    given: ColumnMap | None = None,
    benchmark: str | None = None,
) -> tuple[TableFile, Reader | None]:
    """Return the rows of files, and the reader of the tool that wrote them, if any.

    Parameters
    ----------
    form
        The name of a reader, or csv or jsonl; by default what the first file shows.
    given
        A user's map of columns; what it holds constant stands in every row.
    benchmark
        Of rows that name none; of a tool's file, in place of the tool's own name.

    Raises
    ------
    BadFile
        If a file is nothing that is read, or several are no tool's.
    """
    plain: Form | None = "csv" if form == "csv" else "jsonl" if form == "jsonl" else None
    reader = None
    if not plain:
        reader = NAMED[form] if form else reader_of(opening_of(sources[0]))
    if reader is not None and reader in RUNS:
        why = f"this is {reader.title}; `medjury study import` takes it whole, from a file"
        raise BadFile(f"{sources[0].path}: {why}")
    if reader is None:
        if len(sources) > 1:
            raise BadInput("several files of rows: import them one after another")
        return plain_rows(sources[0], plain, what, given), None
    constant = dict(given.constant) if given else {}
    constant |= {"benchmark": benchmark} if benchmark else {}
    return tool_rows(reader, sources, what, constant, given), reader


def tool_rows(
    reader: Reader, sources: Sequence[Source], what: What, constant: Cells, given: ColumnMap | None
) -> DerivedTable:
    """Return the rows of a tool's files as one table.

    Raises
    ------
    BadFile
        If such files hold none of what is asked for.
    """
    make = reader.responses if what == "responses" else reader.ratings
    if make is None:
        raise BadFile(f"{sources[0].path}: this is {reader.title}; {reader.instead}")
    tables = [
        make(TableFile(source, "object" if form_of(source) == "object" else None), constant, given)
        for source in sources
    ]
    if len(tables) == 1:
        return tables[0]
    left_out: dict[str, int] = {}

    def rows() -> Any:
        for table in tables:
            yield from table
            for reason, number in table.left_out.items():
                left_out[reason] = left_out.get(reason, 0) + number

    columns = tuple(dict.fromkeys(name for table in tables for name in table.columns))
    return DerivedTable(tables[0], columns, rows, left_out)


def plain_rows(source: Source, form: Form | None, what: What, given: ColumnMap | None) -> TableFile:
    """Return the rows of a table in our columns, as they are or through a map."""
    table = TableFile(source, form, given.sheet if given else None)
    if given is None:
        return table
    return mapped(table, given if given.columns else as_named(table.columns, given, what), what)


def _is_inspect(opening: Opening) -> bool:
    """Tell whether a file is an Inspect log, or a folder holds such logs by their endings."""
    if opening.form is None:
        return opening.path.is_dir() and any(opening.path.glob("*.eval"))
    return opening.form == "inspect" or opening.has({"version", "eval"})


def _key_of_rows(keys: Mapping[str, Any]) -> str:
    """Return the key of an object that holds a list of objects, "" if none does."""
    lists = {key: value[:1] for key, value in keys.items() if isinstance(value, list)}
    return next((key for key, first in lists.items() if first and isinstance(first[0], dict)), "")
