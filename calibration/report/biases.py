"""Biases of jurors that a study cannot tell of: a sentence where a table would be all dashes."""

from calibration.report.content import Content, Row
from calibration.report.definitions import Fact
from calibration.tables.numbers import known

NO_FAMILY = "no family is stored"
UNTESTED = (
    "Bias towards single models is not tested, because {}. The jury may favour responses by its own "
    "models, and nothing on this page would show it."
)


def defined(content: Content, section: str, figure: str) -> list[Row]:
    """Return a section's rows of the benchmarks shown; none where all figures are undefined."""
    rows = content.of(section, *content.shown)
    return rows if any(known(row[figure]) for row in rows) else []


def not_tested(content: Content) -> list[Fact]:
    """Return a fact for each bias of which no figure is defined, with the reasons."""
    found: list[Fact] = []
    for name, section, figure in (
        ("Self-preference", "self_preference", "preference"),
        ("Length", "length", "slope_per_doubling"),
    ):
        rows = content.of(section, *content.shown)
        if rows and not defined(content, section, figure):
            found.append((name, _why(section, rows)))
    return found


def _why(section: str, rows: list[Row]) -> str:
    parts = [one for row in rows for one in row["note"].split("; ")]
    reasons = dict.fromkeys(
        one.removeprefix("undefined: ") for one in parts if one.startswith("undefined")
    )
    said = "; ".join(reasons) or "no figure is defined"
    if section != "self_preference":
        return f"Not given: {said}."
    if all(NO_FAMILY in row["note"] for row in rows):
        said = "the jurors' model families are not given (`--panel` names them)"
    return UNTESTED.format(said)
