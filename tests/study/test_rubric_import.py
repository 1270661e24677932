"""`medjury study rubric add`: the rubrics of a HELM, and folders that are read back the same."""

import os
from pathlib import Path

import pytest
from kit.commands import helm_wheel
from kit.studies import Run
from kit.study_place import StudyIn

from data.database import open_study
from data.rubric import read_rubric
from data.rubrics.helm import BENCHMARKS, HelmRubrics, read_helm
from data.study.standing import stored_rubric


def test_the_rubrics_of_a_helm_come_into_a_study(
    run: Run, tmp_path: Path, study_in: StudyIn
) -> None:
    helm, url = helm_wheel(tmp_path), study_in(tmp_path, "s.db")
    code, said, err = run("study", "rubric", "add", str(helm), "--db", url)
    assert code == 0, err
    assert "not taken: aci_bench: not in this release" in said
    assert "helm_letter version crfm-helm 0.5.9 is in the study" in said
    engine = open_study(url)
    assert stored_rubric(engine, "helm_letter") == read_helm(str(helm)).rubrics["letter"]
    engine.dispose()


@pytest.mark.parametrize("named", ["nothing", "."])
def test_what_is_neither_a_rubric_nor_a_helm_is_one_message_and_makes_no_study(
    run: Run, tmp_path: Path, named: str
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    code, said, err = run("study", "rubric", "add", str(tmp_path / named), "--db", url)
    assert (code, said, err.count("\n")) == (2, "", 1), err
    assert not (tmp_path / "new.db").exists()


def real(version: str) -> HelmRubrics:
    """Return the rubrics of a real wheel, if the folder MEDJURY_HELM_WHEELS has it."""
    path = Path(os.environ.get("MEDJURY_HELM_WHEELS", "")) / f"crfm_helm-{version}-py3-none-any.whl"
    if not path.is_file():
        pytest.skip(f"crfm-helm {version} is not at hand: MEDJURY_HELM_WHEELS names no such folder")
    return read_helm(str(path))


@pytest.mark.real
@pytest.mark.parametrize("version", ["0.5.8", "0.5.16"])
def test_a_real_helm_has_all_thirteen_and_agrees_with_our_table(version: str) -> None:
    found = real(version)
    assert sorted(found.rubrics) == sorted(BENCHMARKS)
    assert found.refused == {}
    for name, rubric in found.rubrics.items():
        ours = read_rubric(name)
        assert (rubric.criteria, rubric.gold) == (ours.criteria, ours.gold)
        assert all(one.question.endswith(("?", "clinicians")) for one in rubric.criterion)
        assert all("HELM" not in one.anchors[point] for one in rubric.criterion for point in (1, 5))


@pytest.mark.real
def test_the_helm_of_the_papers_time_has_twelve_and_another_care_plan() -> None:
    found = real("0.5.5")
    assert found.refused == {"mimic_bhc": "not in this release"}
    assert found.rubrics["chw_care_plan"].criteria == ("accuracy", "completeness", "clarity")
    assert "{{context}}" in found.rubrics["aci_bench"].prompt
