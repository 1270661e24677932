"""The notes of a table on the screen: each once, for whom it holds, what holds for all at the end."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
SIMULATED = "simulated raters: "
SCORED = "scored "
SEVERAL = re.compile(r"(\d+) responses from (\d+) instances: (.+)")
ANALYSED = re.compile(r"\d+ of \d+ responses are analysed: .+")
FEW = re.compile(r"fewer than \d+ instances: .+|too few: \d+ instances? for .+")
LEAST_RESAMPLES = 200  # an end of a 95 % interval is then the fifth of them, and no fewer
NAMES = {
    "like_for_like": "like for like",
    "clinicians": "clinicians, by pairs",
    "intra_rater": "same clinician again",
}


def told(rows: Sequence[Row]) -> list[str]:
    """Return each note once, with whom it holds for; what the columns say is left out.

    What holds for a whole table, and who has few instances, comes last and under no name.
    """
    holds: dict[str, dict[tuple[str, str], None]] = {}
    simulated: dict[str, None] = {}
    every = [_key(row) for row in rows]
    for row in rows:
        for note in filter(None, row["note"].split("; ")):
            if note.startswith(SIMULATED):
                simulated |= dict.fromkeys(note.removeprefix(SIMULATED).split(", "))
            elif not note.startswith(SCORED) and not SEVERAL.fullmatch(note):
                holds.setdefault(note, {})[_key(row)] = None
    last = [note for note in holds if ANALYSED.fullmatch(note)]
    few = [note for note in holds if FEW.fullmatch(note)]
    lines = [
        _line(note, _whom(who, every)) for note, who in holds.items() if note not in last + few
    ]
    at_end = [_line(note, _whom(holds[note], every), after=True) for note in few] + last
    marked = [SIMULATED + ", ".join(simulated)] if simulated else []
    return [*_several(rows), *lines, *at_end, *marked]


def named(name: str) -> str:
    """Return a scorer as a reader would name it."""
    return NAMES.get(name, name.removeprefix("juror:").removeprefix("metric:"))


def few_resamples(reps: int) -> str:
    """Warn of intervals read off a handful of resamples."""
    return "" if reps >= LEAST_RESAMPLES else "too few resamples for an interval"


def _key(row: Row) -> tuple[str, str]:
    """Return whom a note is about, and on which criterion if the table has several."""
    return named(row["scorer"]), row.get("on", "")


def _line(note: str, whom: str, *, after: bool = False) -> str:
    if not whom:
        return note
    return f"{note} ({whom})" if after else f"{whom}: {note}"


def _whom(who: Mapping[tuple[str, str], None], every: Sequence[tuple[str, str]]) -> str:
    """Return whom a note holds for, with the criteria where it is not all of theirs; "" is all."""
    if set(who) == set(every):
        return ""
    criteria = dict.fromkeys(criterion for _, criterion in who)
    if set(who) == {key for key in every if key[1] in criteria}:
        return ", ".join(criteria)
    own: dict[str, list[str]] = {}
    for name, criterion in who:
        own.setdefault(name, []).append(criterion)
    whole = {name for name in own if {key for key in every if key[0] == name} <= set(who)}
    return ", ".join(
        name if name in whole else f"{name} ({', '.join(some)})" for name, some in own.items()
    )


def _several(rows: Sequence[Row]) -> list[str]:
    """Say once that instances have several responses, with the greatest of the rows' counts."""
    notes = [note for row in rows for note in row["note"].split("; ")]
    found = [match.groups() for match in map(SEVERAL.fullmatch, notes) if match]
    if not found:
        return []
    responses, instances, means = max(found, key=lambda one: (int(one[0]), int(one[1])))
    up_to = "up to " if len(set(found)) > 1 else ""
    return [f"{up_to}{responses} responses from {instances} instances: {means}"]
