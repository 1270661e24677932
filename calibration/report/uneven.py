"""Whether the jury is as far off at the low end as at the high, in words."""

from collections.abc import Iterator
from typing import Any

from calibration.codes import NoteCode as Code
from calibration.report.content import Content
from calibration.tables.numbers import fixed, interval, known, place

Fact = tuple[str, str]
EVEN = 0.005  # points: below it two decimals show none


def uneven(content: Content, benchmark: str) -> str:
    """Return in a sentence how far off the jury is at both ends, or "" where that is not shown."""
    row = _jury(content, benchmark)
    fitted = row.told(Code.UNEVEN) if row else None
    if fitted is None:
        return ""
    low, at_low, high, at_high = (fitted[name] for name in ("low", "at_low", "high", "at_high"))
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
    return " ".join(_parts(_jury(content, benchmark)))


def _jury(content: Content, benchmark: str) -> Any:
    """Return the jury's row in points, or None."""
    rows = content.of("other_measures", benchmark)
    return next((row for row in rows if row.scorer == "jury"), None)


def _parts(row: Any) -> Iterator[str]:
    ends = interval(row.slope_low, row.slope_high)
    yield (
        f"For each point of the mean of both, jury minus clinicians changes by {fixed(row.slope)} "
        f"points (95 % interval {ends})."
    )
    if known(row.sd_ratio):
        yield (
            f"The jury's SD is {fixed(row.sd_ratio)} times the clinicians': noise alone can do "
            "this too, where one of the two has more of it."
        )


def _off(points: float) -> str:
    if abs(points) < EVEN:
        return "no more generous"
    return f"{fixed(abs(points))} points {'more generous' if points > 0 else 'stricter'}"
