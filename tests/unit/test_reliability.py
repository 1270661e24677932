"""The clinicians' reliability and that of a rater asked again: published tables, R, statsmodels, pingouin."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pingouin
import pytest
from kit.composites import SHROUT_FLEISS, table
from kit.composites import crossed as crossed_of
from kit.composites import grid_of as grid_of_composites
from kit.scores import note_of, scope_of, scores_of, without
from statsmodels.formula.api import mixedlm

from calibration import icc as iccs
from calibration import reliability as retest
from calibration.crossed import clinicians_mixed_model, crossed_model
from calibration.intervals import jackknife_interval, left_out
from calibration.rating_matrix import repeats
from calibration.reliability import FORMS, icc_one, panel_sizes, reliability_rows
from calibration.scope import scopes
from calibration.scores import RubricShape
from calibration.table import agreement_rows, agreement_table
from calibration.values import AnalysisOptions


def forms(table, **options):
    table = np.asarray(table, dtype=float)
    rows = reliability_rows(scope_of(table, table.shape[1], **options))
    return {row.form: row for row in rows}


def crossed(n=60, raters=4, per=2):
    return crossed_of(np.random.default_rng(0), n, raters, per)


def test_shrout_and_fleiss_have_the_iccs_and_intervals_of_mcgraw_and_wong():
    found = forms(SHROUT_FLEISS)

    def ends(form):
        return [round(value, 4) for value in (found[form].icc, found[form].low, found[form].high)]

    assert list(found) == list(FORMS) == ["ICC(C,k)", "ICC(C,1)", "ICC(A,1)"]
    assert ends("ICC(C,k)") == [0.9093, 0.6757, 0.9859]
    assert [round(found[form].icc, 4) for form in FORMS[1:]] == [0.7148, 0.2898]
    assert {row.n_raters for row in found.values()} == {4}
    assert {row.criterion for row in found.values()} == {"composite"}


def test_the_error_of_measurement_is_that_of_the_mean_squares():
    """Mean squares of Shrout & Fleiss: raters 32.4861, error 1.0194, of 6 responses.

    A rater's variance is (32.4861 - 1.0194) / 6 = 5.2444, a score's 5.2444 + 1.0194 = 6.2639, its
    root 2.5028. The smallest change is 1.96 root 2 times that, 6.9373.
    """
    found = forms(SHROUT_FLEISS)
    assert found["ICC(A,1)"].sem == pytest.approx(2.5028, abs=1e-4)
    assert found["ICC(A,1)"].smallest_change == pytest.approx(6.9373, abs=6e-4)
    assert found["ICC(C,k)"].sem is None


def test_any_complete_table_has_the_values_of_its_mean_squares():
    table = crossed(40, 5, 5)
    of_mean = float(iccs.icc_consistency(table))
    exact, among = iccs.f_interval(of_mean, 40, 5), of_mean_squares(table)
    panel = of_mean, exact.low, exact.high
    found = {form: (row.icc, row.low, row.high) for form, row in forms(table).items()}
    assert found["ICC(C,k)"] == pytest.approx(panel)
    assert found["ICC(C,1)"] == pytest.approx([iccs.spearman_brown(one, 1 / 5) for one in panel])
    assert found["ICC(A,1)"] == pytest.approx((iccs.icc_agreement(table), among.low, among.high))


def of_mean_squares(table):
    ms, (n, k) = iccs.mean_squares(table), table.shape
    squares = float(ms.rows), float(ms.columns), float(ms.error)
    return iccs.agreement_interval(squares, (n - 1, k - 1, (n - 1) * (k - 1)), (k, n))


@pytest.mark.parametrize("per", [2, 3])
def test_missing_cells_have_the_mixed_model_s_iccs_within_their_intervals(per):
    table = crossed(80, 5, per)
    model = crossed_model(table)
    found = forms(table)
    assert {row.n_raters for row in found.values()} == {per}
    assert found["ICC(C,k)"].icc == pytest.approx(model.consistency(per))
    assert found["ICC(A,1)"].icc == pytest.approx(model.agreement())
    assert found["ICC(A,1)"].sem == pytest.approx(math.sqrt(model.rater + model.residual))
    for row in found.values():
        assert row.low < row.icc < row.high


def test_a_panel_of_uneven_size_counts_by_the_harmonic_mean_and_shared_instances_are_told():
    table = crossed(40, 4, 2)
    table[:10, :] = crossed(10, 4, 4)
    assert forms(table)["ICC(C,k)"].n_raters == pytest.approx(40 / (10 / 4 + 30 / 2))
    assert forms(crossed(40), per=2)["ICC(A,1)"].told("reliability_shared")["instances"] == 20


def test_more_raters_make_a_more_reliable_mean_by_spearman_and_brown():
    model = crossed_model(SHROUT_FLEISS)
    found = panel_sizes("clinicians", model)
    assert [row.number for row in found] == [1, 2, 3, 4, 5, 6]
    assert (found[3].consistency, found[3].agreement) == pytest.approx((0.9093, 0.6201), abs=1e-4)
    assert [row.consistency for row in found] == sorted(row.consistency for row in found)


CRITERIA = ("accuracy", "clarity")


def row_of(given):
    """Return what is found of one juror: scores (n, replicates, criteria), NaN where missing."""
    rows = [
        (f"r{i}", f"i{i}", "aci", "gpt", "juror", CRITERIA[place], score, 0, replicate)
        for (i, replicate, place), score in np.ndenumerate(np.asarray(given, dtype=float))
        if not np.isnan(score)
    ]
    for i in range(len(given)):
        rows += [(f"r{i}", f"i{i}", "aci", "dr", "clinician", one, 3.0, 0, 0) for one in CRITERIA]
    scores = scores_of(rows, {"aci": RubricShape(CRITERIA, 1, 5)})
    (scope,) = scopes(scores, AnalysisOptions(reps=0))
    (row,) = retest.test_retest_rows(scope, scores)
    return row


def replicated(n=20, replicates=3, seed=0):
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1, 1))
    return np.clip(np.round(quality + 0.6 * random.normal(size=(n, replicates, 2))), 1, 5)


def test_the_icc_of_a_juror_asked_again_by_hand_and_as_published():
    # Row means 1.5, 2, 4.5: MS_rows = 2 * 31/12 = 31/6. Differences -1, 0, -1: MS_columns = 2/3,
    # MS_error = 1/6. ICC(A,1) = (31/6 - 1/6) / (31/6 + 1/6 + 2/3 * (2/3 - 1/6)) = 5 / (17/3).
    table = np.array([[1, 2], [2, 2], [4, 5]], dtype=float)
    assert retest.icc_one(table) == pytest.approx(15 / 17)
    assert retest.icc_one(SHROUT_FLEISS) == pytest.approx(0.2898, abs=5e-5)
    assert retest.sd_within(table) == pytest.approx(math.sqrt((0.5 + 0 + 0.5) / 3))
    assert retest.same_pairs(table) == pytest.approx(1 / 3)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*:pandas.errors.Pandas4Warning")
@pytest.mark.parametrize("replicates", [2, 3, 5])
def test_the_icc_of_a_study_is_pingouins(replicates):
    given = replicated(replicates=replicates)
    table = given.mean(axis=2)
    frame = pd.DataFrame(table).reset_index().melt("index", var_name="again", value_name="score")
    found = pingouin.intraclass_corr(frame, targets="index", raters="again", ratings="score")
    expected = found.set_index("Type").loc["ICC(A,1)", "ICC"]
    row = row_of(given)
    assert row.icc_one == pytest.approx(expected)
    assert row.sd_points == pytest.approx(math.sqrt(table.var(axis=1, ddof=1).mean()))
    pairs = [(a, b) for a in range(replicates) for b in range(a)]
    same = np.mean([given[:, a] == given[:, b] for a, b in pairs])
    assert row.exact_agreement == pytest.approx(same)
    assert (row.n_responses, row.n_replicates, note_of(row)) == (20, replicates, "")


def test_a_missing_replicate_leaves_the_icc_but_not_the_sd():
    given = replicated()
    given[0, 2], given[1, 1:] = np.nan, np.nan
    row = row_of(given)
    tables = given.mean(axis=2)
    squares = tables[2:].var(axis=1, ddof=1).sum() * 2 + tables[0, :2].var(ddof=1)
    assert row.icc_one == pytest.approx(retest.icc_one(tables[2:]))
    assert row.sd_points == pytest.approx(math.sqrt(squares / 37))
    assert row.n_responses == 19
    assert "2 responses without all replicates left out of the ICC" in note_of(row)


def test_a_reading_without_a_criterion_has_no_composite_but_its_scores_count():
    given = replicated(replicates=2)
    given[0, 1, 0] = np.nan
    row = row_of(given)
    same = [*(given[1:, 0] == given[1:, 1]).ravel(), given[0, 0, 1] == given[0, 1, 1]]
    assert (row.n_responses, row.exact_agreement) == (19, pytest.approx(np.mean(same)))
    assert "1 reading lacks a criterion" in note_of(row)


def study(again, *, n=8):
    """Two clinicians who rate n responses; `again` gives scores of dr_a's repeats: {i: (a, c)}."""
    rows = []
    for i in range(n):
        for rater, first in (("dr_a", first_of(i)), ("dr_b", (1 + i % 5, 1 + (i + 1) % 4))):
            readings = [first, again[i]] if rater == "dr_a" and i in again else [first]
            rows += [
                (f"aci-{i}", f"aci-i{i}", "aci", rater, "clinician", name, score, pass_)
                for pass_, scores in enumerate(readings)
                for name, score in zip(CRITERIA, scores, strict=True)
                if score is not None
            ]
    return scores_of(rows, {"aci": RubricShape(CRITERIA, 1, 5)})


def first_of(i):
    return 1 + i % 5, 1 + i % 4


def same_again(count=5):
    return {i: first_of(i) for i in range(count)}


def row(scores):
    rows = agreement_rows(scores, AnalysisOptions(reps=40))
    return next(row for row in rows if row.scorer == "intra_rater")


def test_repeats_whose_means_are_all_the_same_have_an_icc_and_no_f_interval():
    # MS_rows is 0: both ends of the F interval would be the estimate, as if it were certain.
    assert icc_one(np.array([[1, 2], [2, 1], [2, 1]], dtype=float)) == pytest.approx(-2)
    scores = study({0: (2, 2), 1: (1, 1), 5: (2, 2)})
    first = (scores.ratings["rater"] == "dr_a") & (scores.ratings["pass_"] == 0)
    for name, score in (("aci-0", 1), ("aci-1", 2), ("aci-5", 1)):
        scores.ratings.loc[first & (scores.ratings["response_id"] == name), "score"] = score
    found = row(scores)
    assert found.icc == pytest.approx(-2)
    assert np.isnan([found.f_low, found.f_high]).all()
    assert "fragile: 3 repeats, fewer than 10" in note_of(found)


def test_a_stricter_second_reading_lowers_the_icc_and_one_of_minus_1_is_defined():
    same = np.array([[1, 1], [2, 2], [4, 4], [5, 5]], dtype=float)
    assert icc_one(same) == pytest.approx(1)
    assert icc_one(same - [0, 1]) < 0.9
    assert icc_one(np.array([[3, 5], [4, 4], [4, 4]], dtype=float)) == pytest.approx(-1)


def test_what_differs_between_clinicians_is_no_reliability():
    # Each clinician gives noise around an own level: pooled it looks reliable, within it is not.
    random = np.random.default_rng(0)
    rows = [
        (
            *(f"r{i}", f"i{i}", "aci", rater, "clinician", "accuracy"),
            *(level + random.uniform(-0.5, 0.5), pass_),
        )
        for i in range(30)
        for rater, level in (("dr_a", 1.5), ("dr_b", 4.5))
        for pass_ in (0, 1)
    ]
    found = row(scores_of(rows, {"aci": RubricShape(("accuracy",), 1, 5)}))
    assert found.icc > 0.9
    assert abs(found.told("own_means")["icc"]) < 0.3


def test_an_incomplete_repeat_is_counted_and_left_out():
    found = row(study(same_again() | {5: (3, None)}))
    assert (found.n_responses, found.n_missing) == (5, 1)
    assert "1 repeat without a composite both times left out" in note_of(found)
    assert "of 11 single scores" in note_of(found)


def test_too_few_repeats_and_equal_ones_are_undefined_with_a_reason():
    few = row(study(same_again(count=2)))
    assert np.isnan(few.icc)
    assert "2 complete repeats, and 3 are needed" in note_of(few)
    assert "given twice" in note_of(few)
    scores = study(dict.fromkeys((0, 5, 10), (1, 1)), n=12)
    scores.ratings.loc[scores.ratings["rater"] == "dr_a", "score"] = 1
    assert "all first and repeated composites are the same" in note_of(row(scores))


def test_repeats_enter_every_other_row_as_the_mean_of_both_readings():
    repeated = study({i: (5 - i % 5, 2) for i in range(6)}, n=12)
    of_both = repeated.ratings.groupby(["response_id", "rater", "criterion"])["score"]
    averaged = repeated.ratings.assign(score=of_both.transform("mean"))
    once = without(replace(repeated, ratings=averaged), averaged["pass_"] == 1)
    every = agreement_table(repeated, reps=30)
    others = every[every["scorer"] != "intra_rater"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, agreement_table(once, reps=30))


def test_replicates_of_one_pass_are_averaged_before_they_are_compared():
    scores = study(same_again())
    more = scores.ratings[scores.ratings["pass_"] == 1].assign(replicate=1)
    more["score"] = more["score"].clip(upper=4) + 1
    found = repeats(replace(scores, ratings=pd.concat([scores.ratings, more]))).scores
    assert (found["again"] - found["first"]).between(0, 0.5).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "icc", "points"), [(15, 0.6, False), (40, 0.8, False), (40, 0.6, True)]
)
def test_its_interval_holds_the_truth_in_95_percent_of_studies(n, icc, points):
    random, held = np.random.default_rng(n), []

    def repeats(many):
        both = np.sqrt(icc) * random.normal(size=(many, 1))
        both = both + np.sqrt(1 - icc) * random.normal(size=(many, 2))
        return np.clip(np.rint(3.4 + both), 1, 5) if points else both

    truth = icc_one(repeats(200_000))
    for _ in range(600):
        pairs = repeats(n)
        kept = left_out(n) > 0
        values = np.array([icc_one(pairs[rows]) for rows in kept])
        ends = jackknife_interval(values, single=True)
        held.append(ends.low <= truth <= ends.high)
    assert 0.925 <= np.mean(held) <= 0.98


def grid_of(table):
    return grid_of_composites(table, jurors=0)


# 20 responses by 6 raters, 0 where missing, a third of it: made up with numpy's default_rng(7).
UNBALANCED = [
    *([0.57, 2.56, 2.34, 0, 2.16, 2.62], [1.73, 2.64, 3.24, 0, 3.3, 0]),
    *([0, 0, 2.21, 2.95, 0, 2.73], [2.18, 1.24, 2.17, 0, 1.98, 3.39]),
    *([2.17, 1.8, 0, 0, 2.6, 2.95], [1.25, 2.49, 0, 1.94, 2.41, 1.84]),
    *([2.2, 2.22, 0, 0, 0, 0], [0, 0, 3.83, 0, 3.87, 0]),
    *([2.44, 0, 0, 2.52, 2.53, 3.43], [1.33, 2.2, 0, 2.57, 0, 1.74]),
    *([2.46, 3.01, 0, 0, 0, 0], [2.16, 3.8, 0, 3.77, 2.59, 0]),
    *([1.15, 1.75, 0, 2.68, 3.26, 4.34], [0, 1.76, 1.75, 2.69, 2.23, 0]),
    *([2.48, 3.17, 1.72, 0, 0, 2.25], [0, 2.92, 3.51, 3.81, 0, 3.11]),
    *([0.93, 0, 0.61, 0, 0.73, 2.34], [0.67, 2.97, 1.49, 0, 0, 0]),
    *([1.31, 0, 0.81, 1.45, 0, 0], [1.71, 0, 0, 0, 0, 1.11]),
]


def simulate(n, raters, each, seed, variances=(1.0, 0.25, 0.75)):
    random = np.random.default_rng(seed)
    response, rater, residual = np.sqrt(variances)
    table = response * random.normal(size=(n, 1)) + rater * random.normal(size=(1, raters))
    table = 3 + table + residual * random.normal(size=(n, raters))
    for row in table:
        row[random.permutation(raters)[each:]] = np.nan
    return grid_of(table)


def test_when_everybody_rates_everything_it_is_the_icc_from_mean_squares():
    # For a balanced table REML and analysis of variance give the same components.
    grid = simulate(40, 5, 5, seed=0)
    of_mean = float(iccs.icc_consistency(grid.composites))
    single = iccs.icc_agreement(grid.composites)
    model = clinicians_mixed_model(grid)
    assert model.consistency() == pytest.approx(iccs.spearman_brown(of_mean, 1 / 5), abs=1e-12)
    assert model.consistency(5) == pytest.approx(of_mean, abs=1e-12)
    assert model.agreement() == pytest.approx(single, abs=1e-12)
    assert model.agreement(5) == pytest.approx(iccs.spearman_brown(single, 5), abs=1e-12)


def test_an_unbalanced_table_has_the_variances_that_r_finds():
    # lme4 1.1.31 on R 4.2.2: lmer(y ~ 1 + (1 | item) + (1 | rater), REML = TRUE), bobyqa.
    model = clinicians_mixed_model(grid_of(table(UNBALANCED)))
    found = (model.response, model.rater, model.residual)
    assert found == pytest.approx((0.286214678, 0.107953236, 0.384808774), rel=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_raters_of_equal_severity_have_no_rater_variance_and_still_an_answer(seed):
    model = clinicians_mixed_model(simulate(60, 8, 2, seed, variances=(1.0, 0.0, 0.75)))
    assert model.reason is None
    assert model.agreement() == pytest.approx(model.consistency(), abs=0.06)


def statsmodels_fit(grid):
    """Fit by statsmodels' own dense solver: response, rater, residual and log likelihood."""
    response, rater = np.nonzero(~np.isnan(grid.composites))
    table = pd.DataFrame({"c": grid.composites[response, rater], "i": response, "r": rater})
    parts = {"response": "0 + C(i)", "rater": "0 + C(r)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        groups = np.ones(len(table))
        model = mixedlm("c ~ 1", table, groups=groups, vc_formula=parts, re_formula="0")
        fitted = model.fit(method=["bfgs", "lbfgs", "powell"])
    of_rater, of_response = fitted.vcomp
    return model, (of_response, of_rater, fitted.scale)


@pytest.mark.parametrize(("n", "raters", "each"), [(80, 12, 2), (60, 4, 3), (50, 20, 2)])
def test_unbalanced_ratings_have_the_components_of_statsmodels_own_fit(n, raters, each):
    grid = simulate(n, raters, each, seed=3)
    model = clinicians_mixed_model(grid)
    _, expected = statsmodels_fit(grid)
    assert (model.response, model.rater, model.residual) == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("seed", range(8))
def test_no_fit_is_less_likely_than_statsmodels_own(seed):
    # Seed 1 is one where the search over standard deviations stops at ICC(C,1) 0.30, not 0.39.
    grid = simulate(60, 8, 2, seed, variances=(1.0, 0.0, 0.75))
    ours = clinicians_mixed_model(grid)
    model, (response, rater, residual) = statsmodels_fit(grid)
    theirs = model.loglike(np.sqrt([rater / residual, response / residual]))
    ratios = np.array([ours.rater, ours.response]) / ours.residual
    found = model.loglike(np.sqrt(np.maximum(ratios, 1e-10)))  # theirs divides by a ratio
    assert found > theirs - 1e-6


@pytest.mark.parametrize(
    ("table", "code", "reason"),
    [
        ([[1, 2, np.nan], [2, 3, np.nan], [np.nan, np.nan, 4]], "mixed_few", "3 responses"),
        ([[1, np.nan], [np.nan, 2], [3, np.nan], [4, 4]], "mixed_few", "3 responses"),
        ([[3, 3], [3, 3], [3, 3], [3, 3]], "mixed_flat", "differ"),
        ([[1], [2], [3], [4]], "mixed_one", "two clinicians"),
        (np.arange(60.0)[:, None], "mixed_one", "two clinicians"),
        ([[1, np.nan], [2, np.nan], [3, np.nan], [4, np.nan]], "mixed_one", "two clinicians"),
        ([[1, 2], [2, 3], [4, 5], [3, 4]], "mixed_unconverged", "did not converge"),
    ],
)
def test_too_little_data_is_undefined_with_a_reason(table, code, reason):
    model = clinicians_mixed_model(grid_of(table))
    assert reason in str(model.reason)
    assert np.isnan([model.consistency(), model.agreement(2)]).all()
    for row in forms(table).values():
        assert np.isnan([row.icc, row.low, row.high]).all()
        assert row.notes[0].code == code


def test_6000_responses_are_fitted_and_near_the_truth():
    grid = simulate(6000, 10, 2, seed=0)
    model = clinicians_mixed_model(grid)
    assert model.consistency() == pytest.approx(0.571, abs=0.03)


def test_points_shift_nothing_and_their_unit_scales_every_variance():
    grid = simulate(50, 6, 3, seed=4)
    one, other = crossed_model(grid.composites), crossed_model(10 * grid.composites + 1000)
    before, after = ([each.response, each.rater, each.residual] for each in (one, other))
    assert after == pytest.approx([100 * part for part in before], rel=1e-5)


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        *((lambda table: table + 10, 1), (lambda table: table * 3, 3)),
        *((lambda table: table[::-1], 1), (lambda table: table[:, ::-1], 1)),
    ],
    ids=["shift", "scale", "responses", "replicates"],
)
def test_shift_and_order_change_nothing_and_scale_scales_the_sd(change, scale):
    table = replicated().mean(axis=2)
    assert retest.icc_one(change(table)) == pytest.approx(retest.icc_one(table))
    assert retest.sd_within(change(table)) == pytest.approx(scale * retest.sd_within(table))
    assert retest.same_pairs(change(table)) == pytest.approx(retest.same_pairs(table))
