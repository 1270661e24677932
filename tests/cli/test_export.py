"""Export: files that come back as they went, name no author, and run no formula."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import RESPONSES, Run
from kit.study_place import StudyIn
from sqlalchemy import Engine

from data.card import Marked, Reply
from data.study.assignments import Slot, assign, recuse
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.verify import acts

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


def test_free_text_is_never_a_formula(run: Run, worked: Engine, tmp_path: Path) -> None:
    run("share", "export", str(tmp_path / "out"))
    said = [one["comment"] for one in table(tmp_path / "out" / "submissions.csv")]
    assert said[:2] == ["'=HYPERLINK(1)", "'=1+1"]
    remarks = [one["remark"] for one in table(tmp_path / "out" / "readings.csv")]
    assert remarks == ["", "'-no source", "'@known to me", ""]


def test_files_for_spreadsheets_say_that_they_are_utf_8_and_what_the_guard_is(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    run("share", "export", str(tmp_path / "out"))
    assert all(
        path.read_bytes().startswith(b"\xef\xbb\xbf") for path in (tmp_path / "out").rglob("*.csv")
    )
    page = (tmp_path / "out" / "data_dictionary.md").read_text("utf-8")
    assert "(BOM)" in page
    assert "one ' before it, which `medjury study import` takes off" in page


def test_the_event_hashes_can_be_computed_from_the_file(
    run: Run, worked: Engine, tmp_path: Path
) -> None:
    from hashlib import sha256

    run("share", "export", str(tmp_path / "out"))
    for one in table(tmp_path / "out" / "events.csv"):
        body = [one["at"], one["actor"], one["action"], json.loads(one["detail"]), one["previous"]]
        assert sha256(json.dumps(body, sort_keys=True).encode()).hexdigest() == one["sha256"]


def test_what_is_exported_and_imported_again_calibrates_to_the_last_digit(
    run: Run, write: Write, tmp_path: Path, study_in: StudyIn
) -> None:
    responses = "".join(
        f"i{n},visits,ctx,write,answer,r{n},model-{n % 3},answer {n}\n" for n in range(12)
    )
    path = write("responses.csv", RESPONSES.splitlines()[0] + "\n" + responses)
    ratings = ["response_id,rater,kind,pass,replicate,accuracy,completeness,clarity"]
    for n in range(12):
        ratings += [
            f"r{n},{who},clinician,{pass_},0,{1 + n % 5},{1 + (n + k) % 4},{2 + k / 3}"
            for k, who in enumerate(("dr_a", "dr_b"))
            for pass_ in range(1 + (n % 3 == 0))
        ]
        ratings += [f"r{n},j{k},juror,0,{m},{1 + n % 5},3,4" for k in (1, 2) for m in (0, 1)]
    run("study", "import", str(path))
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join(ratings))))[0] == 0
    assert run("analyse", "measure", "rouge-l")[0] == 0
    run("share", "export", str(tmp_path / "out"))
    fresh = ("--db", study_in(tmp_path, "fresh.db"))
    run("study", "import", str(path), *fresh)
    assert run("rate", "ratings", str(tmp_path / "out" / "ratings.csv"), *fresh)[0] == 0
    before, after = (
        run("analyse", "calibrate", "--reps", "40", "--json", "-", *db)[1] for db in ((), fresh)
    )
    assert before == after


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
