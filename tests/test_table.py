"""The agreement table on small simulated studies whose answers are known."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from calibration.agreement import Panel, column_icc, columns
from calibration.composite import composites
from calibration.f_interval import f_interval
from calibration.grid import analysed_grid
from calibration.scores import RubricShape, Scores
from calibration.table import COLUMNS, agreement_table, to_json
from data.errors import BadInput, TooFew, Unknown

CRITERIA = ("accuracy", "completeness", "clarity")
FIELDS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
DOCTORS = tuple(f"dr{i}" for i in range(5))
JURORS = ("claude", "gpt", "llama")


def study(
    benchmarks=("aci",),
    n=30,
    per=1,
    seed=0,
    juror_noise=0.6,
    scales=None,
    criteria=None,
    simulated=(),
):
    """Two of five clinicians a response, three jurors and a metric, all seeing one quality."""
    random = np.random.default_rng(seed)
    scales, criteria = scales or {}, criteria or {}
    rubrics = {
        name: RubricShape(criteria.get(name, CRITERIA), *scales.get(name, (1, 5)))
        for name in benchmarks
    }
    rows, responses = [], []
    for benchmark in benchmarks:
        for i in range(n):
            place = (f"{benchmark}-r{i}", f"{benchmark}-i{i // per}", benchmark)
            quality = 3 + random.normal()
            responses.append(place)
            doctors = [(name, "clinician", 0.6) for name in random.permutation(DOCTORS)[:2]]
            jurors = [(name, "juror", juror_noise) for name in JURORS]
            for name, kind, noise in doctors + jurors:
                for criterion in rubrics[benchmark].criteria:
                    score = float(np.clip(round(quality + noise * random.normal()), 1, 5))
                    rows.append((*place, str(name), kind, criterion, score))
            rows.append((*place, "rouge-l", "metric", "f", quality / 5 + 0.2 * random.normal()))
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    return Scores(
        ratings, pd.DataFrame(responses, columns=FIELDS[:3]), rubrics, frozenset(simulated)
    )


def without(scores, rows):
    return Scores(scores.ratings[~rows], scores.responses, scores.rubrics, scores.simulated)


def rows_of(table):
    return {(row.benchmark, row.scorer): row for row in table.itertuples(index=False)}


def test_the_table_has_the_contracts_columns_and_rows_in_order():
    table = agreement_table(study(("aci", "chw")), reps=50)

    assert tuple(table.columns) == COLUMNS
    assert (
        *("benchmark", "scorer", "icc", "f_low", "f_high", "boot_low", "boot_high"),
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
    pair = columns(grid, Panel(JURORS, 3), method)
    icc = column_icc(pair.clinicians, pair.scorer, method)

    row = rows_of(agreement_table(scores, method=method, reps=400))["aci", "jury"]

    assert row.icc == icc
    assert (row.f_low, row.f_high) == tuple(vars(f_interval(icc, 40)).values())
    assert row.boot_low < icc < row.boot_high
    assert (row.n_responses, row.n_instances, row.n_clinicians, row.n_missing) == (40, 40, 5, 0)
    assert row.spearman == pytest.approx(
        pd.Series(pair.clinicians).corr(pd.Series(pair.scorer), method="spearman")
    )
    assert row.note.startswith("scored 40 of 40; BCa bootstrap 0.")


def test_a_known_structure_is_found():
    # Quality has sd 1 and a rater's criterion noise .6, so each composite has error variance
    # .36 / 3 + rounding. A jury of three then agrees almost perfectly, a noisy one does not.
    good = rows_of(agreement_table(study(n=150, seed=2), reps=200))
    poor = rows_of(agreement_table(study(n=150, seed=2, juror_noise=4), reps=200))

    assert good["aci", "jury"].icc > 0.9
    assert good["aci", "clinicians"].icc > 0.85
    assert good["aci", "like_for_like"].boot_low > -0.02
    assert poor["aci", "jury"].icc < good["aci", "jury"].boot_low
    assert poor["aci", "like_for_like"].boot_high < 0


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
        assert both[0].boot_low == pytest.approx(both[1].boot_low)


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


def test_responses_no_clinician_rated_are_not_analysed_but_counted_in_the_note():
    scores = study(seed=5)
    human = scores.ratings["kind"] == "clinician"
    unrated = human & scores.ratings["response_id"].isin([f"aci-r{i}" for i in range(5)])

    row = rows_of(agreement_table(without(scores, unrated), reps=60))["aci", "jury"]

    assert row.n_responses == 25
    assert row.n_missing == 0
    assert "scored 25 of 25 responses that clinicians rated, 30 of all 30" in row.note


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


def test_few_instances_and_several_responses_an_instance_are_said():
    note = rows_of(agreement_table(study(n=30, per=3), reps=60))["aci", "jury"].note

    assert "fewer than 20 instances" in note
    assert "30 responses from 10 instances" in note


def test_fragile_pairs_and_the_mixed_model_are_said():
    row = rows_of(agreement_table(study(n=40), reps=200))["aci", "clinicians"]

    assert "fragile" in row.note
    assert "bootstrap over pairs" in row.note
    assert "crossed mixed model of all readings: ICC(C,1)" in row.note
    assert 0 < row.n_pairs <= 10


def test_few_pairs_are_not_resampled():
    few = study(n=60)
    three = few.ratings["rater"].isin(["dr0", "dr1", "dr2"])
    row = rows_of(agreement_table(without(few, ~three), jurors=[], reps=60))["aci", "clinicians"]

    assert row.n_pairs == 3
    assert "bootstrap over pairs" not in row.note


@pytest.mark.parametrize("method", ["paper", "published"])
def test_one_clinician_has_nobody_to_be_compared_with_and_is_counted(method):
    scores = study()
    others = scores.ratings["rater"].isin([name for name in DOCTORS if name != "dr0"])
    alone = rows_of(agreement_table(without(scores, others), method=method, reps=60))

    analysed = alone["aci", "jury"].n_responses
    for scorer in ("clinicians", "like_for_like"):
        row = alone["aci", scorer]
        assert math.isnan(row.icc)
        assert row.note.startswith("undefined: dr0 is the only clinician here")
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
    assert "(no response has the scores it takes" in rows["aci", "like_for_like"].note
    assert rows["aci", "clinicians"].n_clinicians == 5


def test_a_metric_without_values_here_says_that_there_are_none():
    scores = study(("aci", "chw"))
    lost = scores.ratings["rater"].eq("rouge-l") & scores.ratings["benchmark"].eq("chw")

    rows = rows_of(agreement_table(without(scores, lost), reps=60))

    said = "undefined: no response here has a rouge-l score (no reference, or not measured)"
    assert said in rows["chw", "metric:rouge-l"].note
    assert not math.isnan(rows["combined", "metric:rouge-l"].icc)


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

    assert opposite.boot_high < 0
    assert opposite.spearman < 0
    assert "it ranks against the clinicians" in opposite.note
    assert neither.boot_high > 0 > neither.icc
    assert "below 0: no agreement beyond chance" in neither.note


def test_every_row_says_how_many_responses_of_the_study_are_analysed():
    scores = study()
    unrated = scores.ratings["kind"].eq("clinician") & scores.ratings["response_id"].eq("aci-r0")

    notes = agreement_table(without(scores, unrated), reps=60)["note"]

    said = "29 of 30 responses are analysed: the others have no complete reading by a clinician"
    assert notes.str.contains(said).all()
    assert not agreement_table(scores, reps=60)["note"].str.contains("are analysed").any()


def test_a_simulated_rater_marks_every_row_it_enters_and_no_other():
    notes = {
        scorer: row.note
        for (_, scorer), row in rows_of(agreement_table(study(simulated=["gpt"]), reps=60)).items()
    }

    marked = {scorer for scorer, note in notes.items() if "simulated" in note}
    assert marked == {"jury", "juror:gpt", "like_for_like"}
    everywhere = agreement_table(study(simulated=DOCTORS), reps=60)
    assert everywhere["note"].str.contains("simulated").all()


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


def test_no_resamples_leave_the_bootstrap_undefined_and_the_rest_whole():
    row = rows_of(agreement_table(study(), reps=0))["aci", "jury"]

    assert math.isnan(row.boot_low)
    assert row.icc > 0.5


def test_no_benchmark_may_take_the_name_of_the_combined_row():
    with pytest.raises(BadInput, match="combined"):
        study(("combined",))


def test_progress_rises_to_one():
    seen = []

    agreement_table(study(("aci", "chw")), reps=40, tick=seen.append)

    assert seen == sorted(seen)
    assert seen[-1] == 1
    assert len(seen) >= 9


def test_json_has_null_for_what_is_undefined():
    table = agreement_table(study(), reps=40, seed=3)

    answer = json.loads(json.dumps(to_json(table, "paper", 40, 3), allow_nan=False))

    rows = answer.pop("rows")
    assert answer == {"method": "paper", "k": 2, "reps": 40, "seed": 3}
    assert tuple(rows[0]) == COLUMNS
    assert rows[0]["n_pairs"] is None
    assert rows[0]["n_responses"] == 30
    assert rows[-2]["f_low"] is None
    assert isinstance(rows[-2]["n_pairs"], int)
