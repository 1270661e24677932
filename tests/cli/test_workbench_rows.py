"""What the workbench compares after a write is what it would compare had it read everything anew."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from kit.studies import AUTHOR, HEAD, Run, rated
from sqlalchemy import Engine

from data.database import open_study
from data.person import OPERATOR
from data.rubric import read_rubric
from data.study.compare import Chosen, compared
from data.study.steering import keep_version

JURORS = ("gpt", "llama")

CHOSEN = (
    Chosen(),
    Chosen(criterion="clarity"),
    Chosen(jurors=("gpt",)),
    Chosen(benchmark="visits", clinician="clinician 1"),
    Chosen(measure="z"),
    Chosen(jury_alone=False),
    Chosen(jury_alone=False, criterion="accuracy", benchmark="visits"),
)


def scored(folder: Path, kind: str, rater: str, response: str, scores: str = "5,1,5") -> str:
    path = folder / "one.csv"
    head = "response_id,rater,kind,accuracy,completeness,clarity"
    path.write_text(f"{head}\n{response},{rater},{kind},{scores}")
    return str(path)


def rate(*given: str) -> Callable[[Engine, Run, Path], object]:
    return lambda _, run, at: run("rate", "ratings", scored(at, *given))


WRITES: dict[str, Callable[[Engine, Run, Path], object]] = {
    "a mind is changed": rate("clinician", "dr-a", "r1"),
    "a new clinician": rate("clinician", "dr-n", "r2"),
    "a juror again": rate("juror", "gpt", "r3"),
    "a new juror": rate("juror", "claude", "r3"),
    "more responses": lambda _, run, at: rated(run, at, JURORS, n=3, first=40),
    "another benchmark": lambda _, run, at: rated(run, at, JURORS, "notes", n=3, first=60),
    "half a rating": rate("juror", "gpt", "r4", "5,,"),
    "nothing of it": lambda study, _, __: keep_version(
        OPERATOR, study, read_rubric("generic").model_copy(update={"version": "2"})
    ),
}


@pytest.mark.parametrize("write", WRITES)
def test_after_a_write_the_rows_are_those_of_a_server_that_reads_all(engine, run, tmp_path, write):
    rated(run, tmp_path, JURORS, n=9)
    before = [compared(OPERATOR, engine, chosen) for chosen in CHOSEN]
    WRITES[write](engine, run, tmp_path)
    fresh = open_study(engine.url)
    for chosen in CHOSEN:
        assert compared(OPERATOR, engine, chosen) == compared(OPERATOR, fresh, chosen), chosen
    assert all(before)
    fresh.dispose()


@pytest.mark.parametrize("chosen", CHOSEN)
def test_without_what_only_jurors_scored_the_other_rows_are_the_same(engine, run, tmp_path, chosen):
    rated(run, tmp_path, JURORS, n=9)
    (tmp_path / "more.csv").write_text(f"{HEAD}\ni61,notes,Pain.,Write.,,r61,{AUTHOR},Words.")
    assert run("study", "import", str(tmp_path / "more.csv"))[0] == 0
    for juror in (*JURORS, "mute"):  # the last is heard there alone
        assert run("rate", "ratings", scored(tmp_path, "juror", juror, "r61"))[0] == 0
    every = compared(OPERATOR, engine, replace(chosen, jury_alone=True))
    found = compared(OPERATOR, engine, replace(chosen, jury_alone=False))
    assert [*found] == [row for row in every if row.first.scored]
    assert found
    assert any(row.second.of == 3 for row in every) == (not chosen.benchmark and not chosen.jurors)
