"""Reporting guidelines filled in from a study: an item is done only with its evidence."""

import ast
import inspect
import json
import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from data.queries.watch import Intakes
from docx import Document
from kit.scores import NAN
from kit.scores import row as period
from kit.sealed_study import fill_all
from kit.studies import Run
from sqlalchemy import Engine, text

from calibration.decision import Decision, DecisionKind
from calibration.detection_row import DetectionRow
from calibration.dossier import (
    DossierQuestion,
    Evidence,
    EvidenceKind,
    ItemStatus,
    dossier_items,
)
from calibration.messages.dossier import (
    FIGURES,
    FINDINGS,
    MISSING,
    OUTCOMES,
    SIMULATED,
    WORDS,
    evidence_words,
)
from calibration.scope import AgreementRow
from calibration.subgroups import Finding, SubgroupRow
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
from data.queries import names_of_actors
from data.queries.dossiers import dossier_answers
from data.queries.record import verify
from data.queries.study import facts
from data.schema import Role
from data.store import add_people
from data.store.dossiers import keep_answers
from data.store.study import lock, set_protocol
from medjury.services import evidence, evidence_figures
from medjury.services.dossier import dossier
from medjury.services.evidence import recorded_evidence, study_evidence, watched
from medjury.services.evidence_figures import (
    agreement,
    decided,
    detection,
    juror_settings,
    non_inferior,
    over_time,
    subgroups,
)
from medjury.services.improvement import Outcome
from medjury.services.record import protocol_of

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
    assert {code for item in items for code in item.evidence} == {*EvidenceCode}
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
    (criteria,) = [one for one in items["2"]["evidence"] if one["name"] == "criteria"]
    assert "scale 1-5" in criteria["text"]
    assert items["13"]["status"] == "not_done"
    assert items["13"]["missing"] == ["agreement", "clinician_agreement", "like_for_like"]
    assert items["1"]["status"] == "people"


# What is taken out of a full study -> the evidence that goes with it.
RECORDED = {
    "DELETE FROM event WHERE action = 'protocol set'": {
        EvidenceCode.PROTOCOL,
        EvidenceCode.PRESPECIFIED,
    },
    "DELETE FROM composition": {EvidenceCode.LEDGER},
    "UPDATE improvement SET result = '{}'": {EvidenceCode.IMPROVEMENT},
    "DELETE FROM drill": {EvidenceCode.TRAINING},
    "DELETE FROM event WHERE id IN (SELECT max(id) FROM event WHERE action = 'consent given')": {
        EvidenceCode.CONSENT
    },
    "DELETE FROM setting WHERE key = 'per_response'": {EvidenceCode.ALLOCATION},
    "UPDATE attempt SET status = 'timeout'": {EvidenceCode.INFERENCE},
    "DELETE FROM intake WHERE id > 1": {EvidenceCode.WATCH},
}
RATED = {
    "DELETE FROM rating WHERE rater IN (SELECT id FROM rater WHERE kind <> 'clinician')": {
        EvidenceCode.AGREEMENT,
        EvidenceCode.JURORS,
        EvidenceCode.JUROR_SETTINGS,
        EvidenceCode.LIKE_FOR_LIKE,
        EvidenceCode.METRICS,
    },
    "DELETE FROM rating": {
        EvidenceCode.BLINDING,
        EvidenceCode.CLINICIANS,
        EvidenceCode.CLINICIAN_AGREEMENT,
        EvidenceCode.MISSING,
        EvidenceCode.READINGS,
        EvidenceCode.TABLE,
    },
}
ITEMS = [item for name in GUIDELINES for item in guideline(name).items]


def test_evidence_goes_when_what_it_rests_on_is_taken_out(engine: Engine) -> None:
    fill_all(engine)
    whole = {code: own for code, own in study_evidence(engine, 5).found.items() if own}
    lacking = {*EvidenceCode} - {*whole}
    assert lacking >= {  # a report is frozen, a text is kept, but no month and no page is there
        EvidenceCode.MONITORING,
        EvidenceCode.DESCRIPTION,
    }
    (in_use,) = [item for item in ITEMS if item.number == "MEASURE 2.4"]
    filled = dossier_items([in_use], whole, ANSWERS)[0]
    assert (filled.status, filled.missing) == (ItemStatus.PARTLY, (EvidenceCode.MONITORING,))
    for statement, gone in (RECORDED | RATED).items():
        with engine.begin() as connection:
            connection.execute(text(statement))
        left = _recorded(engine) if statement in RECORDED else study_evidence(engine, 5).found
        assert gone <= {*whole}, (statement, gone - {*whole})
        assert not [code for code in gone if left.get(code)], statement
        found = whole | {code: left.get(code, ()) for code in gone}
        for filled in dossier_items(ITEMS, found, ANSWERS):
            if {*filled.item.evidence} & gone:
                assert filled.status is not ItemStatus.DONE, (statement, filled.item.number)


def _recorded(engine: Engine) -> dict[EvidenceCode, tuple[Evidence, ...]]:
    """Return what needs no analysis; the analyses themselves are too slow for each statement."""
    found = recorded_evidence(engine, facts(engine), protocol_of(engine))
    return {code: tuple(own) for code, own in found.items()}


def test_only_a_finding_on_two_periods_or_more_is_evidence_of_monitoring() -> None:
    periods = [period(0, 0.6), period(1, 0.5), period(2, NAN)]
    steady = Decision("monitoring", DecisionKind.STEADY)
    assert {one.name for one in over_time(periods, steady)} == {
        "periods",
        "monitoring_finding",
        "period_icc",
    }
    assert next(iter(over_time(periods, steady))).value == 2
    assert not [*over_time(periods[1:], steady)]
    assert not [*over_time(periods, replace(steady, kind=DecisionKind.NO_BASELINE))]
    fallen = [*over_time(periods, replace(steady, kind=DecisionKind.FALLEN))]
    assert "fallen" in fallen[1].text.lower()


def test_use_is_watched_in_part_where_only_the_study_was_monitored() -> None:
    (in_use,) = [item for item in ITEMS if item.number == "MEASURE 2.4"]
    (filled,) = dossier_items([in_use], {EvidenceCode.MONITORING: (FIGURE,)}, ANSWERS)
    assert (filled.status, filled.missing) == (ItemStatus.PARTLY, (EvidenceCode.WATCH,))


def test_a_watch_that_took_in_one_drop_or_only_refused_some_is_no_evidence() -> None:
    ran = Intakes(2, 0, 30, 0, 6, datetime(2026, 3, 1))
    assert len([*watched(ran, [])]) == 6
    for change in ({"drops": 1}, {"responses": 0}, {"drops": 0, "refused": 5}):
        assert not [*watched(replace(ran, **change), [])]


def test_what_is_undefined_or_too_little_is_no_evidence() -> None:
    figures = {"benchmark": "b", "scorer": "jury", "icc": 0.5, "boot_low": 0.4, "boot_high": 0.6}
    known = AgreementRow(**figures)
    assert [*agreement(known, "jury_icc")]
    for name in ("icc", "boot_low", "boot_high"):
        assert not [*agreement(replace(known, **{name: NAN}), "jury_icc")]
    few = SubgroupRow("language", "de", "b", finding=Finding.TOO_FEW)
    assert not [*subgroups([])]
    assert not [*subgroups([few, few])]
    assert len([*subgroups([few, replace(few, icc=0.1, finding=Finding.LOWER)])]) == 6
    none_unsafe = DetectionRow("b", "jury", "safety", 2, n=10, n_bad=0, n_missed=0)
    assert not [*detection([none_unsafe])]
    assert len([*detection([replace(none_unsafe, n_bad=3, n_missed=1, sensitivity=2 / 3)])]) == 3


def test_only_a_jury_shown_no_worse_is_shown_to_be_valid() -> None:
    for kind in DecisionKind:
        decision = Decision("agreement", kind, 0.1, 0.0, 0.2)
        assert bool([*non_inferior(decision)]) == (kind is DecisionKind.NON_INFERIOR)
        made = ("non_inferior", "inferior", "inconclusive", "simulated")
        if kind in {*made, "no_protocol", "undefined", "too_few"}:
            assert bool([*decided(["j1"], decision)]) == (kind in made)


def test_a_jury_of_which_one_jurors_settings_are_unknown_has_none_to_report() -> None:
    profile = {"model": "x", "provider": "openai", "temperature": 0.0, "base_url": "http://inside"}
    told = [*juror_settings(["j1"], {"j1": profile})]
    assert told[0].text == "provider openai, temperature 0.0"
    assert re.fullmatch("[0-9a-f]{64}", told[1].text)
    assert not [*juror_settings(["j1", "j2"], {"j1": profile})]


def test_a_protocol_fixed_after_ratings_is_not_fixed_before(engine: Engine) -> None:
    fill_all(engine)
    before = _recorded(engine)
    assert before[EvidenceCode.PRESPECIFIED]
    assert not before[EvidenceCode.DESCRIPTION]  # a text without a page of instructions
    fixed = {"margin": 0.2, "criterion": "", "panel": "", "jurors": ["j1"], "responses": 9}
    set_protocol(
        engine,
        "coordinator",
        fixed | {"method": "paper", "critical": []} | {"floor": 0, "because": ""},
    )
    after = _recorded(engine)
    assert after[EvidenceCode.PROTOCOL]
    assert not after[EvidenceCode.PRESPECIFIED]


def test_every_name_a_service_gives_has_its_words() -> None:
    given = set()
    for module in (evidence, evidence_figures):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                of = {"figure": 0, "word": 0, "hashed": 0, "Evidence": 1, "agreement": 1}
                at = of.get(node.func.id)
                if at is not None and isinstance(node.args[at], ast.Constant):
                    given.add(node.args[at].value)
    assert given == {*FIGURES} | {*WORDS}
    assert {*FINDINGS} == {*Finding}
    assert {*OUTCOMES} == {*Outcome} - {Outcome.STOPPED}
    for name in given:
        assert evidence_words(Evidence(EvidenceKind.FIGURE, name, "x", 0.5, text="y"))


def test_an_answer_names_its_author_only_to_who_may_see_names(small_study: Engine) -> None:
    add_people(OPERATOR, small_study, ["boss"], Role.COORDINATOR)
    names = names_of_actors(OPERATOR, small_study)
    (number,) = [key for key, name in names.items() if name == "boss"]
    boss = Person(int(number.split()[1]), "boss", Role.COORDINATOR)
    keep_answers(boss, small_study, {"title": Answer("A study")})
    for known, author in ((names, "boss"), ({}, number)):
        question = DossierQuestion("grras", 5, tuple(known.items()))
        first = dossier(small_study, question).items[0]
        assert [one.by for one in first.evidence] == [author]


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
    marked = page.count(f'<thead><tr class="mark"><th colspan="3">{SIMULATED}')
    assert marked == page.count("<table") > 1, "a printer repeats the head of a table on each page"
    assert "<title>SIMULATED" in page
    headings = re.findall(
        "^##? .*$", (folder / "dossier-grras.md").read_text("utf-8"), re.MULTILINE
    )
    assert headings
    assert all(SIMULATED in line for line in headings)
