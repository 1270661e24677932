"""What the study holds, against what everybody was told: value by value, each exactly once."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from book import Said
from sqlmodel import Session, col, select

from data.database import open_study
from data.schema import Assignment, Attempt, Kind, Rater, Rating, Response, Submission

NUMBERED = re.compile(r"Verdict (\d+)\.")
MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class Compared:
    """How much was told, how much is stored, and where the two differ."""

    told: int
    stored: int
    differences: list[str]

    def to_json(self) -> dict[str, Any]:
        """Return it with the first differences only."""
        few = self.differences[:MOST_TOLD]
        found = {"told": self.told, "stored": self.stored, "differences": len(self.differences)}
        return found | {"first": few}


def clinicians(url: str, told: Mapping[str, Sequence[Said]]) -> Compared:
    """Compare the submissions that clinicians were told of with those that are stored."""
    with Session(open_study(url)) as session:
        given = select(Assignment.rater, Assignment.response, Assignment.code)
        codes = {(rater, response): code for rater, response, code in session.exec(given)}
        rows, words = _ratings(session, Kind.CLINICIAN), _comments(session)
    acts: dict[tuple[int, int], dict[str | None, list[Rating]]] = {}
    for row in rows:
        acts.setdefault((row.rater, row.response), {}).setdefault(row.batch, []).append(row)
    found = {
        codes[key]: [_said(*one) for one in zip_longest(acts[key].values(), words[key])]
        for key in acts
    }
    differences = [
        f"{code}: told {told.get(code, [])}, stored {found.get(code, [])}"
        for code in sorted({*found, *told})
        if found.get(code, []) != list(told.get(code, []))
    ]
    return Compared(_count(told.values()), _count(found.values()), differences)


def jurors(url: str, log: Path) -> Compared:
    """Compare the verdicts that the stub gave with the attempts and ratings that are stored."""
    given = {one["verdict"]: one for one in map(json.loads, log.read_text("utf-8").splitlines())}
    with Session(open_study(url)) as session:
        rows = list(session.exec(select(Attempt)))
        handles = dict(session.exec(select(Rater.id, Rater.handle)).all())
        names = dict(session.exec(select(Response.id, Response.response_id)).all())
        scores: dict[tuple[int, int], list[tuple[str, float]]] = defaultdict(list)
        for one in _ratings(session, Kind.JUROR):
            scores[one.rater, one.response].append((one.criterion, one.score))
    differences = []
    seen: Counter[int] = Counter()
    for row in rows:
        number = int((NUMBERED.search(row.raw) or ["", "0"])[1])
        seen[number] += 1
        stored = sorted(scores.pop((row.rater, row.response), []))
        held = (handles[row.rater], [names[row.response]], stored)
        one = given.get(number, {"juror": "", "response": [], "scores": {}})
        if held != (one["juror"], one["response"], sorted(one["scores"].items())):
            differences.append(f"verdict {number}: given {one}, stored {held}")
    differences += [f"{key}: ratings without a call" for key in scores]
    differences += [
        f"verdict {one}: stored {seen[one]} times" for one in {*given, *seen} if seen[one] != 1
    ]
    return Compared(len(given), len(rows), differences)


def _ratings(session: Session, kind: Kind) -> list[Rating]:
    """Return every rating by one kind of rater, oldest first."""
    mine = select(Rating).join(Rater, col(Rater.id) == col(Rating.rater))
    return list(session.exec(mine.where(Rater.kind == kind).order_by(col(Rating.id))))


def _comments(session: Session) -> dict[tuple[int, int], list[str]]:
    """Return what each submission said of the whole, by rater and response, oldest first."""
    query = select(Assignment.rater, Assignment.response, Submission.comment).join(Submission)
    found: dict[tuple[int, int], list[str]] = defaultdict(list)
    for rater, response, comment in session.exec(query.order_by(col(Submission.id))):
        found[rater, response].append(comment)
    return found


def _said(act: Sequence[Rating] | None, comment: str | None) -> object:
    """Return one submission as the clinician said it; its rows themselves if they are not one."""
    rows = act or []
    scores = {one.criterion: one.score for one in rows}
    if comment is None or len(scores) != len(rows) or any(one.comment for one in rows):
        return rows
    return Said(scores, comment)  # type: ignore[arg-type] # whole numbers, compared with ints


def _count(many: Iterable[Sequence[object]]) -> int:
    return sum(len(one) for one in many)
