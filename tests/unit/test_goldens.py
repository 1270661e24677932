"""What was recorded stays: figures of every analyse command, and the words of the demo study.

The figures are of the demo and of three public data sets (SummEval-OP, MIT; MentalBench, MIT; MSLR
Cochrane, Apache-2.0; docs/evidence.md has the sources), recorded by `kit.goldens`. The words are those of the terminal and the report page, recorded by `kit.demo_words`.
"""

from difflib import unified_diff

import pytest
from kit import demo_words
from kit.goldens import STUDIES, answers, differences, recorded

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.real
@pytest.mark.parametrize("name", STUDIES)
def test_the_figures_of_a_study_are_those_recorded(name: str) -> None:
    assert differences(recorded(name), answers(name)) == []


def test_the_words_for_the_demo_study_are_those_recorded() -> None:
    lines = (demo_words.recorded().splitlines(), demo_words.said().splitlines())
    changed = [*unified_diff(*lines, "recorded", "said", lineterm="", n=1)]
    shown = "\n".join(changed[:80])
    assert not changed, f"if they are meant, `python -m kit.demo_words` records them anew:\n{shown}"
