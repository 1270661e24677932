"""Rows of ratings, of experts' scores and of points of the case.

Scores are long (one a row) or wide (one column a criterion); points are a row a point, `instance_id,
point, weight, kind, critical`. MedHELM's file has a row a reading, with the clinicians' usernames. A
username never leaves this module: ratings carry a pseudonym, the same for the same name as long as the
key is the same.
"""

import hmac
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from pydantic import TypeAdapter

from data.card import CONSENSUS, FIRST, THIRD, Kind, Reading, reading_of_pass
from data.importers.grades import Grades, usable_name
from data.importers.rows import (
    EmptyCell,
    Origin,
    RatingRow,
    filled,
    is_name,
    made_id,
    rating_row,
    validated,
)
from data.importers.table import Cells, TableFile
from data.points import Point
from data.safe_text import unguarded

REQUIRED = ("response_id", "rater", "kind")
LONG = ("criterion", "score")
OPTIONAL = ("comment", "rated_at", "pass", "replicate", "reading", "shown_first")
OF_PAIRS = ("pair_id", "preference")  # in the place of response_id and score
KNOWN = {*REQUIRED, *OPTIONAL, *OF_PAIRS}
# Which the id of a pair is made of where none is given.
PAIR_PARTS = ("benchmark", "instance_id", "first", "second")
OVERALL = "overall"  # the criterion of preferences in a file that names none
# Words of a preference -> points: above 0 the first is better.
PREFERENCES = {"first": 1.0, "second": -1.0, "tie": 0.0}
PASSES = ("0", "1", str(THIRD), str(CONSENSUS))
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")


class RatingFile:
    """A file of ratings; iterating gives one `RatingRow` a score.

    An empty score stays missing: no row is made of it, and `missing` counts it and `empty` names it. In a wide
    file every column that is none of response_id, rater, kind, comment, rated_at, pass,
    replicate, reading, shown_first is a criterion; a file of pairs has pair_id, and preference in points or
    words, with criterion or, where the rubric has but "overall", without. Of JSON Lines the first row has them all. A criterion's
    name that cannot be one gets a usable one; `renamed` has theirs -> ours. `scale` gives the
    points of grades in words.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile, scale: Grades | None = None) -> None:
        self.table, self.scale = table, scale
        self.missing, self.empty = 0, list[EmptyCell]()
        self.renamed: dict[str, str] = {}
        has = set(table.columns)
        is_made = {"preference", *PAIR_PARTS} <= has
        self.of_pairs = "pair_id" in has or is_made
        self.long = set(LONG) <= has or "preference" in has
        known = KNOWN | {*PAIR_PARTS} if is_made else KNOWN
        self.criteria = tuple(name for name in table.columns if name not in known)
        has |= {"response_id"} if self.of_pairs else set()
        absent = [name for name in REQUIRED if name not in has]
        if absent or not (self.criteria or self.long):
            raise table.wrong(
                f"column {absent[0] if absent else 'criterion'!r} is missing (ratings have "
                "response_id, rater, kind and then criterion, score or a column a criterion; "
                f"{table.header}); columns of other names need a map"
            )

    def __iter__(self) -> Iterator[RatingRow]:
        self.missing = 0
        self.empty.clear()
        for origin, cells in self.table:
            shared = _shared(origin, cells)
            if self.of_pairs and not shared["response_id"]:
                shared["response_id"] = pair_id_of(*(cells.get(name, "") for name in PAIR_PARTS))
            for criterion, score in self._scores(origin, cells):
                if text := score.strip():
                    if self.of_pairs:
                        text = f"{PREFERENCES.get(text.lower(), text)}"
                    if self.table.decimal_comma:
                        text = _with_point(text, shared["kind"])
                    points = str(self.scale.point(text)) if self.scale else text
                    own = {"criterion": self._usable(criterion), "score": points}
                    yield rating_row(origin, shared | own)
                else:
                    self.missing += 1
                    again = str(shared["replicate"])  # one that is none is refused where a score is
                    number = int(again) if again.isdecimal() else 0
                    of = shared["response_id"], shared["rater"], self._usable(criterion)
                    self.empty.append(EmptyCell(*of, shared["pass_"], number))

    def _usable(self, criterion: str) -> str:
        """Return a criterion's name as a rubric can have it."""
        usable = usable_name(criterion)
        if usable != criterion and is_name(criterion):
            self.renamed[criterion] = usable
        return usable

    def _scores(self, origin: Origin, cells: Cells) -> list[tuple[str, str]]:
        if not self.long:
            self.table.refuse_new_keys(origin, cells, KNOWN)
            return [(name, cells.get(name, "")) for name in self.criteria]
        score = cells.get("preference") or cells.get("score", "")
        if self.of_pairs and "criterion" not in self.table.columns:
            return [(OVERALL, score)]
        return [(unguarded(filled(origin, cells, "criterion")), score)]


def pair_id_of(benchmark: str, instance_id: str, first: str, second: str) -> str:
    """Return the id of a pair whose file gives none."""
    return made_id(benchmark.strip(), instance_id.strip(), first, second)


def _with_point(score: str, kind: str) -> str:
    """Return 4,0 as 4, and of a metric 0,45 as 0.45; half a point is left to the rubric to refuse."""
    comma = DECIMAL_COMMA.fullmatch(score)
    if comma and not int(comma[2]):
        return comma[1]
    return score.replace(",", ".") if comma and kind == Kind.METRIC else score


def _shared(origin: Origin, cells: Cells) -> dict[str, Any]:
    """Return what the scores of one row have in common."""
    names = {name: unguarded(cells.get(name, "").strip()) for name in REQUIRED}
    names["response_id"] = names["response_id"] or unguarded(cells.get("pair_id", "").strip())
    first = cells.get("shown_first", "").strip().lower()
    own = "1" if first == "second" and names["kind"] == Kind.JUROR else 0
    return {
        **names,
        "shown_first": first,
        "comment": unguarded(cells.get("comment", "")),
        "rated_at": cells.get("rated_at", "").strip(),
        "pass_": _pass(origin, cells) if cells.get("pass") or cells.get("reading") else FIRST,
        "replicate": cells.get("replicate", "").strip() or own,
    }


def _pass(origin: Origin, cells: Cells) -> int:
    """Return the pass number of a row, from `pass` or from `reading`."""
    reading, given = (cells.get(name, "").strip() for name in ("reading", "pass"))
    if reading not in ("", *get_args(Reading)):
        raise origin.wrong("reading", reading, "must be independent, third or consensus")
    if not given:
        return {"third": THIRD, "consensus": CONSENSUS}.get(reading, FIRST)
    if given not in PASSES:
        raise origin.wrong("pass", given, f"must be 0, 1, {THIRD} or {CONSENSUS}")
    number = int(given)
    if reading and reading_of_pass(number) != reading:
        raise origin.wrong("reading", reading, f"pass {number} is {reading_of_pass(number)}")
    return number


@dataclass(frozen=True, slots=True)
class ExpertRow:
    """An expert's score of a response; `score` is as the file has it, checked on the rubric."""

    origin: Origin
    response_id: str
    criterion: str
    score: str
    why: str = ""


def expert_rows(table: TableFile) -> Iterator[ExpertRow]:
    """Yield the scores of a file of experts' scores.

    In a wide file every column but response_id and why is a criterion, and the why stands
    for all of them.

    Raises
    ------
    BadFile, BadRow
        If a column that is needed is missing; at the first row that is wrong.
    """
    criteria = [name for name in table.columns if name not in ("response_id", "why")]
    if "response_id" not in table.columns or not criteria:
        absent = "criterion" if "response_id" in table.columns else "response_id"
        raise table.wrong(
            f"column {absent!r} is missing (expert scores have response_id, then criterion and "
            f"score or a column a criterion, and optionally why; {table.header})"
        )
    is_long = set(LONG) <= set(table.columns)
    for origin, cells in table:
        response = unguarded(filled(origin, cells, "response_id"))
        if is_long:
            columns = {unguarded(filled(origin, cells, "criterion")): "score"}
        else:
            table.refuse_new_keys(origin, cells, ("why",))
            columns = dict(zip(criteria, criteria, strict=True))
        for name, column in columns.items():
            score, why = filled(origin, cells, column), cells.get("why", "").strip()
            yield ExpertRow(origin, response, name, score, why)


POINT_COLUMNS = ("instance_id", "point", "weight", "kind", "critical")
NEEDED = POINT_COLUMNS[:3]
POINT = TypeAdapter(Point)


class PointRow(NamedTuple):
    """One point of an instance, and where it stands."""

    origin: Origin
    instance_id: str
    point: Point


def point_rows(table: TableFile) -> Iterator[PointRow]:
    """Yield the points of a file, in its order.

    `kind` is "must" and `critical` no where a cell is empty. A weight never is: what a point counts
    is for clinicians to say.

    Raises
    ------
    BadFile, BadRow
        If a column that is needed is missing; at the first row that is wrong.
    """
    if absent := [name for name in NEEDED if name not in table.columns]:
        has = f"points have {', '.join(POINT_COLUMNS)}; {table.header}"
        raise table.wrong(f"column {absent[0]!r} is missing ({has})")
    for origin, cells in table:
        name = unguarded(filled(origin, cells, "instance_id"))
        yield PointRow(origin, name, point_of(origin, cells))


def point_of(origin: Origin, cells: Cells) -> Point:
    """Return the point of a row, or refuse it by column."""
    words = {name: cells.get(name, "").strip() for name in ("kind", "critical")}
    given = {name: value.lower() for name, value in words.items() if value}
    text = {"point": unguarded(filled(origin, cells, "point"))}
    return validated(POINT, origin, given | text | {"weight": filled(origin, cells, "weight")})


MEDHELM_CRITERIA = ("accuracy", "completeness", "clarity")
MEDHELM = ("username", "instance_id", "dataset_name", "model_key", *MEDHELM_CRITERIA)
LLM = "llm_"
JURY_MEAN = "medhelm-jury-mean"
SIGNS = 12  # of a pseudonym, hexadecimal


def medhelm_rows(
    table: TableFile,
    responses: Iterable[tuple[str, str, str, str]],
    key: str,
    jury_mean: bool = False,
) -> tuple[TableFile, list[int]]:
    """Return MedHELM's file as a file of ratings, a row a score, and which of its rows are left out.

    Parameters
    ----------
    responses
        Those of the study: response_id, benchmark, instance and model of each.
    key
        The study's secret, with which usernames become pseudonyms.
    jury_mean
        Take the llm_ columns too, as ratings by the juror "medhelm-jury-mean".

    Returns
    -------
    The rows; and, as they are read, the numbers of those whose response is not in the study.

    Raises
    ------
    BadFile
        If a column that is needed is missing; while iterating, if no row has its response here.
    BadRow
        While iterating, at the first row that is wrong. No username is in a message.
    """
    columns_needed(table, jury_mean)
    known = _by_place(responses)
    unmatched: list[int] = []

    def rows() -> Iterator[tuple[Origin, Cells]]:
        unmatched.clear()
        any_taken, means = False, dict[tuple[str, str], str]()
        for origin, cells in table:
            dataset, model = (filled(origin, cells, name) for name in ("dataset_name", "model_key"))
            instance = filled(origin, cells, "instance_id")
            matches = known.get((plain_name(dataset), instance, plain_name(model)), set())
            if len(matches) > 1:
                why = f"{len(matches)} responses of this study are meant by its dataset_name, instance_id"
                why += " and model_key; bring these ratings in by response_id (docs/setup.md)"
                raise origin.wrong("instance_id", instance, why)
            for response in matches:
                any_taken = True
                rater = pseudonym(key, filled(origin, cells, "username"))
                who = {"response_id": response, "rater": rater, "kind": "clinician"}
                for name in MEDHELM_CRITERIA:
                    yield origin, who | {"criterion": name, "score": cells.get(name, "")}
                if jury_mean:
                    yield from _jury_means(origin, cells, response, means)
            if not matches:
                unmatched.append(origin.row)
        if not any_taken:
            raise table.wrong(
                "no row has its response in this study; import the responses first: their "
                "benchmark, instance_id and model are dataset_name, instance_id and model_key here"
            )

    return table.derived((*REQUIRED, *LONG), rows), unmatched


def _by_place(responses: Iterable[tuple[str, str, str, str]]) -> dict[tuple[str, ...], set[str]]:
    """Return the ids of responses by dataset, instance and model as MedHELM may name them."""
    known: dict[tuple[str, ...], set[str]] = {}
    for name, benchmark, instance, model in responses:
        for dataset in (benchmark, benchmark.partition(",")[0]):
            for author in (model, model.rpartition("/")[2]):
                place = (plain_name(dataset), instance, plain_name(author))
                known.setdefault(place, set()).add(name)
    return known


def columns_needed(table: TableFile, jury_mean: bool) -> tuple[str, ...]:
    """Return the columns that are read, or refuse a file that lacks one."""
    names = (*MEDHELM, *(LLM + name for name in MEDHELM_CRITERIA if jury_mean))
    if absent := [name for name in names if name not in table.columns]:
        raise table.wrong(f"column {absent[0]!r} is missing; MedHELM's file has {', '.join(names)}")
    return names


def _jury_means(
    origin: Origin, cells: Cells, response: str, means: dict[tuple[str, str], str]
) -> Iterator[tuple[Origin, Cells]]:
    """Yield the jury's mean of each response once, though every clinician's row repeats it."""
    who = {"response_id": response, "rater": JURY_MEAN, "kind": "juror"}
    for name in MEDHELM_CRITERIA:
        score = cells.get(LLM + name, "").strip()
        before = means.get((response, name))
        if before not in (None, score):
            raise origin.wrong(LLM + name, "", "another score of the same response stands above")
        means[response, name] = score
        if before is None and score:
            yield origin, who | {"criterion": name, "score": score}


def pseudonym(key: str, username: str) -> str:
    """Return the pseudonym of a username under a study's key; case and spacing do not matter."""
    name = " ".join(unicodedata.normalize("NFKC", username).casefold().split())
    digest = hmac.digest(key.encode(), b"medhelm clinician|" + name.encode(), "sha256")
    return "clinician-" + digest.hex()[:SIGNS]


def plain_name(name: str) -> str:
    """Return a name's letters and digits in lower case: HELM's folders change other characters."""
    return "".join(sign for sign in name.casefold() if sign.isalnum())
