"""`analyse measure` of answers with a key, from a file or from references."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from sqlmodel import select

from data.database import open_study, reading
from data.person import OPERATOR
from data.schema import Rater, Rating, Response, Role
from data.study.assignments import Slot, assign
from data.study.people import add_people
from data.study.standing import design_items

HEAD = "instance_id,benchmark,context,prompt,reference,response_id,model,response\n"
Write = Callable[[str, str], Path]


def stored(url: str) -> dict[tuple[str, str], float]:
    """Return the score of each metric and response."""
    with reading(open_study(url)) as session:
        query = select(Rater.handle, Response.response_id, Rating.score).join(Rater).join(Response)
        return {(rater, response): score for rater, response, score in session.exec(query)}


def test_answers_are_scored_by_the_references_and_asked_again_nothing_changes(
    run: Run, write: Write, url: str
) -> None:
    rows = "i1,b,,p,Yes,r1,m,yes.\ni2,b,,p,No,r2,m,No\ni3,b,,p,,r3,m,Maybe\n"
    run("study", "import", str(write("r.csv", HEAD + rows)))
    code, out, _ = run(
        "analyse", "measure", "exact-match", "quasi-exact-match", "label-f1", "--json", "-"
    )
    body = json.loads(out)
    assert code == 0
    exact, quasi, labels = body["answers"]
    assert (exact["means"], quasi["means"]) == ({"exact-match": 0.5}, {"quasi-exact-match": 1.0})
    assert (exact["scored"], exact["without_key"]) == (2, 1)
    assert (labels["labels"]["macro_f1"], labels["labels"]["labels"]) == (1.0, ["no", "yes"])
    assert stored(url)["exact-match", "r1"] == 0
    assert ("exact-match", "r3") not in stored(url)
    again = json.loads(run("analyse", "measure", "exact-match", "--json", "-")[1])
    assert again["unchanged"] == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["exact", "rouge-l"], "metric 'exact'"),
        (["medcalc"], "medcalc needs --keys"),
        (["rouge-l", "exact-match"], "measure them one by one"),
        (["--keys", "K"], "belong to metrics of answers"),
        (["exact-match", "--benchmark", "other"], "no benchmark other"),
        (["medcalc", "--keys", "K"], "instance i1 of b: category ''"),
    ],
)
def test_what_cannot_be_scored_is_refused_and_nothing_is_stored(
    run: Run, write: Write, url: str, words: list[str], said: str
) -> None:
    run("study", "import", str(write("r.csv", HEAD + "i1,b,,p,Yes,r1,m,yes\n")))
    keys = str(write("k.csv", "instance_id,key\ni1,Yes\n"))
    code, _, err = run("analyse", "measure", *(keys if word == "K" else word for word in words))
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert stored(url) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("instance_id,answer\ni1,Yes\n", "column 'key' is missing"),
        ("instance_id,key,category\ni1,Yes,a\ni1,No,b\n", "its rows differ in more than the key"),
        ("instance_id,key\n,Yes\n", "must not be empty"),
        ("instance_id,key\nother,Yes\n", "has a key for no instance"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused(
    run: Run, write: Write, url: str, text: str, said: str
) -> None:
    run("study", "import", str(write("r.csv", HEAD + "i1,b,,p,Yes,r1,m,yes\n")))
    code, _, err = run("analyse", "measure", "exact-match", "--keys", str(write("k.csv", text)))
    assert (code, said in " ".join(err.split())) == (2, True), err
    assert stored(url) == {}


def study_with_an_exam(run: Run, write: Callable[[str, str], Path]) -> None:
    """Bring in notes that clinicians and a juror rated, and an exam that exact match scored."""
    rows = [
        f"{benchmark}{number},{benchmark},,p,{'Yes' if benchmark == 'exam' else ''},"
        f"{benchmark}{number}{model},{model},{'Yes' if model == 'a' or number < 2 else 'No'}\n"
        for benchmark in ("notes", "exam")
        for number in range(6)
        for model in "ab"
    ]
    assert run("study", "import", str(write("r.csv", HEAD + "".join(rows))))[0] == 0
    rated = [
        f"notes{number}{model},{who},{kind},{1 + (number + (model == 'a')) % 5},4,3\n"
        for number in range(6)
        for model in "ab"
        for who, kind in (("dr_a", "clinician"), ("dr_b", "clinician"), ("j", "juror"))
    ]
    head = "response_id,rater,kind,accuracy,completeness,clarity\n"
    assert run("rate", "ratings", str(write("ratings.csv", head + "".join(rated))))[0] == 0
    assert run("analyse", "measure", "exact-match")[0] == 0


def test_what_a_key_alone_scored_has_no_part_in_agreement_until_somebody_is_to_read_it(
    run: Run, write: Callable[[str, str], Path], url: str
) -> None:
    study_with_an_exam(run, write)
    words = ("analyse", "calibrate", "--reps", "50", "--json", "-")
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"notes"}
    assert "metric:exact-match" not in {row["scorer"] for row in rows}
    assert all("analysed" not in {one["code"] for one in row["notes"]} for row in rows)
    engine = open_study(url)
    exam = next(one.response for one in design_items(engine) if one.benchmark == "exam")
    add_people(OPERATOR, engine, ["dr_c"], Role.CLINICIAN)
    assign(engine, [Slot("dr_c", exam, 0)], 0)
    engine.dispose()
    rows = json.loads(run(*words)[1])["rows"]
    assert {row["benchmark"] for row in rows} == {"exam", "notes", "combined"}
