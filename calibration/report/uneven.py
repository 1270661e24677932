"""Whether the jury is as far off at the low end as at the high, in words."""

import re
from collections.abc import Iterator

from calibration.report.content import Content, Row
from calibration.report.tables import place
from calibration.tables.numbers import fixed, interval, known

Fact = tuple[str, str]
FITTED = re.compile(
    r"fitted difference (\S+) points where the mean of both is (\S+) \(10th percentile\), "
    r"(\S+) where it is (\S+) \(90th\)"
)
EVEN = 0.005  # points: below it two decimals show none


def uneven(content: Content, benchmark: str) -> str:
    """Return in a sentence how far off the jury is at both ends, or "" where that is not shown."""
    rows = [row for row in content.of("other_measures", benchmark) if row["scorer"] == "jury"]
    told = FITTED.search(rows[0]["note"]) if rows else None
    if told is None:
        return ""
    low, at_low, high, at_high = map(float, told.groups())
    return (
        f"It is not the same everywhere: where the mean of both is low ({fixed(at_low)}, the 10th "
        f"percentile) the jury is {_off(low)} than the clinicians, where it is high "
        f"({fixed(at_high)}, the 90th) it is {_off(high)}."
    )


def uneven_facts(content: Content) -> list[Fact]:
    """Return the sentence of each benchmark of which it can be said, with the slope behind it."""
    return [
        (f"Not the same everywhere: {place(name)}", f"{said} {_slope(content, name)}")
        for name in content.benchmarks
        if (said := uneven(content, name))
    ]


def _slope(content: Content, benchmark: str) -> str:
    row = next(one for one in content.of("other_measures", benchmark) if one["scorer"] == "jury")
    return " ".join(_parts(row))


def _parts(row: Row) -> Iterator[str]:
    ends = interval(row["slope_low"], row["slope_high"])
    yield (
        f"For each point of the mean of both, jury minus clinicians changes by {fixed(row['slope'])} "
        f"points (95 % interval {ends})."
    )
    if known(row["sd_ratio"]):
        yield (
            f"The jury's SD is {fixed(row['sd_ratio'])} times the clinicians': noise alone can do "
            "this too, where one of the two has more of it."
        )


def _off(points: float) -> str:
    if abs(points) < EVEN:
        return "no more generous"
    return f"{fixed(abs(points))} points {'more generous' if points > 0 else 'stricter'}"
