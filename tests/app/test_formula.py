"""Names that a spreadsheet would compute: guarded alike in every file, and read back as they were."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.studies import RESPONSES, Run
from sqlalchemy import Engine

from annotate.draw import framed
from calibration.tables.spec import Group, Table
from data.files import cells
from data.importers.ratings import ExpertFile
from data.importers.table import TableFile
from data.safe_text import FORMULA, guarded, guarded_name, unguarded
from data.study.frames import ratings_frame

IDS = ["-5", "'-5", "-abc", "'-abc", "'x", "+1.5", "=1", "''=1", "5"]
HEAD = RESPONSES.splitlines()[0] + "\n"
Write = Callable[[str, str], Path]


@given(st.text("'=+-@\t\r05.a"))
def test_what_is_guarded_runs_nowhere_and_is_read_back(text: str) -> None:
    assert not guarded(text).startswith(FORMULA)
    assert unguarded(guarded(text)) == unguarded(guarded_name(text)) == text


def test_an_id_stands_in_every_csv_in_the_same_form() -> None:
    columns, _ = framed(Table("t", ("id",), (Group("", tuple((one,) for one in IDS)),)))
    exported = list(cells(["id"], [(one,) for one in IDS]))
    assert [[one] for one in columns["id"]] == exported
    assert len(set(columns["id"])) == len(IDS)
    assert columns["id"][0] == "-5"


def test_ids_that_differ_by_a_sign_keep_their_ratings_through_an_export(
    run: Run, engine: Engine, write: Write, tmp_path: Path
) -> None:
    rows = "".join(f"i{n},v,c,p,,{guarded(one)},m,t {n}\n" for n, one in enumerate(IDS))
    assert run("study", "import", str(write("r.csv", HEAD + rows)))[0] == 0
    scores = "".join(
        f"{guarded(one)},dr,clinician,clarity,{1 + n % 5}\n" for n, one in enumerate(IDS)
    )
    given = write("s.csv", "response_id,rater,kind,criterion,score\n" + scores)
    assert run("rate", "ratings", str(given))[0] == 0
    held = ratings_frame(engine)
    assert dict(zip(held["response_id"], held["score"], strict=True)) == {
        one: 1 + n % 5 for n, one in enumerate(IDS)
    }
    assert run("share", "export", str(tmp_path / "out"))[0] == 0
    code, _, err = run("rate", "ratings", str(tmp_path / "out" / "ratings.csv"))
    assert code == 0, err
    assert ratings_frame(engine)["response_id"].tolist() == held["response_id"].tolist()


@pytest.mark.parametrize("head", ["response_id,criterion,score", "response_id,clarity"])
def test_expert_scores_find_a_guarded_id(write: Write, head: str) -> None:
    row = "'-abc,clarity,3\n" if "criterion" in head else "'-abc,3\n"
    [found] = ExpertFile(TableFile(write("e.csv", f"{head}\n{row}")))
    assert (found.response_id, found.criterion) == ("-abc", "clarity")
