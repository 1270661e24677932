"""A study with everything in it, packages of it, and packages that somebody altered."""

import csv
import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlmodel import Session

from data.card import Marked, Reply
from data.database import open_study
from data.study.assignments import Slot, assign
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from kit.studies import COLUMNS, Run
from kit.study_place import all_rows, copy_study, study_in
from medjury import main

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}

ODD = "=1+1,\t\"said\"\r\n'quoted' \u00e9 \U0001f600 nul-free\rend"


@pytest.fixture(scope="module")
def made(tmp_path_factory, study_in) -> str:
    """Make a study with odd texts, a masked author, clinicians, jurors, a metric and a reading."""
    folder = tmp_path_factory.mktemp("made")
    url = study_in(folder)
    with (folder / "responses.csv").open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for n in range(12):
            said = f"As GPT-4o by OpenAI I say {n}" if n == 3 else f"answer {n} {ODD}"
            asked = (f"i{n}", "visits", ODD, "=write", "" if n % 4 else "'ref")
            lines.writerow([*asked, f"r{n}", f"model-{n % 3}", said])
    rows = ["response_id,rater,kind,pass,replicate,accuracy,completeness,clarity"]
    for n in range(12):
        rows += [
            f"r{n},{who},clinician,{again},0,{1 + n % 5},{1 + (n + k) % 4},{2 + k / 3}"
            for k, who in enumerate(("dr_a", "dr_b", "dr_c"))
            for again in range(1 + (n % 3 == 0))
        ]
        rows += [
            f"r{n},j{k},juror,0,{m},{1 + n % 5},{1 + (n * k) % 5},4" for k in (1, 2) for m in (0, 1)
        ]
    (folder / "ratings.csv").write_text("\n".join(rows), encoding="utf-8")
    for command in (
        ("study", "import", str(folder / "responses.csv")),
        ("rate", "ratings", str(folder / "ratings.csv")),
        ("analyse", "measure", "rouge-l"),
    ):
        with pytest.raises(SystemExit, match="0"):
            main([*command, "--db", url])
    engine = open_study(url)
    _read_one(engine)
    engine.dispose()
    return url


def _read_one(engine: Engine) -> None:
    """Let a clinician rate one response in the rating room, with a remark and a marked stretch."""
    invite(engine, ["dr_z"])
    assign(engine, [Slot("dr_z", 1, 1), Slot("dr_z", 2, 2)], seed=0, per_response=1)
    with Session(engine) as session:
        rater = session.scalar(text("SELECT id FROM rater WHERE handle = 'dr_z'"))
    task = next_task(engine, int(rater)).task
    assert task is not None
    there = Marked("completeness", 0, 3, "missing", ODD, "source", "major", linked=0)
    spans = (Marked("accuracy", 0, 4, "wrong", linked=1), there)
    submit(engine, int(rater), task.card.code, Reply(SCORES, comment=ODD, spans=spans), 5.5)


@pytest.fixture
def whole(made, url) -> Iterator[Engine]:
    """Return a study of the test's own, where `run` looks for it."""
    copy_study(made, url)
    engine = open_study(url)
    yield engine
    engine.dispose()


def restored(tmp_path: Path, name: str = "there.db") -> tuple[str, str]:
    return "--db", study_in(tmp_path, name)


def packed(run: Run, tmp_path: Path, *options: str, name: str = "study.zip") -> Path:
    path = tmp_path / name
    code, _, err = run("share", "export", "--package", str(path), *options)
    assert code == 0, err
    return path


def tables_of(url: str) -> dict[str, list[Any]]:
    engine = create_engine(url)
    left = ("event", "setting", "account", "access")
    found = {name: rows for name, rows in all_rows(engine).items() if name not in left}
    engine.dispose()
    return found


Parts = dict[str, bytes]


def parts_of(path: Path) -> Parts:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def altered(path: Path, change: Callable[[Parts], None], *, vouch: bool = False) -> Path:
    """Write the package anew with other parts; `vouch` makes the manifest say so too."""
    parts = parts_of(path)
    change(parts)
    if vouch:
        manifest = json.loads(parts["manifest.json"])
        for name in manifest["files"]:
            manifest["files"][name] = hashlib.sha256(parts[name]).hexdigest()
        with suppress(sqlite3.Error, MemoryError), database_of(parts) as database:
            tables = "SELECT name FROM sqlite_schema WHERE type = 'table'"
            for (table,) in database.execute(tables).fetchall():
                [rows] = database.execute(f'SELECT count(*) FROM "{table}"').fetchone()  # noqa: S608
                manifest["rows"][table] = rows
        parts["manifest.json"] = json.dumps(manifest).encode()
    to = path.with_name("altered.zip")
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in parts.items():
            archive.writestr(name, body)
    return to


@contextmanager
def database_of(parts: Parts) -> Iterator[sqlite3.Connection]:
    """Open the database of a package; what is written to it is put back."""
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(parts["study.db"])
        yield database
        if database.total_changes or database.in_transaction:
            database.commit()
        parts["study.db"] = database.serialize()


def does(*statements: str, holds: bool = True) -> Callable[[Parts], None]:
    """Return a change of a package's database; `holds` says that each changes a row."""

    def change(parts: Parts) -> None:
        with database_of(parts) as database:
            for statement in statements:
                changed = database.execute(statement).rowcount
                assert changed or not holds, statement

    return change


def says(**said: object) -> Callable[[Parts], None]:
    def change(parts: Parts) -> None:
        manifest = json.loads(parts["manifest.json"])
        parts["manifest.json"] = json.dumps(manifest | said).encode()

    return change
