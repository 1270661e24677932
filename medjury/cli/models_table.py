"""Models compared, on the screen: a table for each way of scoring, and what to mind below it."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from medjury.cli.agreement_table import told
from medjury.cli.output import counted, say, show

Row = Mapping[str, Any]
HEADINGS = (
    "model",
    "win rate\n95 %",
    "by\ninstance",
    "macro-average\n95 %",
    "rank\n95 %",
    "scored",
)
TITLES = {
    "clinicians": "Models by clinicians",
    "jury": "Models by the jury, uncorrected",
    "corrected": "Models by the jury, corrected with the clinicians' ratings",
}
MEANT = (
    "win rate: share of the other models beaten on a benchmark, a tie half a win; SD over opponents. "
    "by instance: the same on the instances that both models have. "
    "macro-average: mean over benchmarks on 0 to 1; SD over benchmarks. Intervals are over instances."
)
DETECTABLE = (
    "mde: smallest difference found with 80 % power, as in the paper (score / top of the scale); "
    "exact: on the scale of the macro-average."
)


def print_models(body: Mapping[str, Any], json_to: Path | None = None) -> None:
    """Print the rows of `models --json` as tables, and each note once."""
    for by, group in groupby(body["rows"], key=lambda row: str(row["by"])):
        rows = list(group)
        every = len(body["benchmarks"])
        show(_title(by, rows), HEADINGS, [_cells(row, every) for row in rows], json_to)
        for line in told([{**row, "scorer": row["model"]} for row in rows]):
            say(f"  {line}", json_to)
        say("", json_to)
    say(MEANT, json_to)
    _print_categories(body["categories"], json_to)
    _print_detectable(body["detectable"], json_to)
    _print_costs(body["costs"], json_to)


def _title(by: str, rows: Sequence[Row]) -> str:
    simulated = any("simulated raters: " in row["note"] for row in rows)
    return TITLES[by] + (" (simulated)" if simulated else "")


def _cells(row: Row, every: int) -> list[str]:
    fewer = f"\n{row['n_benchmarks']} of {counted(every, 'benchmark')}"
    on = fewer if 0 < row["n_benchmarks"] < every else ""
    return [
        row["model"],
        f"{_with_sd(row['win_rate'], row['win_rate_sd'])}\n"
        f"{_between(row['win_rate_low'], row['win_rate_high'])}",
        _by_instance(row),
        f"{_with_sd(row['macro_average'], row['macro_average_sd'])}\n"
        f"{_between(row['low'], row['high'])}{on}",
        f"{_number(row['rank'], 0)}\n{_between(row['rank_low'], row['rank_high'], 0)}",
        f"{row['n_responses']} of\n{row['n_responses'] + row['n_missing']}",
    ]


def _by_instance(row: Row) -> str:
    if row["win_rate_by_instance"] is None:
        return "-"
    return f"{_number(row['win_rate_by_instance'])}\n{counted(row['n_paired'], 'pair')}"


def _print_categories(rows: Sequence[Row], json_to: Path | None) -> None:
    names = list(dict.fromkeys(row["category"] for row in rows))
    if len(names) < 2:
        return
    for by, group in groupby(rows, key=lambda row: str(row["by"])):
        found = {(row["model"], row["category"]): row for row in group}
        models = dict.fromkeys(model for model, _ in found)
        cells = [[one, *(_number(found[one, name]["mean"]) for name in names)] for one in models]
        say("", json_to)
        title = _title(by, list(found.values())) + ": means by category, 0 to 1"
        show(title, ["model", *map(_broken, names)], cells, json_to)


def _print_detectable(rows: Sequence[Row], json_to: Path | None) -> None:
    if not rows:
        return
    say("", json_to)
    show(
        "Smallest difference between two models that a benchmark detects",
        ["benchmark", "by", "mde", "exact", "instances", "pairs"],
        [
            [
                *(row["benchmark"], row["by"], _number(row["mde"], 3)),
                *(_number(row["mde_exact"], 3), f"{row['n_instances']}", f"{row['n_pairs']}"),
            ]
            for row in rows
        ],
        json_to,
    )
    for by, group in groupby(
        sorted(rows, key=lambda row: str(row["by"])), key=lambda row: str(row["by"])
    ):
        for line in told([{**row, "scorer": row["benchmark"]} for row in group]):
            say(f"  {by}: {line}", json_to)
    say(DETECTABLE, json_to)


def _print_costs(costs: Mapping[str, Any], json_to: Path | None) -> None:
    say("", json_to)
    if rows := costs["models"]:
        ways = list(rows[0]["win_rate"])
        cells = [
            [row["model"], _number(row["usd"]), *(_number(row["win_rate"][by]) for by in ways)]
            for row in rows
        ]
        show("Cost against win rate", ["model", "USD", *ways], cells, json_to)
    jury = costs["jury"]
    if jury is None:
        return
    spent = "unknown" if jury["usd"] is None else f"${jury['usd']:.4f}"
    more = f" and {jury['usd_unknown']} calls of unknown price" if jury["usd_unknown"] else ""
    bound = (
        "" if jury["paper_usd"] is None else f"; by the paper's formula ${jury['paper_usd']:.4f}"
    )
    say(f"the jury's {jury['calls']} recorded calls cost {spent}{more}{bound}", json_to)
    if jury["note"]:
        say(f"  {jury['note']}", json_to)


def _broken(name: str) -> str:
    """Return a category's name with a line a word, so that a table of five fits the screen."""
    return "\n".join(name.split()) or "no\ncategory"


def _with_sd(value: float | None, sd: float | None) -> str:
    if value is None:
        return "undefined"
    return _number(value) + ("" if sd is None else f" (SD {sd:.2f})")


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _between(low: float | None, high: float | None, digits: int = 2) -> str:
    return "" if low is None or high is None else f"{low:.{digits}f} to {high:.{digits}f}"
