"""The report on unsafe responses and on subgroups: their tables, and the chart of detection."""

from collections.abc import Iterator, Sequence
from typing import Any

from calibration.detection import DetectionRow
from calibration.report.charts import chart_detection
from calibration.report.content import Content
from calibration.report.figures import Figure
from calibration.tables.numbers import known, marked, place
from calibration.tables.response_groups import DETECTION, SUBGROUPS, by_threshold, named, threshold
from calibration.tables.spec import Table, laid_out
from calibration.values import COMBINED

DRAWN = ("jury", "clinicians", "metric")  # kinds of scorers; the jurors would hide them
LEAD = (
    "ICC says nothing about single responses: a jury may agree well and still miss an unsafe one. Missed "
    "means scored as unsafe by the clinicians and not by the jury."
)
SUBGROUP_LEAD = (
    "Whether the jury agrees with the clinicians everywhere, or only where most responses are. A "
    "subgroup of few instances supports neither conclusion."
)


def unsafe_blocks(content: Content) -> Iterator[Table | Figure]:
    """Yield a table for each threshold of the benchmarks shown, and charts of what to read."""
    for benchmark in content.shown:
        rows = [row for row in content.detection.rows if row.benchmark == benchmark]
        for own in by_threshold(rows).values():
            where = "" if len(content.benchmarks) == 1 else f", {_place(benchmark)}"
            caption = f"{DETECTION.caption}, {threshold(own[0])}{where}"
            yield laid_out(DETECTION, own, caption=caption)
            yield from _figure(content, benchmark, own)


def subgroup_tables(content: Content) -> Iterator[Table]:
    """Yield the table of subgroups of each benchmark shown."""
    for benchmark in content.shown:
        rows = [row for row in content.subgroups if row.benchmark == benchmark]
        if rows:
            where = "" if len(content.benchmarks) == 1 else f": {_place(benchmark)}"
            yield laid_out(SUBGROUPS, rows, caption=f"{SUBGROUPS.caption}{where}")


def _place(benchmark: str) -> str:
    return "all benchmarks combined" if benchmark == COMBINED else benchmark


def _figure(content: Content, benchmark: str, rows: Sequence[DetectionRow]) -> Iterator[Figure]:
    points = [one for row in rows for one in _points(content, row)]
    if not points:
        return
    unsafe = threshold(rows[0])
    made_up = "Simulated. " if any(row.simulated for row in rows) else ""
    several = f"{place(benchmark)}. " if len(content.benchmarks) > 1 else ""
    caption = (
        f"{made_up}{several}Reading responses from the lowest score up: how many of the unsafe "
        f"({unsafe}) are found by then. Straight pieces are ties, read in any order; on the dashed line "
        "all are read in any order. A clinician, held out, and the jury do not have the same reference."
    )
    yield Figure(
        f"unsafe-{_plain(rows[0])}",
        benchmark,
        chart_detection(points),
        caption,
        _words(rows),
        points,
    )


def _points(content: Content, row: DetectionRow) -> Iterator[dict[str, Any]]:
    kind = row.scorer.partition(":")[0]
    curve = content.detection.curves.get((row.benchmark, row.scorer, row.criterion, row.threshold))
    if kind not in DRAWN or curve is None:
        return
    label = marked(named(row.scorer), row)
    for read, found in zip(curve.read, curve.found, strict=True):
        yield {"label": label, "kind": kind, "read": round(read, 5), "found": round(found, 5)}


def _words(rows: Sequence[DetectionRow]) -> str:
    """Return the alternative text of the chart."""
    shares = [
        f"{named(row.scorer)} {row.read_for_90:.0%}"
        for row in rows
        if row.scorer.partition(":")[0] in DRAWN and known(row.read_for_90)
    ]
    return f"Share to read that has 90 % of the unsafe ones: {', '.join(shares)}"


def _plain(row: DetectionRow) -> str:
    """Return a threshold as letters and digits, to stand in an id."""
    signs = (
        one if one.isascii() and one.isalnum() else "_"
        for one in f"{row.criterion}{row.threshold:g}"
    )
    return "".join(signs)
