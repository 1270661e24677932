"""The order of one clinician's list: neighbours apart, repeats far enough, both at random."""

import itertools
from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from annotate.assign import design
from annotate.balance import GAP, Showing, arrange
from annotate.plan import Item

SIZES = st.tuples(
    st.integers(1, 60), st.integers(1, 9), st.integers(1, 5), st.integers(1, 5), st.integers(0, 9)
)
QUICK = settings(max_examples=60, deadline=None)


def items(count: int, models: int = 3, benchmarks: int = 1) -> list[Item]:
    """Return responses of every model to each of as many instances as are needed."""
    return [
        Item(one + 1, one // models, f"model {one % models}", f"b{one // models % benchmarks}")
        for one in range(count)
    ]


def names(count: int) -> list[str]:
    return [f"dr_{chr(97 + one)}" for one in range(count)]


@QUICK
@given(SIZES, st.floats(0, 0.5))
def test_a_repeat_comes_at_least_ten_places_after_its_first_showing(
    size: tuple[int, int, int, int, int], share: float
) -> None:
    n, raters, models, k, seed = size
    plan = design(items(n, models), names(raters), min(k, raters), share, seed)
    for rater, load in plan.load.items():
        own = [slot for slot in plan.slots if slot.rater == rater]
        assert sorted(slot.position for slot in own) == list(range(len(own)))
        first = {slot.response: slot.position for slot in own if not slot.pass_}
        again = [slot for slot in own if slot.pass_]
        assert all(slot.position >= first[slot.response] + 10 for slot in again)
        assert len(again) == (round(share * load) if load >= 10 else 0)


def test_a_repeat_is_drawn_from_different_responses_under_different_seeds() -> None:
    drawn = {
        slot.response
        for seed in range(30)
        for slot in design(items(30), names(1), 1, seed=seed).slots
        if slot.pass_
    }
    assert len(drawn) > 25


@QUICK
@given(SIZES)
def test_responses_of_one_instance_are_never_neighbours_where_an_order_avoids_it(
    size: tuple[int, int, int, int, int],
) -> None:
    n, raters, models, k, seed = size
    plan = design(items(n, models), names(raters), min(k, raters), repeats=0, seed=seed)
    for line in plan.orders.values():
        most = max(Counter(one.instance for one in line).values(), default=0)
        touching = sum(a.instance == b.instance for a, b in itertools.pairwise(line))
        assert touching == max(0, 2 * most - 1 - len(line))


@QUICK
@given(st.integers(4, 30), st.integers(2, 4), st.integers(0, 99))
def test_repeats_do_not_stand_beside_their_instance_either(
    instances: int, models: int, seed: int
) -> None:
    plan = design(items(instances * models, models), names(2), 1, seed=seed)
    assert plan.adjacent == 0


def test_the_worst_lists_are_still_arranged() -> None:
    same = [Showing(number, 1) for number in range(12)]
    other = [Showing(number, 2) for number in range(12, 23)]
    rng = Random(1)  # noqa: S311 - a test's seed
    line = arrange([], same + other, 0, rng)
    assert [one.instance for one in line] == [1, 2] * 11 + [1]
    assert len(arrange([], same, 3, rng)) == 15
    assert arrange(same, [], 1, rng)[0].response <= len(same) - GAP
