"""Self-preference: the residual's own regression, planted biases, false alarms, reasons."""

import math

import numpy as np
import pytest
from kit.scores import note_of, scope_of
from statsmodels.api import OLS

from calibration.raters import self_preference_rows

NAN = math.nan
FAMILIES = {"j0": "gpt", "j1": "claude", "j2": "llama"}
WRITERS = ("gpt", "claude", "llama", "qwen")


def simulate(n=200, seed=0, planted=(0.0, 0.0, 0.0), writers=WRITERS, severity=(0.0, -0.4, 0.3)):
    """Return composites (n, 2 clinicians + jurors) and who wrote each, one instance per four."""
    random = np.random.default_rng(seed)
    wrote = np.array([writers[i % len(writers)] for i in range(n)])
    quality = 3 + random.normal(size=(n, 1)) + 0.5 * (wrote == "gpt")[:, None]
    jurors = quality + np.asarray(severity) + 0.5 * random.normal(size=(n, len(planted)))
    jurors = jurors + 0.3 * np.repeat(random.normal(size=(-(-n // 4), len(planted))), 4, axis=0)[:n]
    own = wrote[:, None] == np.array(list(FAMILIES.values()))[: len(planted)]
    jurors = jurors + own * np.asarray(planted)
    doctors = quality + 0.6 * random.normal(size=(n, 2))
    return np.hstack([doctors, jurors]), {f"r{i}": str(name) for i, name in enumerate(wrote)}


def rows_of(table, authors, families=FAMILIES, **options):
    return self_preference_rows(scope_of(table, 2, per=4, **options), families, authors)


def test_one_familys_preference_is_the_regression_of_the_jurors_residual():
    table, authors = simulate(planted=(0.4, 0, 0))
    families = {"j0": "gpt"}

    row = rows_of(table, authors, families)[0]

    own = np.array([authors[f"r{i}"] == "gpt" for i in range(200)], dtype=float)
    residual = table[:, 2] - table[:, 3:].mean(axis=1)
    design = np.column_stack([np.ones(200), own, table[:, :2].mean(axis=1)])
    groups = {"groups": np.arange(200) // 4}
    fitted = OLS(residual, design).fit(cov_type="cluster", cov_kwds=groups, use_t=True)
    assert row.preference == pytest.approx(fitted.params[1])
    # The stack counts three rows a response, which moves the small-sample factor a little.
    assert (row.low, row.high) == pytest.approx(tuple(fitted.conf_int()[1]), abs=0.005)
    assert (row.n_own, row.n_other, row.n_unknown) == (50, 150, 0)


def test_one_jurors_preference_is_not_taken_for_the_others():
    table, authors = simulate(n=4000, planted=(0.6, 0, 0))

    rows = rows_of(table, authors)

    assert [row.preference for row in rows] == pytest.approx([0.6, 0, 0], abs=0.05)
    # The residual of j1 alone says 0.6 / 2 on a third of the others' responses: 0.1.
    own = np.array([authors[f"r{i}"] == "claude" for i in range(4000)])
    residual = table[:, 3] - table[:, [2, 4]].mean(axis=1)
    assert residual[own].mean() - residual[~own].mean() == pytest.approx(0.1, abs=0.05)


@pytest.mark.slow
def test_planted_preferences_are_recovered_and_their_intervals_cover():
    planted = np.array([0.5, 0.2, 0.0])
    found = [rows_of(*simulate(seed=seed, planted=planted)) for seed in range(120)]

    points = np.array([[row.preference for row in rows] for rows in found])
    covered = np.array(
        [[row.low < b < row.high for row, b in zip(rows, planted, strict=True)] for rows in found]
    )
    assert points.mean(axis=0) == pytest.approx(planted, abs=0.02)
    assert covered.mean() == pytest.approx(0.95, abs=0.03)


@pytest.mark.slow
def test_without_preferences_a_false_alarm_in_a_juror_comes_as_often_as_said():
    alarms = [[row.p < 0.05 for row in rows_of(*simulate(n=120, seed=seed))] for seed in range(200)]

    assert np.mean(alarms) < 0.08  # 5 % in the long run; 30 instances


def test_quality_and_severity_are_no_preference():
    table, authors = simulate(n=4000, severity=(1.0, -1.0, 0.0))

    assert [row.preference for row in rows_of(table, authors)] == pytest.approx([0] * 3, abs=0.05)


def test_two_jurors_cannot_be_told_apart_when_they_wrote_everything():
    table, authors = simulate(planted=(0.5, 0), severity=(0, 0), writers=("gpt", "claude"))

    rows = rows_of(table, authors)

    assert all(math.isnan(row.preference) and math.isnan(row.p) for row in rows)
    assert "cannot tell the jurors' preferences apart" in note_of(rows[0])


def test_two_jurors_can_when_others_wrote_too():
    table, authors = simulate(n=2000, planted=(0.5, 0), severity=(0, 0))

    rows = rows_of(table, authors)

    assert [row.preference for row in rows] == pytest.approx([0.5, 0], abs=0.08)


def test_a_jury_of_one_family_cannot_prefer_it_visibly():
    table, authors = simulate()

    rows = rows_of(table, authors, dict.fromkeys(FAMILIES, "gpt"))

    assert all("cannot tell" in note_of(row) for row in rows)


def test_unknown_authors_are_left_out_and_counted():
    table, authors = simulate()
    known = {name: writer for name, writer in authors.items() if int(name[1:]) >= 20}

    some, without = rows_of(table, known)[0], rows_of(table[20:], shifted(authors, 20))[0]

    assert some.n_unknown == 20
    assert "20 responses by an unknown family left out" in note_of(some)
    assert some.preference == pytest.approx(without.preference)


def shifted(authors, by):
    return {f"r{int(name[1:]) - by}": one for name, one in authors.items() if int(name[1:]) >= by}


@pytest.mark.parametrize(
    ("families", "writers", "reason"),
    [
        (
            {"j1": "claude"},
            WRITERS,
            "undefined: imported, no family is stored: --panel names families",
        ),
        (FAMILIES, ("qwen", "claude"), "responses by its family to 0 instances, and 5 are needed"),
        (FAMILIES, ("gpt",), "responses by other families to 0 instances, and 5 are needed"),
        (FAMILIES, (), "responses by its family to 0 instances"),
        (FAMILIES, ("gpt", *["qwen"] * 60), "responses by its family to 4 instances"),
    ],
)
def test_what_is_undefined_is_nan_with_a_reason(families, writers, reason):
    table, authors = simulate(writers=writers or WRITERS)

    row = rows_of(table, authors if writers else {}, families)[0]

    assert reason in note_of(row)
    assert all(map(math.isnan, (row.preference, row.low, row.high, row.p)))


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        (lambda table: table + 10, 1),
        (lambda table: table * 3, 3),
        (lambda table: np.vstack([table, np.full((8, table.shape[1]), NAN)]), 1),
    ],
    ids=["shift", "scale", "missing"],
)
def test_shift_and_empty_rows_change_nothing_and_scale_scales(change, factor):
    table, authors = simulate()
    before = [(row.preference, row.low, row.high) for row in rows_of(table, authors)]

    after = [(row.preference, row.low, row.high) for row in rows_of(change(table), authors)]

    assert np.array(after) == pytest.approx(np.array(before) * factor)


def test_a_juror_who_missed_responses_is_compared_where_it_rated():
    table, authors = simulate(n=2000, planted=(0.5, 0, 0))
    table[:600, 2] = NAN

    rows = rows_of(table, authors)

    assert rows[0].n_own + rows[0].n_other == 1400
    assert rows[0].preference == pytest.approx(0.5, abs=0.1)
