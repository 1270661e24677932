"""A plugin for helm-run, with which HELM puts to jurors, and counts, exactly what medjury does."""

import json

from data.rubric import Rubric
from data.rubrics.tags import BREAK, forgery
from jury.exports.helm_files.question import Question

FILE, SETTINGS_FILE = "medjury_helm.py", "medjury_helm.json"


def plugin(rubric: Rubric, asked: Question) -> dict[str, str]:
    """Return the plugin and its settings."""
    tags = forgery(rubric.prompt)
    settings = {
        "added": asked.added,
        "tags": tags.pattern if tags else "",
        "break": BREAK,
        "criteria": list(rubric.criteria),
        "min": rubric.scale.min,
        "max": rubric.scale.max,
    }
    told = json.dumps(settings, indent=2, ensure_ascii=False) + "\n"
    return {FILE: PLUGIN, SETTINGS_FILE: told}


PLUGIN = '''\
"""The run spec `medjury`: a configurable benchmark, rated as medjury rates. Written by medjury.

    helm-run --plugins medjury_helm.py --conf-paths ...

Jurors are sent the validated prompt without HELM's block; the prompt's tags are broken in a
response; a verdict counts whole and on the scale; a response that any juror did not rate has no
score.
"""

import dataclasses
import json
import re
from pathlib import Path

from helm.benchmark.annotation.model_as_judge import LLMAsJuryAnnotator as HelmAnnotator
from helm.benchmark.metrics.llm_jury_metrics import LLMJuryMetric as HelmMetric
from helm.benchmark.run_spec import run_spec_function
from helm.benchmark.run_specs.medhelm_run_specs import get_medhelm_configurable_benchmark_spec

SETTINGS = json.loads(Path(__file__).with_name("medjury_helm.json").read_text("utf-8"))


class LLMAsJuryAnnotator(HelmAnnotator):
    def _interpolate_prompt(self, request_state, custom_replacements=None):
        text, tags = request_state.result.completions[0].text, SETTINGS["tags"]
        if tags:
            text = re.sub(tags, SETTINGS["break"], text, flags=re.IGNORECASE)
        return super()._interpolate_prompt(request_state, {"RESPONSE": text})

    def _annotate_with_model(self, *asked, **named):
        found = super()._annotate_with_model(*asked, **named)
        if found is None:
            return None
        return {name: found[name] | {"score": points(found[name])} for name in SETTINGS["criteria"]}


class LLMJuryMetric(HelmMetric):
    def evaluate_generation(self, adapter_spec, request_state, metric_service, eval_cache_path):
        verdicts = request_state.annotations[self.scenario_name]
        if not all(verdicts.get(name) for name in self.annotator_models):
            return []  # no score: a missing verdict is no zero, and no mean of fewer jurors
        return super().evaluate_generation(
            adapter_spec, request_state, metric_service, eval_cache_path
        )


def points(verdict):
    """Return a whole number on the scale; HELM logs the error and goes on without the juror."""
    value = verdict["score"]
    if isinstance(value, str) and re.fullmatch(r"[+-]?[0-9]{1,6}", value.strip()):
        value = int(value)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not SETTINGS["min"] <= value <= SETTINGS["max"] or value != int(value):
        raise ValueError("a score is no whole number on the scale")
    return int(value)


@run_spec_function("medjury")
def medjury(config_path: str):
    spec = get_medhelm_configurable_benchmark_spec(config_path)
    jury = [
        dataclasses.replace(
            one,
            class_name="medjury_helm.LLMAsJuryAnnotator",
            args=one.args
            | {"prompt_template": one.args["prompt_template"].removesuffix(SETTINGS["added"])},
        )
        for one in spec.annotators
    ]
    metrics = [
        dataclasses.replace(one, class_name="medjury_helm.LLMJuryMetric")
        if one.class_name.endswith(".LLMJuryMetric")
        else one
        for one in spec.metric_specs
    ]
    name = f"{spec.name}-as-validated"
    return dataclasses.replace(spec, name=name, annotators=jury, metric_specs=metrics)
'''
