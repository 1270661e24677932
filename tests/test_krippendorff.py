"""Krippendorff's alpha: his example, the krippendorff package, brute force, and properties."""

import numpy as np
import pandas as pd
import pytest
from kit.composites import CANON, SPARSE, table
from kit.scores import JURORS, study

from calibration.chance_corrected import alpha_ordinal, count_ratings, first_scores
from calibration.scores import Scores
from data.errors import BadInput

POINTS = np.arange(1.0, 6)


def alpha(ratings, values=POINTS):
    return alpha_ordinal(count_ratings(ratings, values))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (CANON, 0.815388),  # printed: .815
        (SPARSE, 0.4704710313),
    ],
    ids=["the canonical example", "a sparse table"],
)
def test_it_is_what_krippendorff_and_the_package_named_for_him_find(rows, expected):
    assert alpha(table(rows)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "change",
    [
        lambda r, v: (r + 3, v + 3),
        lambda r, v: (10 * r, 10 * v),
        lambda r, v: (6 - r, v),
        lambda r, v: (r[::-1], v),
        lambda r, v: (r[:, ::-1], v),
        lambda r, v: (np.hstack([r, np.full((30, 2), np.nan)]), v),
        lambda r, v: (np.vstack([r, [[5, *[np.nan] * 4]]]), v),
        lambda r, v: (r, np.arange(0.0, 20)),
    ],
    ids=[
        *("shift", "scale", "reversal", "responses", "raters", "absent raters"),
        *("a lone rating", "unused values"),
    ],
)
def test_nothing_that_says_nothing_of_agreement_changes_alpha(change):
    ratings = table(SPARSE)

    assert alpha(*change(ratings, POINTS)) == pytest.approx(alpha(ratings))


def test_an_ordinal_alpha_asks_only_for_the_order():
    ratings = table(SPARSE)

    assert alpha(np.exp(ratings), np.exp(POINTS)) == pytest.approx(alpha(ratings))


def test_full_agreement_is_1_and_a_stricter_rater_lowers_it():
    ratings = np.tile(np.array([[1.0], [2], [3], [4]]), (1, 3))
    stricter = ratings + np.array([1, 0, 0])

    assert alpha(ratings) == pytest.approx(1)
    assert alpha(stricter) < 1


def test_ratings_that_are_all_the_same_or_never_shared_have_no_alpha():
    lone = np.where(np.eye(4), 3.0, np.nan)

    assert np.isnan([alpha(np.full((6, 2), 4.0)), alpha(lone)]).all()


def test_counts_add_up_over_groups_of_raters():
    ratings = table(SPARSE)
    parts = count_ratings(ratings[:, :2], POINTS) + count_ratings(ratings[:, 2:], POINTS)

    assert (parts == count_ratings(ratings, POINTS)).all()


def test_a_rating_that_is_none_of_the_values_is_refused():
    with pytest.raises(BadInput, match=r"the score 3\.5 is none of the values 1\.\.5"):
        count_ratings(np.array([[3.5]]), POINTS)
    with pytest.raises(BadInput):
        count_ratings(np.array([[7.0]]), POINTS)


def test_first_scores_are_the_table_of_single_scores():
    scores = study(n=12)
    raters = scores.ratings[scores.ratings["kind"] != "metric"]
    wide = raters[raters["criterion"] == "clarity"].pivot(
        index="response_id", columns="rater", values="score"
    )

    read = first_scores(scores, ["aci"], "clarity", JURORS)

    theirs = wide.loc[[f"aci-r{i}" for i in range(12)], list(read.raters)].to_numpy()
    assert read.ratings == pytest.approx(theirs, nan_ok=True)
    assert read.raters[-3:] == JURORS
    assert sum(read.again) == 0


def test_of_several_scores_the_first_is_taken_and_the_others_are_counted():
    scores = study(n=6)
    again = scores.ratings.query("kind != 'metric'").assign(pass_=1, score=1.0)
    more = scores.ratings.query("rater == 'gpt'").assign(replicate=2, score=5.0)
    every = pd.concat([again, more, scores.ratings]).drop_duplicates(
        ["response_id", "rater", "criterion", "pass_", "replicate"]
    )
    twice = Scores(every, scores.responses, scores.rubrics)

    once, read = (first_scores(each, ["aci"], "clarity", JURORS) for each in (scores, twice))

    order = np.lexsort(once.ratings.T), np.lexsort(read.ratings.T)
    assert read.ratings[order[1]] == pytest.approx(once.ratings[order[0]], nan_ok=True)
    given = (~np.isnan(read.ratings)).sum(axis=0)
    extra = [12 if name == "gpt" else int(n) for name, n in zip(read.raters, given, strict=True)]
    assert list(read.again) == extra


def test_responses_that_no_clinician_scored_take_no_part():
    scores = study(n=8, per=2)
    gone = (scores.ratings["response_id"] == "aci-r3") & (scores.ratings["kind"] == "clinician")
    fewer = Scores(scores.ratings[~gone], scores.responses, scores.rubrics)

    read = first_scores(fewer, ["aci"], "clarity", JURORS)

    assert (len(read.ratings), sum(read.again)) == (7, 0)
