"""A chart as inline SVG, without scripts, font files or anything to download."""

import re
from html import escape
from typing import Any

import altair as alt

VEGA_LITE = ".".join(alt.SCHEMA_VERSION.lstrip("v").split(".")[:2])
TAG = re.compile(r"<[^>]*>")
ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
IDENTITY = re.compile(r'( id="|url\(#|href="#)')


def svg(chart: Any, name: str = "chart", label: str = "") -> str:
    """Return a chart as one <svg> element to stand in a page.

    Parameters
    ----------
    chart : altair chart
    name : str
        Prefix of its ids, so that the charts of one page do not use each other's.
    label : str
        Text for screen readers; the element is one image.
    """
    import vl_convert

    drawn = str(vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=VEGA_LITE))
    plain = TAG.sub(lambda tag: _plain(tag[0], name), drawn)
    element = f'<svg role="img" aria-label="{escape(label)}"'
    return plain.replace("<svg", element, 1).replace(' class="marks"', ' class="plot"', 1)


def _plain(tag: str, name: str) -> str:
    """Return a tag without the parts that would be read out one by one, its ids made its own."""
    return IDENTITY.sub(lambda found: found[0] + name + "-", ROLES.sub("", tag))
