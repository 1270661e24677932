"""What is refused or skipped of HELM runs, and on which rubric their jurors' ratings stand."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.imported_runs import TEMPLATE, rows, run_folder, scores, state
from kit.studies import Run
from kit.study_place import nothing_stored
from sqlalchemy import Engine

from data.rubric import write_rubrics
from data.rubrics.helm import rubric_of

SECRET = "What helps patient"


def cut(folder: Path) -> Path:
    file = folder / "scenario_state.json"
    file.write_text(file.read_text()[:200])
    return folder


def put(name: str, body: object) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        (folder / name).write_text(json.dumps(body))
        return folder

    return change


def without(name: str) -> Callable[[Path], Path]:
    def change(folder: Path) -> Path:
        (folder / name).unlink()
        return folder

    return change


def in_latin(folder: Path) -> Path:
    (folder / "run_spec.json").write_bytes(b'{"name": "m\xfcde"}')
    return folder


def half_a_sign(folder: Path) -> Path:
    file = folder / "scenario_state.json"
    file.write_text(file.read_text().replace("Rest.", "\\ud800"))
    return folder


def without_id(folder: Path) -> Path:
    file = folder / "scenario_state.json"
    file.write_text(file.read_text().replace('"id": "id1"', '"id": ""'))
    return folder


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (cut, r"scenario_state\.json: is not whole JSON .*; copy it again"),
        (put("run_spec.json", []), r"run_spec\.json: the whole is not of HELM's form"),
        (put("run_spec.json", {"eval": "x"}), r"name is missing; is it a run of HELM\?"),
        (put("scenario_state.json", {"request_states": [SECRET]}), r"request_states\.0 is not"),
        (put("stats.json", {"a": SECRET}), r"stats\.json: not a list"),
        (without("scenario_state.json"), r"the run did not end"),
        (without("run_spec.json"), r"run_spec\.json is not there"),
        (in_latin, r"not text in UTF-8"),
        (half_a_sign, r"half a surrogate pair"),
        (without_id, r"row 1, column instance_id: '': HELM gives every instance an id"),
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
        file = folder / "scenario_state.json"
        file.write_text(file.read_text().replace("tiny_qa", "medi_qa"))
        code, out, err = run("study", "import", str(folder))
        assert code == 0, err
    assert "WARNING: the prompt is not in the run" in out
    found = rows(engine, "SELECT COUNT(DISTINCT rubric_sha256) FROM rating")
    assert found == [(2,)]


def test_with_clinicians_the_imported_jury_is_calibrated(run: Run, tmp_path: Path) -> None:
    states = [state(n, {"gpt": scores(1 + n % 5), "owl": scores(1 + n % 4)}) for n in range(12)]
    run("study", "import", str(run_folder(tmp_path, states)))
    run("share", "export", str(tmp_path / "out"))
    names = {
        line.split(",")[0]
        for line in (tmp_path / "out" / "ratings.csv").read_text("utf-8-sig").split("\n")
    }
    made = [
        f"{name},dr_{who},clinician,{1 + (number + who) % 5},{1 + number % 4}"
        for number, name in enumerate(sorted(names - {"response_id", ""}))
        for who in (1, 2)
    ]
    file = tmp_path / "clinicians.csv"
    file.write_text("\n".join(["response_id,rater,kind,accuracy,clarity", *made]))
    assert run("rate", "ratings", str(file))[0] == 0
    code, out, err = run("analyse", "calibrate", "--reps", "50", "--json", "-")
    assert code == 0, err
    jury = next(one for one in json.loads(out)["rows"] if one["scorer"] == "jury")
    assert (jury["n_responses"], jury["n_clinicians"], jury["icc"] is not None) == (12, 2, True)
