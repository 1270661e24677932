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
from kit.hostile_corpus import trap
from kit.jurors import Do, Stub, verdict

from data.card import Card
from data.errors import BadInput
from data.rubric import read_rubric
from jury.exports.bundle import Export, ExportRow, write_folder
from jury.exports.scorers import write_promptfoo as write
from jury.panel import read_panel


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
    assert cases == [{"vars": {"medjury_instance": place}} for place in (0, 1)]
    instances = json.loads(files["instances.json"])
    assert [one["instance_id"] for one in instances] == ["visits/i1", "visits/i2"]
    assert found["nunjucksFilters"]["medjury_ask"] in files
    assert "not validated" in files["promptfooconfig.yaml"]
    assert "medjury_jury.py" in files
    told = json.loads(files["medjury_jury.json"])["jurors"][0]
    assert told["api_key_env"] == "OPENAI_API_KEY"


def test_no_word_of_a_study_stands_where_promptfoo_reads_templates_files_or_programs(
    tmp_path: Path,
) -> None:
    def read_by_promptfoo(*names: str) -> list[str]:
        rows = tuple(ExportRow(f"{one}/1", one, one, one, None, one, one, one) for one in names)
        files = write(Export(read_rubric("generic"), read_panel("current"), rows, RECORD))
        return [files[name] for name in ("promptfooconfig.yaml", "tests.json", "prompt.txt")]

    with trap(tmp_path) as laid:
        hostile = laid.texts()
    assert read_by_promptfoo(*hostile) == read_by_promptfoo(*map(str, range(len(hostile))))


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
    outputs = {one["vars"]["medjury_instance"]: one["response"]["output"] for one in results}
    wanted = {
        rubric.render(Card("", row.context, row.prompt, outputs[place], row.reference))
        for place, row in enumerate(ROWS[1:])
    }
    assert set(asked_with) == wanted
    assert {place: json.loads(one) for place, one in outputs.items()} == {
        place: [{"role": "user", "content": f"{row.context}\n\n{row.prompt}"}]
        for place, row in enumerate(ROWS[1:])
    }
