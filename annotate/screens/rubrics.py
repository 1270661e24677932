"""The rubrics screen: every rubric, its words, what stands behind it, its copies and exports."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import streamlit as st
from sqlalchemy import Engine

from annotate import panes, tables
from annotate.screens import frame, rubrics_copy, rubrics_evidence, rubrics_export
from data import queries
from data.person import Person
from data.queries import StudyRubric
from data.rubric import Gold, Rubric, read_rubric, shipped

STYLE = (files("annotate") / "screens" / "monitoring.css").read_text("utf-8")
ABOUT = "The words that clinicians and jurors rate on. One word changed makes another rubric."
SHORT = 12
LONGEST_VERSION = 24
GOLD: dict[Gold, str] = {
    "never": "never shown",
    "when_needed": "shown, to be turned to when in doubt",
    "always": "shown, to be compared with on every criterion",
}
Part = Callable[[Engine, Person, Rubric], None]


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
    frame.begin(person, "Rubrics", ABOUT)
    st.html(f"<style>{STYLE}</style>")
    known = _known(queries.study_rubrics(person, engine))
    own = [one for one in known if one.own]
    if own:
        st.html(_listed(own))
    else:
        st.html(
            '<p class="mj-said">No rubric is in this study yet: importing responses brings one.</p>'
        )
    labels = {one.label: one for one in known}
    parts: Mapping[str, Part] = {
        "Read": _read,
        "Evidence": rubrics_evidence.show,
        "Copy to a new version": rubrics_copy.show,
        "Export": rubrics_export.show,
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
    st.html('<h2 class="mj-part">Prompt of the jurors, word for word</h2>')
    st.html(panes.pane(rubric.prompt, "Prompt of the jurors", "prompt"))


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
