"""One trial of medjury on a fresh copy of a study: PORT CALLS CONCURRENCY FOLDER.

With `make` in the place of PORT it makes the study, in a process of its own.
"""

import json
import shutil
import sys
import time
import uuid
from pathlib import Path

import openai  # noqa: F401 loaded before the clock starts, as by the bare client
from peak import peak_mb

from data.database import open_study
from jury.panel import Panel
from jury.run import run_panel

STUDY = "study.db"
CONTEXT = "The patient reports pain in the left knee since May, worse on stairs. " * 60
RESPONSE = "Left knee pain since May, worse on stairs; no fever; ibuprofen as needed. " * 12


def make(calls: int, folder: Path) -> None:
    """Make the study that every trial copies."""
    from data.rubric import read_rubric
    from data.study.responses import import_responses

    engine = open_study(f"sqlite:///{folder / STUDY}", create=True)
    import_responses(engine, [_row(n) for n in range(calls // 3)], lambda _: read_rubric("generic"))
    engine.dispose()


def main(port: int, calls: int, concurrency: int, folder: Path) -> None:
    """Run and print the seconds from making the clients to the last verdict stored."""
    copy = folder / f"{uuid.uuid4().hex}.db"
    shutil.copy(folder / STUDY, copy)
    panel = Panel.model_validate({"name": "stub", "juror": [_juror(n, port) for n in "abc"]})
    engine = open_study(f"sqlite:///{copy}")
    began = time.perf_counter()
    result = run_panel(engine, panel, concurrency=concurrency)
    span = time.perf_counter() - began
    if (result.rated, result.missing) != (calls // 3 * 3, 0):
        raise SystemExit(f"rated {result.rated}, missing {result.missing}")
    print(json.dumps({"span": span, "mb": peak_mb()}))


def _row(number: int):  # type: ignore[no-untyped-def]
    from data.importers.rows import Origin, ResponseRow

    return ResponseRow(
        origin=Origin("made up", number),
        instance_id=f"i{number}",
        benchmark="made_up",
        context=f"{CONTEXT}{number}",
        prompt="Write the note.",
        reference=None,
        response_id=f"r{number}",
        model="m",
        response=RESPONSE,
    )


def _juror(name: str, port: int) -> dict[str, object]:
    return {
        "name": name,
        "provider": "openai",
        "model": "stub",
        "family": name,
        "base_url": f"http://127.0.0.1:{port}/v1",
        "api_key_env": "JUROR_KEY",
        "schema": "json_schema",
        "usd_per_million_in": 1.0,
        "usd_per_million_out": 2.0,
    }


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(int(sys.argv[2]), Path(sys.argv[4]))
    else:
        main(*(int(one) for one in sys.argv[1:4]), Path(sys.argv[4]))  # type: ignore[misc]
