"""Corpora as their authors publish them: whole, under the names the files give, or not at all."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine

from data.importers.published import aci_bench, mts_dialog
from data.importers.responses import ResponseFile
from data.importers.table import TableFile
from data.queries import pairs
from data.queries.study import design_items

Write = Callable[[str, str], Path]
ROOT = Path(__file__).parents[1]
DATASETS = Path(__file__).parents[2] / "shared" / "datasets"
VISITS = "dataset,encounter_id,dialogue,note\naci,D1,[doctor] Hi,Seen.\naci,D2,[doctor] Bye,Gone.\n"
SYSTEM = "dataset,encounter_id,dialogue,note\naci,D1,[doctor] Hi,A note.\naci,D2,[doctor] Bye,B.\n"
SUMMARIES = (
    "ID,Dialogue,Reference Summary,Automatic Summary\n"
    "0,Doctor: Hi,Ref 0,One\n1,Doctor: Ho,Ref 1,Two\n0,Doctor: Hi,Ref 0,Three\n1,Doctor: Ho,Ref 1,\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder laid out as ACI-Bench's."""
    (tmp_path / "aci" / "predictions").mkdir(parents=True)
    (tmp_path / "aci" / "test1.csv").write_text(VISITS, "utf-8")
    (tmp_path / "aci" / "valid.csv").write_text(VISITS.replace("D", "V"), "utf-8")
    for name in ("BART_test1_full", "longest_test1"):
        (tmp_path / "aci" / "predictions" / f"{name}.csv").write_text(SYSTEM, "utf-8")
    return tmp_path / "aci"


def test_a_folder_of_aci_bench_is_visits_references_and_systems(
    run: Run, engine: Engine, folder: Path
) -> None:
    code, out, err = run("study", "import", str(folder), "--format", "aci-bench")
    assert code == 0, err
    assert "4 responses to 2 new instances" in out
    assert "rated on the rubric aci_bench" in out
    assert run("study", "unblind", "--reason", "a test of authors")[0] == 0
    assert {one.model for one in design_items(engine)} == {"BART_full", "longest"}
    assert {one.reference for one in pairs(engine)} == {"Seen.", "Gone."}
    assert "nothing changed" in run("study", "import", str(folder), "--format", "aci-bench")[1]


def test_files_named_one_by_one_are_the_visits_and_then_the_systems(
    run: Run, engine: Engine, folder: Path
) -> None:
    paths = (folder / "test1.csv", folder / "predictions" / "longest_test1.csv")
    assert run("study", "import", *map(str, paths), "--format", "aci-bench")[0] == 0
    assert run("study", "unblind", "--reason", "a test of authors")[0] == 0
    assert {one.model for one in design_items(engine)} == {"longest"}


def test_systems_of_mts_dialog_are_told_apart_by_the_ids_that_come_again(
    run: Run, engine: Engine, write: Write
) -> None:
    path = write("summaries.csv", SUMMARIES.replace("Ref 1,\n", "Ref 1,Four\n"))
    assert run("study", "import", str(path), "--format", "mts-dialog")[0] == 0
    assert run("study", "unblind", "--reason", "a test of authors")[0] == 0
    found = [(one.model, one.benchmark) for one in design_items(engine)]
    assert found == [(f"system-{1 + n // 2}", "mts_dialog") for n in range(4)]


def test_a_corpus_that_is_not_whole_is_refused_and_nothing_stored(
    run: Run, engine: Engine, folder: Path, write: Write
) -> None:
    stray = write("stray.csv", SYSTEM.replace("D2", "D9"))
    wrong = [
        ((folder / "test1.csv",), "aci-bench", "references; name the files"),
        ((folder / "test1.csv", stray), "aci-bench", "test1.csv has no such visit"),
        ((folder / "predictions",), "aci-bench", "no file of visits"),
        ((write("x.csv", SUMMARIES),), "aci-bench", "'encounter_id' is missing"),
        ((folder / "test1.csv",), "mts-dialog", "'ID' is missing"),
        ((write("x.csv", SUMMARIES),), "mts-dialog", "an empty response cannot be rated"),
        ((stray, stray), "mts-dialog", "give the one file"),
    ]
    for paths, form, said in wrong:
        code, _, err = run("study", "import", *map(str, paths), "--format", form)
        assert (code, len(err.strip().splitlines())) == (2, 1), said
        assert said in err
        assert "[doctor]" not in err
    assert not design_items(engine)


@pytest.mark.real
def test_the_importer_reads_what_the_script_of_the_docs_writes(tmp_path: Path) -> None:
    if not (DATASETS / "aci_bench").is_dir():
        pytest.skip(f"the public data set aci_bench is not at {DATASETS / 'aci_bench'}")
    script = ROOT / "docs" / "real_data" / "aci_bench.py"
    subprocess.run([sys.executable, str(script), str(DATASETS), str(tmp_path)], check=True)
    theirs = ResponseFile(TableFile(tmp_path / "responses.csv"))
    ours = ResponseFile(aci_bench([DATASETS / "aci_bench"]))
    given = [{one.response_id: (one.context, one.model, one.response)} for one in ours]
    assert len(given) == 520
    assert given == [{one.response_id: (one.context, one.model, one.response)} for one in theirs]


@pytest.mark.real
def test_mts_dialog_has_four_systems_of_a_hundred_summaries() -> None:
    path = DATASETS / "mts_dialog" / "MTS-Dialog-Automatic-Summaries-ValidationSet.csv"
    if not path.is_file():
        pytest.skip(f"the public data set mts_dialog is not at {path.parent}")
    rows = list(ResponseFile(mts_dialog([path])))
    with path.open(encoding="utf-8-sig", newline="") as file:
        given = [one["Automatic Summary"] for one in csv.DictReader(file)]
    assert [one.response for one in rows] == given
    for number in range(4):
        block = rows[100 * number : 100 * number + 100]
        assert {one.model for one in block} == {f"system-{number + 1}"}
        assert [one.instance_id for one in block] == [str(key) for key in range(100)]
