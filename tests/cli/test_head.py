"""The head of a record as a file: signed with a tool that is there already, and checked later."""

import shutil
import subprocess
from pathlib import Path

import pytest
from kit.packaged_study import made, restored, whole
from kit.studies import Run
from sqlalchemy import Engine, text

from data.errors import BadFile
from data.record import Head, head_given
from data.study.settings import set_setting
from data.study.verify import present_head, verify

__all__ = ["made", "whole"]
ME, SPACE = "me@hospital.example", "medjury"


@pytest.fixture
def head(run: Run, whole: Engine, tmp_path: Path) -> Path:
    """Lock the study and return the file of its head."""
    to = tmp_path / "kept.head"
    code, out, err = run("study", "lock", "--head", str(to))
    assert code == 0, err
    assert f"medjury study verify --head {to}" in " ".join(out.split())
    return to


def behind(engine: Engine, *changes: str) -> None:
    with engine.execution_options(writes=True).begin() as connection:
        for change in changes:
            connection.execute(text(change))


def test_a_head_holds_study_number_and_hash_and_is_read_back(head: Path, whole: Engine) -> None:
    kept = head_given(str(head))
    assert kept == present_head(whole)
    assert head.read_text() == kept.to_text()
    assert kept.events is not None


def test_a_study_that_went_on_after_its_lock_is_told_apart_from_one_that_did_not(
    run: Run, whole: Engine, head: Path
) -> None:
    assert run("study", "lock", "--reopen", "--reason", "one more")[0] == 0
    set_setting(whole, "reference", "hidden")
    code, out, err = run("study", "verify", "--head", str(head))
    assert (code, "(setting changed): came after the head" in out) == (1, True), (out, err)
    assert "since the head that was kept: 1 reopened, 1 setting changed" in out
    assert verify(whole).findings == ()


def test_a_record_cut_before_its_head_is_found(run: Run, whole: Engine, head: Path) -> None:
    cut = "DELETE FROM event WHERE id = (SELECT MAX(id) FROM event)"
    behind(whole, cut, "DELETE FROM setting WHERE key = 'locked'")
    assert run("study", "verify")[0] == 0
    code, out, _ = run("study", "verify", "--head", str(head))
    assert code == 1
    assert "FINDING the record was cut: it has " in out


def test_a_record_that_is_of_another_study_or_written_anew_is_found(
    run: Run, whole: Engine, head: Path, tmp_path: Path
) -> None:
    kept = head_given(str(head))
    assert kept.events is not None
    others = {
        "of another study": Head(kept.sha256, kept.events, "0" * 64),
        "it was rewritten": Head("1" * 64, kept.events - 1, kept.study),
    }
    for said, forged in others.items():
        (tmp_path / "other.head").write_text(forged.to_text())
        code, out, _ = run("study", "verify", "--head", str(tmp_path / "other.head"))
        assert (code, said in out) == (1, True)


@pytest.mark.parametrize("body", ["", "medjury head 2\n", "\x00\xff", "medjury head 1\nhead x\n"])
def test_a_file_that_is_no_head_is_refused_in_one_line(
    run: Run, whole: Engine, tmp_path: Path, body: str
) -> None:
    (tmp_path / "no.head").write_text(body, "latin-1")
    with pytest.raises(BadFile):
        head_given(str(tmp_path / "no.head"))
    code, out, err = run("study", "verify", "--head", str(tmp_path / "no.head"))
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)


def test_a_lock_never_writes_over_a_file(run: Run, whole: Engine, head: Path) -> None:
    before = head.read_bytes()
    run("study", "lock", "--reopen", "--reason", "r")
    code, _, err = run("study", "lock", "--head", str(head))
    assert (code, "is there already" in err) == (2, True)
    assert head.read_bytes() == before
    assert "locked" not in run("study", "verify")[1]


@pytest.mark.usefixtures("study_file")
def test_a_study_that_is_a_file_has_its_head_beside_it(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    assert run("study", "lock")[0] == 0
    [to] = tmp_path.glob("*.head")
    assert head_given(str(to)) == present_head(whole)


def test_a_package_has_its_head_beside_it_and_the_study_it_makes_goes_through_it(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    package, there = tmp_path / "study.zip", restored(tmp_path)
    assert run("share", "export", "--package", str(package))[0] == 0
    assert run("study", "import", str(package), *there)[0] == 0
    code, out, _ = run("study", "verify", "--head", str(tmp_path / "study.head"), *there)
    assert (code, "whole" in out) == (0, True)
    package.unlink()
    assert run("share", "export", "--package", str(package))[0] == 2
    assert not package.exists()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH is not installed")
def test_the_docs_commands_sign_a_head_and_find_a_changed_one(head: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    keygen("-q", "-t", "ed25519", "-N", "", "-C", ME, "-f", str(key))
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    (tmp_path / "signers").write_text(f"{ME} {public}\n")
    assert keygen("-Y", "sign", "-f", str(key), "-n", SPACE, str(head)) == 0
    verify = ("-Y", "verify", "-f", str(tmp_path / "signers"), "-I", ME, "-n", SPACE)
    signed = (*verify, "-s", f"{head}.sig")
    assert keygen(*signed, given=head) == 0
    head.write_text(head.read_text().replace("events 1", "events 2"))
    assert keygen(*signed, given=head) != 0


def keygen(*arguments: str, given: Path | None = None) -> int:
    """Run OpenSSH's tool; return its exit code."""
    body = given.read_bytes() if given else b""
    command = ["ssh-keygen", *arguments]
    return subprocess.run(command, input=body, capture_output=True, check=False).returncode
