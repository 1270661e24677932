"""Light and dark: colours of screens and charts that can be read in both."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import vl_convert

from annotate import charts, vega
from annotate.server import settings
from annotate.vega import png, svg
from calibration.report import chart_style
from calibration.report.chart_comparisons import chart_heatmap
from calibration.report.charts import chart_distributions, chart_intervals

ROOT = Path(__file__).parent.parent
COLOURS = ROOT / "annotate" / "screens" / "colours.css"
SHEETS = [
    *sorted({*COLOURS.parent.glob("*.css")} - {COLOURS}),
    ROOT / "annotate" / "tables.css",
]
NAMED = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"(--mj-[\w-]+): light-dark\((#\w+), (#\w+)\)", COLOURS.read_text("utf-8")
    )
}
# Words on what lies under them, as the style sheets put them.
WORDS = [
    *((f"--mj-{ink}", f"--mj-{under}") for ink in ("ink", "body", "quiet") for under in ("paper", "lift", "wash")),
    *(("--mj-fill", f"--mj-{under}") for under in ("paper", "lift", "wash")),
    *(("--mj-ink", f"--mj-{mark}") for mark in ("wrong", "missing", "unsupported", "calm", "notice")),
    ("--mj-on-fill", "--mj-fill"),
    ("--mj-on-tint", "--mj-tint"),
    ("--mj-on-notice", "--mj-notice"),
    ("--mj-on-refusal", "--mj-refusal"),
]  # fmt: skip


@pytest.fixture(scope="module")
def drawn() -> dict[str, dict]:
    """Return charts with a ramp, cells with words in them, and kinds."""
    cells = [{"model": f"m{n:03}", "place": "all", "value": n / 100} for n in range(101)]
    counts = {"1": 2, "2": 3, "3": 5}
    uses = [{"label": "Jury", "criterion": "accuracy", "counts": counts}]
    row = {"label": "Jury", "kind": "jury", "value": 0.6, "low": 0.4, "high": 0.8}
    kinds = [row | {"label": kind, "kind": kind} for kind in chart_style.KINDS]
    return {
        "cells": vega.specification(chart_heatmap(cells, "Mean")),
        "uses": vega.specification(chart_distributions(uses)),
        "kinds": vega.specification(chart_intervals(kinds)),
    }


def test_words_stand_out_by_four_and_a_half_to_one_light_and_dark() -> None:
    weak = {
        (ink, under, theme): round(contrast(NAMED[ink][n], NAMED[under][n]), 2)
        for ink, under in WORDS
        for n, theme in enumerate(("light", "dark"))
        if contrast(NAMED[ink][n], NAMED[under][n]) < 4.5
    }
    assert weak == {}
    for line in ("--mj-line", "--mj-focus", "--mj-refused", "--mj-warning", "--mj-accent"):
        assert min(contrast(NAMED[line][n], NAMED["--mj-paper"][n]) for n in (0, 1)) >= 3


def test_style_sheets_of_the_screens_take_their_colours_from_one_place() -> None:
    for sheet in SHEETS:
        text = sheet.read_text("utf-8")
        assert re.findall(r"#[0-9a-f]{3,8}\b(?=[^{}]*})", text) == [], sheet.name
        assert set(re.findall(r"var\((--mj-[\w-]+)\)", text)) - {*NAMED} == set(), sheet.name


def test_streamlits_own_colours_are_those_of_the_screens() -> None:
    names = {
        "backgroundColor": "--mj-paper",
        "textColor": "--mj-ink",
        "primaryColor": "--mj-fill",
        "secondaryBackgroundColor": "--mj-wash",
        "borderColor": "--mj-rule",
    }
    for n, theme in enumerate(("light", "dark")):
        told = {name: settings()[f"theme.{theme}.{name}"] for name in names}
        assert {name: long(one) for name, one in told.items()} == {
            name: long(NAMED[ours][n]) for name, ours in names.items()
        }


def test_charts_in_the_dark_have_the_colours_of_the_report_in_the_dark() -> None:
    sheet = (ROOT / "calibration" / "report" / "style.css").read_text("utf-8")
    dark = dict(re.findall(r"--(\w+): (#\w+);", sheet.split("prefers-color-scheme: dark")[1]))
    pairs = re.findall(r'\[fill="(#\w+)"\] \{ fill: (?:var\(--(\w+)\)|(#\w+)); \}', sheet)
    meant = {light: dark.get(name, plain) for light, name, plain in pairs}
    assert len(meant) >= 4
    assert {light: charts.DARK[light] for light in meant} == meant
    assert charts.DARK[chart_style.GRID] == dark["rule"]
    assert charts.RAMP == chart_style.RAMP
    assert charts.PAPER["dark"] == dark["paper"] == NAMED["--mj-paper"][1]


def test_every_colour_of_a_chart_has_its_counterpart(drawn: dict[str, dict]) -> None:
    for spec in drawn.values():
        here = {*re.findall(r'"(#\w{6})"', str(spec).replace("'", '"'))}
        there = str(charts.on_screen(spec, is_dark=True))
        kept = {one for one in here - {"#ffffff", "#000000"} if one in there}
        assert len(here) > 2
        assert kept == set()
    assert {*chart_style.COLOURS} <= {*charts.DARK}


def test_words_in_the_cells_of_a_heat_map_can_be_read_light_and_dark(
    drawn: dict[str, dict],
) -> None:
    for is_dark in (False, True):
        picture = vl_convert.vegalite_to_svg(charts.on_screen(drawn["cells"], is_dark))
        gap = charts.PAPER["dark" if is_dark else "light"]
        cells = re.findall(rf'fill="(#\w+|rgb\([^)]+\))" stroke="{gap}"', picture)
        inks = re.findall(r'fill="(#0{6}|#f{6})"[^>]*>[01]\.\d\d<', picture)
        assert len(cells) == len(inks) == 101
        assert min(map(contrast, cells, inks)) >= 4.5
        lights = [luminance(one) for one in cells]
        assert all((b >= a) == is_dark for a, b in pairwise(lights) if a != b)


def test_what_is_said_of_dark_and_light_is_true_in_the_dark() -> None:
    told = "Scores as they were given: the darker, the higher."
    assert charts.in_words(told, is_dark=False) == told
    assert "the lighter, the higher" in charts.in_words(told, is_dark=True)


def test_a_chart_brings_its_paper_and_its_files_are_on_white(drawn: dict[str, dict]) -> None:
    for is_dark, paper in ((False, "#ffffff"), (True, "#15181c")):
        shown = charts.on_screen(drawn["kinds"], is_dark)
        assert shown["config"]["background"] == paper
    assert charts.on_screen(drawn["uses"], is_dark=True)["data"] == drawn["uses"]["data"]
    assert 'fill="white"' in svg(drawn["kinds"])
    assert "#15181c" not in svg(drawn["kinds"])
    assert png(drawn["kinds"])


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2.2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour by WCAG 2.2."""
    if colour.startswith("rgb"):
        parts = [int(one) / 255 for one in re.findall(r"\d+", colour)[:3]]
    else:
        parts = [int(long(colour)[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def long(colour: str) -> str:
    """Return a colour in six digits."""
    digits = colour.lower().removeprefix("#")
    return "#" + ("".join(2 * one for one in digits) if len(digits) == 3 else digits)
