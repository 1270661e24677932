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

LOW, WIDE = {"boot": (0.0, 0.2)}, {"boot": (0.0, 0.5)}
ROBOT = "dr; simulated raters: nobody"


def decided(rows, mix=None, simulated=(), normal=None):
    normal = normal or watching()
    return decide(watch(rows, replace(normal, floor=0.4)), mix, simulated)


def changed(high):
    """Return a case mix of which the change of the ICC reaches up to `high`; None for none."""
    if high is None:
        return None
    figures = {"icc_baseline": 0.8, "icc_now": 0.7, "change_low": high - 0.2}
    return CaseMix("then", "now", **figures, change_high=high)


def codes(decision):
    return [one.code for one in decision.reasons]


GOOD = [row(n, 0.6) for n in range(3)]
BAD = [*GOOD, *(row(n, -0.5) for n in (3, 4))]
LOWER = [*(row(n, 0.8) for n in range(3)), row(3, 0.6, boot=(0.45, 0.7))]
K = DecisionKind


@pytest.mark.parametrize(
    ("rows", "mix", "simulated", "kind", "told"),
    [
        ([row(0, 0.3, **WIDE)], None, (), K.NO_BASELINE, ["to_floor", "not_watched_yet"]),
        ([row(0, 0.6), row(1, 0.1, **LOW)], None, (), K.INCONCLUSIVE, None),
        ([row(0, 0.6), row(1, 0.3, **WIDE)], None, (), K.INCONCLUSIVE, None),
        ([row(0, 0.6), row(1, 0.3)], None, (), K.INCONCLUSIVE, None),  # no interval
        (LOWER, -0.1, (), K.INCONCLUSIVE, ["lower_than_baseline", "to_floor", "no_alarm"]),
        (LOWER, 0.1, (), K.STEADY, None),
        ([row(0, 0.9), row(1, 0.3, **WIDE)], -0.1, (), K.INCONCLUSIVE, None),
        ([row(n, -0.7, 40) for n in range(2)], None, (), K.FALLEN, ["shown_below_floor"]),
        ([*BAD, row(5, 0.9)], None, (), K.FALLEN, ["alarm"]),  # though the newest is good
        (BAD, None, (ROBOT,), K.SIMULATED, ["simulated", "alarm"]),
    ],
)
def test_a_fall_is_said_of_what_shows_one_and_of_nothing_else(rows, mix, simulated, kind, told):
    decision = decided(rows, changed(mix), simulated)
    assert decision.kind is kind
    assert told in (None, codes(decision))
    if kind is K.SIMULATED:
        assert decision.reasons[0]["raters"] == (ROBOT,)


def test_one_period_all_below_the_floor_is_called_below_it_and_not_fallen():
    decision = decided([row(0, 0.1, **LOW)])
    assert decision.kind is DecisionKind.NO_BASELINE
    assert decision.headline.startswith("Agreement is below the floor of 0.40;")
    assert decision.next == note("do_compare_juries", "do_compare_juries")


def test_a_fall_has_the_figures_of_the_periods_that_show_it():
    below = decided([row(n, -0.7, 40) for n in range(2)])
    assert below.estimate == pytest.approx(-0.7)
    assert below.low < below.estimate < below.high < below.reasons[0]["most"] < 0.4
    alarm = decided([*BAD, row(5, 0.9)])
    assert alarm.estimate == pytest.approx(-0.5)
    assert alarm.next == note("do_validate_again", "do_validate_again")


def test_a_period_the_jury_left_unscored_is_no_all_clear():
    why = undefined("too_few_responses", "no response has both", responses=0, least=3)
    lost = row(3, NAN, 0, too_few=True, n_missing=30, notes=(why,))
    decision = decided([row(0, 0.6), lost])
    assert decision.kind is DecisionKind.UNDEFINED
    assert decision.reasons[0]["why"] == why
    assert decision.next == note("do_score_rest_of", "do_score_rest_of", period="p3", responses=30)


def test_a_period_with_too_few_instances_says_how_many_more_it_takes():
    decision = decided([row(0, 0.6, 5, too_few=True, unfilled=True, boot=(0.5, 0.7))])
    assert decision.kind is DecisionKind.TOO_FEW
    assert decision.action == "Have clinicians rate responses to 15 more instances."


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
        row(place, icc, n, boot=(icc - reach, icc + reach), too_few=n < 20, unfilled=n < 10)
        for place, (icc, reach, n) in enumerate(drawn)
    ]
    return [replace(one, unfilled=one.unfilled and one is rows[-1]) for one in rows]


BELOW = "Agreement is below the floor of {:z.2f}"


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
    if decision.kind in (K.STEADY, K.NO_BASELINE, K.INCONCLUSIVE, K.TOO_FEW):
        assert not watched.alarm
        assert math.isfinite(judged.icc)
    if decision.kind is DecisionKind.INCONCLUSIVE:
        is_lower = mix is not None and mix.change_high < 0
        assert ("is lower than in" in decision.headline) == is_lower
    assert (decision.kind is DecisionKind.FALLEN) == (watched.below != "" and not made_up)
    says_fallen = decision.headline in ("Agreement has fallen.", f"{BELOW.format(floor)}.")
    assert says_fallen == (decision.kind is DecisionKind.FALLEN)
