"""`medjury analyse calibrate`: the table, its details and parts, its check by pingouin, and reports."""

import io
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.commands import command
from kit.scores import study
from kit.studies import AUTHOR, HEAD, Run, bring_in, rated
from kit.study_place import behind_the_record, fill
from rich.console import Console
from sqlalchemy import Engine
from sqlmodel import select

from calibration.pingouin_check import pingouin_check
from calibration.scope import AgreementRow
from calibration.table import agreement_rows
from calibration.tables.agreement import AGREEMENT
from calibration.tables.jurors import SECTIONS
from calibration.values import NAN, AnalysisOptions
from data.database import open_study
from data.schema import Attempt, Purpose, Rater, Status
from data.study.ledger import compositions_tried
from medjury.cli import output
from medjury.cli.output import emit, fitted

CRITERIA = ("accuracy", "completeness", "clarity")
DOCTORS, JURORS = ("dr-a", "dr-b", "dr-c"), ("gpt", "llama", "claude")
LONG = ("gpt-4o-2024-11-20", "claude-opus-4", "llama-3.3-70b")
BERT = "bertscore-all-MiniLM-L6-v2-5"
SCORES = "response_id,rater,kind,accuracy,completeness,clarity"
N = 39


def calibrated(run: Run, *options: str, reps: int = 50) -> dict[str, Any]:
    code, out, err = run("analyse", "calibrate", "--json", "-", "--reps", str(reps), *options)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("room", [80, 100, 120])
def test_every_line_of_a_table_fits_the_screen_and_no_scorer_is_folded(room, monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=written, width=room))
    widest = dict.fromkeys(["icc", "low", "high", "f_low", "f_high", "spearman"], -1.25)
    undefined = dict.fromkeys(["f_low", "f_high", "spearman"], NAN)
    names = ("jury", f"metric:{BERT}")
    rows = [AgreementRow("b", name, **widest, n_responses=384) for name in names]
    rows.append(AgreementRow("b", "clinicians", **widest | undefined, n_responses=384, n_pairs=3))
    emit(fitted(AGREEMENT, rows, "title"))
    lines = written.getvalue().splitlines()
    assert any(line.startswith(BERT) for line in lines)
    assert any(line.startswith("Clinicians, by pairs") for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= room


@pytest.fixture
def like_the_demo(run, tmp_path) -> Run:
    """Make a study of two benchmarks, three jurors and two metrics that every response has."""
    random = np.random.default_rng(1)
    for benchmark, n, first in (("visits", 40, 0), ("plans", 30, 40)):
        rated(run, tmp_path, LONG, benchmark, n, first)
    lines = ["response_id,rater,kind,criterion,score"]
    for i in range(70):
        lines += [f"r{i},{name},metric,f,{random.random():.3f}" for name in ("rouge-l", BERT)]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    assert run("rate", "ratings", str(tmp_path / "m.csv"))[0] == 0
    return run


def test_the_decision_is_first_and_the_table_fits_a_screen(like_the_demo, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = like_the_demo("analyse", "calibrate")
    assert code == 0
    said = (out + err).replace(str(tmp_path), "/study")  # the tests' folder has a long name
    shown = [part for line in said.splitlines() for part in textwrap.wrap(line, 80) or [""]]
    assert len(shown[: shown.index("Each clinician against the mean of the others")]) <= 24
    assert len(shown) <= 33, "\n".join(shown)
    assert shown[0].startswith("jury: ")
    assert shown[1].startswith("Not judged")
    assert (out + err).splitlines()[-1].startswith("study ")
    assert sum(line.startswith("Scorer") for line in shown) == 1  # the combined table alone
    for scorer in ("Jury", *LONG, "rouge-l", BERT, "Clinicians, by pairs", "Like for like"):
        assert any(line.startswith(scorer) for line in shown), scorer


def test_json_has_the_decision_and_the_notes_as_codes_beside_their_words(like_the_demo):
    body = calibrated(like_the_demo, reps=400)
    decision = body["decision"]
    rows = {(one["benchmark"], one["scorer"]): one for one in body["rows"]}
    held = rows["combined", "like_for_like"]
    figures = [decision[name] for name in ("estimate", "low", "high")]
    assert figures == [held["icc"], held["low"], held["high"]]
    assert decision["reasons"][0]["code"] == "gap"
    assert all(one["code"] and one["words"] for one in decision["reasons"])
    assert decision["next"]["code"].startswith("do_")
    for one in body["rows"]:
        codes = [own["code"] for own in one["notes"]]
        assert len(codes) == len(one["note"].split("; ")) if codes else one["note"] == ""
    assert held["jury_icc"] - held["clinician_icc"] == pytest.approx(held["icc"])
    assert (held["corrected_low"], held["corrected_high"]) == (None, None)
    alone = rows["visits", "like_for_like"]
    assert alone["corrected_low"] < alone["low"] < alone["high"] < alone["corrected_high"]
    assert alone["undefined_resamples"] == 0


def test_unsafe_responses_and_subgroups_are_told_where_they_are_to_be_and_in_json(run, tmp_path):
    random = np.random.default_rng(5)
    texts = ["instance_id,benchmark,context,prompt,response_id,model,response,group:language"]
    scores = [SCORES]
    for i in range(120):  # the jury errs in German
        language = "de" if i % 3 else "en"
        texts.append(f"i{i},visits,Pain.,Write.,r{i},m{i % 2},Words {i}.,{language}")
        quality = 1 + random.integers(5)
        for name in (*DOCTORS, *JURORS[:2]):
            kind = "clinician" if name in DOCTORS else "juror"
            spread = 2.5 if kind == "juror" and language == "de" else 0.6
            own = np.clip(np.round(quality + random.normal(0, spread, 3)), 1, 5).astype(int)
            scores.append(f"r{i},{name},{kind},{own[0]},{own[1]},{own[2]}")
    bring_in(run, tmp_path, texts, scores)
    fixed = ("study", "protocol", "set", "--margin", "0.1", "--jurors", "gpt,llama")
    asked = ("analyse", "calibrate", "--reps", "100")
    assert run(*fixed, "--critical", "accuracy<=2")[0] == 0
    brief, long = run(*asked)[1], run(*asked, "--details")[1]
    assert [one.count("Unsafe responses, ") for one in (brief, long)] == [1, 1]
    assert re.search(r"Jury +\d+ of \d+ +0\.\d\d +0\.\d\d to [01]\.\d\d +0\.\d\d", brief)
    assert ("language: de" in brief, "language: en" in brief) == (True, False)
    assert "language: en" in long
    body = calibrated(run, reps=100)
    scorers = {one["scorer"] for one in body["detection"]}
    assert scorers == {"jury", "jury_held_out", "juror:gpt", "juror:llama", "clinicians"}
    of = {one["value"]: one for one in body["subgroups"]}
    assert (of["de"]["finding"], of["en"]["finding"]) == ("lower", "shown")
    assert of["de"]["notes"][0]["code"] == "lower_in_subgroup"
    assert of["de"]["p_holm"] == pytest.approx(of["de"]["p"])
    assert run(*fixed)[0] == 0
    assert "nsafe" not in run(*asked, "--details")[1]


@pytest.fixture(scope="module")
def made(study, tmp_path_factory) -> Engine:
    """Make a study of 30 instances with three clinicians and three jurors once."""
    rows = [f"i{n},visits,Pain.,Write.,Word.,r{n},m{n % 3},Word {'more ' * n}" for n in range(30)]
    scores = [SCORES]
    for n, (place, name) in product(range(30), enumerate((*DOCTORS, *JURORS))):
        own = [1 + (n * (3 + place % 2) + step + place) % 5 for step in range(3)]
        kind = "clinician" if name in DOCTORS else "juror"
        scores.append(f"r{n},{name},{kind},{own[0]},{own[1]},{own[2]}")
    run = command(study)
    bring_in(run, tmp_path_factory.mktemp("made"), [HEAD, *rows], scores)
    assert run("analyse", "measure", "rouge-l")[0] == 0
    return study


@pytest.fixture
def detailed(engine, made) -> None:
    """Make the test's study a copy of it."""
    fill(engine, made)


@pytest.fixture(scope="module")
def shown(made, tmp_path_factory, study_in) -> dict[str, Any]:
    """Calibrate in detail once, on a copy, for all tests that only read what is written."""
    folder = tmp_path_factory.mktemp("shown")
    looked = open_study(study_in(folder), create=True)
    fill(looked, made)
    asked = ("--details", "--reps", "50", "--json", str(folder / "c.json"))
    code, out, err = command(looked)("analyse", "calibrate", *asked)
    looked.dispose()
    assert code == 0, err
    body: dict[str, Any] = json.loads((folder / "c.json").read_text("utf-8"))
    return body | {"printed": out}


def test_every_section_is_printed_and_written(shown):
    found, out = shown["details"], shown["printed"]
    assert set(found) == set(SECTIONS)
    for name, section in SECTIONS.items():
        assert found[name] or name in ("applicability", "abstention"), name  # nothing was left open
        assert not found[name] or (section.unwanted or section.caption) in out


def test_a_study_without_a_juror_has_the_details_of_its_clinicians(run, tmp_path):
    rows = [HEAD, *(f"i{n},visits,Pain.,Write.,,r{n},m,Word {n}" for n in range(6))]
    own = product(range(6), DOCTORS)
    scores = [SCORES, *(f"r{n},{name},clinician,{1 + n % 5},3,{1 + n % 4}" for n, name in own)]
    bring_in(run, tmp_path, rows, scores)
    assert calibrated(run, "--details")["details"]["reliability"]


@pytest.mark.usefixtures("detailed")
def test_the_details_of_one_benchmark_are_those_of_a_study_of_it_alone(run, shown, tmp_path):
    rows = [HEAD, *(f"i{n},letters,Pain.,Write.,,l{n},m,Word {n}" for n in range(6))]
    scores = [SCORES]
    for n, (place, name) in product(range(6), enumerate((*DOCTORS, *JURORS))):
        kind = "clinician" if name in DOCTORS else "juror"
        scores.append(f"l{n},{name},{kind}" + f",{1 + (n + place) % 5}" * 3)
    bring_in(run, tmp_path, rows, scores)
    found = calibrated(run, "--details", "--benchmark", "visits")
    assert found["rows"] == shown["rows"]
    for section in set(SECTIONS) - {"differences"}:  # Holm counts what was tried before
        assert found["details"][section] == shown["details"][section], section


@pytest.mark.usefixtures("detailed")
def test_every_jury_looked_at_stands_in_the_ledger_and_is_counted_beside_p(run, engine):
    def tried(*options: str) -> set[int]:
        rows = calibrated(run, "--details", *options)["details"]["differences"]
        return {row["n_tried"] for row in rows}

    assert [tried(), tried(), tried("--jurors", "gpt,llama")] == [{4}, {4}, {4 + 3}]
    tried = [one for one in compositions_tried(engine) if not one.criterion]
    found = {",".join(one.jurors): one.times for one in tried}
    assert found == {"claude,gpt,llama": 2, "gpt,llama": 1}
    assert run("study", "verify")[0] == 0


@pytest.mark.usefixtures("detailed")
def test_families_of_imported_jurors_are_the_panels(run, shown, tmp_path):
    panel = ['name = "imported"']
    for name in JURORS:
        panel += ["[[juror]]", f'name = "{name}"', f'family = "{name}"', 'model = "x"']
        panel += ['provider = "openai"', 'base_url = "http://127.0.0.1:1/v1"', 'api_key_env = ""']
    (tmp_path / "panel.toml").write_text("\n".join(panel))
    for row in shown["details"]["self_preference"]:
        assert str(row["note"]).startswith("undefined: imported, no family is stored")
    found = calibrated(run, "--details", "--panel", str(tmp_path / "panel.toml"))
    named = found["details"]["self_preference"]
    assert [row["family"] for row in named] == [*JURORS]
    assert not any("imported" in str(row["note"]) for row in named)


def given(run: Run, folder: Path, **raters: str) -> None:
    """Import 39 responses and scores: of each rater and criterion "a+b", for a + n % b of response n."""
    lines = [SCORES]
    for name, formulas in raters.items():
        kind = "clinician" if name.startswith("dr") else "juror"
        for n in range(N):
            parts = [[int(part) for part in one.split("+")] for one in formulas.split(";") if one]
            own = [str(least + n % (points[0] if points else 1)) for least, *points in parts]
            lines.append(f"r{n},{name},{kind},{','.join(own)}{',' * (3 - len(own))}")
    texts = [HEAD, *(f"i{n},visits,c{n},p,,r{n},m,said {n}" for n in range(N))]
    bring_in(run, folder, texts, lines)


FLAT = {"dr_a": "3;3;3", "dr_b": "4;4;4"}


@pytest.mark.parametrize(
    ("raters", "reason", "told", "clinicians"),
    [
        ({"flat": "4;4;4"}, "the jury gave all 39", "do_jury_that_differs", 2),
        ({"judge": "1+5;1+4;3"} | FLAT, "the clinicians gave all 39", "do_varied", 2),
        ({"part": "1+5;1+4;"}, "scores of 1 of the jurors", "do_run_jury_on", 0),
    ],
)
@pytest.mark.parametrize("method", ["paper", "published"])
def test_scores_that_tell_nothing_apart_are_named_where_the_decision_stands(
    run, tmp_path, raters, reason, told, clinicians, method
):
    given(run, tmp_path, **{"dr_a": "1+5;1+4;3+2", "dr_b": "1+5;1+5;3+3"} | raters)
    decision = calibrated(run, "--method", method)["decision"]
    assert decision["kind"] == "undefined"
    assert reason in (words := decision["reasons"][0]["words"])
    assert ("responses the same score" in words) == ("gave" in reason)
    assert decision["next"]["code"] == told
    assert decision["basis"][0]["clinicians"] == clinicians


@pytest.fixture
def written(run, tmp_path) -> Callable[..., str]:
    """Import a study and return what writes a report page of it."""
    rated(run, tmp_path)

    def write(*options: str) -> str:
        page = tmp_path / "r.html"
        asked = ("analyse", "calibrate", "--reps", "20", *options)
        assert run(*asked, "--html", str(page))[0] == 0
        return page.read_text("utf-8")

    return write


def test_all_four_reports_name_no_author_and_no_text_but_another_model(written, tmp_path, engine):
    places = [tmp_path / f"report.{ending}" for ending in ("html", "md", "csv", "tex")]
    options = [part for to in places for part in ("--table", str(to))]
    written(*options)
    for to in places:
        text = to.read_text("utf-8")
        assert AUTHOR not in text
        assert "Secret" not in text
        assert "gpt" in text
    assert list(tmp_path.glob("*.part")) == []
    with behind_the_record(engine) as session:
        gpt = session.exec(select(Rater).where(Rater.handle == "gpt")).one()
        gpt.profile = {"provider": "openai", "model": "gpt-9"}
        call = {"rater": gpt.id, "response": 1, "purpose": Purpose.VERDICT, "number": 1}
        answered = {"status": Status.OK, "returned_model": "gpt-9-mini", "request_sha256": "0"}
        session.add(Attempt(**call, **answered))
    assert "answers as gpt-9-mini, another model than it is asked for" in written()


def test_each_criterion_is_in_the_ledger_and_two_scorers_count_once(run, engine, written):
    text = written()
    entries = {one.criterion: one for one in compositions_tried(engine)}
    assert set(entries) == {"", *CRITERIA}
    assert len({one.fingerprint for one in entries.values()}) == 1
    assert "Here that makes 2 comparisons." in text  # two jurors: nobody chose among the criteria
    assert entries[""].fingerprint in text
    # the same two of scorers: a criterion makes no comparison anew
    assert "Here that makes 2 comparisons." in written("--criterion", "accuracy")
    assert run("study", "verify")[0] == 0


COMPARED = ("jury", "juror", "metric")


def check(scores, change=0.0, **options):
    asked = AnalysisOptions(reps=20, **options)
    rows = [
        replace(row, icc=row.icc + change) if row.scorer == "jury" else row
        for row in agreement_rows(scores, asked)
    ]
    return pingouin_check(scores, asked, rows)


@pytest.mark.parametrize("method", ["paper", "published"])
def test_pingouin_finds_the_icc_of_every_scorer_on_every_benchmark(method):
    scores = study(("aci", "mts"), n=30, seed=4)
    rows = agreement_rows(scores, AnalysisOptions(reps=20, method=method))
    ours = [row for row in rows if row.scorer.partition(":")[0] in COMPARED]
    found = check(scores, method=method)
    assert found.n == len(ours) > 5
    assert found.largest_difference < 1e-9
    assert not found.differs


def test_an_icc_that_is_off_is_named_and_fewer_scores_than_pingouin_takes_are_no_difference():
    found = check(study(n=30, seed=4), change=0.001)
    assert found.differs
    assert found.largest_difference == pytest.approx(0.001)
    assert "jury" in found.warning
    found = check(study(n=2, seed=2))
    assert (found.n, found.differs) == (0, False)


CALIBRATE = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # for Python it is not installed now
from medjury import main
main(["analyse", "calibrate", "-q", "--reps", "20", "--json", "found.json"])
"""


def calibrated_by(run: Run, tmp_path, *absent: str):
    """Calibrate in a process of its own; return what it printed, its messages, and its JSON."""
    rated(run, tmp_path)
    call = [sys.executable, "-c", CALIBRATE, *absent]
    ran = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr, json.loads((tmp_path / "found.json").read_text("utf-8"))


def test_calibrate_says_that_pingouin_was_asked_or_is_not_there_and_goes_on(run, tmp_path):
    out, err, body = calibrated_by(run, tmp_path)
    told = body["checked_with"]
    line = f"checked with pingouin {told['version']}: {told['n']} ICCs, largest difference "
    assert (out.count(line), err) == (1, "")
    assert told["library"] == "pingouin"
    assert told["n"] == sum(row["scorer"].partition(":")[0] in COMPARED for row in body["rows"])
    assert told["largest_difference"] < 1e-9
    out, err, body = calibrated_by(run, tmp_path, "pingouin")
    assert (out.count("not checked: pingouin is not installed"), err) == (1, "")
    assert body["checked_with"] is None
    assert body["rows"]


def test_nothing_that_pingouin_sets_outlasts_the_check():
    told = """
import warnings
import numpy
with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    import pingouin
from kit.scores import study
from calibration.pingouin_check import pingouin_check
from calibration.table import agreement_rows
from calibration.values import AnalysisOptions
pingouin.options["round"] = 3
def state():
    return dict(pingouin.options), warnings.filters[:], numpy.geterr(), numpy.get_printoptions()
before = state()
asked = AnalysisOptions(reps=20)
scores = study(n=30, seed=4)
assert pingouin_check(scores, asked, agreement_rows(scores, asked)).largest_difference < 1e-9
assert state() == before
"""
    place = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    call = [sys.executable, "-W", "error", "-c", told]
    ran = subprocess.run(call, env=place, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
