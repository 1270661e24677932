"""A design that goes on: new responses, new clinicians, clinicians who left."""

from collections.abc import Sequence
from random import Random

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kit.rating_study import items, names, spread
from scipy.optimize import linprog

from medjury.services.design.assign import design, top_up
from medjury.services.design.plan import Assigned, Design

QUICK = settings(max_examples=20, deadline=None)


def as_stored(plan: Design, done: set[tuple[str, int, int]]) -> list[Assigned]:
    return [
        Assigned(s.rater, s.response, s.pass_, (s.rater, s.response, s.pass_) in done, s.position)
        for s in plan.slots
    ]


CHANGES = st.tuples(
    st.integers(1, 40),  # responses at first
    st.integers(0, 20),  # new ones
    st.integers(2, 7),  # clinicians at first
    st.integers(0, 2),  # who leave
    st.integers(0, 2),  # who join
    st.integers(1, 3),  # readings
    st.randoms(use_true_random=False),
)


@QUICK
@given(CHANGES)
def test_a_top_up_keeps_what_is_done_and_completes_every_response(
    change: tuple[int, int, int, int, int, int, Random],
) -> None:
    n, new, raters, leaving, joining, k, rng = change
    old, staff = names(raters), names(raters + joining)[leaving:]
    assume(staff)
    k = min(k, raters, len(staff))
    plan = design(items(n), old, k, repeats=0.2)
    slots = [(s.rater, s.response, s.pass_) for s in plan.slots]
    stored = as_stored(plan, set(rng.sample(slots, rng.randint(0, len(slots)))))
    more = top_up(stored, items(n + new), staff, k, seed=1, repeats=0.2)

    assert all(one in more.kept for one in stored if one.done)
    assert set(more.kept) | set(more.dropped) == set(stored)
    assert not any(one.done for one in more.dropped)
    assert all(len(set(them)) == len(them) == k for them in more.readers.values())
    assert {one.rater for one in more.slots} <= set(staff)
    assert not {(s.rater, s.response, s.pass_) for s in more.slots} & {
        (one.rater, one.response, one.pass_) for one in more.kept
    }
    for one in more.slots:
        line = [(shown.response, shown.pass_) for shown in more.orders[one.rater]]
        if one.pass_:
            assert line.index((one.response, 1)) >= line.index((one.response, 0)) + 10


@QUICK
@given(CHANGES)
def test_a_top_up_makes_loads_as_equal_as_any_design_could(
    change: tuple[int, int, int, int, int, int, Random],
) -> None:
    n, new, raters, leaving, joining, k, rng = change
    old, staff = names(raters), names(raters + joining)[leaving:]
    assume(staff)
    k = min(k, raters, len(staff))
    plan = design(items(n), old, k, repeats=0)
    busy = rng.choice(old)
    slots = [(s.rater, s.response, s.pass_) for s in plan.slots]
    done = {slot for slot in slots if slot[0] == busy or rng.random() < 0.3}
    more = top_up(as_stored(plan, done), items(n + new), staff, k, repeats=0)
    assert sum(load**2 for load in more.load.values()) == least_squares(done, n + new, staff, k)


def least_squares(
    done: set[tuple[str, int, int]], responses: int, staff: Sequence[str], k: int
) -> int:
    """Return the least sum of squared loads that any design could have, by linear programming.

    Each reading that is missing goes to one of a clinician's places, of which the next always costs
    more: what it adds to the square of the load. The matrix is that of a flow: whole numbers are best.
    """
    read = np.array([[(name, one + 1, 0) in done for name in staff] for one in range(responses)])
    by_others = [sum(slot[1] == one + 1 for slot in done) for one in range(responses)]
    held, people = read.sum(axis=0), len(staff)
    places = 1 + 2 * (held[:, None] + np.arange(responses))
    to_whom = np.eye(people)
    rows = np.hstack(
        [np.repeat(np.eye(responses), people, axis=1), np.zeros((responses, places.size))]
    )
    columns = np.hstack([np.tile(to_whom, responses), -np.repeat(to_whom, responses, axis=1)])
    found = linprog(
        np.concatenate([np.zeros(read.size), places.ravel()]),
        A_eq=np.vstack([rows, columns]),
        b_eq=np.concatenate([[k - min(k, one) for one in by_others], np.zeros(people)]),
        bounds=[*((0, 1 - one) for one in read.ravel()), *((0, 1) for _ in places.ravel())],
    )
    return int((held**2).sum()) + round(found.fun)


def test_new_work_follows_on_what_a_clinician_has() -> None:
    plan = design(items(40), names(4), 2, seed=4)
    again = top_up(as_stored(plan, set()), items(40), names(4), 2, seed=9)
    assert (again.slots, again.dropped, again.overlap) == ((), (), plan.overlap)
    more = top_up(as_stored(plan, set()), items(60), names(4), 2)
    last = {name: len(line) - 1 for name, line in plan.orders.items()}
    assert min(slot.position - last[slot.rater] for slot in more.slots) == 1
    assert more.adjacent == 0
    assert spread(list(more.load.values())) <= 1


def test_a_finished_response_gets_no_more_and_its_open_work_is_dropped() -> None:
    stored = [Assigned("a", 1, done=True), Assigned("b", 1, done=True), Assigned("c", 1)]
    more = top_up(stored, items(1), ["a", "b", "c"], 2)
    assert more.slots == ()
    assert more.dropped == (Assigned("c", 1),)
