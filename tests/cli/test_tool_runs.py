"""Runs of HELM and logs of Inspect: what comes in, what is refused by name or skipped, and grades in words as a scale.

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
from hypothesis import given
from hypothesis import strategies as st
from kit.commands import figures
from kit.imported_runs import (
    LOGS,
    MODELS,
    SECRET,
    TEMPLATE,
    as_json,
    juror_profile,
    rows,
    run_folder,
    scores,
    state,
    whole,
)
from kit.study_place import all_rows, nothing_stored

from data.errors import BadInput
from data.importers.grades import grades_named, grades_of, rubric_of_grades
from data.importers.helm import finished, read_runs, verdict
from data.rubric import read_rubric, write_rubrics
from data.rubrics.helm import rubric_of
from data.schema import Status
from data.study.frames import ratings_frame
from data.study.standing import benchmarks


def test_a_log_brings_instances_responses_what_scorers_said_and_why_one_has_none(run, engine):
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
    first = ("one", "accuracy", 4, "the dose is right")
    assert judged[:3] == [first, ("one", "completeness", 3, ""), ("one", "clarity", 2.5, "")]
    assert len(judged) == 6
    query = "select handle, status, reason from attempt join rater r on r.id = rater"
    missing = rows(engine, query)
    assert missing == [("inspect.judge", "request_failed", "unscored in Inspect: grader_failed")]


@pytest.mark.parametrize("name", ["note_a.eval", "note_a.json"])
def test_importing_twice_changes_nothing_whatever_the_form_of_the_log(run, tmp_path, name):
    told = figures(run, str(LOGS / name))
    assert (told["responses"], told["ratings"]) == (3, 6)
    again = as_json(tmp_path, whole(name))
    packed = tmp_path / "older.eval"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        body = json.loads(again.read_text())
        for number, sample in enumerate(body.pop("samples")):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(body))
    for path in (LOGS / name, again, packed):
        told = figures(run, str(path))
        assert (told["responses"], told["ratings"], told["failures"]) == (0, 0, 0)
        assert (told["responses_unchanged"], told["ratings_unchanged"]) == (3, 6)


def test_logs_of_several_models_join_on_the_sample_and_epochs_are_responses(run, engine, tmp_path):
    for name in ("note_a.eval", "note_b_twice.eval"):
        shutil.copy(LOGS / name, tmp_path / name)
    told = figures(run, str(tmp_path))
    assert (told["instances"], told["responses"]) == (3, 9)
    counted = rows(engine, "select model, count(*) from authorship group by model order by model")
    assert counted == [("openai-api/ward/note-a", 3), ("openai-api/ward/note-b", 6)]
    assert rows(engine, "select distinct replicate from rating") == [(0,)]


def test_a_lone_number_rates_the_only_criterion_and_off_the_scale_is_no_score(run, tmp_path):
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


def test_jurors_of_our_own_scorer_come_in_each_by_name(run, engine):
    told = figures(run, str(LOGS / "jury.eval"))
    assert told["logs"][0]["jurors"] == [
        {"name": "inspect.one", "model": "openai-api/medjury/m-one"},
        {"name": "inspect.two", "model": "anthropic/m-two"},
    ]
    assert told["missing"] == {"inspect.two": {"invalid_json": 1}}
    found = ratings_frame(engine).groupby(["rater", "score"], observed=True).size()
    assert found.to_dict() == {("inspect.one", 4): 6, ("inspect.two", 5): 3}


def test_a_verdict_on_another_rubric_than_the_one_named_is_refused(run, tmp_path):
    code, _, err = run("study", "import", str(LOGS / "jury.eval"), "--rubric", "aci_bench")
    assert (code, "rated on the rubric with the hash" in " ".join(err.split())) == (2, True)
    other = read_rubric("generic")
    write_rubrics(tmp_path / "rubrics", {"other": other})
    told = figures(run, str(LOGS / "jury.eval"), "--rubric", str(tmp_path / "rubrics" / "other"))
    assert told["logs"][0]["rubric_sha256"] == other.sha256


def test_a_run_is_taken_as_far_as_it_went_and_a_log_without_scores_brings_responses(run, tmp_path):
    for status in ("error", "cancelled"):
        body = whole("note_a.eval") | {"status": status}
        body["samples"][0]["error"] = {"message": SECRET, "traceback": SECRET}
        code, out, _ = run("study", "import", str(as_json(tmp_path, body)), "--benchmark", status)
        assert code == 0
        assert f"ended with status {status}" in out
        assert "1 sample ended with an error" in out
        assert SECRET not in out
    body = whole("note_a.eval")
    for sample in body["samples"]:
        sample["scores"] = None
    code, out, _ = run("study", "import", str(as_json(tmp_path, body)))
    assert code == 0
    assert "no scorer rates a criterion" in out


def test_scores_that_are_no_finite_number_give_no_rating(run, tmp_path):
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
        first, *others = whole("note_a.eval")["samples"]
        return changed(samples=[first | values, *others])(folder)

    return change


def cut_log(name: str) -> Callable[[Path], Path]:
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
        (cut_log("note_a.eval"), "not a whole zip"),
        (cut_log("note_a.json"), "not whole JSON"),
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
        (many_bombs, "it would unpack to more than any such file"),
        (zipped("samples/a.json", '{"input": "' + SECRET), "not whole JSON"),
        (zipped("samples/a.json", header="other.json"), "no log of Inspect"),
        (zipped("_journal/start.json", header="other.json"), "did not end"),
        (lambda folder: folder / "absent.eval", "No such file"),
    ],
)
def test_what_is_no_whole_log_is_refused_by_name_and_nothing_is_written(
    make, said, run, tmp_path, url
):
    path = make(tmp_path)
    code, out, err = run("study", "import", str(path))
    told = " ".join(err.split())
    assert code == 2, out
    assert re.search(said, told), told
    assert "Traceback" not in err
    assert SECRET not in err
    assert nothing_stored(url)


def test_a_sample_with_another_text_under_a_known_id_is_refused(run, tmp_path):
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
def test_known_grades_are_ordered_from_worst_to_best_and_never_mixed(said, wide, words):
    found = grades_of(said, wide)
    assert (found.words if found else None) == words


@pytest.mark.parametrize(
    "scale", ["", "a", "a,a", "a,", "5-1", "3-3", ",".join("abcdefghijklmnopqrstuvw")]
)
def test_a_scale_that_is_none_is_refused(scale):
    with pytest.raises(BadInput, match="give two ends"):
        grades_named(scale)


def test_a_named_scale_is_words_or_ends():
    assert grades_named("0-10").ends == (0, 10)
    assert grades_named("-2 to 2").scale.points == range(-2, 3)
    named = grades_named("poor, fair,good")
    assert [named.point(one) for one in ("Poor", "good", "x")] == [0, 2, "x"]
    rubric = rubric_of_grades("scale", ["tone"], grades_named("0-100"), "a test")
    assert set(rubric.criterion[0].anchors) == {0, 100}


def test_model_graded_qas_words_become_a_scale_of_their_own(run, engine):
    code, out, err = run("study", "import", str(GRADED))
    assert code == 0, err
    assert "inspect_grade (0 I, 1 P, 2 C): made of its graders' own words" in out
    found = ratings_frame(engine)
    assert sorted(found["score"]) == [0, 1, 2]
    assert set(found["rater"]) == {"inspect.model_graded_qa"}
    assert "jurors: inspect.model_graded_qa (canned/grader)" in out
    assert "nothing changed" in run("study", "import", str(GRADED))[1]


def test_a_named_scale_of_a_log_goes_before_its_known_words(run, engine):
    code, out, err = run("study", "import", str(GRADED), "--scale", "I,P,C,S")
    assert (code, "made of the scale that --scale names" in out) == (0, True), err
    [own] = benchmarks(engine)
    assert own.rubric.scale.max == 3


def test_a_sample_without_a_score_is_missing_and_the_others_keep_their_words(run, engine, tmp_path):
    body = whole("graded_qa.eval")
    body["samples"][0]["scores"]["model_graded_qa"]["value"] = float("nan")
    found = figures(run, str(as_json(tmp_path, body)))
    assert found["missing"]["inspect.model_graded_qa"]["request_failed"] >= 1
    assert found["ratings"] >= 1
    assert found["logs"][0]["rubric"] == "inspect_grade"


def test_jurors_rate_on_the_prompt_they_were_sent_and_again_nothing_changes(run, engine, tmp_path):
    folder = str(run_folder(tmp_path, [state(1), state(2)]))
    code, out, err = run("study", "import", folder)
    assert code == 0, err
    assert "held against 2 prompts as sent" in out
    body = rows(engine, "SELECT body FROM rubric")[0][0]
    own = rubric_of("tiny_qa", TEMPLATE, ["accuracy", "clarity"], "HELM of unknown version")
    assert json.loads(body) == json.loads(own.to_json())
    jurors = rows(engine, "SELECT handle, kind FROM rater ORDER BY id")
    assert jurors == [("gpt", "juror"), ("owl", "juror")]
    assert juror_profile(engine, "gpt")["model"] == "lab/gpt-9"
    found = rows(engine, "SELECT COUNT(*), MIN(score), MAX(comment) FROM rating")
    assert found == [(8, 4, "so clarity")]
    found = rows(engine, "SELECT context, prompt, reference FROM instance ORDER BY id")
    assert found[0] == ("What helps patient 1?", "Answer.", "Rest.")
    before = all_rows(engine)
    code, out, _ = run("study", "import", folder)
    assert (code, "nothing changed" in out, all_rows(engine)) == (0, True, before)
    assert run("study", "verify")[0] == 0


def test_the_author_stands_in_its_own_table_only(run, engine, tmp_path):
    run("study", "import", str(run_folder(tmp_path, [state(1, {"gpt": scores(9)})])))
    with_it = [name for name, found in all_rows(engine).items() if "writer" in str(found)]
    assert with_it == ["authorship"]


@pytest.mark.parametrize(
    ("said", "status", "causes"),
    [
        (scores(4), Status.OK, []),
        (scores("3"), Status.OK, []),
        (scores(4.9), Status.OK, [["truncated"]]),
        (scores(4, overall=1), Status.OK, [["extra_criterion"]]),
        (None, Status.REQUEST_FAILED, []),
        (scores(7), Status.OUT_OF_RANGE, [["off_scale"]]),
        (scores(True), Status.INVALID_JSON, [["unreadable"]]),
        (scores("4/5"), Status.INVALID_JSON, []),
        (scores(None), Status.INVALID_JSON, []),
        (scores(float("nan")), Status.INVALID_JSON, []),
        ({"clarity": {"score": 2}}, Status.MISSING_CRITERION, [["unreadable"]]),
    ],
)
def test_a_whole_verdict_on_the_scale_counts_others_keep_a_reason(tmp_path, said, status, causes):
    judge = {"name": "tiny_qa", "prompt_template": TEMPLATE, "annotator_models": MODELS}
    judge |= {"annotation_criteria": {"accuracy": [], "clarity": []}}
    states = [state(1), state(2, {"owl": scores(4)} | ({"gpt": said} if said else {}))]
    annotators = [{"class_name": "jury", "args": judge}]
    (one,), _ = read_runs(run_folder(tmp_path, states, annotators=annotators))
    taken = finished(one, one.rubric())
    values = taken.values
    assert [failure.status for failure in values.failures] == [status] * (status != Status.OK)
    assert len(values.ratings) == (8 if status == Status.OK else 6)
    assert [one["causes"] for one in taken.differences] == causes


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["accuracy", "score"]), inner),
)


@given(said=st.dictionaries(st.sampled_from(["accuracy", "completeness", "clarity", "x"]), ANY))
def test_no_verdict_is_half_or_off_the_scale(said):
    rubric = read_rubric("generic")
    found = verdict(said, rubric)
    assert (found.status == Status.OK) == (set(found.scores) == set(rubric.criteria))
    assert all(1 <= score <= 5 for score in found.scores.values())


def test_a_response_that_names_its_author_is_masked_though_jurors_rated_it(run, engine, tmp_path):
    folder = run_folder(tmp_path, [state(1, response="As ChatGPT, I say: rest.")])
    assert run("study", "import", str(folder))[0] == 0
    [(stored, shown)] = rows(engine, "SELECT text, shown FROM response")
    assert stored == "As ChatGPT, I say: rest."
    assert shown == "As [author masked], I say: rest."


RUNS = Path(__file__).parents[3] / "shared" / "datasets" / "helm_run" / "runs"


@pytest.fixture
def runs() -> Path:
    if not RUNS.is_dir():
        pytest.skip("HELM's own runs are not at hand: shared/datasets/helm_run beside the checkout")
    return RUNS


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "counts", "means", "juror"),
    [
        ("aci_bench*", (4, 8, 72), [4.194444, 4.25], "gpt"),
        ("*note-demo*", (6, 6, 54), [None], "stub/judge-gpt"),
    ],
)
def test_a_run_of_helms_own_is_taken_whole_with_its_means(run, runs, name, counts, means, juror):
    found = figures(run, *map(str, sorted(runs.glob(name))))
    assert tuple(found[one] for one in ("instances", "responses", "ratings")) == counts
    assert (found["missing"], found["differences"]) == ({}, [])
    for one, mean in zip(found["runs"], means, strict=True):
        assert one["recomputed_mean"] == pytest.approx(one["helm_mean"])
        assert one["helm_mean"] == pytest.approx(mean or one["helm_mean"])
        assert one["jurors"][0]["name"] == juror


@pytest.mark.real
def test_every_injected_fault_is_found_again(run, runs):
    found = figures(run, *map(str, runs.glob("*fault*")))
    assert (found["responses"], found["ratings"], found["failures"]) == (13, 84, 11)
    assert found["runs"][0]["left_out"] == {"empty response": 1}
    assert found["missing"] == {
        "stub/judge-claude": {"request_failed": 3},
        "stub/judge-gpt": {"out_of_range": 1, "request_failed": 3},
        "stub/judge-llama": {"request_failed": 4},
    }
    causes = {one["instance_id"]: one["causes"] for one in found["differences"]}
    odd = {"id5": "off_scale", "id6": "truncated", "id7": "extra_criterion"}
    odd |= dict.fromkeys(("id10", "id12"), "default")
    assert causes == {name: [cause] for name, cause in odd.items()}
    assert found["runs"][0]["helm_mean"] == pytest.approx(3.247619)
    assert found["runs"][0]["with_any_juror"] == 11


ASKED = "What helps patient"


def put(name: str, body: object) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(json.dumps(body))


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes()))


STATE = "scenario_state.json"
cut = rewritten(STATE, lambda body: body[:200])


def altered(old: bytes, new: bytes) -> Callable[[Path], object]:
    return rewritten(STATE, lambda body: body.replace(old, new))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut, r"scenario_state\.json: is not whole JSON .*; copy it again"),
        (put("run_spec.json", []), r"run_spec\.json: the whole is not of HELM's form"),
        (put("run_spec.json", {"eval": "x"}), r"name is missing; is it a run of HELM\?"),
        (put(STATE, {"request_states": [ASKED]}), r"request_states\.0 is not"),
        (put("stats.json", {"a": ASKED}), r"stats\.json: the whole is not of"),
        (lambda folder: (folder / STATE).unlink(), r"the run did not end"),
        (lambda folder: (folder / "run_spec.json").unlink(), r"run_spec\.json is not there"),
        (rewritten("run_spec.json", lambda _: b'{"name": "m\xfcde"}'), r"not text in UTF-8"),
        (altered(b"Rest.", rb"\ud800"), r"half a surrogate pair"),
        (altered(b'"id": "id1"', b'"id": ""'), r"row 1, column instance_id: '': HELM gives every"),
        (put(STATE, {"request_states": []}), r"no jury took part"),
    ],
)
def test_what_is_no_whole_run_is_one_message_and_nothing_written(run, tmp_path, change, said, url):
    folder = run_folder(tmp_path, [state(1)])
    change(folder)
    code, out, err = run("study", "import", str(folder))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(said, err), err
    assert ASKED not in err
    assert nothing_stored(url)


def test_a_suite_is_taken_whole_and_what_is_no_rated_run_is_named(run, engine, tmp_path):
    code, _, err = run("study", "import", str(tmp_path), "--format", "helm")
    assert (code, "no HELM run in it" in err) == (2, True)
    suite = tmp_path / "runs" / "v1"
    run_folder(suite, [state(1)])
    sleep, other = [state(1, response="Sleep.")], {"model": "lab/b"}
    run_folder(suite, sleep, "tiny_qa:model=b", adapter_spec=other)
    closed = run_folder(suite, [state(2)], "mmlu:model=b")
    put(STATE, {"request_states": [state(2) | {"annotations": None}]})(closed)
    run_folder(suite / "groups", [state(3)])
    run_folder(suite / "eval_cache", [state(4)])
    (suite / "costs.json").write_text("{}")
    code, out, err = run("study", "import", str(tmp_path / "runs"))
    assert code == 0, err
    assert "not in the study: 1 instruction of its own" in out
    assert "skipped v1/mmlu:model=b: no jury took part in it" in out
    assert rows(engine, "SELECT COUNT(*), COUNT(DISTINCT instance) FROM response") == [(2, 1)]
    assert rows(engine, "SELECT COUNT(*) FROM rubric") == [(1,)]


@pytest.mark.parametrize("kind", ["a run", "a log"])
def test_one_unreadable_run_of_several_and_nothing_is_imported(run, tmp_path, url, kind):
    one, two = LOGS / "note_a.eval", tmp_path / "b"
    if kind == "a run":
        one, two = (run_folder(tmp_path / name, [state(1)]) for name in "ab")
        cut(two)
    else:
        two = cut_log("note_a.json")(tmp_path)
    code, _, err = run("study", "import", str(one), str(two))
    assert (code, "nothing was imported" in " ".join(err.split())) == (2, True), err
    assert nothing_stored(url)


def test_a_contradiction_in_the_last_run_takes_the_first_one_back(run, engine, tmp_path):
    one = run_folder(tmp_path / "a", [state(1)])
    two = run_folder(tmp_path / "b", [state(1, input={"text": "Something else?"})])
    code, _, err = run("study", "import", str(one), str(two))
    assert (code, "already has another context" in err) == (2, True)
    assert rows(engine, "SELECT COUNT(*) FROM rubric") == [(0,)]


def test_two_jurors_of_one_name_never_mix(run, engine, tmp_path):
    run("study", "import", str(run_folder(tmp_path / "a", [state(1)])))
    other = {"gpt": {"model_name": "lab/gpt-8"}}
    metric = {"class_name": "m.LLMJuryMetric", "args": {"annotator_models": other}}
    two = run_folder(tmp_path / "b", [state(2, {"gpt": scores(4)})], metric_specs=[metric])
    code, _, err = run("study", "import", str(two))
    assert (code, "juror 'gpt' of this run (model lab/gpt-8)" in err) == (2, True)
    assert rows(engine, "SELECT COUNT(*) FROM response") == [(1,)]


def rubric_folder(tmp_path: Path, template: str) -> str:
    own = rubric_of("tiny_qa", template, ["accuracy", "clarity"], "crfm-helm 0.5.16")
    write_rubrics(tmp_path / "rubrics", {"tiny_qa": own})
    return str(tmp_path / "rubrics" / "tiny_qa")


def test_a_rubric_of_helm_itself_is_the_same_and_with_another_prompt_refused(run, engine, tmp_path):
    one, two = run_folder(tmp_path / "a", [state(1)]), run_folder(tmp_path / "b", [state(2)])
    other = rubric_folder(tmp_path / "other", TEMPLATE.replace("Rate", "Judge"))
    code, _, err = run("study", "import", str(one), "--rubric", other)
    assert (code, "asked with another prompt" in err) == (2, True)
    assert not rows(engine, "SELECT id FROM response")
    rubric = rubric_folder(tmp_path, TEMPLATE)
    assert run("study", "import", str(one), "--rubric", rubric)[0] == 0
    assert run("study", "import", str(two))[0] == 0
    assert rows(engine, "SELECT COUNT(DISTINCT rubric_sha256) FROM rating") == [(1,)]
    assert "crfm-helm 0.5.16" in rows(engine, "SELECT version FROM rubric")[0][0]


def test_a_redacted_prompt_must_be_named_and_may_be(run, tmp_path):
    folder = run_folder(tmp_path, [state(1, prompt="[redacted]")])
    code, _, err = run("study", "import", str(folder))
    assert (code, "name its rubric with --rubric" in err) == (2, True)
    rubric = rubric_folder(tmp_path, TEMPLATE)
    code, out, _ = run("study", "import", str(folder), "--rubric", rubric)
    assert (code, "WARNING: the prompt is not in the run" in out) == (0, True)


def test_ratings_on_an_unknown_prompt_of_medhelm_stand_apart(run, engine, tmp_path):
    for number, prompt in enumerate(("", "[redacted]")):
        folder = run_folder(tmp_path / str(number), [state(number, prompt=prompt)], metric_specs=[])
        altered(b"tiny_qa", b"medi_qa")(folder)
        code, out, err = run("study", "import", str(folder))
        assert code == 0, err
    assert "WARNING: the prompt is not in the run" in out
    assert rows(engine, "SELECT COUNT(DISTINCT rubric_sha256) FROM rating") == [(2,)]
