"""Reporting guidelines filled in from a study: an item is done only with its evidence."""

import json
from pathlib import Path

import pytest
from kit.sealed_study import fill_all
from kit.studies import Run
from sqlalchemy import Engine

from calibration.dossier import Evidence, EvidenceKind, ItemStatus, dossier_items
from calibration.messages.dossier import FIGURES, MISSING, WORDS
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


def test_a_full_study_has_every_evidence(engine: Engine, run: Run, tmp_path: Path) -> None:
    fill_all(engine)
    folder = tmp_path / "dossier"
    call = ("share", "dossier", "--to", "tripod-llm", "--reps", "20", "--out", str(folder))
    code, out, err = run(*call, "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert body["counts"]["not_done"] == 0
    assert {path.name for path in folder.iterdir()} == {*body["files"]}
    assert "model-1" not in out
