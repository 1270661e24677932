import numpy as np
import pandas as pd
import pytest
from kit.scores import CRITERIA, JURORS, note_of, study

from calibration.data_quality import at_points, distribution_rows, share_apart
from calibration.scope import scopes
from calibration.values import AnalysisOptions


def rows_of(scores, needed=None, name=None, **options):
    found = list(scopes(scores, AnalysisOptions(**{"reps": 0, "min_jurors": needed} | options)))
    scope = next(one for one in found if name in (None, one.name))
    return {(row.rater, row.criterion): row for row in distribution_rows(scope, scores)}


def with_scores(scores, table):
    return type(scores)(table, scores.responses, scores.rubrics, scores.simulated)


def test_there_is_a_row_a_rater_and_criterion():
    rows = rows_of(study(n=10))

    raters = ["clinicians", "jury", *(f"juror:{name}" for name in JURORS)]
    assert list(rows) == [(rater, criterion) for criterion in CRITERIA for rater in raters]
    assert {row.n for (rater, _), row in rows.items() if rater == "clinicians"} == {20}
    assert {row.n for (rater, _), row in rows.items() if rater != "clinicians"} == {10}


def test_figures_are_those_of_pandas():
    scores = study(n=25, seed=4)
    rows = rows_of(scores)

    table = scores.ratings
    for criterion in CRITERIA:
        own = table[table["criterion"] == criterion]
        doctors = own[own["kind"] == "clinician"]["score"]
        row = rows["clinicians", criterion]
        assert (row.mean, row.sd) == pytest.approx((doctors.mean(), doctors.std()))
        assert row.at_top == pytest.approx((doctors == 5).mean())
        expected = doctors.value_counts()
        assert row.counts == {str(i): int(expected.get(i, 0)) for i in range(1, 6)} | {"between": 0}
        means = own[own["kind"] == "juror"].pivot_table(index="response_id", values="score")
        jury = rows["jury", criterion]
        assert (jury.mean, jury.sd) == pytest.approx((means["score"].mean(), means["score"].std()))


def test_responses_two_points_apart_are_counted_as_by_hand():
    # Clinicians' means: a 4 (3 and 5), b 4, c 2 (its repeats 1 and 3 first), d none; the scorer's 2, 3, 4, 5.
    # Distances 2, 1, 2 and none: 2 of 3 responses.
    columns = ["response_id", "rater", "score"]
    given = [("a", "x", 3), ("a", "y", 5), ("b", "x", 4), ("c", "x", 1), ("c", "x", 3)]
    clinicians = pd.DataFrame(given, columns=columns)
    own = pd.DataFrame(
        [("a", "j", 2), ("b", "j", 3), ("c", "j", 4), ("d", "j", 5)], columns=columns
    )

    assert share_apart(own, clinicians) == pytest.approx(2 / 3)
    assert np.isnan(share_apart(own[3:], clinicians))


def test_the_share_apart_is_of_the_jury_and_not_of_the_clinicians():
    scores = study(n=25, seed=4)
    own = scores.ratings[scores.ratings["criterion"] == "clarity"]
    means = own.pivot_table(index="response_id", columns="kind", values="score")

    rows = rows_of(scores)

    far = (means["juror"] - means["clinician"]).abs() >= 2
    assert rows["jury", "clarity"].apart == pytest.approx(far.mean())
    assert rows["clinicians", "clarity"].apart is None


def test_the_jury_has_a_mean_where_enough_of_it_scored_the_criterion():
    scores = study(n=12)
    gone = (scores.ratings["rater"] == "gpt") & (scores.ratings["response_id"] == "aci-r4")
    gone &= scores.ratings["criterion"] == "accuracy"
    less = with_scores(scores, scores.ratings[~gone])

    assert rows_of(less)["jury", "accuracy"].n == 11
    assert rows_of(less)["jury", "clarity"].n == 12
    assert rows_of(less, needed=2)["jury", "accuracy"].n == 12


def test_replicates_are_counted_as_given_and_averaged_for_the_jury():
    scores = study(n=10)
    own = scores.ratings["rater"] == "gpt"
    again = scores.ratings[own].assign(replicate=1, score=5.0)
    rows = rows_of(with_scores(scores, pd.concat([scores.ratings, again], ignore_index=True)))

    assert rows["juror:gpt", "clarity"].n == 20
    assert rows["jury", "clarity"].n == 10
    first = scores.ratings[own & (scores.ratings["criterion"] == "clarity")]["score"]
    others = scores.ratings[
        scores.ratings["rater"].isin({"claude", "llama"})
        & (scores.ratings["criterion"] == "clarity")
    ]["score"]
    assert rows["jury", "clarity"].mean == pytest.approx(
        ((first.sum() + 50) / 2 + others.sum()) / 30
    )


def test_only_analysed_responses_are_counted():
    scores = study(n=10)
    bare = (scores.ratings["kind"] == "clinician") & (scores.ratings["response_id"] == "aci-r0")

    assert rows_of(with_scores(scores, scores.ratings[~bare]))["juror:gpt", "clarity"].n == 9


def test_combined_has_every_criterion_of_its_benchmarks_where_there_is_one():
    scores = study(("aci", "mts"), n=8, criteria={"mts": ("clarity", "safety")})

    rows = rows_of(scores, name="combined")

    assert [name for rater, name in rows if rater == "jury"] == [*CRITERIA, "safety"]
    assert rows["jury", "clarity"].n == 16
    assert rows["jury", "safety"].n == 8


def test_scales_that_differ_are_not_pooled():
    row = rows_of(study(("aci", "mts"), n=8, scales={"mts": (0, 5)}), name="combined")[
        "jury", "clarity"
    ]

    assert np.isnan([row.mean, row.sd, row.at_top]).all()
    assert row.counts == {}
    assert note_of(row) == "undefined: the benchmarks use different scales"


def test_a_juror_that_never_scored_a_criterion_has_no_figures():
    scores = study(n=8)
    gone = (scores.ratings["rater"] == "gpt") & (scores.ratings["criterion"] == "clarity")
    row = rows_of(with_scores(scores, scores.ratings[~gone]))["juror:gpt", "clarity"]

    assert (row.n, note_of(row)) == (0, "undefined: no score")
    assert np.isnan([row.mean, row.sd, row.at_top]).all()


def test_two_thirds_and_repeated_means_lie_between_and_rounding_does_not():
    values = np.array([1.0, 5.0, 14 / 3, 4.5, 0.1 + 0.2 + 2.7, 5.0 - 1e-15])
    assert at_points(values, 1, 5) == {"1": 1, "2": 0, "3": 1, "4": 0, "5": 2, "between": 2}
