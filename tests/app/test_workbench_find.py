"""What the workbench finds: words, missed unsafe responses, pairs of scores; held to the statistics."""

from pathlib import Path

from kit.screens import GOOD
from kit.studies import Run, import_file, rated_by_three
from sqlalchemy import Engine
from sqlmodel import Session, select

from calibration.detection import detection
from calibration.protocol import Critical
from calibration.values import AnalysisOptions
from data.card import Reply
from data.person import OPERATOR, Person
from data.schema import Response, Role
from data.study.assignments import Slot, assign
from data.study.compare import (
    Chosen,
    Compared,
    Side,
    UnsafeAt,
    compared,
    missed_unsafe,
    responses_with,
    snippets,
    workbench_clinicians,
)
from data.study.masks import MaskedText, mask_responses
from data.study.people import invite
from data.study.ratings import submit
from data.study.room import next_task
from medjury.services.confusion import cell_of, confusion
from medjury.services.scores import scores_of

SCORES = {"accuracy": 2, "completeness": 3, "clarity": 5}


def keys(engine: Engine) -> dict[str, int]:
    with Session(engine) as session:
        return {
            name: key or 0 for name, key in session.exec(select(Response.response_id, Response.id))
        }


def test_words_are_found_in_texts_ids_and_comments_whatever_their_case(small_study: Engine) -> None:
    key = keys(small_study)
    assert responses_with(OPERATOR, small_study, "  FEVER ") == {key["r11"], key["r12"]}
    assert responses_with(OPERATOR, small_study, "r2") == {key["r21"], key["r22"]}
    invite(small_study, ["dr_a"])
    assign(small_study, [Slot("dr_a", key["r21"], 1)], seed=0, per_response=1)
    task = next_task(small_study, 1).task
    assert task is not None
    reply = Reply(SCORES, {"clarity": "Überlang"}, "50% of it is wrong", flags=("flag",))
    assert submit(small_study, 1, task.card.code, reply)
    for words in ("überlang", "ÜBERLANG", "50% of"):
        assert responses_with(OPERATOR, small_study, words) == {key["r21"]}
    [found] = snippets(OPERATOR, small_study, [key["r21"]], "50% of").values()
    assert (found.text, found.of_comment) == ("50% of it is wrong", True)


def test_a_sign_of_a_pattern_is_looked_for_as_it_stands(small_study: Engine) -> None:
    assert responses_with(OPERATOR, small_study, "%%") == frozenset()
    assert responses_with(OPERATOR, small_study, "__") == frozenset()
    assert responses_with(OPERATOR, small_study, "f") == frozenset()  # too short to search


def test_what_is_masked_is_neither_found_nor_shown(small_study: Engine) -> None:
    key = keys(small_study)["r21"]
    mask_responses(small_study, [MaskedText(key, "[...] pain.", [(0, 4, "[...]")])])
    assert responses_with(OPERATOR, small_study, "mild") == frozenset()
    [found] = snippets(OPERATOR, small_study, [key], "mild").values()
    assert found.text == "[...] pain."


def test_a_snippet_begins_before_the_words_that_were_searched(
    engine: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    path.write_text(GOOD.replace("Mild pain.", "a " * 400 + "Needle " + "z " * 400), "utf-8")
    import_file(engine, path)
    key = keys(engine)["r21"]
    [plain] = snippets(OPERATOR, engine, [key]).values()
    assert plain.text.startswith("a a")
    assert plain.text.endswith("\N{HORIZONTAL ELLIPSIS}")
    [found] = snippets(OPERATOR, engine, [key], "needle").values()
    assert "Needle z" in found.text
    assert found.text.startswith("\N{HORIZONTAL ELLIPSIS}")


def test_missed_unsafe_responses_and_pairs_are_those_of_the_statistics(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated_by_three(run, tmp_path, n=40)
    critical = [Critical(name, 2.0) for name in ("accuracy", "completeness", "clarity")]
    rows = {
        (row.benchmark, row.criterion): row
        for row in detection(scores_of(engine), AnalysisOptions(reps=20), critical)
        if row.scorer == "jury"
    }
    checked = 0
    for benchmark in ("visits", "notes"):
        for criterion in ("accuracy", "completeness", "clarity"):
            row = rows[benchmark, criterion]
            asked = Chosen(benchmark, criterion)
            missed = missed_unsafe(
                OPERATOR, engine, asked, [UnsafeAt(benchmark, criterion, row.threshold)]
            )
            assert len(missed) == row.n_missed
            matrix = confusion(compared(OPERATOR, engine, asked), 1, 5)
            assert matrix.both == row.n
            assert sum(matrix.counts.values()) == row.n
            checked += row.n_missed
    assert checked  # or nothing was held to anything


def of(clinicians: float | None, jury: float | None) -> Compared:
    both = clinicians is not None and jury is not None
    difference = (jury or 0) - (clinicians or 0) if both else None
    return Compared(1, "r", "b", Side(clinicians, 2, 2), Side(jury, 2, 2), difference, frozenset())


def test_a_half_is_rounded_up_and_who_lacks_a_side_is_counted_apart() -> None:
    rows = [of(2.5, 2.4999999), of(0.1 + 2.4, 4.49), of(None, 3), of(3, None), of(None, None)]
    matrix = confusion(rows, 1, 5)
    assert matrix.points == (1, 2, 3, 4, 5)
    assert matrix.counts == {(3, 2): 1, (3, 4): 1}
    assert (matrix.both, matrix.only_clinicians, matrix.only_jury, matrix.neither) == (2, 1, 1, 1)
    assert matrix.agreeing() == 0
    assert cell_of(rows[2]) is None


def test_one_clinician_can_stand_for_all_under_a_name_that_tells_nobody(
    engine: Engine, run: Run, tmp_path: Path
) -> None:
    rated_by_three(run, tmp_path, n=10)
    researcher = Person(9, "Rita", Role.RESEARCHER)
    names = workbench_clinicians(researcher, engine)
    assert all(name == who for name, who in names.items())
    known = workbench_clinicians(OPERATOR, engine)
    assert known.keys() == names.keys()
    assert set(known.values()) == {"dr_a", "dr_b"}
    for name in names:
        rows = compared(researcher, engine, Chosen(clinician=name))
        assert {row.clinicians.of for row in rows} == {1}
