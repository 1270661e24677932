"""The disk is full, on a real one of a few megabytes: nothing is lost, nothing is left half done."""

import asyncio
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kit.commands import assert_told, names, responses
from kit.jurors import Stub
from kit.jury_runs import attempts, many, panel_at
from kit.jury_runs import run as run_jury
from kit.packaged_study import made, whole
from kit.page_client import Page, entered, sign_in
from kit.rating_study import FULL, build, row, rubric, scores_of
from kit.servers import serving
from kit.study_place import all_rows
from sqlmodel import select

from data.database import open_study, reading
from data.errors import NoStudy
from data.schema import Response
from data.study.verify import verify
from jury.run import run_lock
from medjury.cli import record

__all__ = ["made", "whole"]
MEGABYTES = 8


@pytest.fixture
def disk(tmp_path):
    """Mount a disk of a few megabytes; skips where this user may not."""
    at = tmp_path / "disk"
    at.mkdir()
    mount, size = shutil.which("mount"), f"size={MEGABYTES}m"
    if os.geteuid() or mount is None:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", size, "tmpfs", at], capture_output=True)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.decode().strip()}")
    yield at
    subprocess.run([mount.replace("mount", "umount"), "-l", at], check=True)


@contextmanager
def filled(disk, left=0):
    """Fill a disk but for some bytes; the ballast goes at the end."""
    ballast = disk / "ballast"
    free = os.statvfs(disk)
    size = max(0, free.f_bavail * free.f_frsize - left)
    with ballast.open("wb") as file:
        file.write(b"\1" * size)
    try:
        yield
    finally:
        ballast.unlink()


def test_an_import_onto_a_full_disk_stores_nothing_and_works_once_there_is_room(
    run, disk, tmp_path
):
    url = f"sqlite:///{disk / 'study.db'}"
    assert run("study", "import", str(responses(tmp_path, 3, "few.csv")), "--db", url)[0] == 0
    engine = open_study(url)
    before = all_rows(engine)
    more = responses(tmp_path, 300)
    with filled(disk, left=100_000):
        assert_told(run("study", "import", str(more), "--db", url), "full", "make room")
        assert all_rows(engine) == before
    assert run("study", "import", str(more), "--db", url)[0] == 0
    assert verify(engine).findings == ()
    assert len(all_rows(engine)["response"]) == 300
    engine.dispose()


@pytest.mark.parametrize("left", [0, 8192, 100_000])
def test_a_new_study_on_a_full_disk_is_begun_once_there_is_room(run, disk, tmp_path, left):
    url, file = f"sqlite:///{disk / 'study.db'}", str(responses(tmp_path, 3))
    with filled(disk, left):
        assert_told(run("study", "import", file, "--db", url), str(disk / "study.db"))
    assert run("study", "import", file, "--db", url)[0] == 0
    assert run("study", "verify", "--db", url)[0] == 0


def test_a_lock_that_finds_no_room_is_told_and_taken_once_there_is_room(disk):
    engine = open_study(f"sqlite:///{disk / 'study.db'}", create=True)
    with filled(disk), pytest.raises(NoStudy, match=r"full.*make room"), run_lock(engine):
        pass
    with run_lock(engine):
        pass
    engine.dispose()


def test_a_rating_that_found_no_room_is_kept_on_the_page_and_sent_again(disk):
    url = f"sqlite:///{disk / 'study.db'}"
    engine = open_study(url, create=True)
    code = build(engine, [row(n, f"Note {n}.") for n in (1, 2)], ["dr-a"], rubric())["dr-a"]

    async def rate(address: str) -> None:
        async with await Page.open(address, await sign_in(address, code)) as page:
            shown = await page.run()
            told = entered(shown, page.name, shown.seq + 1, FULL, submit=True)
            told["comment"] = "x" * 19_000
            with filled(disk):
                refused = await page.run(shown, told)
            assert "kept here" in refused.error
            assert (refused.busy, refused.code) == (True, told["code"])
            assert scores_of(engine, "dr-a") == []
            stored = await page.run(refused, told | {"attempt": 1})
            assert stored.acknowledges(told)

    with serving(url) as server:
        asyncio.run(rate(server.address))
    assert [score for _, _, score in scores_of(engine, "dr-a")] == [*FULL.values()]
    assert verify(engine).findings == ()
    engine.dispose()


def test_a_jury_run_that_finds_no_room_ends_with_a_word_and_goes_on_later(disk, write):
    engine = open_study(f"sqlite:///{disk / 'study.db'}", create=True)
    many(engine, write, 60)
    with Stub() as stub:
        panel = panel_at(stub)
        with filled(disk, left=300_000), pytest.raises(NoStudy, match="full; make room"):
            run_jury(engine, panel)
        kept = len(attempts(engine))
        assert 0 < kept < 60
        result = run_jury(engine, panel)
    assert (result.rated, result.calls) == (60, 60 - kept)
    assert len(attempts(engine)) == 60
    engine.dispose()


@pytest.mark.parametrize("left", [0, 4096, 16_384])
def test_an_export_to_a_full_disk_leaves_no_half_file(run, whole, disk, tmp_path, left):
    db = ("--db", str(whole.url))
    assert run("share", "export", str(tmp_path / "good"), *db)[0] == 0
    (disk / "out").mkdir()
    with filled(disk, left):
        assert_told(run("share", "export", str(disk / "out"), *db), "No space left")
        code, _, err = run("share", "export", "--package", str(disk / "s.zip"), *db)
        assert (code, "s.zip" in err, len(err.strip().splitlines())) == (2, True, 1)
        assert "No space left" in err or "disk is full" in err
    assert "s.zip" not in names(disk)
    assert not list(disk.rglob("*.part"))
    for one in (disk / "out").rglob("*.csv"):
        good = tmp_path / "good" / one.relative_to(disk / "out")
        assert one.read_bytes() == good.read_bytes(), f"{one.name} is cut off"
    assert run("share", "export", "--package", str(disk / "s.zip"), *db)[0] == 0
    assert zipfile.ZipFile(disk / "s.zip").testzip() is None


def test_a_table_that_stops_in_the_middle_gets_no_name(tmp_path):
    def rows() -> Iterator[list[str]]:
        yield ["r1", "model"]
        raise NoStudy("the server went away")

    with pytest.raises(NoStudy):
        record.write_csv(tmp_path / "authors.csv", ("response_id", "model"), rows())
    assert names(tmp_path) == []


@pytest.mark.parametrize("left", [0, 16_384, 200_000])
def test_neither_a_backup_nor_a_move_leaves_anything_on_a_full_disk(run, whole, disk, left):
    url = str(whole.url)
    with filled(disk, left):
        backup = run("study", "backup", str(disk / "b.db"), "--db", url)
        assert_told(backup, "b.db", "nothing was written")
        assert_told(run("study", "backup", f"sqlite:///{disk}/m.db", "--db", url), "m.db")
        assert names(disk) == ["ballast"]
    for to in (str(disk / "b.db"), f"sqlite:///{disk}/m.db"):
        assert run("study", "backup", to, "--db", url)[0] == 0
    assert names(disk) == ["b.db", "m.db"]


def test_what_is_stored_on_a_full_disk_can_still_be_read(disk, run):
    url = f"sqlite:///{disk / 'study.db'}"
    assert run("study", "import", str(responses(disk, 3)), "--db", url)[0] == 0
    with filled(disk):
        assert run("study", "verify", "--db", url)[0] == 0
        engine = open_study(url)
        with reading(engine) as session:
            assert len(session.exec(select(Response)).all()) == 3
        engine.dispose()
