"""HELM's export holds the rules that helm-run 0.5.16 does not tell: its reading, done here anew."""

import csv
import io
import json
import re
import string
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from kit.exported_panels import HELM_ROWS, RECORD, TRICKY, awkward, helm_panel
from kit.jurors import Stub
from kit.studies import Run
from sqlalchemy import Engine

from data.card import Card
from data.errors import BadInput
from data.rubric import Rubric, read_rubric, shipped
from data.rubrics.helm import rubric_of
from jury.exports.bundle import Export, ExportRow
from jury.exports.helm import write
from jury.panel import Panel, read_panel

ORIGINAL = "Rate {RESPONSE} to {QUESTION} on a scale of 1 to 5.\naccuracy (is it right)\n- right?\n"


def files(rubric: Rubric, rows: tuple[ExportRow, ...] = HELM_ROWS) -> dict[str, str]:
    return write(Export(rubric, read_panel("current"), rows, RECORD))


def generic(prompt: str) -> Rubric:
    return Rubric(**read_rubric("generic").model_dump() | {"prompt": prompt})


def row(context: str, prompt: str = "Write.", reference: str | None = None) -> ExportRow:
    return ExportRow(f"visits/{len(context)}", context, prompt, reference, None)


def instances(found: dict[str, str]) -> list[tuple[str, str]]:
    """Return question and reference of each instance, as HELM makes them of the files."""
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
    found = files(rubric, rows)
    added = json.loads(found["medjury_helm.json"])["added"]
    answer = "A ${note} of {QUESTION}, \\1."
    for one, (question, reference) in zip(rows, instances(found), strict=True):
        card = Card("", one.context, one.prompt, answer, one.reference)
        assert asked(found, question, answer, reference) == rubric.render(card) + added


@pytest.mark.parametrize("name", shipped())
def test_jurors_read_what_the_jury_reads_and_then_the_block(name: str) -> None:
    expect_the_jurys_question(read_rubric(name))


def test_dollars_and_braces_of_a_prompt_come_through_both_of_helms_templates() -> None:
    expect_the_jurys_question(awkward())
    inside = "A <a>\n{{context}}\n</a> {x} $5 {{prompt}} {} then $${{reference}}{{{response}}}$.\n"
    expect_the_jurys_question(generic(inside))
    expect_the_jurys_question(generic("{{prompt}}{{context}}: {{response}}"))
    expect_the_jurys_question(generic("{{response}}"))


def test_the_model_under_test_is_sent_whole_tags() -> None:
    question, _ = instances(files(read_rubric("generic")))[0]
    assert question.startswith("<context>\nChest pain.")
    assert question.endswith("<task>\nWrite {a} note.\n</task>")


@pytest.mark.parametrize("name", shipped())
def test_helm_finds_exactly_the_criteria_to_be_answered(name: str) -> None:
    judge = files(read_rubric(name))["judge.txt"]
    block = re.search(r"<rubric_criteria>\s*(\{.*?\})\s*</rubric_criteria>", judge, re.DOTALL)
    assert block is not None
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
def test_texts_that_pandas_would_change_come_through_in_one_column(
    contexts: tuple[str, ...], prompts: str
) -> None:
    rows = tuple(ExportRow(f"v/{at}", one, prompts, None, None) for at, one in enumerate(contexts))
    assert files(read_rubric("generic"), rows)["prompt.txt"] == "{question}"
    expect_the_jurys_question(read_rubric("generic"), rows)


@pytest.mark.parametrize("reference", ["4", "007", "", "NA", "nan", "1.50"])
def test_a_reference_that_helm_would_misread_is_refused_and_not_quoted(reference: str) -> None:
    with pytest.raises(BadInput, match="visits/6: HELM would read its reference") as error:
        files(read_rubric("generic"), (row("Pain..", "Write.", reference),))
    assert "Pain" not in str(error.value)


def test_an_instance_without_reference_has_words_and_no_empty_cell() -> None:
    found = files(read_rubric("generic"), (row("a"), row("bb", "Write.", "4 mg")))
    assert [reference for _, reference in instances(found)] == [
        "(no reference is given for this instance)",
        "4 mg",
    ]
    header = next(csv.reader(io.StringIO(found["data.csv"])))
    assert header == ["instance_id", "context", "prompt", "correct_answer"]


def test_several_responses_to_an_instance_are_one_row_and_none_is_exported() -> None:
    rows = tuple(ExportRow("v/1", "Pain.", "Write.", None, text) for text in ("A note.", "Mine."))
    found = files(read_rubric("generic"), rows)
    assert len(instances(found)) == 1
    assert not any("Mine." in text for text in found.values())


def test_no_rows_leave_a_table_to_be_filled() -> None:
    found = files(read_rubric("generic"), ())
    assert found["data.csv"] == '"instance_id","context","prompt","correct_answer"\n'


def test_the_benchmark_names_files_that_are_there_and_jurors_by_their_deployment() -> None:
    found = files(read_rubric("generic"))
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


def _named(found: dict[str, str], which: str) -> dict[str, Any]:
    read = yaml.safe_load(found[f"prod_env/model_{which}.yaml"])
    return {one["name"]: one for rows in read.values() for one in rows}


def test_jurors_of_like_names_have_a_cache_and_a_key_each() -> None:
    juror = {"provider": "openai", "model": "m:1", "family": "a", "base_url": "http://h/v1"}
    two = [juror | {"name": name, "api_key_env": "K"} for name in ("a.b", "a-b")]
    jurors = Panel.model_validate({"name": "p", "juror": two})
    found = write(Export(read_rubric("generic"), jurors, HELM_ROWS, RECORD))
    assert list(_named(found, "deployments"))[1:] == ["medjury-a-b/m-1", "medjury-a-b-2/m-1"]
    assert found["prod_env/credentials.conf"] == (
        "medjury-a-bApiKey: ${?K}\nmedjury-a-b-2ApiKey: ${?K}\n"
    )


def test_what_helm_does_otherwise_and_what_was_validated_are_said() -> None:
    found = files(read_rubric("generic"))
    told = json.loads(found["validation.json"])
    assert told["status"] == "not validated"
    assert told["rubric"]["sha256"] == read_rubric("generic").sha256
    assert told["in_helm"]["added_to_prompt"] == json.loads(found["medjury_helm.json"])["added"]
    assert "gpt is asked with temperature 0, no schema" in told["in_helm"]["jurors"]
    assert "**NOT VALIDATED**" in found["README.md"]
    assert "columns: instance_id, context, prompt, correct_answer." in found["README.md"]


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
def test_a_prompt_that_helm_cannot_ask_to_the_letter_is_refused(prompt: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        files(generic(prompt))


def test_jurors_that_helm_cannot_ask_are_refused() -> None:
    with pytest.raises(BadInput, match="simulated, and no other tool can ask it"):
        write(Export(read_rubric("generic"), read_panel("simulated"), HELM_ROWS, RECORD))
    with pytest.raises(BadInput, match='claude-vertex is asked at provider "vertex"'):
        write(Export(read_rubric("generic"), read_panel("vertex"), HELM_ROWS, RECORD))
    with Stub() as stub:
        told = helm_panel(stub).model_dump(by_alias=True)
    told["juror"][2]["base_url"] = stub.anthropic_url
    with pytest.raises(BadInput, match=r"at api\.anthropic\.com only"):
        write(Export(read_rubric("generic"), Panel.model_validate(told), HELM_ROWS, RECORD))


def test_helms_own_prompt_goes_with_helms_own_benchmark() -> None:
    rubric = rubric_of("aci_bench", ORIGINAL, ["accuracy"], "crfm-helm 0.5.16")
    found = files(rubric)
    assert found["aci_bench.conf"].count("aci_bench:model=medjury-under-test/model,jury_") == 1
    assert {"judges.yaml", "validation.json", "README.md"} < set(found)
    assert "data.csv" not in found
    assert "does not show jurors the task" in found["README.md"]
    both = files(rubric, (row("Pain.", ""),))
    assert {"aci_bench.conf", "medjury-helm_aci_bench.conf", "data.csv"} < set(both)


def test_the_command_writes_the_folder_or_nothing(
    run: Run, small_study: Engine, tmp_path: Path
) -> None:
    asked = ("share", "rubric", "generic", "--to", "helm", "--out", str(tmp_path / "out"))
    code, _, err = run(*asked, "--panel", "simulated")
    assert (code, "is simulated" in err, (tmp_path / "out").exists()) == (2, True, False)
    code, out, _ = run(*asked, "--panel", "current")
    assert (code, "NOT VALIDATED" in out) == (0, True)
    assert (tmp_path / "out" / "prod_env" / "credentials.conf").is_file()
    compile((tmp_path / "out" / "medjury_helm.py").read_text("utf-8"), "plugin", "exec")
