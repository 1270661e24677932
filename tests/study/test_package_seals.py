"""No cell of a package can be changed, not even by who makes its digests anew."""

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from pathlib import Path

import pytest
from kit.packaged_study import altered, database_of, does, parts_of
from kit.sealed_study import fill_all, withdraw_some
from kit.study_place import all_rows
from sqlalchemy import Engine

from data.database import open_study
from data.errors import BadFile
from data.record import UNSEALED
from data.study.copies import PACKED, holds, kept_setting, kind_of
from data.study.package import ACCEPTED, import_package, opened_package
from data.study.verify import acts, verify
from medjury import main

KINDS = {"without": (), "with": ("--unblind", "--reason", "test")}
LEFT_OUT = {(of, column) for of, columns in UNSEALED.items() for column in columns}


@dataclass(frozen=True)
class Packages:
    """A study's packages by kind, and an empty study that none of the forged ones may fill."""

    paths: dict[str, Path]
    empty: Engine


@pytest.fixture(scope="module")
def packages(tmp_path_factory, study_in):
    folder = tmp_path_factory.mktemp("packed")
    url = study_in(folder)
    engine = open_study(url, create=True)
    fill_all(engine)
    withdraw_some(engine)
    engine.dispose()
    paths = {kind: folder / f"{kind}.zip" for kind in KINDS}
    for kind, options in KINDS.items():
        with pytest.raises(SystemExit, match="0"):
            main(["share", "export", "--package", str(paths[kind]), *options, "--db", url])
    empty = open_study(study_in(folder, "empty.db"), create=True)
    yield Packages(paths, empty)
    empty.dispose()


def forged(path, table, column):
    """Write a package anew with one cell of the first row changed and all digests made anew."""

    def change(parts):
        with database_of(parts) as database:
            first = f"rowid = (SELECT min(rowid) FROM {table})"  # noqa: S608
            [cell] = database.execute(f'SELECT "{column}" FROM {table} WHERE {first}').fetchone()  # noqa: S608
            cell = other(table, column, cell)
            database.execute(f'UPDATE {table} SET "{column}" = ? WHERE {first}', [cell])  # noqa: S608

    return altered(path, change, vouch=True)


def refused(packages, path):
    """Tell whether a package is refused, in one line, and leaves nothing behind."""
    try:
        with opened_package(path) as package:
            import_package(packages.empty, package, "researcher")
    except BadFile as error:
        said = str(error)
    else:
        return False
    return len(said.splitlines()) == 1 and not any(all_rows(packages.empty).values())


OTHERS = {
    "clinician": "juror",
    "juror": "clinician",
    "done": "open",
    "open": "done",
    "ok": "refused",
}


def other(table, column, cell):
    """Return another cell that the column's type takes."""
    kind = kind_of(table, column)
    if kind is bool:
        return 1 - cell
    if kind in (int, float):
        return (cell or 0) + 1
    if kind is dict:
        return json.dumps((json.loads(cell or "{}") or {}) | {"forged": 1})
    if kind is list:
        return json.dumps([*json.loads(cell or "[]"), "forged"])
    if kind is datetime:
        return "2026-01-01 00:00:00.000000"
    return OTHERS.get(cell, f"{cell or ''}x")


@pytest.mark.parametrize(
    ("kind", "table", "column"),
    [
        *(("without", "rater", "kind"), ("without", "response", "text")),
        *(("with", "rating", "score"), ("without", "attempt", "usd"), ("with", "setting", "value")),
        ("without", "benchmark", "rubric_sha256"),
    ],
)
def test_a_cell_changed_with_all_digests_made_anew_is_refused(packages, kind, table, column):
    assert refused(packages, forged(packages.paths[kind], table, column))


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it writes and reads 60 packages for a wide table
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("table", PACKED, ids=str)
def test_every_column_of_every_table_of_a_package_is_held_to_the_record(packages, kind, table):
    columns = [one.name for one in table.c if (table.name, one.name) not in LEFT_OUT]
    for column in columns if holds(kind, table.name) else ():
        assert refused(packages, forged(packages.paths[kind], table.name, column)), column


WHAT = ("gone", "twice", "swapped")
ROWS = ("rater", "rating", "assignment", "attempt", "submission")


@pytest.mark.parametrize(
    ("kind", "what", "table"),
    [
        *(
            ("without", "gone", "rating"),
            ("with", "twice", "rating"),
            ("without", "swapped", "rater"),
        ),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in product(KINDS, WHAT, ROWS)),
    ],
)
def test_rows_taken_out_put_in_or_swapped_are_refused(packages, kind, what, table):
    changes = {
        "gone": [f"DELETE FROM {table} WHERE id = (SELECT max(id) FROM {table})"],  # noqa: S608
        "twice": [
            f"CREATE TEMP TABLE last AS SELECT * FROM {table} ORDER BY id DESC LIMIT 1",  # noqa: S608
            "UPDATE last SET id = id + 900",
            f"INSERT INTO {table} SELECT * FROM last",  # noqa: S608
        ],
        "swapped": [
            f"CREATE TEMP TABLE ends AS SELECT min(id) AS id, max(id) AS other FROM {table}",  # noqa: S608
            "INSERT INTO ends SELECT other, id FROM ends",
            f"UPDATE {table} SET id = (SELECT other FROM ends WHERE ends.id = {table}.id) "  # noqa: S608
            "WHERE id IN (SELECT id FROM ends)",
        ],
    }
    change = does(*changes[what], holds=False)
    assert refused(packages, altered(packages.paths[kind], change, vouch=True))


def test_an_untouched_package_without_authors_verifies_clean(packages, run, engine):
    code, out, _ = run("study", "import", str(packages.paths["without"]))
    assert (code, "the record is whole" in out) == (0, True)
    found = verify(engine)
    assert (found.findings, found.authors_withheld) == ((), True)
    assert run("study", "verify")[0] == 0
    with engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT key FROM setting").scalars().all()
    assert all(kept_setting(key) or key == "training_key" for key in rows)


def test_findings_that_are_accepted_are_stored_and_recorded(packages, run, engine, tmp_path):
    forge = does("UPDATE rater SET kind = 'clinician' WHERE handle = 'j1'")
    path = altered(packages.paths["without"], forge, vouch=True)
    code, out, err = run("study", "import", str(path))
    assert (code, out, len(err.strip().splitlines())) == (2, "", 1)
    assert "rater " in err
    assert "changed since event" in err
    assert not any(all_rows(engine).values())
    code, out, err = run("study", "import", str(path), "--accept-findings")
    assert (code, "stored with 1 finding" in out) == (0, True), err
    [kept] = acts(engine, ACCEPTED)
    assert kept.detail["findings"] == list(verify(engine).findings)
    assert run("study", "verify")[0] == 1
    (tmp_path / "responses.csv").write_text("a\n1\n")  # no package
    code, _, err = run("study", "import", str(tmp_path / "responses.csv"), "--accept-findings")
    assert (code, "belongs to a package" in err) == (2, True)


def test_no_digest_of_a_package_without_authors_tells_one_to_who_guesses(packages):
    """A masked name and an author stand in the package only under salts that stay behind."""
    parts = parts_of(packages.paths["without"])
    with database_of(parts) as database:
        query = "SELECT response_id, shown IS NOT NULL, salt IS NOT NULL FROM response"
        rows = database.execute(query).fetchall()
    assert [name for name, masked, _ in rows if masked] == ["visits-r3"]
    assert all(masked != salted for _, masked, salted in rows)
    assert not [name for name, body in parts.items() if b"GPT-4o" in body or b"model-1" in body]
