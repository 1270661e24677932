"""A plugin for helm-run, with which HELM asks jurors, and counts verdicts, as medjury does.

Jurors are asked by the grader that goes to every tool that can run Python; HELM keeps its cache.
"""

import json
from collections.abc import Mapping

from jury.exports.helm_files.question import Question

FILE, SETTINGS_FILE = "medjury_helm.py", "medjury_helm.json"


def plugin(asked: Question, deployments: Mapping[str, str]) -> dict[str, str]:
    """Return the plugin and its settings, beside which the grader must be."""
    jurors = {deployment: name for name, deployment in deployments.items()}
    settings = json.dumps({"added": asked.added, "jurors": jurors}, indent=2, ensure_ascii=False)
    return {FILE: PLUGIN, SETTINGS_FILE: settings + "\n"}


PLUGIN = '''\
"""The run spec `medjury`: a configurable benchmark, rated as medjury rates. Written by medjury.

    helm-run --plugins medjury_helm.py --conf-paths ...

Jurors are sent the validated prompt, without HELM's block, with the panel's settings; the prompt's
tags are broken in a response; a verdict counts whole and on the scale, and an unusable one is asked
for once more; a response that any juror did not rate has no score.
"""

import dataclasses
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))
from helm.benchmark.annotation.model_as_judge import LLMAsJuryAnnotator as HelmAnnotator
from helm.benchmark.metrics.llm_jury_metrics import LLMJuryMetric as HelmMetric
from helm.benchmark.run_spec import run_spec_function
from helm.benchmark.run_specs.medhelm_run_specs import get_medhelm_configurable_benchmark_spec
from helm.common.cache import Cache
from medjury_jury import SETTINGS, NotRated, ask, objects, read

OWN = json.loads((HERE / "medjury_helm.json").read_text("utf-8"))
JURORS = {one["name"]: one for one in SETTINGS["jurors"]}


class LLMAsJuryAnnotator(HelmAnnotator):
    def __init__(self, name, auto_client, prompt_template, annotation_criteria, annotator_models):
        super().__init__(name, auto_client, prompt_template, annotation_criteria, annotator_models)
        self.cache = Cache(auto_client.cache_backend_config.get_cache_config("medjury"))

    def _interpolate_prompt(self, request_state, custom_replacements=None):
        text, tags = request_state.result.completions[0].text, SETTINGS["tags"]
        if tags:
            text = re.sub(tags, SETTINGS["break"], text, flags=re.IGNORECASE)
        return super()._interpolate_prompt(request_state, {"RESPONSE": text})

    def _annotate_with_model(self, prompt, model_info, annotator_name):
        juror = JURORS[OWN["jurors"][annotator_name]]
        found, _ = self.cache.get(
            {"juror": juror, "prompt": prompt}, lambda: {"verdict": verdict(juror, prompt)}
        )
        return found["verdict"]


class LLMJuryMetric(HelmMetric):
    def evaluate_generation(self, adapter_spec, request_state, metric_service, eval_cache_path):
        verdicts = request_state.annotations[self.scenario_name]
        if not all(verdicts.get(name) for name in self.annotator_models):
            return []  # no score: a missing verdict is no zero, and no mean of fewer jurors
        return super().evaluate_generation(
            adapter_spec, request_state, metric_service, eval_cache_path
        )


def verdict(juror, question):
    """Return a juror's verdict as HELM stores it; HELM logs NotRated and goes on without one."""
    turns = [{"role": "user", "content": question}]
    for last in (False, True):
        answer = ask(juror, turns)
        try:
            return whole(read(answer), answer)
        except NotRated as error:
            if last:
                raise
            again = SETTINGS["again"].replace("{reason}", str(error))
            turns += [{"role": "assistant", "content": answer or "(empty)"}]
            turns += [{"role": "user", "content": again}]


def whole(points, answer):
    """Return points with the explanations in the object that they were read from."""
    said = [one for one in objects(answer) if one and any(name in one for name in points)][-1]
    words = {name: said[name].get("explanation") for name in points}
    return {
        name: {"explanation": one if isinstance(one, str) else "", "score": int(points[name])}
        for name, one in words.items()
    }


@run_spec_function("medjury")
def medjury(config_path: str):
    spec = get_medhelm_configurable_benchmark_spec(config_path)
    jury = [
        dataclasses.replace(
            one,
            class_name="medjury_helm.LLMAsJuryAnnotator",
            args=one.args
            | {"prompt_template": one.args["prompt_template"].removesuffix(OWN["added"])},
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
