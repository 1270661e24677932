"""The data dictionary: every column of every file that is exported, in words."""

import csv
from pathlib import Path

from kit.packaged_study import made, whole
from kit.studies import Run
from sqlalchemy import Engine

from data.importers.package import EVERY, columns
from data.queries.export import HEADER, dictionary
from data.schema import Table

__all__ = ["made", "whole"]
# Ways in, what waits, and what the database makes of the ratings.
# An improvement names instances by their keys here, and a proposal belongs to one.
LEARNED = {"improvement", "proposal"}
STAYS = {"account", "access", "intent", "jury_batch", "jury_request", *LEARNED}


def exported(run: Run, folder: Path) -> Path:
    code, _, err = run("share", "export", str(folder), "--unblind", "--reason", "test")
    assert code == 0, err
    return folder


def test_the_dictionary_names_exactly_the_columns_that_are_written(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    folder = exported(run, tmp_path / "out")
    files = {str(one.relative_to(folder)): one for one in folder.rglob("*.csv")}
    own = files.pop("data_dictionary.csv")
    with own.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == HEADER
    said: dict[str, list[str]] = {}
    for row in rows:
        said.setdefault(row["file"], []).append(row["column"])
        assert row["type"]
        assert row["meaning"]
        assert row["missing"]
    for name, path in files.items():
        with path.open(encoding="utf-8-sig", newline="") as file:
            assert said.pop(name) == next(csv.reader(file)), name
    assert not said


def test_every_table_travels_or_stays_for_a_reason() -> None:
    assert {one.name for one in Table.metadata.sorted_tables} == {*EVERY, *STAYS}


def test_only_what_can_be_missing_says_what_an_empty_cell_means() -> None:
    nullable = {
        (f"tables/{table}.csv", name)
        for table in EVERY
        for name, (kind, missing) in columns(table).items()
        if missing and kind is not str
    }
    silent = {
        (one.file, one.column)
        for one in dictionary([f"tables/{table}.csv" for table in EVERY])
        if one.missing == "never empty"
    }
    assert not nullable & silent
