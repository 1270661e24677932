"""`medjury analyse calibrate`: its table, its details, its parts, and what is told where scores are all the same."""

import io
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.studies import HEAD, Run, bring_in, rated
from kit.study_place import StudyIn, fill
from rich.console import Console
from sqlalchemy import Engine

from calibration.reliability import FORMS
from calibration.scope import AgreementRow, LikeForLikeRow
from calibration.tables.agreement import AGREEMENT
from calibration.tables.jurors import SECTIONS
from calibration.values import NAN, AnalysisOptions
from data.database import open_study
from data.study.ledger import compositions_tried
from medjury import main
from medjury.cli import output
from medjury.cli.output import emit, fitted
from medjury.services.calibrate import CalibrationQuestion, calibrate, more

BERT = "bertscore-all-MiniLM-L6-v2-5"

FIGURES = dict.fromkeys(["icc", "low", "high", "f_low", "f_high", "spearman"], -1.25)


def row(scorer: str, **other: Any) -> AgreementRow:
    """Return a row with the widest figures there are."""
    kind = LikeForLikeRow if scorer == "like_for_like" else AgreementRow
    return kind("b", scorer, **FIGURES | {"n_responses": 384} | other)


CLINICIANS = row("clinicians", f_low=NAN, f_high=NAN, spearman=NAN, n_pairs=3)

ROWS = [row("jury"), row(f"metric:{BERT}"), CLINICIANS]


@pytest.mark.parametrize("room", [80, 100, 120])
def test_every_line_of_a_table_fits_the_screen_and_no_scorer_is_folded(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = io.StringIO()
    monkeypatch.setattr(output, "console", Console(file=written, width=room))

    emit(fitted(AGREEMENT, ROWS, "title"))

    lines = written.getvalue().splitlines()
    assert any(line.startswith(BERT) for line in lines)
    assert any(line.startswith("Clinicians, by pairs") for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= room


JURORS = ("gpt-4o-2024-11-20", "claude-opus-4", "llama-3.3-70b")


@pytest.fixture
def like_the_demo(run: Run, tmp_path: Path) -> Run:
    """Make a study of two benchmarks, three jurors and two metrics that every response has."""
    random = np.random.default_rng(1)
    for benchmark, n, first in (("visits", 40, 0), ("plans", 30, 40)):
        rated(run, tmp_path, JURORS, benchmark, n, first)
    lines = ["response_id,rater,kind,criterion,score"]
    for i in range(70):
        lines += [f"r{i},{name},metric,f,{random.random():.3f}" for name in ("rouge-l", BERT)]
    (tmp_path / "m.csv").write_text("\n".join(lines))
    assert run("rate", "ratings", str(tmp_path / "m.csv"))[0] == 0
    return run


def test_calibrate_shows_the_decision_first_and_the_table_on_one_screen_of_80_by_24(
    like_the_demo: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = like_the_demo("analyse", "calibrate")
    assert code == 0
    said = (out + err).replace(str(tmp_path), "/study")  # the tests' folder has a long name
    shown = [part for line in said.splitlines() for part in textwrap.wrap(line, 80) or [""]]
    assert len(shown[: shown.index("Each clinician against the mean of the others")]) <= 24
    assert len(shown) <= 33, "\n".join(shown)
    assert shown[0].startswith("jury: ")
    assert shown[1] == "Not judged: no margin was fixed for this analysis."
    assert (out + err).splitlines()[-1].startswith("study ")
    assert [line for line in shown if line.startswith("Scorer")] == [
        line for line in shown if "ICC(C,2)" in line
    ]  # one table, the combined one
    for scorer in ("Jury", *JURORS, "rouge-l", BERT, "Clinicians, by pairs", "Like for like"):
        assert any(line.startswith(scorer) for line in shown), scorer


def test_json_has_the_decision_and_the_notes_as_codes_beside_their_words(
    like_the_demo: Run,
) -> None:
    body = json.loads(like_the_demo("analyse", "calibrate", "--reps", "400", "--json", "-")[1])
    decision = body["decision"]
    rows = {(one["benchmark"], one["scorer"]): one for one in body["rows"]}
    held = rows["combined", "like_for_like"]
    keys = ["method", "k", "reps", "seed", "decision", "protocol", "reading", "adjudicated"]
    keys += ["rows", "raters", "reliability", "detection", "subgroups"]
    keys += ["checked_with"]
    assert list(body) == keys
    assert {"kind", "headline", "estimate", "low", "high", "reasons", "next"} <= decision.keys()
    assert (decision["estimate"], decision["low"], decision["high"]) == (
        *(held["icc"], held["low"], held["high"]),
    )
    assert next(one["code"] for one in decision["reasons"]) == "gap"
    assert all(one["code"] and one["words"] for one in decision["reasons"])
    assert decision["next"]["code"].startswith("do_")
    for one in body["rows"]:
        assert list(one)[-2:] == ["note", "notes"]
        codes = [own["code"] for own in one["notes"]]
        assert len(codes) == len(one["note"].split("; ")) if codes else one["note"] == ""
    assert {"jury_icc", "clinician_icc", "undefined_resamples"} <= held.keys()
    assert held["jury_icc"] - held["clinician_icc"] == pytest.approx(held["icc"])
    assert (held["corrected_low"], held["corrected_high"]) == (None, None)
    alone = rows["visits", "like_for_like"]
    assert alone["corrected_low"] < alone["low"] < alone["high"]
    assert alone["high"] < alone["corrected_high"]
    assert alone["undefined_resamples"] == 0


Shown = Callable[..., str]


@pytest.fixture
def in_german(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shown:
    """Make a study whose jury errs in German, and return what calibrate prints."""
    random = np.random.default_rng(5)
    texts = ["instance_id,benchmark,context,prompt,response_id,model,response,group:language"]
    scores = ["response_id,rater,kind,criterion,score"]
    for i in range(120):
        language = "de" if i % 3 else "en"
        texts.append(f"i{i},visits,Pain.,Write.,r{i},m{i % 2},Words {i}.,{language}")
        quality = 1 + random.integers(5)
        for name in ("dr-a", "dr-b", "dr-c", "gpt", "llama"):
            kind = "clinician" if name.startswith("dr") else "juror"
            spread = 2.5 if kind == "juror" and language == "de" else 0.6
            for criterion in ("accuracy", "completeness", "clarity"):
                score = int(np.clip(round(quality + random.normal(0, spread)), 1, 5))
                scores.append(f"r{i},{name},{kind},{criterion},{score}")
    critical = ("study", "protocol", "set", "--margin", "0.1", "--jurors", "gpt,llama")
    for name, lines, command in (
        ("r.csv", texts, "study import"),
        ("s.csv", scores, "rate ratings"),
    ):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
        assert run(*command.split(), str(tmp_path / name))[0] == 0
        assert run(*critical, "--critical", "accuracy<=2")[0] == 0
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: str) -> str:
        code, out, err = run("analyse", "calibrate", "--reps", "100", *arguments)
        assert code == 0, err
        return out

    return call


def test_responses_are_called_unsafe_only_where_a_criterion_is_critical(
    in_german: Shown, run: Run
) -> None:
    assert in_german("--details").count("Unsafe responses, ") == 1
    critical = in_german()
    run("study", "protocol", "set", "--margin", "0.1")
    assert "nsafe" not in in_german("--details")
    assert critical.count("Unsafe responses, ") == 1
    assert "visits: Unsafe responses, accuracy <= 2" in critical
    table = critical[critical.index("visits: Unsafe") :].splitlines()
    names = " ".join(line.split("  ")[0] for line in table[3:8])  # a long name goes on below
    assert names.startswith("Jury Jury, against the same others One clinician, against the others")
    assert re.search(r"Jury +\d+ of \d+ +0\.\d\d +0\.\d\d to [01]\.\d\d +0\.\d\d", critical)


def test_a_subgroup_for_which_agreement_is_not_shown_is_told_without_being_asked_for(
    in_german: Shown,
) -> None:
    out = in_german()
    assert "not in_german to hold for de as for the rest" in out
    assert "language: en" not in out
    assert "language: en" in in_german("--details")


def test_json_has_both_always_with_none_where_undefined(in_german: Shown, tmp_path: Path) -> None:
    in_german("--json", str(tmp_path / "o.json"))
    body = json.loads((tmp_path / "o.json").read_text())
    row = body["detection"][0]
    figures = {"sensitivity", "specificity", "auc", "read_for_90", "read_for_95", "ppv", "npv"}
    assert {"benchmark", "scorer", "criterion", "threshold", "n", "n_bad"} | figures <= set(row)
    ends = {f"{name}{end}" for name in ("sensitivity", "auc") for end in ("_low", "_high")}
    assert ends <= set(row)
    scorers = {one["scorer"] for one in body["detection"]}
    assert scorers == {"jury", "jury_held_out", "juror:gpt", "juror:llama", "clinicians"}
    of = {one["value"]: one for one in body["subgroups"]}
    assert (of["de"]["finding"], of["en"]["finding"]) == ("lower", "shown")
    assert of["de"]["notes"][0]["code"] == "lower_in_subgroup"
    assert of["de"]["p_holm"] == pytest.approx(of["de"]["p"])


RATERS = ("dr-a", "dr-b", "dr-c")

THREE = ("gpt", "llama", "claude")

THE_CRITERIA = ("accuracy", "completeness", "clarity")


@pytest.fixture(scope="module")
def made(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Make a study of 30 instances with three clinicians and three jurors once."""
    folder = tmp_path_factory.mktemp("made")
    rows = [HEAD]
    rows += [f"i{n},visits,Pain.,Write.,Word.,r{n},m{n % 3},Word {'more ' * n}" for n in range(30)]
    scores = ["response_id,rater,kind,criterion,score"]
    for n in range(30):
        for place, name in enumerate((*RATERS, *THREE)):
            kind = "clinician" if name in RATERS else "juror"
            for step, criterion in enumerate(THE_CRITERIA):
                score = 1 + (n * (3 + place % 2) + step + place) % 5
                scores.append(f"r{n},{name},{kind},{criterion},{score}")
    brought(study, folder, rows, scores)
    ran(study, "analyse", "measure", "rouge-l")
    return study


def brought(engine: Engine, folder: Path, responses: list[str], scores: list[str]) -> None:
    """Import the lines of two files."""
    for name, lines, command in (
        ("r.csv", responses, "study import"),
        ("s.csv", scores, "rate ratings"),
    ):
        (folder / name).write_text("\n".join(lines))
        ran(engine, *command.split(), str(folder / name))


def ran(engine: Engine, *arguments: str) -> str:
    """Run a command on a study to its good end and return what it printed."""
    url = engine.url.render_as_string(hide_password=False)
    with redirect_stdout(StringIO()) as out, pytest.raises(SystemExit) as ended:
        main(["--db", url, *arguments])
    assert not ended.value.code
    return out.getvalue()


@pytest.fixture
def detailed(engine: Engine, made: Engine) -> None:
    """Make the test's study a copy of it."""
    fill(engine, made)


@dataclass(frozen=True)
class Details:
    """What `analyse calibrate --details` printed and wrote."""

    out: str
    written: dict[str, Any]


@pytest.fixture(scope="module")
def shown(
    made: Engine, tmp_path_factory: pytest.TempPathFactory, study_in: StudyIn
) -> Iterator[Details]:
    """Run the command once, on a copy, for all tests that only read what it says."""
    folder = tmp_path_factory.mktemp("shown")
    looked, to = open_study(study_in(folder), create=True), folder / "d.json"
    fill(looked, made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        patch.setenv("TERM", "xterm")
        out = ran(looked, "analyse", "calibrate", "--details", "--reps", "50", "--json", str(to))
    yield Details(out, json.loads(to.read_text()))
    looked.dispose()


def test_every_section_is_printed_and_written(shown: Details) -> None:
    out = shown.out
    assert "Terms: kappa is" in out
    found = shown.written["details"]
    assert set(found) == set(SECTIONS)
    for name, section in SECTIONS.items():
        assert found[name], name
        assert (section.unwanted or section.caption) in out


def test_a_study_without_a_juror_has_the_details_of_its_clinicians(
    engine: Engine, tmp_path: Path
) -> None:
    rows = [HEAD, *(f"i{n},visits,Pain.,Write.,,r{n},m,Word {n}" for n in range(6))]
    scores = ["response_id,rater,kind,criterion,score"]
    for n, rater, criterion in product(range(6), RATERS, THE_CRITERIA):
        scores.append(f"r{n},{rater},clinician,{criterion},{1 + n * len(criterion) % 5}")
    brought(engine, tmp_path, rows, scores)

    out = ran(engine, "analyse", "calibrate", "--details", "--reps", "50")

    assert "The clinicians' own reliability" in out
    assert "nothing to tell" in out


@pytest.mark.usefixtures("detailed")
@pytest.mark.parametrize("asked", [{"reference": True}, {"details": True}, {"page": True}])
def test_reliability_is_computed_where_it_is_asked_for_alone(
    engine: Engine, asked: dict[str, bool]
) -> None:
    brief = CalibrationQuestion(AnalysisOptions(reps=20), further=False, reference=False)
    found = calibrate(engine, brief)
    assert not found.reference
    wider = more(engine, found, replace(brief, **asked))
    assert [row.form for row in wider.reference] == [*FORMS]
    assert wider.details.get("reliability", wider.reference) == [*wider.reference]


@pytest.mark.usefixtures("detailed")
def test_the_details_of_one_benchmark_are_those_of_a_study_of_it_alone(
    run: Run, shown: Details, tmp_path: Path
) -> None:
    """A benchmark's own figures do not depend on what else the study holds."""
    rows = [HEAD]
    rows += [f"i{n},letters,Pain.,Write.,,l{n},m,Word {n}" for n in range(6)]
    scores = ["response_id,rater,kind,criterion,score"]
    for n in range(6):
        for place, name in enumerate((*RATERS, *THREE)):
            kind = "clinician" if name in RATERS else "juror"
            scores += [f"l{n},{name},{kind},{one},{1 + (n + place) % 5}" for one in THE_CRITERIA]
    to = tmp_path / "d.json"
    asked = ("analyse", "calibrate", "--details", "--reps", "50", "--json", str(to))
    alone = shown.written
    bring_in(run, tmp_path, rows, scores)

    code, out, _ = run(*asked, "--benchmark", "visits")

    assert code == 0
    found = json.loads(to.read_text())
    assert found["rows"] == alone["rows"]
    for section in set(SECTIONS) - {"differences"}:  # Holm counts what was tried before
        assert found["details"][section] == alone["details"][section], section
    assert "letters" not in out


@pytest.mark.usefixtures("detailed")
def test_every_jury_looked_at_stands_in_the_ledger_and_is_counted_beside_p(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    to = tmp_path / "d.json"

    def differences(*options: str) -> list[dict[str, object]]:
        run("analyse", "calibrate", "--details", "--reps", "50", "--json", str(to), *options)
        rows: list[dict[str, object]] = json.loads(to.read_text())["details"]["differences"]
        return rows

    first = differences()
    assert {row["n_tried"] for row in first} == {len(first)} == {4}
    assert {row["n_tried"] for row in differences()} == {4}
    more = differences("--jurors", "gpt,llama")
    assert {row["n_tried"] for row in more} == {4 + 3}
    tried = [one for one in compositions_tried(engine) if not one.criterion]
    assert [(tuple(one.jurors), one.times) for one in tried] == [
        (("claude", "gpt", "llama"), 2),
        (("gpt", "llama"), 1),
    ]
    assert run("study", "verify")[0] == 0


@pytest.mark.usefixtures("detailed")
def test_families_of_imported_jurors_are_the_panels(
    run: Run, shown: Details, tmp_path: Path
) -> None:
    panel = ['name = "imported"']
    for name, family in (("gpt", "gpt"), ("llama", "llama"), ("claude", "claude")):
        panel += ["[[juror]]", f'name = "{name}"', f'family = "{family}"', 'model = "x"']
        panel += ['provider = "openai"', 'base_url = "http://127.0.0.1:1/v1"', 'api_key_env = ""']
    (tmp_path / "panel.toml").write_text("\n".join(panel))
    to = tmp_path / "d.json"

    def preferences(*options: str) -> list[dict[str, object]]:
        asked = ("analyse", "calibrate", "--details", "--reps", "50", "--json", str(to), *options)
        assert run(*asked)[0] == 0
        rows: list[dict[str, object]] = json.loads(to.read_text())["details"]["self_preference"]
        return rows

    for row in shown.written["details"]["self_preference"]:
        said = "undefined: imported, no family is stored: --panel names families"
        assert str(row["note"]).startswith(said)
    named = preferences("--panel", str(tmp_path / "panel.toml"))
    assert [row["family"] for row in named] == ["gpt", "llama", "claude"]
    assert not any("imported" in str(row["note"]) for row in named)


Write = Callable[[str, str], Path]

N = 39


def scored(run: Run, write: Write, **raters: str) -> None:
    """Import 39 responses and scores: of each rater and criterion "a+b", for a + n % b of response n."""
    texts = "".join(f"i{n},visits,c{n},p,,r{n},m,said {n}\n" for n in range(N))
    assert run("study", "import", str(write("r.csv", f"{HEAD}\n{texts}")))[0] == 0
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for name, formulas in raters.items():
        kind = "clinician" if name.startswith("dr") else "juror"
        for n in range(N):
            parts = [[int(part) for part in one.split("+")] for one in formulas.split(";")]
            scores = [str(least + n % (points[0] if points else 1)) for least, *points in parts]
            lines.append(f"r{n},{name},{kind},{','.join(scores)}")
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(lines))))[0] == 0


def calibrated(run: Run, *options: str) -> dict[str, Any]:
    code, out, err = run("analyse", "calibrate", "--reps", "200", "--json", "-", *options)
    assert code == 0, err
    body: dict[str, Any] = json.loads(out)
    return body


DOCTORS = {"dr_a": "1+5;1+4;3+2", "dr_b": "1+5;1+5;3+3"}


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_jury_that_gives_every_response_the_same_score_is_told_as_that(
    run: Run, write: Write, method: str
) -> None:
    scored(run, write, **DOCTORS, flat="4;4;4")
    body = calibrated(run, "--method", method)
    decision = body["decision"]
    assert decision["kind"] == "undefined"
    assert decision["reasons"][0]["words"] == (
        "undefined: the jury gave all 39 responses the same score: it tells no response from another"
    )
    basis = {name: decision["basis"][0][name] for name in ("responses", "instances", "clinicians")}
    assert basis == {"responses": N, "instances": N, "clinicians": 2}
    assert decision["next"]["code"] == "do_jury_that_differs"
    assert "two clinicians" not in json.dumps(body["rows"])
    assert [row["n_responses"] for row in body["rows"] if "j" in row["scorer"]] == [N, N]


def test_clinicians_who_give_every_response_the_same_score_leave_nothing_to_agree_with(
    run: Run, write: Write
) -> None:
    scored(run, write, dr_a="3;3;3", dr_b="4;4;4", judge="1+5;1+4;3")
    decision = calibrated(run)["decision"]
    assert decision["reasons"][0]["words"] == (
        "undefined: the clinicians gave all 39 responses the same score: they tell no response from "
        "another"
    )
    assert decision["basis"][0]["clinicians"] == 2
    assert decision["next"]["code"] == "do_varied"


def test_a_jury_that_scored_nothing_of_what_clinicians_rated_is_sent_to_score_it(
    run: Run, write: Write
) -> None:
    scored(run, write, **DOCTORS)
    lines = ["response_id,rater,kind,accuracy,completeness,clarity"]
    lines += [f"r{n},part,juror,{1 + n % 5},{1 + n % 4}," for n in range(N)]
    assert run("rate", "ratings", str(write("part.csv", "\n".join(lines))))[0] == 0
    decision = calibrated(run)["decision"]
    assert "scores of 1 of the jurors" in decision["reasons"][0]["words"]
    assert decision["basis"][0]["words"] == "no response that both scored; the jury scored 0 of 39"
    assert decision["next"]["words"] == "run the jury on the 39 responses that it has not scored"
