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
from openpyxl import load_workbook
from rouge_score.rouge_scorer import RougeScorer
from sqlalchemy import Engine

from data.card import Reply
from data.rubric import read_rubric
from data.schema import Status
from data.study.assignments import Slot, assign
from data.study.frames import ratings_frame
from data.study.people import check_code, invite
from data.study.ratings import submit
from data.study.room import next_task
from data.study.standing import pairs
from jury.parse import parse
from medjury import main

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
DATASETS = Path(__file__).parents[3] / "shared" / "datasets"
SCRIPTS = ROOT / "docs" / "real_data"
RUBRICS = SCRIPTS / "rubrics"
GARBLED = ("--encoding", "utf-8")  # as some models wrote it
GOOGLE = RougeScorer(["rougeL"], use_stemmer=True)
Run = Callable[..., tuple[int, str, str]]


class Converted:
    """What a script wrote and said."""

    def __init__(self, script: str, folder: str, out: Path) -> None:
        if not (DATASETS / folder).is_dir():
            pytest.skip(f"the public data set {folder} is not at {DATASETS / folder}")
        command = [sys.executable, str(SCRIPTS / f"{script}.py"), str(DATASETS), str(out)]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        self.out, self.said = out, run.stdout.splitlines()

    def rows(self, name: str) -> list[dict[str, str]]:
        """Return the rows of a file it wrote."""
        path = self.out / name
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def summeval(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return Converted("summeval", "summeval_op", tmp_path_factory.mktemp("summeval"))


@pytest.fixture(scope="module")
def mentalbench(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return Converted("mentalbench", "mentalbench_judges", tmp_path_factory.mktemp("mentalbench"))


@pytest.fixture(scope="module")
def aci_bench(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return Converted("aci_bench", "aci_bench", tmp_path_factory.mktemp("aci_bench"))


@pytest.fixture(scope="module")
def mslr(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    return Converted("mslr", "mslr_cochrane", tmp_path_factory.mktemp("mslr"))


@pytest.fixture
def medjury(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run one command on the test's study and return its exit code, output and messages."""
    monkeypatch.setenv("MEDJURY_DB", url)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        said = capsys.readouterr()
        return int(str(ended.value.code or 0)), said.out, said.err

    return call


def done(run: Run, *words: object) -> str:
    """Run a command that must succeed and return what it says."""
    code, out, err = run(*words)
    assert code == 0, err
    return out


def calibrated(run: Run, *options: object) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the rows of `analyse calibrate --json` by benchmark and scorer."""
    rows = json.loads(done(run, "analyse", "calibrate", "--reps", 20, "--json", "-", *options))[
        "rows"
    ]
    return {(row["benchmark"], row["scorer"]): row for row in rows}


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


# SummEval-OP


def test_every_summary_comes_with_three_ratings_and_the_published_means(
    summeval: Converted,
) -> None:
    responses, ratings = summeval.rows("responses.jsonl"), summeval.rows("ratings.csv")
    assert (len(responses), len(ratings)) == (416, 3 * 416)
    assert Counter(row["benchmark"] for row in responses) == {
        "summeval": 384,
        "summeval_human": 32,
    }
    means = pd.read_csv(summeval.out / "ratings.csv").groupby("response_id").mean(numeric_only=True)
    published = DATASETS / "summeval_op" / "summeval-op.jsonl"
    products = [json.loads(line) for line in published.read_text("utf-8").splitlines()]
    for number, row in enumerate(responses):
        printed = products[number // 13]["summaries"][row["model"]]
        assert row["response"] == printed["summary"]
        for name, value in printed["dimensions"].items():
            criterion = name.lower().replace(" ", "_")
            assert means.loc[row["response_id"], criterion] == pytest.approx(value, abs=0.006)


def test_pairs_of_annotators_agree_as_pingouin_finds(summeval: Converted, medjury: Run) -> None:
    done(
        medjury,
        "study",
        "import",
        summeval.out / "responses.jsonl",
        "--rubric",
        RUBRICS / "summeval",
    )
    done(medjury, "rate", "ratings", summeval.out / "ratings.csv")
    row = calibrated(medjury, "--criterion", "fluency")
    table = by_rater(summeval, "fluency")
    ours = table[~table.index.str.endswith("-summary-00")]
    pairs = [
        ["annotator-1", "annotator-2"],
        ["annotator-1", "annotator-3"],
        ["annotator-2", "annotator-3"],
    ]
    expected = float(np.mean([pingouin_pair(ours[pair]) for pair in pairs]))
    assert row["summeval", "clinicians"]["n_pairs"] == 3
    assert row["summeval", "clinicians"]["icc"] == pytest.approx(expected, abs=1e-9)


def test_rouge_of_real_summaries_is_google_s_and_ranks_against_the_annotators(
    summeval: Converted, medjury: Run, engine: Engine
) -> None:
    done(
        medjury,
        "study",
        "import",
        summeval.out / "responses.jsonl",
        "--rubric",
        RUBRICS / "summeval",
    )
    done(medjury, "rate", "ratings", summeval.out / "ratings.csv")
    said = done(medjury, "analyse", "measure", "rouge-l")
    assert "rouge-l: scored 384 of 416 responses, 32 have no reference" in said
    _expect_google(engine, every=12)
    row = calibrated(medjury)["summeval", "metric:rouge-l"]
    assert (row["n_responses"], row["n_instances"]) == (384, 32)
    assert row["icc"] == pytest.approx(-1.030, abs=0.001)
    assert row["spearman"] == pytest.approx(-0.376, abs=0.001)


def test_importing_real_files_again_changes_nothing(summeval: Converted, medjury: Run) -> None:
    done(
        medjury,
        "study",
        "import",
        summeval.out / "responses.jsonl",
        "--rubric",
        RUBRICS / "summeval",
    )
    done(medjury, "rate", "ratings", summeval.out / "ratings.csv")
    responses = done(medjury, "study", "import", summeval.out / "responses.jsonl")
    ratings = done(medjury, "rate", "ratings", summeval.out / "ratings.csv")
    assert "416 were there already" in responses
    assert "8736 were there already" in ratings
    assert "nothing changed" in responses
    assert "nothing changed" in ratings


def _expect_google(engine: Engine, every: int) -> None:
    """Compare the stored ROUGE-L of each n-th response with rouge-score's, exactly."""
    frame = ratings_frame(engine)
    stored = frame[frame["rater"] == "rouge-l"].set_index("response_id")["score"]
    for one in [one for one in pairs(engine) if one.reference][::every]:
        expected = GOOGLE.score(one.reference, one.text)["rougeL"].fmeasure
        assert stored[one.response_id] == expected


# MentalBench


def test_what_no_score_could_be_read_from_is_missing_and_counted(mentalbench: Converted) -> None:
    assert mentalbench.said == [
        "responses.csv: 10000 rows",
        "ratings_raw.csv: 9943 rows",
        "ratings.csv: 49739 rows",
        "missing: claude-3.7-sonnet: replies with broken JSON: 2",
        "missing: claude-3.7-sonnet: replies with no JSON, only words: 1",
        "missing: consensus: replies in a row that shows another conversation: 190",
        "missing: consensus: replies with an empty cell: 56",
        "missing: consensus: scores that are 0: 231",
        "missing: consensus: scores that are 6: 8",
        "missing: consensus: scores that are None: 10",
        "missing: gemini-2.5-flash: replies with an empty cell: 7",
        "missing: gemini-2.5-flash: replies with broken JSON: 1",
        "missing: o4-mini: replies with an empty cell: 1",
        "missing: o4-mini: replies with broken JSON: 3",
    ]


def test_no_answer_in_another_form_than_the_one_asked_for_is_a_verdict() -> None:
    # The raw answers have other keys, and bare numbers where a juror is asked for {"score": ...}.
    rubric, seen = read_rubric(RUBRICS / "mentalbench"), Counter[Status]()
    for file in ("claude_llm_judge.xlsx", "gemini_llm_judge.xlsx", "o4-mini_llm_judge.xlsx"):
        book = load_workbook(DATASETS / "mentalbench_judges" / file, read_only=True)
        for _, _, *cells in list(book.worksheets[0].values)[1:]:
            seen.update(parse(str(cell or ""), rubric).status for cell in cells)
        book.close()
    assert seen == {Status.INVALID_JSON: 30_000}


def test_the_panel_s_scores_off_the_scale_are_refused_by_name(
    mentalbench: Converted, medjury: Run, engine: Engine
) -> None:
    done(
        medjury,
        "study",
        "import",
        mentalbench.out / "responses.csv",
        "--rubric",
        RUBRICS / "mentalbench",
    )
    code, _, said = medjury("rate", "ratings", mentalbench.out / "ratings_raw.csv")
    assert (code, said.strip()) == (
        2,
        "medjury: ratings_raw.csv row 5609: helpfulness=6 by consensus on "
        "conversation-0562-reply-06: the scale of mentalbench is 1-5; nothing was imported",
    )
    assert ratings_frame(engine).empty
    rows = mentalbench.rows("ratings_raw.csv")
    off = (n for n, row in enumerate(rows, start=2) if {"0", "6"} & set(list(row.values())[3:]))
    assert next(off) == 5609


@pytest.mark.slow
def test_350_000_scores_of_four_judges_agree_as_numpy_finds(
    mentalbench: Converted, medjury: Run
) -> None:
    done(
        medjury,
        "study",
        "import",
        mentalbench.out / "responses.csv",
        "--rubric",
        RUBRICS / "mentalbench",
    )
    said = done(medjury, "rate", "ratings", mentalbench.out / "ratings.csv")
    assert "347924 ratings imported" in said
    assert "249 empty cells stay missing" in said
    rows = calibrated(medjury)
    criteria = read_rubric(RUBRICS / "mentalbench").criteria
    table = by_rater(mentalbench, *criteria).query("consensus.notna()")
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


# ACI-Bench


def test_every_note_of_the_longest_dialogue_is_rated_beside_all_of_it(
    aci_bench: Converted, medjury: Run, engine: Engine
) -> None:
    done(medjury, "study", "import", aci_bench.out / "responses.csv", *GARBLED)
    rows = aci_bench.rows("responses.csv")
    longest = max((row["context"] for row in rows), key=lambda text: len(text.split()))
    notes = {row["response"] for row in rows if row["context"] == longest}
    assert len(longest.split()) > 1500
    codes = invite(engine, ["dr_long"])
    reference = next(row["reference"] for row in rows if row["context"] == longest)
    chosen = [one.response for one in pairs(engine) if one.reference == reference]
    assert len(chosen) == 13
    assign(engine, [Slot("dr_long", one, place) for place, one in enumerate(chosen)], seed=0)
    person = check_code(engine, codes[0].code).person
    assert person is not None
    seen = set()
    while task := next_task(engine, person.rater).task:
        assert (task.rubric.name, task.card.context) == ("aci_bench", longest)
        seen.add(task.card.response)
        submit(
            engine, person.rater, task.card.code, Reply(dict.fromkeys(task.rubric.criteria, 3)), 60
        )
    assert seen == notes


def test_all_520_notes_are_dealt_evenly(aci_bench: Converted, medjury: Run) -> None:
    done(medjury, "study", "import", aci_bench.out / "responses.csv", *GARBLED)
    said = done(medjury, "rate", "assign", "--raters", 4, "--per-response", 2, "--json", "-")
    plan = json.loads(said)
    assert set(plan["load"].values()) == {260}
    assert sum(plan["overlap"].values()) == 520


def test_rouge_of_real_notes_is_google_s(
    aci_bench: Converted, medjury: Run, engine: Engine
) -> None:
    done(medjury, "study", "import", aci_bench.out / "responses.csv", *GARBLED)
    assert "rouge-l: scored 520 of 520 responses" in done(medjury, "analyse", "measure", "rouge-l")
    _expect_google(engine, every=17)


# MSLR, Cochrane part


def test_answers_without_a_point_are_missing_and_counted(mslr: Converted, medjury: Run) -> None:
    assert mslr.said[2:] == [
        "left out: 1 summary without a word, with its ratings",
        "missing: fluency 1 x no answer",
        "missing: intervention 1 x N/A",
        "missing: intervention 7 x Other",
        "missing: intervention 2 x no answer",
        "missing: outcome 188 x N/A",
        "missing: outcome 50 x Other",
        "missing: outcome 2 x no answer",
        "missing: population 11 x N/A",
        "missing: population 14 x Other",
        "missing: population 2 x no answer",
    ]
    done(medjury, "study", "import", mslr.out / "responses.jsonl", "--rubric", RUBRICS / "mslr")
    said = done(medjury, "rate", "ratings", mslr.out / "ratings.csv")
    assert "2274 ratings imported" in said
    assert "278 empty cells stay missing" in said


def test_a_sparse_pair_agrees_as_pingouin_finds_on_one_criterion_and_on_all(
    mslr: Converted, medjury: Run
) -> None:
    done(medjury, "study", "import", mslr.out / "responses.jsonl", "--rubric", RUBRICS / "mslr")
    done(medjury, "rate", "ratings", mslr.out / "ratings.csv")
    criteria = read_rubric(RUBRICS / "mslr").criteria
    for asked, shared in ((("outcome",), 17), (criteria, 15)):
        options = ["--criterion", *asked] if len(asked) == 1 else []
        row = calibrated(medjury, *options)["mslr", "clinicians"]
        assert (row["n_pairs"], row["n_responses"]) == (1, shared)
        assert row["icc"] == pytest.approx(pingouin_pair(by_rater(mslr, *asked)), abs=1e-9)
        assert "fewer than 20 instances" in row["note"]


def test_reference_of_the_review_is_what_mslr_is_measured_against(
    mslr: Converted, medjury: Run, engine: Engine
) -> None:
    done(medjury, "study", "import", mslr.out / "responses.jsonl", "--rubric", RUBRICS / "mslr")
    assert "rouge-l: scored 599 of 599 responses" in done(medjury, "analyse", "measure", "rouge-l")
    _expect_google(engine, every=24)
