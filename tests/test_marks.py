"""Marks: agreement by hand and by scikit-learn, the jury's difference by pandas and resampling."""

import json
import math
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from kit.scores import JURORS, note_of, study, without
from sklearn.metrics import f1_score

from calibration.bootstrap import draw_counts
from calibration.json_values import json_value
from calibration.marks import COLUMNS, GRAVE, Marks, Stretch, mark_rows, places, shared_characters
from calibration.scope import scopes
from calibration.values import COMBINED, AnalysisOptions

WRONG = ("accuracy", "wrong", "critical")


def on(rater, start, end, side="response"):
    return Stretch(rater, side, start, end)


def f1(stretches, readers):
    found = shared_characters(stretches, readers)
    return found.twice_shared / found.marked


def random_stretches(seed, raters=3, length=60):
    random = np.random.default_rng(seed)
    found = []
    for rater in range(raters):
        for _ in range(random.integers(0, 4)):
            start = int(random.integers(0, length - 10))
            side = ("response", "source")[random.integers(0, 2)]
            found.append(on(f"dr{rater}", start, start + int(random.integers(1, 10)), side))
    return found


def characters(stretches, rater, length=60):
    found = np.zeros(2 * length, dtype=bool)
    for one in stretches:
        if one.rater == rater:
            first = length * (one.side == "source")
            found[first + one.start : first + one.end] = True
    return found


def test_the_f1_of_two_readers_by_hand():
    # 10 characters each, 5 of them the same: 2 * 5 / (10 + 10).
    stretches = [on("a", 0, 10), on("b", 5, 10), on("b", 20, 25)]
    assert f1(stretches, 2) == 0.5


def test_a_reader_who_marks_nothing_agrees_with_no_mark_of_the_others_by_hand():
    # Pairs ab 10 / 20, ac 0 / 10, bc 0 / 10.
    stretches = [on("a", 0, 10), on("b", 5, 10), on("b", 20, 25)]
    assert f1(stretches, 3) == 0.25


@pytest.mark.parametrize("seed", range(8))
def test_the_f1_of_two_readers_is_scikit_learns(seed):
    stretches = [*random_stretches(seed, 2), on("dr0", 0, 3), on("dr1", 2, 5)]
    pair = [characters(stretches, rater) for rater in ("dr0", "dr1")]
    assert f1(stretches, 2) == pytest.approx(f1_score(*pair))


@pytest.mark.parametrize("seed", range(8))
def test_the_f1_of_several_readers_is_that_of_all_their_pairs_summed(seed):
    stretches = [*random_stretches(seed, 4), on("dr0", 0, 3)]
    own = [characters(stretches, f"dr{rater}") for rater in range(5)]  # dr4 marks nothing
    pairs = list(combinations(own, 2))
    both = sum(2 * int((a & b).sum()) for a, b in pairs)
    either = sum(int(a.sum() + b.sum()) for a, b in pairs)
    assert f1(stretches, 5) == both / either


def test_the_f1_is_1_for_the_same_marks_and_0_for_other_places_or_sides():
    assert f1([on("a", 3, 9), on("b", 3, 6), on("b", 6, 9)], 2) == 1
    assert f1([on("a", 3, 9), on("b", 9, 12)], 2) == 0
    assert f1([on("a", 3, 9), on("b", 3, 9, "source")], 2) == 0


def test_what_one_reader_marks_twice_counts_once():
    assert f1([on("a", 0, 4), on("a", 2, 6), on("b", 0, 6)], 2) == 1


def test_a_place_is_a_run_of_marks_that_overlap():
    assert places([on("a", 0, 5), on("b", 4, 9), on("c", 8, 12), on("a", 12, 14)]) == [3, 1]
    assert places([on("a", 0, 5), on("a", 1, 2), on("b", 0, 5, "source")]) == [1, 1]
    assert places([on("b", 0, 20), on("a", 1, 2), on("c", 10, 12)]) == [3]
    assert places([]) == []


def readers_of(scores):
    """Return who rated what; in these tests all of them in the rating room."""
    rated = scores.ratings[scores.ratings["kind"] == "clinician"]
    return {name: frozenset(own["rater"]) for name, own in rated.groupby("response_id")}


def marks_on(scores, responses, kind=WRONG, clinicians=1):
    """Return marks on some responses, each by the first of its readers in alphabetical order."""
    readers = readers_of(scores)
    rows = [
        (name, rater, "response", 0, 10, *kind)
        for name in responses
        for rater in sorted(readers[name])[:clinicians]
    ]
    return Marks(pd.DataFrame(rows, columns=[*COLUMNS]), readers)


def evidence(scores, marks, reps=200):
    return [
        row
        for scope in scopes(scores, AnalysisOptions(reps=reps))
        for row in mark_rows(scope, scores, marks)
    ]


def of_kind(rows, criterion=None, error=None, severity=None, benchmark="aci"):
    (row,) = [
        row
        for row in rows
        if (row.benchmark, row.criterion, row.error, row.severity)
        == (benchmark, criterion, error, severity)
    ]
    return row


def composites(scores, kind):
    """Return the mean over a kind's raters of their means over criteria, by response."""
    own = scores.ratings[scores.ratings["kind"] == kind]
    by_rater = own.groupby(["response_id", "rater"])["score"].mean()
    return by_rater.groupby("response_id").mean()


def test_the_difference_is_the_jurys_mean_on_marked_less_that_on_other_responses():
    scores = study(n=40, per=2)
    names = [f"aci-r{i}" for i in range(0, 40, 3)]
    row = of_kind(evidence(scores, marks_on(scores, names)))
    for kind, value in (("juror", row.difference), ("clinician", row.clinicians_difference)):
        mean = composites(scores, kind)
        expected = mean[names].mean() - mean.drop(names).mean()
        assert value == pytest.approx(expected)
    assert row.jury_with == pytest.approx(composites(scores, "juror")[names].mean())
    assert (row.n_marked, row.n_with, row.n_without, row.n_read) == (14, 14, 26, 40)


def test_the_interval_is_of_responses_repeated_as_their_instances_are_drawn():
    scores = study(n=40, per=2)
    names = {f"aci-r{i}" for i in range(0, 40, 3)}
    row = of_kind(evidence(scores, marks_on(scores, sorted(names), clinicians=2), reps=300))
    mean = composites(scores, "juror").sort_index()  # the order of instances does not matter
    instance = {name: own for _, (name, own, _) in scores.responses.iterrows()}
    order = sorted(set(instance.values()))
    (counts,) = [*draw_counts(len(order), reps=300, seed=0, rows=40)]
    drawn = []
    for times in counts:
        repeated = [int(times[order.index(instance[name])]) for name in mean.index]
        value = np.repeat(mean.to_numpy(), repeated)
        is_marked = np.repeat(mean.index.isin(names), repeated)
        drawn.append(value[is_marked].mean() - value[~is_marked].mean())
    assert (row.low, row.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_the_interval_of_f1_is_of_its_sums_over_the_instances_drawn():
    scores = study(n=30)
    marks = marks_on(scores, [f"aci-r{i}" for i in range(12)], clinicians=2)
    marks.stretches.loc[::4, "end"] = 4  # in every second response one marks 4 of the other's 10
    row = of_kind(evidence(scores, marks, reps=300))
    assert row.f1 == pytest.approx((6 * 20 + 6 * 8) / (6 * 20 + 6 * 14))
    order = sorted(scores.responses["instance_id"])
    own = {f"aci-i{i}": (8, 14) if i % 2 == 0 else (20, 20) for i in range(12)}
    sums = np.array([own.get(name, (0, 0)) for name in order])
    (counts,) = [*draw_counts(30, reps=300, seed=0, rows=30)]
    drawn = (counts @ sums)[:, 0] / (counts @ sums)[:, 1]
    assert (row.f1_low, row.f1_high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_an_f1_of_1_in_every_resample_has_no_interval_that_would_claim_certainty():
    scores = study(n=30)
    row = of_kind(evidence(scores, marks_on(scores, [f"aci-r{i}" for i in range(9)], clinicians=2)))
    assert row.f1 == 1
    assert math.isnan(row.f1_low)
    assert row.told("same_f1")


def test_rows_go_from_any_mark_over_criteria_to_kinds_the_gravest_first():
    scores = study(n=30)
    kinds = [("clarity", "unclear", ""), WRONG, ("accuracy", "unsafe", "minor")]
    every = [
        marks_on(scores, [f"aci-r{3 * i + at}" for i in range(9)], one)
        for at, one in enumerate(kinds)
    ]
    marks = Marks(pd.concat([one.stretches for one in every]), every[0].readers)
    rows = evidence(scores, marks)
    assert [row.label for row in rows] == [
        *("any mark", GRAVE, "accuracy", "clarity"),
        *("accuracy, wrong, critical", "accuracy, unsafe, minor"),
        "clarity, unclear, severity not said",
    ]
    assert [row.n_marked for row in rows] == [27, 9, 18, 9, 9, 9, 9]
    assert json_value(rows[0])["severity"] is None
    assert json_value(rows[-1])["severity"] == ""


def test_a_mark_of_another_kind_in_the_same_place_is_agreement_on_the_place_alone():
    scores = study(n=30)
    names = [f"aci-r{i}" for i in range(10)]
    both = marks_on(scores, names, clinicians=2).stretches
    both.loc[both.index % 2 == 1, "error"] = "unsafe"
    rows = evidence(scores, Marks(both, readers_of(scores)))
    assert of_kind(rows).f1 == 1
    assert of_kind(rows).places == {"2": 10}
    assert of_kind(rows, *WRONG).f1 == 0
    assert (of_kind(rows, *WRONG).n_places, of_kind(rows, *WRONG).n_shared) == (10, 0)


def test_who_rated_elsewhere_marked_nothing_and_saw_nothing_right_either():
    scores = study(n=40)
    names = [f"aci-r{i}" for i in range(10)]
    marks = marks_on(scores, names)
    here = {name: who for name, who in marks.readers.items() if int(name.split("r")[1]) < 25}
    row = of_kind(evidence(scores, Marks(marks.stretches, here)))
    assert (row.n_read, row.n_with, row.n_without) == (25, 10, 15)
    mean = composites(scores, "juror")
    expected = mean[names].mean() - mean[[one for one in here if one not in names]].mean()
    assert row.difference == pytest.approx(expected)


def test_a_study_in_which_nothing_was_marked_has_no_rows():
    scores = study(n=30)
    assert evidence(scores, Marks(readers=readers_of(scores))) == []
    assert evidence(scores, Marks()) == []


def test_what_is_undefined_is_none_and_says_why():
    scores = study(n=30)
    some, every = [f"aci-r{i}" for i in range(30)][:9], [f"aci-r{i}" for i in range(30)]
    once = {name: frozenset([*who][:1]) for name, who in readers_of(scores).items()}
    alone = marks_on(scores, some).stretches
    alone["rater"] = [next(iter(once[name])) for name in alone["response_id"]]
    read_once = of_kind(evidence(scores, Marks(alone, once)))
    assert math.isnan(read_once.f1)
    assert read_once.told("marks_read_once")
    some_twice = dict(once) | {"aci-r29": frozenset(["dr0", "dr1"])}
    elsewhere = of_kind(evidence(scores, Marks(alone, some_twice)))
    assert (elsewhere.n_places, elsewhere.told("none_marked_twice_read") is None) == (0, False)
    row = of_kind(evidence(scores, marks_on(scores, every)))
    assert math.isnan(row.difference)
    assert row.told("marked_all")
    without_jury = without(scores, scores.ratings["kind"] == "juror")
    row = of_kind(evidence(without_jury, marks_on(scores, some)))
    assert row.told("marks_without_jury")
    body = json_value(row)
    assert body["difference"] is None
    assert "the jury has no jurors" in body["note"]
    json.dumps(body, allow_nan=False)


def test_marked_responses_that_the_jury_did_not_score_are_no_difference():
    scores = study(n=30)
    some = [f"aci-r{i}" for i in range(4)]
    lost = scores.ratings["response_id"].isin(some) & (scores.ratings["rater"] == JURORS[0])
    row = of_kind(evidence(without(scores, lost), marks_on(scores, some)))
    assert (row.n_marked, row.n_with, row.n_without) == (4, 0, 26)
    assert row.told("marked_none_scored")


def test_a_difference_of_one_marked_instance_has_no_interval_and_few_have_a_warning():
    scores = study(n=60, per=3)
    one = of_kind(evidence(scores, marks_on(scores, ["aci-r0", "aci-r1"])))
    assert math.isfinite(one.difference)
    assert math.isnan(one.low)
    assert one.told("one_instance")
    few = of_kind(evidence(scores, marks_on(scores, [f"aci-r{i}" for i in range(0, 12, 3)])))
    assert math.isfinite(few.low)
    assert few.told("few_instances")
    assert "fewer than 20 instances" in note_of(few)


def test_a_marked_response_that_nobody_rated_whole_is_left_out_and_counted():
    scores = study(n=30)
    marks = marks_on(scores, [f"aci-r{i}" for i in range(9)])
    clinical = scores.ratings["kind"] == "clinician"
    rows = evidence(without(scores, clinical & (scores.ratings["response_id"] == "aci-r0")), marks)
    assert rows[0].n_marked == 8
    assert rows[0].told("marked_outside")["responses"] == 1
    assert not any(row.told("marked_outside") for row in rows[1:])


def test_combined_counts_what_the_benchmarks_count_together():
    scores = study(("aci", "mts"), n=30)
    names = [f"{one}-r{i}" for one in ("aci", "mts") for i in range(9)]
    rows = evidence(scores, marks_on(scores, names))
    each = [of_kind(rows, benchmark=one).n_marked for one in ("aci", "mts", COMBINED)]
    assert each == [9, 9, 18]


@pytest.mark.not_quick
@pytest.mark.parametrize(
    ("studies", "n"), [(40, 60), pytest.param(400, 60, marks=pytest.mark.slow)]
)
def test_a_jury_that_sees_nothing_of_the_marks_is_seldom_said_to_see_it(studies, n):
    random, crossed = np.random.default_rng(3), 0
    for seed in range(studies):
        scores = study(n=n, seed=seed)
        names = [f"aci-r{i}" for i in random.choice(n, n // 3, replace=False)]
        row = of_kind(evidence(scores, marks_on(scores, names), reps=400))
        crossed += not row.low <= 0 <= row.high
    assert crossed <= 0.05 * studies + 2.5 * math.sqrt(0.05 * 0.95 * studies)


@pytest.mark.not_quick
def test_a_jury_that_scores_marked_responses_lower_is_seen_to():
    seen = 0
    for seed in range(20):
        scores = study(n=60, seed=seed)
        marked = composites(scores, "clinician").nsmallest(20).index
        row = of_kind(evidence(scores, marks_on(scores, [*marked]), reps=400))
        seen += row.high < 0
    assert seen >= 18
