"""Error analysis as a page to read: tables of errors, and examples in clinicians' words."""

import html
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from calibration.error_values import BenchmarkErrors, Example, Quote
from calibration.tables.errors import (
    ABOUT,
    RULE,
    errors_table,
    figures_line,
    left_out_lines,
    missing_reasons,
    quote_kind,
    reason_heading,
)
from calibration.tables.numbers import PAGE
from calibration.writers.html import REPORT, html_page, html_table

TITLE = "Error analysis"
HOLDS_WORDS = (
    "This page quotes what clinicians marked and wrote, which may hold words of patients: keep it where "
    "the study is kept. It names no clinician and no author of a response."
)
Named = Callable[[str], str]
"""Make the HTML of a response's id."""


def page(
    parts: Sequence[tuple[BenchmarkErrors, Sequence[Example]]],
    jury: Sequence[str],
    simulated: Sequence[str],
    per_group: int,
) -> str:
    """Return a page of its own, which asks no other place for anything; all text is escaped."""
    made_up = f"Simulated, no evidence: {', '.join(simulated)}." if simulated else ""
    mark = f'<p class="simulated"><strong>{html.escape(made_up)}</strong></p>' if made_up else ""
    lines = (
        f"Jury: {', '.join(jury) or 'none has rated'}.",
        RULE.format(per_group),
        ABOUT,
        HOLDS_WORDS,
    )
    body = "".join(_section(one, examples) for one, examples in parts)
    said = "".join(map(_paragraph, lines))
    return html_page(TITLE, f"{mark}<h1>{TITLE}</h1>{said}{body}")


def _section(found: BenchmarkErrors, examples: Sequence[Example]) -> str:
    table = html_table(errors_table(found), REPORT)
    lines = "".join(map(_paragraph, left_out_lines(found)))
    return f"<h2>{html.escape(found.benchmark)}</h2>{table}{lines}{examples_html(examples)}"


def _paragraph(line: str) -> str:
    return f"<p>{html.escape(line)}</p>"


def examples_html(examples: Sequence[Example], named: Named = html.escape) -> str:
    """Return the examples, reason by reason, and which reasons have none."""
    groups = groupby(examples, key=lambda one: (one.picked.picked_for, one.picked.error))
    parts = [
        f'<h3>{html.escape(reason_heading(*reason))}</h3><ol class="mj-examples">'
        f"{''.join(_example(one, named) for one in own)}</ol>"
        for reason, own in groups
    ]
    none = missing_reasons([one.picked for one in examples])
    return "".join((*parts, *map(_paragraph, none)))


def _example(example: Example, named: Named) -> str:
    figures = html.escape(figures_line(example.picked, PAGE))
    return (
        f"<li>{named(example.picked.response_id)}: {figures}{''.join(_quote(example.quote))}</li>"
    )


def _quote(said: Quote | None) -> Iterator[str]:
    yield f"<br><small>{html.escape(quote_kind(said))}</small>"
    if said is not None:
        yield f"<blockquote>{html.escape(said.words)}</blockquote>"
        if said.note:
            yield f"<small>note: {html.escape(said.note)}</small>"
