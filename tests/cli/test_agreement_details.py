"""`medjury analyse calibrate --details`: every section is told and written, and the ledger is kept."""

import json
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from kit.studies import HEAD, Run, bring_in
from kit.study_place import StudyIn, fill
from sqlalchemy import Engine

from calibration.reliability import FORMS
from calibration.tables.jurors import SECTIONS
from calibration.values import AnalysisOptions
from data.database import open_study
from data.study.ledger import compositions_tried
from medjury import main
from medjury.services.calibrate import CalibrationQuestion, calibrate, more

RATERS = ("dr-a", "dr-b", "dr-c")
JURORS = ("gpt", "llama", "claude")
CRITERIA = ("accuracy", "completeness", "clarity")


@pytest.fixture(scope="module")
def made(study: Engine, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Make a study of 30 instances with three clinicians and three jurors once."""
    folder = tmp_path_factory.mktemp("made")
    rows = [HEAD]
    rows += [f"i{n},visits,Pain.,Write.,Word.,r{n},m{n % 3},Word {'more ' * n}" for n in range(30)]
    scores = ["response_id,rater,kind,criterion,score"]
    for n in range(30):
        for place, name in enumerate((*RATERS, *JURORS)):
            kind = "clinician" if name in RATERS else "juror"
            for step, criterion in enumerate(CRITERIA):
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
def rated(engine: Engine, made: Engine) -> None:
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
    for n, rater, criterion in product(range(6), RATERS, CRITERIA):
        scores.append(f"r{n},{rater},clinician,{criterion},{1 + n * len(criterion) % 5}")
    brought(engine, tmp_path, rows, scores)

    out = ran(engine, "analyse", "calibrate", "--details", "--reps", "50")

    assert "The clinicians' own reliability" in out
    assert "nothing to tell" in out


@pytest.mark.usefixtures("rated")
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


@pytest.mark.usefixtures("rated")
def test_the_details_of_one_benchmark_are_those_of_a_study_of_it_alone(
    run: Run, shown: Details, tmp_path: Path
) -> None:
    """A benchmark's own figures do not depend on what else the study holds."""
    rows = [HEAD]
    rows += [f"i{n},letters,Pain.,Write.,,l{n},m,Word {n}" for n in range(6)]
    scores = ["response_id,rater,kind,criterion,score"]
    for n in range(6):
        for place, name in enumerate((*RATERS, *JURORS)):
            kind = "clinician" if name in RATERS else "juror"
            scores += [f"l{n},{name},{kind},{one},{1 + (n + place) % 5}" for one in CRITERIA]
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


@pytest.mark.usefixtures("rated")
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


@pytest.mark.usefixtures("rated")
@pytest.mark.parametrize(
    ("jurors", "said"),
    [("gpt,,gpt", "gpt more than once and an empty name"), ("", "an empty name")],
)
def test_a_juror_named_twice_or_without_a_name_is_refused(jurors: str, said: str, run: Run) -> None:
    code, out, error = run("analyse", "calibrate", "--jurors", jurors)
    assert code == 2
    assert said in error
    assert not out


@pytest.mark.usefixtures("rated")
def test_an_unknown_juror_is_refused_before_a_jury_is_named(run: Run) -> None:
    code, out, error = run("analyse", "calibrate", "--jurors", "gpt,nobody")
    assert code == 2
    assert "no ratings by a juror nobody" in error
    assert "jury:" not in out


@pytest.mark.usefixtures("rated")
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
