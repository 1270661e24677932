"""Unsafe responses and the share of failing ones: by hand, on public data, by scikit-learn, and by simulation."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.scores import both, rated, study
from scipy import stats
from sklearn.metrics import confusion_matrix, roc_auc_score

from calibration.clustered_intervals import clustered_proportion, wilson
from calibration.corrected_rate import Share, corrected_rate, fieller
from calibration.detection import (
    LimitOutcome,
    PairedScores,
    all_misses,
    auc_with_interval,
    detection,
    share_to_read,
    untested,
)
from calibration.protocol import Critical
from calibration.scores import RubricShape
from calibration.values import AnalysisOptions
from data.samples import MENTALBENCH

NAN = math.nan


def rows_of(scores, reps=200, needed=None):
    found = detection(scores, AnalysisOptions(min_jurors=needed, reps=reps))
    return {(row.benchmark, row.scorer): row for row in found}


def jury_of(*tables, **options):
    """Return the jury's row of a study of these scores of clinicians and jurors."""
    return rows_of(rated(*tables), **options)["visits", "jury"]


def misses(rows, at_most):
    [found] = all_misses(rows, [Critical("safety", 2.0, at_most)])["visits"]
    return found


def readings_of(scores, unsafe, clusters=None):
    """Return readings of these scores; what is unsafe has a 1, the rest a 5."""
    places = np.arange(len(scores)) if clusters is None else clusters
    return PairedScores(np.asarray(scores, float), np.where(unsafe, 1.0, 5.0), places, 2.0)


def codes(row):
    return {one.code for one in row.notes}


# clinicians' means 1, 2, 2, 3, 4, 5; the jury 1, 2, 4, 2, 5, 5
HAND = ([[1, 1], [2, 2], [1, 3], [3, 3], [4, 4], [5, 5]], [[1], [2], [4], [2], [5], [5]])


def test_the_figures_of_six_responses_are_those_counted_by_hand():
    row = jury_of(*HAND)
    assert (row.n, row.n_bad, row.n_missed, row.n_missing) == (6, 3, 1, 0)
    assert [row.sensitivity, row.specificity, row.ppv, row.npv] == pytest.approx([2 / 3] * 4)
    # unsafe 1, 2, 4 against safe 2, 5, 5: 3 + 2.5 + 2 of 9
    assert row.auc == pytest.approx(7.5 / 9)
    # 90 % of 3 is 2.7: all below 4, and 0.7 of the one response at 4
    assert row.read_for_90 == pytest.approx(3.7 / 6)
    assert row.read_for_95 == pytest.approx(3.85 / 6)


def test_clinicians_and_jury_are_held_against_the_same_other_clinicians():
    # others of each reading: 1 1, 2 2, then dr0 (1) against 3 and dr1 (3) against 1, ...
    found = rows_of(rated(*HAND))
    clinicians, jury = found["visits", "clinicians"], found["visits", "jury_held_out"]
    assert (clinicians.n, clinicians.n_bad, jury.n, jury.n_bad) == (12, 5, 12, 5)
    assert clinicians.n_missed == 1  # dr0's 3 where dr1 says 1
    assert jury.n_missed == 1  # its 4 on the same response


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(8, 40))
def test_auc_and_what_is_missed_are_scikit_learns(seed, n):
    random = np.random.default_rng(seed)
    truth = random.integers(1, 6, (n, 1)).astype(float)
    jury = np.clip(truth + random.integers(-2, 3, (n, 1)), 1, 5).astype(float)
    truth[:2, 0] = 1, 5
    row = jury_of(truth, jury, reps=0)
    unsafe = truth[:, 0] <= 2
    assert row.auc == pytest.approx(roc_auc_score(unsafe, -jury[:, 0]))
    found = confusion_matrix(unsafe, jury[:, 0] <= 2)
    assert (row.n_missed, row.n_bad - row.n_missed) == (found[1, 0], found[1, 1])
    assert row.specificity == pytest.approx(found[0, 0] / found[0].sum())


def test_reading_that_share_in_a_random_order_of_ties_finds_what_it_says():
    random = np.random.default_rng(3)
    scores, unsafe = random.integers(1, 4, 40), random.random(40) < 0.3
    share = share_to_read(readings_of(scores, unsafe), 0.5)
    found = []
    for _ in range(4000):
        order = np.lexsort((random.random(40), scores))
        found.append(unsafe[order][: round(share * 40)].mean() * round(share * 40) / unsafe.sum())
    assert share * 40 == pytest.approx(round(share * 40))  # a whole number of responses
    assert np.mean(found) == pytest.approx(0.5, abs=0.01)


def test_the_order_of_the_file_changes_no_figure():
    scores = study(n=40, seed=2)
    random = np.random.default_rng(0)
    turned = replace(
        scores,
        ratings=scores.ratings.sample(frac=1, random_state=1).reset_index(drop=True),
        responses=scores.responses.iloc[random.permutation(40)].reset_index(drop=True),
    )
    first, second = rows_of(scores, reps=50), rows_of(turned, reps=50)
    for key, row in first.items():
        for name in ("read_for_90", "auc", "sensitivity_low"):
            assert getattr(second[key], name) == pytest.approx(getattr(row, name), nan_ok=True)


def test_a_jury_that_gives_everything_the_same_score_reads_nine_tenths_for_nine_tenths():
    row = jury_of(HAND[0], [[5]] * 6)
    assert (row.auc, row.read_for_90) == (0.5, pytest.approx(0.9))
    assert (row.n_missed, row.sensitivity) == (3, 0)
    assert math.isnan(row.ppv)


def test_none_of_five_missed_is_no_proof_that_none_will_be():
    truth = [[1.0]] * 5 + [[5.0]] * 25
    row = jury_of(truth, truth)
    assert (row.n_missed, row.sensitivity, row.sensitivity_high) == (0, 1, 1)
    assert row.sensitivity_low == pytest.approx(5 / (5 + 1.959964**2))  # Wilson's at 5 of 5
    assert (row.auc, row.auc_high) == (1, 1)
    assert row.auc_low == pytest.approx(row.sensitivity_low)
    assert misses([row], 0.4).outcome is LimitOutcome.OPEN


def test_without_an_unsafe_response_nothing_is_said_of_finding_them_and_without_a_safe_one_nothing_of_those():
    row = jury_of([[4], [5], [3]], [[4], [2], [3]])
    assert (row.n, row.n_bad) == (3, 0)
    assert all(math.isnan(one) for one in (row.sensitivity, row.auc, row.read_for_90, row.auc_low))
    assert row.specificity == pytest.approx(2 / 3)
    assert row.told("no_unsafe")["threshold"] == 2
    row = jury_of([[1], [2], [1]], [[1], [5], [2]])
    assert (row.n_bad, row.n_missed) == (3, 1)
    assert np.isnan([row.specificity, row.auc]).all()
    assert "all_unsafe" in codes(row)


def test_a_response_that_a_juror_did_not_score_is_missing_and_not_guessed():
    jurors = [[1, 1], [2, NAN], [4, 4], [2, 2], [5, 5], [5, 5]]
    row, fewer = (jury_of(HAND[0], jurors, needed=needed) for needed in (None, 1))
    assert (row.n, row.n_bad, row.n_missing) == (5, 2, 1)
    assert (fewer.n, fewer.n_missing) == (6, 0)
    assert "fewer_jurors" in codes(fewer)


def test_a_metric_has_no_threshold_a_single_clinician_no_others_and_without_jurors_there_is_no_jury():
    row = rows_of(rated(*HAND, np.arange(1.0, 7)[:, None]))["visits", "metric:m0"]
    assert (row.auc, row.read_for_90) == (1, pytest.approx(2.7 / 6))
    assert math.isnan(row.sensitivity)
    assert row.n_missed is None
    assert "only_order" in codes(row)
    found = rows_of(rated([[1], [5]], (), [[0.1], [0.7]]))
    assert found["visits", "clinicians"].n == 0
    assert "no_others" in codes(found["visits", "clinicians"])
    assert ("visits", "jury") not in found


def test_thresholds_are_the_critical_ones_of_rubric_and_protocol_and_no_others():
    plain, marked = study(n=20), rated(*HAND)
    fixed = detection(plain, AnalysisOptions(reps=10), [Critical("clarity", 3.0)])
    assert {(row.criterion, row.threshold) for row in rows_of(marked).values()} == {("safety", 2.0)}
    assert rows_of(plain) == {}
    assert {(row.criterion, row.threshold) for row in fixed} == {("clarity", 3.0)}
    assert ("visits", "juror:j0") not in rows_of(marked)  # the only one of the jury


def test_benchmarks_are_pooled_where_they_have_the_criterion_on_the_same_scale():
    other = rated(*HAND, benchmark="letters")
    pooled = rows_of(both(rated(*HAND), other))["combined", "jury"]
    wide = replace(other, rubrics={"letters": RubricShape(("safety",), 1, 7, (("safety", 2.0),))})
    apart = rows_of(both(rated(*HAND), wide))["combined", "jury"]
    free = replace(other, rubrics={"letters": RubricShape(("safety", "tone"), 1, 5)})
    one = rows_of(both(rated(*HAND), free))["combined", "jury"]
    assert (pooled.n, pooled.n_bad) == (12, 6)
    assert "different_scales" in codes(apart)
    assert (apart.n, math.isnan(apart.auc)) == (0, True)
    assert one.n == 6  # nothing is unsafe where nothing is critical
    assert rows_of(free) == {}


def test_misses_are_met_failed_or_open_by_the_interval():
    # 0 of 40 missed: at most 0.088; 20 of 40: 0.35 to 0.65; 3 of 40
    def of(missed, at_most):
        jury = [[5.0]] * missed + [[1.0]] * (40 - missed) + [[5.0]] * 20
        rows = rows_of(rated([[1.0]] * 40 + [[5.0]] * 20, jury), reps=20).values()
        return misses([*rows], at_most)

    cases = {(0, 0.1): "met", (0, 0.05): "open", (3, 0.1): "open", (20, NAN): "open"}
    assert {case: of(*case).outcome for case in cases} == cases
    found, ends = of(20, 0.1), wilson(0.5, 40)
    assert (found.outcome, found.n_bad, found.n_missed) == (LimitOutcome.FAILED, 40, 20)
    assert (found.missed, found.low, found.high) == pytest.approx((0.5, ends.low, ends.high))


def test_a_limit_that_no_row_is_about_is_open():
    limits = [Critical("safety", 2.0, 0.3), Critical("tone", 1.0)]
    safety, tone = untested((), limits)
    assert (safety.criterion, safety.at_most, safety.outcome) == ("safety", 0.3, LimitOutcome.OPEN)
    assert (tone.criterion, tone.at_most) == ("tone", 0.2)
    assert math.isnan(safety.missed)
    found = rows_of(rated([[1.0]] * 9 + [[5.0]] * 9, [[1.0]] * 18), reps=20)
    tested = list(found.values())
    assert [one.criterion for one in untested(tested, limits)] == ["tone"]


def test_simulated_raters_are_named_on_every_row_they_stand_behind():
    found = rows_of(rated(*HAND, simulated={"j0"}))
    assert found["visits", "jury"].simulated == ("j0",)
    assert found["visits", "clinicians"].simulated == ()


def test_responses_of_one_instance_count_as_one_where_they_are_alike_and_alike_instances_as_their_responses():
    truth, jury = [[1.0]] * 40 + [[5.0]] * 40, ([[1.0]] * 4 + [[5.0]] * 4) * 5 + [[5.0]] * 40
    single = jury_of(truth, jury)
    apart = rows_of(rated(truth, jury, instances=[i // 4 for i in range(80)]))["visits", "jury"]
    width = single.sensitivity_high - single.sensitivity_low
    assert apart.sensitivity_high - apart.sensitivity_low > 1.6 * width
    # one of two missed in each of 10 instances: nothing differs between them
    hits, clusters = np.tile([1.0, 0.0], 10), np.repeat(np.arange(10), 2)
    found, single = clustered_proportion(hits, np.ones(20), clusters), wilson(0.5, 20)
    assert (found.low, found.high) == (single.low, single.high)


def test_the_error_of_an_area_is_delongs_and_of_thrice_the_same_responses_no_smaller():
    random = np.random.default_rng(4)
    unsafe = random.random(80) < 0.4
    scores = np.round(3 + random.normal(size=80) - unsafe)
    auc, ends = auc_with_interval(readings_of(scores, unsafe))
    bad, good = scores[unsafe][:, None], scores[~unsafe]
    wins = (bad < good) + 0.5 * (bad == good)
    parts = [wins.mean(axis=axis).var(ddof=1) / wins.shape[1 - axis] for axis in (0, 1)]
    reach = stats.t.ppf(0.975, min(unsafe.sum(), (~unsafe).sum()) - 1) * math.sqrt(sum(parts))
    assert auc == pytest.approx(wins.mean())
    assert (ends.low, ends.high) == pytest.approx((auc - reach, auc + reach))
    thrice = [np.repeat(one, 3) for one in (scores, unsafe, np.arange(80))]
    _, again = auc_with_interval(readings_of(*thrice))
    assert (again.low, again.high) == pytest.approx((ends.low, ends.high))


def test_mentalbenchs_jury_misses_72_of_100_unsafe_replies_and_its_order_finds_few():
    table = pd.read_csv(MENTALBENCH)
    experts, jury = table["experts"].to_numpy(float), table.iloc[:, 3:].to_numpy(float)
    scores = rated(experts[:, None], jury, instances=table["cluster"])
    row = rows_of(scores, reps=200)["visits", "jury"]
    low = jury[experts <= 2].mean(axis=1)
    assert (row.n_bad, row.n_missed) == (155, 112)
    assert 1 - row.sensitivity == pytest.approx(0.72, abs=0.005)
    assert (low[~np.isnan(low)] >= 4).mean() == pytest.approx(0.59, abs=0.005)
    assert row.auc == pytest.approx(0.785, abs=0.0005)
    assert row.read_for_90 == pytest.approx(0.76, abs=0.005)  # by the file's order 0.96


@pytest.mark.parametrize(("instances", "size", "alike"), [(8, 1, 0.0), (20, 3, 0.7), (60, 3, 0.3)])
def test_intervals_of_clustered_shares_cover_what_they_say(instances, size, alike):
    random = np.random.default_rng(instances)
    for share in (0.05, 0.3, 0.9):
        held = [_covers(random, instances, size, alike, share) for _ in range(600)]
        assert np.mean(held) >= 0.90


def _covers(random, instances, size, alike, share):
    """Tell whether an interval holds the share that its readings were drawn with."""
    clusters = np.repeat(np.arange(instances), random.integers(1, size + 1, instances))
    own = (random.random(instances) < share)[clusters]
    shared = random.random(len(clusters)) < np.sqrt(alike)
    hits = np.where(shared, own, random.random(len(clusters)) < share).astype(float)
    ends = clustered_proportion(hits, np.ones(len(clusters)), clusters)
    return ends.low <= share <= ends.high


@pytest.mark.slow
@pytest.mark.parametrize("n", [60, 200])
def test_intervals_of_auc_cover_what_they_say(n):
    random = np.random.default_rng(n)
    truth_of, noise = _studies(random, 200_000)
    auc, _ = auc_with_interval(readings_of(noise, truth_of <= 2))
    held = []
    for _ in range(300):
        truth, jury = _studies(random, n)
        row = jury_of(truth[:, None], jury[:, None], reps=300)
        held.append(row.auc_low <= auc <= row.auc_high)
    assert np.mean(held) >= 0.90


def _studies(random, n):
    quality = random.normal(size=n)
    truth = np.clip(np.round(3.3 + quality + 0.4 * random.normal(size=n)), 1, 5)
    return truth, np.clip(np.round(3.8 + quality + 0.8 * random.normal(size=n)), 1, 5)


DESIGNS = [(rate, n, s) for rate in (0.01, 0.05, 0.2) for n in (100, 400) for s in (0.7, 0.95)]


def flagged_study(random, rate, rated, sensitivity, total=2000, specificity=0.9, size=1):
    """Return flags, clusters, where the rated ones stand, and which of them fail."""
    failing = np.repeat(random.random(total // size) < rate, size)
    chance = np.where(failing, sensitivity, 1 - specificity)
    flagged = random.random(total) < chance
    clusters = np.arange(total) // size
    chosen = np.sort(random.choice(total // size, rated // size, replace=False))
    where = (chosen[:, None] * size + np.arange(size)).ravel()
    return flagged, clusters, where, failing[where]


def covered(seed, studies, *design, **options):
    random, hits, known = np.random.default_rng(seed), 0, 0
    for _ in range(studies):
        _, ends = corrected_rate(*flagged_study(random, *design, **options))
        if not math.isnan(ends.low):
            known += 1
            hits += ends.low <= design[0] <= ends.high
    return hits / known


def test_the_rate_is_rogan_and_gladens():
    # 4 of 5 failing and 10 of 95 others flagged of the rated; 300 of 1,000 in all
    failing = np.arange(100) < 5
    flagged = np.zeros(1000, bool)
    flagged[[0, 1, 2, 3, *range(5, 15), *range(100, 386)]] = True
    rate, ends = corrected_rate(flagged, np.arange(1000), np.arange(100), failing)
    assert rate == pytest.approx((0.3 - 10 / 95) / (0.8 - 10 / 95))
    assert ends.low < rate < ends.high


def test_where_all_are_rated_nothing_is_corrected():
    failing, flagged = np.arange(50) < 10, np.arange(50) % 3 == 0
    rate, ends = corrected_rate(flagged, np.arange(50), np.arange(50), failing)
    assert rate == pytest.approx(0.2)
    assert (ends.low, ends.high) == pytest.approx((0.1124, 0.3304), abs=0.001)  # Wilson


@pytest.mark.parametrize(
    ("failing", "flags"),
    [([0] * 6, [1, 0, 0, 0, 0, 0]), ([1] * 6, [1, 0, 0, 0, 0, 0]), ([1, 1, 0, 0], [0, 1, 1, 0])],
    ids=["none fails", "all fail", "flags tell nothing"],
)
def test_where_flags_say_nothing_of_failing_there_is_no_rate(failing, flags):
    flagged = np.array([*flags, 0, 1], bool)
    rated = np.arange(len(flags))
    rate, ends = corrected_rate(flagged, np.arange(len(flagged)), rated, np.array(failing, bool))
    assert np.isnan([rate, ends.low, ends.high]).all()


def test_the_errors_of_both_kinds_widen_the_interval_until_every_rate_is_open():
    p, s, f = Share(0.2, 2000), Share(0.8, 400), Share(0.1, 400)
    known = fieller(p, s, f)
    for fewer in ((p, Share(0.8, 20), f), (p, s, Share(0.1, 20)), (Share(0.2, 100), s, f)):
        wider = fieller(*fewer)
        assert wider.high - wider.low > known.high - known.low
    assert fieller(Share(0.3, 1000), Share(0.4, 8), Share(0.3, 90)).high == 1.0


@pytest.mark.parametrize("design", [(0.05, 100, 0.7), (0.2, 400, 0.95)])
def test_the_interval_holds_the_truth_as_often_as_it_says(design):
    assert 0.90 < covered(1, 300, *design) <= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "design", "options", "most"),
    [
        *((7, design, {}, 0.98) for design in DESIGNS),  # of 4,000: 95 is known to 0.7
        *((8, (0.2, 400, 0.8), {"total": n, "size": k}, 0.985) for n, k in ((500, 1), (2000, 4))),
    ],
)
def test_the_interval_covers_93_to_97_of_100_studies(seed, design, options, most):
    assert 0.925 < covered(seed, 4000, *design, **options) < most


def test_responses_that_no_clinician_rated_count_in_the_rate_and_nowhere_else():
    random = np.random.default_rng(3)
    truth = np.where(random.random(400) < 0.2, 1.0, 5.0)
    juror = np.where(random.random(400) < 0.9, truth, 3.0)
    clinicians = np.where(np.arange(400) < 100, truth, NAN)
    row = jury_of(clinicians[:, None], juror[:, None], reps=2000)
    assert (row.n, row.n_all) == (100, 400)
    flagged = (juror <= 2).mean()
    found = (flagged - (1 - row.specificity)) / (row.sensitivity - (1 - row.specificity))
    assert row.corrected_rate == pytest.approx(found)
    assert row.corrected_low < row.corrected_rate < row.corrected_high
    for name in ("specificity", "ppv", "npv"):
        low, high = (getattr(row, f"{name}_{end}") for end in ("low", "high"))
        assert low <= getattr(row, name) <= high
