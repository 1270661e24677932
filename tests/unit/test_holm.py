"""Holm's correction over the rows of one table."""

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from calibration.differences import holm


def test_holm_is_the_step_down_of_his_paper_and_statsmodels():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3p, carried on, 2p, 4p
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    for tied in ([0.02] * 5, [0.3, 0.001, 0.3, 1.0, 0.0], np.random.default_rng(0).random(40) ** 4):
        assert holm(np.array(tied)).tolist() == multipletests(tied, method="holm")[1].tolist()


def test_holm_leaves_out_what_has_no_p():
    assert holm(np.array([np.nan, 0.02, 0.5])) == pytest.approx([np.nan, 0.04, 0.5], nan_ok=True)
    assert np.isnan(holm(np.array([np.nan]))).all()
    assert len(holm(np.array([]))) == 0
