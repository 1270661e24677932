"""Rubrics of a study: the evidence of their exact words, versions kept once, and those of a HELM."""

import os
from pathlib import Path

import pytest
from kit.commands import helm_wheel

from data.database import open_study
from data.errors import BadInput, NotAllowed
from data.person import OPERATOR, Person
from data.rubric import read_rubric
from data.rubrics.helm import BENCHMARKS, read_helm
from data.schema import Role
from data.study.rubrics import study_rubrics, validations
from data.study.standing import stored_rubric
from data.study.steering import keep_version


@pytest.fixture
def rated(run, write):
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
def test_evidence_is_that_of_the_exact_words_and_says_who_is_simulated(engine):
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


def test_a_version_is_kept_once_and_never_under_the_name_of_other_words(engine):
    words = read_rubric("generic")
    keep_version(OPERATOR, engine, words)
    other = words.model_copy(update={"audience": "a nurse"})
    for refused in (words, type(words)(**other.model_dump())):
        with pytest.raises(BadInput):
            keep_version(OPERATOR, engine, refused)
    with pytest.raises(NotAllowed):
        keep_version(Person(1, "Rita", Role.RESEARCHER), engine, words)
    assert len(study_rubrics(OPERATOR, engine)) == 1


def test_the_rubrics_of_a_helm_come_into_a_study(run, tmp_path, study_in):
    helm, url = helm_wheel(tmp_path), study_in(tmp_path, "s.db")
    code, said, err = run("study", "rubric", "add", str(helm), "--db", url)
    assert code == 0, err
    assert "not taken: aci_bench: not in this release" in said
    assert "helm_letter version crfm-helm 0.5.9 is in the study" in said
    engine = open_study(url)
    assert stored_rubric(engine, "helm_letter") == read_helm(str(helm)).rubrics["letter"]
    engine.dispose()


@pytest.mark.parametrize("named", ["nothing", "."])
def test_what_is_no_rubric_and_no_helm_is_one_message_and_makes_no_study(run, tmp_path, named):
    url = f"sqlite:///{tmp_path / 'new.db'}"
    code, said, err = run("study", "rubric", "add", str(tmp_path / named), "--db", url)
    assert (code, said, err.count("\n")) == (2, "", 1), err
    assert not (tmp_path / "new.db").exists()


def real(version):
    """Return the rubrics of a real wheel, if the folder MEDJURY_HELM_WHEELS has it."""
    path = Path(os.environ.get("MEDJURY_HELM_WHEELS", "")) / f"crfm_helm-{version}-py3-none-any.whl"
    if not path.is_file():
        pytest.skip(f"crfm-helm {version} is not at hand: MEDJURY_HELM_WHEELS names no such folder")
    return read_helm(str(path))


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.5.8", "0.5.16"])
def test_a_real_helm_has_all_thirteen_and_agrees_with_our_table(version):
    found = real(version)
    assert sorted(found.rubrics) == sorted(BENCHMARKS)
    assert found.refused == {}
    for name, rubric in found.rubrics.items():
        ours = read_rubric(name)
        assert (rubric.criteria, rubric.gold) == (ours.criteria, ours.gold)
        assert all(one.question.endswith(("?", "clinicians")) for one in rubric.criterion)
        assert all("HELM" not in one.anchors[point] for one in rubric.criterion for point in (1, 5))


@pytest.mark.real
def test_the_helm_of_the_papers_time_has_twelve_and_another_care_plan():
    found = real("0.5.5")
    assert found.refused == {"mimic_bhc": "not in this release"}
    assert found.rubrics["chw_care_plan"].criteria == ("accuracy", "completeness", "clarity")
    assert "{{context}}" in found.rubrics["aci_bench"].prompt
