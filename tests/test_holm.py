"""Holm's correction, also for comparisons whose p nobody knows any more."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from calibration.differences import holm
from data.errors import BadInput


def test_holm_is_the_step_down_of_his_paper_and_statsmodels():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    assert holm(p) == pytest.approx([0.03, 0.06, 0.06, 0.02])  # 3p, carried on, 2p, 4p
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1])
    for tied in ([0.02] * 5, [0.3, 0.001, 0.3, 1.0, 0.0], np.random.default_rng(0).random(40) ** 4):
        assert holm(np.array(tied)).tolist() == multipletests(tied, method="holm")[1].tolist()


def test_holm_leaves_out_what_has_no_p():
    assert holm(np.array([np.nan, 0.02, 0.5]), tried=1) == pytest.approx(
        [np.nan, 0.06, 1.0], nan_ok=True
    )
    assert np.isnan(holm(np.array([np.nan]), tried=3)).all()
    assert len(holm(np.array([]))) == 0


@pytest.mark.parametrize(("p", "tried"), [([0.5], -1), ([1.5], 0), ([-0.1], 0)])
def test_holm_refuses_what_is_no_p_and_no_count(p, tried):
    with pytest.raises(BadInput):
        holm(np.array(p), tried)


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=6)


@settings(deadline=None)
@given(P_VALUES, P_VALUES)
def test_whatever_an_unknown_p_was_holm_of_all_would_give_no_more(p, unknown):
    every = np.array([*p, *unknown])
    order = np.argsort(every)
    steps = np.maximum.accumulate(every[order] * np.arange(len(every), 0, -1)).clip(max=1)
    of_all = steps[np.argsort(order)][: len(p)]
    assert (of_all <= holm(np.array(p), tried=len(unknown)) + 1e-12).all()
