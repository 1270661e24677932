"""The report of the agreement on the screen, as files: the command writes them."""

from collections import OrderedDict
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import streamlit as st
from sqlalchemy import Engine

from annotate import commands
from annotate.screens import frame
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.queries.version import version
from data.schema import Role

KEPT = 8
FILES = {
    "html": ("Report to read and print", "text/html"),
    "markdown": ("Table as Markdown", "text/markdown"),
    "csv": ("Table as CSV", "text/csv"),
    "latex": ("Table for LaTeX", "text/plain"),
}
ENDS = {"html": "html", "markdown": "md", "csv": "csv", "latex": "tex"}
ABOUT = (
    "One HTML file with all of this page, which needs no network and can be kept for years; and "
    "the table of every scorer in three forms. They are of what is chosen above."
)
_written: OrderedDict[tuple[object, ...], dict[str, str]] = OrderedDict()
_lock = Lock()


def show(engine: Engine, person: Person, asked: tuple[str, ...]) -> None:
    """Offer the report of what is asked for; it is made when it is wanted."""
    st.html(f'<h2 class="mj-part">Report</h2><p class="mj-lead">{ABOUT}</p>')
    key = (engine.url, version(engine), asked)
    if key not in _written and not st.button("Make the report", type="primary", key="make-report"):
        return
    try:
        with st.spinner("medjury calibrate is writing the report", show_time=True):
            texts = write(person, engine, asked)
    except MedjuryError as error:
        frame.empty(str(error))
        return
    with st.container(horizontal=True, gap="small"):
        for name, (label, mime) in FILES.items():
            to = f"agreement.{ENDS[name]}"
            st.download_button(label, texts[name], to, mime, key=f"file-{name}", on_click="ignore")


@only(Role.RESEARCHER, Role.COORDINATOR)
def write(person: Person, engine: Engine, asked: tuple[str, ...]) -> dict[str, str]:
    """Return the texts of the four files, made once for an unchanged study."""
    key = (engine.url, version(engine), asked)
    with _lock:
        if key not in _written:
            _written[key] = _made(engine, asked)
        while len(_written) > KEPT:
            _written.popitem(last=False)
        return _written[key]


def _made(engine: Engine, asked: tuple[str, ...]) -> dict[str, str]:
    """Have the command write into a folder that is gone afterwards."""
    with TemporaryDirectory() as folder:
        places = {name: Path(folder, f"report.{end}") for name, end in ENDS.items()}
        named = [f"--{name}={to}" for name, to in places.items()]
        ran = commands.run(engine, "calibrate", *asked, *named)
        if ran.returncode:
            raise BadInput(commands.refusal(ran) or "medjury calibrate ended without a report")
        return {name: to.read_text("utf-8") for name, to in places.items()}
