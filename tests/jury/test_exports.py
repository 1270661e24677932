"""What exports to HELM, Inspect, MLflow and promptfoo hold: the jury's question to the letter, and no more."""

import ast
import io
import json
import re
import string
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pytest
import yaml
from kit.exported_panels import HELM_ROWS, RECORD, TRICKY, awkward, export, helm_panel, panel
from kit.exported_panels import inspect as inspect
from kit.exported_panels import promptfoo as promptfoo
from kit.hostile_corpus import trap
from kit.jurors import Do, Stub, juror, verdict

from data.card import Card
from data.errors import BadInput
from data.rubric import Rubric, read_rubric
from data.rubrics.helm import rubric_of
from data.rubrics.pairs import with_pairs
from jury.exports.bundle import Export, ExportRow, write_folder
from jury.exports.helm import write as write_helm
from jury.exports.scorers import inspect_model, write_inspect, write_mlflow, write_promptfoo
from jury.panel import Panel, read_panel

ORIGINAL = "Rate {RESPONSE} to {QUESTION} on a scale of 1 to 5.\naccuracy (is it right)\n- right?\n"


def helm_files(rubric: Rubric, rows: tuple[ExportRow, ...] = HELM_ROWS) -> dict[str, str]:
    return write_helm(Export(rubric, read_panel("current"), rows, RECORD))


def generic(prompt: str) -> Rubric:
    return Rubric(**read_rubric("generic").model_dump() | {"prompt": prompt})


def row(context: str, prompt: str = "Write.", reference: str | None = None) -> ExportRow:
    return ExportRow(f"visits/{len(context)}", context, prompt, reference, None)


def instances(found: dict[str, str]) -> list[tuple[str, str]]:
    """Return question and reference of each instance, as HELM makes them of the helm_files."""
    template = found["prompt.txt"]
    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    rows = [one for _, one in pd.read_csv(io.BytesIO(found["data.csv"].encode())).iterrows()]
    assert all(name in one for one in rows for name in names), "an unknown column would be empty"
    questions = [template.format_map({name: one.get(name, "") for name in names}) for one in rows]
    references = [one.get("correct_answer", "") for one in rows]
    return list(zip(questions, references, strict=True))


def asked(found: dict[str, str], question: str, response: str, reference: str) -> str:
    """Return what HELM sends a juror."""
    text = found["judge.txt"]
    for name in ("QUESTION", "RESPONSE", "GOLD_RESPONSE"):
        text = text.replace(f"{{{name}}}", f"${name}")
    texts = {"QUESTION": question, "RESPONSE": response, "GOLD_RESPONSE": reference}
    return string.Template(text).substitute(texts)


def expect_the_jurys_question(rubric: Rubric, rows: tuple[ExportRow, ...] = HELM_ROWS) -> None:
    found = helm_files(rubric, rows)
    added = json.loads(found["medjury_helm.json"])["added"]
    answer = "A ${note} of {QUESTION}, \\1."
    for one, (question, reference) in zip(rows, instances(found), strict=True):
        card = Card("", one.context, one.prompt, answer, one.reference)
        assert asked(found, question, answer, reference) == rubric.render(card) + added


INSIDE = "A <a>\n{{context}}\n</a> {x} $5 {{prompt}} {} then $${{reference}}{{{response}}}$.\n"


ODD = map(generic, (INSIDE, "{{prompt}}{{context}}: {{response}}", "{{response}}"))


@pytest.mark.parametrize(
    "rubric", [*map(read_rubric, with_pairs()), awkward(), *ODD], ids=lambda one: one.prompt[-20:]
)
def test_jurors_read_what_the_jury_reads_and_then_the_block_whatever_a_prompt_holds(rubric):
    expect_the_jurys_question(rubric)


@pytest.mark.parametrize("name", with_pairs())
def test_helm_finds_exactly_the_criteria_to_be_answered(name):
    judge = helm_files(read_rubric(name))["judge.txt"]
    block = re.search(r"<rubric_criteria>\s*(\{.*?\})\s*</rubric_criteria>", judge, re.DOTALL)
    criteria = {key: sorted(value) for key, value in json.loads(block[1]).items()}
    assert list(criteria) == list(read_rubric(name).criteria)
    assert all(keys == ["explanation", "score"] for keys in criteria.values())
    assert not re.search(r"\{\{(QUESTION|RESPONSE|GOLD_RESPONSE)\}\}", judge)


@pytest.mark.parametrize(
    ("contexts", "prompts"),
    [
        (("001", "4", "1e5"), "Write."),
        (("", "Pain.", "NA"), "Write."),
        (("null", "nan", "None"), ""),
        (("True", "FALSE"), "x"),
        ((" 7 ", "\r\n", TRICKY, '"a",\n\t;'), "NA"),
    ],
)
def test_texts_that_pandas_would_change_come_through_in_one_column(contexts, prompts):
    rows = tuple(ExportRow(f"v/{at}", one, prompts, None, None) for at, one in enumerate(contexts))
    assert helm_files(read_rubric("generic"), rows)["prompt.txt"] == "{question}"
    expect_the_jurys_question(read_rubric("generic"), rows)


@pytest.mark.parametrize("reference", ["4", "007", "", "NA", "nan", "1.50"])
def test_a_reference_that_helm_would_misread_is_refused_and_not_quoted(reference):
    with pytest.raises(BadInput, match="visits/6: HELM would read its reference") as error:
        helm_files(read_rubric("generic"), (row("Pain..", "Write.", reference),))
    assert "Pain" not in str(error.value)


def test_helms_table_has_a_row_an_instance_no_empty_cell_and_no_response():
    rows = tuple(ExportRow("v/1", "a", "Write.", None, text) for text in ("A note.", "Mine."))
    found = helm_files(read_rubric("generic"), (*rows, row("bb", "Write.", "4 mg")))
    none = "(no reference is given for this instance)"
    assert [reference for _, reference in instances(found)] == [none, "4 mg"]
    assert not any("Mine." in text for text in found.values())
    columns = '"instance_id","context","prompt","correct_answer"\n'
    assert found["data.csv"].startswith(columns)
    assert helm_files(read_rubric("generic"), ())["data.csv"] == columns


def test_the_benchmark_names_files_and_jurors_that_are_there_and_says_what_was_validated():
    found = helm_files(read_rubric("generic"))
    said = yaml.safe_load(found["medjury-generic.yaml"])
    assert {said["prompt_file"], said["dataset_file"]} <= set(found)
    assert not set(":,/=") & set(said["name"])
    (metric,) = said["metrics"]  # a second jury_score would overwrite the first
    assert (metric["name"], metric["prompt_file"]) == ("jury_score", "judge.txt")
    known = _named(found, "deployments")
    assert [one["name"] for one in metric["judges"]] == list(known)[1:]
    assert all(known[one["name"]]["model_name"] == one["model_name"] for one in metric["judges"])
    assert {one["model_name"] for one in known.values()} == set(_named(found, "metadata"))
    judges = yaml.safe_load(found["judges.yaml"])["judges"]
    assert [one["name"] for one in judges] == ["gpt", "claude", "llama"]
    assert [one["model_deployment"] for one in judges] == list(known)[1:]
    told = json.loads(found["validation.json"])
    assert told["status"] == "not validated"
    assert told["rubric"]["sha256"] == read_rubric("generic").sha256
    assert told["in_helm"]["added_to_prompt"] == json.loads(found["medjury_helm.json"])["added"]


def _named(found: dict[str, str], which: str) -> dict[str, Any]:
    read = yaml.safe_load(found[f"prod_env/model_{which}.yaml"])
    return {one["name"]: one for rows in read.values() for one in rows}


def test_jurors_of_like_names_have_a_cache_and_a_key_each():
    juror = {"provider": "openai", "model": "m:1", "family": "a", "base_url": "http://h/v1"}
    two = [juror | {"name": name, "api_key_env": "K"} for name in ("a.b", "a-b")]
    jurors = Panel.model_validate({"name": "p", "juror": two})
    found = write_helm(Export(read_rubric("generic"), jurors, HELM_ROWS, RECORD))
    assert list(_named(found, "deployments"))[1:] == ["medjury-a-b/m-1", "medjury-a-b-2/m-1"]
    keys = "medjury-a-bApiKey: ${?K}\nmedjury-a-b-2ApiKey: ${?K}\n"
    assert found["prod_env/credentials.conf"] == keys


@pytest.mark.parametrize(
    ("prompt", "words"),
    [
        ("{{context}}{{response}}{{prompt}}", "side by side"),
        ("{{context}}{{reference}}{{prompt}}{{response}}", "side by side"),
        ("{{context}}{{prompt}} {{response}}s", "right after a placeholder"),
        ("{{context}}{{prompt}} {RESPONSE} {{response}}", "which HELM would fill"),
        ("{{context}}\r\n{{prompt}} {{response}}", "carriage return"),
        ("{{context}} {{prompt}} {{response}}\r\n", "carriage return"),
        ("{{context}} {{response}}", "not shown the prompt of visits/i1"),
        ("{{prompt}} {{response}}", "not shown the context of visits/i1"),
        ("{{context}}{{prompt}}{{response}} <rubric_criteria>{}</rubric_criteria>", "mend it"),
        ("{{context}}{{prompt}}{{response}} <rubric_criteria>{'a': 1}</rubric_criteria>", "mend"),
        ("{{context}}{{prompt}}{{response}} see <rubric_criteria>", "leave the block out"),
    ],
)
def test_a_prompt_that_helm_cannot_ask_to_the_letter_is_refused(prompt, words):
    with pytest.raises(BadInput, match=words):
        helm_files(generic(prompt))


def test_a_claude_at_another_host_cannot_be_asked_by_helm(stub):
    told = helm_panel(stub).model_dump(by_alias=True)
    told["juror"][2]["base_url"] = stub.anthropic_url
    with pytest.raises(BadInput, match=r"at api\.anthropic\.com only"):
        write_helm(Export(read_rubric("generic"), Panel.model_validate(told), HELM_ROWS, RECORD))


def test_helms_own_prompt_goes_with_helms_own_benchmark():
    rubric = rubric_of("aci_bench", ORIGINAL, ["accuracy"], "crfm-helm 0.5.16")
    found = helm_files(rubric)
    assert found["aci_bench.conf"].count("aci_bench:model=medjury-under-test/model,jury_") == 1
    assert {"judges.yaml", "validation.json", "README.md"} < set(found)
    assert "data.csv" not in found
    assert "does not show jurors the task" in found["README.md"]
    both = helm_files(rubric, (row("Pain.", ""),))
    assert {"aci_bench.conf", "medjury-helm_aci_bench.conf", "data.csv"} < set(both)


def test_the_command_writes_the_folder_or_nothing(run, small_study, tmp_path):
    asked = ("share", "rubric", "generic", "--to", "helm", "--out", str(tmp_path / "out"))
    code, _, err = run(*asked, "--panel", "simulated")
    assert (code, "is simulated" in err, (tmp_path / "out").exists()) == (2, True, False)
    code, out, _ = run(*asked, "--panel", "current")
    assert (code, "NOT VALIDATED" in out) == (0, True)
    assert (tmp_path / "out" / "prod_env" / "credentials.conf").is_file()
    compile((tmp_path / "out" / "medjury_helm.py").read_text("utf-8"), "plugin", "exec")


def test_inspects_samples_are_of_the_texts_and_its_models_without_keys_by_its_own_names():
    files = write_inspect(export(read_panel("current")))
    samples = json.loads(files["samples.json"])
    assert [one["id"] for one in samples] == ["visits/i1", "visits/i1#2", "visits/i2"]
    assert [one["first"] for one in samples] == [True, False, True]
    assert (samples[2]["context"], samples[2]["reference"]) == (TRICKY, None)
    told = json.loads(files["medjury_models.json"])
    assert all(set(one) == {"model", "base_url", "args"} for one in told.values())
    named = {one.model: inspect_model(one)["model"] for one in read_panel("current").juror}
    assert all(name.endswith(f"/{model}") for model, name in named.items())
    kinds = {name.split("/")[0] for name in named.values()}
    assert kinds == {"openai", "anthropic", "openai-api"}
    ours = inspect_model(juror("openai", "http://127.0.0.1:9/v1", model="org/m"))
    wanted = {"model": "openai-api/medjury/org/m", "base_url": "http://127.0.0.1:9/v1"}
    assert ours.items() >= wanted.items()


def test_an_id_that_would_lead_out_of_inspects_log_is_a_number_there(tmp_path):
    with trap(tmp_path) as laid:
        ids = [f"{one}{rest}" for one in laid.names() for rest in ("", "/1")]
    rows = tuple(ExportRow(one, "Pain.", "Write.", None, None) for one in [*ids, "b/i 1.a", ids[0]])
    files = write_inspect(Export(read_rubric("generic"), read_panel("current"), rows, RECORD))
    found = [one["id"] for one in json.loads(files["samples.json"])]
    assert len({*found}) == len(rows)
    assert found[-2:] == ["b/i 1.a", f"{found[0]}#2"]
    for one in found:
        path = PurePosixPath(one.replace("\\", "/"))
        assert (one.isprintable(), path.is_absolute()) == (True, False)
        assert (".." in path.parts, ":" in one) == (False, False)


def test_the_rubric_goes_along_so_that_its_ratings_can_come_back(tmp_path):
    write_folder(tmp_path / "out", write_inspect(export(read_panel("current"), "aci_bench")))
    assert read_rubric(str(tmp_path / "out" / "rubric")) == read_rubric("aci_bench")


def test_the_assertion_asks_every_juror_and_gives_points_a_criterion(tmp_path):
    with Stub(lambda seen: Do(text=verdict(seen, 5 if seen.model == "m-one" else 2))) as stub:
        write_folder(tmp_path / "out", write_promptfoo(export(panel(stub))))
        found = _asserted(tmp_path / "out", {"vars": {"context": "Pain.", "prompt": "Write."}})
    names = (*read_rubric("generic").criteria, "composite")
    assert found["namedScores"] == dict.fromkeys(names, 3.5)
    assert (found["score"], found["pass"]) == (0.625, True)
    assert "not validated" in found["reason"]


def test_a_juror_without_a_verdict_leaves_no_score_at_all(tmp_path):
    with Stub(lambda seen: Do(text="seven" if seen.model == "m-two" else verdict(seen))) as stub:
        write_folder(tmp_path / "out", write_promptfoo(export(panel(stub))))
        found = _asserted(tmp_path / "out", {"vars": {}, "config": {"pass_at": 1}})
    why = "NOT RATED: two: the answer holds no JSON object"
    assert found == {"pass": False, "score": 0, "reason": why}


def _asserted(folder: Path, context: dict[str, Any]) -> dict[str, Any]:
    """Return what the assertion gives in a Python of its own, as promptfoo starts it."""
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import medjury_assert as a;"
        "print(json.dumps(a.get_assert('A note.', json.loads(sys.argv[2]))))"
    )
    asked = [sys.executable, "-I", "-c", code, str(folder), json.dumps(context)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    return json.loads(done.stdout)


def test_the_configuration_names_files_that_are_there_and_no_key():
    files = write_promptfoo(export(read_panel("current")))
    found = yaml.safe_load(files["promptfooconfig.yaml"])
    check = found["defaultTest"]["assert"][0]
    assert (check["type"], check["metric"]) == ("python", "jury")
    for named in (check["value"], found["tests"], *found["prompts"]):
        assert named.removeprefix("file://") in files
    cases, instances = (json.loads(files[f"{name}.json"]) for name in ("tests", "instances"))
    assert cases == [{"vars": {"medjury_instance": place}} for place in (0, 1)]
    assert [one["instance_id"] for one in instances] == ["visits/i1", "visits/i2"]
    assert {found["nunjucksFilters"]["medjury_ask"], "medjury_jury.py"} <= files.keys()
    assert "not validated" in files["promptfooconfig.yaml"]
    told = json.loads(files["medjury_jury.json"])["jurors"][0]
    assert told["api_key_env"] == "OPENAI_API_KEY"


def test_no_word_of_a_study_stands_where_promptfoo_reads_templates_files_or_programs(tmp_path):
    def read_by_promptfoo(*names: str) -> list[str]:
        rows = tuple(ExportRow(f"{one}/1", one, one, one, None, one, one, one) for one in names)
        files = write_promptfoo(Export(read_rubric("generic"), read_panel("current"), rows, RECORD))
        return [files[name] for name in ("promptfooconfig.yaml", "tests.json", "prompt.txt")]

    with trap(tmp_path) as laid:
        hostile = laid.texts()
    assert read_by_promptfoo(*hostile) == read_by_promptfoo(*map(str, range(len(hostile))))


@pytest.mark.parametrize("writer", [write_helm, write_inspect, write_mlflow, write_promptfoo])
def test_an_exports_programs_compile_and_a_jury_that_no_tool_can_ask_is_refused(writer):
    files = writer(export(read_panel("current")))
    for name in (one for one in files if one.endswith(".py")):
        ast.parse(files[name])
    with pytest.raises(BadInput, match="simulated, and no other tool can ask it"):
        writer(export(read_panel("simulated")))
    with pytest.raises(BadInput, match='claude-vertex is asked at provider "vertex"'):
        writer(export(read_panel("vertex")))


def test_mlflow_gets_its_data_as_it_takes_it():
    files = write_mlflow(export(read_panel("current")))
    data = json.loads(files["data.json"])
    told = {"expectations": {"reference": "Angina."}, "outputs": "Note."}
    assert data[0] == told | {"inputs": {"context": "Chest pain.", "prompt": "Write."}}
    assert "expectations" not in data[2]
    assert "bundle.md" in files
