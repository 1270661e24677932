"""A watch routes outputs by a kept rule: decisions in one file, and all is read once a juror is another."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from kit.ward import events, folder, lines, made, names
from kit.ward_study import fill
from sqlalchemy import Engine, text

from annotate.watching.cycle import Watch
from annotate.watching.drops import DONE, REFUSED
from annotate.watching.routing import ROUTED, ROUTES
from data.errors import BadInput, Unknown
from data.queries.record import verify

__all__ = ["folder", "made"]
KEEP = ("route", "--at-most", "2", "--bound", "0.2", "--keep", "ward")
WARD = {"routing": {"rule": "ward"}, "agreement": {"reps": 100}, "sample": {"share": 0.0}}


def routes(folder: Path) -> dict[str, tuple[str, str]]:
    rows = csv.DictReader((folder / ROUTED / ROUTES).read_text().splitlines())
    return {row["response_id"]: (row["decision"], row["why"]) for row in rows}


def score(run: Run, tmp_path: Path, **points: int) -> None:
    rows = ["response_id,rater,kind,accuracy,completeness,clarity"]
    for name, given in points.items():
        rows += [f"{name},{juror},juror,{given},{given},{given}" for juror in ("gpt", "llama")]
    (tmp_path / "later.csv").write_text("\n".join(rows))
    assert run("ratings", str(tmp_path / "later.csv"))[0] == 0


def test_outputs_are_read_until_the_jury_scored_them_and_all_are_once_a_juror_is_another(
    run: Run, made: Callable[..., Watch], folder: Path, engine: Engine, tmp_path: Path
) -> None:
    fill(run, tmp_path)
    assert run(*KEEP)[0] == 0
    watch = made(**WARD)
    (folder / "new.csv").write_text(lines(900, 2))
    watch.look()
    assert {routes(folder)[name] for name in ("r900", "r901")} == {("read", "not_scored")}

    score(run, tmp_path, r900=5, r901=1)
    watch.look()
    watch.look()
    found = routes(folder)
    assert (found["r900"], found["r901"][0]) == (("pass", "under_threshold"), "read")
    assert len(found) == 202
    told = [line for line in events(tmp_path) if line["event"] == "routed"]
    assert len(told) == 2, "what is known is not written again"
    assert told[-1]["passed"] + told[-1]["read"] == 202
    assert names(folder) == [DONE, REFUSED, ROUTED]
    assert "secret" not in (folder / ROUTED / ROUTES).read_text() + json.dumps(told)
    assert verify(engine).findings == ()

    with engine.begin() as connection:
        connection.execute(
            text("UPDATE rater SET profile = '{\"model\": \"x\"}' WHERE handle = 'gpt'")
        )
    made(**WARD).look()
    assert {*routes(folder).values()} == {("read", "other_juror")}


def test_a_rule_that_is_not_kept_or_rests_on_simulated_raters_is_refused_at_the_start(
    run: Run, made: Callable[..., Watch], folder: Path, engine: Engine, tmp_path: Path
) -> None:
    fill(run, tmp_path)
    with pytest.raises(Unknown, match="no routing rule ward"):
        made(**WARD)
    with engine.begin() as connection:
        connection.execute(text("UPDATE rater SET simulated = TRUE WHERE kind = 'juror'"))
    assert run(*KEEP)[0] == 0
    with pytest.raises(BadInput, match="simulated raters"):
        made(**WARD)
    assert names(folder) == [DONE, REFUSED]
