"""`medjury study import RUN_DIR` on small run folders made by hand, one odd case each."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.imported_runs import MODELS, TEMPLATE, juror_profile, rows, run_folder, scores, state
from kit.studies import Run
from kit.study_place import all_rows
from sqlalchemy import Engine

from data.importers.helm import finished, read_runs
from data.importers.helm.run import verdict
from data.rubric import read_rubric
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


def figures(run: Run, *paths: Path) -> dict[str, Any]:
    code, out, err = run("study", "import", *map(str, paths), "--json", "-")
    assert code == 0, err
    return dict(json.loads(out))


@pytest.mark.real
def test_two_models_of_a_built_in_benchmark_meet_on_its_instances(run: Run, runs: Path) -> None:
    found = figures(run, *sorted(runs.glob("aci_bench*")))
    assert (found["instances"], found["responses"], found["ratings"]) == (4, 8, 72)
    assert (found["missing"], found["differences"]) == ({}, [])
    assert [(one["helm_mean"], one["recomputed_mean"]) for one in found["runs"]] == [
        pytest.approx((4.194444, 4.194444)),
        pytest.approx((4.25, 4.25)),
    ]
    assert [one["prompts_checked"] for one in found["runs"]] == [4, 4]
    assert [one["name"] for one in found["runs"][0]["jurors"]] == ["gpt", "llama", "claude"]


@pytest.mark.real
def test_a_clean_configurable_run_is_taken_whole(run: Run, runs: Path) -> None:
    found = figures(run, *runs.glob("*note-demo*"))
    assert (found["instances"], found["ratings"], found["missing"]) == (6, 54, {})
    assert found["runs"][0]["recomputed_mean"] == pytest.approx(found["runs"][0]["helm_mean"])
    assert found["runs"][0]["jurors"][0] == {"name": "stub/judge-gpt", "model": "stub/judge-gpt"}


@pytest.mark.real
def test_every_injected_fault_is_found_again(run: Run, runs: Path) -> None:
    found = figures(run, *runs.glob("*fault*"))
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
