"""A chart's colours on the screen: those it was drawn in, or their counterparts in the dark.

Files are drawn from the chart itself, on white paper.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

# The pairs of the HTML report's style sheet, a second blue, and words in the cells of a heat map.
# Of a ramp the higher is then the lighter.
PAPER = {"light": "#ffffff", "dark": "#15181c"}
DARK = {
    "#1f2328": "#e6e9ec",
    "#5c636b": "#a3abb3",
    "#dfe2e5": "#33393f",
    "#0072b2": "#6cb6e6",
    "#56a0cf": "#4b8db8",
    "#b35900": "#e69f55",
    "#000000": "#ffffff",
    "#ffffff": "#000000",
}
RAMP, DARK_RAMP = ("#cfe0ee", "#0a4f7d"), ("#1f3849", "#5c9cc3")
COLOUR = re.compile("#[0-9a-f]{6}")


def on_screen(spec: Mapping[str, Any], is_dark: bool) -> dict[str, Any]:
    """Return a chart in the colours of the theme, on its paper.

    It brings the paper along: should the system turn dark while it is shown, it stays readable
    until the page is drawn anew.
    """
    found = _darkened(spec) if is_dark else dict(spec)
    paper = PAPER["dark" if is_dark else "light"]
    return found | {"config": {**found.get("config", {}), "background": paper}}


def in_words(told: str, is_dark: bool) -> str:
    """Return what is said of a chart, as true of its colours on the screen."""
    return told.replace("the darker, the", "the lighter, the") if is_dark else told


def _darkened(part: Any, name: str = "") -> Any:
    """Return a part of a chart with its colours for the dark; rows stay as they are."""
    if isinstance(part, list):
        return [_darkened(one, name) for one in part]
    if isinstance(part, Mapping):
        return {key: one if key == "data" else _darkened(one, key) for key, one in part.items()}
    if not isinstance(part, str) or not COLOUR.fullmatch(part.lower()):
        return part
    colour = part.lower()
    if (name, colour) == ("stroke", PAPER["light"]):  # the gap between cells
        return PAPER["dark"]
    return DARK.get(colour) or _on_dark_ramp(colour)


def _on_dark_ramp(colour: str) -> str:
    """Return a colour of the ramp at the same share of the dark one; any other as it is."""
    low, high = _channels(RAMP[0]), _channels(RAMP[1])
    own = _channels(colour)
    share = (own[0] - low[0]) / (high[0] - low[0])
    meant = _mixed(low, high, share)
    if not 0 <= share <= 1 or any(abs(a - b) > 1 for a, b in zip(meant, own, strict=True)):
        return colour
    mixed = _mixed(_channels(DARK_RAMP[0]), _channels(DARK_RAMP[1]), share)
    return "#" + "".join(f"{round(one):02x}" for one in mixed)


def _channels(colour: str) -> list[int]:
    return [int(colour[place : place + 2], 16) for place in (1, 3, 5)]


def _mixed(low: Sequence[int], high: Sequence[int], share: float) -> list[float]:
    return [a + (b - a) * share for a, b in zip(low, high, strict=True)]
