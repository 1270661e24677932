"""What the agreement table says beside its numbers, and where it has none."""

import math

import numpy as np
import pytest
from kit.scores import DOCTORS, rows_of, study, without

from calibration.scores import Scores
from calibration.table import agreement_rows, agreement_table
from calibration.values import AnalysisOptions


def test_responses_no_clinician_rated_are_not_analysed_but_counted_in_the_note():
    scores = study(seed=5)
    human = scores.ratings["kind"] == "clinician"
    unrated = human & scores.ratings["response_id"].isin([f"aci-r{i}" for i in range(5)])

    row = rows_of(agreement_table(without(scores, unrated), reps=60))["aci", "jury"]

    assert row.n_responses == 25
    assert row.n_missing == 0
    assert "scored 25 of 25 responses that clinicians rated, 30 of all 30" in row.note


def test_a_benchmark_without_clinicians_is_undefined_and_the_others_are_not():
    scores = study(("aci", "chw"))
    silent = (scores.ratings["kind"] == "clinician") & (scores.ratings["benchmark"] == "chw")

    rows = rows_of(agreement_table(without(scores, silent), reps=60))

    assert math.isnan(rows["chw", "jury"].icc)
    assert rows["chw", "jury"].note.startswith("undefined: no clinician")
    assert rows["combined", "jury"].icc == rows["aci", "jury"].icc


def test_a_criterion_a_rubric_lacks_leaves_that_benchmark_undefined():
    scores = study(("aci", "chw"), criteria={"chw": ("accuracy", "clarity")})

    rows = rows_of(agreement_table(scores, criterion="completeness", reps=60))

    assert "no criterion completeness" in rows["chw", "jury"].note
    assert math.isnan(rows["chw", "clinicians"].icc)
    assert rows["combined", "jury"].icc == rows["aci", "jury"].icc
    assert rows["combined", "jury"].n_responses == 30


def test_benchmarks_on_different_scales_are_not_combined():
    rows = rows_of(agreement_table(study(("aci", "chw"), scales={"chw": (1, 7)}), reps=60))

    assert all(
        math.isnan(row.icc) and "different scales" in row.note
        for (benchmark, _), row in rows.items()
        if benchmark == "combined"
    )
    assert rows["aci", "jury"].icc > 0.5


def test_a_juror_without_variance_is_named_and_not_zero():
    scores = study()
    ratings = scores.ratings.copy()
    ratings.loc[ratings["rater"] == "gpt", "score"] = 4.0
    flat = Scores(ratings, scores.responses, scores.rubrics)

    rows = rows_of(agreement_table(flat, reps=60))
    raw = rows_of(agreement_table(flat, reps=60, method="published"))

    assert math.isnan(rows["aci", "juror:gpt"].icc)
    assert math.isnan(raw["aci", "juror:gpt"].icc)
    assert "undefined" in rows["aci", "juror:gpt"].note
    assert "no variance: gpt" in rows["aci", "jury"].note
    assert rows["aci", "jury"].icc > 0.5
    pair = agreement_table(flat, jurors=["claude", "llama"], reps=60)
    assert rows["aci", "jury"].icc == pytest.approx(rows_of(pair)["aci", "jury"].icc)


def test_two_responses_are_undefined_with_the_reason():
    scores = study(n=2)

    row = rows_of(agreement_table(scores, reps=60))["aci", "jury"]

    assert [math.isnan(value) for value in row[2:7]] == [True] * 5
    assert "undefined" in row.note


@pytest.mark.parametrize("method", ["paper", "published"])
def test_one_clinician_has_nobody_to_be_compared_with_and_is_counted(method):
    scores = study()
    others = scores.ratings["rater"].isin([name for name in DOCTORS if name != "dr0"])
    alone = rows_of(agreement_table(without(scores, others), method=method, reps=60))

    analysed = alone["aci", "jury"].n_responses
    for scorer in ("clinicians", "like_for_like"):
        row = alone["aci", scorer]
        assert math.isnan(row.icc)
        assert row.note.startswith("undefined: only one clinician rated here, dr0")
        assert "mixed model" not in row.note
        assert (row.n_responses, row.n_clinicians) == (0, 1)
    assert alone["aci", "like_for_like"].n_missing == analysed


def test_like_for_like_counts_as_missing_what_no_comparison_uses():
    scores = study(n=40, seed=2)
    one = scores.ratings["response_id"].isin(["aci-r0", "aci-r1"])
    single = one & scores.ratings["kind"].eq("clinician")
    single &= scores.ratings.duplicated(["response_id", "kind", "criterion"])

    row = rows_of(agreement_table(without(scores, single), reps=60))["aci", "like_for_like"]

    assert (row.n_responses, row.n_missing) == (38, 2)


def test_clinicians_who_share_nothing_are_told_so():
    scores = study()
    clinical = scores.ratings["kind"].eq("clinician")
    second = clinical & scores.ratings.duplicated(["response_id", "kind", "criterion"])

    rows = rows_of(agreement_table(without(scores, second), reps=60))

    assert "undefined: no two clinicians share 2 responses" in rows["aci", "clinicians"].note
    assert "(no response has all the scores needed" in rows["aci", "like_for_like"].note
    assert rows["aci", "clinicians"].n_clinicians == 5


def test_a_scorer_that_ranks_against_the_clinicians_is_told_from_one_that_knows_nothing():
    scores = study(n=80, seed=1)
    ratings = scores.ratings.copy()
    metric = ratings["rater"] == "rouge-l"
    ratings.loc[metric, "score"] *= -1
    against = Scores(ratings, scores.responses, scores.rubrics)
    ratings = ratings.copy()
    ratings.loc[metric, "score"] = np.random.default_rng(0).normal(size=metric.sum())
    unrelated = Scores(ratings, scores.responses, scores.rubrics)

    opposite = rows_of(agreement_table(against, reps=60))["aci", "metric:rouge-l"]
    neither = rows_of(agreement_table(unrelated, reps=60))["aci", "metric:rouge-l"]

    assert opposite.high < 0
    assert opposite.spearman < 0
    assert "it ranks responses against the clinicians' order" in opposite.note
    assert neither.high > 0 > neither.icc
    assert "below 0: no agreement beyond chance" in neither.note


def test_a_simulated_rater_marks_every_row_it_enters_and_no_other():
    notes = {
        scorer: row.note
        for (_, scorer), row in rows_of(agreement_table(study(simulated=["gpt"]), reps=60)).items()
    }

    rows = agreement_rows(study(simulated=["gpt"]), AnalysisOptions(reps=60))

    marked = {scorer for scorer, note in notes.items() if "simulated" in note}
    assert marked == {"jury", "juror:gpt", "like_for_like"}
    assert {row.scorer: row.simulated for row in rows if row.simulated} == dict.fromkeys(
        marked, ("gpt",)
    )
    everywhere = agreement_table(study(simulated=DOCTORS), reps=60)
    assert everywhere["note"].str.contains("simulated").all()


def test_a_constant_juror_was_scored_by_and_has_no_z_which_is_said_once():
    scores = study(n=40)
    flat = scores.ratings["rater"].eq("gpt")
    ratings = scores.ratings.assign(score=scores.ratings["score"].mask(flat, 4))

    row = rows_of(agreement_table(Scores(ratings, scores.responses, scores.rubrics), reps=60))
    juror = row["aci", "juror:gpt"]

    assert (juror.n_responses, juror.n_missing) == (40, 0)
    assert juror.note == "scored 40 of 40; undefined: the scorer has no variance, hence no z"
