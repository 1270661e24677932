"""Composites and z-scores: what a rater gave, on the scale of the rubric and on its own."""

import numpy as np
import pandas as pd
import pytest
from kit.scores import study

from calibration.columns import column_icc
from calibration.rating_matrix import (
    analysed_grid,
    composites,
    mean_of_given,
    without_variance,
    z_within_raters,
)
from calibration.scores import RATING_KEY, RubricShape, Scores
from calibration.table import ENOUGH_EACH, LOWERED, agreement_rows
from calibration.values import AnalysisOptions
from data.errors import BadInput, OffScale

NAN = np.nan
CLINICIANS = 20


def test_z_is_pandas_mean_and_sd_with_ddof_1_over_what_a_rater_gave():
    random = np.random.default_rng(0)
    table = random.normal(size=(30, 4))
    table[random.random(table.shape) < 0.3] = NAN
    frame = pd.DataFrame(table)

    expected = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()

    assert z_within_raters(table) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(
    ("column", "is_flat"),
    [
        ([3.0, 3.0, 3.0], True),
        ([(5 + 4 + 4) / 3, (4 + 5 + 4) / 3, 13 / 3 + 1e-15], True),  # rounding is no variance
        ([0.8501, 0.8502, 0.8503], False),  # but a narrow metric's is
        ([3, NAN, NAN], True),
        ([NAN] * 3, True),
    ],
)
def test_equal_single_or_no_scores_are_without_variance(column, is_flat):
    table = np.column_stack([column, [1.0, 2.0, 4.0]])

    assert without_variance(table).tolist() == [is_flat, False]
    assert np.isnan(z_within_raters(table)[:, 0]).all() == is_flat


def test_the_analysed_set_is_what_a_clinician_rated():
    rows = [
        ("r2", "i1", "aci", "dr", "clinician", 4.0),
        ("r1", "i1", "aci", "dr", "clinician", 3.0),
        ("r1", "i1", "aci", "j0", "juror", 2.0),
        ("r3", "i2", "aci", "j0", "juror", 1.0),  # no clinician
        ("r4", "i4", "chw", "dr", "clinician", 5.0),  # another benchmark
    ]
    columns = ["response_id", "instance_id", "benchmark", "rater", "kind", "composite"]

    grid = analysed_grid(
        pd.DataFrame(rows, columns=columns), ["aci"], jurors=["j0", "j1"], metrics=[]
    )

    assert grid.responses == ("r1", "r2")
    assert grid.raters == ("dr", "j0", "j1")
    assert grid.clusters.tolist() == [0, 0]
    assert grid.n_clusters == 1
    assert grid.composites == pytest.approx(np.array([[3, 2, NAN], [4, NAN, NAN]]), nan_ok=True)


@pytest.mark.parametrize("each", [5, 10])
def test_z_within_few_responses_lowers_the_icc_by_about_what_the_table_says(each):
    random, lowered = np.random.default_rng(each), []
    n = each * CLINICIANS // 2
    for _ in range(150):
        quality = random.normal(size=(n, 1))
        scores = quality + random.normal(size=(n, CLINICIANS + 1))
        readers = (2 * np.arange(n)[:, None] + [0, 1]) % CLINICIANS
        given = np.full((n, CLINICIANS), NAN)
        np.put_along_axis(given, readers, np.take_along_axis(scores, readers, axis=1), axis=1)
        jury = z_within_raters(scores[:, -1:])[:, 0]
        as_if_known = mean_of_given(given / np.sqrt(2))
        iccs = [
            column_icc(column, jury, "paper")
            for column in (as_if_known, mean_of_given(z_within_raters(given)))
        ]
        lowered.append(iccs[0] - iccs[1])
    assert np.mean(lowered) == pytest.approx(LOWERED / each, abs=0.02)


@pytest.mark.parametrize(
    ("n", "method", "said"), [(12, "paper", True), (60, "paper", False), (12, "published", False)]
)
def test_the_jurys_row_says_that_z_rests_on_few_responses_a_clinician(n, method, said):
    rows = agreement_rows(study(n=n), AnalysisOptions(reps=0, method=method))
    jury = next(row for row in rows if row.scorer == "jury")
    told = jury.told("few_each")
    assert bool(told) == said
    if told:
        assert told["median"] < ENOUGH_EACH
        assert told["lower"] == pytest.approx(LOWERED / told["median"])


RUBRICS = {
    "aci": RubricShape(("accuracy", "completeness", "clarity"), 1, 5),
    "chw": RubricShape(("accuracy", "clarity"), 1, 5),
}


def rate(response, rater, scores, kind="clinician", pass_=0, replicate=0):
    benchmark = response.split("-")[0]
    return [
        (response, f"{response}-instance", benchmark, rater, kind, name, value, pass_, replicate)
        for name, value in scores.items()
    ]


def study_of(*readings):
    columns = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
    rows = [row for reading in readings for row in reading]
    ratings = pd.DataFrame(rows, columns=[*columns, "pass_", "replicate"])
    return Scores(ratings, ratings[columns[:3]].drop_duplicates(), RUBRICS)


def values(found):
    table = found.values
    keys = zip(table["response_id"], table["rater"], strict=True)
    return dict(zip(keys, table["composite"], strict=True))


THREE = {"accuracy": 5, "completeness": 3, "clarity": 4}


def test_a_composite_is_the_mean_over_the_rubrics_criteria():
    found = composites(
        study_of(rate("aci-1", "a", THREE), rate("chw-1", "a", {"accuracy": 2, "clarity": 3}))
    )

    assert values(found) == {("aci-1", "a"): 4.0, ("chw-1", "a"): 2.5}
    assert found.incomplete.empty


@pytest.mark.parametrize(
    "lacking",
    [{"accuracy": 5, "clarity": 4}, {"empathy": 5}, THREE | {"clarity": float("nan")}],
)
def test_a_reading_that_lacks_a_criterion_has_no_composite_and_is_counted(lacking):
    found = composites(study_of(rate("aci-1", "a", lacking), rate("aci-2", "a", THREE)))

    assert values(found) == {("aci-2", "a"): 4.0}
    assert found.incomplete.to_dict("records") == [
        {"benchmark": "aci", "rater": "a", "readings": 1}
    ]


def test_a_criterion_off_the_rubric_does_not_enter_the_mean():
    found = composites(study_of(rate("chw-1", "a", {"accuracy": 2, "clarity": 3, "empathy": 5})))

    assert values(found) == {("chw-1", "a"): 2.5}


def test_repeats_and_replicates_are_averaged_and_an_incomplete_one_left_out():
    found = composites(
        study_of(
            rate("aci-1", "a", dict.fromkeys(THREE, 2)),
            rate("aci-1", "a", dict.fromkeys(THREE, 5), pass_=1),
            rate("aci-1", "j", dict.fromkeys(THREE, 1), "juror"),
            rate("aci-1", "j", dict.fromkeys(THREE, 4), "juror", replicate=1),
            rate("aci-1", "j", {"accuracy": 5}, "juror", replicate=2),
        )
    )

    assert values(found) == {("aci-1", "a"): 3.5, ("aci-1", "j"): 2.5}
    assert found.incomplete["readings"].tolist() == [1]


def test_one_criterion_alone_leaves_out_the_benchmarks_without_it():
    scores = study_of(
        rate("aci-1", "a", THREE),
        rate("aci-2", "a", {"accuracy": 5, "completeness": 2}),
        rate("chw-1", "a", {"accuracy": 2, "clarity": 3}),
    )

    found = composites(scores, "completeness")

    assert values(found) == {("aci-1", "a"): 3.0, ("aci-2", "a"): 2.0}


def test_a_metric_is_the_mean_of_its_own_criteria_off_every_scale():
    scores = study_of(
        rate("aci-1", "bert", {"f": 0.9, "p": 0.7}, "metric"), rate("aci-1", "a", THREE)
    )

    assert values(composites(scores))["aci-1", "bert"] == pytest.approx(0.8)
    assert values(composites(scores, "clarity"))["aci-1", "bert"] == pytest.approx(0.8)


def test_only_metrics_or_nothing_at_all_is_no_error():
    assert values(composites(study_of(rate("aci-1", "bert", {"f": 0.9}, "metric")))) == {
        ("aci-1", "bert"): 0.9
    }
    assert values(composites(study_of())) == {}


@pytest.mark.parametrize("score", [0, 6])
def test_a_score_off_the_scale_is_refused_by_name(score):
    with pytest.raises(OffScale, match=f"clarity={score} by a on aci-1"):
        study_of(rate("aci-1", "a", {"clarity": score}))


@pytest.mark.parametrize(
    ("readings", "why"),
    [
        ([("aci-1", "clinician"), ("aci-1", "clinician")], "two scores for accuracy on aci-1"),
        ([("aci-1", "clinician"), ("aci-2", "juror")], "a is two kinds"),
        ([("aci-1", "nurse")], "nurse"),
    ],
)
def test_a_score_given_twice_and_a_rater_of_two_kinds_or_none_are_refused(readings, why):
    with pytest.raises(BadInput, match=why):
        study_of(*(rate(response, "a", THREE, kind) for response, kind in readings))


def test_a_missing_column_is_refused_by_name():
    scores = study_of(rate("aci-1", "a", THREE))

    with pytest.raises(BadInput, match="replicate"):
        Scores(scores.ratings.drop(columns="replicate"), scores.responses, RUBRICS)
    assert set(RATING_KEY) < set(scores.ratings.columns)


def test_a_rating_of_an_unknown_response_or_benchmark_is_refused():
    scores = study_of(rate("aci-1", "a", THREE), rate("aci-2", "a", THREE))

    with pytest.raises(BadInput, match="aci-2"):
        Scores(scores.ratings, scores.responses.iloc[:1], RUBRICS)
    with pytest.raises(BadInput, match="no rubric for the benchmarks aci"):
        Scores(scores.ratings, scores.responses, {})
