"""Logs of Inspect: what comes in, what is refused by name, and grades in words as a scale.

The logs come of `fixtures/inspect/notes_task.py` and, `jury.eval`, of our own export.
"""

import copy
import json
import math
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.commands import figures
from kit.imported_runs import LOGS, SECRET, as_json, rows, whole
from kit.studies import Run
from kit.study_place import nothing_stored
from sqlalchemy import Engine

from data.errors import BadInput
from data.importers.grades import grades_named, grades_of, rubric_of_grades
from data.rubric import read_rubric, write_rubrics
from data.study.frames import ratings_frame
from data.study.standing import benchmarks


def test_a_log_brings_instances_responses_and_what_scorers_said(run: Run, engine: Engine) -> None:
    code, out, _ = run("study", "import", str(LOGS / "note_a.eval"))
    assert code == 0
    assert "3 responses to 3 new instances and 6 ratings imported" in out
    assert "not taken: clarity, includes" in " ".join(out.split())
    found = rows(engine, "select instance_id, context, prompt, reference from instance order by 1")
    assert found == [
        ("one", "Any fever? No.", "", "No fever."),
        ("three", "Cough? Yes. " * 20, "", None),
        ("two", "[system]\nYou are a nurse.\n\n[user]\nPain? Mild.", "", "Mild pain."),
    ]
    assert rows(engine, "select distinct model from authorship") == [("openai-api/ward/note-a",)]
    judged = rows(
        engine,
        "select instance_id, criterion, score, comment from rating join response r on r.id = response "
        "join instance i on i.id = r.instance join rater on rater.id = rater "
        "where handle = 'inspect.judge' and kind = 'juror' order by rating.id",
    )
    assert judged[:3] == [
        ("one", "accuracy", 4, "the dose is right"),
        ("one", "completeness", 3, ""),
        ("one", "clarity", 2.5, ""),
    ]
    assert len(judged) == 6


def test_an_unscored_sample_is_missing_with_its_reason_and_no_number(
    run: Run, engine: Engine
) -> None:
    told = figures(run, str(LOGS / "note_a.eval"))
    assert told["missing"] == {"inspect.judge": {"request_failed": 1}}
    assert rows(engine, "select status, reason from attempt") == [
        ("request_failed", "unscored in Inspect: grader_failed")
    ]


def test_importing_twice_changes_nothing_whatever_the_form_of_the_log(
    run: Run, tmp_path: Path
) -> None:
    told = figures(run, str(LOGS / "note_a.eval"))
    assert (told["responses"], told["ratings"]) == (3, 6)
    again = as_json(tmp_path, whole("note_a.eval"))
    packed = tmp_path / "older.eval"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        body = json.loads(again.read_text())
        for number, sample in enumerate(body.pop("samples")):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(body))
    for path in (LOGS / "note_a.eval", again, packed):
        told = figures(run, str(path))
        assert (told["responses"], told["ratings"], told["failures"]) == (0, 0, 0)
        assert (told["responses_unchanged"], told["ratings_unchanged"]) == (3, 6)


def test_a_log_that_inspect_wrote_as_json_is_read(run: Run) -> None:
    told = figures(run, str(LOGS / "note_a.json"))
    assert (told["responses"], told["ratings"]) == (3, 6)


def test_logs_of_several_models_join_on_the_sample_and_epochs_are_responses(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    for name in ("note_a.eval", "note_b_twice.eval"):
        shutil.copy(LOGS / name, tmp_path / name)
    told = figures(run, str(tmp_path))
    assert (told["instances"], told["responses"]) == (3, 9)
    counted = rows(engine, "select model, count(*) from authorship group by model order by model")
    assert counted == [("openai-api/ward/note-a", 3), ("openai-api/ward/note-b", 6)]
    assert rows(engine, "select distinct replicate from rating") == [(0,)]


def test_a_lone_number_rates_the_only_criterion_and_off_the_scale_is_no_score(
    run: Run, tmp_path: Path
) -> None:
    generic = read_rubric("generic")
    clarity = next(one for one in generic.criterion if one.name == "clarity")
    brief = generic.model_copy(update={"name": "brief", "criterion": (clarity,)})
    write_rubrics(tmp_path / "rubrics", {"brief": brief})
    told = figures(run, str(LOGS / "note_a.eval"), "--rubric", str(tmp_path / "rubrics" / "brief"))
    assert told["missing"] == {
        "inspect.criteria": {"out_of_range": 1},
        "inspect.judge": {"request_failed": 1},
    }
    assert told["ratings"] == 4


def test_jurors_of_our_own_scorer_come_in_each_by_name(run: Run, engine: Engine) -> None:
    told = figures(run, str(LOGS / "jury.eval"))
    assert told["logs"][0]["jurors"] == [
        {"name": "inspect.one", "model": "openai-api/medjury/m-one"},
        {"name": "inspect.two", "model": "anthropic/m-two"},
    ]
    assert told["missing"] == {"inspect.two": {"invalid_json": 1}}
    query = (
        "select handle, score, count(*) from rating join rater on rater.id = rater group by 1, 2 "
        "order by 1"
    )
    assert rows(engine, query) == [("inspect.one", 4, 6), ("inspect.two", 5, 3)]


def test_a_verdict_on_another_rubric_than_the_one_named_is_refused(
    run: Run, tmp_path: Path
) -> None:
    code, _, err = run("study", "import", str(LOGS / "jury.eval"), "--rubric", "aci_bench")
    assert (code, "rated on the rubric with the hash" in " ".join(err.split())) == (2, True)
    other = read_rubric("generic")
    write_rubrics(tmp_path / "rubrics", {"other": other})
    told = figures(run, str(LOGS / "jury.eval"), "--rubric", str(tmp_path / "rubrics" / "other"))
    assert told["logs"][0]["rubric_sha256"] == other.sha256


def test_a_run_that_ended_early_is_taken_as_far_as_it_went_and_said(
    run: Run, tmp_path: Path
) -> None:
    for status in ("error", "cancelled"):
        body = whole("note_a.eval") | {"status": status}
        body["samples"][0]["error"] = {"message": SECRET, "traceback": SECRET}
        code, out, _ = run("study", "import", str(as_json(tmp_path, body)), "--benchmark", status)
        assert code == 0
        assert f"ended with status {status}" in out
        assert "1 sample ended with an error" in out
        assert SECRET not in out


def test_a_log_without_scores_brings_responses_alone(run: Run, tmp_path: Path) -> None:
    body = whole("note_a.eval")
    for sample in body["samples"]:
        sample["scores"] = None
    code, out, _ = run("study", "import", str(as_json(tmp_path, body)))
    assert code == 0
    assert "no scorer rates a criterion" in out


def test_scores_that_are_no_finite_number_give_no_rating(run: Run, tmp_path: Path) -> None:
    odd: list[tuple[Any, str]] = [
        ({"accuracy": 4, "completeness": math.nan, "clarity": 3}, "invalid_json"),
        ({"accuracy": 4, "completeness": True, "clarity": 3}, "invalid_json"),
        ({"accuracy": 4, "completeness": None, "clarity": 3}, "missing_criterion"),
        ({"accuracy": 4, "completeness": 6, "clarity": 3}, "out_of_range"),
        ("NaN", "request_failed"),
    ]
    body = whole("note_a.eval")
    [sample] = (one for one in body["samples"] if one["id"] == "one")
    body["samples"] = [copy.deepcopy(sample) | {"id": f"odd{number}"} for number in range(len(odd))]
    for made, (value, _) in zip(body["samples"], odd, strict=True):
        made["scores"]["judge"]["value"] = value
    told = figures(run, str(as_json(tmp_path, body)))
    assert told["missing"]["inspect.judge"] == Counter(status for _, status in odd)
    assert told["ratings"] == 0


def changed(**values: Any) -> Callable[[Path], Path]:
    return lambda folder: as_json(folder, whole("note_a.eval") | values)


def sampled(**values: Any) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        body = whole("note_a.eval")
        body["samples"][0] |= values
        return as_json(folder, body)

    return change


def cut(name: str) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        path = folder / name
        body = (LOGS / name).read_bytes()
        path.write_bytes(body[: len(body) // 2])
        return path

    return change


def zipped(name: str, body: str = "{}", header: str = "header.json") -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        path = folder / "log.eval"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(header, json.dumps(whole("note_a.eval") | {"samples": None}))
            archive.writestr(name, body)
        return path

    return change


def patched(at: bytes, offset: int, value: bytes) -> Callable[[Path], Path]:
    """Return a change of the list of parts: of the entry that ends with a name."""

    def change(folder: Path) -> Path:
        body = bytearray((LOGS / "note_a.eval").read_bytes())
        place = body.rindex(at) - 46 + offset
        body[place : place + len(value)] = value
        (folder / "log.eval").write_bytes(body)
        return folder / "log.eval"

    return change


def many_bombs(folder: Path) -> Path:
    path = zipped("samples/a.json")(folder)
    with zipfile.ZipFile(path, "a") as archive:
        for number in range(10):
            archive.writestr(f"samples/{number}.json", "[]")
            archive.infolist()[-1].file_size = 30 << 20  # nothing is read before this is judged
    return path


def damaged(folder: Path) -> Path:
    body = bytearray((LOGS / "note_a.eval").read_bytes())
    body[body.index(b"header.json") + 200] ^= 255
    (folder / "log.eval").write_bytes(body)
    return folder / "log.eval"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (cut("note_a.eval"), "not a whole zip"),
        (cut("note_a.json"), "not whole JSON"),
        (damaged, "damaged or cut short"),
        (patched(b"header.json", 24, b"\x0a\0\0\0"), "another length|damaged"),
        (patched(b"header.json", 24, b"\xff\xff\xff\x7f"), "unpack to more"),
        (patched(b"header.json", 8, b"\x01\0"), "encrypted"),
        (lambda folder: as_json(folder, {"request_states": []}), "a JSON object of no tool"),
        (lambda folder: as_json(folder, [1, 2]), "row 1 is int, not a JSON object"),
        (lambda folder: as_json(folder, "[" * 100), "JSON, and not an array"),
        (changed(version=3), "another version than 2"),
        (changed(status="started"), "has not ended"),
        (changed(invalidated=True), "invalidated"),
        (changed(samples=[]), "nothing to rate in it: no samples"),
        (changed(samples={"a": 1}), "samples are not a list"),
        (changed(samples=[SECRET]), "sample 1"),
        (changed(eval={"task": "notes"}), "eval.model is not as Inspect"),
        (sampled(input={"text": SECRET}), "input"),
        (sampled(id=""), "id is not as Inspect writes it"),
        (sampled(target="\ud800" + SECRET), "half a surrogate pair"),
        (zipped("../../escape.json"), "leads out of it"),
        (zipped("/etc/passwd"), "leads out of it"),
        (zipped("samples/a.json", " " * (40 << 20)), "unpack to more than any such file"),
        (many_bombs, "it would unpack to more than any such file"),
        (zipped("samples/a.json", '{"input": "' + SECRET), "not whole JSON"),
        (zipped("samples/a.json", header="other.json"), "no log of Inspect"),
        (zipped("_journal/start.json", header="other.json"), "did not end"),
        (lambda folder: folder / "absent.eval", "No such file"),
    ],
)
def test_what_is_no_whole_log_is_refused_by_name_and_nothing_is_written(
    make: Callable[[Path], Path], said: str, run: Run, tmp_path: Path, url: str
) -> None:
    path = make(tmp_path)
    code, out, err = run("study", "import", str(path))
    told = " ".join(err.split())
    assert code == 2, out
    assert re.search(said, told), told
    assert "Traceback" not in err
    assert SECRET not in err
    assert nothing_stored(url)


def test_one_bad_log_of_several_leaves_all_of_them_out(run: Run, tmp_path: Path, url: str) -> None:
    code, _, err = run(
        "study", "import", str(LOGS / "note_a.eval"), str(cut("note_a.json")(tmp_path))
    )
    assert code == 2
    assert "nothing was imported" in " ".join(err.split())
    assert nothing_stored(url)


def test_a_sample_with_another_text_under_a_known_id_is_refused(run: Run, tmp_path: Path) -> None:
    figures(run, str(LOGS / "note_a.eval"))
    code, _, err = run("study", "import", str(sampled(input=SECRET + " at all?")(tmp_path)))
    assert (code, "already has another context" in " ".join(err.split())) == (2, True)
    assert SECRET not in err


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
