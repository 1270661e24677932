"""Raters' own reliability, among clinicians and of a juror asked again: published values, pingouin, what is undefined."""

import math

import numpy as np
import pandas as pd
import pingouin
import pytest
from kit.scores import FIELDS, note_of, scope_of

from calibration import reliability as retest
from calibration.crossed import crossed_model
from calibration.icc import (
    agreement_interval,
    f_interval,
    icc_agreement,
    icc_consistency,
    mean_squares,
    spearman_brown,
)
from calibration.reliability import FORMS, panel_sizes, reliability_rows
from calibration.scope import scopes
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions

SHROUT_FLEISS = [
    *([9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8]),
    *([7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]),
]


def forms(table, **options):
    table = np.asarray(table, dtype=float)
    rows = reliability_rows(scope_of(table, table.shape[1], **options))
    return {row.form: row for row in rows}


def crossed(n=60, raters=4, per=2, seed=0, variances=(1.0, 0.25, 1.0)):
    random = np.random.default_rng(seed)
    response, rater, residual = np.sqrt(variances)
    table = response * random.normal(size=(n, 1)) + rater * random.normal(size=(1, raters))
    table = 3 + table + residual * random.normal(size=(n, raters))
    table[np.argsort(random.random(table.shape), axis=1).argsort(axis=1) >= per] = np.nan
    return table


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
    of_mean = float(icc_consistency(table))
    exact, among = f_interval(of_mean, 40, 5), of_mean_squares(table)
    panel = of_mean, exact.low, exact.high

    found = {form: (row.icc, row.low, row.high) for form, row in forms(table).items()}

    assert found["ICC(C,k)"] == pytest.approx(panel)
    assert found["ICC(C,1)"] == pytest.approx([spearman_brown(one, 1 / 5) for one in panel])
    assert found["ICC(A,1)"] == pytest.approx((icc_agreement(table), among.low, among.high))


def of_mean_squares(table):
    ms, (n, k) = mean_squares(table), table.shape
    freedom = n - 1, k - 1, (n - 1) * (k - 1)
    return agreement_interval((float(ms.rows), float(ms.columns), float(ms.error)), freedom, (k, n))


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


def test_a_panel_of_uneven_size_counts_by_the_harmonic_mean():
    table = crossed(40, 4, 2)
    table[:10, :] = crossed(10, 4, 4)

    found = forms(table)["ICC(C,k)"]

    assert found.n_raters == pytest.approx(40 / (10 / 4 + 30 / 2))


def test_several_responses_of_an_instance_are_said_to_be_taken_as_independent():
    found = forms(crossed(40), per=2)["ICC(A,1)"]

    assert found.told("reliability_shared")["instances"] == 20


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ([[1], [2], [3], [4]], "mixed_one"),
        ([[3, 3], [3, 3], [3, 3]], "mixed_flat"),
        ([[1, 2], [2, 3], [4, 5], [3, 4]], "mixed_unconverged"),
        ([[1, np.nan], [np.nan, 2], [3, np.nan], [4, 4]], "mixed_few"),
    ],
)
def test_what_is_undefined_is_nan_with_the_reason(table, code):
    for row in forms(table).values():
        assert np.isnan([row.icc, row.low, row.high]).all()
        assert row.notes[0].code == code


def test_more_raters_make_a_more_reliable_mean_by_spearman_and_brown():
    model = crossed_model(np.asarray(SHROUT_FLEISS, dtype=float))

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
    ratings = pd.DataFrame(rows, columns=[*FIELDS, "pass_", "replicate"])
    responses, shape = ratings[FIELDS[:3]].drop_duplicates(), RubricShape(CRITERIA, 1, 5)
    scores = Scores(ratings, responses, {"aci": shape})
    (scope,) = scopes(scores, AnalysisOptions(reps=0))
    (row,) = retest.test_retest_rows(scope, scores)
    return row


def simulate(n=20, replicates=3, seed=0):
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1, 1))
    return np.clip(np.round(quality + 0.6 * random.normal(size=(n, replicates, 2))), 1, 5)


def test_the_icc_of_a_juror_asked_again_by_hand_and_as_published():
    # Row means 1.5, 2, 4.5: MS_rows = 2 * 31/12 = 31/6. Differences -1, 0, -1: MS_columns = 2/3,
    # MS_error = 1/6. ICC(A,1) = (31/6 - 1/6) / (31/6 + 1/6 + 2/3 * (2/3 - 1/6)) = 5 / (17/3).
    table = np.array([[1, 2], [2, 2], [4, 5]], dtype=float)

    assert retest.icc_one(table) == pytest.approx(15 / 17)
    published = np.array(SHROUT_FLEISS, dtype=float)
    assert retest.icc_one(published) == pytest.approx(0.2898, abs=5e-5)
    assert retest.sd_within(table) == pytest.approx(math.sqrt((0.5 + 0 + 0.5) / 3))
    assert retest.same_pairs(table) == pytest.approx(1 / 3)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*:pandas.errors.Pandas4Warning")
@pytest.mark.parametrize("replicates", [2, 3, 5])
def test_the_icc_of_a_study_is_pingouins(replicates):
    given = simulate(replicates=replicates)
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
    given = simulate()
    given[0, 2], given[1, 1:] = np.nan, np.nan

    row = row_of(given)

    tables = given.mean(axis=2)
    squares = tables[2:].var(axis=1, ddof=1).sum() * 2 + tables[0, :2].var(ddof=1)
    assert row.icc_one == pytest.approx(retest.icc_one(tables[2:]))
    assert row.sd_points == pytest.approx(math.sqrt(squares / 37))
    assert row.n_responses == 19
    assert "2 responses without all replicates left out of the ICC" in note_of(row)


def test_a_reading_without_a_criterion_has_no_composite_but_its_scores_count():
    given = simulate(replicates=2)
    given[0, 1, 0] = np.nan

    row = row_of(given)

    same = [given[1:, 0] == given[1:, 1], given[:1, 0, 1] == given[:1, 1, 1]]
    assert row.n_responses == 19
    assert row.exact_agreement == pytest.approx(
        np.concatenate([one.ravel() for one in same]).mean()
    )
    assert "1 reading lacks a criterion" in note_of(row)


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: table[::-1], 1),
        (lambda table: table[:, ::-1], 1),
    ],
    ids=["shift", "scale", "responses", "replicates"],
)
def test_shift_and_order_change_nothing_and_scale_scales_the_sd(change, scale):
    table = simulate().mean(axis=2)

    assert retest.icc_one(change(table)) == pytest.approx(retest.icc_one(table))
    assert retest.sd_within(change(table)) == pytest.approx(scale * retest.sd_within(table))
    assert retest.same_pairs(change(table)) == pytest.approx(retest.same_pairs(table))
