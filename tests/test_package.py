"""A study in one file comes back as it was, with its record, and without its authors if wanted."""

import codecs
import hashlib
import json
import zipfile
from pathlib import Path

from kit.packaged_study import made, packed, restored, tables_of, whole
from kit.studies import Run
from sqlalchemy import Engine, text
from sqlmodel import Session

from data.database import open_study
from data.study.standing import pairs
from data.study.verify import acts, verify

__all__ = ["made", "whole"]


def test_a_restored_study_calibrates_to_the_last_digit(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path)
    there = restored(tmp_path)
    assert run("study", "import", str(path), *there)[0] == 0
    asked = ("analyse", "calibrate", "--reps", "20", "--details", "--json")
    files = [tmp_path / "here.json", tmp_path / "there.json"]
    for to, db in zip(files, ((), there), strict=True):
        code, _, err = run(*asked, str(to), *db)
        assert code == 0, err
    assert files[0].read_bytes() == files[1].read_bytes()


def test_with_its_authors_every_row_comes_back_and_the_record_is_whole(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path, "--unblind", "--reason", "archive")
    there = restored(tmp_path)
    code, out, _ = run("study", "import", str(path), *there)
    assert code == 0
    assert "the record is whole" in out
    assert tables_of(str(whole.url)) == tables_of(there[1])
    head = verify(whole).head
    assert run("study", "verify", "--head", head, *there)[0] == 0


def test_without_authors_no_model_and_no_masked_word_is_in_the_file(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path, "--without-authors")
    with zipfile.ZipFile(path) as archive:
        bodies = {name: archive.read(name).decode() for name in archive.namelist()}
    assert "tables/authorship.csv" not in bodies
    assert not [name for name, body in bodies.items() if "model-" in body or "GPT-4o" in body]
    assert "[author masked]" in bodies["tables/response.csv"]
    assert not acts(whole, "unblinded")


def test_authors_that_travel_apart_make_the_study_whole_again(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
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


def test_importing_a_package_twice_changes_nothing(run: Run, whole: Engine, tmp_path: Path) -> None:
    path, there = packed(run, tmp_path), restored(tmp_path)
    run("study", "import", str(path), *there)
    before = tables_of(there[1])
    code, out, _ = run("study", "import", str(path), *there)
    assert (code, "nothing changed" in out) == (0, True)
    assert tables_of(there[1]) == before


def test_a_package_never_goes_into_a_study_that_holds_something(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path)
    code, _, err = run("study", "import", str(path))
    assert code == 2
    assert "not empty" in err


def test_no_secret_and_no_way_in_is_in_a_package(run: Run, whole: Engine, tmp_path: Path) -> None:
    with Session(whole) as session:
        session.execute(text("INSERT INTO setting VALUES ('signing_key', 'sesame-key')"))
        session.execute(text("INSERT INTO setting VALUES ('training_key', 'sesame-too')"))
        hashes = session.scalars(text("SELECT secret_hash FROM access")).all()
        session.commit()
    assert hashes
    with zipfile.ZipFile(packed(run, tmp_path)) as archive:
        everything = b"".join(archive.read(name) for name in archive.namelist()).decode()
    assert not [one for one in (*hashes, "sesame") if one in everything]


def test_the_folder_and_the_package_hold_the_same_files_but_for_excels_mark(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    path = packed(run, tmp_path)
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        for name, said in manifest["files"].items():
            body = (tmp_path / "out" / name).read_bytes()
            assert body.startswith(codecs.BOM_UTF8) == name.endswith(".csv")
            body = body.removeprefix(codecs.BOM_UTF8)
            assert archive.read(name) == body
            assert said["sha256"] == hashlib.sha256(body).hexdigest()
    assert manifest["authors"] == "without"
    assert manifest["head"] == verify(whole).head


def test_options_that_contradict_each_other_write_nothing(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    to = str(tmp_path / "x.zip")
    for options in (
        ("--package", to, "--unblind"),
        ("--package", to, "--authors-only"),
        ("--package", to, "--without-authors", "--unblind", "--reason", "r"),
        ("--package", str(tmp_path / "x.tar")),
        ("--package", to, "--reason", "r"),
        (),
    ):
        assert run("share", "export", *options)[0] == 2
    assert not (tmp_path / "x.zip").exists()
    assert not acts(whole, "unblinded")


def test_texts_come_back_to_the_last_character(run: Run, whole: Engine, tmp_path: Path) -> None:
    there = restored(tmp_path)
    run("study", "import", str(packed(run, tmp_path, "--unblind", "--reason", "r")), *there)
    other = open_study(there[1])
    assert list(pairs(whole)) == list(pairs(other))
    other.dispose()
