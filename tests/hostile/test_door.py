"""Whatever tool wrote a researcher's file, the same responses make the same study."""

import hashlib
import io
import json
import sys

import pytest
from kit import two_hundred
from sqlalchemy import text

from data.study.frames import ratings_frame
from data.study.standing import benchmarks

QUERY = """select i.context, i.reference, r.text, a.model from response r
join instance i on i.id = r.instance join authorship a on a.response = r.id"""
MAP = """[columns]
"Fall" = "instance_id"
"Arztbrief" = "context"
"Gold" = "reference"
"A" = "response:acme/writer-a"
"B" = "response:acme/writer-b"

[constant]
benchmark = "triage"
"""


def digest(value):
    return hashlib.sha256((value or "").encode()).hexdigest()


def expected(reference=True):
    return {
        (*(digest(one[name]) for name in ("context", "reference", "response")), one["model"])
        for one in (row | ({} if reference else {"reference": ""}) for row in two_hundred.rows())
    }


def stored(engine):
    with engine.connect() as connection:
        found = connection.execute(text(QUERY)).all()
    assert len(found) == len(two_hundred.rows())
    return {(digest(a), digest(b), digest(c), model) for a, b, c, model in found}


TABLES = (
    *("r.csv", "mark.csv", "utf16.csv", "semicolons.csv", "tabs.tsv", "r.csv.gz", "r.json"),
    *("r.jsonl", "r.jsonl.gz", "named_wrongly.dat", "r.parquet", "r.xlsx"),
)


@pytest.mark.parametrize("name", TABLES)
def test_every_type_of_file_gives_one_and_the_same_study(run, engine, tmp_path, name):
    code, out, err = run("study", "import", str(two_hundred.tables(tmp_path)[name]))
    assert (code, "200 responses to 100 new instances imported" in out) == (0, True), err
    assert stored(engine) == expected()


def test_standard_input_gives_it_too(run, engine, tmp_path, monkeypatch):
    body = two_hundred.tables(tmp_path)["r.csv.gz"].read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
    assert run("study", "import", "-")[0] == 0
    assert stored(engine) == expected()


def test_a_folder_of_lm_evals_samples_gives_it_and_its_metrics(run, engine, tmp_path):
    two_hundred.lm_eval(tmp_path)
    code, out, err = run("study", "import", str(tmp_path / "lm"))
    assert (code, "next: its scores, with `medjury rate ratings" in out) == (0, True), err
    assert stored(engine) == expected()
    assert run("rate", "ratings", str(tmp_path / "lm"))[0] == 0
    found = ratings_frame(engine)
    scorers = {f"lm-eval.exact_match.{name}" for name in ("strict-match", "flexible-extract")}
    assert (len(found), {*found["rater"]}, found["score"].mean()) == (400, scorers, 0.5)


def test_healthbenchs_results_give_it_with_their_points_and_the_graders_shares(
    run, engine, tmp_path
):
    for path, model in zip(
        two_hundred.healthbench_results(tmp_path), two_hundred.MODELS, strict=True
    ):
        code, _, err = run("study", "import", str(path))
        assert (code, '[constant] model = "NAME"' in err) == (2, True)
        own = tmp_path / "map.toml"
        own.write_text(f'[constant]\nmodel = "{model}"\n')
        assert run("study", "import", str(path), "--map", str(own))[0] == 0
        code, out, err = run("rate", "ratings", str(path), "--map", str(own))
        assert (code, "100 ratings imported" in out) == (0, True), err
    assert stored(engine) == expected(reference=False)
    assert [one.rubric.name for one in benchmarks(engine)] == ["healthbench_share"]
    assert set(ratings_frame(engine)["score"]) == {0.25}


def test_a_sheet_of_any_names_with_a_column_a_model_gives_it_by_a_map(run, engine, tmp_path, write):
    given = two_hundred.rows()
    taken = {"Fall": "instance_id", "Arztbrief": "context", "Gold": "reference", "A": "response"}
    wide = [
        {name: a[ours] for name, ours in taken.items()} | {"B": b["response"], "language": "de"}
        for a, b in zip(given[::2], given[1::2], strict=True)
    ]
    (tmp_path / "wide.xlsx").write_bytes(two_hundred.workbook(wide))
    mapped = ("--map", str(write("map.toml", MAP)))
    code, out, err = run("study", "import", str(tmp_path / "wide.xlsx"), *mapped)
    assert (code, "not taken: values of the column language: 100" in out) == (0, True), err
    assert stored(engine) == expected()


def test_the_map_that_is_guessed_brings_a_file_of_others_names_in(run, engine, tmp_path):
    theirs = ("Case No", "dataset", "Source", "ground_truth", "LLM", "modelOutput")
    ours = ("instance_id", "benchmark", "context", "reference", "model", "response")
    names = dict(zip(ours, theirs, strict=True))
    renamed = [{names[key]: value for key, value in one.items()} for one in two_hundred.rows()]
    path = tmp_path / "theirs.csv"
    path.write_text(two_hundred.csv_text(renamed), "utf-8")
    code, _, err = run("study", "import", str(path))
    assert (code, "columns of other names need a map" in " ".join(err.split())) == (2, True)
    code, out, err = run("study", "import", str(path), "--guess")
    assert (code, out.count("\n  response: ")) == (0, 3), err
    with engine.connect() as connection:
        assert connection.execute(text("select name from benchmark")).all() == []
    (tmp_path / "map.toml").write_text(out.split("row 1")[0], "utf-8")
    assert run("study", "import", str(path), "--map", str(tmp_path / "map.toml"))[0] == 0
    assert stored(engine) == expected()


def test_label_studios_file_gives_it_too_its_ratings_by_number_and_no_address_is_kept(
    run, engine, tmp_path
):
    [path] = two_hundred.label_studio(tmp_path)
    assert run("study", "import", str(path))[0] == 0
    assert stored(engine) == expected()
    code, out, err = run("rate", "ratings", str(path))
    assert (code, "1200 ratings imported" in out) == (0, True), err
    found = ratings_frame(engine)
    raters = {("label-studio.3", "clinician"), ("label-studio.4", "clinician")}
    assert {*zip(found["rater"], found["kind"], strict=True)} == raters
    with engine.connect() as connection:
        seen = connection.execute(text("select count(*) from rating where comment = 'seen'"))
        assert seen.scalar() == 400
        raters = connection.execute(text("select * from rater")).all()
    assert "secret" not in str(raters)


def test_wide_ratings_with_a_column_for_each_rater_and_grades_in_words(run, engine, tmp_path):
    given = [one | {"response_id": f"r{n}"} for n, one in enumerate(two_hundred.rows()[:4])]
    (tmp_path / "r.jsonl").write_text(two_hundred.lines(given), "utf-8")
    run("study", "import", str(tmp_path / "r.jsonl"))
    sheet = "ID,Dr A Logical Consistency,Dr B Logical Consistency\nr0,pass,fail\nr1,pass,\n"
    (tmp_path / "s.csv").write_text(sheet)
    (tmp_path / "map.toml").write_text(
        '[columns]\nID = "response_id"\n'
        '"Dr A Logical Consistency" = "criterion:Logical Consistency rater:dr_a"\n'
        '"Dr B Logical Consistency" = "criterion:Logical Consistency rater:dr_b"\n'
        '[constant]\nkind = "clinician"\n'
    )
    args = ("rate", "ratings", str(tmp_path / "s.csv"), "--map", str(tmp_path / "map.toml"))
    code, out, err = run(*args, "--scale", "fail,pass")
    assert code == 0, err
    assert "'Logical Consistency' is logical_consistency here" in out
    assert "1 empty cell stays missing" in out
    [own] = benchmarks(engine)
    assert (own.rubric.criteria, own.rubric.scale.max) == (("logical_consistency",), 1)
    found = ratings_frame(engine)
    told = sorted(zip(found["rater"], found["score"], strict=True))
    assert told == [("dr_a", 1.0), ("dr_a", 1.0), ("dr_b", 0.0)]


def test_a_grade_that_is_off_the_named_scale_is_refused_with_its_row(run, tmp_path):
    given = [one | {"response_id": f"r{n}"} for n, one in enumerate(two_hundred.rows()[:2])]
    (tmp_path / "r.json").write_text(json.dumps(given), "utf-8")
    run("study", "import", str(tmp_path / "r.json"))
    head = "response_id,rater,kind,criterion,score\n"
    (tmp_path / "s.csv").write_text(head + "r0,d,juror,grade,pass\nr1,d,juror,grade,middling\n")
    code, _, err = run("rate", "ratings", str(tmp_path / "s.csv"), "--scale", "fail,pass")
    assert (code, "row 3" in err) == (2, True)
