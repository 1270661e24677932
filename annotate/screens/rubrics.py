"""The rubrics screen: every rubric, its words, what stands behind it, its copies and exports."""

import html
import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st
from pydantic import ValidationError
from sqlalchemy import Engine

from annotate import compute, tables
from annotate.rating import text_html
from annotate.screens import frame
from annotate.screens.controls import panels_heard
from annotate.screens.frame import good, heading, paragraph, refused
from annotate.screens.study_design import protocol_html
from calibration.tables.numbers import fixed, icc_interval
from data.errors import MedjuryError
from data.person import Person
from data.rubric import (
    Criterion,
    Gold,
    Rubric,
    first_complaint,
    missing_from_prompt,
    read_rubric,
    shipped,
    too_wide,
)
from data.schema import Role
from data.study import rubrics
from data.study.rubrics import JuryValidation, StudyRubric
from data.study.steering import keep_version
from jury.panel import read_panel
from medjury.services.record import protocol_of
from medjury.services.rubric_export import (
    EXPORT_FORMATS,
    RubricExport,
    RubricFiles,
    exported_rubric,
    tools,
)

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
COMPARED = "Juries compared with clinicians on exactly this rubric"
FROM = (
    "Frozen reports name the rubric by its hash. The ledger counts every analysis of a jury; it keeps "
    "no intervals."
)
EVIDENCE = (
    tables.words("Source", "source"),
    tables.words("Last (UTC)", "at"),
    tables.words("Jury", "jury"),
    tables.words("On", "on"),
    tables.Column("ICC(C,2), 95 %", lambda row: row["icc"]),
    tables.Column("Like for like, 95 %", lambda row: row["like_for_like"]),
    tables.count("Responses", "responses"),
    tables.words("Raters", "raters"),
)
STATED = (
    "An export says validated only if clinicians' ratings on exactly this rubric meet the "
    "study's protocol and no rater is simulated. The protocol is fixed under Study, "
    "Protocol."
)
FILES = "rubric-files"
MAKING = "The agreement of this panel is being computed, then the files are written"
ABOUT_EXPORT = (
    "The figures are computed anew from this jury's ratings on exactly this rubric. The "
    "files say validated only if the study's protocol is met (see Evidence); otherwise they "
    "say not validated, with every reason."
)
NO_PANEL = (
    "A jury is exported as a panel, and no panel has rated in this study with all its jurors."
)
PANELS_TODO = "Run a panel under Jury. Imported scores have no settings to export."


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
    entries = _known(rubrics.study_rubrics(person, engine))
    own = [entry for entry in entries if entry.own]
    if own:
        st.html(_listed(own))
    else:
        st.html(paragraph("No rubric is in this study yet: importing responses brings one."))
    labels = {entry.label: entry for entry in entries}
    which, part_place = st.columns((1, 1), vertical_alignment="bottom")
    name = which.selectbox("Rubric", [*labels], key="rubric", bind="query-params")
    part = part_place.radio("Show", [*PARTS], key="part", horizontal=True, bind="query-params")
    chosen = labels.get(name, entries[0])
    PARTS.get(part, _read)(engine, person, chosen.rubric)


def _known(own: Sequence[StudyRubric]) -> list[Known]:
    """Return the study's rubrics, those in use first, and those that ship besides."""
    used = sorted(own, key=lambda entry: not entry.benchmarks)
    own_hashes = {entry.rubric.sha256 for entry in own}
    others = [rubric for rubric in map(read_rubric, shipped()) if rubric.sha256 not in own_hashes]
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
        tables.words("Reference shown", "gold"),
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
        ("Reference answer", GOLD[rubric.gold]),
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
    validations = rubrics.validations(person, engine, rubric.sha256)
    if validations:
        st.html(tables.table(list(map(_evidence, validations)), EVIDENCE, COMPARED, [FROM]))
    else:
        frame.empty(NONE_YET, TODO)
    st.html(
        heading("When this study calls a jury valid")
        + paragraph(STATED)
        + protocol_html(protocol_of(engine))
    )


def _evidence(found: JuryValidation) -> dict[str, object]:
    """Return a jury's row in the table of those compared on a rubric."""
    times = "once" if found.times == 1 else f"{found.times} times"
    source = f"ledger, {times}" if found.report is None else f"report {found.report} {found.name}"
    return {
        "source": source.strip(),
        "at": f"{found.at:%Y-%m-%d %H:%M}",
        "jury": ", ".join(found.jurors),
        "on": f"{found.benchmark}, {found.criterion or 'composite'}, method {found.method}",
        "icc": _with_ends(found.icc, found.low, found.high),
        "like_for_like": _with_ends(*found.like_for_like),
        "responses": found.n_responses,
        "raters": "simulated" if found.simulated else "real",
    }


def _with_ends(value: float | None, low: float | None, high: float | None) -> str:
    ends = icc_interval(low, high, 2)
    return fixed(value, 2) + (f" ({ends})" if ends else "")


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
            st.session_state[FILES] = Archive(rubric.sha256, name, made)
    archive = st.session_state.get(FILES)
    if archive is not None and archive.sha256 == rubric.sha256:
        _handed(archive)


def _handed(archive_made: Archive) -> None:
    """Show what the files say of their evidence, and hand them over."""
    exported = archive_made.exported
    kind, status = (
        ("mj-well", "Validated") if exported.validated else ("mj-warned", "Not validated")
    )
    reasons = (*exported.reasons, *exported.caveats)
    paragraphs = "".join(f"<p>{html.escape(reason)}</p>" for reason in reasons)
    st.html(f'<div class="mj-verdict {kind}" role="status"><b>{status}</b>{paragraphs}</div>')
    archive = _zipped(exported.files)
    st.download_button(
        "Save the files", archive, archive_made.name, "application/zip", on_click="ignore"
    )


def _zipped(texts: Mapping[str, str]) -> bytes:
    """Return an archive of texts by file name."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(texts.items()):
            archive.writestr(name, text)
    return out.getvalue()


ADDED = "rubric-added"
GOLDS = ("never", "when_needed", "always")
LONGEST = 20_000
PLACES = "{{context}} {{prompt}} {{response}} {{reference}} {{criteria}} {{checklist}} {{schema}}"
ONLY = "Only a coordinator adds rubrics to a study; you can read and export them."


def show_copy(engine: Engine, person: Person, rubric: Rubric) -> None:
    """Say what stays with the old words, ask for the new ones, and store them."""
    if person.role != Role.COORDINATOR:
        st.html(paragraph(ONLY))
        return
    st.html(paragraph(_stays(engine, person, rubric)))
    if message := st.session_state.pop(ADDED, None):
        st.html(good(message))
    entered = _form(rubric)
    if entered is None:
        return
    made_of, why = _checked(entered)
    if made_of is not None:
        try:
            sha256 = keep_version(person, engine, made_of)
        except MedjuryError as error:
            why = str(error)
        else:
            st.session_state[ADDED] = (
                f"{made_of.name} version {made_of.version} is in the study as {sha256[:12]}. "
                "Choose it when responses are imported; nothing is rated on it yet."
            )
            st.rerun()
    st.html(refused(why))


def _stays(engine: Engine, person: Person, rubric: Rubric) -> str:
    """Return how many ratings stay with the words as they are."""
    own = [entry for entry in rubrics.study_rubrics(person, engine) if entry.rubric == rubric]
    by_people = sum(entry.clinicians.ratings for entry in own)
    by_jurors = sum(entry.jurors.ratings for entry in own)
    return (
        f"{by_people:,} ratings by clinicians and {by_jurors:,} by jurors were made on "
        f"{rubric.sha256[:12]} and stay with it. A new version starts without ratings, and "
        f"what was validated on the old words does not hold for the new ones."
    )


def _form(rubric: Rubric) -> dict[str, Any] | None:
    """Ask for the words; return them once they are handed in."""
    key = rubric.sha256[:12]
    with st.form(f"copy-{key}", border=False):
        name, version, gold, low, high = st.columns((3, 2, 2, 1, 1))
        body: dict[str, Any] = {
            "name": name.text_input("Name", rubric.name, max_chars=64, key=f"name-{key}"),
            "version": version.text_input("New version", "", max_chars=64, key=f"version-{key}"),
            "gold": gold.selectbox(
                "Reference answer shown", GOLDS, index=GOLDS.index(rubric.gold), key=f"gold-{key}"
            ),
            "scale": {
                "min": low.number_input("Lowest", -100, 100, rubric.scale.min, key=f"low-{key}"),
                "max": high.number_input("Highest", -100, 100, rubric.scale.max, key=f"high-{key}"),
            },
            "audience": st.text_input("For whom", rubric.audience, key=f"audience-{key}"),
        }
        st.html(paragraph("A criterion without a name is left out."))
        blank = Criterion(name="new", question="?", anchors={})
        criteria = [
            _criterion(criterion, number, key, new=criterion is blank)
            for number, criterion in enumerate([*rubric.criterion, blank], 1)
        ]
        body["criterion"] = [entered for entered in criteria if entered["name"]]
        body["prompt"] = st.text_area(
            "Prompt of the jurors",
            rubric.prompt,
            height=320,
            max_chars=LONGEST,
            key=f"prompt-{key}",
        )
        st.html(paragraph(f"Placeholders: {PLACES}"))
        pressed = st.form_submit_button("Add the new version", type="primary")
    return body if pressed else None


def _criterion(criterion: Criterion, number: int, key: str, *, new: bool) -> dict[str, Any]:
    """Ask for one criterion: its name, its question, and the words of its points, a line each."""
    title = "One more criterion (optional)" if new else f"Criterion {number}"
    mine = f"{number}-{key}"
    with st.expander(title, expanded=not new and number == 1):
        first, second = st.columns((1, 3))
        name = first.text_input(
            "Its name", "" if new else criterion.name, max_chars=64, key=f"c{mine}"
        )
        question = second.text_input(
            "Its question", "" if new else criterion.question, key=f"q{mine}"
        )
        words = "\n".join(
            f"{point}: {criterion.anchors[point]}" for point in sorted(criterion.anchors)
        )
        anchors = st.text_area(
            "What each point means: a line each, as 1: words",
            words,
            height=150,
            max_chars=LONGEST,
            key=f"a{mine}",
        )
    entered = {"name": name.strip(), "question": question.strip(), "anchors": _anchors_of(anchors)}
    return entered | {"critical": criterion.critical}


def _anchors_of(text: str) -> dict[str, str]:
    """Return the lines of a text as point -> words; a line without a point goes on the one before."""
    anchors: dict[str, str] = {}
    last = ""
    for line in filter(None, map(str.strip, text.splitlines())):
        point, colon, words = line.partition(":")
        if colon and point.strip().lstrip("-").isdigit():
            last = point.strip()
            anchors[last] = words.strip()
        else:
            anchors[last] = f"{anchors.get(last, '')} {line}".strip()
    return anchors


def _checked(body: Mapping[str, Any]) -> tuple[Rubric | None, str]:
    """Return the rubric that the words make, or what is wrong with them."""
    if not body["version"].strip():
        return None, "version: give the new version, such as 2"
    try:
        rubric = Rubric(**{**body, "version": body["version"].strip()})
    except ValidationError as error:
        return None, first_complaint(error.errors())
    why = too_wide(rubric.scale.min, rubric.scale.max) or missing_from_prompt(
        rubric.prompt, rubric.criteria
    )
    return (None, why) if why else (rubric, "")


PARTS: Mapping[str, Part] = {
    "Read": _read,
    "Evidence": show_evidence,
    "Copy to a new version": show_copy,
    "Export": show_export,
}
