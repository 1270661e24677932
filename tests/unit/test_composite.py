import pandas as pd
import pytest

from calibration.rating_matrix import composites
from calibration.scores import RATING_KEY, RubricShape, Scores
from data.errors import BadInput, OffScale

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


def study(*readings):
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
        study(rate("aci-1", "a", THREE), rate("chw-1", "a", {"accuracy": 2, "clarity": 3}))
    )

    assert values(found) == {("aci-1", "a"): 4.0, ("chw-1", "a"): 2.5}
    assert found.incomplete.empty


@pytest.mark.parametrize(
    "lacking",
    [{"accuracy": 5, "clarity": 4}, {"empathy": 5}, THREE | {"clarity": float("nan")}],
)
def test_a_reading_that_lacks_a_criterion_has_no_composite_and_is_counted(lacking):
    found = composites(study(rate("aci-1", "a", lacking), rate("aci-2", "a", THREE)))

    assert values(found) == {("aci-2", "a"): 4.0}
    assert found.incomplete.to_dict("records") == [
        {"benchmark": "aci", "rater": "a", "readings": 1}
    ]


def test_a_criterion_off_the_rubric_does_not_enter_the_mean():
    found = composites(study(rate("chw-1", "a", {"accuracy": 2, "clarity": 3, "empathy": 5})))

    assert values(found) == {("chw-1", "a"): 2.5}


def test_repeats_and_replicates_are_averaged_and_an_incomplete_one_left_out():
    found = composites(
        study(
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
    scores = study(
        rate("aci-1", "a", THREE),
        rate("aci-2", "a", {"accuracy": 5, "completeness": 2}),
        rate("chw-1", "a", {"accuracy": 2, "clarity": 3}),
    )

    found = composites(scores, "completeness")

    assert values(found) == {("aci-1", "a"): 3.0, ("aci-2", "a"): 2.0}


def test_a_metric_is_the_mean_of_its_own_criteria_off_every_scale():
    scores = study(rate("aci-1", "bert", {"f": 0.9, "p": 0.7}, "metric"), rate("aci-1", "a", THREE))

    assert values(composites(scores))["aci-1", "bert"] == pytest.approx(0.8)
    assert values(composites(scores, "clarity"))["aci-1", "bert"] == pytest.approx(0.8)


def test_only_metrics_or_nothing_at_all_is_no_error():
    assert values(composites(study(rate("aci-1", "bert", {"f": 0.9}, "metric")))) == {
        ("aci-1", "bert"): 0.9
    }
    assert values(composites(study())) == {}


@pytest.mark.parametrize("score", [0, 6])
def test_a_score_off_the_scale_is_refused_by_name(score):
    with pytest.raises(OffScale, match=f"clarity={score} by a on aci-1"):
        study(rate("aci-1", "a", {"clarity": score}))


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
        study(*(rate(response, "a", THREE, kind) for response, kind in readings))


def test_a_missing_column_is_refused_by_name():
    scores = study(rate("aci-1", "a", THREE))

    with pytest.raises(BadInput, match="replicate"):
        Scores(scores.ratings.drop(columns="replicate"), scores.responses, RUBRICS)
    assert set(RATING_KEY) < set(scores.ratings.columns)


def test_a_rating_of_an_unknown_response_or_benchmark_is_refused():
    scores = study(rate("aci-1", "a", THREE), rate("aci-2", "a", THREE))

    with pytest.raises(BadInput, match="aci-2"):
        Scores(scores.ratings, scores.responses.iloc[:1], RUBRICS)
    with pytest.raises(BadInput, match="no rubric for the benchmarks aci"):
        Scores(scores.ratings, scores.responses, {})
