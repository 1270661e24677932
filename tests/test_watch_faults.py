"""A watch is killed, its disk fills up, a juror is down: nothing is lost and nothing is paid for twice."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.ward_faults import AT_ONCE, Ward, account, dropping, full

DROPS, EACH, KILLS = 12, 10, 4


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of a few megabytes; skips where this user may not."""
    at, mount = tmp_path / "disk", shutil.which("mount")
    at.mkdir()
    if os.geteuid() or mount is None:
        pytest.skip("only root can mount a small disk")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=24m", "tmpfs", at], capture_output=True
    )
    if done.returncode:
        pytest.skip("a small disk cannot be mounted here")
    yield at
    subprocess.run([mount.replace("mount", "umount"), "-l", at], check=True)


@pytest.mark.not_quick
def test_kills_a_full_disk_and_a_juror_that_is_down_lose_nothing_and_pay_nothing_twice(
    tmp_path: Path, disk: Path
) -> None:
    ward = Ward(tmp_path, disk)
    with ward.stub:
        engine = ward.begin()
        with dropping(ward, DROPS, EACH, 0.3):
            ward.down = True
            ward.kill_some(KILLS // 2, 6.0, seed=1)
            with full(disk):
                ward.kill_some(1, 6.0, seed=2)
            ward.down = False
            ward.kill_some(KILLS - KILLS // 2 - 1, 6.0, seed=3)
        time.sleep(0.5)
        assert ward.finish(120) == 0, (tmp_path / "errors.txt").read_text()
    found = account(ward, engine)
    engine.dispose()
    assert (found.responses, found.verdicts, found.repeated) == (DROPS * EACH, 2 * DROPS * EACH, 0)
    assert found.paid_again <= AT_ONCE * KILLS
    assert (found.drawn, found.readings, found.without_reader) == (12, 24, 0)
    assert found.findings == ()
