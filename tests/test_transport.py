"""Whether notes look like the validated ones: no more false alarms than stated, real shifts found."""

import json
from pathlib import Path

import numpy as np
import pytest
from kit.studies import HEAD, Run
from kit.ward_study import fill
from scipy.stats import ks_2samp
from sqlalchemy import Engine

from calibration.transport import Notes, energy_test, gap_test, transported
from calibration.ward_values import Standing


def notes(random: np.random.Generator, cases: int, shift: float = 0.0, start: int = 0) -> Notes:
    """Two notes a case that are alike, of two wards, with words, scores in steps, and texts."""
    case = np.repeat(np.arange(cases), 2)
    own = random.normal(size=cases)[case] + 0.4 * random.normal(size=2 * cases)
    texts = random.normal(size=(2 * cases, 8)) + shift
    return Notes(
        [f"i{start + n}" for n in case],
        {"words": 200 + 50 * (own + shift), "jury score": np.clip(np.round(own + 3 + shift), 1, 5)},
        {"benchmark": [("a", "b")[n % 2] for n in case]},
        texts / np.linalg.norm(texts, axis=1, keepdims=True),
    )


def test_the_gap_is_that_of_kolmogorov_and_smirnov_and_its_p_agrees_without_ties() -> None:
    random = np.random.default_rng(3)
    old, new = random.normal(size=80), random.normal(0.3, 1, size=60)
    gap, p = gap_test(old, new, random)
    known = ks_2samp(old, new)
    assert gap == pytest.approx(known.statistic)
    assert p == pytest.approx(known.pvalue, abs=0.03)
    assert gap_test(old, old, random) == (0.0, 1.0)


def test_the_energy_coefficient_is_that_of_its_formula() -> None:
    old, new = np.array([[0.0], [1.0]]), np.array([[3.0], [5.0]])
    # Between: (3 + 5 + 2 + 4) / 4 = 3.5; within: (1 + 1) / 4 = 0.5 and (2 + 2) / 4 = 1.
    coefficient, _ = energy_test(old, new, np.random.default_rng(0))
    assert coefficient == pytest.approx((2 * 3.5 - 0.5 - 1) / (2 * 3.5))


@pytest.mark.parametrize("shift", [0.8, -0.8])
def test_a_shift_is_found_and_named_group_by_group(shift: float) -> None:
    random = np.random.default_rng(0)
    found = transported(notes(random, 100), notes(random, 100, shift, 500))
    assert {one.group for one in found.groups} == {"all", "benchmark: a", "benchmark: b"}
    assert {one.standing for one in found.groups} == {Standing.DIFFERENT}
    assert {"words", "jury score", "text"} == {*found.groups[0].differs}
    words = found.compared[0]
    assert words.low < words.difference < words.high
    assert np.sign(words.difference) == np.sign(shift)


def test_a_group_nobody_rated_is_not_validated_and_a_small_one_is_too_few() -> None:
    random = np.random.default_rng(1)
    old = notes(random, 60)
    own = np.array(old.groups["benchmark"]) == "a"
    few = np.arange(len(own)) < 24
    found = {one.group: one for one in transported(old.of(own), notes(random, 60, 0, 500)).groups}
    assert found["benchmark: b"].standing is Standing.NOT_RATED
    assert (found["benchmark: b"].validated, found["benchmark: b"].new) == (0, 30)
    small = {one.group: one for one in transported(old.of(few), notes(random, 60, 0, 500)).groups}
    assert small["all"].standing is Standing.FEW


@pytest.mark.slow  # 200 studies each
def test_the_same_source_is_called_different_in_at_most_5_percent() -> None:
    random = np.random.default_rng(7)
    pairs = [(notes(random, 60), notes(random, 60, 0, 500)) for _ in range(200)]
    wrong = sum(not transported(*pair, seed=n).all_alike for n, pair in enumerate(pairs))
    assert wrong <= 0.05 * 200 + 2 * np.sqrt(200 * 0.05 * 0.95)


def test_the_command_compares_the_rated_with_the_rest_and_with_a_file(
    run: Run, engine: Engine, tmp_path: Path
) -> None:
    fill(run, tmp_path, rated=100)
    asked = ("analyse", "transport", "--no-texts", "--json", "-")
    rest = json.loads(run(*asked)[1])
    assert (rest["rated"], rest["new"], rest["texts_compared"]) == (100, 100, False)
    assert rest["groups"][0]["standing"] == "alike"
    file = tmp_path / "new.csv"
    long = "word " * 300
    lines = [f"n{n},other,Pain.,Write.,,new{n},secret-1,{long}" for n in range(40)]
    file.write_text("\n".join([HEAD, *lines]))
    code, out, _ = run("analyse", "transport", str(file), "--no-texts")
    assert code == 0
    assert out.startswith("not validated for: all, benchmark: other")
    assert "secret" not in out
    code, out, err = run("analyse", "transport", str(tmp_path / "nowhere.csv"))
    assert (code, out) == (2, "")
    assert "nowhere.csv" in err
