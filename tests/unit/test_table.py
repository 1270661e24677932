"""The agreement table on small simulated studies whose answers are known."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from kit.scores import JURORS, rows_of, study, without

from calibration.columns import PanelColumns, column_icc, columns
from calibration.decision import DecisionKind
from calibration.icc import f_interval
from calibration.json_values import json_value
from calibration.rating_matrix import analysed_grid, composites
from calibration.scope import without_instances
from calibration.scores import Scores
from calibration.table import COLUMNS, agreement, agreement_rows, agreement_table
from calibration.values import AnalysisOptions
from calibration.verdict import decide
from data.errors import BadInput, TooFew, Unknown


def test_the_table_has_the_contracts_columns_and_rows_in_order():
    table = agreement_table(study(("aci", "chw")), reps=50)

    assert tuple(table.columns) == COLUMNS
    assert (
        *("benchmark", "scorer", "icc", "low", "high", "f_low"),
        *("f_high",),
        *("n_responses", "n_instances", "n_clinicians", "n_pairs", "n_missing"),
        *("spearman", "note"),
    ) == COLUMNS
    scorers = ["jury", *(f"juror:{name}" for name in JURORS), "metric:rouge-l"]
    scorers += ["clinicians", "like_for_like"]
    assert table["scorer"].tolist() == scorers * 3
    assert table["benchmark"].unique().tolist() == ["aci", "chw", "combined"]


def test_one_benchmark_needs_no_combined_rows():
    assert set(agreement_table(study(), reps=9)["benchmark"]) == {"aci"}


@pytest.mark.parametrize("method", ["paper", "published"])
def test_the_jurys_row_is_its_parts_put_together(method):
    scores = study(n=40, seed=1)
    grid = analysed_grid(composites(scores).values, ["aci"], jurors=JURORS, metrics=["rouge-l"])
    pair = columns(grid, PanelColumns(JURORS, 3), method)
    icc = column_icc(pair.clinicians, pair.scorer, method)

    row = rows_of(agreement_table(scores, method=method, reps=400))["aci", "jury"]

    assert row.icc == icc
    assert (row.f_low, row.f_high) == tuple(vars(f_interval(icc, 40)).values())
    assert row.low < icc < row.high
    assert (row.n_responses, row.n_instances, row.n_clinicians, row.n_missing) == (40, 40, 5, 0)
    ranked = (pd.Series(one.round(9)) for one in (pair.clinicians, pair.scorer))
    assert row.spearman == pytest.approx(next(ranked).corr(next(ranked), method="spearman"))
    assert row.note == "scored 40 of 40"


def test_a_known_structure_is_found():
    # Quality has sd 1 and a rater's criterion noise .6, so each composite has error variance
    # .36 / 3 + rounding. A jury of three then agrees almost perfectly, a noisy one does not.
    good = rows_of(agreement_table(study(n=150, seed=2), reps=200))
    poor = rows_of(agreement_table(study(n=150, seed=2, juror_noise=4), reps=200))

    assert good["aci", "jury"].icc > 0.9
    assert good["aci", "clinicians"].icc > 0.85
    assert good["aci", "like_for_like"].low > -0.02
    assert poor["aci", "jury"].icc < good["aci", "jury"].low
    assert poor["aci", "like_for_like"].high < 0


def test_combined_is_all_benchmarks_at_once_with_z_over_all_of_them():
    scores = study(("aci", "chw"), seed=3)
    one = Scores(
        scores.ratings.assign(benchmark="aci"),
        scores.responses.assign(benchmark="aci"),
        scores.rubrics,
    )

    combined = rows_of(agreement_table(scores, reps=60))
    pooled = rows_of(agreement_table(one, reps=60))

    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians", "like_for_like"):
        both = combined["combined", scorer], pooled["aci", scorer]
        assert both[0].icc == pytest.approx(both[1].icc)
        assert both[0].low == pytest.approx(both[1].low)


def test_the_clinicians_row_is_the_same_in_both_methods():
    paper, published = (
        rows_of(agreement_table(study(), method=method, reps=60))["aci", "clinicians"]
        for method in ("paper", "published")
    )

    assert paper[2:12] == pytest.approx(published[2:12], nan_ok=True)


def test_a_missing_score_is_missing_and_never_a_zero():
    scores = study(seed=4)
    lost = (scores.ratings["rater"] == "gpt") & scores.ratings["response_id"].isin(
        [f"aci-r{i}" for i in range(7)]
    )
    fewer = without(scores, lost & (scores.ratings["criterion"] == "clarity"))

    rows = rows_of(agreement_table(fewer, reps=60))
    relaxed = rows_of(agreement_table(fewer, reps=60, min_jurors=2))

    for scorer in ("jury", "juror:gpt"):
        row = rows["aci", scorer]
        assert (row.n_missing, row.n_responses) == (7, 23)
        assert row.note.startswith("scored 23 of 30")
        assert "7 readings lack a criterion" in row.note
    assert rows["aci", "juror:claude"].n_missing == 0
    assert relaxed["aci", "jury"].n_missing == 0
    assert "at least 2 of 3 jurors" in relaxed["aci", "jury"].note


def test_the_jury_is_who_was_chosen():
    scores = study()

    rows = rows_of(agreement_table(scores, jurors=["gpt"], reps=60))

    assert rows["aci", "jury"][2:10] == pytest.approx(rows["aci", "juror:gpt"][2:10])
    assert ("aci", "juror:claude") not in rows


def test_without_jurors_there_are_metrics_and_clinicians():
    assert agreement_table(study(), jurors=[], reps=9)["scorer"].tolist() == [
        "metric:rouge-l",
        "clinicians",
    ]


def test_an_unknown_juror_is_refused_with_the_known_ones():
    with pytest.raises(Unknown, match=r"grok.*claude, gpt, llama"):
        agreement_table(study(), jurors=["gpt", "grok"])


def test_an_unknown_criterion_is_refused_with_the_known_ones():
    with pytest.raises(Unknown, match=r"empathy.*accuracy, completeness, clarity"):
        agreement_table(study(), criterion="empathy")


@pytest.mark.parametrize(
    "option",
    [{"min_jurors": 4}, {"min_jurors": 0}, {"min_shared": 1}, {"reps": -1}, {"method": "z"}],
)
def test_an_option_out_of_range_is_refused(option):
    with pytest.raises(BadInput):
        agreement_table(study(), **option)


def test_a_study_without_clinicians_is_too_few():
    scores = study()

    with pytest.raises(TooFew, match="no clinician"):
        agreement_table(without(scores, scores.ratings["kind"] == "clinician"))


def test_a_hidden_repeat_and_a_replicate_are_averaged_first():
    scores = study(seed=6)
    again = scores.ratings[scores.ratings["rater"].isin(["dr0", "gpt"])].assign(replicate=1)
    doubled = Scores(pd.concat([scores.ratings, again]), scores.responses, scores.rubrics)

    once, twice = (agreement_table(each, reps=60) for each in (scores, doubled))

    pd.testing.assert_frame_equal(once, twice)


def test_the_order_of_rows_changes_nothing():
    scores = study(seed=7)
    shuffled = Scores(
        scores.ratings.sample(frac=1, random_state=0), scores.responses, scores.rubrics
    )

    pd.testing.assert_frame_equal(
        agreement_table(scores, reps=60), agreement_table(shuffled, reps=60)
    )


def test_no_benchmark_may_take_the_name_of_the_combined_row():
    with pytest.raises(BadInput, match="combined"):
        study(("combined",))


@pytest.mark.parametrize("benchmarks", [("aci",), ("aci", "chw")])
def test_a_benchmark_of_one_instance_has_iccs_and_says_that_it_has_no_interval(benchmarks):
    rows = rows_of(agreement_table(study(benchmarks, n=8, per=8), reps=40))

    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians"):
        row = rows["aci", scorer]
        assert np.isfinite(row.icc)
        assert np.isnan([row.low, row.high]).all()
        assert "1 instance: an interval over instances is undefined" in row.note
    assert "BCa" not in rows["aci", "jury"].note


def test_leaving_instances_out_until_one_is_left_takes_the_interval_away():
    left = without_instances(study(n=16, per=8), ["aci-i1"])

    row = rows_of(agreement_table(left, reps=40))["aci", "jury"]

    assert (row.n_instances, np.isfinite(row.icc), np.isnan(row.low)) == (1, True, True)


def test_scores_on_one_of_several_instances_have_no_interval_either():
    scores = study(n=16, per=8)
    elsewhere = (scores.ratings["rater"] == "gpt") & (scores.ratings["instance_id"] != "aci-i0")
    rows = rows_of(agreement_table(without(scores, elsewhere), reps=40))

    assert np.isfinite(rows["aci", "jury"].icc)
    assert np.isnan(rows["aci", "jury"].low)
    assert np.isfinite(rows["aci", "juror:claude"].low)


def test_json_has_null_for_what_is_undefined():
    found = agreement_rows(study(), AnalysisOptions(reps=40, seed=3))

    rows = json.loads(json.dumps(json_value(found), allow_nan=False))

    assert tuple(rows[0]) == (*COLUMNS, "notes")
    assert set(COLUMNS) < rows[-1].keys()
    assert rows[0]["n_pairs"] is None
    assert rows[0]["n_responses"] == 30
    assert rows[-2]["f_low"] is None
    assert isinstance(rows[-2]["n_pairs"], int)


@pytest.mark.parametrize(
    ("n", "at_top", "is_shown"), [(60, 50, False), (200, 160, False), (200, 120, True)]
)
def test_where_nearly_all_scores_are_at_one_end_an_icc_has_no_interval_and_the_reason(
    n, at_top, is_shown
):
    scores = study(n=n, seed=2)
    spared = scores.ratings["response_id"].isin([f"aci-r{place}" for place in range(at_top)])
    crowded = spared & scores.ratings["kind"].eq("clinician")
    ratings = scores.ratings.assign(score=scores.ratings["score"].mask(crowded, 5))
    table = agreement_rows(replace(scores, ratings=ratings), AnalysisOptions())
    row = next(one for one in table if one.scorer == "jury")
    assert math.isfinite(row.icc)
    assert math.isfinite(row.low) is math.isfinite(row.high) is is_shown
    told = row.told("at_one_end")
    assert (told is None) is is_shown
    assert told is None or told["share"] > 2 / 3
    held = next(one for one in table if one.scorer == "like_for_like")
    assert math.isfinite(held.low)


def test_a_table_of_scores_alone_is_analysed_as_a_study_of_it_is():
    scores = study(n=40)
    plain = scores.ratings.drop(columns=["pass_", "replicate"])

    found = agreement(plain, scale=(1, 5), min_jurors=2)

    pd.testing.assert_frame_equal(found.table, agreement_table(scores, min_jurors=2))
    whole = [
        row
        for row in agreement_rows(scores, AnalysisOptions(min_jurors=2))
        if row.benchmark == scores.benchmarks[0]
    ]
    assert found.decision == decide(whole)
    assert found.notes == whole[0].notes


def test_a_table_of_scores_needs_only_who_gave_what_to_which_response():
    rows = [
        (f"r{i}", who, kind, 1 + (i + shift) % 5)
        for i in range(9)
        for who, kind, shift in (("a", "clinician", 0), ("b", "clinician", 1), ("j", "juror", 0))
    ]
    ratings = pd.DataFrame(rows, columns=["response_id", "rater", "kind", "score"])
    found = agreement(ratings)
    assert found.table["benchmark"].unique().tolist() == ["all"]
    assert found.decision.kind is DecisionKind.TOO_FEW
    with pytest.raises(BadInput, match="kind"):
        agreement(ratings.drop(columns="kind"))
