"""The report as one HTML page that needs nothing but itself: no script, no font, no network."""

import base64
import hashlib
import re
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from calibration.messages.form import listed
from calibration.report.content import Content
from calibration.report.figures import Figure
from calibration.report.first_page import first_page
from calibration.report.hangs import sensitivity
from calibration.report.ledger_table import juries_tried
from calibration.report.sections import sections
from calibration.report.svg import svg
from calibration.tables.numbers import fixed, interval, known
from calibration.tables.spec import Table
from calibration.values import simulated_in
from calibration.writers.html import REPORT, html_table

HERE = "calibration.report"
LEAST_BIAS = 0.005  # points: below it two decimals show none
CODE = re.compile(r"`([^`]+)`")


def page(content: Content) -> str:
    """Return the report as an HTML document.

    Everything that comes from the study is escaped; charts are inline SVG. Its content security
    policy lets a browser load nothing at all and apply this style sheet alone.
    """
    style = files(HERE).joinpath("style.css").read_text("utf-8")
    template = _environment().from_string(files(HERE).joinpath("template.html").read_text("utf-8"))
    last = content.benchmarks[-1]
    return template.render(
        style=Markup(style),  # noqa: S704 # our own file
        style_hash=_hash(style),
        content=content,
        study=content.study,
        decisions=content.decisions,
        first=content.decision,
        facts=first_page(content),
        points=in_points(content, last),
        sensitivity=sensitivity(content, last),
        simulated=simulated_in(content.rows),
        tried=juries_tried(content.study),
        sections=sections(content),
    )


def in_points(content: Content, benchmark: str) -> str:
    """Return by how many points of the scale jury and clinicians differ, as a sentence, or ""."""
    rows = [row for row in content.of("other_measures", benchmark) if row.scorer == "jury"]
    if not rows or not known(rows[0].bias):
        return ""
    row = rows[0]
    way = "more generous" if row.bias > 0 else "stricter"
    ends = interval(row.bias_low, row.bias_high)
    bias = f"{fixed(abs(row.bias))} points {way} than the clinicians"
    if abs(row.bias) < LEAST_BIAS:
        bias = "within 0.005 points of the clinicians"
    sure = f" (95 % interval of jury minus clinicians {ends})" if ends else ""
    limits = interval(row.limits_low, row.limits_high)
    far = f"; where differences are normal, 95 % of them lie from {limits}" if limits else ""
    return f"In points of the scale, the jury is on average {bias}{sure}{far}."


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.tests |= {
        "table": lambda block: isinstance(block, Table),
        "figure": lambda block: isinstance(block, Figure),
        "figures": lambda block: isinstance(block, tuple),
    }
    environment.filters |= {
        "drawing": _drawing,
        "prose": _prose,
        "html_table": _table,
        "listed": listed,
    }
    return environment


def _drawing(figure: Figure) -> Markup:
    """Return a chart as it is: vl-convert has escaped every label in it."""
    return Markup(svg(figure.chart, figure.anchor, figure.alt))  # noqa: S704


def _table(table: Table) -> Markup:
    """Return a table as HTML, in which every text is escaped."""
    return Markup(html_table(table, REPORT))  # noqa: S704


def _prose(text: Any) -> Markup:
    """Return words with what stands between backquotes as code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 # escaped before


def _hash(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
