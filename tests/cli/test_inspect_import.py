"""`medjury study import LOG` on logs that Inspect wrote (0.3.285), and on broken ones.

The logs come of `fixtures/inspect/notes_task.py` and, `jury.eval`, of our own export.
"""

import json
import math
import shutil
import zipfile
from pathlib import Path
from typing import Any

from kit.commands import figures
from kit.imported_runs import LOGS, SECRET, as_json, whole
from kit.studies import Run
from sqlalchemy import Engine, text

from data.rubric import read_rubric, rubric_toml

ONE = """name = "brief"
version = "1"
audience = "nurses"
gold = "never"
[scale]
min = 1
max = 5
[[criterion]]
name = "clarity"
question = "Is it clear?"
[criterion.anchors]
1 = "no"
2 = "hardly"
3 = "half"
4 = "mostly"
5 = "yes"
"""


def rows(engine: Engine, query: str) -> list[tuple[Any, ...]]:
    with engine.connect() as held:
        return [tuple(row) for row in held.execute(text(query))]


def test_a_log_brings_instances_responses_and_what_scorers_said(run: Run, engine: Engine) -> None:
    code, out, _ = run("study", "import", str(LOGS / "note_a.eval"))
    assert code == 0
    assert "3 responses to 3 new instances and 6 ratings imported" in out
    assert "not taken: clarity, includes" in " ".join(out.split())
    found = rows(engine, "select instance_id, context, prompt, reference from instance order by 1")
    assert found == [
        ("one", "Any fever? No.", "", "No fever."),
        ("three", "Cough? Yes. " * 20, "", None),
        ("two", "[system]\nYou are a nurse.\n\n[user]\nPain? Mild.", "", "Mild pain."),
    ]
    assert rows(engine, "select distinct model from authorship") == [("openai-api/ward/note-a",)]
    judged = rows(
        engine,
        "select i.instance_id, criterion, score, comment from rating join response r on "
        "r.id = response join instance i on i.id = r.instance join rater on rater.id = rater "
        "where handle = 'inspect.judge' and kind = 'juror' order by rating.id",
    )
    assert judged[:3] == [
        ("one", "accuracy", 4, "the dose is right"),
        ("one", "completeness", 3, ""),
        ("one", "clarity", 2.5, ""),
    ]
    assert len(judged) == 6


def test_an_unscored_sample_is_missing_with_its_reason_and_no_number(
    run: Run, engine: Engine
) -> None:
    told = figures(run, str(LOGS / "note_a.eval"))
    assert told["missing"] == {"inspect.judge": {"request_failed": 1}}
    assert rows(engine, "select status, reason from attempt") == [
        ("request_failed", "unscored in Inspect: grader_failed")
    ]


def test_importing_twice_changes_nothing_whatever_the_form_of_the_log(
    run: Run, tmp_path: Path
) -> None:
    figures(run, str(LOGS / "note_a.eval"))
    again = as_json(tmp_path, whole("note_a.eval"))
    packed = tmp_path / "older.eval"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        body = json.loads(again.read_text())
        for number, sample in enumerate(body.pop("samples")):
            archive.writestr(f"samples/{number}.json", json.dumps(sample))
        archive.writestr("header.json", json.dumps(body))
    for path in (LOGS / "note_a.eval", again, packed):
        told = figures(run, str(path))
        assert (told["responses"], told["ratings"], told["failures"]) == (0, 0, 0)
        assert (told["responses_unchanged"], told["ratings_unchanged"]) == (3, 6)


def test_a_log_that_inspect_wrote_as_json_is_read(run: Run) -> None:
    told = figures(run, str(LOGS / "note_a.json"))
    assert (told["responses"], told["ratings"]) == (3, 6)


def test_logs_of_several_models_join_on_the_sample_and_epochs_are_responses(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    for name in ("note_a.eval", "note_b_twice.eval"):
        shutil.copy(LOGS / name, tmp_path / name)
    told = figures(run, str(tmp_path))
    assert (told["instances"], told["responses"]) == (3, 9)
    counted = rows(engine, "select model, count(*) from authorship group by model order by model")
    assert counted == [("openai-api/ward/note-a", 3), ("openai-api/ward/note-b", 6)]
    assert rows(engine, "select distinct replicate from rating") == [(0,)]


def test_a_lone_number_rates_the_only_criterion_and_off_the_scale_is_no_score(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "brief").mkdir()
    (tmp_path / "brief" / "rubric.toml").write_text(ONE)
    (tmp_path / "brief" / "prompt.txt").write_text("<r>{{response}}</r> {{criteria}} {{schema}}")
    told = figures(run, str(LOGS / "note_a.eval"), "--rubric", str(tmp_path / "brief"))
    assert told["missing"] == {
        "inspect.criteria": {"out_of_range": 1},
        "inspect.judge": {"request_failed": 1},
    }
    assert told["ratings"] == 4


def test_jurors_of_our_own_scorer_come_in_each_by_name(run: Run, engine: Engine) -> None:
    told = figures(run, str(LOGS / "jury.eval"))
    assert told["logs"][0]["jurors"] == [
        {"name": "inspect.one", "model": "openai-api/medjury/m-one"},
        {"name": "inspect.two", "model": "anthropic/m-two"},
    ]
    assert told["missing"] == {"inspect.two": {"invalid_json": 1}}
    query = (
        "select handle, score, count(*) from rating join rater on rater.id = rater group by 1, 2 "
        "order by 1"
    )
    assert rows(engine, query) == [("inspect.one", 4, 6), ("inspect.two", 5, 3)]


def test_a_verdict_on_another_rubric_than_the_one_named_is_refused(
    run: Run, tmp_path: Path
) -> None:
    code, _, err = run("study", "import", str(LOGS / "jury.eval"), "--rubric", "aci_bench")
    assert (code, "rated on the rubric with the hash" in " ".join(err.split())) == (2, True)
    other = read_rubric("generic")
    (tmp_path / "rubric").mkdir()
    (tmp_path / "rubric" / "rubric.toml").write_text(rubric_toml(other))
    (tmp_path / "rubric" / "prompt.txt").write_text(other.prompt)
    told = figures(run, str(LOGS / "jury.eval"), "--rubric", str(tmp_path / "rubric"))
    assert told["logs"][0]["rubric_sha256"] == other.sha256


def test_a_run_that_ended_early_is_taken_as_far_as_it_went_and_said(
    run: Run, tmp_path: Path
) -> None:
    for status in ("error", "cancelled"):
        body = whole("note_a.eval") | {"status": status}
        body["samples"][0]["error"] = {"message": SECRET, "traceback": SECRET}
        code, out, _ = run("study", "import", str(as_json(tmp_path, body)), "--benchmark", status)
        assert code == 0
        assert f"ended with status {status}" in out
        assert "1 sample ended with an error" in out
        assert SECRET not in out


def test_a_log_without_scores_brings_responses_alone(run: Run, tmp_path: Path) -> None:
    body = whole("note_a.eval")
    for sample in body["samples"]:
        sample["scores"] = None
    code, out, _ = run("study", "import", str(as_json(tmp_path, body)))
    assert code == 0
    assert "no scorer rates a criterion" in out


def test_scores_that_are_no_finite_number_give_no_rating(run: Run, tmp_path: Path) -> None:
    odd: list[tuple[Any, str]] = [
        ({"accuracy": 4, "completeness": math.nan, "clarity": 3}, "invalid_json"),
        ({"accuracy": 4, "completeness": True, "clarity": 3}, "invalid_json"),
        ({"accuracy": 4, "completeness": None, "clarity": 3}, "missing_criterion"),
        ({"accuracy": 4, "completeness": 6, "clarity": 3}, "out_of_range"),
        ("NaN", "request_failed"),
    ]
    for number, (value, status) in enumerate(odd):
        body = whole("note_a.eval")
        for sample in body["samples"]:
            if sample["id"] == "one":
                sample["scores"]["judge"]["value"] = value
        told = figures(run, str(as_json(tmp_path, body)), "--benchmark", f"b{number}")
        found = told["missing"]["inspect.judge"]
        assert sum(found.values()) == 2
        assert found[status] >= 1
        assert told["ratings"] == 3
