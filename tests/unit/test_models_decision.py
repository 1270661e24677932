"""Whether a model leads: known cases, and what no decision may ever say, over random comparisons."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from kit.model_study import QUALITY, by_instance, by_model, compared, model_row, model_study
from scipy import stats

from calibration.decision import Decision, DecisionKind
from calibration.differences import holm
from calibration.json_values import decision_json
from calibration.models import decide, difference_rows, estimate, model_scores, standings
from calibration.notes import note
from calibration.scores import Scores
from calibration.tables.models import CLINICIANS, CORRECTED, JURY, WAYS, DifferenceRow, model_table
from calibration.tables.numbers import TERMINAL

CLOSE = {"alpha": 3.2, "beta": 3.0}
NOISE = 0.4  # of responses and clinicians; two of these rate each of two models' 60 responses:
POWERED = 2.8 * NOISE * np.sqrt(2 * (1 + 1 / 2)) / np.sqrt(60)


def close_models(alpha=3.05):
    """Two models, of which the first is rated a little higher."""
    quality = CLOSE | {"alpha": alpha}
    return model_study(quality, benchmarks=("notes",), n=40, rated=40, seed=1, noise=0.7)


def codes(decision):
    return [one.code for one in decision.reasons]


def without(scores, drop):
    """Return scores without the ratings for which `drop` is True."""
    return Scores(scores.ratings[~drop], scores.responses, scores.rubrics, scores.simulated)


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


def told_apart(studies, quality, **design):
    """Return in what share of studies a model is said to lead by clinicians' scores."""
    kinds = [
        compared(
            *model_study(quality, benchmarks=("notes",), seed=seed, **design),
            by=[CLINICIANS],
            reps=40,
        ).decision.kind
        for seed in range(studies)
    ]
    return np.mean([kind is DecisionKind.TOLD_APART for kind in kinds])


@pytest.mark.slow
def test_models_that_are_2_8_standard_errors_apart_are_told_apart_in_80_percent():
    apart = {"alpha": 3 + POWERED, "beta": 3.0}
    assert 0.72 < told_apart(200, apart, n=60, rated=60, noise=NOISE) < 0.86


@pytest.mark.slow
def test_of_five_equal_models_one_is_said_to_lead_in_no_more_than_5_percent():
    assert told_apart(200, dict.fromkeys("abcde", 3.0), n=30, rated=30) <= 0.06


def test_a_model_that_can_be_told_apart_from_all_others_leads():
    found = compared(*model_study(QUALITY, n=60, rated=60), by=[CLINICIANS])
    decision, rows = found.decision, by_model(found, CLINICIANS)
    assert decision.kind is DecisionKind.TOLD_APART
    assert decision.headline.startswith("alpha leads: ")
    apart = rows["alpha"].macro_average - rows["beta"].macro_average
    assert decision.estimate == pytest.approx(apart)
    assert 0 < decision.low < apart < decision.high
    assert rows["alpha"].not_told_apart == ()
    assert [rows[name].shared_rank_high for name in QUALITY] == [1, 2, 3]
    assert decision.next is None
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


def test_simulated_raters_are_no_evidence_that_a_model_leads():
    scores, authors = model_study(QUALITY, n=60, rated=60, simulated=["dr_a"])
    decision = compared(scores, authors, by=[CLINICIANS]).decision
    assert decision.kind is DecisionKind.SIMULATED
    assert decision.reasons[0] == note("simulated", "simulated", raters=["dr_a"])


def test_by_the_jury_alone_no_model_leads():
    decision = compared(*model_study(QUALITY, n=60, rated=60), by=[JURY]).decision
    assert decision.kind is DecisionKind.INCONCLUSIVE
    assert "by_jury_alone" in codes(decision)
    assert decision.next.code == "do_compare_with_clinicians"


def test_a_jury_that_favours_a_model_does_not_make_it_lead():
    found = compared(*model_study(QUALITY, bias={"gamma": 0.9}, n=100, rated=30, seed=1))
    assert by_model(found, JURY)["gamma"].shared_rank_high == 1
    assert found.decision.names == ("alpha",)
    assert found.decision.basis[0]["by"] == CORRECTED


def test_a_model_on_other_benchmarks_keeps_any_from_leading_and_is_named():
    scores, authors = model_study(QUALITY, n=60, rated=60)
    lost = scores.ratings["response_id"].str.fullmatch(r"letters-\d+-gamma")
    decision = compared(without(scores, lost), authors, by=[CLINICIANS]).decision
    assert decision.kind is DecisionKind.INCONCLUSIVE
    other = next(one for one in decision.reasons if one.code == "other_benchmarks")
    assert other["models"] == ("gamma",)
    assert decision.next.code == "do_score_same_benchmarks"


def test_a_model_without_scores_is_left_out_and_named():
    scores, authors = model_study(QUALITY, n=60, rated=60)
    lost = scores.ratings["response_id"].str.endswith("-gamma")
    decision = compared(without(scores, lost), authors).decision
    assert decision.kind is DecisionKind.TOLD_APART
    assert decision.reasons[-1] == note("not_ranked", "not_ranked", models=["gamma"])


def _rows(by, macro, win_rates, gaps, notes=(), lacking=()):
    """Return rows of models with these figures, and the standings that follow from the gaps."""
    places = standings(win_rates, gaps)
    rows = [
        model_row(
            name,
            by,
            macro_average=macro[name],
            win_rate=rate,
            shared_rank_low=places[name][0],
            shared_rank_high=places[name][1],
            not_told_apart=places[name][2],
            without=("letters",) if name in lacking else (),
            notes=notes,
        )
        for name, rate in win_rates.items()
    ]
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


def test_a_single_model_leads_nobody():
    decision = compared(*model_study({"alpha": 3.0}, n=25, rated=25)).decision
    assert (decision.kind, decision.names) == (DecisionKind.UNDEFINED, ())
    assert decision_json(decision)["estimate"] is None
