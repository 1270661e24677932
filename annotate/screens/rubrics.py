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
from annotate.screens.markup import heading, said
from annotate.screens.study_protocol import facts
from calibration.tables.evidence import EvidenceRow, evidence_table
from data import queries
from data.person import Person
from data.queries import StudyRubric, Validation
from data.rubric import Gold, Rubric, read_rubric, shipped
from jury.panel import read_panel
from medjury.services.record import protocol_of
from medjury.services.rubric_export import ExportedRubric, RubricExport, exported_rubric, tools

ABOUT = "The words that clinicians and jurors rate on. One word changed makes another rubric."
SHORT = 12
LONGEST_VERSION = 24
GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to be turned to when in doubt",
    "always": "shown, to be compared with on every criterion",
}
Part = Callable[[Engine, Person, Rubric], None]
NONE_YET = "No jury was compared with clinicians on exactly this rubric."
TODO = (
    "Calibrate a jury on a benchmark rated on this rubric, and freeze the report under Monitoring."
)
STATED = (
    "An export says validated only where clinicians' ratings on exactly this rubric show what the "
    "study's protocol asks for, and no simulated rater takes part. The protocol is fixed on Study."
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
    "The figures are computed anew from the ratings on exactly this rubric by this jury. The files "
    "say validated only where the study's stated criterion is met (see Evidence), and otherwise "
    "not validated, with every reason."
)
NO_PANEL = "A jury is exported by its panel: no panel was heard whole in this study."
PANELS_TODO = (
    "Run a panel in the Jury lab; scores brought in from elsewhere have no settings to export."
)


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
    own = [one for one in known if one.own]
    if own:
        st.html(_listed(own))
    else:
        st.html(said("No rubric is in this study yet: importing responses brings one."))
    labels = {one.label: one for one in known}
    parts: Mapping[str, Part] = {
        "Read": _read,
        "Evidence": show_evidence,
        "Copy to a new version": rubrics_copy.show,
        "Export": show_export,
    }
    which, what = st.columns((1, 1), vertical_alignment="bottom")
    name = which.selectbox("Rubric", [*labels], key="rubric", bind="query-params")
    part = what.radio("Show", [*parts], key="part", horizontal=True, bind="query-params")
    chosen = labels.get(name, known[0])
    parts.get(part, _read)(engine, person, chosen.rubric)


def _known(own: Sequence[StudyRubric]) -> list[Known]:
    """Return the study's rubrics, those in use first, and those that ship besides."""
    used = sorted(own, key=lambda one: not one.benchmarks)
    there = {one.rubric.sha256 for one in own}
    others = [one for one in map(read_rubric, shipped()) if one.sha256 not in there]
    return [Known(one.rubric, one) for one in used] + [Known(one, None) for one in others]


def _listed(own: Sequence[Known]) -> str:
    """Return the study's rubrics as a table, with what was rated on each."""
    rows = [_row(one.rubric, one.own) for one in own if one.own]
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
    notes = ["Ratings are scores on one criterion, corrected ones and repeats too."]
    made_up = any(one.own.clinicians.simulated + one.own.jurors.simulated for one in own if one.own)
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
    told = "".join(f"<b>{name}</b> {html.escape(value)}. " for name, value in facts)
    st.html(
        f'<p class="mj-said">{told}</p><p class="mj-said"><b>SHA-256</b> '
        f'<span class="mj-hash">{rubric.sha256}</span></p>'
    )
    st.html(_anchors(rubric))
    st.html(heading("Prompt of the jurors, word for word"))
    st.html(text_html.pane(rubric.prompt, "Prompt of the jurors", "prompt"))


def _anchors(rubric: Rubric) -> str:
    """Return the criteria as a table: a row each, a column for each point that has words."""
    points = sorted({point for one in rubric.criterion for point in one.anchors})
    heads = "".join(f'<th scope="col">{point}</th>' for point in points)
    rows = "".join(
        f'<tr><th scope="row">{html.escape(one.name)}<br><small>{html.escape(one.question)}</small></th>'
        + "".join(f"<td>{html.escape(one.anchors.get(point, ''))}</td>" for point in points)
        + "</tr>"
        for one in rubric.criterion
    )
    return (
        f'{tables.style()}<div class="mj-scroll" role="region" tabindex="0" aria-label="Criteria and anchors">'
        '<table class="mj-figures mj-anchors"><caption>Criteria, and what each point means</caption>'
        f'<thead><tr><th scope="col">Criterion</th>{heads}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def show_evidence(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Show the evidence, and what the study asks of it."""
    found = queries.validations(person, engine, rubric.sha256)
    if found:
        st.html(tables.of_table(evidence_table([_evidence_row(one) for one in found])))
    else:
        frame.empty(NONE_YET, TODO)
    st.html(heading("What this study calls valid") + said(STATED) + facts(protocol_of(engine)))


def _evidence_row(one: Validation) -> EvidenceRow:
    return EvidenceRow(
        report=one.report,
        name=one.name,
        times=one.times,
        at=one.at,
        jurors=one.jurors,
        benchmark=one.benchmark,
        criterion=one.criterion,
        method=one.method,
        icc=(one.icc, one.low, one.high),
        like_for_like=one.like_for_like,
        n_responses=one.n_responses,
        is_simulated=one.simulated,
    )


@dataclass(frozen=True, slots=True)
class Archive:
    """The files of a rubric as an archive, and what they say of its jury."""

    sha256: str
    name: str
    exported: ExportedRubric


def show_export(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Ask for whom and with which panel; make the files and say what they say."""
    st.html(said(ABOUT_EXPORT))
    panels = panels_heard(engine, person)
    if not panels:
        st.html(f'<p class="mj-said"><b>{html.escape(NO_PANEL)}</b> {html.escape(PANELS_TODO)}</p>')
        return
    tool, panel, press = st.columns((2, 2, 1), vertical_alignment="bottom")
    to = tool.selectbox("For", tools(), format_func=LABELS.__getitem__, key="to")
    who = panel.selectbox("Panel", [*panels], key="panel")
    if press.button("Make the files", type="primary", width="stretch"):
        st.session_state.pop(FILES, None)
        asked = RubricExport(rubric.to_json(), read_panel(panels[who].panel or who), to)
        coming = worker.ask(person, engine, exported_rubric, asked)
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
    told = "".join(f"<p>{html.escape(one)}</p>" for one in reasons)
    st.html(f'<div class="mj-verdict {kind}" role="status"><b>{status}</b>{told}</div>')
    archive = _zipped(exported.files)
    st.download_button("Save the files", archive, made.name, "application/zip", on_click="ignore")


def _zipped(texts: Mapping[str, str]) -> bytes:
    """Return an archive of texts by file name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            archive.writestr(name, text)
    return out.getvalue()
