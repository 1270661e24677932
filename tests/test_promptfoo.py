"""promptfoo's export: the same question, the same reading of answers, and promptfoo takes it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from kit.exported_panels import RECORD, ROWS, export, panel
from kit.exported_panels import promptfoo as promptfoo
from kit.jurors import Do, Stub, verdict

from data.card import Card
from data.errors import BadInput
from data.rubric import read_rubric
from jury.exports.export import write_folder
from jury.exports.promptfoo import write
from jury.panel import read_panel

RECORD |= {"protocol": None, "decision": {"kind": "no_protocol"}}
RECORD |= dict.fromkeys(("n_responses", "n_instances", "n_clinicians", "reps", "seed"), 0)
RECORD |= {"clinicians_per_response": 0.0, "method": "paper", "version": "0", "made": ""}
RECORD |= {"juries_tried": 0, "sha256": {}}


def test_the_assertion_asks_every_juror_and_gives_points_a_criterion(tmp_path: Path) -> None:
    with Stub(lambda seen: Do(text=verdict(seen, 5 if seen.model == "m-one" else 2))) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        found = _asserted(tmp_path / "out", {"vars": {"context": "Pain.", "prompt": "Write."}})
    assert found["namedScores"] == dict.fromkeys(
        ("accuracy", "completeness", "clarity", "composite"), 3.5
    )
    assert (found["score"], found["pass"]) == (0.625, True)
    assert "not validated" in found["reason"]


def test_a_juror_without_a_verdict_leaves_no_score_at_all(tmp_path: Path) -> None:
    with Stub(lambda seen: Do(text="seven" if seen.model == "m-two" else verdict(seen))) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        found = _asserted(tmp_path / "out", {"vars": {}, "config": {"pass_at": 1}})
    assert found == {
        "pass": False,
        "score": 0,
        "reason": "NOT RATED: two: the answer holds no JSON object",
    }


def _asserted(folder: Path, context: dict[str, Any]) -> dict[str, Any]:
    """Return what the assertion gives in a Python of its own, as promptfoo starts it."""
    code = (
        "import json, sys; sys.path.insert(0, sys.argv[1]); import medjury_assert as a;"
        "print(json.dumps(a.get_assert('A note.', json.loads(sys.argv[2]))))"
    )
    asked = [sys.executable, "-I", "-c", code, str(folder), json.dumps(context)]
    done = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_configuration_names_files_that_are_there_and_no_key(tmp_path: Path) -> None:
    files = write(export(read_panel("current")))
    found = yaml.safe_load(files["promptfooconfig.yaml"])
    check = found["defaultTest"]["assert"][0]
    assert (check["type"], check["metric"]) == ("python", "jury")
    for named in (check["value"], found["tests"], *found["prompts"]):
        assert named.removeprefix("file://") in files
    cases = json.loads(files["tests.json"])
    assert [one["vars"]["instance_id"] for one in cases] == ["visits/i1", "visits/i2"]
    assert "not validated" in files["promptfooconfig.yaml"]
    assert "medjury_engine/jury/parse.py" in files
    told = json.loads(files["medjury_jury.json"])["jurors"][0]
    assert told["api_key_env"] == "OPENAI_API_KEY"


def test_a_simulated_jury_is_refused_since_no_tool_can_ask_it() -> None:
    with pytest.raises(BadInput, match="simulated, and no other tool"):
        write(export(read_panel("simulated")))
    with pytest.raises(BadInput, match='claude-vertex is asked at provider "vertex"'):
        write(export(read_panel("vertex")))


@pytest.mark.slow
@pytest.mark.timeout(900)  # the installation counts
def test_promptfoo_itself_takes_the_configuration_and_shows_the_points(
    promptfoo: str, tmp_path: Path
) -> None:
    home = {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"), "PROMPTFOO_DISABLE_TELEMETRY": "1"}
    home |= {"PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PYTHON": sys.executable}
    asked_with: list[str] = []

    def answer(seen: Any) -> Do:
        asked_with.append(seen.prompt)
        return Do(text=verdict(seen, 4))

    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write(export(panel(stub))))
        for command in (("validate", "-c"), ("eval", "--no-cache", "-o", "found.json", "-c")):
            done = subprocess.run(
                [promptfoo, *command, "promptfooconfig.yaml"],
                cwd=tmp_path / "out",
                env=os.environ | home,
                capture_output=True,
                text=True,
                timeout=240,
            )
            assert done.returncode == 0, done.stdout + done.stderr
    results = json.loads((tmp_path / "out" / "found.json").read_text("utf-8"))["results"]["results"]
    assert len(results) == 2
    for one in results:
        assert one["namedScores"] == {"jury": 0.75} | dict.fromkeys(
            ("accuracy", "completeness", "clarity", "composite"), 4
        )
    rubric = read_rubric("generic")
    outputs = {one["vars"]["instance_id"]: one["response"]["output"] for one in results}
    wanted = {
        rubric.render(Card("", row.context, row.prompt, outputs[row.instance_id], row.reference))
        for row in ROWS
    }
    assert set(asked_with) == wanted
    assert outputs == {row.instance_id: f"{row.context}\n\n{row.prompt}" for row in ROWS}
