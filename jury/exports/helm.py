"""HELM: a configurable benchmark whose metric is the jury, run by an unmodified helm-run."""

import json
from collections.abc import Sequence

from data.errors import BadInput
from data.rubrics.helm import BENCHMARKS
from jury.exports.export import Export, ExportRow
from jury.exports.helm_files.endpoints import (
    UNDER_TEST,
    deployments,
    differences,
    judges,
    prod_env,
)
from jury.exports.helm_files.plugin import plugin
from jury.exports.helm_files.question import ASKED, Question, question
from jury.exports.helm_files.table import table
from jury.exports.promptfoo import grader
from jury.panel import Panel

MAX_TOKENS = 1024  # of the model under test; HELM's own default
HELM = "crfm-helm[openai,anthropic] 0.5.16"


def write(export: Export) -> dict[str, str]:
    """Return the benchmark, its jury and endpoints, a plugin, and what was validated.

    A rubric that is HELM's own prompt for one of its benchmarks (`helm_aci_bench`) gets that
    benchmark's jury as well; and that alone, where its jurors are not shown the task.

    Raises
    ------
    BadInput
        If HELM cannot ask this jury this question about these instances word for word.
    """
    rubric, panel, name = export.rubric, export.panel, f"medjury-{export.rubric.name}"
    asked = question(rubric)
    files = {"judges.yaml": judges(panel), **prod_env(panel)}
    own = rubric.name.removeprefix("helm_")
    built_in = own in BENCHMARKS and own != rubric.name
    lost = _lost(asked, export.rows)
    if built_in:
        files[f"{own}.conf"] = _conf(own, "jury_config_path=judges.yaml")
    elif lost:
        raise BadInput(
            f"rubric {rubric.name}: its jurors are not shown the {lost[0]} of {lost[1]}, and HELM "
            f"shows a model no more than its jurors: put {{{{{lost[0]}}}}} into the rubric's prompt"
        )
    if not lost:
        files |= {
            f"{name}.yaml": _benchmark(name, panel),
            f"{name}.conf": _conf("medhelm_configurable_benchmark", f"config_path={name}.yaml"),
            f"{name}-as-validated.conf": _conf("medjury", f"config_path={name}.yaml"),
            "judge.txt": asked.judge,
            **table(rubric, asked.task, export.rows),
            **plugin(asked, deployments(panel)),
            **grader(export),
        }
    record = json.dumps(_record(export, asked), indent=2, ensure_ascii=False) + "\n"
    return files | {
        "validation.json": record,
        "README.md": _page(export, asked, files.get("data.csv", "")),
    }


def _lost(asked: Question, rows: Sequence[ExportRow]) -> tuple[str, str] | None:
    """Return the name of a text that nobody in HELM would read, and an instance that has it."""
    hidden = [name for name in ASKED if name not in asked.shown]
    there = ((name, row.instance_id) for name in hidden for row in rows if getattr(row, name))
    return next(there, None)


def _benchmark(name: str, panel: Panel) -> str:
    """Return the configuration; HELM calls a deployment `name`, and its model `model_name`."""
    jurors = "".join(
        f"      - name: {one}\n        model_name: {one}\n" for one in deployments(panel).values()
    )
    return (
        f"name: {name}\ndescription: rated by the jury {panel.name}; written by medjury\n"
        f"prompt_file: prompt.txt\ndataset_file: data.csv\nmax_tokens: {MAX_TOKENS}\n"
        f"metrics:\n  - name: jury_score\n    prompt_file: judge.txt\n    judges:\n{jurors}"
    )


def _conf(run: str, argument: str) -> str:
    return f'entries: [\n  {{description: "{run}:model={UNDER_TEST},{argument}", priority: 1}}\n]\n'


def _record(export: Export, asked: Question) -> dict[str, object]:
    """Return the validation record, with what HELM does otherwise; HELM does not read it."""
    return {
        **export.record,
        "rubric": {"name": export.rubric.name, "sha256": export.rubric.sha256},
        "panel": export.panel.name,
        "jurors": deployments(export.panel),
        "in_helm": {"added_to_prompt": asked.added, "jurors": differences(export.panel)},
    }


def _page(export: Export, asked: Question, data: str) -> str:
    """Return how the files are run, and in what HELM differs from what was validated."""
    rubric, name = export.rubric, f"medjury-{export.rubric.name}"
    run = "--suite medjury --max-eval-instances 1000000 --local-path prod_env"
    lines = [
        f"# {rubric.name} in HELM",
        "",
        f"The jury {export.panel.name} is **{str(export.record['status']).upper()}**: see "
        f"validation.json. Run in this folder, with {HELM}; put the model that is to be evaluated "
        "into prod_env/model_deployments.yaml.",
        "",
    ]
    if data:
        lines += [
            f"    helm-run --plugins medjury_helm.py --conf-paths {name}-as-validated.conf {run}",
            f"    helm-run --conf-paths {name}.conf {run}",
            "",
            "The first asks the question that was validated, to the letter, with the panel's "
            "settings, and needs the panel's keys in the environment. The second is HELM "
            f"alone: {_added(asked)} tags in a response are not broken; a juror's 7 on a scale to "
            "5 counts; a missing juror makes a mean of fewer; a response that no juror rated "
            "counts 0.",
            "",
            *_data(export, data),
        ]
    else:
        lines += [
            f"    helm-run --conf-paths {rubric.name.removeprefix('helm_')}.conf {run}",
            "",
            "HELM's own benchmark, data and prompt, with this jury. The rubric is that of "
            f"{rubric.version}; another release may ask otherwise. There is no configurable "
            "benchmark: the rubric does not show jurors the task.",
            "",
        ]
    told = [f"- {one}" for one in differences(export.panel)]
    if told:
        lines += ["HELM alone has settings of its own:", "", *told, ""]
    return "\n".join(
        [*lines, "Take the run back: `medjury import benchmark_output/runs/medjury`", ""]
    )


def _added(asked: Question) -> str:
    if not asked.added:
        return "the prompt is the validated one, but"
    return f"it adds {len(asked.added.encode())} bytes to the validated prompt (in_helm);"


def _data(export: Export, data: str) -> list[str]:
    count = len({row.instance_id for row in export.rows})
    columns = data.split("\n", 1)[0].replace('"', "").replace(",", ", ")
    return [
        f"data.csv has {count} instances of the study, HELM's id0 being the first. Data of your "
        f"own take the same columns: {columns}. No cell may be empty or a "
        "number, and the prompt's tags in them are not broken; a question is as prompt.txt has it.",
        "",
    ]
