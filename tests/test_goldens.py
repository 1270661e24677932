"""What was recorded stays: figures on four public data sets, words on the demo study.

The figures are those of `analyse calibrate --details` at commit 90f9e59, recorded by `benchmarks/goldens.py`
before notes became values; recorded anew since, by design: `n_tried` and `p_holm`, ids of responses,
and own-family counts, which nobody sees of a blind study. Clinicians and jurors of ACI-Bench are
drawn with a seed: nobody rated it.
The words are those of the terminal and the report page; `make words` records them anew.
"""

import csv
import json
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kit import demo_words
from sqlalchemy import text

from data.database import open_study

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[1]
DATASETS = ROOT.parent / "shared" / "datasets"
SCRIPTS, GOLDENS = ROOT / "docs" / "real_data", ROOT / "tests" / "fixtures" / "goldens"
CLOSE = 1e-12  # another processor may add up in another order
CRITERIA = ("accuracy", "completeness", "clarity")
JURORS = (("jx", 0.7), ("jy", 0.9), ("jz", 1.4))


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "folder", "responses"),
    [
        ("summeval", "summeval_op", "responses.jsonl"),
        ("mslr", "mslr_cochrane", "responses.jsonl"),
        ("mentalbench", "mentalbench_judges", "responses.csv"),
    ],
)
def test_the_figures_of_a_public_study_are_those_recorded(
    name: str, folder: str, responses: str, tmp_path: Path
) -> None:
    have(folder)
    ran(SCRIPTS / f"{name}.py", DATASETS, tmp_path)
    rubric = SCRIPTS / "rubrics" / name
    medjury(tmp_path, "study", "import", tmp_path / responses, "--rubric", rubric)
    medjury(tmp_path, "rate", "ratings", tmp_path / "ratings.csv")
    if name != "mentalbench":  # it has no references
        medjury(tmp_path, "analyse", "measure", "rouge-l")
    assert differences(golden(name), calibrated(tmp_path)) == []


@pytest.mark.real
def test_the_figures_of_drawn_ratings_of_aci_bench_are_those_recorded(tmp_path: Path) -> None:
    have("aci_bench")
    medjury(tmp_path, "study", "import", DATASETS / "aci_bench", "--format", "aci-bench")
    medjury(tmp_path, "analyse", "measure", "rouge-l")
    drawn_ratings(tmp_path)
    medjury(tmp_path, "rate", "ratings", tmp_path / "ratings.csv")
    assert differences(golden("aci"), calibrated(tmp_path)) == []


def test_a_figure_that_differs_is_told_with_its_place() -> None:
    old = {"rows": [{"icc": 0.5, "scorer": "jury"}]}
    new = {"rows": [{"icc": 0.5 + 1e-9, "scorer": "jury", "notes": []}]}
    assert differences(old, new) == [".rows[0].icc: 0.5 became 0.500000001"]


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (demo_words.recorded().splitlines(), demo_words.said().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `make words` records them anew:\n{shown}"


def have(folder: str) -> None:
    """Skip where a public data set is not beside the checkout."""
    if not (DATASETS / folder).is_dir():
        pytest.skip(f"the public data set {folder} is not at {DATASETS / folder}")


def ran(*words: object) -> None:
    """Run a script that must succeed."""
    subprocess.run([sys.executable, *map(str, words)], check=True, capture_output=True, cwd=ROOT)


def medjury(folder: Path, *words: object) -> None:
    """Run a command that must succeed on the study of a folder."""
    ran("-m", "medjury", *words, "--db", f"sqlite:///{folder}/study.db")


def calibrated(folder: Path) -> Any:
    """Return the JSON of `analyse calibrate --details`."""
    medjury(
        folder,
        "analyse",
        "calibrate",
        "--details",
        "--pairs",
        "--reps",
        "200",
        "--json",
        folder / "found.json",
    )
    return json.loads((folder / "found.json").read_text("utf-8"))


def golden(name: str) -> Any:
    """Return what was recorded."""
    return json.loads((GOLDENS / f"{name}.json").read_text("utf-8"))


def drawn_ratings(folder: Path) -> None:
    """Write the ratings of four clinicians, two a response, and of three jurors of some noise."""
    with open_study(f"sqlite:///{folder}/study.db").connect() as study:
        asked = study.execute(text("SELECT response_id FROM response ORDER BY id LIMIT 200"))
        ids = [row[0] for row in asked]
    random, rows = Random(7), []  # noqa: S311 seeded
    quality = {one: random.gauss(3.4, 0.8) for one in ids}
    for place, one in enumerate(ids):
        clinicians = random.sample(["dr_a", "dr_b", "dr_c", "dr_d"], 2) if place < 90 else []
        for name in clinicians:
            for criterion in CRITERIA:
                if random.random() >= 0.01:
                    score = whole(quality[one] + random.gauss(0.1, 0.8))
                    rows.append((one, name, "clinician", criterion, score))
        for name, noise in JURORS:
            if random.random() >= 0.05:
                scores = [whole(quality[one] + 0.4 + random.gauss(0, noise)) for _ in CRITERIA]
                rows += [
                    (one, name, "juror", criterion, score)
                    for criterion, score in zip(CRITERIA, scores, strict=True)
                ]
    with (folder / "ratings.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("response_id", "rater", "kind", "criterion", "score"), *rows])


def whole(value: float) -> int:
    """Return a score on the scale."""
    return min(5, max(1, round(value)))


def differences(old: Any, new: Any, place: str = "") -> list[str]:
    """Return each figure of an older recording that is not the same in a newer one."""
    if isinstance(old, dict):
        return [
            one
            for key, value in old.items()
            for one in differences(value, new.get(key, "nothing"), f"{place}.{key}")
        ]
    if isinstance(old, list):
        short = [] if len(old) == len(new) else [f"{place} has {len(new)} for {len(old)}"]
        pairs = enumerate(zip(old, new, strict=False))
        return short + [one for at, pair in pairs for one in differences(*pair, f"{place}[{at}]")]
    if isinstance(old, float) and isinstance(new, float):
        same = old == pytest.approx(new, rel=CLOSE, abs=CLOSE)
        return [] if same else [f"{place}: {old!r} became {new!r}"]
    return [] if old == new else [f"{place}: {old!r} became {new!r}"]
