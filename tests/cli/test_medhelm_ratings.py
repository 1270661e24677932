"""`medjury rate ratings FILE --format medhelm`: clinicians' ratings in MedHELM's layout, without names.

All rows and names are made up.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kit.studies import Run
from kit.study_place import all_rows
from sqlalchemy import Engine, text

from data.importers.medhelm_ratings import plain_name, pseudonym
from data.study.frames import ratings_frame
from data.study.standing import benchmarks

RESPONSES = """instance_id,benchmark,context,prompt,model,response
id1,aci_bench,Any fever? No.,Write the note.,openai/gpt-4o-2024-05-13,No fever.
id2,aci_bench,Pain? Mild.,Write the note.,google/gemini-1.5-pro-001,Mild pain.
id1,medi_qa,What helps?,,openai/gpt-4o-2024-05-13,Rest.
"""
COLUMNS = (
    "username,specialty,team,entry_id,instance_id,dataset_name,model_key,user_label,"
    "accuracy,completeness,clarity"
)
ROWS = (
    "Ann Marlow,Cardiology,A,1,id1,aci_bench,openai_gpt-4o-2024-05-13,x,5,4,5",
    "Ben Quist,Surgery,A,2,id1,aci_bench,openai_gpt-4o-2024-05-13,x,3,,4",
    "Ann Marlow,Cardiology,A,3,id2,aci-bench,gemini-1.5-pro-001,x,2,2,3",
    "Cy Dorn,Surgery,B,4,id9,mtsamples_replicate,openai_gpt-4o-2024-05-13,x,1,1,1",
    "Ben Quist,Surgery,A,5,id2,aci_bench,openai_gpt-4o-2024-05-13,x,1,1,1",
    "Cy Dorn,Surgery,B,6,id1,medi_qa,openai_gpt-4o-2024-05-13,x,4,4,4",
)
CRITERIA = ("accuracy", "completeness", "clarity")
NAMES = ("Marlow", "Quist", "Dorn", "marlow", "quist")
Write = Callable[[str, str], Path]


def table(rows: tuple[str, ...] = ROWS, columns: str = COLUMNS) -> str:
    return "\n".join([columns, *rows]) + "\n"


def with_llm(scores: tuple[str, ...], rows: tuple[str, ...] = ROWS[:2]) -> str:
    columns = COLUMNS + ",llm_accuracy,llm_completeness,llm_clarity"
    return table(tuple(f"{row},{own}" for row, own in zip(rows, scores, strict=True)), columns)


@pytest.fixture
def given(run: Run, write: Write) -> Run:
    code, _, err = run("study", "import", str(write("responses.csv", RESPONSES)))
    assert code == 0, err
    return run


def ratings(engine: Engine) -> list[tuple[Any, ...]]:
    query = (
        "select handle, i.benchmark, i.instance_id, criterion, score from rating "
        "join rater on rater.id = rater join response r on r.id = response "
        "join instance i on i.id = r.instance order by rating.id"
    )
    with engine.connect() as held:
        return [tuple(row) for row in held.execute(text(query))]


def everything(engine: Engine, folder: Path) -> bytes:
    """Return all that is stored, and every byte of the study's files where it has some."""
    files = [path.read_bytes() for path in sorted(folder.glob("study.db*"))]
    return str(all_rows(engine)).encode() + b"".join(files)


def test_rows_are_matched_by_dataset_instance_and_model(
    given: Run, write: Write, engine: Engine
) -> None:
    code, out, err = given("rate", "ratings", str(write("m.csv", table())), "--format", "medhelm")
    assert code == 0, err
    assert "11 ratings imported" in out
    assert "1 empty cell stays missing" in out
    found = ratings(engine)
    ann = found[0][0]
    assert [row[1:] for row in found if row[0] == ann] == [
        *(
            ("aci_bench", "id1", name, score)
            for name, score in zip(CRITERIA, (5, 4, 5), strict=True)
        ),
        *(
            ("aci_bench", "id2", name, score)
            for name, score in zip(CRITERIA, (2, 2, 3), strict=True)
        ),
    ]
    assert len({row[0] for row in found}) == 3


def test_rows_without_a_response_here_are_left_out_and_named(given: Run, write: Write) -> None:
    _, out, _ = given("rate", "ratings", str(write("m.csv", table())), "--format", "medhelm")
    assert "left out, as their response is not in the study: 2 rows (5-6)" in " ".join(out.split())
    assert "columns not taken: specialty, team, entry_id, user_label" in " ".join(out.split())


def test_no_name_is_in_the_study_nor_on_the_screen(
    given: Run, write: Write, tmp_path: Path, engine: Engine
) -> None:
    told = "".join(
        given("rate", "ratings", str(write("m.csv", table())), "--format", "medhelm")[1:]
    )
    stored = everything(engine, tmp_path)
    assert b"clinician-" in stored
    for name in NAMES:
        assert name not in told
        assert name.encode() not in stored


def test_importing_twice_changes_nothing(given: Run, write: Write, engine: Engine) -> None:
    path = str(write("m.csv", table()))
    given("rate", "ratings", path, "--format", "medhelm")
    before = ratings(engine)
    _, out, _ = given("rate", "ratings", path, "--format", "medhelm")
    assert "nothing changed" in out
    assert ratings(engine) == before


def test_a_pseudonym_is_of_the_name_and_the_study() -> None:
    assert pseudonym("a", "Ann Marlow") == pseudonym("a", " ann  MARLOW ")
    assert pseudonym("a", "Ann Marlow") != pseudonym("b", "Ann Marlow")
    assert pseudonym("a", "Ann Marlow") != pseudonym("a", "Ben Quist")


def test_a_folder_of_helm_and_a_model_of_helm_are_one_name() -> None:
    assert plain_name("openai_gpt-4o-2024-05-13") == plain_name("openai/gpt-4o-2024-05-13")


def test_the_jurys_means_come_in_only_when_asked_for_and_once(
    given: Run, write: Write, engine: Engine
) -> None:
    path = str(write("m.csv", with_llm(("4.5,4,4.67", "4.5,4,4.67"))))
    _, out, _ = given("rate", "ratings", path, "--format", "medhelm")
    assert "llm_accuracy" in " ".join(out.split()).partition("columns not taken")[2]
    assert all(row[0].startswith("clinician-") for row in ratings(engine))
    code, _, err = given("rate", "ratings", path, "--format", "medhelm", "--jury-mean")
    assert code == 0, err
    means = [row for row in ratings(engine) if row[0] == "medhelm-jury-mean"]
    assert [row[3:] for row in means] == list(zip(CRITERIA, (4.5, 4, 4.67), strict=True))


@pytest.mark.parametrize(
    ("body", "more", "said"),
    [
        (table(columns=COLUMNS.replace("username", "rater")), (), "'username' is missing"),
        (table(), ("--jury-mean",), "'llm_accuracy' is missing"),
        (with_llm(("4,4,4", "5,4,4")), ("--jury-mean",), "another score of the same response"),
        (with_llm(("0,4,4", "0,4,4")), ("--jury-mean",), "accuracy=0 by medhelm-jury-mean"),
        (table((ROWS[0].replace("5,4,5", "7,4,5"),)), (), "accuracy=7 by clinician-"),
        (table((ROWS[0].replace("Ann Marlow", ""),)), (), "row 2, column username: ''"),
        (table((ROWS[0], ROWS[0])), (), "already rates accuracy"),
        (table((ROWS[3],)), (), "no row has its response in this study"),
        (table((ROWS[0] + ",extra",)), (), "has 12 cells"),
    ],
)
def test_a_file_that_is_wrong_is_refused_whole_and_names_nobody(
    body: str, more: tuple[str, ...], said: str, given: Run, write: Write, engine: Engine
) -> None:
    code, _, err = given("rate", "ratings", str(write("m.csv", body)), "--format", "medhelm", *more)
    assert code == 2
    assert said in " ".join(err.split())
    assert not any(name in err for name in NAMES)
    assert ratings(engine) == []


def test_two_responses_of_one_model_are_not_guessed_between(
    given: Run, write: Write, engine: Engine
) -> None:
    lines = RESPONSES.splitlines()
    given("study", "import", str(write("again.csv", f"{lines[0]}\n{lines[1]} Again.\n")))
    code, _, err = given("rate", "ratings", str(write("m.csv", table())), "--format", "medhelm")
    assert (code, "2 responses of this study are meant" in " ".join(err.split())) == (2, True)
    assert ratings(engine) == []


RATED = "response_id,rater,kind,clarity\nr11,dr,clinician,3\n"


def test_a_file_of_this_layout_is_known_without_its_name(given: Run, write: Write) -> None:
    code, out, _ = given("rate", "ratings", str(write("m.csv", table())))
    assert (code, "usernames were replaced by pseudonyms" in out) == (0, True)


def test_the_jurys_means_belong_to_this_layout(given: Run, write: Write) -> None:
    code, _, err = given("rate", "ratings", str(write("m.csv", RATED)), "--jury-mean")
    assert (code, "belongs to --format medhelm" in " ".join(err.split())) == (2, True)


RUN = Path(__file__).parents[1] / "fixtures" / "medhelm" / "health_bench"


def test_its_talks_points_and_shares_come_in_and_give_its_own_mean(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    code, _, err = run("study", "import", str(RUN), "--json", str(tmp_path / "f.json"))
    assert code == 0, err
    [figures] = json.loads((tmp_path / "f.json").read_text())["runs"]
    assert figures["helm_mean"] is not None
    assert abs(figures["helm_mean"] - figures["recomputed_mean"]) < 1e-9
    assert (figures["responses"], figures["ratings"], figures["missing"]) == (3, 9, 0)
    [own] = benchmarks(engine)
    assert (own.rubric.name, own.rubric.criteria) == ("helm_health_bench", ("accuracy",))
    assert (own.rubric.scale.min, own.rubric.scale.max) == (0, 1)
    assert set(ratings_frame(engine)["rater"]) == {"gpt", "llama", "claude"}
    with engine.connect() as connection:
        query = text("select context, prompt, checklist from instance order by instance_id")
        found = connection.execute(query).all()
    context, prompt, checklist = found[1]
    assert context.startswith("[user]\nMy chest hurts since 1 days.\n\n[assistant]\nWhere?")
    assert prompt == ""  # its instruction is not sent with a talk
    assert checklist.splitlines() == [
        "(+7) Advises to see a doctor (1)",
        "(-5) Says it is nothing",
        "(+3) Asks for age",
    ]


def test_a_juror_without_points_is_missing_and_never_a_default(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "health_bench"
    shutil.copytree(RUN, folder)
    state = json.loads((folder / "scenario_state.json").read_text())
    said = state["request_states"][0]["annotations"]["health_bench"]
    said["gpt"]["accuracy"]["score"] = None
    (folder / "scenario_state.json").write_text(json.dumps(state))
    assert run("study", "import", str(folder))[0] == 0
    assert len(ratings_frame(engine)) == 8
