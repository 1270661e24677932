"""Files of other tools, read as rows in columns of ours; and how the reader of a file is chosen.

A file that no reader here knows is a table of rows, in columns of ours or of any names with a map.

lm-evaluation-harness: samples_TASK_TIME.jsonl, a line for each document and filter. The file does not
name its model: the summary beside it does (results_TIME.json), else its folder. A document of several
filters has a line for each, with the same answers. Versions before 0.4.4 list no metrics: they are the
numbers beside what every sample has.

Label Studio's JSON export: tasks with their data and annotations. Which of a task's data is the
response, and which the rest, is told by their names or by a map. Annotators are named by their
numbers: an export may hold their e-mail addresses, which never enter a study. Of several annotations
of a task by one of them the newest counts.

HealthBench, as OpenAI publishes it and as simple-evals writes its results. The set itself (.jsonl) has
questions, the points of each question's rubric and, for some, what physicians wrote and the responses
they saw. The meta-evaluation (.jsonl) has a line for each response and point, with whether each
physician found the point met. Results (..._allresults.json) have a model's responses with what the
grader said of every point.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data.errors import BadFile, BadInput, BadRow
from data.importers.columns import ColumnMap, What, flat, guessed, mapped
from data.importers.grades import usable_name
from data.importers.helm import is_helm
from data.importers.responses import ID_MADE
from data.importers.rows import Origin, checklist_of, is_name, made_id
from data.importers.safe import read_json_file
from data.importers.source import Form, Source, form_of
from data.importers.table import Cells, TableFile
from data.rubric import Criterion, Rubric, Scale

RESPONSES = (
    *("instance_id", "benchmark", "context", "prompt", "reference", "response_id", "model"),
    *("response", "checklist", ID_MADE),
)
RATINGS = ("response_id", "rater", "kind", "criterion", "score", "comment", "rated_at")
Record = Mapping[str, Any]


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
        Whether a file is such a one, by its first row or its object.
    rows
        Makes the rows of a record that are asked for, and counts what it leaves out.
    of_file
        What `rows` needs to know of a file besides, from what stands in every row and a map.
    columns
        Of the rows of responses.
    instead
        What to do for ratings, where it holds none.
    rubric
        The one that its scores stand on, where the tool says it.
    within
        In a folder, the files that are read.
    records
        Gives the file's records, where they are not its rows.
    once
        Whether a response that comes again, as one row a metric has it, is taken once.
    """

    name: str
    title: str
    fits: Callable[[Record], bool]
    rows: Callable[[Record, What, Any, Counter[str]], Iterable[Cells]]
    of_file: Callable[[TableFile, Cells, ColumnMap | None], Any] = lambda _, constant, __: constant
    columns: Callable[[Any], tuple[str, ...]] = lambda _: RESPONSES
    instead: str = ""
    rubric: Rubric | None = None
    within: str = ""
    records: Callable[[TableFile], Iterable[tuple[Origin, Record]]] = TableFile.records
    once: bool = False


def response_cells(
    benchmark: str, instance: str, context: str, model: str, text: str, **more: str
) -> Cells:
    """Return a response as cells; its id is always the same and does not depend on the model.

    `more` has prompt, reference, checklist; and `again`, which tells equal texts apart.
    """
    again = [text for text in (more.pop("again", ""),) if text]
    return {
        "instance_id": instance,
        "benchmark": benchmark,
        "context": context,
        "model": model,
        "response": text,
        "response_id": made_id(benchmark, instance, text, *again),
        ID_MADE: "yes",
        **more,
    }


def rating_cells(response: str, rater: str, kind: str, criterion: str, score: str) -> Cells:
    """Return a score as cells."""
    return dict(zip(RATINGS[:5], (response, rater, kind, criterion, score), strict=True))


def talk(messages: Any) -> str:
    """Return a conversation as text: one turn as it is, several with [role] before each."""
    turns = [turn for turn in messages if isinstance(turn, Mapping)] if messages else []
    texts = [(str(turn.get("role", "user")), content(turn.get("content"))) for turn in turns]
    if len(texts) == 1:
        return texts[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in texts)


def content(body: Any) -> str:
    """Return the text of a turn; of a turn in pieces, the pieces that are text."""
    if isinstance(body, list):
        pieces = (piece.get("text") for piece in body if isinstance(piece, Mapping))
        return "\n".join(str(piece) for piece in pieces if piece)
    return body if isinstance(body, str) else ""


def score_text(value: Any) -> str:
    """Return a score as text, "" if it is no number; true is 1."""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, int | float) and value == value else ""


def text_of(record: Record, key: str) -> str:
    """Return a value that is text or a number as text, "" for any other."""
    value = record.get(key)
    return str(value) if isinstance(value, str | int | float) and value is not True else ""


OTHER_KEYS = {"filter", "metrics", "doc_hash", "prompt_hash", "target_hash", "schema_version"}
LM_EVAL = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps"}
NAMED = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")
NUMBER = re.compile(r"-?(\d+\.?\d*(e[+-]?\d+)?|inf|nan)")
LM_EVAL_RATER = "lm-eval."


def lm_eval(record: Record, what: What, own: Cells, left_out: Counter[str]) -> Iterator[Cells]:
    """Yield the answers, or the metrics of documents with one answer."""
    answers, target = _answers(record), record.get("target")
    instance, prompt = text_of(record, "doc_id"), _prompt(record)
    reference = target if isinstance(target, str) else ""
    samples = [
        response_cells(
            *(own["benchmark"], instance, prompt, own["model"], text),
            reference=reference,
            again=str(number) if number else "",
        )
        for number, text in enumerate(answers)
    ]
    if what == "responses":
        if not answers:
            left_out["samples without a text that was written (choices by likelihood)"] += 1
        left_out["empty responses"] += sum(not text.strip() for text in answers)
        yield from (cells for cells in samples if cells["response"].strip())
        return
    if len(answers) != 1 or not answers[0].strip():
        left_out["samples with several answers, an empty one or none"] += 1
        return
    filter_name = text_of(record, "filter")
    suffix = "" if filter_name in ("", "none") else f".{filter_name}"
    metrics = record.get("metrics")
    for name in metrics or [key for key in record if key not in LM_EVAL | OTHER_KEYS]:
        if score := score_text(record.get(name)):
            rater = f"{LM_EVAL_RATER}{name}{suffix}"
            yield rating_cells(samples[0]["response_id"], rater, "metric", str(name), score)


def _answers(record: Record) -> list[str]:
    """Return the texts that the model wrote; log-likelihoods of choices are none."""
    first = record.get("resps")
    while isinstance(first, list) and first and isinstance(first[0], list):
        first = first[0]
    answers = first if isinstance(first, list) else []
    if not all(isinstance(answer, str) for answer in answers):
        return []
    is_likelihood = (  # logged as a number and a flag, also as text
        len(answers) == 2 and answers[1] in ("True", "False") and NUMBER.fullmatch(answers[0])
    )
    return [] if is_likelihood else answers


def _prompt(record: Record) -> str:
    """Return the prompt: the first argument of the first request."""
    body = record.get("arguments")
    while isinstance(body, dict | list) and body:
        body = next(iter(body.values())) if isinstance(body, dict) else body[0]
    return body if isinstance(body, str) else json.dumps(record.get("doc"), ensure_ascii=False)


def task_and_model(table: TableFile, constant: Cells, _: ColumnMap | None) -> Cells:
    """Return the task and the model of a file of samples."""
    named = NAMED.fullmatch(table.path.name)
    task = constant.get("benchmark") or (named["task"] if named else "")
    if not task:
        raise table.wrong(
            "these are samples of lm-evaluation-harness under another name than it gives "
            "(samples_TASK_TIME.jsonl); give --benchmark NAME"
        )
    model = constant.get("model") or _model(table.path, named["time"] if named else "")
    if not model:
        raise table.wrong(
            "these are samples of lm-evaluation-harness, and what names their model (its folder, or "
            'results_TIME.json) is not with them; name it in a map: [constant] model = "NAME"'
        )
    return {"benchmark": task, "model": model}


def _model(path: Path, time: str) -> str:
    """Return the model from the summary beside the samples, else from the folder, else ""."""
    try:
        body = read_json_file(path.parent / f"results_{time}.json")
    except (OSError, BadFile):
        body = {}
    name = body.get("model_name") if isinstance(body, dict) else None
    if isinstance(name, str) and name:
        return name
    folder = path.resolve().parent.name if path.exists() else ""
    return folder.replace("__", "/") if "__" in folder else ""


LABEL_STUDIO = {"id", "data", "annotations"}
LABEL_STUDIO_RATER = "label-studio."
SCORES = ("rating", "number", "choices", "likert")
MAKES_ID = ("benchmark", "instance_id", "response")


def label_studio(
    record: Record, what: What, chosen: ColumnMap, left_out: Counter[str]
) -> Iterator[Cells]:
    """Yield the tasks' data, or annotations as ratings by clinicians: each control tag is a criterion."""
    cells = _task(record, chosen)
    if what == "responses":
        left_out["tasks without a response"] += not cells.get("response", "").strip()
        yield from [cells] if cells.get("response", "").strip() else []
        return
    if record.get("predictions"):
        left_out["tasks with predictions by a model, which are not taken"] += 1
    for who, annotation in _newest(record.get("annotations") or (), left_out).items():
        rater = f"{LABEL_STUDIO_RATER}{who if who.isdecimal() else 'unknown'}"
        yield from _scores(annotation, cells["response_id"], rater, chosen, left_out)


def tasks_map(table: TableFile, constant: Cells, given: ColumnMap | None) -> ColumnMap:
    """Return the column map of the tasks' data: the given one, or one guessed from names."""
    chosen = given or ColumnMap()
    if not chosen.columns:
        first = table.first(1)[0][1].get("data")
        data = flat(first) if isinstance(first, dict) else {}
        chosen = replace(chosen, columns=guessed(tuple(data), "responses").columns)
    return replace(chosen, constant={**chosen.constant, **constant})


def task_columns(chosen: ColumnMap) -> tuple[str, ...]:
    """Return the columns of responses that an export's tasks have."""
    ours = {*chosen.columns.values(), *chosen.constant, "instance_id", "response_id", ID_MADE}
    return tuple(name for name in RESPONSES if name in ours)


def _newest(annotations: Iterable[Record], left_out: Counter[str]) -> dict[str, Record]:
    """Return the newest annotation with a score of each annotator by number, and those of unknown ones."""
    taken: dict[str, Record] = {}
    for annotation in sorted(
        annotations, key=lambda one: (text_of(one, "updated_at"), text_of(one, "created_at"))
    ):
        if annotation.get("was_cancelled"):
            left_out["annotations that were skipped"] += 1
        elif not any(map(_is_score, annotation.get("result") or ())):
            left_out["annotations without a score"] += 1
        else:
            user = annotation.get("completed_by")
            number = user.get("id") if isinstance(user, dict) else user  # names are not read
            who = str(number) if isinstance(number, int) else f"unknown{len(taken)}"
            left_out["older annotations of the same annotator"] += who in taken
            taken[who] = annotation
    return taken


def _is_score(result: object) -> bool:
    return isinstance(result, dict) and result.get("type") in SCORES


def _scores(
    annotation: Record, response: str, rater: str, chosen: ColumnMap, left_out: Counter[str]
) -> Iterator[Cells]:
    """Yield an annotation's scores; its texts become the comment of the first."""
    results = [result for result in annotation.get("result") or () if isinstance(result, dict)]
    texts = [_value_of(result) for result in results if result.get("type") == "textarea"]
    comment = "\n".join(text for text in texts if text)
    for result in results:
        if _is_score(result):
            criterion = chosen.criterion(usable_name(str(result.get("from_name"))))
            yield {
                **rating_cells(response, rater, "clinician", criterion, _value_of(result)),
                "comment": comment,
                "rated_at": text_of(annotation, "created_at"),
            }
            comment = ""
        elif result.get("type") != "textarea":
            left_out[f"marks of type {str(result.get('type'))[:20]}"] += 1


def _value_of(result: Record) -> str:
    """Return the value of a result: its rating, number, one choice or text."""
    value = result.get("value")
    content = value.get(result.get("type"), value.get("text")) if isinstance(value, dict) else value
    if isinstance(content, list):
        return "; ".join(str(item) for item in content)
    return "" if content is None else str(content)


def _task(record: Record, chosen: ColumnMap) -> dict[str, str]:
    """Return a task's data in our columns; a task without an instance id is its own instance."""
    data = record.get("data")
    cells = {**chosen.renamed(flat(data) if isinstance(data, dict) else {}), **chosen.constant}
    cells.setdefault("instance_id", text_of(record, "id"))
    if not cells.get("response_id"):
        cells["response_id"] = made_id(*(cells.get(name, "") for name in MAKES_ID))
        cells[ID_MADE] = "yes"
    return cells


HEALTHBENCH_SET = {"prompt", "rubrics", "prompt_id"}
HEALTHBENCH_META = {
    *("prompt", "completion", "rubric", "binary_labels", "anonymized_physician_ids", "prompt_id"),
}
HEALTHBENCH, HEALTHBENCH_POINTS = "healthbench", "healthbench_points"
GRADER, PHYSICIAN = "healthbench.grader", "healthbench.physician-"


def _of_one_point(name: str, question: str, anchors: dict[int, str]) -> Rubric:
    """Return a rubric with one criterion: whether, or how far, a response meets a checklist."""
    return Rubric(
        name=f"healthbench_{name}",
        version="1",
        audience="not known",
        gold="never",
        scale=Scale(min=0, max=1),
        criterion=(Criterion(name=name, question=question, anchors=anchors),),
        prompt=(
            "<conversation>\n{{context}}\n</conversation>\n\n<response>\n{{response}}\n</response>\n\n"
            "<checklist>\n{{checklist}}\n</checklist>\n\n{{criteria}}\n\n{{schema}}\n"
        ),
    )


SHARE = _of_one_point(
    "share",
    "Which share of the checklist's points does the response earn?",
    {0: "None of the points", 1: "All of the points"},
)
MET = _of_one_point(
    "met",
    "Does the response meet the checklist's one point?",
    {0: "It does not meet it", 1: "It meets it"},
)


def healthbench_set(
    record: Record, _: What, constant: Cells, left_out: Counter[str]
) -> Iterator[Cells]:
    """Yield the responses that physicians saw; their own completion is the reference."""
    body = record.get("ideal_completions_data")
    data: Record = body if isinstance(body, dict) else {}
    completions = list(filter(None, data.get("ideal_completions_ref_completions") or ()))
    left_out["questions without a response"] += not completions
    group = text_of(data, "ideal_completions_group") or "reference"
    for number, text in enumerate(completions, start=1):
        yield response_cells(
            constant.get("benchmark") or HEALTHBENCH,
            text_of(record, "prompt_id"),
            talk(record.get("prompt")),
            constant.get("model") or f"{group}, {number}",
            str(text),
            reference=text_of(data, "ideal_completion"),
            checklist=checklist_of(record.get("rubrics")),
        )


def healthbench_meta(
    record: Record, what: What, constant: Cells, _: Counter[str]
) -> Iterator[Cells]:
    """Yield each response with one point as its checklist, or the physicians' labels: 1 where it is met.

    The meta-evaluation names no models.
    """
    cells = response_cells(
        constant.get("benchmark") or HEALTHBENCH_POINTS,
        f"{text_of(record, 'prompt_id')}/{text_of(record, 'category') or 'point'}",
        talk(record.get("prompt")),
        constant.get("model") or "not named",
        text_of(record, "completion"),
        checklist=text_of(record, "rubric"),
    )
    if what == "responses":
        yield cells
        return
    physicians, labels = record.get("anonymized_physician_ids"), record.get("binary_labels")
    for physician, label in zip(physicians or (), labels or (), strict=False):
        rater, score = f"{PHYSICIAN}{physician}", score_text(label)
        yield rating_cells(cells["response_id"], rater, "clinician", "met", score)


def is_results(first: Record) -> bool:
    """Tell whether an object holds results of HealthBench by simple-evals."""
    metadata = first.get("metadata")
    return isinstance(metadata, Mapping) and "example_level_metadata" in metadata


def results(table: TableFile) -> Iterator[tuple[Origin, Record]]:
    """Yield the results of an object of simple-evals."""
    (_, whole), *_ = table.first(1)
    body = whole["metadata"]["example_level_metadata"]
    for number, result in enumerate(body if isinstance(body, list) else (), start=1):
        if isinstance(result, dict):
            yield Origin(table.path.name, number), result


def with_model(table: TableFile, constant: Cells, _: ColumnMap | None) -> Cells:
    """Return what stands in every row, with the model that the results do not name."""
    if "model" not in constant:
        raise table.wrong(
            "these are HealthBench's results by simple-evals, which do not name the model; "
            'name it in a map: [constant] model = "NAME"'
        )
    return constant


def healthbench_results(
    record: Record, what: What, constant: Cells, left_out: Counter[str]
) -> Iterator[Cells]:
    """Yield a model's responses with their points, or the grader's shares of points as one juror's."""
    cells = response_cells(
        constant.get("benchmark") or HEALTHBENCH,
        text_of(record, "prompt_id"),
        talk(record.get("prompt")),
        constant["model"],
        talk(record.get("completion")),
        checklist=checklist_of(record.get("rubric_items")),
    )
    is_empty, score = not cells["response"].strip(), record.get("score")
    if what == "responses":
        left_out["empty responses"] += is_empty
        yield from [] if is_empty else [cells]
    elif is_empty or score is None or not score_text(score):
        left_out["responses without a score"] += 1
    elif score < 0:  # more points lost than earned: HealthBench counts the mean from 0
        left_out["scores below 0, which no share of points is"] += 1
    else:
        yield rating_cells(cells["response_id"], GRADER, "juror", "share", score_text(score))


TOOLS: tuple[Reader, ...] = (
    Reader(
        "lm-eval",
        "a file of samples of lm-evaluation-harness",
        lambda first: first.keys() >= LM_EVAL,
        lm_eval,
        task_and_model,
        within="samples_*.jsonl",
        once=True,
    ),
    Reader(
        "label-studio",
        "an export of Label Studio",
        lambda first: first.keys() >= LABEL_STUDIO,
        label_studio,
        tasks_map,
        task_columns,
    ),
    Reader(
        "healthbench",
        "HealthBench's set of questions",
        lambda first: first.keys() >= HEALTHBENCH_SET and isinstance(first["rubrics"], list),
        healthbench_set,
        instead="it holds rubrics and no ratings; those of the physicians are in its meta-evaluation",
        rubric=SHARE,
    ),
    Reader(
        "healthbench-meta",
        "HealthBench's meta-evaluation",
        lambda first: first.keys() >= HEALTHBENCH_META,
        healthbench_meta,
        rubric=MET,
        once=True,
    ),
    Reader(
        "healthbench-results",
        "HealthBench's results by simple-evals",
        is_results,
        healthbench_results,
        with_model,
        rubric=SHARE,
        records=results,
    ),
)
# What is stored as a whole by `medjury study import` itself, not as rows.
RUNS = {"package": "a package of medjury", "helm": "a run of HELM", "inspect": "a log of Inspect"}
READERS = {reader.name: reader for reader in TOOLS}
# Keys by which a file is known that is not read -> what it is, and what to do.
OTHERS = (
    (
        {"results", "configs", "versions"},
        "the summary of a run of lm-evaluation-harness; the responses are in samples_*.jsonl beside it "
        "(lm_eval --log_samples)",
    ),
    (
        {"evalId", "results"},
        "the results of promptfoo; save them as CSV there (promptfoo export), and name the columns in "
        "--map FILE",
    ),
)
MEANT: dict[str, Form] = {".eval": "inspect", ".zip": "package"}
MOST_FILES = 10_000
PLAIN: Mapping[str, Form] = {"csv": "csv", "jsonl": "jsonl"}  # of --format, beside the readers


def opening_of(source: Source) -> tuple[Form, Record]:
    """Return how a file is read and its first row, or the object that it is; or refuse it."""
    if named := MEANT.get(source.path.suffix.lower()):
        return named, {}  # a broken one is refused by its own reader
    form = form_of(source)
    if form in ("inspect", "package", "xlsx"):  # no tool known here writes workbooks
        return form, {}
    rows = _table(source).first(1)
    return form, rows[0][1] if rows else {}


def _table(source: Source) -> TableFile:
    return TableFile(source, "object" if form_of(source) == "object" else None)


def run_of(path: Path | Source) -> str | None:
    """Return package, helm or inspect where a file or a folder is stored as a whole, None for rows."""
    if isinstance(path, Path):
        return "helm" if is_helm(path) else "inspect" if any(path.glob("*.eval")) else None
    return _run_of(path.path, *opening_of(path))


def _run_of(path: Path, form: Form, first: Record) -> str | None:
    if form == "package" or is_helm(path):
        return "package" if form == "package" else "helm"
    return "inspect" if form == "inspect" or first.keys() >= {"version", "eval"} else None


def reader_of(source: Source) -> Reader | None:
    """Return the reader of a file, None for a table of no known tool.

    Raises
    ------
    BadFile
        If it is known, and holds no rows or is not read.
    """
    form, first = opening_of(source)
    if run := _run_of(source.path, form, first):
        raise _is_whole(source, run)
    if reader := next((reader for reader in TOOLS if reader.fits(first)), None):
        return reader
    why = next((why for keys, why in OTHERS if keys <= first.keys()), "")
    if form == "object" and not why:
        lists = {key: value[:1] for key, value in first.items() if isinstance(value, list)}
        key = next((key for key, rows in lists.items() if rows and isinstance(rows[0], dict)), "")
        named = repr(key) if is_name(key) else "one of its keys"
        why = "a JSON object of no tool known here; save its rows as a JSON array or as JSON Lines"
        if key:
            why = f"a JSON object, and its rows may stand under {named}; save them alone, as a JSON array"
            why += " or JSON Lines"
    if why:
        raise BadFile(f"{source.path}: this is {why}")
    return None


def _is_whole(source: Source, run: str) -> BadFile:
    why = f"this is {RUNS[run]}; `medjury study import` takes it whole, from a file"
    return BadFile(f"{source.path}: {why}")


def within(folder: Path) -> list[Path]:
    """Return the files of a folder that a tool wrote."""
    patterns = (reader.within for reader in TOOLS if reader.within)
    paths = sorted(path for pattern in patterns for path in folder.rglob(pattern))
    if len(paths) > MOST_FILES:
        raise BadFile(f"{folder}: over {MOST_FILES} files; name one folder after another")
    if not paths:
        raise BadFile(f"{folder}: a folder without a finished run or a tool's files; name a file")
    return paths


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
        If a file is nothing that is read, or several are no tool's, or hold nothing of what is asked for.
    """
    if form in RUNS:
        raise _is_whole(sources[0], form)
    plain = PLAIN.get(form or "")
    reader = None if plain else READERS[form] if form else reader_of(sources[0])
    if reader is not None:
        constant = dict(given.constant) if given else {}
        constant |= {"benchmark": benchmark} if benchmark else {}
        return _tool_rows(reader, sources, what, constant, given), reader
    if len(sources) > 1:
        raise BadInput("several files of rows: import them one after another")
    table = TableFile(sources[0], plain, given.sheet if given else None)
    return mapped(table, given, what) if given else table, None


def _tool_rows(
    reader: Reader, sources: Sequence[Source], what: What, constant: Cells, given: ColumnMap | None
) -> TableFile:
    """Return the rows of a tool's files as one table."""
    if what != "responses" and reader.instead:
        raise BadFile(f"{sources[0].path}: this is {reader.title}; {reader.instead}")
    tables = [_table(source) for source in sources]
    of_files = [reader.of_file(table, constant, given) for table in tables]
    columns = reader.columns(of_files[0]) if what == "responses" else RATINGS
    left_out = Counter[str]()

    def rows() -> Iterator[tuple[Origin, Cells]]:
        for table, of_file in zip(tables, of_files, strict=True):
            own = Counter[str]()
            yield from _made(reader, table, what, of_file, own)
            left_out.update(+own)

    return tables[0].derived(columns, rows, left_out)


def _made(
    reader: Reader, table: TableFile, what: What, of_file: Any, left_out: Counter[str]
) -> Iterator[tuple[Origin, Cells]]:
    """Yield the rows made from every record of a file; refuse one that gives none."""
    once = reader.once and what == "responses"
    keys, any_row = set[tuple[str, str]](), False
    for origin, record in reader.records(table):
        try:
            made = list(reader.rows(record, what, of_file, left_out))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise BadRow(
                f"{origin}: not as the tool writes it, whose other rows look like a file of it; "
                "nothing was imported"
            ) from error
        for cells in made:
            any_row = True
            if once and (key := (cells["response_id"], cells["model"])) in keys:
                continue
            if once:
                keys.add(key)
            yield origin, cells
    if not any_row:
        reasons = ", ".join(f"{reason}: {number}" for reason, number in (+left_out).items())
        raise table.wrong(f"nothing of it can be taken ({reasons or 'no rows'})")
