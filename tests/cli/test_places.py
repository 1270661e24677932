"""Where commands write: never over a study, never two things into one file, whole or not at all."""

from pathlib import Path

import pytest
from kit.studies import Run, rated
from sqlalchemy import Engine

from data.errors import BadFile
from data.study.ledger import compositions_tried
from medjury.cli.files import write_files, write_json

WRITING = [
    *(["analyse", "calibrate", f"--{name}"] for name in ("json", "html")),
    *(["analyse", "predict", f"--{name}"] for name in ("json", "csv")),
    *(["analyse", name, "--json"] for name in ("juries", "models", "monitor")),
    *(["study", name, "--json"] for name in ("verify", "settings")),
    ["study", "plan", "--icc", "0.5", "--json"],
    ["rate", "assign", "--raters", "2", "--json"],
    ["jury", "missing", "--json"],
    ["study", "unblind", "--reason", "asked", "--out"],
]


@pytest.mark.parametrize("command", WRITING, ids=" ".join)
@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-journal"])
def test_no_output_is_written_over_a_study(
    command: list[str], ending: str, run: Run, engine: Engine, study_file: Path
) -> None:
    to = study_file.with_name(f"study.db{ending}")
    before = to.read_bytes() if to.exists() else None

    code, out, err = run(*command, str(to))

    assert (code, out) == (2, "")
    assert f"{command[-1]} {to}: is an SQLite database" in err
    assert (to.read_bytes() if to.exists() else None) == before
    assert run("study", "verify")[0] == 0


def test_a_link_to_a_study_is_the_study(run: Run, engine: Engine, study_file: Path) -> None:
    link = study_file.with_name("report.json")
    link.symlink_to(study_file)
    assert "SQLite database" in run("study", "settings", "--json", str(link))[2]


SAME = [
    ["analyse", "predict", "--csv", "{to}", "--json", "{to}"],
    ["analyse", "calibrate", "--json", "{to}", "--html", "{to}"],
    ["analyse", "calibrate", "--html", "{to}", "--html", "{folder}/../{folder_name}/a"],
]


@pytest.mark.parametrize("command", SAME, ids=" ".join)
def test_two_options_that_name_one_file_are_refused_before_any_work(
    command: list[str], run: Run, engine: Engine, tmp_path: Path
) -> None:
    named = {"to": tmp_path / "a", "folder": tmp_path, "folder_name": tmp_path.name}
    code, out, err = run(*(one.format(**named) for one in command))
    assert (code, out) == (2, "")
    assert f"{command[2]} is to be written there; name another file" in err
    assert not (tmp_path / "a").exists()
    assert compositions_tried(engine) == []


def test_a_folder_that_is_not_there_does_not_lift_the_blind(run: Run, tmp_path: Path) -> None:
    rated(run, tmp_path)
    told = run("study", "unblind", "--reason", "asked", "--out", str(tmp_path / "absent" / "a.csv"))
    assert (told[0], "not a file in a folder that exists" in told[2]) == (2, True)
    assert run("analyse", "calibrate", "--reps", "20")[1].count("unblinded") == 0


def test_what_cannot_be_written_leaves_the_old_files_and_no_other(tmp_path: Path) -> None:
    old, full = tmp_path / "a.json", Path("/dev/full")
    old.write_text("old")
    with pytest.raises(BadFile, match=r"--html /dev/full: No space left"):
        write_files({"--json": (old, "new"), "--html": (full, "x" * 100_000)})
    assert [one.name for one in tmp_path.iterdir()] == ["a.json"]
    assert old.read_text() == "old"


def test_a_file_written_anew_keeps_who_may_read_it_and_a_link_stays_one(tmp_path: Path) -> None:
    old, link = tmp_path / "a.json", tmp_path / "link.json"
    old.write_text("old")
    old.chmod(0o600)
    link.symlink_to(old)
    write_json({"icc": 0.5}, link)
    assert link.is_symlink()
    assert '"icc": 0.5' in old.read_text()
    assert old.stat().st_mode & 0o777 == 0o600


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_json({"icc": 0.5}, Path("/dev/null"))
    assert Path("/dev/null").is_char_device()
