"""HELM's jury prompts become rubrics, word for word, from a HELM that is read and never run.

The little HELMs here are in HELM's form and in our own words.
"""

import hashlib
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from data.card import Card
from data.errors import BadFile, Unknown
from data.rubric import Scale
from data.rubrics.helm import BENCHMARKS, read_helm

ANNOTATION = "helm/benchmark/annotation"
JUDGE = """Grade the letter.
<ask>
[QUESTION]
</ask>
<response>
[RESPONSE]
</response>
<gold_response>
[GOLD_RESPONSE]
</gold_response>
Hold the <response> against the <ask> and compare
it to the <gold_response> when needed.
Use a scale of 1 to 5 (1 = useless, 5 = flawless).

Criteria:
Accuracy (1-5)
- Is the letter true \u2014 in every
  line?

Tone (1-5)
- Is the letter kind?

Answer as {"accuracy": {"score": 0, "explanation": "(\\") why"}, "tone": {...}} for $5.
"""
OLD = """
class LetterAnnotator(LLMAsJuryAnnotator):
    name = "letter"

    def __init__(self, auto_client):
        super().__init__(auto_client=auto_client, prompt_template=PROMPT_TEMPLATE,
                         annotation_criteria=ANNOTATION_CRITERIA, annotator_models=MODELS)
"""
NEW = """
class LetterAnnotator(LLMAsJuryAnnotator):
    def __init__(self, auto_client, annotator_models):
        super().__init__(name="letter", auto_client=auto_client, prompt_template=PROMPT_TEMPLATE,
                         annotation_criteria=ANNOTATION_CRITERIA, annotator_models=annotator_models)
"""


def braced(prompt: str, twice: bool = False) -> str:
    """Return a prompt with HELM's placeholders, in the style up to 0.5.7 or in the one since."""
    left, right = ("{{", "}}") if twice else ("{", "}")
    for word in ("QUESTION", "RESPONSE", "GOLD_RESPONSE"):
        prompt = prompt.replace(f"[{word}]", f"{left}{word}{right}")
    return prompt


def annotator(prompt: str, cls: str = NEW, criteria: str = "") -> str:
    """Return the source of an annotator."""
    asked = '{"score", "explanation"}'
    return (
        "from typing import Dict, Set\nimport sys\nsys.helm_was_run = True\n"
        f'PROMPT_TEMPLATE = """{prompt}"""\nANNOTATION_CRITERIA: Dict[str, Set[str]] = '
        + (criteria or f'{{"accuracy": {asked}, "tone": {asked}}}')
        + f"\nMODELS = build()\n{cls}"
    )


def little(root: Path, inner: str = ANNOTATION, **sources: str) -> Path:
    """Make a HELM of files `<name>_annotator.py`."""
    folder = root / inner
    folder.mkdir(parents=True)
    (folder / "model_as_judge.py").write_text("class LLMAsJuryAnnotator: ...")
    (folder / "plain_annotator.py").write_text("class PlainAnnotator(Annotator): ...")
    for name, source in sources.items():
        (folder / f"{name}_annotator.py").write_text(source, encoding="utf-8")
    return root


def wheel(root: Path, version: str, source: str) -> Path:
    """Make a wheel with one annotator."""
    path = root / f"crfm_helm-{version}-py3-none-any.whl"
    with ZipFile(path, "w") as file:
        file.writestr(f"{ANNOTATION}/letter_annotator.py", source)
        file.writestr(f"crfm_helm-{version}.dist-info/METADATA", "Name: crfm-helm")
    return path


@pytest.mark.parametrize(("twice", "cls"), [(True, OLD), (False, NEW)])
def test_a_prompt_is_taken_word_for_word_in_both_styles(
    tmp_path: Path, twice: bool, cls: str
) -> None:
    template = braced(JUDGE, twice)
    found = read_helm(str(wheel(tmp_path, "0.5.9", annotator(template, cls))))
    rubric = found.rubrics["letter"]
    read = template.replace('\\"', '"')  # as Python, and so HELM's jurors, read it
    card = Card("c", "the case", "unseen task", "the letter", "the gold {RESPONSE}")
    filled = JUDGE.replace('\\"', '"').replace("[QUESTION]", "the case")
    filled = filled.replace("[RESPONSE]", "the letter").replace(
        "[GOLD_RESPONSE]", card.reference or ""
    )
    assert rubric.render(card) == filled
    assert rubric.criteria == ("accuracy", "tone")
    assert rubric.scale == Scale(min=1, max=5)
    assert rubric.gold == "when_needed"
    digest = hashlib.sha256(read.encode()).hexdigest()
    assert (rubric.name, rubric.version) == (
        "helm_letter",
        f"crfm-helm 0.5.9, prompt sha256 {digest}",
    )


def test_questions_and_described_points_come_from_the_prompt(tmp_path: Path) -> None:
    rubric = read_helm(str(little(tmp_path, letter=annotator(braced(JUDGE))))).rubrics["letter"]
    assert [one.question for one in rubric.criterion] == [
        "Is the letter true \u2014 in every line?",
        "Is the letter kind?",
    ]
    anchors = rubric.criterion[0].anchors
    assert (anchors[1], anchors[5]) == ("useless", "flawless")
    assert all("HELM has no words" in anchors[point] for point in (2, 3, 4))


def test_a_question_that_cannot_be_found_points_to_the_prompt(tmp_path: Path) -> None:
    source = annotator(braced(JUDGE).replace("Tone (1-5)", "On tone:"))
    rubric = read_helm(str(little(tmp_path, letter=source))).rubrics["letter"]
    assert rubric.criterion[1].question == "tone, as HELM's prompt puts it"


@pytest.mark.parametrize(
    ("old", "new", "gold"),
    [
        ("", "", "when_needed"),
        ("when needed", "whenever necessary", "when_needed"),
        (" when needed", " and the <ask>", "always"),
        ("compare\nit to the <gold_response> when needed", "judge", "when_needed"),
        ("<gold_response>\n[GOLD_RESPONSE]\n</gold_response>\n", "", "never"),
    ],
)
def test_the_gold_policy_is_what_the_prompt_says(
    tmp_path: Path, old: str, new: str, gold: str
) -> None:
    source = annotator(braced(JUDGE.replace(old, new, 1) if old else JUDGE))
    assert read_helm(str(little(tmp_path, letter=source))).rubrics["letter"].gold == gold


@pytest.mark.parametrize("inner", [ANNOTATION, f"src/{ANNOTATION}", "benchmark/annotation"])
def test_a_folder_may_be_an_installation_a_checkout_or_the_package(
    tmp_path: Path, inner: str
) -> None:
    found = read_helm(str(little(tmp_path / "h", inner, letter=annotator(braced(JUDGE)))))
    assert list(found.rubrics) == ["letter"]
    assert found.release == "HELM of unknown version"


def test_the_release_is_read_beside_the_code(tmp_path: Path) -> None:
    source = annotator(braced(JUDGE))
    site, checkout = little(tmp_path / "site", letter=source), tmp_path / "checkout"
    (site / "crfm_helm-0.5.16.dist-info").mkdir()
    little(checkout, f"src/{ANNOTATION}", letter=source)
    (checkout / "pyproject.toml").write_text('[project]\nname = "crfm-helm"\nversion = "0.5.8"\n')
    assert read_helm(str(site)).release == "crfm-helm 0.5.16"
    assert read_helm(str(site / "helm")).release == "crfm-helm 0.5.16"
    assert read_helm(str(checkout)).release == "crfm-helm 0.5.8"
    assert read_helm(str(checkout / "src" / "helm")).release == "crfm-helm 0.5.8"


def test_an_installed_package_is_found_by_name_and_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little(tmp_path, letter=annotator(braced(JUDGE)))
    (tmp_path / "crfm_helm-0.5.16.dist-info").mkdir()
    (tmp_path / "crfm_helm-0.5.16.dist-info" / "METADATA").write_text("Name: crfm-helm\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert read_helm("crfm-helm").release == "crfm-helm 0.5.16"
    assert "helm" not in sys.modules
    assert not hasattr(sys, "helm_was_run")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (annotator("Rate {RESPONSE}"), "names no scale"),
        (annotator("scale of 1 to 5"), "cannot be a rubric"),
        (annotator("scale of 5 to 1 {RESPONSE}"), "names the scale 5-1"),
        (annotator("scale of 1 to 5 {RESPONSE} {{schema}}"), "placeholder that is not HELM's"),
        (annotator(JUDGE, criteria="criteria()"), "criteria are no literal"),
        (annotator(JUDGE, criteria='{"accuracy": {"grade"}}'), "something else than a score"),
        (annotator(JUDGE, criteria='{"accuracy": 5}'), "something else than a score"),
        (annotator(JUDGE).replace("PROMPT_TEMPLATE = ", "PROMPT_TEMPLATE = X + "), "no literal"),
        (annotator(JUDGE, NEW.replace('"letter"', '"../letter"')), "no plain word"),
        ("LLMAsJuryAnnotator = 1", "no class in it"),
        ("LLMAsJuryAnnotator ((", "not Python source"),
        ("# LLMAsJuryAnnotator\n" + "(" * 9000 + ")" * 9000, "not Python source"),
    ],
)
def test_an_annotator_that_cannot_be_taken_is_named_and_the_others_are_taken(
    tmp_path: Path, source: str, why: str
) -> None:
    found = read_helm(str(little(tmp_path, letter=annotator(braced(JUDGE)), odd=source)))
    assert list(found.rubrics) == ["letter"]
    assert why in found.refused["odd"]


def test_benchmarks_that_the_release_lacks_are_named(tmp_path: Path) -> None:
    source = annotator(braced(JUDGE), NEW.replace('"letter"', '"mimic_bhc"'))
    found = read_helm(str(little(tmp_path, mimic_bhc=source)))
    assert found.refused == {
        name: "not in this release" for name in BENCHMARKS if name != "mimic_bhc"
    }


def test_what_is_no_helm_is_refused_with_one_message(tmp_path: Path) -> None:
    note, broken = tmp_path / "note.txt", tmp_path / "broken.whl"
    note.write_text("no wheel")
    whole = wheel(tmp_path, "0.5.9", annotator(braced(JUDGE))).read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    for path in (note, broken):
        with pytest.raises(BadFile, match="cannot be read as a wheel or a folder"):
            read_helm(str(path))
    with pytest.raises(BadFile, match="no HELM: there is no helm/benchmark/annotation"):
        read_helm(str(tmp_path))
    with pytest.raises(BadFile, match="no jury prompt"):
        read_helm(str(little(tmp_path / "h")))
    with pytest.raises(Unknown, match="neither a wheel, a folder nor an installed package"):
        read_helm("no-such-helm")
