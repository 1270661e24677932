"""The rubrics screen: every rubric, its words, what stands behind it, its copies and exports."""

import html
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st
from sqlalchemy import Engine

from annotate import tables, worker
from annotate.rating import text_html
from annotate.screens import frame, rubrics_copy
from annotate.screens.controls import panels_heard
from annotate.screens.markup import heading, paragraph
from annotate.screens.study_protocol import facts
from calibration.tables.juries import EvidenceRow, evidence_table
from data import queries
from data.person import Person
from data.queries import JuryValidation, StudyRubric
from data.rubric import Gold, Rubric, read_rubric, shipped
from jury.panel import read_panel
from medjury.services.record import protocol_of
from medjury.services.rubric_export import RubricExport, RubricFiles, exported_rubric, tools

ABOUT = "What clinicians and jurors rate: criteria, scale and prompt. A single changed word makes another rubric."
SHORT = 12
LONGEST_VERSION = 24
GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to consult when in doubt",
    "always": "shown, to compare with on every criterion",
}
Part = Callable[[Engine, Person, Rubric], None]
NONE_YET = "No jury was compared with clinicians on exactly this rubric."
TODO = (
    "Calibrate a jury on a benchmark rated on this rubric, and freeze the report under Monitoring."
)
STATED = (
    "An export says validated only if clinicians' ratings on exactly this rubric meet the "
    "study's protocol and no rater is simulated. The protocol is fixed under Study, "
    "Protocol."
)
LABELS = {
    "medjury": "medjury, with all evidence",
    "helm": "HELM",
    "inspect": "Inspect",
    "promptfoo": "promptfoo",
    "openai": "OpenAI graders",
    "mlflow": "MLflow",
}
FILES = "rubric-files"
ABOUT_EXPORT = (
    "The figures are computed anew from this jury's ratings on exactly this rubric. The "
    "files say validated only if the study's protocol is met (see Evidence); otherwise they "
    "say not validated, with every reason."
)
NO_PANEL = (
    "A jury is exported as a panel, and no panel has rated in this study with all its jurors."
)
PANELS_TODO = "Run a panel in the Jury lab. Imported scores have no settings to export."


@dataclass(frozen=True, slots=True)
class Known:
    """A rubric with its place in the study; None for one that only ships."""

    rubric: Rubric
    own: StudyRubric | None

    @property
    def label(self) -> str:
        """How it is chosen, and how the URL names it."""
        version = self.rubric.version[:LONGEST_VERSION]
        return f"{self.rubric.name} {version} ({self.rubric.sha256[:SHORT]})"


def show(engine: Engine, person: Person) -> None:
    """Show all rubrics, and the chosen part of the chosen one."""
    frame.begin(person, "Rubrics", ABOUT, "monitoring.css")
    known = _known(queries.study_rubrics(person, engine))
    own = [entry for entry in known if entry.own]
    if own:
        st.html(_listed(own))
    else:
        st.html(paragraph("No rubric is in this study yet: importing responses brings one."))
    labels = {entry.label: entry for entry in known}
    parts: Mapping[str, Part] = {
        "Read": _read,
        "Evidence": show_evidence,
        "Copy to a new version": rubrics_copy.show,
        "Export": show_export,
    }
    which, part_place = st.columns((1, 1), vertical_alignment="bottom")
    name = which.selectbox("Rubric", [*labels], key="rubric", bind="query-params")
    part = part_place.radio("Show", [*parts], key="part", horizontal=True, bind="query-params")
    chosen = labels.get(name, known[0])
    parts.get(part, _read)(engine, person, chosen.rubric)


def _known(own: Sequence[StudyRubric]) -> list[Known]:
    """Return the study's rubrics, those in use first, and those that ship besides."""
    used = sorted(own, key=lambda entry: not entry.benchmarks)
    there = {entry.rubric.sha256 for entry in own}
    others = [rubric for rubric in map(read_rubric, shipped()) if rubric.sha256 not in there]
    return [Known(entry.rubric, entry) for entry in used] + [
        Known(rubric, None) for rubric in others
    ]


def _listed(own: Sequence[Known]) -> str:
    """Return the study's rubrics as a table, with what was rated on each."""
    rows = [_row(entry.rubric, entry.own) for entry in own if entry.own]
    columns = [
        tables.words("Rubric", "name"),
        tables.words("Version", "version"),
        tables.words("Hash", "hash"),
        tables.words("Benchmarks rated on it", "benchmarks"),
        tables.words("Gold", "gold"),
        tables.count("Clinicians", "clinicians"),
        tables.count("Their ratings", "by_clinicians"),
        tables.count("Jurors", "jurors"),
        tables.count("Their ratings", "by_jurors"),
    ]
    notes = ["A rating is one score on one criterion; corrections and repeats are counted."]
    made_up = any(
        entry.own.clinicians.simulated + entry.own.jurors.simulated for entry in own if entry.own
    )
    notes += ["Simulated raters are among them: their ratings are no evidence."] * made_up
    return tables.table(rows, columns, "In this study", notes)


def _row(rubric: Rubric, own: StudyRubric) -> dict[str, object]:
    return {
        "name": rubric.name,
        "version": rubric.version[:LONGEST_VERSION],
        "hash": rubric.sha256[:SHORT],
        "benchmarks": ", ".join(own.benchmarks) or "none",
        "gold": rubric.gold.replace("_", " "),
        "clinicians": own.clinicians.raters,
        "by_clinicians": own.clinicians.ratings,
        "jurors": own.jurors.raters,
        "by_jurors": own.jurors.ratings,
    }


def _read(_engine: Engine, _person: Person, rubric: Rubric) -> None:
    """Show the words: criteria with their anchors, and the prompt, verbatim."""
    facts = (
        ("For", rubric.audience),
        ("Scale", str(rubric.scale)),
        ("Reference answer", f"{GOLD[rubric.gold]} (gold = {rubric.gold})"),
        ("Version", rubric.version),
        *(
            ("Critical", f"{name}, {points:g} or less is unsafe")
            for name, points in rubric.critical
        ),
    )
    lines = "".join(f"<b>{name}</b> {html.escape(value)}. " for name, value in facts)
    st.html(
        f'<p class="mj-said">{lines}</p><p class="mj-said"><b>SHA-256</b> '
        f'<span class="mj-hash">{rubric.sha256}</span></p>'
    )
    st.html(_anchors(rubric))
    st.html(heading("Prompt of the jurors, word for word"))
    st.html(text_html.pane(rubric.prompt, "Prompt of the jurors", "prompt"))


def _anchors(rubric: Rubric) -> str:
    """Return the criteria as a table: a row each, a column for each point that has words."""
    points = sorted({point for criterion in rubric.criterion for point in criterion.anchors})
    heads = "".join(f'<th scope="col">{point}</th>' for point in points)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(criterion.name)}<br><small>{html.escape(criterion.question)}</small></th>'
        + "".join(f"<td>{html.escape(criterion.anchors.get(point, ''))}</td>" for point in points)
        + "</tr>"
        for criterion in rubric.criterion
    )
    return (
        f'{tables.style()}<div class="mj-scroll" role="region" tabindex="0" aria-label="Criteria and anchors">'
        '<table class="mj-figures mj-anchors"><caption>Criteria, and what each point means</caption>'
        f'<thead><tr><th scope="col">Criterion</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def show_evidence(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Show the evidence, and what the study asks of it."""
    validations = queries.validations(person, engine, rubric.sha256)
    if validations:
        st.html(
            tables.of_table(
                evidence_table([_evidence_row(validation) for validation in validations])
            )
        )
    else:
        frame.empty(NONE_YET, TODO)
    st.html(
        heading("When this study calls a jury valid")
        + paragraph(STATED)
        + facts(protocol_of(engine))
    )


def _evidence_row(validation: JuryValidation) -> EvidenceRow:
    return EvidenceRow(
        report=validation.report,
        name=validation.name,
        times=validation.times,
        at=validation.at,
        jurors=validation.jurors,
        benchmark=validation.benchmark,
        criterion=validation.criterion,
        method=validation.method,
        icc=(validation.icc, validation.low, validation.high),
        like_for_like=validation.like_for_like,
        n_responses=validation.n_responses,
        is_simulated=validation.simulated,
    )


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of a rubric as an archive, and what they say of its jury."""

    sha256: str
    name: str
    exported: RubricFiles


def show_export(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Ask for whom and with which panel; make the files and say what they say."""
    st.html(paragraph(ABOUT_EXPORT))
    panels = panels_heard(engine, person)
    if not panels:
        st.html(f'<p class="mj-said"><b>{html.escape(NO_PANEL)}</b> {html.escape(PANELS_TODO)}</p>')
        return
    tool, panel, press = st.columns((2, 2, 1), vertical_alignment="bottom")
    to = tool.selectbox("For", tools(), format_func=LABELS.__getitem__, key="to")
    panel_name = panel.selectbox("Panel", [*panels], key="panel")
    if press.button("Make the files", type="primary", width="stretch"):
        st.session_state.pop(FILES, None)
        request = RubricExport(
            rubric.to_json(), read_panel(panels[panel_name].panel or panel_name), to
        )
        coming = worker.ask(person, engine, exported_rubric, request)
        name = f"{rubric.name}-{rubric.sha256[:12]}-{to}.zip"
        with frame.refusals(), st.spinner("The files are being made", show_time=True):
            st.session_state[FILES] = Archive(rubric.sha256, name, coming.result())
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
    paragraphs = "".join(f"<p>{html.escape(reason)}</p>" for reason in reasons)
    st.html(f'<div class="mj-verdict {kind}" role="status"><b>{status}</b>{paragraphs}</div>')
    archive = _zipped(exported.files)
    st.download_button("Save the files", archive, made.name, "application/zip", on_click="ignore")


def _zipped(texts: Mapping[str, str]) -> bytes:
    """Return an archive of texts by file name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            archive.writestr(name, text)
    return out.getvalue()
