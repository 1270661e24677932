"""Models compared: win rates by HELM's definition, corrected means, and none that leads but where it is shown."""

from dataclasses import fields, replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from kit.scores import both, codes, scores_of, without
from scipy import stats

from calibration.decision import Decision, DecisionKind
from calibration.differences import holm
from calibration.json_values import decision_json, json_value
from calibration.models import (
    benchmark_win_rates,
    compare_models,
    decide,
    difference_rows,
    estimate,
    model_scores,
    standings,
    win_rates,
)
from calibration.notes import note, told
from calibration.predicting import means_of_both, prediction_powered_mean
from calibration.scores import RubricShape, Scores
from calibration.tables.models import (
    CLINICIANS,
    CORRECTED,
    JURY,
    WAYS,
    DifferenceRow,
    ModelRow,
    difference_table,
    model_table,
)
from calibration.tables.numbers import TERMINAL
from calibration.values import AnalysisOptions
from data.errors import BadInput

SCALE = RubricShape(("accuracy",), 1, 5)
QUALITY = {"alpha": 3.4, "beta": 3.1, "gamma": 2.8}


def model_study(
    quality, *, bias=None, n=60, rated=25, benchmarks=("letters", "notes"), noise=0.4, seed=0
):
    """Return scores and authors: every response juried, `rated` instances a benchmark rated.

    `quality` is model -> points on 1 to 5, `bias` model -> points that the jury adds.
    Scores are not rounded, and with qualities between 2 and 4 hardly one is cut at 1 or 5.
    """
    random = np.random.default_rng(seed)
    rows, authors = [], {}
    for benchmark in benchmarks:
        hard = 0.3 * random.normal(size=n)
        chosen = set(random.permutation(n)[:rated].tolist())
        for i in range(n):
            for model, points in quality.items():
                place = (f"{benchmark}-{i}-{model}", f"{benchmark}/{i}", benchmark)
                authors[place[0]] = model
                true = points + hard[i] + noise * random.normal()
                jury = true + (bias or {}).get(model, 0.0) + noise * random.normal(size=2)
                given = [("gpt", "juror", jury[0]), ("llama", "juror", jury[1])]
                if i in chosen:
                    doctors = true + noise * random.normal(size=2)
                    given += [("dr_a", "clinician", doctors[0]), ("dr_b", "clinician", doctors[1])]
                rows += [
                    (*place, who, kind, "accuracy", float(np.clip(score, 1, 5)))
                    for who, kind, score in given
                ]
    return scores_of(rows, dict.fromkeys(benchmarks, SCALE)), authors


def by_hand():
    """Three models, one benchmark of two instances, one clinician and one juror; no chance in it.

    Clinician a 5, 4; b 3, 5; c 2, 2. Juror a 1, 1; b 2, 2; c 3, missing.
    """
    doctor = {"a": (5, 4), "b": (3, 5), "c": (2, 2)}
    juror = {"a": (1, 1), "b": (2, 2), "c": (3, None)}
    rows = []
    for model, judged in doctor.items():
        for i, points in enumerate(judged):
            place = (f"{model}{i}", f"notes/{i}", "notes")
            rows.append((*place, "dr_a", "clinician", "accuracy", float(points)))
            if juror[model][i] is not None:
                rows.append((*place, "gpt", "juror", "accuracy", float(juror[model][i])))
    return scores_of(rows, {"notes": SCALE}), {one[0]: one[0][0] for one in rows}


def compared(scores, authors, categories=None, by=WAYS, **options):
    options = {"jurors": ("gpt", "llama"), "reps": 200} | options
    return compare_models(scores, authors, categories or {}, AnalysisOptions(**options), by)


def by_instance(table, column):
    """Return the scores of one benchmark, shape (models, instances), of one response each."""
    return table.pivot(index="model", columns="instance", values=column).to_numpy()


def by_model(found, by):
    return {row.model: row for row in found.rows if row.by == by}


def model_row(model="alpha", by="clinicians", **other):
    """Return a row of figures that are all 0.5, with other fields in their place."""
    figures = {one.name: 0.5 for one in fields(ModelRow) if one.type is float}
    counts = {"shared_rank_low": 1, "shared_rank_high": 1}
    counts |= {"n_benchmarks": 2, "n_responses": 9, "n_missing": 21, "n_rated": 9}
    rest = {"not_told_apart": (), "without": (), "categories": {"": 0.5}}
    return ModelRow(**({"model": model, "by": by, **figures, **counts, **rest} | other))


# Three models, two benchmarks, worked by hand.
# On the first a > b > c: 1, 1/2, 0. On the second b = c > a: a beats none; b and c each beat a
# and tie with the other, (1 + 1/2) / 2. Means: a (1 + 0)/2, b (1/2 + 3/4)/2, c (0 + 3/4)/2.
NAN = np.nan
HAND = np.array([[0.9, 0.1], [0.8, 0.4], [0.7, 0.4]])


def table(models=5, benchmarks=7, missing=0.0, seed=0):
    random = np.random.default_rng(seed)
    means = np.round(random.random((models, benchmarks)), 1)
    means[random.random(means.shape) < missing] = np.nan
    return means


def one_by_one(means):
    """HELM's definition read aloud: who, of the others that have a score, is beaten."""
    rates = np.full(means.shape, NAN)
    for (own, column), value in np.ndenumerate(means):
        others = np.delete(means[:, column], own)
        others = others[~np.isnan(others)]
        if not np.isnan(value) and len(others):
            rates[own, column] = np.mean((value > others) + 0.5 * (value == others))
    known = [row[~np.isnan(row)] for row in rates]
    return [row.mean() if len(row) else NAN for row in known]


ROUNDED = [[0.1 + 0.2], [0.3]]  # which differ by rounding alone


@pytest.mark.parametrize(
    ("means", "by_benchmark", "rates"),
    [
        (HAND, [[1.0, 0.0], [0.5, 0.75], [0.0, 0.75]], [0.5, 0.625, 0.375]),
        # test_compute_win_rates_ties of stanford-crfm/helm: scores 1, 1, 1, 4, 5
        (
            [[1], [1], [1], [4], [5]],
            [[0.25], [0.25], [0.25], [0.75], [1]],
            [0.25, 0.25, 0.25, 0.75, 1],
        ),
        ([[0.5, 0.9], [0.4, NAN], [0.3, NAN]], [[1, NAN], [0.5, NAN], [0, NAN]], [1, 0.5, 0]),
        ([[0.5, 0.9]], [[NAN, NAN]], [NAN]),
        (ROUNDED, [[0.5], [0.5]], [0.5, 0.5]),
    ],
    ids=["by hand", "HELM's test of ties", "alone on a benchmark", "a single model", "rounding"],
)
def test_win_rates_are_those_worked_by_hand_and_of_helms_own_test(means, by_benchmark, rates):
    table = np.array(means, dtype=float)
    assert benchmark_win_rates(table) == pytest.approx(np.array(by_benchmark), nan_ok=True)
    assert win_rates(table) == pytest.approx(rates, nan_ok=True)
    assert ROUNDED[0] != ROUNDED[1]


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("seed", range(5))
def test_win_rates_are_helms_definition_read_aloud(missing, seed):
    means = table(missing=missing, seed=seed)
    assert win_rates(means) == pytest.approx(one_by_one(means), nan_ok=True)


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
    for row in compared(without(every, unrated), authors, jurors=("gpt",), by=["corrected"]).rows:
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
    found = compared(scores, authors)
    for row in found.rows:
        assert np.isnan([row.win_rate, row.win_rate_low]).all()
        assert row.shared_rank_low is None
        assert row.low < row.macro_average < row.high
        assert "win rate undefined: no other model" in told(row.notes)
    assert model_table(found.rows, TERMINAL).groups[0].rows[0][1] == "-"
    assert (found.decision.kind, found.decision.names) == (DecisionKind.UNDEFINED, ())
    assert decision_json(found.decision)["estimate"] is None


def test_models_that_say_the_same_tie_and_cannot_be_told_apart():
    scores, authors = model_study({"alpha": 3.0}, n=30, rated=30)
    twin = {"response_id": lambda t: t["response_id"].str.replace("alpha", "twin")}
    tables = {name: getattr(scores, name).assign(**twin) for name in ("ratings", "responses")}
    authors |= {name.replace("alpha", "twin"): "twin" for name in authors}
    found = compared(both(scores, replace(scores, **tables)), authors, by=["clinicians"])
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
    found = compared(replace(scores, ratings=rated), authors, by=["clinicians"])
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
    for row in compared(replace(scores, rubrics=shapes), authors, criterion="accuracy").rows:
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
    ("wanted", "words"),
    [
        *(({"jurors": ()}, "there is no jury"), ({"by": ["experts"]}, "by=experts")),
        *(({"reps": 0}, "reps=0"), ({"seed": -1}, "seed=-1")),
    ],
)
def test_what_no_comparison_can_have_is_refused(wanted, words):
    with pytest.raises(BadInput, match=words):
        compared(*by_hand(), **({"jurors": ("gpt",)} | wanted))


def test_without_a_juror_means_are_the_clinicians_and_without_an_author_a_response_is_refused():
    ids = [f"r{n:03}" for n in range(300)]  # more than a byte numbers, as a list of names has
    given = {"response_id": pd.Categorical(ids, categories=ids), "composite": np.arange(300.0)}
    means = means_of_both(pd.DataFrame(given | {"kind": "clinician", "rater": "dr"}), (), 1)
    assert means["clinicians"].tolist() == [*range(300)]
    assert means["jury"].isna().all()
    scores, authors = by_hand()
    del authors["a0"]
    with pytest.raises(BadInput, match="1 responses, a0 first, have no author"):
        compared(scores, authors, jurors=("gpt",))


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


@pytest.mark.parametrize(("n", "silent"), [(20, 0), (3, 0), (10, 3), (10, 10)])
def test_where_clinicians_rated_everything_the_correction_is_their_mean_and_needs_no_jury(
    n, silent
):
    scores, authors = model_study(QUALITY, n=n, rated=n, bias={"gamma": 1.0})
    ids = scores.ratings["response_id"].isin([f"notes-{i}-alpha" for i in range(silent)])
    found = compared(without(scores, ids & (scores.ratings["kind"] == "juror")), authors)
    clinical, corrected = by_model(found, "clinicians"), by_model(found, "corrected")
    names = ["macro_average", "low", "high", "n_benchmarks", "n_responses", "n_missing", "n_rated"]
    if n == 20:
        names += ["win_rate", "macro_average_sd", "shared_rank_high"]
    for name in QUALITY:
        for field in names:
            assert getattr(corrected[name], field) == pytest.approx(getattr(clinical[name], field))


def test_a_benchmark_with_too_few_rated_instances_is_left_out_with_words_for_it():
    scores, authors = model_study(QUALITY, n=30, rated=10)
    rated = scores.ratings
    clinical = (rated["kind"] == "clinician") & (rated["benchmark"] == "notes")
    three = sorted(set(rated[clinical]["instance_id"]))[:3]
    found = compared(without(scores, clinical & ~rated["instance_id"].isin(three)), authors)
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


NOISE = 0.4  # of responses and clinicians; two of these rate each of two models' 60 responses:
POWERED = 2.8 * NOISE * np.sqrt(2 * (1 + 1 / 2)) / np.sqrt(60)


def close_models():
    """Two models, of which the first is rated a little higher."""
    quality = {"alpha": 3.05, "beta": 3.0}
    return model_study(quality, benchmarks=("notes",), n=40, rated=40, seed=1, noise=0.7)


def test_a_model_whose_interval_includes_0_does_not_lead():
    found = compared(*close_models(), by=[CLINICIANS])
    first, second = found.rows
    (pair,) = found.differences
    assert pair.low < 0 < pair.high
    for row, other in ((first, "beta"), (second, "alpha")):
        assert (row.shared_rank_low, row.shared_rank_high) == (1, 2)
        assert row.not_told_apart == (other,)
    assert found.decision.kind is DecisionKind.INCONCLUSIVE
    assert found.decision.headline == "No model is shown to lead."
    assert found.decision.reasons[0]["p"] == pair.p_holm > 0.05
    assert found.decision.next.code == "do_rate_more_of_each"
    table = model_table(found.rows, TERMINAL)
    assert [row[1] for row in table.groups[0].rows] == ["1 to 2", "1 to 2"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "rated", "by"),
    [(6, 6, CLINICIANS), (60, 60, CLINICIANS), (60, 8, CORRECTED), (60, 25, CORRECTED)],
)
def test_equal_models_differ_at_5_percent_in_5_percent_of_studies(n, rated, by):
    equal, studies = {"alpha": 3.0, "beta": 3.0}, 400
    told_apart = []
    for seed in range(studies):
        study = model_study(equal, benchmarks=("notes",), n=n, rated=rated, seed=seed, noise=NOISE)
        table = model_scores(*study, ("gpt", "llama"))
        (pair,) = difference_rows(estimate(table, by))
        told_apart.append(pair.p_holm < 0.05)
    two_errors = 2 * np.sqrt(0.05 * 0.95 / studies)
    assert np.mean(told_apart) == pytest.approx(0.05, abs=two_errors)


APART = {"alpha": 3 + POWERED, "beta": 3.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quality", "n", "least", "most"),
    [(APART, 60, 0.725, 0.855), (dict.fromkeys("abcde", 3.0), 30, 0, 0.06)],
)
def test_2_8_standard_errors_apart_a_model_leads_in_80_percent_and_of_five_equal_in_5_at_most(
    quality, n, least, most
):
    design = {"benchmarks": ("notes",), "n": n, "rated": n, "noise": NOISE}
    studies = (model_study(quality, seed=seed, **design) for seed in range(200))
    kinds = [compared(*study, by=[CLINICIANS], reps=40).decision.kind for study in studies]
    assert least <= np.mean([kind is DecisionKind.TOLD_APART for kind in kinds]) <= most


def test_a_model_that_can_be_told_apart_from_all_others_leads(all_rated):
    found = compared(*all_rated, by=[CLINICIANS])
    decision, rows = found.decision, by_model(found, CLINICIANS)
    assert decision.kind is DecisionKind.TOLD_APART
    assert decision.headline.startswith("alpha leads: ")
    apart = rows["alpha"].macro_average - rows["beta"].macro_average
    assert decision.estimate == pytest.approx(apart)
    assert 0 < decision.low < apart < decision.high
    assert rows["alpha"].not_told_apart == ()
    assert [rows[name].shared_rank_high for name in QUALITY] == [1, 2, 3]
    assert decision.next is None
    ranks = model_table(found.rows, TERMINAL).groups[0].rows
    assert [row[1] for row in ranks] == ["1", "2", "3"]
    differences = difference_table(found.differences, TERMINAL)
    assert differences.caption.endswith("minus another's, by clinicians")
    pairs = [("alpha", "beta"), ("alpha", "gamma"), ("beta", "gamma")]
    assert [row[:2] for group in differences.groups for row in group.rows] == pairs
    (basis,) = decision.basis
    assert (basis["models"], basis["benchmarks"], basis["responses"]) == (3, 2, 360)


def test_the_difference_and_its_interval_are_those_of_the_paired_t_test():
    scores, authors = close_models()
    found = compared(scores, authors, by=[CLINICIANS])
    given = by_instance(model_scores(scores, authors, ()), CLINICIANS)
    paired = stats.ttest_rel(given[0], given[1])
    (pair,) = found.differences
    assert (pair.first, pair.second, pair.instances) == ("alpha", "beta", 40)
    assert pair.difference == pytest.approx((given[0] - given[1]).mean())
    ends = paired.confidence_interval()
    assert (pair.low, pair.high, pair.p) == pytest.approx((ends.low, ends.high, paired.pvalue))


def test_an_error_is_the_one_by_leaving_out_each_instance_where_responses_are_uneven():
    scores, authors = close_models()
    every = model_scores(scores, authors, ())
    frame = every[np.random.default_rng(3).random(len(every)) < 0.7]
    frame = pd.concat([frame, frame.iloc[::3]], ignore_index=True)  # some instances have several

    def apart(own):
        means = own.groupby("model")[CLINICIANS].mean()
        return means["alpha"] - means["beta"]

    left = [apart(frame[frame["instance"] != one]) for one in frame["instance"].unique()]
    error = np.sqrt((len(left) - 1) * np.var(left))
    (pair,) = difference_rows(estimate(frame, CLINICIANS))
    assert (pair.high - pair.low) / 2 / error == pytest.approx(2.05, rel=0.05)


def test_p_is_corrected_for_all_pairs_of_models_of_one_way_of_scoring():
    found = compared(*model_study(dict.fromkeys("abcd", 3.0), n=30, rated=30))
    for way in WAYS:
        own = [row for row in found.differences if row.by == way]
        assert len(own) == 6
        p = [row.p for row in own]
        assert [row.p_holm for row in own] == holm(np.array(p)).tolist()
        assert min(row.p_holm for row in own) == pytest.approx(min(1, 6 * min(p)))


def test_fewer_than_twenty_instances_decide_nothing():
    far = {"alpha": 4.0, "beta": 2.0}
    decision = compared(*model_study(far, n=19, rated=19), by=[CLINICIANS]).decision
    assert decision.kind is DecisionKind.TOO_FEW
    assert decision.low > 0
    assert decision.next["instances"] == 19
    assert compared(*model_study(far, n=20, rated=20)).decision.kind is DecisionKind.TOLD_APART


def test_a_jury_that_favours_a_model_does_not_make_it_lead():
    found = compared(*model_study(QUALITY, bias={"gamma": 0.9}, n=100, rated=30, seed=1))
    assert by_model(found, JURY)["gamma"].shared_rank_high == 1
    assert found.decision.names == ("alpha",)
    assert found.decision.basis[0]["by"] == CORRECTED


@pytest.fixture(scope="module")
def all_rated():
    return model_study(QUALITY, n=60, rated=60)


def lost(pattern):
    """Return what takes the ratings of responses with such ids out of scores."""
    return lambda scores: without(scores, scores.ratings["response_id"].str.fullmatch(pattern))


def robots(scores):
    return replace(scores, simulated=frozenset(["dr_a"]))


GAMMA = {"models": ["gamma"]}
LETTERS = lost(r"letters-\d+-gamma")


@pytest.mark.parametrize(
    ("change", "by", "kind", "reason", "named", "todo"),
    [
        (robots, [CLINICIANS], "simulated", "simulated", {"raters": ["dr_a"]}, "do_real_raters"),
        (replace, [JURY], "inconclusive", "by_jury_alone", {}, "do_compare_with_clinicians"),
        (
            LETTERS,
            [CLINICIANS],
            "inconclusive",
            "other_benchmarks",
            GAMMA,
            "do_score_same_benchmarks",
        ),
        (lost(".*-gamma"), WAYS, "told_apart", "not_ranked", GAMMA, None),
    ],
)
def test_what_keeps_a_model_from_leading_and_what_is_left_out_is_named(
    all_rated, change, by, kind, reason, named, todo
):
    scores, authors = all_rated
    decision = compared(change(scores), authors, by=by).decision
    assert (decision.kind.value, decision.next and decision.next.code) == (kind, todo)
    told = next(one for one in decision.reasons if one.code == reason)
    assert named.items() <= json_value(told).items()


def _rows(by, macro, win_rates, gaps, notes=(), lacking=()):
    """Return rows of models with these figures, and the standings that follow from the gaps."""
    rows = []
    for name, (low, high, alike) in standings(win_rates, gaps).items():
        place = {"shared_rank_low": low, "shared_rank_high": high, "not_told_apart": alike}
        place |= {"without": ("letters",) if name in lacking else (), "notes": notes}
        own = {"macro_average": macro[name], "win_rate": win_rates[name]}
        rows.append(model_row(name, by, **own, **place))
    return sorted(rows, key=lambda row: (-row.win_rate, -row.macro_average))


SHARES = some.sampled_from([n / 20 for n in range(21)])
SIMULATED = (note("simulated", "simulated", raters=["robot"]),)
IN_DOUBT = (note("not_random", "not_random", benchmarks=[("notes", 0.5)]),)


@some.composite
def differences_of(draw, by, macro, rates, lacking):
    """Draw differences as the macro-averages have them, with any intervals that hold them."""
    pairs = []
    in_order = sorted(macro, key=lambda name: (-macro[name], -rates[name]))
    for first, second in combinations(in_order, 2):
        if (first in lacking) != (second in lacking):
            continue  # not on the same benchmarks
        difference = macro[first] - macro[second]
        low, high = difference - draw(SHARES), difference + draw(SHARES)
        p = 0.01 if low > 0 else 0.3
        p_holm = draw(some.sampled_from([p, 0.4]))
        instances = draw(some.sampled_from([1, 19, 20, 60]))
        pairs.append(DifferenceRow(by, first, second, difference, low, high, p, p_holm, instances))
    return pairs


@some.composite
def comparisons(draw):
    """Draw rows and differences of some models by some ways of scoring."""
    names = [f"model-{n}" for n in range(draw(some.integers(2, 4)))]
    rows, gaps = [], []
    for by in draw(some.sampled_from([WAYS, WAYS[:1], WAYS[1:2], WAYS[2:], WAYS[:2]])):
        macro = {name: draw(SHARES) for name in names}
        lacking = draw(some.sampled_from([(), (), names[:1], names[-1:]]))
        rates = {name: draw(SHARES) for name in names}
        own = draw(differences_of(by, macro, rates, lacking))
        notes = draw(some.sampled_from([(), (), SIMULATED, IN_DOUBT if by == CORRECTED else ()]))
        rows += _rows(by, macro, rates, own, notes, lacking)
        gaps += own
    return rows, gaps


def holds(decision: Decision, rows, gaps):
    """Assert what must hold of any decision on models."""
    leads = decision.kind is DecisionKind.TOLD_APART
    assert (" leads: " in decision.headline) is leads
    if not leads:
        assert not any(row.model in decision.headline for row in rows)
        return
    by, (leader,) = decision.basis[0]["by"], decision.names
    own = [row for row in rows if row.by == by and row.shared_rank_low is not None]
    assert by != JURY
    assert not any(row.simulated for row in own)
    assert 0 < decision.low <= decision.estimate
    every = [gap for gap in gaps if (gap.by, gap.first) == (by, leader)]
    assert {gap.second for gap in every} == {row.model for row in own} - {leader}
    assert all(gap.low > 0 for gap in every)
    assert all(gap.instances >= 20 for gap in every)
    first = next(row for row in own if row.model == leader)
    assert (first.shared_rank_low, first.shared_rank_high) == (1, 1)
    assert first.not_told_apart == ()
    assert all(row.shared_rank_low > 1 for row in own if row is not first)
    assert decision.estimate == pytest.approx(
        first.macro_average - max(row.macro_average for row in own if row is not first)
    )


@settings(deadline=None, max_examples=400)
@given(comparisons())
def test_no_decision_contradicts_its_figures(drawn):
    rows, gaps = drawn
    decision = decide(rows, gaps)
    holds(decision, rows, gaps)
    assert decision.sentences
    assert decision.on
    assert decision.next or decision.kind is DecisionKind.TOLD_APART
    for row in rows:
        assert row.shared_rank_low <= row.shared_rank_high


def test_where_the_rated_responses_are_chosen_the_clinicians_decide_and_it_is_said():
    scores, authors = model_study(QUALITY, n=80, rated=80)
    jury = scores.ratings[scores.ratings["kind"] == "juror"].groupby("response_id")["score"].mean()
    worst = set(jury[jury < jury.quantile(0.4)].index)
    clinical = scores.ratings["kind"] == "clinician"
    chosen = without(scores, clinical & scores.ratings["response_id"].isin(worst))
    found = compared(chosen, authors)
    assert found.decision.basis[0]["by"] == CLINICIANS
    assert "not_random" in codes(found.decision)
    alone = compared(chosen, authors, by=[CORRECTED]).decision
    assert alone.kind is not DecisionKind.TOLD_APART


@pytest.mark.parametrize(
    ("p_holm", "rates", "code"),
    [
        (0.12, {"alpha": 0.6, "beta": 0.4}, None),  # apart alone, but not among all pairs
        (0.001, {"alpha": 0.4, "beta": 0.6}, "win_rate_elsewhere"),
    ],
)
def test_a_pair_whose_interval_excludes_0_may_still_not_lead(p_holm, rates, code):
    pair = DifferenceRow(CLINICIANS, "alpha", "beta", 0.2, 0.01, 0.39, 0.001, p_holm, 60)
    decision = decide(_rows(CLINICIANS, {"alpha": 0.7, "beta": 0.5}, rates, [pair]), [pair])
    assert decision.kind is DecisionKind.INCONCLUSIVE
    if code:
        assert code in codes(decision)
        assert decision.next.code == "do_see_benchmarks"
    else:
        assert decision.reasons[0]["p"] == p_holm


@pytest.mark.parametrize(
    ("change", "order"),
    [
        *((np.exp, slice(None)), (lambda x: 10 * x + np.arange(7), slice(None))),
        *((lambda x: x[[3, 0, 4, 1, 2]], [3, 0, 4, 1, 2]), (lambda x: x[:, ::-1], slice(None))),
    ],
    ids=["monotone", "scale, and shift a benchmark", "models turned", "benchmarks turned"],
)
def test_what_keeps_the_order_on_every_benchmark_changes_no_win_rate(change, order):
    means = table(missing=0.2, seed=3)
    assert win_rates(change(means)) == pytest.approx(win_rates(means)[order], nan_ok=True)
