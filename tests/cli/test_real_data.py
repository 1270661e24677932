"""The whole chain on four public data sets; docs/evidence.md shows what is seen.

The scripts of docs/real_data are run as the page says, the product through its command line.
"""

import csv
import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pingouin
import pytest
from kit.studies import Run
from openpyxl import load_workbook
from rouge_score.rouge_scorer import RougeScorer

from data.rubric import read_rubric
from data.schema import Status
from data.study.frames import ratings_frame
from data.study.standing import pairs
from jury.parse import parse

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
DATASETS = ROOT.parent / "shared" / "datasets"
SCRIPTS = ROOT / "docs" / "real_data"
RUBRICS = SCRIPTS / "rubrics"
GOOGLE = RougeScorer(["rougeL"], use_stemmer=True)
# The script -> its data set, its file of responses, and how that is imported.
SETS = {
    "summeval": ("summeval_op", "responses.jsonl", ("--rubric", str(RUBRICS / "summeval"))),
    "mentalbench": (
        *("mentalbench_judges", "responses.csv"),
        ("--rubric", str(RUBRICS / "mentalbench")),
    ),
    "aci_bench": ("aci_bench", "responses.csv", ("--encoding", "utf-8")),  # garbled by some models
    "mslr": ("mslr_cochrane", "responses.jsonl", ("--rubric", str(RUBRICS / "mslr"))),
}


class Converted:
    """What a script wrote."""

    def __init__(self, script: str, out: Path) -> None:
        folder, self.responses, self.how = SETS[script]
        if not (DATASETS / folder).is_dir():
            pytest.skip(f"the public data set {folder} is not at {DATASETS / folder}")
        command = [sys.executable, str(SCRIPTS / f"{script}.py"), str(DATASETS), str(out)]
        subprocess.run(command, capture_output=True, check=True)
        self.out = out

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a file it wrote."""
        path = self.out / name
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def brought_into(self, run: Run, ratings: str = "") -> str:
        """Import the responses, and the ratings of a file if there is one; return what is said."""
        said = done(run, "study", "import", str(self.out / self.responses), *self.how)
        return done(run, "rate", "ratings", str(self.out / ratings)) if ratings else said


@pytest.fixture(scope="module")
def converted(tmp_path_factory) -> Callable[[str], Converted]:
    """Return what runs a data set's script, once."""
    made: dict[str, Converted] = {}

    def convert(script: str) -> Converted:
        if script not in made:
            made[script] = Converted(script, tmp_path_factory.mktemp(script))
        return made[script]

    return convert


def done(run: Run, *words: str) -> str:
    code, out, err = run(*words)
    assert code == 0, err
    return " ".join(out.split())


def calibrated(run: Run, *options: str) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of `analyse calibrate --json` by benchmark and scorer."""
    body = json.loads(done(run, "analyse", "calibrate", "--reps", "20", "--json", "-", *options))
    return {(row["benchmark"], row["scorer"]): row for row in body["rows"]}


def pingouin_pair(composites: pd.DataFrame) -> float:
    """Return pingouin's ICC(C,2) of two raters' columns, z-scored over all that each gave."""
    z = (composites - composites.mean()) / composites.std(ddof=1)
    shared = z.dropna().rename_axis("response_id").reset_index()
    long = shared.melt(id_vars="response_id", var_name="rater", value_name="z")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pingouin uses a keyword that pandas 3.1 deprecates
        found = pingouin.intraclass_corr(long, targets="response_id", raters="rater", ratings="z")
    return float(found.set_index("Type").loc["ICC(C,k)", "ICC"])


def by_rater(converted: Converted, *criteria: str) -> pd.DataFrame:
    """Return composites, responses in rows and raters in columns, straight from ratings.csv."""
    table = pd.read_csv(converted.out / "ratings.csv")
    table["composite"] = table[list(criteria)].mean(axis=1, skipna=False)
    return table.pivot(index="response_id", columns="rater", values="composite")


def test_every_summary_comes_with_three_ratings_and_the_published_means(converted):
    summeval = converted("summeval")
    responses, ratings = summeval.rows("responses.jsonl"), summeval.rows("ratings.csv")
    assert (len(responses), len(ratings)) == (416, 3 * 416)
    assert Counter(row["benchmark"] for row in responses) == {"summeval": 384, "summeval_human": 32}
    means = pd.read_csv(summeval.out / "ratings.csv").groupby("response_id").mean(numeric_only=True)
    published = DATASETS / "summeval_op" / "summeval-op.jsonl"
    products = [json.loads(line) for line in published.read_text("utf-8").splitlines()]
    for number, row in enumerate(responses):
        printed = products[number // 13]["summaries"][row["model"]]
        assert row["response"] == printed["summary"]
        for name, value in printed["dimensions"].items():
            criterion = name.lower().replace(" ", "_")
            assert means.loc[row["response_id"], criterion] == pytest.approx(value, abs=0.006)


def test_pairs_of_annotators_agree_as_pingouin_finds(converted, run):
    converted("summeval").brought_into(run, "ratings.csv")
    row = calibrated(run, "--criterion", "fluency")
    table = by_rater(converted("summeval"), "fluency")
    ours = table[~table.index.str.endswith("-summary-00")]
    pairs = [[f"annotator-{one}", f"annotator-{two}"] for one, two in ((1, 2), (1, 3), (2, 3))]
    expected = float(np.mean([pingouin_pair(ours[pair]) for pair in pairs]))
    assert row["summeval", "clinicians"]["n_pairs"] == 3
    assert row["summeval", "clinicians"]["icc"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "scored", "every"),
    [("summeval", (384, 416), 12), ("aci_bench", (520, 520), 17), ("mslr", (599, 599), 24)],
)
def test_rouge_of_real_texts_is_google_s(converted, run, engine, name, scored, every):
    converted(name).brought_into(run)
    said = done(run, "analyse", "measure", "rouge-l")
    assert "rouge-l: scored {} of {} responses".format(*scored) in said
    frame = ratings_frame(engine)
    stored = frame[frame["rater"] == "rouge-l"].set_index("response_id")["score"]
    for one in [one for one in pairs(engine) if one.reference][::every]:
        expected = GOOGLE.score(one.reference, one.text)["rougeL"].fmeasure
        assert stored[one.response_id] == expected


def test_rouge_ranks_against_the_annotators(converted, run):
    converted("summeval").brought_into(run, "ratings.csv")
    done(run, "analyse", "measure", "rouge-l")
    row = calibrated(run)["summeval", "metric:rouge-l"]
    assert (row["n_responses"], row["n_instances"]) == (384, 32)
    assert row["icc"] == pytest.approx(-1.030, abs=0.001)
    assert row["spearman"] == pytest.approx(-0.376, abs=0.001)


def test_no_answer_in_another_form_than_the_one_asked_for_is_a_verdict():
    # The raw answers have other keys, and bare numbers where a juror is asked for {"score": ...}.
    rubric, seen = read_rubric(RUBRICS / "mentalbench"), Counter[Status]()
    for file in ("claude_llm_judge.xlsx", "gemini_llm_judge.xlsx", "o4-mini_llm_judge.xlsx"):
        book = load_workbook(DATASETS / "mentalbench_judges" / file, read_only=True)
        for _, _, *cells in list(book.worksheets[0].values)[1:]:
            seen.update(parse(str(cell or ""), rubric).status for cell in cells)
        book.close()
    assert seen == {Status.INVALID_JSON: 30_000}


def test_the_panel_s_scores_off_the_scale_are_refused_by_name(converted, run, engine):
    mentalbench = converted("mentalbench")
    mentalbench.brought_into(run)
    code, _, said = run("rate", "ratings", str(mentalbench.out / "ratings_raw.csv"))
    assert code == 2
    assert "ratings_raw.csv row 5609: helpfulness=6 by consensus on conversation-0562-rep" in said
    assert ratings_frame(engine).empty
    rows = mentalbench.rows("ratings_raw.csv")
    off = (n for n, row in enumerate(rows, start=2) if {"0", "6"} & set(list(row.values())[3:]))
    assert next(off) == 5609


@pytest.mark.slow
def test_350_000_scores_of_four_judges_agree_as_numpy_finds(converted, run):
    said = converted("mentalbench").brought_into(run, "ratings.csv")
    assert "347924 ratings imported" in said
    assert "249 empty cells stay missing" in said
    rows = calibrated(run)
    criteria = read_rubric(RUBRICS / "mentalbench").criteria
    table = by_rater(converted("mentalbench"), *criteria).query("consensus.notna()")
    z = (table - table.mean()) / table.std(ddof=1)
    judges = [name for name in z.columns if name != "consensus"]
    columns = {f"juror:{name}": z[name] for name in judges}
    columns["jury"] = z[judges].mean(axis=1, skipna=False)
    for scorer, column in columns.items():
        both = pd.concat([z["consensus"], column], axis=1).dropna()
        cov = np.cov(both.to_numpy(), rowvar=False)
        row = rows["mentalbench", scorer]
        assert row["n_responses"] == len(both)
        assert row["icc"] == pytest.approx(4 * cov[0, 1] / cov.sum(), abs=1e-9)
    for scorer in ("clinicians", "like_for_like"):
        assert rows["mentalbench", scorer]["icc"] is None
        assert "undefined" in rows["mentalbench", scorer]["note"]


def test_a_sparse_pair_agrees_as_pingouin_finds_on_one_criterion_and_on_all(converted, run):
    said = converted("mslr").brought_into(run, "ratings.csv")
    assert "2474 ratings imported" in said
    assert "78 empty cells stay missing" in said
    criteria = read_rubric(RUBRICS / "mslr").criteria
    cells = pd.read_csv(converted("mslr").out / "ratings.csv", dtype=str, keep_default_na=False)
    whole = cells[(cells[[*criteria]] != "").all(axis=1)]
    points = whole[[*criteria]].replace("NA", None).astype(float)
    applying = whole.assign(mean=points.mean(axis=1))  # over the criteria that apply
    of_all = applying.pivot(index="response_id", columns="rater", values="mean")
    for asked, shared in ((("outcome",), 17), (criteria, 32)):
        options = ["--criterion", *asked] if len(asked) == 1 else []
        row = calibrated(run, *options)["mslr", "clinicians"]
        assert (row["n_pairs"], row["n_responses"]) == (1, shared)
        table = by_rater(converted("mslr"), *asked) if len(asked) == 1 else of_all
        assert row["icc"] == pytest.approx(pingouin_pair(table), abs=1e-9)
        assert "fewer than 20 instances" in row["note"]
    assert row["n_not_applicable"] == 200
