"""Agreement by period: the calendar, joining, and the ICC that `calibrate` would give."""

from datetime import date

import numpy as np
import pytest
from kit.scores import scope_of, study, watching, without

from calibration.columns import column_icc, columns
from calibration.monitoring import calendar, period_label, period_rows, watch
from calibration.scope import scopes
from calibration.table import agreement_table
from calibration.values import AnalysisOptions

TODAY = date(2026, 1, 1)


def scope(scores, method="paper", reps=200):
    return list(scopes(scores, AnalysisOptions(method=method, reps=reps)))[-1]


def monthly(names, a_month):
    """Return days that give each month so many responses, from January 2025 on."""
    months = (place // a_month for place in range(len(names)))
    days = [date(2025 + month // 12, month % 12 + 1, 15) for month in months]
    return dict(zip(names, days, strict=True))


@pytest.mark.parametrize(
    ("every", "day", "start", "after", "label"),
    [
        ("week", date(2027, 1, 3), date(2026, 12, 28), date(2027, 1, 4), "2026-W53"),
        ("month", date(2024, 12, 31), date(2024, 12, 1), date(2025, 1, 1), "2024-12"),
        ("quarter", date(2024, 12, 31), date(2024, 10, 1), date(2025, 1, 1), "2024-Q4"),
        ("quarter", date(2024, 3, 31), date(2024, 1, 1), date(2024, 4, 1), "2024-Q1"),
    ],
)
def test_a_day_belongs_to_its_calendar_period(every, day, start, after, label):
    ((first, last, _),) = calendar([day], np.zeros(1, int), watching(every=every))
    assert first.start_time.date() == start
    assert (first + 1).start_time.date() == after
    assert period_label(first, last) == label


def test_periods_with_too_few_are_joined_with_the_next_and_none_is_lost():
    days = [date(2025, 1, 3)] * 2 + [date(2025, 2, 1)] * 3 + [date(2025, 4, 2)] * 4
    days += [date(2025, 5, 1)]
    found = calendar(days, np.arange(10), watching(least=4))

    assert [(period_label(first, last), rows.sum()) for first, last, rows in found] == [
        ("2025-01 to 2025-02", 5),
        ("2025-03 to 2025-04", 4),
        ("2025-05", 1),
    ]
    assert np.sum([rows for *_, rows in found], axis=0).tolist() == [1] * 10


def test_instances_are_counted_not_responses_in_whatever_order():
    days = [date(2025, 1, 1)] * 6 + [date(2025, 2, 1)]
    instances = np.array([0, 0, 0, 1, 1, 1, 2])
    found = calendar(days, instances, watching(least=3))
    turned = calendar(days[::-1], instances[::-1], watching(least=3))
    assert [rows.sum() for *_, rows in found] == [7]
    assert [one[:2] for one in turned] == [one[:2] for one in found]


@pytest.mark.parametrize("method", ["paper", "published"])
@pytest.mark.parametrize("per", [1, 2])
def test_one_period_of_all_is_the_jurys_row_of_calibrate_to_the_last_digit(method, per):
    scores = study(n=30, per=per)
    own = scope(scores, method)
    (found,) = period_rows(
        own, own.jury, dict.fromkeys(own.grid.responses, TODAY), watching(today=TODAY)
    )
    table = agreement_table(scores, method=method, reps=200).set_index("scorer").loc["jury"]

    assert found.icc == pytest.approx(table["icc"])
    assert (found.low, found.high) == pytest.approx((table["low"], table["high"]))
    assert (found.n_responses, found.n_instances) == (table["n_responses"], table["n_instances"])
    assert found.n_clinicians == table["n_clinicians"]


@pytest.mark.parametrize("method", ["paper", "published"])
def test_a_periods_icc_is_that_of_its_rows_with_z_over_everything(method):
    own = scope(study(n=80), method)
    days = monthly(own.grid.responses, 40)
    pair = columns(own.grid, own.jury, method)

    found = period_rows(own, own.jury, days, watching(today=TODAY))

    for place, one in enumerate(found):
        rows = np.zeros(80, dtype=bool)
        rows[place * 40 : place * 40 + 40] = True
        x, y = pair.clinicians[rows], pair.scorer[rows]
        assert one.icc == pytest.approx(column_icc(x, y, method))


def test_what_the_jury_did_not_score_is_counted_and_leaves_the_period_undefined():
    scores = study(n=40)
    names = scope(scores).grid.responses
    unscored = scores.ratings["response_id"].isin(names[20:]) & (scores.ratings["kind"] == "juror")
    own = scope(without(scores, unscored))
    first, second = period_rows(
        own, own.jury, monthly(own.grid.responses, 20), watching(today=TODAY)
    )
    assert (first.n_missing, first.too_few) == (0, False)
    assert (second.n_missing, second.n_responses, second.too_few) == (20, 0, True)
    assert not second.unfilled
    assert np.isnan(second.icc)
    assert second.told("too_few_responses")["responses"] == 0


def test_the_last_period_is_marked_while_it_may_still_grow():
    own = scope(study(n=50))
    found = period_rows(
        own, own.jury, monthly(own.grid.responses, 20), watching(today=date(2025, 3, 20))
    )
    assert [(one.period, one.over, one.too_few) for one in found] == [
        ("2025-01", True, False),
        ("2025-02", True, False),
        ("2025-03", False, True),
    ]
    assert found[2].notes == ()
    assert (found[0].start, found[0].end) == (date(2025, 1, 1), date(2025, 1, 31))


def test_since_leaves_out_periods_and_changes_no_other():
    own = scope(study(n=60))
    days = monthly(own.grid.responses, 20)
    every, later = (
        period_rows(own, own.jury, days, watching(since=since))
        for since in (None, date(2025, 2, 1))
    )
    assert later == every[1:]


def falling(seed, drop, months=40, n=20):
    """Return the rows of a study of one clinician mean and one juror, worse from month 6 on."""
    random = np.random.default_rng(seed)
    r = np.where(np.arange(months * n) < 6 * n, 0.6 / 1.4, drop / (2 - drop))
    quality = np.sqrt(r) * random.normal(size=months * n)
    table = quality[:, None] + np.sqrt(1 - r)[:, None] * random.normal(size=(months * n, 2))
    own = scope_of(table, 1, reps=0)
    return period_rows(own, own.jury, monthly(own.grid.responses, n), watching())


@pytest.mark.slow
def test_a_planted_fall_from_60_to_40_is_found_in_about_a_year_of_months():
    found = []
    for seed in range(60):
        rows = falling(seed, 0.4)
        alarm = watch(rows[6:], watching(target=0.6)).alarm
        periods = [row.period for row in rows[6:]]
        found.append(periods.index(alarm.period) + 1 if alarm else 35)
    assert 8 <= np.mean(found) <= 16
    assert 7 <= np.median(found) <= 13


@pytest.mark.slow
def test_while_nothing_falls_hardly_any_study_is_alarmed_in_three_years():
    alarms = [bool(watch(falling(seed, 0.6), watching(target=0.6)).alarm) for seed in range(220)]
    assert np.mean(alarms) < 0.15  # 25 of 220; of few studies it says nothing


@pytest.mark.slow
def test_the_interval_of_a_period_holds_the_truth_about_as_often_as_it_says():
    held, true = [], 0.6
    r = true / (2 - true)
    for seed in range(200):
        random = np.random.default_rng(seed)
        quality, noise = random.normal(size=(120, 1)), random.normal(size=(120, 2))
        own = scope_of(np.sqrt(r) * quality + np.sqrt(1 - r) * noise, 1, reps=400)
        row = period_rows(own, own.jury, monthly(own.grid.responses, 40), watching(today=TODAY))[1]
        held.append(row.low <= true <= row.high)
        assert row.se > 0
    assert 0.88 <= np.mean(held) <= 0.98
