"""A rubric with its jury and its evidence as files for other tools."""

import html
import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate import jury_panels, worker
from data import queries
from data.errors import MedjuryError
from data.person import Person
from data.rubric import Rubric
from jury.panel import read_panel
from medjury.services.rubric_export import ExportedRubric, RubricExport, exported_rubric, tools

LABELS = {
    "medjury": "medjury, with all evidence",
    "helm": "HELM",
    "inspect": "Inspect",
    "promptfoo": "promptfoo",
    "openai": "OpenAI graders",
    "mlflow": "MLflow",
}
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
class Archive:
    """The files of a rubric as an archive, and what they say of its jury."""

    sha256: str
    name: str
    exported: ExportedRubric


def show(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Ask for whom and with which panel; make the files and say what they say."""
    st.html(f'<p class="mj-said">{html.escape(ABOUT)}</p>')
    places = jury_panels.places(queries.own_panels(person, engine))
    panels = _heard(places, queries.jurors_heard(person, engine))
    if not panels:
        st.html(f'<p class="mj-said"><b>{html.escape(NO_PANEL)}</b> {html.escape(PANELS_TODO)}</p>')
        return
    tool, panel, press = st.columns((2, 2, 1), vertical_alignment="bottom")
    to = tool.selectbox("For", tools(), format_func=LABELS.__getitem__, key="to")
    who = panel.selectbox("Panel", panels, key="panel")
    if press.button("Make the files", type="primary", width="stretch"):
        st.session_state.pop(FILES, None)
        asked = RubricExport(rubric.to_json(), read_panel(places[who]), to)
        coming = worker.ask(person, engine, exported_rubric, asked)
        name = f"{rubric.name}-{rubric.sha256[:12]}-{to}.zip"
        try:
            with st.spinner("The files are being made", show_time=True):
                st.session_state[FILES] = Archive(rubric.sha256, name, coming.result())
        except MedjuryError as error:
            st.html(f'<p class="mj-refused" role="alert">{html.escape(str(error))}</p>')
    made = st.session_state.get(FILES)
    if made is not None and made.sha256 == rubric.sha256:
        _handed(made)


def _handed(made: Archive) -> None:
    """Show what the files say of their evidence, and hand them over."""
    exported = made.exported
    kind, status = (
        ("mj-well", "Validated") if exported.validated else ("mj-warned", "Not validated")
    )
    reasons = (*exported.reasons, *exported.caveats)
    told = "".join(f"<p>{html.escape(one)}</p>" for one in reasons)
    st.html(f'<div class="mj-verdict {kind}" role="status"><b>{status}</b>{told}</div>')
    archive = _zipped(exported.files)
    st.download_button("Save the files", archive, made.name, "application/zip", on_click="ignore")


def _heard(places: Mapping[str, str], heard: Sequence[str]) -> list[str]:
    """Return the panels of which all jurors were heard."""
    return [
        name
        for name, place in places.items()
        if {one.name for one in read_panel(place).juror} <= {*heard}
    ]


def _zipped(texts: Mapping[str, str]) -> bytes:
    """Return an archive of texts by file name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            archive.writestr(name, text)
    return out.getvalue()
