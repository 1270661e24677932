"""Falls and drift over periods: the scan, its limits and false alarms, anchors, and what a change is attributed to."""

import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import numpy as np
import pytest
from kit.scores import CRITERIA, row, scope_of, scores_of, watching
from scipy import integrate, stats

from calibration.columns import columns
from calibration.intervals import jackknife_error, left_out
from calibration.monitoring import (
    anchor_rows,
    anchors,
    case_mix,
    drift_of,
    finite_z,
    independent_se,
    limits,
    mean_shift,
    period_rows,
    scan_falls,
    watch,
    window_factor,
    without_later,
)
from calibration.notes import note
from calibration.report.charts import chart_periods
from calibration.scope import scopes
from calibration.scores import RubricShape
from calibration.values import AnalysisOptions
from calibration.weighted import scorer_iccs

NAN = math.nan
ZERO, ONE = np.zeros(4), np.ones(4)
KNOWN = watching(target=0.6)


def test_falls_add_up_over_the_window_that_shows_them_most():
    # Errors 1, 4 periods a year: the last 2 ask for sqrt(4/2), 3 for sqrt(4/3), 4 for 1; so the scan
    # is that of the falls of the window by sqrt(4). Of 1 -2 3 2: -1, then 1, then 3 + 2 = 5.
    scan, windows = scan_falls(np.array([1.0, -2, 3, 2]), ONE, ONE, ZERO, 4)
    assert scan[1:] == pytest.approx([-0.5, 1, 2.5])
    assert windows.tolist() == [0, 2, 3, 2]
    assert scan_falls(np.array([99.0]), ONE[:1], ONE[:1], ZERO[:1], 12)[0] == [-np.inf]


def test_weights_are_responses_and_the_targets_error_is_in_the_scan():
    # Mean of 1 and 4 with weights 3 and 1: 7/4; its variance 2 / 4, the target's 1/2.
    columns = [1.0, 4], [3.0, 1], [9.0, 2], [9.0, 0.5]
    scan, _ = scan_falls(*map(np.array, columns), 2)
    assert scan[1] == pytest.approx(7 / 4)


def test_a_common_shift_and_scale_change_nothing():
    falls = np.random.default_rng(0).normal(size=(3, 20))
    weights = np.linspace(0.5, 1, 20)
    own = scan_falls(falls, weights, np.ones(20), np.ones(20), 12)[0]
    twice = scan_falls(2 * falls, weights, np.full(20, 4.0), np.full(20, 4.0), 12)[0]
    alone = scan_falls(falls[1], weights, np.ones(20), np.ones(20), 12)[0]
    assert twice == pytest.approx(own)
    assert alone == pytest.approx(own[1])


def test_a_short_window_must_show_a_fall_of_more_errors_but_never_much_more():
    asked = [window_factor(window, 12) for window in range(2, 13)]
    assert asked == sorted(asked, reverse=True)
    assert (max(asked), asked[-1]) == (1.6, 1)


def test_the_limit_of_two_periods_a_year_is_the_normal_quantile():
    # In the first year of two periods there is one look, at both: a one-sided z test.
    assert limits(np.inf, 2, 0.05, 1)[0] == pytest.approx(stats.norm.ppf(0.95), abs=0.03)
    assert limits(3.0, 2, 0.1, 1)[0] == pytest.approx(stats.norm.ppf(0.9), abs=0.03)


def test_the_limit_of_three_periods_a_year_is_that_of_an_integral():
    # Looks at x1 + x2, then at x2 + x3 and x1 + x2 + x3: within the limit c with x2 given, x1 is
    # below p - x2 and x3 below p - x2, and x1 + x3 below s - x2, with p, s what c allows.
    (limit,) = limits(np.inf, 3, 0.05, 1)
    pair, whole = limit * window_factor(2, 3) * math.sqrt(2), limit * math.sqrt(3)

    def quiet(x1, x2):
        most = min(pair - x2, whole - x1 - x2)
        return stats.norm.pdf(x1) * stats.norm.pdf(x2) * stats.norm.cdf(most)

    found, _ = integrate.dblquad(quiet, -6, 6, -6, lambda x2: pair - x2, epsabs=1e-4)
    assert found == pytest.approx(0.95, abs=0.004)


def test_the_baseline_is_the_mean_weighted_by_responses_and_is_not_watched():
    rows = [row(0, 0.6, 20), row(1, 0.4, 80), row(2, 0.5, 20), row(3, 0.2, 20)]
    found = watch(rows, watching(baseline=2))
    z = (18 * rows[0].fisher_z + 78 * rows[1].fisher_z) / 96
    assert finite_z(found.target_icc) == pytest.approx(z)
    assert [one.role for one in found.periods] == ["baseline", "baseline", "watched", "watched"]
    fall = z - (rows[2].fisher_z + rows[3].fisher_z) / 2
    error = math.sqrt(1 / 96 + 1 / 36)
    assert found.periods[2].scan is None
    assert found.periods[3].scan == pytest.approx(fall / error / 1.6)


def test_an_error_smaller_than_chance_is_not_believed_and_a_reports_makes_its_target_less_certain():
    scans = [watch([row(0, 0.3, se=se)] * 2, KNOWN).periods[1].scan for se in (0.01, 0.1, 0.9)]
    assert scans[0] == scans[1] > scans[2]
    rows = [row(n, 0.3) for n in range(4)]
    found = [watch(rows, watching(target=0.6, target_se=se)) for se in (0.0, independent_se(60))]
    assert found[0].periods[3].scan > found[1].periods[3].scan


@pytest.mark.parametrize("every", ["week", "month", "quarter"])
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_one_period_alone_is_never_a_fall_however_low(every, rate):
    rows = [*(row(n, 0.6) for n in range(8)), row(8, -900.0), row(9, 0.6)]
    options = watching(false_alarms=rate, every=every)
    for target in (0.6, None):
        assert watch(rows, replace(options, target=target)).alarm is None
    lower = [*rows, *(row(n, -0.9) for n in (10, 11, 12, 13))]
    assert watch(lower, replace(options, target=0.6)).alarm


UNUSABLE = [row(0, 0.6), row(1, NAN), row(2, 1.0), row(3, 0.6, 5, too_few=True), row(4, 0.5)]
SINCE = watching(target=0.5, target_since=row(2, 0.6).start)


@pytest.mark.parametrize(
    ("rows", "options", "roles"),
    [
        (UNUSABLE, KNOWN, ["watched", *["left out"] * 3, "watched"]),
        ([row(0, 0.6), replace(row(1, 0.1), over=False)], KNOWN, ["watched", "left out"]),
        ([row(0, 0.6), row(1, 0.1)], watching(), ["", ""]),
        ([row(n, 0.6) for n in range(4)], SINCE, ["baseline"] * 2 + ["watched"] * 2),
    ],
    ids=["too few, undefined, perfect", "not over", "too few periods", "before the report"],
)
def test_which_periods_are_watched_and_what_they_are_compared_with(rows, options, roles):
    found = watch(rows, options)
    assert [one.role for one in found.periods] == roles
    waits = note("not_watched_yet", "not_watched_yet", needed=2)
    assert found.reason == (waits if "" in roles else None)
    assert options.target is None or found.target_icc == pytest.approx(options.target)


def test_the_newest_filled_period_is_judged_and_the_floor_from_the_first_without_any_target():
    little = row(3, -0.9, 4, too_few=True, unfilled=True)
    assert watch([row(0, 0.6), little], watching()).judged.period == "p0"
    assert watch([little], watching()).judged.period == "p3"
    found = watch([row(n, -0.5, 40) for n in range(3)], watching())
    assert (found.reason is None, found.below) == (False, "floor")
    assert watch([row(n, 0.35, 40) for n in range(3)], watching()).alarm is None


def test_an_alarm_names_the_periods_of_the_fall_and_what_they_have_together():
    rows = [*(row(n, 0.7) for n in range(3)), *(row(n, 0.1, 40) for n in range(3, 9))]
    found = watch(rows, KNOWN)
    assert found.below == "target"
    assert found.fell[0].period == "p3"
    assert found.alarm is found.fell[-1]
    assert found.icc == pytest.approx(0.1)
    assert found.low < 0.1 < found.high < found.most < 0.6
    assert [one.alarm for one in found.periods].index(True) == found.periods.index(found.alarm)


def test_earlier_looks_stay_as_they_were_when_a_period_is_added():
    random = np.random.default_rng(2)
    rows = [row(n, 0.6 + 0.2 * random.normal(), se=0.3 * random.random()) for n in range(11)]
    first, then = (watch(rows[:many], watching()).periods for many in (10, 11))
    assert [one.scan for one in first] == [one.scan for one in then[:10]]


# How a latent score is marked: as it is, on 5 points, or with some 35 % or 65 % at the highest.
MARKS = {
    "exact": lambda score: score,
    "likert": lambda score: np.clip(np.round(3.5 + score), 1, 5),
    "ceiling": lambda score: np.clip(np.round(3 * (4.5 + 0.9 * score)) / 3, 1, 5),
    "steep ceiling": lambda score: np.clip(np.round(3 * (5.3 + 0.9 * score)) / 3, 1, 5),
}


@dataclass(frozen=True)
class Plan:
    """A simulated study: `before` unchanged periods, then `after` at another ICC.

    Of the responses of an instance, half the variance of quality is shared.
    """

    icc: float = 0.6
    then: float = 0.6
    before: int = 0
    after: int = 12
    instances: int = 20
    per: int = 1
    marks: str = "exact"
    report: int = 0

    @lru_cache(256)  # noqa: B019 a plan is a value
    def rows(self, seed):
        """Return its periods as medjury computes them, and what they are compared with."""
        random = np.random.default_rng(seed)
        a_period = self.instances * self.per
        both = [latent(self.marks, one) for one in (self.icc, self.then)]
        r = np.repeat(both, [self.before * a_period, self.after * a_period])
        scope = scope_of(_pairs(self, r, random), 1, per=self.per, reps=0)
        days = {
            name: date(2025 + place // a_period // 12, place // a_period % 12 + 1, 1)
            for place, name in enumerate(scope.grid.responses)
        }
        rows = period_rows(scope, scope.jury, days, watching(least=3))
        return rows, self._normal(random)

    def _normal(self, random):
        if not self.report:
            return watching(target=self.icc)
        r = np.full(self.report, latent(self.marks, self.icc))
        scope = scope_of(_pairs(self, r, random), 1, per=self.per, reps=0)
        weights = left_out(scope.grid.n_clusters)
        whole = scorer_iccs(scope.grid, [scope.jury], "paper", weights)[:, 0]
        return watching(target=float(whole[0]), target_se=jackknife_error(finite_z(whole)))


@lru_cache
def latent(marks, icc):
    """Return the correlation of two latent scores whose marks have an ICC(C,2)."""
    shared, *own = np.random.default_rng(0).normal(size=(3, 200_000))
    low, high = 0.0, 0.999
    for _ in range(20):
        r = (low + high) / 2
        pair = [MARKS[marks](math.sqrt(r) * shared + math.sqrt(1 - r) * one) for one in own]
        cov = np.cov(pair)
        low, high = (r, high) if 4 * cov[0, 1] / cov.sum() < icc else (low, r)
    return r


def _pairs(plan, r, random):
    """Return the marks of a clinician and a juror, shape (n, 2)."""
    share = 0.5 if plan.per > 1 else 0.0
    instance = np.repeat(random.normal(size=len(r) // plan.per), plan.per)
    quality = math.sqrt(share) * instance + math.sqrt(1 - share) * random.normal(size=len(r))
    noise = random.normal(size=(len(r), 2))
    scores = np.sqrt(r)[:, None] * quality[:, None] + np.sqrt(1 - r)[:, None] * noise
    return MARKS[plan.marks](scores)


def alarms(plan, studies, rate=0.05):
    """Return in which watched month each study had its alarm, counted from 1; 0 for none."""
    normal, found = watching(baseline=plan.before) if plan.before else None, []
    for seed in range(studies):
        rows, known = plan.rows(seed)
        watched = watch(rows, replace(normal or known, false_alarms=rate))
        place = watched.periods.index(watched.alarm) + 1 if watched.alarm else 0
        found.append(max(place - len(watched.baseline), 0) if place else 0)
    return np.array(found)


def share(plan, studies):
    """Return in which share of studies there was an alarm within the year."""
    return float(np.mean(alarms(plan, studies) > 0))


def test_an_unchanged_jury_seldom_a_collapsed_one_soon_and_a_higher_rate_sooner_raises_an_alarm():
    assert share(Plan(), 60) <= 0.1
    found = alarms(Plan(then=0.0), 20)
    assert (found > 0).all()
    assert 2 <= np.median(found) <= 4
    plan = Plan(then=0.3)
    often, seldom = (alarms(plan, 30, rate=rate) for rate in (0.2, 0.01))
    often, seldom = (np.where(found > 0, found, 13) for found in (often, seldom))
    assert (often <= seldom).all()
    assert often.mean() < seldom.mean()


@pytest.mark.slow
def test_a_second_year_of_watching_has_hardly_more_false_alarms_than_the_first():
    # Of 400 studies at 5 %, more than 7.5 % would come in one of 100.
    found = alarms(Plan(after=24), 400)
    assert np.mean((found > 0) & (found <= 12)) <= 0.05
    assert np.mean(found[(found == 0) | (found > 12)] > 12) <= 0.075


STEEP, STARTED = Plan(marks="steep ceiling", before=3), Plan(instances=40, before=3)
UNSURE = [Plan(then=0.4, before=3), *(Plan(then=0.4, report=size) for size in (100, 1000))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "studies", "least", "most"),
    [
        *((Plan(icc, icc), 600, 0, 0.05) for icc in (0.5, 0.6, 0.7)),  # unchanged: 1 year of 20
        # Of 300 studies at 5 %, more than 8 % would come in one of 100.
        *((plan, 300, 0, 0.08) for plan in (Plan(before=3), Plan(marks="ceiling"), STEEP, STARTED)),
        *((plan, 300, 0, 0.08) for plan in (Plan(marks="ceiling", before=3), Plan(report=100))),
        *((plan, 300, 0, 0.08) for plan in (Plan(instances=7, per=3, before=3), Plan(before=1))),
        # From 60 to 40, and less often where the target is uncertain.
        (Plan(then=0.4), 500, 0.8, 1),
        *((UNSURE[0], 250, 0.22, 0.4), (UNSURE[1], 250, 0.3, 0.5), (UNSURE[2], 250, 0.68, 0.84)),
    ],
)
def test_alarms_are_as_rare_and_falls_are_found_as_often_as_the_docs_say(
    plan, studies, least, most
):
    assert least <= share(plan, studies) <= most


JURORS = ("j0", "j1")
SHAPE = RubricShape(CRITERIA, 1, 5)
BEGUN = datetime(2025, 1, 1, tzinfo=UTC)


def drifting(
    n=80, *, noise=0.6, later_noise=0.6, shift=0.0, shares=(0.5, 0.5), bad=0.6, spread=1.0, seed=0
):
    """Return scores and dated juror readings of two halves of time, n responses each.

    The jurors score the first half again when the second is rated, with `later_noise` and
    `shift`. `shares` are those of the easy benchmark then and now; on the other the jurors'
    noise is `bad`. `spread` is the quality's SD in the second half.
    """
    random = np.random.default_rng(seed)
    rows = []
    for place in range(2 * n):
        now = place >= n
        benchmark = "easy" if random.random() < shares[now] else "hard"
        key = (f"r{place}", f"i{place}", benchmark)
        quality = 3 + (spread if now else 1.0) * random.normal() * 0.6

        def score(around, sd):
            return float(np.clip(around + sd * random.normal(), 1, 5))

        def rate(rater, kind, replicate, day, sd, key=key, quality=quality, moved=0.0):
            at = BEGUN + timedelta(days=day)
            rows.extend(
                (*key, rater, kind, one, score(quality + moved, sd), 0, replicate, at)
                for one in CRITERIA
            )

        for doctor in ("dr0", "dr1"):
            rate(doctor, "clinician", 0, 200 * now, 0.4)
        own = bad if benchmark == "hard" else noise
        for juror in JURORS:
            rate(juror, "juror", 0, 200 * now, later_noise if now and later_noise != noise else own)
            if not now:
                again = later_noise if later_noise != noise else own
                rate(juror, "juror", 1, 200, again, moved=shift)
    found = scores_of([one[:-1] for one in rows], dict.fromkeys(("easy", "hard"), SHAPE))
    table = found.ratings.assign(at=[one[-1] for one in rows])
    return found, table[table["kind"] == "juror"]


def judged(found, *, reps=300, alarm=False):
    """Return the anchor's rows, the case mix, and the drift, as `monitor` makes them."""
    scores, readings = found
    own = without_later(scores, readings)
    *_, scope = scopes(own, AnalysisOptions(jurors=JURORS, reps=reps))
    rows = anchor_rows(scope, scope.jury, JURORS, anchors(readings, scores.rubrics))
    half = len(scope.grid.responses) // 2
    then = np.array([int(name[1:]) < half for name in scope.grid.responses])
    mix = case_mix(scope, scope.jury, ("then", then), ("now", ~then))
    return rows, mix, drift_of(rows, mix, alarm)


def test_the_mean_shift_of_single_responses_is_the_paired_t_test():
    random = np.random.default_rng(0)
    first = random.normal(size=12)
    latest = first + 0.3 + 0.4 * random.normal(size=12)
    oracle = stats.ttest_rel(latest, first)
    ends = oracle.confidence_interval(0.95)
    found = mean_shift(latest - first, np.arange(12))
    assert found.value == pytest.approx((latest - first).mean())
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high))
    assert found.p == pytest.approx(oracle.pvalue)


def test_responses_of_one_instance_count_as_one_where_they_say_the_same():
    differences = np.random.default_rng(1).normal(size=10)
    once = mean_shift(differences, np.arange(10))
    thrice = mean_shift(np.repeat(differences, 3), np.repeat(np.arange(10), 3))
    assert thrice.value == pytest.approx(once.value)
    assert (thrice.low, thrice.p) == pytest.approx((once.low, once.p))


@pytest.mark.parametrize(
    ("differences", "clusters", "p"),
    [([0.0] * 5, range(5), 1.0), ([0.5] * 5, range(5), math.nan), ([0.5, 1.0], [0, 0], math.nan)],
)
def test_without_spread_or_a_second_instance_there_is_no_test(differences, clusters, p):
    found = mean_shift(np.array(differences), np.array(clusters))
    assert found.p == pytest.approx(p, nan_ok=True)
    assert math.isnan(mean_shift(np.array([]), np.array([])).value)


def test_a_replicate_of_the_same_week_or_without_all_criteria_is_no_anchor():
    scores, readings = drifting(n=10)
    at = readings["at"].where(readings["replicate"] == 0, BEGUN + timedelta(days=6))
    soon = readings.assign(at=at)
    assert anchors(soon, scores.rubrics).empty
    assert len(without_later(scores, soon).ratings) == len(scores.ratings)
    scores, readings = drifting(n=10)
    lost = (readings["response_id"] == "r3") & (readings["criterion"] == "clarity")
    assert "r3" not in set(anchors(readings[~lost], scores.rubrics)["response_id"])


def test_later_replicates_are_anchors_and_leave_what_was_said_then_alone():
    scores, readings = drifting(n=10)
    found = anchors(readings, scores.rubrics)
    left = without_later(scores, readings).ratings
    assert len(found) == 10 * len(JURORS)
    assert (left["replicate"] == 0).all()
    assert len(scores.ratings) - len(left) == 10 * len(JURORS) * len(CRITERIA)
    one = readings[(readings["response_id"] == "r3") & (readings["rater"] == "j1")]
    means = one.groupby("replicate")["score"].mean()
    row = found[(found["response_id"] == "r3") & (found["rater"] == "j1")].iloc[0]
    assert (row["first"], row["latest"]) == pytest.approx((means[0], means[1]))


def test_a_juror_without_an_anchor_has_an_empty_row_and_without_any_there_are_none():
    scores, readings = drifting(n=10)
    one = readings[(readings["rater"] == "j0") | (readings["replicate"] == 0)]
    rows, _, _ = judged((scores, one))
    assert [row.n_responses for row in rows] == [10, 0, 0]
    rows, _, found = judged((scores, readings[readings["replicate"] == 0]), alarm=True)
    assert (rows, found) == ([], "unknown")
    assert drift_of([], None, alarm=False) == "not_compared"  # with one period only


def test_the_jurys_shift_is_the_mean_of_its_jurors():
    rows, _, _ = judged(drifting(n=30, shift=0.5))
    assert [row.scorer for row in rows] == ["juror:j0", "juror:j1", "jury"]
    assert rows[2].shift == pytest.approx((rows[0].shift + rows[1].shift) / 2)


def test_unchanged_material_has_the_same_shares_and_nothing_to_weight():
    scores, readings = drifting(n=40)
    *_, scope = scopes(without_later(scores, readings), AnalysisOptions(jurors=JURORS, reps=50))
    every = np.ones(len(scope.grid.responses), dtype=bool)
    mix = case_mix(scope, scope.jury, ("a", every), ("b", every))
    then = mix.icc_baseline, mix.mean_baseline, mix.sd_baseline
    assert (mix.moved, mix.icc_now, mix.mean_now, mix.sd_now) == (0, *then)
    assert mix.icc_reweighted == pytest.approx(mix.icc_now)


def test_weighting_back_is_what_writing_the_responses_out_gives_and_by_a_handful_no_figure():
    scores, readings = drifting(n=60, shares=(0.5, 0.75), bad=2.0)
    *_, scope = scopes(without_later(scores, readings), AnalysisOptions(jurors=JURORS, reps=0))
    named = scope.composites.drop_duplicates("response_id").set_index("response_id")["benchmark"]
    of = named.reindex(scope.grid.responses).to_numpy()
    then, now = np.zeros(120, dtype=bool), np.zeros(120, dtype=bool)
    easy, hard = np.flatnonzero(of == "easy"), np.flatnonzero(of == "hard")
    then[easy[:10]] = then[hard[:10]] = True
    now[easy[10:30]] = now[hard[10:20]] = True  # 20 to 10: each hard one counts twice
    found = case_mix(scope, scope.jury, ("then", then), ("now", now))
    written = np.concatenate([easy[10:30], hard[10:20], hard[10:20]])
    pair = columns(scope.grid, scope.jury, "paper")
    cov = np.cov(pair.clinicians[written], pair.scorer[written], ddof=0)
    expected = 4 * cov[0, 1] / (cov[0, 0] + cov[1, 1] + 2 * cov[0, 1])
    assert found.icc_reweighted == pytest.approx(expected)
    assert found.moved == pytest.approx(2 / 3 - 1 / 2)
    _, mix, _ = judged(drifting(n=60, shares=(0.95, 0.03), bad=2.0))
    assert math.isnan(mix.icc_reweighted)


def test_where_nothing_fell_nothing_is_blamed_but_a_moved_juror_is_named():
    rows, _, found = judged(drifting(n=60, shift=0.6))
    assert found == "none"
    assert rows[0].p_holm < 0.05 < rows[0].low < rows[0].shift


def count(runs=24, **planted):
    return [judged(drifting(n=100, seed=seed, **planted), reps=200)[2] for seed in range(runs)]


@pytest.mark.slow
def test_a_planted_change_of_the_jurors_is_attributed_to_the_model():
    found = count(later_noise=2.0)
    assert np.mean([one == "model" for one in found]) >= 0.85
    assert np.mean([one in ("case_mix", "neither", "none") for one in found]) <= 0.05


@pytest.mark.slow
def test_a_planted_change_of_the_benchmarks_is_attributed_to_the_case_mix():
    found = count(shares=(0.9, 0.25), bad=3.0)
    assert np.mean(["case_mix" in one for one in found]) >= 0.8
    assert np.mean([one == "case_mix" for one in found]) >= 0.6
    assert np.mean([one == "model" for one in found]) <= 0.1


@pytest.mark.slow
def test_without_any_change_little_is_blamed():
    found = count()
    assert np.mean([one == "none" for one in found]) >= 0.9


@pytest.mark.parametrize("target", [0.4, NAN])
def test_no_mark_is_drawn_of_nothing_which_has_no_name_for_who_cannot_see_it(target):
    drawn = json.dumps(chart_periods([row(0, 0.5)], 0.3, target).to_dict())
    assert '"values": []' not in drawn
    assert ("target 0.40" in drawn) is math.isfinite(target)
