"""The jury corrected with the clinicians' sample: where it is right, and where it says it may not be."""

import numpy as np
import pytest
from kit.model_study import QUALITY, by_model, compared, model_study

from calibration.models import model_scores
from calibration.notes import told
from calibration.predicting import prediction_powered_mean
from calibration.scores import Scores


def test_a_corrected_mean_is_the_prediction_powered_mean():
    scores, authors = model_study(QUALITY, bias={"gamma": 0.9}, benchmarks=("notes",))
    rows = by_model(compared(scores, authors), "corrected")
    frame = model_scores(scores, authors, ["gpt", "llama"])
    for name in QUALITY:
        own = frame[frame["model"] == name]
        columns = (own[column].to_numpy() for column in ("clinicians", "jury", "instance"))
        expected = prediction_powered_mean(*columns).corrected
        assert rows[name].macro_average == pytest.approx(expected.value)
        # Its interval spends a degree of freedom more, on the weight.
        ends = expected.interval(0.95)
        assert rows[name].high - rows[name].low == pytest.approx(ends.high - ends.low, rel=0.1)
        assert (rows[name].n_responses, rows[name].n_missing, rows[name].n_rated) == (60, 0, 25)


def test_where_clinicians_rated_everything_the_correction_is_their_mean():
    scores, authors = model_study(QUALITY, n=20, rated=20, bias={"gamma": 1.0})
    found = compared(scores, authors)
    clinical, corrected = by_model(found, "clinicians"), by_model(found, "corrected")
    for name in QUALITY:
        for field in (
            "win_rate",
            "macro_average",
            "macro_average_sd",
            "low",
            "high",
            "shared_rank_high",
        ):
            assert getattr(corrected[name], field) == pytest.approx(getattr(clinical[name], field))


def test_where_clinicians_rated_all_of_a_handful_the_correction_is_their_mean_too():
    found = compared(*model_study(QUALITY, n=3, rated=3, bias={"gamma": 1.0}))
    clinical, corrected = by_model(found, "clinicians"), by_model(found, "corrected")
    for name in QUALITY:
        assert corrected[name].n_benchmarks == 2
        for field in ("macro_average", "low", "high"):
            assert getattr(corrected[name], field) == pytest.approx(getattr(clinical[name], field))


@pytest.mark.parametrize("silent", [3, 10])
def test_clinicians_who_rated_everything_need_no_jury_for_the_correction(silent):
    scores, authors = model_study(QUALITY, n=10, rated=10, benchmarks=("notes",))
    ids = scores.ratings["response_id"].isin([f"notes-{i}-alpha" for i in range(silent)])
    left = scores.ratings[~(ids & (scores.ratings["kind"] == "juror"))]
    found = compared(Scores(left, scores.responses, scores.rubrics), authors)
    corrected, clinical = by_model(found, "corrected")["alpha"], by_model(found, "clinicians")
    assert corrected.macro_average == pytest.approx(clinical["alpha"].macro_average)
    assert (corrected.low, corrected.high) == (clinical["alpha"].low, clinical["alpha"].high)
    assert (corrected.n_responses, corrected.n_missing, corrected.n_rated) == (10, 0, 10)


def test_a_benchmark_with_too_few_rated_instances_is_left_out_with_words_for_it():
    scores, authors = model_study(QUALITY, n=30, rated=10)
    clinical = (scores.ratings["kind"] == "clinician") & (scores.ratings["benchmark"] == "notes")
    three = sorted(set(scores.ratings[clinical]["instance_id"]))[:3]
    kept = ~clinical | scores.ratings["instance_id"].isin(three)
    few = Scores(scores.ratings[kept], scores.responses, scores.rubrics)
    for row in by_model(compared(few, authors), "corrected").values():
        assert row.n_benchmarks == 1
        assert (
            "on notes: with a mean on 1 of 2 benchmarks, not comparable with models, or ways"
            in told(row.notes)
        )


def test_a_correction_from_chosen_responses_is_told_of():
    scores, authors = model_study(QUALITY, n=80, rated=80)
    jury = scores.ratings[scores.ratings["kind"] == "juror"].groupby("response_id")["score"].mean()
    best = set(jury[jury > jury.quantile(0.6)].index)
    kept = (scores.ratings["kind"] == "juror") | scores.ratings["response_id"].isin(best)
    chosen = Scores(scores.ratings[kept], scores.responses, scores.rubrics)
    (note, *_) = [
        told(row.notes) for row in compared(chosen, authors).rows if row.by == "corrected"
    ]
    assert "may be no random sample by the jury's scores: letters (" in note
    assert "sd better" in note
    fair = compared(*model_study(QUALITY, n=80, rated=30, seed=1))
    assert not [row for row in fair.rows if "random sample" in told(row.notes)]


def test_a_jury_that_favours_a_model_ranks_wrongly_and_its_correction_does_not():
    scores, authors = model_study(QUALITY, bias={"gamma": 0.9})
    found = compared(scores, authors)
    assert list(by_model(found, "jury")) == ["gamma", "alpha", "beta"]
    assert list(by_model(found, "corrected")) == ["alpha", "beta", "gamma"]


@pytest.mark.slow
def test_corrected_intervals_hold_the_truth_where_the_jurys_do_not():
    held = {"jury": [], "corrected": [], "clinicians": []}
    width = {by: [] for by in held}
    wrong = dict.fromkeys(held, 0)
    for seed in range(120):
        scores, authors = model_study(QUALITY, bias={"gamma": 0.9}, n=100, rated=30, seed=seed)
        found = compared(scores, authors, reps=400)
        for by in held:
            rows = by_model(found, by)
            wrong[by] += list(rows) != ["alpha", "beta", "gamma"]
            for name, row in rows.items():
                held[by].append(row.low <= (QUALITY[name] - 1) / 4 <= row.high)
                width[by].append(row.high - row.low)
    assert wrong["jury"] == 120
    assert wrong["corrected"] <= 2
    assert np.mean(held["corrected"]) >= 0.93
    assert np.mean(held["jury"]) < 0.7
    assert np.mean(width["corrected"]) < 0.85 * np.mean(width["clinicians"])
