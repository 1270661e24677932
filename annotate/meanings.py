"""The page that says what the figures mean; headings of tables link to it."""

import html
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route

from calibration.tables.meanings import MEANINGS, Meaning
from calibration.writers.html import anchor

PATH = "/meanings"


def routes() -> list[Route]:
    """Return the page; whoever is signed in may read it."""

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(page_html())

    return [Route(PATH, page)]


def page_html() -> str:
    """Return every meaning, in the order of the alphabet."""
    template = (files("annotate") / "meanings.html").read_text("utf-8")
    names = sorted(MEANINGS, key=str.casefold)
    return template.replace("{{meanings}}", "".join(_entry(name, MEANINGS[name]) for name in names))


def _entry(name: str, meaning: Meaning) -> str:
    sentence = html.escape(meaning.sentence)
    more = f"<small>More in medjury's documentation: {meaning.page}.</small>"
    return f'<dt id="{anchor(name)}">{html.escape(name)}</dt><dd>{sentence} {more}</dd>'
