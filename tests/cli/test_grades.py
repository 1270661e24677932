"""Grades in words as an ordinal scale: the grader's own, in its order, and no other's."""

from pathlib import Path

import pytest
from kit.commands import figures
from kit.imported_runs import as_json, whole
from kit.studies import Run
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.grades import grades_named, grades_of, rubric_of_grades, usable_name
from data.study.frames import ratings_frame
from data.study.standing import benchmarks

GRADED = Path(__file__).parents[1] / "fixtures" / "inspect" / "graded_qa.eval"


@pytest.mark.parametrize(
    ("said", "wide", "words"),
    [
        (["C", "I"], False, ("I", "C")),
        (["C", "I"], True, ("I", "P", "C")),
        (["C", "P", "N"], False, ("I", "P", "C")),
        ([True, False], False, ("false", "true")),
        (["Pass", "FAIL"], False, ("fail", "pass")),
        (["A", "F"], False, ("F", "D", "C", "B", "A")),
        (["yes", "Fail"], False, None),
        (["N"], False, None),
        ([], False, None),
    ],
)
def test_known_grades_are_ordered_from_worst_to_best_and_never_mixed(
    said: list[object], wide: bool, words: tuple[str, ...] | None
) -> None:
    found = grades_of(said, wide)
    assert (found.words if found else None) == words


@pytest.mark.parametrize(
    "scale", ["", "a", "a,a", "a,", "5-1", "3-3", ",".join("abcdefghijklmnopqrstuvw")]
)
def test_a_scale_that_is_none_is_refused(scale: str) -> None:
    with pytest.raises(BadInput, match="give two ends"):
        grades_named(scale)


def test_a_named_scale_is_words_or_ends() -> None:
    assert grades_named("0-10").ends == (0, 10)
    assert grades_named("-2 to 2").scale.points == range(-2, 3)
    assert [grades_named("poor, fair,good").point(one) for one in ("Poor", "good", "x")] == [
        0,
        2,
        "x",
    ]
    rubric = rubric_of_grades("scale", ["tone"], grades_named("0-100"), "a test")
    assert set(rubric.criterion[0].anchors) == {0, 100}


def test_a_criterions_name_becomes_usable_and_a_usable_one_stays() -> None:
    assert usable_name("Logical Consistency") == "logical_consistency"
    assert usable_name("Tone / Empathy (1-5)") == "tone_empathy_1-5"
    assert usable_name("Clarity.v2") == "Clarity.v2"


def test_model_graded_qas_words_become_a_scale_of_their_own(run: Run, engine: Engine) -> None:
    code, out, err = run("study", "import", str(GRADED))
    assert code == 0, err
    assert "inspect_grade (0 I, 1 P, 2 C): made of its graders' own words" in out
    found = ratings_frame(engine)
    assert sorted(found["score"]) == [0, 1, 2]
    assert set(found["rater"]) == {"inspect.model_graded_qa"}
    assert "jurors: inspect.model_graded_qa (canned/grader)" in out
    assert "nothing changed" in run("study", "import", str(GRADED))[1]


def test_a_named_scale_of_a_log_goes_before_its_known_words(run: Run, engine: Engine) -> None:
    code, out, err = run("study", "import", str(GRADED), "--scale", "I,P,C,S")
    assert (code, "made of the scale that --scale names" in out) == (0, True), err
    [own] = benchmarks(engine)
    assert own.rubric.scale.max == 3


def test_a_sample_without_a_score_is_missing_and_the_others_keep_their_words(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    body = whole("graded_qa.eval")
    body["samples"][0]["scores"]["model_graded_qa"]["value"] = float("nan")
    found = figures(run, str(as_json(tmp_path, body)))
    assert found["missing"]["inspect.model_graded_qa"]["request_failed"] >= 1
    assert found["ratings"] >= 1
    assert found["logs"][0]["rubric"] == "inspect_grade"
