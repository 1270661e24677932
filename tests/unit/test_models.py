"""Models compared: known answers by hand, and simulated studies whose truth is known."""

import numpy as np
import pandas as pd
import pytest
from kit.model_study import QUALITY, by_hand, by_instance, by_model, compared, model_study
from scipy import stats

from calibration.json_values import json_value
from calibration.models import model_scores
from calibration.notes import told
from calibration.predicting import means_of_both
from calibration.scores import RubricShape, Scores
from data.errors import BadInput, Unknown


def test_a_study_small_enough_to_work_by_hand():
    scores, authors = by_hand()
    found = compared(scores, authors, jurors=("gpt",), by=["clinicians", "jury"])
    # Clinicians: means 4.5, 4, 2 points are 7/8, 3/4, 1/4; a beats two, b one, c none.
    rows = by_model(found, "clinicians")
    assert list(rows) == ["a", "b", "c"]
    assert [row.macro_average for row in rows.values()] == pytest.approx([7 / 8, 3 / 4, 1 / 4])
    assert [row.win_rate for row in rows.values()] == [1.0, 0.5, 0.0]
    assert [row.macro_average_sd for row in rows.values()] == pytest.approx(
        [np.nan] * 3, nan_ok=True
    )
    # The jury has it the other way round, and one response of c without a score.
    rows = by_model(found, "jury")
    assert list(rows) == ["c", "b", "a"]
    assert [row.macro_average for row in rows.values()] == pytest.approx([1 / 2, 1 / 4, 0])
    assert (rows["c"].n_responses, rows["c"].n_missing) == (1, 1)
    assert "scored 1 of 2" in told(rows["c"].notes)
    assert "1 of its 2 scored instances have scores for all models" in told(rows["b"].notes)
    assert np.isnan([rows["c"].low, rows["c"].high]).all()


def test_too_few_rated_instances_have_no_correction_and_say_so():
    every, authors = by_hand()
    rated = every.ratings
    unrated = (rated["rater"] == "dr_a") & (rated["instance_id"] == "notes/1")
    scores = Scores(rated[~unrated], every.responses, every.rubrics)
    for row in compared(scores, authors, jurors=("gpt",), by=["corrected"]).rows:
        assert np.isnan([row.win_rate, row.macro_average, row.low]).all()
        assert (row.shared_rank_low, row.shared_rank_high) == (None, None)
        assert (row.n_benchmarks, row.without) == (0, ("notes",))
        assert (row.n_responses, row.n_missing) == (0, 2)
        assert "undefined: fewer than 5 instances" in told(row.notes)


def test_an_interval_is_by_t_and_that_of_a_win_rate_what_resampling_rows_gives():
    # One benchmark: draw instances, average their responses, no counts and no cells.
    scores, authors = model_study(QUALITY, n=30, rated=30, benchmarks=("notes",))
    row = by_model(compared(scores, authors, by=["clinicians"], reps=4000), "clinicians")["beta"]
    given = by_instance(model_scores(scores, authors, []), "clinicians")
    mean = stats.ttest_1samp(given[1], 0).confidence_interval()
    assert (row.low, row.high) == pytest.approx((mean.low, mean.high))
    random = np.random.default_rng(5)
    drawn = [given[:, random.integers(0, 30, 30)].mean(axis=1) for _ in range(4000)]
    wins = [(one[1] > one).sum() / 2 for one in drawn]
    assert (row.win_rate_low, row.win_rate_high) == tuple(np.quantile(wins, [0.025, 0.975]))


def test_a_model_that_lacks_a_benchmark_is_told_and_compared_on_the_other():
    scores, authors = model_study(QUALITY)
    absent = scores.responses["response_id"].str.fullmatch(r"letters-\d+-gamma")
    gone = set(scores.responses.loc[absent, "response_id"])
    left = Scores(
        scores.ratings[~scores.ratings["response_id"].isin(gone)],
        scores.responses[~absent],
        scores.rubrics,
    )
    rows = by_model(compared(left, authors), "jury")
    assert (rows["gamma"].n_benchmarks, rows["gamma"].without) == (1, ("letters",))
    assert "no score on letters: with a mean on 1 of 2 benchmarks, not comparable" in told(
        rows["gamma"].notes
    )
    assert "gamma" not in told(rows["alpha"].notes)
    alone = by_model(compared(scores, authors), "jury")
    assert rows["alpha"].macro_average == alone["alpha"].macro_average


def test_a_single_model_has_means_but_nobody_to_win_against():
    scores, authors = model_study({"alpha": 3.0}, n=25, rated=25)
    for row in compared(scores, authors).rows:
        assert np.isnan([row.win_rate, row.win_rate_low]).all()
        assert row.shared_rank_low is None
        assert row.low < row.macro_average < row.high
        assert "win rate undefined: no other model" in told(row.notes)


def test_models_that_say_the_same_tie_and_cannot_be_told_apart():
    scores, authors = model_study({"alpha": 3.0}, n=30, rated=30)
    twin = {"response_id": lambda t: t["response_id"].str.replace("alpha", "twin")}
    both = Scores(
        pd.concat([scores.ratings, scores.ratings.assign(**twin)], ignore_index=True),
        pd.concat([scores.responses, scores.responses.assign(**twin)], ignore_index=True),
        scores.rubrics,
    )
    authors |= {name.replace("alpha", "twin"): "twin" for name in authors}
    found = compared(both, authors, by=["clinicians"])
    for row in found.rows:
        assert row.win_rate == 0.5
        assert row.win_rate_low < 0.5 < row.win_rate_high
        assert (row.shared_rank_low, row.shared_rank_high) == (1, 2)
        assert {row.model, *row.not_told_apart} == {"alpha", "twin"}
    (pair,) = found.differences
    assert np.isnan([pair.low, pair.high, pair.p, pair.p_holm]).all()
    assert not pair.is_ahead


def test_scores_that_are_all_the_same_have_no_interval_but_a_win_rate_has_wilsons():
    scores, authors = model_study(QUALITY, n=20, rated=20, benchmarks=("notes",))
    points = scores.ratings["response_id"].str[-1].map({"a": 5.0})  # every model ends in an a
    rated = scores.ratings.assign(score=points)
    rated.loc[rated["response_id"].str.endswith("beta"), "score"] = 4.0
    found = compared(Scores(rated, scores.responses, scores.rubrics), authors, by=["clinicians"])
    rows = by_model(found, "clinicians")
    for row in rows.values():
        assert np.isnan([row.low, row.high]).all()
    # Wilson's interval of 0 of 20: up to z^2 / (20 + z^2), z = 1.96.
    assert (rows["beta"].win_rate, rows["beta"].win_rate_low) == (0, 0)
    assert rows["beta"].win_rate_high == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-4)


def test_categories_are_means_over_their_benchmarks():
    names = ("letters", "notes", "visits")
    scores, authors = model_study(QUALITY, benchmarks=names)
    kinds = {"letters": "Writing", "notes": "Writing"}
    found = compared(scores, authors, kinds, by=["jury"])
    mean = model_scores(scores, authors, ["gpt", "llama"]).groupby(["model", "benchmark"])
    jury = mean["jury"].mean()
    assert by_model(found, "jury")["beta"].categories == pytest.approx(
        {
            "": jury["beta", "visits"],
            "Writing": (jury["beta", "letters"] + jury["beta", "notes"]) / 2,
        }
    )


def test_a_benchmark_without_the_criterion_is_left_out_and_named():
    scores, authors = model_study(QUALITY)
    other = RubricShape(("tone",), 1, 5)
    shapes = dict(scores.rubrics) | {"notes": other}
    found = compared(
        Scores(scores.ratings, scores.responses, shapes), authors, criterion="accuracy"
    )
    for row in found.rows:
        assert row.n_benchmarks == 1
        assert row.n_responses + row.n_missing == 60
        assert "no such criterion: notes left out" in told(row.notes)


def test_the_same_seed_gives_the_same_figures_whatever_the_order_of_the_rows():
    scores, authors = model_study(QUALITY)
    mixed = Scores(
        scores.ratings.sample(frac=1, random_state=1),
        scores.responses.sample(frac=1, random_state=2),
        scores.rubrics,
    )
    for ours, theirs in zip(
        compared(scores, authors).rows, compared(mixed, authors).rows, strict=True
    ):
        ours, theirs = json_value(ours), json_value(theirs)
        assert [one["code"] for one in ours.pop("notes")] == [
            one["code"] for one in theirs.pop("notes")
        ]
        for key in ours:
            assert ours[key] == pytest.approx(theirs[key]), key
    close = model_study({"alpha": 3.1, "beta": 3.0}, n=30, rated=30, noise=0.7)
    lows = [[row.win_rate_low for row in compared(*close, seed=seed).rows] for seed in (0, 1)]
    assert lows[0] != lows[1]


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"jurors": ("gpt", "nobody")}, Unknown, "no ratings by a juror nobody"),
        ({"criterion": "wit"}, Unknown, "no rubric has the criterion wit"),
        ({"jurors": ()}, BadInput, "there is no jury"),
        ({"reps": 0}, BadInput, "reps=0"),
        ({"seed": -1}, BadInput, "seed=-1"),
        ({"by": ["experts"]}, BadInput, "by=experts"),
    ],
)
def test_what_is_wrong_is_said_at_once(wanted, error, words):
    with pytest.raises(error, match=words):
        compared(*by_hand(), **({"jurors": ("gpt",)} | wanted))


def test_a_response_without_an_author_is_refused():
    scores, authors = by_hand()
    with pytest.raises(BadInput, match="1 responses, a0 first, have no author"):
        compared(
            scores, {name: one for name, one in authors.items() if name != "a0"}, jurors=("gpt",)
        )


def test_means_of_a_study_without_a_juror_are_those_of_its_clinicians():
    ids = [f"r{n:03}" for n in range(300)]  # more than a byte numbers, as a list of names has
    table = pd.DataFrame(
        {
            "response_id": pd.Categorical(ids, categories=ids),
            "kind": "clinician",
            "rater": "dr",
            "composite": np.arange(300.0),
        }
    )
    means = means_of_both(table, (), 1)
    assert means["clinicians"].tolist() == [*range(300)]
    assert means["jury"].isna().all()
