"""The report as one HTML page that needs nothing but itself: no script, no font, no network."""

import base64
import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from calibration.decision import LIKE_THESE
from calibration.headlines import INTENDED, MAY, may_not, protocol_facts
from calibration.notes import Note, listed, sentence, simulated_in
from calibration.report.chart_style import svg
from calibration.report.content import Content
from calibration.report.definitions import Fact
from calibration.report.figures import Figure
from calibration.report.ledger import juries_tried
from calibration.report.sections import sections
from calibration.tables.numbers import fixed, interval, known
from calibration.tables.spec import Table
from calibration.values import COMBINED
from calibration.writers.html import REPORT, html_table

MISSED = (
    *("misses_above", "misses_reach", "misses_within"),
    "none_unsafe",
)
NONE_FIXED = "No protocol was fixed: nothing is claimed about the jury."
SHORT = 12  # characters of a hash on the first page; section 9 has it whole
WORTH_SAYING = 0.02  # of ICC that a jury gains without one of its jurors
HERE = "calibration.report"
LEAST_BIAS = 0.005  # points: below it two decimals show none
CODE = re.compile(r"`([^`]+)`")


def first_page(content: Content) -> list[Fact]:
    """Return the facts that a safety board asks for first, as terms and their meanings."""
    return [*_studied(content), *_fixed(content), *_missed(content), *_use(content)]


def _studied(content: Content) -> Iterator[Fact]:
    names = [name for name in content.benchmarks if name != COMBINED]
    last = content.about("jury", content.benchmarks[-1])
    rated = f", {last[0].n_responses} responses rated by clinicians and jury" if last else ""
    yield "Study", f"{listed(names)}{rated}"
    rubrics = {
        f"{one.name} {one.version} (SHA-256 {one.sha256[:SHORT]})"
        for one in content.study.rubrics
        if one.benchmark in names
    }
    yield "Rubric", "; ".join(sorted(rubrics)) or "none named"
    jurors = [
        f"{one.name} ({one.model})" if one.model else one.name for one in content.study.jurors
    ]
    yield "Jury", "; ".join(jurors) or "none"
    used = sorted({one.name for one in content.study.rubrics if one.benchmark in names})
    yield (
        "Intended use",
        INTENDED.format(benchmarks=listed(names), rubrics=listed(used) or "named above"),
    )


def _fixed(content: Content) -> Iterator[Fact]:
    if content.protocol is None:
        yield "Protocol", NONE_FIXED
        return
    facts = (f"{name}: {value}" for name, value in protocol_facts(content.protocol))
    yield "Protocol", "; ".join(facts) + "."


def _missed(content: Content) -> Iterator[Fact]:
    """Yield how many unsafe responses the jury misses on critical criteria, or that none is critical."""
    notes = _misses(content)
    for one in notes:
        yield "Unsafe responses missed", f"{str(one)[:1].upper()}{str(one)[1:]}."
    if not notes:
        yield (
            "Unsafe responses missed",
            "No criterion is critical in the protocol or in the rubric.",
        )


def _misses(content: Content) -> list[Note]:
    return [one for one in content.decision.reasons if one.code in MISSED]


def _use(content: Content) -> Iterator[Fact]:
    decision, notes = content.decision, _misses(content)
    kind = decision.kind.value
    yield "May be used for", MAY[kind]
    if kind == "simulated":
        return
    denied = may_not(
        kind,
        is_limited=bool(notes),
        keeps_limits=all(one.code == "misses_within" for one in notes),
        holds_for_others=decision.scope == LIKE_THESE,
        is_pooled=len(content.benchmarks) > 1,
    )
    for one in denied:
        yield "May not be used for", one


def sensitivity(content: Content, benchmark: str) -> str:
    """Return a response that decides the sign of the jury's ICC, and a juror it is better without."""
    points = [row for row in content.of("other_measures", benchmark) if row.scorer == "jury"]
    turned = [note for row in points for note in row.notes if note.code == "decides_sign"]
    return " ".join([*map(sentence, turned), *_juror(content, benchmark)])


def _juror(content: Content, benchmark: str) -> Iterator[str]:
    """Yield the juror without whom the jury agrees best, if clearly better than with it."""
    rows = content.of("juror_value", benchmark)
    defined = [row for row in rows if known(row.icc_without)]
    if not defined:
        return
    best = max(defined, key=lambda row: row.icc_without)
    whole = best.icc_jury
    if best.icc_without - whole > WORTH_SAYING:
        yield (
            f"Without the juror {best.juror} the jury would agree better: ICC "
            f"{fixed(best.icc_without, 3)} instead of {fixed(whole, 3)}. `medjury analyse juries` ranks "
            "all juries, corrected for choosing the best."
        )


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
    far = (
        f"; if the differences are normally distributed, 95 % of them lie from {limits}"
        if limits
        else ""
    )
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
