"""Inspect's export: a scorer that Inspect itself runs, asking the same and reading the same."""

import ast
import json
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from kit.exported_panels import RECORD, ROWS, TRICKY, evaluated, export, panel
from kit.exported_panels import inspect as inspect
from kit.hostile_corpus import trap
from kit.jurors import Do, Seen, Stub, verdict
from kit.studies import Run
from sqlalchemy import Engine, text

from data.card import Card
from data.errors import BadInput
from data.importers.inspect_logs import read_log
from data.rubric import read_rubric
from jury.exports.bundle import Export, ExportRow, write_folder
from jury.exports.scorers import inspect_model
from jury.exports.scorers import write_inspect as write
from jury.panel import Juror, read_panel

CRITERIA = ("accuracy", "completeness", "clarity", "composite")


def exported(rubric: str = "generic") -> dict[str, str]:
    return write(Export(read_rubric(rubric), read_panel("current"), ROWS, RECORD))


def test_the_files_are_python_that_compiles_and_samples_with_their_texts() -> None:
    files = exported()
    for name, body in files.items():
        if name.endswith(".py"):
            ast.parse(body)
    samples = json.loads(files["samples.json"])
    assert [one["id"] for one in samples] == ["visits/i1", "visits/i1#2", "visits/i2"]
    assert [one["first"] for one in samples] == [True, False, True]
    assert samples[2]["context"] == TRICKY
    assert samples[2]["reference"] is None


def test_an_id_that_would_lead_out_of_inspects_log_is_a_number_there(tmp_path: Path) -> None:
    with trap(tmp_path) as laid:
        ids = [f"{one}{rest}" for one in laid.names() for rest in ("", "/1")]
    rows = tuple(ExportRow(one, "Pain.", "Write.", None, None) for one in [*ids, "b/i 1.a", ids[0]])
    files = write(Export(read_rubric("generic"), read_panel("current"), rows, RECORD))
    found = [one["id"] for one in json.loads(files["samples.json"])]
    assert len({*found}) == len(rows)
    assert found[-2:] == ["b/i 1.a", f"{found[0]}#2"]
    for one in found:
        path = PurePosixPath(one.replace("\\", "/"))
        assert one.isprintable()
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert ":" not in one


def test_the_rubric_goes_along_so_that_its_ratings_can_come_back(tmp_path: Path) -> None:
    write_folder(tmp_path / "out", exported("aci_bench"))
    found = read_rubric(str(tmp_path / "out" / "rubric"))
    assert found.sha256 == read_rubric("aci_bench").sha256


def test_jurors_are_named_as_inspect_names_models() -> None:
    names = {one.name: inspect_model(one)["model"] for one in read_panel("current").juror}
    for one in read_panel("current").juror:
        assert names[one.name].endswith(f"/{one.model}")
    assert {name.split("/")[0] for name in names.values()} == {"openai", "anthropic", "openai-api"}


def test_no_key_is_in_a_file() -> None:
    told = json.loads(exported()["medjury_models.json"])
    assert all(set(one) == {"model", "base_url", "args"} for one in told.values())


def test_a_simulated_juror_cannot_be_taken_along() -> None:
    with pytest.raises(BadInput, match="simulated"):
        write(Export(read_rubric("generic"), read_panel("simulated"), (), RECORD))


def test_a_file_server_of_ones_own_is_asked_at_its_own_address() -> None:
    told = {"provider": "openai", "family": "a", "base_url": "http://127.0.0.1:9/v1"}
    one = Juror.model_validate(told | {"name": "ward", "model": "org/m"})
    assert inspect_model(one)["model"] == "openai-api/medjury/org/m"
    assert inspect_model(one)["base_url"] == "http://127.0.0.1:9/v1"


def samples_of(log: Path) -> dict[str, dict[str, Any]]:
    return {one["id"]: one for one in read_log(log)[1]}


def question(context: str, reference: str | None, response: str) -> str:
    return read_rubric("generic").render(Card("", context, "Write.", response, reference=reference))


@pytest.mark.slow
@pytest.mark.timeout(900)  # the installation counts
def test_inspect_asks_the_jurys_own_question_and_leaves_what_is_not_rated_unscored(
    inspect: str, tmp_path: Path
) -> None:
    def answer(seen: Seen) -> Do:
        points = 4 if seen.model == "m-one" else 5
        bad = "Another note." in seen.prompt and seen.model == "m-two"
        return Do(text=verdict(seen, 9 if bad else points))

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        log = evaluated(inspect, tmp_path, stub, "--model", "none", "-T", "stored=true")
    texts = [(row.context, row.reference, row.response or "") for row in ROWS]
    wanted = Counter(question(*one) for one in texts)
    wanted[question(*texts[0])] += 1
    wanted[question(*texts[1])] += 2  # the second juror was asked once more
    wanted[question(*texts[2])] += 1
    assert Counter(seen.prompt for seen in stub.seen) == wanted
    found = samples_of(log)
    for name in ("visits/i1", "visits/i2"):
        assert found[name]["scores"]["medjury"]["value"] == dict.fromkeys(CRITERIA, 4.5)
    failed = found["visits/i1#2"]["scores"]["medjury"]
    assert failed["value"] != failed["value"]  # NaN: Inspect's own sign for unscored
    assert (
        "NOT RATED: two: accuracy: score 9 is not a whole number on the scale 1-5"
        in (failed["explanation"])
    )
    told = read_log(log)[0]["results"]["scores"]
    assert {one["name"]: one["metrics"]["mean"]["value"] for one in told} == (
        dict.fromkeys(CRITERIA, 4.5)
    )
    assert {(one["scored_samples"], one["unscored_samples"]) for one in told} == {(2, 1)}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_import_of_its_log_gives_the_same_numbers(
    inspect: str, tmp_path: Path, run: Run, engine: Engine
) -> None:
    def answer(seen: Seen) -> Do:
        if seen.model == "m-new":
            return Do(text=f"A note of {len(seen.prompt)} signs.")
        return Do(text=verdict(seen, 2 if seen.model == "m-one" else 5))

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        log = evaluated(inspect, tmp_path, stub, "--model", "openai-api/ward/m-new")
    code, out, err = run("study", "import", str(log), "--json", "-")
    assert code == 0, err
    told = json.loads(out)
    assert (told["responses"], told["ratings"], told["failures"]) == (2, 12, 0)
    means = [one["scores"]["medjury"]["value"]["composite"] for one in samples_of(log).values()]
    assert means == [3.5, 3.5]
    query = (
        "select handle, score, count(*) from rating join rater on rater.id = rater group by 1, 2"
    )
    with engine.connect() as held:
        points = {(who, score): number for who, score, number in held.execute(text(query))}
    assert points == {("one", 2.0): 6, ("two", 5.0): 6}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_is_scored_where_no_juror_can_be_asked(inspect: str, tmp_path: Path) -> None:
    with Stub(lambda _: Do(status=401)) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        log = evaluated(inspect, tmp_path, stub, "--model", "none", "-T", "stored=true")
    for one in samples_of(log).values():
        score = one["scores"]["medjury"]
        assert score["value"] != score["value"]
        jurors = score["metadata"]["medjury"]["jurors"]
        assert {told["status"] for told in jurors.values()} == {"request_failed"}
    head, _ = read_log(log)
    numbers = [
        metric["value"]
        for one in head["results"]["scores"]
        for metric in one["metrics"].values()
        if metric["value"] == metric["value"]
    ]
    assert numbers == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_server_that_knows_no_schema_is_asked_without_one(inspect: str, tmp_path: Path) -> None:
    def answer(seen: Seen) -> Do:
        return Do(status=400) if seen.form != "text" else Do()

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        log = evaluated(inspect, tmp_path, stub, "--model", "none", "-T", "stored=true")
    for one in samples_of(log).values():
        assert one["scores"]["medjury"]["value"] == dict.fromkeys(CRITERIA, 3)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_openai_is_told_to_keep_no_text(inspect: str, tmp_path: Path) -> None:
    with Stub() as stub:
        files = dict(write(export(panel(stub))))
        settings = json.loads(files["medjury_jury.json"])
        for bodies in settings["jurors"][0]["bodies"].values():
            for body in bodies.values():
                body["store"] = False  # as if the loopback were OpenAI's own host
        models = json.loads(files["medjury_models.json"])
        models["one"]["model"] = "openai/gpt-4.1"
        files |= {"medjury_jury.json": json.dumps(settings)}
        files |= {"medjury_models.json": json.dumps(models)}
        write_folder(tmp_path / "out", files)
        evaluated(inspect, tmp_path, stub, "--model", "none", "-T", "stored=true")
    asked = [seen for seen in stub.seen if seen.model == "gpt-4.1"]
    assert {seen.path for seen in asked} == {"/v1/chat/completions"}
    assert [seen.body["store"] for seen in asked] == [False, False, False]
