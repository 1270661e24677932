"""What a HELM run may hold besides whole verdicts, and what is no HELM run at all."""

import json

import pytest
from kit.imported_runs import TEMPLATE, juror_profile, rows, run_folder, scores, state

from data.card import Card
from data.importers.helm import read_runs
from data.rubrics.helm import Unusable, our_prompt, rubric_of

OLD = {
    "metric_specs": [{"class_name": "helm.TinyMetric", "args": {}}],
    "annotators": [{"class_name": "helm.TinyAnnotator", "args": {}}],
}


def test_a_score_that_helm_made_up_is_told_and_not_imported(run, tmp_path):
    folder = run_folder(tmp_path, [state(1), state(2, {})])
    code, out, _ = run("study", "import", str(folder), "--json", str(tmp_path / "o.json"))
    assert code == 0
    assert "1 default: no juror gave a verdict" in out
    body = json.loads((tmp_path / "o.json").read_text())
    assert body["missing"] == {"gpt": {"request_failed": 1}, "owl": {"request_failed": 1}}
    assert body["differences"] == [
        {
            "benchmark": "tiny_qa", "instance_id": "id2", "helm": 1.0, "recomputed": None,
            "causes": ["default"],
        }
    ]  # fmt: skip
    assert "id2" not in json.dumps(body["runs"])


def test_what_nobody_can_rate_is_left_out_and_counted(run, tmp_path):
    states = [
        *(state(1), state(2, {}, response="  \n", prompt=None), state(3, response="[redacted]")),
        *(state(4, perturbation={"name": "typos"}), state(5, split="train")),
        *(state(6, input={"text": ""}), state(7, gold=float("nan")), state(8, gold=4)),
        *(state(9, gold="[redacted]"), state(1, trial=1)),
        state(10, references=[{"output": {"text": one}} for one in ("Rest.", "Sleep.")]),
    ]
    code, out, err = run("study", "import", str(run_folder(tmp_path, states)), "--json", "-")
    assert code == 0, err
    body = json.loads(out)
    assert body["runs"][0]["left_out"] == {
        "empty response": 1, "redacted": 1, "perturbed": 1, "training instance": 1,
        "empty question": 1,
    }  # fmt: skip
    assert body["runs"][0]["notes"] == {"redacted reference": 1, "further reference": 1}
    assert (body["instances"], body["responses"], body["ratings"]) == (5, 6, 24)


def test_a_missing_reference_stays_missing(run, engine, tmp_path):
    states = [state(1, gold=float("nan")), state(2, gold=4), state(3, references=[])]
    states[2]["annotations"]["tiny_qa"]["prompt_text"] = None
    assert run("study", "import", str(run_folder(tmp_path, states)))[0] == 0
    assert rows(engine, "SELECT reference FROM instance ORDER BY id") == [(None,), ("4",), (None,)]


def test_an_old_run_has_the_papers_jurors_and_says_that_they_are_assumed(run, engine, tmp_path):
    states = [state(1, {"gpt": scores(4), "llama": scores(5), "claude": scores(3)})]
    code, out, _ = run("study", "import", str(run_folder(tmp_path, states, **OLD)))
    assert (code, "three of the MedHELM paper are assumed" in out) == (0, True)
    assert juror_profile(engine, "claude")["model"] == "anthropic/claude-3-7-sonnet-20250219"


def test_jurors_that_nobody_names_are_unknown_and_not_guessed(tmp_path):
    (one,), _ = read_runs(run_folder(tmp_path, [state(1, {"owl": scores(4)})], **OLD))
    assert [(j.handle, j.profile.get("model")) for j in one.jurors] == [("owl", None)]


def test_a_benchmark_keeps_what_its_scenario_was_given(tmp_path):
    name = "tiny_qa,subset=ward:model=lab_writer,num_output_tokens=4000"
    scenario = {"class_name": "x", "args": {"subset": "ward", "data_path": "elsewhere"}}
    (one,), _ = read_runs(run_folder(tmp_path, [state(1)], name, scenario_spec=scenario))
    assert one.benchmark == "tiny_qa,subset=ward"


@pytest.mark.parametrize("response", ["No", "{QUESTION}", "$5 \\1", "Is it right?", "a" * 400])
def test_the_prompt_is_found_whatever_stands_in_the_texts(tmp_path, response):
    states = [
        state(1, response=response, gold="No"),
        state(2),
        state(3, response="As two says so."),
    ]
    (one,), _ = read_runs(run_folder(tmp_path, states))
    assert one.prompt == our_prompt(TEMPLATE)
    assert (one.criteria, one.checked) == (("accuracy", "clarity"), 3)


def test_prompts_that_give_no_common_template_give_none(tmp_path):
    changed = state(2)
    changed["annotations"]["tiny_qa"]["prompt_text"] += "!"
    (one,), _ = read_runs(run_folder(tmp_path, [state(1), changed]))
    assert (one.prompt, one.checked) == (None, 0)
    with pytest.raises(Unusable, match="name its rubric with --rubric"):
        one.rubric()


def test_braces_that_helm_leaves_around_a_text_are_the_prompts(tmp_path):
    sent = 'On a scale of 1 to 5: {What helps patient 1?} <a>{So.}</a> {"accuracy": 0}'
    (one,), _ = read_runs(run_folder(tmp_path, [state(1, response="So.", prompt=sent)]))
    card = Card("x", "What helps patient 1?", "", "So.", None, None)
    assert one.rubric().render(card) == sent


def test_redacted_prompts_of_a_configurable_run_leave_its_template(tmp_path):
    judge = {"prompt_template": TEMPLATE + "Costs $$5."}
    judge |= {"annotation_criteria": {"accuracy": [], "clarity": []}}
    spec = {"annotators": [{"class_name": "jury", "args": judge}]}
    (one,), _ = read_runs(run_folder(tmp_path, [state(1, prompt="x [redacted] y")], **spec))
    assert (one.prompt, one.checked) == (our_prompt(TEMPLATE + "Costs $5."), 0)


@pytest.mark.parametrize(
    ("words", "scale"),
    [
        ("Score each from 1 (very poor) to 7 (excellent).", (1, 7)),
        ("Give a number between 0 and 10.", (0, 10)),
    ],
)
def test_a_prompt_of_ones_own_names_its_scale_in_its_own_words(words, scale):
    rubric = own(words)
    assert (rubric.scale.min, rubric.scale.max) == scale
    assert rubric.prompt.startswith(words)
    assert rubric.criterion[0].question == "is it true?"
    anchors = rubric.criterion[0].anchors
    assert scale == (0, 10) or (anchors[1], anchors[7]) == ("very poor", "excellent")


@pytest.mark.parametrize("words", ["Be fair.", "From 1 to 5, and then from 0 to 10."])
def test_a_scale_is_never_guessed(words):
    with pytest.raises(Unusable, match=r"no scale|more than one scale"):
        own(words)


def own(words):
    template = f"{words}\naccuracy - is it true?\n<answer>{{RESPONSE}}</answer>"
    return rubric_of("mine", template, ["accuracy"], "HELM of unknown version")
