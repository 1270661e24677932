"""HELM: a configurable benchmark whose metric is the jury, run by an unmodified helm-run.

HELM knows one text of an instance, QUESTION: the model under test is sent it, and jurors read it.
So what our prompt has between context and task, tags included, becomes part of that text. The
instances are a CSV that goes through pandas, put into one line of `str.format`.
"""

import csv
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from data.card import ExportRow
from data.errors import BadInput
from data.rubric import NO_CHECKLIST, NO_REFERENCE, Rubric
from data.rubrics.helm import BENCHMARKS
from data.rubrics.injection import disarm
from data.safe_text import in_markdown
from jury.exports.bundle import Export, pieces, place_of, program, refuse_untold, texts_of
from jury.exports.engine import engine
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
    record: dict[str, object] = {
        **export.record,
        "rubric": {"name": rubric.name, "sha256": rubric.sha256},
        "panel": panel.name,
        "jurors": deployments(panel),
        "in_helm": {"added_to_prompt": helm_question.added, "jurors": differences(panel)},
    }
    return files | {
        "validation.json": json.dumps(record, indent=2, ensure_ascii=False) + "\n",
        "README.md": _page(export, helm_question, files.get("data.csv", "")),
    }


def _lost(helm_question: "Question", rows: Sequence[ExportRow]) -> tuple[str, str] | None:
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


def _page(export: Export, helm_question: "Question", data: str) -> str:
    rubric, name = export.rubric, f"medjury-{export.rubric.name}"
    run = "--suite medjury --max-eval-instances 1000000 --local-path prod_env"
    added = len(helm_question.added.encode())
    lines = [
        f"# {in_markdown(rubric.name)} in HELM",
        "",
        f"The jury {in_markdown(export.panel.name)} is **{str(export.record['status']).upper()}**: see "
        f"validation.json. Run in this folder, with {HELM}; put the model that is to be evaluated "
        "into prod_env/model_deployments.yaml.",
        "",
    ]
    if data:
        columns = data.split("\n", 1)[0].replace('"', "").replace(",", ", ")
        lines += [
            f"    helm-run --plugins medjury_helm.py --conf-paths {name}-as-validated.conf {run}",
            f"    helm-run --conf-paths {name}.conf {run}",
            "",
            "The first asks the question that was validated, to the letter, with the panel's settings, and "
            f"needs the panel's keys in the environment. The second is HELM alone: it adds {added} bytes to "
            "the prompt, breaks no tags in a response, counts a juror's 7 on a scale to 5, takes the mean of "
            "fewer where a juror is missing, and counts 0 where none rated.",
            "",
            f"data.csv has {len({row.instance_id for row in export.rows})} instances of the study, HELM's id0 "
            f"being the first. Data of your own take the same columns: {columns}. No cell may be empty or a "
            "number.",
        ]
    else:
        lines += [
            f"    helm-run --conf-paths {rubric.name.removeprefix('helm_')}.conf {run}",
            "",
            "HELM's own benchmark, data and prompt, with this jury. The rubric is that of "
            f"{in_markdown(rubric.version)}; another release may ask otherwise. There is no configurable "
            "benchmark: the rubric does not show jurors the task.",
        ]
    others = [*differences(export.panel), *other_scores(rubric)]
    lines += ["", *(f"- in HELM alone {in_markdown(one)}" for one in others), ""]
    return "\n".join(
        [*lines, "Take the run back: `medjury study import benchmark_output/runs/medjury`", ""]
    )


def other_scores(rubric: Rubric) -> list[str]:
    """Return what HELM makes of scores that are not all points of one scale."""
    lines = []
    if rubric.is_mixed:
        lines.append(f"the mean is of raw points, though scales differ: {rubric.scales}")
    if answering := [name for name in rubric.criteria if rubric.answers_of(name)]:
        lines.append(f"an answer in the place of a score is no number: {', '.join(answering)}")
    return lines


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
        "prod_env/credentials.conf": "".join(_credentials(panel)) or "# no juror needs a key\n",
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


def _credentials(panel: Panel) -> Iterator[str]:
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


def plugin(helm_question: "Question", export: Export) -> dict[str, str]:
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


ASKED = ("context", "prompt")
QUESTION = "{QUESTION}"
THEIRS = {"response": "{RESPONSE}", "reference": "{GOLD_RESPONSE}"}
# How HELM finds what a juror has to answer, in the prompt itself.
BLOCK = re.compile(r"<rubric_criteria>\s*(\{.*?\})\s*</rubric_criteria>", re.DOTALL)
KEYS = ("explanation", "score")
OPENS = re.compile(r"<\w[\w.:-]*>\s*\Z")
CLOSES = re.compile(r"\A\s*</\w[\w.:-]*>")
WORD = re.compile(r"\w", re.ASCII)
Cells = Mapping[str, str]
ID, WHOLE, GOLD = "instance_id", "question", "correct_answer"


@dataclass(frozen=True, slots=True)
class Question:
    """Both prompts.

    Attributes
    ----------
    judge
        HELM's template of what jurors are asked.
    task
        What QUESTION is made of, and so all that the model under test is sent: words and names of
        texts by turns.
    added
        End of `judge` that the rubric's prompt does not have; empty where HELM's block is in it.
    """

    judge: str
    task: tuple[str, ...]
    added: str

    @property
    def shown(self) -> tuple[str, ...]:
        """Which of context and prompt are in QUESTION."""
        return tuple(name for name in ASKED if name in self.task[1::2])


def question(rubric: Rubric) -> Question:
    """Return a rubric's prompt in HELM's form.

    Raises
    ------
    BadInput
        If HELM cannot put it to jurors word for word.
    """
    fixed = {"criteria": rubric.criteria_text(), "schema": rubric.schema_text()}
    parts = pieces(rubric.prompt, fixed | {"checklist": NO_CHECKLIST})
    if any("\r" in words for words in parts[::2]):
        raise BadInput(
            f"rubric {rubric.name}: its prompt holds a carriage return, which HELM drops"
        )
    outside, task = _taken_out(parts, rubric.name)
    judge = "".join(
        THEIRS.get(part, part) if place % 2 else part.replace("$", "$$")
        for place, part in enumerate(outside)
    )
    _check_slots(outside, rubric.name)
    keys = json.dumps(dict.fromkeys(rubric.criteria, KEYS), ensure_ascii=False)
    block = f"\n<rubric_criteria>\n{keys}\n</rubric_criteria>\n"  # it says nothing of a score
    added = "" if "<rubric_criteria>" in judge else block
    _check_block(judge + added, rubric)
    return Question(judge + added, tuple(task), added)


def _taken_out(parts: list[str], name: str) -> tuple[list[str], list[str]]:
    """Return the prompt with QUESTION in it, and what QUESTION is made of."""
    places = [place for place in range(1, len(parts), 2) if parts[place] in ASKED]
    names = list(dict.fromkeys(parts[place] for place in places))
    if not names:
        return parts, ["", "context", "\n\n", "prompt", ""]
    if len(names) == 1:
        outside = [QUESTION if place in places else part for place, part in enumerate(parts)]
        return outside, ["", names[0], ""]
    first, last = places[0], places[-1]
    task = parts[first : last + 1]
    if any(slot not in ASKED for slot in task[::2]):
        raise BadInput(
            f"rubric {name}: its prompt has the response or the reference between context and "
            "prompt; HELM shows jurors one question: put {{context}} and {{prompt}} side by side"
        )
    before, after = parts[first - 1], parts[last + 1]
    opened, closed = OPENS.search(before), CLOSES.search(after)
    if not (opened and closed):
        return [*parts[:first], QUESTION, *parts[last + 1 :]], ["", *task, ""]
    outside = [before[: opened.start()], QUESTION, after[closed.end() :]]
    return [*parts[: first - 1], *outside, *parts[last + 2 :]], [opened[0], *task, closed[0]]


def _check_slots(parts: Sequence[str], name: str) -> None:
    """Refuse words that HELM would take for its own placeholders, or that run into one."""
    for place, part in enumerate(parts):
        if place % 2:
            after = parts[place + 1][:1]
            if WORD.match(after):
                raise BadInput(
                    f"rubric {name}: its prompt has {after!r} right after a placeholder, which "
                    "HELM reads as part of it: put a space or a line between them"
                )
        elif taken := next((t for t in (QUESTION, *THEIRS.values()) if t in part), None):
            raise BadInput(f"rubric {name}: its prompt holds {taken}, which HELM would fill")


def _check_block(judge: str, rubric: Rubric) -> None:
    """Refuse a prompt in which HELM finds other criteria than the rubric's."""
    match = BLOCK.search(judge)
    try:
        criteria = json.loads(match[1]) if match else None
    except ValueError:
        criteria = None
    names = sorted(rubric.criteria)
    if (
        not isinstance(criteria, dict)
        or sorted(criteria) != names
        or not all(
            isinstance(keys, dict | list) and "score" in keys and set(keys) <= set(KEYS)
            for keys in criteria.values()
        )
    ):
        raise BadInput(
            f"rubric {rubric.name}: HELM asks for what stands in <rubric_criteria> as JSON, and "
            f"that is not an object with {', '.join(names)}: leave the block out, or mend it"
        )


def table(rubric: Rubric, task: Sequence[str], rows: Iterable[ExportRow]) -> dict[str, str]:
    """Return `prompt.txt`, what the model under test is sent, and `data.csv`, what goes into it.

    A column for each text; one for the whole question where pandas would change a text on its
    own, such as an empty one, which it takes for missing, or a number.

    Raises
    ------
    BadInput
        If a text cannot pass through pandas as it is; it names the instance and the column.
    """
    instances = list({row.instance_id: row for row in rows}.values())
    texts = [_texts(rubric, row) for row in instances]
    names = list(dict.fromkeys(task[1::2]))
    gold = [GOLD] if "{{reference}}" in rubric.prompt else []
    cells = [row | {WHOLE: _filled(task, row)} for row in texts]
    split = _csv([ID, *names, *gold], cells)
    if _changed(split, [*names], cells) is None:
        columns, prompt, written = names, _template(task), split
    else:
        columns, prompt = [WHOLE], f"{{{WHOLE}}}"
        written = _csv([ID, WHOLE, *gold], cells)
    if changed := _changed(written, [*columns, *gold], cells):
        raise BadInput(
            f"{changed[0]}: HELM would read its {'reference' if changed[1] == GOLD else 'question'} "
            "as a number, as missing or otherwise changed; put it in words, such as 4 points for 4"
        )
    return {"prompt.txt": prompt, "data.csv": written}


def asked_of(rubric: Rubric, task: Sequence[str], row: ExportRow) -> str:
    """Return the text of an instance that HELM calls QUESTION."""
    return _filled(task, _texts(rubric, row))


def _texts(rubric: Rubric, row: ExportRow) -> dict[str, str]:
    gold = NO_REFERENCE if row.reference is None else disarm(row.reference, rubric.prompt)
    return {
        ID: row.instance_id,
        "context": disarm(row.context, rubric.prompt),
        "prompt": disarm(row.prompt, rubric.prompt),
        GOLD: gold,
    }


def _filled(task: Sequence[str], texts: Cells) -> str:
    return "".join(texts[part] if place % 2 else part for place, part in enumerate(task))


def _template(task: Sequence[str]) -> str:
    escaped = (part.replace("{", "{{").replace("}", "}}") for part in task[::2])
    slots = [*(f"{{{part}}}" for part in task[1::2]), ""]
    return "".join(words + slot for words, slot in zip(escaped, slots, strict=True))


def _csv(columns: Sequence[str], texts: Sequence[Cells]) -> str:
    out = io.StringIO()
    to = csv.DictWriter(
        out, columns, extrasaction="ignore", quoting=csv.QUOTE_ALL, lineterminator="\n"
    )
    to.writeheader()
    to.writerows(texts)
    return out.getvalue()


def _changed(
    written: str, columns: Sequence[str], texts: Sequence[Cells]
) -> tuple[str, str] | None:
    """Return instance and column of the first text that pandas reads otherwise."""
    import pandas as pd

    read = pd.read_csv(io.BytesIO(written.encode()))
    for column in columns:
        for cell, row in zip(read[column].tolist(), texts, strict=True):
            if not isinstance(cell, str) or cell != row[column]:
                return row[ID], column
    return None
