"""Exports of a hostile study in the tools that they are for: they read them, and do nothing else.

The tools are installed by the fixtures, or named by variables, as in `test_way_back.py`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from kit.exported_panels import MLFLOW_RUN, RECORD, evaluated, panel
from kit.exported_panels import helm_run as helm_run
from kit.exported_panels import inspect as inspect
from kit.exported_panels import promptfoo as promptfoo
from kit.exported_panels import python as python
from kit.hostile_corpus import SECRET, VALUE, VARIABLE, Trap, trap
from kit.jurors import Do, Seen, Stub, verdict

from data.card import Card, ExportRow
from data.errors import BadInput
from data.importers.inspect_logs import read_log
from data.rubric import read_rubric
from jury.exports.bundle import Export, write_folder
from jury.exports.helm import question as helm_question
from jury.exports.helm import table
from jury.exports.helm import write as write_helm
from jury.exports.scorers import write_inspect, write_mlflow, write_promptfoo
from jury.panel import Panel

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # the installation counts
RUBRIC = read_rubric("generic")
UNDER_TEST = "model"
JURORS = {
    "..": "m\u2028one\x7f\x85 #{{x}}: 'q' \"d\" \\ \U0001f600\t\u202e",
    "-": "!!python/object/apply:os.system",
}


@pytest.fixture
def laid(tmp_path: Path) -> Iterator[Trap]:
    with trap(tmp_path) as laid:
        yield laid


def rows(laid: Trap) -> tuple[ExportRow, ...]:
    """Return an instance for each hostile text: it is its name and every text; some lack a context."""
    return tuple(
        ExportRow(
            f"{text}/{place}",
            text if place % 3 else "",
            text if place % 2 or not place % 3 else "Write.",
            text,
            text if text.strip() else None,
            text,
            text,
        )
        for place, text in enumerate(laid.texts())
    )


def as_helm_takes_it(row: ExportRow) -> ExportRow:
    """Return an instance, without its reference where HELM would read that as a number or missing."""
    try:
        table(RUBRIC, helm_question(RUBRIC).task, [row])
    except BadInput:
        return replace(row, reference=None)
    return row


def asked_model(row: ExportRow) -> str:
    return "\n\n".join(one for one in (row.context, row.prompt) if one.strip())


def question(row: ExportRow, response: str) -> str:
    texts = (row.context, row.prompt, response)
    return RUBRIC.render(Card("", *texts, reference=row.reference, checklist=row.checklist))


def answer(seen: Seen) -> Do:
    """Write what was asked back, word for word, if the model under test is asked; else rate."""
    return Do(text=seen.prompt if seen.model == UNDER_TEST else verdict(seen, 4))


def test_promptfoo_reads_every_text_as_it_is_and_opens_and_runs_nothing(
    promptfoo: str, tmp_path: Path, laid: Trap
) -> None:
    home = {"PROMPTFOO_CONFIG_DIR": str(tmp_path / "home"), "PROMPTFOO_DISABLE_TELEMETRY": "1"}
    home |= {"PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_PYTHON": sys.executable, VARIABLE: VALUE}
    given = rows(laid)
    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write_promptfoo(Export(RUBRIC, panel(stub), given, RECORD)))
        config = tmp_path / "out" / "promptfooconfig.yaml"
        served = json.dumps({"apiBaseUrl": stub.openai_url, "apiKey": "none"})
        provider = f"- id: openai:chat:{UNDER_TEST}\n    config: {served} #"
        config.write_text(config.read_text("utf-8").replace("- echo", provider), "utf-8")
        done = subprocess.run(
            [promptfoo, "eval", "--no-cache", "-o", "found.json", "-c", config.name],
            cwd=tmp_path / "out",
            env=os.environ | home,
            capture_output=True,
            text=True,
            timeout=400,
        )
        told = done.stdout[-3000:] + done.stderr[-3000:]
        asked = sorted(one.prompt for one in stub.seen if one.model == UNDER_TEST)
        turns = {len(one.body["messages"]) for one in stub.seen}
        heard = sorted(one.prompt for one in stub.seen if one.model != UNDER_TEST)
    assert laid.sprung == [], told
    assert asked == sorted(map(asked_model, given)), told
    assert turns == {1}
    assert heard == sorted(2 * [question(one, asked_model(one)) for one in given])
    found = (tmp_path / "out" / "found.json").read_text("utf-8")
    assert SECRET not in found
    assert VALUE not in found
    for one in json.loads(found)["results"]["results"]:
        assert one["namedScores"]["composite"] == 4


def test_inspect_reads_every_text_as_it_is_and_opens_and_runs_nothing(
    inspect: str, tmp_path: Path, laid: Trap
) -> None:
    given = rows(laid)
    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write_inspect(Export(RUBRIC, panel(stub), given, RECORD)))
        log = evaluated(inspect, tmp_path, stub, "--model", f"openai-api/ward/{UNDER_TEST}")
        asked = sorted(one.prompt for one in stub.seen if one.model == UNDER_TEST)
        heard = sorted(one.prompt for one in stub.seen if one.model != UNDER_TEST)
    assert laid.sprung == []
    assert asked == sorted(map(asked_model, given))
    assert heard == sorted(2 * [question(one, asked_model(one)) for one in given])
    samples = [*read_log(log)[1]]
    assert sorted(one["input"] for one in samples) == sorted(map(asked_model, given))
    assert {one["scores"]["medjury"]["value"]["composite"] for one in samples} == {4}


def test_mlflow_reads_every_text_as_it_is_and_opens_and_runs_nothing(
    python: str, tmp_path: Path, laid: Trap
) -> None:
    given = rows(laid)
    with Stub(answer) as stub:
        write_folder(tmp_path / "out", write_mlflow(Export(RUBRIC, panel(stub), given, RECORD)))
        done = subprocess.run(
            [python, "-c", MLFLOW_RUN, str(tmp_path / "out"), str(tmp_path / "mlflow.db")],
            cwd=tmp_path,
            env=os.environ | {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true"},
            capture_output=True,
            text=True,
            timeout=900,
        )
        heard = sorted(one.prompt for one in stub.seen)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert laid.sprung == []
    rated = [one for one in given if one.response]
    assert heard == sorted(2 * [question(one, one.response or "") for one in rated])
    found = json.loads(done.stdout.split("FOUND")[1].splitlines()[0])
    assert found["metrics"]["composite/mean"] == 4


def test_helm_reads_every_text_as_it_is_and_opens_and_runs_nothing(
    helm_run: str, tmp_path: Path, laid: Trap
) -> None:
    given = tuple(map(as_helm_takes_it, rows(laid)))
    with Stub(answer) as stub:
        one = {"provider": "openai", "family": "=1+1", "base_url": stub.openai_url}
        jurors = [one | {"name": name, "model": model} for name, model in JURORS.items()]
        seated = Panel.model_validate({"name": "..", "juror": jurors})
        write_folder(tmp_path / "out", write_helm(Export(RUBRIC, seated, given, RECORD)))
        place = tmp_path / "out" / "prod_env" / "model_deployments.yaml"
        place.write_text(
            place.read_text("utf-8").replace("http://127.0.0.1:8000/v1", stub.openai_url)
        )
        asked = [helm_run, "--plugins", "medjury_helm.py", "--suite", "s", "-n", "1"]
        asked += ["--conf-paths", "medjury-generic-as-validated.conf", "--local-path", "prod_env"]
        done = subprocess.run(
            [*asked, "--max-eval-instances", "1000"],
            cwd=tmp_path / "out",
            env=os.environ | {VARIABLE: VALUE},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        told = [one.prompt for one in stub.seen if one.model == UNDER_TEST]
        heard = sorted((one.model, one.prompt) for one in stub.seen if one.model != UNDER_TEST)
    assert laid.sprung == []
    assert heard == sorted(
        (model, question(one, text))
        for one, text in zip(given, told, strict=True)
        for model in JURORS.values()
    )
