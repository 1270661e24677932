"""The data dictionary: every column of every file that is exported, in words."""

import csv
from pathlib import Path

from kit.packaged_study import made, whole
from kit.studies import Run
from sqlalchemy import Engine

from data.study.copies import PACKED, kind_of
from data.study.export import HEADER, dictionary

__all__ = ["made", "whole"]


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


def test_only_what_can_be_missing_says_what_an_empty_cell_means() -> None:
    for table in PACKED:
        for row in dictionary(f"tables/{table.name}.csv"):
            column = table.c[row[1]]
            if column.nullable and kind_of(table.name, column.name) is not str:
                assert row[5] != "never empty", row
