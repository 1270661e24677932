"""The agreement table on small simulated studies whose answers are known, and what it says beside its numbers."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from kit.scores import DOCTORS, JURORS, note_of, rescored, rows_of, study, without

from calibration.columns import PanelColumns, column_icc, columns
from calibration.decision import DecisionKind
from calibration.icc import f_interval
from calibration.rating_matrix import analysed_grid, composites
from calibration.scope import without_instances
from calibration.table import COLUMNS, agreement, agreement_rows, agreement_table
from calibration.values import AnalysisOptions
from calibration.verdict import decide
from data.errors import BadInput, TooFew

METHODS = ["paper", "published"]


def tabled(scores, **options):
    return rows_of(agreement_table(scores, **{"reps": 60} | options))


def lost(scores, **of):
    """Return scores without the ratings whose columns are among these values."""
    return without(scores, scores.ratings[list(of)].isin(of).all(axis=1))


def test_the_table_has_the_contracts_columns_and_rows_in_order():
    table = agreement_table(study(("aci", "chw")), reps=50)
    assert tuple(table.columns) == COLUMNS
    assert ",".join(COLUMNS) == (
        "benchmark,scorer,icc,low,high,f_low,f_high,"
        "n_responses,n_instances,n_clinicians,n_pairs,n_missing,spearman,"
        "n_not_applicable,n_cannot_tell,note"
    )
    people = ["metric:rouge-l", "clinicians", "like_for_like"]
    assert table["scorer"].tolist() == ["jury", *(f"juror:{name}" for name in JURORS), *people] * 3
    assert table["benchmark"].unique().tolist() == ["aci", "chw", "combined"]
    without_jurors = agreement_table(study(), jurors=[], reps=9)  # nor combined
    assert without_jurors["scorer"].tolist() == people[:2]


@pytest.mark.parametrize(
    "option",
    [{"min_jurors": 4}, {"min_jurors": 0}, {"min_shared": 1}, {"reps": -1}, {"method": "z"}],
)
def test_an_option_out_of_range_is_refused(option):
    with pytest.raises(BadInput):
        agreement_table(study(), **option)


def test_a_study_without_clinicians_or_with_a_benchmark_called_combined_is_refused():
    with pytest.raises(TooFew, match="no clinician"):
        tabled(lost(study(), kind=["clinician"]))
    with pytest.raises(BadInput, match="combined"):
        study(("combined",))


@pytest.mark.parametrize("method", METHODS)
def test_the_jurys_row_is_its_parts_put_together(method):
    scores = study(n=40, seed=1)
    grid = analysed_grid(composites(scores).values, ["aci"], jurors=JURORS, metrics=["rouge-l"])
    pair = columns(grid, PanelColumns(JURORS, 3), method)
    icc = column_icc(pair.clinicians, pair.scorer, method)
    row = tabled(scores, method=method, reps=400)["aci", "jury"]
    assert row.icc == icc
    assert (row.f_low, row.f_high) == tuple(vars(f_interval(icc, 40)).values())
    assert row.low < icc < row.high
    assert (row.n_responses, row.n_instances, row.n_clinicians, row.n_missing) == (40, 40, 5, 0)
    ranked = (pd.Series(one.round(9)) for one in (pair.clinicians, pair.scorer))
    assert row.spearman == pytest.approx(next(ranked).corr(next(ranked), method="spearman"))
    assert row.note == "scored 40 of 40"


def test_combined_is_all_benchmarks_at_once_with_z_over_all_of_them():
    scores = study(("aci", "chw"), seed=3)
    frames = {
        name: getattr(scores, name).assign(benchmark="aci") for name in ("ratings", "responses")
    }
    combined, pooled = tabled(scores), tabled(replace(scores, **frames))
    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians", "like_for_like"):
        both = combined["combined", scorer], pooled["aci", scorer]
        assert both[0].icc == pytest.approx(both[1].icc)
        assert both[0].low == pytest.approx(both[1].low)


def test_a_missing_score_is_missing_and_never_a_zero():
    seven = [f"aci-r{i}" for i in range(7)]
    fewer = lost(study(seed=4), rater=["gpt"], response_id=seven, criterion=["clarity"])
    rows, relaxed = tabled(fewer), tabled(fewer, min_jurors=2)
    for scorer in ("jury", "juror:gpt"):
        row = rows["aci", scorer]
        assert (row.n_missing, row.n_responses) == (7, 23)
        assert row.note.startswith("scored 23 of 30")
        assert "7 readings lack a criterion" in row.note
    assert rows["aci", "juror:claude"].n_missing == 0
    assert relaxed["aci", "jury"].n_missing == 0
    assert "at least 2 of 3 jurors" in relaxed["aci", "jury"].note


def test_the_jury_is_who_was_chosen():
    rows = tabled(study(), jurors=["gpt"])
    assert rows["aci", "jury"][2:10] == pytest.approx(rows["aci", "juror:gpt"][2:10])
    assert ("aci", "juror:claude") not in rows


def test_repeats_are_averaged_first_and_the_order_of_rows_changes_nothing():
    scores = study(seed=6)
    again = scores.ratings[scores.ratings["rater"].isin(["dr0", "gpt"])].assign(replicate=1)
    doubled = pd.concat([scores.ratings, again])
    for ratings in (doubled, scores.ratings.sample(frac=1, random_state=0)):
        found = agreement_table(replace(scores, ratings=ratings), reps=60)
        pd.testing.assert_frame_equal(found, agreement_table(scores, reps=60))


@pytest.mark.parametrize("benchmarks", [("aci",), ("aci", "chw")])
def test_a_benchmark_of_one_instance_has_iccs_and_says_that_it_has_no_interval(benchmarks):
    rows = tabled(study(benchmarks, n=8, per=8), reps=40)
    for scorer in ("jury", "juror:gpt", "metric:rouge-l", "clinicians"):
        row = rows["aci", scorer]
        assert np.isfinite(row.icc)
        assert np.isnan([row.low, row.high]).all()
        assert "1 instance: an interval over instances is undefined" in row.note
    assert "BCa" not in rows["aci", "jury"].note


def test_scores_on_one_of_several_instances_have_no_interval_either():
    scores = study(n=16, per=8)
    rows = tabled(lost(scores, rater=["gpt"], instance_id=["aci-i1"]), reps=40)
    assert np.isfinite(rows["aci", "jury"].icc)
    assert np.isnan(rows["aci", "jury"].low)
    assert np.isfinite(rows["aci", "juror:claude"].low)
    left = tabled(without_instances(scores, ["aci-i1"]), reps=40)["aci", "jury"]
    assert (left.n_instances, np.isfinite(left.icc), np.isnan(left.low)) == (1, True, True)


@pytest.mark.parametrize(
    ("n", "at_top", "is_shown"), [(60, 50, False), (200, 160, False), (200, 120, True)]
)
def test_where_nearly_all_scores_are_at_one_end_an_icc_has_no_interval_and_the_reason(
    n, at_top, is_shown
):
    spared = [f"aci-r{place}" for place in range(at_top)]
    crowded = rescored(
        study(n=n, seed=2),
        lambda t: t["score"].mask(t["response_id"].isin(spared) & t["kind"].eq("clinician"), 5),
    )
    rows = {row.scorer: row for row in agreement_rows(crowded, AnalysisOptions())}
    row = rows["jury"]
    assert math.isfinite(row.icc)
    assert math.isfinite(row.low) is math.isfinite(row.high) is is_shown
    told = row.told("at_one_end")
    assert (told is None) is is_shown
    assert told is None or told["share"] > 2 / 3
    assert math.isfinite(rows["like_for_like"].low)


def test_a_table_of_scores_alone_is_analysed_as_a_study_of_it_is():
    scores = study(n=40)
    plain = scores.ratings.drop(columns=["pass_", "replicate"])
    found = agreement(plain, scale=(1, 5), min_jurors=2)
    pd.testing.assert_frame_equal(found.table, agreement_table(scores, min_jurors=2))
    rows = agreement_rows(scores, AnalysisOptions(min_jurors=2))
    assert found.decision == decide([row for row in rows if row.benchmark == "aci"])
    assert found.notes == rows[0].notes


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


def test_responses_no_clinician_rated_are_not_analysed_but_counted_in_the_note():
    five = [f"aci-r{i}" for i in range(5)]
    row = tabled(lost(study(seed=5), kind=["clinician"], response_id=five))["aci", "jury"]
    assert (row.n_responses, row.n_missing) == (25, 0)
    assert "scored 25 of 25 responses that clinicians rated, 30 of all 30" in row.note


TWO = ("aci", "chw")


@pytest.mark.parametrize(
    ("scores", "criterion", "of", "reason"),
    [
        (
            lost(study(TWO), kind=["clinician"], benchmark=["chw"]),
            None,
            "chw",
            "undefined: no clinician",
        ),
        (study(TWO, criteria={"chw": ("accuracy",)}), "clarity", "chw", "no criterion clarity"),
        (study(TWO, scales={"chw": (1, 7)}), None, "combined", "different scales"),
    ],
)
def test_a_benchmark_that_is_undefined_says_why_and_the_others_are_not(
    scores, criterion, of, reason
):
    rows = tabled(scores, criterion=criterion)
    own = [row for (benchmark, _), row in rows.items() if benchmark == of]
    assert all(math.isnan(row.icc) for row in own)
    assert reason in rows[of, "jury"].note
    assert rows["aci", "jury"].icc > 0.5
    if of == "chw":
        assert rows["combined", "jury"].icc == rows["aci", "jury"].icc
        assert rows["combined", "jury"].n_responses == 30


def test_a_juror_without_variance_is_named_and_not_zero():
    flat = rescored(study(n=40), lambda t: t["score"].mask(t["rater"] == "gpt", 4.0))
    rows = tabled(flat)
    juror, jury = rows["aci", "juror:gpt"], rows["aci", "jury"]
    assert math.isnan(juror.icc)
    assert math.isnan(tabled(flat, method="published")["aci", "juror:gpt"].icc)
    assert (juror.n_responses, juror.n_missing) == (40, 0)
    assert juror.note == "scored 40 of 40; undefined: the scorer has no variance, hence no z"
    assert "no variance: gpt" in jury.note
    assert jury.icc == pytest.approx(tabled(flat, jurors=["claude", "llama"])["aci", "jury"].icc)


@pytest.mark.parametrize("method", METHODS)
def test_one_clinician_has_nobody_to_be_compared_with_and_is_counted(method):
    alone = tabled(lost(study(), rater=[*DOCTORS[1:]]), method=method)
    for scorer in ("clinicians", "like_for_like"):
        row = alone["aci", scorer]
        assert math.isnan(row.icc)
        assert row.note.startswith("undefined: only one clinician rated here, dr0")
        assert "mixed model" not in row.note
        assert (row.n_responses, row.n_clinicians) == (0, 1)
    assert alone["aci", "like_for_like"].n_missing == alone["aci", "jury"].n_responses


def test_what_no_comparison_uses_is_missing_from_like_for_like_and_clinicians_are_told():
    scores = study(n=40, seed=2)
    clinical = scores.ratings["kind"].eq("clinician")
    second = clinical & scores.ratings.duplicated(["response_id", "kind", "criterion"])
    two = scores.ratings["response_id"].isin(["aci-r0", "aci-r1"])
    some, none = (tabled(without(scores, second & rows)) for rows in (two, clinical))
    held = some["aci", "like_for_like"]
    assert (held.n_responses, held.n_missing) == (38, 2)
    assert "undefined: no two clinicians share 2 responses" in none["aci", "clinicians"].note
    assert "(no response has all the scores needed" in none["aci", "like_for_like"].note
    assert none["aci", "clinicians"].n_clinicians == 5


def test_a_scorer_that_ranks_against_the_clinicians_is_told_from_one_that_knows_nothing():
    scores = study(n=80, seed=1)
    metric = scores.ratings["rater"] == "rouge-l"
    noise = np.zeros(len(metric))
    noise[metric] = np.random.default_rng(0).normal(size=metric.sum())
    against = rescored(scores, lambda t: t["score"].mask(metric, -t["score"]))
    unrelated = rescored(scores, lambda t: t["score"].mask(metric, noise))
    opposite, neither = (tabled(one)["aci", "metric:rouge-l"] for one in (against, unrelated))
    assert opposite.high < 0
    assert opposite.spearman < 0
    assert "it ranks responses against the clinicians' order" in opposite.note
    assert neither.high > 0 > neither.icc
    assert "below 0: no agreement beyond chance" in neither.note


def test_a_simulated_rater_marks_every_row_it_enters_and_no_other():
    rows = agreement_rows(study(simulated=["gpt"]), AnalysisOptions(reps=60))
    marked = {row.scorer: row.simulated for row in rows if row.simulated}
    assert marked == dict.fromkeys(("jury", "juror:gpt", "like_for_like"), ("gpt",))
    assert marked.keys() == {row.scorer for row in rows if "simulated" in note_of(row)}
    everywhere = agreement_table(study(simulated=DOCTORS), reps=60)
    assert everywhere["note"].str.contains("simulated").all()
