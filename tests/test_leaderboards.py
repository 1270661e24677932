"""Figures of models for HELM's leaderboards and for Every Eval Ever: right, whole, and unblinded."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kit.model_study import QUALITY, by_hand, model_study
from kit.rating_files import model_ratings, model_responses
from kit.studies import Run
from scipy import stats
from sqlalchemy import Engine

from calibration.models.model_scores import BenchmarkMean, benchmark_means
from calibration.writers.leaderboards import Judge, Provenance, record, records, release
from data.queries.record import acts

Write = Callable[[str, str], Path]
SOURCE = Provenance(
    "f" * 64,
    "0.1",
    1_700_000_000,
    "Ward",
    [Judge("gpt", "openai/gpt", {"temperature": 0.5})],
    {"notes": "Rate {{response}}"},
    {"notes": "a" * 64},
)
LIFT = ("--unblind", "--reason", "a leaderboard")


def hand() -> dict[tuple[str, str], BenchmarkMean]:
    scores, authors = by_hand()
    rows = benchmark_means(scores, authors, ["gpt"])
    return {(one.model, one.scorer): one for one in rows}


def test_means_and_errors_are_those_worked_out_by_hand() -> None:
    found = hand()
    # Clinician on model a: 5 and 4, sd 0.7071, error 0.5, t of one degree of freedom 12.7062.
    a = found["a", "clinicians"]
    assert (a.mean, a.error) == (4.5, pytest.approx(0.5))
    assert (a.low, a.high) == (
        pytest.approx(4.5 - 6.3531, abs=1e-3),
        pytest.approx(10.8531, abs=1e-3),
    )
    # The juror gave model c one score, 3: there is no interval, and one response is missing.
    c = found["c", "juror:gpt"]
    assert (c.mean, c.n_responses, c.n_missing, c.n_instances) == (3.0, 1, 1, 1)
    assert math.isnan(c.low)
    assert math.isnan(c.error)


def test_with_one_response_an_instance_it_is_the_plain_t_interval() -> None:
    scores, authors = model_study(QUALITY)
    given = scores.ratings[(scores.ratings["rater"] == "gpt")]
    for one in benchmark_means(scores, authors, ["gpt", "llama"]):
        if one.scorer == "juror:gpt":
            own = given[given["response_id"].map(authors) == one.model]
            points = own.loc[own["benchmark"] == one.benchmark, "score"].to_numpy()
            wanted = stats.ttest_1samp(points, 0.0).confidence_interval(0.95)
            assert (one.low, one.high) == pytest.approx((wanted.low, wanted.high), abs=1e-9)


def test_a_jury_has_a_score_only_where_all_its_jurors_have_one() -> None:
    scores, authors = model_study(QUALITY, n=6, rated=3)
    lost = (scores.ratings["rater"] == "llama") & (scores.ratings["instance_id"] == "notes/0")
    kept = scores.ratings[~lost].reset_index(drop=True)
    fewer = type(scores)(kept, scores.responses, scores.rubrics)
    rows = benchmark_means(fewer, authors, ["gpt", "llama"])
    jury = [one for one in rows if (one.scorer, one.benchmark) == ("jury", "notes")]
    assert {(one.n_responses, one.n_missing) for one in jury} == {(5, 1)}


def test_a_point_added_to_every_score_moves_every_figure_by_a_point() -> None:
    scores, authors = model_study({"alpha": 3.0, "beta": 2.5}, n=20, rated=10)
    moved = scores.ratings.assign(score=scores.ratings["score"].clip(1, 4))
    both = [
        benchmark_means(type(scores)(one, scores.responses, scores.rubrics), authors, ["gpt"])
        for one in (moved, moved.assign(score=moved["score"] + 1))
    ]
    for first, second in zip(*both, strict=True):
        ends = np.array([first.mean, first.low, first.high])
        assert [second.mean, second.low, second.high] == pytest.approx(ends + 1)


def test_a_release_has_null_and_words_where_a_figure_is_undefined() -> None:
    files = release(list(hand().values()), "r", "2026-01-01", "about")
    tables = {one["name"]: one for one in json.loads(files["groups/medjury.json"])}
    assert list(tables) == [
        f"{name}{end}" for name in ("clinicians", "jury", "juror_gpt") for end in ("", "_interval")
    ]
    rows = {row[0]["value"]: row[1:] for row in tables["juror_gpt"]["rows"]}
    assert rows["c"][0]["value"] == 3.0
    assert "1 without a score; no interval" in rows["c"][0]["description"]
    ends = {row[0]["value"]: row[1:] for row in tables["juror_gpt_interval"]["rows"]}
    assert [one["value"] for one in ends["c"]] == [None, None]
    assert json.loads(files["summary.json"])["release"] == "r"
    assert all("NaN" not in text for text in files.values())


def test_a_record_leaves_out_what_is_undefined_and_says_so() -> None:
    rows = [one for (model, _), one in hand().items() if model == "c"]
    empty = [one for one in rows if one.scorer == "clinicians"]
    lost = BenchmarkMean("c", "notes", "jury", *[math.nan] * 4, 0, 2, 0, 1, 5, ())
    found = record("c", [*empty, lost], SOURCE)
    assert [one["evaluation_result_id"] for one in found["evaluation_results"]] == [
        "notes/clinicians"
    ]
    told = found["source_metadata"]["additional_details"]
    assert told["results_without_a_score"] == "notes by jury"


def test_a_record_has_jurors_intervals_and_the_clinicians_as_baseline() -> None:
    ((path, text),) = [
        one for one in records(list(hand().values()), SOURCE).items() if "/a/" in one[0]
    ]
    assert path.startswith("data/medjury/unknown/a/")
    results = {one["evaluation_result_id"]: one for one in json.loads(text)["evaluation_results"]}
    juror = results["notes/juror:gpt"]
    scoring = juror["metric_config"]["llm_scoring"]
    assert scoring["expert_baseline"] == 4.5
    assert scoring["judges"][0]["model_info"]["id"] == "openai/gpt"
    assert (scoring["judges"][0]["temperature"], scoring["input_prompt"]) == (
        0.5,
        "Rate {{response}}",
    )
    assert results["notes/clinicians"]["score_details"]["uncertainty"]["confidence_interval"][
        "upper"
    ] == pytest.approx(10.8531, abs=1e-3)
    texts = [*_texts(json.loads(text))]
    assert texts
    assert all(isinstance(one, str) for one in texts)


def _texts(body: Any) -> Any:
    """Yield the values that the schema wants as texts."""
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if key in ("additional_details", "details"):
            yield from value.values()
        elif isinstance(value, dict | list):
            yield from _texts(value)


@pytest.fixture
def compared(run: Run, write: Write) -> None:
    assert run("study", "import", str(write("r.csv", model_responses())))[0] == 0
    assert run("rate", "ratings", str(write("s.csv", model_ratings())))[0] == 0


def test_models_are_named_only_where_the_blind_is_lifted(
    run: Run, engine: Engine, compared: None, tmp_path: Path
) -> None:
    place = str(tmp_path / "board")
    code, _, err = run("share", "export", "--leaderboard", place)
    assert (code, "--unblind with a --reason" in err, Path(place).exists()) == (2, True, False)
    assert run("share", "export", "--leaderboard", place, *LIFT)[0] == 0
    assert len(acts(engine, "unblinded")) == 1
    code, out, _ = run("share", "export", "--every-eval-ever", str(tmp_path / "eee"))
    assert (code, "3 models on 1 benchmark" in out) == (0, True)
    assert len([*(tmp_path / "eee").rglob("*.json")]) == 3
    rows = json.loads((tmp_path / "board" / "groups" / "medjury.json").read_text("utf-8"))
    assert {row[0]["value"] for row in rows[0]["rows"]} == {"model-one", "model-two", "model-three"}


def test_what_cannot_be_written_is_refused_before_the_blind_is_lifted(
    run: Run, engine: Engine, compared: None, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    code, _, err = run("share", "export", "--leaderboard", str(tmp_path / "full"), *LIFT)
    assert (code, "--leaderboard" in err, "is there already" in err) == (2, True, True)
    only = ("--authors-only", "--reason", "analysis")
    assert run("share", "export", "--every-eval-ever", str(tmp_path / "e"), *only)[0] == 2
    assert acts(engine, "unblinded") == []
