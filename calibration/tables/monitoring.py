"""The tables of agreement over time: periods, anchor, case mix, reports, and when models end."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibration.notes import Note, Noted, note
from calibration.tables.numbers import PAGE, Typeface, place
from calibration.tables.spec import (
    Column,
    Table,
    TableNote,
    TableSpec,
    between,
    count,
    icc,
    icc_between,
    laid_out,
    number,
    probability,
    signed,
    text,
)

FALL = "Largest fall below the target over a window of the latest periods, in standard errors."
SHIFT = "Mean of the latest scores minus mean of the first, in points."
POINTS = "Mean of the clinicians' scores, in points; the SD is theirs too."
RESHARED = "ICC now with the benchmarks' shares of then, where that rests on 10 responses or more."
OPEN = "Not over: ratings may still be added. Left out: no ICC, or none with an error."
PERIODS = TableSpec(
    "Agreement by period",
    "period",
    "Period",
    (
        Column(
            "Scored",
            lambda row, _: f"{row.n_responses} of {row.n_responses + row.n_missing}",
        ),
        count("Instances", "n_instances"),
        count("Clinicians", "n_clinicians", wide=True),
        icc(digits=2),
        icc_between("95 %", "low", "high"),
        number("Fall", "scan", help=FALL),
        number("Alarm at", "limit", wide=True, help="The fall at which an alarm is raised."),
        Column("State", lambda row, _: _state(row), is_words=True, help=OPEN),
    ),
    named=str,
)
REPORTS = TableSpec(
    "Frozen reports",
    "title",
    "Report",
    (
        Column("Frozen (UTC)", lambda row, _: f"{row.at:%Y-%m-%d %H:%M}", is_words=True),
        text("On", "benchmark", wide=True),
        icc(),
        icc_between("95 %", "low", "high"),
        count("Responses", "n_responses"),
        count("Instances", "n_instances", wide=True),
        Column("Jury", lambda row, _: ", ".join(row.jury), is_words=True, wide=True),
    ),
    named=str,
)
JURORS = TableSpec(
    "End dates of the jurors' models",
    "juror",
    "Juror",
    (text("Model", "model"), text("Ends", "ends"), count("Days left", "days_left")),
    named=str,
)


@dataclass(frozen=True)
class ComparedLine(Noted):
    """One item of two reports, as text."""

    what: str
    first: str
    second: str
    differs: str


ANCHOR = TableSpec(
    "Anchor: the same responses scored again, in points",
    "scorer",
    "Scorer",
    (
        count("Scored again", "n_responses"),
        signed("Shift", "shift", help=SHIFT),
        between("95 %", "low", "high"),
        probability("p, Holm", "p_holm", wide=True),
        count("Rated", "n_clinical", wide=True, help="By clinicians: what the ICCs are of."),
        number("ICC first", "icc_first"),
        number("ICC latest", "icc_latest"),
        icc_between("95 % of change", "change_low", "change_high", wide=True),
    ),
)
MIX = TableSpec(
    "Case mix",
    "now",
    "Now",
    (
        number("Mean\nthen", "mean_baseline", help=POINTS),
        number("Mean\nnow", "mean_now"),
        number("SD\nthen", "sd_baseline"),
        number("SD\nnow", "sd_now"),
        number("ICC\nthen", "icc_baseline"),
        number("ICC\nnow", "icc_now"),
        icc_between("95 % of\nchange", "change_low", "change_high"),
        number("Reweighted", "icc_reweighted", help=RESHARED),
    ),
    named=str,
)


def periods_table(found: Any, face: Typeface = PAGE, *, narrow: bool = False) -> Table:
    """Return the periods of a `medjury.services.monitoring.Monitored`, with what holds of all."""
    of = f"agreement by {found.options.every}, method {found.options.analysis.method}"
    caption = f"{place(found.benchmark)}: {of}"
    return _also(
        laid_out(PERIODS, found.periods, face, caption=caption, narrow=narrow), found.remarks
    )


def mix_table(mix: Any, face: Typeface = PAGE) -> Table:
    """Return a case mix of `calibration.monitoring`, with the shares of several benchmarks below."""
    shares = (
        note(
            "share_of_benchmark",
            "{benchmark}: {baseline:.0%} of responses then, {now:.0%} now",
            **one,
        )
        for one in (mix.shares if len(mix.shares) > 1 else ())
    )
    caption = f"Case mix of {mix.now} beside {mix.baseline}: were other responses rated?"
    return _also(laid_out(MIX, [mix], face, caption=caption), shares)


def comparison_table(lines: Sequence[ComparedLine], first: str, second: str) -> Table:
    """Return two reports side by side, under their names."""
    columns = (text(first, "first"), text(second, "second"), text("Difference", "differs"))
    changed = sum(bool(line.differs) for line in lines)
    title = f"{first} and {second}: {changed} of {len(lines)} lines differ"
    return laid_out(TableSpec(title, "what", "Item", columns, named=str), lines)


def _also(table: Table, notes: Iterable[Note]) -> Table:
    """Return a table with notes below it that are of no single row."""
    more = tuple(TableNote(str(one), code=one.code) for one in notes)
    return replace(table, notes=(*table.notes, *more))


def _state(row: Any) -> str:
    if row.too_few:
        return "too few"
    if row.alarm:
        return "ALARM"
    return str(row.role).replace("watched", "") if row.over else "not over yet"
