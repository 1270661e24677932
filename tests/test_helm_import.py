"""`medjury import RUN_DIR` on small run folders made by hand, one odd case each."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small import Run
from sqlalchemy import Engine, text
from sqlmodel import Session, select
from study_place import all_rows

from data.importers.helm import finished, read_runs
from data.importers.helm.rating import verdict
from data.rubric import read_rubric
from data.rubrics.helm import rubric_of
from data.schema import Rater, Status

TEMPLATE = """Rate the answer on a scale of 1 to 5 (1 = poor, 5 = good).
<question>
{QUESTION}
</question>
<response>
{RESPONSE}
</response>
<gold_response>
{GOLD_RESPONSE}
</gold_response>
Accuracy (1-5)
- Is it right?

Answer in JSON: {"accuracy": {"score": 0, "explanation": ""}, "clarity": {"score": 0, "explanation": ""}}
"""
MODELS = {
    name: {"model_name": f"lab/{name}-9", "model_deployment": name} for name in ("gpt", "owl")
}
JURY = "helm.benchmark.metrics.llm_jury_metrics.LLMJuryMetric"


def scores(accuracy: Any, clarity: Any = 4, **more: Any) -> dict[str, Any]:
    said = {"accuracy": accuracy, "clarity": clarity} | more
    return {name: {"score": one, "explanation": f"so {name}"} for name, one in said.items()}


def state(
    number: int,
    said: dict[str, Any] | None = None,
    response: str = "",
    gold: Any = "Rest.",
    prompt: Any = "",
    trial: int = 0,
    **instance: Any,
) -> dict[str, Any]:
    """Return a request state as HELM writes it; the jury says 4 and 4 unless told otherwise."""
    question = f"What helps patient {number}?"
    response = response or f"Drink water, {number} times."
    sent = TEMPLATE.replace("{QUESTION}", question).replace("{GOLD_RESPONSE}", str(gold))
    sent = sent.replace("{RESPONSE}", response)
    said = {"gpt": scores(4), "owl": scores(4)} if said is None else said
    return {
        "instance": {
            "input": {"text": question},
            "references": [{"output": {"text": gold}, "tags": ["correct"]}],
            "split": "test",
            "id": f"id{number}",
        }
        | instance,
        "train_trial_index": trial,
        "result": {"success": True, "completions": [{"text": response}]},
        "annotations": {"tiny_qa": {"prompt_text": sent if prompt == "" else prompt} | said},
    }


def helms_score(said: dict[str, Any]) -> float:
    """Return the score that HELM stores: whole parts of all that stands there, 1 for nothing."""
    found = [one["score"] for own in said.values() if isinstance(own, dict) for one in own.values()]
    try:
        return sum(map(int, found)) / len(found) if found else 1.0
    except (ValueError, TypeError):
        return 4.0  # HELM would have ended without a file


def figures(states: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what per_instance_stats.json holds: for every instance an entry a metric."""
    return [
        {
            "instance_id": one["instance"].get("id", ""),
            "train_trial_index": one["train_trial_index"],
            "stats": [{"name": {"name": name, "split": "test"}, "mean": mean}],
        }
        for one in states
        for name, mean in (
            ("rouge_l", float("nan")),
            ("tiny_qa_accuracy", helms_score(one["annotations"]["tiny_qa"])),
        )
    ]


def run_folder(
    root: Path, states: list[dict[str, Any]], name: str = "tiny_qa:model=lab_writer", **spec: Any
) -> Path:
    """Write a run folder as HELM does."""
    folder = root / name
    folder.mkdir(parents=True)
    args = {"scenario_name": "tiny_qa", "metric_name": "tiny_qa_accuracy"}
    body = {
        "name": name,
        "adapter_spec": {"model": "lab/writer", "instructions": "Answer.\n"},
        "scenario_spec": {"class_name": "helm.Tiny", "args": {}},
        "metric_specs": [{"class_name": JURY, "args": args | {"annotator_models": MODELS}}],
        "annotators": [{"class_name": "helm.TinyAnnotator", "args": {"annotator_models": MODELS}}],
    } | spec
    files = {
        "run_spec.json": body,
        "scenario_state.json": {"request_states": states},
        "per_instance_stats.json": figures(states),
        "stats.json": [{"name": {"name": "tiny_qa_accuracy", "split": "test"}, "mean": 4.0}],
    }
    for file, found in files.items():
        (folder / file).write_text(json.dumps(found), encoding="utf-8")
    return folder


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def juror_profile(engine: Engine, handle: str) -> dict[str, Any]:
    """Return what is stored of a juror: JSON is a text in SQLite, and none in PostgreSQL."""
    with Session(engine) as session:
        return session.exec(select(Rater.profile).where(Rater.handle == handle)).one()


def test_jurors_rate_on_the_prompt_they_were_sent(run: Run, engine: Engine, tmp_path: Path) -> None:
    code, out, err = run("import", str(run_folder(tmp_path, [state(1), state(2)])))
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
    run("import", str(folder))
    before = all_rows(engine)
    code, out, _ = run("import", str(folder))
    assert (code, "nothing changed" in out) == (0, True)
    assert all_rows(engine) == before
    assert run("verify")[0] == 0


def test_the_author_stands_in_its_own_table_only(run: Run, engine: Engine, tmp_path: Path) -> None:
    run("import", str(run_folder(tmp_path, [state(1, {"gpt": scores(9)})])))
    with_it = [name for name, found in all_rows(engine).items() if "writer" in str(found)]
    assert with_it == ["authorship"]


@pytest.mark.parametrize(
    ("said", "status", "causes"),
    [
        (scores(4), Status.OK, []),
        (scores("3"), Status.OK, []),
        (scores(4.9), Status.OK, [("truncated",)]),
        (scores(4, overall=1), Status.OK, [("extra_criterion",)]),
        (None, Status.REQUEST_FAILED, []),
        (scores(7), Status.OUT_OF_RANGE, [("off_scale",)]),
        (scores(True), Status.INVALID_JSON, [("unreadable",)]),
        (scores("4/5"), Status.INVALID_JSON, []),
        (scores(None), Status.INVALID_JSON, []),
        (scores(float("nan")), Status.INVALID_JSON, []),
        ({"clarity": {"score": 2}}, Status.MISSING_CRITERION, [("unreadable",)]),
    ],
)
def test_a_whole_verdict_on_the_scale_counts_and_any_other_keeps_its_reason(
    tmp_path: Path, said: Any, status: Status, causes: list[tuple[str, ...]]
) -> None:
    judge = {"name": "tiny_qa", "prompt_template": TEMPLATE, "annotator_models": MODELS}
    judge |= {"annotation_criteria": {"accuracy": [], "clarity": []}}
    states = [state(1), state(2, {"owl": scores(4)} | ({"gpt": said} if said else {}))]
    (one,), _ = read_runs(
        run_folder(tmp_path, states, annotators=[{"class_name": "jury", "args": judge}])
    )
    values, differences = finished(one, one.prompt.rubric())
    assert [failure.status for failure in values.failures] == [status] * (status != Status.OK)
    assert len(values.ratings) == (8 if status == Status.OK else 6)
    assert [one.causes for one in differences] == causes


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

    assert run("import", str(folder))[0] == 0

    [(stored, shown)] = rows(engine, "SELECT text, shown FROM response")
    assert stored == "As ChatGPT, I say: rest."
    assert shown == "As [author masked], I say: rest."
