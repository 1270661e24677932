"""`analyse measure` of answers with a key, from a file, from references, and from HELM's own runs."""

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from kit.studies import Run
from sqlmodel import select

from data.database import open_study, reading
from data.schema import Rater, Rating, Response
from medjury.cli.answers import ANSWER_METRICS
from medjury.services.answer_metrics import METRICS

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
Write = Callable[[str, str], Path]


def stored(url: str) -> dict[tuple[str, str], float]:
    """Return the score of each metric and response."""
    with reading(open_study(url)) as session:
        query = select(Rater.handle, Response.response_id, Rating.score).join(Rater).join(Response)
        return {(rater, response): score for rater, response, score in session.exec(query)}


def helm_run(folder: Path, name: str, states: list[Mapping[str, Any]], model: str) -> Path:
    """Write a run as HELM does, without a jury."""
    folder.mkdir(parents=True)
    spec = {
        "name": f"{name}:model={model}",
        "adapter_spec": {"model": model},
        "scenario_spec": {"class_name": f"helm.{name}", "args": {}},
    }
    (folder / "run_spec.json").write_text(json.dumps(spec))
    (folder / "scenario_state.json").write_text(json.dumps({"request_states": states}))
    return folder


def state(number: int, answer: str, keys: list[str], **more: Any) -> dict[str, Any]:
    """Return a request state of a run."""
    references = [{"output": {"text": key}, "tags": ["correct"]} for key in keys]
    extra = more.pop("extra_data", None)
    instance = {
        "input": {"text": f"question {number}"},
        "references": references,
        "id": f"id{number}",
    }
    return {
        "instance": instance | {"split": "test"} | ({"extra_data": extra} if extra else {}),
        "result": {"completions": [{"text": answer}]},
        **more,
    }


def test_the_names_in_help_are_those_that_are_computed() -> None:
    assert ANSWER_METRICS == METRICS


def test_answers_are_scored_by_the_references_and_asked_again_nothing_changes(
    run: Run, write: Write, url: str
) -> None:
    rows = "i1,b,,p,Yes,r1,m,yes.\ni2,b,,p,No,r2,m,No\ni3,b,,p,,r3,m,Maybe\n"
    run("study", "import", str(write("r.csv", HEAD + rows)))
    code, out, _ = run(
        "analyse", "measure", "exact-match", "quasi-exact-match", "label-f1", "--json", "-"
    )
    body = json.loads(out)
    assert code == 0
    exact, quasi, labels = body["answers"]
    assert (exact["means"], quasi["means"]) == ({"exact-match": 0.5}, {"quasi-exact-match": 1.0})
    assert (exact["scored"], exact["without_key"]) == (2, 1)
    assert (labels["labels"]["macro_f1"], labels["labels"]["labels"]) == (1.0, ["no", "yes"])
    assert stored(url)["exact-match", "r1"] == 0
    assert ("exact-match", "r3") not in stored(url)
    again = json.loads(run("analyse", "measure", "exact-match", "--json", "-")[1])
    assert again["unchanged"] == 2


def test_options_are_known_by_letter_or_text(run: Run, write: Write, url: str) -> None:
    rows = "i1,b,,p,,r1,m,The answer is B\ni2,b,,p,,r2,m,A\n"
    run("study", "import", str(write("r.csv", HEAD + rows)))
    keys = "instance_id,key,option:A,option:B\ni1,B,aspirin,none\ni2,none,aspirin,none\n"
    given = ("--keys", str(write("k.csv", keys)), "--pattern", "(?:is )?([A-D])$")
    assert run("analyse", "measure", "chosen-option", *given)[0] == 0
    assert stored(url) == {("chosen-option", "r1"): 1.0, ("chosen-option", "r2"): 0.0}


def test_runs_of_helm_without_a_jury_are_imported_and_scored_by_their_own_keys(
    run: Run, tmp_path: Path, url: str
) -> None:
    limits = {"category": "physical", "lower_limit": "4.9", "upper_limit": "5.1"}
    mapping = {"A": "aspirin", "B": "none"}
    calc = [state(1, "5", ["5"], extra_data=limits), state(2, "", ["7"], extra_data=limits)]
    choice = [state(1, "A", ["aspirin"], output_mapping=mapping)]
    helm_run(tmp_path / "runs" / "calc", "medcalc_bench", calc, "m1")
    helm_run(tmp_path / "runs" / "qa", "head_qa", choice, "m1")
    assert run("study", "import", str(tmp_path / "runs"), "--format", "helm-answers")[0] == 0
    for metric, folder, benchmark in (
        ("medcalc", "calc", "medcalc_bench"),
        ("chosen-option", "qa", "head_qa"),
    ):
        place = str(tmp_path / "runs" / folder)
        assert run("analyse", "measure", metric, "--keys", place, "--benchmark", benchmark)[0] == 0
    scores = stored(url)
    assert sorted(scores.values()) == [0.0, 1.0, 1.0]


def test_queries_run_on_the_database_and_declining_counts(
    run: Run, write: Write, tmp_path: Path
) -> None:
    database = tmp_path / "ehr.sqlite"
    with sqlite3.connect(database) as connection:
        connection.executescript("create table p (id); insert into p values (1), (2);")
    connection.close()
    answers = ["select count(*) from p", "delete from p", "", ""]
    keys = ["select 2", "select id from p", "null", "select id from p"]
    states = [
        state(number, answer, [key], extra_data={"is_impossible": number == 2})
        for number, (answer, key) in enumerate(zip(answers, keys, strict=True))
    ]
    folder = helm_run(tmp_path / "ehr", "ehr_sql", states, "m1")
    run("study", "import", str(folder), "--format", "helm-answers")
    given = ("--keys", str(folder), "--database", str(database), "--json", "-")
    code, out, _ = run("analyse", "measure", "ehrsql", *given)
    result = json.loads(out)["answers"][0]
    assert code == 0
    assert result["means"]["ehrsql-execution"] == 0.5  # the count, and "null" is no query
    assert result["answering"]["precision"] == 1.0
    assert result["answering"]["recall"] == pytest.approx(2 / 3)
    assert result["answering"]["refusing_recall"] == 1.0
    assert result["stopped"] == {"refused": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exact", "rouge-l"], "metric 'exact'"),
        (["medcalc"], "medcalc needs --keys"),
        (["rouge-l", "exact-match"], "measure them one by one"),
        (["--keys", "K"], "belong to metrics of answers"),
        (["exact-match", "--benchmark", "other"], "no benchmark other"),
        (["exact-match", "--database", "K"], "--database belongs to ehrsql"),
        (
            ["chosen-option", "--keys", "K"],
            "instance i1 of b: chosen-option: the instance has no options",
        ),
        (["medcalc", "--keys", "K"], "instance i1 of b: category ''"),
        (["ehrsql", "--keys", "K", "--database", "K"], "is no SQLite database"),
    ],
)
def test_what_cannot_be_scored_is_refused_and_nothing_is_stored(
    run: Run, write: Write, url: str, words: list[str], said: str
) -> None:
    run("study", "import", str(write("r.csv", HEAD + "i1,b,,p,Yes,r1,m,yes\n")))
    keys = str(write("k.csv", "instance_id,key\ni1,Yes\n"))
    code, _, err = run("analyse", "measure", *(keys if word == "K" else word for word in words))
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert stored(url) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instance_id,answer\ni1,Yes\n", "column 'key' is missing"),
        ("instance_id,key,category\ni1,Yes,a\ni1,No,b\n", "its rows differ in more than the key"),
        ("instance_id,key,answerable\ni1,Yes,perhaps\n", "is yes or no"),
        ("instance_id,key\n,Yes\n", "must not be empty"),
        ("instance_id,key\nother,Yes\n", "has a key for no instance"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused(
    run: Run, write: Write, url: str, text: str, said: str
) -> None:
    run("study", "import", str(write("r.csv", HEAD + "i1,b,,p,Yes,r1,m,yes\n")))
    code, _, err = run("analyse", "measure", "exact-match", "--keys", str(write("k.csv", text)))
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert stored(url) == {}
