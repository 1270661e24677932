"""The validated rubric prompt: what stands behind it, then its files for an evaluation tool."""

import io
import zipfile
from collections.abc import Mapping, Sequence

import streamlit as st
from sqlalchemy import Engine

from annotate import compute, draw
from annotate.screens import frame
from annotate.screens.controls import chosen_rubric, panels_heard
from annotate.screens.frame import show_heading, show_text
from calibration.tables.numbers import fixed, icc_interval
from data.person import Person
from data.rubric import Rubric
from data.safe_text import on_page
from data.study import rubrics
from data.study.rubrics import JuryValidation
from jury.panel import read_panel
from medjury.services.pairs import margin_unit
from medjury.services.record import protocol_of
from medjury.services.rubric_export import (
    EXPORT_FORMATS,
    RubricExport,
    RubricFiles,
    exported_rubric,
    tools,
)

NONE_YET = "No jury was compared with clinicians on exactly this rubric."
TODO = (
    "Rate a benchmark on this rubric by clinicians and a jury, and freeze the report under Monitor."
)
COMPARED = "Which juries were compared with clinicians on exactly this rubric, and how did they do?"
FROM = (
    "Frozen reports name the rubric by its hash. The ledger counts every analysis of a jury; it keeps "
    "no intervals."
)
ABOUT = "May this rubric's prompt be used by a jury elsewhere, and what shows that?"
ABOUT_EVIDENCE = {
    "Source": "A frozen report, or the ledger that counts every analysis of a jury",
    "ICC(C,2)": "Agreement of the jury with the mean of the clinicians, with its 95 % interval",
    "Like for like": (
        "The jury's agreement with the other clinicians less a clinician's, with its 95 % interval"
    ),
    "Responses": "Rated by the jury and by clinicians",
}
STATED = (
    "An export says validated only if clinicians' ratings on exactly this rubric meet the "
    "study's protocol and no rater is simulated. The protocol is fixed under Set up, Goal."
)
FILES = "rubric-files"
MAKING = "The agreement of this panel is being computed, then the files are written"
ABOUT_EXPORT = (
    "The figures are computed anew from this jury's ratings on exactly this rubric. The "
    "files say validated only if the study's protocol is met (see below); otherwise they "
    "say not validated, with every reason."
)
NO_PANEL = (
    "A jury is exported as a panel, and no panel has rated in this study with all its jurors."
)
PANELS_TODO = "Run a panel under Jury. Imported scores have no settings to export."


def show(engine: Engine, person: Person) -> None:
    """Ask which rubric, for whom and with which panel; make its files, and show its evidence."""
    show_heading("Rubric prompt", ABOUT)
    which, *others = st.columns((3, 3, 2, 2), vertical_alignment="bottom")
    with which:
        rubric = chosen_rubric(engine, person)
    show_export(engine, person, rubric, others)
    show_evidence(engine, person, rubric)


def show_evidence(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Show the evidence, and what the study asks of it."""
    show_heading("Evidence", COMPARED)
    validations = rubrics.validations(person, engine, rubric.sha256)
    if validations:
        frame.show_rows(COMPARED, list(map(_evidence, validations)), ABOUT_EVIDENCE)
        st.caption(FROM)
    else:
        frame.empty(NONE_YET, TODO)
    with st.expander("When this study calls a jury valid"):
        show_text(STATED)
        draw.protocol(protocol_of(engine), margin_unit(engine))


def _evidence(found: JuryValidation) -> dict[str, object]:
    """Return a jury's row in the table of those compared on a rubric."""
    times = "once" if found.times == 1 else f"{found.times} times"
    source = f"ledger, {times}" if found.report is None else f"report {found.report} {found.name}"
    return {
        "Jury": ", ".join(found.jurors),
        "On": f"{found.benchmark}, {found.criterion or 'composite'}, method {found.method}",
        "ICC(C,2)": _with_ends(found.icc, found.low, found.high),
        "Like for like": _with_ends(*found.like_for_like),
        "Responses": found.n_responses,
        "Raters": "simulated" if found.simulated else "real",
        "Source": source.strip(),
        "Last (UTC)": found.at,
    }


def _with_ends(value: float | None, low: float | None, high: float | None) -> str:
    ends = icc_interval(low, high, 2)
    return fixed(value, 2) + (f" ({ends})" if ends else "")


def show_export(
    engine: Engine,
    person: Person,
    rubric: Rubric,
    places: Sequence["st.delta_generator.DeltaGenerator"],
) -> None:
    """Ask for whom and with which panel; make the files and say what they say."""
    panels = panels_heard(engine, person)
    if not panels:
        frame.empty(NO_PANEL, PANELS_TODO)
        return
    st.caption(ABOUT_EXPORT)
    tool, panel, press = places
    to = tool.selectbox(
        "For", tools(), format_func=lambda name: EXPORT_FORMATS[name].label, key="to"
    )
    panel_name = panel.selectbox("Panel", [*panels], key="panel")
    if press.button("Make the files", type="primary", width="stretch"):
        st.session_state.pop(FILES, None)
        request = RubricExport(
            rubric.to_json(), read_panel(panels[panel_name].panel or panel_name), to
        )
        coming = compute.ask(person, engine, exported_rubric, request)
        name = f"{rubric.name}-{rubric.sha256[:12]}-{to}.zip"
        made = frame.computed(coming, MAKING)
        if made is not None:
            st.session_state[FILES] = rubric.sha256, name, made
    sha256, *archive = st.session_state.get(FILES, ("",))
    if sha256 == rubric.sha256:
        _handed(*archive)


def _handed(name: str, exported: RubricFiles) -> None:
    """Show what the files say of their evidence, and hand them over."""
    if exported.validated:
        st.success("**Validated**")
    else:
        st.warning("**Not validated**")
    why = (*exported.reasons, *exported.caveats)
    st.markdown("\n".join(f"- {on_page(reason)}" for reason in why))
    archive = _zipped(exported.files)
    st.download_button("Save the files", archive, name, "application/zip", on_click="ignore")


def _zipped(texts: Mapping[str, str]) -> bytes:
    """Return an archive of texts by file name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            archive.writestr(name, text)
    return out.getvalue()
