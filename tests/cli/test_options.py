"""Options that several commands share: what they refuse, and with what exit code."""

from pathlib import Path

import pytest
from kit.studies import Run, rated

SEEDED = [
    ["rate", "assign", "--raters", "2"],
    *(["analyse", one] for one in ("juries", "models", "predict")),
    ["study", "plan"],
]


@pytest.mark.parametrize("command", SEEDED, ids=lambda one: one[1])
def test_a_seed_below_0_is_a_usage_error(command: list[str], run: Run) -> None:
    code, _, error = run(*command, "--seed", "-1")
    assert code == 2
    assert "--seed" in error
    assert "greater than or equal to 0" in error


NUMBERS = [
    *(["analyse", "monitor", name] for name in ("--min-icc", "--target")),
    ["analyse", "predict", "--level"],
    ["jury", "run", "simulated", "--max-usd"],
    ["rate", "assign", "--raters", "2", "--repeats"],
    ["study", "plan", "--icc", "0.5", "--minutes-per-response"],
]
IN_A_RANGE = [["study", "plan", "--icc", "0.5", "--width"], ["study", "plan", "--single-icc"]]


@pytest.mark.parametrize("command", NUMBERS, ids=" ".join)
def test_an_infinite_number_is_a_usage_error(command: list[str], run: Run) -> None:
    code, out, error = run(*command, "inf")
    assert (code, out) == (2, "")
    assert f"'{command[-1]}': inf is not a number" in " ".join(error.split())


@pytest.mark.parametrize("command", NUMBERS + IN_A_RANGE, ids=" ".join)
def test_what_is_no_number_is_a_usage_error(command: list[str], run: Run) -> None:
    code, out, error = run(*command, "nan")
    assert (code, out) == (2, "")
    assert f"'{command[-1]}'" in " ".join(error.split())


UNKNOWN = [
    (["analyse", "predict", "--benchmark", "nope"], "no benchmark nope"),
    (["analyse", "predict", "--criterion", "nope"], "criterion nope"),
    (["analyse", "predict", "--min-jurors", "9"], "the jury has 2 jurors"),
    (["analyse", "predict", "--jurors", "nobody"], "no ratings by a juror nobody"),
    (["analyse", "calibrate", "--criterion", "nope"], "criterion nope"),
    (["analyse", "calibrate", "--min-jurors", "9"], "the jury has 2 jurors"),
]


def test_what_the_study_does_not_know_is_said_before_anything_else(
    run: Run, tmp_path: Path
) -> None:
    rated(run, tmp_path)
    for command, said in UNKNOWN:
        code, out, error = run(*command)
        assert (code, out) == (2, ""), command
        assert said in error
        assert len(error.splitlines()) == 1
