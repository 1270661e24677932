"""Exports of a hostile study in the tools that they are for: they read them, and do nothing else.

The tools are installed by the fixtures, or named by variables, as in `test_way_back.py`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile_corpus import SECRET, VALUE, VARIABLE, Trap, trap
from stub_llm import Do, Seen, Stub, verdict
from test_promptfoo import RECORD, panel
from test_promptfoo import promptfoo as promptfoo

from data.card import Card, ExportRow
from data.rubric import read_rubric
from jury.exports.export import Export, write_folder
from jury.exports.promptfoo import write as write_promptfoo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]  # the installation counts
RUBRIC = read_rubric("generic")
UNDER_TEST = "model"


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
