"""Half of something: files that were cut off, and commands that were killed in the middle."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest
from kit.commands import HEADER, assert_told, names, responses
from kit.packaged_study import made, packed, whole
from kit.studies import RESPONSES
from kit.study_place import all_rows

from data.database import open_study
from data.files import write_csv
from data.study.verify import verify

__all__ = ["made", "whole"]
ROWS = 2500


def command(*arguments):
    call = [sys.executable, "-m", "medjury", *arguments]
    return subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def killed_once(begun, process):
    """Kill a process once something has begun."""
    while not begun():
        assert process.poll() is None, (process.communicate()[1], "it ended before it was killed")
        threading.Event().wait(0.002)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it was killed"


def larger(path, size):
    return lambda: path.exists() and path.stat().st_size > size


def jsonl(tmp_path):
    cells = (f"i{n},v,c,p,r{n},m,text {n}".split(",") for n in (1, 2))
    rows = (dict(zip(HEADER.split(","), one, strict=True)) for one in cells)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    return path


def quoted(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(RESPONSES.replace("Patient denies fever.", '"Denies, so far."'), "utf-8")
    return path


def cut(path, at):
    """Return a copy of a file without its end, as a broken download leaves it."""
    short = path.with_name(f"cut-{path.name}")
    short.write_bytes(path.read_bytes()[:at])
    return short


@pytest.mark.parametrize(("kind", "at"), [(jsonl, -20), (jsonl, 30), (quoted, 130), (quoted, 200)])
def test_a_file_of_rows_that_was_cut_off_in_a_row_is_refused_whole(run, engine, tmp_path, kind, at):
    path = kind(tmp_path)
    before = all_rows(engine)
    assert_told(run("study", "import", str(cut(path, at))), "cut-rows", "nothing was imported")
    assert all_rows(engine) == before
    assert run("study", "import", str(path))[0] == 0


def test_a_file_whose_last_line_does_not_end_is_taken_with_a_word(run, engine, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(RESPONSES, "utf-8")
    code, out, err = run("study", "import", str(cut(path, -4)))
    assert (code, "if the file was cut off" in out) == (0, True), err
    assert "pain" not in out
    assert len(all_rows(engine)["response"]) == 4


def test_a_file_that_was_cut_off_between_two_rows_is_made_whole_by_the_whole_one(
    run, engine, tmp_path
):
    path = tmp_path / "rows.csv"
    path.write_text(RESPONSES, "utf-8")
    last = len(RESPONSES.splitlines(keepends=True)[-1])
    assert run("study", "import", str(cut(path, -last)))[0] == 0
    assert len(all_rows(engine)["response"]) == 3
    code, out, _ = run("study", "import", str(path))
    assert (code, "1 response to" in out, "if the file was cut" in out) == (0, True, False)
    assert len(all_rows(engine)["response"]) == 4


@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_a_package_that_was_cut_off_is_refused_and_the_whole_one_works(run, whole, tmp_path, share):
    path = packed(run, tmp_path)
    new = f"sqlite:///{tmp_path / 'restored.db'}"
    short = cut(path, int(path.stat().st_size * share))
    assert_told(run("study", "import", str(short), "--db", new), "cut off", "nothing was imported")
    assert not (tmp_path / "restored.db").exists()
    assert run("study", "import", str(path), "--db", new)[0] == 0


@pytest.mark.parametrize("name", ["book.xlsx", "book.csv"])
def test_a_workbook_whole_or_cut_off_is_refused(run, engine, tmp_path, name):
    path = tmp_path / name
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/workbook.xml", "<workbook/>" * 100)
    before = all_rows(engine)
    for one in (path, cut(path, 60)):
        assert_told(run("study", "import", str(one)), one.name)
    assert all_rows(engine) == before


def test_a_killed_import_leaves_nothing_and_the_same_import_works(study_file, tmp_path):
    url, path = f"sqlite:///{study_file}", responses(tmp_path, ROWS)
    open_study(url, create=True).dispose()
    wal = Path(f"{study_file}-wal")
    process = command("study", "import", str(path), "--db", url)
    killed_once(larger(wal, 1 << 20), process)
    engine = open_study(url)
    assert not all_rows(engine)["response"]
    assert verify(engine).findings == ()
    again = command("study", "import", str(path), "--db", url)
    assert (again.communicate()[1].count(b"Traceback"), again.returncode) == (0, 0)
    assert len(all_rows(engine)["response"]) == ROWS
    assert verify(engine).findings == ()
    engine.dispose()


@pytest.mark.slow
def test_an_import_killed_at_any_moment_is_there_whole_or_not_at_all(study_file, tmp_path):
    url, path = f"sqlite:///{study_file}", responses(tmp_path, 1500)
    draw = random.Random(0)  # noqa: S311 seeded on purpose
    for _ in range(20):
        process = command("study", "import", str(path), "--db", url)
        threading.Event().wait(draw.uniform(0.2, 3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if study_file.exists():
            engine = open_study(url, create=True)
            assert len(all_rows(engine)["response"]) in (0, 1500)
            assert verify(engine).findings == ()
            engine.dispose()
    last = command("study", "import", str(path), "--db", url)
    said = last.communicate()[1]
    assert last.returncode == 0, said


@pytest.fixture
def large(tmp_path, run):
    url = f"sqlite:///{tmp_path / 'large.db'}"
    assert run("study", "import", str(responses(tmp_path, ROWS)), "--db", url)[0] == 0
    engine = open_study(url)
    yield engine
    engine.dispose()


def test_what_is_killed_leaves_no_half_file_under_its_name_and_works_again(large, tmp_path, run):
    url, out = str(large.url), tmp_path / "out"
    out.mkdir()

    def begun() -> bool:
        return any(out.glob(".*.part"))

    for arguments in (
        ["study", "backup", str(out / "b.db")],
        ["share", "export", "--package", str(out / "p.zip")],
    ):
        killed_once(begun, command(*arguments, "--db", url))
        left = names(out)
        assert all(one.startswith(".") and ".part" in one for one in left), left
        assert run(*arguments, "--db", url)[0] == 0
        made = Path(arguments[-1])
        made.unlink()
        made.with_suffix(".head").unlink(missing_ok=True)  # what a package is written with
        assert names(out) == left
        for one in left:  # of a package a folder
            path = out / one
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert verify(large).findings == ()


def test_what_a_killed_process_of_the_same_number_left_is_no_hindrance(tmp_path):
    left = tmp_path / f".a.csv.{os.getpid()}.part"
    left.write_text("of a process in another container")
    assert write_csv(tmp_path / "a.csv", ["x"], [[1]]) == 1
    assert left.read_text() == "of a process in another container"
    assert names(tmp_path) == [left.name, "a.csv"]


@pytest.mark.slow
def test_a_killed_move_leaves_an_empty_study_and_the_same_move_works(large, tmp_path, run):
    to = tmp_path / "moved.db"
    killed_once(
        larger(Path(f"{to}-wal"), 1 << 20),
        command("study", "backup", f"sqlite:///{to}", "--db", str(large.url)),
    )
    target = open_study(f"sqlite:///{to}")
    assert not any(all_rows(target).values())
    target.dispose()
    code, out, err = run("study", "backup", f"sqlite:///{to}", "--db", str(large.url))
    assert (code, "the record is whole" in out) == (0, True), err


@pytest.fixture
def kept_out(study_file, tmp_path, run):
    """Return a study in a folder that only can be read, whoever runs this; skips where it cannot."""
    assert run("study", "import", str(responses(tmp_path, 2)))[0] == 0
    if os.geteuid():
        study_file.chmod(0o400)
        study_file.parent.chmod(0o500)
        yield study_file
        study_file.parent.chmod(0o700)
        return
    at = str(study_file.parent)
    done = subprocess.run(["/bin/mount", "--bind", "-o", "ro", at, at], capture_output=True)
    if done.returncode:
        pytest.skip(f"a read-only folder cannot be had here: {done.stderr.decode().strip()}")
    yield study_file
    subprocess.run(["/bin/umount", "-l", at], check=True)


def test_a_study_that_can_only_be_read_is_told_and_stays(kept_out, run):
    before = kept_out.read_bytes()
    for arguments in (["rate", "assign", "--raters", "2"], ["study", "lock"]):
        assert_told(run(*arguments), str(kept_out), "write to")
    assert kept_out.read_bytes() == before
