"""When clinicians may stop: boundaries as published, intervals that hold, looks that are counted."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.studies import Run
from kit.ward_study import fill
from sqlalchemy import Engine

from calibration.stagewise import at_least, stagewise_interval
from calibration.stopping import boundaries, judge, spent, statistic_of
from calibration.tables.stopping import headline
from calibration.ward_values import Look, PastLook, Verdict
from data.person import OPERATOR
from data.queries.record import verify
from medjury.services.stopping import NextQuestion, next_to_rate


@pytest.mark.parametrize(
    ("fractions", "published"),
    [
        ([0.5, 1.0], [2.963, 1.969]),
        ([0.2, 0.4, 0.6, 0.8, 1.0], [4.877, 3.357, 2.680, 2.290, 2.031]),
        ([1.0], [1.960]),
    ],
)
def test_boundaries_are_those_of_lan_and_demets(
    fractions: list[float], published: list[float]
) -> None:
    """Jennison, Turnbull (2000), Group sequential methods; Reboussin et al. (2000), LD-98."""
    assert boundaries(fractions) == pytest.approx(published, abs=0.002)


def test_boundaries_are_crossed_as_often_as_is_spent_in_a_simulation() -> None:
    """The independent oracle: 400,000 paths of sums, nothing integrated."""
    fractions = np.array([0.25, 0.5, 0.7, 1.0])
    steps = np.sqrt(np.diff(np.r_[0, fractions]))
    walks = np.cumsum(np.random.default_rng(0).normal(size=(400_000, 4)) * steps, axis=1)
    crossed = np.abs(walks / np.sqrt(fractions)) > np.array(boundaries([*fractions]))
    until = np.maximum.accumulate(crossed, axis=1).mean(axis=0)
    assert until == pytest.approx([spent(one) for one in fractions], abs=0.0015)


@settings(max_examples=15)
@given(st.lists(st.integers(1, 99), min_size=1, max_size=5, unique=True))
def test_who_looked_before_gets_no_narrower_an_interval_at_the_end(looks: list[int]) -> None:
    look = Look(100, 100, 0.1, 0.05, 0.0, 100)
    before = [PastLook(n, 0.0) for n in looks]
    alone, later = judge([], look), judge(before, look)
    assert later.critical >= alone.critical - 1e-3
    assert (later.fixed_low, later.fixed_high) == (alone.fixed_low, alone.fixed_high)
    assert judge([*before, *before], look) == later


@pytest.mark.parametrize(
    ("rated", "estimate", "verdict"),
    [
        (100, 0.2, Verdict.SHOWN),
        (100, -0.2, Verdict.REFUTED),
        (100, 0.05, Verdict.ENDED),
        (50, 0.07, Verdict.GO_ON),
        (80, -0.08, Verdict.OUT_OF_REACH),
        (50, 0.4, Verdict.SHOWN),
    ],
)
def test_a_look_goes_on_stops_or_says_that_it_is_out_of_reach(
    rated: int, estimate: float, verdict: Verdict
) -> None:
    look = Look(rated, 100, estimate, 0.05, 0.0, rated)
    found = judge([PastLook(25, 0.5)], look)
    assert found.verdict is verdict
    assert (found.more is not None) == (verdict is Verdict.GO_ON)
    assert verdict is not Verdict.SHOWN or found.low > 0
    words = headline(look, found)
    assert words.startswith({"go_on": "go on", "out_of_reach": "cannot"}.get(verdict, "stop"))


FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


@cache
def of_fifths() -> tuple[float, ...]:
    return tuple(boundaries(FIFTHS))


@pytest.mark.parametrize("drift", [-3.0, 0.0, 1.0, 2.0, 3.0, 4.5, 6.0])
def test_the_interval_at_the_stop_covers_in_93_to_97_of_100_studies(drift: float) -> None:
    """2,000 studies of five looks, as sums of normal steps: nothing of them is integrated."""
    critical, covered = of_fifths(), 0
    steps = np.random.default_rng(0).normal(drift * 0.2, 0.2**0.5, size=(2000, 5))
    for path in np.cumsum(steps, axis=1) / np.sqrt(FIFTHS):
        at = next((n for n in range(5) if abs(path[n]) > critical[n]), 4)
        # The ends are where this is 0.025 and 0.975, and it rises with the drift: see the next test.
        tail = at_least(drift, FIFTHS[: at + 1], critical[:at], path[at])
        covered += 0.025 <= tail <= 0.975
    assert 0.93 <= covered / 2000 <= 0.97


@settings(max_examples=10)
@given(st.integers(0, 4), st.floats(-8, 8))
def test_the_ends_at_the_stop_are_where_the_tails_are_half_of_5_in_100(
    at: int, seen: float
) -> None:
    fractions, critical = FIFTHS[: at + 1], of_fifths()[:at]
    ends = stagewise_interval(fractions, critical, seen, 0.05)
    tails = [at_least(end, fractions, critical, seen) for end in ends]
    assert tails == pytest.approx([0.025, 0.975], abs=1e-5)
    higher = stagewise_interval(fractions, critical, seen + 0.1, 0.05)
    assert higher[0] >= ends[0] - 1e-5, "as exactly as the ends are sought"
    if at == 0:
        assert ends == pytest.approx(
            [(seen - 1.959964) / 0.2**0.5, (seen + 1.959964) / 0.2**0.5], abs=1e-4
        )


def test_a_study_that_had_stopped_before_keeps_the_interval_that_holds_at_all_looks() -> None:
    look = Look(100, 100, 0.2, 0.05, 0.0, 100)
    first, stopped = PastLook(50, 1.0), PastLook(50, 3.5)
    once, again, unknown = (judge([one], look) for one in (first, stopped, PastLook(50)))
    assert (once.ordered, again.ordered, unknown.ordered) == (True, False, False)
    assert again == unknown
    assert again.low < again.fixed_low < again.fixed_high < again.high
    assert once.low > look.target
    assert statistic_of(look) == pytest.approx(3.83, abs=0.02), "4 of Student's t with 99"


@pytest.fixture
def study(run: Run, engine: Engine, tmp_path: Path) -> Engine:
    fill(run, tmp_path, rated=60)
    return engine


def test_the_command_lists_unrated_responses_and_counts_a_look_once(
    run: Run, study: Engine
) -> None:
    asked = ("rate", "next", "--icc", "0.3", "--planned", "200", "--number", "5", "--json", "-")
    first, again = (json.loads(run(*asked)[1]) for _ in range(2))
    assert first["looks"] == again["looks"] == [first["rated"]]
    assert first["planned"] == 200
    rest = next_to_rate(OPERATOR, study, NextQuestion(0.99, number=500)).responses
    assert {one.response for one in rest} == {f"r{n}" for n in range(60, 200)}
    assert verify(study).findings == ()
    code, _, err = run(*asked[:4], "--planned", "100")
    assert code == 2
    assert "the first look planned 200 responses" in err


def test_without_a_goal_there_is_one_message(run: Run, study: Engine) -> None:
    code, out, err = run("rate", "next")
    assert (code, out) == (2, "")
    assert "no goal: fix a protocol first" in err
