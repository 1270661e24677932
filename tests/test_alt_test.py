import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from kit.scores import FIELDS, note_of, study
from scipy import stats

from calibration.agreement import PanelColumns
from calibration.alt_test import alt_test_rows, compare, one_sided_p
from calibration.rating_matrix import RatingMatrix
from calibration.scope import scopes
from calibration.scores import RubricShape, Scores
from calibration.values import AnalysisOptions
from data.errors import BadInput

JURY = PanelColumns(("j0", "j1"), 2)


def make_table(n=60, doctors=4, each=3, juror_noise=1.0, seed=0):
    """Whole points, three of four clinicians a response, two jurors."""
    random = np.random.default_rng(seed)
    noise = np.array([0.8] * doctors + [juror_noise] * 2)
    quality = 3 + random.normal(size=(n, 1))
    table = np.clip(np.round(quality + noise * random.normal(size=(n, doctors + 2))), 1, 5)
    for row in table:
        row[random.permutation(doctors)[each:]] = np.nan
    return table


def grid_of(table):
    n, raters = table.shape
    names = (*(f"dr{i}" for i in range(raters - 2)), "j0", "j1")
    kinds = ("clinician",) * (raters - 2) + ("juror",) * 2
    return RatingMatrix(table, tuple(f"r{i:04d}" for i in range(n)), np.arange(n), names, kinds)


def scope_of(table, simulated=(), **options):
    rows = [
        (f"r{i:04d}", f"i{i:04d}", "aci", name, kind, "accuracy", value)
        for i, row in enumerate(table)
        for name, kind, value in zip(grid_of(table).raters, grid_of(table).kinds, row, strict=True)
        if not np.isnan(value)
    ]
    ratings = pd.DataFrame(rows, columns=FIELDS).assign(pass_=0, replicate=0)
    responses = ratings[FIELDS[:3]].drop_duplicates()
    scores = Scores(
        ratings, responses, {"aci": RubricShape(("accuracy",), 1, 5)}, frozenset(simulated)
    )
    return next(scopes(scores, AnalysisOptions(**{"reps": 0} | options)))


def by_definition(table, members, epsilon):
    """Section 3 of the paper in exact fractions, response by response."""
    doctors, found = table.shape[1] - 2, {}
    for j in range(doctors):
        wins, losses = [], []
        for row in table:
            others = [row[k] for k in range(doctors) if k != j and not np.isnan(row[k])]
            if np.isnan(row[j]) or np.isnan(row[members]).any() or not others:
                continue
            jury = sum(Fraction(row[k]) for k in members) / len(members)
            far = [
                sum((side - Fraction(k)) ** 2 for k in others) for side in (jury, Fraction(row[j]))
            ]
            wins.append(int(far[0] <= far[1]))
            losses.append(int(far[1] <= far[0]))
        gap = np.array(losses) - np.array(wins)
        n = len(gap)
        t = (gap.mean() - epsilon) / (gap.std(ddof=1) / math.sqrt(n))
        found[f"dr{j}"] = (n, np.mean(wins), np.mean(losses), stats.t.cdf(t, n - 1))
    return found


def benjamini_yekutieli(p):
    """Step up, by hand: p_(i) * m * (1 + 1/2 + ... + 1/m) / i, made monotone from the top."""
    m, order = len(p), np.argsort(p)
    scaled = np.sort(p) * m * sum(1 / i for i in range(1, m + 1)) / np.arange(1, m + 1)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return adjusted


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("scorer", "members"), [("jury", [4, 5]), ("juror:j1", [5])])
def test_rows_are_the_papers_definition_in_exact_fractions(seed, scorer, members):
    table = make_table(seed=seed, juror_noise=0.3 + 0.3 * seed)
    table[3:9, 5] = np.nan

    row = next(one for one in alt_test_rows(scope_of(table)) if one.scorer == scorer)

    expected = by_definition(table, members, 0.2)
    assert {
        one.clinician: (one.n_responses, one.advantage, one.clinician_advantage, one.p)
        for one in row.clinicians
    } == {name: pytest.approx(values) for name, values in expected.items()}
    adjusted = benjamini_yekutieli(np.array([one[3] for one in expected.values()]))
    assert [one.p_adjusted for one in row.clinicians] == pytest.approx(adjusted)
    assert [one.won for one in row.clinicians] == list(adjusted <= 0.05)
    assert row.winning_rate == np.mean(adjusted <= 0.05)
    assert row.advantage_probability == pytest.approx(np.mean([v[1] for v in expected.values()]))


def test_four_responses_worked_by_hand():
    # Held out: dr0. Others of a response: dr1 and dr2, or one of them. Jury = mean of j0, j1.
    table = np.array(
        [
            # dr0 dr1 dr2  j0 j1
            [5, 3, 4, 4, 4],  # dr0: sqrt((4+1)/2), jury 4: sqrt((1+0)/2): the jury is nearer
            [3, 3, 4, 5, 5],  # dr0: sqrt(1/2), jury 5: sqrt((4+1)/2): the clinician is nearer
            [2, 3, np.nan, 4, 4],  # both 1 away: a tie, both are
            [2, np.nan, np.nan, 4, 4],  # nobody to be near to: not compared
        ]
    )
    found = compare(grid_of(table), JURY, 0)

    assert found.rows.tolist() == [True, True, True, False]
    assert found.scorer.tolist() == [True, False, True]
    assert found.own.tolist() == [False, True, True]


def test_a_p_worked_by_hand():
    # d = -1 x 20, 0 x 10: mean -2/3, variance 30 (2/3)(1/3) / 29; t = (-2/3 - 0.2) / sqrt(var / 30).
    gaps = np.repeat([-1.0, 0.0], [20, 10])
    t = (-2 / 3 - 0.2) / math.sqrt(30 * (2 / 9) / 29 / 30)
    assert t == pytest.approx(-0.866667 / 0.087538, abs=1e-3)
    assert one_sided_p(gaps, 0.2) == pytest.approx(stats.t.cdf(t, 29))


def test_a_difference_that_never_varies_has_the_limit_as_p():
    assert one_sided_p(np.full(30, -1.0), 0.2) == 0
    assert one_sided_p(np.zeros(30), 0.2) == 0
    assert one_sided_p(np.ones(30), 0.2) == 1


def test_a_jury_that_knows_the_truth_passes_and_a_random_one_does_not():
    table = make_table(n=300, juror_noise=0.0, seed=1)
    better = alt_test_rows(scope_of(table))[0]
    table[:, -2:] = np.random.default_rng(0).integers(1, 6, size=(300, 2))
    worse = alt_test_rows(scope_of(table))[0]

    assert (better.scorer, better.winning_rate) == ("jury", 1)
    assert note_of(better) == (
        "passes the test of nearness: as near to the others as 4 of 4 clinicians, minus epsilon"
    )
    assert worse.winning_rate == 0
    assert note_of(worse).startswith(
        "does not pass the test of nearness: as near to the others as 0"
    )


def test_a_juror_as_noisy_as_a_clinician_wins_by_epsilon_alone():
    scope = scope_of(make_table(n=900, each=4, juror_noise=0.8, seed=2))
    assert alt_test_rows(scope, epsilon=0.2)[-1].winning_rate == 1
    assert alt_test_rows(scope, epsilon=0.0)[-1].winning_rate == 0


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, float("nan")])
def test_an_epsilon_off_its_range_is_refused(epsilon):
    with pytest.raises(BadInput, match="epsilon"):
        alt_test_rows(scope_of(make_table()), epsilon)


@pytest.mark.parametrize("change", ["mirrored scale", "permuted responses", "permuted clinicians"])
def test_what_makes_no_difference_makes_none(change):
    table = make_table(seed=6)
    other = {
        "mirrored scale": 6 - table,
        "permuted responses": table[np.random.default_rng(3).permutation(60)],
        "permuted clinicians": table[:, [2, 0, 3, 1, 4, 5]],
    }[change]

    first, second = (alt_test_rows(scope_of(one)) for one in (table, other))

    for one, two in zip(first, second, strict=True):
        assert two.winning_rate == one.winning_rate
        assert two.advantage_probability == pytest.approx(one.advantage_probability)
        ours, theirs = (sorted(c.p for c in row.clinicians) for row in (one, two))
        assert theirs == pytest.approx(ours)


def test_both_methods_take_raw_points():
    paper, published = (
        alt_test_rows(scope_of(make_table(), method=method)) for method in ("paper", "published")
    )
    assert paper == published


def test_a_rounded_mean_ties_with_the_same_point():
    third = np.array([[13 / 3, 4.0, np.nan, 11 / 3, 11 / 3]])  # both a third away, up to rounding
    found = compare(grid_of(third), JURY, 0)
    assert (found.scorer.tolist(), found.own.tolist()) == ([True], [True])


def test_fewer_than_thirty_responses_are_not_tested_and_say_so():
    row = alt_test_rows(scope_of(make_table(n=29, each=4)))[0]

    assert np.isnan([row.winning_rate, row.advantage_probability]).all()
    assert row.clinicians == ()
    assert "30 responses each" in note_of(row)
    assert note_of(row).endswith("the most that one has is 29")


def test_the_papers_six_to_ten_a_clinician_are_not_enough():
    row = alt_test_rows(next(scopes(study(n=20), AnalysisOptions(reps=0))))[0]
    assert np.isnan(row.winning_rate)
    assert note_of(row).startswith("undefined: the test needs 2 clinicians with 30 responses")


def test_a_single_clinician_has_no_others():
    table = make_table(each=4)
    table[:, 1:4] = np.nan
    row = alt_test_rows(scope_of(table))[0]
    assert note_of(row) == "undefined: held out, a clinician needs others to be compared with"


def test_clinicians_with_too_few_are_named_but_stay_among_the_others():
    table = make_table(n=60, each=4)
    table[20:, 3] = np.nan
    row = alt_test_rows(scope_of(table))[0]

    assert [one.clinician for one in row.clinicians] == ["dr0", "dr1", "dr2"]
    assert "not tested, fewer than 30 responses: dr3 (20)" in note_of(row)
    expected = by_definition(table, [4, 5], 0.2)["dr0"]
    assert row.clinicians[0].p == pytest.approx(expected[3])


def test_two_clinicians_are_tested_with_a_warning():
    table = make_table(each=4)
    table[:, 2:4] = np.nan
    row = alt_test_rows(scope_of(table))[0]
    assert row.n_clinicians == 2
    assert "fewer than 3 clinicians tested" in note_of(row)


def test_others_who_are_a_single_clinician_are_said_to_be_one():
    table = make_table(n=60, each=4)
    assert "single clinician" not in note_of(alt_test_rows(scope_of(table))[0])
    table[:20, 2:4] = np.nan
    assert "; there is only one other clinician to compare with on 20 of 60 responses" in note_of(
        alt_test_rows(scope_of(table))[0]
    )
    table[:, 2:4] = np.nan
    assert "; there is only one other clinician to compare with; " in note_of(
        alt_test_rows(scope_of(table))[0]
    )


def test_metrics_are_on_no_scale_of_points_and_have_no_row():
    rows = alt_test_rows(next(scopes(study(n=20), AnalysisOptions(reps=0))))
    assert [row.scorer for row in rows] == ["jury", "juror:claude", "juror:gpt", "juror:llama"]


def test_several_responses_an_instance_and_simulated_raters_are_told():
    scope = next(scopes(study(n=120, per=3, simulated=("gpt",)), AnalysisOptions(reps=0)))
    rows = alt_test_rows(scope)
    assert "120 responses from 40 instances: the t test takes them as independent" in note_of(
        rows[0]
    )
    assert "simulated raters: gpt" in note_of(rows[0])
    assert "simulated" not in note_of(rows[1])
