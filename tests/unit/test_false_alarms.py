"""How often watching says that a jury has fallen: unchanged, and after a fall, in simulated years.

The periods are computed by medjury from simulated ratings, seeds fixed. docs/monitor.md has the
table of all that was tried.
"""

import numpy as np
import pytest
from kit.scores import watching
from kit.watched_years import Plan, alarms

FIRST_THREE = watching()


def share(plan, studies, normal=None):
    """Return in which share of studies there was an alarm within the year."""
    return float(np.mean(alarms(plan, studies, normal) > 0))


def test_an_unchanged_jury_seldom_and_a_collapsed_one_soon_raises_an_alarm():
    assert share(Plan(), 60) <= 0.1
    found = alarms(Plan(then=0.0), 20)
    assert (found > 0).all()
    assert 2 <= np.median(found) <= 4


def test_a_higher_rate_of_false_alarms_finds_more_and_finds_it_sooner():
    plan = Plan(then=0.3)
    often, seldom = (
        np.where(found > 0, found, 13)
        for found in (alarms(plan, 30, rate=rate) for rate in (0.2, 0.01))
    )
    assert (often <= seldom).all()
    assert often.mean() < seldom.mean()


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.5, 0.6, 0.7])
def test_an_unchanged_jury_is_alarmed_in_at_most_one_year_of_twenty(icc):
    assert share(Plan(icc, icc), 600) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize("icc", [0.5, 0.6, 0.7])
def test_a_target_from_three_periods_raises_no_more_false_alarms(icc):
    assert share(Plan(icc, icc, before=3), 500, FIRST_THREE) <= 0.05


@pytest.mark.slow
def test_a_second_year_of_watching_has_hardly_more_false_alarms_than_the_first():
    # Of 400 studies at 5 %, more than 7.5 % would come in one of 100.
    found = alarms(Plan(after=24), 400)
    assert np.mean((found > 0) & (found <= 12)) <= 0.05
    assert np.mean(found[(found == 0) | (found > 12)] > 12) <= 0.075


@pytest.mark.slow
def test_a_fall_from_60_to_40_is_found_within_a_year_in_four_studies_of_five():
    assert share(Plan(then=0.4), 500) >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "normal"),
    [
        (Plan(marks="ceiling"), None),
        (Plan(marks="ceiling", before=3), FIRST_THREE),
        (Plan(marks="steep ceiling", before=3), FIRST_THREE),
        (Plan(instances=7, per=3, before=3), FIRST_THREE),
        (Plan(instances=40, before=3), FIRST_THREE),
        (Plan(report=100), None),
        (Plan(before=1), watching(baseline=1)),
    ],
)
def test_ceilings_shared_instances_and_uncertain_targets_raise_hardly_more(plan, normal):
    # Of 300 studies at 5 %, more than 8 % would come in one of 100.
    assert share(plan, 300, normal) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "normal", "least", "most"),
    [
        (Plan(then=0.4, before=3), FIRST_THREE, 0.22, 0.4),
        (Plan(then=0.4, report=100), None, 0.3, 0.5),
        (Plan(then=0.4, report=1000), None, 0.68, 0.84),
    ],
)
def test_an_uncertain_target_finds_as_little_as_the_docs_say(plan, normal, least, most):
    assert least <= share(plan, 250, normal) <= most
