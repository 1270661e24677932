"""`medjury study rubric import-helm`: from a HELM to rubric folders, all of them or nothing."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.commands import helm_wheel
from kit.studies import Run
from kit.study_place import StudyIn

from data.rubric import Criterion, Rubric, Scale, read_rubric
from data.rubric_files import write_rubrics
from data.rubrics.helm import BENCHMARKS, HelmRubrics, read_helm


def test_the_command_writes_rubrics_that_a_study_takes(
    run: Run, tmp_path: Path, study_in: StudyIn
) -> None:
    helm, out = helm_wheel(tmp_path), tmp_path / "new" / "rubrics"
    code, said, err = run("study", "rubric", "import-helm", str(helm), "--out", str(out))
    assert code == 0, err
    assert "Prompts of crfm-helm 0.5.9" in said
    assert "not taken: aci_bench: not in this release" in said
    assert "1 rubric in" in said
    assert read_rubric(out / "letter") == read_helm(str(helm)).rubrics["letter"]
    code, said, err = run(
        "study", "rubric", "add", str(out / "letter"), "--db", study_in(tmp_path, "s.db")
    )
    assert (code, "helm_letter version crfm-helm 0.5.9 is in" in said) == (0, True), err
    assert [one.name for one in out.parent.iterdir()] == ["rubrics"]


@pytest.mark.parametrize("case", ["no helm", "taken", "a file"])
def test_bad_input_ends_with_exit_code_2_and_nothing_written(
    run: Run, tmp_path: Path, case: str
) -> None:
    out = tmp_path / "out"
    helm = helm_wheel(tmp_path)
    if case == "taken":
        out.mkdir()
        (out / "mine.txt").write_text("mine")
    if case == "a file":
        out.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    named = tmp_path / "nothing" if case == "no helm" else helm
    code, said, err = run("study", "rubric", "import-helm", str(named), "--out", str(out))
    assert (code, said, err.count("\n")) == (2, "", 1)
    assert err.startswith("medjury: ")
    assert sorted(tmp_path.rglob("*")) == before


ANYTHING = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(question=ANYTHING, anchor=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_being_written_as_toml(
    tmp_path_factory: pytest.TempPathFactory, question: str, anchor: str
) -> None:
    criterion = Criterion(name="a.b-c", question=question, anchors={-1: anchor, 0: "", 1: anchor})
    rubric = Rubric(
        name="r", version=anchor, audience=question, gold="never",
        scale=Scale(min=-1, max=1), criterion=(criterion,), prompt="{{response}}",
    )  # fmt: skip
    out = tmp_path_factory.mktemp("toml") / "out"
    write_rubrics(out, {"one": rubric})
    assert read_rubric(out / "one") == rubric


def real(version: str) -> HelmRubrics:
    """Return the rubrics of a real wheel, if the folder MEDJURY_HELM_WHEELS has it."""
    folder = os.environ.get("MEDJURY_HELM_WHEELS", "")
    path = Path(folder) / f"crfm_helm-{version}-py3-none-any.whl"
    if not folder or not path.is_file():
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
