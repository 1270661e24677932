"""Every composition of jurors, and what each juror is worth: by hand, by calibrate, and what changes nothing."""

import math

import numpy as np
import pytest
from kit.composites import METHODS, NAN, simulate
from kit.scores import note_of, scope_of

from calibration.bootstrap import draw_counts
from calibration.columns import PanelColumns, column_icc, columns
from calibration.differences import difference_rows
from calibration.juries import cost, jury_pool, jury_ranking, on_front
from calibration.raters import value_rows
from data.errors import BadInput, TooFew

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
    return jury_pool(scope, scope.jurors, sizes, both(scope, scope.jurors).both)


def iccs(found):
    return {row.jurors: row.icc for row in found.rows}


@pytest.mark.parametrize("method", METHODS)
def test_a_table_worked_by_hand(method):
    # Deviations of the clinician and j0: -1.5 -.5 .5 1.5; of j1: -.5 -1.5 1.5 .5; r = 3/5.
    # j1: 2r/(1+r) = 0.75. Both: var 4/3, clinician 5/3, cov 4/3: 4 (4/3) / (17/3) = 16/17.
    scope = scope_of(HAND, 1, method=method)
    r = (4 / 3) / math.sqrt(4 / 3 * 5 / 3)
    both = 16 / 17 if method == "paper" else 2 * r / (1 + r)
    found = jury_ranking(scope, usd={"j0": 2.0, "j1": 1.0})
    assert [row.icc for row in found.rows] == pytest.approx([1.0, both, 0.75])
    rest = [(row.jurors, row.usd_per_response, row.on_front, row.rank) for row in found.rows]
    assert rest == [
        *((("j0",), 2.0, True, 1), (("j0", "j1"), 3.0, False, 2), (("j1",), 1.0, True, 3))
    ]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lost", [0.0, 0.02, 0.25])
def test_every_jury_has_the_icc_that_calibrate_gives(method, lost):
    scope = scope_of(simulate(n=90, jurors=6, lost=lost), 3, method=method, reps=5)
    found = jury_ranking(scope, sizes=range(1, 7))
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
    found = jury_ranking(scope_of(simulate(), 3))
    assert [row.rank for row in found.rows] == list(range(1, 16))
    assert sorted(iccs(found).values(), reverse=True) == list(iccs(found).values())
    assert all(row.honest_low < row.icc_honest < row.honest_high for row in found.rows)
    assert [row.size for row in found.by_size] == [1, 2, 3, 4]
    assert [found.of_size(size) for size in found.sizes] == [4, 6, 4, 1]


def test_all_juries_are_judged_on_the_responses_that_all_jurors_rated_and_the_others_are_counted():
    scope = scope_of(simulate(lost=0.15), 3, reps=20)
    found = jury_ranking(scope)
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
def test_sizes_that_no_jury_can_have_are_refused(sizes, said):
    with pytest.raises(BadInput, match=said):
        jury_ranking(scope_of(simulate(), 3), sizes=sizes)


def test_more_than_can_be_done_is_refused_with_what_to_do():
    scope = scope_of(simulate(n=400, jurors=24), 3, reps=2000)
    with pytest.raises(BadInput, match="are too many: take smaller sizes"):
        jury_ranking(scope)


def test_no_juror_and_no_common_response_are_too_little():
    table = simulate(jurors=2)
    with pytest.raises(TooFew, match="no juror has scores that vary"):
        jury_ranking(scope_of(np.hstack([table[:, :3], np.full((60, 1), 4.0)]), 3))
    table[:30, 3], table[30:, 4] = NAN, NAN
    with pytest.raises(TooFew, match="no response was rated by all of j0, j1"):
        jury_ranking(scope_of(table, 3))


def test_a_cost_is_known_only_where_every_members_is():
    usd = {"a": 0.1, "b": 0.2, "c": None}
    assert cost(("a", "b"), usd) == pytest.approx(0.3)
    assert cost(("a", "c"), usd) is cost(("a", "d"), usd) is None


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


@pytest.mark.parametrize(("icc", "usd"), [(0.9, NAN), (NAN, 0.0), (NAN, NAN)])
def test_who_has_no_icc_or_no_known_cost_is_off_it_and_keeps_nobody_off(icc, usd):
    assert on_front(np.array([0.6, icc]), np.array([2.0, usd])).tolist() == [True, False]


@pytest.mark.parametrize("seed", range(20))
def test_it_is_what_comparing_all_with_all_finds(seed):
    random = np.random.default_rng(seed)
    icc, usd = random.integers(0, 6, 30) / 10, random.integers(0, 6, 30) / 4
    icc[random.random(30) < 0.1], usd[random.random(30) < 0.1] = NAN, NAN
    assert on_front(icc, usd).tolist() == by_definition(icc, usd)


def test_a_juror_without_scores_or_variance_sits_nowhere_and_is_named():
    table = simulate(jurors=3)
    table[:, 4], table[:, 5] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3))
    assert found.pool == ("j0",)
    assert "left out, with no scores or all scores equal: j1, j2" in note_of(found)


def test_a_jury_that_gives_all_common_responses_the_same_score_has_no_icc_and_says_why():
    table = simulate(jurors=2)
    table[:30, 3], table[30:, 4] = 4.0, NAN
    found = jury_ranking(scope_of(table, 3, reps=20))
    lost = found.rows[-1]
    assert (lost.jurors, lost.rank, lost.on_front) == (("j0",), None, False)
    assert math.isnan(lost.icc)
    assert note_of(lost) == "undefined: the jury gave all these responses the same score"
    assert [row.jurors for row in found.by_size] == [("j1",), ("j0", "j1")]


def test_no_resamples_give_iccs_with_the_jackknife_alone():
    found = jury_ranking(scope_of(simulate(), 3, reps=0))
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
        assert (row.adds, row.low, row.high) == pytest.approx(
            (pair.difference, pair.low, pair.high)
        )
        if not lost:
            assert row.adds == pytest.approx(row.icc_jury - row.icc_without)
        assert bool(row.told("only_both")) is bool(lost)


def test_a_noisier_juror_is_worth_less_and_is_missed_less():
    rows = value_rows(scope_of(simulate(n=400, jurors=3), 3))
    assert rows[0].adds > rows[1].adds > rows[2].adds
    assert rows[0].icc_without < rows[1].icc_without < rows[2].icc_without
    assert all(row.low < row.adds < row.high for row in rows)


def test_a_jury_of_one_has_nobody_to_be_compared_with():
    (row,) = value_rows(scope_of(simulate(jurors=1), 3))
    assert row.icc_jury == row.icc_alone
    assert np.isnan([row.icc_without, row.adds, row.low]).all()
    assert note_of(row) == "a jury of one"


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


def test_without_jurors_there_are_no_rows():
    assert value_rows(scope_of([[1, 2], [2, 3]], 2)) == []


@pytest.mark.parametrize("change", ["shift", "scale", "permute"])
def test_what_leaves_every_icc_as_it_is(change):
    table = simulate()
    random = np.random.default_rng(1)
    changed = {
        "shift": table + np.arange(7),
        "scale": table * np.arange(1, 8),
        "permute": table[random.permutation(60)],
    }[change]
    first = iccs(jury_ranking(scope_of(table, 3, reps=2)))
    other = iccs(jury_ranking(scope_of(changed, 3, reps=2)))
    assert other == {jury: pytest.approx(icc) for jury, icc in first.items()}


def test_a_front_worked_by_hand():
    # 0.5 for 3 is beaten by 0.6 for 2; 0.9 for 5 by nobody; 0.6 for 4 has an equal for less.
    icc = np.array([0.3, 0.6, 0.5, 0.9, 0.6])
    usd = np.array([1.0, 2.0, 3.0, 5.0, 4.0])
    assert on_front(icc, usd).tolist() == [True, True, False, True, False]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "change",
    [
        lambda table: table + 10,
        lambda table: table * 3,
        lambda table: table[::-1],
        lambda table: np.vstack([table, np.full((5, 6), NAN)]),
    ],
    ids=["shift", "scale", "permutation", "missing"],
)
def test_shift_scale_order_and_empty_rows_change_nothing(change, method):
    before, after = (
        [(row.icc_alone, row.icc_without, row.adds) for row in value_rows(scope)]
        for scope in (
            scope_of(simulate(jurors=3), 3, method=method, reps=0),
            scope_of(change(simulate(jurors=3)), 3, method=method, reps=0),
        )
    )
    assert np.array(after) == pytest.approx(np.array(before))
