"""The same juror again: ICC(A,1) by hand and pingouin, SD, shares, and what is left out."""

import math

import numpy as np
import pandas as pd
import pingouin
import pytest
from kit.scores import note_of

from calibration import reliability as retest
from calibration.scope import scopes
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions

NAN = math.nan
CRITERIA = ("accuracy", "clarity")
KEYS = ["response_id", "instance_id", "benchmark", "rater", "kind", "criterion"]


def study(given, simulated=()):
    """Return a study of one juror: scores (n, replicates, criteria), NaN where missing."""
    given = np.asarray(given, dtype=float)
    rows = []
    for (i, replicate, place), score in np.ndenumerate(given):
        if not np.isnan(score):
            key = (f"r{i}", f"i{i}", "aci", "gpt", "juror", CRITERIA[place])
            rows.append((*key, score, 0, replicate))
    for i in range(len(given)):
        rows += [(f"r{i}", f"i{i}", "aci", "dr", "clinician", one, 3.0, 0, 0) for one in CRITERIA]
    ratings = pd.DataFrame(rows, columns=[*KEYS, "score", "pass_", "replicate"])
    responses = ratings[KEYS[:3]].drop_duplicates()
    return Scores(ratings, responses, {"aci": RubricShape(CRITERIA, 1, 5)}, frozenset(simulated))


def row_of(given, criterion=None, **options):
    scores = study(given, **options)
    (scope,) = scopes(scores, AnalysisOptions(criterion=criterion, reps=0))
    (row,) = retest.test_retest_rows(scope, scores)
    return row


def simulate(n=20, replicates=3, seed=0):
    random = np.random.default_rng(seed)
    quality = 3 + random.normal(size=(n, 1, 1))
    return np.clip(np.round(quality + 0.6 * random.normal(size=(n, replicates, 2))), 1, 5)


def test_the_icc_by_hand():
    # Row means 1.5, 2, 4.5: MS_rows = 2 * 31/12 = 31/6. Differences -1, 0, -1: MS_columns = 2/3,
    # MS_error = 1/6. ICC(A,1) = (31/6 - 1/6) / (31/6 + 1/6 + 2/3 * (2/3 - 1/6)) = 5 / (17/3).
    table = np.array([[1, 2], [2, 2], [4, 5]], dtype=float)

    assert retest.icc_one(table) == pytest.approx(15 / 17)
    assert retest.sd_within(table) == pytest.approx(math.sqrt((0.5 + 0 + 0.5) / 3))
    assert retest.same_pairs(table) == pytest.approx(1 / 3)


def test_shrout_and_fleiss_table_has_the_published_icc():
    table = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]

    assert retest.icc_one(np.array(table, dtype=float)) == pytest.approx(0.2898, abs=5e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*:pandas.errors.Pandas4Warning")
@pytest.mark.parametrize("replicates", [2, 3, 5])
def test_the_icc_of_a_study_is_pingouins(replicates):
    given = simulate(replicates=replicates)
    table = given.mean(axis=2)
    frame = pd.DataFrame(table).reset_index().melt("index", var_name="again", value_name="score")
    found = pingouin.intraclass_corr(frame, targets="index", raters="again", ratings="score")
    expected = found.set_index("Type").loc["ICC(A,1)", "ICC"]

    row = row_of(given)

    assert row.icc_one == pytest.approx(expected)
    assert row.sd_points == pytest.approx(math.sqrt(table.var(axis=1, ddof=1).mean()))
    pairs = [(a, b) for a in range(replicates) for b in range(a)]
    same = np.mean([given[:, a] == given[:, b] for a, b in pairs])
    assert row.exact_agreement == pytest.approx(same)
    assert (row.n_responses, row.n_replicates, note_of(row)) == (20, replicates, "")


def test_a_missing_replicate_leaves_the_icc_but_not_the_sd():
    given = simulate()
    given[0, 2], given[1, 1:] = NAN, NAN

    row = row_of(given)

    tables = given.mean(axis=2)
    squares = tables[2:].var(axis=1, ddof=1).sum() * 2 + tables[0, :2].var(ddof=1)
    assert row.icc_one == pytest.approx(retest.icc_one(tables[2:]))
    assert row.sd_points == pytest.approx(math.sqrt(squares / 37))
    assert row.n_responses == 19
    assert "2 responses without all replicates left out of the ICC" in note_of(row)


def test_a_reading_without_a_criterion_has_no_composite_but_its_scores_count():
    given = simulate(replicates=2)
    given[0, 1, 0] = NAN

    row = row_of(given)

    same = [given[1:, 0] == given[1:, 1], given[:1, 0, 1] == given[:1, 1, 1]]
    assert row.n_responses == 19
    assert row.exact_agreement == pytest.approx(
        np.concatenate([one.ravel() for one in same]).mean()
    )
    assert "1 reading lacks a criterion" in note_of(row)


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: table[::-1], 1),
        (lambda table: table[:, ::-1], 1),
    ],
    ids=["shift", "scale", "responses", "replicates"],
)
def test_shift_and_order_change_nothing_and_scale_scales_the_sd(change, scale):
    table = simulate().mean(axis=2)

    assert retest.icc_one(change(table)) == pytest.approx(retest.icc_one(table))
    assert retest.sd_within(change(table)) == pytest.approx(scale * retest.sd_within(table))
    assert retest.same_pairs(change(table)) == pytest.approx(retest.same_pairs(table))
