"""Run folders of HELM, made by hand and HELM's own: what comes in, what is refused or skipped."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.imported_runs import MODELS, TEMPLATE, juror_profile, rows, run_folder, scores, state
from kit.studies import Run
from kit.study_place import all_rows, nothing_stored
from sqlalchemy import Engine

from data.importers.helm import finished, read_runs, verdict
from data.rubric import read_rubric, write_rubrics
from data.rubrics.helm import rubric_of
from data.schema import Status


def test_jurors_rate_on_the_prompt_they_were_sent(run: Run, engine: Engine, tmp_path: Path) -> None:
    code, out, err = run("study", "import", str(run_folder(tmp_path, [state(1), state(2)])))
    assert code == 0, err
    assert "held against 2 prompts as sent" in out
    body = rows(engine, "SELECT body FROM rubric")[0][0]
    own = rubric_of("tiny_qa", TEMPLATE, ["accuracy", "clarity"], "HELM of unknown version")
    assert json.loads(body) == json.loads(own.to_json())
    jurors = rows(engine, "SELECT handle, kind FROM rater ORDER BY id")
    assert jurors == [("gpt", "juror"), ("owl", "juror")]
    assert juror_profile(engine, "gpt")["model"] == "lab/gpt-9"
    assert rows(engine, "SELECT COUNT(*), MIN(score), MAX(comment) FROM rating") == [
        (8, 4, "so clarity")
    ]
    assert rows(engine, "SELECT context, prompt, reference FROM instance ORDER BY id LIMIT 1") == [
        ("What helps patient 1?", "Answer.", "Rest.")
    ]


def test_a_run_imported_twice_changes_nothing(run: Run, engine: Engine, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, [state(1), state(2, {"gpt": scores(4)})])
    run("study", "import", str(folder))
    before = all_rows(engine)
    code, out, _ = run("study", "import", str(folder))
    assert (code, "nothing changed" in out) == (0, True)
    assert all_rows(engine) == before
    assert run("study", "verify")[0] == 0


def test_the_author_stands_in_its_own_table_only(run: Run, engine: Engine, tmp_path: Path) -> None:
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
def test_a_whole_verdict_on_the_scale_counts_and_any_other_keeps_its_reason(
    tmp_path: Path, said: Any, status: Status, causes: list[list[str]]
) -> None:
    judge = {"name": "tiny_qa", "prompt_template": TEMPLATE, "annotator_models": MODELS}
    judge |= {"annotation_criteria": {"accuracy": [], "clarity": []}}
    states = [state(1), state(2, {"owl": scores(4)} | ({"gpt": said} if said else {}))]
    (one,), _ = read_runs(
        run_folder(tmp_path, states, annotators=[{"class_name": "jury", "args": judge}])
    )
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
def test_no_verdict_is_half_or_off_the_scale(said: dict[str, Any]) -> None:
    rubric = read_rubric("generic")
    found = verdict(said, rubric)
    assert (found.status == Status.OK) == (set(found.scores) == set(rubric.criteria))
    assert all(1 <= score <= 5 for score in found.scores.values())


def test_a_response_that_names_its_author_is_masked_though_helms_jurors_have_rated_it(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
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


def figures_of(run: Run, *paths: Path) -> dict[str, Any]:
    code, out, err = run("study", "import", *map(str, paths), "--json", "-")
    assert code == 0, err
    return dict(json.loads(out))


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "counts", "means", "juror"),
    [
        ("aci_bench*", (4, 8, 72), [4.194444, 4.25], "gpt"),
        ("*note-demo*", (6, 6, 54), [None], "stub/judge-gpt"),
    ],
)
def test_a_run_of_helms_own_is_taken_whole_with_its_means(
    run: Run, runs: Path, name: str, counts: tuple[int, ...], means: list[float], juror: str
) -> None:
    found = figures_of(run, *sorted(runs.glob(name)))
    assert tuple(found[one] for one in ("instances", "responses", "ratings")) == counts
    assert (found["missing"], found["differences"]) == ({}, [])
    for one, mean in zip(found["runs"], means, strict=True):
        assert one["recomputed_mean"] == pytest.approx(one["helm_mean"])
        assert one["helm_mean"] == pytest.approx(mean or one["helm_mean"])
        assert one["jurors"][0]["name"] == juror


@pytest.mark.real
def test_every_injected_fault_is_found_again(run: Run, runs: Path) -> None:
    found = figures_of(run, *runs.glob("*fault*"))
    assert (found["responses"], found["ratings"], found["failures"]) == (13, 84, 11)
    assert found["runs"][0]["left_out"] == {"empty response": 1}
    assert found["missing"] == {
        "stub/judge-claude": {"request_failed": 3},
        "stub/judge-gpt": {"out_of_range": 1, "request_failed": 3},
        "stub/judge-llama": {"request_failed": 4},
    }
    causes = {one["instance_id"]: one["causes"] for one in found["differences"]}
    assert causes == {
        "id5": ["off_scale"],
        "id6": ["truncated"],
        "id7": ["extra_criterion"],
        "id10": ["default"],
        "id12": ["default"],
    }
    assert found["runs"][0]["helm_mean"] == pytest.approx(3.247619)
    assert found["runs"][0]["with_any_juror"] == 11


SECRET = "What helps patient"


def put(name: str, body: object) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        (folder / name).write_text(json.dumps(body))
        return folder

    return change


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        return folder

    return write


def without(name: str) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        (folder / name).unlink()
        return folder

    return change


STATE = "scenario_state.json"
cut = rewritten(STATE, lambda body: body[:200])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut, r"scenario_state\.json: is not whole JSON .*; copy it again"),
        (put("run_spec.json", []), r"run_spec\.json: the whole is not of HELM's form"),
        (put("run_spec.json", {"eval": "x"}), r"name is missing; is it a run of HELM\?"),
        (put("scenario_state.json", {"request_states": [SECRET]}), r"request_states\.0 is not"),
        (put("stats.json", {"a": SECRET}), r"stats\.json: the whole is not of"),
        (without("scenario_state.json"), r"the run did not end"),
        (without("run_spec.json"), r"run_spec\.json is not there"),
        (rewritten("run_spec.json", lambda _: b'{"name": "m\xfcde"}'), r"not text in UTF-8"),
        (
            rewritten(STATE, lambda body: body.replace(b"Rest.", rb"\ud800")),
            r"half a surrogate pair",
        ),
        (
            rewritten(STATE, lambda body: body.replace(b'"id": "id1"', b'"id": ""')),
            r"row 1, column instance_id: '': HELM gives every instance an id",
        ),
        (put("scenario_state.json", {"request_states": []}), r"no jury took part"),
    ],
)
def test_what_is_no_whole_run_ends_with_one_message_and_nothing_written(
    run: Run, tmp_path: Path, change: Callable[[Path], Path], said: str, url: str
) -> None:
    folder = change(run_folder(tmp_path, [state(1)]))
    code, out, err = run("study", "import", str(folder))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert re.search(said, err), err
    assert SECRET not in err
    assert nothing_stored(url)


def test_a_folder_without_runs_is_refused_by_name(run: Run, tmp_path: Path) -> None:
    code, _, err = run("study", "import", str(tmp_path), "--format", "helm")
    assert (code, "no HELM run in it" in err) == (2, True)


def test_a_suite_is_taken_whole_and_what_is_no_rated_run_is_named(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    suite = tmp_path / "runs" / "v1"
    run_folder(suite, [state(1)])
    run_folder(
        suite, [state(1, response="Sleep.")], "tiny_qa:model=b", adapter_spec={"model": "lab/b"}
    )
    closed = run_folder(suite, [state(2)], "mmlu:model=b")
    put("scenario_state.json", {"request_states": [state(2) | {"annotations": None}]})(closed)
    run_folder(suite / "groups", [state(3)])
    run_folder(suite / "eval_cache", [state(4)])
    (suite / "costs.json").write_text("{}")
    code, out, err = run("study", "import", str(tmp_path / "runs"))
    assert code == 0, err
    assert "not in the study: 1 instruction of its own" in out
    assert "skipped v1/mmlu:model=b: no jury took part in it" in out
    assert rows(engine, "SELECT COUNT(*), COUNT(DISTINCT instance) FROM response") == [(2, 1)]
    assert rows(engine, "SELECT COUNT(*) FROM rubric") == [(1,)]


def test_one_unreadable_run_of_several_and_nothing_is_imported(
    run: Run, tmp_path: Path, url: str
) -> None:
    one = run_folder(tmp_path / "a", [state(1)])
    two = cut(run_folder(tmp_path / "b", [state(2)]))
    assert run("study", "import", str(one), str(two))[0] == 2
    assert nothing_stored(url)


def test_a_contradiction_in_the_last_run_takes_the_first_one_back(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    one = run_folder(tmp_path / "a", [state(1)])
    two = run_folder(tmp_path / "b", [state(1, input={"text": "Something else?"})])
    code, _, err = run("study", "import", str(one), str(two))
    assert (code, "already has another context" in err) == (2, True)
    assert rows(engine, "SELECT COUNT(*) FROM rubric") == [(0,)]


def test_two_jurors_of_one_name_never_mix(run: Run, engine: Engine, tmp_path: Path) -> None:
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


def test_a_rubric_taken_from_helm_itself_is_the_same_one(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    one, two = run_folder(tmp_path / "a", [state(1)]), run_folder(tmp_path / "b", [state(2)])
    rubric = rubric_folder(tmp_path, TEMPLATE)
    assert run("study", "import", str(one), "--rubric", rubric)[0] == 0
    assert run("study", "import", str(two))[0] == 0
    assert rows(engine, "SELECT COUNT(DISTINCT rubric_sha256) FROM rating") == [(1,)]
    assert "crfm-helm 0.5.16" in rows(engine, "SELECT version FROM rubric")[0][0]


def test_a_rubric_with_another_prompt_is_refused(run: Run, tmp_path: Path, url: str) -> None:
    rubric = rubric_folder(tmp_path, TEMPLATE.replace("Rate", "Judge"))
    code, _, err = run("study", "import", str(run_folder(tmp_path, [state(1)])), "--rubric", rubric)
    assert (code, "asked with another prompt" in err) == (2, True)
    assert nothing_stored(url)


def test_a_redacted_prompt_must_be_named_and_may_be(run: Run, tmp_path: Path) -> None:
    folder = run_folder(tmp_path, [state(1, prompt="[redacted]")])
    code, _, err = run("study", "import", str(folder))
    assert (code, "name its rubric with --rubric" in err) == (2, True)
    rubric = rubric_folder(tmp_path, TEMPLATE)
    code, out, _ = run("study", "import", str(folder), "--rubric", rubric)
    assert (code, "WARNING: the prompt is not in the run" in out) == (0, True)


def test_ratings_on_an_unknown_prompt_of_medhelm_stand_apart(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    for number, prompt in enumerate(("", "[redacted]")):
        folder = run_folder(tmp_path / str(number), [state(number, prompt=prompt)], metric_specs=[])
        rewritten(STATE, lambda body: body.replace(b"tiny_qa", b"medi_qa"))(folder)
        code, out, err = run("study", "import", str(folder))
        assert code == 0, err
    assert "WARNING: the prompt is not in the run" in out
    found = rows(engine, "SELECT COUNT(DISTINCT rubric_sha256) FROM rating")
    assert found == [(2,)]
