"""`medjury monitor` on the screen."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medjury.cli.monitor_jurors import notices
from medjury.cli.output import counted, say, show

if TYPE_CHECKING:
    from medjury.cli.monitor_study import Monitored

HIDDEN = ("scored ", "simulated raters: ", "too few: ")
WEEK = timedelta(days=7)
BETWEEN = "a fall between them is no change of the model"


SOURCES = {
    "baseline": "of the baseline, and its own error makes false alarms more frequent",
    "given": "given",
}


def print_monitored(found: "Monitored", to: Path | None = None) -> None:
    """Print the reports, the periods, what drifted, and in the last line the judgement."""
    body = found.to_json()
    simulated = ", simulated" if found.simulated else ""
    say(f"jury: {', '.join(found.jury)}", to)
    _reports(body["reports"], to)
    _periods(
        body, f"{body['benchmark']}: agreement with clinicians by {body['every']}", simulated, to
    )
    for line in (*_target(body["target"]), *_notes(body), *_scored_at(body["periods"])):
        say(f"  {line}", to)
    _anchor(body["anchor"], simulated, to)
    for line in (*_mix(body["case_mix"]), *found.verdict.said, *notices(found.jurors)):
        say(line, to)
    if found.simulated:
        say(f"simulated raters: {', '.join(found.simulated)}", to)
    say(_judgement(found), to)


def _judgement(found: "Monitored") -> str:
    if not found.judged:
        return f"NOT JUDGED: {found.reason}"
    none = f"; {found.watched.reason}" if found.wanted.baseline and found.watched.reason else ""
    return f"{'FALLEN' if found.fallen else 'not fallen'}: {found.reason}{none}"


def _reports(rows: Sequence[Mapping[str, Any]], to: Path | None) -> None:
    if not rows:
        say("no report frozen yet: `medjury calibrate --freeze` keeps one to compare with", to)
        return
    cells = [
        [
            f"{row['report']}{' ' + row['name'] if row['name'] else ''}",
            row["at"][:10],
            _number(row["icc"]),
            _ends(row["boot_low"], row["boot_high"]),
            f"{row['n_responses']}",
            "simulated" if row["simulated"] else "",
        ]
        for row in rows
    ]
    show("Frozen reports", ["report", "frozen", "ICC(C,2)", "95 %", "responses", ""], cells, to)
    for row in rows:
        if row["changed"]:
            say(f"  since the one before, report {row['report']}: {', '.join(row['changed'])}", to)


def _periods(body: Mapping[str, Any], title: str, simulated: str, to: Path | None) -> None:
    watched = {row["period"]: row for row in body["cusum"]}
    cells = [
        [
            row["period"].replace(" to ", " to\n"),
            f"{row['n_responses']} of {row['n_responses'] + row['n_missing']}",
            f"{row['n_instances']}",
            _number(row["icc"]),
            _ends(row["boot_low"], row["boot_high"]),
            *_watched(watched.get(row["period"]), row),
        ]
        for row in body["periods"]
    ]
    headings = ["period", "scored", "instances", "ICC(C,2)", "95 %", "CUSUM", ""]
    show(f"{title} (method {body['method']}{simulated})", headings, cells, to)


def _watched(one: Mapping[str, Any] | None, row: Mapping[str, Any]) -> list[str]:
    if row["too_few"]:
        return ["-", "too few"]
    if one is None:
        return ["-", ""]
    if one["role"] != "watched":
        return ["-", one["role"]]
    return [f"{one['cusum']:.2f}", "ALARM" if one["alarm"] else ""]


def _target(target: Mapping[str, Any]) -> Iterator[str]:
    if target["note"]:
        yield target["note"]
        return
    ends = "" if target["low"] is None else f" ({_ends(target['low'], target['high'])})"
    yield (
        f"CUSUM: standard errors below the target {_number(target['icc'])}{ends}, alarm at 4; the "
        f"target is {SOURCES.get(target['source'], 'of ' + target['source'])}"
    )


def _notes(body: Mapping[str, Any]) -> Iterator[str]:
    for row in body["periods"]:
        kept = [part for part in row["note"].split("; ") if part and not part.startswith(HIDDEN)]
        if kept:
            yield f"{row['period']}: {'; '.join(kept)}"


def _scored_at(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say where the jury scored all periods at one time: then it cannot have changed."""
    days = [
        date.fromisoformat(row[end])
        for row in rows
        for end in ("jury_first", "jury_last")
        if row[end]
    ]
    if len(rows) > 1 and days and max(days) - min(days) < WEEK:
        yield f"the jury scored all periods within a week, by {max(days)}: {BETWEEN}"
    if len(rows) == 1:
        row = rows[0]
        yield (
            f"all responses are of one period ({row['period']}): were ratings brought in without "
            "rated_at, they have the day of the import"
        )


def _anchor(rows: Sequence[Mapping[str, Any]], simulated: str, to: Path | None) -> None:
    if not rows:
        return
    cells = [
        [
            row["scorer"].removeprefix("juror:"),
            f"{row['n_responses']}",
            "-" if row["shift"] is None else f"{row['shift']:+.2f}",
            _ends(row["low"], row["high"], "+"),
            _number(row["icc_one"]),
            f"{_number(row['icc_first'])} / {_number(row['icc_latest'])}",
        ]
        for row in rows
    ]
    headings = ["scorer", "again", "shift", "95 %", "ICC(A,1)", "ICC first / latest"]
    show(f"Anchor: the same responses scored again, in points{simulated}", headings, cells, to)
    for row in rows:
        kept = [part for part in row["note"].split("; ") if part and not part.startswith(HIDDEN)]
        if kept:
            say(f"  {row['scorer'].removeprefix('juror:')}: {'; '.join(kept)}", to)


def _mix(mix: Mapping[str, Any]) -> Iterator[str]:
    if mix.get("mean_now") is None:
        yield f"case mix: {mix['note']}"
        return
    yield f"case mix, {mix['now']} against {mix['baseline']}:"
    yield (
        f"  clinicians' mean {mix['mean_now']:.2f}, was {mix['mean_baseline']:.2f}; SD "
        f"{mix['sd_now']:.2f}, was {mix['sd_baseline']:.2f}"
    )
    yield (
        f"  ICC {_number(mix['icc_now'])}, was {_number(mix['icc_baseline'])} (change "
        f"{_ends(mix['change_low'], mix['change_high'])}); with the baseline's shares of "
        f"benchmarks {_number(mix['icc_reweighted'])}; the baseline's with the spread of now "
        f"{_number(mix['icc_spread'])}"
    )
    moved = [one for one in mix["shares"] if len(mix["shares"]) > 1]
    if moved:
        each = ", ".join(
            f"{one['benchmark']} {one['baseline']:.0%} -> {one['now']:.0%} "
            f"({counted(one['n_now'], 'response')})"
            for one in moved
        )
        yield f"  shares: {each}"
    if mix["note"]:
        yield f"  {mix['note']}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:z.2f}"


def _ends(low: float | None, high: float | None, sign: str = "") -> str:
    if low is None or high is None:
        return "-"
    form = f"{sign}.2f" if sign else "z.2f"
    return f"{low:{form}} to {high:{form}}"
