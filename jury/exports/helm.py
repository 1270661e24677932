"""HELM: a configurable benchmark whose metric is the jury, run by an unmodified helm-run."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence

from data.card import ExportRow
from data.errors import BadInput
from data.rubrics.helm import BENCHMARKS
from data.safe_text import in_markdown
from jury.exports.engine import engine
from jury.exports.export import Export, place_of, program, refuse_untold, texts_of
from jury.exports.helm_question import ASKED, Question, asked_of, question, table
from jury.panel import Juror, Panel
from jury.providers.registry import PROVIDERS

MAX_TOKENS = 1024  # of the model under test; HELM's own default
HELM = "crfm-helm[openai,anthropic] 0.5.16"
VENDOR = PROVIDERS["anthropic"].own_host
UNDER_TEST = "medjury-under-test/model"
ODD = re.compile(r"[^A-Za-z0-9_-]")
ODD_MODEL = re.compile(r"[^A-Za-z0-9_.-]")
FILE, SETTINGS_FILE = "medjury_helm.py", "medjury_helm.json"


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
    helm_question = question(rubric)
    files = {"judges.yaml": judges(panel), **prod_env(panel)}
    own = rubric.name.removeprefix("helm_")
    built_in = own in BENCHMARKS and own != rubric.name
    lost = _lost(helm_question, export.rows)
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
            "judge.txt": helm_question.judge,
            **table(rubric, helm_question.task, export.rows),
            **plugin(helm_question, export),
            **engine(export),
        }
    record = json.dumps(_record(export, helm_question), indent=2, ensure_ascii=False) + "\n"
    return files | {
        "validation.json": record,
        "README.md": _page(export, helm_question, files.get("data.csv", "")),
    }


def _lost(helm_question: Question, rows: Sequence[ExportRow]) -> tuple[str, str] | None:
    """Return the name of a text that nobody in HELM would read, and an instance that has it."""
    hidden = [name for name in ASKED if name not in helm_question.shown]
    texts = ((name, row.instance_id) for name in hidden for row in rows if getattr(row, name))
    return next(texts, None)


def _benchmark(name: str, panel: Panel) -> str:
    """Return the configuration; HELM calls a deployment `name`, and its model `model_name`."""
    jurors = "".join(
        f"      - name: {deployment}\n        model_name: {deployment}\n"
        for deployment in deployments(panel).values()
    )
    return (
        f"name: {name}\ndescription: rated by the jury {panel.name}; written by medjury\n"
        f"prompt_file: prompt.txt\ndataset_file: data.csv\nmax_tokens: {MAX_TOKENS}\n"
        f"metrics:\n  - name: jury_score\n    prompt_file: judge.txt\n    judges:\n{jurors}"
    )


def _conf(run: str, argument: str) -> str:
    return f'entries: [\n  {{description: "{run}:model={UNDER_TEST},{argument}", priority: 1}}\n]\n'


def _record(export: Export, helm_question: Question) -> dict[str, object]:
    """Return the validation record, with what HELM does otherwise; HELM does not read it."""
    return {
        **export.record,
        "rubric": {"name": export.rubric.name, "sha256": export.rubric.sha256},
        "panel": export.panel.name,
        "jurors": deployments(export.panel),
        "in_helm": {"added_to_prompt": helm_question.added, "jurors": differences(export.panel)},
    }


def _page(export: Export, helm_question: Question, data: str) -> str:
    """Return how the files are run, and in what HELM differs from what was validated."""
    rubric, name = export.rubric, f"medjury-{export.rubric.name}"
    run = "--suite medjury --max-eval-instances 1000000 --local-path prod_env"
    lines = [
        f"# {in_markdown(rubric.name)} in HELM",
        "",
        f"The jury {in_markdown(export.panel.name)} is **{str(export.record['status']).upper()}**: see "
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
            f"alone: {_added(helm_question)} tags in a response are not broken; a juror's 7 on a scale to "
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
            f"{in_markdown(rubric.version)}; another release may ask otherwise. There is no configurable "
            "benchmark: the rubric does not show jurors the task.",
            "",
        ]
    settings = [f"- {in_markdown(difference)}" for difference in differences(export.panel)]
    if settings:
        lines += ["HELM alone has settings of its own:", "", *settings, ""]
    return "\n".join(
        [*lines, "Take the run back: `medjury study import benchmark_output/runs/medjury`", ""]
    )


def _added(helm_question: Question) -> str:
    if not helm_question.added:
        return "the prompt is the validated one, but"
    return f"it adds {len(helm_question.added.encode())} bytes to the validated prompt (in_helm);"


def _data(export: Export, data: str) -> list[str]:
    count = len({row.instance_id for row in export.rows})
    columns = data.split("\n", 1)[0].replace('"', "").replace(",", ", ")
    return [
        f"data.csv has {count} instances of the study, HELM's id0 being the first. Data of your "
        f"own take the same columns: {columns}. No cell may be empty or a "
        "number, and the prompt's tags in them are not broken; a question is as prompt.txt has it.",
        "",
    ]


def deployments(panel: Panel) -> dict[str, str]:
    """Return HELM's name of each juror: its place before the stroke has a cache and a key alone.

    Raises
    ------
    BadInput
        If HELM cannot ask a juror: as other tools, or it is an Anthropic model served elsewhere.
    """
    refuse_untold(panel)
    names: dict[str, str] = {}
    for number, juror in enumerate(panel.juror, 1):
        if juror.provider == "anthropic" and juror.host != VENDOR:
            raise BadInput(
                f"panel {panel.name}: {juror.name} is asked in Anthropic's protocol at "
                f"{juror.place}; HELM does so at {VENDOR} only: give its OpenAI-compatible address, "
                "or another juror"
            )
        folder = f"medjury-{ODD.sub('-', juror.name)}"
        if any(name.split("/")[0] == folder for name in names.values()):
            folder += f"-{number}"
        names[juror.name] = f"{folder}/{ODD_MODEL.sub('-', juror.model.rsplit('/', 1)[-1])}"
    return names


def prod_env(panel: Panel) -> dict[str, str]:
    """Return HELM's settings: the jurors, and a place for the model that is to be evaluated."""
    by_juror = deployments(panel)
    jurors = "".join(_deployment(juror, by_juror[juror.name]) for juror in panel.juror)
    names = dict.fromkeys([*by_juror.values(), UNDER_TEST])
    return {
        "prod_env/model_deployments.yaml": DEPLOYMENTS + jurors,
        "prod_env/model_metadata.yaml": "models:\n" + "".join(map(_model, names)),
        "prod_env/credentials.conf": "".join(_keys(panel)) or "# no juror needs a key\n",
    }


def judges(panel: Panel) -> str:
    """Return `judges.yaml`, the jury of the benchmarks that HELM has."""
    names = deployments(panel)
    rows = "".join(
        f"  - name: {json.dumps(juror.name)}\n    model: {names[juror.name]}\n"
        f"    model_deployment: {names[juror.name]}\n"
        for juror in panel.juror
    )
    return f"judges:\n{rows}"


def differences(panel: Panel) -> list[str]:
    """Return in what HELM asks these jurors otherwise than the panel says."""
    lines = []
    for juror in panel.juror:
        settings = {
            "temperature 0": juror.temperature == 0,
            "at most 4096 tokens": juror.max_tokens == 4096,
            "no effort": juror.effort is None,
            "no schema": juror.form == "text",
        }
        if other := [words for words, same in settings.items() if not same]:
            lines.append(f"{juror.name} is asked with {', '.join(other)}")
    return lines


def _deployment(juror: Juror, name: str) -> str:
    if juror.provider == "anthropic":
        client = "anthropic_client.AnthropicMessagesClient"
        arguments = {"anthropic_model_name": juror.model}
    elif juror.api_key_env:
        client = "openai_client.OpenAIClient"
        arguments = {"base_url": juror.base_url, "openai_model_name": juror.model}
    else:
        client = "vllm_client.VLLMChatClient"  # a server that needs no key
        arguments = {"base_url": juror.base_url, "vllm_model_name": juror.model}
    return (
        f"  - name: {name}\n    model_name: {name}\n"
        "    tokenizer_name: simple/tokenizer1\n    max_sequence_length: 1000000\n"
        f"    client_spec:\n      class_name: helm.clients.{client}\n"
        f"      args: {_in_yaml(arguments)}\n"
    )


def _in_yaml(texts: dict[str, str]) -> str:
    """Return texts as YAML reads them back: JSON's, with every sign that YAML refuses or folds escaped."""
    plain = json.dumps(texts, ensure_ascii=False)
    return re.sub(r"[^ -~]", lambda character: f"\\U{ord(character[0]):08x}", plain)


def _model(name: str) -> str:
    return (
        f"  - name: {name}\n    display_name: {name}\n    description: written by medjury\n"
        f"    creator_organization_name: {name.split('/', maxsplit=1)[0]}\n    access: open\n"
        "    release_date: 2026-01-01\n"
        "    tags: [TEXT_MODEL_TAG, FULL_FUNCTIONALITY_TEXT_MODEL_TAG]\n"
    )


def _keys(panel: Panel) -> Iterator[str]:
    """Yield where each juror's key is read from: never the key."""
    for name, juror in zip(deployments(panel).values(), panel.juror, strict=True):
        if juror.api_key_env:
            yield f"{name.split('/')[0]}ApiKey: ${{?{juror.api_key_env}}}\n"


DEPLOYMENTS = f"""\
model_deployments:
  - name: {UNDER_TEST}  # the model that is to be evaluated: put its address and name here
    model_name: {UNDER_TEST}
    tokenizer_name: simple/tokenizer1
    max_sequence_length: 1000000
    client_spec:
      class_name: helm.clients.vllm_client.VLLMChatClient
      args: {{"base_url": "http://127.0.0.1:8000/v1", "vllm_model_name": "model"}}
"""


def plugin(helm_question: Question, export: Export) -> dict[str, str]:
    """Return the plugin and its settings, beside which the engine must be.

    An instance is known again by its place in `data.csv` and the hash of its question.
    """
    jurors = {deployment: name for name, deployment in deployments(export.panel).items()}
    rows = {row.instance_id: row for row in export.rows}.values()
    instances = [
        {"sha256": digest(asked_of(export.rubric, helm_question.task, row)), "place": place_of(row)}
        | {"texts": {"reference": None, "checklist": None} | texts_of(row)}
        for row in rows
    ]
    body = {"added": helm_question.added, "jurors": jurors, "instances": instances}
    settings = json.dumps(body, indent=1, ensure_ascii=False) + "\n"
    return {FILE: program("helm_plugin"), SETTINGS_FILE: settings}


def digest(text: str) -> str:
    """Return the SHA-256 by which the plugin knows a question again."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
