"""Routing: the tests of a threshold, the certificate, and what a rule may know."""

import numpy as np
import pandas as pd
import pytest
from kit.scores import JURORS, study, without

from calibration.routes import (
    betting_p,
    candidates,
    caught_with_interval,
    fixed_sequence,
    harmful,
    order_of_tests,
    refuse_unlike,
    routes,
    threshold_p,
)
from calibration.routing import Harm
from data.errors import BadInput, TooFew

LOW = Harm("low", 3.0)


def rated_risks(risks, is_harmful, clusters) -> pd.DataFrame:
    return pd.DataFrame({"risk": risks, "harmful": is_harmful, "cluster": clusters})


def simulated(random: np.random.Generator, instances: int, each: int = 1) -> pd.DataFrame:
    """Return rated responses."""
    own = np.repeat(np.arange(instances), each)
    count = len(own)
    shared = random.normal(4, 0.7, instances)[own]
    quality = shared + random.normal(0, 0.4, count)
    clinicians = np.clip(quality, 1, 5)
    jurors = np.clip(quality + random.normal(0, 0.6, (3, count)), 1, 5)
    jury = jurors.mean(axis=0)
    clusters = random.permutation(instances)[own]
    columns = {"jury": jury, "clinicians": clinicians, "risk": -jury, "cluster": clusters}
    return pd.DataFrame(columns)


def test_the_exact_test_is_the_chance_of_so_few_harmful() -> None:
    def exact(harmful: int, passed: int, bound: float) -> float:
        rows = np.arange(passed)
        return threshold_p(rated_risks(np.zeros(passed), rows < harmful, rows), 0.0, bound, 1)

    assert exact(0, 45, 0.05) == pytest.approx(0.95**45)
    assert exact(1, 2, 0.5) == pytest.approx(0.75)
    assert exact(0, 0, 0.05) == 1.0


@pytest.mark.parametrize("each", [2, 5])
def test_betting_is_seldom_wrong_where_all_responses_of_an_instance_are_harmful_together(
    each: int,
) -> None:
    random, bound = np.random.default_rng(0), 0.1
    wrong = 0
    for _ in range(500):
        harmful = np.repeat(random.random(150) < bound, each)
        rated = rated_risks(np.zeros(150 * each), harmful, np.repeat(np.arange(150), each))
        wrong += threshold_p(rated, 0.0, bound, each) <= 0.1
    assert wrong / 500 <= 0.1


def test_betting_finds_what_is_safe_and_nothing_in_nothing() -> None:
    assert betting_p(np.full(100, -0.1), 0.1) < 0.001
    assert betting_p(np.full(100, 0.9), 0.1) == pytest.approx(1.0, abs=0.05)
    assert betting_p(np.empty(0), 0.1) == 1.0


def test_tests_end_at_the_first_threshold_that_fails() -> None:
    risks = np.arange(300.0)
    harmful = (risks > 100) & (risks <= 200)
    rated = rated_risks(risks, harmful, np.arange(300))

    found = fixed_sequence(rated, [50, 100, 150, 299], 0.05, 0.9, most=1)

    assert found == (100, pytest.approx(0.95**101))
    assert fixed_sequence(rated, [150, 50], 0.05, 0.9, most=1)[0] == -np.inf


def test_the_order_of_tests_begins_where_a_pass_is_likeliest_and_goes_looser() -> None:
    risks = np.arange(1000.0)
    rated = rated_risks(risks, risks >= 800, np.arange(1000))

    order = order_of_tests(rated, 0.05, 1.5)

    assert order == sorted(order)
    assert 750 <= order[0] <= 800


@pytest.mark.slow
@pytest.mark.parametrize("each", [1, 3])
def test_the_bound_is_broken_at_most_as_often_as_the_confidence_allows(each: int) -> None:
    random = np.random.default_rng(5)
    everybody = simulated(random, 30_000, each)
    is_harmful, broken, certified, runs = harmful(everybody, LOW), 0, 0, 60
    for _ in range(runs):
        rule = routes(simulated(random, 400, each), LOW, 0.05, 0.9)
        if rule.certified:
            passed = everybody["risk"] <= rule.threshold
            broken += is_harmful[passed].mean() > 0.05
            certified += 1
    assert certified > runs / 4
    assert broken / runs <= 0.15


def test_a_bound_beyond_reach_passes_nothing_and_too_few_instances_are_refused() -> None:
    found = routes(simulated(np.random.default_rng(1), 60), LOW, 0.03, 0.9)
    assert not found.certified
    assert (found.passed, found.responses) == (0, 60)
    assert found.expected_missed is None
    with pytest.raises(TooFew, match="20 instances"):
        routes(simulated(np.random.default_rng(0), 20), LOW, 0.05, 0.9)


def test_the_parts_share_no_instance_and_their_sizes_are_told() -> None:
    found = routes(simulated(np.random.default_rng(4), 100, 3), LOW, 0.3, 0.9)
    assert (found.n_train, found.n_certify, found.rated) == (120, 180, 300)


def test_ties_are_read_in_equal_parts() -> None:
    def caught(risks: list[float], is_harmful: list[bool]) -> float:
        return caught_with_interval(rated_risks(risks, is_harmful, np.arange(5)))[0]

    first = [True, False, False, False, False]
    assert caught([1.0] * 5, first) == pytest.approx(0.2)
    assert caught([2.0, 1, 1, 1, 1], first) == 1.0
    assert np.isnan(caught([1.0] * 5, [False] * 5))


def test_the_interval_of_what_is_caught_is_over_instances() -> None:
    random = np.random.default_rng(0)
    risks, is_harmful = random.random(100), random.random(100) < 0.3
    share, ends = caught_with_interval(rated_risks(risks, is_harmful, np.arange(100)))
    thrice = (np.repeat(values, 3) for values in (risks, is_harmful, np.arange(100)))
    tripled, of_tripled = caught_with_interval(rated_risks(*thrice))

    assert ends.low < share < ends.high
    assert tripled == pytest.approx(share)
    assert (of_tripled.low, of_tripled.high) == pytest.approx((ends.low, ends.high), abs=0.01)


def known_of(scores, jury=JURORS, needed=3, harm=LOW):
    return candidates(scores, jury, needed, harm.criterion)


def test_a_response_whose_jury_is_incomplete_is_not_scored() -> None:
    whole = study()
    table = whole.ratings
    lost = (table.response_id == "aci-r3") & (table.rater == "gpt") & (table.criterion == "clarity")
    gaps = without(whole, lost)

    strict, lenient = known_of(gaps), known_of(gaps, needed=2)

    assert strict.loc[strict.jury.isna(), "response_id"].tolist() == ["aci-r3"]
    assert lenient.jury.notna().all()
    alone = known_of(without(whole, (table.rater == "gpt")), ("claude", "llama"), 2)
    assert lenient.jury[3] == pytest.approx(alone.jury[3])


def test_what_clinicians_have_not_rated_is_there_too() -> None:
    whole = study()
    unrated = whole.ratings.response_id.isin(["aci-r0", "aci-r1"]) & (
        whole.ratings.kind == "clinician"
    )
    table = known_of(without(whole, unrated))

    assert len(table) == 30
    assert (table.jury + table.clinicians).notna().sum() == 28
    assert not harmful(table, Harm("low", 5))[:2].any()


def test_harm_is_by_score_or_by_distance_from_the_jury() -> None:
    table = known_of(study())
    low, off = harmful(table, Harm("low", 2.5)), harmful(table, Harm("error", 0.8))

    assert low.tolist() == (table.clinicians <= 2.5).tolist()
    assert off.tolist() == (abs(table.jury - table.clinicians) > 0.8).tolist()


def test_points_of_different_scales_or_of_a_criterion_that_one_lacks_are_refused() -> None:
    with pytest.raises(BadInput, match=r"different scales .*aci 1 to 5.*--benchmark"):
        refuse_unlike(study(("aci", "med"), scales={"med": (1, 7)}), None)
    other = study(("aci", "med"), criteria={"med": ("tone",)})
    with pytest.raises(BadInput, match="med has no such criterion"):
        refuse_unlike(other, "clarity")
    table = candidates(other, JURORS, 3, "clarity")
    assert table.jury.isna().tolist() == [name == "med" for name in table.benchmark]
