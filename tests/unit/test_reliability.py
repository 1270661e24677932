"""The clinicians' own reliability: published values, exact intervals, and what is undefined."""

import math

import numpy as np
import pytest
from kit.scores import scope_of

from calibration.crossed import crossed_model, reliability_intervals
from calibration.icc import (
    agreement_interval,
    f_interval,
    icc_agreement,
    icc_consistency,
    mean_squares,
    spearman_brown,
)
from calibration.reliability import (
    FORMS,
    panel_sizes,
    reliability_rows,
)
from calibration.tables.agreement import QUOTES, RELIABILITY
from calibration.tables.spec import laid_out

SHROUT_FLEISS = [
    [9, 2, 5, 8],
    [6, 1, 3, 2],
    [8, 4, 6, 8],
    [7, 1, 2, 6],
    [10, 5, 6, 9],
    [6, 2, 4, 7],
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


def test_the_intervals_of_a_complete_table_are_mcgraw_and_wong_s():
    table = crossed(30, 4, 4, seed=1)
    exact, among = f_interval(float(icc_consistency(table)), 30, 4), of_mean_squares(table)

    consistency, agreement = reliability_intervals(crossed_model(table), table)

    ends = [spearman_brown(end, 4) for end in (consistency.low, consistency.high)]
    assert ends == pytest.approx([exact.low, exact.high])
    assert (agreement.low, agreement.high) == pytest.approx((among.low, among.high))


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


def test_every_form_says_what_to_quote_it_for_the_first_first():
    rows = [*forms(SHROUT_FLEISS).values()]

    table = laid_out(RELIABILITY, rows)

    assert set(QUOTES) == set(FORMS)
    assert [one[-1] for one in table.groups[0].rows] == [QUOTES[form] for form in FORMS]
    assert QUOTES[FORMS[0]].startswith("Quote first")


def test_more_raters_make_a_more_reliable_mean_by_spearman_and_brown():
    model = crossed_model(np.asarray(SHROUT_FLEISS, dtype=float))

    found = panel_sizes("clinicians", model)

    assert [row.number for row in found] == [1, 2, 3, 4, 5, 6]
    assert (found[3].consistency, found[3].agreement) == pytest.approx((0.9093, 0.6201), abs=1e-4)
    assert [row.consistency for row in found] == sorted(row.consistency for row in found)
