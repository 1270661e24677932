"""A study in one file comes back as it was, with its record, and without its authors if wanted."""

import codecs
import csv
import hashlib
import json
import stat

from kit import postgres
from kit.packaged_study import database_of, made, packed, parts_of, restored, tables_of, whole
from sqlalchemy import text
from sqlmodel import Session

from data.study import package
from data.study.copies import AUTHORS
from data.study.export import FILES, write_files
from data.study.package import write_package
from data.study.people import invite
from data.study.verify import acts, verify

__all__ = ["made", "whole"]


def test_a_restored_study_calibrates_to_the_last_digit_and_comes_in_once(run, whole, tmp_path):
    path = packed(run, tmp_path)
    there = restored(tmp_path)
    assert run("study", "import", str(path), *there)[0] == 0
    asked = ("analyse", "calibrate", "--reps", "20", "--details", "--json")
    files = [tmp_path / "here.json", tmp_path / "there.json"]
    for to, db in zip(files, ((), there), strict=True):
        code, _, err = run(*asked, str(to), *db)
        assert code == 0, err
    assert files[0].read_bytes() == files[1].read_bytes()
    before = tables_of(there[1])
    code, out, _ = run("study", "import", str(path), *there)
    assert (code, "nothing changed" in out) == (0, True)
    assert tables_of(there[1]) == before
    code, _, err = run("study", "import", str(path))  # into one that holds something
    assert (code, "not empty" in err) == (2, True)


WITHHELD = (
    "SELECT model FROM authorship UNION ALL SELECT salt FROM authorship UNION ALL SELECT text FROM mask "
    "UNION ALL SELECT salt FROM mask UNION ALL SELECT salt FROM response WHERE shown IS NOT NULL"
)


def test_without_authors_no_byte_tells_a_model_a_masked_word_or_a_salt(run, whole, tmp_path):
    with Session(whole) as session:
        withheld = {*session.scalars(text(WITHHELD))}
    parts = parts_of(packed(run, tmp_path))
    assert len(withheld) > 15
    assert [one for one in withheld for body in parts.values() if one.encode() in body] == []
    with database_of(parts) as database:
        [[free]] = database.execute("PRAGMA freelist_count").fetchall()
        shown = database.execute("SELECT text FROM response WHERE shown IS NOT NULL").fetchall()
        kept = [database.execute(f"SELECT * FROM {one}").fetchall() for one in AUTHORS]  # noqa: S608
    assert (free, kept) == (0, [[], []])
    assert ["[author masked]" in said for (said,) in shown] == [True]
    assert not acts(whole, "unblinded")


def test_authors_that_travel_apart_make_the_study_whole_again(run, whole, tmp_path):
    there = restored(tmp_path)
    apart = packed(run, tmp_path, "--authors-only", "--reason", "analysis", name="authors.zip")
    study = packed(run, tmp_path)
    assert acts(whole, "unblinded")[0].detail == {"reason": "analysis"}
    assert run("study", "import", str(apart), *there)[0] == 2
    assert run("study", "import", str(study), *there)[0] == 0
    code, out, _ = run("study", "verify", *there)
    assert (code, "authors stayed behind" in out) == (0, True)
    code, out, err = run("study", "import", str(apart), *there)
    assert (code, "the record is whole" in out) == (0, True), err
    assert tables_of(str(whole.url)) == tables_of(there[1])
    assert "nothing changed" in run("study", "import", str(apart), *there)[1]


def test_no_secret_and_no_way_in_is_in_a_package(run, whole, tmp_path):
    with Session(whole) as session:
        session.execute(text("INSERT INTO setting VALUES ('signing_key', 'sesame-key')"))
        session.execute(text("INSERT INTO setting VALUES ('training_key', 'sesame-too')"))
        session.execute(text("UPDATE account SET email = 'z@ward.example'"))
        hashes = session.scalars(text("SELECT secret_hash FROM access")).all()
        session.commit()
    assert hashes
    path = packed(run, tmp_path, "--unblind", "--reason", "archive")
    everything = b"".join(parts_of(path).values())
    assert [one for one in (*hashes, "sesame", "ward.example") if one.encode() in everything] == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_folder_and_the_package_hold_the_same_files_and_tables(run, whole, tmp_path):
    parts, out = parts_of(packed(run, tmp_path)), tmp_path / "out"
    assert run("share", "export", str(out))[0] == 0
    manifest = json.loads(parts["manifest.json"])
    for name, sha256 in manifest["files"].items():
        assert sha256 == hashlib.sha256(parts[name]).hexdigest()
        if name in FILES:
            assert parts[name] == (out / name).read_bytes()
            assert parts[name].startswith(codecs.BOM_UTF8)
    assert {*manifest["files"], "manifest.json"} == parts.keys()
    assert (manifest["authors"], manifest["head"]) == ("without", verify(whole).head)
    with database_of(parts) as database:
        for file in (out / "tables").iterdir():
            with file.open(encoding="utf-8-sig", newline="") as lines:
                columns, *rows = csv.reader(lines)
            found = database.execute(f"SELECT * FROM {file.stem}")  # noqa: S608
            assert [name for name, *_ in found.description] == columns
            assert len(found.fetchall()) == len(rows) == manifest["rows"].pop(file.stem)
    assert manifest["rows"] == dict.fromkeys(AUTHORS, 0)
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in out.rglob("*.*"))


def test_a_study_that_changes_while_it_is_packed_is_packed_as_it_was(whole, tmp_path, monkeypatch):
    head = verify(whole).head

    def meanwhile(*given):
        invite(whole, ["dr_late"])
        return write_files(*given)

    monkeypatch.setattr(package, "write_files", meanwhile)
    write_package(whole, tmp_path / "study.zip", "without", [])
    parts = parts_of(tmp_path / "study.zip")
    assert json.loads(parts["manifest.json"])["head"] == head != verify(whole).head
    assert b"dr_late" not in b"".join(parts.values())


def test_a_package_goes_to_a_server_and_back_and_every_table_is_the_same(run, whole, tmp_path):
    sealed = ("--unblind", "--reason", "move")
    before, db = tables_of(str(whole.url)), str(whole.url)
    for there in (postgres.new_database(), f"sqlite:///{tmp_path / 'back.db'}"):
        path = packed(run, tmp_path, *sealed, "--db", db, name=f"{len(there)}.zip")
        code, out, err = run("study", "import", str(path), "--db", there)
        assert (code, "the record is whole" in out) == (0, True), err
        code, out, _ = run("study", "verify", "--db", there)
        assert (code, "whole" in out) == (0, True)
        assert tables_of(there) == before
        db = there


def test_options_that_contradict_each_other_write_nothing(run, whole, tmp_path):
    to = str(tmp_path / "x.zip")
    alone, reason = ("--package", to, "--authors-only"), ("--reason", "r")
    assert run("share", "export")[0] == 2
    assert run("share", "export", "--package", str(tmp_path / "x.tar"))[0] == 2
    for options in (("--unblind",), alone[2:], (*alone[2:], "--unblind", *reason), reason):
        assert run("share", "export", *alone[:2], *options)[0] == 2
    assert not (tmp_path / "x.zip").exists()
    assert not acts(whole, "unblinded")
