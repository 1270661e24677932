"""Models compared: win rates by HELM's definition, known answers by hand, the jury corrected, and tables of it."""

import numpy as np
import pandas as pd
import pytest
from kit.model_study import (
    QUALITY,
    by_hand,
    by_instance,
    by_model,
    compared,
    model_row,
    model_study,
)
from scipy import stats

from calibration.json_values import json_value
from calibration.models import benchmark_win_rates, model_scores, win_rates
from calibration.notes import told
from calibration.predicting import means_of_both, prediction_powered_mean
from calibration.scores import RubricShape, Scores
from calibration.tables.models import difference_table, rank
from calibration.tables.numbers import TERMINAL
from data.errors import BadInput, Unknown

# Three models, two benchmarks, worked by hand.
# On the first a > b > c: 1, 1/2, 0. On the second b = c > a: a beats none; b and c each beat a
# and tie with the other, (1 + 1/2) / 2. Means: a (1 + 0)/2, b (1/2 + 3/4)/2, c (0 + 3/4)/2.
HAND = np.array([[0.9, 0.1], [0.8, 0.4], [0.7, 0.4]])


def table(models=5, benchmarks=7, missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    means = np.round(random.random((models, benchmarks)), 1)
    means[random.random(means.shape) < missing] = np.nan
    return means


def one_by_one(means):
    """HELM's definition read aloud: who, of the others that have a score, is beaten."""
    found = []
    for own, row in enumerate(means):
        rates = []
        for column, value in enumerate(row):
            others = [
                other[column]
                for place, other in enumerate(means)
                if place != own and not np.isnan(other[column])
            ]
            if not np.isnan(value) and others:
                wins = [1.0 if value > one else 0.5 if value == one else 0.0 for one in others]
                rates.append(sum(wins) / len(wins))
        found.append(sum(rates) / len(rates) if rates else np.nan)
    return found


def test_win_rates_of_the_table_worked_by_hand():
    assert benchmark_win_rates(HAND) == pytest.approx(
        np.array([[1.0, 0.0], [0.5, 0.75], [0.0, 0.75]])
    )
    assert win_rates(HAND) == pytest.approx([0.5, 0.625, 0.375])


def test_ties_are_what_helms_own_test_says():
    # test_compute_win_rates_ties of stanford-crfm/helm: scores 1, 1, 1, 4, 5
    means = np.array([[1.0], [1.0], [1.0], [4.0], [5.0]])
    assert win_rates(means).tolist() == [0.25, 0.25, 0.25, 0.75, 1.0]


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_win_rates_are_helms_definition_read_aloud(missing, seed):
    means = table(missing=missing, seed=seed)
    assert win_rates(means) == pytest.approx(one_by_one(means), nan_ok=True)


def test_a_model_alone_on_a_benchmark_has_no_win_rate_there():
    means = np.array([[0.5, 0.9], [0.4, np.nan], [0.3, np.nan]])
    assert np.isnan(benchmark_win_rates(means)[0, 1])
    assert win_rates(means).tolist() == [1.0, 0.5, 0.0]
    assert np.isnan(win_rates(np.array([[0.5, 0.9]]))).all()


def test_benchmark_means_that_differ_by_rounding_alone_tie():
    means = np.array([[0.1 + 0.2], [0.3]])
    assert means[0] != means[1]
    assert win_rates(means).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("change", "order"),
    [
        (lambda x: x + 3, slice(None)),
        (lambda x: 10 * x, slice(None)),
        (np.exp, slice(None)),
        (lambda x: x + np.arange(7), slice(None)),
        (lambda x: x[[3, 0, 4, 1, 2]], [3, 0, 4, 1, 2]),
        (lambda x: x[:, ::-1], slice(None)),
    ],
    ids=["shift", "scale", "monotone", "shift a benchmark", "models turned", "benchmarks turned"],
)
def test_what_keeps_the_order_on_every_benchmark_changes_no_win_rate(change, order):
    means = table(missing=0.2, seed=3)
    assert win_rates(change(means)) == pytest.approx(win_rates(means)[order], nan_ok=True)


def test_a_study_small_enough_to_work_by_hand():
    scores, authors = by_hand()
    found = compared(scores, authors, jurors=("gpt",), by=["clinicians", "jury"])
    # Clinicians: means 4.5, 4, 2 points are 7/8, 3/4, 1/4; a beats two, b one, c none.
    rows = by_model(found, "clinicians")
    assert list(rows) == ["a", "b", "c"]
    assert [row.macro_average for row in rows.values()] == pytest.approx([7 / 8, 3 / 4, 1 / 4])
    assert [row.win_rate for row in rows.values()] == [1.0, 0.5, 0.0]
    assert np.isnan([row.macro_average_sd for row in rows.values()]).all()
    # The jury has it the other way round, and one response of c without a score.
    rows = by_model(found, "jury")
    assert list(rows) == ["c", "b", "a"]
    assert [row.macro_average for row in rows.values()] == pytest.approx([1 / 2, 1 / 4, 0])
    assert (rows["c"].n_responses, rows["c"].n_missing) == (1, 1)
    assert "scored 1 of 2" in told(rows["c"].notes)
    assert "1 of its 2 scored instances have scores for all models" in told(rows["b"].notes)
    assert np.isnan([rows["c"].low, rows["c"].high]).all()


def test_too_few_rated_instances_have_no_correction_and_say_so():
    every, authors = by_hand()
    rated = every.ratings
    unrated = (rated["rater"] == "dr_a") & (rated["instance_id"] == "notes/1")
    scores = Scores(rated[~unrated], every.responses, every.rubrics)
    for row in compared(scores, authors, jurors=("gpt",), by=["corrected"]).rows:
        assert np.isnan([row.win_rate, row.macro_average, row.low]).all()
        assert (row.shared_rank_low, row.shared_rank_high) == (None, None)
        assert (row.n_benchmarks, row.without) == (0, ("notes",))
        assert (row.n_responses, row.n_missing) == (0, 2)
        assert "undefined: fewer than 5 instances" in told(row.notes)


def test_an_interval_is_by_t_and_that_of_a_win_rate_what_resampling_rows_gives():
    # One benchmark: draw instances, average their responses, no counts and no cells.
    scores, authors = model_study(QUALITY, n=30, rated=30, benchmarks=("notes",))
    row = by_model(compared(scores, authors, by=["clinicians"], reps=4000), "clinicians")["beta"]
    given = by_instance(model_scores(scores, authors, []), "clinicians")
    mean = stats.ttest_1samp(given[1], 0).confidence_interval()
    assert (row.low, row.high) == pytest.approx((mean.low, mean.high))
    random = np.random.default_rng(5)
    drawn = [given[:, random.integers(0, 30, 30)].mean(axis=1) for _ in range(4000)]
    wins = [(one[1] > one).sum() / 2 for one in drawn]
    assert (row.win_rate_low, row.win_rate_high) == tuple(np.quantile(wins, [0.025, 0.975]))


def test_a_model_that_lacks_a_benchmark_is_told_and_compared_on_the_other():
    scores, authors = model_study(QUALITY)
    absent = scores.responses["response_id"].str.fullmatch(r"letters-\d+-gamma")
    gone = scores.ratings["response_id"].isin(scores.responses.loc[absent, "response_id"])
    left = Scores(scores.ratings[~gone], scores.responses[~absent], scores.rubrics)
    rows = by_model(compared(left, authors, by=["jury"]), "jury")
    assert (rows["gamma"].n_benchmarks, rows["gamma"].without) == (1, ("letters",))
    assert "no score on letters: with a mean on 1 of 2 benchmarks" in told(rows["gamma"].notes)
    assert "gamma" not in told(rows["alpha"].notes)
    alone = by_model(compared(scores, authors, by=["jury"]), "jury")
    assert rows["alpha"].macro_average == alone["alpha"].macro_average


def test_a_single_model_has_means_but_nobody_to_win_against():
    scores, authors = model_study({"alpha": 3.0}, n=25, rated=25)
    for row in compared(scores, authors).rows:
        assert np.isnan([row.win_rate, row.win_rate_low]).all()
        assert row.shared_rank_low is None
        assert row.low < row.macro_average < row.high
        assert "win rate undefined: no other model" in told(row.notes)


def test_models_that_say_the_same_tie_and_cannot_be_told_apart():
    scores, authors = model_study({"alpha": 3.0}, n=30, rated=30)
    twin = {"response_id": lambda t: t["response_id"].str.replace("alpha", "twin")}
    both = Scores(
        pd.concat([scores.ratings, scores.ratings.assign(**twin)], ignore_index=True),
        pd.concat([scores.responses, scores.responses.assign(**twin)], ignore_index=True),
        scores.rubrics,
    )
    authors |= {name.replace("alpha", "twin"): "twin" for name in authors}
    found = compared(both, authors, by=["clinicians"])
    for row in found.rows:
        assert row.win_rate == 0.5
        assert row.win_rate_low < 0.5 < row.win_rate_high
        assert (row.shared_rank_low, row.shared_rank_high) == (1, 2)
        assert {row.model, *row.not_told_apart} == {"alpha", "twin"}
    (pair,) = found.differences
    assert np.isnan([pair.low, pair.high, pair.p, pair.p_holm]).all()
    assert not pair.is_ahead


def test_scores_that_are_all_the_same_have_no_interval_but_a_win_rate_has_wilsons():
    scores, authors = model_study(QUALITY, n=20, rated=20, benchmarks=("notes",))
    points = scores.ratings["response_id"].str[-1].map({"a": 5.0})  # every model ends in an a
    rated = scores.ratings.assign(score=points)
    rated.loc[rated["response_id"].str.endswith("beta"), "score"] = 4.0
    found = compared(Scores(rated, scores.responses, scores.rubrics), authors, by=["clinicians"])
    rows = by_model(found, "clinicians")
    for row in rows.values():
        assert np.isnan([row.low, row.high]).all()
    # Wilson's interval of 0 of 20: up to z^2 / (20 + z^2), z = 1.96.
    assert (rows["beta"].win_rate, rows["beta"].win_rate_low) == (0, 0)
    assert rows["beta"].win_rate_high == pytest.approx(1.96**2 / (20 + 1.96**2), abs=1e-4)


def test_categories_are_means_over_their_benchmarks():
    scores, authors = model_study(QUALITY, benchmarks=("letters", "notes", "visits"))
    kinds = {"letters": "Writing", "notes": "Writing"}
    found = by_model(compared(scores, authors, kinds, by=["jury"]), "jury")["beta"].categories
    table = model_scores(scores, authors, ["gpt", "llama"])
    mean = table[table["model"] == "beta"].groupby("benchmark")["jury"].mean()
    writing = (mean["letters"] + mean["notes"]) / 2
    assert found == pytest.approx({"": mean["visits"], "Writing": writing})


def test_a_benchmark_without_the_criterion_is_left_out_and_named():
    scores, authors = model_study(QUALITY)
    shapes = dict(scores.rubrics) | {"notes": RubricShape(("tone",), 1, 5)}
    found = Scores(scores.ratings, scores.responses, shapes)
    for row in compared(found, authors, criterion="accuracy").rows:
        assert row.n_benchmarks == 1
        assert row.n_responses + row.n_missing == 60
        assert "no such criterion: notes left out" in told(row.notes)


def test_the_same_seed_gives_the_same_figures_whatever_the_order_of_the_rows():
    scores, authors = model_study(QUALITY)
    ratings = scores.ratings.sample(frac=1, random_state=1)
    responses = scores.responses.sample(frac=1, random_state=2)
    mixed = compared(Scores(ratings, responses, scores.rubrics), authors).rows
    for row, other in zip(compared(scores, authors).rows, mixed, strict=True):
        ours, theirs = json_value(row), json_value(other)
        codes = [[one["code"] for one in own.pop("notes")] for own in (ours, theirs)]
        assert codes[0] == codes[1]
        for key in ours:
            assert ours[key] == pytest.approx(theirs[key]), key
    close = model_study({"alpha": 3.1, "beta": 3.0}, n=30, rated=30, noise=0.7)
    lows = [[row.win_rate_low for row in compared(*close, seed=seed).rows] for seed in (0, 1)]
    assert lows[0] != lows[1]


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"jurors": ("gpt", "nobody")}, Unknown, "no ratings by a juror nobody"),
        ({"criterion": "wit"}, Unknown, "no rubric has the criterion wit"),
        ({"jurors": ()}, BadInput, "there is no jury"),
        ({"reps": 0}, BadInput, "reps=0"),
        ({"seed": -1}, BadInput, "seed=-1"),
        ({"by": ["experts"]}, BadInput, "by=experts"),
    ],
)
def test_what_is_wrong_is_said_at_once(wanted, error, words):
    with pytest.raises(error, match=words):
        compared(*by_hand(), **({"jurors": ("gpt",)} | wanted))


def test_a_response_without_an_author_is_refused():
    scores, authors = by_hand()
    del authors["a0"]
    with pytest.raises(BadInput, match="1 responses, a0 first, have no author"):
        compared(scores, authors, jurors=("gpt",))


def test_means_of_a_study_without_a_juror_are_those_of_its_clinicians():
    ids = [f"r{n:03}" for n in range(300)]  # more than a byte numbers, as a list of names has
    given = {"response_id": pd.Categorical(ids, categories=ids), "composite": np.arange(300.0)}
    means = means_of_both(pd.DataFrame(given | {"kind": "clinician", "rater": "dr"}), (), 1)
    assert means["clinicians"].tolist() == [*range(300)]
    assert means["jury"].isna().all()


def test_a_corrected_mean_is_the_prediction_powered_mean():
    scores, authors = model_study(QUALITY, bias={"gamma": 0.9}, benchmarks=("notes",))
    rows = by_model(compared(scores, authors), "corrected")
    frame = model_scores(scores, authors, ["gpt", "llama"])
    for name in QUALITY:
        own = frame[frame["model"] == name]
        columns = (own[column].to_numpy() for column in ("clinicians", "jury", "instance"))
        expected = prediction_powered_mean(*columns).corrected
        assert rows[name].macro_average == pytest.approx(expected.value)
        # Its interval spends a degree of freedom more, on the weight.
        ends = expected.interval(0.95)
        assert rows[name].high - rows[name].low == pytest.approx(ends.high - ends.low, rel=0.1)
        assert (rows[name].n_responses, rows[name].n_missing, rows[name].n_rated) == (60, 0, 25)


@pytest.mark.parametrize("n", [20, 3])
def test_where_clinicians_rated_everything_the_correction_is_their_mean(n):
    found = compared(*model_study(QUALITY, n=n, rated=n, bias={"gamma": 1.0}))
    clinical, corrected = by_model(found, "clinicians"), by_model(found, "corrected")
    fields = ["macro_average", "low", "high", "n_benchmarks"]
    if n == 20:
        fields += ["win_rate", "macro_average_sd", "shared_rank_high"]
    for name in QUALITY:
        for field in fields:
            assert getattr(corrected[name], field) == pytest.approx(getattr(clinical[name], field))


@pytest.mark.parametrize("silent", [3, 10])
def test_clinicians_who_rated_everything_need_no_jury_for_the_correction(silent):
    scores, authors = model_study(QUALITY, n=10, rated=10, benchmarks=("notes",))
    ids = scores.ratings["response_id"].isin([f"notes-{i}-alpha" for i in range(silent)])
    left = scores.ratings[~(ids & (scores.ratings["kind"] == "juror"))]
    found = compared(Scores(left, scores.responses, scores.rubrics), authors)
    corrected, clinical = by_model(found, "corrected")["alpha"], by_model(found, "clinicians")
    assert corrected.macro_average == pytest.approx(clinical["alpha"].macro_average)
    assert (corrected.low, corrected.high) == (clinical["alpha"].low, clinical["alpha"].high)
    assert (corrected.n_responses, corrected.n_missing, corrected.n_rated) == (10, 0, 10)


def test_a_benchmark_with_too_few_rated_instances_is_left_out_with_words_for_it():
    scores, authors = model_study(QUALITY, n=30, rated=10)
    rated = scores.ratings
    clinical = (rated["kind"] == "clinician") & (rated["benchmark"] == "notes")
    three = sorted(set(rated[clinical]["instance_id"]))[:3]
    few = rated[~clinical | rated["instance_id"].isin(three)]
    found = compared(Scores(few, scores.responses, scores.rubrics), authors)
    for row in by_model(found, "corrected").values():
        assert row.n_benchmarks == 1
        assert "on notes: with a mean on 1 of 2 benchmarks" in told(row.notes)


@pytest.mark.slow
def test_corrected_intervals_hold_the_truth_where_the_jurys_do_not():
    held = {"jury": [], "corrected": [], "clinicians": []}
    width = {by: [] for by in held}
    wrong = dict.fromkeys(held, 0)
    for seed in range(120):
        scores, authors = model_study(QUALITY, bias={"gamma": 0.9}, n=100, rated=30, seed=seed)
        found = compared(scores, authors, reps=400)
        for by in held:
            rows = by_model(found, by)
            wrong[by] += list(rows) != ["alpha", "beta", "gamma"]
            for name, row in rows.items():
                held[by].append(row.low <= (QUALITY[name] - 1) / 4 <= row.high)
                width[by].append(row.high - row.low)
    assert wrong["jury"] == 120
    assert wrong["corrected"] <= 2
    assert np.mean(held["corrected"]) >= 0.93
    assert np.mean(held["jury"]) < 0.7
    assert np.mean(width["corrected"]) < 0.85 * np.mean(width["clinicians"])


def cells(table, column):
    place = table.columns.index(column)
    return [row[place] for group in table.groups for row in group.rows]


def test_ranks_that_cannot_be_told_apart_are_a_range():
    shared = model_row("one", shared_rank_low=1, shared_rank_high=3)
    assert rank(shared, TERMINAL) == "1 to 3"
    assert rank(model_row("one", shared_rank_low=2, shared_rank_high=2), TERMINAL) == "2"
    none = model_row("one", shared_rank_low=None, shared_rank_high=None)
    assert rank(none, TERMINAL) == "-"


def test_the_table_of_differences_has_all_pairs_of_one_way_of_scoring():
    found = compared(*model_study(QUALITY, n=40, rated=40))
    pairs = [row for row in found.differences if row.by == "clinicians"]
    table = difference_table(pairs, TERMINAL)
    assert table.caption.endswith("minus another's, by clinicians")
    assert [row[:2] for group in table.groups for row in group.rows] == [
        *(("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma"))
    ]
    assert cells(table, "p, Holm, all pairs") == 3 * ["<0.001"]
