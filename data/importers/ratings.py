"""Rows of ratings and of experts' scores, long (one score a row) or wide (one column a criterion)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import get_args

from data.card import CONSENSUS, FIRST, PASS_OF, THIRD, Reading, reading_of_pass
from data.importers.grades import Grades, usable_name
from data.importers.rows import Origin, RatingRow, filled, is_name
from data.importers.table import Cells, TableFile
from data.safe_text import unguarded
from data.schema import Kind

REQUIRED = ("response_id", "rater", "kind")
LONG = ("criterion", "score")
LONGEST_COUNT = 9  # digits
OPTIONAL = ("comment", "rated_at", "pass", "replicate", "reading")
KNOWN = {*REQUIRED, *OPTIONAL}
KINDS = {kind.value: kind for kind in Kind}
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+)")


class RatingFile:
    """A file of ratings; iterating gives one `RatingRow` a score.

    An empty score stays missing: no row is made of it, and `missing` counts it. In a wide
    file every column that is none of response_id, rater, kind, comment, rated_at, pass,
    replicate, reading is a criterion; of JSON Lines the first row has them all. A criterion's
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
        self.missing = 0
        self.renamed: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self.long = set(LONG) <= set(table.columns)
        self.criteria = tuple(name for name in table.columns if name not in KNOWN)
        absent = [name for name in REQUIRED if name not in table.columns]
        if absent or not self.criteria:
            raise table.wrong(
                f"column {absent[0] if absent else 'criterion'!r} is missing (ratings have "
                "response_id, rater, kind and then criterion, score or a column a criterion; "
                f"{table.header}); columns of other names need a map"
            )

    def __iter__(self) -> Iterator[RatingRow]:
        self.missing = 0
        for origin, cells in self.table:
            for criterion, score in self._scores(origin, cells):
                if text := score.strip():
                    if self.table.decimal_comma:
                        text = _with_point(text, cells.get("kind", "").strip())
                    points = str(self.scale.point(text)) if self.scale else text
                    yield _row(origin, cells, self._usable(criterion), points)
                else:
                    self.missing += 1

    def _usable(self, criterion: str) -> str:
        """Return a criterion's name as a rubric can have it."""
        usable = self._names.get(criterion)
        if usable is None:
            usable = self._names[criterion] = usable_name(criterion)
        if usable != criterion and is_name(criterion):
            self.renamed[criterion] = usable
        return usable

    def _scores(self, origin: Origin, cells: Cells) -> list[tuple[str, str]]:
        if not self.long:
            self.table.refuse_new_keys(origin, cells, KNOWN)
            return [(name, cells.get(name, "")) for name in self.criteria]
        criterion = unguarded(filled(origin, cells, "criterion"))
        return [(criterion, cells.get("score", ""))]


def _with_point(score: str, kind: str) -> str:
    """Return 4,0 as 4, and of a metric 0,45 as 0.45; half a point is left to the rubric to refuse."""
    comma = DECIMAL_COMMA.fullmatch(score)
    if comma and not int(comma[2]):
        return comma[1]
    return score.replace(",", ".") if comma and kind == Kind.METRIC else score


def _row(origin: Origin, cells: Cells, criterion: str, score: str) -> RatingRow:
    """Return one score with its rater, response and time."""
    kind = _kind(origin, cells)
    return RatingRow(
        origin=origin,
        response_id=unguarded(filled(origin, cells, "response_id")),
        rater=unguarded(filled(origin, cells, "rater")),
        kind=kind,
        criterion=criterion,
        score=score,
        comment=unguarded(cells.get("comment", "")),
        rated_at=time_of(origin, cells.get("rated_at", "").strip()),
        pass_=_pass(origin, cells, kind),
        replicate=_count(origin, cells, "replicate", 10_000),
    )


def _kind(origin: Origin, cells: Cells) -> Kind:
    if kind := KINDS.get(cells.get("kind", "")):
        return kind
    value = unguarded(filled(origin, cells, "kind"))
    if value not in KINDS:
        raise origin.wrong("kind", value, "must be clinician, juror or metric")
    return KINDS[value]


def time_of(origin: Origin, value: str) -> datetime | None:
    """Return a time; one without a zone is taken as UTC."""
    if not value:
        return None
    try:
        return _utc(value)
    except ValueError as error:
        raise origin.wrong("rated_at", value, "must be like 2026-05-31T14:00:00+02:00") from error
    except OverflowError as error:
        raise origin.wrong("rated_at", value, "is before the first year, or after 9999") from error


@lru_cache(maxsize=1024)
def _utc(value: str) -> datetime:
    """Return a time in UTC; the criteria of one response mostly have the same."""
    time = datetime.fromisoformat(value)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def _pass(origin: Origin, cells: Cells, kind: Kind) -> int:
    """Return the pass number of a row, from `pass` or from `reading`."""
    if not cells.get("pass") and not cells.get("reading"):
        return FIRST
    named = cells.get("reading", "").strip()
    if named not in ("", *get_args(Reading)):
        raise origin.wrong("reading", named, "must be independent, third or consensus")
    if cells.get("pass", "").strip():
        number = _count(origin, cells, "pass", CONSENSUS)
        if 1 < number < THIRD:
            raise origin.wrong("pass", str(number), f"must be 0, 1, {THIRD} or {CONSENSUS}")
    else:
        number = PASS_OF.get(named, FIRST)  # type: ignore[call-overload] # of any text
    if named and reading_of_pass(number) != named:
        raise origin.wrong("reading", named, f"pass {number} is {reading_of_pass(number)}")
    if number >= THIRD and kind != Kind.CLINICIAN:
        raise origin.wrong("pass", str(number), "only clinicians settle differences")
    return number


def _count(origin: Origin, cells: Cells, column: str, highest: int) -> int:
    value = cells.get(column, "").strip()
    if not value:
        return 0
    if not value.isdecimal() or len(value) > LONGEST_COUNT or int(value) > highest:
        raise origin.wrong(column, value, f"must be a whole number from 0 to {highest}")
    return int(value)


@dataclass(frozen=True, slots=True)
class ExpertRow:
    """An expert's score of a response; `score` is as the file has it, checked on the rubric."""

    origin: Origin
    response_id: str
    criterion: str
    score: str
    why: str = ""


class ExpertFile:
    """A file of expert scores; iterating gives one `ExpertRow` a score.

    In a wide file every column but response_id and why is a criterion, and the why stands
    for all of them.

    Raises
    ------
    BadFile
        If a column that is needed is missing.
    BadRow
        While iterating, at the first row that is wrong.
    """

    def __init__(self, table: TableFile) -> None:
        self.table = table
        self.long = set(LONG) <= set(table.columns)
        self.criteria = tuple(name for name in table.columns if name not in ("response_id", "why"))
        absent = "response_id" if "response_id" not in table.columns else "criterion"
        if absent == "response_id" or not self.criteria:
            raise table.wrong(
                f"column {absent!r} is missing (expert scores have response_id, then criterion and "
                "score or a column a criterion, and optionally why; "
                f"{table.header})"
            )

    def __iter__(self) -> Iterator[ExpertRow]:
        for origin, cells in self.table:
            response = unguarded(filled(origin, cells, "response_id"))
            why = cells.get("why", "").strip()
            if self.long:
                name = unguarded(filled(origin, cells, "criterion"))
                yield ExpertRow(origin, response, name, filled(origin, cells, "score"), why)
                continue
            self.table.refuse_new_keys(origin, cells, ("why",))
            for name in self.criteria:
                yield ExpertRow(origin, response, name, filled(origin, cells, name), why)
