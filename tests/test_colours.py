"""Light and dark: colours of screens and charts that can be read in both."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
import vl_convert

from annotate import charts, vega
from calibration.report import charts as report_charts
from calibration.report.charts import chart_distributions, chart_heatmap, chart_intervals

ROOT = Path(__file__).parent.parent
COLOURS = ROOT / "annotate" / "screens" / "colours.css"
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
    kinds = [row | {"label": kind, "kind": kind} for kind in report_charts.KINDS]
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
