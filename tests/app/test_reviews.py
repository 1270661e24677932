"""Tags and notes of reviewers: only added to, under the record, exported, and shown to no rater."""

import csv
import logging

import pytest
from kit.rating_study import build, codes_of, message, person_of, row, rubric, session_of
from sqlalchemy import text
from sqlmodel import Session
from starlette.applications import Starlette
from starlette.testclient import TestClient

from annotate.rating.requests import PATH, routes
from annotate.screens.export import files
from data.database import open_study
from data.errors import BadInput, NotAllowed, Unknown
from data.person import OPERATOR, Person
from data.record import REVIEWED
from data.schema import Role
from data.study.people import add_people
from data.study.reviews import (
    change_tags,
    keep_note,
    noted,
    review_of,
    standing_reviews,
    tag_counts,
    tagged,
    tags_on,
)
from data.study.settings import lock
from data.study.standing import version
from data.study.verify import acts, verify, verify_in

RITA, CARLA = Person(1, "Rita", Role.RESEARCHER), Person(2, "Carla", Role.COORDINATOR)
NOTE, TAG = "Needle: ask Dr. Rao about it.", "haystack"


def test_a_tag_stands_until_it_is_taken_off_and_is_spelled_as_the_study_has_it(small_study):
    assert change_tags(RITA, small_study, 1, put_on=[" Too  short ", "unsafe"])
    assert change_tags(CARLA, small_study, 2, put_on=["TOO SHORT"])
    assert not change_tags(CARLA, small_study, 1, put_on=["unsafe", "too short"])
    assert tag_counts(RITA, small_study) == {"Too short": 2, "unsafe": 1}
    assert change_tags(CARLA, small_study, 1, put_on=["new"], taken_off=["Unsafe", "no such tag"])
    assert review_of(RITA, small_study, 1).tags == ("new", "Too short")
    assert tagged(RITA, small_study, ["Too short"]) == {1, 2}
    assert tagged(RITA, small_study, ["new", "unsafe"]) == {1}
    assert tags_on(RITA, small_study, [1, 2, 3]) == {1: ["Too short", "new"], 2: ["Too short"]}
    assert change_tags(RITA, small_study, 1, put_on=["unsafe"])  # again, after it was taken off
    assert tagged(RITA, small_study, ["unsafe"]) == {1}


def test_of_notes_the_newest_counts_and_earlier_ones_stay(small_study):
    assert keep_note(RITA, small_study, 1, " first ")
    assert not keep_note(CARLA, small_study, 1, "first")
    assert keep_note(CARLA, small_study, 1, "second")
    found = review_of(RITA, small_study, 1)
    told = [(line.text, line.reviewer) for line in found.notes]
    assert (found.note, told) == ("second", [("second", "account 2"), ("first", "account 1")])
    assert noted(RITA, small_study) == {1}
    assert keep_note(RITA, small_study, 1, "")
    found = review_of(RITA, small_study, 1)
    assert (found.note, len(found.notes), noted(RITA, small_study)) == ("", 3, frozenset())
    assert not keep_note(RITA, small_study, 2, "  ")  # there was none


def test_coordinators_see_the_names_of_accounts(small_study):
    add_people(OPERATOR, small_study, ["Rita"], Role.RESEARCHER)
    keep_note(RITA, small_study, 1, NOTE)
    assert [line.reviewer for line in review_of(CARLA, small_study, 1).notes] == ["Rita"]
    assert [line.reviewer for line in review_of(RITA, small_study, 1).notes] == ["account 1"]


def test_the_record_vouches_for_reviews_and_holds_no_word_of_them(small_study, caplog):
    caplog.set_level(logging.DEBUG)
    before = version(small_study)
    change_tags(RITA, small_study, 1, put_on=[TAG, "other"], taken_off=[])
    keep_note(RITA, small_study, 1, NOTE)
    change_tags(RITA, small_study, 1, taken_off=["other"])
    events = acts(small_study, REVIEWED)
    assert [event.actor for event in events] == ["account 1"] * 3
    assert version(small_study) == before  # no figure is computed anew for it
    assert verify(small_study).findings == ()
    assert verify(small_study).rows["review"] == 4
    told = caplog.text + str([event.detail for event in events])
    assert ("Needle" in told, TAG in told) == (False, False)
    for change in (
        "UPDATE review SET text = 'x' WHERE id = 3",
        "UPDATE review SET reviewer = 'account 9' WHERE id = 1",
        "DELETE FROM review WHERE id = 4",
    ):
        with small_study.execution_options(writes=True).connect() as connection:
            connection.execute(text(change))
            [finding] = verify_in(Session(connection)).findings
            connection.rollback()
        assert finding.startswith("review")


def test_what_cannot_be_stored_is_refused_and_nothing_written(small_study):
    for tag in ("", " ", "x" * 41, "two\nlines", "bell\a"):
        with pytest.raises(BadInput, match="1 to 40"):
            change_tags(RITA, small_study, 1, put_on=["fine", tag])
    with pytest.raises(Unknown, match="response 4711"):
        change_tags(RITA, small_study, 4711, put_on=["fine"])
    for error, response, note, said in (
        (BadInput, 1, "x" * 2001, "at most 2,000 characters, and this one 2,001"),
        *((Unknown, 4711, "fine", "response 4711"), (NotAllowed, 1, "late", "locked")),
    ):
        if error is NotAllowed:
            lock(small_study, OPERATOR.actor)
        with pytest.raises(error, match=said):
            keep_note(RITA, small_study, response, note)
    assert acts(small_study, REVIEWED) == []


def table(path):
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def test_the_export_has_what_stands_and_the_package_all_of_it(run, small_study, tmp_path):
    change_tags(RITA, small_study, 1, put_on=[TAG, "gone"])
    change_tags(CARLA, small_study, 1, taken_off=["gone"])
    for words in ("first", "=1+1"):
        keep_note(CARLA, small_study, 2, words)
    folder, package = tmp_path / "out", tmp_path / "study.zip"
    assert run("share", "export", str(folder), "--package", str(package))[0] == 0
    rows = table(folder / "reviews.csv")
    assert list(rows[0]) == ["response_id", "reviewer", "tag", "note", "at"]
    assert [[*row.values()][:4] for row in rows] == [
        ["r11", "account 1", TAG, ""],
        ["r12", "account 2", "", "'=1+1"],  # no formula for a spreadsheet
    ]
    assert all(row["at"].endswith("+00:00") for row in rows)
    saved = files.reviewed([*standing_reviews(RITA, small_study)])
    assert saved == (folder / "reviews.csv").read_bytes()  # the app saves the same file
    assert len(table(folder / "tables" / "review.csv")) == 5
    there = f"sqlite:///{tmp_path / 'there.db'}"
    assert run("study", "import", str(package), "--db", there)[0] == 0
    restored = open_study(there)
    assert verify(restored).findings == ()
    assert review_of(RITA, restored, 2) == review_of(RITA, small_study, 2)
    assert tag_counts(RITA, restored) == {TAG: 1}
    restored.dispose()


def test_no_rater_is_sent_a_tag_or_a_note(engine):
    code = build(engine, [row(n, f"Note {n}.") for n in (1, 2)], ["dr-a"], rubric())["dr-a"]
    mine = codes_of(engine, "dr-a")
    for response in (1, 2):
        keep_note(RITA, engine, response, NOTE)
        change_tags(RITA, engine, response, put_on=[TAG])
    headers = {"Cookie": session_of(engine, person_of(engine, code))}
    with TestClient(Starlette(routes=routes(engine)), headers=headers) as client:
        bodies = client.get(PATH).text
        for code, seq, told in (
            *((mine[0], 1, {"submit": True}), (mine[0], 2, {"go": "next"})),
            *((mine[1], 1, {"go": "previous"}), (mine[1], 2, {"submit": True})),
        ):
            bodies += client.post(PATH, json=message(code, seq, **told)).text
    words = ("Note 1.", "Note 2.", "Needle", TAG)
    assert [one in bodies for one in words] == [True, True, False, False]
