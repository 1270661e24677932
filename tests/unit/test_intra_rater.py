"""The same clinician again: ICC(A,1) by hand, by pingouin, by properties, and in the table."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kit.scores import note_of

from calibration.intervals import jackknife_interval, left_out
from calibration.rating_matrix import repeats
from calibration.reliability import icc_one
from calibration.scores import RubricShape, Scores
from calibration.table import agreement_rows, agreement_table
from calibration.values import AnalysisOptions

CRITERIA = ("accuracy", "clarity")
FIELDS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion", "score"]
PAIRS = arrays(np.float64, st.tuples(st.integers(3, 9), st.just(2)), elements=st.integers(1, 5))


def study(again, *, n=8, benchmarks=("aci",), scales=None, simulated=()):
    """Two clinicians who rate n responses; `again` gives scores of repeats: {(rater, i): (a, c)}."""
    rows, responses = [], []
    for benchmark in benchmarks:
        for i in range(n):
            place = (f"{benchmark}-{i}", f"{benchmark}-i{i}", benchmark)
            responses.append(place)
            for k, rater in enumerate(("dr_a", "dr_b")):
                first = (1 + i % 5, 1 + (i + k) % 4)
                readings = [(0, first)]
                readings += [(1, again[rater, i])] if (rater, i) in again else []
                for pass_, scores in readings:
                    for name, score in zip(CRITERIA, scores, strict=True):
                        if score is not None:
                            rows.append((*place, rater, "clinician", name, score, pass_, 0))
    ratings = pd.DataFrame(rows, columns=[*FIELDS, "pass_", "replicate"])
    shapes = {name: RubricShape(CRITERIA, *(scales or {}).get(name, (1, 5))) for name in benchmarks}
    return Scores(
        ratings, pd.DataFrame(responses, columns=FIELDS[:3]), shapes, frozenset(simulated)
    )


def first_of(rater, i):
    return (1 + i % 5, 1 + (i + (rater == "dr_b")) % 4)


def same_again(rater="dr_a", count=5):
    return {(rater, i): first_of(rater, i) for i in range(count)}


def row(scores, benchmark="aci", **options):
    rows = agreement_rows(scores, AnalysisOptions(reps=40, **options))
    return next(row for row in rows if (row.benchmark, row.scorer) == (benchmark, "intra_rater"))


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_order_of_the_two_and_a_common_constant_change_nothing(pairs):
    icc = icc_one(pairs)
    assume(np.isfinite(icc))
    assert icc <= 1 + 1e-12
    assert icc_one(pairs[:, ::-1]) == pytest.approx(icc, abs=1e-9)
    assert icc_one(pairs + 7) == pytest.approx(icc, abs=1e-9)


def test_repeats_whose_means_are_all_the_same_have_an_icc_and_no_f_interval():
    # MS_rows is 0: both ends of the F interval would be the estimate, as if it were certain.
    assert icc_one(np.array([[1, 2], [2, 1], [2, 1]], dtype=float)) == pytest.approx(-2)
    again = {("dr_a", 0): (2, 2), ("dr_a", 1): (1, 1), ("dr_a", 5): (2, 2)}
    scores = study(again)
    first = (scores.ratings["rater"] == "dr_a") & (scores.ratings["pass_"] == 0)
    for name, score in (("aci-0", 1), ("aci-1", 2), ("aci-5", 1)):
        scores.ratings.loc[first & (scores.ratings["response_id"] == name), "score"] = score
    found = row(scores)
    assert found.icc == pytest.approx(-2)
    assert np.isnan([found.f_low, found.f_high]).all()
    assert "fragile: 3 repeats, fewer than 10" in note_of(found)


def test_an_icc_of_minus_one_is_defined_although_that_of_the_mean_is_not():
    assert icc_one(np.array([[3, 5], [4, 4], [4, 4]], dtype=float)) == pytest.approx(-1)


def test_a_stricter_second_reading_lowers_the_icc_that_consistency_would_not_see():
    same = np.array([[1, 1], [2, 2], [4, 4], [5, 5]], dtype=float)
    assert icc_one(same) == pytest.approx(1)
    assert icc_one(same - [0, 1]) < 0.9


def test_what_differs_between_clinicians_is_no_reliability():
    # Each clinician gives noise around an own level: pooled it looks reliable, within it is not.
    random = np.random.default_rng(0)
    rows, responses = [], []
    for i in range(30):
        places = (f"r{i}", f"i{i}", "aci")
        responses.append(places)
        for rater, level in (("dr_a", 1.5), ("dr_b", 4.5)):
            for pass_ in (0, 1):
                score = level + random.uniform(-0.5, 0.5)
                rows.append((*places, rater, "clinician", "accuracy", score, pass_, 0))
    scores = Scores(
        pd.DataFrame(rows, columns=[*FIELDS, "pass_", "replicate"]),
        pd.DataFrame(responses, columns=FIELDS[:3]),
        {"aci": RubricShape(("accuracy",), 1, 5)},
    )
    found = row(scores)
    assert found.icc > 0.9
    assert abs(found.told("own_means")["icc"]) < 0.3


def test_an_incomplete_repeat_is_counted_and_left_out():
    again = same_again() | {("dr_a", 5): (3, None)}
    found = row(study(again))
    assert (found.n_responses, found.n_missing) == (5, 1)
    assert "1 repeat without a composite both times left out" in note_of(found)
    assert "of 11 single scores" in note_of(found)


def test_too_few_repeats_and_equal_ones_are_undefined_with_a_reason():
    few = row(study(same_again(count=2)))
    assert np.isnan(few.icc)
    assert "2 complete repeats, and 3 are needed" in note_of(few)
    assert "given twice" in note_of(few)
    flat = {("dr_a", i): (1, 1) for i in (0, 5, 10)}
    scores = study(flat, n=12)
    scores.ratings.loc[scores.ratings["rater"] == "dr_a", "score"] = 1
    assert "all first and repeated composites are the same" in note_of(row(scores))


def test_repeats_enter_every_other_row_as_the_mean_of_both_readings():
    again = {("dr_a", i): (5 - i % 5, 2) for i in range(6)}
    repeated = study(again, n=12)
    key = ["response_id", "rater", "criterion"]
    averaged = repeated.ratings.copy()
    averaged["score"] = averaged.groupby(key)["score"].transform("mean")
    averaged = averaged[averaged["pass_"] == 0]
    once = Scores(averaged, repeated.responses, repeated.rubrics)
    of_both = agreement_table(repeated, reps=30)
    others = of_both[of_both["scorer"] != "intra_rater"].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, agreement_table(once, reps=30))


def test_replicates_of_one_pass_are_averaged_before_they_are_compared():
    scores = study(same_again())
    more = scores.ratings[scores.ratings["pass_"] == 1].assign(replicate=1)
    more["score"] = more["score"].clip(upper=4) + 1
    both = Scores(pd.concat([scores.ratings, more]), scores.responses, scores.rubrics)
    found = repeats(both).scores
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
