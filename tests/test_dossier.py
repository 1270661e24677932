"""Reporting guidelines filled in from a study: an item is done only with its evidence."""

import json
import re
from pathlib import Path

import pytest
from docx import Document
from kit.sealed_study import fill_all
from kit.studies import Run
from sqlalchemy import Engine, text

from calibration.dossier import Evidence, EvidenceKind, ItemStatus, dossier_items
from calibration.messages.dossier import FIGURES, MISSING, SIMULATED, WORDS
from data.errors import BadInput, NotAllowed, Unknown
from data.guidelines import (
    GUIDELINES,
    Answer,
    AnswerKind,
    EvidenceCode,
    answer_of,
    guideline,
    questions,
)
from data.person import OPERATOR, Person
from data.queries.dossiers import dossier_answers
from data.queries.record import verify
from data.schema import Role
from data.store.dossiers import keep_answers
from data.store.study import lock
from medjury.services.evidence import study_evidence

FIGURE = Evidence(EvidenceKind.FIGURE, "responses", value=1)
ALL = dict.fromkeys(EvidenceCode, (FIGURE,))
SAID = Evidence(EvidenceKind.ANSWER, "funding", text="a grant", by="coordinator", at="")
ANSWERS = dict.fromkeys(questions(), (AnswerKind.ANSWER, SAID))


@pytest.mark.parametrize("name", GUIDELINES)
def test_an_item_flips_when_any_of_its_evidence_is_removed(name: str) -> None:
    items = guideline(name).items
    whole = dossier_items(items, ALL, ANSWERS)
    assert {one.status for one in whole} == {ItemStatus.DONE}
    for code in EvidenceCode:
        without = dossier_items(items, {**ALL, code: ()}, ANSWERS)
        for item, filled in zip(items, without, strict=True):
            if code not in item.evidence:
                assert filled.status is ItemStatus.DONE
                continue
            alone = item.evidence == (code,)
            assert filled.status is (ItemStatus.NOT_DONE if alone else ItemStatus.PARTLY)
            assert filled.missing == (code,)


@pytest.mark.parametrize("name", GUIDELINES)
def test_nothing_is_done_without_evidence_or_an_answer(name: str) -> None:
    items = guideline(name).items
    for filled in dossier_items(items, {}, {}):
        wanted = ItemStatus.NOT_DONE if filled.item.evidence else ItemStatus.PEOPLE
        assert filled.status is wanted
    for filled in dossier_items(items, {}, ANSWERS):
        wanted = ItemStatus.NOT_DONE if filled.item.evidence else ItemStatus.DONE
        assert filled.status is wanted
    for filled in dossier_items(items, ALL, {}):
        assert (filled.status is ItemStatus.DONE) == (not filled.item.ask)


@pytest.mark.parametrize("name", GUIDELINES)
def test_no_figure_of_a_simulated_study_makes_an_item_done(name: str) -> None:
    for filled in dossier_items(guideline(name).items, ALL, ANSWERS, ["sim-1"]):
        assert (filled.status is ItemStatus.DONE) == (not filled.item.evidence)


def test_the_guidelines_have_the_numbers_that_they_count() -> None:
    numbers = {name: [item.number for item in guideline(name).items] for name in GUIDELINES}
    assert all(len({*own}) == len(own) for own in numbers.values())
    assert numbers["grras"] == [str(number) for number in range(1, 16)]
    main = dict.fromkeys(number.rstrip("abcdefg") for number in numbers["tripod-llm"])
    assert [*main] == [str(number) for number in range(1, 20)]
    assert len(numbers["nist"]) == 3 + 13 + 3 + 3
    assert len(numbers["chai"]) == 56


def test_every_item_is_answered_by_something_and_every_code_and_question_is_used() -> None:
    items = [item for name in GUIDELINES for item in guideline(name).items]
    assert all(item.evidence or item.ask for item in items)
    assert {item.ask for item in items} - {""} == {*questions()}
    assert {*MISSING} == {*EvidenceCode}
    assert not {*FIGURES} & {*WORDS}


def test_answers_are_added_to_sealed_and_kept_in_a_locked_study(small_study: Engine) -> None:
    assert keep_answers(OPERATOR, small_study, {"funding": Answer("one")}) == 1
    assert keep_answers(OPERATOR, small_study, {"funding": Answer("one")}) == 0
    lock(small_study, "coordinator")
    two = {"funding": Answer("two"), "ethics": answer_of("Does not apply: no patients")}
    assert keep_answers(OPERATOR, small_study, two) == 2
    kept = dossier_answers(small_study)
    assert kept["funding"].answer.text == "two"
    assert kept["ethics"].answer == Answer("no patients", AnswerKind.NOT_APPLICABLE)
    assert keep_answers(OPERATOR, small_study, {"funding": answer_of(" ")}) == 1
    assert keep_answers(OPERATOR, small_study, {"funding": answer_of(" ")}) == 0
    assert [*dossier_answers(small_study)] == ["ethics"]
    assert verify(small_study).findings == ()


def test_what_is_no_answer_is_refused_and_nothing_is_kept(small_study: Engine) -> None:
    fine = {"funding": Answer("a grant")}
    with pytest.raises(Unknown, match="no guideline asks this"):
        keep_answers(OPERATOR, small_study, {**fine, "colour": Answer("blue")})
    with pytest.raises(BadInput, match="at most 4,000"):
        keep_answers(OPERATOR, small_study, {**fine, "ethics": Answer("x" * 4001)})
    with pytest.raises(BadInput, match="cannot be shown"):
        keep_answers(OPERATOR, small_study, {**fine, "ethics": Answer("a\x00b")})
    with pytest.raises(BadInput, match="say why"):
        keep_answers(OPERATOR, small_study, {"ethics": Answer(" ", AnswerKind.NOT_APPLICABLE)})
    with pytest.raises(NotAllowed):
        keep_answers(Person(1, "dr_a", Role.CLINICIAN), small_study, fine)
    assert dossier_answers(small_study) == {}


def test_a_study_of_responses_alone_is_filled_in_too(
    run: Run, small_study: Engine, tmp_path: Path
) -> None:
    code, out, err = run("share", "dossier", "--to", "grras", "--reps", "20", "--json", "-")
    assert code == 0, err
    items = {item["number"]: item for item in json.loads(out)["items"]}
    assert items["2"]["status"] == "done"
    assert items["13"]["status"] == "not_done"
    assert items["13"]["missing"] == ["agreement", "clinician_agreement", "like_for_like"]
    assert items["1"]["status"] == "people"


# What is taken out of a full study -> the evidence that goes with it.
REMOVED = {
    "DELETE FROM event WHERE action = 'protocol set'": {EvidenceCode.PROTOCOL},
    "DELETE FROM report": {EvidenceCode.MONITORING},
    "DELETE FROM composition": {EvidenceCode.LEDGER},
    "UPDATE improvement SET result = '{}'": {EvidenceCode.IMPROVEMENT},
    "UPDATE instance SET reference = NULL": {EvidenceCode.REFERENCES},
    "DELETE FROM drill": {EvidenceCode.TRAINING},
    "DELETE FROM event WHERE action = 'study described'": {EvidenceCode.DESCRIPTION},
    "DELETE FROM setting WHERE key LIKE 'consent:%'": set(),
    "DELETE FROM setting WHERE key = 'per_response'": {EvidenceCode.ALLOCATION},
    "DELETE FROM subgroup": {EvidenceCode.SUBGROUPS},
    "DELETE FROM rating WHERE rater IN (SELECT id FROM rater WHERE kind = 'metric')": {
        EvidenceCode.METRICS
    },
    "DELETE FROM rating WHERE rater IN (SELECT id FROM rater WHERE kind = 'juror')": {
        EvidenceCode.JURORS,
        EvidenceCode.AGREEMENT,
        EvidenceCode.LIKE_FOR_LIKE,
        EvidenceCode.DECISION,
    },
    "DELETE FROM rating WHERE rater IN (SELECT id FROM rater WHERE kind = 'clinician')": {
        EvidenceCode.CLINICIANS,
        EvidenceCode.READINGS,
        EvidenceCode.BLINDING,
        EvidenceCode.MISSING,
        EvidenceCode.CLINICIAN_AGREEMENT,
        EvidenceCode.DATES,
        EvidenceCode.TABLE,
    },
}


def test_evidence_goes_when_what_it_rests_on_is_taken_out(engine: Engine) -> None:
    fill_all(engine)
    before = {code for code, own in study_evidence(engine, 5).found.items() if own}
    items = [item for name in GUIDELINES for item in guideline(name).items]
    for statement, gone in REMOVED.items():
        with engine.begin() as connection:
            connection.execute(text(statement))
        found = study_evidence(engine, 5).found
        assert gone <= before, (statement, gone - before)
        for code in gone - {EvidenceCode.LEDGER}:  # looking notes the jury again
            assert not found.get(code), (statement, code)
        for filled in dossier_items(items, found, ANSWERS):
            if {*filled.item.evidence} & (gone - {EvidenceCode.LEDGER}):
                assert filled.status is not ItemStatus.DONE, (statement, filled.item.number)


def test_a_full_study_has_every_evidence(engine: Engine, run: Run, tmp_path: Path) -> None:
    fill_all(engine)
    folder = tmp_path / "dossier"
    call = ("share", "dossier", "--to", "tripod-llm", "--reps", "20", "--out", str(folder))
    code, out, err = run(*call, "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert body["counts"]["not_done"] == 0
    assert {path.name for path in folder.iterdir()} == {*body["files"]}
    document = Document(folder / "dossier-tripod-llm.docx")
    rows = [row.cells for table in document.tables for row in table.rows[1:]]
    assert [row[0].text for row in rows] == [item["number"] for item in body["items"]]
    page = (folder / "dossier-tripod-llm.html").read_text("utf-8")
    markdown = (folder / "dossier-tripod-llm.md").read_text("utf-8")
    for text_of in (out, page, markdown, "".join(row[2].text for row in rows)):
        assert "model-1" not in text_of
    assert body["decision"]["headline"] in {one.text for one in document.paragraphs}


def test_a_simulated_study_says_so_in_every_file_and_on_every_page(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    fill_all(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr_a'"))
    folder = tmp_path / "dossier"
    code, out, err = run(
        "dossier", "--to", "grras", "--reps", "5", "--out", str(folder), "--json", "-"
    )
    assert code == 0, err
    assert json.loads(out)["simulated"] == ["dr_a"]
    document = Document(folder / "dossier-grras.docx")
    assert all(SIMULATED in one.header.paragraphs[0].text for one in document.sections)
    page = (folder / "dossier-grras.html").read_text("utf-8")
    assert page.count(SIMULATED) >= 2
    assert "<title>SIMULATED" in page
    headings = re.findall(
        "^##? .*$", (folder / "dossier-grras.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings
    assert all(SIMULATED in line for line in headings)
