"""The paper's pages as files: one HTML page of all, and CSV, LaTeX and SVG of each."""

import base64
import csv
import hashlib
import html
import io
from collections.abc import Iterator, Mapping
from typing import Any

from calibration.messages.form import listed
from calibration.messages.paper import (
    ABSENT,
    DIFFERS,
    SIMULATED,
    TITLES,
    measured_words,
    published_words,
)
from calibration.paper.values import Differs, Drawing, PaperPage, PaperPages
from calibration.report.chart_comparisons import COST, chart_heatmap, chart_model_costs
from calibration.report.chart_style import svg
from calibration.tables.numbers import known
from calibration.writers.html import Classes, html_table
from calibration.writers.latex import latex_table
from data.safe_text import guarded_name

INDEX = "index.html"
CLASSES = Classes("scroll", "", "words", "group", "notes", "folded")
STYLE = """
:root { --ink: #1c2126; --soft: #4d5761; --line: #c9d0d6; }
body { margin: 0; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .4rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .4rem; }
p { margin: .4rem 0; } .soft, .notes { color: var(--soft); font-size: .9rem; }
.simulated { background: #a01c28; color: #fff; font-weight: 700; padding: .4rem 1rem;
  text-align: center; }
.scroll { overflow-x: auto; margin: .6rem 0; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: right; padding: .3rem .7rem; border-top: 1px solid var(--line); }
td:not(.words) { white-space: nowrap; }
th:first-child, td:first-child, .words { text-align: left; } ul { padding-left: 1.2rem; }
@media print { .simulated { color: #000; background: #fff; border: 2px solid #000; }
  section { break-inside: avoid; } }
"""
STYLE_HASH = "sha256-" + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


def paper_files(pages: PaperPages) -> dict[str, str]:
    """Return name -> content: index.html, and of every page that shows something its files."""
    files = {INDEX: paper_html(pages)}
    for page in pages.pages:
        if page.absent is None:
            files[f"{page.page}.csv"] = page_csv(page)
            for number, table in enumerate(page.tables, start=1):
                several = f"_{number}" if len(page.tables) > 1 else ""
                caption = f"{TITLES[page.page]}. {table.caption}"
                files[f"{page.page}{several}.tex"] = latex_table(table, _marked(page, caption))
            if drawn := drawing(page):
                files[f"{page.page}.svg"] = _own_file(drawn)
    return files


def page_csv(page: PaperPage) -> str:
    """Return a page's figures in full precision; an undefined one is an empty cell."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([*page.columns, "simulated"])
    for row in page.rows:
        writer.writerow([*map(_cell, row), int(bool(page.simulated))])
    return out.getvalue()


def drawing(page: PaperPage) -> str:
    """Return a page's picture as SVG, "" where it has none."""
    if page.drawing is None or page.absent is not None:
        return ""
    title = _marked(page, TITLES[page.page])
    rows = [dict(zip(page.columns, row, strict=True)) for row in page.rows]
    if page.drawing is Drawing.COSTS:
        cost = f"{COST}, made up" if Differs.MADE_UP_COSTS in page.differs else COST
        drawn = chart_model_costs([row for row in rows if _whole(row)], cost)
        return svg(drawn, page.page, title)
    return svg(chart_heatmap([_drawn(row) for row in rows], "Mean, 0 to 1"), page.page, title)


def paper_html(pages: PaperPages) -> str:
    """Return all pages as one that prints and asks no other place for anything."""
    mark = f'<div class="simulated" role="note">{SIMULATED}</div>' if pages.simulated else ""
    name = "The MedHELM paper's tables and figures"
    title = f"SIMULATED. {name}" if pages.simulated else name
    kind = "leaderboard" if pages.is_leaderboard else "study"
    lines = [
        f"From the {kind} {pages.source}, made {pages.made}.",
        measured_words(pages),
        published_words(pages),
    ]
    lines += [f"Simulated raters: {listed(pages.simulated)}."] if pages.simulated else []
    head = "".join(f"<p>{html.escape(line)}</p>" for line in (*lines, *pages.told) if line)
    csp = f"default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{csp}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>{mark}<main>"
        f"<h1>{html.escape(title)}</h1>{head}{''.join(map(_section, pages.pages))}"
        "</main></body></html>\n"
    )


def _section(page: PaperPage) -> str:
    body = "".join(_parts(page))
    name = html.escape(_marked(page, TITLES[page.page]))
    return f'<section id="{page.page}"><h2>{name}</h2>{body}</section>'


def _parts(page: PaperPage) -> Iterator[str]:
    if page.absent is not None:
        yield f"<p>{html.escape(ABSENT[page.absent])}</p>"
        return
    yield drawing(page)
    yield from (html_table(table, CLASSES) for table in page.tables)
    items = "".join(f"<li>{html.escape(DIFFERS[code])}</li>" for code in page.differs)
    if items:
        yield f'<p class="soft">What differs from the paper:</p><ul class="notes">{items}</ul>'


def _marked(page: PaperPage, text: str) -> str:
    return f"Simulated. {text}" if page.simulated else text


def _own_file(drawn: str) -> str:
    """Return an SVG element as a file of its own."""
    spaced = 'xmlns="http://www.w3.org/2000/svg"'
    whole = (
        drawn if "xmlns=" in drawn.split(">", 1)[0] else drawn.replace("<svg", f"<svg {spaced}", 1)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'


def _whole(row: Mapping[str, Any]) -> bool:
    return known(row["usd"]) and known(row["win_rate"])


def _drawn(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a heatmap as the chart takes it."""
    value = row["mean"] if known(row["mean"]) else None
    if "benchmark" in row:  # there are many: they stand below one another
        return {"model": row["benchmark"], "place": row["model"], "value": value}
    return {"model": row["model"], "place": row["category"], "value": value}


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return guarded_name(value)
    return value if known(value) else ""
