"""The charts of agreement with their captions and their text for readers who cannot see them.

The report draws them as SVG; in the app they respond to clicks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibration.report import charts
from calibration.report.chart_style import KINDS, LOWEST, is_binned
from calibration.report.content import Content
from calibration.scope import AgreementRow
from calibration.tables.numbers import fixed, interval, known, marked, place, scorer, whole

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A chart with its benchmark, caption, alternative text, and the rows that it shows.

    `rows` is empty where the chart's own longest rows are the ones to list.
    """

    name: str
    benchmark: str
    chart: Any
    caption: str
    alt: str
    rows: Rows = ()

    @property
    def anchor(self) -> str:
        """Return its id on a page: letters and digits only, other characters by number."""
        return f"{self.name}-{plain(self.benchmark)}"


def plain(name: str) -> str:
    """Return a name as letters and digits, other characters by number, to stand in an id."""
    return "".join(one if one.isascii() and one.isalnum() else f"_{ord(one)}" for one in name)


def intervals(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield jury, jurors, metrics and clinicians side by side."""
    scorers = [row for row in content.rows if row.benchmark == benchmark and _kind(row) in KINDS]
    rows = [_interval(marked(scorer(row.scorer), row), row) for row in scorers if known(row.icc)]
    if not rows:
        return
    caption = (
        f"{_of(content, benchmark)}Agreement with the clinicians' mean, ICC(C,2): jury (diamond), "
        "single jurors (circles), metrics (squares). Clinicians by pairs (triangle) compare one with "
        "one, and so are not comparable with the others; use like for like for that."
    )
    if any((one["low"] if known(one["low"]) else one["value"]) < LOWEST for one in rows):
        caption += f" An arrow head: the interval continues below {fixed(LOWEST, 0)}."
    if missing := [scorer(row.scorer) for row in scorers if not known(row.icc)]:
        caption += f" Undefined and not drawn: {', '.join(missing)}."
    alt = f"Agreement with the clinicians' mean, ICC and 95 % interval: {_listed(rows)}"
    yield Figure("intervals", benchmark, charts.chart_intervals(rows), caption, alt, rows)


def criteria(content: Content) -> Iterator[Figure]:
    """Yield the jury's ICC on each criterion."""
    several = len(content.benchmarks) > 1
    rows = [
        _interval(f"{row.criterion}, {place(row.benchmark)}" if several else row.criterion, row)
        for row in content.criteria
        if known(row.icc)
    ]
    if rows:
        made_up = "Simulated. " if any(row.simulated for row in content.criteria) else ""
        caption = f"{made_up}The jury's ICC with the clinicians' mean, criterion by criterion."
        chart = charts.chart_intervals(rows)
        yield Figure("criteria", "", chart, caption, _listed(rows), rows)


def points(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield the two charts in points of the scale: scatter, and Bland and Altman's."""
    pair = content.paired.get(benchmark)
    if pair is None or not len(pair.jury):
        return
    n = len(pair.jury)
    size = "counted in cells: the darker, the more" if is_binned(n) else "larger where several lie"
    about = f"{_of(content, benchmark)}{whole(n)} responses, means in points of the scale, {size}."
    yield Figure(
        "scatter",
        benchmark,
        charts.chart_scatter(pair.clinicians, pair.jury),
        f"{about} On the dashed line jury and clinicians are equal.",
        f"{whole(n)} responses: the jury's mean against the clinicians' mean, in points",
    )
    rows = content.of("other_measures", benchmark)
    far = next((row for row in rows if row.scorer == "jury"), None)
    bias, low, high = (_number(far, name) for name in ("bias", "limits_low", "limits_high"))
    yield Figure(
        "difference",
        benchmark,
        charts.chart_bland_altman(pair.clinicians, pair.jury, bias, (low, high)),
        f"{about} Bland and Altman: above 0 the jury is more generous. If the differences are "
        "normally distributed, 95 % of them lie between the two limits.",
        "Bland and Altman: jury minus clinicians against the mean of both, in points; "
        f"bias {fixed(bias)}, limits of agreement {interval(low, high) or 'undefined'}",
    )


def distributions(content: Content, benchmark: str) -> Iterator[Figure]:
    """Yield how clinicians and jurors use the scale."""
    rows = [
        {"label": _rater(row), "criterion": row.criterion, "counts": row.counts}
        for row in content.of("distributions", benchmark)
        if row.rater != "jury" and row.counts
    ]
    if rows:
        yield Figure(
            "scale",
            benchmark,
            charts.chart_distributions(rows),
            f"{_of(content, benchmark)}Scores as they were given, by criterion: the darker, the "
            "higher. Hidden repeats and replicates are counted too. Grey: between the points of the scale.",
            "Share of each score by rater and criterion",
            [{**row, "counts": ""} | dict(row["counts"]) for row in rows],
        )


def _interval(label: str, row: AgreementRow) -> dict[str, Any]:
    ends = {"low": row.low, "high": row.high}
    return {"label": label, "kind": _kind(row), "value": row.icc} | ends


def _listed(rows: Rows) -> str:
    """Return intervals in words."""
    return "; ".join(
        f"{one['label']} {fixed(one['value'])} ({interval(one['low'], one['high']) or 'no interval'})"
        for one in rows
    )


def _rater(row: Any) -> str:
    return marked("Clinicians" if row.rater == "clinicians" else scorer(row.rater), row)


def _of(content: Content, benchmark: str) -> str:
    """Return the start of a caption: whether raters are simulated, and the benchmark."""
    made_up = (
        "Simulated. " if any(row.simulated for row in content.about("jury", benchmark)) else ""
    )
    return made_up + (f"{place(benchmark)}. " if len(content.benchmarks) > 1 else "")


def _kind(row: AgreementRow) -> str:
    return row.scorer.partition(":")[0]


def _number(row: Any, name: str) -> float:
    value: Any = getattr(row, name, None)
    return float(value) if known(value) else np.nan
