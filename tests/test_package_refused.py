"""A stranger's package does no harm: one message, and nothing written."""

import stat
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.packaged_study import altered, made, packed, restored, says, swap, tables_of, whole
from kit.studies import Run
from kit.study_place import nothing_stored
from sqlalchemy import Engine

__all__ = ["made", "whole"]


def put(name: str, body: bytes | None) -> Callable[[dict[str, bytes]], None]:
    def change(parts: dict[str, bytes]) -> None:
        parts.pop(name, None)
        if body is not None:
            parts[name] = body

    return change


REFUSED = {
    "a changed rating": (swap("tables/rating.csv", "accuracy", "clarity"), False, "SHA-256"),
    "a missing table": (put("tables/rating.csv", None), False, "tables/rating.csv is missing"),
    "a file too many": (put("run.sh", b"rm"), False, "run.sh is not vouched for"),
    "a path out of it": (put("../../evil", b"x"), False, "leads out of the package"),
    "an absolute path": (put("/etc/evil", b"x"), False, "leads out of the package"),
    "no manifest": (put("manifest.json", None), False, "no medjury package"),
    "a broken manifest": (put("manifest.json", b"{"), False, "not JSON"),
    "another manifest": (put("manifest.json", b"[]"), False, "not that of a medjury package"),
    "a deep manifest": (put("manifest.json", b"[" * 99_999), False, "not JSON"),
    "another version": (says(version=2, medjury="9.9"), False, "medjury 9.9 with a package's format 2, here 1; update"),
    "other tables": (says(tables="0001"), False, "with tables of revision 0001, here study_3"),
    "an unknown kind": (says(authors="all"), False, "does not say what it holds"),
    "odd files": (says(files=[]), False, "lists no files"),
    "a bomb": (put("tables/rating.csv", b"0" * (20 << 20)), False, "200 times"),
    "a score off the scale": (swap("tables/rating.csv", ",accuracy,1.0,", ",accuracy,9.0,"), True, "the scale of"),
    "a score that is text": (swap("tables/rating.csv", ",accuracy,1.0,", ",accuracy,Mrs Doe,"), True, "column score: not a number"),
    "a score that is NaN": (swap("tables/rating.csv", ",accuracy,1.0,", ",accuracy,nan,"), True, "not a finite number"),
    "another header": (swap("tables/rating.csv", "criterion", "kriterion"), True, "other columns"),
    "a rating of nothing": (swap("tables/rating.csv", "\n1,1,", "\n1,4711,"), True, "do not fit together"),
    "a mark on no side": (swap("tables/span.csv", ",response,", ",margin,"), True, "side or severity"),
    "another rubric": (swap("tables/rubric.csv", "scale", "scales"), True, "rubric"),
    "a changed event": (swap("tables/event.csv", "responses imported", "nothing happened"), True, "does not hold"),
    "a secret": (swap("tables/setting.csv", "per_response", "signing_key"), True, "no package brings"),
    "a whole number too long": (swap("tables/rating.csv", "\n1,1,", "\n1,99999999999999999999,"), True, "not a whole number"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_a_strangers_package_is_refused_with_one_message(
    run: Run, whole: Engine, tmp_path: Path, what: str
) -> None:
    change, vouch, said = REFUSED[what]
    path = altered(packed(run, tmp_path), change, vouch=vouch)
    there = restored(tmp_path)
    code, out, err = run("study", "import", str(path), *there)
    assert (code, out) == (2, "")
    assert said in err
    assert err.startswith("medjury: ")
    assert len(err.strip().splitlines()) == 1
    assert "Mrs Doe" not in err
    assert nothing_stored(there[1]) or not any(tables_of(there[1]).values())


def test_a_package_that_is_cut_off_or_is_none_is_refused(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path)
    body = path.read_bytes()
    for number, wrong in enumerate(
        (b"", b"PK\x03\x04", body[: len(body) // 2], body[:-40], b"hello")
    ):
        broken = tmp_path / f"broken{number}.zip"
        broken.write_bytes(wrong)
        code, _, err = run("study", "import", str(broken), *restored(tmp_path))
        assert (code, len(err.strip().splitlines())) == (2, 1)
        assert "cannot be read as a package" in err or (wrong == b"" and "is empty" in err)
    with zipfile.ZipFile(path) as archive:
        largest = max(archive.infolist(), key=lambda one: one.compress_size)
    flipped = bytearray(body)  # in a part, not in the zip's own headers, which hold no value
    flipped[largest.header_offset + largest.compress_size // 2] ^= 0xFF
    path.write_bytes(flipped)
    assert run("study", "import", str(path), *restored(tmp_path))[0] == 2
    assert nothing_stored(restored(tmp_path)[1])


def test_a_link_in_a_package_is_refused(run: Run, whole: Engine, tmp_path: Path) -> None:
    path = packed(run, tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("tables/link.csv")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    code, _, err = run("study", "import", str(path), *restored(tmp_path))
    assert code == 2
    assert "holds a link" in err
