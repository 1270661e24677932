"""Kappa, alpha and AC2: published tables, scikit-learn, irrCAC, properties, and the rows."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from kit.composites import CANON, SPARSE, table
from kit.scores import CRITERIA, DOCTORS, JURORS, lost, note_of, rescored, study, without
from sklearn.metrics import cohen_kappa_score

from calibration.chance_corrected import (
    alpha_ordinal,
    chance_rows,
    first_scores,
    gwet_ac2,
    mean_kappa,
    quadratic_kappa,
)
from calibration.scope import scopes
from calibration.values import AnalysisOptions

# The table of Cohen (1968), 200 patients in three diagnoses.
COHEN = [[88, 14, 18], [10, 40, 10], [2, 6, 12]]
PAIRS = list(combinations(range(4), 2))
NAN = np.nan


def raters(n=60, seed=0, number=4, missing=0.3):
    """Return scores 0..4 of several raters of one quality, shape (n, raters), NaN where missing."""
    random = np.random.default_rng(seed)
    quality = 2.5 + random.normal(size=n)
    scores = np.clip(np.round(quality + 0.8 * random.normal(size=(number, n))), 0, 4)
    scores[random.random(scores.shape) < missing] = NAN
    return scores.T


def of_table(counts):
    places = np.argwhere(np.ones_like(counts)).astype(float)
    return quadratic_kappa(*np.repeat(places, np.ravel(counts), axis=0).T)


def by_scikit(first, second):
    both = ~np.isnan(first + second)
    return cohen_kappa_score(first[both], second[both], weights="quadratic", labels=range(5))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # In shares: .07 + .05 + .05 + .03 = .20 one step apart and .10 two steps, so .20 + 4 * .10
        # seen; margins .6 .3 .1 and .5 .3 .2, so .42 + 4 * .17 expected; 1 - .60 / 1.10.
        (COHEN, 1 - 0.60 / 1.10),
        # 50 proposals, 20 both yes, 15 both no: .70 seen, .50 expected, the textbook's .40.
        ([[20, 5], [10, 15]], 0.40),
    ],
    ids=["Cohen's table", "two points: plain kappa"],
)
def test_kappa_by_hand(counts, expected):
    assert of_table(counts) == pytest.approx(expected)


def test_the_mean_over_pairs_is_scikit_learns_over_the_shared_responses():
    scores = raters()
    found, said = mean_kappa(scores, PAIRS, 2)
    theirs = [by_scikit(scores[:, a], scores[:, b]) for a, b in PAIRS]
    assert (found, said) == (pytest.approx(np.mean(theirs)), None)


def test_a_pair_that_gave_one_and_the_same_score_has_no_kappa_and_a_constant_rater_0():
    scores = np.array([[4.0, 4, 3], [4, 4, 4], [4, 4, 2]])
    kappa, reason = mean_kappa(scores, [(0, 1)], 2)
    assert np.isnan(kappa)
    assert reason.code == "kappa_alike"
    assert mean_kappa(scores, [(0, 1), (0, 2)], 2)[0] == mean_kappa(scores, [(0, 2)], 2)[0]
    assert np.isnan(quadratic_kappa(np.zeros(0), np.zeros(0)))
    assert quadratic_kappa(np.array([2.0, 2, 2, 2]), np.arange(4.0)) == pytest.approx(0.0)


def test_pairs_that_share_too_little_are_left_out_and_few_shared_responses_are_fragile():
    scores = np.array([[0, 1, 2, 3, NAN], [0, 1, 2, 2, 4], [NAN, NAN, NAN, 1, 0]]).T
    _, fragile = mean_kappa(scores, [(0, 1), (0, 2), (1, 2)], 2)
    _, none = mean_kappa(scores, [(0, 1)], 6)
    assert (fragile["fragile"], fragile["pairs"]) == (2, 2)
    assert (none.code, none["min_shared"]) == ("kappa_no_pair", 6)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (CANON, 0.815388),  # printed: .815
        (SPARSE, 0.4704710313),
    ],
    ids=["the canonical example", "a sparse table"],
)
def test_it_is_what_krippendorff_and_the_package_named_for_him_find(rows, expected):
    assert alpha_ordinal(table(rows)) == pytest.approx(expected, abs=1e-6)


def kappa(scores):
    return mean_kappa(scores, [*combinations(range(scores.shape[1]), 2)], 2)[0]


CHANGES = {  # and of how many of alpha, kappa and AC2 each is true
    "shift": (2, lambda r: r + 3),
    "scale": (2, lambda r: 10 * r),
    "reversal": (3, lambda r: 6 - r),
    "responses": (3, lambda r: r[::-1]),
    "raters": (3, lambda r: r[:, ::-1]),
    "absent raters": (3, lambda r: np.hstack([r, np.full((30, 2), NAN)])),
    "responses without a rating": (3, lambda r: np.vstack([r, np.full((9, 5), NAN)])),
    "a lone rating": (1, lambda r: np.vstack([r, [[5, *[NAN] * 4]]])),
    "the order alone": (1, np.exp),
}


@pytest.mark.parametrize(("number", "change"), CHANGES.values(), ids=CHANGES)
def test_nothing_that_says_nothing_of_agreement_changes_a_coefficient(number, change):
    ratings = table(SPARSE)
    for coefficient in (alpha_ordinal, kappa, ac2)[:number]:
        assert coefficient(change(ratings)) == pytest.approx(coefficient(ratings))


def test_full_agreement_is_1_a_stricter_rater_lowers_it_and_all_the_same_has_no_alpha():
    ratings = np.tile(np.array([[1.0], [2], [3], [4]]), (1, 3))
    stricter = ratings + np.array([1, 0, 0])
    assert alpha_ordinal(ratings) == pytest.approx(1)
    assert alpha_ordinal(stricter) < 1
    assert kappa(stricter) < kappa(ratings) == pytest.approx(1)
    lone = np.where(np.eye(4), 3.0, np.nan)  # nothing is shared
    assert np.isnan([alpha_ordinal(np.full((6, 2), 4.0)), alpha_ordinal(lone)]).all()


def test_first_scores_are_the_table_of_single_scores():
    scores = study(n=12)
    own = scores.ratings.query("criterion == 'clarity'")
    wide = own.pivot(index="response_id", columns="rater", values="score")
    read, again = first_scores(scores.ratings, ["aci"], "clarity", JURORS)
    theirs = wide.loc[read.index.get_level_values("response_id"), list(read.columns)].to_numpy()
    assert (len(read), tuple(read.columns[-3:]), again.sum()) == (12, JURORS, 0)
    assert read.to_numpy() == pytest.approx(theirs, nan_ok=True)


def test_of_several_scores_the_first_is_taken_and_the_others_are_counted():
    scores = study(n=6)
    again = scores.ratings.query("kind != 'metric'").assign(pass_=1, score=1.0)
    more = scores.ratings.query("rater == 'gpt'").assign(replicate=2, score=5.0)
    every = pd.concat([again, more, scores.ratings], ignore_index=True)
    once, _ = first_scores(scores.ratings, ["aci"], "clarity", JURORS)
    read, again = first_scores(every, ["aci"], "clarity", JURORS)
    pd.testing.assert_frame_equal(read, once)
    assert again.to_dict() == {**read.notna().sum().to_dict(), "gpt": 12}


def test_responses_that_no_clinician_scored_take_no_part():
    scores = study(n=8, per=2)
    fewer = lost(scores, "response_id == 'aci-r3' and kind == 'clinician'")
    read, again = first_scores(fewer.ratings, ["aci"], "clarity", JURORS)
    assert (len(read), again.sum()) == (7, 0)


POINTS = np.arange(1.0, 6)
NUMBERS = ("kappa_quadratic", "alpha_ordinal", "ac2")


def ac2(ratings, weights=None):
    return gwet_ac2(ratings, POINTS, weights)


@pytest.mark.parametrize(
    ("rows", "weights", "value"),
    [
        (CANON, np.eye(5), 0.775444068127),  # AC1; printed .77544
        (CANON, None, 0.914000723552),
        (SPARSE, None, 0.817829847707),
    ],
    ids=["AC1 of raw_4raters", "AC2 of raw_4raters", "AC2 of a sparse table"],
)
def test_it_is_what_irrcac_finds(rows, weights, value):
    # irrCAC 0.4.4, in an environment of its own.
    assert ac2(table(rows), weights) == pytest.approx(value, abs=1e-11)


def test_it_stands_where_alpha_collapses():
    # 40 responses, 3 raters, all 5 but for eight scores: irrCAC finds AC2 .98838
    # where Krippendorff's alpha is -.0475.
    ratings = np.full((40, 3), 5.0)
    ratings[0, 2] = 3
    ratings[[5, 7, 11, 28], 0] = 4
    ratings[[22, 23], 2] = 4
    assert ac2(ratings) == pytest.approx(0.988377161122, abs=1e-11)


def test_of_two_raters_and_two_points_it_is_the_formula_of_the_source():
    # Gwet (2008): p_a = (a + d) / n, pi = mean share of yes, p_e = 2 pi (1 - pi).
    a, b, c, d = 118, 5, 2, 0
    pairs = np.repeat([[1.0, 1], [1, 2], [2, 1], [2, 2]], [a, b, c, d], axis=0)
    n = a + b + c + d
    share = (2 * a + b + c) / (2 * n)
    chance = 2 * share * (1 - share)
    found = gwet_ac2(pairs, POINTS[:2])
    assert found == pytest.approx(((a + d) / n - chance) / (1 - chance))


def test_a_scale_is_stretched_with_its_points_and_agreement_throughout_is_1():
    ratings = table(SPARSE)
    assert gwet_ac2(10 * ratings - 4, 10 * POINTS - 4) == pytest.approx(ac2(ratings))
    assert ac2(np.full((6, 2), 5.0)) == 1.0
    assert np.isnan(ac2(np.where(np.eye(4), 3.0, np.nan)))
    assert np.isfinite(ac2(np.array([[4.0, 5]])))


def rows(scores, name="aci", **asked):
    every = scopes(scores, AnalysisOptions(reps=9, **asked))
    scope = next(one for one in every if one.name == name)
    return {(row.criterion, row.raters): row for row in chance_rows(scope, scores)}


def undefined(row):
    return np.isnan([getattr(row, name) for name in NUMBERS]).all()


def test_each_criterion_has_a_row_of_the_clinicians_and_one_with_each_juror():
    groups = ["clinicians", *(f"juror:{name}" for name in JURORS)]
    found = rows(study())
    assert list(found) == [(one, group) for one in CRITERIA for group in groups]
    numbers = [getattr(row, name) for row in found.values() for name in NUMBERS]
    assert np.isfinite(numbers).all()
    assert {row.n_responses for row in found.values()} == {30}
    assert list(rows(study(), criterion="clarity")) == [("clarity", group) for group in groups]


def test_hidden_repeats_change_nothing_and_are_counted():
    scores = study(n=10)
    again = scores.ratings[scores.ratings["kind"] == "clinician"].assign(pass_=1, score=1.0)
    once = rows(scores)
    found = rows(replace(scores, ratings=pd.concat([scores.ratings, again])))
    for key, row in found.items():
        ours = [getattr(row, name) for name in NUMBERS]
        assert ours == pytest.approx([getattr(once[key], name) for name in NUMBERS])
    said = note_of(found["clarity", "clinicians"])
    assert "first scores only: 20 scores of repeats or replicates left out" in said


def test_a_mean_of_jurors_among_the_jurors_has_alpha_and_neither_kappa_nor_ac2():
    scores = study()
    between = scores.ratings["score"].clip(upper=4) + 0.5
    found = rows(rescored(scores, lambda t: t["score"].where(t["rater"] != "gpt", between)))
    row = found["clarity", "juror:gpt"]
    assert np.isfinite(row.alpha_ordinal)
    assert np.isnan([row.kappa_quadratic, row.ac2]).all()
    assert "kappa and AC2 undefined: 30 scores between the points of the scale" in note_of(row)
    assert found["clarity", "juror:claude"] == rows(scores)["clarity", "juror:claude"]


def test_a_single_clinician_has_no_row_of_clinicians_and_a_juror_without_a_score_is_undefined():
    scores = study()
    found = rows(without(scores, scores.ratings["rater"].isin(DOCTORS[1:])))
    assert undefined(found["clarity", "clinicians"])
    assert "only one clinician rated here, dr0" in note_of(found["clarity", "clinicians"])
    assert np.isfinite(found["clarity", "juror:gpt"].ac2)
    unscored = lost(study(), "rater == 'gpt' and criterion == 'clarity'")
    row = rows(unscored)["clarity", "juror:gpt"]
    assert undefined(row)
    assert (row.n_responses, "no response here has a gpt score" in note_of(row)) == (0, True)


def test_scores_that_are_all_the_same_leave_only_ac2():
    row = rows(rescored(study(), lambda t: 4.0))["clarity", "clinicians"]
    assert row.ac2 == 1.0
    assert np.isnan([row.kappa_quadratic, row.alpha_ordinal]).all()
    assert "kappa undefined: every pair gave one and the same score" in note_of(row)
    assert "alpha undefined: all scores are the same" in note_of(row)


def test_combined_pools_benchmarks_that_have_the_criterion_on_one_scale():
    both = study(("aci", "chw"), criteria={"chw": ("clarity", "tone")})
    scales = study(("aci", "chw"), scales={"chw": (0, 10)})
    found = rows(both, "combined")
    assert found["clarity", "clinicians"].n_responses == 60
    assert found["tone", "clinicians"].n_responses == 30
    assert "chw alone has the criterion" in note_of(found["tone", "clinicians"])
    mixed = rows(scales, "combined")["clarity", "juror:gpt"]
    assert undefined(mixed)
    assert "different scales" in note_of(mixed)
    lacking = rows(both, "aci", criterion="tone")["tone", "clinicians"]
    assert "no criterion tone" in note_of(lacking)
