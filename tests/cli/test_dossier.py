"""Reporting guidelines filled in from a study: an item is done only with its evidence."""

import html
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from kit.scores import NAN
from kit.sealed_study import fill_all
from kit.studies import Run
from sqlalchemy import Engine, text

from calibration.decision import Decision, DecisionKind
from calibration.detection import DetectionRow
from calibration.dossier import SIMULATED, ItemStatus, dossier_items
from calibration.scope import AgreementRow
from data.guidelines import GUIDELINES, EvidenceCode, guideline
from data.study.settings import set_protocol
from data.study.standing import facts
from medjury.services.dossier import (
    agreement,
    calibrated,
    decided,
    detection,
    evidence_of,
    juror_settings,
)

ITEMS = [item for name in GUIDELINES for item in guideline(name).items]

ALL = dict.fromkeys(EvidenceCode, ("1 response",))


@pytest.mark.parametrize("name", GUIDELINES)
def test_an_item_flips_when_any_of_its_evidence_is_removed(name: str) -> None:
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


@pytest.mark.parametrize("name", GUIDELINES)
def test_nothing_is_done_without_evidence(name: str) -> None:
    for filled in dossier_items(guideline(name).items, {}):
        wanted = ItemStatus.NOT_DONE if filled.item.evidence else ItemStatus.AUTHORS
        assert filled.status is wanted


@pytest.mark.parametrize("name", GUIDELINES)
def test_no_figure_of_a_simulated_study_makes_an_item_done(name: str) -> None:
    for filled in dossier_items(guideline(name).items, ALL, ["sim-1"]):
        assert filled.status in {ItemStatus.PARTLY, ItemStatus.AUTHORS}


# What is taken out of a full study -> the evidence that goes with it.
RECORDED = {
    "DELETE FROM event WHERE action = 'protocol set'": {
        EvidenceCode.PROTOCOL,
        EvidenceCode.PRESPECIFIED,
    },
    "UPDATE improvement SET result = '{}'": {EvidenceCode.IMPROVEMENT},
    "DELETE FROM drill": {EvidenceCode.TRAINING},
    "DELETE FROM setting WHERE key = 'per_response'": {EvidenceCode.ALLOCATION},
    "UPDATE attempt SET status = 'timeout'": {EvidenceCode.INFERENCE},
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


def test_evidence_goes_when_what_it_rests_on_is_taken_out(engine: Engine) -> None:
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
    return evidence_of(engine, facts(engine), calibrated(engine, 5))


def _recorded(engine: Engine) -> dict[EvidenceCode, tuple[str, ...]]:
    """Return what needs no analysis; the analyses themselves are too slow for each statement."""
    return evidence_of(engine, facts(engine))


def test_what_is_undefined_or_too_little_is_no_evidence() -> None:
    figures = {"benchmark": "b", "scorer": "jury", "icc": 0.5, "low": 0.4, "high": 0.6}
    known = AgreementRow(**figures)
    assert [*agreement(known, "ICC")] == ["ICC: 0.50 (95 % interval 0.40 to 0.60)"]
    for name in ("icc", "low", "high"):
        assert not [*agreement(replace(known, **{name: NAN}), "ICC")]
    none_unsafe = DetectionRow("b", "jury", "safety", 2, n=10, n_bad=0, n_missed=0)
    assert not [*detection([none_unsafe])]
    [told] = detection([replace(none_unsafe, n_bad=3, n_missed=1, sensitivity=2 / 3)])
    assert "1 of them missed by the jury; share that the jury found 0.67" in told


def test_the_decision_is_evidence_only_where_it_speaks_of_the_jury() -> None:
    made = ("non_inferior", "inferior", "inconclusive", "simulated")
    for kind in {*map(DecisionKind, made), DecisionKind.NO_PROTOCOL, DecisionKind.TOO_FEW}:
        decision = Decision("agreement", kind, 0.1, 0.0, 0.2)
        assert bool([*decided(["j1"], decision)]) == (kind in made)


def test_a_jury_of_which_one_jurors_settings_are_unknown_has_none_to_report() -> None:
    profile = {"model": "x", "provider": "openai", "temperature": 0.0, "base_url": "http://inside"}
    [told] = juror_settings(["j1"], {"j1": profile})
    assert re.fullmatch(".*: provider openai, temperature 0.0; SHA-256 [0-9a-f]{64}", told)
    assert not [*juror_settings(["j1", "j2"], {"j1": profile})]


def test_a_protocol_fixed_after_ratings_is_not_fixed_before(engine: Engine) -> None:
    fill_all(engine)
    before = _recorded(engine)
    assert before[EvidenceCode.PRESPECIFIED]
    assert EvidenceCode.DESCRIPTION not in before  # a text without a page of instructions
    fixed = {"margin": 0.2, "criterion": "", "panel": "", "jurors": ["j1"], "responses": 9}
    set_protocol(
        engine,
        "coordinator",
        fixed | {"method": "paper", "critical": []} | {"floor": 0, "because": ""},
    )
    after = _recorded(engine)
    assert after[EvidenceCode.PROTOCOL]
    assert EvidenceCode.PRESPECIFIED not in after


def test_a_full_study_has_every_evidence_in_both_files(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
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


def test_a_simulated_study_says_so_in_every_file_and_on_every_page(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
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
