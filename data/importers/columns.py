"""Maps from a file's columns to ours, given by a user or guessed from the names.

A map is TOML. `[columns]` has theirs = "ours"; beside a name of ours, ours may be

    "criterion:NAME"             a score of that criterion, a column each (wide ratings)
    "criterion:NAME rater:WHO"   the same, where each rater has columns of their own
    "response:MODEL"             the response of that model, where each model has a column

`[constant]` has ours = "what stands in every row", `[scale]` the points of grades in words,
`missing` lists what stands for no score, and `sheet` names the sheet of a workbook. Parts of nested JSON are named with dots: input.raw, turns.0.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError

from data.errors import BadFile
from data.files import read_user_toml
from data.importers.grades import grades_of, usable_name
from data.importers.grades import plain as plain_grade
from data.importers.ratings import KNOWN as OF_RATINGS
from data.importers.ratings import LONG, PAIR_PARTS
from data.importers.responses import COLUMNS as OF_RESPONSES
from data.importers.responses import PAIR_COLUMNS, SIDES, is_group
from data.importers.rows import Origin, is_name, made_id
from data.importers.table import Cells, TableFile

What = Literal["responses", "ratings", "pairs"]
OURS: dict[What, tuple[str, ...]] = {
    "responses": OF_RESPONSES,
    "ratings": (*sorted(OF_RATINGS), *LONG),
    "pairs": PAIR_COLUMNS,
}
CRITERION, RATER, RESPONSE = "criterion:", " rater:", "response:"
WIDE: dict[What, str] = {"responses": RESPONSE, "ratings": CRITERION}
LISTED_WIDE: dict[What, str] = {
    "responses": f", {RESPONSE}MODEL, group:NAME",
    "ratings": f", {CRITERION}NAME",
}
OF_TOOLS = ("benchmark", "model")  # of a tool's file they tell which response is rated, too
KEYS = {"columns", "constant", "scale", "sheet", "missing"}
# Columns by which a file is known to be in ours, so that it needs no map.
NEEDED: dict[What, set[str]] = {
    "responses": {"instance_id", "model", "response"},
    "ratings": {"response_id", "rater", "kind"},
    "pairs": {"instance_id", *SIDES},
}
# Ours -> what others call it, without case and signs.
SYNONYMS: dict[What, dict[str, str]] = {
    "responses": {
        "instance_id": "id, case, case id, case no, item, item id, question id, sample id, doc id, "
        "prompt id, task id, record id, vignette",
        "benchmark": "dataset, task name, set, dataset name, eval name, corpus",
        "context": "source, input, document, dialogue, dialog, transcript, note, conversation, "
        "passage, article, case text, patient, history, input raw",
        "prompt": "question, instruction, instructions, query, task",
        "reference": "gold, target, ground truth, gold answer, reference answer, ideal, expected, "
        "correct answer, expected output, expected answer",
        "model": "llm, system, model name, model id, author, generator",
        "response": "output, answer, completion, generation, prediction, model output, "
        "model response, response text, generated text, model answer, output raw 0",
        "checklist": "rubric items, key points, must contain",
    },
    "ratings": {
        "response_id": "id, item, item id, instance id, case id, sample id",
        "rater": "annotator, reviewer, user, username, user id, physician, grader, clinician, "
        "evaluator, judge, coder, expert, annotator id, rater id",
        "kind": "rater type, type of rater, role",
        "criterion": "dimension, axis, aspect, metric, item name, category",
        "score": "rating, value, points, grade, likert",
        "comment": "comments, explanation, rationale, reason, remark, free text",
        "rated_at": "timestamp, date, created at, time, submitted at",
    },
}
SYNONYMS["pairs"] = {
    name: words
    for name, words in SYNONYMS["responses"].items()
    if name in ("instance_id", "benchmark", "context", "prompt", "reference")
} | {
    "pair_id": "pair",
    "first": "conv a, response a, output a, answer a, first response, conversation a",
    "second": "conv b, response b, output b, answer b, second response, conversation b",
    "first_model": "model a, first system",
    "second_model": "model b, second system",
}
NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
LONGEST_GRADE, MOST_GRADES = 30, 10
LOOKED_AT = 500  # rows, to guess what columns are
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
ASIDE = {
    *("lead time", "annotation id", "agreement", "created at", "updated at"),
    *("index", "unnamed 0"),
}


# A value of TOML as text; a date is one, a list is none.
Value = Annotated[
    str, BeforeValidator(lambda one: one if isinstance(one, dict | list) else str(one).strip())
]


@dataclass(frozen=True)
class ColumnMap:
    """A map of columns.

    Attributes
    ----------
    columns
        Theirs -> ours.
    constant
        Ours -> what stands in every row.
    words
        A grade in words -> its points; case does not matter.
    missing
        What stands in a score's cell where there is none, such as 99.
    """

    columns: Mapping[str, Value] = field(default_factory=dict)
    constant: Mapping[str, Value] = field(default_factory=dict)
    words: Annotated[Mapping[str, Value], Field(validation_alias="scale")] = field(
        default_factory=dict
    )
    sheet: Value | None = None
    missing: tuple[Value, ...] = ()

    def renamed(self, values: Mapping[str, str]) -> dict[str, str]:
        """Return a row under our names, without unmapped columns."""
        row = dict(self.constant)
        for theirs, ours in self.columns.items():
            value = values.get(theirs, "")
            if (
                ours in ("score", "preference") or ours.startswith(CRITERION)
            ) and value.strip() in self.missing:
                value = ""
            if value.strip() or ours not in row:
                row[ours] = value
        return row

    def score(self, grade: str) -> str:
        """Return the points of a grade in words; any other score as it is."""
        points_of = {plain_grade(word): points for word, points in self.words.items()}
        return points_of.get(plain_grade(grade), grade)

    def criterion(self, name: str) -> str:
        """Return our name of a file's criterion."""
        ours = self.columns.get(name, name)
        return ours.removeprefix(CRITERION)


MAP = TypeAdapter(ColumnMap)


def read_map(path: Path, what: What) -> ColumnMap:
    """Read a user's column map.

    Raises
    ------
    BadFile
        If it is no TOML, has a key that is not known, or maps to a name that is not ours.
    """
    body = read_user_toml(path, f"--map {path}")
    return map_of(body, what, f"--map {path}")


def map_of(body: Mapping[str, Any], what: What, where: str) -> ColumnMap:
    """Return the map that a table of TOML is; see `read_map`."""
    if unknown := sorted(set(body) - KEYS):
        raise BadFile(f"{where}: unknown key {unknown[0]!r}; there are {', '.join(sorted(KEYS))}")
    try:
        given = MAP.validate_python(body)
    except ValidationError as error:
        key = error.errors(include_url=False)[0]["loc"][0]
        takes = 'a list, such as missing = ["99", "NA"]' if key == "missing" else "a text"
        if key in ("columns", "constant", "scale"):
            key, takes = f"[{key}]", "lines of NAME = VALUE; quote names with dots"
        raise BadFile(f"{where}: {key} takes {takes}") from error
    taken = [*given.columns.values()]
    for ours in (*taken, *(name for name in given.constant if name not in OF_TOOLS)):
        if not _is_ours(ours, what):
            listed = ", ".join(OURS[what])
            raise BadFile(
                f"{where}: {ours!r} is no column of {what}: {listed}{LISTED_WIDE.get(what, '')}"
            )
        if taken.count(ours) > 1:
            raise BadFile(f"{where}: two columns are mapped to {ours}")
    return given


def _is_ours(name: str, what: What) -> bool:
    wide = WIDE.get(what, name)
    return (
        name in OURS[what]
        or (name.startswith(wide) and name != wide)
        or (what == "ratings" and name in PAIR_PARTS)
        or (what == "responses" and is_group(name))
    )


def _by_name(columns: Sequence[str], what: What) -> dict[str, str]:
    return {name: name for name in columns if name in OURS[what] or is_group(name)}


def guessed(columns: Sequence[str], what: What) -> ColumnMap:
    """Guess a map from the names of columns: our own names first, then synonyms.

    Of wide ratings every column that is left is a criterion.
    """
    mapping = _by_name(columns, what)
    for ours, listed in SYNONYMS[what].items():
        others = (plain_words(ours), *listed.split(", "))
        if ours in mapping.values():
            continue
        rank = {
            name: others.index(words)
            for name in columns
            if name not in mapping and (words := plain_words(name)) in others
        }
        if rank:
            mapping[min(rank, key=rank.__getitem__)] = ours
    for name in columns:
        free = [ours for ours in OURS[what] if ours not in mapping.values()]
        close = get_close_matches(plain_words(name).replace(" ", "_"), free, n=1, cutoff=0.85)
        if name not in mapping and close:
            mapping[name] = close[0]
    return ColumnMap(_with_criteria(columns, mapping, what))


def guess(table: TableFile, what: What, benchmark: str | None) -> tuple[ColumnMap, tuple[str, ...]]:
    """Guess a map from the first rows of a file; return it with the names of what they hold.

    What no column gives is constant: the benchmark, or that clinicians rate. Of ratings, columns of texts
    are no criteria, and known grades in words get points.
    """
    first = [flat(record) for _, record in table.first(LOOKED_AT)]
    names = tuple(first[0]) if first else table.columns
    columns = guessed(names if first else (), what).columns
    constant = {"benchmark": benchmark or table.path.stem}
    constant = {"kind": "clinician"} if what == "ratings" else constant
    constant = {ours: value for ours, value in constant.items() if ours not in columns.values()}
    if what != "ratings":
        return ColumnMap(columns, constant), names
    values = {
        name: [text.strip() for row in first if (text := row.get(name, "")).strip()]
        for name in columns
    }
    columns = {
        theirs: ours
        for theirs, ours in columns.items()
        if not ours.startswith(CRITERION) or _look_like_scores({*values[theirs]})
    }
    scored = [name for name, ours in columns.items() if ours == "score" or CRITERION in ours]
    grades = grades_of(value for name in scored for value in values[name])
    words = {word: str(points) for points, word in enumerate(grades.words)} if grades else {}
    return ColumnMap(columns, constant, words), names


def _look_like_scores(values: set[str]) -> bool:
    """Tell whether values look like scores: numbers, or few short words."""
    few = len(values) <= MOST_GRADES and all(len(value) <= LONGEST_GRADE for value in values)
    return bool(values) and (few or all(map(NUMBER.fullmatch, values)))


def plain_words(name: str) -> str:
    """Return a name in lower case, words apart, without signs: caseNo and Case-No. are case no."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return " ".join(re.findall(r"[^\W_]+", apart.lower()))


def _with_criteria(columns: Sequence[str], mapping: dict[str, str], what: What) -> dict[str, str]:
    """Return a map in which, of wide ratings, every remaining column is a criterion."""
    is_long = {"criterion", "score"} <= set(mapping.values()) or "preference" in mapping.values()
    if is_long or what != "ratings":
        return mapping
    wide = {theirs: ours for theirs, ours in mapping.items() if ours not in LONG}
    for name in columns:
        if name not in wide and name.strip() and plain_words(name) not in ASIDE:
            wide[name] = f"{CRITERION}{usable_name(name).lower()}"
    return wide


def toml_of(chosen: ColumnMap, columns: Sequence[str]) -> str:
    """Return a map as the file that `--map` reads; columns that it leaves out as comments."""
    lines = [f"sheet = {_quoted(chosen.sheet)}", ""] if chosen.sheet else []
    lines.append("[columns]  # theirs = ours")
    lines += [f"{_quoted(theirs)} = {_quoted(ours)}" for theirs, ours in chosen.columns.items()]
    lines += [f"# {_quoted(name)} is not taken" for name in columns if name not in chosen.columns]
    lines += ["", "[constant]  # ours = what stands in every row"]
    lines += [f"{ours} = {_quoted(value)}" for ours, value in chosen.constant.items()]
    if chosen.words:
        lines += ["", "[scale]  # a grade = its points"]
        lines += [f"{_quoted(word)} = {points}" for word, points in chosen.words.items()]
    return "\n".join(lines) + "\n"


def _quoted(text: str | None) -> str:
    """Return a text as a basic string of TOML; of a text that is no name nothing is shown."""
    shown = text or ""
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + CONTROL.sub(" ", escaped) + '"'


def flat(value: Mapping[str, Any], before: str = "") -> dict[str, str]:
    """Return nested values as text by their dotted names, such as input.raw."""
    texts: dict[str, str] = {}
    for key, item in value.items():
        name = f"{before}{key}"
        if isinstance(item, dict):
            texts |= flat(item, f"{name}.")
        elif isinstance(item, list):
            texts |= flat({str(index): part for index, part in enumerate(item)}, f"{name}.")
        elif isinstance(item, bool):
            texts[name] = str(item).lower()
        else:
            texts[name] = "" if item is None else str(item)
    return texts


def mapped(table: TableFile, chosen: ColumnMap, what: What) -> TableFile:
    """Return a file's rows in columns of ours, wide ones made long; a map without columns takes ours.

    Raises
    ------
    BadFile
        If a column of the map is not in the file.
    """
    if not chosen.columns:
        own = _with_criteria(table.columns, _by_name(table.columns, what), what)
        chosen = replace(chosen, columns=own)
    first = table.first(1)
    names = {*table.columns, *(flat(first[0][1]) if first else ())}
    if absent := [name for name in chosen.columns if name not in names]:
        shown = repr(absent[0]) if is_name(absent[0]) else "one of them"
        raise table.wrong(f"the map's column {shown} is not in the file ({table.header})")
    left_out = Counter[str]()
    constant = {ours: value for ours, value in chosen.constant.items() if _is_ours(ours, what)}
    chosen = replace(chosen, constant=constant)

    def rows() -> Iterator[tuple[Origin, Cells]]:
        for origin, record in table.records():
            values = flat(record)
            for name, value in values.items():
                if name not in chosen.columns and value.strip():
                    named = f"values of the column {name if is_name(name) else '(not quoted)'}"
                    left_out[named] += 1
            for cells in _long_rows(chosen.renamed(values), chosen):
                yield origin, cells

    return table.derived(_columns_made(chosen, what), rows, left_out)


def _columns_made(chosen: ColumnMap, what: What) -> tuple[str, ...]:
    """Return the columns of the rows that a map produces."""
    ours = [*chosen.columns.values(), *chosen.constant]
    narrow = [name for name in ours if not name.startswith((CRITERION, RESPONSE))]
    long = LONG if what == "ratings" else ("model", "response")
    some = ["rater"] if any(RATER in name for name in ours) else []
    return tuple(dict.fromkeys([*narrow, *(long if len(narrow) < len(ours) else ()), *some]))


def _long_rows(row: dict[str, str], chosen: ColumnMap) -> Iterator[Cells]:
    """Yield a row, or one for each of its wide columns; grades in words as points."""
    scores = [name for name in row if name.startswith(CRITERION)]
    texts = [name for name in row if name.startswith(RESPONSE)]
    shared = {key: value for key, value in row.items() if key not in (*scores, *texts)}
    if not (scores or texts):
        given = [name for name in ("score", "preference") if name in shared]
        yield shared | {name: chosen.score(shared[name]) for name in given}
    # In an order that tells no author, that of digests of the texts: columns stand in that of the models.
    filled = [name for name in texts if row[name].strip()]
    filled.sort(key=lambda name: made_id(shared.get("instance_id", ""), row[name]))
    for number, column in enumerate(filled, 1):
        name = shared.get("response_id")
        own = {"response_id": f"{name}/{number}"} if name else {}
        yield {**shared, **own, "model": column.removeprefix(RESPONSE), "response": row[column]}
    for number, column in enumerate(scores):
        named, _, rater = column.removeprefix(CRITERION).partition(RATER)
        own = {"criterion": named.strip(), "score": chosen.score(row[column])}
        own |= {"rater": rater.strip()} if rater else {"comment": ""} if number else {}
        yield {**shared, **own}


def taken(columns: Iterable[str], what: What) -> bool:
    """Tell whether a file has our columns, so that it needs no map."""
    names = set(columns)
    has_pairs = what == "ratings" and "pair_id" in names
    return names >= NEEDED[what] - ({"response_id"} if has_pairs else set())
