"""`medjury study import` on runs that helm-run 0.5.16 wrote itself, faults among them."""

import json
from pathlib import Path
from typing import Any

import pytest
from kit.studies import Run

RUNS = Path(__file__).parents[2] / "shared" / "datasets" / "helm_run" / "runs"


@pytest.fixture
def runs() -> Path:
    if not RUNS.is_dir():
        pytest.skip("HELM's own runs are not at hand: shared/datasets/helm_run beside the checkout")
    return RUNS


def figures(run: Run, *paths: Path) -> dict[str, Any]:
    code, out, err = run("import", *map(str, paths), "--json", "-")
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
