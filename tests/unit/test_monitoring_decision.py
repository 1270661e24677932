"""What may be said of agreement over time: never more than the periods allow."""

import math
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.scores import NAN, row, watching

from calibration.decision import DecisionKind
from calibration.monitoring import CaseMix, decide, watch
from calibration.notes import note, undefined

LOW = {"boot": (0.0, 0.2)}
WIDE = {"boot": (0.0, 0.5)}
KNOWN = watching(target=0.6)


def decided(rows, normal=KNOWN, floor=0.4, mix=None, **other):
    return decide(watch(rows, replace(normal, floor=floor)), mix, **other)


def changed(high):
    """Return a case mix of which the change of the ICC reaches up to `high`; None for none."""
    if high is None:
        return None
    figures = {"icc_baseline": 0.8, "icc_now": 0.7, "change_low": high - 0.2}
    return CaseMix("then", "now", **figures, change_high=high)


def codes(decision):
    return [one.code for one in decision.reasons]


def test_one_period_that_chance_may_have_put_below_the_floor_has_not_fallen():
    decision = decided([row(0, 0.3, **WIDE)], watching())
    assert decision.kind is DecisionKind.NO_BASELINE
    assert codes(decision) == ["to_floor", "not_watched_yet"]
    assert decision.sentences[0].endswith("; the floor is 0.40.")
    assert (
        decision.headline
        == "Not known whether agreement has fallen: not enough data to compare with yet."
    )


def test_one_period_all_below_the_floor_is_called_below_it_and_not_fallen():
    decision = decided([row(0, 0.1, **LOW)], watching())
    assert decision.kind is DecisionKind.NO_BASELINE
    assert decision.headline.startswith(
        "Agreement is below the floor of 0.40; there is no earlier period"
    )
    assert decision.next == note("do_compare_juries", "do_compare_juries")


def test_a_period_all_below_the_floor_after_another_is_no_fall_by_itself():
    decision = decided([row(0, 0.6), row(1, 0.1, **LOW)], watching())
    assert decision.kind is DecisionKind.INCONCLUSIVE
    assert decision.headline == (
        "The ICC of p1 is below the floor of 0.40; one period alone does not show a fall."
    )


def test_two_periods_together_far_below_the_floor_have_fallen_below_it():
    decision = decided([row(n, -0.7, 40) for n in range(2)], watching())
    assert (decision.kind, codes(decision)) == (
        DecisionKind.FALLEN,
        ["shown_below_floor"],
    )
    assert decision.headline == "Agreement is below the floor of 0.40."
    assert decision.estimate == pytest.approx(-0.7)
    assert decision.low < decision.estimate < decision.high < decision.reasons[0]["most"] < 0.4
    assert decision.sentences[0].startswith(
        "Falls reached their limit in p1: over 2 periods to then the ICC is -0.70"
    )


def test_below_the_floor_within_chance_is_inconclusive():
    decision = decided([row(0, 0.6), row(1, 0.3, **WIDE)], watching())
    assert decision.kind is DecisionKind.INCONCLUSIVE
    assert (
        decided([row(0, 0.6), row(1, 0.3)], watching()).kind is DecisionKind.INCONCLUSIVE
    )  # no interval
    assert decided([row(0, 0.6), row(1, 0.3, **WIDE)], floor=0.3).kind is DecisionKind.STEADY


def test_lower_than_the_baseline_without_an_alarm_is_not_steady():
    rows = [*(row(n, 0.8) for n in range(3)), row(3, 0.6, boot=(0.45, 0.7))]
    decision = decided(rows, watching(), mix=changed(-0.1))
    assert decision.kind is DecisionKind.INCONCLUSIVE
    assert codes(decision) == [
        "lower_than_baseline",
        "to_floor",
        "no_alarm",
    ]
    assert decision.headline == "Agreement is lower than in then, but no alarm is raised."
    assert decided(rows, watching(), mix=changed(0.1)).kind is DecisionKind.STEADY


def test_below_the_floor_and_lower_than_before_is_no_fall_without_an_alarm():
    decision = decided([row(0, 0.9), row(1, 0.3, **WIDE)], watching(), mix=changed(-0.1))
    assert decision.kind is DecisionKind.INCONCLUSIVE
    assert codes(decision)[:2] == [
        "lower_than_baseline",
        "to_floor",
    ]


def test_a_period_the_jury_left_unscored_is_no_all_clear():
    why = undefined("too_few_responses", "no response has both", responses=0, least=3)
    lost = row(3, NAN, 0, too_few=True, n_missing=30, notes=(why,))
    decision = decided([row(0, 0.6), lost], watching())
    assert decision.kind is DecisionKind.UNDEFINED
    assert decision.reasons[0]["why"] == why
    assert decision.sentences[0].startswith("The ICC of p3 cannot be judged: no response has")
    assert decision.next == note("do_score_rest_of", "do_score_rest_of", period="p3", responses=30)


def test_a_period_with_too_few_instances_says_how_many_more_it_takes():
    decision = decided(
        [row(0, 0.6, 5, too_few=True, unfilled=True, boot=(0.5, 0.7))],
        watching(),
    )
    assert decision.kind is DecisionKind.TOO_FEW
    assert decision.action == "Have clinicians rate responses to 15 more instances."


def test_an_alarm_stands_though_the_newest_period_is_good():
    rows = [*(row(n, 0.6) for n in range(3)), *(row(n, -0.5) for n in (3, 4)), row(5, 0.9)]
    decision = decided(rows, watching())
    assert (decision.kind, decision.headline) == (DecisionKind.FALLEN, "Agreement has fallen.")
    assert decision.estimate == pytest.approx(-0.5)
    assert decision.sentences[0].startswith(
        "Falls reached their limit in p4: over 2 periods to then the ICC is -0.50"
    )
    assert decision.sentences[0].endswith("an unchanged jury raises an alarm in 5 % of years.")
    assert codes(decision) == ["alarm"]
    assert decision.next == note("do_validate_again", "do_validate_again")


def test_simulated_raters_decide_nothing_whatever_they_would_show():
    rows = [*(row(n, 0.6) for n in range(3)), *(row(n, -0.5) for n in (3, 4))]
    decision = decided(rows, watching(), simulated=("dr; simulated raters: nobody",))
    assert decision.kind is DecisionKind.SIMULATED
    assert codes(decision) == ["simulated", "alarm"]
    assert decision.reasons[0]["raters"] == ("dr; simulated raters: nobody",)


ICCS = st.one_of(st.floats(-0.2, 0.99), st.floats(-3, 0.99), st.just(NAN))
REACHES = st.sampled_from((0.02, 0.1, 0.4, NAN))
INSTANCES = st.sampled_from((40, 25, 15, 5))
PERIODS = st.lists(st.tuples(ICCS, REACHES, INSTANCES), min_size=1, max_size=7)
FLOORS = st.sampled_from((0.4, 0.0, 0.7, 0.95))
NORMALS = st.one_of(
    st.builds(lambda many: watching(baseline=many), st.integers(1, 4)),
    st.builds(lambda icc: watching(target=icc), st.floats(0.1, 0.95)),
    st.just(watching(target=0.5, target_since=row(3, 0.5).start)),
)
CHANGES = st.sampled_from((None, -0.2, 0.2))
UNHURRIED = settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.too_slow])


def periods(drawn):
    """Return rows of what hypothesis drew: the ICC, how far its interval reaches, instances."""
    rows = [
        row(
            place,
            icc,
            n,
            boot=(icc - reach, icc + reach),
            too_few=n < 20,
            unfilled=n < 10,
        )
        for place, (icc, reach, n) in enumerate(drawn)
    ]
    return [replace(one, unfilled=one.unfilled and one is rows[-1]) for one in rows]


@UNHURRIED
@given(PERIODS, NORMALS, FLOORS, CHANGES, st.booleans())
def test_no_decision_says_more_than_its_figures(drawn, normal, floor, change, made_up):
    watched = watch(periods(drawn), replace(normal, floor=floor))
    mix = None if change is None else CaseMix("then", "now", change_high=change)
    decision = decide(watched, mix, ("sim",) if made_up else ())
    judged = watched.judged
    assert (decision.kind is DecisionKind.SIMULATED) == made_up
    if decision.kind is DecisionKind.FALLEN:
        aim = watched.target_icc if watched.below == "target" else floor
        assert decision.estimate <= watched.most < aim
        assert len(watched.fell) >= 2
        assert watched.below == "target" or decision.high < floor
    if decision.kind is DecisionKind.STEADY:
        assert watched.reason is None
        assert judged.icc >= floor
        assert not (mix and mix.change_high < 0)
    if decision.kind in (
        DecisionKind.STEADY,
        DecisionKind.NO_BASELINE,
        DecisionKind.INCONCLUSIVE,
        DecisionKind.TOO_FEW,
    ):
        assert not watched.alarm
        assert math.isfinite(judged.icc)
    if decision.kind is DecisionKind.INCONCLUSIVE:
        is_lower = mix is not None and mix.change_high < 0
        assert ("is lower than in" in decision.headline) == is_lower
    assert (decision.kind is DecisionKind.FALLEN) == (watched.below != "" and not made_up)
    says_fallen = decision.headline in ("Agreement has fallen.", f"{BELOW.format(floor)}.")
    assert says_fallen == (decision.kind is DecisionKind.FALLEN)


BELOW = "Agreement is below the floor of {:z.2f}"
