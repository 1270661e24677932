"""Options that several commands share: what they refuse, and with what exit code."""

import pytest
from small import Run

SEEDED = [["assign", "--raters", "2"], *([one] for one in ("calibrate", "juries", "models"))]
SEEDED += [["monitor"], ["plan"], ["predict"]]


@pytest.mark.parametrize("command", SEEDED, ids=lambda one: one[0])
def test_a_seed_below_0_is_a_usage_error(command: list[str], run: Run) -> None:
    code, _, error = run(*command, "--seed", "-1")
    assert code == 2
    assert "--seed" in error
    assert "greater than or equal to 0" in error
