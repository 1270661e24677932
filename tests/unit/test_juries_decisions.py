"""Every composition of jurors, which jury to take, which of two agrees better, and what is expected of the chosen one."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.composites import METHODS, NAN, simulate
from kit.scores import codes, note_of, scope_of

from calibration import juries
from calibration.bootstrap import draw_counts
from calibration.columns import PanelColumns, column_icc, columns
from calibration.decision import CLAIMS, Decision, DecisionKind
from calibration.differences import DifferenceRow, difference_rows
from calibration.icc import icc_consistency
from calibration.json_values import decision_json
from calibration.jury_decisions import (
    ALIKE,
    candidates,
    compared_juries,
    recommendation,
    recommended_jurors,
    with_verdict,
)
from calibration.notes import note
from calibration.raters import value_rows
from data.errors import BadInput, TooFew

FIRST, SECOND = ("a", "b"), ("c",)
CLEAR = {"difference": 0.2, "low": 0.1, "high": 0.3, "p": 0.001, "n_tried": 10}


def difference(*notes, **figures) -> DifferenceRow:
    given = {"icc_a": 0.6, "icc_b": 0.4, "n_responses": 60} | CLEAR | figures
    return DifferenceRow("aci", "jury", "jury:c", **given, notes=notes)


def decided(*notes, **figures) -> Decision:
    return compared_juries(difference(*notes, **figures), FIRST, SECOND)


def test_how_many_comparisons_were_tried_decides_nothing():
    figures = {"difference": 0.315, "low": 0.02, "high": 0.6, "p": 0.04}
    alone, among = decided(**figures, n_tried=1), decided(**figures, n_tried=20)
    assert alone.kind is among.kind is DecisionKind.FIRST_BETTER
    assert (alone.p, among.p) == (0.04, 0.04)
    assert "20 different comparisons" in among.sentences[1]


CLAIM = {FIRST: DecisionKind.FIRST_BETTER, SECOND: DecisionKind.SECOND_BETTER}


@pytest.mark.parametrize("better", CLAIM)
def test_a_difference_that_is_shown_is_claimed_of_the_jury_that_has_it(better):
    turned = {"difference": -0.2, "low": -0.3, "high": -0.1}
    found = decided(**turned if better is SECOND else {})
    assert (found.kind, found.next["jurors"]) == (CLAIM[better], better)


SIMULATED = note("simulated", "simulated", raters=["sim"])
NO_P = {"low": NAN, "high": NAN, "p": NAN}
SMALL, EQUAL = {"difference": 0.001, "low": -0.1, "p": 0.9}, {"low": 0.0, "high": 0.0, "p": 1.0}
TOO_FEW = note("too_few_responses", "too_few_responses", responses=2, least=3)
SHARED = "do_shared_responses"
FEW_FOR_P = note("too_few_for_p", "too_few_for_p", instances=19)


@pytest.mark.parametrize(
    ("notes", "figures", "kind", "why", "todo"),
    [
        ([SIMULATED], {}, "simulated", "made_up", "do_real_raters"),
        ([TOO_FEW], NO_P | {"difference": NAN}, "undefined", "too_few_responses", SHARED),
        ([FEW_FOR_P], {}, "too_few", "few_to_trust", "do_more_instances"),
        ([], NO_P, "too_few", "no_interval", SHARED),
        ([], {"low": -0.1, "p": 0.2}, "inconclusive", "none_shown", "do_more_responses"),
        ([], SMALL, "inconclusive", "none_shown", "do_cheaper_jury"),
        ([], EQUAL | {"difference": 0.0}, "inconclusive", "none_shown", "do_cheaper_jury"),
    ],
)
def test_what_shows_nothing_says_why_and_what_would_show_it(notes, figures, kind, why, todo):
    found = decided(*notes, **figures)
    assert (found.kind.value, found.next.code) == (kind, todo)
    assert why in codes(found)


numbers = st.floats(-2, 2) | st.just(NAN)
chances = st.floats(0, 1) | st.just(NAN)
BOTH = note("only_both", "only_both", first="jury", of_first=60, second="jury:c", of_second=30)
KNOWN = [SIMULATED, FEW_FOR_P, note("no_test", "no_test"), BOTH]
notes_on_it = st.lists(st.sampled_from(KNOWN), max_size=3)


@given(
    value=numbers,
    ends=st.tuples(numbers, numbers).map(sorted),
    p=chances,
    n_tried=st.integers(0, 3000),
    notes=notes_on_it,
)
def test_no_headline_contradicts_its_interval_its_p_or_its_raters(value, ends, p, n_tried, notes):
    given = difference(*notes, difference=value, low=ends[0], high=ends[1], p=p, n_tried=n_tried)
    found = compared_juries(given, FIRST, SECOND)
    assert all(found.sentences)
    assert found.action
    assert found.on
    if found.kind in CLAIMS:
        assert p <= 0.05
        first, second = (found.kind is one for one in (CLAIM[FIRST], CLAIM[SECOND]))
        assert (ends[0] > 0, ends[1] < 0, value > 0) == (first, second, first)
        assert not given.simulated
        assert not given.told("too_few_for_p")


def row(jurors, icc, low=0.3, usd=None, **other):
    figures = {"icc": icc, "low": low, "high": 0.99, "usd_per_response": usd}
    figures |= {"n_responses": 60, "n_instances": 40}
    return juries.JuryRow(tuple(jurors), len(jurors), **figures | other)


def ranked(*sized, honest):
    """Return a ranking from the best jury of each size, its expected ICC and number of rivals."""
    rows = []
    for place, (one, icc, rivals) in enumerate(sorted(sized, key=lambda one: -one[0].icc)):
        expected = {"icc_honest": icc if place or rivals == 1 else honest}
        expected |= {"honest_low": one.low, "honest_high": one.high}
        rows.append(replace(one, rank=place + 1, **expected))
    pool = tuple({name for one in rows for name in one.jurors})
    return juries.Ranking(pool=pool, sizes=range(1, 4), rows=tuple(rows), n_responses=60)


def three(*known):
    """Return the best jury of one, of two and of three jurors by its ICC and its expected one."""
    pairs = zip(("a", "ab", "abc"), known, (3, 3, 1), strict=True)
    return [(row(jurors, icc), expected, rivals) for jurors, (icc, expected), rivals in pairs]


CHEAP = (row("bc", 0.81, usd=0.002), 0.805, 3)


@pytest.mark.parametrize(
    ("sized", "honest", "name", "estimate", "reasons", "todo"),
    [
        (  # worth 0.302, not 0.365: the best of many; all three are no better, nor is one alone
            three((0.31, 0.25), (0.365, 0.33), (0.29, 0.29)),
            *(0.302, "a, b", 0.302, ["expected_chosen", "costs_unknown"], "do_confirm_jury"),
        ),
        (  # choosing brings nothing
            three((0.57, 0.51), (0.63, 0.58), (0.62, 0.62)),
            *(0.56, "a, b, c", 0.62, ["expected_whole", "choosing_expected"], "do_calibrate_jury"),
        ),
        (  # as good as the best, and the smallest
            three((0.822, 0.823), (0.823, 0.824), (0.81, 0.81)),
            *(0.826, "a", 0.823, ["expected_chosen", "as_good"], "do_confirm_jury"),
        ),
        (  # as good as the best, and the cheapest
            [(row("a", 0.80, usd=0.05), 0.80, 3), CHEAP],
            *(0.806, "b, c", 0.806, ["expected_chosen", "costs"], "do_confirm_jury"),
        ),
        (  # costs are not known: the smallest
            [(row("a", 0.80), 0.80, 3), CHEAP],
            *(0.806, "a", 0.80, ["expected_chosen"], "do_confirm_jury"),
        ),
        (  # shown to agree, before one of which more is expected
            [(row("a", 0.5, -0.1), 0.45, 3), (row("abc", 0.4, 0.1), 0.4, 1)],
            *(0.44, "a, b, c", 0.4, ["expected_whole", "not_above_zero"], "do_calibrate_jury"),
        ),
    ],
)
def test_the_jury_that_is_recommended_and_what_is_expected_of_it(
    sized, honest, name, estimate, reasons, todo
):
    found = recommendation(ranked(*sized, honest=honest))
    assert found.kind is DecisionKind.RECOMMENDED
    assert (found.names, found.estimate) == ((name,), estimate)
    assert found.headline == f"Recommended jury: {name}."
    taken = next(one for one, *_ in sized if ", ".join(one.jurors) == name)
    assert (found.low, found.high) == (taken.low, 0.99)
    assert codes(found)[: len(reasons)] == reasons
    assert found.next.code == todo


@pytest.mark.parametrize("low", [-0.1, 0.0])
def test_a_jury_whose_interval_reaches_0_is_not_recommended(low):
    sized = (row("a", 0.4, low), 0.35, 3), (row("abc", 0.3, low), 0.3, 1)
    found = recommendation(ranked(*sized, honest=0.34))
    assert (found.kind, codes(found)[0]) == (DecisionKind.INCONCLUSIVE, "not_above_zero")
    assert found.headline == "No jury stands out: none is shown to agree with the clinicians."


def test_a_study_too_small_to_show_that_a_jury_agrees_is_sent_for_more_responses():
    found = recommendation(ranked((row("a", 0.3, -0.1), 0.3, 1), honest=0.3))
    assert found.kind is DecisionKind.INCONCLUSIVE
    assert found.next == note("do_more_to_choose", "do_more_to_choose", responses=107)
    none = recommendation(ranked((row("a", -0.02, -0.4), -0.02, 1), honest=-0.02))
    assert none.next == note("do_other_jurors", "do_other_jurors")


FEW = [
    ({"instances": 19}, "few_to_choose", "do_more_instances"),
    ({"instances": 19, "responses": 50}, "few_to_choose", "do_run_jury_on"),
    *(({"low": NAN}, "no_interval", SHARED), ({"lost": 21}, "icc_lost", SHARED)),
]


@pytest.mark.parametrize(("change", "why", "todo"), FEW)
def test_too_little_data_is_said_to_be_too_little(change, why, todo):
    known = {"instances": 20, "responses": 60, "low": 0.3, "lost": 20} | change
    lost = note("undefined_resamples", "", lost=known["lost"], resamples=2000)
    counts = {"n_instances": known["instances"], "n_responses": known["responses"]}
    one = row("a", 0.6, known["low"], notes=(lost,), **counts)
    found = recommendation(ranked((one, 0.6, 1), honest=0.6))
    assert (found.kind, codes(found)[0]) == (DecisionKind.TOO_FEW, why)
    assert found.next.code == todo


def test_nothing_is_recommended_without_an_expected_icc_or_any_or_of_simulated_jurors():
    table = simulate(jurors=2)
    table[3:, 3:], table[:3, :3] = NAN, 4.0
    for scope, sizes, kind, why in (
        (scope_of(simulate(), 3, reps=0), range(1, 3), DecisionKind.TOO_FEW, "no_expected"),
        (scope_of(table, 3, reps=20), None, DecisionKind.UNDEFINED, "same_score"),
        (scope_of(simulate(), 3, simulated=["j1"]), None, DecisionKind.SIMULATED, "made_up"),
    ):
        found = recommendation(juries.jury_ranking(scope, sizes))
        assert (found.kind, codes(found)[0]) == (kind, why)


def test_a_jurors_name_is_shown_whole_and_decides_nothing():
    forged = "x; simulated raters: nobody {0}"
    named = replace(row("a", 0.6), jurors=(forged,))
    found = recommendation(ranked((named, 0.6, 1), honest=0.6))
    assert found.kind is DecisionKind.RECOMMENDED
    assert found.headline == f'Recommended jury: "{forged}".'
    assert found.sentences[0].startswith(f'ICC(C,2) of "{forged}" with the clinicians: 0.600')


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(12, 60),
    jurors=st.integers(1, 4),
    signal=st.sampled_from([0.0, 0.3, 1.0]),
    lost=st.sampled_from([0.0, 0.1]),
    usd=st.lists(st.sampled_from([None, 0.0, 0.01, 0.3]), min_size=4, max_size=4),
)
def test_no_recommendation_contradicts_its_own_figures(seed, n, jurors, signal, lost, usd):
    random = np.random.default_rng(seed)
    table = simulate(n=n, jurors=jurors, seed=seed, lost=lost)
    table[:, 3:] = signal * table[:, 3:] + random.normal(size=(n, jurors))
    costs = {f"j{place}": one for place, one in enumerate(usd)}
    ranking = juries.jury_ranking(scope_of(table, 3, reps=40, seed=seed), usd=costs)
    decision = recommendation(ranking)
    json.dumps(decision_json(decision), allow_nan=False)
    if decision.kind is not DecisionKind.RECOMMENDED:
        return
    taken = next(one for one in candidates(ranking) if one.name == decision.names[0])
    known = {one.icc_honest for one in ranking.by_size}
    assert decision.estimate == taken.icc_honest > 0
    assert decision.estimate in known
    assert taken.honest_low > 0
    assert taken.n_instances >= 20
    sound = [one for one in candidates(ranking) if one.honest_low > 0 and one.icc_honest > 0]
    assert taken.icc_honest > max(one.icc_honest for one in sound) - ALIKE
    as_good = [one for one in sound if one.icc_honest > max(o.icc_honest for o in sound) - ALIKE]
    if all(one.usd_per_response is not None for one in as_good):
        assert taken.usd_per_response == min(one.usd_per_response for one in as_good)
    else:
        assert taken.size == min(one.size for one in as_good)


JUDGED = {"non_inferior": "recommended", "too_few": "inconclusive", "undefined": "inconclusive"}


@pytest.mark.parametrize("verdict", [*JUDGED, "no_protocol", "inferior", "inconclusive"])
def test_a_jury_is_recommended_only_where_the_studys_verdict_on_it_is_non_inferior(verdict):
    kind = JUDGED.get(verdict, verdict)
    ranking = ranked((row("a", 0.6), 0.6, 1), honest=0.6)
    found = with_verdict(recommendation(ranking), Decision("agreement", DecisionKind(verdict)))
    assert recommended_jurors(ranking) == ("a",)
    assert (found.kind.value, codes(found)[0] == "verdict_on") == (kind, kind != "recommended")
    assert all((found.headline, *found.sentences))


def test_what_is_not_recommended_anyway_is_not_judged():
    simulated = Decision("juries", DecisionKind.SIMULATED, names=("a",))
    assert with_verdict(simulated, Decision("agreement", DecisionKind.INFERIOR)) is simulated


def table(n, seed, *, spreads=(1.5,) * 7, per=1, ceiling=False):
    """Two clinicians, and jurors with these standard deviations of error."""
    random = np.random.default_rng([seed, n])
    instances = -(-n // per)
    share = 0.5 if per > 1 else 0.0
    quality = math.sqrt(share) * random.normal(size=instances)[np.arange(n) // per]
    quality += math.sqrt(1 - share) * random.normal(size=n)
    error = np.array([1.0, 1.0, *spreads]) * random.normal(size=(n, 2 + len(spreads)))
    scores = quality[:, None] + error
    return np.clip(np.rint(4 + scores), 1, 5) if ceiling else scores


def icc_of_z(drawn):
    return 1 - np.exp(-2 * np.asarray(drawn))


def test_luck_is_what_another_jury_at_the_rank_is_worse_by_on_what_was_not_drawn():
    # First of three alike in size is jury 1. Two resamples choose jury 0 and 1; what they left out has
    # z of 0.5, 0.7 and 0.6, then 0.4, 0.9 and NaN: 0.7 - 0.5 and 0.9 - 0.9 at the first rank.
    inside = icc_of_z([[0.9, 0.8, 0.7], [0.7, 0.9, 0.8]])
    outside = icc_of_z([[0.5, 0.7, 0.6], [0.4, 0.9, NAN]])
    total, number = juries.gained_by_luck(np.array([1, 0, 2]), np.full(3, 2), inside, outside)
    found = total / number
    assert found[1] == pytest.approx((0.2 + 0.0) / 2)
    assert found[3] == found[1]  # all are of one size: the best of it is the best of all
    assert found[0] == pytest.approx(0.5 - 0.7)  # the second resample has no z of the jury there
    assert found[2] == pytest.approx(0.0)


def test_the_expected_icc_takes_632_thousandths_of_the_luck_and_its_lower_end_all():
    drawn = icc_of_z(np.array([[0.9, 1.1, 0.8, 1.2]]))
    found = juries.expected_iccs(icc_of_z([1.0]), drawn, np.array([0.1]), 10)
    reach = 2.262157 * math.sqrt(10 / 9 * 0.025)  # t of 9 degrees; variance of the four
    assert found[:, 0] == pytest.approx(icc_of_z([1 - 0.0632, 0.9 - reach, 1 - 0.0632 + reach]))


def test_the_best_of_juries_that_differ_by_chance_is_expected_among_them_and_a_far_better_one_stays():
    alike = juries.jury_ranking(scope_of(table(60, 3), 2, reps=400), sizes=range(3, 4))
    assert alike.winner.icc_honest < alike.winner.icc - 0.02
    unlike = table(60, 3, spreads=(0.3, *[3.0] * 6))
    apart = juries.jury_ranking(scope_of(unlike, 2, reps=400), sizes=range(1, 2))
    assert apart.winner.jurors == ("j0",)
    assert apart.winner.icc_honest == pytest.approx(apart.winner.icc, abs=1e-12)


def test_the_best_of_all_sizes_is_judged_among_all_and_others_among_their_size():
    found = juries.jury_ranking(scope_of(table(40, 0, spreads=[1.5] * 3), 2))
    only = found.by_size[-1]
    others = [row for row in found.rows[1:] if row.size == 3]
    assert (only.size, found.of_size(3)) == (3, 1)
    assert (only.rank == 1) != bool(others)
    assert all(row.icc_honest == row.icc for row in others)


@pytest.mark.parametrize(
    ("icc", "row"), [(NAN, [0.5] * 4), (1.0, [0.5] * 4), (0.5, [NAN] * 3 + [0.5]), (0.5, [NAN] * 4)]
)
def test_a_jury_without_an_icc_or_with_too_few_resampled_has_no_expectation(icc, row):
    drawn = np.array([row, [0.4, 0.5, 0.6, 0.5], [0.3, 0.5, 0.4, 0.5]])
    found = juries.expected_iccs(np.array([icc, 0.5, 0.4]), drawn, np.zeros(3), 20)
    for ends in found:
        assert np.isnan(ends).tolist() == [True, False, False]


def test_a_jury_that_was_chosen_among_none_has_its_own_icc_and_one_instance_leaves_nothing_to_expect():
    scope = scope_of(table(40, 0, spreads=[1.5] * 3), 2)
    row = juries.jury_ranking(scope, sizes=range(3, 4)).winner
    assert row.icc_honest == pytest.approx(row.icc, abs=1e-12)
    assert row.honest_low < row.icc < row.honest_high
    found = juries.jury_ranking(scope_of(table(12, 0, spreads=[1.5] * 3), 2, per=12))
    assert math.isfinite(found.winner.icc)
    assert np.isnan([found.winner.icc_honest, found.winner.optimism]).all()
    assert np.isnan([found.winner.low, found.winner.honest_low]).all()


def true_iccs(rows, **how):
    """Return each jury's ICC with the clinicians from very many responses, by its jurors."""
    every = table(200_000, 99, **how)
    z = (every - every.mean(axis=0)) / every.std(axis=0)

    def true(jurors):
        own = z[:, [2 + int(name[1:]) for name in jurors]].mean(axis=1)
        return float(icc_consistency(np.column_stack([z[:, :2].mean(axis=1), own])))

    return {row.jurors: true(row.jurors) for row in rows}


def studies(n, times, **how):
    """Return of each study's winner its ICC, true ICC, expected one, and both ends, (times, 5)."""
    sizes = how.pop("sizes", range(1, 6))
    true, found = {}, []
    for seed in range(times):
        scope = scope_of(table(n, seed, **how), 2, per=how.get("per", 1), reps=200, seed=seed)
        rows = juries.jury_ranking(scope, sizes).rows
        true = true or true_iccs(rows, **how)
        best = rows[0]
        known = best.icc, true[best.jurors], best.icc_honest, best.honest_low, best.honest_high
        found.append(known)
    return np.array(found).T


GRADED = (0.8, 1.0, 1.2, 1.4, 1.6, 1.9, 2.2)
GOOD_THREE = (0.5, 0.5, 0.5, 1.5, 1.5, 1.5, 1.5)


@pytest.mark.slow
@pytest.mark.parametrize("n", [25, 56, 112, 300])
@pytest.mark.parametrize(
    "how",
    [
        *({}, {"sizes": range(3, 4)}, {"spreads": GRADED}, {"spreads": GOOD_THREE}),
        *({"spreads": GRADED, "ceiling": True}, {"ceiling": True}),
        {"spreads": [1.5] * 3, "sizes": range(1, 4)},
    ],
    ids=["equal", "equal of three", "graded", "three good", "graded 1-5", "equal 1-5", "of three"],
)
def test_the_expected_icc_is_nearer_the_truth_than_the_apparent_one_and_its_interval_holds(how, n):
    times = 300 if n < 300 else 150
    apparent, true, honest, low, high = studies(n, times, **how)
    bias, luck_of_choosing = np.mean(honest - true), np.mean(apparent - true)
    assert abs(bias) <= 0.45 * luck_of_choosing + 0.02
    assert np.sqrt(np.mean((honest - true) ** 2)) <= 1.25 * np.sqrt(np.mean((apparent - true) ** 2))
    chance = 2.5 * math.sqrt(0.95 * 0.05 / times)
    assert 0.93 - chance <= np.mean((low <= true) & (true <= high)) <= 0.98 + chance


@pytest.mark.slow
def test_responses_that_share_instances_are_no_independent_ones():
    apparent, true, honest, low, high = studies(56, 300, per=4)
    assert np.mean((honest - true) ** 2) <= np.mean((apparent - true) ** 2)
    assert np.mean((low <= true) & (true <= high)) > 0.91


HAND = [[1, 1, 2], [2, 2, 1], [3, 3, 4], [4, 4, 3]]  # a clinician and two jurors


def both(scope, members):
    """Return the columns that calibrate has of the clinicians and of some jurors, all needed."""
    panel = PanelColumns(tuple(members), len(members))
    return columns(scope.grid, panel, scope.options.method)


def icc_of(scope, members, of=None):
    """Return the ICC of some jurors on the responses that all of `of`, or of the scope, rated."""
    rows, pair = both(scope, of or scope.jurors).both, both(scope, members)
    return column_icc(pair.clinicians[rows], pair.scorer[rows], scope.options.method)


def pool_of(scope, sizes):
    return juries.jury_pool(scope, scope.jurors, sizes, both(scope, scope.jurors).both)


def iccs(found):
    return {row.jurors: row.icc for row in found.rows}


@pytest.mark.parametrize("method", METHODS)
def test_a_table_worked_by_hand(method):
    # Deviations of the clinician and j0: -1.5 -.5 .5 1.5; of j1: -.5 -1.5 1.5 .5; r = 3/5.
    # j1: 2r/(1+r) = 0.75. Both: var 4/3, clinician 5/3, cov 4/3: 4 (4/3) / (17/3) = 16/17.
    scope = scope_of(HAND, 1, method=method)
    r = (4 / 3) / math.sqrt(4 / 3 * 5 / 3)
    both = 16 / 17 if method == "paper" else 2 * r / (1 + r)
    found = juries.jury_ranking(scope, usd={"j0": 2.0, "j1": 1.0})
    assert [row.icc for row in found.rows] == pytest.approx([1.0, both, 0.75])
    rest = [(row.jurors, row.usd_per_response, row.on_front, row.rank) for row in found.rows]
    assert rest == [
        *((("j0",), 2.0, True, 1), (("j0", "j1"), 3.0, False, 2), (("j1",), 1.0, True, 3))
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.02, 0.25])
def test_every_jury_has_the_icc_that_calibrate_gives(method, lost):
    scope = scope_of(simulate(n=90, jurors=6, lost=lost), 3, method=method, reps=5)
    found = juries.jury_ranking(scope, sizes=range(1, 7))
    assert len(found.rows) == 63
    for row in found.rows:
        assert row.icc == pytest.approx(icc_of(scope, row.jurors), abs=1e-12)
        assert row.n_responses == both(scope, scope.jurors).both.sum()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_a_resample_is_the_study_written_out_anew(method, lost):
    scope = scope_of(simulate(n=40, lost=lost), 3, per=2, method=method)
    pool = pool_of(scope, range(1, 5))
    counts = next(draw_counts(20, reps=4, seed=1))
    drawn = pool.icc(counts)
    for own, found in zip(counts, drawn, strict=True):
        rows = np.repeat(np.arange(40), own[scope.grid.clusters].astype(int))
        again = scope_of(scope.grid.composites[rows], 3, method=method)
        names = [[f"j{j}" for j in np.flatnonzero(one)] for one in pool.juries]
        assert found == pytest.approx(np.array([icc_of(again, one) for one in names]))


def test_ranks_run_through_and_every_jury_has_its_honest_icc():
    found = juries.jury_ranking(scope_of(simulate(), 3))
    assert [row.rank for row in found.rows] == list(range(1, 16))
    assert sorted(iccs(found).values(), reverse=True) == list(iccs(found).values())
    assert all(row.honest_low < row.icc_honest < row.honest_high for row in found.rows)
    assert [row.size for row in found.by_size] == [1, 2, 3, 4]
    assert [found.of_size(size) for size in found.sizes] == [4, 6, 4, 1]


def test_all_juries_are_judged_on_the_responses_that_all_jurors_rated_and_the_others_are_counted():
    scope = scope_of(simulate(lost=0.15), 3, reps=20)
    found = juries.jury_ranking(scope)
    whole = ~np.isnan(scope.grid.composites[:, 3:]).any(axis=1)
    assert {row.n_responses for row in found.rows} == {int(whole.sum())}
    assert found.n_responses == 60
    assert f"on the same {whole.sum()} responses" in note_of(found)
    assert f"{60 - whole.sum()} responses that not all jurors rated left out" in note_of(found)
    assert "analysed" not in note_of(found)


@pytest.mark.parametrize(
    ("sizes", "said"),
    [(range(1, 6), "sizes 1-5: there are 4 jurors"), (range(2), "sizes 0-1"), (range(0), "none")],
)
def test_sizes_that_no_jury_can_have_are_refused_and_more_than_can_be_done(sizes, said):
    with pytest.raises(BadInput, match=said):
        juries.jury_ranking(scope_of(simulate(), 3), sizes=sizes)
    with pytest.raises(BadInput, match="are too many: take smaller sizes"):
        juries.jury_ranking(scope_of(simulate(n=400, jurors=24), 3, reps=2000))


def test_no_juror_and_no_common_response_are_too_little():
    table = simulate(jurors=2)
    with pytest.raises(TooFew, match="no juror has scores that vary"):
        juries.jury_ranking(scope_of(np.hstack([table[:, :3], np.full((60, 1), 4.0)]), 3))
    table[:30, 3], table[30:, 4] = NAN, NAN
    with pytest.raises(TooFew, match="no response was rated by all of j0, j1"):
        juries.jury_ranking(scope_of(table, 3))


def test_a_cost_is_known_only_where_every_members_is():
    usd = {"a": 0.1, "b": 0.2, "c": None}
    assert juries.cost(("a", "b"), usd) == pytest.approx(0.3)
    assert juries.cost(("a", "c"), usd) is juries.cost(("a", "d"), usd) is None


def by_definition(icc, usd):
    """Compare every jury with every other one."""
    pairs = list(zip(icc, usd, strict=True))

    def beaten(one):
        return any(
            other[0] >= one[0] and other[1] <= one[1] and other != one
            for other in pairs
            if not math.isnan(sum(other))
        )

    return [not math.isnan(sum(one)) and not beaten(one) for one in pairs]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_comparing_all_with_all_finds(seed):
    random = np.random.default_rng(seed)
    icc, usd = random.integers(0, 6, 30) / 10, random.integers(0, 6, 30) / 4
    icc[random.random(30) < 0.1], usd[random.random(30) < 0.1] = NAN, NAN
    assert juries.on_front(icc, usd).tolist() == by_definition(icc, usd)


def test_a_juror_without_scores_or_variance_sits_nowhere_and_is_named():
    table = simulate(jurors=3)
    table[:, 4], table[:, 5] = 4.0, NAN
    found = juries.jury_ranking(scope_of(table, 3))
    assert found.pool == ("j0",)
    assert "left out, with no scores or all scores equal: j1, j2" in note_of(found)


def test_a_jury_that_gives_all_common_responses_the_same_score_has_no_icc_and_says_why():
    table = simulate(jurors=2)
    table[:30, 3], table[30:, 4] = 4.0, NAN
    found = juries.jury_ranking(scope_of(table, 3, reps=20))
    lost = found.rows[-1]
    assert (lost.jurors, lost.rank, lost.on_front) == (("j0",), None, False)
    assert math.isnan(lost.icc)
    assert note_of(lost) == "undefined: the jury gave all these responses the same score"
    assert [row.jurors for row in found.by_size] == [("j1",), ("j0", "j1")]


def test_no_resamples_give_iccs_with_the_jackknife_alone():
    found = juries.jury_ranking(scope_of(simulate(), 3, reps=0))
    assert math.isfinite(found.winner.icc)
    assert found.winner.low < found.winner.icc < found.winner.high
    assert math.isnan(found.winner.icc_honest)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_every_icc_is_the_one_that_calibrate_gives(method, lost):
    scope = scope_of(simulate(n=120, jurors=4, lost=lost), 3, method=method)
    for row in value_rows(scope):
        others = [name for name in scope.jurors if name != row.juror]
        assert row.icc_alone == pytest.approx(icc_of(scope, [row.juror], [row.juror]))
        assert row.icc_without == pytest.approx(icc_of(scope, others, others))
        assert row.icc_jury == pytest.approx(icc_of(scope, scope.jurors))


@pytest.mark.parametrize("lost", [0.0, 0.1])
def test_what_a_juror_adds_is_the_paired_difference_to_the_jury_without_it(lost):
    scope = scope_of(simulate(jurors=3, lost=lost), 3)
    without = {row: [name for name in scope.jurors if name != row] for row in scope.jurors}
    panels = {name: PanelColumns(tuple(others), len(others)) for name, others in without.items()}
    pairs = {row.b: row for row in difference_rows(scope, panels)}
    for row in value_rows(scope):
        pair = pairs[f"jury:{row.juror}"]
        added = pair.difference, pair.low, pair.high
        assert (row.adds, row.low, row.high) == pytest.approx(added)
        if not lost:
            assert row.adds == pytest.approx(row.icc_jury - row.icc_without)
        assert bool(row.told("only_both")) is bool(lost)


def test_a_jury_of_one_has_nobody_to_be_compared_with_and_without_jurors_there_are_no_rows():
    (row,) = value_rows(scope_of(simulate(jurors=1), 3))
    assert row.icc_jury == row.icc_alone
    assert np.isnan([row.icc_without, row.adds, row.low]).all()
    assert note_of(row) == "a jury of one"
    assert value_rows(scope_of([[1, 2], [2, 3]], 2)) == []


def test_a_juror_without_variance_takes_no_part():
    table = simulate(jurors=3)
    table[:, 4] = 4.0
    rows = value_rows(scope_of(table, 3))
    pair = value_rows(scope_of(table[:, [0, 1, 2, 3, 5]], 3))
    assert [rows[0].adds, rows[2].adds] == pytest.approx([row.adds for row in pair])
    assert math.isnan(rows[1].adds)
    assert "do not vary" in note_of(rows[1])
    assert "left out, no variance: j1" in note_of(rows[0])


def test_jurors_who_never_rated_the_same_response_are_no_jury():
    table = simulate(jurors=3)
    table[:30, 3], table[30:, 4] = NAN, NAN
    rows = value_rows(scope_of(table, 3))
    assert all(np.isnan([row.icc_jury, row.adds, row.low]).all() for row in rows)
    assert math.isfinite(rows[0].icc_alone)
    assert "undefined" in note_of(rows[0])


def test_a_front_worked_by_hand_and_who_has_no_icc_or_no_known_cost_is_off_it():
    # 0.5 for 3 is beaten by 0.6 for 2; 0.9 for 5 by nobody; 0.6 for 4 has an equal for less.
    icc = np.array([0.3, 0.6, 0.5, 0.9, 0.6, 0.95, NAN, NAN])
    usd = np.array([1.0, 2.0, 3.0, 5.0, 4.0, NAN, 0.0, NAN])
    assert juries.on_front(icc, usd).tolist() == [True, True, False, True, *[False] * 4]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "change",
    [
        *(lambda table: table + np.arange(len(table[0])), lambda table: table * 3),
        *(lambda table: table[::-1], lambda table: np.vstack([table, np.full((5, 6), NAN)])),
    ],
    ids=["shift of each rater", "scale", "permutation", "missing"],
)
def test_shift_scale_order_and_empty_rows_change_nothing(change, method):
    table = simulate(jurors=3)
    scopes = [scope_of(one, 3, method=method, reps=2) for one in (table, change(table))]
    worth = [
        [(row.icc_alone, row.icc_without, row.adds) for row in value_rows(one)] for one in scopes
    ]
    assert np.array(worth[1]) == pytest.approx(np.array(worth[0]))
    first, other = (iccs(juries.jury_ranking(one)) for one in scopes)
    assert other == {jury: pytest.approx(icc) for jury, icc in first.items()}
