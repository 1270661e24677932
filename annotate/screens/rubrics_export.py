"""A rubric with its jury and its evidence as files for other tools, made by the command line."""

import html
import io
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import streamlit as st
from sqlalchemy import Engine

from annotate import commands
from annotate.screens.monitoring_controls import panel_places
from data import queries
from data.errors import BadInput, MedjuryError
from data.person import Person, only
from data.rubric import Rubric
from data.rubrics.files import write_rubrics
from data.schema import Role

MODULES = {
    "medjury": ("bundle", "medjury, with all evidence"),
    "helm": ("helm", "HELM"),
    "inspect": ("inspect", "Inspect"),
    "promptfoo": ("promptfoo", "promptfoo"),
    "openai": ("openai_grader", "OpenAI graders"),
    "mlflow": ("mlflow_judge", "MLflow"),
}
STATUS = ("VALIDATED", "NOT VALIDATED")
FILES = "rubric-files"
ABOUT = (
    "The figures are computed anew from the ratings on exactly this rubric by this jury. The files "
    "say validated only where the study's stated criterion is met (see Evidence), and otherwise "
    "not validated, with every reason."
)
NO_PANEL = "A jury is exported by its panel: no panel was heard whole in this study."
PANELS_TODO = (
    "Run a panel in the Jury lab; scores brought in from elsewhere have no settings to export."
)


@dataclass(frozen=True, slots=True)
class Exported:
    """The files as an archive, and what the command said of their evidence."""

    name: str
    status: str
    reasons: tuple[str, ...]
    archive: bytes


def show(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Ask for whom and with which panel; make the files and say what they say."""
    st.html(f'<p class="mj-said">{html.escape(ABOUT)}</p>')
    places = panel_places(queries.own_panels(person, engine))
    panels = _heard(places, queries.jurors_heard(person, engine))
    if not panels:
        st.html(f'<p class="mj-said"><b>{html.escape(NO_PANEL)}</b> {html.escape(PANELS_TODO)}</p>')
        return
    there = [name for name, (module, _) in MODULES.items() if find_spec(f"jury.exports.{module}")]
    tool, panel, press = st.columns((2, 2, 1), vertical_alignment="bottom")
    to = tool.selectbox("For", there, format_func=lambda name: MODULES[name][1], key="to")
    who = panel.selectbox("Panel", panels, key="panel")
    if press.button("Make the files", type="primary", width="stretch"):
        st.session_state.pop(FILES, None)
        try:
            with st.spinner("medjury rubric export is at work", show_time=True):
                st.session_state[FILES] = (
                    rubric.sha256,
                    _made(person, engine, rubric, (to, places[who])),
                )
        except MedjuryError as error:
            st.html(f'<p class="mj-refused" role="alert">{html.escape(str(error))}</p>')
    sha256, made = st.session_state.get(FILES, ("", None))
    if made is not None and sha256 == rubric.sha256:
        _handed(made)


def _handed(made: Exported) -> None:
    """Show what the files say of their evidence, and hand them over."""
    kind = "mj-well" if made.status == "VALIDATED" else "mj-warned"
    told = "".join(f"<p>{html.escape(one)}</p>" for one in made.reasons)
    st.html(
        f'<div class="mj-verdict {kind}" role="status"><b>{html.escape(made.status.capitalize())}'
        f"</b>{told}</div>"
    )
    st.download_button(
        "Save the files", made.archive, made.name, "application/zip", on_click="ignore"
    )


def _heard(places: Mapping[str, str], heard: Sequence[str]) -> list[str]:
    """Return the panels of which all jurors were heard."""
    from jury.panel import read_panel

    return [
        name
        for name, place in places.items()
        if {one.name for one in read_panel(place).juror} <= {*heard}
    ]


@only(Role.RESEARCHER, Role.COORDINATOR)
def _made(_: Person, engine: Engine, rubric: Rubric, asked: tuple[str, str]) -> Exported:
    """Run the command into a folder that is gone afterwards; its words are the rubric's own."""
    to, panel = asked
    with tempfile.TemporaryDirectory(prefix="medjury-export-") as place:
        write_rubrics(Path(place) / "in", {rubric.name: rubric})
        out = Path(place) / "out"
        words = str(Path(place) / "in" / rubric.name)
        said = _run(
            engine, "rubric", "export", words, "--to", to, "--panel", panel, "--out", str(out)
        )
        status = next((line for line in said if line in STATUS), "NOT VALIDATED")
        reasons = tuple(line.removeprefix("- ") for line in said if line.startswith("- "))
        name = f"{rubric.name}-{rubric.sha256[:12]}-{to}.zip"
        return Exported(name, status, reasons, _zipped(out))


def _run(engine: Engine, *arguments: str) -> list[str]:
    """Run a command; return the lines it said, none of them broken."""
    ran = commands.run(engine, *arguments, columns=1000)
    if ran.returncode == commands.USER_ERROR:
        raise BadInput(commands.refusal(ran) or "it was refused")
    if ran.returncode:
        raise MedjuryError("medjury rubric export ended without files; the server's log says why")
    return ran.stdout.splitlines()


def _zipped(folder: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return out.getvalue()
