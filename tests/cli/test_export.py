"""Exports: files that come back as they went, their dictionary, the dossier's methods, and reporting guidelines filled in."""

import csv
import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from kit.commands import csv_rows
from kit.packaged_study import made, whole
from kit.scores import NAN
from kit.sealed_study import fill_all
from kit.studies import Run
from sqlalchemy import Engine, text
from sqlmodel import Session

from calibration.decision import Decision, DecisionKind
from calibration.detection import DetectionRow
from calibration.dossier import SIMULATED, ItemStatus, dossier_items, dossier_markdown
from calibration.scope import AgreementRow
from calibration.tables.numbers import DASH, MINUS, scorer
from data.card import Marked, Reply
from data.guidelines import GUIDELINES, EvidenceCode, guideline
from data.study.assignments import Slot, assign, recuse
from data.study.copies import PACKED, kind_of
from data.study.export import HEADER, dictionary
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.settings import set_protocol
from data.study.standing import facts
from data.study.verify import acts
from medjury.services import dossier as dossiers

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}


@pytest.fixture
def worked(small_study) -> Engine:
    """Make a study with a rating that was revised, a repeat, one not ratable and one recused."""
    invite(small_study, ["dr_a"])
    slots = [Slot("dr_a", number, number) for number in (1, 2, 3)]
    assign(small_study, [*slots, Slot("dr_a", 1, 4, pass_=1)], seed=0, per_response=1)
    replies = [
        Reply(SCORES, comment="=HYPERLINK(1)", spans=(Marked("accuracy", 0, 4, "wrong"),)),
        Reply({}, flags=("not_enough_context",), comment="-no source"),
    ]
    for reply in replies:
        code = _next(small_study)
        submit(small_study, 1, code, reply, 5.5)
        if reply.scores:
            submit(small_study, 1, code, Reply({**SCORES, "clarity": 1}, comment="=1+1"), 9)
    recuse(small_study, 1, _next(small_study), "@known to me")
    submit(small_study, 1, _next(small_study), Reply(SCORES), 3)
    return small_study


def _next(engine: Engine) -> str:
    task = next_task(engine, 1).task
    return task.card.code


@pytest.mark.usefixtures("worked")
def test_the_files_hold_what_counts_and_each_reading_and_name_no_author(run, tmp_path):
    folder = tmp_path / "out"
    assert run("share", "export", str(folder))[0] == 0
    files = {path.name: path.read_text("utf-8") for path in folder.rglob("*.*")}
    assert {"ratings.csv", "readings.csv", "spans.csv", "events.csv"} < set(files)
    assert not any("model-" in body for body in files.values())
    ratings = csv_rows(folder / "ratings.csv")
    assert [(one["criterion"], one["score"], one["pass"]) for one in ratings] == [
        *(("accuracy", "2.0", "0"), ("completeness", "3.0", "0"), ("clarity", "1.0", "0")),
        *(("accuracy", "2.0", "1"), ("completeness", "3.0", "1"), ("clarity", "5.0", "1")),
    ]
    assert [one["counts"] for one in csv_rows(folder / "spans.csv")] == ["0"]
    readings = csv_rows(folder / "readings.csv")
    names = ("response_id", "pass", "position", "state", "flags", "seconds_active")
    assert [tuple(one[name] for name in (*names, "revision", "previous")) for one in readings] == [
        ("r11", "0", "1", "done", "", "9.0", "2", ""),
        ("r12", "0", "2", "unrated", "not_enough_context", "5.5", "1", "2.0"),
        ("r21", "0", "3", "recused", "recused", "0.0", "0", ""),
        ("r11", "1", "4", "done", "", "3.0", "1", "2.0"),
    ]
    assert all(one["done_at"].endswith("+00:00") for one in readings)
    for one in csv_rows(folder / "events.csv"):
        body = [one["at"], one["actor"], one["action"], json.loads(one["detail"]), one["previous"]]
        assert sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == one["sha256"]


def test_a_folder_with_files_in_it_is_never_written_to(run, worked, tmp_path, write):
    write("kept.txt", "mine")
    code, _, err = run("share", "export", str(tmp_path))
    assert code == 2
    assert "holds files already" in err
    assert run("share", "export", str(tmp_path / "kept.txt"))[0] == 2


def test_authors_are_exported_only_with_a_reason_that_is_recorded(run, worked, tmp_path):
    assert run("share", "export", str(tmp_path / "out"), "--unblind")[0] == 2
    assert not (tmp_path / "out").exists()
    given = ("--unblind", "--reason", "analysis")
    assert run("share", "export", str(tmp_path / "out"), *given)[0] == 0
    first = csv_rows(tmp_path / "out" / "authors.csv")[0]
    assert first == {"response_id": "r11", "model": "model-one"}
    assert acts(worked, "unblinded")[0].detail == {"reason": "analysis"}


__all__ = ["made", "whole"]


def exported(run: Run, folder: Path) -> Path:
    code, _, err = run("share", "export", str(folder), "--unblind", "--reason", "test")
    assert code == 0, err
    return folder


def test_the_dictionary_names_exactly_the_columns_and_what_can_be_missing(run, whole, tmp_path):
    folder = exported(run, tmp_path / "out")
    files = {str(one.relative_to(folder)): one for one in folder.rglob("*.csv")}
    own = files.pop("data_dictionary.csv")
    rows = csv_rows(own)
    assert tuple(rows[0]) == HEADER
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(row["file"], []).append(row["column"])
        assert row["type"]
        assert row["meaning"]
        assert row["missing"]
    for name, path in files.items():
        with path.open(encoding="utf-8-sig", newline="") as file:
            assert said.pop(name) == next(csv.reader(file)), name
    assert not said
    for table in PACKED:
        for row in dictionary(f"tables/{table.name}.csv"):
            column = table.c[row[1]]
            if column.nullable and kind_of(table.name, column.name) is not str:
                assert row[5] != "never empty", row


def page(engine: Engine) -> str:
    return dossier_markdown(dossiers.dossier(engine, "grras", reps=20)).replace("\\", "")


def test_every_figure_is_that_of_calibrate(run, whole, tmp_path):
    to = tmp_path / "methods.md"
    assert run("analyse", "calibrate", "--json", str(tmp_path / "c.json"))[0] == 0
    code, _, err = run("share", "dossier", "--to", "grras", "--out", str(to))
    assert code == 0, err
    written = to.read_text("utf-8").replace("\\", "").replace(MINUS, "-").replace(DASH, "-")
    shown = re.findall(r"^\| ([^|]+) \| (-?[0-9.]+|-) \|", written, re.MULTILINE)
    rows = json.loads((tmp_path / "c.json").read_text("utf-8"))["rows"]
    iccs = ["-" if row["icc"] is None else f"{row['icc']:.3f}" for row in rows]
    assert [icc for _, icc in shown] == iccs
    for row, (name, _) in zip(rows, shown, strict=True):
        assert name.startswith(scorer(row["scorer"]))


def test_a_missing_criterion_and_a_lifted_blind_are_reported(run, whole, tmp_path):
    one = "DELETE FROM rating WHERE response = 5 AND rater = 1 AND criterion = 'clarity'"
    with Session(whole) as session:
        session.execute(text(one))
        session.commit()
    call = ("study", "unblind", "--reason", "interim look", "--out", str(tmp_path / "a.csv"))
    assert run(*call)[0] == 0
    written = page(whole)
    assert "12 responses of 3 models to 12 instances" in written
    assert "1 reading of 49 by clinicians lack" in written
    assert "interim look" in written


ITEMS = [item for name in GUIDELINES for item in guideline(name).items]
ALL = dict.fromkeys(EvidenceCode, ("1 response",))


@pytest.mark.parametrize("name", GUIDELINES)
def test_an_item_is_done_by_all_of_its_evidence_and_by_no_figure_of_a_simulated_study(name):
    items = guideline(name).items
    for item, filled in zip(items, dossier_items(items, ALL), strict=True):
        alone = ItemStatus.PARTLY if item.evidence else ItemStatus.AUTHORS
        assert filled.status is (alone if item.by_authors else ItemStatus.DONE)
    for code in EvidenceCode:
        without = dossier_items(items, {**ALL, code: ()})
        for item, filled in zip(items, without, strict=True):
            if code in item.evidence:
                alone = item.evidence == (code,)
                assert filled.status is (ItemStatus.NOT_DONE if alone else ItemStatus.PARTLY)
                assert filled.missing == (code,)
    for filled in dossier_items(items, {}):
        wanted = ItemStatus.NOT_DONE if filled.item.evidence else ItemStatus.AUTHORS
        assert filled.status is wanted
    for filled in dossier_items(items, ALL, ["sim-1"]):
        assert filled.status in {ItemStatus.PARTLY, ItemStatus.AUTHORS}


# What is taken out of a full study -> the evidence that goes with it.
RECORDED = {
    "DELETE FROM event WHERE action = 'protocol set'": {
        *(EvidenceCode.PROTOCOL, EvidenceCode.PRESPECIFIED)
    },
    "UPDATE improvement SET result = '{}'": {EvidenceCode.IMPROVEMENT},
    "DELETE FROM drill": {EvidenceCode.TRAINING},
    "DELETE FROM setting WHERE key = 'per_response'": {EvidenceCode.ALLOCATION},
    "UPDATE attempt SET status = 'timeout'": {EvidenceCode.INFERENCE},
}

RATED = {
    "DELETE FROM rating WHERE rater IN (SELECT id FROM rater WHERE kind <> 'clinician')": {
        *(EvidenceCode.AGREEMENT, EvidenceCode.JURORS, EvidenceCode.JUROR_SETTINGS),
        *(EvidenceCode.LIKE_FOR_LIKE, EvidenceCode.METRICS),
    },
    "DELETE FROM rating": {
        *(EvidenceCode.BLINDING, EvidenceCode.CLINICIANS, EvidenceCode.CLINICIAN_AGREEMENT),
        *(EvidenceCode.MISSING, EvidenceCode.READINGS, EvidenceCode.TABLE),
    },
}


def test_evidence_goes_when_what_it_rests_on_is_taken_out(engine):
    fill_all(engine)
    whole = {code: own for code, own in _all(engine).items() if own}
    lacking = {*EvidenceCode} - {*whole}
    assert lacking == {EvidenceCode.DESCRIPTION, EvidenceCode.DECISION}  # a text without a page
    for statement, gone in (RECORDED | RATED).items():
        with engine.begin() as connection:
            connection.execute(text(statement))
        left = _recorded(engine) if statement in RECORDED else _all(engine)
        assert gone <= {*whole}, (statement, gone - {*whole})
        assert not [code for code in gone if left.get(code)], statement
        found = whole | {code: left.get(code, ()) for code in gone}
        for filled in dossier_items(ITEMS, found):
            if {*filled.item.evidence} & gone:
                assert filled.status is not ItemStatus.DONE, (statement, filled.item.number)


def _all(engine: Engine) -> Mapping[EvidenceCode, tuple[str, ...]]:
    return dossiers.evidence_of(engine, facts(engine), dossiers.calibrated(engine, 5))


def _recorded(engine: Engine) -> dict[EvidenceCode, tuple[str, ...]]:
    """Return what needs no analysis; the analyses themselves are too slow for each statement."""
    return dossiers.evidence_of(engine, facts(engine))


def test_what_is_undefined_too_little_unknown_or_not_of_the_jury_is_no_evidence():
    figures = {"benchmark": "b", "scorer": "jury", "icc": 0.5, "low": 0.4, "high": 0.6}
    known = AgreementRow(**figures)
    assert [*dossiers.agreement(known, "ICC")] == ["ICC: 0.50 (95 % interval 0.40 to 0.60)"]
    for name in ("icc", "low", "high"):
        assert not [*dossiers.agreement(replace(known, **{name: NAN}), "ICC")]
    none_unsafe = DetectionRow("b", "jury", "safety", 2, n=10, n_bad=0, n_missed=0)
    assert not [*dossiers.detection([none_unsafe])]
    [told] = dossiers.detection([replace(none_unsafe, n_bad=3, n_missed=1, sensitivity=2 / 3)])
    assert "1 of them missed by the jury; share that the jury found 0.67" in told
    made = ("non_inferior", "inferior", "inconclusive", "simulated")
    for kind in {*map(DecisionKind, made), DecisionKind.NO_PROTOCOL, DecisionKind.TOO_FEW}:
        decision = Decision("agreement", kind, 0.1, 0.0, 0.2)
        assert bool([*dossiers.decided(["j1"], decision)]) == (kind in made)
    profile = {"model": "x", "provider": "openai", "temperature": 0.0, "base_url": "http://inside"}
    [told] = dossiers.juror_settings(["j1"], {"j1": profile})
    assert re.fullmatch(".*: provider openai, temperature 0.0; SHA-256 [0-9a-f]{64}", told)
    assert not [*dossiers.juror_settings(["j1", "j2"], {"j1": profile})]


def test_a_full_study_has_every_evidence_but_a_protocol_fixed_late(engine, run, tmp_path):
    fill_all(engine)
    for name in ("d.html", "d.md"):
        call = ("share", "dossier", "--to", "tripod-llm", "--reps", "20")
        code, out, err = run(*call, "--out", str(tmp_path / name), "--json", "-")
        assert code == 0, err
        body = json.loads(out)
        assert body["counts"]["not_done"] == 0
        assert body["file"] == str(tmp_path / name)
        page = (tmp_path / name).read_text("utf-8")
        plain = html.unescape(page) if name == "d.html" else page.replace("\\", "")
        assert "model-1" not in out + page
        assert body["decision"]["headline"] in plain
        for item in body["items"]:
            assert item["about"] in plain
        assert "were the subjects" in plain
        assert "Like for like" in plain
    before = _recorded(engine)
    assert before[EvidenceCode.PRESPECIFIED]
    assert EvidenceCode.DESCRIPTION not in before  # a text without a page of instructions
    fixed = {"margin": 0.2, "criterion": "", "panel": "", "jurors": ["j1"], "responses": 9}
    fixed |= {"method": "paper", "critical": [], "floor": 0, "because": ""}
    set_protocol(engine, "coordinator", fixed)
    after = _recorded(engine)
    assert after[EvidenceCode.PROTOCOL]
    assert EvidenceCode.PRESPECIFIED not in after


def test_a_simulated_study_says_so_in_every_file_and_on_every_page(engine, run, tmp_path):
    fill_all(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = true WHERE handle = 'dr_a'"))
    for name in ("d.html", "d.md"):
        call = ("share", "dossier", "--to", "grras", "--reps", "5", "--out", str(tmp_path / name))
        code, out, err = run(*call, "--json", "-")
        assert code == 0, err
        assert json.loads(out)["simulated"] == ["dr_a"]
    page = (tmp_path / "d.html").read_text("utf-8")
    assert page.count(SIMULATED) >= 2
    headings = re.findall("<h[12]>.*?</h[12]>|<strong>(?:Done|Partly|Not done|To be).*", page)
    assert len(headings) > 10
    assert all(SIMULATED in line for line in headings), "each printed page has an item"
    assert "<title>SIMULATED" in page
    headings = re.findall("^##? .*$", (tmp_path / "d.md").read_text("utf-8"), re.MULTILINE)
    assert headings
    assert all(SIMULATED in line for line in headings)
