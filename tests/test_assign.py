"""Who rates what: the guarantees of a design over random sizes, seeds and drop-outs."""

import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from annotate.assign import Assigned, Design, Item, design, top_up
from annotate.order import GAP, Showing, arrange
from calibration.f_interval import f_interval
from data.errors import BadInput

ROOT = Path(__file__).parents[1]
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


def spread(values: Sequence[int]) -> int:
    return max(values, default=0) - min(values, default=0)


def firsts(plan: Design) -> Counter[int]:
    return Counter(slot.response for slot in plan.slots if not slot.pass_)


def as_stored(plan: Design, done: set[tuple[str, int, int]]) -> list[Assigned]:
    return [
        Assigned(s.rater, s.response, s.pass_, (s.rater, s.response, s.pass_) in done, s.position)
        for s in plan.slots
    ]


@QUICK
@given(SIZES)
def test_every_response_gets_exactly_k_clinicians_and_loads_differ_by_one_at_most(
    size: tuple[int, int, int, int, int],
) -> None:
    n, raters, models, k, seed = size
    k = min(k, raters)
    plan = design(items(n, models), names(raters), k, seed=seed)
    assert all(count == k for count in firsts(plan).values())
    assert len(firsts(plan)) == n
    assert len({(slot.rater, slot.response, slot.pass_) for slot in plan.slots}) == len(plan.slots)
    assert spread(list(plan.load.values())) <= 1
    assert sum(plan.load.values()) == n * k


@QUICK
@given(SIZES)
def test_clinicians_are_linked_whenever_there_are_readings_enough(
    size: tuple[int, int, int, int, int],
) -> None:
    n, raters, models, k, seed = size
    k = min(k, raters)
    plan = design(items(n, models), names(raters), k, seed=seed)
    assert plan.connected == (n * (k - 1) >= raters - 1)


@pytest.mark.parametrize(("n", "raters", "k"), [(9, 10, 2), (19, 20, 2), (5, 11, 3), (11, 45, 5)])
def test_the_fewest_readings_that_can_link_all_clinicians_do(n: int, raters: int, k: int) -> None:
    for seed in range(5):
        plan = design(items(n), names(raters), k, seed=seed)
        assert plan.connected
        assert spread(list(plan.load.values())) <= 1


@QUICK
@given(st.integers(1, 80), st.integers(2, 12), st.integers(0, 9))
def test_with_two_readings_a_response_every_pair_shares_as_many_but_for_one(
    n: int, raters: int, seed: int
) -> None:
    plan = design(items(n), names(raters), 2, seed=seed)
    assert spread(list(plan.overlap.values())) <= 1


@QUICK
@given(SIZES)
def test_no_two_pairs_differ_by_more_than_two_shared_responses(
    size: tuple[int, int, int, int, int],
) -> None:
    n, raters, models, k, seed = size
    plan = design(items(n, models), names(raters), min(k, raters), seed=seed)
    assert spread(list(plan.overlap.values())) <= 2


@pytest.mark.parametrize(("n", "raters", "k"), [(7, 7, 3), (12, 9, 3), (26, 13, 3), (30, 10, 3)])
def test_a_balanced_incomplete_block_design_is_found_where_one_exists(
    n: int, raters: int, k: int
) -> None:
    # Fano plane, affine plane of order 3, the two Steiner systems S(2,3,13), and 2-(10,3,2):
    # every pair meets n k (k - 1) / (r (r - 1)) times: 1, 1, 1 and 2.
    plan = design(items(n, models=1), names(raters), k)
    assert set(plan.overlap.values()) == {n * k * (k - 1) // (raters * (raters - 1))}


@pytest.mark.parametrize(
    ("n", "raters", "k"), [(n, r, k) for r in (4, 5) for k in range(2, r) for n in range(1, 6)]
)
def test_overlaps_are_as_equal_as_in_the_best_of_all_designs(n: int, raters: int, k: int) -> None:
    blocks = list(itertools.combinations(range(raters), k))
    best = min(
        unevenness(chosen, raters)
        for chosen in itertools.combinations_with_replacement(blocks, n)
        if linked_and_level(chosen, raters)
    )
    plan = design(items(n), names(raters), k)
    assert sum(shared**2 for shared in plan.overlap.values()) == best


def unevenness(blocks: Sequence[tuple[int, ...]], raters: int) -> int:
    pairs = Counter(pair for block in blocks for pair in itertools.combinations(block, 2))
    return sum(pairs[pair] ** 2 for pair in itertools.combinations(range(raters), 2))


def linked_and_level(blocks: Sequence[tuple[int, ...]], raters: int) -> bool:
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
def test_with_two_readings_each_clinician_sees_the_models_in_equal_parts(
    instances: int, models: int, raters: int, seed: int
) -> None:
    # Overlaps come first; that they cost the models one more at most was never exceeded.
    plan = design(items(instances * models, models), names(raters), 2, seed=seed)
    few = instances * models < raters * (raters - 1) // 2
    assert plan.model_spread <= (2 if few else 1)


def test_ordinary_studies_get_equal_loads_overlaps_and_models_all_at_once() -> None:
    for n, raters, models, k in [(60, 5, 3, 2), (54, 4, 9, 2), (120, 8, 6, 2), (150, 10, 5, 3)]:
        plan = design(items(n, models), names(raters), k)
        assert spread(list(plan.load.values())) <= 1
        assert spread(list(plan.overlap.values())) <= 1
        assert plan.model_spread <= 1


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


def test_a_list_too_short_for_repeats_gets_none_and_the_plan_says_so() -> None:
    plan = design(items(9), names(1), 1, repeats=0.5)
    written = plan.to_json()
    assert plan.repeats == 0
    assert written["plan"]["repeats_missing"] == 4
    assert any("too short" in note for note in written["plan"]["notes"])


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


@QUICK
@given(SIZES, st.randoms(use_true_random=False))
def test_the_same_seed_gives_the_same_design_in_whatever_order_things_come(
    size: tuple[int, int, int, int, int], shuffler: Random
) -> None:
    n, raters, models, k, seed = size
    given_items, given_names = items(n, models), names(raters)
    plan = design(given_items, given_names, min(k, raters), seed=seed)
    shuffler.shuffle(given_items)
    shuffler.shuffle(given_names)
    assert design(given_items, given_names, min(k, raters), seed=seed).slots == plan.slots


def test_another_seed_or_another_clinician_gives_other_orders() -> None:
    plan = design(items(40), names(4), 2, seed=1)
    other = design(items(40), names(4), 2, seed=2)
    renamed = design(items(40), [*names(3), "dr_x"], 2, seed=1)
    for rater in names(3):
        assert plan.orders[rater] != other.orders[rater]
        assert plan.orders[rater] != renamed.orders[rater]
    everyone_reads_all = design(items(40), names(4), 4)
    assert len({tuple(line) for line in everyone_reads_all.orders.values()}) == 4


def test_a_design_does_not_depend_on_the_hash_seed_of_the_process() -> None:
    program = (
        "from annotate.assign import Item, design\n"
        "items = [Item(n, n // 3, f'm{n % 3}') for n in range(50)]\n"
        "print(design(items, ['b', 'a', 'c', 'd'], 2, seed=7).slots)"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "12345")
    }
    assert len(said) == 1


def test_the_plan_is_json_and_shows_what_must_be_known_before_anyone_is_invited() -> None:
    written = design(items(60), names(5), 2, seed=3).to_json(minutes_per_response=3)
    plan = json.loads(json.dumps(written))["plan"]
    assert (written["seed"], written["per_response"], written["repeats"]) == (3, 2, 10)
    assert written["load"] == dict.fromkeys(names(5), 24)
    assert len(written["overlap"]) == 10
    assert written["overlap"]["dr_a|dr_b"] == 6
    assert plan["minutes"]["dr_a"] == (24 + 2) * 3
    assert (plan["overlap_min"], plan["overlap_max"], plan["adjacent"]) == (6, 6, 0)
    ends = f_interval(plan["icc_assumed"], 60)
    assert plan["icc_width"] == pytest.approx(ends.high - ends.low, abs=1e-4)
    assert plan["icc_width_by_instances"] > plan["icc_width"]


def test_the_width_of_an_interval_that_does_not_exist_is_null() -> None:
    plan = design(items(1), names(2), 2).to_json()["plan"]
    assert plan["icc_width"] is None


@pytest.mark.parametrize(
    ("count", "raters", "k", "repeats", "said"),
    [
        (5, ["a", "b"], 3, 0.1, "per_response=3 with 2 clinicians (a, b): ask for fewer"),
        (5, [], 1, 0.1, "invite more"),
        (5, ["a"], 0, 0.1, "at least one clinician"),
        (0, ["a"], 1, 0.1, "import some first"),
        (5, ["a"], 1, 0.6, "from 0 to 0.5"),
        (5, ["a"], 1, -0.1, "from 0 to 0.5"),
        (5, ["a"], 1, float("nan"), "from 0 to 0.5"),
        (5, ["a", "b", "a"], 1, 0.1, "named twice: a"),
        (5, ["a", " "], 1, 0.1, "without a name"),
    ],
)
def test_what_cannot_be_designed_is_refused_with_what_to_do(
    count: int, raters: list[str], k: int, repeats: float, said: str
) -> None:
    with pytest.raises(BadInput) as caught:
        design(items(count), raters, k, repeats)
    assert said in str(caught.value)


def test_a_response_or_a_slot_given_twice_is_refused() -> None:
    with pytest.raises(BadInput, match="responses given twice"):
        design([*items(3), *items(1)], ["a"], 1)
    with pytest.raises(BadInput, match="slots given twice"):
        top_up([Assigned("a", 1)] * 2, items(1), ["a"], 1)
    with pytest.raises(BadInput, match="not given"):
        top_up([Assigned("a", 9)], items(1), ["a"], 1)


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
    """Return the least sum of squared loads, by levelling with one reading more at a time.

    The greatest number of missing readings that loads up to a cap can take, minus what a
    lower cap can take, is how many readings have to be at that height (max-flow by
    augmenting paths, an independent way to the same figure).
    """
    by = {one: [s[0] for s in done if s[1] == one] for one in range(1, responses + 1)}
    held = {name: sum(name in them for them in by.values()) for name in staff}
    missing = [one for one, them in by.items() for _ in range(k - len(them))]
    given_to: list[tuple[int, str]] = []
    total, cap = sum(load**2 for load in held.values()), 0
    while len(given_to) < len(missing):
        cap += 1
        while path := augment(given_to, missing, by, held, cap):
            given_to = path
            total += 2 * cap - 1
    return total


def augment(
    given_to: list[tuple[int, str]],
    missing: list[int],
    by: dict[int, list[str]],
    held: dict[str, int],
    cap: int,
) -> list[tuple[int, str]] | None:
    """Return the readings given out, and one more, with no load above the cap; or None."""
    load = Counter(name for _, name in given_to)
    wanting = Counter(missing) - Counter(one for one, _ in given_to)
    queue: list[tuple[int, list[tuple[int, str]]]] = [(one, given_to) for one in sorted(wanting)]
    seen: set[str] = set()
    for response, now in queue:
        for name in held:
            taken = name in by[response] or (response, name) in now
            if name in seen or taken:
                continue
            seen.add(name)
            if held[name] + load[name] < cap:
                return [*now, (response, name)]
            for other in [one for one, whose in now if whose == name]:
                freed = [pair for pair in now if pair != (other, name)]
                queue.append((other, [*freed, (response, name)]))
    return None


def test_a_finished_response_gets_no_more_and_its_open_work_is_dropped() -> None:
    stored = [Assigned("a", 1, done=True), Assigned("b", 1, done=True), Assigned("c", 1)]
    more = top_up(stored, items(1), ["a", "b", "c"], 2)
    assert more.slots == ()
    assert more.dropped == (Assigned("c", 1),)


def test_a_top_up_of_a_complete_design_changes_nothing() -> None:
    plan = design(items(40), names(5), 2, seed=4)
    more = top_up(as_stored(plan, set()), items(40), names(5), 2, seed=9)
    assert (more.slots, more.dropped) == ((), ())
    assert more.overlap == plan.overlap


def test_new_work_follows_on_what_a_clinician_has() -> None:
    plan = design(items(40), names(4), 2)
    more = top_up(as_stored(plan, set()), items(60), names(4), 2)
    last = {name: len(line) - 1 for name, line in plan.orders.items()}
    assert min(slot.position - last[slot.rater] for slot in more.slots) == 1
    assert more.adjacent == 0
    assert spread(list(more.load.values())) <= 1
