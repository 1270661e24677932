import itertools

import numpy as np
import pytest
from kit.scores import note_of, study
from scipy import optimize

from calibration.data_quality import icc_bounds, missing_rows
from calibration.scope import scopes
from calibration.table import agreement_table
from calibration.values import AnalysisOptions

METHODS = ["paper", "published"]


def icc(x, y, method):
    (vx, cov), (_, vy) = np.cov(x, y)
    if method == "published":
        r = cov / np.sqrt(vx * vy)
        return 2 * r / (1 + r)
    return 4 * cov / (vx + vy + 2 * cov)


def filled(known, open_x, fill, method):
    return icc(np.append(known[0], open_x), np.append(known[1], fill), method)


def make_columns(seed, known=8, missing=3, sign=1.0):
    random = np.random.default_rng(seed)
    x = random.uniform(1, 5, known + missing)
    y = np.clip(3 + sign * 0.5 * (x - 3) + random.normal(size=len(x)), 1, 5)
    return (x[:known], y[:known]), x[known:]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sign", [1.0, 0.0, -1.0, -3.0])
def test_no_fill_on_a_fine_lattice_goes_beyond_and_the_best_comes_near(method, sign):
    lattice = np.array(list(itertools.product(np.linspace(1, 5, 17), repeat=3)))
    for seed in range(2):
        known, open_x = make_columns(seed, sign=sign)
        every = [filled(known, open_x, fill, method) for fill in lattice]

        found = icc_bounds(known, open_x, (1, 5), method)

        assert found.low <= min(every) + 1e-12
        assert found.high >= max(every) - 1e-12
        ends = np.array([found.low, found.high, min(every), max(every)])
        ratios = ends / (2 - ends)  # -1 to 1, where an ICC has no lower end
        assert ratios[:2] == pytest.approx(ratios[2:], abs=0.02)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_optimiser_from_many_starts_finds_the_same_ends(method, sign):
    for seed in range(2):
        known, open_x = make_columns(seed, known=6, missing=5, sign=sign)
        random = np.random.default_rng(seed)
        for side, pick in ((1, "low"), (-1, "high")):
            found = getattr(icc_bounds(known, open_x, (1, 5), method), pick)
            best = min(
                optimize.minimize(
                    lambda fill, side=side, given=(known, open_x): (
                        side * filled(*given, fill, method)
                    ),
                    random.choice([1.0, 2.0, 4.0, 5.0], 5),
                    bounds=[(1, 5)] * 5,
                    method="L-BFGS-B",
                ).fun
                for _ in range(6)
            )
            assert side * found <= best + 1e-9
            assert found == pytest.approx(side * best, abs=1e-4)


def test_one_missing_score_worked_by_hand():
    # x = 1 2 3 and 2, y = 1 2 3 and ?. With ? = 2, y = x: ICC 1. Else cov and var x stay 2/3 each,
    # and var y = (2 + 0.75 (? - 2)^2) / 3, greatest at ? = 5: r = 2 / sqrt(2 * 8.75) = 0.4781.
    known, open_x = (np.array([1.0, 2, 3]), np.array([1.0, 2, 3])), np.array([2.0])

    published = icc_bounds(known, open_x, (1, 5), "published")
    paper = icc_bounds(known, open_x, (1, 5), "paper")

    r = 2 / np.sqrt(2 * 8.75)
    assert (published.low, published.high) == pytest.approx((2 * r / (1 + r), 1))
    assert (paper.low, paper.high) == pytest.approx((4 * 2 / (2 + 8.75 + 4), 1))


@pytest.mark.parametrize("method", METHODS)
def test_nothing_missing_leaves_the_icc_itself(method):
    known, _ = make_columns(1)
    found = icc_bounds(known, np.empty(0), (1, 5), method)
    assert (found.low, found.high) == pytest.approx((icc(*known, method),) * 2)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_do_not_mind_order_shift_or_one_scale_for_all_and_widen_with_the_scale(method):
    known, open_x = make_columns(3, missing=20)
    first = icc_bounds(known, open_x, (1, 5), method)
    order = np.random.default_rng(0).permutation(8)

    shuffled = icc_bounds((known[0][order], known[1][order]), open_x[::-1], (1, 5), method)
    moved = icc_bounds((known[0] + 100, known[1] - 7), open_x + 100, (-6, -2), method)
    scaled = icc_bounds((known[0] * 3, known[1] * 3), open_x * 3, (3, 15), method)
    wider = icc_bounds(known, open_x, (0, 6), method)

    for other in (shuffled, moved, scaled):
        assert (other.low, other.high) == pytest.approx((first.low, first.high))
    assert wider.low < first.low
    assert wider.high >= first.high - 1e-12


def test_a_mirror_of_the_clinicians_has_no_lower_bound():
    x = np.array([1.0, 2, 3])
    found = icc_bounds((x, -x), np.array([2.0]), (-2, -2), "published")
    assert found.low == -np.inf


def rows_of(scores, needed=None, name=None, **options):
    found = list(scopes(scores, AnalysisOptions(**{"reps": 0, "min_jurors": needed} | options)))
    scope = next(one for one in found if name in (None, one.name))
    return {row.scorer: row for row in missing_rows(scope, scores)}


def gap_study(**options):
    """Return a study in which gpt said nothing of r1 and half of r2, and llama half of r2 and r3."""
    scores = study(n=20, **options)
    table = scores.ratings
    at = table["response_id"]
    gone = (table["rater"] == "gpt") & (at == "aci-r1")
    half = (table["rater"] == "gpt") & (at == "aci-r2") | (
        (table["rater"] == "llama") & at.isin(["aci-r2", "aci-r3"])
    )
    gone |= half & (table["criterion"] == "clarity")
    return type(scores)(table[~gone], scores.responses, scores.rubrics, scores.simulated)


def test_what_is_missing_is_counted_by_what_is_known_of_it():
    rows = rows_of(gap_study())
    counts = {
        name: (row.n_responses, row.n_scored, row.n_missing, row.n_no_rating, row.n_incomplete)
        for name, row in rows.items()
    }

    assert counts == {
        "jury": (20, 17, 3, 1, 2),
        "juror:claude": (20, 20, 0, 0, 0),
        "juror:gpt": (20, 18, 2, 1, 1),
        "juror:llama": (20, 18, 2, 0, 2),
        "metric:rouge-l": (20, 20, 0, 0, 0),
    }


def test_two_of_three_jurors_are_enough_where_two_are_asked():
    row = rows_of(gap_study(), needed=2)["jury"]
    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == (19, 0, 1)


@pytest.mark.parametrize("method", METHODS)
def test_the_icc_is_that_of_the_table_and_lies_within_its_bounds(method):
    scores = gap_study()
    table = agreement_table(scores, method=method, reps=0).set_index("scorer")["icc"]

    for scorer, row in rows_of(scores, method=method).items():
        assert row.icc == table[scorer]
        if not scorer.startswith("metric"):
            assert row.icc_lowest - 1e-9 <= row.icc <= row.icc_highest + 1e-9


def test_published_bounds_are_reached_by_a_study_that_has_the_scores():
    scores = gap_study()
    row = rows_of(scores, method="published")["juror:gpt"]
    seen = []
    for first, second in itertools.product([1.0, 5.0], repeat=2):
        table = study(n=20).ratings.copy()
        own = table["rater"] == "gpt"
        table.loc[own & (table["response_id"] == "aci-r1"), "score"] = first
        table.loc[own & (table["response_id"] == "aci-r2"), "score"] = second
        whole = type(scores)(table, scores.responses, scores.rubrics)
        found = agreement_table(whole, method="published", reps=0).set_index("scorer")["icc"]
        seen.append(found["juror:gpt"])

    assert row.icc_lowest == pytest.approx(min(seen))
    assert row.icc_highest >= max(seen) - 1e-12


def test_the_note_says_bound_and_not_estimate():
    row = rows_of(gap_study(simulated=("gpt",)))["jury"]

    assert note_of(row).startswith(
        "scored 17 of 20; if the 3 missing scores were the worst or the best"
    )
    assert "bounds, not an estimate, and used nowhere else" in note_of(row)
    assert note_of(row).endswith("simulated raters: gpt")
    assert note_of(rows_of(gap_study())["juror:claude"]) == "scored 20 of 20"


def test_a_metric_has_counts_and_no_bounds():
    scores = gap_study()
    gone = (scores.ratings["kind"] == "metric") & (scores.ratings["response_id"] == "aci-r9")
    less = type(scores)(scores.ratings[~gone], scores.responses, scores.rubrics)
    row = rows_of(less)["metric:rouge-l"]

    assert (row.n_scored, row.n_no_rating, row.n_incomplete) == (19, 1, 0)
    assert (row.icc_lowest, row.icc_highest) == (None, None)


def test_a_jury_that_scored_nothing_together_is_undefined_and_says_why():
    scores = study(n=10)
    table = scores.ratings
    even = table["response_id"].str[-1].astype(int) % 2 == 0
    gone = (table["rater"] == "gpt") & even | ((table["rater"] == "llama") & ~even)
    row = rows_of(type(scores)(table[~gone], scores.responses, scores.rubrics))["jury"]

    assert (row.n_scored, row.n_no_rating) == (0, 10)
    assert np.isnan([row.icc, row.icc_lowest, row.icc_highest]).all()
    assert "undefined: no response has all the scores needed" in note_of(row)


def test_scales_that_differ_leave_no_bounds():
    scores = study(("aci", "mts"), n=8, scales={"mts": (0, 5)})
    table = scores.ratings
    gone = (table["rater"] == "gpt") & (table["response_id"] == "mts-r1")
    less = type(scores)(table[~gone], scores.responses, scores.rubrics)
    row = rows_of(less, name="combined")["jury"]

    assert np.isnan([row.icc_lowest, row.icc_highest]).all()
    assert "no bounds: the benchmarks use different scales" in note_of(row)
