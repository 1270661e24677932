"""Exports: files that come back as they went, their dictionary, and the dossier's methods."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.packaged_study import made, whole
from kit.studies import Run
from sqlalchemy import Engine, text
from sqlmodel import Session

from calibration.dossier import dossier_markdown
from calibration.tables.numbers import DASH, MINUS, scorer
from data.card import Marked, Reply
from data.study.assignments import Slot, assign, recuse
from data.study.copies import PACKED, kind_of
from data.study.export import HEADER, dictionary
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.verify import acts
from medjury.services.dossier import dossier

Write = Callable[[str, str], Path]

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}


@pytest.fixture
def worked(small_study: Engine) -> Engine:
    """Make a study with a rating that was revised, a repeat, one not ratable and one recused."""
    invite(small_study, ["dr_a"])
    slots = [Slot("dr_a", number, number) for number in (1, 2, 3)]
    assign(small_study, [*slots, Slot("dr_a", 1, 4, pass_=1)], seed=0, per_response=1)
    replies = [
        Reply(SCORES, comment="=HYPERLINK(1)", spans=(Marked("accuracy", 0, 4, "wrong"),)),
        Reply({}, flags=("not_enough_context",), comment="-no source"),
    ]
    for reply in replies:
        code = _next(small_study)
        submit(small_study, 1, code, reply, 5.5)
        if reply.scores:
            submit(small_study, 1, code, Reply({**SCORES, "clarity": 1}, comment="=1+1"), 9)
    recuse(small_study, 1, _next(small_study), "@known to me")
    submit(small_study, 1, _next(small_study), Reply(SCORES), 3)
    return small_study


def _next(engine: Engine) -> str:
    task = next_task(engine, 1).task
    assert task is not None
    return task.card.code


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_files_hold_what_counts_and_name_no_author(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert run("share", "export", str(folder))[0] == 0
    files = {path.name: path.read_text("utf-8") for path in folder.rglob("*.*")}
    assert {"ratings.csv", "readings.csv", "spans.csv", "events.csv"} < set(files)
    assert not any("model-" in body for body in files.values())
    ratings = table(folder / "ratings.csv")
    assert [(one["criterion"], one["score"], one["pass"]) for one in ratings] == [
        *(("accuracy", "2.0", "0"), ("completeness", "3.0", "0"), ("clarity", "1.0", "0")),
        *(("accuracy", "2.0", "1"), ("completeness", "3.0", "1"), ("clarity", "5.0", "1")),
    ]
    assert [one["counts"] for one in table(folder / "spans.csv")] == ["0"]


def test_a_reading_is_exported_with_its_place_time_and_flags(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    run("share", "export", str(tmp_path / "out"))
    readings = table(tmp_path / "out" / "readings.csv")
    shown = [(one["response_id"], one["pass"], one["position"], one["state"]) for one in readings]
    assert shown == [
        *(("r11", "0", "1", "done"), ("r12", "0", "2", "unrated")),
        *(("r21", "0", "3", "recused"), ("r11", "1", "4", "done")),
    ]
    assert [one["flags"] for one in readings] == ["", "not_enough_context", "recused", ""]
    assert [one["seconds_active"] for one in readings] == ["9.0", "5.5", "0.0", "3.0"]
    assert [one["revision"] for one in readings] == ["2", "1", "0", "1"]
    assert [one["previous"] for one in readings] == ["", "2.0", "", "2.0"]
    assert all(one["done_at"].endswith("+00:00") for one in readings)


def test_the_event_hashes_can_be_computed_from_the_file(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    from hashlib import sha256

    run("share", "export", str(tmp_path / "out"))
    for one in table(tmp_path / "out" / "events.csv"):
        body = [one["at"], one["actor"], one["action"], json.loads(one["detail"]), one["previous"]]
        assert sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == one["sha256"]


def test_a_folder_with_files_in_it_is_never_written_to(
    run: Run, worked: Engine, tmp_path: Path, write: Write
) -> None:
    write("kept.txt", "mine")
    code, _, err = run("share", "export", str(tmp_path))
    assert code == 2
    assert "holds files already" in err
    assert run("share", "export", str(tmp_path / "kept.txt"))[0] == 2


def test_authors_are_exported_only_with_a_reason_that_is_recorded(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    assert run("share", "export", str(tmp_path / "out"), "--unblind")[0] == 2
    assert not (tmp_path / "out").exists()
    assert (
        run("share", "export", str(tmp_path / "out"), "--unblind", "--reason", "analysis")[0] == 0
    )
    assert table(tmp_path / "out" / "authors.csv")[0] == {
        "response_id": "r11",
        "model": "model-one",
    }
    assert acts(worked, "unblinded")[0].detail == {"reason": "analysis"}


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


def page(engine: Engine) -> str:
    """Return the dossier as one reads it, without the marks of Markdown."""
    return dossier_markdown(dossier(engine, "grras", reps=20)).replace("\\", "")


@pytest.fixture
def written(whole: Engine) -> str:
    return page(whole)


def test_every_figure_is_that_of_calibrate(run: Run, whole: Engine, tmp_path: Path) -> None:
    to = tmp_path / "methods.md"
    assert run("analyse", "calibrate", "--json", str(tmp_path / "c.json"))[0] == 0
    code, _, err = run("share", "dossier", "--to", "grras", "--out", str(to))
    assert code == 0, err
    written = to.read_text("utf-8").replace("\\", "").replace(MINUS, "-").replace(DASH, "-")
    shown = re.findall(r"^\| ([^|]+) \| (-?[0-9.]+|-) \|", written, re.MULTILINE)
    rows = json.loads((tmp_path / "c.json").read_text("utf-8"))["rows"]
    assert [icc for _, icc in shown] == [
        "-" if row["icc"] is None else f"{row['icc']:.3f}" for row in rows
    ]
    for row, (name, _) in zip(rows, shown, strict=True):
        assert name.startswith(scorer(row["scorer"]))


def test_a_missing_criterion_and_a_lifted_blind_are_reported(
    run: Run, whole: Engine, tmp_path: Path
) -> None:
    with Session(whole) as session:
        session.execute(
            text("DELETE FROM rating WHERE response = 5 AND rater = 1 AND criterion = 'clarity'")
        )
        session.commit()
    call = ("study", "unblind", "--reason", "interim look", "--out", str(tmp_path / "a.csv"))
    assert run(*call)[0] == 0
    written = page(whole)
    assert "12 responses of 3 models to 12 instances" in written
    assert "1 reading of 49 by clinicians lack" in written
    assert "interim look" in written
