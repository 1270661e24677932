"""The results of a survey as one HTML page that needs nothing but itself."""

from collections.abc import Sequence
from importlib.resources import files

from calibration.tables.spec import Table
from calibration.writers.html import REPORT, html_table

TITLE = "Survey of the taxonomy"
NONE_YET = "<p>No round was opened yet.</p>"


def survey_page(tables: Sequence[Table]) -> str:
    """Return the tables of a survey as a page; no script, no font, no network."""
    style = (files("calibration.report") / "style.css").read_text("utf-8")
    body = "".join(f"<section>{html_table(table, REPORT)}</section>" for table in tables)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{TITLE}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{style}</style></head><body><main><h1>{TITLE}</h1>{body or NONE_YET}</main></body></html>\n"
    )
