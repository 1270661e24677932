"""Taxonomies: categories of tasks, as deep as they go, and the benchmarks that stand in them."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from data.errors import BadFile
from data.files import read_toml, read_user_toml
from data.safe_text import short, visible

SHIPPED = Path(__file__).parent / "taxonomy.toml"
BENCHMARKS = Path(__file__).parent / "taxonomy_benchmarks.toml"
LISTS = ("paper", "helm", "medhelm")
ACCESS = ("public", "gated", "private")
BELOW = " / "  # between the names of a path
DEEPEST, MOST_PARTS, MOST_TASKS = 6, 1000, 200
LONGEST_NAME, LONGEST_TEXT = 120, 2000
FIRST_PROBLEMS = 5  # so many are told in one message
TEXTS = ("definition", "counts_when", "performer")
PART_KEYS = {"name", "short", *TEXTS, "benchmarks", "tasks", "subcategory"}
TOP_KEYS = {"name", "version", "source", "category", "benchmark", "published"}
BENCHMARK_TEXTS = ("title", "paper_title", "metric", "data", "curation")
BENCHMARK_KEYS = {"name", "access", "lists", *BENCHMARK_TEXTS}


@dataclass(frozen=True, slots=True)
class TaskLine:
    """Tasks as one line names them; `single` has each by itself, the line alone where it is one."""

    line: str
    single: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """A category, or what stands below one.

    Attributes
    ----------
    short
        Its name where there is little room; "" where it has no other.
    definition, counts_when, performer
        What it is about, when a task counts as one of it, and who does such tasks; each may be "".
    benchmarks
        Names of the benchmarks that stand here and in no part below.
    """

    name: str
    short: str = ""
    definition: str = ""
    counts_when: str = ""
    performer: str = ""
    tasks: tuple[TaskLine, ...] = ()
    benchmarks: tuple[str, ...] = ()
    parts: tuple["Part", ...] = ()

    @property
    def label(self) -> str:
        """Its short name, or the name."""
        return self.short or self.name


@dataclass(frozen=True, slots=True)
class Place:
    """A part with the names that lead to it, its own the last."""

    path: tuple[str, ...]
    part: Part

    @property
    def category(self) -> str:
        """The name of the category that it is, or is in."""
        return self.path[0]

    @property
    def subcategory(self) -> str:
        """The names below the category; "" of the category itself."""
        return BELOW.join(self.path[1:])

    @property
    def is_leaf(self) -> bool:
        """Whether nothing stands below it."""
        return not self.part.parts


@dataclass(frozen=True, slots=True)
class CatalogueBenchmark:
    """A benchmark as others list it.

    Attributes
    ----------
    access
        public, gated or private; "" where it is not known.
    data, metric
        What it is made of, and its main metric.
    curation
        Whether it existed or was made for the list; "" where it is not known.
    lists
        Which lists have it: of MedHELM's, paper, helm and medhelm.
    """

    name: str
    title: str = ""
    paper_title: str = ""
    access: str = ""
    metric: str = ""
    data: str = ""
    curation: str = ""
    lists: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """Categories with what stands below them, and the benchmarks that are known by name."""

    name: str
    version: str
    source: str
    categories: tuple[Part, ...]
    benchmarks: tuple[CatalogueBenchmark, ...] = ()
    published: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """SHA-256 of the whole taxonomy: 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def places(self) -> Iterator[Place]:
        """Yield every part, a category before what stands below it."""
        for category in self.categories:
            yield from _below((), category)

    def leaves(self) -> list[Place]:
        """Return the parts with nothing below them: of MedHELM, the 22 subcategories."""
        return [place for place in self.places() if place.is_leaf]

    def depth(self) -> int:
        """Return how many names the longest path has."""
        return max(len(place.path) for place in self.places())

    def place_of(self) -> dict[str, Place]:
        """Return benchmark -> where it stands."""
        return {name: place for place in self.places() for name in place.part.benchmarks}

    def lines(self) -> int:
        """Return how many lines of tasks there are."""
        return sum(len(place.part.tasks) for place in self.places())

    def single_tasks(self) -> int:
        """Return how many tasks the lines name."""
        return sum(len(task.single) for place in self.places() for task in place.part.tasks)

    def to_json(self) -> str:
        """Return the canonical text that the hash is taken of and that a study stores."""
        return json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)

    @classmethod
    @lru_cache(maxsize=8)
    def from_json(cls, text: str) -> "Taxonomy":
        """Read back what `to_json` wrote.

        Raises
        ------
        BadFile
            If it is something else.
        """
        try:
            body = json.loads(text)
            body["categories"] = tuple(map(_part, body["categories"]))
            body["benchmarks"] = tuple(
                CatalogueBenchmark(**one | {"lists": tuple(one["lists"])})
                for one in body["benchmarks"]
            )
            return cls(**body)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise BadFile("the study's taxonomy cannot be read: set it again") from error


def _below(above: tuple[str, ...], part: Part) -> Iterator[Place]:
    path = (*above, part.name)
    yield Place(path, part)
    for one in part.parts:
        yield from _below(path, one)


def _part(body: Mapping[str, Any]) -> Part:
    tasks = tuple(TaskLine(one["line"], tuple(one["single"])) for one in body["tasks"])
    below = {"tasks": tasks, "parts": tuple(map(_part, body["parts"]))}
    return Part(**{**body, **below, "benchmarks": tuple(body["benchmarks"])})


@cache
def shipped_taxonomy() -> Taxonomy:
    """Return MedHELM's taxonomy with its catalogue of benchmarks."""
    return taxonomy_of(read_toml(SHIPPED) | read_toml(BENCHMARKS), SHIPPED.name)


def read_taxonomy(path: Path, where: str = "") -> Taxonomy:
    """Read a taxonomy from a user's TOML file; `where` names it in messages, by default its path.

    Raises
    ------
    BadFile
        If it cannot be read or contradicts itself; the message has the first problems.
    """
    where = where or f"taxonomy {path}"
    return taxonomy_of(read_user_toml(path, where), where)


def taxonomy_of(body: Mapping[str, Any], where: str) -> Taxonomy:
    """Return a taxonomy from what a TOML file holds; `where` names the file in messages.

    Raises
    ------
    BadFile
        If it contradicts itself.
    """
    problems = [*_problems(body)]
    if problems:
        told = "; ".join(problems[:FIRST_PROBLEMS])
        more = len(problems) - FIRST_PROBLEMS
        raise BadFile(f"{where}: {told}" + (f"; and {more} more" if more > 0 else ""))
    catalogue = tuple(
        CatalogueBenchmark(**one | {"lists": tuple(one.get("lists", ()))})
        for one in body.get("benchmark", ())
    )
    return Taxonomy(
        body["name"],
        body.get("version", ""),
        body.get("source", ""),
        tuple(map(_part_of, body["category"])),
        catalogue,
        dict(body.get("published", {})),
    )


def _part_of(body: Mapping[str, Any]) -> Part:
    texts = {name: body.get(name, "") for name in ("name", "short", *TEXTS)}
    return Part(
        **texts,
        tasks=tuple(map(_task_of, body.get("tasks", ()))),
        benchmarks=tuple(body.get("benchmarks", ())),
        parts=tuple(map(_part_of, body.get("subcategory", ()))),
    )


def _task_of(task: str | Mapping[str, Any]) -> TaskLine:
    if isinstance(task, str):
        return TaskLine(task, (task,))
    return TaskLine(task["line"], tuple(task.get("single") or (task["line"],)))


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a file, the top of it first."""
    yield from _of_keys("the file", body, TOP_KEYS)
    yield from _of_texts("the file", body, ("name",), ("version", "source"))
    if not isinstance(body.get("published", {}), Mapping):
        yield "published: must be a table"
    categories = body.get("category")
    if not _are_tables(categories) or not categories:
        yield "has no [[category]]; each category begins with one, and has a name"
        return
    seen: Counter[str] = Counter()
    count = [0]
    yield from _of_siblings("the file", categories)
    for number, category in enumerate(categories, 1):
        yield from _of_part((f"category {number}",), category, seen, count)
    if count[0] > MOST_PARTS:
        yield f"has {count[0]} categories and parts; at most {MOST_PARTS}"
    yield from (
        f"benchmark {short(name)}: stands in {n} places" for name, n in seen.items() if n > 1
    )
    yield from _of_catalogue(body.get("benchmark", []))


def _of_part(
    where: tuple[str, ...], body: Mapping[str, Any], seen: Counter[str], count: list[int]
) -> Iterator[str]:
    """Yield what is wrong with a part and with what stands below it."""
    count[0] += 1
    name = str(body.get("name"))
    path = (*where[:-1], short(name)) if _is_name(body.get("name")) else where
    at = BELOW.join(path)
    if len(path) > DEEPEST:
        yield f"{at}: stands {len(path)} deep; at most {DEEPEST}"
        return
    yield from _of_keys(at, body, PART_KEYS)
    yield from _of_texts(at, body, ("name",), ("short", *TEXTS))
    yield from _of_names(at, "benchmarks", body.get("benchmarks", []))
    if isinstance(body.get("benchmarks", []), list):
        seen.update(one for one in body.get("benchmarks", []) if isinstance(one, str))
    yield from _of_tasks(at, body.get("tasks", []))
    parts = body.get("subcategory", [])
    if not _are_tables(parts):
        yield f"{at}: subcategory must be tables, each begun with [[...subcategory]]"
        return
    yield from _of_siblings(at, parts)
    for number, part in enumerate(parts, 1):
        yield from _of_part((*path, f"subcategory {number}"), part, seen, count)


def _of_siblings(at: str, parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    names = Counter(str(part.get("name", "")).casefold() for part in parts if part.get("name"))
    yield from (f"{at}: {n} parts are named {short(name)}" for name, n in names.items() if n > 1)


def _of_tasks(at: str, tasks: object) -> Iterator[str]:
    """Yield what is wrong with the tasks of a part."""
    if not isinstance(tasks, list):
        yield f'{at}: tasks must be a list, such as ["read an ECG"]'
        return
    if len(tasks) > MOST_TASKS:
        yield f"{at}: has {len(tasks)} lines of tasks; at most {MOST_TASKS}"
    lines = []
    for number, task in enumerate(tasks, 1):
        line = task.get("line") if isinstance(task, Mapping) else task
        single = task.get("single", []) if isinstance(task, Mapping) else []
        if isinstance(task, Mapping):
            yield from _of_keys(f"{at}, task {number}", task, {"line", "single"})
        if not _is_text(line) or not str(line).strip():
            yield f"{at}: task {number} must be a text of at most {LONGEST_TEXT} characters"
        yield from _of_names(f"{at}, task {number}", "single", single)
        lines.append(str(line).casefold())
    for line, n in Counter(lines).items():
        if n > 1:
            yield f"{at}: the task {short(line)} stands there {n} times"


def _of_catalogue(entries: Any) -> Iterator[str]:
    """Yield what is wrong with the benchmarks that are described."""
    if not _are_tables(entries):
        yield "benchmark must be tables, each begun with [[benchmark]]"
        return
    names: Counter[str] = Counter()
    for number, entry in enumerate(entries, 1):
        name = entry.get("name")
        at = f"benchmark {short(name)}" if _is_name(name) else f"benchmark {number}"
        names[str(name)] += 1
        yield from _of_keys(at, entry, BENCHMARK_KEYS)
        yield from _of_texts(at, entry, ("name",), BENCHMARK_TEXTS)
        yield from _of_names(at, "lists", entry.get("lists", []))
        if entry.get("access", "public") not in ACCESS:
            yield f"{at}: access must be {', '.join(ACCESS[:-1])} or {ACCESS[-1]}"
    yield from (f"benchmark {short(n)}: is described {k} times" for n, k in names.items() if k > 1)


def _of_keys(at: str, body: Mapping[str, Any], known: set[str]) -> Iterator[str]:
    for key in body:
        if key not in known:
            yield f"{at}: no key {short(key)}; there are {', '.join(sorted(known))}"


def _of_texts(
    at: str, body: Mapping[str, Any], names: Sequence[str], texts: Sequence[str]
) -> Iterator[str]:
    for key in names:
        if not _is_name(body.get(key)):
            yield (
                f"{at}: {key} must be one line of at most {LONGEST_NAME} characters, without "
                f"{BELOW.strip()} between blanks"
            )
    for key in texts:
        if key in body and not _is_text(body[key]):
            yield f"{at}: {key} must be a text of at most {LONGEST_TEXT} characters"


def _of_names(at: str, key: str, names: object) -> Iterator[str]:
    if not isinstance(names, list) or not all(map(_is_name, names)):
        yield f"{at}: {key} must be a list of names"
    elif len({*names}) < len(names):
        yield f"{at}: {key} has a name twice"


def _is_name(value: object) -> bool:
    plain = isinstance(value, str) and value == visible(value) and bool(value)
    return plain and len(str(value)) <= LONGEST_NAME and BELOW not in str(value)


def _is_text(value: object) -> bool:
    fits = isinstance(value, str) and len(value) <= LONGEST_TEXT
    return fits and visible(str(value)) == " ".join(str(value).split())


def _are_tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)
