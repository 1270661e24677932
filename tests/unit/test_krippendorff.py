"""Krippendorff's alpha: his example, the krippendorff package, brute force, and properties."""

import numpy as np
import pandas as pd
import pytest
from kit.composites import CANON, SPARSE, table
from kit.scores import JURORS, study

from calibration.chance_corrected import alpha_ordinal, first_scores
from calibration.scores import Scores


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


@pytest.mark.parametrize(
    "change",
    [
        lambda r: r + 3,
        lambda r: 10 * r,
        lambda r: 6 - r,
        lambda r: r[::-1],
        lambda r: r[:, ::-1],
        lambda r: np.hstack([r, np.full((30, 2), np.nan)]),
        lambda r: np.vstack([r, [[5, *[np.nan] * 4]]]),
    ],
    ids=[
        *("shift", "scale", "reversal", "responses", "raters", "absent raters"),
        "a lone rating",
    ],
)
def test_nothing_that_says_nothing_of_agreement_changes_alpha(change):
    ratings = table(SPARSE)

    assert alpha_ordinal(change(ratings)) == pytest.approx(alpha_ordinal(ratings))


def test_an_ordinal_alpha_asks_only_for_the_order():
    ratings = table(SPARSE)

    assert alpha_ordinal(np.exp(ratings)) == pytest.approx(alpha_ordinal(ratings))


def test_full_agreement_is_1_and_a_stricter_rater_lowers_it():
    ratings = np.tile(np.array([[1.0], [2], [3], [4]]), (1, 3))
    stricter = ratings + np.array([1, 0, 0])

    assert alpha_ordinal(ratings) == pytest.approx(1)
    assert alpha_ordinal(stricter) < 1


def test_ratings_that_are_all_the_same_or_never_shared_have_no_alpha():
    lone = np.where(np.eye(4), 3.0, np.nan)

    assert np.isnan([alpha_ordinal(np.full((6, 2), 4.0)), alpha_ordinal(lone)]).all()


def test_first_scores_are_the_table_of_single_scores():
    scores = study(n=12)
    raters = scores.ratings[scores.ratings["kind"] != "metric"]
    wide = raters[raters["criterion"] == "clarity"].pivot(
        index="response_id", columns="rater", values="score"
    )

    read, again = first_scores(scores, ["aci"], "clarity", JURORS)

    theirs = wide.loc[read.index.get_level_values("response_id"), list(read.columns)].to_numpy()
    assert (len(read), tuple(read.columns[-3:]), again.sum()) == (12, JURORS, 0)
    assert read.to_numpy() == pytest.approx(theirs, nan_ok=True)


def test_of_several_scores_the_first_is_taken_and_the_others_are_counted():
    scores = study(n=6)
    again = scores.ratings.query("kind != 'metric'").assign(pass_=1, score=1.0)
    more = scores.ratings.query("rater == 'gpt'").assign(replicate=2, score=5.0)
    every = pd.concat([again, more, scores.ratings]).drop_duplicates(
        ["response_id", "rater", "criterion", "pass_", "replicate"]
    )
    twice = Scores(every, scores.responses, scores.rubrics)

    once, _ = first_scores(scores, ["aci"], "clarity", JURORS)
    read, again = first_scores(twice, ["aci"], "clarity", JURORS)

    pd.testing.assert_frame_equal(read, once)
    assert again.to_dict() == {**read.notna().sum().to_dict(), "gpt": 12}


def test_responses_that_no_clinician_scored_take_no_part():
    scores = study(n=8, per=2)
    gone = (scores.ratings["response_id"] == "aci-r3") & (scores.ratings["kind"] == "clinician")
    fewer = Scores(scores.ratings[~gone], scores.responses, scores.rubrics)

    read, again = first_scores(fewer, ["aci"], "clarity", JURORS)

    assert (len(read), again.sum()) == (7, 0)
