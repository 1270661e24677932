"""What a study shows of a rubric: the evidence of its exact words, and versions that are kept once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from kit.studies import Run
from sqlalchemy import Engine

from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.rubric import read_rubric
from data.schema import Role
from data.study.rubrics import study_rubrics, validations
from data.study.steering import keep_version


@pytest.fixture
def rated(run: Run, write: Callable[[str, str], Path]) -> None:
    """Have 24 responses rated by two clinicians and a simulated jury, and freeze a report."""
    rows = [f"i{k},visits,note,task,r{k},model-one,text {k}" for k in range(24)]
    text = "\n".join(["instance_id,benchmark,context,prompt,response_id,model,response", *rows])
    scores = [
        f"r{k},{who},clinician,{1 + k % 5},{1 + (k + turn) % 5},{1 + k % 4}"
        for k in range(24)
        for turn, who in enumerate(("dr_a", "dr_b"))
    ]
    head = "response_id,rater,kind,accuracy,completeness,clarity"
    assert run("study", "import", str(write("responses.csv", text)))[0] == 0
    assert run("rate", "ratings", str(write("ratings.csv", "\n".join([head, *scores]))))[0] == 0
    assert run("jury", "run", "simulated")[0] == 0
    assert run("analyse", "calibrate", "--reps", "50", "--freeze")[0] == 0


@pytest.mark.usefixtures("rated")
def test_evidence_is_that_of_the_exact_words_and_says_who_is_simulated(engine: Engine) -> None:
    [own] = study_rubrics(OPERATOR, engine)
    counts = own.benchmarks, own.clinicians.ratings, own.clinicians.raters
    assert counts == (("visits",), 24 * 2 * 3, 2)
    assert own.jurors.simulated == own.jurors.raters > 0
    found = validations(OPERATOR, engine, own.rubric.sha256)
    assert {one.report for one in found} == {1, None}
    assert all(one.simulated for one in found)
    [report] = [one for one in found if one.report]
    assert report.n_responses == 24
    assert validations(OPERATOR, engine, read_rubric("aci_bench").sha256) == []


def test_a_version_is_kept_once_and_never_under_the_name_of_other_words(engine: Engine) -> None:
    words = read_rubric("generic")
    keep_version(OPERATOR, engine, words)
    other = words.model_copy(update={"audience": "a nurse"})
    for refused in (words, type(words)(**other.model_dump())):
        with pytest.raises(BadInput):
            keep_version(OPERATOR, engine, refused)
    with pytest.raises(NotAllowed):
        keep_version(Person(1, "Rita", Role.RESEARCHER), engine, words)
    assert len(study_rubrics(OPERATOR, engine)) == 1
