"""Who rates what, and in which order: the guarantees of a design over random sizes and seeds."""

import itertools
import os
import subprocess
import sys
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.rating_study import items, names, spread

from data.errors import BadInput
from data.study.assignments import Assigned
from medjury.services.design.assign import design, top_up
from medjury.services.design.deal import GAP, Showing, arrange

ENDS = ((1, 60), (1, 9), (1, 5), (1, 5), (0, 9))  # responses, raters, models, readings, seeds
SIZES = st.tuples(*(st.integers(*ends) for ends in ENDS))
QUICK = settings(max_examples=60, deadline=None)


def firsts(plan):
    return Counter(slot.response for slot in plan.slots if not slot.pass_)


@QUICK
@given(SIZES)
def test_every_response_gets_exactly_k_clinicians_with_level_loads_and_overlaps(size):
    n, raters, models, k, seed = size
    k = min(k, raters)
    plan = design(items(n, models), names(raters), k, seed=seed)
    assert all(count == k for count in firsts(plan).values())
    assert len(firsts(plan)) == n
    assert len({(slot.rater, slot.response, slot.pass_) for slot in plan.slots}) == len(plan.slots)
    assert spread(list(plan.load.values())) <= 1
    assert sum(plan.load.values()) == n * k
    assert spread(list(plan.overlap.values())) <= 2
    assert plan.connected == (n * (k - 1) >= raters - 1)


@pytest.mark.parametrize(("n", "raters", "k"), [(9, 10, 2), (19, 20, 2), (5, 11, 3), (11, 45, 5)])
def test_the_fewest_readings_that_can_link_all_clinicians_do(n, raters, k):
    for seed in range(5):
        plan = design(items(n), names(raters), k, seed=seed)
        assert plan.connected
        assert spread(list(plan.load.values())) <= 1


@QUICK
@given(st.integers(1, 80), st.integers(2, 12), st.integers(0, 9))
def test_with_two_readings_a_response_every_pair_shares_as_many_but_for_one(n, raters, seed):
    plan = design(items(n), names(raters), 2, seed=seed)
    assert spread(list(plan.overlap.values())) <= 1


@pytest.mark.parametrize(("n", "raters", "k"), [(7, 7, 3), (12, 9, 3), (26, 13, 3), (30, 10, 3)])
def test_a_balanced_incomplete_block_design_is_found_where_one_exists(n, raters, k):
    # Fano plane, affine plane of order 3, the two Steiner systems S(2,3,13), and 2-(10,3,2):
    # every pair meets n k (k - 1) / (r (r - 1)) times: 1, 1, 1 and 2.
    plan = design(items(n, models=1), names(raters), k)
    assert set(plan.overlap.values()) == {n * k * (k - 1) // (raters * (raters - 1))}


SMALL = [(n, r, k) for r in (4, 5) for k in range(2, r) for n in range(1, 6)]


@pytest.mark.parametrize(("n", "raters", "k"), SMALL)
def test_overlaps_are_as_equal_as_in_the_best_of_all_designs(n, raters, k):
    blocks = list(itertools.combinations(range(raters), k))
    best = min(
        unevenness(chosen, raters)
        for chosen in itertools.combinations_with_replacement(blocks, n)
        if linked_and_level(chosen, raters)
    )
    plan = design(items(n), names(raters), k)
    assert sum(shared**2 for shared in plan.overlap.values()) == best


def unevenness(blocks, raters):
    pairs = Counter(pair for block in blocks for pair in itertools.combinations(block, 2))
    return sum(pairs[pair] ** 2 for pair in itertools.combinations(range(raters), 2))


def linked_and_level(blocks, raters):
    load = Counter(one for block in blocks for one in block)
    if spread([load[one] for one in range(raters)]) > 1:
        return False
    known, left = set(blocks[0]), list(blocks[1:])
    while near := [block for block in left if known & set(block)]:
        known.update(*near)
        left = [block for block in left if block not in near]
    return len(known) == raters or len(blocks) * (len(blocks[0]) - 1) < raters - 1


@QUICK
@given(st.integers(1, 25), st.integers(2, 6), st.integers(2, 8), st.integers(0, 9))
def test_of_two_readings_clinicians_see_models_in_equal_parts(instances, models, raters, seed):
    # Overlaps come first; that they cost the models one more at most was never exceeded.
    plan = design(items(instances * models, models), names(raters), 2, seed=seed)
    few = instances * models < raters * (raters - 1) // 2
    assert plan.model_spread <= (2 if few else 1)


@QUICK
@given(SIZES, st.randoms(use_true_random=False))
def test_the_same_seed_gives_the_same_design_in_whatever_order_things_come(size, shuffler):
    n, raters, models, k, seed = size
    given_items, given_names = items(n, models), names(raters)
    plan = design(given_items, given_names, min(k, raters), seed=seed)
    shuffler.shuffle(given_items)
    shuffler.shuffle(given_names)
    assert design(given_items, given_names, min(k, raters), seed=seed).slots == plan.slots


def test_another_seed_or_another_clinician_gives_other_orders():
    plan = design(items(40), names(4), 2, seed=1)
    other = design(items(40), names(4), 2, seed=2)
    renamed = design(items(40), [*names(3), "dr_x"], 2, seed=1)
    for rater in names(3):
        assert plan.orders[rater] != other.orders[rater]
        assert plan.orders[rater] != renamed.orders[rater]
    everyone_reads_all = design(items(40), names(4), 4)
    assert len({tuple(line) for line in everyone_reads_all.orders.values()}) == 4


def test_a_design_does_not_depend_on_the_hash_seed_of_the_process():
    program = (
        "from medjury.services.design.assign import design\n"
        "from data.study.assignments import Item\n"
        "items = [Item(n, n // 3, f'm{n % 3}') for n in range(50)]\n"
        "print(design(items, ['b', 'a', 'c', 'd'], 2, seed=7).slots)"
    )
    call, seeds = [sys.executable, "-c", program], ("0", "12345")
    envs = [{**os.environ, "PYTHONHASHSEED": seed} for seed in seeds]
    assert len({subprocess.check_output(call, env=env) for env in envs}) == 1


@pytest.mark.parametrize(
    ("count", "raters", "k", "repeats", "said"),
    [
        (5, ["a", "b"], 3, 0.1, r"per_response=3 with 2 clinicians \(a, b\): ask for fewer"),
        (5, [], 1, 0.1, "invite more"),
        (5, ["a"], 0, 0.1, "at least one clinician"),
        (0, ["a"], 1, 0.1, "import some first"),
        *((5, ["a"], 1, share, "from 0 to 0.5") for share in (0.6, -0.1, float("nan"))),
        (5, ["a", "b", "a"], 1, 0.1, "named twice: a"),
        (5, ["a", " "], 1, 0.1, "without a name"),
    ],
)
def test_what_cannot_be_designed_is_refused_with_what_to_do(count, raters, k, repeats, said):
    with pytest.raises(BadInput, match=said):
        design(items(count), raters, k, repeats)
    with pytest.raises(BadInput, match="responses given twice"):
        design([*items(3), *items(1)], ["a"], 1)
    for stored, told in (
        ([Assigned("a", 1)] * 2, "slots given twice"),
        ([Assigned("a", 9)], "not given"),
    ):
        with pytest.raises(BadInput, match=told):
            top_up(stored, items(1), ["a"], 1)


@QUICK
@given(SIZES, st.floats(0, 0.5))
def test_a_repeat_comes_at_least_ten_places_after_its_first_showing(size, share):
    n, raters, models, k, seed = size
    plan = design(items(n, models), names(raters), min(k, raters), share, seed)
    for rater, load in plan.load.items():
        own = [slot for slot in plan.slots if slot.rater == rater]
        assert sorted(slot.position for slot in own) == list(range(len(own)))
        first = {slot.response: slot.position for slot in own if not slot.pass_}
        again = [slot for slot in own if slot.pass_]
        assert all(slot.position >= first[slot.response] + 10 for slot in again)
        assert len(again) == (round(share * load) if load >= 10 else 0)


@QUICK
@given(SIZES)
def test_responses_of_one_instance_are_never_neighbours_where_an_order_avoids_it(size):
    n, raters, models, k, seed = size
    plan = design(items(n, models), names(raters), min(k, raters), repeats=0, seed=seed)
    for line in plan.orders.values():
        most = max(Counter(one.instance for one in line).values(), default=0)
        touching = sum(a.instance == b.instance for a, b in itertools.pairwise(line))
        assert touching == max(0, 2 * most - 1 - len(line))


@QUICK
@given(st.integers(4, 30), st.integers(2, 4), st.integers(0, 99))
def test_repeats_do_not_stand_beside_their_instance_either(instances, models, seed):
    plan = design(items(instances * models, models), names(2), 1, seed=seed)
    assert plan.adjacent == 0


def test_the_worst_lists_are_still_arranged():
    same = [Showing(number, 1) for number in range(12)]
    other = [Showing(number, 2) for number in range(12, 23)]
    rng = Random(1)  # noqa: S311 - a test's seed
    line = arrange([], same + other, 0, rng)
    assert [one.instance for one in line] == [1, 2] * 11 + [1]
    assert len(arrange([], same, 3, rng)) == 15
    assert arrange(same, [], 1, rng)[0].response <= len(same) - GAP
