"""Light and dark: colours of screens and charts that can be read in both."""

import re
from pathlib import Path

from annotate import draw
from calibration.report import charts as report_charts

PAPER = {"light": "#ffffff", "dark": "#15181c"}
ROOT = Path(__file__).parents[2]
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


def test_each_ink_of_a_chart_stands_out_from_its_paper_light_and_dark() -> None:
    for ink in (report_charts.ACCENT, report_charts.WARNING, report_charts.INK, report_charts.SOFT):
        assert contrast(ink, PAPER["light"]) >= 3, ink
        assert contrast(draw.ON_DARK[ink], PAPER["dark"]) >= 3, ink
    for ink in (draw.BLUE, draw.ORANGE, draw.GREY):
        assert min(contrast(ink, paper) for paper in PAPER.values()) >= 3, ink


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
